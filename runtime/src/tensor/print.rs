//! The printed form of tensors.

use std::fmt;

use super::{HostTensor, element::Codec};

/// Rows of a tensor without elements that are printed at least; more are cut, as they would cost time for nothing.
const EMPTY_ROWS: u64 = 1024;

/// A tensor as text: see [`HostTensor::display`].
#[derive(Clone, Copy, Debug)]
pub struct Printed<'a> {
    tensor: &'a HostTensor,
    max_elements: u64,
}

impl<'a> Printed<'a> {
    pub(super) fn new(tensor: &'a HostTensor, max_elements: u64) -> Self {
        Printed { tensor, max_elements }
    }

    /// Writes one innermost row; `first` is the index of its first element.
    fn row(&self, codec: Codec, first: u64, length: u64, text: &mut String) {
        let shown = self.max_elements.saturating_sub(first).min(length);
        for i in 0..shown {
            if i > 0 {
                text.push(' ');
            }
            codec.format(&self.tensor.data, first + i, text);
        }
        if shown < length {
            text.push_str("...");
        }
    }
}

impl fmt::Display for Printed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=", self.tensor.metadata())?;
        let shape = &self.tensor.shape;
        let (inner, outer) = shape.split_last().map_or((1, &shape[..]), |(inner, outer)| (*inner, outer));
        // Dimensions inside an empty one are never reached.
        let reached = outer.iter().position(|d| *d == 0);
        let (dims, inner) = reached.map_or((outer, inner), |zero| (&outer[..zero], 0));
        if reached == Some(0) {
            return Ok(());
        }
        let mut rows = dims.iter().fold(1u64, |n, d| n.saturating_mul(*d));
        let limit = self.max_elements.max(EMPTY_ROWS);
        let cut = inner == 0 && rows > limit;
        if cut {
            rows = limit;
        }
        let codec = Codec::of(self.tensor.element_type);
        let mut text = String::new();
        for row in 0..rows {
            text.clear();
            let opened = wraps(dims, row);
            (0..opened).for_each(|_| text.push('['));
            self.row(codec, row.saturating_mul(inner), inner, &mut text);
            let closed = wraps(dims, row + 1);
            (0..closed).for_each(|_| text.push(']'));
            f.write_str(&text)?;
        }
        if cut { f.write_str("...") } else { Ok(()) }
    }
}

/// How many dimensions begin at this row (equally: end before it); one bracket for each.
fn wraps(dims: &[u64], row: u64) -> usize {
    let mut stride = 1u64;
    for (count, dim) in dims.iter().rev().enumerate() {
        if !row.is_multiple_of(stride) {
            return count;
        }
        stride = stride.saturating_mul(*dim);
    }
    dims.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(spec: &str, max: u64) -> String {
        HostTensor::parse(spec).unwrap().display(max).to_string()
    }

    #[test]
    fn truncation_budget_runs_through_the_rows() {
        let cube = "2x2x2xi32=1 2 3 4 5 6 7 8";
        assert_eq!(print(cube, 0), "2x2x2xi32=[[...][...]][[...][...]]");
        assert_eq!(print(cube, 1), "2x2x2xi32=[[1...][...]][[...][...]]");
        assert_eq!(print(cube, 3), "2x2x2xi32=[[1 2][3...]][[...][...]]");
        assert_eq!(print(cube, 6), "2x2x2xi32=[[1 2][3 4]][[5 6][...]]");
        assert_eq!(print(cube, 8), "2x2x2xi32=[[1 2][3 4]][[5 6][7 8]]");
        assert_eq!(print("4xi32=1 2 3 4", 0), "4xi32=...");
        assert_eq!(print("4xi32=4 8 1 2", 2), "4xi32=4 8...");
        assert_eq!(print("f32=2.5", 0), "f32=...");
    }

    #[test]
    fn empty_tensors_of_any_extent_print_at_once() {
        assert_eq!(print("1x2x0x2xf32=", 5), "1x2x0x2xf32=[[][]]");
        assert_eq!(print("0x3xf32=", 5), "0x3xf32=");
        let huge = print("1099511627776x0xf32=", 5);
        assert!(huge.ends_with("[][]...") && huge.len() < 4096, "{}", huge.len());
    }
}
