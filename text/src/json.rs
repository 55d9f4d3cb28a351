//! Texts that are one JSON object: which bytes may come next.

use std::sync::Arc;

/// Objects and lists within each other, at most.
const MOST_DEPTH: u8 = 128;
/// White space in a row, at most: a model that likes nothing else must not write it for ever. In front of the object there is less.
const MOST_SPACE: u8 = 24;
const MOST_AHEAD: u8 = 2;
/// Bytes of a number, at most, of which two digits are its power of ten: others read all such numbers.
const MOST_DIGITS: u8 = 48;

/// Where a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before the object.
    Begin,
    /// Before a value.
    Value,
    /// Before the first value of a list, or its end.
    FirstValue,
    /// Before the first name of an object, or its end.
    FirstName,
    /// Before a name.
    Name,
    /// Between a name and its value.
    Colon,
    /// Behind a value.
    Behind,
    /// In a string, which may be a name.
    Text,
    /// Behind the backslash of one.
    Escape,
    /// In the number of a character, behind so many digits; `true` if the first was one of which half a character may begin.
    Hex(u8, bool),
    /// In a character of several bytes: so many are missing, and the next is within bounds.
    Follow(u8, u8, u8),
    /// In a word of which this is missing.
    Word(&'static [u8]),
    /// In a number, of so many bytes so far.
    Number(Digits, u8),
    /// Behind the object.
    End,
}

/// Where a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Digits {
    Minus,
    Zero,
    Whole,
    Point,
    Fraction,
    Exponent,
    Sign,
    Power,
    Powers,
}

impl Digits {
    /// Behind another byte; `None` where that is no part of the number.
    fn behind(self, byte: u8) -> Option<Digits> {
        use Digits::{Exponent, Fraction, Minus, Point, Power, Powers, Sign, Whole, Zero};
        Some(match (self, byte) {
            (Minus, b'0') => Zero,
            (Minus, b'1'..=b'9') | (Whole, b'0'..=b'9') => Whole,
            (Zero | Whole, b'.') => Point,
            (Point | Fraction, b'0'..=b'9') => Fraction,
            (Zero | Whole | Fraction, b'e' | b'E') => Exponent,
            (Exponent, b'+' | b'-') => Sign,
            (Exponent | Sign, b'0'..=b'9') => Power,
            (Power, b'0'..=b'9') => Powers,
            _ => return None,
        })
    }

    fn may_end(self) -> bool {
        matches!(self, Digits::Zero | Digits::Whole | Digits::Fraction | Digits::Power | Digits::Powers)
    }
}

/// The beginning of a text that is one JSON object (RFC 8259).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonText {
    place: Place,
    /// Whether the string is a name.
    is_name: bool,
    /// Which of the things that it is within are objects, the innermost in the last bit.
    objects: u128,
    depth: u8,
    spaces: u8,
}

impl Default for JsonText {
    fn default() -> Self {
        JsonText { place: Place::Begin, is_name: false, objects: 0, depth: 0, spaces: 0 }
    }
}

impl JsonText {
    /// Whether the object has ended.
    pub fn is_whole(&self) -> bool {
        self.place == Place::End
    }

    /// The text with these bytes behind it, if that is the beginning of an object.
    pub fn with(mut self, bytes: &[u8]) -> Option<JsonText> {
        bytes.iter().all(|byte| self.push(*byte)).then_some(self)
    }

    fn push(&mut self, byte: u8) -> bool {
        let place = match self.place {
            Place::Text | Place::Escape | Place::Hex(..) | Place::Follow(..) => self.in_text(byte),
            Place::Word([next, rest @ ..]) if *next == byte => {
                Some(if rest.is_empty() { Place::Behind } else { Place::Word(rest) })
            }
            Place::Word(_) | Place::End => None,
            Place::Number(digits, length) => match digits.behind(byte) {
                Some(digits) => (length < MOST_DIGITS).then_some(Place::Number(digits, length + 1)),
                None if digits.may_end() => {
                    self.place = Place::Behind;
                    return self.push(byte);
                }
                None => None,
            },
            _ if matches!(byte, b' ' | b'\n' | b'\t' | b'\r') => {
                self.spaces += 1;
                return self.spaces <= if self.place == Place::Begin { MOST_AHEAD } else { MOST_SPACE };
            }
            _ => self.between(byte),
        };
        self.spaces = 0;
        place.inspect(|place| self.place = *place).is_some()
    }

