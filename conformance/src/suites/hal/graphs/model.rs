//! What the bytes should be, and which accesses must be ordered.

/// A byte range of a resource, and whether it is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    /// Index of the buffer or file.
    pub resource: usize,
    /// First byte.
    pub start: usize,
    /// One past the last.
    pub end: usize,
    /// Whether bytes change.
    pub write: bool,
}

impl Access {
    /// Whether the order of two accesses matters.
    pub fn conflicts(&self, other: &Access) -> bool {
        let empty = self.start == self.end || other.start == other.end;
        !empty
            && self.resource == other.resource
            && self.start < other.end
            && other.start < self.end
            && (self.write || other.write)
    }
}

/// The contents that a sequential execution gives.
#[derive(Clone, Debug)]
pub(super) struct Model {
    /// By resource.
    pub bytes: Vec<Vec<u8>>,
}

impl Model {
    /// Repeats a pattern.
    pub fn fill(&mut self, target: Access, pattern: &[u8]) {
        for (at, byte) in self.bytes[target.resource][target.start..target.end].iter_mut().enumerate() {
            *byte = pattern[at % pattern.len()];
        }
    }

    /// Writes bytes.
    pub fn update(&mut self, target: Access, source: &[u8]) {
        self.bytes[target.resource][target.start..target.end].copy_from_slice(source);
    }

    /// Copies bytes.
    pub fn copy(&mut self, source: Access, target: Access) {
        let bytes = self.bytes[source.resource][source.start..source.end].to_vec();
        self.update(target, &bytes);
    }

    /// `target = source * 2 + add`, word by word.
    pub fn affine(&mut self, source: Access, target: Access, add: u32) {
        let words = self.bytes[source.resource][source.start..source.end].chunks_exact(4);
        let words =
            words.map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]).wrapping_mul(2).wrapping_add(add));
        let bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
        self.update(target, &bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_conflict_when_they_share_a_byte_that_one_writes() {
        let at = |resource, start, end, write| Access { resource, start, end, write };
        assert!(at(0, 0, 4, true).conflicts(&at(0, 3, 5, false)));
        assert!(!at(0, 0, 4, true).conflicts(&at(0, 4, 5, true)));
        assert!(!at(0, 0, 4, false).conflicts(&at(0, 0, 4, false)));
        assert!(!at(0, 0, 4, true).conflicts(&at(1, 0, 4, true)));
        assert!(!at(0, 2, 2, true).conflicts(&at(0, 0, 4, true)), "no bytes, no conflict");
    }

    #[test]
    fn the_model_follows_the_operations() {
        let mut model = Model { bytes: vec![vec![0; 8], vec![1; 8]] };
        let at = |resource, start, end| Access { resource, start, end, write: true };
        model.fill(at(0, 1, 6), &[7, 8]);
        assert_eq!(model.bytes[0], [0, 7, 8, 7, 8, 7, 0, 0]);
        model.copy(at(0, 1, 3), at(1, 6, 8));
        assert_eq!(model.bytes[1], [1, 1, 1, 1, 1, 1, 7, 8]);
        model.update(at(1, 0, 4), &[5, 0, 0, 0]);
        model.affine(at(1, 0, 4), at(1, 4, 8), 3);
        assert_eq!(model.bytes[1], [5, 0, 0, 0, 13, 0, 0, 0]);
    }
}
