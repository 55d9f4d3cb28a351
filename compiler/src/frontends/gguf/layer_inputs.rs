//! What a token gives to each layer beside its embedding: a row of a table of its own and one of a projection of the embedding
//! (Google, Gemma 3n: per-layer embeddings).

use halite_ops::{
    DType,
    expression::{Function, Operand, Scalar},
};

use super::{
    Result,
    file::{invalid, missing},
    layer::{Call, Given},
    steps::float,
};
use crate::{
    build::{Builder, Range},
    graph::TensorId,
};

const TABLE: &str = "per_layer_token_embd.weight";
const PROJECTION: &str = "per_layer_model_proj.weight";
const NORM: &str = "per_layer_proj_norm.weight";

impl Call<'_> {
    /// Rows of all layers, `f32[rows, layers, length]`, of tokens and their embeddings, or of these alone, where a model has such.
    pub fn inputs_of_layers(
        &self,
        b: &mut Builder,
        tokens: TensorId,
        embedded: TensorId,
    ) -> Result<Option<TensorId>> {
        let h = self.hyper;
        // Rows of groups of tokens are another thing.
        let has_rows = self.tensors.dims(TABLE).is_some() && !h.family.ngrams;
        if !has_rows && self.tensors.dims(PROJECTION).is_none() {
            return Ok(None);
        }
        let Some([length]) = self.tensors.dims(NORM) else {
            return Err(invalid(format!("the tensor '{NORM}', a vector, is missing")));
        };
        let (length, all) = (*length, *length * h.layers);
        let dims = [self.rows(), h.layers.into(), length.into()];
        let projection = self.tensors.matrix(b, PROJECTION, [all, h.width])?;
        let made = b.row_product(embedded, &projection)?;
        let made = self.scaled(b, made, Some(1.0 / (h.width as f64).sqrt()))?;
        let made = b.reshape_to(made, &dims)?;
        let scale = self.tensors.vector(b, NORM, length)?;
        let made = self.norm(b, made, scale, None)?;
        if !has_rows {
            // Those of embeddings alone.
            return Ok(Some(made));
        }
        let table = self.tensors.matrix(b, TABLE, [h.vocabulary, all])?;
        let own = b.rows_by_index(&table, tokens)?;
        let own = b.reshape_to(own, &dims)?;
        let size = f64::from((length as f32).sqrt());
        let half = Operand::Constant(Scalar::Float(f64::from(0.5_f32.sqrt())));
        let both = b.map(&[made, own], DType::F32, |p, x| {
            let own = p.call(Function::Mul, &[x[1], float(size)]);
            let sum = p.call(Function::Add, &[x[0], own]);
            p.call(Function::Mul, &[sum, half])
        })?;
        Ok(Some(both))
    }

    /// What a layer's own rows make of its state, `[rows, width]`: to be added to it. Of the rows those that are `kept`.
    pub fn of_layer_input(
        &self,
        b: &mut Builder,
        state: TensorId,
        layer: u64,
        inputs: TensorId,
        kept: Option<TensorId>,
    ) -> Result<TensorId> {
        let (sizes, width) = (b.sizes(inputs).to_vec(), self.hyper.width);
        let one = Range { start: layer.into(), step: 1, count: 1.into() };
        let own = b.slice(inputs, &[Range::all(sizes[0]), one, Range::all(sizes[2])])?;
        let own = b.reshape_to(own, &[sizes[0], sizes[2]])?;
        let own = kept.map_or(Ok(own), |rows| b.gather(own, rows, 0))?;
        let length = sizes[2].exact();
        let gate = self.linear(b, state, layer, "inp_gate", [length, width])?;
        let made = b.map(&[gate, own], DType::F32, |p, x| {
            let gate = p.call(Function::GeluTanh, &[x[0]]);
            p.call(Function::Mul, &[gate, x[1]])
        })?;
        let made = self.linear(b, made, layer, "proj", [width, length])?;
        self.row_norm(b, made, layer, "post_norm", width)
    }

    /// The state behind a layer with what its own rows add, times the layer's factor.
    pub fn ended(&self, b: &mut Builder, given: Given<'_>) -> Result<TensorId> {
        let (mut state, layer) = (given.x, given.layer);
        if let Some(inputs) = self.layer_inputs {
            let made = self.of_layer_input(b, state, layer, inputs, given.wanted)?;
            state = b.binary(Function::Add, state, made)?;
        }
        let name = self.name(layer, "layer_output_scale", "weight");
        let own = self.tensors.vector(b, &name, 1)?;
        if let Some(embedded) = self.embedded {
            let scale = own.ok_or_else(|| missing(&name))?;
            let embedded = given.wanted_of(b, embedded)?;
            return b.map(&[state, embedded, scale], DType::F32, |p, x| {
                let again = p.call(Function::Mul, &x[1..]);
                p.call(Function::Add, &[x[0], again])
            });
        }
        match own {
            Some(scale) => b.binary(Function::Mul, state, scale),
            None => Ok(state),
        }
    }

    /// States behind a layer of all loops, by its place among them: with the model's norm where a loop ends and another begins.
    pub fn behind_loop(&self, b: &mut Builder, x: TensorId, place: u64) -> Result<TensorId> {
        let (h, next) = (self.hyper, place + 1);
        let is_end = next.is_multiple_of(h.layers) && next < h.loops.order.len() as u64;
        match h.loops.normed && is_end {
            true => self.model_norm(b, x, h.family.output_norm),
            false => Ok(x),
        }
    }
}
