//! The front end for `.tosa` files: what the model takes and gives, and the way to a graph.

use bytes::Bytes;
use halite_formats::tosa::{Constant, Program, VariableId, is_tosa};

use super::{Result, element_of, walk};
use crate::{
    CompileError, Control, SourceLocation, Stage,
    build::Builder,
    frontends::{FrontEnd, Recognition, Source, SourceModel},
    graph::{Graph, TensorId},
    signature::{Arity, Bindings, BoundValue, Dim, Signature},
    states::Kept,
};

/// The front end for `.tosa` files.
#[derive(Debug)]
pub struct Tosa;

impl FrontEnd for Tosa {
    fn id(&self) -> &'static str {
        "tosa"
    }

    fn name(&self) -> &'static str {
        "TOSA"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["tosa"]
    }

    fn recognizes(&self, start: &[u8]) -> Recognition {
        match is_tosa(start) {
            true => Recognition::Certain,
            false => Recognition::No,
        }
    }

    fn read(&self, source: Source, control: &Control) -> Result<Box<dyn SourceModel>> {
        control.check(Stage::Reading)?;
        Ok(Box::new(Model::parse(source.bytes)?))
    }
}

/// Most elements that the first value of a variable repeats.
const MOST_FIRST: usize = 1 << 24;

/// A `.tosa` file.
#[derive(Debug)]
pub struct Model {
    program: Program,
    /// Bytes of the file.
    bytes: u64,
}

impl Model {
    /// Reads a file from its bytes, which may be a mapping: constants of graphs are slices of it.
    ///
    /// # Errors
    /// The bytes are no such file, or it has what is not supported.
    pub fn parse(bytes: Bytes) -> Result<Model> {
        let location = SourceLocation::default();
        let program = Program::parse(&bytes).map_err(|e| match e.is_unsupported() {
            true => CompileError::unsupported(&location, e.to_string()),
            false => CompileError::invalid(&location, e.to_string()),
        })?;
        Ok(Model { program, bytes: bytes.len() as u64 })
    }

    /// The name of the graph that is called: the file's first. The others are bodies of control flow.
    fn main(&self) -> &str {
        match self.program.graphs[0].name.as_str() {
            "" => "main",
            name => name,
        }
    }

    fn known(&self, function: &str) -> Result<()> {
        if function == self.main() {
            return Ok(());
        }
        let reason = format!("there is no function '{function}'; there are: {}", self.main());
        Err(CompileError::Request(reason))
    }

    /// Tensors of the graph by their own names, or by their places where these are empty or not unique.
    fn signatures(&self, ids: &[usize], word: &str) -> Vec<Signature> {
        let tensors = &self.program.graphs[0].tensors;
        let name = |id: usize| tensors[id].name.as_str();
        let signature = |(place, id): (usize, &usize)| {
            let is_own =
                !name(*id).is_empty() && ids.iter().filter(|other| name(**other) == name(*id)).count() == 1;
            Signature {
                name: if is_own { name(*id).to_owned() } else { format!("{word}{place}") },
                arity: Arity::Tensor,
                is_optional: false,
                element: Some(element_of(tensors[*id].element)),
                dims: Some(tensors[*id].shape.iter().map(|size| Dim::Known(*size)).collect()),
            }
        };
        ids.iter().enumerate().map(signature).collect()
    }
}

impl Model {
    /// The variables that outlive a call, as the inputs that they are.
    fn variables(&self) -> Vec<(VariableId, Signature)> {
        let graph = self.signatures(&self.program.graphs[0].inputs, "input");
        let all = walk::written(&self.program).into_iter().map(|id| {
            let variable = &self.program.variables[id];
            let is_taken = variable.name.is_empty() || graph.iter().any(|input| input.name == variable.name);
            let signature = Signature {
                name: if is_taken { format!("variable{id}") } else { variable.name.clone() },
                arity: Arity::Tensor,
                is_optional: false,
                element: Some(element_of(variable.element)),
                dims: Some(variable.shape.iter().map(|size| Dim::Known(*size)).collect()),
            };
            (id, signature)
        });
        all.collect()
    }

    /// What a variable begins with.
    fn first(&self, id: VariableId) -> Option<BoundValue> {
        let variable = &self.program.variables[id];
        let (element, dims) = (element_of(variable.element), variable.shape.clone());
        let bytes = match variable.initial.as_ref()? {
            Constant::Dense(bytes) => bytes.clone(),
            Constant::Splat(one) => {
                let count =
                    usize::try_from(crate::graph::elements(&dims)).ok().filter(|n| *n <= MOST_FIRST)?;
                one.repeat(count).into()
            }
        };
        Some(BoundValue { element, dims, bytes })
    }
}

/// Name of the output with a variable's new elements.
fn new_name(variable: &Signature) -> String {
    format!("{}.next", variable.name)
}

/// An input of the graph, or the constant that the caller promises.
fn take(builder: &mut Builder, input: &Signature, dims: &[u64], bindings: &Bindings) -> Result<TensorId> {
    let element = input.element.expect("the signature was made with a type");
    match bindings.values.get(&input.name) {
        Some(value) if value.element != element => {
            let reason = format!("a value of type {} is given for {input}", value.element);
            Err(CompileError::Request(reason))
        }
        Some(value) => builder.bound_input(&input.name, element, dims, value.bytes.clone()),
        None => builder.input(&input.name, element, dims),
    }
}

