//! Where the rows of the heads of attention lie.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

use crate::strides::inside;

/// Row `i` of head `h` of element `b` of the batch begins at element `offset + b * batch + h * head + i * row` of a tensor of
/// `source` elements; the elements of a row follow each other. As a list: these five, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<Size>", into = "Vec<Size>")]
pub struct Rows {
    /// Elements of the tensor.
    pub source: Size,
    /// The first element of the first row.
    pub offset: Size,
    /// Elements from one element of the batch to the next.
    pub batch: Size,
    /// Elements from one head to the next.
    pub head: Size,
    /// Elements from one row to the next.
    pub row: Size,
}

impl Rows {
    /// Rows of `dim` elements one behind the other, head after head.
    pub fn dense(batch: Size, heads: u64, rows: Size, dim: u64) -> Rows {
        let head = rows * dim;
        let source = batch * heads * head;
        Rows { source, offset: 0.into(), batch: head * heads, head, row: dim.into() }
    }

    /// The first element of a row.
    pub fn at(&self, b: u64, h: u64, i: u64) -> u64 {
        (self.offset + self.batch * b + self.head * h + self.row * i).value()
    }

    /// Whether all rows of a shape lie in the tensor; the reason when they do not.
    ///
    /// # Errors
    /// They do not, or they lie backwards.
    pub fn check(&self, shape: [Size; 4]) -> Result<(), String> {
        let strides = [self.batch, self.head, self.row, 1.into()];
        if strides.iter().any(|stride| *stride < 0) {
            return Err("rows do not lie backwards".to_owned());
        }
        inside(self.source, self.offset, &shape, &strides)
    }

    /// Whether the rows are all of the tensor, and no two of them have elements in common.
    pub fn is_order(&self, shape: [Size; 4]) -> bool {
        let strides = [self.batch, self.head, self.row, 1.into()];
        let each = shape.into_iter().zip(strides).filter(|(size, _)| *size != 1);
        let mut dims: Vec<(Size, Size)> = each.collect();
        dims.sort_by_key(|(_, stride)| stride.value());
        let mut place = Size::constant(1);
        let follow = dims.iter().all(|(size, stride)| {
            let follows = *stride == place;
            place *= size;
            follows
        });
        let none = shape.iter().any(|size| *size == 0);
        self.source == shape.iter().product::<Size>() && (none || follow && self.offset == 0)
    }
}

impl From<Rows> for Vec<Size> {
    fn from(rows: Rows) -> Self {
        vec![rows.source, rows.offset, rows.batch, rows.head, rows.row]
    }
}

impl TryFrom<Vec<Size>> for Rows {
    type Error = String;

    fn try_from(list: Vec<Size>) -> Result<Self, String> {
        match list[..] {
            [source, offset, batch, head, row] => Ok(Rows { source, offset, batch, head, row }),
            _ => Err(format!("{} numbers; rows have five: source, offset, batch, head, row", list.len())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_has_each_element_once() {
        let shape = [2, 3, 5, 4].map(Size::constant);
        let dense = Rows::dense(2.into(), 3, 5.into(), 4);
        assert!(dense.is_order(shape) && dense.check(shape).is_ok());
        let tokens = Rows { head: 4.into(), row: 12.into(), ..dense };
        assert!(tokens.is_order(shape) && tokens.check(shape).is_ok());
        assert!(!Rows { row: 8.into(), ..tokens }.is_order(shape));
        assert!(!Rows { source: 240.into(), ..tokens }.is_order(shape));
        assert!(Rows { offset: 1.into(), ..tokens }.check(shape).is_err());
        assert!(Rows { head: (-4).into(), ..tokens }.check(shape).is_err());
    }
}
