//! Operators that tell the shape of tensors, or change it without moving elements.

use halite_ops::{DType, Values, expression};

use super::{Import, NodeView, Result};
use crate::{
    build::Builder,
    graph::{TensorId, elements},
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
    let dims = b.dims(node.input(0)?).to_vec();
    let rank = dims.len() as i64;
    let bound = |value: i64| (if value < 0 { value.saturating_add(rank) } else { value }).clamp(0, rank);
    let (start, end) = (bound(node.int("start", 0)?), bound(node.int("end", rank)?));
    let part = dims.get(start as usize..end as usize).unwrap_or(&[]);
    let part: Vec<i64> = part.iter().map(|size| *size as i64).collect();
    Ok(vec![b.ints_constant(&part)?])
}

fn size(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let count = elements(b.dims(node.input(0)?));
    Ok(vec![b.values(DType::I64, &[], &Values::Int(vec![count as i64]))?])
}

fn reshape(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let data = node.input(0)?;
    let from = b.dims(data).to_vec();
    let wanted = b.need_ints(node.input(1)?, "the shape")?;
    let keep_zeros = node.flag("allowzero", false)?;
    let mut dims = Vec::new();
    for (index, size) in wanted.iter().enumerate() {
        dims.push(match (*size, from.get(index)) {
            (0, Some(own)) if !keep_zeros => *own,
            (0, None) if !keep_zeros => {
                return Err(node.invalid(format!("there is no dimension {index} to copy")));
            }
            (-1, _) => 1,
            (size, _) => u64::try_from(size).map_err(|_| node.invalid(format!("{size} is no size")))?,
        });
    }
    let mut open = wanted.iter().enumerate().filter(|(_, size)| **size == -1).map(|(index, _)| index);
    if let Some(index) = open.next() {
        if open.next().is_some() {
            return Err(node.invalid(format!("the shape {wanted:?} leaves two sizes open")));
        }
        let known = elements(&dims);
        dims[index] = elements(&from).checked_div(known).unwrap_or(0);
    }
    Ok(vec![b.reshape(data, &dims)?])
}

fn flatten(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let data = node.input(0)?;
    let dims = b.dims(data).to_vec();
    let rank = dims.len();
    let axis = match node.int("axis", 1)? {
        end if end == rank as i64 => rank,
        axis => node.axis(axis, rank)?,
    };
    let sizes = [elements(&dims[..axis]), elements(&dims[axis..])];
    Ok(vec![b.reshape(data, &sizes)?])
}

fn squeeze(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let data = node.input(0)?;
    let dims = b.dims(data).to_vec();
    let axes = match node.ints_of(b, "axes", 1, "the axes")? {
        Some(axes) => node.axes(&axes, dims.len())?,
        None => (0..dims.len()).filter(|axis| dims[*axis] == 1).collect(),
    };
    if let Some(axis) = axes.iter().find(|axis| dims[**axis] != 1) {
        return Err(node.invalid(format!("axis {axis} of {dims:?} has more than one place")));
    }
    let kept: Vec<u64> =
        dims.iter().enumerate().filter(|(axis, _)| !axes.contains(axis)).map(|(_, size)| *size).collect();
    Ok(vec![b.reshape(data, &kept)?])
}

fn unsqueeze(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let data = node.input(0)?;
    let axes = node.ints_of(b, "axes", 1, "the axes")?.ok_or_else(|| node.invalid("the axes are missing"))?;
    let mut old = b.dims(data).to_vec().into_iter();
    let rank = old.len() + axes.len();
    let axes = node.axes(&axes, rank)?;
    let dims: Vec<u64> =
        (0..rank).map(|axis| if axes.contains(&axis) { 1 } else { old.next().unwrap_or(1) }).collect();
    Ok(vec![b.reshape(data, &dims)?])
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
