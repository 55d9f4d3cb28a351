//! Operators that make tensors of nothing but numbers.

use halite_ops::{DType, Values};
use halite_sizes::Size;

use super::{Node, Result, Table};
use crate::{
    build::Range,
    frontends::pte::{types::finite_in, value::Passed},
    graph::elements,
};

pub(super) const OPERATORS: Table = &[
    ("aten.arange.start_step", |n| {
        let (start, step) = (n.optional_float(0)?.unwrap_or(0.0), n.optional_float(2)?.unwrap_or(1.0));
        arange(n, start, 1, step)
    }),
    ("aten.arange.default", |n| arange(n, 0.0, 0, 1.0)),
    // What is in them nobody may rely on.
    ("aten.empty.default", |n| fill_sizes(n, 0.0)),
    ("dim_order_ops._empty_dim_order.default", |n| fill_sizes(n, 0.0)),
    ("aten.full.default", |n| {
        let (dims, value) = (n.extents(0)?, n.float(1)?);
        fill(n, &dims, value)
    }),
    ("aten.full_like.default", |n| {
        let value = n.float(1)?;
        fill_like(n, value)
    }),
    ("aten.ones.default", |n| fill_sizes(n, 1.0)),
    ("aten.zeros.default", |n| fill_sizes(n, 0.0)),
    ("aten.ones_like.default", |n| fill_like(n, 1.0)),
    ("aten.zeros_like.default", |n| fill_like(n, 0.0)),
    ("aten.scalar_tensor.default", |n| {
        // A place that the device computes stays one.
        if let Some(Passed::Computed(..)) = n.known(0)? {
            let (made, element) = (n.number_tensor(0)?, n.element()?);
            let made = n.b().cast(made, element)?;
            return n.finish(made);
        }
        let value = n.float(0)?;
        fill(n, &[], value)
    }),
    ("et_vk.grid_priors.default", grid),
];

/// Most elements that are computed while a graph is built: what a file of a few bytes may ask for.
const MOST: u64 = 1 << 20;

fn fill_sizes(n: &mut Node<'_, '_>, value: f64) -> Result<()> {
    let dims = n.extents(0)?;
    fill(n, &dims, value)
}

fn fill_like(n: &mut Node<'_, '_>, value: f64) -> Result<()> {
    let x = n.tensor(0)?;
    let dims = n.b().sizes(x).to_vec();
    fill(n, &dims, value)
}

fn fill(n: &mut Node<'_, '_>, dims: &[Size], value: f64) -> Result<()> {
    if dims.iter().any(|size| *size < 0) {
        return Err(n.invalid(format!("a tensor of {dims:?}")));
    }
    let element = n.element()?;
    let one = n.b().float(element, finite_in(element, value))?;
    let made = n.b().expand_to(one, dims)?;
    n.finish(made)
}

/// Numbers from `start` on, in steps, before that of argument `end`.
fn arange(n: &mut Node<'_, '_>, start: f64, end: usize, step: f64) -> Result<()> {
    if let (true, true, Some(Passed::Number(_) | Passed::Computed(..))) =
        (start == 0.0, step == 1.0, n.known(end)?)
    {
        let count = n.extent(end)?;
        if !count.is_constant() {
            return open_arange(n, count);
        }
    }
    let end = n.float(end)?;
    let count = ((end - start) / step).ceil();
    if !(0.0..=MOST as f64).contains(&count) {
        return Err(n.invalid(format!(
            "numbers from {start} to {end} in steps of {step}; at most {MOST} are supported"
        )));
    }
    let element = n.element()?;
    let number = |i: u64| start + step * i as f64;
    let values = if element.is_float() {
        Values::Float((0..count as u64).map(number).collect())
    } else {
        Values::Int((0..count as u64).map(|i| number(i) as i64).collect())
    };
    let made = n.b().values(element, &[count as u64], &values)?;
    n.finish(made)
}

/// Numbers from 0 on, as many as depends on sizes, of those that the file allows.
fn open_arange(n: &mut Node<'_, '_>, count: Size) -> Result<()> {
    let (element, declared) = (n.element()?, &n.declared()?.dims);
    let most = declared.first().copied().unwrap_or(0);
    if most > MOST || count < 0 || !count.stays_within(most) {
        return Err(n.invalid(format!("{count} numbers of at most {most}; at most {MOST} are supported")));
    }
    let all = n.b().count_from(0, most)?;
    let made = n.b().slice(all, &[Range { start: Size::from(0), step: 1, count }])?;
    let made = n.b().cast(made, element)?;
    n.finish(made)
}

/// Middles of the cells of a feature map, as column and row of the image: arguments are the map, whose last dimensions are
/// rows and columns, the stride, and the offset inside of a cell.
fn grid(n: &mut Node<'_, '_>) -> Result<()> {
    let (x, stride, offset) = (n.tensor(0)?, n.float(1)?, n.float(2)?);
    let element = n.element()?;
    let [.., rows, columns] = n.b().dims(x).to_vec()[..] else {
        return Err(n.invalid("the feature map has no rows and columns"));
    };
    if elements(&[rows, columns]) > MOST {
        return Err(
            n.unsupported(format!("a feature map of {rows}x{columns}; at most {MOST} cells are supported"))
        );
    }
    let place = |at: u64| (at as f64 + offset) * stride;
    let cells = (0..rows).flat_map(|row| (0..columns).flat_map(move |column| [place(column), place(row)]));
    let made = n.b().values(DType::F32, &[rows * columns, 2], &Values::Float(cells.collect()))?;
    let made = n.b().cast(made, element)?;
    n.finish(made)
}
