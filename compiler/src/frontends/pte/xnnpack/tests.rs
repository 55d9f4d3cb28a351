//! Operators and forms of numbers that exporters of today do not write, and graphs that are wrong.

use bytes::Bytes;
use halite_formats::pte::{
    Constant, Program, XnnBinary, XnnConvolution, XnnGraph, XnnNode, XnnOperator as Op, XnnPool, XnnPort,
    XnnQuantization as Q, XnnScales, XnnType, XnnUnary, XnnValue,
};
use halite_ops::Values as Numbers;

use super::{Held, import, numbers::element_of};
use crate::{CompileError, build::Builder};

/// A graph of which the first values are inputs and the last one is the output.
#[derive(Default)]
struct Made {
    values: Vec<XnnValue>,
    constants: Vec<Constant>,
    nodes: Vec<XnnNode>,
    inputs: usize,
}

impl Made {
    fn value(&mut self, datatype: XnnType, dims: &[u32], quantization: Q, constant: Option<&[u8]>) -> usize {
        let id = self.values.len();
        let constant = constant.map(|bytes| {
            self.constants.push(Constant::Inline(Bytes::copy_from_slice(bytes)));
            self.constants.len() - 1
        });
        self.values.push(XnnValue {
            id: id as u32,
            datatype,
            dims: dims.to_vec(),
            constant,
            quantization,
            quantized_late: false,
        });
        id
    }

    fn floats(&mut self, dims: &[u32]) -> usize {
        self.value(XnnType::F32, dims, Q::None, None)
    }

    fn node(&mut self, operator: Op, inputs: &[Option<usize>], outputs: &[usize], flags: u32) {
        self.nodes.push(XnnNode {
            operator,
            inputs: inputs.to_vec(),
            outputs: outputs.to_vec(),
            limits: None,
            flags,
            handle: 0,
        });
    }

    /// What the last `outputs` values are for values of the inputs.
    fn run(self, inputs: &[&[f64]], outputs: usize) -> Result<Vec<Vec<f64>>, CompileError> {
        let port = |value| XnnPort { value, argument: value };
        let last = self.values.len();
        let graph = XnnGraph {
            inputs: (0..self.inputs.max(inputs.len())).map(port).collect(),
            outputs: (last - outputs..last).map(port).collect(),
            nodes: self.nodes,
            values: self.values,
            constants: self.constants,
        };
        let mut builder = Builder::new();
        let mut handed = Vec::new();
        for (i, value) in graph.values[..inputs.len()].iter().enumerate() {
            let dims: Vec<u64> = value.dims.iter().map(|d| u64::from(*d)).collect();
            let tensor = builder.input(&format!("input{i}"), element_of(value.datatype), &dims)?;
            handed.push(Held::plain(&builder, tensor));
        }
        let orders: Vec<Vec<usize>> =
            graph.outputs.iter().map(|port| (0..graph.values[port.value].dims.len()).collect()).collect();
        let (mut builder, results) =
            import(builder, &Program::default(), &graph, handed, &orders, "the test")?;
        results.iter().for_each(|result| builder.output("result", *result));
        let given: Vec<Numbers> = inputs
            .iter()
            .zip(&graph.values)
            .map(|(numbers, value)| match element_of(value.datatype).is_float() {
                true => Numbers::Float(numbers.to_vec()),
                false => Numbers::Int(numbers.iter().map(|n| *n as i64).collect()),
            })
            .collect();
        let made = builder.finish()?.evaluate(&given)?;
        Ok(made.iter().map(Numbers::floats).collect())
    }
}

fn scale(scale: f32, zero: i32) -> Q {
    Q::Tensor { scale, zero }
}

fn listed(scales: &[f32], axis: usize) -> Q {
    Q::Channels { scales: XnnScales::Listed(scales.to_vec()), axis }
}

