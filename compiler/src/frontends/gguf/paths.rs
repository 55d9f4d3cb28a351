//! How states of tokens go through layers.

use super::{Result, family::Connected, file::invalid, keys::Keys, stacks::Stacks, streams::Streams};

/// Most states of a token.
const MOST_STATES: u64 = 16;

/// Most rounds in which weights are made to be 1 in sum.
const MOST_ROUNDS: u64 = 64;
/// Most elements of the short row that gates are made of.
const MOST_RANK: u64 = 1 << 16;

/// The states of a token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Connections {
    pub count: u64,
    pub kind: Weights,
}

/// How parts of layers take sums of states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Weights {
    /// By weights to which so much is added; those of what is added are within a magnitude.
    Weighed { epsilon: f64, magnitude: f64 },
    /// By gates that are made of a short row.
    Gated { rank: u64 },
    /// By weights, and states go into each other by others, which are made to be 1 in sum in so many rounds.
    Spread { epsilon: f64, rounds: u64, mean: bool },
}

impl Connections {
    /// Reads what the metadata say of them, in an architecture that has them.
    pub fn read(keys: &Keys<'_>) -> Result<Option<Connections>> {
        let Some(kind) = keys.family.connections else { return Ok(None) };
        let own = |name: &str| format!("hyper_connection.{name}");
        let bounded = |name: &str, most: u64| match keys.count(&own(name))? {
            count if count > most => {
                Err(invalid(format!("'{}' is {count}; there are 1 to {most}", keys.key(&own(name)))))
            }
            count => Ok(count),
        };
        let number = |name: &str| keys.float(&own(name))?.ok_or_else(|| keys.missing(&own(name)));
        let count = bounded("count", MOST_STATES)?;
        let kind = match kind {
            Connected::Weighed => {
                Weights::Weighed { epsilon: number("epsilon")?, magnitude: number("magnitude")? }
            }
            Connected::Gated => Weights::Gated { rank: bounded("low_rank", MOST_RANK)? },
            Connected::Spread { mean } => {
                let (epsilon, rounds) = (number("epsilon")?, bounded("sinkhorn_iterations", MOST_ROUNDS)?);
                Weights::Spread { epsilon, rounds, mean }
            }
        };
        Ok(Some(Connections { count, kind }))
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
