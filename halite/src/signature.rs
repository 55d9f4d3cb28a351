//! What functions say of their inputs and outputs.

use std::fmt;

use halite_runtime::{self as runtime, TypeInfo, tensor::ArgumentKind};

use crate::{ElementType, Result, Tensor};

/// A dimension of an input or output, as a model or module states it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dimension {
    /// Known.
    Fixed(usize),
    /// Open; the same wherever the name is.
    Named(String),
    /// Open, and at most this.
    AtMost(usize),
    /// Open.
    Open,
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dimension::Fixed(size) => size.fmt(f),
            Dimension::Named(name) => name.fmt(f),
            Dimension::AtMost(most) => write!(f, "..{most}"),
            Dimension::Open => f.write_str("?"),
        }
    }
}

/// What kind of value an input or output is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueType {
    /// A tensor.
    Tensor {
        /// Type of its elements, where that is known.
        element_type: Option<ElementType>,
        /// Dimensions; `None` where not even their number is known.
        shape: Option<Vec<Dimension>>,
    },
    /// A list of tensors. ONNX calls it a sequence.
    Sequence,
    /// A number, by the name of its type: `i32`, `index`, `f64`, ….
    Scalar(String),
    /// Anything else, as the compiler wrote it.
    Other(String),
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueType::Tensor { element_type, shape } => {
                let element = element_type.map_or("?".to_owned(), |element| element.to_string());
                let shape = shape.as_ref().map_or("…".to_owned(), |shape| {
                    shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
                });
                write!(f, "{element}[{shape}]")
            }
            ValueType::Sequence => f.write_str("sequence"),
            ValueType::Scalar(name) | ValueType::Other(name) => f.write_str(name),
        }
    }
}

/// An input or output of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValueInfo {
    /// Its name: the model's own; for modules of other compilers what they left of it, or `input0`, `output0`, ….
    pub name: String,
    /// What it is.
    pub value_type: ValueType,
    /// Whether it may be left out.
    pub is_optional: bool,
    pub(crate) kind: ArgumentKind,
    /// Type of the elements of a list's tensors, where a model says it.
    pub(crate) element: Option<ElementType>,
}

impl ValueInfo {
    /// How a module passes it; models pass references.
    pub fn argument_kind(&self) -> ArgumentKind {
        self.kind
    }
}

impl fmt::Display for ValueInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' {}", self.name, self.value_type)
    }
}

/// An input that an output replaces, so that it can live between calls; see [`State`](crate::State).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatePair {
    /// Name of the input.
    pub input: String,
    /// Name of the output.
    pub output: String,
}

/// State that a program keeps by itself: callers neither hand it in nor get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeptValue {
    /// The input, behind those that callers hand in.
    pub input: ValueInfo,
    /// The output that replaces it, behind those that callers get.
    pub output: ValueInfo,
    /// What it begins with; zeros where there is nothing.
    pub first: Option<FirstValue>,
}

/// What a state begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FirstValue {
    pub element: ElementType,
    pub shape: Vec<usize>,
    pub bytes: bytes::Bytes,
}

impl FirstValue {
    /// It as a tensor of the host.
    pub(crate) fn tensor(&self) -> Result<Tensor> {
        Tensor::from_bytes(self.element, self.shape.clone(), self.bytes.clone())
    }
}

impl KeptValue {
    /// What it begins with, as a tensor of the host; none where its type or sizes are not known.
    #[cfg(feature = "compiler")]
    pub(crate) fn begin(&self) -> Result<Option<Tensor>> {
        if let Some(first) = &self.first {
            return first.tensor().map(Some);
        }
        let ValueType::Tensor { element_type: Some(element), shape: Some(shape) } = &self.input.value_type
        else {
            return Ok(None);
        };
        let known = |dimension: &Dimension| match dimension {
            Dimension::Fixed(size) => Some(*size),
            _ => None,
        };
        let shape: Option<Vec<usize>> = shape.iter().map(known).collect();
        shape.map(|shape| Tensor::zeros(*element, shape)).transpose()
    }
}