fn f32s(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

#[test]
fn places_of_the_largest_are_counted_inside_of_windows() {
    let mut g = Made::default();
    let x = g.floats(&[1, 2, 4, 1]);
    let outputs = [g.floats(&[1, 1, 2, 1]), g.value(XnnType::I32, &[1, 1, 2, 1], Q::None, None)];
    let numbers = XnnPool { pads: [0; 4], kernel: [2, 2], strides: [2, 2], dilations: [1; 2] };
    g.node(Op::ArgMaxPool(numbers), &[Some(x)], &outputs, 0);
    let made = g.run(&[&[1.0, 2.0, 9.0, 3.0, 5.0, 4.0, 0.0, 8.0]], 2).unwrap();
    assert_eq!(made, [vec![5.0, 9.0], vec![2.0, 0.0]]);
}

#[test]
fn padding_that_keeps_sizes_follows_from_them() {
    let mut g = Made::default();
    let x = g.floats(&[1, 1, 4, 1]);
    let w = g.value(XnnType::F32, &[1, 1, 3, 1], Q::None, None);
    let y = g.floats(&[1, 1, 2, 1]);
    g.constants.push(Constant::Inline(f32s(&[1.0, 10.0, 100.0]).into()));
    g.values[w].constant = Some(0);
    let numbers = XnnConvolution {
        pads: [0; 4],
        kernel: [1, 3],
        strides: [1, 2],
        dilations: [1; 2],
        group_inputs: 1,
        group_outputs: 1,
        groups: 1,
        more: [0; 2],
    };
    g.node(Op::Convolution(numbers), &[Some(x), Some(w), None], &[y], 4);
    // TensorFlow pads behind first: one place here, none before.
    assert_eq!(g.run(&[&[1.0, 2.0, 3.0, 4.0]], 1).unwrap(), [[321.0, 43.0]]);
}

#[test]
fn attention_with_factors_and_a_mask() {
    let mut g = Made::default();
    let [q, k, v, f] = [[1, 1, 1, 2], [1, 1, 2, 2], [1, 1, 2, 2], [0, 0, 0, 0]].map(|dims| match dims {
        [0, ..] => g.floats(&[2]),
        dims => g.floats(&dims),
    });
    let (m, y) = (g.floats(&[1, 2]), g.floats(&[1, 1, 1, 2]));
    g.node(Op::Attention, &[Some(q), Some(k), Some(v), Some(f), Some(m)], &[y], 0);
    let inputs: [&[f64]; 5] =
        [&[1.0, 1.0], &[1.0, 0.0, 0.0, 1.0], &[1.0, 2.0, 3.0, 4.0], &[2.0, 3.0], &[1.0, 0.0]];
    // Scores 2 + 1 and 3: the mean of the values.
    assert_eq!(g.run(&inputs, 1).unwrap(), [[2.0, 3.0]]);
}

#[test]
fn products_read_weights_either_way() {
    let mut g = Made::default();
    let (x, y) = (g.floats(&[1, 3]), 2);
    let w = g.value(XnnType::F32, &[3, 2], Q::None, Some(&f32s(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])));
    assert_eq!(g.floats(&[1, 2]), y);
    g.node(Op::FullyConnected, &[Some(x), Some(w), None], &[y], 1);
    assert_eq!(g.run(&[&[1.0, 10.0, 100.0]], 1).unwrap(), [[531.0, 642.0]]);
    // Rows of a tensor that is seen as a matrix.
    let mut g = Made::default();
    let x = g.floats(&[2, 2, 1]);
    let w = g.value(XnnType::F32, &[1, 2], Q::None, Some(&f32s(&[1.0, 10.0])));
    let y = g.floats(&[2, 1]);
    g.node(Op::FullyConnected, &[Some(x), Some(w), None], &[y], 4);
    assert_eq!(g.run(&[&[1.0, 2.0, 3.0, 4.0]], 1).unwrap(), [[21.0, 43.0]]);
}

/// Rows of dynamically quantized numbers times weights.
fn dynamic_product(datatype: XnnType, dims: [u32; 2], quantization: Q, bytes: &[u8], x: &[f64]) -> Vec<f64> {
    let mut g = Made::default();
    let input = g.floats(&[1, dims[1]]);
    let rows = g.value(XnnType::I8, &[1, dims[1]], Q::Dynamic { dims: 1 }, None);
    let w = g.value(datatype, &dims, quantization, Some(bytes));
    let y = g.floats(&[1, dims[0]]);
    g.node(Op::Convert, &[Some(input)], &[rows], 0);
    g.node(Op::FullyConnected, &[Some(rows), Some(w), None], &[y], 0);
    g.run(&[x], 1).unwrap().swap_remove(0)
}

#[test]
fn weights_of_four_bits_in_rows_of_any_length() {
    // 255 steps of 1, so that numbers are exact: 3 columns, the last in a byte of its own.
    let x = [-128.0, 127.0, 3.0];
    let rows = [0x19, 0x0F, 0x80, 0x07];
    let made = dynamic_product(XnnType::U4, [2, 3], listed(&[0.5, 2.0], 0), &rows, &x);
    // Weights 1, -7, 7 and -8, 0, -1.
    assert_eq!(made, [0.5 * (-128.0 - 889.0 + 21.0), 2.0 * (1024.0 - 3.0)]);
    // Blocks of 32, which kernels take as they lie, against single ones.
    let mut x = vec![0.0; 64];
    (x[0], x[1], x[40]) = (-128.0, 127.0, 5.0);
    let mut bytes = [0x88; 32];
    (bytes[0], bytes[20]) = (0xF9, 0x8A);
    let blocks = Q::Blocks { scales: XnnScales::Listed(vec![0.5, 4.0]), size: 32 };
    let made = dynamic_product(XnnType::U4, [1, 64], blocks, &bytes, &x);
    assert_eq!(made, [0.5 * (-128.0 + 7.0 * 127.0) + 4.0 * 2.0 * 5.0]);
    let made = dynamic_product(XnnType::U4, [1, 64], listed(&[0.5], 0), &bytes, &x);
    assert_eq!(made, [0.5 * (-128.0 + 7.0 * 127.0 + 10.0)]);
}

