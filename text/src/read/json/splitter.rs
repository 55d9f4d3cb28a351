//! The pre-tokenizer of a `tokenizer.json`.

use crate::{
    TextError,
    families::gpt2,
    pattern::Pattern,
    split::{Before, Behaviour, Split},
};

use super::{
    super::{SIGN, bert_splits},
    at::At,
    pattern,
};

const KNOWN: &str = "Sequence, ByteLevel, Split, Metaspace, Whitespace, WhitespaceSplit, BertPreTokenizer, Digits, Punctuation, \
                     CharDelimiterSplit, FixedLength";

/// Reads it: its steps, of which there are none where there is no pre-tokenizer.
pub(super) fn read(at: &At<'_>) -> Result<Vec<Split>, TextError> {
    if at.is_null() {
        return Ok(Vec::new());
    }
    if at.kind()? != "Sequence" {
        return steps(at);
    }
    at.only(&["pretokenizers"])?;
    let all: Result<Vec<_>, _> = at.get("pretokenizers").array()?.iter().map(steps).collect();
    Ok(all?.concat())
}

fn steps(at: &At<'_>) -> Result<Vec<Split>, TextError> {
    let matches = |text: &str, behaviour, inverted| {
        Ok(vec![Split::Matches { pattern: Pattern::regex(text, &at.place)?, behaviour, inverted }])
    };
    match at.kind()? {
        "ByteLevel" => byte_level(at),
        "Split" => {
            at.only(&["pattern", "behavior", "invert"])?;
            let pattern = pattern(&at.get("pattern"))?;
            let inverted = at.get("invert").flag_or(false)?;
            Ok(vec![Split::Matches { pattern, behaviour: behaviour(&at.get("behavior"))?, inverted }])
        }
        "Metaspace" => metaspace(at),
        "Whitespace" => at.only(&[]).and_then(|()| matches(r"\w+|[^\w\s]+", Behaviour::Removed, true)),
        "WhitespaceSplit" => at.only(&[]).and_then(|()| matches(r"\s+", Behaviour::Removed, false)),
        "BertPreTokenizer" => at.only(&[]).and_then(|()| bert_splits()),
        "Digits" => {
            at.only(&["individual_digits"])?;
            match at.get("individual_digits").flag_or(false)? {
                true => matches(r"\p{N}", Behaviour::Isolated, false),
                false => matches(r"\p{N}+", Behaviour::Isolated, false),
            }
        }
        "Punctuation" => {
            at.only(&["behavior"])?;
            let own = at.get("behavior");
            matches(SIGN, if own.is_null() { Behaviour::Isolated } else { behaviour(&own)? }, false)
        }
        "CharDelimiterSplit" => {
            at.only(&["delimiter"])?;
            let text = at.get("delimiter");
            let pattern = Pattern::literal(text.text()?, &text.place)?;
            Ok(vec![Split::Matches { pattern, behaviour: Behaviour::Removed, inverted: false }])
        }
        "FixedLength" => {
            at.only(&["length"])?;
            let length = usize::try_from(at.get("length").count_or(5)?).ok().filter(|length| *length > 0);
            Ok(vec![Split::Length(length.ok_or_else(|| at.get("length").wrong("is no length"))?)])
        }
        other => Err(at.unknown_kind(other, KNOWN)),
    }
}

fn byte_level(at: &At<'_>) -> Result<Vec<Split>, TextError> {
    at.only(&["add_prefix_space", "trim_offsets", "use_regex"])?;
    let mut steps = Vec::new();
    if at.get("add_prefix_space").flag_or(true)? {
        steps.push(Split::Space);
    }
    if at.get("use_regex").flag_or(true)? {
        let pattern = Pattern::regex(&gpt2(), &at.place)?;
        steps.push(Split::Matches { pattern, behaviour: Behaviour::Isolated, inverted: false });
    }
    steps.push(Split::Bytes);
    Ok(steps)
}

fn metaspace(at: &At<'_>) -> Result<Vec<Split>, TextError> {
    at.only(&["replacement", "str_rep", "add_prefix_space", "prepend_scheme", "split"])?;
    let before = match at.get("prepend_scheme").some() {
        None if at.get("add_prefix_space").flag_or(true)? => Before::All,
        None => Before::None,
        Some(scheme) => before(&scheme)?,
    };
    Ok(vec![Split::Spaces { mark: mark(at)?, before, splits: at.get("split").flag_or(true)? }])
}

/// Which texts get a mark before them.
fn before(at: &At<'_>) -> Result<Before, TextError> {
    match at.text()? {
        "always" => Ok(Before::All),
        "first" => Ok(Before::First),
        "never" => Ok(Before::None),
        other => Err(at.unsupported(&format!("is '{other}'; there are: always, first, never"))),
    }
}

/// The character that is written for a space.
pub(super) fn mark(at: &At<'_>) -> Result<char, TextError> {
    let text = at.get("replacement");
    let mut all = text.text_or("\u{2581}")?.chars();
    match (all.next(), all.next()) {
        (Some(mark), None) => Ok(mark),
        _ => Err(text.wrong("is no single character")),
    }
}

fn behaviour(at: &At<'_>) -> Result<Behaviour, TextError> {
    match at.text()? {
        "Removed" => Ok(Behaviour::Removed),
        "Isolated" => Ok(Behaviour::Isolated),
        "MergedWithPrevious" => Ok(Behaviour::WithPrevious),
        "MergedWithNext" => Ok(Behaviour::WithNext),
        "Contiguous" => Ok(Behaviour::Contiguous),
        other => Err(at.unsupported(&format!(
            "is '{other}'; there are: Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous"
        ))),
    }
}
