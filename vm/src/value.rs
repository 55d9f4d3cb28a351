//! Values that cross function boundaries: scalars and refs.

use std::{any::Any, fmt, sync::Arc};

use halite_abi::{Result, status};

/// Something a ref may point to: a VM buffer or list, or an object of a native module.
pub trait Object: Any + fmt::Debug + Send + Sync {
    /// Type name without `!`, as type tables carry it: `vm.buffer`, `hal.buffer_view`, …
    fn type_name(&self) -> &'static str;
}

/// A reference to an [`Object`], or null. Cloning shares the object.
#[derive(Clone, Default)]
pub struct Ref(Option<Arc<dyn Object>>);

impl Ref {
    /// The null reference.
    pub const NULL: Ref = Ref(None);

    /// A reference to a new object.
    pub fn new<T: Object>(object: T) -> Self {
        Ref(Some(Arc::new(object)))
    }

    /// A reference to a shared object.
    pub fn from_arc(object: Arc<dyn Object>) -> Self {
        Ref(Some(object))
    }

    /// Whether it is null.
    pub fn is_null(&self) -> bool {
        self.0.is_none()
    }

    /// Takes the reference out, leaving null.
    pub fn take(&mut self) -> Ref {
        Ref(self.0.take())
    }

    /// The object.
    pub fn object(&self) -> Option<&Arc<dyn Object>> {
        self.0.as_ref()
    }

    /// The object itself when this is the only reference to it.
    pub(crate) fn unique(&mut self) -> Option<&mut dyn Object> {
        self.0.as_mut().and_then(Arc::get_mut)
    }

    /// Type name of the object; `None` for null.
    pub fn type_name(&self) -> Option<&'static str> {
        self.0.as_ref().map(|o| o.type_name())
    }

    /// The object as a `T`; `None` when it is null or something else.
    pub fn downcast_ref<T: Object>(&self) -> Option<&T> {
        let object: &dyn Any = self.0.as_deref()?;
        object.downcast_ref()
    }

    /// The object as a `T`, or INVALID_ARGUMENT that says what it is instead.
    pub fn expect<T: Object>(&self, wanted: &str) -> Result<&T> {
        self.downcast_ref().ok_or_else(|| match self.type_name() {
            None => status!(InvalidArgument, "expected a {wanted} but the reference is null"),
            Some(other) => status!(InvalidArgument, "expected a {wanted} but the reference is a {other}"),
        })
    }

    /// Whether both point to the same object, or both are null.
    pub fn same(&self, other: &Ref) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl fmt::Debug for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("null"),
            Some(object) => fmt::Debug::fmt(object, f),
        }
    }
}

/// A value passed to or returned from a function.
#[derive(Clone, Debug)]
pub enum Value {
    /// `i` in a calling convention; also i1, i8, i16 and 16-bit floats as bits.
    I32(i32),
    /// `I`.
    I64(i64),
    /// `f`.
    F32(f32),
    /// `F`.
    F64(f64),
    /// `r`.
    Ref(Ref),
}
