//! Writing ONNX models: messages of protocol buffers as bytes. Fields: `onnx.proto` of the ONNX project.

/// `TensorProto.FLOAT`.
pub const FLOAT: i64 = 1;
/// `TensorProto.INT64`.
pub const INT64: i64 = 7;
/// `TensorProto.BOOL`.
pub const BOOL: i64 = 9;

/// A message in the making.
#[derive(Clone, Debug, Default)]
pub struct Message(pub Vec<u8>);

impl AsRef<[u8]> for Message {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Message {
    fn varint(mut self, field: u64, value: i64) -> Self {
        number(&mut self.0, field << 3);
        number(&mut self.0, value as u64);
        self
    }

    fn four(mut self, field: u64, value: f32) -> Self {
        number(&mut self.0, field << 3 | 5);
        self.0.extend(value.to_le_bytes());
        self
    }

    fn bytes(mut self, field: u64, value: impl AsRef<[u8]>) -> Self {
        let value = value.as_ref();
        number(&mut self.0, field << 3 | 2);
        number(&mut self.0, value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    fn all<T: AsRef<[u8]>>(self, field: u64, items: &[T]) -> Self {
        items.iter().fold(self, |message, item| message.bytes(field, item))
    }
}

fn number(to: &mut Vec<u8>, mut value: u64) {
    while value > 0x7F {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

/// A node; functions of the model are in the domain `own`, as in `own:F`.
pub fn node(
    operator: &str,
    inputs: &[impl AsRef<str>],
    outputs: &[impl AsRef<str>],
    attributes: &[Message],
) -> Message {
    let (domain, name) = operator.split_once(':').unwrap_or(("", operator));
    let texts = |of: &[&str]| of.iter().map(|text| text.as_bytes().to_vec()).collect::<Vec<_>>();
    let inputs: Vec<&str> = inputs.iter().map(AsRef::as_ref).collect();
    let outputs: Vec<&str> = outputs.iter().map(AsRef::as_ref).collect();
    let message = Message::default().all(1, &texts(&inputs)).all(2, &texts(&outputs));
    message.bytes(4, name).all(5, attributes).bytes(7, domain)
}

/// An attribute that is a number.
pub fn int(name: &str, value: i64) -> Message {
    Message::default().bytes(1, name).varint(3, value).varint(20, 2)
}

/// An attribute that is a list of numbers.
pub fn ints(name: &str, values: &[i64]) -> Message {
    let message = Message::default().bytes(1, name);
    values.iter().fold(message, |message, value| message.varint(8, *value)).varint(20, 7)
}

/// An attribute that is a float.
pub fn float(name: &str, value: f32) -> Message {
    Message::default().bytes(1, name).four(2, value).varint(20, 1)
}

/// An attribute that is a list of floats.
pub fn floats(name: &str, values: &[f32]) -> Message {
    let message = Message::default().bytes(1, name);
    values.iter().fold(message, |message, value| message.four(7, *value)).varint(20, 6)
}

/// An attribute that is a text.
pub fn text(name: &str, value: &str) -> Message {
    Message::default().bytes(1, name).bytes(4, value).varint(20, 3)
}

/// An attribute that is a graph.
pub fn body(name: &str, graph: &Message) -> Message {
    Message::default().bytes(1, name).bytes(6, graph).varint(20, 5)
}

/// A tensor with its elements as raw bytes.
pub fn tensor(name: &str, data_type: i64, dims: &[i64], raw: &[u8]) -> Message {
    let message = dims.iter().fold(Message::default(), |message, dim| message.varint(1, *dim));
    message.varint(2, data_type).bytes(8, name).bytes(9, raw)
}

/// A tensor of whole numbers.
pub fn whole(name: &str, dims: &[i64], values: &[i64]) -> Message {
    let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    tensor(name, INT64, dims, &raw)
}

/// An input or an output.
pub fn port(name: &str, data_type: i64, dims: &[i64]) -> Message {
    let dims: Vec<Message> = dims.iter().map(|dim| Message::default().varint(1, *dim)).collect();
    let shape = Message::default().all(1, &dims);
    let of = Message::default().varint(1, data_type).bytes(2, shape);
    Message::default().bytes(1, name).bytes(2, Message::default().bytes(1, of))
}

/// An output whose sizes nothing is said of.
pub fn open_port(name: &str, data_type: i64) -> Message {
    let of = Message::default().varint(1, data_type);
    Message::default().bytes(1, name).bytes(2, Message::default().bytes(1, of))
}

/// An input or an output that is a list of tensors.
pub fn list_port(name: &str, data_type: i64) -> Message {
    let of = Message::default().bytes(1, Message::default().varint(1, data_type));
    let list = Message::default().bytes(1, of);
    Message::default().bytes(1, name).bytes(2, Message::default().bytes(4, list))
}

/// A graph.
pub fn graph(nodes: &[Message], constants: &[Message], inputs: &[Message], outputs: &[Message]) -> Message {
    Message::default().bytes(2, "g").all(1, nodes).all(5, constants).all(11, inputs).all(12, outputs)
}

/// A function of the domain `own`.
pub fn function(name: &str, input: &str, output: &str, nodes: &[Message]) -> Message {
    let message = Message::default().bytes(1, name).bytes(4, input).bytes(5, output).all(7, nodes);
    message.bytes(9, opset("")).bytes(9, opset("own")).bytes(10, "own")
}

fn opset(domain: &str) -> Message {
    Message::default().bytes(1, domain).varint(2, if domain.is_empty() { 20 } else { 1 })
}

/// A model.
pub fn model(graph: &Message, functions: &[Message]) -> Vec<u8> {
    let message = Message::default().varint(1, 9).bytes(7, graph);
    message.bytes(8, opset("")).bytes(8, opset("own")).bytes(8, opset("com.microsoft")).all(25, functions).0
}
