//! Elementwise operations: any expression over the elements of tensors that broadcast together.

use std::{fmt, str::FromStr};

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

use crate::{
    DType, Op, Operation, TensorDesc, Tolerance, Values,
    expression::{self, Expression, Function, Operand, Scalar, Type},
    moves::{coordinates, numbers},
    runs::{self, Apart, Runs},
    strides::{Strides, broadcast_strides},
};

/// Most tensors: descriptors of one kind that devices have in practice, if not by Vulkan's word (which is 4).
const MOST_TENSORS: usize = 16;

/// Most entries of a table: their numbers fit where kernels count elements.
pub const MOST_ENTRIES: u64 = 1 << 24;

/// Most dimensions of a tensor.
pub const MOST_DIMS: usize = 16;

/// Applies an expression to the elements of tensors. Dimensions broadcast by NumPy's rules; every output has the dimensions
/// that the inputs are broadcast to. As text: `elementwise:inputs=f32[2x3] f32[3],program=add $0 $1 -> %0:f32`. Inputs may be parts
/// of larger tensors, or their elements in another order. Tables come behind the inputs, and their entries are read by numbers that
/// the program computes: `tables=i8[256],program=cast:i32 $0; lookup:i8 %0 @0 -> %1:i8`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Elementwise {
    /// Types and dimensions of the inputs.
    pub inputs: Shapes,
    /// What is computed of their elements.
    pub program: Expression,
    /// Types and dimensions of the tables that the program looks values up in.
    #[serde(default, skip_serializing_if = "Shapes::is_empty")]
    pub tables: Shapes,
    /// Where the inputs lie that are not dense, by growing numbers of inputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strided: Vec<Strides>,
    /// Where the result is written in a larger tensor, of which the rest stays as it is; there is one result then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<Runs>,
}

/// Types and dimensions of tensors; as text, `f32[2x3] f16[]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shapes(pub Vec<(DType, Vec<Size>)>);

impl Shapes {
    /// Whether there are no tensors.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Shapes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (dtype, dims)) in self.0.iter().enumerate() {
            let dims: Vec<_> = dims.iter().map(ToString::to_string).collect();
            write!(f, "{}{dtype}[{}]", if i > 0 { " " } else { "" }, dims.join("x"))?;
        }
        Ok(())
    }
}

impl From<Shapes> for String {
    fn from(shapes: Shapes) -> Self {
        shapes.to_string()
    }
}

impl TryFrom<String> for Shapes {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for Shapes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let shape = |word: &str| {
            let parts = word.strip_suffix(']').and_then(|w| w.split_once('['));
            let (name, dims) = parts?;
            let dtype = DType::ALL.into_iter().find(|t| t.name() == name)?;
            let dims = dims.split('x').filter(|_| !dims.is_empty()).map(str::parse);
            let dims: Vec<u64> = dims.collect::<Result<_, _>>().ok()?;
            Some((dtype, dims.into_iter().map(Size::from).collect()))
        };
        let each = |word| shape(word).ok_or_else(|| format!("'{word}' is no tensor such as f32[2x3]"));
        Ok(Shapes(text.split_whitespace().map(each).collect::<Result<_, _>>()?))
    }
}

impl Elementwise {
    /// An expression over tensors.
    pub fn new<N: Into<Size>>(
        inputs: impl IntoIterator<Item = (DType, Vec<N>)>,
        program: Expression,
    ) -> Self {
        let sizes = |dims: Vec<N>| dims.into_iter().map(Into::into).collect();
        let inputs = inputs.into_iter().map(|(dtype, dims)| (dtype, sizes(dims))).collect();
        Elementwise {
            inputs: Shapes(inputs),
            program,
            tables: Shapes::default(),
            strided: Vec::new(),
            written: None,
        }
    }

    /// The same with tables.
    #[must_use]
    pub fn with_tables(self, tables: Vec<(DType, Vec<Size>)>) -> Self {
        Elementwise { tables: Shapes(tables), ..self }
    }

    /// The types from and to which it converts floats, if it does nothing else; elements keep their order.
    pub fn conversion(&self) -> Option<(DType, DType)> {
        let ([(from, _)], [output]) = (&self.inputs.0[..], &self.program.outputs[..]) else { return None };
        let only = match &self.program.nodes[..] {
            [] => output.value == Operand::Input(0),
            [cast] => {
                let is_cast = cast.function == Function::Cast && cast.to == Some(Type::Of(output.dtype));
                is_cast && cast.operands == [Operand::Input(0)] && output.value == Operand::Node(0)
            }
            _ => false,
        };
        let floats = from.is_float() && output.dtype.is_float();
        (only && floats && self.strided.is_empty() && self.written.is_none()).then_some((*from, output.dtype))
    }