impl SourceModel for Model {
    /// Files give themselves none.
    fn name(&self) -> &str {
        ""
    }

    fn functions(&self) -> Vec<String> {
        vec![self.main().to_owned()]
    }

    fn inputs(&self, function: &str) -> Result<Vec<Signature>> {
        self.known(function)?;
        let variables = self.variables().into_iter().map(|(_, signature)| signature);
        Ok(self.signatures(&self.program.graphs[0].inputs, "input").into_iter().chain(variables).collect())
    }

    fn outputs(&self, function: &str) -> Result<Vec<Signature>> {
        self.known(function)?;
        let next =
            |(_, variable): (VariableId, Signature)| Signature { name: new_name(&variable), ..variable };
        let variables = self.variables().into_iter().map(next);
        Ok(self.signatures(&self.program.graphs[0].outputs, "output").into_iter().chain(variables).collect())
    }

    fn graph(&self, function: &str, bindings: &Bindings, control: &Control) -> Result<Graph> {
        let (inputs, outputs) = (self.inputs(function)?, self.outputs(function)?);
        let location = SourceLocation::new(format!("graph '{}'", self.main()));
        if outputs.is_empty() {
            return Err(CompileError::unsupported(&location, "the graph gives nothing"));
        }
        let mut builder = Builder::of_file(control, self.bytes);
        builder.at(location);
        let shapes = bindings.resolve(&inputs)?;
        let given = inputs.iter().zip(&shapes).map(|(input, dims)| take(&mut builder, input, dims, bindings));
        let given = given.collect::<Result<Vec<_>>>()?;
        let (inputs, kept) = given.split_at(self.program.graphs[0].inputs.len());
        let kept: Vec<_> = walk::written(&self.program).into_iter().zip(kept.iter().copied()).collect();
        let (results, held) = walk::lower_with(&mut builder, &self.program, 0, inputs, &kept)?;
        for (signature, result) in outputs.iter().zip(results.into_iter().chain(held)) {
            builder.output(&signature.name, result);
        }
        builder.finish()
    }

    /// Variables.
    fn kept(&self, function: &str) -> Result<Vec<Kept>> {
        self.known(function)?;
        let kept = |(id, variable): (VariableId, Signature)| {
            let output = new_name(&variable);
            Kept { input: variable.name, output, first: self.first(id) }
        };
        Ok(self.variables().into_iter().map(kept).collect())
    }
}

#[cfg(test)]
mod tests {
    use halite_formats::tosa::{ElementType, Graph, Node, Operator, Tensor, Variable};
    use halite_ops::Values;

    use super::*;

    /// Adds its input to a variable, and gives what that was before.
    fn counter() -> Model {
        let tensor = |name: &str| Tensor {
            name: name.to_owned(),
            element: ElementType::I32,
            shape: vec![2],
            constant: None,
        };
        let node = |operator, inputs: &[usize], outputs: &[usize]| Node {
            operator,
            inputs: inputs.to_vec(),
            outputs: outputs.to_vec(),
            location: "here".to_owned(),
        };
        let nodes = vec![
            node(Operator::VariableRead { variable: 0 }, &[], &[1]),
            node(Operator::Add, &[0, 1], &[2]),
            node(Operator::VariableWrite { variable: 0 }, &[2], &[]),
            node(Operator::VariableRead { variable: 0 }, &[], &[3]),
        ];
        let tensors = ["x", "old", "sum", "new"].map(tensor).to_vec();
        let graph = Graph { name: String::new(), tensors, nodes, inputs: vec![0], outputs: vec![1, 3] };
        let initial = Some(Constant::Splat(Bytes::from_static(&[5, 0, 0, 0])));
        let variable = Variable { name: "x".to_owned(), element: ElementType::I32, shape: vec![2], initial };
        Model { program: Program { graphs: vec![graph], variables: vec![variable] }, bytes: 1 << 20 }
    }

    #[test]
    fn variables_are_kept_from_call_to_call() {
        let model = counter();
        let names = |all: Vec<Signature>| all.into_iter().map(|one| one.name).collect::<Vec<_>>();
        // The variable's own name is that of an input.
        assert_eq!(names(model.inputs("main").expect("it is there")), ["x", "variable0"]);
        assert_eq!(names(model.outputs("main").expect("it is there")), ["old", "new", "variable0.next"]);
        let kept = model.kept("main").expect("it is there");
        assert_eq!((kept[0].input.as_str(), kept[0].output.as_str()), ("variable0", "variable0.next"));
        assert_eq!(kept[0].first.as_ref().map(|first| &first.bytes[..]), Some(&[5, 0, 0, 0, 5, 0, 0, 0][..]));
        let graph = model.graph("main", &Bindings::default(), &Control::default()).expect("it is sound");
        let given = [Values::Int(vec![1, 2]), Values::Int(vec![5, 5])];
        let found = graph.evaluate(&given).expect("it can be computed");
        assert_eq!(found, [Values::Int(vec![5, 5]), Values::Int(vec![6, 7]), Values::Int(vec![6, 7])]);
    }
}
