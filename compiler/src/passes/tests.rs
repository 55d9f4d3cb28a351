//! Graphs compute the same before and after the passes, with fewer nodes.

use halite_ops::{
    Activation, DType, Operation, Values,
    blocks::BlockFormat,
    conv2d::Conv2d,
    expression::Function,
    line_codes::{CodeRule, LineCodes},
    matmul::MatMul,
    norm::{Norm, NormKind},
};

use super::{PASSES, optimize};
use crate::{
    build::{Builder, Range, RowFormat, RowMatrix, Scores},
    graph::{Graph, NodeOp, TensorId, elements},
};

pub(super) fn floats(count: u64, seed: u64) -> Values {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from(((state >> 40) as f32) / (1u32 << 23) as f32) - 1.0
    };
    Values::Float((0..count).map(|_| f64::from(next() as f32)).collect())
}

pub(super) fn constant(b: &mut Builder, dims: &[u64], seed: u64) -> TensorId {
    b.values(DType::F32, dims, &floats(elements(dims), seed)).unwrap()
}

/// Weights of rows of 32, in blocks.
pub(super) fn block_weights(b: &mut Builder, rows: u64, seed: u8) -> RowMatrix {
    // A scale of 1/16, and codes of all signs.
    let block =
        |row: u8| [0, 0x2c].into_iter().chain((0..32).map(move |i: u8| (row + seed).wrapping_mul(i * 7 + 3)));
    let bytes: Vec<u8> = (0..rows as u8).flat_map(block).collect();
    b.row_matrix("weights", RowFormat::Blocks(BlockFormat::Q8_0), [rows, 32], &bytes.into()).unwrap()
}

fn conv(b: &mut Builder, x: TensorId, filters: u64, seed: u64) -> TensorId {
    let dims = b.dims(x).to_vec();
    let filter = [filters, dims[1], 3, 3];
    let text = format!(
        "conv2d:input={}x{}x{}x{},filter={}x{}x3x3,pads=1x1x1x1",
        dims[0], dims[1], dims[2], dims[3], filters, dims[1]
    );
    let weights = constant(b, &filter, seed);
    b.kernel1(
        Operation::parse(&text).unwrap(),
        &[x, weights],
        DType::F32.into(),
        &[dims[0], filters, dims[2], dims[3]],
    )
    .unwrap()
}

pub(super) fn norm(b: &mut Builder, x: TensorId, seed: u64) -> TensorId {
    let dims = b.dims(x).to_vec();
    let channels = dims[1];
    let plain = Norm::of_lines(NormKind::Batch, dims[0].into(), channels, 1e-5.into(), DType::F32);
    let spatial = (dims[2] * dims[3]).into();
    let operation = Operation::Norm(Norm { spatial, scale: true, bias: true, ..plain });
    let mean = constant(b, &[channels], seed);
    let variance = floats(channels, seed + 1).floats().iter().map(|v| v.abs() + 0.5).collect();
    let variance = b.values(DType::F32, &[channels], &Values::Float(variance)).unwrap();
    let (scale, bias) = (constant(b, &[channels], seed + 2), constant(b, &[channels], seed + 3));
    b.kernel1(operation, &[x, mean, variance, scale, bias], DType::F32.into(), &dims).unwrap()
}

/// Checks that results stay the same, and gives the graph after the passes.
pub(super) fn optimized(graph: Graph) -> Graph {
    let inputs: Vec<Values> = graph
        .inputs
        .iter()
        .enumerate()
        .map(|(i, p)| floats(graph.tensor(p.tensor).elements(), 77 + i as u64))
        .collect();
    let before = graph.evaluate(&inputs).unwrap();
    let ports = |graph: &Graph| -> Vec<_> {
        let tensors = graph.body.results.iter().map(|id| graph.tensor(*id));
        tensors.map(|tensor| (tensor.element, tensor.dims().to_vec())).collect()
    };
    let (mut graph, given) = (graph.clone(), ports(&graph));
    optimize(&mut graph).unwrap();
    graph.check().unwrap();
    assert_eq!(ports(&graph), given, "types and dimensions of results changed in\n{graph}");
    for ((before, after), (element, _)) in before.iter().zip(graph.evaluate(&inputs).unwrap()).zip(&given) {
        // What is fused is not rounded in between, so that 16 bits differ by the size of what cancels out.
        let most = before.floats().iter().fold(1.0, |most: f64, a| most.max(a.abs()));
        let is_half = element.storage() == DType::F16;
        for (a, b) in before.floats().iter().zip(after.floats()) {
            let bound = if is_half { 4e-3 * most } else { 1e-4 * (1.0 + a.abs()) };
            assert!((a - b).abs() <= bound, "{a} became {b} in\n{graph}");
        }
    }
    graph
}

