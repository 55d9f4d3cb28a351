//! How states of tokens go through layers.

use super::{Result, file::invalid, keys::Keys, stacks::Stacks, streams::Streams};

/// Most states of a token.
const MOST_STATES: u64 = 16;

/// The states of a token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Connections {
    pub count: u64,
    /// What is added to weights.
    pub epsilon: f64,
    /// What weights of what is added are within.
    pub magnitude: f64,
}

impl Connections {
    /// Reads what the metadata say of them, in an architecture that has them.
    pub fn read(keys: &Keys<'_>) -> Result<Option<Connections>> {
        if !keys.family.connections {
            return Ok(None);
        }
        let count = keys.count("hyper_connection.count")?;
        if count > MOST_STATES {
            let key = keys.key("hyper_connection.count");
            return Err(invalid(format!("'{key}' is {count}; there are 1 to {MOST_STATES}")));
        }
        let number = |name: &str| keys.float(name)?.ok_or_else(|| keys.missing(name));
        let (epsilon, magnitude) =
            (number("hyper_connection.epsilon")?, number("hyper_connection.magnitude")?);
        Ok(Some(Connections { count, epsilon, magnitude }))
    }
}

/// How states of tokens go through layers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Paths {
    /// Each token has one, to which layers add.
    One,
    /// Each has several, of which layers compute one.
    Streams(Streams),
    /// Each has several, of which parts of layers take sums, and add to each.
    Connections(Connections),
    /// Each has one; parts of layers take sums of it and of the states at the beginnings of blocks of so many layers.
    Blocks(u64),
    /// Each has two, one for each of two stacks of layers.
    Stacks(Stacks),
}

impl Paths {
    /// Reads what the metadata say of them.
    pub fn read(keys: &Keys<'_>) -> Result<Paths> {
        if let Some(stacks) = Stacks::read(keys)? {
            return Ok(Paths::Stacks(stacks));
        }
        let block = keys.optional("attn_res.block_size")?.filter(|layers| *layers > 0);
        Ok(match (Streams::read(keys)?, Connections::read(keys)?, block) {
            (Some(streams), ..) => Paths::Streams(streams),
            (None, Some(connections), _) => Paths::Connections(connections),
            (None, None, Some(layers)) => Paths::Blocks(layers),
            (None, None, None) => Paths::One,
        })
    }
}
