//! Values that are not tensors: numbers and lists.

use halite::Value;

use crate::{
    error::{call, halite_error},
    failure::{Failure, quiet},
    raw::{self, Out},
    tensor::halite_tensor,
};

/// An argument or a result of a function, of any kind. Never changes. Most are tensors, which functions also take and give
/// without it.
pub struct halite_value(pub(crate) Value);

/// What kind of value a value is: one of `HALITE_VALUE_…`.
pub type halite_value_kind = u32;

/// Nothing: an optional argument that was left out.
pub const HALITE_VALUE_NULL: halite_value_kind = 0;
/// A tensor.
pub const HALITE_VALUE_TENSOR: halite_value_kind = 1;
/// A list.
pub const HALITE_VALUE_LIST: halite_value_kind = 2;
/// An integer of 32 bits, or less.
pub const HALITE_VALUE_I32: halite_value_kind = 3;
/// An integer of 64 bits, or an index.
pub const HALITE_VALUE_I64: halite_value_kind = 4;
/// A float of 32 bits.
pub const HALITE_VALUE_F32: halite_value_kind = 5;
/// A float of 64 bits.
pub const HALITE_VALUE_F64: halite_value_kind = 6;
/// Anything else that a module gives, such as a buffer or a fence: it can be handed to the next call.
pub const HALITE_VALUE_OTHER: halite_value_kind = 7;

/// A value that is an integer of 32 bits.
#[unsafe(no_mangle)]
pub extern "C" fn halite_value_i32(number: i32) -> *mut halite_value {
    give(Value::I32(number))
}

/// A value that is an integer of 64 bits.
#[unsafe(no_mangle)]
pub extern "C" fn halite_value_i64(number: i64) -> *mut halite_value {
    give(Value::I64(number))
}

/// A value that is a float of 32 bits.
#[unsafe(no_mangle)]
pub extern "C" fn halite_value_f32(number: f32) -> *mut halite_value {
    give(Value::F32(number))
}

/// A value that is a float of 64 bits.
#[unsafe(no_mangle)]
pub extern "C" fn halite_value_f64(number: f64) -> *mut halite_value {
    give(Value::F64(number))
}

fn give(value: Value) -> *mut halite_value {
    Box::into_raw(Box::new(halite_value(value)))
}

/// A value that is a tensor, for lists.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_value_tensor(
    tensor: *const halite_tensor,
    out: *mut *mut halite_value,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_value_tensor", || unsafe {
        let out = Out::handle(out, "out")?;
        out.give(halite_value(Value::Tensor(raw::handle(tensor, "tensor")?.0.clone())));
        Ok(())
    })
}

/// A value that is a list of these values, which the caller keeps.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_value_list(
    values: *const *const halite_value,
    count: usize,
    out: *mut *mut halite_value,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_value_list", || unsafe {
        let out = Out::handle(out, "out")?;
        let mut list = Vec::with_capacity(count.min(1 << 16));
        for value in raw::slice(values, count, "values")? {
            list.push(raw::handle(*value, "values")?.0.clone());
        }
        out.give(halite_value(Value::List(list)));
        Ok(())
    })
}

/// What kind of value it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_value_get_kind(value: *const halite_value) -> halite_value_kind {
    // SAFETY: the contract of the interface.
    quiet("halite_value_get_kind", HALITE_VALUE_NULL, || unsafe {
        Ok(match raw::handle(value, "value")?.0 {
            Value::Null => HALITE_VALUE_NULL,
            Value::Tensor(_) => HALITE_VALUE_TENSOR,
            Value::List(_) => HALITE_VALUE_LIST,
            Value::I32(_) => HALITE_VALUE_I32,
            Value::I64(_) => HALITE_VALUE_I64,
            Value::F32(_) => HALITE_VALUE_F32,
            Value::F64(_) => HALITE_VALUE_F64,
            _ => HALITE_VALUE_OTHER,
        })
    })
}

/// The tensor that it is.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_value_as_tensor(
    value: *const halite_value,
    out: *mut *mut halite_tensor,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_value_as_tensor", || unsafe {
        let out = Out::handle(out, "out")?;
        let value = &raw::handle(value, "value")?.0;
        let tensor = value.as_tensor().ok_or_else(|| is_not(value, "a tensor"))?;
        out.give(halite_tensor(tensor.clone()));
        Ok(())
    })
}

/// The integer that it is, of 32 or 64 bits.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_value_as_integer(
    value: *const halite_value,
    out: *mut i64,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_value_as_integer", || unsafe {
        let out = Out::value(out, "out")?;
        match &raw::handle(value, "value")?.0 {
            Value::I32(number) => out.set((*number).into()),
            Value::I64(number) => out.set(*number),
            other => return Err(is_not(other, "an integer")),
        }
        Ok(())
    })
}

/// The float that it is, of 32 or 64 bits.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_value_as_float(
    value: *const halite_value,
    out: *mut f64,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_value_as_float", || unsafe {
        let out = Out::value(out, "out")?;
        match &raw::handle(value, "value")?.0 {
            Value::F32(number) => out.set((*number).into()),
            Value::F64(number) => out.set(*number),
            other => return Err(is_not(other, "a float")),
        }
        Ok(())
    })
}

/// Number of values in a list; 0 for a value that is not a list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_value_count(value: *const halite_value) -> usize {
    // SAFETY: the contract of the interface.
    quiet("halite_value_count", 0, || unsafe {
        Ok(match &raw::handle(value, "value")?.0 {
            Value::List(list) => list.len(),
            _ => 0,
        })
    })
}

/// A value of the list that it is.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_value_at(
    value: *const halite_value,
    index: usize,
    out: *mut *mut halite_value,
) -> *mut halite_error {
    // SAFETY: the contract of the interface.
    call("halite_value_at", || unsafe {
        let out = Out::handle(out, "out")?;
        match &raw::handle(value, "value")?.0 {
            Value::List(list) => out.give(halite_value(raw::at(list, index, "value")?.clone())),
            other => return Err(is_not(other, "a list")),
        }
        Ok(())
    })
}

/// Frees a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn halite_value_free(value: *mut halite_value) {
    // SAFETY: the contract of the interface.
    unsafe { raw::free("halite_value_free", value) }
}

fn is_not(value: &Value, what: &str) -> Failure {
    Failure::invalid(format!("the value is a {}, not {what}", value.kind()))
}
