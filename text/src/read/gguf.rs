//! Tokenizers from the metadata of GGUF files.

use halite_formats::gguf::{Array, Gguf, Value};

use crate::{
    TextError, Tokenizer,
    charsmap::Charsmap,
    decode::Decode,
    families::Splitter,
    longest::{Longest, unescaped},
    merges::{Merges, parted},
    missing::Missing,
    model::Model,
    normalize::{Normalize, PieceNormalizer, SPACE},
    pattern::Pattern,
    pieces::Pieces,
    prefixes::{LONGEST, Prefixes},
    scores::Scores,
    special::Specials,
    split::Split,
    unigram::Unigram,
    vocabulary::{Token, TokenKind, Vocabulary},
};

use super::{bert_splits, bert_steps};

const MODEL: &str = "tokenizer.ggml.model";
const TOKENS: &str = "tokenizer.ggml.tokens";
const CHARSMAP: &str = "tokenizer.ggml.precompiled_charsmap";
const MERGES: &str = "tokenizer.ggml.merges";

/// What a kind of model brings with it.
struct Kind {
    model: Model,
    normalizer: Vec<Normalize>,
    splitter: Vec<Split>,
    decoder: Decode,
    /// Whether texts begin with the token of the beginning where the metadata do not say, and end with that of the end.
    begins: bool,
    ends: bool,
}

impl Tokenizer {
    /// Reads that of a GGUF file's metadata.
    ///
    /// # Errors
    /// The metadata have none, contradict themselves, or ask for one that is not known.
    pub fn read(file: &Gguf) -> Result<Tokenizer, TextError> {
        let model = text(file, MODEL)?.ok_or_else(|| TextError::metadata(MODEL, "is missing"))?;
        let vocabulary = vocabulary(file, model == "rwkv")?;
        let token = |name: &str| token_of(file, &format!("tokenizer.ggml.{name}_token_id"), &vocabulary);
        let (mut begin, mut end, mut unknown) = (token("bos")?, token("eos")?, token("unknown")?);
        let mut ends = vec![token("eot")?, token("eom")?];
        let is_pieces = model == "bert";
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
        if model == "t5" {
            // Where SentencePiece has them.
            let usual = |id: u32| vocabulary.token(id).map(|_| id);
            (end, unknown) = (end.or_else(|| usual(1)), unknown.or_else(|| usual(2)));
        }
        if model == "rwkv" {
            unknown = unknown.or(Some(0));
        }
        ends.push(end);
        let Kind { model, normalizer, splitter, decoder, begins, ends: ends_all } =
            kind(file, model, unknown, &vocabulary)?;
        let mut specials = Specials::of(&vocabulary);
        if text(file, "general.architecture")? == Some("phi3") {
            // All but some tokens take the space behind them with them, as in the tokenizer of Phi-3.
            let stays = ["<unk>", "<s>", "<|endoftext|>"];
            specials.iter_mut().for_each(|own| own.strips_behind = !stays.contains(&own.text.as_str()));
        }
        let mut tokenizer = Tokenizer::new(vocabulary, model);
        tokenizer.search(specials, Vec::new())?;
        (tokenizer.normalizer, tokenizer.splitter) = (normalizer, splitter);
        tokenizer.decoding.steps.push(decoder);
        tokenizer.ends.extend(ends.into_iter().flatten());
        (tokenizer.begin, tokenizer.end, tokenizer.begins_twice) = (begin, end, is_pieces);
        if flag(file, "tokenizer.ggml.add_bos_token")?.unwrap_or(begins) {
            tokenizer.before.extend(begin);
        }
        if flag(file, "tokenizer.ggml.add_eos_token")?.unwrap_or(ends_all) {
            tokenizer.behind.extend(end);
        }
        tokenizer.checked("the tokenizer")
    }
}

