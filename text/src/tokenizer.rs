//! Texts to tokens and back, as the metadata of a GGUF file say.

use halite_formats::gguf::Gguf;

use crate::{
    TextError,
    merges::{Merges, characters},
    pieces,
    scores::{self, byte_of},
    special::{Part, Specials},
    split::Splitter,
    vocabulary::{TokenKind, Vocabulary, flag, text, token_of},
};

/// What SentencePiece writes for a space.
const SPACE: char = '\u{2581}';

/// How texts become tokens.
#[derive(Clone, Debug)]
enum Kind {
    /// By scores; whether texts begin with a space.
    Scores { space_before: bool },
    /// By merges of words' bytes.
    Merges { merges: Merges, splitter: Splitter },
    /// By the longest pieces of words.
    Pieces,
}

/// A model's tokenizer.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    vocabulary: Vocabulary,
    kind: Kind,
    specials: Specials,
    begin: Option<u32>,
    end: Option<u32>,
    unknown: Option<u32>,
    adds_begin: bool,
    adds_end: bool,
    /// Tokens that end what a model says.
    ends: Vec<u32>,
    /// The byte of each character that stands for one.
    bytes: [char; 256],
}

impl Tokenizer {
    /// Reads it.
    ///
    /// # Errors
    /// The metadata have none, contradict themselves, or ask for one that is not known.
    pub fn read(file: &Gguf) -> Result<Tokenizer, TextError> {
        const MODEL: &str = "tokenizer.ggml.model";
        let vocabulary = Vocabulary::read(file)?;
        let model = text(file, MODEL)?.ok_or_else(|| TextError::metadata(MODEL, "is missing"))?;
        let kind = kind(file, model)?;
        let begins = match &kind {
            Kind::Scores { .. } => true,
            Kind::Merges { splitter, .. } => splitter.begins,
            Kind::Pieces => true,
        };
        let is_pieces = matches!(kind, Kind::Pieces);
        let token = |name: &str| token_of(file, &format!("tokenizer.ggml.{name}_token_id"), &vocabulary);
        let (mut begin, mut end, mut unknown) = (token("bos")?, token("eos")?, token("unknown")?);
        if is_pieces {
            // BERT's own names. The files of some models have a letter less.
            let named = |text: &str| vocabulary.find(text.as_bytes());
            let separator = match token("seperator")? {
                None => token("separator")?,
                own => own,
            };
            begin = token("cls")?.or(begin).or_else(|| named("[CLS]"));
            end = separator.or(end).or_else(|| named("[SEP]"));
            unknown = unknown.or_else(|| named("[UNK]"));
        }
        let mut ends: Vec<u32> = [end, token("eot")?, token("eom")?].into_iter().flatten().collect();
        ends.extend(vocabulary.ends());
        let mut specials = Specials::of(&vocabulary);
        if text(file, "general.architecture")? == Some("phi3") {
            specials.strip_behind_all_but(&["<unk>", "<s>", "<|endoftext|>"]);
        }
        Ok(Tokenizer {
            kind,
            specials,
            begin,
            end,
            unknown,
            adds_begin: flag(file, "tokenizer.ggml.add_bos_token")?.unwrap_or(begins),
            adds_end: flag(file, "tokenizer.ggml.add_eos_token")?.unwrap_or(is_pieces),
            ends,
            bytes: characters(),
            vocabulary,
        })
    }

    /// The tokens that there are.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The token of the beginning of a text.
    pub fn begin(&self) -> Option<u32> {
        self.begin
    }

    /// Whether a token ends what a model says.
    pub fn is_end(&self, token: u32) -> bool {
        self.ends.contains(&token)
    }

    /// The text of the token of the beginning, and of that of the end, for templates.
    pub fn marks(&self) -> [String; 2] {
        let of = |id: Option<u32>| {
            let token = id.and_then(|id| self.vocabulary.token(id));
            token.map(|token| String::from_utf8_lossy(&token.text).into_owned()).unwrap_or_default()
        };
        [of(self.begin), of(self.end)]
    }

    /// The tokens of a text, with that of the beginning if the model is used to it.
    ///
    /// Names of control tokens in the text, such as `<|im_end|>`, are text, unless `with_control` makes them these tokens: for
    /// what a chat template wrote. What begins with the token of the beginning gets no second one.
    pub fn encode(&self, text: &str, with_control: bool) -> Vec<u32> {
        let mut tokens = Vec::new();
        let mut behind_token = true;
        for part in self.specials.split(text, with_control) {
            match part {
                Part::Token(id) => tokens.push(id),
                Part::Text(text) => self.encode_text(text, behind_token, &mut tokens),
            }
            behind_token = matches!(part, Part::Token(_));
        }
        if let Some(begin) = self.begin
            && self.adds_begin
            && (tokens.first() != Some(&begin) || matches!(self.kind, Kind::Pieces))
        {
            tokens.insert(0, begin);
        }
        if let Some(end) = self.end
            && self.adds_end
            && !with_control
        {
            tokens.push(end);
        }
        tokens
    }

