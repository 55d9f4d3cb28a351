//! What an entry is called: its key and kind, and the file name made of them.

use std::fmt;

use crate::{
    Digest, Hasher,
    digest::{parse_hex, write_hex},
};

/// No program but Halite gives its files this ending, so that what it deletes is its own.
const SUFFIX: &str = ".halite";

/// What an entry is looked up by: 128 bits of a digest, written as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key([u8; 16]);

impl Key {
    /// The key of everything that the entry depends on. The number of fields and their order count, and they cannot run
    /// into each other.
    pub fn of(fields: &[&[u8]]) -> Key {
        let mut hasher = Hasher::new();
        for field in fields {
            hasher.field(field);
        }
        Key::from(hasher.finish())
    }

    /// Reads 32 lower-case hexadecimal digits; `None` if the text is anything else.
    pub fn parse(text: &str) -> Option<Key> {
        parse_hex(text).map(Key)
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    pub(super) const fn from_bytes(bytes: [u8; 16]) -> Key {
        Key(bytes)
    }
}

impl From<Digest> for Key {
    /// The first half of the digest.
    fn from(digest: Digest) -> Key {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest.as_bytes()[..16]);
        Key(bytes)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

/// What an entry holds, such as `vmfb`: 1 to 15 lower-case letters and digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind {
    text: [u8; 15],
    length: u8,
}

impl Kind {
    /// For constants: `const MODULE: Kind = Kind::new("vmfb");`
    ///
    /// # Panics
    /// The text has no or too many characters, or others than lower-case letters and digits. In a constant this is an
    /// error when the program is built.
    pub const fn new(text: &str) -> Kind {
        match Kind::checked(text.as_bytes()) {
            Some(kind) => kind,
            None => panic!("a kind is 1 to 15 lower-case letters and digits"),
        }
    }

    /// Reads a kind; `None` if the text is none.
    pub fn parse(text: &str) -> Option<Kind> {
        Kind::checked(text.as_bytes())
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.text[..usize::from(self.length)]).expect("letters and digits are UTF-8")
    }

    const fn checked(bytes: &[u8]) -> Option<Kind> {
        let mut text = [0; 15];
        if bytes.is_empty() || bytes.len() > text.len() {
            return None;
        }
        let mut place = 0;
        while place < bytes.len() {
            if !(bytes[place].is_ascii_lowercase() || bytes[place].is_ascii_digit()) {
                return None;
            }
            text[place] = bytes[place];
            place += 1;
        }
        Some(Kind { text, length: bytes.len() as u8 })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kind({self})")
    }
}

/// The file of an entry: `0123456789abcdef0123456789abcdef-vmfb.halite`.
pub(super) fn file_name(key: Key, kind: Kind) -> String {
    format!("{key}-{kind}{SUFFIX}")
}

/// The entry that a file would be, by its name; `None` for other programs' files.
pub(super) fn of_file(name: &str) -> Option<(Key, Kind)> {
    let (key, kind) = name.strip_suffix(SUFFIX)?.split_once('-')?;
    Some((Key::parse(key)?, Kind::parse(kind)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_names_are_ours() {
        let key = Key::of(&[b"a", b"b"]);
        let name = file_name(key, Kind::new("vmfb"));
        assert_eq!(of_file(&name), Some((key, Kind::new("vmfb"))));
        let bare = key.to_string();
        let others = [
            format!("{bare}.vmfb"),
            format!("{bare}.halite"),
            format!("{}-vmfb.halite", bare.to_uppercase()),
            format!("{bare}-VMFB.halite"),
            format!("{bare}-.halite"),
            format!("{bare}-vmfb.halite.bak"),
            format!("{}-vmfb.halite", &bare[1..]),
            "thesis.tex".to_owned(),
        ];
        others.iter().for_each(|name| assert_eq!(of_file(name), None, "{name}"));
    }

    #[test]
    fn kinds_are_short_words() {
        assert_eq!(Kind::parse("abcdefghij12345").unwrap().as_str(), "abcdefghij12345");
        for text in ["", "abcdefghij123456", "a.b", "../x", "A", "ä"] {
            assert_eq!(Kind::parse(text), None, "{text}");
        }
    }
}