pub(super) fn kernels(graph: &Graph) -> Vec<&Operation> {
    let of = |node: &'_ crate::graph::Node| matches!(node.op, NodeOp::Operation(_));
    let nodes = graph.body.nodes.iter().filter(|n| of(n));
    nodes
        .filter_map(|n| if let NodeOp::Operation(operation) = &n.op { Some(operation) } else { None })
        .collect()
}

/// Convolutions of the graph, and the operations on what is not constant.
fn convs(graph: &Graph) -> Vec<&Conv2d> {
    kernels(graph)
        .into_iter()
        .filter_map(|o| if let Operation::Conv2d(c) = o { Some(c) } else { None })
        .collect()
}

#[test]
fn normalization_and_rectifiers_go_into_convolutions() {
    let mut b = Builder::new();
    let x = b.input("x", DType::F32.into(), &[1, 3, 5, 4]).unwrap();
    let y = conv(&mut b, x, 4, 1);
    let y = norm(&mut b, y, 5);
    let y = b.unary(Function::Relu, y).unwrap();
    b.output("y", y);
    let graph = optimized(b.finish().unwrap());
    let [conv] = convs(&graph)[..] else { panic!("{graph}") };
    assert!(conv.bias && conv.activation == Activation::Relu, "{graph}");
    let last = graph.body.nodes.last().unwrap();
    assert!(matches!(&last.op, NodeOp::Operation(Operation::Conv2d(_))), "{graph}");
    // Factor and bias, filter, convolution.
    assert_eq!(kernels(&graph).len(), 3, "{graph}");
}

#[test]
fn biases_and_gates_go_into_convolutions() {
    let mut b = Builder::new();
    let x = b.input("x", DType::F32.into(), &[2, 3, 5, 4]).unwrap();
    let y = conv(&mut b, x, 4, 1);
    let bias = constant(&mut b, &[1, 4, 1, 1], 9);
    let y = b.binary(Function::Add, bias, y).unwrap();
    let gate = b.unary(Function::Sigmoid, y).unwrap();
    let y = b.binary(Function::Mul, y, gate).unwrap();
    b.output("y", y);
    let graph = optimized(b.finish().unwrap());
    let kernels = kernels(&graph);
    let [Operation::Conv2d(conv)] = kernels[..] else { panic!("{graph}") };
    assert!(conv.bias && conv.activation == Activation::Silu, "{graph}");
}

#[test]
fn limits_go_into_convolutions() {
    let limits = [(Function::Max, 0.0), (Function::Min, 6.0)];
    let after = |limits: &[(Function, f64)]| {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[1, 3, 5, 4]).unwrap();
        let mut y = conv(&mut b, x, 4, 1);
        for (function, limit) in limits {
            let limit = b.float(DType::F32, *limit).unwrap();
            y = b.binary(*function, y, limit).unwrap();
        }
        b.output("y", y);
        optimized(b.finish().unwrap())
    };
    let six = [&limits[..], &[limits[1], limits[0]]].map(after);
    for graph in six {
        let [Operation::Conv2d(conv)] = kernels(&graph)[..] else { panic!("{graph}") };
        assert_eq!(conv.activation, Activation::Relu6, "{graph}");
    }
    let graph = after(&limits[..1]);
    let [Operation::Conv2d(conv)] = kernels(&graph)[..] else { panic!("{graph}") };
    assert_eq!(conv.activation, Activation::Relu, "{graph}");
    let graph = after(&[limits[0], (Function::Min, 1.0)]);
    assert!(kernels(&graph).len() == 2 && convs(&graph)[0].activation == Activation::Relu, "{graph}");
}

