//! Operators that tell the shape of tensors, or change it without moving elements.

use halite_ops::{
    DType,
    expression::{self, Function, Operand, Scalar},
};
use halite_sizes::Size;

use super::{Import, NodeView, Result};
use crate::{
    build::{Builder, MOST_SIZE, Number},
    graph::TensorId,
};

pub(super) const OPS: &[(&str, Import)] = &[
    ("Expand", expand),
    ("Flatten", flatten),
    ("Identity", identity),
    ("Reshape", reshape),
    ("Shape", shape),
    ("Size", size),
    ("Squeeze", squeeze),
    ("Unsqueeze", unsqueeze),
];

fn identity(_: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    Ok(vec![node.input(0)?])
}

fn shape(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let dims = b.sizes(node.input(0)?).to_vec();
    let rank = dims.len() as i64;
    let bound = |value: i64| (if value < 0 { value.saturating_add(rank) } else { value }).clamp(0, rank);
    let (start, end) = (bound(node.int("start", 0)?), bound(node.int("end", rank)?));
    let part = dims.get(start as usize..end as usize).unwrap_or(&[]);
    let part = part.to_vec();
    Ok(vec![b.sizes_constant(&part)?])
}

fn size(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let count = b.tensor(node.input(0)?).count();
    Ok(vec![b.computed(DType::I64, &[], vec![count])?])
}

fn reshape(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let data = node.input(0)?;
    let from = b.sizes(data).to_vec();
    let numbers = b.numbers_of(node.input(1)?, "the shape")?;
    let keep_zeros = node.flag("allowzero", false)?;
    let wanted = shape_of_data(b, &from, &numbers, keep_zeros)?;
    let mut dims = Vec::new();
    for (index, size) in wanted.iter().enumerate() {
        dims.push(match from.get(index) {
            Some(own) if *size == 0 && !keep_zeros => *own,
            None if *size == 0 && !keep_zeros => {
                return Err(node.invalid(format!("there is no dimension {index} to copy")));
            }
            _ if *size == -1 => Size::constant(1),
            _ if *size >= 0 => *size,
            _ => return Err(node.invalid(format!("{size} is no size"))),
        });
    }
    let mut open = wanted.iter().enumerate().filter(|(_, size)| **size == -1).map(|(index, _)| index);
    if let Some(index) = open.next() {
        if open.next().is_some() {
            return Err(node.invalid(format!("the shape {wanted:?} leaves two sizes open")));
        }
        dims[index] = rest(&from, &dims);
    }
    Ok(vec![b.reshape_to(data, &dims)?])
}

/// What a dimension has to have beside others, where the elements of a tensor are to be its.
fn rest(from: &[Size], others: &[Size]) -> Size {
    let (count, known): (Size, Size) = (from.iter().product(), others.iter().product());
    if known == 0 {
        return Size::constant(0);
    }
    // Factors that are in both, of which nothing is known that would let them be divided.
    let mut from = from.to_vec();
    let is_left = |size: &&Size| match from.iter().position(|own| own.is(**size)) {
        Some(at) => {
            from.remove(at);
            false
        }
        None => true,
    };
    let left: Vec<Size> = others.iter().filter(is_left).copied().collect();
    let (own, by): (Size, Size) = (from.iter().product(), left.iter().product());
    if by.is_constant() && by == 1 {
        return own;
    }
    if known.is_data() { count / known.max(1) } else { count / known }
}

/// The numbers of a shape, with those known that data decide: -1 and 0 are replaced by what they mean before the host reads. A
/// single one that is not known is what is left.
fn shape_of_data(b: &mut Builder, from: &[Size], numbers: &[Number], keep_zeros: bool) -> Result<Vec<Size>> {
    let known = |number: &Number| match number {
        Number::Known(size) => Some(*size),
        Number::Data(_) => None,
    };
    let others: Vec<Size> = numbers.iter().filter_map(known).collect();
    let unknown = numbers.len() - others.len();
    let is_open = |size: &Size| size.is_constant() && *size == -1;
    if unknown == 0 {
        return Ok(others);
    }
    if unknown == 1 && !others.iter().any(is_open) {
        return Ok(numbers.iter().map(|number| known(number).unwrap_or_else(|| (-1).into())).collect());
    }
    let mut scalars = Vec::new();
    for (index, number) in numbers.iter().enumerate() {
        let Number::Data(id) = number else { continue };
        let own = from.get(index).filter(|_| !keep_zeros);
        scalars.push(match own {
            Some(own) => {
                let own = b.computed(DType::I64, &[], vec![*own])?;
                b.map(&[*id, own], DType::I64, |program, x| {
                    let zero = Operand::Constant(Scalar::Int(0, DType::I64));
                    let is_zero = program.call(Function::Eq, &[x[0], zero]);
                    program.call(Function::Select, &[is_zero, x[1], x[0]])
                })?
            }
            None => *id,
        });
    }
    let count: Size = from.iter().product();
    if !others.iter().any(is_open) {
        scalars = filled(b, from, &others, &scalars)?;
    }
    // Beside a zero the others may be anything.
    let most = if count.most() == 0 { MOST_SIZE } else { count.most().clamp(0, MOST_SIZE) };
    let scalars: Vec<_> = scalars.into_iter().map(|scalar| (scalar, 0, most)).collect();
    let mut read = b.read_scalars(&scalars, "the shape")?.into_iter();
    Ok(numbers.iter().map(|number| known(number).or_else(|| read.next()).unwrap_or_default()).collect())
}

