//! SHA-256 digests of contents.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// Bytes that are hashed between two questions whether to go on: some milliseconds of work.
const PIECE: usize = 4 << 20;

/// The SHA-256 of some bytes. Prints as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }

    /// The digest of these bytes, unless `goes_on`, which is asked every few megabytes, ends the work.
    pub fn of_while(bytes: &[u8], goes_on: &dyn Fn() -> bool) -> Option<Digest> {
        let mut hasher = Hasher::new();
        for piece in bytes.chunks(PIECE) {
            if !goes_on() {
                return None;
            }
            hasher.update(piece);
        }
        Some(hasher.finish())
    }

    /// A digest that was kept as bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Digest {
        Digest(bytes)
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads 64 hexadecimal digits; `None` if the text is anything else.
    pub fn parse(text: &str) -> Option<Digest> {
        parse_hex(text).map(Digest)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// Digests what is given to it piece by piece.
#[derive(Clone, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// A digest of nothing so far.
    pub fn new() -> Hasher {
        Hasher::default()
    }

    /// Adds bytes. Where one call ends and the next begins makes no difference.
    pub fn update(&mut self, bytes: &[u8]) -> &mut Hasher {
        self.0.update(bytes);
        self
    }

    /// Adds bytes and their number, so that neighbouring fields cannot run into each other. For keys made of several
    /// things.
    pub fn field(&mut self, bytes: &[u8]) -> &mut Hasher {
        self.update(&(bytes.len() as u64).to_le_bytes()).update(bytes)
    }

    /// The digest of all that was added.
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hasher")
    }
}

pub(crate) fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

/// Lower-case digits only: a name has one spelling.
pub(crate) fn parse_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let text = text.as_bytes();
    let mut bytes = [0; N];
    if text.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_sha_256_and_have_one_spelling() {
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Digest::of(b"abc").to_string(), text);
        assert_eq!(Digest::parse(text), Some(Digest::of(b"abc")));
        assert_eq!(Digest::parse(&text.to_uppercase()), None);
        assert_eq!(Digest::parse(&text[1..]), None);
        let mut pieces = Hasher::new();
        pieces.update(b"a").update(b"bc");
        assert_eq!(pieces.finish(), Digest::of(b"abc"));
    }

    #[test]
    fn fields_do_not_run_into_each_other() {
        let of = |fields: &[&str]| {
            let mut hasher = Hasher::new();
            for field in fields {
                hasher.field(field.as_bytes());
            }
            hasher.finish()
        };
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(of(&["ab"]), of(&["ab", ""]));
    }
}
