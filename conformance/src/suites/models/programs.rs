//! Programs for our compiler that exercise each of its parts, and inputs for them.

use halite_compiler::{
    CompileError, Function, Program,
    build::{Builder, Range, Sliding},
    graph::{ElementType, Graph, NodeOp, TensorId},
};
use halite_ops::{DType, Values, expression, reduce::ReduceKind};

/// A program whose function `main` is called.
#[derive(Clone, Debug)]
pub struct Sample {
    /// For people.
    pub name: &'static str,
    /// The program.
    pub program: Program,
    /// Inputs of each call.
    pub calls: Vec<Vec<Values>>,
    /// The version that each call is for.
    versions: Vec<usize>,
}

impl Sample {
    /// The graph that a call is for.
    pub fn graph(&self, call: usize) -> &Graph {
        &self.program.functions[0].versions[self.versions[call]]
    }
}

type Made<T = ()> = Result<T, CompileError>;
type Make = fn(&mut Builder) -> Made;

const F32: ElementType = ElementType::Of(DType::F32);
const I64: ElementType = ElementType::Of(DType::I64);

/// Numbers that look random, between -1 and 1; integers between -50 and 50.
fn numbers(element: ElementType, count: u64, seed: u64) -> Values {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / f64::from(1 << 24)
    };
    match element {
        ElementType::Bool => Values::Int((0..count).map(|_| i64::from(next() < 0.5)).collect()),
        ElementType::Of(dtype) if dtype.is_float() => {
            Values::Float((0..count).map(|_| dtype.round(next() * 2.0 - 1.0)).collect())
        }
        ElementType::Of(_) => Values::Int((0..count).map(|_| (next() * 50.0) as i64).collect()),
    }
}

fn constant(b: &mut Builder, dims: &[u64]) -> Made<TensorId> {
    let count = dims.iter().product();
    b.values(DType::F32, dims, &numbers(F32, count, count + 7))
}

fn relu(b: &mut Builder, x: TensorId) -> Made<TensorId> {
    let zero = b.float(DType::F32, 0.0)?;
    b.binary(expression::Function::Max, x, zero)
}

fn graph(make: Make) -> Made<Graph> {
    let mut builder = Builder::new();
    make(&mut builder)?;
    builder.finish()
}

/// A case of one version, called twice with inputs that look random.
fn random(name: &'static str, make: Make) -> Made<Sample> {
    let graph = graph(make)?;
    let inputs = |seed: u64| {
        let tensors = graph.inputs.iter().map(|port| graph.tensor(port.tensor));
        (seed..).zip(tensors).map(|(seed, t)| numbers(t.element, t.elements(), seed)).collect()
    };
    let calls = vec![inputs(1), inputs(100)];
    Ok(Sample { name, program: Program::of("main", graph), calls, versions: vec![0, 0] })
}

/// A case of one version with these inputs.
fn with(name: &'static str, make: Make, calls: Vec<Vec<Values>>) -> Made<Sample> {
    let versions = vec![0; calls.len()];
    Ok(Sample { name, program: Program::of("main", graph(make)?), calls, versions })
}

/// All of them.
///
/// # Errors
/// The compiler's builder refuses one, which it should not.
pub fn all() -> Result<Vec<Sample>, CompileError> {
    let ints = |values: &[i64]| Values::Int(values.to_vec());
    let floats = |values: &[f64]| Values::Float(values.to_vec());
    [
        random("product, bias, rectifier", product),
        random("convolutions", convolutions),
        random("views and transpositions", views),
        random("constants packed at load", packed),
        random("channels of several images, cut out and joined", channels),
        random("parallel convolutions", parallel),
        random("independent branches", independent),
        random("several outputs, some of them twice", outputs),
        random("inputs and constants as outputs", passed_on),
        random("tensors without elements", empty),
        random("booleans and bytes that end within a word", bytes),
        random("64-bit integers", wide),
        sizes(),
        ranges(),
        values(),
        with(
            "branch",
            branch,
            vec![vec![ints(&[1]), floats(&[1.0, 2.0, 3.0])], vec![ints(&[0]), floats(&[1.0, 2.0, 3.0])]],
        ),
        with("loop with a known end", counted, vec![vec![floats(&[1.0, 0.5, -2.0])]]),
        with(
            "loop that the input ends",
            conditional,
            vec![
                vec![ints(&[10]), floats(&[1.0, 2.0])],
                vec![ints(&[0]), floats(&[1.0, 2.0])],
                vec![ints(&[3]), floats(&[0.1, 0.2])],
            ],
        ),
        with("branch in a loop", nested, vec![vec![floats(&[3.0])], vec![floats(&[100.0])]]),
    ]
    .into_iter()
    .collect()
}

