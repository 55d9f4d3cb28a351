//! What goes into a function and comes out of it: values, named inputs, named outputs.

use std::{fmt, ops::Index};

use bytes::Bytes;
use halite_hal::BufferSpan;
use halite_runtime as runtime;

use crate::{Device, Error, Result, Tensor};

/// An argument or a result of a function. Models take and give tensors and lists of them; modules may use all of these.
///
/// ```
/// use halite::{Tensor, Value};
///
/// let values = [Value::from(Tensor::scalar(1.0f32)), Value::from(3i32), Value::List(vec![2.5f32.into()]), Value::Null];
/// let kinds: Vec<_> = values.iter().map(Value::kind).collect();
/// assert_eq!(kinds, ["tensor", "i32", "list", "null"]);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Value {
    /// A tensor.
    Tensor(Tensor),
    /// A 32-bit integer; narrower integers, booleans, and the bits of 16-bit floats.
    I32(i32),
    /// A 64-bit integer or an index.
    I64(i64),
    /// A 32-bit float.
    F32(f32),
    /// A 64-bit float.
    F64(f64),
    /// Bytes on a device, without a shape.
    Buffer(DeviceBuffer),
    /// A list.
    List(Vec<Value>),
    /// Bytes on the host.
    Bytes(Bytes),
    /// Any other object of a module, to be passed on as it is.
    Object(Object),
    /// Nothing: an optional argument that was left out.
    Null,
}

/// Bytes on a device, without a shape: what some modules take in the place of a tensor. Clones share them.
#[derive(Clone)]
pub struct DeviceBuffer {
    pub(crate) span: BufferSpan,
    pub(crate) device: Device,
}

impl DeviceBuffer {
    /// Number of bytes.
    pub fn len(&self) -> u64 {
        self.span.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.span.length == 0
    }

    /// A copy of the bytes; blocks.
    ///
    /// # Errors
    /// The device fails.
    pub fn to_bytes(&self) -> Result<Bytes> {
        self.device.counters().count_download(self.span.length);
        Ok(self.span.read_all()?.into())
    }

    /// The bytes of a tensor, on its device or on the one that is given.
    ///
    /// # Errors
    /// There is no memory, or a device fails.
    pub fn from_tensor(tensor: &Tensor, device: &Device) -> Result<DeviceBuffer> {
        let tensor = tensor.to_device(device)?;
        let view = tensor.to_view().expect("a tensor that was put on a device is there");
        Ok(DeviceBuffer { span: view.span, device: device.clone() })
    }
}

impl fmt::Debug for DeviceBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceBuffer({} bytes on {})", self.span.length, self.device.uri())
    }
}

/// An object that only modules understand, such as a fence: a result that another call takes. Clones are the same object.
#[derive(Clone, Debug)]
pub struct Object(pub(crate) runtime::Value);

impl Object {
    /// The name of its type, such as `hal.fence`.
    pub fn type_name(&self) -> &'static str {
        self.0.kind()
    }
}

impl Value {
    /// The tensor, if this is one.
    pub fn as_tensor(&self) -> Option<&Tensor> {
        if let Value::Tensor(tensor) = self { Some(tensor) } else { None }
    }