/// How a model's texts become tokens.
fn kind(file: &Gguf, model: &str, unknown: Option<u32>, vocabulary: &Vocabulary) -> Result<Kind, TextError> {
    Ok(match model {
        "llama" => scores(file, unknown)?,
        "gpt2" => {
            let splitter = Splitter::named(text(file, "tokenizer.ggml.pre")?.unwrap_or("default"))?;
            let mut merges = merges(file, vocabulary)?;
            merges.whole_words = splitter.whole_words;
            let (splitter, begins) = (splitter.steps, splitter.begins);
            Kind {
                model: Model::Merges(merges),
                normalizer: Vec::new(),
                splitter,
                decoder: Decode::Bytes,
                begins,
                ends: false,
            }
        }
        "bert" => {
            let (first, next) = (SPACE.to_string(), String::new());
            // llama.cpp's own bound is one of bytes, and far above words.
            let model = Model::Pieces(Pieces { first, next, unknown, longest: 400, whole: false });
            let normalizer = bert_steps([true, true, true, true], true);
            let decoder = Decode::Spaces { mark: SPACE, first: false };
            Kind { model, normalizer, splitter: bert_splits()?, decoder, begins: true, ends: true }
        }
        "t5" => unigram(file, unknown, vocabulary)?,
        "rwkv" => Kind {
            model: Model::Longest(Longest::new(vocabulary, unknown)?),
            normalizer: Vec::new(),
            splitter: Vec::new(),
            decoder: Decode::Raw,
            begins: false,
            ends: false,
        },
        other => {
            return Err(TextError::Unsupported(format!(
                "the tokenizer '{other}' ('{MODEL}') is not known; there are: llama, gpt2, bert, t5, rwkv"
            )));
        }
    })
}

/// SentencePiece's pairs with scores.
fn scores(file: &Gguf, unknown: Option<u32>) -> Result<Kind, TextError> {
    let mut normalizer = Vec::new();
    if flag(file, "tokenizer.ggml.add_space_prefix")?.unwrap_or(true) {
        normalizer.push(Normalize::Prepend(SPACE.to_string()));
    }
    let pattern = Pattern::literal(" ", "the space")?;
    normalizer.push(Normalize::Replace { pattern, with: SPACE.to_string() });
    let missing = Missing { bytes: true, each_byte: true, unknown, fuses: false };
    let model = Model::Scores(Scores { missing, ..Scores::default() });
    let decoder = Decode::Spaces { mark: SPACE, first: false };
    Ok(Kind { model, normalizer, splitter: Vec::new(), decoder, begins: true, ends: false })
}

/// SentencePiece's unigram model, with its normalization.
fn unigram(file: &Gguf, unknown: Option<u32>, vocabulary: &Vocabulary) -> Result<Kind, TextError> {
    if let Some((id, _)) = vocabulary.all().find(|(_, token)| token.text.len() > LONGEST) {
        return Err(TextError::metadata(TOKENS, format!("has one of more than {LONGEST} bytes at {id}")));
    }
    let map = match array(file, CHARSMAP)? {
        Some(values) if !values.is_empty() => {
            let byte = |value: Value| match value {
                Value::Int(value) => u8::try_from(value & 0xFF).ok(),
                _ => None,
            };
            let bytes: Option<Vec<u8>> = values.scalars().map(byte).collect();
            let bytes = bytes.ok_or_else(|| TextError::metadata(CHARSMAP, "is no list of bytes"))?;
            Some(Charsmap::read(&bytes, &format!("'{CHARSMAP}'"))?)
        }
        _ => None,
    };
    let missing = Missing { bytes: false, unknown, fuses: true, each_byte: false };
    let few_spaces = flag(file, "tokenizer.ggml.remove_extra_whitespaces")?.unwrap_or(false);
    let space_before = flag(file, "tokenizer.ggml.add_space_prefix")?.unwrap_or(false);
    let own =
        PieceNormalizer { map, whole: Prefixes::default(), space_before, few_spaces, marks_spaces: true };
    Ok(Kind {
        model: Model::Unigram(Unigram::new(vocabulary, true, missing)),
        normalizer: vec![Normalize::Pieces(own)],
        splitter: Vec::new(),
        decoder: Decode::Spaces { mark: SPACE, first: false },
        begins: false,
        ends: true,
    })
}