#[test]
fn what_others_read_stays() {
    let mut b = Builder::new();
    let x = b.input("x", DType::F32.into(), &[1, 3, 5, 4]).unwrap();
    let y = conv(&mut b, x, 3, 1);
    let rectified = b.unary(Function::Relu, y).unwrap();
    let sum = b.binary(Function::Add, y, rectified).unwrap();
    b.output("sum", sum);
    b.output("conv", y);
    let graph = optimized(b.finish().unwrap());
    assert_eq!(convs(&graph)[0].activation, Activation::None, "{graph}");
    assert_eq!(kernels(&graph).len(), 2, "{graph}");
}

#[test]
fn residuals_go_into_the_convolution_behind_them() {
    let mut b = Builder::new();
    let x = b.input("x", DType::F32.into(), &[1, 3, 5, 4]).unwrap();
    let y = conv(&mut b, x, 3, 1);
    let y = norm(&mut b, y, 2);
    let y = b.unary(Function::Relu, y).unwrap();
    let z = conv(&mut b, y, 3, 11);
    let z = norm(&mut b, z, 12);
    let sum = b.binary(Function::Add, z, x).unwrap();
    let sum = b.unary(Function::Relu, sum).unwrap();
    b.output("sum", sum);
    let graph = optimized(b.finish().unwrap());
    let last = graph.body.nodes.last().unwrap();
    let NodeOp::Operation(Operation::Conv2d(last)) = &last.op else { panic!("{graph}") };
    assert!(last.bias && last.residual && last.activation == Activation::Relu, "{graph}");
    let first: Vec<_> = convs(&graph).iter().map(|c| (c.bias, c.residual)).collect();
    assert_eq!(first, [(true, false), (true, true)], "{graph}");
}

#[test]
fn chains_become_one_kernel_through_views_and_broadcasts() {
    let mut b = Builder::new();
    let x = b.input("x", DType::F32.into(), &[4, 1, 6]).unwrap();
    let row = b.input("row", DType::F32.into(), &[6]).unwrap();
    let column = constant(&mut b, &[4, 1, 1], 3);
    let half = b.float(DType::F32, 0.5).unwrap();
    let y = b.binary(Function::Add, x, row).unwrap();
    let y = b.reshape(y, &[4, 6]).unwrap();
    let y = b.binary(Function::Mul, y, half).unwrap();
    let y = b.reshape(y, &[4, 1, 6]).unwrap();
    let y = b.binary(Function::Max, column, y).unwrap();
    let zero = b.float(DType::F32, 0.0).unwrap();
    let above = b.compare(Function::Gt, y, zero).unwrap();
    let y = b.select(above, y, row).unwrap();
    b.output("y", y);
    let graph = optimized(b.finish().unwrap());
    let kernels = kernels(&graph);
    // The maximum is read twice, by the comparison and the selection.
    assert!(kernels.len() <= 2, "{graph}");
    assert!(graph.body.nodes.iter().all(|n| !matches!(n.op, NodeOp::View)), "{graph}");
}

#[test]
fn equal_and_unused_nodes_go() {
    let mut b = Builder::new();
    let x = b.input("x", DType::F32.into(), &[6]).unwrap();
    let one = b.unary(Function::Exp, x).unwrap();
    let other = b.unary(Function::Exp, x).unwrap();
    b.unary(Function::Log, x).unwrap();
    let y = b.concat(&[one, other], 0).unwrap();
    b.output("y", y);
    let graph = optimized(b.finish().unwrap());
    assert_eq!(kernels(&graph).len(), 2, "{graph}");
}

