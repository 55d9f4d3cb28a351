//! How SPIR-V lies in words: bytes and words, literal strings, and instructions as an opcode word with operands behind it.

use spirv::Op;

use crate::error::SpirvError;

/// Number of words before the first instruction.
pub(crate) const HEADER_WORDS: usize = 5;
/// Where the header says that all ids are below this number.
pub(crate) const BOUND_WORD: usize = 3;

/// Cuts little-endian bytes, as modules store them, into words.
///
/// # Errors
/// [`SpirvError::PartialWord`] if the length is no multiple of four.
pub fn words_from_bytes(bytes: &[u8]) -> Result<Vec<u32>, SpirvError> {
    let (words, rest) = bytes.as_chunks::<4>();
    if rest.is_empty() {
        Ok(words.iter().map(|w| u32::from_le_bytes(*w)).collect())
    } else {
        Err(SpirvError::PartialWord { bytes: bytes.len() })
    }
}

/// The little-endian bytes of words, as modules store them.
pub fn words_to_bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The words of an instruction: the word with its length and opcode, and the operands, result type and result first.
///
/// An instruction has at most 65535 words. A longer one gets the length 0, which [`Module::parse`](crate::Module::parse)
/// and [`Editor::finish`](crate::Editor::finish) refuse.
pub fn instruction(op: Op, operands: &[u32]) -> Vec<u32> {
    let mut words = Vec::with_capacity(operands.len() + 1);
    push(&mut words, op, &[operands]);
    words
}

/// Appends an instruction whose operands come in parts; lengths are those of [`instruction`].
pub(crate) fn push(words: &mut Vec<u32>, op: Op, parts: &[&[u32]]) {
    let len = 1 + parts.iter().map(|part| part.len()).sum::<usize>();
    words.push(head(op, len));
    words.extend(parts.iter().copied().flatten());
}

/// The first word of an instruction of so many words; see [`instruction`] for those that are too long.
pub(crate) fn head(op: Op, len: usize) -> u32 {
    u32::from(u16::try_from(len).unwrap_or(0)) << 16 | op as u32
}

/// The words of a literal string, its end included. Text ends at its first zero byte, if it has one.
pub fn literal(text: &str) -> Vec<u32> {
    let text = text.split('\0').next().unwrap_or_default();
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(text.len() / 4 * 4 + 4, 0);
    bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

/// Number of words that a literal string takes, its end included; `None` if it never ends or is not UTF-8.
pub(crate) fn literal_words(words: &[u32]) -> Option<usize> {
    let end = words.iter().position(|w| w.to_le_bytes().contains(&0))?;
    literal_text(&words[..=end]).map(|_| end + 1)
}

/// The text of a literal string that starts at the first word; `None` if it is not UTF-8.
pub fn literal_text(words: &[u32]) -> Option<String> {
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).take_while(|b| *b != 0).collect();
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_end_with_a_zero_byte() {
        for text in ["", "abc", "main", "GLSL.std.450", "größer"] {
            let words = literal(text);
            assert_eq!(words.len(), text.len() / 4 + 1, "{text}");
            assert_eq!(literal_words(&words), Some(words.len()), "{text}");
            assert_eq!(literal_text(&words).as_deref(), Some(text));
        }
        assert_eq!(literal("a\0b"), literal("a"));
        assert_eq!(literal_words(&[u32::from_le_bytes(*b"main")]), None, "no end");
        assert_eq!(literal_words(&[0xFF]), None, "no UTF-8");
    }

    #[test]
    fn instructions_count_their_words() {
        assert_eq!(instruction(Op::Capability, &[1]), [2 << 16 | 17, 1]);
        assert_eq!(instruction(Op::CompositeConstruct, &vec![1; 0xFFFE])[0] >> 16, 0xFFFF);
        assert_eq!(instruction(Op::CompositeConstruct, &vec![1; 0xFFFF])[0] >> 16, 0, "too long to be told");
    }

    #[test]
    fn bytes_are_little_endian() {
        assert_eq!(words_from_bytes(&[3, 2, 0x23, 7]), Ok(vec![spirv::MAGIC_NUMBER]));
        assert_eq!(words_to_bytes(&[spirv::MAGIC_NUMBER]), [3, 2, 0x23, 7]);
        assert!(matches!(words_from_bytes(&[1, 2, 3]), Err(SpirvError::PartialWord { bytes: 3 })));
    }
}
