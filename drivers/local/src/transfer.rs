//! Fills and copies of host memory.
//!
//! Memory is touched through raw pointers only: a kernel or a host access on another thread may touch the same bytes,
//! which is a fault of the program that ordered them so, and yields some mixture of bytes.

use halite_abi::{Result, bail};

use crate::code::HostRange;

/// What a fill repeats: 1, 2, 4 or 8 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pattern {
    bytes: [u8; 8],
    length: usize,
}

impl Pattern {
    /// The low `length` bytes of `pattern`.
    pub fn new(pattern: u64, length: u32) -> Result<Self> {
        if !matches!(length, 1 | 2 | 4 | 8) {
            bail!(InvalidArgument, "fill patterns have 1, 2, 4 or 8 bytes, not {length}");
        }
        Ok(Pattern { bytes: pattern.to_le_bytes(), length: length as usize })
    }

    /// The one byte that it repeats, if that is all it does.
    fn single(&self) -> Option<u8> {
        let first = self.bytes[0];
        self.bytes[..self.length].iter().all(|b| *b == first).then_some(first)
    }
}

/// Repeats a pattern over a range; the last copy may be cut short.
pub(crate) fn fill(target: HostRange, pattern: &Pattern) {
    if let Some(byte) = pattern.single() {
        // SAFETY: a range's bytes are live memory of this driver (`HostRange`); nothing borrows them.
        unsafe { target.pointer.write_bytes(byte, target.length) };
        return;
    }
    let mut done = pattern.length.min(target.length);
    // SAFETY: at most `target.length` bytes are written, from an array of at least as many.
    unsafe { target.pointer.copy_from_nonoverlapping(pattern.bytes.as_ptr(), done) };
    while done < target.length {
        let step = done.min(target.length - done);
        // SAFETY: `step` bytes from the start are written already, end before `done`, and fit behind it.
        unsafe { target.pointer.add(done).copy_from_nonoverlapping(target.pointer, step) };
        done += step;
    }
}

/// Writes bytes over a range of the same length.
pub(crate) fn update(target: HostRange, source: &[u8]) -> Result<()> {
    check_lengths(source.len(), target.length)?;
    // SAFETY: both have this many bytes; `source` may even be a view of the same memory.
    unsafe { target.pointer.copy_from(source.as_ptr(), source.len()) };
    Ok(())
}

/// Reads a range into as many bytes.
pub(crate) fn download(source: HostRange, target: &mut [u8]) -> Result<()> {
    check_lengths(source.length, target.len())?;
    // SAFETY: both have this many bytes.
    unsafe { source.pointer.copy_to(target.as_mut_ptr(), target.len()) };
    Ok(())
}

/// Copies between ranges of the same length, which may even overlap.
pub(crate) fn copy(source: HostRange, target: HostRange) -> Result<()> {
    check_lengths(source.length, target.length)?;
    // SAFETY: both are live memory of this driver with this many bytes.
    unsafe { target.pointer.copy_from(source.pointer, source.length) };
    Ok(())
}

fn check_lengths(source: usize, target: usize) -> Result<()> {
    if source != target {
        bail!(InvalidArgument, "{source} bytes cannot be written over {target} bytes");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(length: usize, pattern: u64, pattern_length: u32) -> Vec<u8> {
        let mut bytes = vec![0xEE; length + 1];
        let range = HostRange { pointer: bytes.as_mut_ptr(), length };
        fill(range, &Pattern::new(pattern, pattern_length).unwrap());
        assert_eq!(bytes.pop(), Some(0xEE));
        bytes
    }

    #[test]
    fn fills_repeat_their_pattern() {
        assert_eq!(filled(5, 0x41, 1), b"AAAAA");
        assert_eq!(filled(6, 0x4241, 2), b"ABABAB");
        assert_eq!(filled(13, 0x4443_4241, 4), b"ABCDABCDABCDA");
        assert_eq!(filled(24, 0x4847_4645_4443_4241, 8), b"ABCDEFGHABCDEFGHABCDEFGH");
        assert_eq!(filled(0, 1, 8), b"");
        assert_eq!(filled(3, 0x4443_4241, 4), b"ABC");
        assert!(Pattern::new(0, 3).is_err());
    }

    #[test]
    fn lengths_must_agree() {
        let mut bytes = *b"abcdef";
        let range = HostRange { pointer: bytes.as_mut_ptr(), length: 6 };
        assert!(update(range, b"x").is_err());
        copy(range.part(0, 3).unwrap(), range.part(3, 3).unwrap()).unwrap();
        let mut back = [0; 6];
        download(range, &mut back).unwrap();
        assert_eq!(&back, b"abcabc");
    }
}
