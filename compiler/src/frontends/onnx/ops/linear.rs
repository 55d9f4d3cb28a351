//! Products of matrices.

use halite_ops::{
    DType,
    expression::{Function, Operand, Scalar, Type},
};

use super::{Import, NodeView, Result};
use crate::{build::Builder, graph::TensorId};

pub(super) const OPS: &[(&str, Import)] = &[("Det", det), ("Gemm", gemm), ("MatMul", matmul)];

/// Most rows of a matrix whose determinant is computed: each takes several operations.
const MOST_ROWS: u64 = 32;

fn matmul(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, y) = (node.input(0)?, node.input(1)?);
    if let Some(made) = b.product_of_picked(x, y)? {
        return Ok(vec![made]);
    }
    Ok(vec![b.matmul(x, y)?])
}

pub(super) fn gemm(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, y) = (node.input(0)?, node.input(1)?);
    if b.rank(x) != 2 || b.rank(y) != 2 {
        return Err(node.invalid(format!("Gemm of {}", b.describe(&[x, y]))));
    }
    let x = if node.flag("transA", false)? { b.swap_last(x)? } else { x };
    let made = b.product(x, y, node.flag("transB", false)?)?;
    let (alpha, beta) = (node.float("alpha", 1.0)?, node.float("beta", 1.0)?);
    let made = scaled(b, made, alpha)?;
    let Some(c) = node.optional(2).filter(|_| beta != 0.0) else { return Ok(vec![made]) };
    let c = scaled(b, c, beta)?;
    Ok(vec![b.binary(Function::Add, made, c)?])
}

/// A tensor times a number.
pub(super) fn scaled(b: &mut Builder, x: TensorId, factor: f32) -> Result<TensorId> {
    if factor == 1.0 {
        return Ok(x);
    }
    let (element, factor) = (b.element(x), Operand::Constant(Scalar::Float(factor.into())));
    if element.is_float() {
        return b.map(&[x], element, |p, x| p.call(Function::Mul, &[x[0], factor]));
    }
    b.map(&[x], element, |p, x| {
        let wide = p.cast(Type::Of(DType::F32), x[0]);
        let product = p.call(Function::Mul, &[wide, factor]);
        p.cast(element.value(), product)
    })
}

/// Determinants by elimination, without a device's branches: in each step the row with the largest element is picked by its
/// index.
fn det(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let x = node.input(0)?;
    let (element, dims) = (b.element(x), b.dims(x).to_vec());
    let [batch @ .., rows, columns] = &dims[..] else {
        return Err(node.invalid(format!("{} is no matrix", b.describe(&[x]))));
    };
    if rows != columns || *rows == 0 {
        return Err(node.invalid(format!("{} is not square", b.describe(&[x]))));
    }
    if *rows > MOST_ROWS {
        return Err(node.unsupported(format!("determinants of {rows} rows; there are up to {MOST_ROWS}")));
    }
    let count = crate::graph::elements(batch);
    let x = b.as_f32(x)?;
    let mut rest = b.reshape(x, &[count, *rows, *rows])?;
    let mut product = None;
    for left in (1..=*rows).rev() {
        let (pivot, next) = eliminate(b, rest, count, left)?;
        product = Some(match product {
            None => pivot,
            Some(product) => b.binary(Function::Mul, product, pivot)?,
        });
        rest = next;
    }
    let made = product.ok_or_else(|| node.invalid("a matrix without rows"))?;
    let made = b.reshape(made, batch)?;
    Ok(vec![b.cast(made, element)?])
}

/// One step of the elimination of `left` rows: the pivot with the sign of the exchange of rows, and what is left.
fn eliminate(b: &mut Builder, matrix: TensorId, count: u64, left: u64) -> Result<(TensorId, TensorId)> {
    use crate::build::Range;
    let part = |b: &mut Builder, x: TensorId, rows: (u64, u64), columns: (u64, u64)| {
        let range = |(start, end): (u64, u64)| Range { start, step: 1, count: end - start };
        b.slice(x, &[Range::all(count), range(rows), range(columns)])
    };
    let first = part(b, matrix, (0, left), (0, 1))?;
    let sizes = b.unary(Function::Abs, first)?;
    let row = b.arg_reduce(sizes, 1, false, false)?;
    // The pivot's row and the first one change places: the indices of all rows but the first, the pivot's being 0.
    let numbers: Vec<i64> = (0..left as i64).collect();
    let numbers = b.values(DType::I64, &[1, left, 1], &halite_ops::Values::Int(numbers))?;
    let zero = Operand::Constant(Scalar::Int(0, DType::I64));
    let order = b.map(&[numbers, row], DType::I64, |p, x| {
        let at_pivot = p.call(Function::Eq, &[x[0], x[1]]);
        let first = p.call(Function::Eq, &[x[0], zero]);
        let other = p.call(Function::Select, &[at_pivot, zero, x[0]]);
        p.call(Function::Select, &[first, x[1], other])
    })?;
    let order = b.expand(order, &[count, left, left])?;
    let sorted = b.gather_elements(matrix, order, 1)?;
    let pivot = part(b, sorted, (0, 1), (0, 1))?;
    let signed = b.map(&[pivot, row], DType::F32, |p, x| {
        let stayed = p.call(Function::Eq, &[x[1], zero]);
        let negative = p.call(Function::Neg, &[x[0]]);
        p.call(Function::Select, &[stayed, x[0], negative])
    })?;
    let top = part(b, sorted, (0, 1), (1, left))?;
    let side = part(b, sorted, (1, left), (0, 1))?;
    let rest = part(b, sorted, (1, left), (1, left))?;
    let next = b.map(&[rest, side, top, pivot], DType::F32, |p, x| {
        let zero = Operand::from(0.0);
        let singular = p.call(Function::Eq, &[x[3], zero]);
        let factor = p.call(Function::Div, &[x[1], x[3]]);
        let factor = p.call(Function::Select, &[singular, zero, factor]);
        let product = p.call(Function::Mul, &[factor, x[2]]);
        p.call(Function::Sub, &[x[0], product])
    })?;
    Ok((signed, next))
}
