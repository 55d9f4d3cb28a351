//! The values of a graph of the Vulkan delegate while it is put into a method's graph.

use halite_formats::pte::{Constant, Program, VulkanGraph, VulkanTensor, VulkanValue};

use super::{Result, types::element_inside};
use crate::{
    build::Builder,
    graph::{TensorId, elements},
};

/// What a delegate is handed and gives.
#[derive(Clone, Copy, Debug)]
pub(super) enum Passed {
    /// A tensor.
    Tensor(TensorId),
    /// A number.
    Number(i64),
}

/// A delegate's graph while it is put into a method's graph.
pub(super) struct Delegate<'a> {
    pub(super) builder: Builder,
    pub(super) program: &'a Program,
    pub(super) graph: &'a VulkanGraph,
    /// What is known of the values: results, constants that were needed, numbers that depend on sizes.
    slots: Vec<Option<Passed>>,
    /// Whether sizes in the file are exact: nothing that is handed in is smaller than its bound.
    pub(super) exact: bool,
    /// Values that are read by a call or are outputs.
    read: Vec<bool>,
}

/// Values that somebody reads. The last argument of a call is its result.
fn read_values(graph: &VulkanGraph) -> Vec<bool> {
    let mut read = vec![false; graph.values.len()];
    let mut note = |id: usize| {
        read[id] = true;
        if let VulkanValue::List(items) = &graph.values[id] {
            items.iter().for_each(|item| read[*item] = true);
        }
    };
    for call in &graph.calls {
        call.args.iter().rev().skip(1).for_each(|id| note(*id));
    }
    graph.outputs.iter().for_each(|id| note(*id));
    read
}

impl<'a> Delegate<'a> {
    /// A delegate's graph of which nothing is known yet.
    pub(super) fn new(builder: Builder, program: &'a Program, graph: &'a VulkanGraph) -> Self {
        let slots = graph.values.iter().map(|_| None).collect();
        Delegate { builder, program, graph, slots, exact: true, read: read_values(graph) }
    }

    /// Whether a value is read by a later call or is an output.
    pub(super) fn is_read(&self, id: usize) -> bool {
        self.read[id]
    }

    /// Takes an input of the graph.
    pub(super) fn take(&mut self, id: usize, value: Passed) -> Result<()> {
        let value = match (&self.graph.values[id], value) {
            (VulkanValue::Tensor(tensor), Passed::Tensor(given)) if tensor.constant.is_none() => {
                let dims = self.builder.dims(given);
                let bounds = tensor.dims.iter().map(|d| u64::from(*d));
                if dims.len() != tensor.dims.len()
                    || dims.iter().zip(bounds.clone()).any(|(d, most)| *d > most)
                {
                    let what = self.builder.describe(&[given]);
                    let reason =
                        format!("{what} is handed to a delegate that takes at most {:?}", tensor.dims);
                    return Err(self.builder.invalid(reason));
                }
                self.exact &= dims.iter().copied().eq(bounds);
                Passed::Tensor(self.builder.cast(given, element_inside(tensor.datatype))?)
            }
            (VulkanValue::SymInt(_), Passed::Number(number)) => {
                self.exact = false;
                Passed::Number(number)
            }
            (VulkanValue::SymInt(_), Passed::Tensor(given)) => {
                self.exact = false;
                let numbers = self.builder.need_ints(given, "a size that the caller hands in")?;
                let [number] = numbers[..] else {
                    let what = self.builder.describe(&[given]);
                    return Err(self.builder.invalid(format!("{what} is handed in as a number")));
                };
                Passed::Number(number)
            }
            (other, _) => return Err(self.builder.invalid(format!("an input is handed in for {other:?}"))),
        };
        self.set(id, value)
    }

    /// Gives an output of the graph.
    pub(super) fn give(&mut self, id: usize) -> Result<Passed> {
        match &self.graph.values[id] {
            VulkanValue::SymInt(_) => Ok(Passed::Number(self.number(id)?)),
            _ => Ok(Passed::Tensor(self.tensor(id)?)),
        }
    }

    /// The elements of a value: computed, handed in, or a constant.
    pub(super) fn tensor(&mut self, id: usize) -> Result<TensorId> {
        if let Some(Passed::Tensor(known)) = self.slots[id] {
            return Ok(known);
        }
        let VulkanValue::Tensor(tensor) = &self.graph.values[id] else {
            let other = &self.graph.values[id];
            return Err(self.builder.invalid(format!("value {id} is read as a tensor, but is {other:?}")));
        };
        let Some(constant) = tensor.constant else {
            return Err(self.builder.invalid(format!("value {id} is read before it is computed")));
        };
        let made = self.constant(id, tensor, constant)?;
        self.slots[id] = Some(Passed::Tensor(made));
        Ok(made)
    }

    fn constant(&mut self, id: usize, tensor: &VulkanTensor, constant: usize) -> Result<TensorId> {
        let bytes = match &self.graph.constants[constant] {
            Constant::Inline(bytes) => bytes.clone(),
            Constant::Named { key, length } => {
                let found = self.program.named.get(key).filter(|data| data.len() as u64 >= *length);
                let Some(data) = found else {
                    return Err(self.builder.invalid(format!(
                        "the constant {constant} of {length} bytes has its data under '{key}', which is not in this file, or \
                         shorter; constants in files of their own (.ptd) are not supported"
                    )));
                };
                data.slice(..*length as usize)
            }
        };
        let dims: Vec<u64> = tensor.dims.iter().map(|d| u64::from(*d)).collect();
        let wants = elements(&dims).saturating_mul(tensor.datatype.size());
        if wants != bytes.len() as u64 {
            return Err(self.builder.invalid(format!(
                "the constant {constant}, {}{dims:?}, has {} bytes, not {wants}",
                tensor.datatype,
                bytes.len()
            )));
        }
        let element = element_inside(tensor.datatype);
        self.builder.constant(&format!("constant {id}"), element, &dims, bytes)
    }

    /// A number that depends on sizes.
    pub(super) fn number(&self, id: usize) -> Result<i64> {
        match (self.slots[id], &self.graph.values[id]) {
            (Some(Passed::Number(number)), _) => Ok(number),
            (None, VulkanValue::Int(number)) => Ok(*number),
            (_, other) => {
                Err(self.builder.invalid(format!("value {id} is read as a number, but is {other:?}")))
            }
        }
    }

    /// Says what a value is.
    ///
    /// # Errors
    /// It is known already: the graph changes it in place.
    pub(super) fn set(&mut self, id: usize, value: Passed) -> Result<()> {
        if self.slots[id].is_some() {
            return Err(self.builder.unsupported(format!(
                "value {id} is changed in place: buffers that are kept from call to call are not supported"
            )));
        }
        self.slots[id] = Some(value);
        Ok(())
    }
}