/// What a function of a model or module takes and gives. It displays as
/// `main('picture' f32[1,1,16,16]) -> ('probabilities' f32[1,10])`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FunctionInfo {
    /// Its name.
    pub name: String,
    /// The module that it belongs to; empty for functions of models.
    pub module: String,
    /// Its inputs.
    pub inputs: Vec<ValueInfo>,
    /// Its outputs.
    pub outputs: Vec<ValueInfo>,
    /// What is state: pairs of them, or what the program keeps by itself, which stands neither among the inputs nor the outputs.
    pub states: Vec<StatePair>,
    /// What the program keeps by itself.
    pub(crate) kept: Vec<KeptValue>,
    /// Whether a module says that its calls share nothing that they write; models share nothing.
    pub(crate) shares_nothing: bool,
    /// Its signature in the compiler's words, where a module has it.
    pub declaration: Option<String>,
    /// How a module passes its arguments, such as `0rr_r`; empty for functions of models.
    pub calling_convention: String,
}

impl FunctionInfo {
    /// `module.name`, or the name alone for functions of models.
    pub fn full_name(&self) -> String {
        if self.module.is_empty() { self.name.clone() } else { format!("{}.{}", self.module, self.name) }
    }

    /// Whether it keeps state by itself: its session holds it for all who hand in none ([`Session::run`](crate::Session::run)).
    pub fn keeps_state(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Whether a call depends on its inputs alone and leaves nothing behind: calls of models, unless [`Self::keeps_state`], and of modules
    /// that say so. One that was ended by its deadline may then be made once more.
    pub fn is_stateless(&self) -> bool {
        self.shares_nothing && !self.keeps_state()
    }

    /// The state that it keeps by itself: names, types and dimensions.
    pub fn kept_state(&self) -> impl Iterator<Item = &ValueInfo> {
        self.kept.iter().map(|kept| &kept.input)
    }

    /// All inputs, those that the program keeps by itself last.
    pub(crate) fn all_inputs(&self) -> impl Iterator<Item = &ValueInfo> {
        self.inputs.iter().chain(self.kept.iter().map(|kept| &kept.input))
    }

    /// All outputs, those that the program keeps by itself last.
    pub(crate) fn all_outputs(&self) -> impl Iterator<Item = &ValueInfo> {
        self.outputs.iter().chain(self.kept.iter().map(|kept| &kept.output))
    }

    /// Names of the inputs.
    pub(crate) fn input_names(&self) -> Vec<&str> {
        self.inputs.iter().map(|input| input.name.as_str()).collect()
    }

    /// Of a module's function.
    pub(crate) fn of_module(info: &runtime::FunctionInfo) -> FunctionInfo {
        let value = |name: Option<&str>, fallback: String, ty: Option<&TypeInfo>, kind| ValueInfo {
            name: name.filter(|name| !name.is_empty()).map_or(fallback, str::to_owned),
            value_type: ty.map_or(ValueType::Other(String::new()), value_type),
            is_optional: false,
            kind,
            element: None,
        };
        let inputs = info.input_kinds().iter().enumerate().map(|(i, kind)| {
            value(info.input_name(i), format!("input{i}"), info.input_type(i), (*kind).into())
        });
        let outputs = info.output_kinds().iter().enumerate().map(|(i, kind)| {
            value(info.output_name(i), format!("output{i}"), info.output_type(i), (*kind).into())
        });
        let states = info.states().iter().filter_map(|(input, output)| {
            let (input, output) = (info.input_name(*input)?, info.output_name(*output)?);
            Some(StatePair { input: input.to_owned(), output: output.to_owned() })
        });
        let states = states.collect();
        FunctionInfo {
            name: info.name.clone(),
            module: info.module.clone(),
            inputs: inputs.collect(),
            outputs: outputs.collect(),
            states,
            kept: Vec::new(),
            shares_nothing: info.is_independent(),
            declaration: info.declaration.clone(),
            calling_convention: info.calling_convention.clone(),
        }
    }
}

impl fmt::Display for FunctionInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list =
            |values: &[ValueInfo]| values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        write!(f, "{}({}) -> ({})", self.name, list(&self.inputs), list(&self.outputs))
    }
}

fn value_type(ty: &TypeInfo) -> ValueType {
    match ty {
        TypeInfo::Tensor { dims, element } => {
            let dimension = |dim: &Option<u64>| {
                dim.and_then(|size| usize::try_from(size).ok()).map_or(Dimension::Open, Dimension::Fixed)
            };
            ValueType::Tensor {
                element_type: element.parse().ok(),
                shape: Some(dims.iter().map(dimension).collect()),
            }
        }
        TypeInfo::Scalar(name) => ValueType::Scalar(name.clone()),
        TypeInfo::Other(name) => ValueType::Other(name.clone()),
    }
}
