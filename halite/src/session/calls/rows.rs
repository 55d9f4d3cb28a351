//! States that grow in place: before a call, their buffers get the rows that its version needs.

use std::borrow::Cow;

use super::super::{functions::ModelFunction, lists, versions::Version};
use crate::{
    Device, Error, Result, Value,
    options::{Handed, Limits},
    tensor::Capacity,
};

/// Tensors that have rows to spare, by their places.
type Capacities = Vec<(usize, Capacity)>;

/// Inputs as a version takes them, with the states among them in buffers of as many rows as it needs; and the results that will be in these,
/// with the rows that they have. What fits is taken as it is.
pub(super) fn fitted<'a>(
    function: &ModelFunction,
    version: &Version,
    values: &'a [Value],
    (handed, device): (&Handed, &Device),
    limits: &Limits,
) -> Result<(Cow<'a, [Value]>, Capacities)> {
    if version.capacities.is_empty() && handed.capacities.is_empty() {
        return Ok((Cow::Borrowed(values), Vec::new()));
    }
    let (wanted, grown) = wanted(function, version, values)?;
    let own = |place: usize| find(&handed.capacities, place);
    let places = 0..values.len();
    let others: Vec<usize> =
        places.filter(|place| !fits(&values[*place], own(*place), find(&wanted, *place))).collect();
    if others.is_empty() {
        return Ok((Cow::Borrowed(values), grown));
    }
    if let Some(after) = &handed.after {
        after.wait(limits.call_options().deadline)?;
    }
    let mut values = values.to_vec();
    for place in others {
        if let Value::Tensor(tensor) = &values[place] {
            let grown = tensor.with_capacity(device, own(place), find(&wanted, place))?;
            values[place] = Value::Tensor(grown);
        }
    }
    Ok((Cow::Owned(values), grown))
}

/// Whether a tensor's buffer is as a version needs it, and has room for what it writes.
fn fits(value: &Value, own: Option<Capacity>, wanted: Option<Capacity>) -> bool {
    let rows = |capacity: Option<Capacity>| capacity.map(|capacity| (capacity.axis, capacity.rows));
    let has_room = || matches!(value, Value::Tensor(tensor) if tensor.has_room(wanted));
    rows(own) == rows(wanted) && (wanted.is_none() || has_room())
}

fn find(all: &[(usize, Capacity)], place: usize) -> Option<Capacity> {
    all.iter().find(|(own, _)| *own == place).map(|(_, capacity)| *capacity)
}

/// The rows that a version needs, of inputs and of the results that replace them, by their places.
fn wanted(function: &ModelFunction, version: &Version, values: &[Value]) -> Result<(Capacities, Capacities)> {
    let shapes: Vec<Vec<u64>> = lists::one_by_one(values).filter_map(lists::shape_of).collect();
    let (mut wanted, mut grown) = (Vec::new(), Vec::new());
    for state in version.capacities.each(&shapes) {
        let input = function.inputs.iter().position(|input| input.name == state.input);
        let output = function.outputs.iter().position(|output| output.name == state.output);
        let counts = usize::try_from(state.rows).ok().zip(usize::try_from(state.dropped).ok());
        let ((Some(input), Some(output)), Some((rows, moves))) = ((input, output), counts) else {
            return Err(Error::invalid(format!("'{}' has no state '{}'", function.name, state.input)));
        };
        let capacity = Capacity { axis: state.axis, rows, moves };
        wanted.push((input, capacity));
        grown.push((output, capacity));
    }
    Ok((wanted, grown))
}
