//! The numbers in which versions with the same code differ: a table in the module's read-only data, with a column for each
//! number and a row for each version.

use std::collections::HashMap;

/// A table in the making. Equal columns are one.
#[derive(Clone, Debug)]
pub struct Table {
    rows: usize,
    columns: Vec<Vec<u64>>,
    known: HashMap<Vec<u64>, usize>,
}

impl Table {
    /// A table without columns.
    pub fn new(rows: usize) -> Self {
        Table { rows, columns: Vec::new(), known: HashMap::new() }
    }

    /// Where a column begins, counted in numbers; row r of it is r numbers behind.
    pub fn column(&mut self, values: &[u64]) -> u64 {
        debug_assert_eq!(values.len(), self.rows, "a column has a number for each row");
        let next = self.columns.len();
        let index = match self.known.get(values) {
            Some(index) => *index,
            None => {
                self.known.insert(values.to_vec(), next);
                self.columns.push(values.to_vec());
                next
            }
        };
        (index * self.rows) as u64
    }

    /// The numbers, column by column, little-endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.columns.iter().flatten().flat_map(|value| value.to_le_bytes()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_columns_are_stored_once() {
        let mut table = Table::new(2);
        assert_eq!([table.column(&[1, 2]), table.column(&[3, 4]), table.column(&[1, 2])], [0, 2, 0]);
        let bytes: Vec<u8> = [1u64, 2, 3, 4].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(table.to_bytes(), bytes);
    }
}