    /// What kind of value this is: `tensor`, `i32`, `list`, ….
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Tensor(_) => "tensor",
            Value::I32(_) => "i32",
            Value::I64(_) => "i64",
            Value::F32(_) => "f32",
            Value::F64(_) => "f64",
            Value::Buffer(_) => "buffer",
            Value::List(_) => "list",
            Value::Bytes(_) => "bytes",
            Value::Object(object) => object.type_name(),
            Value::Null => "null",
        }
    }

    /// As the layer below takes it, tensors on the device.
    pub(crate) fn lower(&self, devices: &[Device]) -> Result<runtime::Value> {
        let here = |device: &Device| devices.iter().any(|own| own.is_same(device));
        Ok(match self {
            Value::Tensor(tensor) => {
                let first = devices.first().ok_or_else(|| {
                    Error::invalid("the module uses no device, so it cannot take tensors; pass plain numbers")
                })?;
                let there = match tensor.device() {
                    Some(device) if here(device) => tensor.clone(),
                    _ => tensor.to_device(first)?,
                };
                runtime::Value::View(there.to_view().expect("a tensor that was put on a device is there"))
            }
            Value::I32(v) => runtime::Value::I32(*v),
            Value::I64(v) => runtime::Value::I64(*v),
            Value::F32(v) => runtime::Value::F32(*v),
            Value::F64(v) => runtime::Value::F64(*v),
            Value::Buffer(buffer) if !here(&buffer.device) => {
                return Err(Error::invalid(format!(
                    "a buffer on {} was given to a session on other devices; give it a tensor, which is copied",
                    buffer.device.uri()
                )));
            }
            Value::Buffer(buffer) => runtime::Value::Buffer(buffer.span.clone()),
            Value::List(values) => {
                runtime::Value::List(values.iter().map(|value| value.lower(devices)).collect::<Result<_>>()?)
            }
            Value::Bytes(bytes) => runtime::Value::Bytes(bytes.clone()),
            Value::Object(object) => object.0.clone(),
            Value::Null => runtime::Value::Null,
        })
    }

    /// A result of the layer below.
    pub(crate) fn lift(value: runtime::Value, devices: &[Device]) -> Result<Value> {
        let owner = |span: &BufferSpan| {
            let id = span.buffer.device_id();
            // What lies on none of them is told when it is used.
            let own = devices.iter().find(|device| device.hal().id() == id).or(devices.first());
            own.cloned().ok_or_else(|| Error::new(crate::ErrorKind::Other, "a tensor came from no device"))
        };
        Ok(match value {
            runtime::Value::I32(v) => Value::I32(v),
            runtime::Value::I64(v) => Value::I64(v),
            runtime::Value::F32(v) => Value::F32(v),
            runtime::Value::F64(v) => Value::F64(v),
            runtime::Value::View(view) => Value::Tensor(Tensor::from_view(&view, &owner(&view.span)?)?),
            runtime::Value::Buffer(span) => Value::Buffer(DeviceBuffer { device: owner(&span)?, span }),
            runtime::Value::List(values) => {
                Value::List(values.into_iter().map(|v| Value::lift(v, devices)).collect::<Result<_>>()?)
            }
            runtime::Value::Bytes(bytes) => Value::Bytes(bytes),
            runtime::Value::Null => Value::Null,
            other => Value::Object(Object(other)),
        })
    }
}

impl From<Tensor> for Value {
    fn from(tensor: Tensor) -> Self {
        Value::Tensor(tensor)
    }
}

impl From<&Tensor> for Value {
    fn from(tensor: &Tensor) -> Self {
        Value::Tensor(tensor.clone())
    }
}

impl From<&Value> for Value {
    fn from(value: &Value) -> Self {
        value.clone()
    }
}

macro_rules! scalars {
    ($($rust:ty => $variant:ident;)*) => {$(
        impl From<$rust> for Value {
            fn from(value: $rust) -> Self {
                Value::$variant(value)
            }
        }
    )*};
}

scalars! {
    i32 => I32;
    i64 => I64;
    f32 => F32;
    f64 => F64;
}

/// The inputs of a call: by name, by place, or the first ones by place and others by name.
///
/// ```
/// # use halite::{Inputs, Tensor};
/// let x = Tensor::scalar(1.0f32);
/// let by_name: Inputs = [("x", &x)].into();
/// let by_place: Inputs = [&x, &x].into();
/// let both = Inputs::new().push(&x).with("y", &x);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    pub(crate) places: Vec<Value>,
    pub(crate) names: Vec<(String, Value)>,
}

impl Inputs {
    /// No inputs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next input by place.
    #[must_use]
    pub fn push(mut self, value: impl Into<Value>) -> Self {
        self.places.push(value.into());
        self
    }

