//! SentencePiece's `.model` files: a message of protocol buffers (`sentencepiece_model.proto`) with the tokens, what is done to
//! texts, and the kind of model.

use bytes::Bytes;
use halite_formats::wire::{Field, Reader, WireError};

use crate::{
    TextError, Tokenizer,
    charsmap::Charsmap,
    decode::Decode,
    missing::Missing,
    model::Model,
    normalize::{Normalize, PieceNormalizer, SPACE},
    prefixes::{LONGEST, Prefixes},
    scores::Scores,
    special::Specials,
    unigram::Unigram,
    vocabulary::{Token, TokenKind, Vocabulary},
};

const PLACE: &str = "the SentencePiece model:";

impl From<WireError> for TextError {
    fn from(error: WireError) -> TextError {
        TextError::file(PLACE, format!("'{}': {}", error.message, error.reason))
    }
}

/// Whether a file begins with a token.
pub(super) fn is_model(bytes: &Bytes) -> bool {
    matches!(Reader::new("ModelProto", bytes.clone()).field(), Ok(Some((1, Field::Bytes(_)))))
}

/// Numbers and flags of the messages `TrainerSpec` and `NormalizerSpec` that matter afterwards.
#[derive(Clone, Debug)]
struct Settings {
    kind: i64,
    suffix: bool,
    bytes: bool,
    begin: i64,
    end: i64,
    unknown: String,
    map: Bytes,
    space_before: bool,
    few_spaces: bool,
    marks_spaces: bool,
    undoes: bool,
}

/// Reads a file.
pub(super) fn read(file: &Bytes) -> Result<Tokenizer, TextError> {
    let (tokens, settings) = parts(file)?;
    if tokens.is_empty() {
        return Err(TextError::file(PLACE, "'pieces' is missing"));
    }
    let refused = |what: &str| Err(TextError::Unsupported(format!("{PLACE} {what}")));
    if settings.suffix {
        return refused("'trainer_spec.treat_whitespace_as_suffix' is not supported");
    }
    if settings.undoes {
        return refused("'denormalizer_spec.precompiled_charsmap' is not supported");
    }
    if let Some(long) = tokens.iter().position(|token| token.text.len() > LONGEST) {
        return refused(&format!("'pieces' has one of more than {LONGEST} bytes at {long}"));
    }
    let vocabulary = Vocabulary::new(tokens);
    let unknown = vocabulary.all().find(|(_, token)| token.kind == TokenKind::Unknown).map(|(id, _)| id);
    let missing = Missing { bytes: settings.bytes, unknown, fuses: !settings.bytes, each_byte: false };
    let own =
        |(id, token): (u32, &Token)| (token.kind == TokenKind::UserDefined).then(|| (token.text.clone(), id));
    let whole = Prefixes::new(vocabulary.all().filter_map(own));
    let model = match settings.kind {
        1 => Model::Unigram(Unigram::new(&vocabulary, true, missing)),
        2 => Model::Scores(Scores { whole: whole.clone(), takes_apart: true, missing, whole_words: false }),
        other => {
            return refused(&format!(
                "'trainer_spec.model_type' is {other}, which is not known; there are: 1 (unigram), 2 (byte pairs)"
            ));
        }
    };
    let mut tokenizer = Tokenizer::new(vocabulary, model);
    finish(&mut tokenizer, &settings, whole)?;
    tokenizer.checked(PLACE)
}

