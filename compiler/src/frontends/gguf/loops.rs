//! Models whose tokens go through all layers several times, each time with caches of their own.

use super::{Result, file::invalid, keys::Keys};

/// Most layers of a model.
pub(super) const MOST_LAYERS: u64 = 4096;

/// How often tokens go through all layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loops {
    pub count: u64,
    /// Whether they have the model's norm each time, and not behind the last alone.
    pub normed: bool,
}

impl Loops {
    /// Reads what the metadata of architectures that have loops say of them.
    pub fn read(keys: &Keys<'_>, layers: u64) -> Result<Loops> {
        let count = if keys.family.loops { keys.count("num_loops")? } else { 1 };
        if layers.checked_mul(count).is_none_or(|all| all > MOST_LAYERS) {
            return Err(invalid(format!(
                "'{}' is {count}, of {layers} layers; there are at most {MOST_LAYERS} in all loops",
                keys.key("num_loops")
            )));
        }
        let normed = keys.family.loops && keys.flag("skip_loop_final_norm")? != Some(true);
        Ok(Loops { count, normed })
    }
}