    /// Adds an input by name.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.names.push((name.into(), value.into()));
        self
    }

    /// What was given: values by place, then those by name.
    ///
    /// ```
    /// let inputs = halite::Inputs::new().push(1.0f32).with("n", 3i32);
    /// let given: Vec<_> = inputs.iter().map(|(name, value)| (name, value.kind())).collect();
    /// assert_eq!(given, [(None, "f32"), (Some("n"), "i32")]);
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = (Option<&str>, &Value)> {
        let named = self.names.iter().map(|(name, value)| (Some(name.as_str()), value));
        self.places.iter().map(|value| (None, value)).chain(named)
    }

    /// The values in the order of a function's inputs; those that were not given are [`Value::Null`].
    pub(crate) fn in_order(self, names: &[&str], function: &str) -> Result<Vec<Value>> {
        let expected = || {
            let all: Vec<_> = names.iter().map(|name| format!("'{name}'")).collect();
            if all.is_empty() { "none".to_owned() } else { all.join(", ") }
        };
        if self.places.len() > names.len() {
            return Err(Error::invalid(format!(
                "{} inputs were given, '{function}' takes {}: {}",
                self.places.len(),
                names.len(),
                expected()
            )));
        }
        let mut values: Vec<Option<Value>> = self.places.into_iter().map(Some).collect();
        values.resize_with(names.len(), || None);
        for (name, value) in self.names {
            let place = names.iter().position(|own| *own == name).ok_or_else(|| {
                Error::invalid(format!("'{function}' has no input '{name}'; its inputs are {}", expected()))
            })?;
            if values[place].replace(value).is_some() {
                return Err(Error::invalid(format!("input '{name}' of '{function}' was given twice")));
            }
        }
        Ok(values.into_iter().map(|value| value.unwrap_or(Value::Null)).collect())
    }
}

impl<K: Into<String>, V: Into<Value>> FromIterator<(K, V)> for Inputs {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let names = pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Inputs { places: Vec::new(), names }
    }
}

impl<K: Into<String>, V: Into<Value>, const N: usize> From<[(K, V); N]> for Inputs {
    fn from(pairs: [(K, V); N]) -> Self {
        pairs.into_iter().collect()
    }
}

impl<K: Into<String>, V: Into<Value>> From<Vec<(K, V)>> for Inputs {
    fn from(pairs: Vec<(K, V)>) -> Self {
        pairs.into_iter().collect()
    }
}

impl<K: Into<String>, V: Into<Value>> From<std::collections::HashMap<K, V>> for Inputs {
    fn from(pairs: std::collections::HashMap<K, V>) -> Self {
        pairs.into_iter().collect()
    }
}

impl<K: Into<String>, V: Into<Value>> From<std::collections::BTreeMap<K, V>> for Inputs {
    fn from(pairs: std::collections::BTreeMap<K, V>) -> Self {
        pairs.into_iter().collect()
    }
}

macro_rules! inputs_by_place {
    ($($value:ty),*) => {$(
        impl<const N: usize> From<[$value; N]> for Inputs {
            fn from(values: [$value; N]) -> Self {
                Inputs { places: values.into_iter().map(Into::into).collect(), names: Vec::new() }
            }
        }

        impl From<Vec<$value>> for Inputs {
            fn from(values: Vec<$value>) -> Self {
                Inputs { places: values.into_iter().map(Into::into).collect(), names: Vec::new() }
            }
        }
    )*};
}

inputs_by_place!(Tensor, &Tensor, Value);

impl From<Tensor> for Inputs {
    fn from(tensor: Tensor) -> Self {
        Inputs::new().push(tensor)
    }
}

impl From<&Tensor> for Inputs {
    fn from(tensor: &Tensor) -> Self {
        Inputs::new().push(tensor)
    }
}

impl From<()> for Inputs {
    fn from((): ()) -> Self {
        Inputs::new()
    }
}

