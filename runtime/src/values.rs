//! Owns the translation between [`Value`] and the VM's values. Does not own: what either means to a program.

use halite_hal::BufferSpan;
use halite_status::{Result, bail, status};
use halite_vm::{Kind, Ref, Value as VmValue};

use crate::{
    hal_module::BufferObject,
    view::{BufferView, Value},
    vmdata,
};

/// Lists nested deeper than this are refused: they may contain themselves.
const MAX_DEPTH: u32 = 32;
/// Values in all lists of one result together; a list may name the same list many times.
const MAX_LIST_VALUES: usize = 1 << 22;

/// A value as the argument of this kind. INVALID_ARGUMENT when it cannot be.
pub(crate) fn to_vm(value: &Value, kind: Kind) -> Result<VmValue> {
    Ok(match (kind, value) {
        (Kind::I32, Value::I32(v)) => VmValue::I32(*v),
        (Kind::I64, Value::I64(v)) => VmValue::I64(*v),
        (Kind::F32, Value::F32(v)) => VmValue::F32(*v),
        (Kind::F64, Value::F64(v)) => VmValue::F64(*v),
        (Kind::Ref, Value::I32(_) | Value::I64(_) | Value::F32(_) | Value::F64(_)) => {
            bail!(InvalidArgument, "expected a tensor or another reference but got {}", value.kind())
        }
        (Kind::Ref, _) => VmValue::Ref(to_ref(value, 0)?),
        _ => bail!(InvalidArgument, "expected {} but got {}", kind.name(), value.kind()),
    })
}

fn to_ref(value: &Value, depth: u32) -> Result<Ref> {
    Ok(match value {
        Value::View(view) => Ref::new(view.clone()),
        Value::Buffer(span) => Ref::new(BufferObject(span.clone())),
        Value::Bytes(bytes) => vmdata::buffer(bytes.clone()),
        Value::Opaque(reference) => reference.clone(),
        Value::List(values) => {
            if depth >= MAX_DEPTH {
                bail!(InvalidArgument, "lists are nested deeper than {MAX_DEPTH}");
            }
            let items = values.iter().map(|v| to_item(v, depth + 1)).collect::<Result<Vec<_>>>()?;
            vmdata::list(items)?
        }
        Value::Null | Value::I32(_) | Value::I64(_) | Value::F32(_) | Value::F64(_) => Ref::NULL,
    })
}

fn to_item(value: &Value, depth: u32) -> Result<VmValue> {
    Ok(match value {
        Value::I32(v) => VmValue::I32(*v),
        Value::I64(v) => VmValue::I64(*v),
        Value::F32(v) => VmValue::F32(*v),
        Value::F64(v) => VmValue::F64(*v),
        _ => VmValue::Ref(to_ref(value, depth)?),
    })
}

/// A result of a function.
pub(crate) fn from_vm(value: VmValue) -> Result<Value> {
    let mut budget = MAX_LIST_VALUES;
    from_item(value, 0, &mut budget)
}

fn from_item(value: VmValue, depth: u32, budget: &mut usize) -> Result<Value> {
    match value {
        VmValue::I32(v) => Ok(Value::I32(v)),
        VmValue::I64(v) => Ok(Value::I64(v)),
        VmValue::F32(v) => Ok(Value::F32(v)),
        VmValue::F64(v) => Ok(Value::F64(v)),
        VmValue::Ref(reference) => from_ref(reference, depth, budget),
    }
}

fn from_ref(reference: Ref, depth: u32, budget: &mut usize) -> Result<Value> {
    if reference.is_null() {
        return Ok(Value::Null);
    }
    if let Some(view) = reference.downcast_ref::<BufferView>() {
        return Ok(Value::View(view.clone()));
    }
    if let Some(BufferObject(span)) = reference.downcast_ref::<BufferObject>() {
        return Ok(Value::Buffer(BufferSpan::clone(span)));
    }
    if let Some(bytes) = vmdata::try_bytes(&reference) {
        return Ok(Value::Bytes(bytes));
    }
    let Some(items) = vmdata::list_values(&reference, *budget) else {
        return Ok(Value::Opaque(reference));
    };
    let items = items?;
    if depth >= MAX_DEPTH {
        bail!(ResourceExhausted, "the result has lists nested deeper than {MAX_DEPTH}");
    }
    *budget = budget.checked_sub(items.len()).ok_or_else(|| {
        status!(ResourceExhausted, "the result has lists of more than {MAX_LIST_VALUES} values in all")
    })?;
    items.into_iter().map(|item| from_item(item, depth + 1, budget)).collect::<Result<_>>().map(Value::List)
}
