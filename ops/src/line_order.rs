//! Lines that lie in other orders than one behind the other, and whose elements may lie apart: read in one, written in another.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

use crate::strides::inside;

/// Most dimensions of the number of a line.
pub const MOST_LINE_DIMS: usize = 4;

/// Line `[i, j, …]` of `sizes` is read from element `offset + i * from[0] + j * from[1] + …` of a tensor of `source` elements on,
/// and written from element `i * to[0] + j * to[1] + …` of the result on. The last of `from` and of `to` is the distance between
/// the elements of a line. As a list: the number of sizes, then `sizes`, `source`, `offset`, `from`, `to`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<Size>", into = "Vec<Size>")]
pub struct LineOrder {
    /// Lines in each dimension.
    pub sizes: Vec<Size>,
    /// Elements of the tensor that is read.
    pub source: Size,
    /// Its first element that is read.
    pub offset: Size,
    /// Elements from a line to the next in each dimension, and from an element to the next, where they are read.
    pub from: Vec<Size>,
    /// The same where they are written.
    pub to: Vec<Size>,
}

impl LineOrder {
    /// Whether lines of `length` elements can be read and written so; the reason when they cannot.
    ///
    /// # Errors
    /// Numbers are missing, lines do not lie in the tensor, lie backwards, or are not all of the result.
    pub fn check(&self, lines: Size, length: Size) -> Result<(), String> {
        let dims = self.sizes.len();
        if !(1..=MOST_LINE_DIMS).contains(&dims) || self.from.len() != dims + 1 || self.to.len() != dims + 1 {
            return Err(format!(
                "an order of lines has up to {MOST_LINE_DIMS} sizes, and one stride more each way"
            ));
        }
        if self.sizes.iter().product::<Size>() != lines {
            return Err(format!("an order of {lines} lines has other sizes"));
        }
        if self.from.iter().chain(&self.to).any(|stride| *stride < 0) {
            return Err("lines do not lie backwards".to_owned());
        }
        let mut all = self.sizes.clone();
        all.push(length);
        inside(self.source, self.offset, &all, &self.from)?;
        if all.iter().any(|size| *size == 0) {
            return Ok(());
        }
        let each = all.iter().zip(&self.to).filter(|(size, _)| **size != 1);
        let mut each: Vec<(Size, Size)> = each.map(|(size, stride)| (*size, *stride)).collect();
        each.sort_by_key(|(_, stride)| stride.value());
        let mut place = Size::constant(1);
        let follow = each.iter().all(|(size, stride)| {
            let follows = *stride == place;
            place *= size;
            follows
        });
        if follow { Ok(()) } else { Err("lines are written to each place of the result once".to_owned()) }
    }

    /// The first elements of a line: where it is read, and where it is written.
    pub fn bases(&self, line: u64) -> (u64, u64) {
        let (mut rest, mut from, mut to) = (line, self.offset.exact(), 0);
        for ((size, read), write) in self.sizes.iter().zip(&self.from).zip(&self.to).rev() {
            let size = size.exact();
            let at = rest % size;
            rest /= size;
            from += at * read.exact();
            to += at * write.exact();
        }
        (from, to)
    }

    /// The distances between elements of a line, read and written.
    pub fn steps(&self) -> (Size, Size) {
        let last = |strides: &[Size]| strides.last().copied().unwrap_or_default();
        (last(&self.from), last(&self.to))
    }
}

impl From<LineOrder> for Vec<Size> {
    fn from(order: LineOrder) -> Self {
        let mut list = vec![Size::from(order.sizes.len() as u64)];
        list.extend(order.sizes);
        list.extend([order.source, order.offset]);
        list.extend(order.from);
        list.extend(order.to);
        list
    }
}

impl TryFrom<Vec<Size>> for LineOrder {
    type Error = String;

    fn try_from(list: Vec<Size>) -> Result<Self, String> {
        let dims = list.first().map_or(0, |count| count.value().min(MOST_LINE_DIMS as u64)) as usize;
        if dims == 0 || list.len() != 3 * dims + 5 {
            return Err(format!(
                "{} numbers are no order of lines: their number of sizes n, and 3n + 4 more",
                list.len()
            ));
        }
        let (sizes, rest) = list[1..].split_at(dims);
        let (strides, ends) = rest[2..].split_at(dims + 1);
        let (source, offset) = (rest[0], rest[1]);
        Ok(LineOrder { sizes: sizes.to_vec(), source, offset, from: strides.to_vec(), to: ends.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(list: &[i64]) -> Vec<Size> {
        list.iter().map(|size| Size::from(*size)).collect()
    }

    #[test]
    fn orders_are_lists_and_are_checked() {
        // Columns of [2, 3, 5] become rows.
        let order = LineOrder {
            sizes: sizes(&[2, 5]),
            source: 30.into(),
            offset: 0.into(),
            from: sizes(&[15, 1, 5]),
            to: sizes(&[15, 3, 1]),
        };
        assert_eq!(order.check(10.into(), 3.into()), Ok(()));
        assert_eq!(order.bases(7), (17, 21));
        assert_eq!(LineOrder::try_from(Vec::from(order.clone())), Ok(order.clone()));
        assert!(LineOrder::try_from(sizes(&[2, 2, 5])).is_err());
        assert!(order.check(9.into(), 3.into()).is_err());
        assert!(LineOrder { offset: 1.into(), ..order.clone() }.check(10.into(), 3.into()).is_err());
        assert!(LineOrder { to: sizes(&[15, 1, 3]), ..order }.check(10.into(), 3.into()).is_err());
    }
}
