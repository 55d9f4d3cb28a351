//! The values of a list of calls while it is put into a method's graph: a delegate's graph, or what is outside of delegates.

use std::collections::HashSet;

use halite_formats::pte::{Call, Dynamism};

use halite_ops::{DType, expression::Function};
use halite_sizes::Size;

use super::{
    Result,
    value::{Declared, Passed, Value},
};
use crate::{
    CompileError,
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
    /// Values that may be computed again though others may not: what the graph keeps and changes where it is.
    pub(super) changing: HashSet<usize>,
    /// Arguments that calls have changed where they are, since somebody last looked.
    pub(super) changed: Vec<usize>,
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
        let (changing, changed) = (HashSet::new(), Vec::new());
        Scope { builder, values, given, slots, exact: true, again: false, changing, changed, read }
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

    /// What a delegate gave for a value, in the type that the file says.
    ///
    /// # Errors
    /// The file says codes of another sign: then it does not say what the codes stand for.
    pub(super) fn given(&mut self, id: usize, made: TensorId, declared: &Declared) -> Result<TensorId> {
        let (own, element) = (self.builder.element(made), self.element(declared)?);
        let bytes = |element| matches!(element, ElementType::Of(DType::I8 | DType::U8));
        if own != element && bytes(own) && bytes(element) {
            let reason = format!("value {id} is {element} by the file, and a delegate gives {own}");
            return Err(self.builder.unsupported(format!("{reason}: codes of another sign")));
        }
        self.builder.cast(made, element)
    }

    /// Whether a tensor has sizes that the file allows.
    ///
    /// # Errors
    /// It has not.
    pub(super) fn fits(&self, made: TensorId, declared: &Declared) -> Result<()> {
        let (dims, bounds) = (self.builder.sizes(made), &declared.dims);
        let fixed = declared.dynamism == Dynamism::Static && self.again;
        let exact = fixed || self.exact && dims.iter().all(|size| size.is_constant());
        let same =
            |(size, most): (&Size, &u64)| if exact { size.agrees(*most) } else { size.stays_within(*most) };
        let fits = dims.len() == bounds.len()
            && (declared.dynamism == Dynamism::Unbounded || dims.iter().zip(bounds).all(same));
        if fits {
            return Ok(());
        }
        let at_most = if exact { "" } else { "at most " };
        let what = self.builder.describe(&[made]);
        Err(self.builder.invalid(format!("the result is {what}; the file says {at_most}{bounds:?}")))
    }

    /// The elements of a value: computed, handed in, or a constant.
    pub(super) fn tensor(&mut self, id: usize) -> Result<TensorId> {
        match self.slots[id] {
            Some(Passed::Tensor(known)) => return Ok(known),
            Some(Passed::Computed(base, more)) => return self.sum(base, more),
            _ => {}
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

    /// A number that the device computes, as a tensor without dimensions.
    fn sum(&mut self, base: TensorId, more: Size) -> Result<TensorId> {
        if more.is(0.into()) {
            return Ok(base);
        }
        let more = self.builder.computed(DType::I64, &[], vec![more])?;
        self.builder.binary(Function::Add, base, more)
    }

    /// A number as an `i64` tensor without dimensions, whoever computes it.
    pub(super) fn number_tensor(&mut self, id: usize) -> Result<TensorId> {
        match self.scalar(id) {
            Some(Passed::Computed(base, more)) => self.sum(base, more),
            Some(known) if known.size().is_some() => {
                let size = known.size().expect("it was just there");
                self.builder.computed(DType::I64, &[], vec![size])
            }
            _ => {
                let made = self.tensor(id)?;
                let made = self.builder.cast(made, DType::I64)?;
                self.builder.reshape(made, &[])
            }
        }
    }

    /// A number, float or boolean: computed, or told by the file.
    pub(super) fn scalar(&self, id: usize) -> Option<Passed> {
        match self.slots[id] {
            Some(Passed::Tensor(_)) => None,
            Some(known) => Some(known),
            None => Passed::literal(&self.values[id]),
        }
    }

    /// An integer that has to be known.
    pub(super) fn number(&self, id: usize) -> Result<i64> {
        let found = self.scalar(id).map(|known| self.known(known)).transpose()?.and_then(Passed::int);
        found.ok_or_else(|| self.no_number(id))
    }

    /// The same, which stays open where it depends on sizes or on data.
    pub(super) fn size(&mut self, id: usize) -> Result<Size> {
        let found = self.scalar(id).map(|known| self.counted(known)).transpose()?.and_then(Passed::size);
        found.ok_or_else(|| self.no_number(id))
    }

    fn no_number(&self, id: usize) -> CompileError {
        self.builder.invalid(format!("value {id} is read as a number, but is {:?}", self.values[id]))
    }

    /// A number that has to be known though a device may compute it.
    ///
    /// # Errors
    /// The caller has to give the values of the inputs that it is computed of.
    pub(super) fn known(&self, number: Passed) -> Result<Passed> {
        let Passed::Computed(base, more) = number else { return Ok(number) };
        let numbers = self.builder.need_ints(base, "a number that sizes or branches depend on")?;
        let base = numbers.first().copied().unwrap_or_default();
        Ok(Passed::Number(more + Size::from(base)))
    }

    /// A number as a size: one that a device computes is read by the host when it is there.
    ///
    /// # Errors
    /// Sizes cannot be read there, so it has to be known: see [`Scope::known`].
    pub(super) fn counted(&mut self, number: Passed) -> Result<Passed> {
        match number {
            Passed::Computed(base, more) if self.builder.takes_data() => {
                self.exact = false;
                Ok(Passed::Number(self.builder.read_number(base, "a number that sizes depend on")? + more))
            }
            other => self.known(other),
        }
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
        if self.slots[id].is_some() && !self.again && !self.changing.contains(&id) {
            return Err(self.builder.unsupported(format!(
                "value {id} is changed in place, and is no buffer that is kept from call to call"
            )));
        }
        self.slots[id] = Some(value);
        Ok(())
    }

    /// Says what a value is that a call has changed where it is.
    pub(super) fn change(&mut self, id: usize, tensor: TensorId) {
        self.slots[id] = Some(Passed::Tensor(tensor));
        self.changed.push(id);
    }
}
