//! Operations between transposes that follow one another: what turns the result of one turns the input of the next.

use halite_ops::{DType, Operation, expression::Function};

use crate::{
    build::Builder,
    graph::{ElementType, Graph, TensorId},
    passes::tests::{constant, kernels, optimized},
};

const F32: ElementType = ElementType::Of(DType::F32);

fn turned(b: &mut Builder, x: TensorId) -> TensorId {
    b.transpose(x, &[0, 2, 1]).unwrap()
}

/// A product of the last dimension with constants, and a function behind it.
fn product(b: &mut Builder, x: TensorId, columns: u64, seed: u64) -> TensorId {
    let rows = b.dims(x)[2];
    let weights = constant(b, &[rows, columns], seed);
    let made = b.matmul(x, weights).unwrap();
    b.unary(Function::Relu, made).unwrap()
}

fn finished(mut b: Builder, result: TensorId) -> Graph {
    b.output("y", result);
    optimized(b.finish().unwrap())
}

#[test]
fn products_between_transposes_one_after_the_other() {
    for count in 2..5 {
        let mut b = Builder::new();
        let x = b.input("x", F32, &[2, 8, 16]).unwrap();
        let mut x = turned(&mut b, x);
        for step in 0..count {
            x = product(&mut b, x, 6 + 4 * step, step);
            x = turned(&mut b, x);
        }
        let graph = finished(b, x);
        let convolutions = kernels(&graph).iter().filter(|op| matches!(op, Operation::Conv1d(_))).count();
        assert!(convolutions > 0, "{graph}");
    }
}

#[test]
fn a_convolution_of_single_channels_behind_a_product_between_transposes() {
    let mut b = Builder::new();
    let x = b.input("x", F32, &[1, 8, 16]).unwrap();
    let x = turned(&mut b, x);
    let x = product(&mut b, x, 8, 1);
    let x = turned(&mut b, x);
    let x = b.reshape(x, &[1, 8, 4, 4]).unwrap();
    let filter = constant(&mut b, &[8, 1, 3, 3], 2);
    let text = "conv2d:input=1x8x4x4,filter=8x1x3x3,pads=1x1x1x1,groups=8";
    let x = b.kernel1(Operation::parse(text).unwrap(), &[x, filter], F32, &[1, 8, 4, 4]).unwrap();
    let x = b.reshape(x, &[1, 8, 16]).unwrap();
    let x = turned(&mut b, x);
    finished(b, x);
}
