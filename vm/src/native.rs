//! The interface between bytecode and modules written in Rust.

use std::{any::Any, sync::Arc};

use halite_abi::{Result, status};
use smallvec::SmallVec;

use crate::{Invocation, Object, Ref, Value};

/// A function of a native module, found once when a bytecode module is linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeFunction {
    /// The module's own number for it, passed to [`NativeModule::call`].
    pub ordinal: u32,
    /// Calling convention it implements, such as `0rIr_r`. Linking fails unless the import's is equal.
    pub signature: &'static str,
}

/// A module implemented in Rust. Shared by contexts; per-context state comes from [`NativeModule::create_state`].
pub trait NativeModule: Send + Sync + 'static {
    /// Module name that imports begin with, such as `hal`.
    fn name(&self) -> &str;

    /// Version that dependencies are checked against.
    fn version(&self) -> u32;

    /// The function with this name (without the module part).
    fn lookup(&self, name: &str) -> Option<NativeFunction>;

    /// State of this module in a new context.
    fn create_state(&self) -> Result<Box<dyn Any + Send>> {
        Ok(Box::new(()))
    }

    /// Calls a function. May block. `args` holds exactly what the signature says; results must be pushed in
    /// signature order.
    fn call(
        &self,
        state: &mut (dyn Any + Send),
        ordinal: u32,
        args: &mut Arguments,
        results: &mut Results,
    ) -> Result<()>;
}

/// Arguments of a native call, read in signature order. The VM has checked kinds and counts against the signature,
/// so a reader that follows it cannot fail; one that does not gets INTERNAL.
#[derive(Debug, Default)]
pub struct Arguments {
    values: SmallVec<[Value; 16]>,
    spans: SmallVec<[u16; 4]>,
    next_value: usize,
    next_span: usize,
    pub(crate) invocation: Invocation,
}

impl Arguments {
    /// Arguments with these values (spans flattened) and the element count of each variadic span, in order.
    pub fn new(values: SmallVec<[Value; 16]>, spans: SmallVec<[u16; 4]>) -> Self {
        Arguments { values, spans, ..Arguments::default() }
    }

    /// The same, as part of this invocation.
    #[must_use]
    pub fn with_invocation(self, invocation: Invocation) -> Self {
        Arguments { invocation, ..self }
    }

    /// Deadline and cancellation of the invocation that this call is part of. A function that blocks gives up when
    /// they say so.
    pub fn invocation(&self) -> &Invocation {
        &self.invocation
    }

    /// Empties it and takes back its storage for the next call.
    pub fn reset(&mut self) -> (&mut SmallVec<[Value; 16]>, &mut SmallVec<[u16; 4]>) {
        (self.next_value, self.next_span) = (0, 0);
        self.values.clear();
        self.spans.clear();
        (&mut self.values, &mut self.spans)
    }

    fn next(&mut self) -> Option<&mut Value> {
        self.next_value += 1;
        self.values.get_mut(self.next_value - 1)
    }

    fn mismatch(&self, wanted: &str) -> halite_abi::Status {
        status!(Internal, "native function read argument {} as {wanted}", self.next_value.saturating_sub(1))
    }

    /// Next argument, `i`.
    pub fn i32(&mut self) -> Result<i32> {
        match self.next() {
            Some(Value::I32(v)) => Ok(*v),
            _ => Err(self.mismatch("i32")),
        }
    }

    /// Next argument, `I`.
    pub fn i64(&mut self) -> Result<i64> {
        match self.next() {
            Some(Value::I64(v)) => Ok(*v),
            _ => Err(self.mismatch("i64")),
        }
    }

    /// Next argument, `f`.
    pub fn f32(&mut self) -> Result<f32> {
        match self.next() {
            Some(Value::F32(v)) => Ok(*v),
            _ => Err(self.mismatch("f32")),
        }
    }

    /// Next argument, `F`.
    pub fn f64(&mut self) -> Result<f64> {
        match self.next() {
            Some(Value::F64(v)) => Ok(*v),
            _ => Err(self.mismatch("f64")),
        }
    }

    /// Next argument, `r`; may be null.
    pub fn reference(&mut self) -> Result<Ref> {
        match self.next() {
            Some(Value::Ref(r)) => Ok(r.take()),
            _ => Err(self.mismatch("ref")),
        }
    }

    /// Next argument, `r`, which must be a `T`; its shared handle.
    pub fn object<T: Object>(&mut self, wanted: &str) -> Result<Arc<T>> {
        let reference = self.reference()?;
        reference.expect::<T>(wanted)?;
        let object: Arc<dyn Any + Send + Sync> =
            reference.object().cloned().ok_or_else(|| self.mismatch("a non-null ref"))?;
        object.downcast().map_err(|_| self.mismatch(wanted))
    }

    /// Next argument, `r`, which must be a `T` or null.
    pub fn optional_object<T: Object>(&mut self, wanted: &str) -> Result<Option<Arc<T>>> {
        match self.values.get(self.next_value) {
            Some(Value::Ref(r)) if r.is_null() => {
                self.next_value += 1;
                Ok(None)
            }
            _ => self.object(wanted).map(Some),
        }
    }

    /// Element count of the next variadic span; its elements follow as ordinary arguments.
    pub fn span(&mut self) -> Result<usize> {
        self.next_span += 1;
        self.spans
            .get(self.next_span - 1)
            .map(|n| usize::from(*n))
            .ok_or_else(|| status!(Internal, "native function read a span that its signature does not have"))
    }
}

/// Results of a native call, pushed in signature order. The VM checks them against the signature.
#[derive(Debug, Default)]
pub struct Results {
    pub(crate) values: SmallVec<[Value; 4]>,
}

impl Results {
    /// What was pushed so far.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// Pushes a result.
    pub fn push(&mut self, value: Value) {
        self.values.push(value);
    }

    /// Pushes an `i` result.
    pub fn i32(&mut self, value: i32) {
        self.push(Value::I32(value));
    }

    /// Pushes an `I` result.
    pub fn i64(&mut self, value: i64) {
        self.push(Value::I64(value));
    }

    /// Pushes an `r` result.
    pub fn reference(&mut self, value: Ref) {
        self.push(Value::Ref(value));
    }

    /// Pushes a new object as an `r` result.
    pub fn object<T: Object>(&mut self, object: T) {
        self.push(Value::Ref(Ref::new(object)));
    }
}
