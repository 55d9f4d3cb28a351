//! Shares of classes out of probabilities of pairs, as support vectors give them: the second method of Wu, Lin and Weng, "Probability
//! estimates for multi-class classification by pairwise coupling", 2004. It ends when it is near enough, so its results are a
//! little off what it would come to; Halite stops where LIBSVM, scikit-learn and ONNX Runtime do.

use halite_ops::{
    DType, Values,
    expression::{Expression, Function, Operand, Scalar},
    reduce::ReduceKind,
};

use super::{Result, classic_scores::row};
use crate::{
    build::{Builder, Range},
    graph::{ElementType, TensorId},
};

/// After so many turns it is left as it is.
const MOST_TURNS: u64 = 100;

/// How near is near enough, for one class.
const NEAR: f64 = 0.005;

fn float(number: f64) -> Operand {
    Operand::Constant(Scalar::Float(number))
}

/// Shares of `classes`, a line of columns each. Columns of `pairs` are the probabilities of the first of two classes: (0, 1), (0, 2), …, (1, 2), …
pub(super) fn coupled(b: &mut Builder, pairs: TensorId, classes: u64) -> Result<TensorId> {
    let problem = Problem::of(b, pairs, classes)?;
    let lines = b.sizes(pairs)[0];
    let even = row(b, &[1, 1], [1.0 / classes as f32])?;
    let even = b.expand_to(even, &[lines, classes.into()])?;
    let made = b.repeat_while(MOST_TURNS.into(), &[even], |b, _, carried| {
        let (goes_on, next) = problem.turn(b, carried[0])?;
        Ok((Some(goes_on), vec![next]))
    })?;
    Ok(made[0])
}

/// The quadratic form that is to be least, and what each step adds.
struct Problem {
    classes: u64,
    /// Lines of `classes` rows of `classes`.
    matrix: TensorId,
    /// For each class its element of the diagonal.
    diagonal: Vec<TensorId>,
    /// For each class what is added to shares and to their products with the matrix, beside each other.
    steps: Vec<TensorId>,
}

impl Problem {
    fn of(b: &mut Builder, pairs: TensorId, classes: u64) -> Result<Problem> {
        let (lines, count) = (b.sizes(pairs)[0], classes * (classes - 1) / 2);
        let others = b.map(&[pairs], DType::F32, |p, x| p.call(Function::Sub, &[float(1.0), x[0]]))?;
        let none = row(b, &[1, 1], [0.0])?;
        let none = b.expand_to(none, &[lines, 1.into()])?;
        let all = b.concat(&[pairs, others, none], 1)?;
        let mut places = vec![2 * count as i64; (classes * classes) as usize];
        let mut pair = 0;
        for first in 0..classes {
            for second in first + 1..classes {
                places[(first * classes + second) as usize] = pair;
                places[(second * classes + first) as usize] = pair + count as i64;
                pair += 1;
            }
        }
        let places = b.ints_constant(&places)?;
        let rows = b.gather(all, places, 1)?;
        let rows = b.reshape_to(rows, &[lines, classes.into(), classes.into()])?;
        let columns = b.swap_last(rows)?;
        let squares = b.reduce(ReduceKind::SumSquare, columns, &[2], true)?;
        let one = |at: u64| (0..classes).map(move |class| if class == at { 1.0 } else { 0.0 });
        let unit = row(b, &[1, classes, classes], (0..classes).flat_map(one))?;
        let matrix = b.map(&[rows, columns, squares, unit], DType::F32, |program, x| {
            let product = program.call(Function::Mul, &x[..2]);
            let own = program.call(Function::Mul, &x[2..]);
            program.call(Function::Sub, &[own, product])
        })?;
        let flat = b.reshape_to(matrix, &[lines, (classes * classes).into()])?;
        let mut problem = Problem { classes, matrix, diagonal: Vec::new(), steps: Vec::new() };
        for class in 0..classes {
            problem.diagonal.push(columns_of(b, flat, class * classes + class, 1)?);
            let own = row(b, &[1, classes], one(class))?;
            let own = b.expand_to(own, &[lines, classes.into()])?;
            let line = columns_of(b, flat, class * classes, classes)?;
            problem.steps.push(b.concat(&[own, line], 1)?);
        }
        Ok(problem)
    }