fn merges(file: &Gguf, vocabulary: &Vocabulary) -> Result<Merges, TextError> {
    let list = array(file, MERGES)?.ok_or_else(|| TextError::metadata(MERGES, "is missing"))?;
    let mut merges = Merges::new();
    for (rank, pair) in (0u32..).zip(list.texts()) {
        let Some((left, right)) = std::str::from_utf8(pair).ok().and_then(parted) else {
            return Err(TextError::metadata(MERGES, format!("has no pair of texts at {rank}")));
        };
        merges.add(rank, left, right, vocabulary);
    }
    Ok(merges)
}

/// The tokens, whose texts may be written as Python writes bytes.
fn vocabulary(file: &Gguf, escaped: bool) -> Result<Vocabulary, TextError> {
    let texts = array(file, TOKENS)?.ok_or_else(|| TextError::metadata(TOKENS, "is missing"))?;
    if texts.len() >= u64::from(u32::MAX) {
        return Err(TextError::metadata(TOKENS, "has more tokens than 32 bits can count"));
    }
    let token = |text: &[u8]| if escaped { Token::new(&unescaped(text)) } else { Token::new(text) };
    let mut tokens: Vec<Token> = texts.texts().map(token).collect();
    if tokens.is_empty() {
        return Err(TextError::metadata(TOKENS, "has no texts"));
    }
    each(file, "tokenizer.ggml.scores", &mut tokens, |token, value| {
        if let Value::Float(score) = value {
            token.score = score;
        }
    })?;
    each(file, "tokenizer.ggml.token_type", &mut tokens, |token, value| {
        if let Value::Int(kind) = value {
            token.kind = TokenKind::of(kind);
        }
    })?;
    Ok(Vocabulary::new(tokens))
}

/// Gives each token the value at its place.
fn each(
    file: &Gguf,
    key: &str,
    tokens: &mut [Token],
    set: impl Fn(&mut Token, Value),
) -> Result<(), TextError> {
    let Some(values) = array(file, key)? else { return Ok(()) };
    if values.len() != tokens.len() as u64 {
        let problem = format!("has {} values for {} tokens", values.len(), tokens.len());
        return Err(TextError::metadata(key, problem));
    }
    tokens.iter_mut().zip(values.scalars()).for_each(|(token, value)| set(token, value));
    Ok(())
}

/// The array of a key, if the file has the key.
fn array<'a>(file: &'a Gguf, key: &str) -> Result<Option<&'a Array>, TextError> {
    match file.value(key) {
        None => Ok(None),
        Some(Value::Array(array)) => Ok(Some(array)),
        Some(_) => Err(TextError::metadata(key, "is no array")),
    }
}

/// The text of a key, if the file has the key.
pub(crate) fn text<'a>(file: &'a Gguf, key: &str) -> Result<Option<&'a str>, TextError> {
    match file.value(key) {
        None => Ok(None),
        Some(Value::Text(text)) => Ok(Some(text)),
        Some(_) => Err(TextError::metadata(key, "is no text")),
    }
}

/// What a key says, if the file has the key.
fn flag(file: &Gguf, key: &str) -> Result<Option<bool>, TextError> {
    match file.value(key) {
        None => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(_) => Err(TextError::metadata(key, "is neither true nor false")),
    }
}

/// The token of a key, if the file has the key.
fn token_of(file: &Gguf, key: &str, vocabulary: &Vocabulary) -> Result<Option<u32>, TextError> {
    match file.value(key) {
        None => Ok(None),
        Some(Value::Int(id)) => match u32::try_from(*id).ok().filter(|id| vocabulary.token(*id).is_some()) {
            Some(id) => Ok(Some(id)),
            None => {
                let problem = format!("is {id}; there are {} tokens", vocabulary.len());
                Err(TextError::metadata(key, problem))
            }
        },
        Some(_) => Err(TextError::metadata(key, "is no token's number")),
    }
}
