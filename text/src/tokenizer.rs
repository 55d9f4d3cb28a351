//! Texts to tokens and back. The same steps serve the tokenizers of all files; `read` makes them of each kind.

use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
};

use crate::{
    Sampler, Sampling, Schema, TextError,
    constrained::TokenTexts,
    decode::{Decoding, Place},
    model::Model,
    normalize::Normalize,
    special::{Part, Special, Specials},
    split::{Split, Word},
    vocabulary::{Token, TokenKind, Vocabulary},
};

/// Steps of a kind that a file may list.
const MOST_STEPS: usize = 64;
/// How many times as long the steps of a file may make a text.
const MOST_GROWTH: usize = 1 << 14;

/// A model's tokenizer.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    pub(crate) vocabulary: Vocabulary,
    pub(crate) model: Model,
    pub(crate) normalizer: Vec<Normalize>,
    pub(crate) splitter: Vec<Split>,
    /// Tokens that are searched for in texts as they are.
    specials: Specials,
    /// Tokens that are searched for in what the normalizer makes of texts.
    later: Specials,
    pub(crate) decoding: Decoding,
    /// What is written before texts.
    pub(crate) before: Vec<u32>,
    /// What is written behind texts that no chat template wrote.
    pub(crate) behind: Vec<u32>,
    /// Whether `before` is written, too, before texts that begin with it.
    pub(crate) begins_twice: bool,
    pub(crate) begin: Option<u32>,
    pub(crate) end: Option<u32>,
    /// Tokens that end what a model says.
    pub(crate) ends: Vec<u32>,
    /// The texts of its tokens, where somebody wanted them.
    texts: OnceLock<Arc<TokenTexts>>,
}

impl Tokenizer {
    /// One that does nothing before and behind its model.
    pub(crate) fn new(vocabulary: Vocabulary, model: Model) -> Tokenizer {
        Tokenizer {
            ends: vocabulary.ends().collect(),
            vocabulary,
            model,
            normalizer: Vec::new(),
            splitter: Vec::new(),
            specials: Specials::default(),
            later: Specials::default(),
            decoding: Decoding::default(),
            before: Vec::new(),
            behind: Vec::new(),
            begins_twice: false,
            begin: None,
            end: None,
            texts: OnceLock::new(),
        }
    }

    /// Searches for tokens, before and after normalization.
    pub(crate) fn search(&mut self, specials: Vec<Special>, later: Vec<Special>) -> Result<(), TextError> {
        self.specials = Specials::new(specials)?;
        self.later = Specials::new(later)?;
        Ok(())
    }

    /// Adds tokens that are searched for in texts as they are.
    pub(crate) fn add(&mut self, specials: Vec<Special>, place: &str) -> Result<(), TextError> {
        for Special { text, id, everybody, .. } in &specials {
            let kind = if *everybody { TokenKind::UserDefined } else { TokenKind::Control };
            self.vocabulary.add(*id, Token { kind, ..Token::new(text.as_bytes()) }, place)?;
        }
        self.specials = std::mem::take(&mut self.specials).with(specials)?;
        self.ends.extend(self.vocabulary.ends());
        Ok(())
    }

    /// The tokenizer, unless its steps make more of texts than memory is there for.
    pub(crate) fn checked(self, place: &str) -> Result<Tokenizer, TextError> {
        self.decoding.check(place)?;
        let growth =
            self.normalizer.iter().map(Normalize::growth).chain(self.splitter.iter().map(Split::growth));
        let growth = growth.fold(1usize, usize::saturating_mul);
        if self.normalizer.len().max(self.splitter.len()) > MOST_STEPS || growth > MOST_GROWTH {
            let problem = format!("{place}: its steps are more than {MOST_STEPS}, or make texts too long");
            return Err(TextError::Unsupported(problem));
        }
        Ok(self)
    }

    /// The tokens that there are.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The token of the beginning of a text.
    pub fn begin(&self) -> Option<u32> {
        self.begin
    }

    /// The token of the end of a text.
    pub fn end(&self) -> Option<u32> {
        self.end
    }

