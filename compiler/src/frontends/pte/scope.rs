//! The values of a list of calls while it is put into a method's graph: a delegate's graph, or what is outside of delegates.

use halite_formats::pte::{Call, Dynamism};

use super::{
    Result,
    value::{Declared, Passed, Value},
};
use crate::{
    build::Builder,
    graph::{ElementType, TensorId},
};

/// Tensors that no call computes.
pub(super) trait Given {
    /// The tensor of a value, if it is one of them.
    ///
    /// # Errors
    /// Its data are not there, or not what the file says of them.
    fn tensor(&self, id: usize, builder: &mut Builder) -> Result<Option<TensorId>>;
}

/// Values of calls while a graph is built of them.
pub(super) struct Scope<'a> {
    pub(super) builder: Builder,
    pub(super) values: &'a [Value],
    given: &'a dyn Given,
    /// What is known of the values: results, constants that were needed, numbers that depend on sizes.
    pub(super) slots: Vec<Option<Passed>>,
    /// Whether sizes in the file are exact: nothing that is handed in is smaller than its bound.
    pub(super) exact: bool,
    /// Whether a value may be computed again: the last one counts.
    again: bool,
    /// Values that are read by a call or are outputs.
    read: Vec<bool>,
}

/// Values that somebody reads. The last argument of a call is its result.
pub(super) fn read_values<'c>(
    values: &[Value],
    calls: impl IntoIterator<Item = &'c Call>,
    outputs: &[usize],
) -> Vec<bool> {
    let mut read = vec![false; values.len()];
    let mut note = |id: usize| {
        read[id] = true;
        if let Value::List(items) = &values[id] {
            items.iter().for_each(|item| read[*item] = true);
        }
    };
    for call in calls {
        call.args.iter().rev().skip(1).for_each(|id| note(*id));
    }
    outputs.iter().for_each(|id| note(*id));
    read
}

impl<'a> Scope<'a> {
    /// Values of which nothing is known yet, each of which is computed once, with the sizes that the file says.
    pub(super) fn once(builder: Builder, values: &'a [Value], given: &'a dyn Given, read: Vec<bool>) -> Self {
        let slots = vec![None; values.len()];
        Scope { builder, values, given, slots, exact: true, again: false, read }
    }

    /// Values of which nothing is known yet, which may be computed again and again.
    pub(super) fn again(
        builder: Builder,
        values: &'a [Value],
        given: &'a dyn Given,
        read: Vec<bool>,
    ) -> Self {
        Scope { exact: false, again: true, ..Self::once(builder, values, given, read) }
    }

    /// Whether a value is read by a call or is an output.
    pub(super) fn is_read(&self, id: usize) -> bool {
        self.read[id]
    }

    /// The type of a tensor of the file.
    pub(super) fn element(&self, declared: &Declared) -> Result<ElementType> {
        declared.element.map_err(|named| self.builder.unsupported(format!("a tensor of the type {named}")))
    }

    /// Whether a tensor has sizes that the file allows.
    ///
    /// # Errors
    /// It has not.
    pub(super) fn fits(&self, made: TensorId, declared: &Declared) -> Result<()> {
        let (dims, bounds) = (self.builder.dims(made), &declared.dims);
        let within = dims.len() == bounds.len() && dims.iter().zip(bounds).all(|(d, most)| d <= most);
        let exact = self.exact || declared.dynamism == Dynamism::Static && self.again;
        let fits = match declared.dynamism {
            Dynamism::Unbounded => dims.len() == bounds.len(),
            _ => within && (!exact || dims == bounds),
        };
        if fits {
            return Ok(());
        }
        let at_most = if exact { "" } else { "at most " };
        let what = self.builder.describe(&[made]);
        Err(self.builder.invalid(format!("the result is {what}; the file says {at_most}{bounds:?}")))
    }

    /// The elements of a value: computed, handed in, or a constant.
    pub(super) fn tensor(&mut self, id: usize) -> Result<TensorId> {
        if let Some(Passed::Tensor(known)) = self.slots[id] {
            return Ok(known);
        }
        let Value::Tensor(_) = &self.values[id] else {
            let other = &self.values[id];
            return Err(self.builder.invalid(format!("value {id} is read as a tensor, but is {other:?}")));
        };
        let Some(made) = self.given.tensor(id, &mut self.builder)? else {
            return Err(self.builder.invalid(format!("value {id} is read before it is computed")));
        };
        self.slots[id] = Some(Passed::Tensor(made));
        Ok(made)
    }

    /// A number, float or boolean: computed, or told by the file.
    pub(super) fn scalar(&self, id: usize) -> Option<Passed> {
        match self.slots[id] {
            Some(Passed::Tensor(_)) => None,
            Some(known) => Some(known),
            None => Passed::literal(&self.values[id]),
        }
    }

    /// An integer.
    pub(super) fn number(&self, id: usize) -> Result<i64> {
        let found = self.scalar(id).and_then(Passed::int);
        found.ok_or_else(|| {
            let other = &self.values[id];
            self.builder.invalid(format!("value {id} is read as a number, but is {other:?}"))
        })
    }

    /// What is known of a value, whatever it is.
    pub(super) fn any(&mut self, id: usize) -> Result<Passed> {
        match self.scalar(id) {
            Some(scalar) => Ok(scalar),
            None => self.tensor(id).map(Passed::Tensor),
        }
    }

    /// Says what a value is.
    ///
    /// # Errors
    /// It is known already: the graph changes it in place.
    pub(super) fn set(&mut self, id: usize, value: Passed) -> Result<()> {
        if self.slots[id].is_some() && !self.again {
            return Err(self.builder.unsupported(format!(
                "value {id} is changed in place: buffers that are kept from call to call are not supported"
            )));
        }
        self.slots[id] = Some(value);
        Ok(())
    }
}
