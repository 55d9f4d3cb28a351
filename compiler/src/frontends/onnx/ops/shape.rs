//! Operators that tell the shape of tensors, or change it without moving elements.

use halite_ops::{DType, expression};
use halite_sizes::Size;

use super::{Import, NodeView, Result};
use crate::{build::Builder, graph::TensorId};

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
    let wanted = b.need_sizes(node.input(1)?, "the shape")?;
    let keep_zeros = node.flag("allowzero", false)?;
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
        let known: Size = dims.iter().product();
        let count: Size = from.iter().product();
        dims[index] = if known == 0 { Size::constant(0) } else { count / known };
    }
    Ok(vec![b.reshape_to(data, &dims)?])
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
    if let Some(axis) = axes.iter().find(|axis| dims[**axis] != 1) {
        return Err(node.invalid(format!("axis {axis} of {dims:?} has more than one place")));
    }
    let kept: Vec<Size> =
        dims.iter().enumerate().filter(|(axis, _)| !axes.contains(axis)).map(|(_, size)| *size).collect();
    Ok(vec![b.reshape_to(data, &kept)?])
}

fn unsqueeze(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
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
    let wanted = b.need_sizes(node.input(1)?, "the shape")?;
    if wanted.iter().any(|size| *size < 0) {
        return Err(node.invalid(format!("{wanted:?} is no shape")));
    }
    let shapes = [b.sizes(data).to_vec(), wanted];
    let dims = expression::broadcast(&shapes).map_err(|reason| node.invalid(reason))?;
    Ok(vec![b.expand_to(data, &dims)?])
}
