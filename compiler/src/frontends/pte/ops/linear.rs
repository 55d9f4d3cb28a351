//! Products of matrices.

use halite_ops::expression::Function as F;

use super::{Node, Result, Table, unary::number};

pub(super) const OPERATORS: Table = &[
    ("aten.mm.default", product),
    ("aten.bmm.default", product),
    ("aten.linear.default", linear),
    ("aten.addmm.default", add_product),
];

fn product(n: &mut Node<'_, '_>) -> Result<()> {
    let (a, b) = (n.tensor(0)?, n.tensor(1)?);
    let made = n.b().matmul(a, b)?;
    n.finish(made)
}

fn linear(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, weight, bias) = (n.tensor(0)?, n.tensor(1)?, n.optional(2)?);
    // Weights that were made of codes stay codes.
    let made = match n.b().remembered_codes(weight)? {
        Some(codes) => n.b().quant_product(x, &codes)?,
        None => n.b().product(x, weight, true)?,
    };
    let made = match bias {
        Some(bias) => n.b().binary(F::Add, made, bias)?,
        None => made,
    };
    n.finish(made)
}

/// `beta * bias + alpha * a b`.
fn add_product(n: &mut Node<'_, '_>) -> Result<()> {
    let (bias, a, b) = (n.tensor(0)?, n.tensor(1)?, n.tensor(2)?);
    let (beta, alpha, element) = (n.float(3)?, n.float(4)?, n.element()?);
    let made = n.b().matmul(a, b)?;
    let made = n.b().map(&[made, bias], element, |p, x| {
        let mut part = |value, factor: f64| match factor {
            1.0 => value,
            _ => p.call(F::Mul, &[value, number(factor)]),
        };
        let (product, bias) = (part(x[0], alpha), part(x[1], beta));
        p.call(F::Add, &[product, bias])
    })?;
    n.finish(made)
}
