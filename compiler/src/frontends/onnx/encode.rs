//! Writing ONNX models for tests: messages as bytes.

use bytes::Bytes;

/// `TensorProto.FLOAT`.
pub(crate) const FLOAT: i64 = 1;
/// `TensorProto.INT64`.
pub(crate) const INT32: i64 = 6;
pub(crate) const INT64: i64 = 7;
/// `TensorProto.BOOL`.
pub(crate) const BOOL: i64 = 9;
/// `TensorProto.INT4`.
pub(crate) const INT4: i64 = 22;

/// A message in the making.
#[derive(Clone, Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    pub(crate) fn varint(mut self, field: u64, value: i64) -> Self {
        self.0.extend(encoded(field << 3).into_iter().chain(encoded(value as u64)));
        self
    }

    pub(crate) fn bytes(mut self, field: u64, value: impl AsRef<[u8]>) -> Self {
        let value = value.as_ref();
        self.0.extend(encoded(field << 3 | 2).into_iter().chain(encoded(value.len() as u64)));
        self.0.extend_from_slice(value);
        self
    }

    fn all<T>(self, field: u64, items: &[T], bytes: impl Fn(&T) -> Vec<u8>) -> Self {
        items.iter().fold(self, |message, item| message.bytes(field, bytes(item)))
    }
}

impl AsRef<[u8]> for Message {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

fn encoded(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A `NodeProto`; `operator` may have a domain in front, as in `com.microsoft:Gelu`.
pub(crate) fn node(operator: &str, inputs: &[&str], outputs: &[&str], attributes: &[Message]) -> Message {
    let (domain, name) = operator.split_once(':').unwrap_or(("", operator));
    let text = |text: &&str| text.as_bytes().to_vec();
    Message::default()
        .all(1, inputs, text)
        .all(2, outputs, text)
        .bytes(3, format!("{name}_of_{}", outputs[0]))
        .bytes(4, name)
        .all(5, attributes, |attribute| attribute.0.clone())
        .bytes(7, domain)
}

/// An attribute with integers.
pub(crate) fn ints(name: &str, values: &[i64]) -> Message {
    let message = values.iter().fold(Message::default().bytes(1, name), |all, value| all.varint(8, *value));
    message.varint(20, 7)
}

/// An attribute that is an integer.
pub(crate) fn int(name: &str, value: i64) -> Message {
    Message::default().bytes(1, name).varint(3, value).varint(20, 2)
}

/// An attribute that is a float.
pub(crate) fn float(name: &str, value: f32) -> Message {
    let mut message = Message::default().bytes(1, name);
    message.0.extend(encoded(2 << 3 | 5).into_iter().chain(value.to_le_bytes()));
    message.varint(20, 1)
}

/// An attribute with floats.
pub(crate) fn float_list(name: &str, values: &[f32]) -> Message {
    Message::default().bytes(1, name).bytes(7, floats(values.iter().copied())).varint(20, 6)
}

/// An attribute that is text.
pub(crate) fn text(name: &str, value: &str) -> Message {
    Message::default().bytes(1, name).bytes(4, value).varint(20, 3)
}

/// An attribute with texts.
pub(crate) fn texts(name: &str, values: &[&str]) -> Message {
    let list = Message::default().bytes(1, name).all(9, values, |text| text.as_bytes().to_vec());
    list.varint(20, 8)
}

/// An attribute that is a graph.
pub(crate) fn body(name: &str, graph: &Message) -> Message {
    Message::default().bytes(1, name).bytes(6, graph).varint(20, 5)
}

/// An attribute that is a tensor.
pub(crate) fn value(name: &str, tensor: &Message) -> Message {
    Message::default().bytes(1, name).bytes(5, tensor).varint(20, 4)
}

/// A `TensorProto` with its elements as raw bytes.
pub(crate) fn tensor(name: &str, data_type: i64, dims: &[i64], raw: &[u8]) -> Message {
    let message = dims.iter().fold(Message::default(), |message, dim| message.varint(1, *dim));
    message.varint(2, data_type).bytes(8, name).bytes(9, raw)
}

/// A `TensorProto` whose elements lie in another file.
pub(crate) fn external(name: &str, data_type: i64, dims: &[i64], file: &str, offset: u64) -> Message {
    let entry = |key: &str, value: &str| Message::default().bytes(1, key).bytes(2, value);
    let message = dims.iter().fold(Message::default(), |message, dim| message.varint(1, *dim));
    let message = message.varint(2, data_type).bytes(8, name);
    message.bytes(13, entry("location", file)).bytes(13, entry("offset", &offset.to_string())).varint(14, 1)
}

/// A `TypeProto` of a tensor.
pub(crate) fn tensor_type(data_type: i64, dims: &[i64]) -> Message {
    let dim = |dim: &i64| Message::default().varint(1, *dim).0;
    let shape = Message::default().all(1, dims, dim);
    Message::default().bytes(1, Message::default().varint(1, data_type).bytes(2, shape))
}

/// A `ValueInfoProto`.
pub(crate) fn info(name: &str, of: &Message) -> Message {
    Message::default().bytes(1, name).bytes(2, of)
}

/// A `ValueInfoProto` of a tensor.
pub(crate) fn port(name: &str, data_type: i64, dims: &[i64]) -> Message {
    info(name, &tensor_type(data_type, dims))
}

/// A `GraphProto`.
pub(crate) fn graph(
    nodes: &[Message],
    initializers: &[Message],
    inputs: &[Message],
    outputs: &[Message],
) -> Message {
    let whole = |message: &Message| message.0.clone();
    Message::default()
        .bytes(2, "test")
        .all(1, nodes, whole)
        .all(5, initializers, whole)
        .all(11, inputs, whole)
        .all(12, outputs, whole)
}

/// A `FunctionProto` of the domain `own`.
pub(crate) fn function(name: &str, inputs: &[&str], outputs: &[&str], nodes: &[Message]) -> Message {
    let text = |text: &&str| text.as_bytes().to_vec();
    Message::default()
        .bytes(1, name)
        .all(4, inputs, text)
        .all(5, outputs, text)
        .all(7, nodes, |node| node.0.clone())
        .bytes(9, opset("", 20))
        .bytes(10, "own")
}

fn opset(domain: &str, version: i64) -> Message {
    Message::default().bytes(1, domain).varint(2, version)
}

/// A `ModelProto`.
pub(crate) fn model(graph: &Message, functions: &[Message]) -> Bytes {
    let message = Message::default()
        .varint(1, 9)
        .bytes(7, graph)
        .bytes(8, opset("", 20))
        .bytes(8, opset("com.microsoft", 1))
        .bytes(8, opset("com.microsoft.nchwc", 1))
        .bytes(8, opset("com.ms.internal.nhwc", 20))
        .bytes(8, opset("own", 1))
        .all(25, functions, |function| function.0.clone());
    message.0.into()
}

/// The bytes of floats.
pub(crate) fn floats(values: impl IntoIterator<Item = f32>) -> Vec<u8> {
    values.into_iter().flat_map(f32::to_le_bytes).collect()
}
