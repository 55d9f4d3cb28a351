//! The post-processor of a `tokenizer.json`: what is written before and behind texts.

use serde_json::Value;

use crate::{TextError, vocabulary::Vocabulary};

use super::at::At;

const KNOWN: &str = "Sequence, TemplateProcessing, ByteLevel, BertProcessing, RobertaProcessing";

/// What is written before and behind texts.
#[derive(Clone, Debug, Default)]
pub(super) struct Template {
    pub before: Vec<u32>,
    pub behind: Vec<u32>,
    /// Whether texts that begin so get it again.
    pub begins_twice: bool,
}

/// Reads it.
pub(super) fn read(at: &At<'_>, vocabulary: &Vocabulary) -> Result<Template, TextError> {
    let mut made = Template::default();
    if at.is_null() {
        return Ok(made);
    }
    let all = match at.kind()? {
        "Sequence" => {
            at.only(&["processors"])?;
            at.get("processors").array()?
        }
        _ => vec![at.clone()],
    };
    for own in all {
        let mut outer = one(&own, vocabulary)?;
        outer.before.append(&mut made.before);
        made.behind.append(&mut outer.behind);
        made.before = outer.before;
        made.begins_twice |= outer.begins_twice;
    }
    if made.before.len().max(made.behind.len()) > 64 {
        return Err(at.unsupported("writes more than 64 tokens before or behind texts"));
    }
    Ok(made)
}

fn one(at: &At<'_>, vocabulary: &Vocabulary) -> Result<Template, TextError> {
    let pair = |key: &str| {
        let own = at.get(key);
        let id = own.values()?.get(1).and_then(Value::as_u64).and_then(|id| u32::try_from(id).ok());
        known(&own, id, vocabulary)
    };
    match at.kind()? {
        "ByteLevel" => {
            at.only(&["add_prefix_space", "trim_offsets", "use_regex"])?;
            Ok(Template::default())
        }
        "BertProcessing" | "RobertaProcessing" => {
            at.only(&["sep", "cls", "trim_offsets", "add_prefix_space"])?;
            Ok(Template { before: vec![pair("cls")?], behind: vec![pair("sep")?], begins_twice: true })
        }
        "TemplateProcessing" => template(at, vocabulary),
        other => Err(at.unknown_kind(other, KNOWN)),
    }
}

fn template(at: &At<'_>, vocabulary: &Vocabulary) -> Result<Template, TextError> {
    at.only(&["single", "pair", "special_tokens"])?;
    let mut made = Template::default();
    let mut is_behind = false;
    for own in at.get("single").array()? {
        if let Some(sequence) = own.get("Sequence").some() {
            if is_behind || sequence.get("id").text()? != "A" {
                return Err(sequence.unsupported("is not the one text that there is ('A')"));
            }
            is_behind = true;
            continue;
        }
        let name = own.get("SpecialToken").get("id");
        let ids = at.get("special_tokens").get(name.text()?).get("ids");
        for id in ids.array()? {
            let id = known(&id, Some(id.id()?), vocabulary)?;
            if is_behind { made.behind.push(id) } else { made.before.push(id) }
        }
    }
    match is_behind {
        true => Ok(made),
        false => Err(at.get("single").wrong("has no place for the text")),
    }
}

fn known(at: &At<'_>, id: Option<u32>, vocabulary: &Vocabulary) -> Result<u32, TextError> {
    id.filter(|id| vocabulary.token(*id).is_some()).ok_or_else(|| at.wrong("is no token's number"))
}
