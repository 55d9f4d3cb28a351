//! What metadata say of layers that carry several states of a token and compute one.

use super::{Result, file::invalid, keys::Keys};

/// Most states of a token.
const MOST_STREAMS: u64 = 16;

/// The states of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Streams {
    pub count: u64,
    /// Which of them is computed.
    pub active: u64,
}

impl Streams {
    /// Reads what the metadata say of them, in an architecture that has them.
    pub fn read(keys: &Keys<'_>) -> Result<Option<Streams>> {
        if !keys.family.streams {
            return Ok(None);
        }
        let count = keys.optional("altup.num_inputs")?.unwrap_or(4);
        let active = keys.optional("altup.active_idx")?.unwrap_or(0);
        match (2..=MOST_STREAMS).contains(&count) && active < count {
            true => Ok(Some(Streams { count, active })),
            false => Err(invalid(format!(
                "state {active} of {count} ('{}'); there are 2 to {MOST_STREAMS}",
                keys.key("altup.num_inputs")
            ))),
        }
    }
}
