//! Models of two stacks of layers: one that tokens go through often, and one behind it, with a state of a token for each.

use halite_ops::expression::Function;

use super::{
    Result,
    file::{invalid, missing, unsupported},
    keys::Keys,
    layer::{Call, Given, Held},
    loops::MOST_LAYERS,
};
use crate::{build::Builder, graph::TensorId};

/// What the state of the low stack begins as.
const BEGIN: &str = "hrm.z_l_init";

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

impl Call<'_> {
    /// The states behind all passes of tokens that are `wanted`, without the last norm, and what layers keep.
    pub fn layers_of_stacks(
        &self,
        b: &mut Builder,
        x: TensorId,
        stacks: Stacks,
        (before, wanted): (&[Held], Option<TensorId>),
    ) -> Result<(TensorId, Vec<Held>)> {
        let begin = self.tensors.vector(b, BEGIN, self.hyper.width)?.ok_or_else(|| missing(BEGIN))?;
        let (mut high, mut low, mut kept) = (x, begin, Vec::new());
        let passes = stacks.cycles * (stacks.low + 1);
        for pass in 0..passes {
            let mut state = b.binary(Function::Add, high, low)?;
            for place in pass * stacks.layers..(pass + 1) * stacks.layers {
                // Behind the last layer nothing reads the other tokens any more.
                let is_last = place + 1 == passes * stacks.layers;
                let (layer, held) = (self.hyper.loops.order[place as usize], &before[place as usize]);
                let given = Given { layer, x: state, held, wanted: wanted.filter(|_| is_last) };
                let (behind, own) = self.layer(b, given)?;
                state = behind;
                kept.push(own);
            }
            if pass + 1 == passes {
                // The model's norm is that of the last pass.
                return Ok((state, kept));
            }
            let normed = self.norm(b, state, None, None)?;
            match (pass + 1) % (stacks.low + 1) {
                0 => high = normed,
                _ => low = normed,
            }
        }
        Ok((high, kept))
    }
}