    /// Types of the inputs.
    pub fn dtypes(&self) -> Vec<DType> {
        self.inputs.0.iter().map(|(dtype, _)| *dtype).collect()
    }

    /// Dimensions of the inputs.
    pub fn shapes(&self) -> Vec<Vec<Size>> {
        self.inputs.0.iter().map(|(_, dims)| dims.clone()).collect()
    }

    /// Where an input lies, if it is not dense.
    pub fn strides_of(&self, input: usize) -> Option<&Strides> {
        self.strided.iter().find(|strides| strides.input == input)
    }

    /// How an input is read: elements from a place of the outputs to the next in each of their dimensions, and the first
    /// element.
    pub fn walk(&self, input: usize) -> (Vec<Size>, Size) {
        let (dims, own) = (self.dims(), &self.inputs.0[input].1);
        match self.strides_of(input) {
            Some(strides) => (strides.over(own, &dims), strides.offset),
            None => (broadcast_strides(own, &dims), 0.into()),
        }
    }

    /// Dimensions of the outputs; those of a scalar where the inputs do not broadcast.
    pub fn dims(&self) -> Vec<Size> {
        expression::broadcast(&self.shapes()).unwrap_or_default()
    }
}

impl Elementwise {
    /// The results by themselves.
    fn results(&self) -> Vec<TensorDesc> {
        let dims = self.dims();
        self.program.outputs.iter().map(|o| TensorDesc::new("out", o.dtype, dims.clone())).collect()
    }

    /// Checks where the result is written.
    fn check_written(&self) -> Result<(), String> {
        match (self.written, &self.results()[..]) {
            (Some(runs), [result]) => runs.check(result),
            (Some(_), results) => {
                Err(format!("one result is written into a larger tensor, not {}", results.len()))
            }
            (None, _) => Ok(()),
        }
    }

    /// Checks that look-ups are in tables that are there, have entries, and are of their type.
    fn check_tables(&self) -> Result<(), String> {
        for (table, (dtype, dims)) in self.tables.0.iter().enumerate() {
            let entries: Size = dims.iter().product();
            if !entries.is_constant() || entries == 0 || entries > MOST_ENTRIES {
                return Err(format!(
                    "@{table} has {entries} entries of {dtype}; tables have 1 to {MOST_ENTRIES}"
                ));
            }
        }
        for (table, ty) in self.program.lookups() {
            let (dtype, _) =
                self.tables.0.get(table).ok_or_else(|| {
                    format!("@{table} is not there; there are {} tables", self.tables.0.len())
                })?;
            if Type::Of(*dtype).computed() != ty.computed() {
                return Err(format!("@{table} has entries of {dtype}, which are not looked up as {ty}"));
            }
        }
        Ok(())
    }
}

impl Op for Elementwise {
    fn check(&self) -> Result<(), String> {
        let tensors = self.inputs.0.len() + self.tables.0.len() + self.program.outputs.len();
        if self.inputs.0.is_empty() || tensors > MOST_TENSORS {
            return Err(format!(
                "{tensors} tensors; there is at least one input, and at most {MOST_TENSORS} in all"
            ));
        }
        if let Some((_, dims)) = self.inputs.0.iter().find(|(_, dims)| dims.len() > MOST_DIMS) {
            return Err(format!("{} dimensions are more than {MOST_DIMS}", dims.len()));
        }
        expression::broadcast(&self.shapes())?;
        if !self.strided.windows(2).all(|pair| pair[0].input < pair[1].input) {
            return Err("strides are those of inputs in growing order".to_owned());
        }
        for strides in &self.strided {
            let input = self.inputs.0.get(strides.input);
            let (_, dims) = input.ok_or_else(|| format!("there is no input {}", strides.input))?;
            strides.check(dims)?;
        }
        self.check_tables()?;
        self.check_written()?;
        self.program.types(&self.dtypes()).map(|_| ())
    }

    fn inputs(&self) -> Vec<TensorDesc> {
        let inputs = self.inputs.0.iter().enumerate();
        let dims = |input, dims: &Vec<Size>| match self.strides_of(input) {
            Some(strides) => vec![strides.source],
            None => dims.clone(),
        };
        let inputs = inputs.map(|(input, (dtype, own))| TensorDesc::new("in", *dtype, dims(input, own)));
        let tables = self.tables.0.iter();
        inputs.chain(tables.map(|(dtype, dims)| TensorDesc::new("table", *dtype, dims.clone()))).collect()
    }