    /// A byte that is in no string, number or word.
    fn between(&mut self, byte: u8) -> Option<Place> {
        match (self.place, byte) {
            (Place::Begin, b'{') => self.enter(true),
            (Place::FirstName, b'}') | (Place::FirstValue, b']') => self.leave(),
            (Place::FirstName | Place::Name, b'"') => {
                self.is_name = true;
                Some(Place::Text)
            }
            (Place::Colon, b':') => Some(Place::Value),
            (Place::Behind, b',') => Some(if self.objects & 1 == 1 { Place::Name } else { Place::Value }),
            (Place::Behind, b'}') if self.objects & 1 == 1 => self.leave(),
            (Place::Behind, b']') if self.objects & 1 == 0 => self.leave(),
            (Place::Value | Place::FirstValue, _) => self.value(byte),
            _ => None,
        }
    }

    /// The first byte of a value.
    fn value(&mut self, byte: u8) -> Option<Place> {
        match byte {
            b'{' => self.enter(true),
            b'[' => self.enter(false),
            b'"' => {
                self.is_name = false;
                Some(Place::Text)
            }
            b't' => Some(Place::Word(&b"true"[1..])),
            b'f' => Some(Place::Word(&b"false"[1..])),
            b'n' => Some(Place::Word(&b"null"[1..])),
            b'-' => Some(Place::Number(Digits::Minus, 1)),
            b'0' => Some(Place::Number(Digits::Zero, 1)),
            b'1'..=b'9' => Some(Place::Number(Digits::Whole, 1)),
            _ => None,
        }
    }

    fn enter(&mut self, is_object: bool) -> Option<Place> {
        if self.depth == MOST_DEPTH {
            return None;
        }
        self.depth += 1;
        self.objects = self.objects << 1 | u128::from(is_object);
        Some(if is_object { Place::FirstName } else { Place::FirstValue })
    }

    fn leave(&mut self) -> Option<Place> {
        self.depth -= 1;
        self.objects >>= 1;
        Some(if self.depth == 0 { Place::End } else { Place::Behind })
    }

    /// A byte of a string.
    fn in_text(&self, byte: u8) -> Option<Place> {
        Some(match (self.place, byte) {
            (Place::Text, b'"') if self.is_name => Place::Colon,
            (Place::Text, b'"') => Place::Behind,
            (Place::Text, b'\\') => Place::Escape,
            (Place::Text, 0x20..0x80) => Place::Text,
            (Place::Text, 0xC2..=0xDF) => Place::Follow(1, 0x80, 0xBF),
            (Place::Text, 0xE0) => Place::Follow(2, 0xA0, 0xBF),
            // Halves of characters are none.
            (Place::Text, 0xED) => Place::Follow(2, 0x80, 0x9F),
            (Place::Text, 0xE1..=0xEF) => Place::Follow(2, 0x80, 0xBF),
            (Place::Text, 0xF0) => Place::Follow(3, 0x90, 0xBF),
            (Place::Text, 0xF1..=0xF3) => Place::Follow(3, 0x80, 0xBF),
            (Place::Text, 0xF4) => Place::Follow(3, 0x80, 0x8F),
            (Place::Escape, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Place::Text,
            (Place::Escape, b'u') => Place::Hex(0, false),
            (Place::Hex(1, true), b'8'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => return None,
            (Place::Hex(3, _), own) if own.is_ascii_hexdigit() => Place::Text,
            (Place::Hex(count, _), own) if own.is_ascii_hexdigit() => {
                Place::Hex(count + 1, count == 0 && matches!(own, b'd' | b'D'))
            }
            (Place::Follow(left, least, most), own) if (least..=most).contains(&own) => match left {
                1 => Place::Text,
                left => Place::Follow(left - 1, 0x80, 0xBF),
            },
            _ => return None,
        })
    }
}

/// The texts of a model's tokens, and which of them end an answer.
#[derive(Debug, PartialEq, Eq)]
pub struct TokenTexts {
    texts: Vec<Box<[u8]>>,
    ends: Vec<bool>,
}

impl TokenTexts {
    /// Those of all tokens in their order. Tokens without a text are none of an object's.
    pub fn new(all: impl Iterator<Item = (Vec<u8>, bool)>) -> TokenTexts {
        let (texts, ends) = all.map(|(text, ends)| (text.into_boxed_slice(), ends)).unzip();
        TokenTexts { texts, ends }
    }
}

/// An answer that has to be one JSON object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JsonAnswer {
    text: JsonText,
    tokens: Arc<TokenTexts>,
}

impl JsonAnswer {
    pub fn new(tokens: Arc<TokenTexts>) -> JsonAnswer {
        JsonAnswer { text: JsonText::default(), tokens }
    }

    /// The text with a token behind it, if it may have that. Behind the object comes an end alone.
    fn with(&self, token: u32) -> Option<JsonText> {
        let place = token as usize;
        if self.tokens.ends.get(place).copied().unwrap_or(false) {
            return self.text.is_whole().then_some(self.text);
        }
        let bytes = self.tokens.texts.get(place).filter(|bytes| !bytes.is_empty())?;
        self.text.with(bytes)
    }

