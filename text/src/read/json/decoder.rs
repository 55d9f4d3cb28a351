//! The decoder of a `tokenizer.json`.

use crate::{
    TextError,
    decode::{Decode, Decoding},
};

use super::{at::At, pattern, splitter::mark};

const KNOWN: &str =
    "Sequence, Replace, ByteFallback, Fuse, Strip, ByteLevel, Metaspace, WordPiece, BPEDecoder";

/// Reads it. Where there is none, there is a space between tokens.
pub(super) fn read(at: &At<'_>) -> Result<Decoding, TextError> {
    let mut decoding = Decoding::default();
    if at.is_null() {
        decoding.steps.push(Decode::Parted);
        return Ok(decoding);
    }
    let all = match at.kind()? {
        "Sequence" => {
            at.only(&["decoders"])?;
            at.get("decoders").array()?
        }
        _ => vec![at.clone()],
    };
    let mut is_one = false;
    for own in all {
        match own.kind()? {
            "Fuse" => is_one = true,
            "Strip" if is_one => strip(&own, &mut decoding)?,
            _ if is_one => return Err(own.unsupported("follows 'Fuse', where only 'Strip' is supported")),
            _ => decoding.steps.extend(step(&own)?),
        }
    }
    Ok(decoding)
}

fn strip(at: &At<'_>, decoding: &mut Decoding) -> Result<(), TextError> {
    at.only(&["content", "start", "stop"])?;
    let mut all = at.get("content").text()?.chars();
    let (Some(c), None) = (all.next(), all.next()) else {
        return Err(at.get("content").wrong("is no single character"));
    };
    let count =
        |key: &str| at.get(key).count_or(0).map(|count| usize::try_from(count.min(1 << 16)).unwrap_or(0));
    decoding.strip = Some((c, count("start")?));
    decoding.strip_end = Some((c, count("stop")?));
    Ok(())
}

fn step(at: &At<'_>) -> Result<Option<Decode>, TextError> {
    Ok(Some(match at.kind()? {
        "Replace" => {
            at.only(&["pattern", "content"])?;
            Decode::Replace {
                pattern: pattern(&at.get("pattern"))?,
                with: at.get("content").text()?.to_owned(),
            }
        }
        // Tokens of bytes are bytes wherever the model has some.
        "ByteFallback" => return at.only(&[]).map(|()| None),
        "ByteLevel" => {
            at.only(&["add_prefix_space", "trim_offsets", "use_regex"])?;
            Decode::Bytes
        }
        "Metaspace" => {
            at.only(&["replacement", "str_rep", "add_prefix_space", "prepend_scheme", "split"])?;
            let scheme = at.get("prepend_scheme").text_or("always")? != "never";
            let first = scheme && at.get("add_prefix_space").flag_or(true)?;
            Decode::Spaces { mark: mark(at)?, first }
        }
        "WordPiece" => {
            at.only(&["prefix", "cleanup"])?;
            let tidies = at.get("cleanup").flag_or(true)?;
            Decode::Words { mark: at.get("prefix").text_or("##")?.to_owned(), tidies }
        }
        "BPEDecoder" => {
            at.only(&["suffix"])?;
            Decode::Ends { mark: at.get("suffix").text_or("</w>")?.to_owned() }
        }
        other => return Err(at.unknown_kind(other, KNOWN)),
    }))
}
