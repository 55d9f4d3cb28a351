//! The model of a `tokenizer.json`: its tokens, and how words become these.

use serde_json::Value;

use crate::{
    TextError,
    merges::{Merges, parted},
    missing::Missing,
    model::Model,
    pieces::{LONGEST_ASKED, LONGEST_WORD, Pieces},
    prefixes::LONGEST,
    scores,
    unigram::Unigram,
    vocabulary::{Token, TokenKind, Vocabulary},
};

use super::{added::Added, at::At, token};

const KNOWN: &str = "BPE, Unigram, WordPiece, WordLevel";

/// A model with its tokens.
pub(super) struct Read {
    pub vocabulary: Vocabulary,
    pub model: Model,
}

/// Reads it.
pub(super) fn read(at: &At<'_>, added: &[Added]) -> Result<Read, TextError> {
    at.object()?;
    // Files of long ago do not say which it is.
    let kind = match at.get("type").some() {
        Some(kind) => kind.text()?,
        None if !at.get("merges").is_null() => "BPE",
        None => return Err(at.get("type").wrong(format!("is missing; there are: {KNOWN}"))),
    };
    match kind {
        "BPE" => byte_pairs(at, added),
        "Unigram" => unigram(at, added),
        "WordPiece" => word_pieces(at, added),
        "WordLevel" => words(at, added),
        other => Err(at.unknown_kind(other, KNOWN)),
    }
}

/// The tokens of a map from texts to numbers.
fn vocabulary(at: &At<'_>, added: &[Added], bytes: bool) -> Result<Vocabulary, TextError> {
    let vocab = at.get("vocab");
    let mut tokens = Vec::new();
    for (text, id) in vocab.object()? {
        let id = id.as_u64().and_then(|id| u32::try_from(id).ok());
        let id = id.ok_or_else(|| vocab.get(text).wrong("is no token's number"))?;
        tokens.push((id, Token::new(text.as_bytes())));
    }
    finished(&vocab, tokens, added, bytes)
}

/// Tokens of a model with those that are added.
fn finished(
    at: &At<'_>,
    mut tokens: Vec<(u32, Token)>,
    added: &[Added],
    bytes: bool,
) -> Result<Vocabulary, TextError> {
    for (_, token) in &mut tokens {
        if bytes && scores::byte_of(&token.text).is_some() {
            token.kind = TokenKind::Byte;
        }
    }
    let scores: std::collections::HashMap<u32, f64> =
        tokens.iter().map(|(id, token)| (*id, token.score)).collect();
    for own in added {
        let kind = if own.special.everybody { TokenKind::UserDefined } else { TokenKind::Control };
        let score = scores.get(&own.special.id).copied().unwrap_or(0.0);
        tokens.push((own.special.id, Token { kind, score, ..Token::new(own.special.text.as_bytes()) }));
    }
    if tokens.is_empty() {
        return Err(at.wrong("has no tokens"));
    }
    Vocabulary::numbered(tokens, &at.place)
}

