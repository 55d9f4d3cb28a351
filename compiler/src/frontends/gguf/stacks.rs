//! Models of two stacks of layers: one that tokens go through often, and one behind it, with a state of a token for each.

use super::{
    Result,
    file::{invalid, unsupported},
    keys::Keys,
};

/// Most layers of a model.
pub(super) const MOST_LAYERS: u64 = 4096;

/// The stacks: the first layers are the low one, those behind them the high one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stacks {
    /// Layers of each.
    pub layers: u64,
    /// How often tokens go through both.
    pub cycles: u64,
    /// How often they go through the low one each time.
    pub low: u64,
}

impl Stacks {
    /// Reads what the metadata say of them, in an architecture that has them.
    pub fn read(keys: &Keys<'_>) -> Result<Option<Stacks>> {
        if !keys.family.stacks {
            return Ok(None);
        }
        let count = |name: &str| keys.count(name);
        let (layers, cycles, low) =
            (count("hrm.layers_per_stack")?, count("hrm.h_cycles")?, count("hrm.l_cycles")?);
        let passes = low.checked_add(1).and_then(|each| each.checked_mul(cycles));
        let all = passes.and_then(|passes| passes.checked_mul(layers)).filter(|all| *all <= MOST_LAYERS);
        let blocks = keys.count("block_count")?;
        if all != Some(blocks) {
            return Err(invalid(format!(
                "'{}' is {blocks}; of {layers} layers in a stack, {cycles} cycles and {low} of the low stack in each ('{}', '{}', '{}') there \
                 are others, and at most {MOST_LAYERS}",
                keys.key("block_count"),
                keys.key("hrm.layers_per_stack"),
                keys.key("hrm.h_cycles"),
                keys.key("hrm.l_cycles")
            )));
        }
        if keys.flag("hrm.prefix_lm")? == Some(true) {
            return Err(unsupported(format!(
                "a prompt whose tokens see those behind them, in front of an answer whose tokens do not ('{}')",
                keys.key("hrm.prefix_lm")
            )));
        }
        Ok(Some(Stacks { layers, cycles, low }))
    }

    /// Layers in the order in which tokens go through them.
    pub fn order(&self) -> Vec<u64> {
        let cycle = (0..self.low).flat_map(|_| 0..self.layers).chain(self.layers..2 * self.layers);
        (0..self.cycles).flat_map(|_| cycle.clone()).collect()
    }
}
