//! States whose tensors are parts of memory that other states have parts of, too.

use std::collections::BTreeMap;

use super::State;
use crate::{Error, ErrorKind, Function, Inputs, Outputs, Result, Tensor, options::Limits};

/// Tensors by the names of a state's.
pub(crate) type Parts = BTreeMap<String, Tensor>;

impl State {
    /// A state of a function whose tensors are there already.
    pub(crate) fn over(function: Function, parts: &Parts) -> Result<State> {
        let mut state = State::new(function)?;
        state.hold(parts)?;
        Ok(state)
    }

    /// Whether none of its tensors is there yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.tensors.iter().all(|kept| kept.tensor.is_none())
    }

    /// Whether its tensors are these and no others.
    pub(crate) fn is_on(&self, parts: &Parts) -> bool {
        self.tensors.iter().all(|kept| {
            let pair = kept.tensor.as_ref().zip(parts.get(&kept.name));
            pair.is_some_and(|(own, part)| own.is_in_buffer_of(part))
        })
    }

    /// Waits for the call that is under way, and has its tensors in these from here on: what is there is copied into them.
    pub(crate) fn move_to(&mut self, parts: &Parts, limits: &Limits) -> Result<()> {
        self.settle(limits)?;
        if self.is_on(parts) {
            return Ok(());
        }
        for kept in &self.tensors {
            if let (Some(own), Some(part)) = (&kept.tensor, parts.get(&kept.name))
                && !own.is_in_buffer_of(part)
            {
                match kept.capacity {
                    None => own.copy_into(part, &self.device)?,
                    from => own.with_capacity(&self.device, from, None)?.copy_into(part, &self.device)?,
                }
            }
        }
        self.hold(parts)
    }

    fn hold(&mut self, parts: &Parts) -> Result<()> {
        for kept in &mut self.tensors {
            let part = parts.get(&kept.name).cloned();
            let part = part.ok_or_else(|| {
                Error::new(ErrorKind::Other, format!("there is no memory for the state '{}'", kept.name))
            })?;
            kept.put(Some(part));
        }
        Ok(())
    }

    /// Runs the function on parts of memory and waits until the device is done with them, also where the limits end it. Nobody reads the
    /// results in the places `unread`.
    pub(crate) fn run_over(
        &mut self,
        parts: &Parts,
        inputs: Inputs,
        unread: &[usize],
        limits: &Limits,
    ) -> Result<Outputs> {
        drop(self.launch(inputs, limits)?);
        let outputs = self.settle_unread(limits, unread);
        if outputs.is_err() {
            // What others do next to their parts must not meet this call.
            let _ = self.settle(&Limits::default());
        }
        let outputs =
            outputs?.ok_or_else(|| Error::new(ErrorKind::Other, "a call gave no results".to_owned()))?;
        self.check_on(parts).map(|()| outputs)
    }

    /// Whether a call left its tensors where they were.
    pub(crate) fn check_on(&self, parts: &Parts) -> Result<()> {
        match self.is_on(parts) {
            true => Ok(()),
            false => Err(Error::new(
                ErrorKind::Other,
                format!("'{}' does not update its state in place", self.function.name()),
            )),
        }
    }
}