#[test]
fn the_same_elements_with_other_dimensions_are_views() {
    let mut b = Builder::new();
    let x = b.input("x", DType::F32.into(), &[1, 1, 6]).unwrap();
    let x = b.unary(Function::Exp, x).unwrap();
    let part = b.slice(x, &[Range::all(1), Range::all(1), Range { start: 2, step: 1, count: 4 }]).unwrap();
    let at = b.ints_constant(&[0]).unwrap();
    let first = b.reshape(at, &[]).unwrap();
    let rows = b.gather(part, first, 1).unwrap();
    let line = b.gather(rows, first, 0).unwrap();
    let more = b.unary(Function::Sqrt, rows).unwrap();
    for (name, id) in [("part", part), ("rows", rows), ("line", line), ("more", more)] {
        b.output(name, id);
    }
    let graph = optimized(b.finish().unwrap());
    assert!(kernels(&graph).len() <= 4, "{graph}");
}

#[test]
fn half_precision_is_near_and_keeps_the_ports() {
    let mut b = Builder::new();
    let x = b.input("x", DType::F32.into(), &[1, 3, 5, 4]).unwrap();
    let y = conv(&mut b, x, 4, 1);
    let large = b.float(DType::F32, 1e6).unwrap();
    let kept = b.binary(Function::Mul, y, large).unwrap();
    let y = b.unary(Function::Tanh, y).unwrap();
    let y = b.reshape(y, &[4, 20]).unwrap();
    b.output("y", y);
    b.output("kept", kept);
    let mut graph = b.finish().unwrap();
    let inputs = [floats(60, 3)];
    let before = graph.evaluate(&inputs).unwrap();
    let count = super::precision::run(&mut graph, super::Precision::F16, &crate::Control::new()).unwrap();
    graph.check().unwrap();
    assert_eq!((count.half, count.kept), (2, 1), "{graph}");
    let after = graph.evaluate(&inputs).unwrap();
    for (a, b) in before[0].floats().iter().zip(after[0].floats()) {
        assert!((a - b).abs() < 1e-2 && a != &b, "{a} became {b}");
    }
    for (a, b) in before[1].floats().iter().zip(after[1].floats()) {
        assert!((a - b).abs() < 1e-2 * 1e6, "{a} became {b}");
    }
    optimize(&mut graph).unwrap();
}

#[test]
fn scales_of_codes_stay_floats_of_32_bits_in_half_precision() {
    let mut b = Builder::new();
    let x = b.input("x", DType::F32.into(), &[3, 32]).unwrap();
    let rule = LineCodes { codes: Some(DType::I8), ..LineCodes::new(CodeRule::Symmetric, -128, 127) };
    let tanh = b.unary(Function::Tanh, x).unwrap();
    let made = b.codes_of_lines(tanh, &[1], rule).unwrap().unwrap();
    let codes = b.cast(made[2], DType::F32).unwrap();
    let y = b.binary(Function::Mul, codes, made[0]).unwrap();
    b.output("y", y);
    let mut graph = b.finish().unwrap();
    let inputs = [floats(96, 3)];
    let before = graph.evaluate(&inputs).unwrap();
    let count = super::precision::run(&mut graph, super::Precision::F16, &crate::Control::new()).unwrap();
    graph.check().unwrap();
    assert!(count.half >= 2, "{graph}");
    let after = graph.evaluate(&inputs).unwrap();
    let (before, after) = (before[0].floats(), after[0].floats());
    assert!(before.iter().zip(&after).all(|(a, b)| (a - b).abs() < 2e-2), "{graph}");
}

#[test]
fn models_of_16_bits_compute_with_32_and_keep_their_ports() {
    for (narrow, bytes) in [(DType::F16, [0x00, 0x3c]), (DType::BF16, [0x80, 0x3f])] {
        let mut b = Builder::new();
        let x = b.input("x", narrow.into(), &[3, 4]).unwrap();
        let weights = b.constant("weights", narrow.into(), &[4, 5], bytes.repeat(20).into()).unwrap();
        let y = b.matmul(x, weights).unwrap();
        let y = b.reshape(y, &[15]).unwrap();
        let y = b.unary(Function::Tanh, y).unwrap();
        b.output("y", y);
        let mut graph = b.finish().unwrap();
        let inputs = [Values::from_bytes(narrow, &bytes.repeat(12))];
        let before = graph.evaluate(&inputs).unwrap();
        let count = super::precision::run(&mut graph, super::Precision::F32, &crate::Control::new()).unwrap();
        graph.check().unwrap();
        assert!(count.half >= 2 && count.kept == 0, "{graph}");
        assert_eq!(graph.tensor(graph.inputs[0].tensor).element, narrow.into(), "{graph}");
        for operation in kernels(&graph).iter().filter(|o| !matches!(o, Operation::Elementwise(_))) {
            assert!(operation.inputs().iter().all(|tensor| tensor.dtype == DType::F32), "{operation}");
        }
        let after = graph.evaluate(&inputs).unwrap();
        for (a, b) in before[0].floats().iter().zip(after[0].floats()) {
            assert!((a - b).abs() < 1e-2, "{a} became {b}");
        }
        optimize(&mut graph).unwrap();
    }
}

