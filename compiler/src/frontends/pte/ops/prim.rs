//! Operators outside of delegates on numbers, which are known when a graph is built: ExecuTorch's `executorch_prim` and what
//! gives numbers of tensors. As in Python, a number is an integer, a float or a boolean.

use super::{Node, Result, Table, sizes::floor_divide};
use crate::frontends::pte::value::Passed;

pub(super) const OPERATORS: Table = &[
    ("executorch_prim.add.Scalar", |n| arithmetic(n, i64::checked_add, |a, b| a + b)),
    ("executorch_prim.sub.Scalar", |n| arithmetic(n, i64::checked_sub, |a, b| a - b)),
    ("executorch_prim.mul.Scalar", |n| arithmetic(n, i64::checked_mul, |a, b| a * b)),
    ("executorch_prim.floordiv.Scalar", |n| arithmetic(n, floor_divide, |a, b| (a / b).floor())),
    ("executorch_prim.floordiv.int", |n| arithmetic(n, floor_divide, |a, b| (a / b).floor())),
    ("executorch_prim.mod.Scalar", |n| arithmetic(n, modulo, |a, b| a - b * (a / b).floor())),
    ("executorch_prim.mod.int", |n| arithmetic(n, modulo, |a, b| a - b * (a / b).floor())),
    ("executorch_prim.sym_max.Scalar", |n| arithmetic(n, |a, b| Some(a.max(b)), f64::max)),
    ("executorch_prim.sym_min.Scalar", |n| arithmetic(n, |a, b| Some(a.min(b)), f64::min)),
    ("executorch_prim.truediv.Scalar", divide),
    ("executorch_prim.eq.Scalar", |n| compare(n, |a, b| a == b)),
    ("executorch_prim.ne.Scalar", |n| compare(n, |a, b| a != b)),
    ("executorch_prim.gt.Scalar", |n| compare(n, |a, b| a > b)),
    ("executorch_prim.ge.Scalar", |n| compare(n, |a, b| a >= b)),
    ("executorch_prim.lt.Scalar", |n| compare(n, |a, b| a < b)),
    ("executorch_prim.le.Scalar", |n| compare(n, |a, b| a <= b)),
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
        let count = n.b().tensor(x).elements();
        n.finish_number(i64::try_from(count).unwrap_or(i64::MAX))
    }),
];

/// The remainder with the sign of the divisor; none by 0.
fn modulo(a: i64, b: i64) -> Option<i64> {
    Some(a - b.checked_mul(floor_divide(a, b)?)?)
}

/// A number.
fn number(n: &Node<'_, '_>, i: usize) -> Result<Passed> {
    n.float(i)?;
    Ok(n.known(i)?.expect("a number is known"))
}

/// A function of two numbers: an integer if both are.
fn arithmetic(
    n: &mut Node<'_, '_>,
    ints: fn(i64, i64) -> Option<i64>,
    floats: fn(f64, f64) -> f64,
) -> Result<()> {
    let (a, b) = (number(n, 0)?, number(n, 1)?);
    if let (Passed::Float(_), _) | (_, Passed::Float(_)) = (a, b) {
        let made = floats(n.float(0)?, n.float(1)?);
        return n.finish_scalar(Passed::Float(made));
    }
    let (a, b) = (n.int(0)?, n.int(1)?);
    match ints(a, b) {
        Some(made) => n.finish_number(made),
        None => Err(n.invalid(format!("{a} and {b} have no such result"))),
    }
}

fn divide(n: &mut Node<'_, '_>) -> Result<()> {
    let (a, b) = (n.float(0)?, n.float(1)?);
    if b == 0.0 {
        return Err(n.invalid(format!("{a} is divided by 0")));
    }
    n.finish_scalar(Passed::Float(a / b))
}

fn compare(n: &mut Node<'_, '_>, holds: fn(f64, f64) -> bool) -> Result<()> {
    let truth = holds(n.float(0)?, n.float(1)?);
    n.finish_scalar(Passed::Truth(truth))
}

fn negate(n: &mut Node<'_, '_>) -> Result<()> {
    let made = match number(n, 0)? {
        Passed::Float(number) => Passed::Float(-number),
        _ => Passed::Number(n.int(0)?.wrapping_neg()),
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

/// The one element of a tensor, which has to be known.
fn element(n: &mut Node<'_, '_>) -> Result<()> {
    let x = n.tensor(0)?;
    let (own, what) = (n.b().element(x), "a number that sizes or branches depend on");
    let values = n.b().need_floats(x, what)?;
    let [value] = values[..] else {
        return Err(n.invalid(format!("{} elements; one is taken as a number", values.len())));
    };
    let exact = n.b().ints(x).and_then(|ints| ints.first().copied());
    let made = match (own, exact) {
        (crate::graph::ElementType::Bool, _) => Passed::Truth(value != 0.0),
        (_, Some(number)) => Passed::Number(number),
        (_, None) => Passed::Float(value),
    };
    n.finish_scalar(made)
}

#[cfg(test)]
mod tests {
    #[test]
    fn remainders_have_the_sign_of_the_divisor() {
        let of = super::modulo;
        assert_eq!([of(7, 3), of(-7, 3), of(7, -3)], [Some(1), Some(2), Some(-2)]);
        assert_eq!([of(1, 0), of(i64::MIN, -1)], [None; 2]);
    }
}
