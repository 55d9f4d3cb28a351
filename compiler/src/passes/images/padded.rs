//! Borders around images, also where the operation counts images and channels as one dimension.

use halite_ops::pad::Pad;
use halite_sizes::Size;

use super::order::four;
use crate::graph::{Graph, Node};

/// The same with the four dimensions of the image that it reads, if it writes an image too.
pub(super) fn of_image(graph: &Graph, op: &Pad, node: &Node) -> Option<Pad> {
    four(graph, *node.outputs.first()?)?;
    with_dimensions(op, four(graph, *node.inputs.first()?)?)
}

/// The same with other dimensions, of which each one of the operation is a product. A border is put around one of them.
fn with_dimensions(op: &Pad, sizes: [Size; 4]) -> Option<Pad> {
    let mut made =
        Pad { input: sizes.to_vec(), before: vec![0.into(); 4], after: vec![0.into(); 4], ..op.clone() };
    let mut begin = sizes.len();
    for ((input, before), after) in op.input.iter().zip(&op.before).zip(&op.after).rev() {
        let end = begin;
        let mut product = Size::constant(1);
        while begin == end || product != *input {
            begin = begin.checked_sub(1)?;
            product *= sizes[begin];
        }
        if *before == 0 && *after == 0 {
            continue;
        }
        let mut long = (begin..end).filter(|d| sizes[*d] != 1);
        let d = long.next().unwrap_or(end - 1);
        if long.next().is_some() {
            return None;
        }
        (made.before[d], made.after[d]) = (*before, *after);
    }
    sizes[..begin].iter().all(|size| *size == 1).then_some(made)
}

#[cfg(test)]
mod tests {
    use halite_ops::{DType, pad::Border};

    use super::*;

    fn sizes<const N: usize>(list: [i64; N]) -> [Size; N] {
        list.map(Size::from)
    }

    #[test]
    fn dimensions_are_found_in_products() {
        let pad = |input: &[i64], before: &[i64]| {
            let list = |values: &[i64]| values.iter().copied().map(Size::from).collect::<Vec<_>>();
            let (border, value, dtype) = (Border::Reflect, 0.0.into(), DType::F16);
            Pad { input: list(input), before: list(before), after: list(before), border, value, dtype }
        };
        let found = |input: &[i64], before: &[i64], image| {
            with_dimensions(&pad(input, before), sizes(image)).map(|made| made.before)
        };
        let image = [2, 3, 4, 5];
        assert_eq!(found(&[6, 4, 5], &[0, 1, 2], image), Some(sizes([0, 0, 1, 2]).to_vec()));
        assert_eq!(found(&[24, 5], &[0, 2], image), Some(sizes([0, 0, 0, 2]).to_vec()));
        assert_eq!(found(&[2, 3, 4, 5], &[0, 1, 2, 0], image), Some(sizes([0, 1, 2, 0]).to_vec()));
        assert_eq!(found(&[3, 20], &[1, 0], [1, 3, 4, 5]), Some(sizes([0, 1, 0, 0]).to_vec()));
        assert_eq!(found(&[1, 3, 20], &[1, 0, 0], [1, 3, 4, 5]), Some(sizes([1, 0, 0, 0]).to_vec()));
        // A border around rows of rows, and sizes that do not go together.
        assert_eq!(found(&[6, 20], &[0, 1], image), None);
        assert_eq!(found(&[2, 6, 10], &[0, 0, 1], image), None);
        assert_eq!(found(&[3, 4, 5], &[0, 0, 1], image), None);
    }
}
