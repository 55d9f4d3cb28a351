//! Where the tables and vectors of a FlatBuffer lie, found by their form: nothing of the schema is known here.
//! Format: "FlatBuffer Internals" (<https://flatbuffers.dev/internals/>).

/// Bytes that a table's list of fields may have; schemas have fewer than a hundred.
const MOST_VTABLE: u16 = 400;

/// Places in a file, as offsets from its beginning. What only looks like a part of a table is there as well.
#[derive(Debug, Default)]
pub struct Layout {
    /// Fields of tables that have 4 bytes or more behind them.
    pub fields: Vec<usize>,
    /// Entries of lists of fields, with 2 bytes each.
    pub entries: Vec<usize>,
    /// Tables and vectors that fields lead to.
    pub targets: Vec<usize>,
}

impl Layout {
    /// Looks for tables at all places that one may begin at.
    pub fn of(file: &[u8]) -> Layout {
        let mut layout = Layout::default();
        for table in (0..file.len().saturating_sub(4)).step_by(4) {
            let back = i64::from(i32::from_le_bytes(four(file, table)));
            let vtable = usize::try_from(table as i64 - back).unwrap_or(usize::MAX);
            if back != 0 {
                layout.add(file, table, vtable);
            }
        }
        layout
    }

    fn add(&mut self, file: &[u8], table: usize, vtable: usize) {
        let (Some(length), Some(size)) = (half(file, vtable), half(file, vtable.wrapping_add(2))) else {
            return;
        };
        let is_list = (6..=MOST_VTABLE).contains(&length) && length.is_multiple_of(2) && size >= 4;
        if !is_list || table + usize::from(size) > file.len() {
            return;
        }
        let entries: Vec<usize> = (4..usize::from(length)).step_by(2).map(|at| vtable + at).collect();
        let offsets: Option<Vec<u16>> = entries.iter().map(|entry| half(file, *entry)).collect();
        let Some(offsets) = offsets.filter(|all| all.iter().all(|at| *at < size)) else { return };
        self.entries.extend(&entries);
        for field in offsets.into_iter().filter(|at| *at >= 4).map(|at| table + usize::from(at)) {
            if field + 4 > file.len() {
                continue;
            }
            self.fields.push(field);
            let target = field.wrapping_add(u32::from_le_bytes(four(file, field)) as usize);
            if target > field && target + 4 <= file.len() {
                self.targets.push(target);
            }
        }
        // Every pick needs something to take.
        if self.targets.is_empty() {
            self.targets.push(table);
        }
    }
}

fn half(file: &[u8], at: usize) -> Option<u16> {
    file.get(at..)?.first_chunk::<2>().map(|bytes| u16::from_le_bytes(*bytes))
}

fn four(file: &[u8], at: usize) -> [u8; 4] {
    file.get(at..).and_then(|rest| rest.first_chunk::<4>()).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_a_program_are_found() {
        let file = include_bytes!("../../../formats/tests/data/tiny_convolution.pte");
        let layout = Layout::of(file);
        let root = u32::from_le_bytes(four(file, 0)) as usize;
        assert!(layout.fields.iter().any(|field| (root..root + 64).contains(field)));
        assert!(layout.fields.len() > 100 && layout.targets.len() > 20, "{}", layout.fields.len());
        assert!(layout.fields.iter().all(|at| at + 4 <= file.len()));
    }
}
