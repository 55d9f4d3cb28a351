//! Where the elements of broadcast tensors lie: dimensions merged as far as all inputs allow, and how each input is read.

use halite_ops::{Op, elementwise::Elementwise};
use halite_sizes::Size;

use crate::{Unfit, divider::LIMIT, plan::narrow};

/// How an input is read, over merged dimensions of the outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Walk {
    /// Elements from a place to the next in each dimension.
    pub(crate) strides: Vec<Size>,
    /// The first element.
    pub(crate) offset: Size,
}

impl Walk {
    /// Whether it begins with the first element, whatever sizes are.
    pub(crate) fn is_at_start(&self) -> bool {
        self.offset.is(0.into())
    }
}

/// How the elements of an input are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// As those of the output.
    Linear,
    /// There is one.
    Single,
    /// By coordinates; four neighbours of the output are neighbours here too.
    Row(Walk),
    /// By coordinates; four neighbours of the output are one element here.
    Column(Walk),
    /// By the coordinates of each element.
    Gather(Walk),
}

/// Shapes as kernels see them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Elements of an output.
    pub(crate) elements: Size,
    /// Merged dimensions, the innermost last.
    pub(crate) dims: Vec<Size>,
    /// How each input is read.
    pub(crate) accesses: Vec<Access>,
}

impl Layout {
    pub(crate) fn new(op: &Elementwise) -> Result<Layout, Unfit> {
        let dims = op.dims();
        let elements: Size = dims.iter().product();
        if elements >= LIMIT {
            return Err(Unfit(format!("counts less than {LIMIT} elements, not {elements}")));
        }
        let inputs = op.inputs.0.len();
        if elements == 0 {
            let accesses = vec![Access::Linear; inputs];
            return Ok(Layout { elements, dims: vec![elements], accesses });
        }
        let walks: Vec<(Vec<Size>, Size)> = (0..inputs).map(|input| op.walk(input)).collect();
        for input in op.strided.iter().map(|strides| strides.input) {
            narrow("elements of an input", op.inputs()[input].elements())?;
        }
        // For each dimension, its size and the strides of the inputs.
        let mut runs: Vec<(Size, Vec<Size>)> = Vec::new();
        for (place, size) in dims.iter().enumerate().filter(|(_, size)| **size != 1) {
            let strides: Vec<Size> = walks.iter().map(|(strides, _)| strides[place]).collect();
            let follows = |outer: &[Size]| outer.iter().zip(&strides).all(|(o, s)| o.is(*s * *size));
            match runs.last_mut() {
                Some((total, outer)) if follows(outer) => {
                    *total *= size;
                    *outer = strides;
                }
                _ => runs.push((*size, strides)),
            }
        }
        if runs.is_empty() && walks.iter().any(|(_, offset)| !offset.is(0.into())) {
            // One element, which is not the first of its tensor: what is found by coordinates has a dimension.
            runs.push((1.into(), vec![0.into(); inputs]));
        }
        let whole_rows =
            runs.last().is_some_and(|(size, _)| halite_sizes::is_worth(|| size.is_multiple_of(4)));
        let access = |(input, (_, offset)): (usize, &(Vec<Size>, Size))| {
            let strides = runs.iter().map(|(_, strides)| strides[input]).collect();
            access(Walk { strides, offset: *offset }, &runs, whole_rows, op.strides_of(input).is_some())
        };
        let accesses = walks.iter().enumerate().map(access).collect();
        let dims = runs.iter().map(|(size, _)| narrow("a dimension", *size)).collect::<Result<_, _>>()?;
        Ok(Layout { elements: narrow("elements", elements)?, dims, accesses })
    }

    /// Whether any input is found by coordinates.
    pub(crate) fn has_coordinates(&self) -> bool {
        self.accesses.iter().any(|a| !matches!(a, Access::Linear | Access::Single))
    }
}

