//! Constants, and tensors whose elements are known while a graph is built.

use bytes::Bytes;
use halite_ops::{DType, Values};
use halite_sizes::Size;

use super::{Builder, Result, budget::Cost};
use crate::{
    CompileError,
    graph::{ElementType, TensorId, elements},
};

/// Most numbers of a constant that is made of a size: such as all places along an axis.
const MOST_PLACES: u64 = 1 << 23;

impl Builder {
    /// A constant from its little-endian bytes; booleans as bytes of 0 and 1.
    ///
    /// # Errors
    /// The number of bytes is not that of the type and dimensions.
    pub fn constant(
        &mut self,
        name: &str,
        element: ElementType,
        dims: &[u64],
        bytes: Bytes,
    ) -> Result<TensorId> {
        let id = self.define(name, element, dims)?;
        let wants = self.tensor(id).bytes();
        if wants != bytes.len() as u64 {
            let what = self.graph.describe(id);
            return Err(self
                .invalid(format!("the constant '{name}', {what}, has {} bytes, not {wants}", bytes.len())));
        }
        self.graph.tensors[id.index()].constant = Some(bytes);
        Ok(id)
    }

    /// A constant from values.
    ///
    /// # Errors
    /// There are not as many values as the dimensions say, or with those before there are too many.
    pub fn values(
        &mut self,
        element: impl Into<ElementType>,
        dims: &[u64],
        values: &Values,
    ) -> Result<TensorId> {
        let element = element.into();
        self.spend(Cost::Constant, (values.len() as u64).saturating_mul(element.storage().size()))?;
        self.constant("", element, dims, values.to_bytes(element.storage()).into())
    }

    /// A tensor without elements. Other dimensions than those of size 0 may be what data decide.
    ///
    /// # Errors
    /// There are elements.
    pub(super) fn empty(&mut self, element: ElementType, dims: &[Size]) -> Result<TensorId> {
        let none = self.constant("", element, &[0], Bytes::new())?;
        self.view(none, element, dims)
    }

    /// A scalar constant of a type, from a float.
    pub fn float(&mut self, element: impl Into<ElementType>, value: f64) -> Result<TensorId> {
        let element = element.into();
        let values =
            if element.is_float() { Values::Float(vec![value]) } else { Values::Int(vec![value as i64]) };
        self.values(element, &[], &values)
    }

    /// The integers from 0 on, as a tensor of these dimensions.
    ///
    /// # Errors
    /// There are too many.
    pub fn places(&mut self, element: impl Into<ElementType>, dims: &[u64]) -> Result<TensorId> {
        let count = elements(dims);
        self.countable(count)?;
        self.values(element, dims, &Values::Int((0..count as i64).collect()))
    }

    /// Whether a constant may have so many elements that come of sizes alone, not of data in the model.
    ///
    /// # Errors
    /// They are too many.
    pub fn countable(&self, count: u64) -> Result<()> {
        if count > MOST_PLACES {
            let reason =
                format!("{count} places are listed here; there are up to {MOST_PLACES}: use smaller sizes");
            return Err(self.unsupported(reason));
        }
        Ok(())
    }

    /// A vector of `i64`.
    pub fn ints_constant(&mut self, values: &[i64]) -> Result<TensorId> {
        self.values(DType::I64, &[values.len() as u64], &Values::Int(values.to_vec()))
    }

    /// The elements of a tensor, if they are known, which sizes that data decide are not; those of a tensor without elements are.
    pub fn known(&self, id: TensorId) -> Option<Values> {
        let tensor = self.tensor(id);
        if let Some(values) = &tensor.values {
            if values.iter().any(|size| size.is_data()) {
                return None;
            }
            return Some(Values::Int(values.iter().map(|size| size.exact_signed()).collect()));
        }
        if tensor.constant.is_some() {
            // The error comes with the next tensor that is made.
            self.budget.count(Cost::Folding, tensor.bytes() / 64);
        }
        if tensor.constant.is_none() && tensor.count() == 0 {
            return Some(Values::from_bytes(tensor.element.storage(), &[]));
        }
        tensor.constant.as_ref().map(|bytes| Values::from_bytes(tensor.element.storage(), bytes))
    }

    /// Whether [`Builder::known`] gives the elements of a tensor. Fixes nothing.
    pub(super) fn is_known(&self, id: TensorId) -> bool {
        let tensor = self.tensor(id);
        match &tensor.values {
            Some(values) => !values.iter().any(|size| size.is_data()),
            None => tensor.constant.is_some() || tensor.count() == 0,
        }
    }

    /// Whether the elements of a tensor are known, whatever the sizes are that are open.
    pub fn is_fixed(&self, id: TensorId) -> bool {
        let tensor = self.tensor(id);
        tensor.constant.is_some()
            || tensor.values.as_ref().is_some_and(|all| all.iter().all(|one| one.is_constant()))
    }

    /// The elements of an integer or boolean tensor, if they are known.
    pub fn ints(&self, id: TensorId) -> Option<Vec<i64>> {
        match self.known(id)? {
            Values::Int(values) => Some(values),
            Values::Float(_) => None,
        }
    }

    /// The elements of an integer or boolean tensor that has to be known: `what` decides the sizes of tensors.
    ///
    /// # Errors
    /// Names the inputs of the function that it depends on: with their values bound, it is known.
    pub fn need_ints(&self, id: TensorId, what: &str) -> Result<Vec<i64>> {
        self.ints(id).or_else(|| self.late_ints(id)).ok_or_else(|| self.needs(id, what))
    }

    /// The elements of an integer or boolean tensor that was left to a device.
    pub(super) fn late_ints(&self, id: TensorId) -> Option<Vec<i64>> {
        match self.late(id)? {
            Values::Int(values) => Some(values),
            Values::Float(_) => None,
        }
    }

    /// The elements of a tensor that has to be known, as floats; as [`Builder::need_ints`].
    pub fn need_floats(&self, id: TensorId, what: &str) -> Result<Vec<f64>> {
        self.floats(id).ok_or_else(|| self.needs(id, what))
    }

    /// The error that a tensor has to be known.
    pub(super) fn needs(&self, id: TensorId, what: &str) -> CompileError {
        self.budget.count(Cost::Folding, self.nodes() as u64 / 4);
        // By place: hostile files ask this of tens of thousands of nodes, thousands of times.
        let mut wanted = vec![false; self.graph.tensors.len()];
        wanted[id.index()] = true;
        for node in self.open.iter().rev().flat_map(|region| region.nodes.iter().rev()) {
            if node.outputs.iter().any(|output| wanted[output.index()]) {
                node.inputs.iter().for_each(|input| wanted[input.index()] = true);
            }
        }
        let ports = self.graph.inputs.iter().filter(|port| wanted[port.tensor.index()]);
        CompileError::NeedsValues {
            location: self.location.clone(),
            what: what.to_owned(),
            inputs: ports.map(|port| port.name.clone()).collect(),
            unsupported: Vec::new(),
        }
    }

    /// The elements of a tensor as floats, if they are known.
    pub fn floats(&self, id: TensorId) -> Option<Vec<f64>> {
        self.known(id).or_else(|| self.late(id)).map(|values| values.floats())
    }
}
