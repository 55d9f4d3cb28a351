//! Numbers that depend on sizes, and numbers that the device computes: places in a sequence and the like.

use halite_ops::expression::Function as F;
use halite_sizes::Size;

use super::{Node, Result, Table};
use crate::{
    build::{Builder, Range},
    frontends::pte::value::{Passed, number_of},
};

pub(super) const OPERATORS: Table = &[
    ("sym_size.int", size),
    ("aten.sym_size.int", size),
    ("add", |n| arithmetic(n, Arithmetic::Add)),
    ("sub", |n| arithmetic(n, Arithmetic::Sub)),
    ("mul", |n| arithmetic(n, Arithmetic::Mul)),
    ("floordiv", |n| arithmetic(n, Arithmetic::FloorDiv)),
    ("et_vk.select_as_symint.default", element),
];

/// Functions of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Sub,
    Mul,
    /// The quotient, rounded down.
    FloorDiv,
    /// The remainder with the sign of the divisor.
    Mod,
    Max,
    Min,
}

impl Arithmetic {
    /// Of integers; none where there is no such number.
    pub(super) fn of_ints(self, a: i64, b: i64) -> Option<i64> {
        match self {
            Arithmetic::Add => a.checked_add(b),
            Arithmetic::Sub => a.checked_sub(b),
            Arithmetic::Mul => a.checked_mul(b),
            Arithmetic::FloorDiv => floor_divide(a, b),
            Arithmetic::Mod => a.checked_sub(b.checked_mul(floor_divide(a, b)?)?),
            Arithmetic::Max => Some(a.max(b)),
            Arithmetic::Min => Some(a.min(b)),
        }
    }

    /// Of floats.
    pub(super) fn of_floats(self, a: f64, b: f64) -> f64 {
        match self {
            Arithmetic::Add => a + b,
            Arithmetic::Sub => a - b,
            Arithmetic::Mul => a * b,
            Arithmetic::FloorDiv => (a / b).floor(),
            Arithmetic::Mod => a - b * (a / b).floor(),
            Arithmetic::Max => a.max(b),
            Arithmetic::Min => a.min(b),
        }
    }

    /// Of sizes, which may be open.
    fn of_sizes(self, a: Size, b: Size) -> Option<Size> {
        if a.is_constant() && b.is_constant() {
            return self.of_ints(a.signed_value(), b.signed_value()).map(Size::from);
        }
        Some(match self {
            Arithmetic::Add => a + b,
            Arithmetic::Sub => a - b,
            Arithmetic::Mul => a * b,
            Arithmetic::FloorDiv if a >= 0 && b > 0 => a / b,
            Arithmetic::Mod if a >= 0 && b > 0 => a % b,
            Arithmetic::Max => Size::max(a, b),
            Arithmetic::Min => Size::min(a, b),
            Arithmetic::FloorDiv | Arithmetic::Mod => {
                self.of_ints(a.exact_signed(), b.exact_signed())?.into()
            }
        })
    }

    /// What a device computes it with; none where its function is another one for some numbers.
    fn of_device(self) -> Option<F> {
        match self {
            Arithmetic::Add => Some(F::Add),
            Arithmetic::Sub => Some(F::Sub),
            Arithmetic::Mul => Some(F::Mul),
            Arithmetic::Max => Some(F::Max),
            Arithmetic::Min => Some(F::Min),
            Arithmetic::FloorDiv | Arithmetic::Mod => None,
        }
    }
}

/// The quotient, rounded down; none by 0.
fn floor_divide(a: i64, b: i64) -> Option<i64> {
    let whole = a.checked_div(b)?;
    Some(if a % b != 0 && (a < 0) != (b < 0) { whole - 1 } else { whole })
}

fn size(n: &mut Node<'_, '_>) -> Result<()> {
    let x = n.tensor(0)?;
    let dims = n.b().sizes(x).to_vec();
    let axis = n.axis(1, dims.len())?;
    n.finish_number(dims[axis])
}

/// A function of two integers.
pub(super) fn arithmetic(n: &mut Node<'_, '_>, function: Arithmetic) -> Result<()> {
    if let Some(made) = computed(n, function)? {
        return n.finish_scalar(made);
    }
    let (a, b) = (n.extent(0)?, n.extent(1)?);
    match function.of_sizes(a, b) {
        Some(number) => n.finish_number(number),
        None => Err(n.invalid(format!("{a} and {b} have no such result"))),
    }
}

/// The result of a function where a device computes an argument; none where both are known, or have to be.
fn computed(n: &mut Node<'_, '_>, function: Arithmetic) -> Result<Option<Passed>> {
    let (known_a, known_b) = (n.known(0)?, n.known(1)?);
    let of = |builder: &Builder, known: Option<Passed>| match known {
        // What was read once stays a size.
        Some(Passed::Computed(base, more)) => Some(match builder.number_read(base) {
            Some(size) => (None, size + more),
            None => (Some(base), more),
        }),
        Some(known) => known.size().map(|size| (None, size)),
        None => None,
    };
    let (Some((a, more_a)), Some((b, more_b))) = (of(n.b(), known_a), of(n.b(), known_b)) else {
        return Ok(None);
    };
    Ok(match (a, b, function) {
        (None, None, _) => None,
        (Some(base), None, Arithmetic::Add) | (None, Some(base), Arithmetic::Add) => {
            Some(Passed::Computed(base, more_a + more_b))
        }
        (Some(base), None, Arithmetic::Sub) => Some(Passed::Computed(base, more_a - more_b)),
        (Some(one), Some(other), Arithmetic::Sub) if one == other => Some(Passed::Number(more_a - more_b)),
        _ => match function.of_device() {
            Some(function) => {
                let (a, b) = (n.number_tensor(0)?, n.number_tensor(1)?);
                Some(Passed::Computed(n.b().binary(function, a, b)?, 0.into()))
            }
            None => None,
        },
    })
}

/// An element of an input, which sizes depend on: arguments are input, dimension, index.
fn element(n: &mut Node<'_, '_>) -> Result<()> {
    let x = n.tensor(0)?;
    let dims = n.b().dims(x).to_vec();
    let axis = n.axis(1, dims.len())?;
    let index = n.axis_of(n.int(2)?, dims[axis] as usize)?;
    let mut ranges: Vec<Range> = dims.iter().map(|size| Range::all(*size)).collect();
    ranges[axis] = Range { start: index as u64, step: 1, count: 1 };
    let picked = n.b().slice(x, &ranges)?;
    let count = n.b().tensor(picked).elements();
    if count != 1 {
        return Err(n.invalid(format!("one element of {dims:?} is asked for, these are {count}")));
    }
    n.scope.exact = false;
    let number = number_of(n.b(), picked)?;
    n.finish_scalar(number)
}

#[cfg(test)]
mod tests {
    use super::Arithmetic;

    #[test]
    fn quotients_are_rounded_down() {
        let of = |a, b| Arithmetic::FloorDiv.of_ints(a, b);
        assert_eq!([of(7, 2), of(-7, 2), of(7, -2), of(-7, -2), of(6, -2)], [3, -4, -4, 3, -3].map(Some));
        assert_eq!((of(1, 0), of(i64::MIN, -1)), (None, None));
    }

    #[test]
    fn remainders_have_the_sign_of_the_divisor() {
        let of = |a, b| Arithmetic::Mod.of_ints(a, b);
        assert_eq!([of(7, 3), of(-7, 3), of(7, -3)], [Some(1), Some(2), Some(-2)]);
        assert_eq!([of(1, 0), of(i64::MIN, -1)], [None; 2]);
    }
}
