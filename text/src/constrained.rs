//! The tokens of answers that follow a schema.
//!
//! A token is a few bytes, and may have a part of a character. All tokens are in a tree of their bytes, which is walked as far as the
//! schema goes along: the cost is that of what is allowed, not of all tokens. Within a string nearly all are. So tokens of whole
//! characters that say nothing to JSON are kept beside the tree, and are allowed there without a look at them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use crate::schema::{NO_BOUND_OF_ROOM, Schema, SchemaText, Ways};

/// Bytes of a token, at most: longer ones are not written where a schema is followed.
const MOST_LENGTH: usize = 256;
/// Masks that are kept of an answer.
const MOST_MASKS: usize = 32;

/// The texts of a model's tokens, and which of them end an answer.
#[derive(Debug)]
pub struct TokenTexts {
    texts: Vec<Box<[u8]>>,
    ends: Vec<bool>,
    sorted: OnceLock<Sorted>,
}

impl PartialEq for TokenTexts {
    fn eq(&self, other: &TokenTexts) -> bool {
        (&self.texts, &self.ends) == (&other.texts, &other.ends)
    }
}

impl Eq for TokenTexts {}

/// Tokens by their bytes.
#[derive(Debug)]
struct Sorted {
    all: Tree,
    /// Those that are not in `plain`.
    rest: Tree,
    /// Tokens of whole characters that may be in any string as they are, those of the fewest characters first, with their number.
    plain: Vec<(u32, u32)>,
    plain_mask: Mask,
    ends: Vec<u32>,
}

/// A tree of texts, in the order of its nodes from above, each before those below it.
#[derive(Debug, Default)]
struct Tree {
    nodes: Vec<TreeNode>,
    /// Tokens in the order of their texts.
    tokens: Vec<u32>,
}

#[derive(Debug)]
struct TreeNode {
    byte: u8,
    depth: u16,
    /// The next node that is not below this one.
    skip: u32,
    /// Its own tokens: from the first to before the second.
    tokens: (u32, u32),
}

/// A set of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mask(Vec<u64>);

impl Mask {
    fn new(count: usize) -> Mask {
        Mask(vec![0; count.div_ceil(64)])
    }

    fn add(&mut self, token: u32) {
        self.0[token as usize / 64] |= 1 << (token % 64);
    }

    /// Whether a token is in it.
    pub fn has(&self, token: u32) -> bool {
        self.0.get(token as usize / 64).is_some_and(|word| word >> (token % 64) & 1 == 1)
    }
}

impl TokenTexts {
    /// Those of all tokens in their order. Tokens without a text are none of an answer's.
    pub fn new(all: impl Iterator<Item = (Vec<u8>, bool)>) -> TokenTexts {
        let (texts, ends) = all.map(|(text, ends)| (text.into_boxed_slice(), ends)).unzip();
        TokenTexts { texts, ends, sorted: OnceLock::new() }
    }

    /// The text of a token that may be in an answer.
    fn text(&self, token: u32) -> Option<&[u8]> {
        let text = self.texts.get(token as usize)?;
        (!text.is_empty() && text.len() <= MOST_LENGTH && !self.is_end(token)).then_some(text)
    }

    fn is_end(&self, token: u32) -> bool {
        self.ends.get(token as usize).copied().unwrap_or(false)
    }

    fn sorted(&self) -> &Sorted {
        self.sorted.get_or_init(|| {
            let count = self.texts.len() as u32;
            let mut all: Vec<(&[u8], u32)> =
                (0..count).filter_map(|token| Some((self.text(token)?, token))).collect();
            all.sort_unstable();
            let mut plain: Vec<(u32, u32)> =
                all.iter().filter_map(|(text, token)| Some((characters(text)?, *token))).collect();
            plain.sort_unstable();
            let mut plain_mask = Mask::new(self.texts.len());
            plain.iter().for_each(|(_, token)| plain_mask.add(*token));
            let tree = Tree::new(&all);
            all.retain(|(_, token)| !plain_mask.has(*token));
            let ends = (0..count).filter(|token| self.is_end(*token)).collect();
            Sorted { all: tree, rest: Tree::new(&all), plain, plain_mask, ends }
        })
    }
}

