//! Models whose tokens go through layers several times, each time with caches of their own.

use super::{
    Result,
    file::invalid,
    keys::Keys,
    stacks::{MOST_LAYERS, Stacks},
};

/// In which order tokens go through layers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Loops {
    /// Layers, each as often as tokens go through it.
    pub order: Vec<u64>,
    /// Whether they have the model's norm each time that they were in all, and not behind the last time alone.
    pub normed: bool,
}

impl Loops {
    /// Reads what the metadata of architectures that have loops say of them.
    pub fn read(keys: &Keys<'_>, layers: u64, stacks: Option<Stacks>) -> Result<Loops> {
        if let Some(stacks) = stacks {
            return Ok(Loops { order: stacks.order(), normed: false });
        }
        let count = if keys.family.loops { keys.count("num_loops")? } else { 1 };
        if layers.checked_mul(count).is_none_or(|all| all > MOST_LAYERS) {
            return Err(invalid(format!(
                "'{}' is {count}, of {layers} layers; there are at most {MOST_LAYERS} in all loops",
                keys.key("num_loops")
            )));
        }
        let normed = keys.family.loops && keys.flag("skip_loop_final_norm")? != Some(true);
        Ok(Loops { order: (0..count).flat_map(|_| 0..layers).collect(), normed })
    }
}
