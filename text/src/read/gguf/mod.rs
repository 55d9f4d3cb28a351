//! Tokenizers from the metadata of GGUF files.

mod values;
mod vocabulary;

use halite_formats::gguf::{Gguf, Value};

use crate::{
    TextError, Tokenizer,
    charsmap::Charsmap,
    cheapest::Cheapest,
    decode::Decode,
    families::{Begins, Raw, Splitter},
    longest::Longest,
    merges::{Merges, parted},
    missing::Missing,
    model::Model,
    normalize::{Normalize, PieceNormalizer, SPACE},
    pattern::Pattern,
    pieces::Pieces,
    prefixes::{LONGEST, Prefixes},
    scores::Scores,
    split::{Behaviour, Split},
    unigram::Unigram,
    vocabulary::Vocabulary,
};

use super::{bert_splits, bert_steps};
pub(crate) use values::text;
use values::{array, flag};
use vocabulary::{TOKENS, further_ends, message_end, specials, token_of, vocabulary};

const MODEL: &str = "tokenizer.ggml.model";
const CHARSMAP: &str = "tokenizer.ggml.precompiled_charsmap";
const MERGES: &str = "tokenizer.ggml.merges";

/// What a kind of model brings with it.
struct Kind {
    model: Model,
    normalizer: Vec<Normalize>,
    splitter: Vec<Split>,
    decoder: Decode,
    /// Whether texts begin with the token of the beginning, and where the metadata do not say, end with that of the end.
    begins: Begins,
    ends: bool,
}

impl Tokenizer {
    /// Reads that of a GGUF file's metadata.
    ///
    /// # Errors
    /// The metadata have none, contradict themselves, or ask for one that is not known.
    pub fn read(file: &Gguf) -> Result<Tokenizer, TextError> {
        let model = text(file, MODEL)?.ok_or_else(|| TextError::metadata(MODEL, "is missing"))?;
        if model == "no_vocab" || model == "none" {
            let problem =
                format!("the file has no tokenizer ('{MODEL}' is '{model}'): the model takes tokens");
            return Err(TextError::Unsupported(problem));
        }
        let vocabulary = vocabulary(file, model == "rwkv")?;
        let Marks { begin, end, unknown } = marks(file, model, &vocabulary)?;
        let token = |name: &str| token_of(file, &format!("tokenizer.ggml.{name}_token_id"), &vocabulary);
        let is_pieces = model == "bert";
        let mut ends = further_ends(file, &vocabulary)?;
        let mut specials = specials(&vocabulary, &ends);
        ends.extend([token("eot")?, token("eom")?, end].into_iter().flatten());
        let kept = message_end(&vocabulary);
        let Kind { model, normalizer, splitter, decoder, begins, ends: ends_all } =
            kind(file, model, unknown, &vocabulary)?;
        if text(file, "general.architecture")? == Some("phi3") {
            // All but some tokens take the space behind them with them, as in the tokenizer of Phi-3.
            let stays = ["<unk>", "<s>", "<|endoftext|>"];
            specials.iter_mut().for_each(|own| own.strips_behind = !stays.contains(&own.text.as_str()));
        }
        let mut tokenizer = Tokenizer::new(vocabulary, model);
        tokenizer.search(specials, Vec::new())?;
        (tokenizer.normalizer, tokenizer.splitter) = (normalizer, splitter);
        tokenizer.decoding.steps.push(decoder);
        tokenizer.ends.extend(ends);
        tokenizer.ends.retain(|id| Some(*id) != kept);
        (tokenizer.begin, tokenizer.end, tokenizer.begins_twice) = (begin, end, is_pieces);
        let is_said = flag(file, "tokenizer.ggml.add_bos_token")?;
        if begins == Begins::Always || is_said.unwrap_or(begins == Begins::Usually) {
            tokenizer.before.extend(begin);
        }
        if flag(file, "tokenizer.ggml.add_eos_token")?.unwrap_or(ends_all) {
            tokenizer.behind.extend(end);
        }
        tokenizer.checked("the tokenizer")
    }
}

/// Tokens with a meaning of their own.
struct Marks {
    begin: Option<u32>,
    end: Option<u32>,
    unknown: Option<u32>,
}

/// These tokens: those that the metadata name, or else those where such models usually have them.
fn marks(file: &Gguf, model: &str, vocabulary: &Vocabulary) -> Result<Marks, TextError> {
    let token = |name: &str| token_of(file, &format!("tokenizer.ggml.{name}_token_id"), vocabulary);
    let usual = |id: u32| vocabulary.token(id).map(|_| id);
    let (begin, end, unknown) = (token("bos")?, token("eos")?, token("unknown")?);
    Ok(match model {
        // BERT's own names. The files of some models have a letter less.
        "bert" => {
            let named = |text: &str| vocabulary.find(text.as_bytes());
            let separator = match token("seperator")? {
                None => token("separator")?,
                own => own,
            };
            Marks {
                begin: token("cls")?.or(begin).or_else(|| named("[CLS]")),
                end: separator.or(end).or_else(|| named("[SEP]")),
                unknown: unknown.or_else(|| named("[UNK]")),
            }
        }
        "llama" | "plamo2" => Marks {
            begin: begin.or_else(|| usual(1)),
            end: end.or_else(|| usual(2)),
            unknown: unknown.or_else(|| usual(0)),
        },
        "t5" => Marks { begin, end: end.or_else(|| usual(1)), unknown: unknown.or_else(|| usual(2)) },
        "rwkv" => Marks { begin, end, unknown: unknown.or(Some(0)) },
        _ => Marks { begin, end, unknown },
    })
}

