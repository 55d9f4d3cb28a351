//! What importers of operators see of a node: its inputs as tensors, its attributes, its version.

use halite_sizes::Size;

use std::rc::Rc;

use halite_formats::onnx::AttributeValue;

use super::{
    Result,
    constant::{self, Constant, Constants},
};
use crate::{CompileError, SourceLocation, build::Builder, graph::TensorId};

/// Says with the builder what a node computes; gives its outputs in order. Outputs behind the last one that is used may be
/// left out.
pub(crate) type Import = fn(&mut Builder, &NodeView<'_>) -> Result<Vec<TensorId>>;

/// A node of an ONNX model as its importer sees it.
pub(crate) struct NodeView<'m> {
    /// Version of the domain's operators that the model uses.
    pub(crate) version: i64,
    /// Tensors that it reads; none where an optional one is left out.
    pub(crate) inputs: Vec<Option<TensorId>>,
    /// For each of its outputs, whether somebody wants it.
    pub(crate) used: Vec<bool>,
    /// Where it is, for messages.
    pub(crate) location: SourceLocation,
    pub(super) attributes: Vec<(&'m str, &'m AttributeValue)>,
    pub(super) constants: Rc<Constants<'m>>,
}

impl<'m> NodeView<'m> {
    /// The same node as an operator of another version that reads this tensor alone.
    pub(super) fn over(&self, tensor: TensorId, version: i64) -> NodeView<'m> {
        NodeView { inputs: vec![Some(tensor)], ..self.of_version(version) }
    }

    /// The same node as an operator of another version.
    pub(super) fn of_version(&self, version: i64) -> NodeView<'m> {
        NodeView {
            version,
            inputs: self.inputs.clone(),
            used: self.used.clone(),
            location: self.location.clone(),
            attributes: self.attributes.clone(),
            constants: self.constants.clone(),
        }
    }

    /// The same node with another tensor for an input.
    pub(super) fn with(&self, index: usize, tensor: TensorId) -> NodeView<'m> {
        let mut made = self.of_version(self.version);
        if let Some(input) = made.inputs.get_mut(index) {
            *input = Some(tensor);
        }
        made
    }

    /// An input that must be there.
    pub(crate) fn input(&self, index: usize) -> Result<TensorId> {
        self.optional(index).ok_or_else(|| self.invalid(format!("input {index} is missing")))
    }

    /// An input, if it is there.
    pub(crate) fn optional(&self, index: usize) -> Option<TensorId> {
        self.inputs.get(index).copied().flatten()
    }

    /// All inputs, of which none may be left out, and at least one must be there.
    pub(crate) fn variadic(&self) -> Result<Vec<TensorId>> {
        let all: Option<Vec<TensorId>> = self.inputs.iter().copied().collect();
        all.filter(|all| !all.is_empty()).ok_or_else(|| self.invalid("an input is missing"))
    }

    /// Whether somebody wants an output.
    pub(crate) fn is_used(&self, output: usize) -> bool {
        self.used.get(output).copied().unwrap_or(false)
    }

    /// Whether the operator has the meaning that it got in a version.
    pub(crate) fn since(&self, version: i64) -> bool {
        self.version >= version
    }

    /// The error that the model is wrong here.
    pub(crate) fn invalid(&self, reason: impl Into<String>) -> CompileError {
        CompileError::invalid(&self.location, reason)
    }

    /// The error that the model asks here for what is not supported.
    pub(crate) fn unsupported(&self, reason: impl Into<String>) -> CompileError {
        CompileError::unsupported(&self.location, reason)
    }

    /// Whether an attribute is there.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.attribute(name).is_some()
    }

    /// An attribute.
    pub(crate) fn attribute(&self, name: &str) -> Option<&'m AttributeValue> {
        self.attributes.iter().find(|(own, _)| *own == name).map(|(_, value)| *value)
    }

    fn wrong_type(&self, name: &str, wanted: &str) -> CompileError {
        self.invalid(format!("the attribute '{name}' is no {wanted}"))
    }

    /// An integer.
    pub(crate) fn int(&self, name: &str, default: i64) -> Result<i64> {
        Ok(self.int_if(name)?.unwrap_or(default))
    }

    /// An integer, if it is there.
    pub(crate) fn int_if(&self, name: &str) -> Result<Option<i64>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Int(value)) => Ok(Some(*value)),
            Some(_) => Err(self.wrong_type(name, "integer")),
        }
    }

    /// An integer that says yes or no.
    pub(crate) fn flag(&self, name: &str, default: bool) -> Result<bool> {
        Ok(self.int(name, default.into())? != 0)
    }

    /// A float.
    pub(crate) fn float(&self, name: &str, default: f32) -> Result<f32> {
        Ok(self.float_if(name)?.unwrap_or(default))
    }

    /// A float, if it is there.
    pub(crate) fn float_if(&self, name: &str) -> Result<Option<f32>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Float(value)) => Ok(Some(*value)),
            Some(_) => Err(self.wrong_type(name, "float")),
        }
    }

    /// Text.
    pub(crate) fn string(&self, name: &str, default: &str) -> Result<String> {
        match self.attribute(name) {
            None => Ok(default.to_owned()),
            Some(AttributeValue::String(value)) => Ok(String::from_utf8_lossy(value).into_owned()),
            Some(_) => Err(self.wrong_type(name, "text")),
        }
    }

    /// Texts, if they are there.
    pub(crate) fn strings(&self, name: &str) -> Result<Option<Vec<String>>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Strings(all)) => {
                Ok(Some(all.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect()))
            }
            Some(_) => Err(self.wrong_type(name, "list of texts")),
        }
    }

    /// Integers, if they are there.
    pub(crate) fn ints(&self, name: &str) -> Result<Option<Vec<i64>>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Ints(all)) => Ok(Some(all.clone())),
            Some(_) => Err(self.wrong_type(name, "list of integers")),
        }
    }

    /// Floats, if they are there.
    pub(crate) fn floats(&self, name: &str) -> Result<Option<Vec<f32>>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Floats(all)) => Ok(Some(all.clone())),
            Some(_) => Err(self.wrong_type(name, "list of floats")),
        }
    }

    /// The type, dimensions and bytes of a tensor, if it is there.
    pub(crate) fn tensor(&self, b: &Builder, name: &str) -> Result<Option<Constant>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Tensor(tensor)) => self.constants.read(tensor, &self.location, b).map(Some),
            Some(_) => Err(self.wrong_type(name, "tensor")),
        }
    }

    /// The element type that an attribute names by its number.
    pub(crate) fn element(&self, name: &str) -> Result<Option<crate::graph::ElementType>> {
        self.int_if(name)?.map(|number| constant::element_of_number(number, &self.location)).transpose()
    }

    /// An axis that may count from the end.
    pub(crate) fn axis(&self, value: i64, rank: usize) -> Result<usize> {
        let size = rank as i64;
        let axis = if value < 0 { value.saturating_add(size) } else { value };
        if (0..size).contains(&axis) {
            return Ok(axis as usize);
        }
        Err(self.invalid(format!("there is no axis {value} among {rank}")))
    }

    /// Axes that may count from the end; none may be there twice.
    pub(crate) fn axes(&self, values: &[i64], rank: usize) -> Result<Vec<usize>> {
        if values.len() > rank {
            return Err(self.invalid(format!("{} axes are named of a tensor that has {rank}", values.len())));
        }
        let axes: Result<Vec<usize>> = values.iter().map(|value| self.axis(*value, rank)).collect();
        let axes = axes?;
        let mut sorted = axes.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() != axes.len() {
            return Err(self.invalid(format!("an axis is twice in {values:?}")));
        }
        Ok(axes)
    }

    /// Sizes that are an attribute in old versions of an operator, and an input in new ones; as [`NodeView::ints_of`].
    pub(crate) fn sizes_of(
        &self,
        b: &mut Builder,
        name: &str,
        input: usize,
        what: &str,
    ) -> Result<Option<Vec<Size>>> {
        match self.optional(input) {
            Some(id) => b.need_sizes(id, what).map(Some),
            None => Ok(self.ints(name)?.map(|all| all.into_iter().map(Size::from).collect())),
        }
    }

    /// Integers that are an attribute in old versions of an operator, and an input in new ones. `what` is what they decide.
    pub(crate) fn ints_of(
        &self,
        b: &Builder,
        name: &str,
        input: usize,
        what: &str,
    ) -> Result<Option<Vec<i64>>> {
        match self.optional(input) {
            Some(id) => b.need_ints(id, what).map(Some),
            None => self.ints(name),
        }
    }
}