    /// Whether a token may come next.
    pub fn takes(&self, token: u32) -> bool {
        self.with(token).is_some()
    }

    /// Adds one.
    pub fn add(&mut self, token: u32) {
        self.text = self.with(token).unwrap_or(self.text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_whole(text: &str) -> Option<bool> {
        JsonText::default().with(text.as_bytes()).map(|own| own.is_whole())
    }

    #[test]
    fn objects_and_their_beginnings_are_taken() {
        for whole in [
            "{}",
            " {\n \"a\" : [1, -0.5e+3, true, null, {}, [ ]], \"ü\\u00e9\\n\": \"\\\\\" }",
            "{\"a\":{\"b\":[[0,10]]}}",
            "{\"😀\":\"\u{7ff}\u{d7ff}\u{10ffff}\"}",
        ] {
            assert_eq!(is_whole(whole), Some(true), "{whole}");
            assert!(serde_json::from_str::<serde_json::Value>(whole).is_ok(), "{whole}");
            for end in 0..whole.len() {
                let part = JsonText::default().with(&whole.as_bytes()[..end]);
                assert!(part.is_some_and(|part| !part.is_whole()), "{whole}: {end}");
            }
        }
    }

    #[test]
    fn what_is_no_object_is_not() {
        for wrong in [
            "[",
            "1",
            "\"a\"",
            "{,",
            "{1",
            "{\"a\",",
            "{\"a\":}",
            "{\"a\":1,}",
            "{\"a\":01",
            "{\"a\":1.}",
            "{\"a\":-}",
            "{\"a\":1e}",
            "{\"a\":1e100",
            "{\"a\":nul}",
            "{\"a\":[1,]",
            "{\"a\":[1}",
            "{\"a\":1]",
            "{\"a\n",
            "{\"\\x",
            "{\"\\ud8",
            "{\"\\uDf",
            "{}}",
            "{} ",
            "{}{",
        ] {
            assert_eq!(is_whole(wrong), None, "{wrong}");
        }
        for wrong in
            [&b"{\"\xFF"[..], b"{\"\xC0", b"{\"\xE0\x80", b"{\"\xED\xA0", b"{\"\xF4\x90", b"{\"\xC3\""]
        {
            assert_eq!(JsonText::default().with(wrong), None, "{wrong:?}");
        }
        let deep = format!("{{\"a\":{}", "[".repeat(usize::from(MOST_DEPTH)));
        assert_eq!(is_whole(&deep), None);
        assert!(is_whole(&deep[..deep.len() - 1]).is_some());
        let spaced = |ahead: u8, within: u8| {
            is_whole(&format!("{}{{{}", " ".repeat(ahead.into()), " ".repeat(within.into())))
        };
        assert_eq!(spaced(MOST_AHEAD, MOST_SPACE), Some(false));
        assert_eq!((spaced(MOST_AHEAD + 1, 0), spaced(0, MOST_SPACE + 1)), (None, None));
    }

    /// Whatever is drawn of bytes that may come next is JSON for others, too.
    #[test]
    fn drawn_texts_are_read_by_others() {
        let mut random = 7u64;
        let mut next = move || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize
        };
        let liked = b"{}[]\",:\\u0dD19aeE+-.tfn \xC3\xA9\xED\x9F\xBF\xF4\x8F";
        let mut whole = 0;
        for _ in 0..20_000 {
            let (mut text, mut bytes) = (JsonText::default(), Vec::new());
            while bytes.len() < 60 && !text.is_whole() {
                let byte = match next() % 3 {
                    0 => (next() % 256) as u8,
                    _ => liked[next() % liked.len()],
                };
                if let Some(longer) = text.with(&[byte]) {
                    text = longer;
                    bytes.push(byte);
                }
            }
            if text.is_whole() {
                whole += 1;
                let read = serde_json::from_slice::<serde_json::Value>(&bytes);
                assert!(read.is_ok_and(|read| read.is_object()), "{:?}", String::from_utf8_lossy(&bytes));
            }
        }
        assert!(whole > 1000, "{whole}");
    }

    #[test]
    fn answers_end_behind_the_object() {
        let texts =
            ["{", "}", "\"a\":", "1", "", "end"].map(|text| (text.as_bytes().to_vec(), text == "end"));
        let mut answer = JsonAnswer::new(Arc::new(TokenTexts::new(texts.into_iter())));
        let taken = |answer: &JsonAnswer| (0..7).filter(|id| answer.takes(*id)).collect::<Vec<u32>>();
        for (token, wanted) in [(0, vec![0]), (2, vec![1, 2]), (3, vec![0, 3]), (1, vec![1, 3])] {
            assert_eq!(taken(&answer), wanted);
            answer.add(token);
        }
        assert_eq!(taken(&answer), [5]);
    }
}
