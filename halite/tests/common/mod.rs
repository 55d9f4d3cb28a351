//! What tests of sessions share: the device that they run on, and small ONNX models written by hand.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(dead_code, reason = "each test file uses a part")]

use std::path::{Path, PathBuf};

use halite::{Cache, Device, Session, SessionBuilder, Tensor};

/// The demo's network: `picture` 1x1x16x16 to `probabilities` 1x10.
pub fn digits() -> PathBuf {
    repo("demo/digits/digits.onnx")
}

pub fn repo(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// An array of the demo.
pub fn array(name: &str) -> Tensor {
    let bytes = std::fs::read(repo("demo/digits").join(name)).expect("the demo is part of the repository");
    let array = halite::host::npy::read(&mut &bytes[..]).expect("the demo's arrays are whole");
    array.expect("the file has an array").into()
}

/// A Vulkan device, or a line that says why the test does nothing. It keeps the kernels of all sessions of a test.
pub fn device() -> Option<Device> {
    match Device::open("vulkan?kept_kernels=512") {
        Ok(device) => Some(device),
        Err(error) => {
            println!("SKIPPED: no Vulkan device: {error}");
            None
        }
    }
}

/// A builder that keeps nothing.
pub fn builder(device: &Device) -> SessionBuilder {
    Session::builder().device(device).cache(Cache::off())
}

/// Whether two lists of numbers are the same but for rounding.
pub fn near(actual: &[f32], expected: &[f32]) -> bool {
    actual.len() == expected.len()
        && actual.iter().zip(expected).all(|(a, e)| (a - e).abs() <= 1e-4 + 1e-4 * e.abs())
}

/// ONNX models as protocol buffers, field by field: <https://github.com/onnx/onnx/blob/main/onnx/onnx.proto>.
pub mod onnx {
    /// A field with a length.
    pub fn bytes(field: u8, content: &[u8]) -> Vec<u8> {
        let mut out = vec![field << 3 | 2];
        varint(content.len() as u64, &mut out);
        out.extend_from_slice(content);
        out
    }

    /// A field with a number.
    pub fn number(field: u8, value: u64) -> Vec<u8> {
        let mut out = vec![field << 3];
        varint(value, &mut out);
        out
    }

    fn varint(mut value: u64, out: &mut Vec<u8>) {
        while value >= 0x80 {
            out.push(value as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
    }

    pub fn node(op: &str, inputs: &[&str], outputs: &[&str]) -> Vec<u8> {
        let mut content: Vec<u8> = inputs.iter().flat_map(|name| bytes(1, name.as_bytes())).collect();
        content.extend(outputs.iter().flat_map(|name| bytes(2, name.as_bytes())));
        content.extend(bytes(4, op.as_bytes()));
        bytes(1, &content)
    }

    /// A node with an attribute that is an integer.
    pub fn node_with(op: &str, inputs: &[&str], outputs: &[&str], name: &str, value: u64) -> Vec<u8> {
        // Field 20 is the attribute's type; 2 is an integer.
        let attribute = [bytes(1, name.as_bytes()), number(3, value), vec![0xA0, 0x01, 2]].concat();
        let mut content: Vec<u8> = inputs.iter().flat_map(|name| bytes(1, name.as_bytes())).collect();
        content.extend(outputs.iter().flat_map(|name| bytes(2, name.as_bytes())));
        content.extend([bytes(4, op.as_bytes()), bytes(5, &attribute)].concat());
        bytes(1, &content)
    }

    /// Numbers of element types.
    pub const F32: u64 = 1;
    pub const I64: u64 = 7;
    pub const BOOL: u64 = 9;

    /// A value of f32 with dimensions: numbers or names.
    pub fn value(field: u8, name: &str, dims: &[&str]) -> Vec<u8> {
        typed_value(field, name, F32, dims)
    }

    /// A value of any type.
    pub fn typed_value(field: u8, name: &str, element: u64, dims: &[&str]) -> Vec<u8> {
        let dim = |text: &&str| match text.parse::<u64>() {
            Ok(size) => bytes(1, &number(1, size)),
            Err(_) => bytes(1, &bytes(2, text.as_bytes())),
        };
        let shape: Vec<u8> = dims.iter().flat_map(dim).collect();
        let tensor = [number(1, element), bytes(2, &shape)].concat();
        bytes(field, &[bytes(1, name.as_bytes()), bytes(2, &bytes(1, &tensor))].concat())
    }

    /// A node with an attribute that is a graph of these parts.
    pub fn node_with_graph(
        op: &str,
        inputs: &[&str],
        outputs: &[&str],
        name: &str,
        parts: &[Vec<u8>],
    ) -> Vec<u8> {
        let graph = [parts.concat(), bytes(2, b"body")].concat();
        // Field 20 is the attribute's type; 5 is a graph.
        let attribute = [bytes(1, name.as_bytes()), bytes(6, &graph), vec![0xA0, 0x01, 5]].concat();
        let mut content: Vec<u8> = inputs.iter().flat_map(|name| bytes(1, name.as_bytes())).collect();
        content.extend(outputs.iter().flat_map(|name| bytes(2, name.as_bytes())));
        content.extend([bytes(4, op.as_bytes()), bytes(5, &attribute)].concat());
        bytes(1, &content)
    }

    /// A list of tensors of any sizes.
    pub fn list_value(field: u8, name: &str, element: u64) -> Vec<u8> {
        let list = bytes(4, &bytes(1, &bytes(1, &number(1, element))));
        bytes(field, &[bytes(1, name.as_bytes()), bytes(2, &list)].concat())
    }

    /// A tensor that may be missing.
    pub fn optional_value(field: u8, name: &str, element: u64, dims: &[u64]) -> Vec<u8> {
        let shape: Vec<u8> = dims.iter().flat_map(|size| bytes(1, &number(1, *size))).collect();
        let tensor = bytes(1, &[number(1, element), bytes(2, &shape)].concat());
        let optional = bytes(9, &bytes(1, &tensor));
        bytes(field, &[bytes(1, name.as_bytes()), bytes(2, &optional)].concat())
    }

    /// A constant of f32.
    pub fn constant(name: &str, dims: &[u64], values: &[f32]) -> Vec<u8> {
        let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        typed_constant(name, F32, dims, &data)
    }

    /// A constant of any type.
    pub fn typed_constant(name: &str, element: u64, dims: &[u64], data: &[u8]) -> Vec<u8> {
        let mut content: Vec<u8> = dims.iter().flat_map(|size| number(1, *size)).collect();
        content.extend(number(2, element));
        content.extend(bytes(8, name.as_bytes()));
        content.extend(bytes(9, data));
        bytes(5, &content)
    }

    /// A model of these parts of a graph.
    pub fn model(parts: &[Vec<u8>]) -> Vec<u8> {
        let graph = [parts.concat(), bytes(2, b"g")].concat();
        [number(1, 8), bytes(7, &graph), bytes(8, &number(2, 17))].concat()
    }

    /// `y = x + c` over `n` numbers, where `n` is open.
    pub fn adds(constant_value: f32) -> Vec<u8> {
        model(&[
            node("Add", &["x", "c"], &["y"]),
            constant("c", &[1], &[constant_value]),
            value(11, "x", &["n"]),
            value(12, "y", &["n"]),
        ])
    }

    /// `y = x * w` with a weight of `width` x `width` numbers that are all `factor`.
    pub fn product(width: usize, factor: f32) -> Vec<u8> {
        let size = width.to_string();
        model(&[
            node("MatMul", &["x", "w"], &["y"]),
            constant("w", &[width as u64, width as u64], &vec![factor; width * width]),
            value(11, "x", &["1", &size]),
            value(12, "y", &["1", &size]),
        ])
    }

    /// Adds 1 to each of four numbers, as often as its input `n` says.
    pub fn repeated() -> Vec<u8> {
        let body = [
            node("Add", &["v", "c"], &["next"]),
            node("Identity", &["go"], &["again"]),
            typed_value(11, "i", I64, &[]),
            typed_value(11, "go", BOOL, &[]),
            value(11, "v", &["4"]),
            typed_value(12, "again", BOOL, &[]),
            value(12, "next", &["4"]),
        ];
        model(&[
            node_with_graph("Loop", &["n", "", "x"], &["y"], "body", &body),
            constant("c", &[1], &[1.0]),
            typed_value(11, "n", I64, &[]),
            value(11, "x", &["4"]),
            value(12, "y", &["4"]),
        ])
    }

    /// `count` additions one after the other, so that compiling takes a while.
    pub fn long(count: usize) -> Vec<u8> {
        let mut parts = vec![value(11, "x", &["8"]), value(12, &format!("v{count}"), &["8"])];
        for i in 0..count {
            let (from, to) = (if i == 0 { "x".to_owned() } else { format!("v{i}") }, format!("v{}", i + 1));
            // Two kinds that do not fold into one kernel.
            let op = if i % 2 == 0 { "Softmax" } else { "Exp" };
            parts.push(node(op, &[&from], &[&to]));
        }
        model(&parts)
    }
}
