//! `!vm.list`: growable lists typed by element, with the conversions of list.get and list.set.

use std::{any::Any, fmt, sync::Arc};

use halite_abi::{Result, bail, status};
use parking_lot::Mutex;

use crate::{
    Object, Ref, Value,
    memory::{Memory, Reservation},
    signature::Kind,
    types::{Scalar, Type},
};

/// A list. The element type is fixed; the length is not.
pub struct List {
    element: Type,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    items: Items,
    charge: Reservation,
}

enum Items {
    I8(Vec<i8>),
    I16(Vec<i16>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Refs(Vec<Ref>),
    Values(Vec<Option<Value>>),
}

impl Default for Items {
    fn default() -> Self {
        Items::I8(Vec::new())
    }
}

/// Runs the same expression over whichever vector the items are.
macro_rules! each {
    ($items:expr, $v:ident => $body:expr) => {
        match $items {
            Items::I8($v) => $body,
            Items::I16($v) => $body,
            Items::I32($v) => $body,
            Items::I64($v) => $body,
            Items::F32($v) => $body,
            Items::F64($v) => $body,
            Items::Refs($v) => $body,
            Items::Values($v) => $body,
        }
    };
}

fn grow<T: Clone>(v: &mut Vec<T>, len: usize, zero: T) -> bool {
    let ok = v.try_reserve(len.saturating_sub(v.len())).is_ok();
    if ok {
        v.resize(len, zero);
    }
    ok
}

fn bytes_for<T>(_: &[T], len: usize) -> u64 {
    (len as u64).saturating_mul(size_of::<T>() as u64).saturating_add(OVERHEAD)
}

/// What a list costs beyond its elements, so that a budget also bounds the number of empty lists.
const OVERHEAD: u64 = 128;

impl fmt::Debug for List {
    /// Shape only: lists may contain themselves.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "list of {:?}", self.element)
    }
}

impl Object for List {
    fn type_name(&self) -> &'static str {
        "vm.list"
    }
}

impl List {
    /// An empty list that takes any values.
    pub fn any() -> Self {
        Self::with_charge(Type::Any, Reservation::default())
    }

    /// An empty list of a type.
    pub fn new(element: Type) -> Self {
        Self::with_charge(element, Reservation::default())
    }

    /// An empty list out of a budget.
    pub(crate) fn allocate(element: Type, memory: &Arc<Memory>) -> Result<Self> {
        Ok(Self::with_charge(element, memory.reserve(OVERHEAD, "list.alloc")?))
    }

    fn with_charge(element: Type, charge: Reservation) -> Self {
        let items = match &element {
            Type::Scalar(Scalar::I8) => Items::I8(Vec::new()),
            Type::Scalar(Scalar::I16) => Items::I16(Vec::new()),
            Type::Scalar(Scalar::I32) => Items::I32(Vec::new()),
            Type::Scalar(Scalar::I64) => Items::I64(Vec::new()),
            Type::Scalar(Scalar::F32) => Items::F32(Vec::new()),
            Type::Scalar(Scalar::F64) => Items::F64(Vec::new()),
            Type::Ref(_) => Items::Refs(Vec::new()),
            Type::Any => Items::Values(Vec::new()),
        };
        List { element, inner: Mutex::new(Inner { items, charge }) }
    }

