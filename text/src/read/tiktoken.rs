//! tiktoken's files: a line for each token, its bytes in base64 and its rank, which is its number. Which tokens are added, and how
//! texts are split, stands in programs; here it is known by how many tokens there are.

use crate::{
    TextError, Tokenizer,
    decode::Decode,
    families::Splitter,
    merges::characters,
    model::Model,
    scores::Scores,
    special::Specials,
    vocabulary::{Token, TokenKind, Vocabulary},
};

/// What is known of a file with so many tokens.
struct Known {
    name: &'static str,
    tokens: usize,
    splitter: &'static str,
    specials: fn() -> Vec<(String, u32)>,
    /// Token of the beginning, if texts begin with one, and of the end.
    marks: (Option<u32>, u32),
}

const KNOWN: &[Known] = &[
    Known {
        name: "Llama 3",
        tokens: 128_000,
        splitter: "llama-bpe",
        specials: llama3,
        marks: (Some(128_000), 128_001),
    },
    Known {
        name: "cl100k_base",
        tokens: 100_256,
        splitter: "llama-bpe",
        specials: || {
            numbered(100_257, &["<|endoftext|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"])
                .into_iter()
                .chain(numbered(100_276, &["<|endofprompt|>"]))
                .collect()
        },
        marks: (None, 100_257),
    },
    Known {
        name: "o200k_base",
        tokens: 199_998,
        splitter: "gpt-4o",
        specials: || {
            let end = numbered(199_999, &["<|endoftext|>"]);
            end.into_iter().chain(numbered(200_018, &["<|endofprompt|>"])).collect()
        },
        marks: (None, 199_999),
    },
    Known {
        name: "Qwen",
        tokens: 151_643,
        splitter: "qwen2",
        specials: || numbered(151_643, &["<|endoftext|>", "<|im_start|>", "<|im_end|>"]),
        marks: (None, 151_643),
    },
    Known {
        name: "GPT-2",
        tokens: 50_256,
        splitter: "gpt-2",
        specials: || numbered(50_256, &["<|endoftext|>"]),
        marks: (None, 50_256),
    },
];

fn numbered(first: u32, texts: &[&str]) -> Vec<(String, u32)> {
    texts.iter().zip(first..).map(|(text, id)| ((*text).to_owned(), id)).collect()
}

/// The 256 tokens that Llama 3 adds.
fn llama3() -> Vec<(String, u32)> {
    let mut all = numbered(
        128_000,
        &[
            "<|begin_of_text|>",
            "<|end_of_text|>",
            "<|reserved_special_token_0|>",
            "<|reserved_special_token_1|>",
            "<|finetune_right_pad_id|>",
            "<|reserved_special_token_2|>",
            "<|start_header_id|>",
            "<|end_header_id|>",
            "<|eom_id|>",
            "<|eot_id|>",
            "<|python_tag|>",
        ],
    );
    all.extend((128_011..128_256).map(|id| (format!("<|reserved_special_token_{}|>", id - 128_008), id)));
    all
}

/// Whether a file begins like one of these.
pub(super) fn is_list(bytes: &[u8]) -> bool {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    entry(line).is_some()
}

/// Token and rank of a line.
fn entry(line: &[u8]) -> Option<(Vec<u8>, u32)> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let at = line.iter().position(|byte| *byte == b' ')?;
    let rank = std::str::from_utf8(&line[at + 1..]).ok()?.parse().ok()?;
    Some((base64(&line[..at])?, rank))
}

/// The bytes of base64 (RFC 4648, section 4), whose padding may be missing.
pub(super) fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.strip_suffix(b"==").or_else(|| text.strip_suffix(b"=")).unwrap_or(text);
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut count) = (0u32, 0);
    for byte in text {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(six)) & 0xFFFF;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    (count < 6).then_some(bytes)
}

