//! Inputs and results of a call.

use std::{
    ffi::{CString, c_char},
    ptr,
    sync::OnceLock,
};

use halite::{Inputs, Outputs, Value};

use crate::{
    error::{call, halite_error},
    failure::{Failure, Result, quiet},
    raw::{self, Out},
    tensor::halite_tensor,
    value::halite_value,
};

/// An input of a call: a tensor, or a value of another kind; without both it is left out, which optional inputs allow. A tensor
/// on the host is copied to the device.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct halite_input {
    /// Its name; NULL for the next one by place. Inputs by place come first.
    pub name: *const c_char,
    /// A tensor, or NULL.
    pub tensor: *const halite_tensor,
    /// Another value, or NULL.
    pub value: *const halite_value,
}

/// The results of a call, by name and by place. They lie on the device until they are read.
pub struct halite_outputs {
    outputs: Outputs,
    /// Made when somebody asks.
    names: OnceLock<Vec<CString>>,
}

impl halite_outputs {
    pub(crate) fn new(outputs: Outputs) -> Self {
        halite_outputs { outputs, names: OnceLock::new() }
    }

    fn name(&self, index: usize) -> *const c_char {
        let names = self.names.get_or_init(|| self.outputs.names().map(raw::c_text).collect());
        names.get(index).map_or(ptr::null(), |name| name.as_ptr())
    }
}

/// The inputs that the caller states.
///
/// # Safety
/// The pointer is null or points to `count` inputs that keep the contract.
pub(crate) unsafe fn inputs(inputs: *const halite_input, count: usize) -> Result<Inputs> {
    // SAFETY: the caller's promise.
    let stated = unsafe { raw::slice(inputs, count, "inputs") }?;
    let mut inputs = Inputs::new();
    let mut named = false;
    for input in stated {
        // SAFETY: as above.
        let (name, tensor, value) = unsafe {
            let tensor = raw::optional(input.tensor, "tensor")?;
            (raw::optional_text(input.name, "name")?, tensor, raw::optional(input.value, "value")?)
        };
        let value = match (tensor, value) {
            (Some(tensor), None) => Value::Tensor(tensor.0.clone()),
            (None, Some(value)) => value.0.clone(),
            (None, None) => Value::Null,
            (Some(_), Some(_)) => {
                return Err(Failure::invalid("an input is a tensor or another value, not both"));
            }
        };
        inputs = match name {
            Some(name) => inputs.with(name, value),
            None if named => return Err(Failure::invalid("inputs by place come before those by name")),
            None => inputs.push(value),
        };
        named |= name.is_some();
    }
    Ok(inputs)
}

/// Number of results.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_outputs_count(outputs: *const halite_outputs) -> usize {
    // SAFETY: the contract of the interface.
    quiet("halite_outputs_count", 0, || unsafe { Ok(raw::handle(outputs, "outputs")?.outputs.len()) })
}

/// The name of a result; NULL after the last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_outputs_name(outputs: *const halite_outputs, index: usize) -> *const c_char {
    // SAFETY: the contract of the interface.
    quiet("halite_outputs_name", ptr::null(), || unsafe { Ok(raw::handle(outputs, "outputs")?.name(index)) })
}

/// The tensor with a name.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_outputs_tensor(
    outputs: *const halite_outputs,
    name: *const c_char,
    out: *mut *mut halite_tensor,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_outputs_tensor", || unsafe {
        let out = Out::handle(out, "out")?;
        let tensor = raw::handle(outputs, "outputs")?.outputs.tensor(raw::text(name, "name")?)?;
        out.give(halite_tensor(tensor.clone()));
        Ok(())
    })
}

/// The tensor at a place.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_outputs_tensor_at(
    outputs: *const halite_outputs,
    index: usize,
    out: *mut *mut halite_tensor,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_outputs_tensor_at", || unsafe {
        let out = Out::handle(out, "out")?;
        let value = raw::at(raw::handle(outputs, "outputs")?.outputs.values(), index, "output")?;
        let tensor = value.as_tensor().ok_or_else(|| {
            Failure::invalid(format!(
                "output {index} is a {}, not a tensor; halite_outputs_value_at gives it",
                value.kind()
            ))
        })?;
        out.give(halite_tensor(tensor.clone()));
        Ok(())
    })
}

/// The result at a place, of whatever kind.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_outputs_value_at(
    outputs: *const halite_outputs,
    index: usize,
    out: *mut *mut halite_value,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_outputs_value_at", || unsafe {
        let out = Out::handle(out, "out")?;
        let value = raw::at(raw::handle(outputs, "outputs")?.outputs.values(), index, "output")?;
        out.give(halite_value(value.clone()));
        Ok(())
    })
}

/// Frees results. Tensors that were taken from them stay valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_outputs_free(outputs: *mut halite_outputs) {
    // SAFETY: the contract of the interface.
    unsafe { raw::free("halite_outputs_free", outputs) }
}
