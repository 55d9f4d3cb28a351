//! Calls of a model's functions: the version, what it is called with, and the recordings of the call behind it.

mod rows;

use std::sync::Arc;

use halite_runtime as runtime;

use super::{
    Started, ahead::Shapes, lists, lists::shape_of, model::ModelProgram, states::lowered, versions::Version,
};
use crate::{
    Device, Error, Result, Value,
    options::{Handed, Limits},
    tensor::Capacity,
};

/// What a call is made with.
pub(super) struct Ready {
    /// The place of the function.
    place: usize,
    pub version: Arc<Version>,
    pub arguments: Vec<runtime::Value>,
    /// The results that have rows to spare in their buffers.
    pub grown: Vec<(usize, Capacity)>,
}

impl ModelProgram {
    /// Starts a function for these inputs.
    pub fn start(
        &self,
        place: usize,
        values: &[Value],
        devices: &[Device],
        handed: Handed,
        limits: &Limits,
    ) -> Result<Started> {
        let Ready { place, version, arguments, grown } =
            self.ready(place, values, devices, &handed, limits)?;
        let options =
            runtime::CallOptions { after: handed.after, held: handed.held, ..limits.call_options() };
        let call = version.function.start(&arguments, &options).map_err(Error::of_runtime)?;
        self.load_ahead(place, limits);
        self.record_ahead(place, &version, values);
        Ok(Started::new(call, version.groups.clone(), grown))
    }

    /// The version of a function for these inputs, and what it is called with.
    pub fn ready(
        &self,
        place: usize,
        values: &[Value],
        devices: &[Device],
        handed: &Handed,
        limits: &Limits,
    ) -> Result<Ready> {
        let (place, version) = self.version_handed(place, values, handed, limits)?;
        limits.check("copying inputs")?;
        let (values, grown) =
            rows::fitted(&self.functions[place], &version, values, (handed, &self.device), limits)?;
        // A version is compiled for the inputs that are given; optional ones that are not are no arguments of it.
        let arguments =
            lowered(lists::one_by_one(&values), version.function.info().states(), handed.kept, devices)?;
        Ok(Ready { place, version, arguments, grown })
    }

    /// The version for inputs that are handed in so, and the place of its function.
    pub fn version_handed(
        &self,
        place: usize,
        values: &[Value],
        handed: &Handed,
        limits: &Limits,
    ) -> Result<(usize, Arc<Version>)> {
        let place = self.switched(place, values)?;
        let place = if handed.kept { self.growing(place, limits)? } else { place };
        Ok((place, self.version(place, values, limits)?))
    }

    /// The place of the function for calls on a state: another where its caches grow in place.
    fn growing(&self, place: usize, limits: &Limits) -> Result<usize> {
        let function = &self.functions[place];
        let Some(growing) = function.growing else { return Ok(place) };
        let moves = match function.fixed.as_ref().filter(|fixed| !fixed.is_by_values()) {
            Some(fixed) => self.fixed_version(place, fixed, limits)?.capacities.has_windows(),
            None => function.fixed.is_none(),
        };
        Ok(if moves { growing } else { place })
    }

    /// Makes the recordings for the call that comes behind one with these inputs, where sizes grow step by step, while the device works
    /// for this one.
    pub(super) fn record_ahead(&self, place: usize, version: &Version, values: &[Value]) {
        let Some(coverage) = version.coverage.as_ref().filter(|_| version.function.info().can_record())
        else {
            return;
        };
        let shapes: Option<Shapes> = values.iter().map(shape_of).collect();
        let next = shapes.and_then(|shapes| self.ahead.next(place, &shapes));
        let sizes = next.and_then(|next| coverage.symbols(next.iter().map(Vec::as_slice)));
        let Some(sizes) = sizes else { return };
        let sizes: Vec<i64> = sizes.into_iter().map(|size| i64::try_from(size).unwrap_or(i64::MAX)).collect();
        if let Err(error) = version.function.record(&sizes, &Limits::default().call_options()) {
            // The call that needs it says it.
            log::debug!("recording ahead: {error}");
        }
    }
}
