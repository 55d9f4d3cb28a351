//! Answers that follow a JSON schema: which bytes may come next, and so which tokens.
//!
//! A schema becomes nodes ([`read`]), which a state machine goes through byte by byte ([`state`]). It has no state from which a value
//! could not be written to its end. What it allows follows the schema; it may be less: properties that a schema names come in its order,
//! those that it does not name are not written unless it says so, and each text of `enum` and `const` is written in one way.

mod apart;
mod formats;
mod grammar;
mod keywords;
mod letters;
mod merge;
mod names;
mod numbers;
mod pattern;
mod read;
mod state;

use std::sync::Arc;

use serde_json::Value;

use self::{
    grammar::{Grammar, NO_BOUND},
    keywords::Fault,
    state::Threads,
};
use crate::TextError;

/// Bytes of a schema, at most.
const MOST_BYTES: usize = 512 << 10;

/// A JSON schema that answers follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    grammar: Arc<Grammar>,
}

impl Schema {
    /// Reads a schema.
    ///
    /// # Errors
    /// It is no schema, asks for what is not supported, which is named, or no value follows it.
    pub fn read(schema: &Value) -> Result<Schema, TextError> {
        let told = |fault: Fault| {
            let text = format!("the JSON schema: {}", fault.text);
            if fault.is_unsupported { TextError::Unsupported(text) } else { TextError::Invalid(text) }
        };
        // Numbers of bytes and not of parts: each part is looked at as text.
        let length = schema.to_string().len();
        if length > MOST_BYTES {
            return Err(told(Fault::wrong(format!("it has {length} bytes; there are at most {MOST_BYTES}"))));
        }
        Ok(Schema { grammar: Arc::new(read::grammar(schema).map_err(told)?) })
    }

    /// Reads a schema from its text.
    ///
    /// # Errors
    /// As those of [`Schema::read`]; the text is no JSON.
    pub fn parse(text: &str) -> Result<Schema, TextError> {
        let schema = serde_json::from_str(text)
            .map_err(|error| TextError::Invalid(format!("the JSON schema is no JSON: {error}")))?;
        Schema::read(&schema)
    }

    /// The schema of any object.
    pub fn object() -> Schema {
        let nodes = Grammar::basic();
        Schema { grammar: Arc::new(Grammar::new(nodes, grammar::ANY_OBJECT, Default::default())) }
    }

    /// The beginning of a text that follows the schema.
    pub fn begin(&self) -> SchemaText {
        SchemaText { grammar: self.grammar.clone(), ways: Ways(state::begin()) }
    }
}

/// The beginning of a text that is one JSON value (RFC 8259) and follows a schema.
#[derive(Clone, Debug)]
pub struct SchemaText {
    grammar: Arc<Grammar>,
    ways: Ways,
}

impl PartialEq for SchemaText {
    fn eq(&self, other: &SchemaText) -> bool {
        Arc::ptr_eq(&self.grammar, &other.grammar) && self.ways == other.ways
    }
}

/// What a text is so far, where texts of the same schema that go on in the same ways are the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ways(Threads);

impl SchemaText {
    /// Whether the value may end here.
    pub fn may_end(&self) -> bool {
        state::may_end(&self.grammar, &self.ways.0)
    }

    /// The text with these bytes behind it, if that is the beginning of a value.
    pub fn with(&self, bytes: &[u8]) -> Option<SchemaText> {
        let ways = bytes.iter().try_fold(self.ways.clone(), |ways, byte| self.push(&ways, *byte))?;
        Some(SchemaText { grammar: self.grammar.clone(), ways })
    }

    /// What it is so far.
    pub(crate) fn ways(&self) -> &Ways {
        &self.ways
    }

    /// Another byte behind one of its continuations.
    pub(crate) fn push(&self, ways: &Ways, byte: u8) -> Option<Ways> {
        Some(state::push(&self.grammar, &ways.0, byte)).filter(|ways| !ways.is_empty()).map(Ways)
    }

    /// How many characters may come before all else, where all ways are in strings in which any may: [`NO_BOUND_OF_ROOM`] if one has no bound.
    pub(crate) fn room(&self) -> Option<u32> {
        let mut room = 0;
        for thread in &self.ways.0 {
            room = room.max(state::room(&self.grammar, thread)?);
        }
        Some(room)
    }
}

/// What [`SchemaText::room`] says where there is no bound.
pub(crate) const NO_BOUND_OF_ROOM: u32 = NO_BOUND;

#[cfg(test)]
mod tests;