fn byte_pairs(at: &At<'_>, added: &[Added]) -> Result<Read, TextError> {
    at.only(&[
        "dropout",
        "unk_token",
        "continuing_subword_prefix",
        "end_of_word_suffix",
        "fuse_unk",
        "byte_fallback",
        "ignore_merges",
        "vocab",
        "merges",
    ])?;
    if at.get("dropout").value.as_f64().is_some_and(|dropout| dropout != 0.0) {
        return Err(at.get("dropout").unsupported("asks for chance, which is not supported"));
    }
    let bytes = at.get("byte_fallback").flag_or(false)?;
    let vocabulary = vocabulary(at, added, bytes)?;
    let unknown = at.get("unk_token");
    let unknown = match unknown.text_or("")? {
        "" => None,
        text => Some(token(&unknown, text, &vocabulary)?),
    };
    let mut merges = Merges::new();
    merges.whole_words = at.get("ignore_merges").flag_or(false)?;
    merges.prefix = at.get("continuing_subword_prefix").text_or("")?.to_owned();
    merges.suffix = at.get("end_of_word_suffix").text_or("")?.to_owned();
    merges.missing = Missing { bytes, unknown, fuses: at.get("fuse_unk").flag_or(false)?, each_byte: false };
    let list = at.get("merges");
    for (rank, pair) in (0u32..).zip(list.values()?) {
        let pair = match pair {
            Value::String(pair) => parted(pair),
            Value::Array(pair) => match pair.as_slice() {
                [Value::String(left), Value::String(right)] => Some((left.as_str(), right.as_str())),
                _ => None,
            },
            _ => None,
        };
        let (left, right) = pair.ok_or_else(|| list.wrong(format!("has no pair of texts at {rank}")))?;
        merges.add_tokens(rank, [left, right], &vocabulary)?;
    }
    Ok(Read { vocabulary, model: Model::Merges(merges) })
}

fn unigram(at: &At<'_>, added: &[Added]) -> Result<Read, TextError> {
    at.only(&["unk_id", "vocab", "byte_fallback"])?;
    let bytes = at.get("byte_fallback").flag_or(false)?;
    let vocab = at.get("vocab");
    let mut tokens = Vec::new();
    for (id, pair) in (0u32..).zip(vocab.values()?) {
        let own = match pair.as_array().map(Vec::as_slice) {
            Some([Value::String(text), Value::Number(score)]) => score.as_f64().map(|score| (text, score)),
            _ => None,
        };
        let (text, score) = own.ok_or_else(|| vocab.wrong(format!("has no text with a score at {id}")))?;
        if text.len() > LONGEST {
            return Err(vocab.unsupported(&format!("has a token of more than {LONGEST} bytes at {id}")));
        }
        tokens.push((id, Token { score, ..Token::new(text.as_bytes()) }));
    }
    let vocabulary = finished(&vocab, tokens, added, bytes)?;
    let unknown = at.get("unk_id");
    let unknown = match unknown.is_null() {
        true => None,
        false => Some(unknown.id()?),
    };
    if unknown.is_some_and(|id| vocabulary.token(id).is_none()) {
        return Err(at.get("unk_id").wrong("is no token"));
    }
    let missing = Missing { bytes, unknown, fuses: true, each_byte: false };
    let model = Model::Unigram(Unigram::new(&vocabulary, false, missing));
    Ok(Read { vocabulary, model })
}

fn word_pieces(at: &At<'_>, added: &[Added]) -> Result<Read, TextError> {
    at.only(&["unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"])?;
    let vocabulary = vocabulary(at, added, false)?;
    let longest = at.get("max_input_chars_per_word");
    let asked = longest.count_or(LONGEST_WORD as u64)?;
    if asked > LONGEST_ASKED {
        return Err(longest.unsupported(&format!("is {asked}, more than {LONGEST_ASKED}")));
    }
    let pieces = Pieces {
        first: String::new(),
        next: at.get("continuing_subword_prefix").text_or("##")?.to_owned(),
        unknown: Some(token(&at.get("unk_token"), at.get("unk_token").text_or("[UNK]")?, &vocabulary)?),
        longest: usize::try_from(asked).unwrap_or(LONGEST_WORD),
        whole: false,
    };
    Ok(Read { vocabulary, model: Model::Pieces(pieces) })
}

fn words(at: &At<'_>, added: &[Added]) -> Result<Read, TextError> {
    at.only(&["unk_token", "vocab"])?;
    let vocabulary = vocabulary(at, added, false)?;
    let unknown = Some(token(&at.get("unk_token"), at.get("unk_token").text()?, &vocabulary)?);
    let (first, next) = (String::new(), String::new());
    let pieces = Pieces { first, next, unknown, longest: usize::MAX, whole: true };
    Ok(Read { vocabulary, model: Model::Pieces(pieces) })
}