fn product(b: &mut Builder) -> Made {
    let x = b.input("x", F32, &[5, 33])?;
    let (w, bias) = (constant(b, &[33, 17])?, constant(b, &[17])?);
    let y = b.matmul(x, w)?;
    let y = b.binary(expression::Function::Add, y, bias)?;
    let y = relu(b, y)?;
    b.output("y", y);
    Ok(())
}

fn convolutions(b: &mut Builder) -> Made {
    let x = b.input("image", F32, &[1, 3, 13, 12])?;
    let (first, bias) = (constant(b, &[8, 3, 3, 3])?, constant(b, &[8])?);
    let sliding = Sliding { strides: vec![2, 2], pads: vec![(1, 1); 2], ..Sliding::plain(2) };
    let y = b.conv(x, first, Some(bias), &sliding, 1)?;
    let y = relu(b, y)?;
    let depthwise = constant(b, &[8, 1, 3, 3])?;
    let y = b.conv(y, depthwise, None, &Sliding { pads: vec![(1, 1); 2], ..Sliding::plain(2) }, 8)?;
    let pointwise = constant(b, &[10, 8, 1, 1])?;
    let y = b.conv(y, pointwise, None, &Sliding::plain(2), 1)?;
    let y = b.reduce(ReduceKind::Mean, y, &[2, 3], false)?;
    let y = b.softmax(y, 1, false)?;
    b.output("probabilities", y);
    Ok(())
}

fn views(b: &mut Builder) -> Made {
    let x = b.input("x", F32, &[2, 3, 4])?;
    let flat = b.reshape(x, &[6, 4])?;
    let turned = b.transpose(flat, &[1, 0])?;
    let split = b.reshape(turned, &[4, 2, 3])?;
    let joined = b.concat(&[split, split], 2)?;
    let y = relu(b, joined)?;
    let y = b.reshape(y, &[24, 2])?;
    b.output("y", y);
    b.output("flat", flat);
    Ok(())
}

fn packed(b: &mut Builder) -> Made {
    let x = b.input("x", F32, &[3, 200])?;
    let w = constant(b, &[150, 200])?;
    let turned = b.transpose(w, &[1, 0])?;
    let scale = constant(b, &[200, 150])?;
    let scaled = b.binary(expression::Function::Mul, turned, scale)?;
    let y = b.matmul(x, scaled)?;
    let z = b.matmul(x, turned)?;
    let y = b.binary(expression::Function::Sub, y, z)?;
    b.output("y", y);
    b.output("scaled", scaled);
    Ok(())
}

/// What is cut out of each image is read where it lies, also by a concatenation, and what is joined is computed there: once more a part
/// of it, and in a larger one.
fn channels(b: &mut Builder) -> Made {
    let x = b.input("x", F32, &[3, 32, 5, 8])?;
    let cut = |b: &mut Builder, x, start, count| {
        b.slice(x, &[Range::all(3), Range { start, step: 1, count }, Range::all(5), Range::all(8)])
    };
    let all = relu(b, x)?;
    let (first, rest) = (cut(b, all, 0, 8)?, cut(b, all, 8, 24)?);
    let filter = constant(b, &[12, 8, 3, 3])?;
    let same = Sliding { pads: vec![(1, 1); 2], ..Sliding::plain(2) };
    let made = b.conv(first, filter, None, &same, 1)?;
    let joined = b.concat(&[made, rest], 1)?;
    let middle = cut(b, joined, 4, 16)?;
    let bent = b.unary(expression::Function::Neg, middle)?;
    let wide = b.concat(&[joined, bent, first], 1)?;
    let most = b.softmax(rest, 1, false)?;
    for (name, id) in [("wide", wide), ("joined", joined), ("most", most)] {
        b.output(name, id);
    }
    Ok(())
}