/// How many characters a text has that may be in any string as it is.
fn characters(text: &[u8]) -> Option<u32> {
    let is_plain = |letter: char| letter >= ' ' && letter != '"' && letter != '\\';
    let text = std::str::from_utf8(text).ok()?;
    text.chars().all(is_plain).then(|| text.chars().count() as u32)
}

impl Tree {
    /// The tree of texts in their order.
    fn new(all: &[(&[u8], u32)]) -> Tree {
        let mut tree = Tree::default();
        let (mut path, mut before): (Vec<usize>, &[u8]) = (Vec::new(), &[]);
        for (text, token) in all {
            let same = text.iter().zip(before).take_while(|(own, other)| own == other).count();
            tree.close(&mut path, same);
            for byte in &text[path.len()..] {
                path.push(tree.nodes.len());
                let at = tree.tokens.len() as u32;
                let node = TreeNode { byte: *byte, depth: path.len() as u16, skip: 0, tokens: (at, at) };
                tree.nodes.push(node);
            }
            tree.tokens.push(*token);
            if let Some(own) = path.last().and_then(|place| tree.nodes.get_mut(*place)) {
                own.tokens.1 = tree.tokens.len() as u32;
            }
            before = text;
        }
        tree.close(&mut path, 0);
        tree
    }

    /// Nothing more comes below the nodes of a path behind so many.
    fn close(&mut self, path: &mut Vec<usize>, kept: usize) {
        let skip = self.nodes.len() as u32;
        path.drain(kept..).for_each(|place| self.nodes[place].skip = skip);
    }

    /// Adds the tokens that a text may have behind it.
    fn walk(&self, text: &SchemaText, mask: &mut Mask) {
        let mut states: Vec<Ways> = vec![text.ways().clone()];
        let mut place = 0;
        while let Some(node) = self.nodes.get(place) {
            states.truncate(usize::from(node.depth));
            let next = states.last().and_then(|own| text.push(own, node.byte));
            let Some(next) = next else {
                place = node.skip as usize;
                continue;
            };
            let (from, to) = node.tokens;
            self.tokens[from as usize..to as usize].iter().for_each(|token| mask.add(*token));
            states.push(next);
            place += 1;
        }
    }
}

/// An answer that has to follow a schema.
#[derive(Clone, Debug)]
pub(crate) struct Constrained {
    text: SchemaText,
    tokens: Arc<TokenTexts>,
    /// Masks of states that come again and again, such as those within a string.
    masks: Arc<Mutex<HashMap<Ways, Arc<Mask>>>>,
}

impl PartialEq for Constrained {
    fn eq(&self, other: &Constrained) -> bool {
        self.text == other.text && Arc::ptr_eq(&self.tokens, &other.tokens)
    }
}

impl Constrained {
    pub fn new(schema: &Schema, tokens: Arc<TokenTexts>) -> Constrained {
        Constrained { text: schema.begin(), tokens, masks: Arc::default() }
    }

    /// The text with a token behind it, if it may have that. Where the value is whole comes an end.
    fn with(&self, token: u32) -> Option<SchemaText> {
        if self.tokens.is_end(token) {
            return self.text.may_end().then(|| self.text.clone());
        }
        self.text.with(self.tokens.text(token)?)
    }

    /// Whether a token may come next.
    pub fn takes(&self, token: u32) -> bool {
        self.with(token).is_some()
    }

    /// Adds one.
    pub fn add(&mut self, token: u32) {
        if let Some(text) = self.with(token) {
            self.text = text;
        }
    }