fn access(walk: Walk, runs: &[(Size, Vec<Size>)], whole_rows: bool, strided: bool) -> Access {
    let zero = |size: &Size| size.is(0.into());
    if walk.is_at_start() && walk.strides.iter().all(zero) {
        return Access::Single;
    }
    let mut dense = Size::constant(1);
    let follows = |((size, _), stride): (&(Size, Vec<Size>), &Size)| {
        let follows = stride.is(dense);
        dense *= size;
        follows
    };
    if walk.is_at_start() && runs.iter().zip(&walk.strides).rev().all(follows) {
        return Access::Linear;
    }
    let Some((last, outer)) = walk.strides.split_last().filter(|_| whole_rows) else {
        return Access::Gather(walk);
    };
    // Rows of tensors that are only broadcast are whole.
    let aligned = || {
        !strided || walk.offset.is_multiple_of(4) && outer.iter().all(|stride| (*stride).is_multiple_of(4))
    };
    match () {
        () if zero(last) => Access::Column(walk),
        () if last.is(1.into()) && aligned() => Access::Row(walk),
        () => Access::Gather(walk),
    }
}

#[cfg(test)]
mod tests {
    use halite_ops::{DType, expression::Expression, strides::Strides};

    use super::*;

    fn sizes(dims: &[i64]) -> Vec<Size> {
        dims.iter().map(|size| Size::from(*size)).collect()
    }

    fn op(inputs: &[&[i64]]) -> Elementwise {
        Elementwise::new(inputs.iter().map(|dims| (DType::F32, sizes(dims))), Expression::default())
    }

    fn walk(strides: &[i64], offset: i64) -> Walk {
        Walk { strides: sizes(strides), offset: offset.into() }
    }

    #[test]
    fn dimensions_merge_where_inputs_agree() {
        let layout = Layout::new(&op(&[&[2, 3, 4, 5], &[3, 1, 1], &[1], &[2, 3, 4, 5]])).unwrap();
        assert_eq!(layout.dims, [2, 3, 20]);
        assert_eq!(
            layout.accesses,
            [Access::Linear, Access::Column(walk(&[0, 1, 0], 0)), Access::Single, Access::Linear]
        );
        let layout = Layout::new(&op(&[&[6, 1, 7], &[1, 5, 7]])).unwrap();
        assert_eq!(layout.dims, [6, 5, 7]);
        assert_eq!(
            layout.accesses,
            [Access::Gather(walk(&[7, 0, 1], 0)), Access::Gather(walk(&[0, 7, 1], 0))]
        );
    }

    #[test]
    fn one_element_of_a_tensor_has_a_dimension() {
        let part = Strides { input: 0, source: 30.into(), offset: 7.into(), strides: sizes(&[1]) };
        let layout = Layout::new(&Elementwise { strided: vec![part], ..op(&[&[1]]) }).unwrap();
        assert_eq!(layout.dims, [1]);
        assert_eq!(layout.accesses, [Access::Gather(walk(&[0], 7))]);
        assert!(Layout::new(&op(&[&[1]])).unwrap().dims.is_empty());
    }

    #[test]
    fn strides_keep_dimensions_apart_and_say_what_is_read_at_once() {
        let strided = |offset: i64, strides: &[i64]| {
            let strides =
                Strides { input: 1, source: 480.into(), offset: offset.into(), strides: sizes(strides) };
            let op = Elementwise { strided: vec![strides], ..op(&[&[2, 3, 8], &[2, 3, 8]]) };
            let layout = Layout::new(&op).unwrap();
            (layout.dims.clone(), layout.accesses[1].clone())
        };
        // A part of rows, that begins at a whole vector, or not; every second element; rows in another order; the same.
        assert_eq!(strided(16, &[72, 24, 1]), (sizes(&[6, 8]), Access::Row(walk(&[24, 1], 16))));
        assert_eq!(strided(2, &[72, 24, 1]), (sizes(&[6, 8]), Access::Gather(walk(&[24, 1], 2))));
        assert_eq!(strided(0, &[48, 16, 2]), (sizes(&[48]), Access::Gather(walk(&[2], 0))));
        assert_eq!(strided(0, &[8, 16, 1]), (sizes(&[2, 3, 8]), Access::Row(walk(&[8, 16, 1], 0))));
        assert_eq!(strided(4, &[1, 2, 0]), (sizes(&[2, 3, 8]), Access::Column(walk(&[1, 2, 0], 4))));
        assert_eq!(strided(0, &[24, 8, 1]), (sizes(&[48]), Access::Linear));
        assert_eq!(strided(7, &[0, 0, 0]), (sizes(&[48]), Access::Column(walk(&[0], 7))));
    }
}