#[test]
fn numbers_of_other_scales_are_rounded_to_that_of_the_result() {
    let mut g = Made::default();
    let a = g.value(XnnType::I8, &[1, 2], scale(0.5, 1), None);
    let b = g.value(XnnType::U8, &[1, 2], scale(1.0, 128), None);
    let y = g.value(XnnType::I8, &[1, 4], scale(1.0, -3), None);
    g.node(Op::Concatenate { axis: 1 }, &[Some(a), Some(b)], &[y], 0);
    // 4.5 is rounded to even.
    assert_eq!(g.run(&[&[10.0, -127.0], &[0.0, 255.0]], 1).unwrap(), [[1.0, -67.0, -128.0, 124.0]]);
    let mut g = Made::default();
    let x = g.value(XnnType::I8, &[3], scale(0.5, 1), None);
    let y = g.value(XnnType::I8, &[3], scale(0.25, 0), None);
    g.node(Op::Unary(XnnUnary::Clamp), &[Some(x)], &[y], 0);
    g.nodes[0].limits = Some([-1.0, f32::INFINITY]);
    assert_eq!(g.run(&[&[3.0, -7.0, 127.0]], 1).unwrap(), [[4.0, -4.0, 127.0]]);
}

#[test]
fn sizes_of_none_follow_from_the_others() {
    let mut g = Made::default();
    let (x, part, y) = (g.floats(&[2, 4]), g.floats(&[2, 3]), g.floats(&[3, 2]));
    g.node(Op::Slice { starts: vec![0, 1], sizes: vec![2, 0] }, &[Some(x)], &[part], 0);
    g.node(Op::Reshape { dims: vec![0, 2] }, &[Some(part)], &[y], 0);
    let made = g.run(&[&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]], 1).unwrap();
    assert_eq!(made, [[1.0, 2.0, 3.0, 5.0, 6.0, 7.0]]);
}

#[test]
fn images_are_not_moved_between_operators_that_take_them_channels_first() {
    let mut g = Made::default();
    let x = g.floats(&[1, 2, 4, 4]);
    let last = g.floats(&[1, 4, 4, 2]);
    let pooled = g.floats(&[1, 2, 2, 2]);
    let moved = g.floats(&[1, 2, 2, 2]);
    let y = g.floats(&[1, 2, 2, 2]);
    let numbers = XnnPool { pads: [0; 4], kernel: [2, 2], strides: [2, 2], dilations: [1; 2] };
    g.node(Op::Transpose { order: vec![0, 2, 3, 1] }, &[Some(x)], &[last], 0);
    g.node(Op::MaxPool(numbers), &[Some(last)], &[pooled], 0);
    g.node(Op::Binary(XnnBinary::Add), &[Some(pooled), Some(pooled)], &[moved], 0);
    g.node(Op::Transpose { order: vec![0, 3, 1, 2] }, &[Some(moved)], &[y], 0);
    let port = |value| XnnPort { value, argument: value };
    let graph = XnnGraph {
        inputs: vec![port(0)],
        outputs: vec![port(y)],
        nodes: g.nodes,
        values: g.values,
        constants: Vec::new(),
    };
    let mut builder = Builder::new();
    let input = builder.input("x", element_of(XnnType::F32), &[1, 2, 4, 4]).unwrap();
    let held = vec![Held::plain(&builder, input)];
    let order = vec![vec![0, 1, 2, 3]];
    let (builder, _) = import(builder, &Program::default(), &graph, held, &order, "the test").unwrap();
    assert_eq!(builder.nodes(), 2, "a pool and a sum");
}

/// A product of integers whose weights and input have zero points.
fn offset_product(input: (XnnType, i32), weights: i32) -> Result<Vec<Vec<f64>>, CompileError> {
    let mut g = Made::default();
    let x = g.value(input.0, &[1, 2], scale(0.5, input.1), None);
    let w = g.value(XnnType::I8, &[1, 2], scale(1.0, weights), Some(&[3, 5]));
    let y = g.value(XnnType::I8, &[1, 1], scale(1.0, 4), None);
    g.node(Op::FullyConnected, &[Some(x), Some(w), None], &[y], 0);
    g.run(&[&[10.0, 20.0]], 1)
}

