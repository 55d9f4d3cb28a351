//! Inputs in memory that the device reads by itself.

use halite::{Device, Inputs, PinnedTensor, Tensor, Value};

use crate::{
    console::{Failure, Result},
    engine::HostValue,
    values,
};

/// The inputs of a call. Only tensors are in such memory; other values are handed over as they are.
pub(super) enum PinnedInput {
    Tensor(PinnedTensor),
    Other(HostValue),
}

/// Brings tensors to memory that a device reads by itself.
pub(super) fn of(device: Option<&Device>, on_host: &[HostValue]) -> Result<Vec<PinnedInput>> {
    let device =
        device.ok_or_else(|| Failure::Usage("--pinned-inputs: the module uses no device".to_owned()))?;
    let one = |value: &HostValue| -> Result<PinnedInput> {
        let HostValue::Tensor(tensor) = value else { return Ok(PinnedInput::Other(value.clone())) };
        let tensor = Tensor::from(tensor.clone());
        let mut pinned = PinnedTensor::new(device, tensor.element_type(), tensor.shape())?;
        tensor.read_into(pinned.as_mut_bytes()?)?;
        Ok(PinnedInput::Tensor(pinned))
    };
    on_host.iter().map(one).collect()
}

/// The inputs of one call.
pub(super) fn send(device: Option<&Device>, pinned: &mut [PinnedInput]) -> Result<Inputs> {
    let mut inputs = Inputs::new();
    for input in pinned {
        inputs = inputs.push(match input {
            PinnedInput::Tensor(tensor) => Value::Tensor(tensor.send()?),
            PinnedInput::Other(value) => values::to_value(device, value)?,
        });
    }
    Ok(inputs)
}
