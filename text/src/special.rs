//! Tokens that are found in a text before it is split: control tokens and those that are never split.

use std::collections::HashSet;

use crate::vocabulary::{TokenKind, Vocabulary};

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    Text(&'a str),
    Token(u32),
}

/// The tokens that texts are searched for.
#[derive(Clone, Debug)]
pub(crate) struct Specials {
    /// Texts, the longest first, with their tokens and whether they are text that everybody may write.
    all: Vec<(String, u32, bool)>,
    /// Tokens that take the space behind them with them.
    strip: HashSet<u32>,
}

impl Specials {
    pub fn of(vocabulary: &Vocabulary) -> Specials {
        let kinds = [TokenKind::Control, TokenKind::UserDefined, TokenKind::Unknown];
        let own = |(id, token): (u32, &crate::vocabulary::Token)| {
            let text = std::str::from_utf8(&token.text).ok().filter(|text| !text.is_empty())?;
            Some((text.to_owned(), id, token.kind == TokenKind::UserDefined))
        };
        let mut all: Vec<_> = vocabulary.of_kinds(&kinds).filter_map(own).collect();
        all.sort_by(|(one, id, _), (other, other_id, _)| other.len().cmp(&one.len()).then(id.cmp(other_id)));
        Specials { all, strip: HashSet::new() }
    }

    /// Lets all but some tokens take the space behind them with them, as the tokenizer of Phi-3 does.
    pub fn strip_behind_all_but(&mut self, texts: &[&str]) {
        let strips = |(text, id, _): &(String, u32, bool)| (!texts.contains(&text.as_str())).then_some(*id);
        self.strip = self.all.iter().filter_map(strips).collect();
    }

    /// The parts of a text. Control tokens are found only `with_control`: whoever writes a text must not write the turns of a
    /// conversation.
    pub fn split<'a>(&self, text: &'a str, with_control: bool) -> Vec<Part<'a>> {
        let mut parts = if text.is_empty() { Vec::new() } else { vec![Part::Text(text)] };
        for (own, id, everybody) in &self.all {
            if (!everybody && !with_control) || !text.contains(own.as_str()) {
                continue;
            }
            let mut split = Vec::with_capacity(parts.len());
            for part in parts {
                match part {
                    Part::Text(text) => self.split_at(text, own, *id, &mut split),
                    token @ Part::Token(_) => split.push(token),
                }
            }
            parts = split;
        }
        parts
    }

    fn split_at<'a>(&self, text: &'a str, own: &str, id: u32, parts: &mut Vec<Part<'a>>) {
        let mut rest = text;
        while let Some(at) = rest.find(own) {
            if at > 0 {
                parts.push(Part::Text(&rest[..at]));
            }
            parts.push(Part::Token(id));
            rest = &rest[at + own.len()..];
            if self.strip.contains(&id) {
                rest = rest.trim_start();
            }
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest));
        }
    }
}
