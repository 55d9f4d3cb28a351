//! The translation between [`Value`] and the VM's values.

use std::sync::Arc;

use halite_abi::{Result, bail, status};
use halite_hal::{BufferSpan, Device};
use halite_vm::{Kind, Ref, Value as VmValue};

use crate::{
    hal_module::BufferObject,
    tensor::{ArgumentKind, HostTensor, HostValue},
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
        return bytes.map(Value::Bytes);
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

impl From<Kind> for ArgumentKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::I32 => ArgumentKind::I32,
            Kind::I64 => ArgumentKind::I64,
            Kind::F32 => ArgumentKind::F32,
            Kind::F64 => ArgumentKind::F64,
            Kind::Ref => ArgumentKind::Reference,
        }
    }
}

impl Value {
    /// A value from the host as an argument: tensors are copied to the device, values that were not given become
    /// zero or null. FAILED_PRECONDITION for a tensor without a device.
    pub fn from_host(device: Option<&Arc<dyn Device>>, value: &HostValue) -> Result<Value> {
        let upload = |tensor: &HostTensor| {
            let device = device.ok_or_else(|| {
                status!(FailedPrecondition, "a tensor {} needs a device to live on", tensor.metadata())
            })?;
            BufferView::from_host(device, tensor)
        };
        Ok(match value {
            HostValue::I32(v) => Value::I32(*v),
            HostValue::I64(v) => Value::I64(*v),
            HostValue::F32(v) => Value::F32(*v),
            HostValue::F64(v) => Value::F64(*v),
            HostValue::Tensor(tensor) => Value::View(upload(tensor)?),
            HostValue::Buffer(tensor) => Value::Buffer(upload(tensor)?.span),
            HostValue::List(all) => {
                Value::List(all.iter().map(|one| Value::from_host(device, one)).collect::<Result<_>>()?)
            }
            HostValue::Null | HostValue::Ignored(ArgumentKind::Reference) => Value::Null,
            HostValue::Ignored(ArgumentKind::I32) => Value::I32(0),
            HostValue::Ignored(ArgumentKind::I64) => Value::I64(0),
            HostValue::Ignored(ArgumentKind::F32) => Value::F32(0.0),
            HostValue::Ignored(ArgumentKind::F64) => Value::F64(0.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use halite_abi::Code;

    #[test]
    fn kinds_must_fit() {
        assert!(matches!(to_vm(&Value::I32(3), Kind::I32), Ok(VmValue::I32(3))));
        assert!(matches!(to_vm(&Value::Null, Kind::Ref), Ok(VmValue::Ref(r)) if r.is_null()));
        for (value, kind) in [
            (Value::I32(0), Kind::I64),
            (Value::Null, Kind::I32),
            (Value::F64(0.0), Kind::F32),
            (Value::I32(0), Kind::Ref),
        ] {
            assert_eq!(to_vm(&value, kind).unwrap_err().code(), Code::InvalidArgument, "{value:?} {kind:?}");
        }
    }

    #[test]
    fn lists_go_both_ways_within_bounds() {
        let nested = Value::List(vec![
            Value::I64(1),
            Value::List(vec![Value::F32(2.0), Value::Null]),
            Value::Bytes(bytes::Bytes::from_static(b"xyz")),
        ]);
        let back = from_vm(to_vm(&nested, Kind::Ref).unwrap()).unwrap();
        assert_eq!(format!("{back:?}"), format!("{nested:?}"));

        let own = halite_vm::List::any();
        own.resize(1).unwrap();
        let own = Ref::new(own);
        own.downcast_ref::<halite_vm::List>().unwrap().set(0, VmValue::Ref(own.clone())).unwrap();
        assert_eq!(from_vm(VmValue::Ref(own.clone())).unwrap_err().code(), Code::ResourceExhausted);
        // Breaks the cycle, so that nothing leaks.
        own.downcast_ref::<halite_vm::List>().unwrap().resize(0).unwrap();

        // Twenty lists that each name the next one four times: 4^20 values if they were all copied out.
        let mut list = Ref::NULL;
        for _ in 0..20 {
            list = vmdata::list(vec![VmValue::Ref(list); 4]).unwrap();
        }
        assert_eq!(from_vm(VmValue::Ref(list)).unwrap_err().code(), Code::ResourceExhausted);
        let deep = (0..40).fold(Value::Null, |inner, _| Value::List(vec![inner]));
        assert_eq!(to_vm(&deep, Kind::Ref).unwrap_err().code(), Code::InvalidArgument);
    }

    #[test]
    fn values_that_were_not_given_are_zero() {
        let ignored = HostValue::Ignored(ArgumentKind::I64);
        assert!(matches!(Value::from_host(None, &ignored), Ok(Value::I64(0))));
        let tensor =
            HostValue::Tensor(HostTensor::zeros(halite_abi::ElementType::F32, [2u64].as_slice()).unwrap());
        assert_eq!(Value::from_host(None, &tensor).unwrap_err().code(), Code::FailedPrecondition);
    }
}