#[test]
fn attention_reads_caches_of_16_bits_as_they_are() {
    let mut b = Builder::new();
    let half = |b: &mut Builder, name: &str, dims: [u64; 4]| b.input(name, DType::F16.into(), &dims).unwrap();
    let q = half(&mut b, "q", [1, 4, 1, 32]);
    let caches = ["key", "value"].map(|name| {
        let (new, cache) =
            (half(&mut b, &format!("new_{name}"), [1, 2, 1, 32]), half(&mut b, name, [1, 2, 8, 32]));
        let start = b.input(&format!("{name}_start"), DType::I32.into(), &[1]).unwrap();
        b.append(new, cache, start).unwrap()
    });
    let made = b.attention([q, caches[0], caches[1]], None, Scores::default()).unwrap();
    b.output("made", made);
    let mut graph = b.finish().unwrap();
    super::precision::run(&mut graph, super::Precision::F32, &crate::Control::new()).unwrap();
    graph.check().unwrap();
    let attends = |o: &&Operation| matches!(o, Operation::Attention(_)) && o.inputs()[1].dtype == DType::F16;
    assert_eq!(kernels(&graph).iter().filter(|o| attends(o)).count(), 1, "{graph}");
    // Nothing converts a cache.
    assert!(kernels(&graph).iter().all(|o| !matches!(o, Operation::Elementwise(_))), "{graph}");
}

/// A product of rows and constant columns.
fn product(b: &mut Builder, x: TensorId, columns: u64, seed: u64) -> TensorId {
    let depth = *b.dims(x).last().unwrap();
    let weights = constant(b, &[depth, columns], seed);
    b.matmul(x, weights).unwrap()
}

fn products(graph: &Graph) -> Vec<&MatMul> {
    kernels(graph)
        .into_iter()
        .filter_map(|o| if let Operation::MatMul(product) = o { Some(product) } else { None })
        .collect()
}

#[test]
fn products_take_over_what_is_added_and_functions() {
    for (function, activation) in [
        (Function::Relu, Activation::Relu),
        (Function::Tanh, Activation::Tanh),
        (Function::Gelu, Activation::Gelu),
        (Function::GeluTanh, Activation::GeluTanh),
        (Function::Sigmoid, Activation::Sigmoid),
        (Function::Silu, Activation::Silu),
    ] {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[2, 3, 5]).unwrap();
        let other = b.input("other", DType::F32.into(), &[2, 3, 7]).unwrap();
        let y = product(&mut b, x, 7, 1);
        let y = b.binary(Function::Add, other, y).unwrap();
        let bias = constant(&mut b, &[7], 3);
        let y = b.binary(Function::Add, y, bias).unwrap();
        let y = b.unary(function, y).unwrap();
        b.output("y", y);
        let graph = optimized(b.finish().unwrap());
        let [product] = products(&graph)[..] else { panic!("{graph}") };
        assert!(product.bias && product.residual && product.activation == activation, "{graph}");
        assert_eq!(kernels(&graph).len(), 1, "{graph}");
        let node = graph.body.nodes.last().unwrap();
        let dims: Vec<_> = node.inputs.iter().map(|id| graph.tensor(*id).dims().to_vec()).collect();
        assert_eq!(dims[2..], [vec![7], vec![2, 3, 7]], "{graph}");
    }
}