/// How a model's texts become tokens.
fn kind(file: &Gguf, model: &str, unknown: Option<u32>, vocabulary: &Vocabulary) -> Result<Kind, TextError> {
    Ok(match model {
        "llama" => scores(file, unknown)?,
        "gpt2" => pairs(file, text(file, "tokenizer.ggml.pre")?.unwrap_or("default"), vocabulary)?,
        "gemma4" => pairs(file, "gemma4", vocabulary)?,
        "whitespace" => Kind {
            normalizer: small(file, false)?.then_some(Normalize::Lowercase).into_iter().collect(),
            ..spaced(pairs(file, text(file, "tokenizer.ggml.pre")?.unwrap_or("default"), vocabulary)?)?
        },
        "bert" => {
            let (first, next) = (SPACE.to_string(), String::new());
            // llama.cpp's own bound is one of bytes, and far above words.
            let model = Model::Pieces(Pieces { first, next, unknown, longest: 400, whole: false });
            let small = small(file, true)?;
            let accents = flag(file, "tokenizer.ggml.normalizer.strip_accents")?.unwrap_or(small);
            let normalizer = bert_steps([true, true, accents, small], true);
            let decoder = Decode::Spaces { mark: SPACE, first: false };
            Kind { model, normalizer, splitter: bert_splits()?, decoder, begins: Begins::Always, ends: true }
        }
        "t5" => unigram(file, unknown, vocabulary)?,
        "rwkv" => Kind {
            model: Model::Longest(Longest::new(vocabulary, unknown)?),
            normalizer: Vec::new(),
            splitter: Vec::new(),
            decoder: Decode::Raw,
            begins: Begins::Rarely,
            ends: false,
        },
        "plamo2" => Kind {
            model: Model::Cheapest(Cheapest::new(vocabulary)?),
            // The mark of the order of bytes.
            normalizer: vec![Normalize::Replace {
                pattern: Pattern::regex(r"\A\u{FEFF}", "the mark of the order of bytes")?,
                with: String::new(),
            }],
            splitter: Vec::new(),
            decoder: Decode::Raw,
            begins: Begins::Rarely,
            ends: false,
        },
        other => {
            return Err(TextError::Unsupported(format!(
                "the tokenizer '{other}' ('{MODEL}') is not known; there are: llama, gpt2, gemma4, bert, t5, rwkv, plamo2, whitespace"
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
    Ok(Kind { model, normalizer, splitter: Vec::new(), decoder, begins: Begins::Usually, ends: false })
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
        begins: Begins::Rarely,
        ends: true,
    })
}

/// Whether letters become small.
fn small(file: &Gguf, usually: bool) -> Result<bool, TextError> {
    Ok(flag(file, "tokenizer.ggml.normalizer.lowercase")?.unwrap_or(usually))
}

/// Pairs of bytes, or of characters, split as the pre-tokenizer with a name does it.
fn pairs(file: &Gguf, name: &str, vocabulary: &Vocabulary) -> Result<Kind, TextError> {
    let Splitter { steps, whole_words, begins, raw } = Splitter::named(name)?;
    // Kimi's files may have no pairs.
    let mut merges = merges(file, name == "kimi-k2", vocabulary)?;
    (merges.whole_words, merges.whole_lines) = (whole_words, raw == Some(Raw::Spaced { whole_lines: true }));
    let spaced = matches!(raw, Some(Raw::Spaced { .. }));
    let pattern = Pattern::literal(" ", "the space")?;
    let normalizer = spaced.then(|| Normalize::Replace { pattern, with: SPACE.to_string() });
    merges.missing = Missing { bytes: raw.is_some(), each_byte: true, unknown: None, fuses: false };
    Ok(Kind {
        model: Model::Merges(merges),
        normalizer: normalizer.into_iter().collect(),
        splitter: steps,
        decoder: if spaced { Decode::Spaces { mark: SPACE, first: false } } else { Decode::Bytes },
        begins,
        ends: false,
    })
}

/// The same with white space taken away first.
fn spaced(kind: Kind) -> Result<Kind, TextError> {
    let pattern = Pattern::regex(r"\s+", "white space")?;
    let first = Split::Matches { pattern, behaviour: Behaviour::Removed, inverted: false };
    let splitter = [first].into_iter().chain(kind.splitter).collect();
    Ok(Kind { splitter, ..kind })
}

fn merges(file: &Gguf, may_lack: bool, vocabulary: &Vocabulary) -> Result<Merges, TextError> {
    let list = match array(file, MERGES)? {
        None if may_lack => return Ok(Merges::new()),
        list => list.ok_or_else(|| TextError::metadata(MERGES, "is missing"))?,
    };
    let mut merges = Merges::new();
    for (rank, pair) in (0u32..).zip(list.texts()) {
        let Ok(pair) = std::str::from_utf8(pair) else {
            return Err(TextError::metadata(MERGES, format!("has no text at {rank}")));
        };
        // What is no pair joins nothing.
        if let Some((left, right)) = parted(pair) {
            merges.add(rank, left, right, vocabulary);
        }
    }
    Ok(merges)
}
