//! The front end for `.tosa` files: what the model takes and gives, and the way to a graph.

use bytes::Bytes;
use halite_formats::tosa::{Program, is_tosa};

use super::{Result, element_of, walk};
use crate::{
    CompileError, Control, SourceLocation, Stage,
    build::Builder,
    frontends::{FrontEnd, Recognition, Source, SourceModel},
    graph::{Graph, TensorId},
    signature::{Arity, Bindings, Dim, Signature},
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
        Ok(self.signatures(&self.program.graphs[0].inputs, "input"))
    }

    fn outputs(&self, function: &str) -> Result<Vec<Signature>> {
        self.known(function)?;
        Ok(self.signatures(&self.program.graphs[0].outputs, "output"))
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
        let results = walk::lower(&mut builder, &self.program, 0, &given)?;
        for (signature, result) in outputs.iter().zip(results) {
            builder.output(&signature.name, result);
        }
        builder.finish()
    }
}