/// Branches of one image that are added: of three kernels, in groups or not, and normalizations of the image.
fn parallel(b: &mut Builder) -> Made {
    let x = b.input("x", F32, &[2, 8, 9, 6])?;
    let mut y = x;
    for groups in [1, 4, 8] {
        let mut branches = Vec::new();
        for (size, around) in [((1, 1), (0, 0)), ((3, 3), (1, 1)), ((3, 5), (1, 2))] {
            let filter = constant(b, &[8, 8 / groups, size.0, size.1])?;
            let bias = constant(b, &[8])?;
            let sliding =
                Sliding { pads: vec![(around.0, around.0), (around.1, around.1)], ..Sliding::plain(2) };
            branches.push(b.conv(y, filter, Some(bias), &sliding, groups)?);
        }
        let (mean, scale, beta) = (constant(b, &[8])?, constant(b, &[8])?, constant(b, &[8])?);
        let variance = b.values(DType::F32, &[8], &Values::Float(vec![0.5; 8]))?;
        branches.push(b.batch_norm(y, [mean, variance], Some(scale), Some(beta), 1e-3)?);
        let (first, rest) = branches.split_first().expect("there are four");
        let mut sum = *first;
        for branch in rest {
            sum = b.binary(expression::Function::Add, sum, *branch)?;
        }
        y = relu(b, sum)?;
    }
    b.output("y", y);
    Ok(())
}

fn independent(b: &mut Builder) -> Made {
    let x = b.input("x", F32, &[64, 64])?;
    let mut ends = Vec::new();
    for i in 0..4 {
        let c = b.float(DType::F32, f64::from(i) * 0.5)?;
        let y = b.binary(expression::Function::Add, x, c)?;
        let y = b.softmax(y, 1, false)?;
        let turned = b.transpose(y, &[1, 0])?;
        ends.push(b.matmul(y, turned)?);
    }
    let y = ends.into_iter().try_fold(x, |sum, end| b.binary(expression::Function::Add, sum, end))?;
    b.output("y", y);
    Ok(())
}

fn outputs(b: &mut Builder) -> Made {
    let x = b.input("x", F32, &[7])?;
    let one = b.float(DType::F32, 1.0)?;
    let y = b.binary(expression::Function::Add, x, one)?;
    let z = b.binary(expression::Function::Mul, y, y)?;
    let wide = b.reshape(y, &[7, 1])?;
    for (name, id) in [("y", y), ("z", z), ("again", y), ("wide", wide)] {
        b.output(name, id);
    }
    Ok(())
}

fn passed_on(b: &mut Builder) -> Made {
    let x = b.input("x", F32, &[2, 3])?;
    let unused = b.input("unused", ElementType::Of(DType::F16), &[5])?;
    let flags = b.input("flags", ElementType::Bool, &[5])?;
    let c = constant(b, &[4])?;
    let flat = b.reshape(x, &[6])?;
    for (name, id) in [("x", x), ("flat", flat), ("c", c), ("flags", flags)] {
        b.output(name, id);
    }
    let _ = unused;
    Ok(())
}

fn empty(b: &mut Builder) -> Made {
    let x = b.input("x", F32, &[0, 4])?;
    let y = relu(b, x)?;
    let c = b.input("c", F32, &[3, 4])?;
    let joined = b.concat(&[y, c], 0)?;
    let sum = b.reduce(ReduceKind::Sum, y, &[0], false)?;
    for (name, id) in [("y", y), ("joined", joined), ("sum", sum)] {
        b.output(name, id);
    }
    Ok(())
}

fn bytes(b: &mut Builder) -> Made {
    let x = b.input("x", F32, &[3, 7])?;
    let mask = b.input("mask", ElementType::Bool, &[3, 7])?;
    let small = b.input("small", ElementType::Of(DType::I8), &[5])?;
    let half = b.input("half", ElementType::Of(DType::F16), &[3])?;
    let zero = b.float(DType::F32, 0.0)?;
    let less = b.compare(expression::Function::Lt, x, zero)?;
    let chosen = b.select(mask, x, zero)?;
    let small = b.cast(small, DType::F32)?;
    let small = b.binary(expression::Function::Add, small, zero)?;
    let double = b.binary(expression::Function::Add, half, half)?;
    for (name, id) in [("less", less), ("chosen", chosen), ("small", small), ("double", double)] {
        b.output(name, id);
    }
    Ok(())
}

fn wide(b: &mut Builder) -> Made {
    let x = b.input("x", I64, &[9])?;
    let y = b.binary(expression::Function::Mul, x, x)?;
    let y = b.binary(expression::Function::Sub, y, x)?;
    b.output("y", y);
    Ok(())
}