    fn outputs(&self) -> Vec<TensorDesc> {
        let results = self.results();
        match self.written {
            Some(runs) => results.into_iter().map(|result| runs.whole(result)).collect(),
            None => results,
        }
    }

    /// The widest element: what the speed depends on.
    fn types(&mut self) -> Vec<&mut DType> {
        let inputs = self.inputs.0.iter_mut().chain(&mut self.tables.0).map(|(dtype, _)| dtype);
        inputs.chain(self.program.outputs.iter_mut().map(|output| &mut output.dtype)).collect()
    }

    fn signature(&self) -> String {
        let all = self.dtypes().into_iter().chain(self.program.outputs.iter().map(|o| o.dtype));
        format!("b{}", all.map(DType::size).max().unwrap_or(4) * 8)
    }

    fn flops(&self) -> f64 {
        let elements: f64 = self.dims().iter().map(|d| d.as_f64()).product();
        elements * self.program.nodes.len() as f64
    }

    fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        self.reference_over(inputs, &runs::zeros(&self.outputs()))
    }

    fn updates(&self, _output: usize) -> bool {
        self.written.is_some()
    }

    fn apart(&self) -> Option<Apart> {
        let operation = Elementwise { written: None, ..self.clone() };
        Apart::of(Operation::Elementwise(operation), None, self.written)
    }

    fn reference_over(&self, inputs: &[Values], before: &[Values]) -> Vec<Values> {
        let dims = numbers(&self.dims());
        let walks: Vec<(Vec<i64>, i64)> =
            (0..self.inputs.0.len()).map(|input| self.walk(input)).map(exact).collect();
        let elements = dims.iter().product::<u64>() as usize;
        let outputs = &self.program.outputs;
        let entry = |table: usize, number: i128| {
            let (dtype, values) = (self.tables.0[table].0, &inputs[self.inputs.0.len() + table]);
            let last = values.len() - 1;
            element(values, dtype, usize::try_from(number).map_or(last, |number| number.min(last)))
        };
        let mut results: Vec<Vec<Scalar>> = vec![Vec::with_capacity(elements); outputs.len()];
        for place in 0..elements {
            let at = coordinates(place as u64, &dims);
            let of = |(values, (dtype, walk)): (&Values, (DType, &(Vec<i64>, i64)))| {
                let steps = at.iter().zip(&walk.0).map(|(at, stride)| *at as i64 * stride);
                element(values, dtype, (walk.1 + steps.sum::<i64>()) as usize)
            };
            let tensors = self.dtypes().into_iter().zip(&walks);
            let elements: Vec<Scalar> = inputs.iter().zip(tensors).map(of).collect();
            let nodes = expression::evaluate(&self.program, &elements, &entry);
            for (result, output) in results.iter_mut().zip(outputs) {
                result.push(expression::value(output.value, &elements, &nodes));
            }
        }
        let stored = |(values, output): (Vec<Scalar>, &expression::Output)| stored(&values, output.dtype);
        let results = results.into_iter().zip(outputs).map(stored).collect();
        runs::first_put(self.written, results, before)
    }

    fn tolerance(&self, magnitudes: &[f64]) -> Tolerance {
        let (inputs, tables) = magnitudes.split_at(self.inputs.0.len());
        expression::tolerance(&self.program, inputs, tables)
    }
}

/// An element as programs compute with it.
fn element(values: &Values, dtype: DType, index: usize) -> Scalar {
    if dtype.is_float() {
        // Kernels have it so, whatever is in memory.
        Scalar::Float(DType::F32.round(values.float(index)))
    } else {
        Scalar::Int(values.int(index), dtype)
    }
}

/// A walk in numbers.
fn exact((strides, offset): (Vec<Size>, Size)) -> (Vec<i64>, i64) {
    (strides.into_iter().map(Size::exact_signed).collect(), offset.exact_signed())
}

fn stored(values: &[Scalar], dtype: DType) -> Values {
    let int = |scalar: &Scalar| match *scalar {
        Scalar::Bool(value) => value.into(),
        Scalar::Int(value, _) => value,
        Scalar::Float(value) => value as i64,
    };
    let float = |scalar: &Scalar| match *scalar {
        Scalar::Float(value) => dtype.round(value),
        _ => f64::NAN,
    };
    if dtype.is_float() {
        Values::Float(values.iter().map(float).collect())
    } else {
        Values::Int(values.iter().map(int).collect())
    }
}
