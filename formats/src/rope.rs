//! Bytes in pieces: large files are put together of parts of others without copying them.

use std::io;

use bytes::Bytes;

/// Zeros between pieces.
static ZEROS: [u8; 4096] = [0; 4096];

/// Bytes in pieces that stay where they are, which may be in mapped files.
#[derive(Clone, Debug, Default)]
pub struct Rope {
    pieces: Vec<Bytes>,
    length: u64,
}

impl Rope {
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes in all.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Appends bytes without copying them.
    pub fn push(&mut self, piece: impl Into<Bytes>) {
        let piece = piece.into();
        if !piece.is_empty() {
            self.length += piece.len() as u64;
            self.pieces.push(piece);
        }
    }

    /// Appends zeros until there are so many bytes; nothing where there are as many already.
    pub fn pad_to(&mut self, length: u64) {
        while self.length < length {
            let count = (length - self.length).min(ZEROS.len() as u64) as usize;
            self.push(Bytes::from_static(&ZEROS[..count]));
        }
    }

    /// Appends all of another.
    pub fn append(&mut self, other: Rope) {
        self.length += other.length;
        self.pieces.extend(other.pieces);
    }

    /// The pieces in order, none of them empty.
    pub fn pieces(&self) -> &[Bytes] {
        &self.pieces
    }

    /// Writes all bytes.
    ///
    /// # Errors
    /// `out` failed.
    pub fn write(&self, out: &mut impl io::Write) -> io::Result<()> {
        self.pieces.iter().try_for_each(|piece| out.write_all(piece))
    }

    /// All bytes in one place: a copy.
    pub fn to_vec(&self) -> Vec<u8> {
        self.pieces.concat()
    }
}

impl From<Bytes> for Rope {
    fn from(bytes: Bytes) -> Self {
        let mut rope = Rope::new();
        rope.push(bytes);
        rope
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_stay_where_they_are() {
        let data = Bytes::from(vec![1, 2, 3]);
        let mut rope = Rope::from(data.clone());
        rope.pad_to(5000);
        rope.pad_to(2);
        rope.push(Bytes::new());
        rope.append(Rope::from(data.slice(1..)));
        assert_eq!((rope.len(), rope.pieces().len()), (5002, 4));
        assert_eq!(rope.pieces()[0].as_ptr(), data.as_ptr());
        let all = rope.to_vec();
        assert_eq!((&all[..3], &all[3..5000], &all[5000..]), (&[1, 2, 3][..], &[0; 4997][..], &[2, 3][..]));
        let mut out = Vec::new();
        rope.write(&mut out).unwrap();
        assert_eq!(out, all);
    }
}