/// Versions for several sizes.
fn sizes() -> Made<Sample> {
    let version = |rows: u64| {
        let mut b = Builder::new();
        let x = b.input("x", F32, &[rows, 8])?;
        let (w, scale) = (constant(&mut b, &[8, 6])?, b.input("scale", F32, &[1])?);
        let y = b.matmul(x, w)?;
        let y = b.binary(expression::Function::Mul, y, scale)?;
        b.output("y", y);
        b.finish()
    };
    let versions = vec![version(1)?, version(16)?, version(3)?];
    let call = |rows| vec![numbers(F32, rows * 8, rows), numbers(F32, 1, 5)];
    Ok(Sample {
        name: "versions for several sizes",
        calls: vec![call(3), call(1), call(16), call(3)],
        program: Program { functions: vec![Function::new("main", versions)], model: None },
        versions: vec![2, 0, 1, 2],
    })
}

/// All sizes of two ranges: attention of `rows` to `past` others and themselves, in several steps and with a branch.
fn ranges() -> Made<Sample> {
    let version = |rows: u64, past: u64| {
        let mut b = Builder::new();
        let x = b.input("x", F32, &[rows, 8])?;
        let old = b.input("old", F32, &[past, 8])?;
        let least = b.input("least", F32, &[])?;
        let w = constant(&mut b, &[8, 8])?;
        let q = b.matmul(x, w)?;
        let all = b.concat(&[old, q], 0)?;
        let scores = b.product(q, all, true)?;
        let scores = b.softmax(scores, 1, false)?;
        let y = b.matmul(scores, all)?;
        let sum = b.reduce(ReduceKind::Sum, y, &[0, 1], false)?;
        let above = b.compare(expression::Function::Gt, sum, least)?;
        let mut branches = Vec::new();
        for factor in [0.5, 3.0] {
            b.region::<u64>(&[])?;
            let factor = b.float(DType::F32, factor)?;
            let scaled = b.binary(expression::Function::Mul, y, factor)?;
            branches.push(b.close(&[scaled]));
        }
        let [then, other] = <[_; 2]>::try_from(branches).expect("there are two factors");
        let op = NodeOp::If(Box::new([then, other]));
        let made = b.push(op, &[above], &[(F32, vec![rows, 8])])?;
        b.output("all", all);
        b.output("y", made[0]);
        b.finish()
    };
    const PAST: u64 = 5;
    let versions = (1..=5).flat_map(|rows| (0..PAST).map(move |past| version(rows, past)));
    let versions = versions.collect::<Made<Vec<_>>>()?;
    let call = |(rows, past): (u64, u64)| {
        vec![
            numbers(F32, rows * 8, rows),
            numbers(F32, past * 8, past),
            Values::Float(vec![past as f64 - 3.0]),
        ]
    };
    let sizes = [(1, 0), (5, 4), (4, 4), (5, 3), (4, 4)];
    Ok(Sample {
        name: "ranges of sizes",
        calls: sizes.into_iter().map(call).collect(),
        program: Program { functions: vec![Function::new("main", versions)], model: None },
        versions: sizes.into_iter().map(|(rows, past)| ((rows - 1) * PAST + past) as usize).collect(),
    })
}

/// Versions for several values of an input.
fn values() -> Made<Sample> {
    let version = |shape: [i64; 2]| {
        let mut b = Builder::new();
        let x = b.input("x", F32, &[12])?;
        let bytes = Values::Int(shape.to_vec()).to_bytes(DType::I64).into();
        let id = b.bound_input("shape", I64, &[2], bytes)?;
        let shape = b.need_ints(id, "the shape")?;
        let y = b.reshape(x, &[shape[0] as u64, shape[1] as u64])?;
        let y = b.reduce(ReduceKind::Sum, y, &[1], true)?;
        b.output("y", y);
        b.finish()
    };
    let versions = vec![version([3, 4])?, version([4, 3])?];
    let call = |shape: [i64; 2]| vec![numbers(F32, 12, 3), Values::Int(shape.to_vec())];
    Ok(Sample {
        name: "versions for several values",
        calls: vec![call([4, 3]), call([3, 4])],
        program: Program { functions: vec![Function::new("main", versions)], model: None },
        versions: vec![1, 0],
    })
}