    /// All tokens that may come next.
    pub fn mask(&self) -> Arc<Mask> {
        let kept = || self.masks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mask) = kept().get(self.text.ways()) {
            return mask.clone();
        }
        let mask = Arc::new(self.made());
        let mut kept = kept();
        if kept.len() >= MOST_MASKS {
            kept.clear();
        }
        kept.insert(self.text.ways().clone(), mask.clone());
        mask
    }

    fn made(&self) -> Mask {
        let sorted = self.tokens.sorted();
        let mut mask = match self.text.room() {
            Some(NO_BOUND_OF_ROOM) => sorted.plain_mask.clone(),
            _ => Mask::new(self.tokens.texts.len()),
        };
        match self.text.room() {
            None => sorted.all.walk(&self.text, &mut mask),
            Some(room) => {
                if room != NO_BOUND_OF_ROOM {
                    let fitting = sorted.plain.partition_point(|(count, _)| *count <= room);
                    sorted.plain[..fitting].iter().for_each(|(_, token)| mask.add(*token));
                }
                sorted.rest.walk(&self.text, &mut mask);
            }
        }
        if self.text.may_end() {
            sorted.ends.iter().for_each(|token| mask.add(*token));
        }
        mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(all: &[&[u8]]) -> Arc<TokenTexts> {
        Arc::new(TokenTexts::new(all.iter().map(|text| (text.to_vec(), *text == b"end"))))
    }

    #[test]
    fn answers_end_behind_the_object() {
        let all = texts(&[b"{", b"}", b"\"a\":", b"1", b"", b"end"]);
        let mut answer = Constrained::new(&Schema::object(), all);
        let taken = |answer: &Constrained| (0..7).filter(|id| answer.takes(*id)).collect::<Vec<u32>>();
        for (token, wanted) in [(0, vec![0]), (2, vec![1, 2]), (3, vec![0, 3]), (1, vec![1, 3])] {
            assert_eq!(taken(&answer), wanted);
            let mask = answer.mask();
            assert_eq!((0..7).filter(|id| mask.has(*id)).collect::<Vec<u32>>(), wanted);
            answer.add(token);
        }
        assert_eq!(taken(&answer), [5]);
    }

    /// The tree says of each token what a look at its bytes says, also of those that have parts of characters.
    #[test]
    fn masks_are_what_each_token_is() {
        let mut all: Vec<Vec<u8>> = (0..=255u8).map(|byte| vec![byte]).collect();
        let pieces = "{|}|[|]|\"|,|:|\"a\"|\":|\", \"|{\"|\"}|abc|ab|a b|1|12|-1.5|e3|true|tr|null|é|😀|\\n|\\u00|  |\n\n|],|}}|]]]|\"b\": [|0";
        all.extend(pieces.split('|').map(|piece| piece.as_bytes().to_vec()));
        all.extend([
            vec![0xC3],
            vec![b'"', 0xC3],
            vec![0xA9, b'"'],
            vec![0xF0, 0x9F],
            b"end".to_vec(),
            vec![b'a'; 300],
        ]);
        let slices: Vec<&[u8]> = all.iter().map(|own| &own[..]).collect();
        let tokens = texts(&slices);
        let schema = r#"{"anyOf": [
            {"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}, "b": {"type": "array", "items": {"type": "integer", "maximum": 20}}},
             "additionalProperties": {"type": "number"}, "required": ["b"]},
            {"type": "array", "items": {"enum": ["abc", "é", 1, 12, null, {"a": 1}]}},
            {"type": "string", "pattern": "^a.b?$"}, {"type": "string", "minLength": 2}]}"#;
        let mut random = 11u64;
        let mut next = move |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize % below
        };
        for schema in [Schema::parse(schema).unwrap(), Schema::object()] {
            for _ in 0..60 {
                let mut answer = Constrained::new(&schema, tokens.clone());
                for _ in 0..12 {
                    let mask = answer.mask();
                    let taken: Vec<u32> = (0..all.len() as u32).filter(|id| answer.takes(*id)).collect();
                    let masked: Vec<u32> = (0..all.len() as u32).filter(|id| mask.has(*id)).collect();
                    assert_eq!(taken, masked, "{:?}", answer.text);
                    // Whatever is there goes on to an end.
                    assert!(!taken.is_empty(), "{:?}", answer.text);
                    answer.add(taken[next(taken.len())]);
                }
            }
        }
    }
}