    /// The texts of all tokens, which are made once.
    pub fn texts(&self) -> Arc<TokenTexts> {
        let one = |token| (self.bytes(token, false), self.is_end(token));
        let all = || Arc::new(TokenTexts::new((0..self.vocabulary.len() as u32).map(one)));
        self.texts.get_or_init(all).clone()
    }

    /// A sampler whose tokens make one JSON value that follows a schema, and then end.
    pub fn schema_sampler(&self, sampling: Sampling, schema: &Schema) -> Sampler {
        Sampler::constrained(sampling, schema, self.texts())
    }

    /// Whether a token ends what a model says.
    pub fn is_end(&self, token: u32) -> bool {
        self.ends.contains(&token)
    }

    /// The text of the token of the beginning, and of that of the end, for templates.
    pub fn marks(&self) -> [String; 2] {
        [self.begin, self.end].map(|id| id.and_then(|id| self.vocabulary.text(id)).unwrap_or_default())
    }

    /// The tokens of a text, with that of the beginning if the model is used to it.
    ///
    /// Names of control tokens in the text, such as `<|im_end|>`, are text, unless `with_control` makes them these tokens: for
    /// what a chat template wrote. What begins with the token of the beginning gets no second one, and what a template wrote no
    /// token of the end.
    pub fn encode(&self, text: &str, with_control: bool) -> Vec<u32> {
        let own = self.encode_bare(text, with_control);
        let mut tokens = Vec::with_capacity(own.len() + 2);
        if self.begins_twice || self.before.is_empty() || !own.starts_with(&self.before) {
            tokens.extend(&self.before);
        }
        tokens.extend(own);
        if !with_control {
            tokens.extend(&self.behind);
        }
        tokens
    }

    /// The tokens of a text, and none before or behind them.
    pub fn encode_bare(&self, text: &str, with_control: bool) -> Vec<u32> {
        let mut tokens = Vec::new();
        for part in self.specials.split(text, with_control) {
            let (start, text) = match part {
                Part::Text(start, text) => (start, text),
                Part::Token(id) => {
                    tokens.push(id);
                    continue;
                }
            };
            let own = self.normalizer.iter().fold(Cow::Borrowed(text), |text, step| step.apply(text));
            for part in self.later.split(&own, with_control) {
                match part {
                    Part::Text(inside, text) => self.encode_words(text, start + inside == 0, &mut tokens),
                    Part::Token(id) => tokens.push(id),
                }
            }
        }
        tokens
    }

    fn encode_words(&self, text: &str, first: bool, tokens: &mut Vec<u32>) {
        let mut words = vec![Word { text: text.into(), first }];
        for step in &self.splitter {
            let mut made = Vec::with_capacity(words.len());
            step.apply(words, &mut made);
            words = made;
        }
        for word in words {
            self.model.encode(&word.text, &self.vocabulary, tokens);
        }
    }

    /// The bytes of a token within a text. Control tokens have none, unless they are asked for.
    pub fn bytes(&self, token: u32, with_control: bool) -> Vec<u8> {
        self.decoding.bytes(&self.vocabulary, token, with_control, Place { first: false, last: false })
    }

    /// The text of tokens. Bytes that are no UTF-8 are replaced. What the tokenizer wrote before the text and behind it goes.
    pub fn decode(&self, tokens: &[u32], with_control: bool) -> String {
        let is_seen = |token: &&u32| match self.vocabulary.kind(**token) {
            Some(TokenKind::Control | TokenKind::Unknown) => with_control,
            kind => kind.is_some(),
        };
        let tokens: Vec<u32> = tokens.iter().filter(is_seen).copied().collect();
        let mut bytes = Vec::new();
        for (at, token) in tokens.iter().enumerate() {
            let place = Place { first: at == 0, last: at + 1 == tokens.len() };
            bytes.extend(self.decoding.bytes(&self.vocabulary, *token, with_control, place));
        }
        let text = String::from_utf8_lossy(&bytes);
        let mut text: &str = &text;
        if let Some((c, most)) = self.decoding.strip {
            (0..most).for_each(|_| text = text.strip_prefix(c).unwrap_or(text));
        }
        if let Some((c, most)) = self.decoding.strip_end {
            (0..most).for_each(|_| text = text.strip_suffix(c).unwrap_or(text));
        }
        text.to_owned()
    }
}