fn branch(b: &mut Builder) -> Made {
    let condition = b.input("condition", ElementType::Bool, &[])?;
    let x = b.input("x", F32, &[3])?;
    let two = b.float(DType::F32, 2.0)?;
    let before = b.binary(expression::Function::Mul, x, two)?;
    b.region::<u64>(&[])?;
    let squared = b.binary(expression::Function::Mul, before, before)?;
    let then = b.close(&[squared, before]);
    b.region::<u64>(&[])?;
    let turned = b.unary(expression::Function::Neg, before)?;
    let other = b.close(&[turned, x]);
    let types = [(F32, vec![3]), (F32, vec![3])];
    let made = b.push(NodeOp::If(Box::new([then, other])), &[condition], &types)?;
    let after = b.binary(expression::Function::Add, made[0], before)?;
    b.output("after", after);
    b.output("second", made[1]);
    Ok(())
}

/// Six runs: a, b = b, a + b * number of the run.
fn counted(b: &mut Builder) -> Made {
    let x = b.input("x", F32, &[3])?;
    let one = b.float(DType::F32, 1.0)?;
    let shifted = b.binary(expression::Function::Add, x, one)?;
    let most = b.values(DType::I64, &[], &Values::Int(vec![6]))?;
    let yes = b.values(ElementType::Bool, &[], &Values::Int(vec![1]))?;
    let inner = b.region(&[(I64, vec![]), (ElementType::Bool, vec![]), (F32, vec![3]), (F32, vec![3])])?;
    let number = b.cast(inner[0], DType::F32)?;
    let scaled = b.binary(expression::Function::Mul, inner[3], number)?;
    let sum = b.binary(expression::Function::Add, inner[2], scaled)?;
    let sum = b.binary(expression::Function::Sub, sum, shifted)?;
    let body = b.close(&[yes, inner[3], sum]);
    let types = [(F32, vec![3]), (F32, vec![3])];
    let made = b.push(NodeOp::Loop(Box::new(body)), &[most, yes, x, shifted], &types)?;
    let after = b.binary(expression::Function::Add, made[0], shifted)?;
    b.output("after", after);
    b.output("b", made[1]);
    Ok(())
}

/// Doubles until the sum is above 20, at most so many times as the input says.
fn conditional(b: &mut Builder) -> Made {
    let most = b.input("most", I64, &[])?;
    let x = b.input("x", F32, &[2])?;
    let limit = b.float(DType::F32, 20.0)?;
    let yes = b.values(ElementType::Bool, &[], &Values::Int(vec![1]))?;
    let inner = b.region(&[(I64, vec![]), (ElementType::Bool, vec![]), (F32, vec![2])])?;
    let doubled = b.binary(expression::Function::Add, inner[2], inner[2])?;
    let sum = b.reduce(ReduceKind::Sum, doubled, &[0], false)?;
    let go = b.compare(expression::Function::Lt, sum, limit)?;
    let body = b.close(&[go, doubled]);
    let made = b.push(NodeOp::Loop(Box::new(body)), &[most, yes, x], &[(F32, vec![2])])?;
    b.output("y", made[0]);
    Ok(())
}

/// Five runs: halves what is above 1, and triples what is not.
fn nested(b: &mut Builder) -> Made {
    let x = b.input("x", F32, &[1])?;
    let most = b.values(DType::I64, &[], &Values::Int(vec![5]))?;
    let yes = b.values(ElementType::Bool, &[], &Values::Int(vec![1]))?;
    let inner = b.region(&[(I64, vec![]), (ElementType::Bool, vec![]), (F32, vec![1])])?;
    let one = b.float(DType::F32, 1.0)?;
    let above = b.compare(expression::Function::Lt, one, inner[2])?;
    let above = b.reshape(above, &[])?;
    let mut branches = Vec::new();
    for factor in [0.5, 3.0] {
        b.region::<u64>(&[])?;
        let factor = b.float(DType::F32, factor)?;
        let scaled = b.binary(expression::Function::Mul, inner[2], factor)?;
        branches.push(b.close(&[scaled]));
    }
    let [then, other] = <[_; 2]>::try_from(branches).expect("there are two factors");
    let made = b.push(NodeOp::If(Box::new([then, other])), &[above], &[(F32, vec![1])])?;
    let body = b.close(&[yes, made[0]]);
    let made = b.push(NodeOp::Loop(Box::new(body)), &[most, yes, x], &[(F32, vec![1])])?;
    b.output("y", made[0]);
    Ok(())
}
