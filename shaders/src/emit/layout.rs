//! Where the elements of broadcast tensors lie: dimensions merged as far as all inputs allow, and how each input is read.

use halite_sizes::Size;

use crate::{Unfit, divider::LIMIT, plan::narrow};

/// How the elements of an input are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// As those of the output.
    Linear,
    /// There is one.
    Single,
    /// By coordinates; four neighbours of the output are neighbours here too.
    Row(Vec<Size>),
    /// By coordinates; four neighbours of the output are one element here.
    Column(Vec<Size>),
    /// By the coordinates of each element.
    Gather(Vec<Size>),
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
    pub(crate) fn new(inputs: &[Vec<Size>], dims: &[Size]) -> Result<Layout, Unfit> {
        let elements: Size = dims.iter().product();
        if elements >= LIMIT {
            return Err(Unfit(format!("counts less than {LIMIT} elements, not {elements}")));
        }
        if elements == 0 {
            let accesses = vec![Access::Linear; inputs.len()];
            return Ok(Layout { elements, dims: vec![elements], accesses });
        }
        // For each dimension, its size and which inputs have it.
        let mut runs: Vec<(Size, Vec<bool>)> = Vec::new();
        for (place, size) in dims.iter().enumerate().filter(|(_, size)| **size != 1) {
            let has = |input: &Vec<Size>| {
                let missing = dims.len() - input.len();
                place >= missing && input[place - missing] != 1
            };
            let present: Vec<bool> = inputs.iter().map(has).collect();
            match runs.last_mut() {
                Some((total, same)) if *same == present => *total *= size,
                _ => runs.push((*size, present)),
            }
        }
        let whole_rows = runs.last().is_some_and(|(size, _)| size.is_multiple_of(4));
        let accesses = (0..inputs.len()).map(|index| access(&runs, index, whole_rows)).collect();
        let dims = runs.iter().map(|(size, _)| narrow("a dimension", *size)).collect::<Result<_, _>>()?;
        Ok(Layout { elements: narrow("elements", elements)?, dims, accesses })
    }

    /// Whether any input is found by coordinates.
    pub(crate) fn has_coordinates(&self) -> bool {
        self.accesses.iter().any(|a| !matches!(a, Access::Linear | Access::Single))
    }
}

fn access(runs: &[(Size, Vec<bool>)], index: usize, whole_rows: bool) -> Access {
    if runs.iter().all(|(_, present)| !present[index]) {
        return Access::Single;
    }
    if runs.iter().all(|(_, present)| present[index]) {
        return Access::Linear;
    }
    let mut stride = Size::constant(1);
    let mut strides: Vec<Size> = runs
        .iter()
        .rev()
        .map(|(size, present)| {
            let own = if present[index] { stride } else { Size::constant(0) };
            if present[index] {
                stride *= size;
            }
            own
        })
        .collect();
    strides.reverse();
    match (whole_rows, strides.last()) {
        (true, Some(last)) if *last == 0 => Access::Column(strides),
        (true, _) => Access::Row(strides),
        _ => Access::Gather(strides),
    }
}

#[cfg(test)]
mod tests {
    use halite_ops::expression::broadcast;

    use super::*;

    #[test]
    fn dimensions_merge_where_inputs_agree() {
        let sizes = |dims: &[u64]| dims.iter().map(Size::from).collect::<Vec<_>>();
        let inputs = [&[2, 3, 4, 5][..], &[3, 1, 1], &[1], &[2, 3, 4, 5]].map(sizes);
        let dims = broadcast(&inputs).unwrap();
        assert_eq!(dims, [2, 3, 4, 5]);
        let layout = Layout::new(&inputs, &dims).unwrap();
        assert_eq!(layout.dims, [2, 3, 20]);
        assert_eq!(
            layout.accesses,
            [Access::Linear, Access::Column(sizes(&[0, 1, 0])), Access::Single, Access::Linear]
        );
        let inputs = [&[6, 1, 7], &[1, 5, 7]].map(|dims| sizes(dims));
        let layout = Layout::new(&inputs, &broadcast(&inputs).unwrap()).unwrap();
        assert_eq!(layout.dims, [6, 5, 7]);
        assert_eq!(layout.accesses, [Access::Gather(sizes(&[7, 0, 1])), Access::Gather(sizes(&[0, 7, 1]))]);
    }
}