    /// Element type.
    pub fn element(&self) -> &Type {
        &self.element
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        each!(&self.inner.lock().items, v => v.len())
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Checks that `len` elements would fit; capacity itself is left to growth.
    pub(crate) fn reserve(&self, len: usize) -> Result<()> {
        let inner = &mut *self.inner.lock();
        let (now, wanted) = each!(&inner.items, v => (bytes_for(v, v.len()), bytes_for(v, len)));
        if wanted > now {
            inner.charge.resize(wanted, "list.reserve")?;
            inner.charge.resize(now, "list.reserve")?;
        }
        Ok(())
    }

    /// Grows with zeros or nulls, or truncates. RESOURCE_EXHAUSTED when budget or memory are spent.
    pub fn resize(&self, len: usize) -> Result<()> {
        let mut dropped = Vec::new();
        {
            let inner = &mut *self.inner.lock();
            let (now, wanted) = each!(&inner.items, v => (v.len(), bytes_for(v, len)));
            if len >= now {
                inner.charge.resize(wanted, "list.resize")?;
            }
            let grown = match &mut inner.items {
                Items::I8(v) => grow(v, len, 0),
                Items::I16(v) => grow(v, len, 0),
                Items::I32(v) => grow(v, len, 0),
                Items::I64(v) => grow(v, len, 0),
                Items::F32(v) => grow(v, len, 0.0),
                Items::F64(v) => grow(v, len, 0.0),
                Items::Refs(v) => {
                    dropped.extend(v.drain(len.min(now)..).map(|r| Some(Value::Ref(r))));
                    grow(v, len, Ref::NULL)
                }
                Items::Values(v) => {
                    dropped.extend(v.drain(len.min(now)..));
                    grow(v, len, None)
                }
            };
            if !grown {
                bail!(ResourceExhausted, "no memory for a list of {len} elements");
            }
            if len < now {
                each!(&mut inner.items, v => v.shrink_to_fit());
                inner.charge.resize(wanted, "list.resize")?;
            }
        }
        // Released only now, when the lock is free: an element may hold this list.
        drop(dropped);
        Ok(())
    }

    /// Element at `index`, converted to `kind`: integers to integers, floats to floats; other conversions are
    /// INVALID_ARGUMENT. An index past the end is OUT_OF_RANGE. Asking a scalar for a ref gives null.
    pub fn get(&self, index: usize, kind: Kind) -> Result<Value> {
        let inner = self.inner.lock();
        let len = each!(&inner.items, v => v.len());
        let value = match &inner.items {
            Items::I8(v) => v.get(index).map(|x| Value::I32(i32::from(*x))),
            Items::I16(v) => v.get(index).map(|x| Value::I32(i32::from(*x))),
            Items::I32(v) => v.get(index).map(|x| Value::I32(*x)),
            Items::I64(v) => v.get(index).map(|x| Value::I64(*x)),
            Items::F32(v) => v.get(index).map(|x| Value::F32(*x)),
            Items::F64(v) => v.get(index).map(|x| Value::F64(*x)),
            Items::Refs(v) => v.get(index).map(|x| Value::Ref(x.clone())),
            Items::Values(v) => v.get(index).map(|x| x.clone().unwrap_or(Value::Ref(Ref::NULL))),
        };
        drop(inner);
        convert(value.ok_or_else(|| out_of_range(index, len))?, kind)
    }

    /// Element at `index` as it is stored; `None` past the end. Unset elements are null refs.
    pub fn value(&self, index: usize) -> Option<Value> {
        let kind = match &self.element {
            Type::Scalar(Scalar::I8 | Scalar::I16 | Scalar::I32) => Kind::I32,
            Type::Scalar(Scalar::I64) => Kind::I64,
            Type::Scalar(Scalar::F32) => Kind::F32,
            Type::Scalar(Scalar::F64) => Kind::F64,
            Type::Ref(_) => Kind::Ref,
            Type::Any => match &self.inner.lock().items {
                Items::Values(v) => return v.get(index).map(|x| x.clone().unwrap_or(Value::Ref(Ref::NULL))),
                _ => return None,
            },
        };
        self.get(index, kind).ok()
    }

    /// Takes the ref at `index` out, leaving null, if it fits `wanted`; else null and the list is unchanged.
    pub(crate) fn get_ref(&self, index: usize, wanted: &Type, take: bool) -> Result<Ref> {
        let mut inner = self.inner.lock();
        let len = each!(&inner.items, v => v.len());
        if index >= len {
            return Err(out_of_range(index, len));
        }
        let slot = match &mut inner.items {
            Items::Refs(v) => v.get_mut(index),
            Items::Values(v) => match v.get_mut(index) {
                Some(Some(Value::Ref(r))) => Some(r),
                _ => None,
            },
            _ => None,
        };
        Ok(match slot {
            Some(r) if wanted.accepts(r) => {
                if take {
                    r.take()
                } else {
                    r.clone()
                }
            }
            _ => Ref::NULL,
        })
    }

    /// Sets the element at `index`, converted to the element type (integers wrap).
    pub fn set(&self, index: usize, value: Value) -> Result<()> {
        if let Value::Ref(r) = &value {
            self.element.check(r)?;
        }
        let old = {
            let inner = &mut *self.inner.lock();
            let len = each!(&inner.items, v => v.len());
            if index >= len {
                return Err(out_of_range(index, len));
            }
            inner.items.replace(index, value)?
        };
        // Released only now, when the lock is free: the old element may hold this list.
        drop(old);
        Ok(())
    }

    /// Calls for each reference in it that is not null. The list is locked meanwhile: do nothing with it.
    pub(crate) fn for_each_ref(&self, visit: &mut dyn FnMut(&Ref)) {
        match &self.inner.lock().items {
            Items::Refs(v) => v.iter().filter(|r| !r.is_null()).for_each(visit),
            Items::Values(v) => {
                let refs = v.iter().filter_map(|v| if let Some(Value::Ref(r)) = v { Some(r) } else { None });
                refs.filter(|r| !r.is_null()).for_each(visit);
            }
            _ => {}
        }
    }

    /// Drops all references in it.
    pub(crate) fn clear(&self) {
        let mut refs = Vec::new();
        self.inner.lock().items.take_refs(&mut refs);
        // Released only now, when the lock is free: an element may hold this list.
        drop(refs);
    }

    /// Appends an element.
    pub fn push(&self, value: Value) -> Result<()> {
        let index = self.len();
        self.resize(index + 1)?;
        self.set(index, value)
    }
}

impl Items {
    fn replace(&mut self, index: usize, value: Value) -> Result<Option<Value>> {
        let int = |v| match convert(v, Kind::I64)? {
            Value::I64(x) => Ok(x),
            other => Err(unsupported(&other, Kind::I64)),
        };
        let float = |v| match convert(v, Kind::F64)? {
            Value::F64(x) => Ok(x),
            other => Err(unsupported(&other, Kind::F64)),
        };
        match self {
            Items::I8(v) => v[index] = int(value)? as i8,
            Items::I16(v) => v[index] = int(value)? as i16,
            Items::I32(v) => v[index] = int(value)? as i32,
            Items::I64(v) => v[index] = int(value)?,
            Items::F32(v) => v[index] = float(value)? as f32,
            Items::F64(v) => v[index] = float(value)?,
            Items::Refs(v) => match value {
                Value::Ref(r) => return Ok(Some(Value::Ref(std::mem::replace(&mut v[index], r)))),
                other => return Err(unsupported(&other, Kind::Ref)),
            },
            Items::Values(v) => return Ok(v[index].replace(value)),
        }
        Ok(None)
    }

