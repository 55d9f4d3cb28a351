//! How states of tokens go through layers.

use super::{Result, connections::Connections, keys::Keys, streams::Streams};

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
}

impl Paths {
    /// Reads what the metadata say of them.
    pub fn read(keys: &Keys<'_>) -> Result<Paths> {
        let block = keys.optional("attn_res.block_size")?.filter(|layers| *layers > 0);
        Ok(match (Streams::read(keys)?, Connections::read(keys)?, block) {
            (Some(streams), ..) => Paths::Streams(streams),
            (None, Some(connections), _) => Paths::Connections(connections),
            (None, None, Some(layers)) => Paths::Blocks(layers),
            (None, None, None) => Paths::One,
        })
    }
}