#[test]
fn gelu_in_parts_is_known_by_its_curve() {
    let mut b = Builder::new();
    let x = b.input("x", DType::F32.into(), &[4, 5]).unwrap();
    let y = product(&mut b, x, 6, 1);
    let scalar =
        |b: &mut Builder, value: f64| b.values(DType::F32, &[], &Values::Float(vec![value])).unwrap();
    let (root, one, half) = (scalar(&mut b, 2f64.sqrt()), scalar(&mut b, 1.0), scalar(&mut b, 0.5));
    let z = b.binary(Function::Div, y, root).unwrap();
    let z = b.unary(Function::Erf, z).unwrap();
    let z = b.binary(Function::Add, z, one).unwrap();
    let z = b.binary(Function::Mul, y, z).unwrap();
    let z = b.binary(Function::Mul, z, half).unwrap();
    b.output("z", z);
    let graph = optimized(b.finish().unwrap());
    assert!(matches!(products(&graph)[..], [p] if p.activation == Activation::Gelu), "{graph}");
    assert_eq!(kernels(&graph).len(), 1, "{graph}");
}

#[test]
fn a_curve_that_is_no_activation_stays_beside_the_product() {
    let mut b = Builder::new();
    let x = b.input("x", DType::F32.into(), &[4, 5]).unwrap();
    let y = product(&mut b, x, 6, 1);
    let factor = b.values(DType::F32, &[], &Values::Float(vec![1.01])).unwrap();
    let z = b.unary(Function::Tanh, y).unwrap();
    let z = b.binary(Function::Mul, z, factor).unwrap();
    b.output("z", z);
    let graph = optimized(b.finish().unwrap());
    assert!(matches!(products(&graph)[..], [p] if p.activation == Activation::None), "{graph}");
    assert_eq!(kernels(&graph).len(), 2, "{graph}");
}

#[test]
fn residuals_go_into_one_of_two_convolutions() {
    let mut b = Builder::new();
    let [x, other] = ["x", "other"].map(|name| b.input(name, DType::F32.into(), &[1, 4, 5, 6]).unwrap());
    let (left, right) = (conv(&mut b, x, 8, 1), conv(&mut b, other, 8, 2));
    let y = b.binary(Function::Add, left, right).unwrap();
    let y = b.unary(Function::Relu, y).unwrap();
    let next = conv(&mut b, y, 8, 3);
    let y = b.binary(Function::Add, next, y).unwrap();
    b.output("y", y);
    let graph = optimized(b.finish().unwrap());
    let found: Vec<_> = convs(&graph).iter().map(|c| (c.residual, c.activation)).collect();
    let expected = [(false, Activation::None), (true, Activation::Relu), (true, Activation::None)];
    assert_eq!(found, expected, "{graph}");
    assert_eq!(kernels(&graph).len(), 3, "{graph}");
}

#[test]
fn what_is_read_twice_or_broadcast_is_no_residual() {
    let mut b = Builder::new();
    let x = b.input("x", DType::F32.into(), &[1, 4, 5, 6]).unwrap();
    let twice = conv(&mut b, x, 8, 1);
    let doubled = b.binary(Function::Add, twice, twice).unwrap();
    let wide = b.input("wide", DType::F32.into(), &[2, 8, 5, 6]).unwrap();
    let y = conv(&mut b, x, 8, 2);
    let y = b.binary(Function::Add, y, wide).unwrap();
    let read = conv(&mut b, x, 8, 3);
    let sum = b.binary(Function::Add, read, doubled).unwrap();
    b.output("sum", sum);
    b.output("read", read);
    b.output("y", y);
    let graph = optimized(b.finish().unwrap());
    assert!(convs(&graph).iter().all(|c| !c.residual), "{graph}");
}

#[test]
fn the_page_lists_all_passes_in_their_order() {
    let page = include_str!("../../../docs/reference/compile-module.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let told: Vec<&str> =
        rows.map(|(name, _)| name).filter(|name| PASSES.iter().any(|p| p.name == *name)).collect();
    let names: Vec<&str> = PASSES.iter().map(|pass| pass.name).collect();
    assert_eq!(told, names);
}
