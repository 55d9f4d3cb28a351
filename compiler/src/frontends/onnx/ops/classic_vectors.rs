//! Of `ai.onnx.ml` support vectors.

use halite_ops::{DType, expression::Function, reduce::ReduceKind};

use super::{
    Import, NodeView, Result,
    classic_scores::{above, lines, row, transformed},
};
use crate::{build::Builder, graph::TensorId};

pub(super) const CLASSIC: &[(&str, Import)] = &[("SVMRegressor", regressor)];

/// The sum of the kernel's values for each support vector, each with its coefficient.
fn regressor(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let x = lines(b, node)?;
    let coefficients = node.floats("coefficients")?.unwrap_or_default();
    let vectors = match node.int("n_supports", 0)? {
        0 => None,
        count => Some((count, node.floats("support_vectors")?.unwrap_or_default())),
    };
    let rho = node.floats("rho")?.unwrap_or_default().first().copied().unwrap_or_default();
    let values = match vectors {
        None => x,
        Some((count, vectors)) => {
            let count =
                u64::try_from(count).ok().filter(|count| (vectors.len() as u64).is_multiple_of(*count));
            let Some(count) = count.filter(|count| b.sizes(x)[1].agrees(vectors.len() as u64 / count)) else {
                let text = format!("{} numbers of support vectors for {}", vectors.len(), b.describe(&[x]));
                return Err(node.invalid(text));
            };
            let vectors = row(b, &[count, vectors.len() as u64 / count], vectors)?;
            kernel(b, node, x, vectors)?
        }
    };
    let count = coefficients.len() as u64;
    if !b.sizes(values)[1].agrees(count) || count == 0 {
        return Err(node.invalid(format!("{count} coefficients for {}", b.describe(&[values]))));
    }
    let coefficients = row(b, &[count, 1], coefficients)?;
    let sum = b.matmul(values, coefficients)?;
    let rho = b.float(DType::F32, f64::from(rho))?;
    let sum = b.binary(Function::Add, sum, rho)?;
    if node.flag("one_class", false)? {
        let inside = above(b, sum, 0.0)?;
        let (yes, no) = (b.float(DType::F32, 1.0)?, b.float(DType::F32, -1.0)?);
        return Ok(vec![b.select(inside, yes, no)?]);
    }
    Ok(vec![transformed(b, node, sum)?])
}

/// What a kernel makes of each line and vector.
fn kernel(b: &mut Builder, node: &NodeView<'_>, x: TensorId, vectors: TensorId) -> Result<TensorId> {
    let products = b.product(x, vectors, true)?;
    let numbers = node.floats("kernel_params")?.unwrap_or_default();
    let number = |place: usize| f64::from(numbers.get(place).copied().unwrap_or_default());
    let [gamma, added, degree] = [0, 1, 2].map(number);
    let kind = node.string("kernel_type", "LINEAR")?;
    if kind == "LINEAR" {
        return Ok(products);
    }
    let gamma = b.float(DType::F32, gamma)?;
    if kind == "RBF" {
        let own = b.reduce(ReduceKind::SumSquare, x, &[1], true)?;
        let others = b.reduce(ReduceKind::SumSquare, vectors, &[1], true)?;
        let others = b.swap_last(others)?;
        let none = b.float(DType::F32, 0.0)?;
        return b.map(&[products, own, others, gamma, none], DType::F32, |program, x| {
            let squares = program.call(Function::Add, &x[1..3]);
            let twice = program.call(Function::Add, &[x[0], x[0]]);
            let distance = program.call(Function::Sub, &[squares, twice]);
            let distance = program.call(Function::Max, &[distance, x[4]]);
            let scaled = program.call(Function::Mul, &[distance, x[3]]);
            let scaled = program.call(Function::Neg, &[scaled]);
            program.call(Function::Exp, &[scaled])
        });
    }
    let (added, degree) = (b.float(DType::F32, added)?, b.float(DType::F32, degree)?);
    let is_power = match kind.as_str() {
        "POLY" => true,
        "SIGMOID" => false,
        other => {
            return Err(node.invalid(format!("the kernel {other}; there are LINEAR, POLY, RBF and SIGMOID")));
        }
    };
    b.map(&[products, gamma, added, degree], DType::F32, |program, x| {
        let scaled = program.call(Function::Mul, &x[..2]);
        let moved = program.call(Function::Add, &[scaled, x[2]]);
        match is_power {
            true => program.call(Function::Pow, &[moved, x[3]]),
            false => program.call(Function::Tanh, &[moved]),
        }
    })
}
