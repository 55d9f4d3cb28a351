//! Calls on a state one behind the other, without waiting for each; and one state for several functions.

use halite_hal::Fence;

use super::State;
use crate::{
    Error, ErrorKind, Function, Inputs, Outputs, Pending, Result, Value,
    options::{Handed, Limits},
};

impl State {
    /// Starts a call that the device begins when it is done with the call under way, for which nobody waits here. Results that are no
    /// state are on their way to the host before the next call's work begins.
    pub(crate) fn follow(&mut self, inputs: Inputs, limits: &Limits) -> Result<Pending> {
        self.follow_unread(inputs, &[], limits)
    }

    /// The same, where nobody reads the results in these places.
    pub(crate) fn follow_unread(
        &mut self,
        inputs: Inputs,
        unread: &[usize],
        limits: &Limits,
    ) -> Result<Pending> {
        let handed = Handed { kept: true, after: self.advance(limits)?, held: true, ..Handed::default() };
        let pending = self.launch_so(handed, inputs, limits)?;
        Ok(pending.unread(self.outputs().chain(unread.iter().copied())).sent())
    }

    /// Runs the function and waits, where nobody reads the results in these places.
    pub(crate) fn run_unread(
        &mut self,
        inputs: Inputs,
        unread: &[usize],
        limits: &Limits,
    ) -> Result<Outputs> {
        drop(self.launch(inputs, limits)?);
        let outputs = self.settle_unread(limits, unread)?;
        outputs.ok_or_else(|| Error::new(ErrorKind::Other, "a call gave no results".to_owned()))
    }

    /// Takes what the call under way will leave; gives what it has to reach first.
    fn advance(&mut self, limits: &Limits) -> Result<Option<Fence>> {
        let Some(call) = self.under_way.clone().filter(|call| !call.is_done()) else {
            self.settle(limits)?;
            return Ok(None);
        };
        let Some((fence, results)) = call.unready() else {
            self.settle(limits)?;
            return Ok(None);
        };
        let devices = self.function.session().devices();
        for kept in &mut self.tensors {
            let new = results.get(kept.output).cloned().map(|new| Value::lift(new, devices)).transpose()?;
            kept.take(new, call.capacity(kept.output))?;
        }
        Ok(Some(fence.clone()))
    }

    /// Makes it the state of another function with tensors of the same names: calls go on where those of the other one ended.
    pub(crate) fn change(&mut self, function: &Function) -> Result<()> {
        if self.function.name() == function.name() {
            return Ok(());
        }
        self.settle(&Limits::default())?;
        let mut other = State::new(function.clone())?;
        let find = |name: &str| self.tensors.iter().position(|kept| kept.name == name);
        let places: Option<Vec<usize>> = other.tensors.iter().map(|kept| find(&kept.name)).collect();
        let Some(places) = places.filter(|places| places.len() == self.tensors.len()) else {
            let text = format!("'{}' has another state than '{}'", function.name(), self.function.name());
            return Err(Error::new(ErrorKind::Other, text));
        };
        for (kept, place) in other.tensors.iter_mut().zip(places) {
            let own = &mut self.tensors[place];
            (kept.tensor, kept.capacity) = (own.tensor.take(), own.capacity.take());
        }
        *self = other;
        Ok(())
    }
}
