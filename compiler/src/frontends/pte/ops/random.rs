//! Random numbers: those of the graph's generator, by the seed of the caller.

use halite_ops::{DType, expression::Function as F};

use super::{Node, Result, Table, unary::number};
use crate::graph::ElementType;

pub(super) const OPERATORS: Table = &[
    ("aten.rand.default", |n| {
        let dims = n.extents(0)?;
        let made = n.b().uniform(&dims, [0.0, 1.0], None)?;
        n.finish(made)
    }),
    ("aten.randn.default", |n| {
        let dims = n.extents(0)?;
        let made = n.b().normal(&dims, [0.0, 1.0], None)?;
        n.finish(made)
    }),
    ("aten.native_dropout.default", dropout),
];

/// Arguments: input, the part of it that becomes 0, whether that is done. Results: what is left, larger by as much, and where it is.
fn dropout(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, part, drops) = (n.tensor(0)?, n.float(1)?, n.is_none(2)? || n.flag(2)?);
    if !(0.0..=1.0).contains(&part) {
        return Err(n.invalid(format!("{part} of all elements become 0")));
    }
    let dims = n.b().sizes(x).to_vec();
    let draws = n.b().uniform(&dims, [0.0, 1.0], None)?;
    let least = if drops { part } else { 0.0 };
    let stays = n.b().map(&[draws], ElementType::Bool, |p, x| p.call(F::Ge, &[x[0], number(least)]))?;
    let factor = if least < 1.0 { 1.0 / (1.0 - least) } else { 0.0 };
    let made = n.b().map(&[x, stays], DType::F32, |p, x| {
        let larger = p.call(F::Mul, &[x[0], number(factor)]);
        p.call(F::Select, &[x[1], larger, number(0.0)])
    })?;
    n.finish_list(&[Some(made), Some(stays)])
}
