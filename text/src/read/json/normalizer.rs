//! The normalizer of a `tokenizer.json`.

use crate::{TextError, charsmap::Charsmap, normalize::Normalize};

use super::{super::bert_steps, at::At, pattern};

const KNOWN: &str = "Sequence, Prepend, Replace, NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, BertNormalizer, \
                     Precompiled, ByteLevel";

/// Reads it: its steps, of which there are none where there is no normalizer.
pub(super) fn read(at: &At<'_>) -> Result<Vec<Normalize>, TextError> {
    if at.is_null() {
        return Ok(Vec::new());
    }
    if at.kind()? != "Sequence" {
        return steps(at);
    }
    at.only(&["normalizers"])?;
    let all: Result<Vec<_>, _> = at.get("normalizers").array()?.iter().map(steps).collect();
    Ok(all?.concat())
}

fn steps(at: &At<'_>) -> Result<Vec<Normalize>, TextError> {
    let plain = |step: Normalize| at.only(&[]).map(|()| vec![step]);
    match at.kind()? {
        "Prepend" => {
            at.only(&["prepend"])?;
            Ok(vec![Normalize::Prepend(at.get("prepend").text()?.to_owned())])
        }
        "Replace" => {
            at.only(&["pattern", "content"])?;
            let with = at.get("content").text()?.to_owned();
            Ok(vec![Normalize::Replace { pattern: pattern(&at.get("pattern"))?, with }])
        }
        "NFC" => plain(Normalize::Nfc),
        "NFD" => plain(Normalize::Nfd),
        "NFKC" => plain(Normalize::Nfkc),
        "NFKD" => plain(Normalize::Nfkd),
        "Lowercase" => plain(Normalize::Lowercase),
        "ByteLevel" => plain(Normalize::Bytes),
        "StripAccents" => plain(Normalize::Accents { all_marks: true }),
        "Strip" => {
            at.only(&["strip_left", "strip_right"])?;
            let [left, right] = [at.get("strip_left").flag_or(true)?, at.get("strip_right").flag_or(true)?];
            Ok(vec![Normalize::Strip { left, right }])
        }
        "BertNormalizer" => {
            at.only(&["clean_text", "handle_chinese_chars", "strip_accents", "lowercase"])?;
            let small = at.get("lowercase").flag_or(true)?;
            let [cleans, chinese, accents] = [
                at.get("clean_text").flag_or(true)?,
                at.get("handle_chinese_chars").flag_or(true)?,
                at.get("strip_accents").flag_or(small)?,
            ];
            Ok(bert_steps([cleans, chinese, accents, small], false))
        }
        "Precompiled" => {
            at.only(&["precompiled_charsmap"])?;
            let map = at.get("precompiled_charsmap");
            // None is nothing to do.
            let text = map.text_or("")?;
            if text.is_empty() {
                return Ok(Vec::new());
            }
            let bytes =
                super::super::tiktoken::base64(text.as_bytes()).ok_or_else(|| map.wrong("is no base64"))?;
            Ok(vec![Normalize::Clusters(Charsmap::read(&bytes, &map.place)?)])
        }
        other => Err(at.unknown_kind(other, KNOWN)),
    }
}
