//! The way of tokens' states from embeddings through all layers, in steps that keep caches and of texts as a whole.

use halite_ops::expression::Function;

use super::{
    Result,
    file::missing,
    layer::{Call, Given, Held},
    paths::{Connections, Paths},
    stacks::Stacks,
    streams::Streams,
};
use crate::{SourceLocation, build::Builder, graph::TensorId};

/// What the state of the low stack begins as, where there are two.
const BEGIN: &str = "hrm.z_l_init";

impl Call<'_> {
    /// What the first layer is given, of the embeddings of tokens. Sets what layers take of these.
    pub fn first_states(
        &mut self,
        b: &mut Builder,
        tokens: TensorId,
        embedded: TensorId,
    ) -> Result<TensorId> {
        let (hyper, mut x) = (self.hyper, embedded);
        if self.has_embedding_norm() {
            x = self.model_norm(b, x, "token_embd_norm")?;
        }
        if hyper.family.bare_embedding_norm {
            x = self.norm(b, x, None, None)?;
        }
        x = self.scaled(b, x, hyper.embedding_scale)?;
        self.embedded = Some(x).filter(|_| hyper.family.adds_embeddings);
        self.layer_inputs = self.inputs_of_layers(b, tokens, x)?;
        self.slots = self.own_adapters(b, tokens)?;
        self.tokens = Some(tokens);
        Ok(x)
    }

    /// Whether embeddings have a norm.
    pub fn has_embedding_norm(&self) -> bool {
        let (name, family) = ("token_embd_norm", self.hyper.family);
        family.adds_embeddings
            || family.output_norm != name && self.tensors.find(&format!("{name}.weight")).is_some()
    }

    /// The states behind all layers of tokens that are `wanted`, and what layers keep, which had `held` before.
    pub fn behind_layers(
        &self,
        b: &mut Builder,
        x: TensorId,
        held: &[Held],
        wanted: Option<TensorId>,
    ) -> Result<(TensorId, Vec<Held>)> {
        match &self.hyper.paths {
            Paths::One if self.slots.is_some() => self.switched_layers(b, x, held, wanted),
            Paths::One => self.all_layers(b, x, held, wanted),
            Paths::Streams(streams) => self.layers_of_streams(b, x, streams, (held, wanted)),
            Paths::Connections(own) => self.layers_of_connections(b, x, own, (held, wanted)),
            Paths::Blocks(block) => self.layers_of_blocks(b, x, held, (wanted, *block)),
            Paths::Stacks(stacks) => self.layers_of_stacks(b, x, *stacks, (held, wanted)),
        }
    }

    /// The states behind all layers of tokens that are `wanted`, and what layers keep.
    fn all_layers(
        &self,
        b: &mut Builder,
        mut x: TensorId,
        held: &[Held],
        wanted: Option<TensorId>,
    ) -> Result<(TensorId, Vec<Held>)> {
        let (mut layers, order) = (Vec::new(), &self.hyper.loops.order);
        let count = order.len() as u64;
        for ((place, layer), own) in (0..).zip(order).zip(held) {
            // Behind the last layer nothing reads the other tokens any more.
            let wanted = wanted.filter(|_| place + 1 == count);
            let (state, own) = self.layer(b, Given { layer: *layer, x, held: own, wanted })?;
            x = self.behind_loop(b, state, place)?;
            layers.push(own);
        }
        Ok((x, layers))
    }

    /// All layers, each of which reads the states of the one before.
    pub fn one_by_one<'a>(
        &self,
        mut x: TensorId,
        held: &'a [Held],
        mut layer: impl FnMut(Given<'a>) -> Result<(TensorId, Held)>,
    ) -> Result<(TensorId, Vec<Held>)> {
        let mut layers = Vec::new();
        for (index, own) in (0..self.hyper.layers).zip(held) {
            let (state, own) = layer(Given { layer: index, x, held: own, wanted: None })?;
            x = state;
            layers.push(own);
        }
        Ok((x, layers))
    }

    /// The same where tokens have several states.
    fn layers_of_streams(
        &self,
        b: &mut Builder,
        x: TensorId,
        streams: &Streams,
        (held, wanted): (&[Held], Option<TensorId>),
    ) -> Result<(TensorId, Vec<Held>)> {
        let x = self.begun(b, x, streams)?;
        let (x, layers) = self.one_by_one(x, held, |given| self.layer_of_streams(b, given, streams))?;
        b.at(SourceLocation::new("output"));
        let x = self.merged(b, x, streams)?;
        Ok((wanted.map_or(Ok(x), |rows| b.gather(x, rows, 0))?, layers))
    }

    /// The same where parts of layers take sums of them.
    fn layers_of_connections(
        &self,
        b: &mut Builder,
        x: TensorId,
        connections: &Connections,
        (held, wanted): (&[Held], Option<TensorId>),
    ) -> Result<(TensorId, Vec<Held>)> {
        let x = self.connected(b, x, connections)?;
        let (x, layers) =
            self.one_by_one(x, held, |given| self.layer_of_connections(b, given, connections))?;
        b.at(SourceLocation::new("output"));
        let x = wanted.map_or(Ok(x), |rows| b.gather(x, rows, 0))?;
        Ok((self.disconnected(b, x, connections)?, layers))
    }

    /// The states behind all passes of tokens that are `wanted`, without the last norm, and what layers keep.
    fn layers_of_stacks(
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