    fn encode_text(&self, text: &str, behind_token: bool, tokens: &mut Vec<u32>) {
        match &self.kind {
            Kind::Scores { space_before } => {
                let mut own = String::with_capacity(text.len() + 4);
                if *space_before && behind_token {
                    own.push(SPACE);
                }
                own.extend(text.chars().map(|c| if c == ' ' { SPACE } else { c }));
                scores::encode(&own, &self.vocabulary, self.unknown, tokens);
            }
            Kind::Pieces => pieces::encode(text, &self.vocabulary, self.unknown, tokens),
            Kind::Merges { merges, splitter } => {
                for word in splitter.split(text) {
                    let word: String = word.bytes().map(|byte| self.bytes[usize::from(byte)]).collect();
                    merges.encode(&word, &self.vocabulary, tokens);
                }
            }
        }
    }

    /// The bytes of a token. Control tokens have none, unless they are asked for.
    pub fn bytes(&self, token: u32, with_control: bool) -> Vec<u8> {
        let Some(own) = self.vocabulary.token(token) else { return Vec::new() };
        match own.kind {
            TokenKind::Control | TokenKind::Unknown if !with_control => return Vec::new(),
            TokenKind::Unused => return Vec::new(),
            TokenKind::Control | TokenKind::Unknown | TokenKind::UserDefined => return own.text.to_vec(),
            TokenKind::Normal | TokenKind::Byte => {}
        }
        let text = String::from_utf8_lossy(&own.text);
        match &self.kind {
            Kind::Scores { .. } => match byte_of(&own.text).filter(|_| own.kind == TokenKind::Byte) {
                Some(byte) => vec![byte],
                None => text.replace(SPACE, " ").into_bytes(),
            },
            Kind::Pieces => text.replace(pieces::WORD, " ").into_bytes(),
            Kind::Merges { .. } => {
                let mut bytes = Vec::new();
                for c in text.chars() {
                    match self.bytes.iter().position(|own| *own == c) {
                        Some(byte) => bytes.push(byte as u8),
                        None => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                    }
                }
                bytes
            }
        }
    }

    /// The text of tokens. Bytes that are no UTF-8 are replaced.
    pub fn decode(&self, tokens: &[u32], with_control: bool) -> String {
        let bytes: Vec<u8> = tokens.iter().flat_map(|token| self.bytes(*token, with_control)).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// How a model's texts become tokens.
fn kind(file: &Gguf, model: &str) -> Result<Kind, TextError> {
    Ok(match model {
        "llama" => {
            let space = flag(file, "tokenizer.ggml.add_space_prefix")?;
            Kind::Scores { space_before: space.unwrap_or(true) }
        }
        "gpt2" => {
            let splitter = Splitter::named(text(file, "tokenizer.ggml.pre")?.unwrap_or("default"))?;
            Kind::Merges { merges: Merges::read(file, splitter.whole_words)?, splitter }
        }
        "bert" => Kind::Pieces,
        other => {
            return Err(TextError::Unsupported(format!(
                "the tokenizer '{other}' ('tokenizer.ggml.model') is not known; there are: llama, gpt2, bert"
            )));
        }
    })
}

/// Bytes to text as they come: a character that is not there in full yet waits for its other bytes.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    waiting: Vec<u8>,
}

impl Decoder {
    /// The text that these bytes complete.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.waiting.extend_from_slice(bytes);
        let mut text = String::new();
        loop {
            match std::str::from_utf8(&self.waiting) {
                Ok(rest) => {
                    text.push_str(rest);
                    self.waiting.clear();
                    return text;
                }
                Err(error) => {
                    let good = error.valid_up_to();
                    text.push_str(&String::from_utf8_lossy(&self.waiting[..good]));
                    match error.error_len() {
                        None => {
                            self.waiting.drain(..good);
                            return text;
                        }
                        Some(wrong) => {
                            text.push(char::REPLACEMENT_CHARACTER);
                            self.waiting.drain(..good + wrong);
                        }
                    }
                }
            }
        }
    }

    /// What is left in the end: a replacement for a character that never came in full.
    pub fn finish(&mut self) -> String {
        let rest = std::mem::take(&mut self.waiting);
        String::from_utf8_lossy(&rest).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::Decoder;

    #[test]
    fn characters_wait_for_all_their_bytes() {
        let mut decoder = Decoder::default();
        let bytes = "é€".as_bytes();
        assert_eq!(decoder.push(&bytes[..1]), "");
        assert_eq!(decoder.push(&bytes[1..4]), "é");
        assert_eq!(decoder.push(&bytes[4..]), "€");
        assert_eq!(decoder.push(&[0xFF, b'a', 0xE2]), "\u{FFFD}a");
        assert_eq!(decoder.finish(), "\u{FFFD}");
    }
}