    /// Moves all refs out.
    fn take_refs(&mut self, into: &mut Vec<Ref>) {
        match self {
            Items::Refs(v) => into.append(v),
            Items::Values(v) => into.extend(v.drain(..).filter_map(|v| match v {
                Some(Value::Ref(r)) => Some(r),
                _ => None,
            })),
            _ => {}
        }
    }
}

impl Drop for List {
    /// Releases nested lists in a loop: a module can nest them deeper than the host stack reaches.
    fn drop(&mut self) {
        let mut work = Vec::new();
        self.inner.get_mut().items.take_refs(&mut work);
        while let Some(mut reference) = work.pop() {
            let nested: Option<&mut dyn Any> = reference.unique().map(|o| o as &mut dyn Any);
            if let Some(list) = nested.and_then(|o| o.downcast_mut::<List>()) {
                list.inner.get_mut().items.take_refs(&mut work);
            }
        }
    }
}

fn convert(value: Value, kind: Kind) -> Result<Value> {
    Ok(match (value, kind) {
        (Value::I32(v), Kind::I32) => Value::I32(v),
        (Value::I32(v), Kind::I64) => Value::I64(i64::from(v)),
        (Value::I64(v), Kind::I32) => Value::I32(v as i32),
        (Value::I64(v), Kind::I64) => Value::I64(v),
        (Value::F32(v), Kind::F32) => Value::F32(v),
        (Value::F32(v), Kind::F64) => Value::F64(f64::from(v)),
        (Value::F64(v), Kind::F32) => Value::F32(v as f32),
        (Value::F64(v), Kind::F64) => Value::F64(v),
        (Value::Ref(v), Kind::Ref) => Value::Ref(v),
        (_, Kind::Ref) => Value::Ref(Ref::NULL),
        (other, kind) => return Err(unsupported(&other, kind)),
    })
}

#[cold]
fn unsupported(value: &Value, wanted: Kind) -> halite_abi::Status {
    let actual = Kind::of(value).name();
    status!(InvalidArgument, "a list element of kind {actual} cannot be converted to {}", wanted.name())
}

#[cold]
fn out_of_range(index: usize, len: usize) -> halite_abi::Status {
    status!(OutOfRange, "list index {index} is out of range; the list has {len} elements")
}

#[cfg(test)]
mod tests {
    use super::*;
    use halite_abi::Code;

    #[test]
    fn conversions() {
        let l = List::new(Type::Scalar(Scalar::I8));
        l.push(Value::I32(0x1FF)).unwrap();
        assert!(matches!(l.get(0, Kind::I64), Ok(Value::I64(-1))));
        assert!(matches!(l.get(0, Kind::Ref), Ok(Value::Ref(r)) if r.is_null()));
        assert_eq!(l.get(0, Kind::F32).unwrap_err().code(), Code::InvalidArgument);
        assert_eq!(l.get(1, Kind::I32).unwrap_err().code(), Code::OutOfRange);
        assert_eq!(l.set(9, Value::I32(0)).unwrap_err().code(), Code::OutOfRange);
        let f = List::new(Type::Scalar(Scalar::F64));
        f.push(Value::F32(0.5)).unwrap();
        assert!(matches!(f.get(0, Kind::F32), Ok(Value::F32(x)) if x == 0.5));
        let a = List::any();
        a.push(Value::I64(1 << 40)).unwrap();
        a.resize(2).unwrap();
        assert!(matches!(a.value(0), Some(Value::I64(x)) if x == 1 << 40));
        assert!(matches!(a.value(1), Some(Value::Ref(r)) if r.is_null()));
    }

    #[test]
    fn deep_nesting_is_released_without_recursion() {
        let mut outer = Ref::NULL;
        for _ in 0..300_000 {
            let l = List::any();
            l.push(Value::Ref(outer)).unwrap();
            outer = Ref::new(l);
        }
        drop(outer);
    }

    #[test]
    fn budget_bounds_resize() {
        let memory = Memory::new(1 << 16);
        let l = List::allocate(Type::Scalar(Scalar::I64), &memory).unwrap();
        l.resize(1000).unwrap();
        assert_eq!(l.resize(usize::MAX).unwrap_err().code(), Code::ResourceExhausted);
        assert_eq!(l.reserve(1 << 40).unwrap_err().code(), Code::ResourceExhausted);
        assert_eq!(l.len(), 1000);
        l.resize(0).unwrap();
        l.resize(8000).unwrap();
    }
}
