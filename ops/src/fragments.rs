//! Right operands of products as matrix units take them: blocks of 16 x 16, in each of which eight elements that an invocation of 32 has
//! lie side by side. So a kernel reads them from memory straight into registers, 16 bytes at a time.
//!
//! Blocks along the terms of a sum follow one another; behind them come those of the next 16 columns. The order in a block is that of
//! fragments of right operands in NVIDIA's PTX ISA, `mma.m16n8k16` with 16-bit floats, for columns 0 to 7 and 8 to 15: element e of
//! invocation l is of term `l % 4 * 2 + e % 2 + e / 2 % 2 * 8` and of column `l / 4 + e / 4 * 8`.

use halite_sizes::Size;

use crate::{DType, copy::StridedCopy, moves::dense_strides};

/// Terms and columns of a block.
pub const SIDE: u64 = 16;
/// Elements that an invocation has of a block.
const EACH: usize = 8;

/// Whether terms and columns are known and whole blocks.
pub fn are_whole(terms: Size, columns: Size) -> bool {
    [terms, columns].iter().all(|size| size.is_constant() && size.exact() % SIDE == 0)
}

/// The place of an element of a matrix with so many terms, by its term and column.
pub(crate) fn place(terms: usize, term: usize, column: usize) -> usize {
    let side = SIDE as usize;
    let block = column / side * (terms / side) + term / side;
    let (term, column) = (term % side, column % side);
    let invocation = column % 8 * 4 + term % 8 / 2;
    let element = column / 8 * 4 + term / 8 * 2 + term % 2;
    block * side * side + invocation * EACH + element
}

/// The term and the column of the element at a place.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn term_and_column(terms: u64, place: u64) -> (u64, u64) {
    let (block, within) = (place / (SIDE * SIDE), place % (SIDE * SIDE));
    let (invocation, e) = (within / EACH as u64, within % EACH as u64);
    let term = invocation % 4 * 2 + e % 2 + e / 2 % 2 * 8;
    let column = invocation / 4 + e / 4 * 8;
    (block % (terms / SIDE) * SIDE + term, block / (terms / SIDE) * SIDE + column)
}

/// The copies, one after the other, that bring a matrix of 16-bit elements to this order: rows of columns for each term, or where it is
/// transposed rows of terms for each column. Both numbers are multiples of [`SIDE`].
pub fn copies(terms: u64, columns: u64, is_transposed: bool) -> Vec<StridedCopy> {
    let sizes = |dims: &[u64]| -> Vec<Size> { dims.iter().map(Size::from).collect() };
    let turn = StridedCopy::transpose(&sizes(&[terms, columns]), &[1, 0], DType::F16);
    // Pairs of neighbouring terms move together. In each column: block, half, pair; and columns: block, half, column.
    let dims = sizes(&[columns / SIDE, 2, 8, terms / SIDE, 2, 4]);
    let strides = dense_strides(&dims);
    let order = [0, 3, 2, 5, 1, 4];
    let (shape, strides) = order.iter().map(|d: &usize| (dims[*d], strides[*d])).unzip();
    let source = (terms * columns / 2).into();
    let blocks = StridedCopy { source, shape, strides, offset: 0.into(), dtype: DType::I32 };
    if is_transposed { vec![blocks] } else { vec![turn, blocks] }
}

/// The copy that brings a matrix from this order to rows of terms for each column.
pub fn back(terms: u64, columns: u64) -> StridedCopy {
    let sizes = |dims: &[u64]| -> Vec<Size> { dims.iter().map(Size::from).collect() };
    // Of blocks: columns, terms, column, pair, half of the columns, half of the terms.
    let dims = sizes(&[columns / SIDE, terms / SIDE, 8, 4, 2, 2]);
    StridedCopy::transpose(&dims, &[0, 4, 2, 1, 5, 3], DType::I32)
}

/// The copies that bring a matrix from this order to rows of columns for each term, one after the other.
pub fn back_by_terms(terms: u64, columns: u64) -> [StridedCopy; 2] {
    let turn = StridedCopy::transpose(&[columns, terms].map(Size::from), &[1, 0], DType::F16);
    [back(terms, columns), turn]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Op, Values};

    #[test]
    fn places_and_elements_agree() {
        let (terms, columns) = (48, 32);
        let mut seen = vec![false; terms * columns];
        for term in 0..terms {
            for column in 0..columns {
                let at = place(terms, term, column);
                assert!(!std::mem::replace(&mut seen[at], true));
                assert_eq!(term_and_column(terms as u64, at as u64), (term as u64, column as u64));
            }
        }
    }

    #[test]
    fn the_way_back_is_the_other_way() {
        let (terms, columns) = (48_u64, 32_u64);
        let numbers = Values::Int((0..(terms * columns / 2) as i64).collect());
        let there = copies(terms, columns, true).remove(0).reference(std::slice::from_ref(&numbers));
        let here = back(terms, columns).reference(&there).remove(0);
        let (Values::Int(here), Values::Int(numbers)) = (here, numbers) else {
            panic!("integers stay integers")
        };
        assert_eq!(here, numbers);
    }

    #[test]
    fn the_way_back_by_terms_gives_rows_of_columns() {
        let (terms, columns) = (48_usize, 32_usize);
        let mut blocks = vec![0; terms * columns];
        for at in 0..terms * columns {
            blocks[place(terms, at / columns, at % columns)] = at as i64;
        }
        let [back, turn] = back_by_terms(terms as u64, columns as u64);
        // The first copy moves pairs.
        let pairs = Values::Int((0..(terms * columns / 2) as i64).collect());
        let Values::Int(moved) = back.reference(&[pairs]).remove(0) else { panic!("integers stay integers") };
        let halves = moved.iter().flat_map(|at| [blocks[*at as usize * 2], blocks[*at as usize * 2 + 1]]);
        let turn = StridedCopy { dtype: DType::I32, ..turn };
        let rows = turn.reference(&[Values::Int(halves.collect())]).remove(0);
        let Values::Int(rows) = rows else { panic!("integers stay integers") };
        assert_eq!(rows, (0..(terms * columns) as i64).collect::<Vec<_>>());
    }

    #[test]
    fn copies_bring_elements_to_their_places() {
        let (terms, columns) = (48_u64, 32_u64);
        for is_transposed in [false, true] {
            let copies = copies(terms, columns, is_transposed);
            // Each element is its own number; the last copy moves two at a time.
            let mut elements: Vec<i64> = (0..(terms * columns) as i64).collect();
            for copy in &copies {
                let step = if copy.dtype == DType::I32 { 2 } else { 1 };
                let numbers = (0..elements.len() / step).map(|at| at as i64).collect();
                let one = StridedCopy { dtype: DType::I32, ..copy.clone() };
                let moved = one.reference(&[Values::Int(numbers)]).remove(0);
                let Values::Int(moved) = moved else { panic!("integers stay integers") };
                elements = moved
                    .iter()
                    .flat_map(|at| (0..step).map(|i| elements[*at as usize * step + i]).collect::<Vec<_>>())
                    .collect();
            }
            for (at, element) in elements.iter().enumerate() {
                let (term, column) = term_and_column(terms, at as u64);
                let wanted = if is_transposed { column * terms + term } else { term * columns + column };
                assert_eq!(*element as u64, wanted, "{at}, {is_transposed}");
            }
        }
    }
}