/// Sizes with one that is -1 replaced by what is left beside the others and the known ones.
fn filled(b: &mut Builder, from: &[Size], known: &[Size], scalars: &[TensorId]) -> Result<Vec<TensorId>> {
    let count = b.computed(DType::I64, &[], vec![from.iter().product()])?;
    let mut all = vec![count];
    for size in known {
        // Of a known zero it is enough that it divides nothing.
        let size = if size.is_constant() { Size::max(*size, 1) } else { *size };
        all.push(b.computed(DType::I64, &[], vec![size])?);
    }
    let mut made = Vec::new();
    for own in scalars {
        let mut operands = all.clone();
        operands.extend(scalars.iter().filter(|other| *other != own));
        operands.push(*own);
        made.push(b.map(&operands, DType::I64, |program, x| {
            let int = |value: i64| Operand::Constant(Scalar::Int(value, DType::I64));
            let (own, others) = (x[x.len() - 1], &x[1..x.len() - 1]);
            let beside =
                others.iter().fold(int(1), |product, other| program.call(Function::Mul, &[product, *other]));
            let beside = program.call(Function::Max, &[beside, int(1)]);
            let left = program.call(Function::Div, &[x[0], beside]);
            let is_open = program.call(Function::Eq, &[own, int(-1)]);
            program.call(Function::Select, &[is_open, left, own])
        })?);
    }
    Ok(made)
}

fn flatten(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let data = node.input(0)?;
    let dims = b.sizes(data).to_vec();
    let rank = dims.len();
    let axis = match node.int("axis", 1)? {
        end if end == rank as i64 => rank,
        axis => node.axis(axis, rank)?,
    };
    let sizes: [Size; 2] = [dims[..axis].iter().product(), dims[axis..].iter().product()];
    Ok(vec![b.reshape_to(data, &sizes)?])
}

fn squeeze(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let data = node.input(0)?;
    let dims = b.sizes(data).to_vec();
    let axes = match node.ints_of(b, "axes", 1, "the axes")? {
        Some(axes) => node.axes(&axes, dims.len())?,
        None => (0..dims.len()).filter(|axis| dims[*axis] == 1).collect(),
    };
    if let Some(axis) = axes.iter().find(|axis| !dims[**axis].agrees(1)) {
        return Err(node.invalid(format!("axis {axis} of {dims:?} has more than one place")));
    }
    let kept: Vec<Size> =
        dims.iter().enumerate().filter(|(axis, _)| !axes.contains(axis)).map(|(_, size)| *size).collect();
    Ok(vec![b.reshape_to(data, &kept)?])
}

pub(super) fn unsqueeze(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let data = node.input(0)?;
    let axes = node.ints_of(b, "axes", 1, "the axes")?.ok_or_else(|| node.invalid("the axes are missing"))?;
    let mut old = b.sizes(data).to_vec().into_iter();
    let rank = old.len() + axes.len();
    let axes = node.axes(&axes, rank)?;
    let one = Size::constant(1);
    let dims: Vec<Size> =
        (0..rank).map(|axis| if axes.contains(&axis) { one } else { old.next().unwrap_or(one) }).collect();
    Ok(vec![b.reshape_to(data, &dims)?])
}

fn expand(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let data = node.input(0)?;
    let own = b.sizes(data).to_vec();
    let numbers = b.numbers_of(node.input(1)?, "the shape")?;
    let lead = numbers.len().checked_sub(own.len());
    let mut wanted = Vec::new();
    for (index, number) in numbers.iter().enumerate() {
        let beside = lead.and_then(|lead| own.get(index.checked_sub(lead)?));
        wanted.push(match (number, beside) {
            // It is 1, and 0 beside nothing alone: `Shape` of a first row that `Slice` takes, as PyTorch's `index_add` is written.
            (Number::Known(size), Some(own))
                if size.is_data() && size.most() <= 1 && (*own * (*size - 1)).agrees(0) =>
            {
                1.into()
            }
            (Number::Known(size), _) => *size,
            // It is 1, or the same.
            (Number::Data(_), Some(size)) if size.least() > 1 => *size,
            (Number::Data(id), _) => b.read_scalars(&[(*id, 0, MOST_SIZE)], "the shape")?[0],
        });
    }
    if wanted.iter().any(|size| *size < 0) {
        return Err(node.invalid(format!("{wanted:?} is no shape")));
    }
    let dims = expression::broadcast(&[own, wanted]).map_err(|reason| node.invalid(reason))?;
    Ok(vec![b.expand_to(data, &dims)?])
}