    /// The shares after a step for each class, and whether a line is not near enough yet.
    fn turn(&self, b: &mut Builder, shares: TensorId) -> Result<(TensorId, TensorId)> {
        let lines = b.sizes(shares)[0];
        let upright = b.reshape_to(shares, &[lines, 1.into(), self.classes.into()])?;
        let products = b.binary(Function::Mul, self.matrix, upright)?;
        let products = b.reduce(ReduceKind::Sum, products, &[2], false)?;
        let form = b.binary(Function::Mul, shares, products)?;
        let mut form = b.reduce(ReduceKind::Sum, form, &[1], true)?;
        let apart = b.map(&[products, form], DType::F32, |program, x| {
            let apart = program.call(Function::Sub, x);
            program.call(Function::Abs, &[apart])
        })?;
        let apart = b.reduce(ReduceKind::Max, apart, &[1], true)?;
        let mut both = b.concat(&[shares, products], 1)?;
        for (class, (own, step)) in self.diagonal.iter().zip(&self.steps).enumerate() {
            let product = columns_of(b, both, self.classes + class as u64, 1)?;
            both = b.map(&[both, *step, form, product, *own], DType::F32, |program, x| {
                let size = step_of(program, &x[2..]);
                let added = program.call(Function::Mul, &[size, x[1]]);
                let moved = program.call(Function::Add, &[x[0], added]);
                let whole = program.call(Function::Add, &[size, float(1.0)]);
                program.call(Function::Div, &[moved, whole])
            })?;
            form = b.map(&[form, product, *own], DType::F32, |program, x| {
                let size = step_of(program, x);
                let square = program.call(Function::Mul, &[size, x[2]]);
                let twice = program.call(Function::Add, &[x[1], x[1]]);
                let more = program.call(Function::Add, &[square, twice]);
                let more = program.call(Function::Mul, &[size, more]);
                let moved = program.call(Function::Add, &[x[0], more]);
                let whole = program.call(Function::Add, &[size, float(1.0)]);
                let moved = program.call(Function::Div, &[moved, whole]);
                program.call(Function::Div, &[moved, whole])
            })?;
        }
        let made = columns_of(b, both, 0, self.classes)?;
        let near = NEAR / self.classes as f64;
        let next = b.map(&[apart, shares, made], DType::F32, |program, x| {
            let done = program.call(Function::Lt, &[x[0], float(near)]);
            program.call(Function::Select, &[done, x[1], x[2]])
        })?;
        Ok((is_open(b, apart, near)?, next))
    }
}

/// Whether a line is not near enough yet.
fn is_open(b: &mut Builder, apart: TensorId, near: f64) -> Result<TensorId> {
    let open = b.map(&[apart], DType::I32, |program, x| {
        let done = program.call(Function::Lt, &[x[0], float(near)]);
        let [no, yes] = [0, 1].map(|number| Operand::Constant(Scalar::Int(number, DType::I32)));
        program.call(Function::Select, &[done, no, yes])
    })?;
    let zero = b.values(DType::I32, &[1, 1], &Values::Int(vec![0]))?;
    let open = b.concat(&[open, zero], 0)?;
    let open = b.reduce(ReduceKind::Max, open, &[0, 1], false)?;
    b.cast(open, ElementType::Bool)
}

/// How far the share of a class moves, by the form, its product and its element of the diagonal.
fn step_of(program: &mut Expression, x: &[Operand]) -> Operand {
    let less = program.call(Function::Sub, &x[..2]);
    program.call(Function::Div, &[less, x[2]])
}

fn columns_of(b: &mut Builder, x: TensorId, start: u64, count: u64) -> Result<TensorId> {
    let lines = b.sizes(x)[0];
    b.slice(x, &[Range::all(lines), Range { start: start.into(), step: 1, count: count.into() }])
}