/// Sets what is around a model.
fn finish(tokenizer: &mut Tokenizer, settings: &Settings, whole: Prefixes) -> Result<(), TextError> {
    let mut specials = Specials::of(&tokenizer.vocabulary);
    // Those that everybody may write are found by the normalizer and the model, spaces around them included.
    specials.retain(|special| !special.everybody);
    tokenizer.search(specials, Vec::new())?;
    let map = match settings.map.is_empty() {
        true => None,
        false => {
            Some(Charsmap::read(&settings.map, &format!("{PLACE} 'normalizer_spec.precompiled_charsmap'"))?)
        }
    };
    tokenizer.normalizer.push(Normalize::Pieces(PieceNormalizer {
        map,
        whole,
        space_before: settings.space_before,
        few_spaces: settings.few_spaces,
        marks_spaces: settings.marks_spaces,
    }));
    tokenizer.decoding.steps.push(Decode::Spaces { mark: SPACE, first: false });
    if settings.space_before || settings.few_spaces {
        tokenizer.decoding.strip = Some((' ', 1));
    }
    tokenizer.decoding.unknown = Some(settings.unknown.clone());
    let id = |id: i64| u32::try_from(id).ok().filter(|id| tokenizer.vocabulary.token(*id).is_some());
    (tokenizer.begin, tokenizer.end) = (id(settings.begin), id(settings.end));
    tokenizer.ends.extend(tokenizer.end);
    tokenizer.before.extend(tokenizer.begin);
    Ok(())
}

fn parts(file: &Bytes) -> Result<(Vec<Token>, Settings), TextError> {
    let mut tokens = Vec::new();
    let mut settings = Settings {
        kind: 1,
        suffix: false,
        bytes: false,
        begin: 1,
        end: 2,
        unknown: " \u{2047} ".to_owned(),
        map: Bytes::new(),
        space_before: true,
        few_spaces: true,
        marks_spaces: true,
        undoes: false,
    };
    let mut reader = Reader::new("ModelProto", file.clone());
    while let Some((number, field)) = reader.field()? {
        match number {
            1 => tokens.push(piece(field.bytes("ModelProto")?)?),
            2 => trainer(field.bytes("ModelProto")?, &mut settings)?,
            3 => normalizer(field.bytes("ModelProto")?, &mut settings)?,
            5 => {
                let mut inner = Reader::new("NormalizerSpec", field.bytes("ModelProto")?);
                while let Some((number, field)) = inner.field()? {
                    settings.undoes |= number == 2 && !field.bytes("NormalizerSpec")?.is_empty();
                }
            }
            _ => {}
        }
    }
    Ok((tokens, settings))
}

fn piece(bytes: Bytes) -> Result<Token, TextError> {
    const MESSAGE: &str = "SentencePiece";
    let mut token = Token::new(b"");
    let mut reader = Reader::new(MESSAGE, bytes);
    while let Some((number, field)) = reader.field()? {
        match number {
            1 => token.text = field.bytes(MESSAGE)?.as_ref().into(),
            2 => token.score = field.float(MESSAGE)?.into(),
            3 => token.kind = TokenKind::of(field.int(MESSAGE)?.into()),
            _ => {}
        }
    }
    Ok(token)
}

fn trainer(bytes: Bytes, settings: &mut Settings) -> Result<(), TextError> {
    const MESSAGE: &str = "TrainerSpec";
    let mut reader = Reader::new(MESSAGE, bytes);
    while let Some((number, field)) = reader.field()? {
        // Numbers below zero are written as 64 bits, and are of 32.
        match number {
            3 => settings.kind = field.int(MESSAGE)?,
            24 => settings.suffix = field.int(MESSAGE)? != 0,
            35 => settings.bytes = field.int(MESSAGE)? != 0,
            41 => settings.begin = i64::from(field.int(MESSAGE)? as i32),
            42 => settings.end = i64::from(field.int(MESSAGE)? as i32),
            44 => settings.unknown = field.text(MESSAGE)?,
            _ => {}
        }
    }
    Ok(())
}

fn normalizer(bytes: Bytes, settings: &mut Settings) -> Result<(), TextError> {
    const MESSAGE: &str = "NormalizerSpec";
    let mut reader = Reader::new(MESSAGE, bytes);
    while let Some((number, field)) = reader.field()? {
        match number {
            2 => settings.map = field.bytes(MESSAGE)?,
            3 => settings.space_before = field.int(MESSAGE)? != 0,
            4 => settings.few_spaces = field.int(MESSAGE)? != 0,
            5 => settings.marks_spaces = field.int(MESSAGE)? != 0,
            _ => {}
        }
    }
    Ok(())
}