/// The results of a call, by name and by place, in the order of the function.
///
/// `outputs["name"]` and `outputs[0]` are tensors. They panic where there is none, as indexing a map does; [`Outputs::tensor`],
/// [`Outputs::get`] and [`Outputs::values`] do not.
///
/// ```no_run
/// # let session = halite::Session::builder().model("digits.onnx").build()?;
/// let mut out = session.run(())?;
/// for (name, value) in out.iter() {
///     println!("{name}: {value:?}");
/// }
/// let by_place: Vec<f32> = out[0].to_vec()?;
/// let checked = out.tensor("probabilities")?;
/// let owned = out.take("probabilities");
/// # Ok::<(), halite::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Outputs {
    names: std::sync::Arc<[String]>,
    values: Vec<Value>,
}

impl Outputs {
    pub(crate) fn new(names: std::sync::Arc<[String]>, values: Vec<Value>) -> Self {
        Outputs { names, values }
    }

    /// Number of results.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Names, in order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Values, in order.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// Takes the values, in order.
    pub fn into_values(self) -> Vec<Value> {
        self.values
    }

    /// Takes the value with a name; null stays in its place.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        let place = self.names.iter().position(|own| own == name)?;
        Some(std::mem::replace(&mut self.values[place], Value::Null))
    }

    /// Name and value of each, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.names().zip(&self.values)
    }

    /// The value with a name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.iter().find(|(own, _)| *own == name).map(|(_, value)| value)
    }

    /// The tensor with a name.
    ///
    /// # Errors
    /// There is no such output, or it is no tensor.
    pub fn tensor(&self, name: &str) -> Result<&Tensor> {
        let value = self.get(name).ok_or_else(|| {
            let all: Vec<_> = self.names().map(|name| format!("'{name}'")).collect();
            Error::new(
                crate::ErrorKind::NotFound,
                format!("there is no output '{name}'; there are: {}", all.join(", ")),
            )
        })?;
        value
            .as_tensor()
            .ok_or_else(|| Error::invalid(format!("output '{name}' is a {}, not a tensor", value.kind())))
    }
}

impl Index<&str> for Outputs {
    type Output = Tensor;

    fn index(&self, name: &str) -> &Tensor {
        self.tensor(name).unwrap_or_else(|error| panic!("{}", error.message()))
    }
}

impl Index<usize> for Outputs {
    type Output = Tensor;

    fn index(&self, place: usize) -> &Tensor {
        match self.values.get(place) {
            Some(Value::Tensor(tensor)) => tensor,
            Some(other) => panic!("output {place} is a {}, not a tensor", other.kind()),
            None => panic!("there is no output {place}; there are {}", self.values.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_by_name_and_by_place_come_in_order() {
        let named: Inputs = [("b", 2i32), ("a", 1i32)].into();
        let values = named.in_order(&["a", "b", "c"], "f").unwrap();
        assert!(matches!(values[..], [Value::I32(1), Value::I32(2), Value::Null]));
        let error = |inputs: Inputs| inputs.in_order(&["a", "b"], "f").unwrap_err().message().to_owned();
        assert_eq!(error(Inputs::new().with("x", 1i32)), "'f' has no input 'x'; its inputs are 'a', 'b'");
        assert_eq!(error(Inputs::new().push(1i32).with("a", 1i32)), "input 'a' of 'f' was given twice");
        let many = Inputs::new().push(1i32).push(1i32).push(1i32);
        assert_eq!(error(many), "3 inputs were given, 'f' takes 2: 'a', 'b'");
    }

    #[test]
    fn outputs_by_name_and_by_place() {
        let names = ["x".to_owned(), "n".to_owned()];
        let outputs = Outputs::new(names.into(), vec![Tensor::scalar(1.5f32).into(), Value::I32(3)]);
        assert_eq!(outputs["x"].item::<f32>().unwrap(), 1.5);
        assert_eq!(outputs[0].item::<f32>().unwrap(), 1.5);
        assert_eq!(outputs.tensor("y").unwrap_err().message(), "there is no output 'y'; there are: 'x', 'n'");
        assert!(outputs.tensor("n").unwrap_err().message().contains("is a i32"));
    }
}