#[test]
fn zero_points_that_xnnpack_has_not_are_refused() {
    assert_eq!(offset_product((XnnType::I8, 2), 0).unwrap(), [[12.0 + 45.0 + 4.0]]);
    let said = |made: Result<Vec<Vec<f64>>, CompileError>| made.unwrap_err().to_string();
    let text = said(offset_product((XnnType::I8, 2), -7));
    assert!(text.contains("value 1, i8[1, 2], the weights of"), "{text}");
    assert!(text.contains("has the zero point -7"), "{text}");
    // Codes without a sign that the exporter calls codes with one.
    let text = said(offset_product((XnnType::I8, 129), 0));
    assert!(text.contains("value 0, i8[1, 2], has the zero point 129"), "{text}");
    assert!(text.contains("codes without a sign"), "{text}");
    assert!(said(offset_product((XnnType::U8, -1), 0)).contains("not between 0 and 255"));
    // The weights of convolutions, too.
    let mut g = Made::default();
    let x = g.value(XnnType::I8, &[1, 2, 2, 1], scale(1.0, 0), None);
    let w = g.value(XnnType::I8, &[1, 1, 1, 1], scale(1.0, 3), Some(&[2]));
    let y = g.value(XnnType::I8, &[1, 2, 2, 1], scale(1.0, 0), None);
    let one = [1, 1];
    let numbers = XnnConvolution {
        pads: [0; 4],
        kernel: one,
        strides: one,
        dilations: one,
        group_inputs: 1,
        group_outputs: 1,
        groups: 1,
        more: [0, 0],
    };
    g.node(Op::Convolution(numbers), &[Some(x), Some(w), None], &[y], 0);
    assert!(said(g.run(&[&[1.0; 4]], 1)).contains("has the zero point 3"));
}

#[test]
fn codes_of_another_sign_are_not_taken() {
    let mut g = Made::default();
    let x = g.value(XnnType::I8, &[2], scale(0.5, 90), None);
    let y = g.value(XnnType::I8, &[2], scale(0.5, 90), None);
    g.node(Op::Copy, &[Some(x)], &[y], 0);
    let port = |value| XnnPort { value, argument: value };
    let (inputs, outputs) = (vec![port(x)], vec![port(y)]);
    let graph = XnnGraph { inputs, outputs, nodes: g.nodes, values: g.values, constants: Vec::new() };
    let mut builder = Builder::new();
    let input = builder.input("x", halite_ops::DType::U8.into(), &[2]).unwrap();
    let held = vec![Held::plain(&builder, input)];
    let made = import(builder, &Program::default(), &graph, held, &[vec![0]], "the test");
    let text = made.unwrap_err().to_string();
    assert!(text.contains("the zero point 90 and is i8, and u8 is handed in"), "{text}");
}

#[test]
fn graphs_that_are_wrong_say_how() {
    let said = |g: Made, inputs: &[&[f64]]| g.run(inputs, 1).unwrap_err().to_string();
    let mut g = Made::default();
    let (x, y) = (g.floats(&[2]), g.floats(&[2]));
    g.node(Op::Unknown(77), &[Some(x)], &[y], 0);
    let text = said(g, &[&[1.0, 2.0]]);
    assert!(text.contains("XNNPACK operator 77") && text.contains("node 0 of the test"), "{text}");
    let mut g = Made::default();
    let (x, early, y) = (g.floats(&[2]), g.floats(&[2]), g.floats(&[2]));
    g.node(Op::Binary(XnnBinary::Add), &[Some(x), Some(early)], &[y], 0);
    let text = said(g, &[&[1.0, 2.0]]);
    assert!(text.contains("value 1 is read before it is computed"), "{text}");
    let mut g = Made::default();
    let (x, y) = (g.floats(&[2]), g.floats(&[3]));
    g.node(Op::Unary(XnnUnary::Abs), &[Some(x)], &[y], 0);
    let text = said(g, &[&[1.0, 2.0]]);
    assert!(text.contains("the result has the sizes [2]; the file says [3]"), "{text}");
    let mut g = Made::default();
    let (x, y) = (g.floats(&[1, 1, 2, 1]), g.floats(&[1, 1, 2, 1]));
    let numbers = XnnPool { pads: [0; 4], kernel: [1, 0], strides: [1, 1], dilations: [1; 2] };
    g.node(Op::MaxPool(numbers), &[Some(x)], &[y], 0);
    let text = said(g, &[&[1.0, 2.0]]);
    assert!(text.contains("a window of [1, 0]"), "{text}");
}
