//! Operators outside of delegates on numbers, which are known when a graph is built: ExecuTorch's `executorch_prim` and what
//! gives numbers of tensors. As in Python, a number is an integer, a float or a boolean.

use halite_ops::expression::Function as F;

use super::{
    Node, Result, Table,
    sizes::{self, Arithmetic},
};
use crate::{
    frontends::pte::value::{Passed, number_of},
    graph::ElementType,
};

pub(super) const OPERATORS: Table = &[
    ("executorch_prim.add.Scalar", |n| arithmetic(n, Arithmetic::Add)),
    ("executorch_prim.sub.Scalar", |n| arithmetic(n, Arithmetic::Sub)),
    ("executorch_prim.mul.Scalar", |n| arithmetic(n, Arithmetic::Mul)),
    ("executorch_prim.floordiv.Scalar", |n| arithmetic(n, Arithmetic::FloorDiv)),
    ("executorch_prim.floordiv.int", |n| arithmetic(n, Arithmetic::FloorDiv)),
    ("executorch_prim.mod.Scalar", |n| arithmetic(n, Arithmetic::Mod)),
    ("executorch_prim.mod.int", |n| arithmetic(n, Arithmetic::Mod)),
    ("executorch_prim.sym_max.Scalar", |n| arithmetic(n, Arithmetic::Max)),
    ("executorch_prim.sym_min.Scalar", |n| arithmetic(n, Arithmetic::Min)),
    ("executorch_prim.truediv.Scalar", divide),
    ("executorch_prim.eq.Scalar", |n| compare(n, F::Eq)),
    ("executorch_prim.ne.Scalar", |n| compare(n, F::Ne)),
    ("executorch_prim.gt.Scalar", |n| compare(n, F::Gt)),
    ("executorch_prim.ge.Scalar", |n| compare(n, F::Ge)),
    ("executorch_prim.lt.Scalar", |n| compare(n, F::Lt)),
    ("executorch_prim.le.Scalar", |n| compare(n, F::Le)),
    ("executorch_prim.neg.Scalar", negate),
    ("executorch_prim.ceil.Scalar", |n| whole(n, f64::ceil)),
    ("executorch_prim.floor.Scalar", |n| whole(n, f64::floor)),
    ("executorch_prim.round.Scalar", |n| whole(n, f64::round_ties_even)),
    ("executorch_prim.trunc.Scalar", |n| whole(n, f64::trunc)),
    ("executorch_prim.sym_int.Scalar", |n| whole(n, f64::trunc)),
    ("executorch_prim.sym_float.Scalar", |n| {
        let number = n.float(0)?;
        n.finish_scalar(Passed::Float(number))
    }),
    ("executorch_prim.sym_not.Scalar", |n| {
        let truth = n.flag(0)?;
        n.finish_scalar(Passed::Truth(!truth))
    }),
    ("executorch_prim.sym_ite.Scalar", choose),
    ("aten._local_scalar_dense.default", element),
    ("aten.sym_numel.default", |n| {
        let x = n.tensor(0)?;
        let count = n.b().tensor(x).count();
        n.finish_number(count)
    }),
];

/// A number.
fn number(n: &Node<'_, '_>, i: usize) -> Result<Passed> {
    n.float(i)?;
    Ok(n.known(i)?.expect("a number is known"))
}

/// A function of two numbers: an integer if both are.
fn arithmetic(n: &mut Node<'_, '_>, function: Arithmetic) -> Result<()> {
    if let (Some(Passed::Float(_)), _) | (_, Some(Passed::Float(_))) = (n.known(0)?, n.known(1)?) {
        let made = function.of_floats(n.float(0)?, n.float(1)?);
        return n.finish_scalar(Passed::Float(made));
    }
    sizes::arithmetic(n, function)
}

fn divide(n: &mut Node<'_, '_>) -> Result<()> {
    let (a, b) = (n.float(0)?, n.float(1)?);
    if b == 0.0 {
        return Err(n.invalid(format!("{a} is divided by 0")));
    }
    n.finish_scalar(Passed::Float(a / b))
}

/// Whether a relation holds between two numbers. Where the device computes one, it finds out.
fn compare(n: &mut Node<'_, '_>, relation: F) -> Result<()> {
    if let (Some(Passed::Computed(..)), _) | (_, Some(Passed::Computed(..))) = (n.known(0)?, n.known(1)?) {
        let (a, b) = (n.number_tensor(0)?, n.number_tensor(1)?);
        let made = n.b().compare(relation, a, b)?;
        return n.finish_scalar(Passed::Tensor(made));
    }
    let sizes = (n.known(0)?.and_then(Passed::size), n.known(1)?.and_then(Passed::size));
    let truth = match sizes {
        (Some(a), Some(b)) => holds(relation, &a, &b),
        _ => holds(relation, &n.float(0)?, &n.float(1)?),
    };
    n.finish_scalar(Passed::Truth(truth))
}

fn holds<T: PartialOrd>(relation: F, a: &T, b: &T) -> bool {
    match relation {
        F::Eq => a == b,
        F::Ne => a != b,
        F::Gt => a > b,
        F::Ge => a >= b,
        F::Lt => a < b,
        _ => a <= b,
    }
}

fn negate(n: &mut Node<'_, '_>) -> Result<()> {
    let made = match number(n, 0)? {
        Passed::Float(number) => Passed::Float(-number),
        _ => Passed::Number(-n.extent(0)?),
    };
    n.finish_scalar(made)
}

/// A float as the integer that `round` makes of it.
fn whole(n: &mut Node<'_, '_>, round: fn(f64) -> f64) -> Result<()> {
    let number = round(n.float(0)?);
    if number.abs() > 9e15 || number.is_nan() {
        return Err(n.invalid(format!("{number} is no integer of 64 bits")));
    }
    n.finish_number(number as i64)
}

/// Arguments: condition, the number where it holds, the other.
fn choose(n: &mut Node<'_, '_>) -> Result<()> {
    let taken = if n.flag(0)? { 1 } else { 2 };
    let made = number(n, taken)?;
    n.finish_scalar(made)
}

/// The one element of a tensor. An integer may be one that the device computes; others have to be known.
fn element(n: &mut Node<'_, '_>) -> Result<()> {
    let x = n.tensor(0)?;
    let (own, what) = (n.b().element(x), "a number that sizes or branches depend on");
    let count = n.b().tensor(x).elements();
    if count != 1 {
        return Err(n.invalid(format!("{count} elements; one is taken as a number")));
    }
    let made = match own {
        ElementType::Bool => match n.b().ints(x).as_deref() {
            Some([truth]) => Passed::Truth(*truth != 0),
            _ => Passed::Tensor(n.b().reshape(x, &[])?),
        },
        ElementType::Of(dtype) if dtype.is_float() => {
            Passed::Float(n.b().need_floats(x, what)?.first().copied().unwrap_or_default())
        }
        ElementType::Of(_) => number_of(n.b(), x)?,
    };
    n.finish_scalar(made)
}
