//! Where the time of a call on a state goes.

use super::State;
use crate::{
    Error, ErrorKind, Inputs, Outputs, Profile, Result, RunOptions, options::Handed, session::profiling,
};

impl State {
    /// Runs the function on this state as [`State::run`] does, with clocks beside it, and tells where the time went: see [`Profile`].
    /// The state is that after the call.
    ///
    /// # Errors
    /// As [`State::run`]; and [`ErrorKind::Unsupported`] where a device cannot measure its commands.
    pub fn profile(&mut self, inputs: impl Into<Inputs>) -> Result<(Outputs, Profile)> {
        self.profile_with(inputs, &RunOptions::new())
    }

    /// As [`State::profile`], with options.
    ///
    /// # Errors
    /// As [`State::profile`], and when the options end it.
    pub fn profile_with(
        &mut self,
        inputs: impl Into<Inputs>,
        options: &RunOptions,
    ) -> Result<(Outputs, Profile)> {
        let function = self.function.clone();
        let limits = function.session().begin(options)?;
        let values = self.values_within(inputs.into(), &limits)?;
        let handed = Handed { kept: true, capacities: self.capacities(), ..Handed::default() };
        profiling::profile_so(&function, &values, &handed, &limits, |call| {
            self.under_way = Some(call);
            self.settle(&limits)?.ok_or_else(|| Error::new(ErrorKind::Other, "a call gave no results"))
        })
    }
}
