//! Numbers that depend on sizes. All sizes are known when a graph is built, and so are these.

use super::{Node, Result, Table};
use crate::build::Range;

pub(super) const OPERATORS: Table = &[
    ("sym_size.int", size),
    ("aten.sym_size.int", size),
    ("add", |n| arithmetic(n, i64::checked_add)),
    ("sub", |n| arithmetic(n, i64::checked_sub)),
    ("mul", |n| arithmetic(n, i64::checked_mul)),
    ("floordiv", |n| arithmetic(n, floor_divide)),
    ("et_vk.select_as_symint.default", element),
];

/// The quotient, rounded down; none by 0.
pub(super) fn floor_divide(a: i64, b: i64) -> Option<i64> {
    let whole = a.checked_div(b)?;
    Some(if a % b != 0 && (a < 0) != (b < 0) { whole - 1 } else { whole })
}

fn size(n: &mut Node<'_, '_>) -> Result<()> {
    let x = n.tensor(0)?;
    let dims = n.b().dims(x).to_vec();
    let axis = n.axis(1, dims.len())?;
    n.finish_number(dims[axis] as i64)
}

fn arithmetic(n: &mut Node<'_, '_>, compute: fn(i64, i64) -> Option<i64>) -> Result<()> {
    let (a, b) = (n.int(0)?, n.int(1)?);
    match compute(a, b) {
        Some(number) => n.finish_number(number),
        None => Err(n.invalid(format!("{a} and {b} have no such result"))),
    }
}

/// An element of an input, which sizes depend on: arguments are input, dimension, index.
fn element(n: &mut Node<'_, '_>) -> Result<()> {
    let x = n.tensor(0)?;
    let dims = n.b().dims(x).to_vec();
    let axis = n.axis(1, dims.len())?;
    let index = n.axis_of(n.int(2)?, dims[axis] as usize)?;
    let mut ranges: Vec<Range> = dims.iter().map(|size| Range::all(*size)).collect();
    ranges[axis] = Range { start: index as u64, step: 1, count: 1 };
    n.b().need_ints(x, "a number that sizes depend on")?;
    let picked = n.b().slice(x, &ranges)?;
    let numbers = n.b().need_ints(picked, "a number that sizes depend on")?;
    let [number] = numbers[..] else {
        return Err(n.invalid(format!("one element of {dims:?} is asked for, these are {}", numbers.len())));
    };
    n.scope.exact = false;
    n.finish_number(number)
}

#[cfg(test)]
mod tests {
    #[test]
    fn quotients_are_rounded_down() {
        let of = super::floor_divide;
        assert_eq!([of(7, 2), of(-7, 2), of(7, -2), of(-7, -2), of(6, -2)], [3, -4, -4, 3, -3].map(Some));
        assert_eq!((of(1, 0), of(i64::MIN, -1)), (None, None));
    }
}
