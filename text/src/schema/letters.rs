//! What is within a string, byte by byte.

/// Where a string's bytes are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Letter {
    /// Between two characters.
    #[default]
    Between,
    /// Behind a backslash.
    Escape,
    /// In the number of a character, behind so many digits; `true` if the first was one of which half a character may begin.
    Hex(u8, bool),
    /// In a character of several bytes: so many are missing, and the next is within bounds.
    Follow(u8, u8, u8),
}

impl Letter {
    /// Behind another byte, which is no quotation mark that ends the string.
    pub fn with(self, byte: u8) -> Option<Letter> {
        use Letter::{Between, Escape, Follow, Hex};
        Some(match (self, byte) {
            (Between, b'"') => return None,
            (Between, b'\\') => Escape,
            (Between, 0x20..0x80) => Between,
            (Between, 0xC2..=0xDF) => Follow(1, 0x80, 0xBF),
            (Between, 0xE0) => Follow(2, 0xA0, 0xBF),
            // Halves of characters are none.
            (Between, 0xED) => Follow(2, 0x80, 0x9F),
            (Between, 0xE1..=0xEF) => Follow(2, 0x80, 0xBF),
            (Between, 0xF0) => Follow(3, 0x90, 0xBF),
            (Between, 0xF1..=0xF3) => Follow(3, 0x80, 0xBF),
            (Between, 0xF4) => Follow(3, 0x80, 0x8F),
            (Escape, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Between,
            (Escape, b'u') => Hex(0, false),
            (Hex(1, true), b'8'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => return None,
            (Hex(3, _), own) if own.is_ascii_hexdigit() => Between,
            (Hex(count, _), own) if own.is_ascii_hexdigit() => {
                Hex(count + 1, count == 0 && matches!(own, b'd' | b'D'))
            }
            (Follow(left, least, most), own) if (least..=most).contains(&own) => match left {
                1 => Between,
                left => Follow(left - 1, 0x80, 0xBF),
            },
            _ => return None,
        })
    }
}