/// Reads a file of which it is known what belongs to it.
pub(super) fn read(bytes: &[u8]) -> Result<Tokenizer, TextError> {
    let ranks = ranks(bytes)?;
    let Some(known) = KNOWN.iter().find(|known| known.tokens == ranks.len()) else {
        let known: Vec<_> = KNOWN.iter().map(|known| format!("{} ({})", known.name, known.tokens)).collect();
        return Err(TextError::Unsupported(format!(
            "the tiktoken file has {} tokens; added tokens and the splitting of texts are known of: {}; others are read with \
             both given, or as tokenizer.json",
            ranks.len(),
            known.join(", ")
        )));
    };
    let mut tokenizer = made(ranks, known.splitter, &(known.specials)())?;
    (tokenizer.begin, tokenizer.end) = (known.marks.0, Some(known.marks.1));
    tokenizer.before.extend(tokenizer.begin);
    tokenizer.ends.push(known.marks.1);
    Ok(tokenizer)
}

impl Tokenizer {
    /// Reads a tiktoken file: `splitter` is the name that GGUF files have for how the model's texts are split
    /// (`tokenizer.ggml.pre`), `specials` are the control tokens with their numbers.
    ///
    /// # Errors
    /// The file is none, or the splitter is not known.
    pub fn from_tiktoken(
        file: &[u8],
        splitter: &str,
        specials: &[(String, u32)],
    ) -> Result<Tokenizer, TextError> {
        made(ranks(file)?, splitter, specials)
    }
}

fn made(
    ranks: Vec<(u32, Token)>,
    splitter: &str,
    specials: &[(String, u32)],
) -> Result<Tokenizer, TextError> {
    let mut tokens = ranks;
    tokens.extend(
        specials
            .iter()
            .map(|(text, id)| (*id, Token { kind: TokenKind::Control, ..Token::new(text.as_bytes()) })),
    );
    let vocabulary = Vocabulary::numbered(tokens, "the tiktoken file")?;
    if let Some(byte) = characters().iter().position(|c| vocabulary.find(c.to_string().as_bytes()).is_none())
    {
        return Err(TextError::file("the tiktoken file", format!("has no token of the byte {byte}")));
    }
    let specials = Specials::of(&vocabulary);
    let model = Model::Scores(Scores { whole_words: true, ..Scores::default() });
    let mut tokenizer = Tokenizer::new(vocabulary, model);
    tokenizer.search(specials, Vec::new())?;
    tokenizer.splitter = Splitter::named(splitter)?.steps;
    tokenizer.decoding.steps.push(Decode::Bytes);
    tokenizer.checked("the tiktoken file")
}

/// The tokens of a file, their bytes written as characters, and smaller ranks with better scores.
fn ranks(bytes: &[u8]) -> Result<Vec<(u32, Token)>, TextError> {
    let all = characters();
    let mut tokens = Vec::new();
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let (text, rank) = entry(line).ok_or_else(|| {
            TextError::file(
                format!("the tiktoken file, line {}:", at + 1),
                "is no token in base64 with its rank",
            )
        })?;
        let text: String = text.iter().map(|byte| all[usize::from(*byte)]).collect();
        tokens.push((rank, Token { score: -f64::from(rank), ..Token::new(text.as_bytes()) }));
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_with_and_without_padding() {
        assert_eq!(base64(b"aGVsbG8=").as_deref(), Some(&b"hello"[..]));
        assert_eq!(base64(b"aGVsbG8").as_deref(), Some(&b"hello"[..]));
        assert_eq!(base64(b"/+8=").as_deref(), Some(&[0xFF, 0xEF][..]));
        assert_eq!((base64(b"a"), base64(b"a*bc")), (None, None));
    }

    #[test]
    fn lists_of_unknown_size_are_refused_with_those_that_are_known() {
        let refused =
            Tokenizer::from_file_bytes(&bytes::Bytes::from_static(b"YQ== 0\nYg== 1\n")).unwrap_err();
        assert!(refused.to_string().contains("2 tokens; added tokens"), "{refused}");
        assert!(refused.to_string().contains("Llama 3 (128000)"), "{refused}");
        assert_eq!(llama3().len(), 256);
        assert_eq!(llama3()[11], ("<|reserved_special_token_3|>".to_owned(), 128_011));
    }
}
