//! Layers that attend to the states before: what each part takes is a sum of the states at the beginnings of blocks of layers and of what
//! was added since, by weights that the states tell (Kimi Team, Attention Residuals).

use halite_ops::{DType, expression::Function, reduce::ReduceKind};
use halite_sizes::Size;

use super::{
    Result,
    file::missing,
    layer::{Call, Given, Held},
};
use crate::{
    build::{Builder, Range},
    graph::TensorId,
};

impl Call<'_> {
    /// The states behind all layers of tokens that are `wanted`, and what layers keep. Blocks have so many layers.
    pub fn layers_of_blocks(
        &self,
        b: &mut Builder,
        mut x: TensorId,
        held: &[Held],
        (wanted, block): (Option<TensorId>, u64),
    ) -> Result<(TensorId, Vec<Held>)> {
        let (mut before, mut layers) = (None, Vec::new());
        for (layer, held) in (0..self.hyper.layers).zip(held) {
            b.at(crate::SourceLocation::new(format!("layer {layer}, attention")));
            let state = self.of_blocks(b, (before, x), &self.name(layer, "attn_res_score", "weight"))?;
            let begins = layer % block == 0;
            if begins {
                let own = b.reshape_to(x, &[self.rows(), 1.into(), self.hyper.width.into()])?;
                before = Some(before.map_or(Ok(own), |before| b.concat(&[before, own], 1))?);
            }
            let normed = self.layer_norm(b, state, layer, "attn_norm")?;
            let (made, own) = self.mixed(b, Given { layer, x: normed, held, wanted: None })?;
            // A block begins anew with what its first part makes.
            x = if begins { made } else { b.binary(Function::Add, x, made)? };
            b.at(crate::SourceLocation::new(format!("layer {layer}, feed-forward network")));
            let state = self.of_blocks(b, (before, x), &self.name(layer, "ffn_res_score", "weight"))?;
            let normed = self.layer_norm(b, state, layer, self.hyper.family.feed_norm)?;
            let made = self.feed_forward(b, [normed, state, state], layer)?;
            x = b.binary(Function::Add, x, made)?;
            layers.push(own);
        }
        b.at(crate::SourceLocation::new("output"));
        let x = self.of_blocks(b, (before, x), "output_res_score.weight")?;
        Ok((wanted.map_or(Ok(x), |rows| b.gather(x, rows, 0))?, layers))
    }

    /// The sum of states at the beginnings of blocks, `[rows, count, width]`, and of the last one, `[rows, width]`, by a softmax of what a
    /// tensor tells of each.
    fn of_blocks(
        &self,
        b: &mut Builder,
        (before, last): (Option<TensorId>, TensorId),
        name: &str,
    ) -> Result<TensorId> {
        let width = self.hyper.width;
        let scale = self.tensors.vector(b, name, width)?.ok_or_else(|| missing(name))?;
        let Some(before) = before else { return Ok(last) };
        let (rows, count, one) = (self.rows(), b.sizes(before)[1], Size::constant(1));
        let last = b.reshape_to(last, &[rows, one, width.into()])?;
        let score = |b: &mut Builder, x: TensorId| {
            let normed = self.norm(b, x, Some(scale), None)?;
            b.reduce(ReduceKind::Sum, normed, &[2], true)
        };
        let scores = [score(b, before)?, score(b, last)?];
        let scores = b.concat(&scores, 1)?;
        let weights = b.softmax(scores, 1, false)?;
        let part = |b: &mut Builder, first: Size, count: Size| {
            let part = Range { start: first, step: 1, count };
            b.slice(weights, &[Range::all(rows), part, Range::all(one)])
        };
        let (early, late) = (part(b, 0.into(), count)?, part(b, count, one)?);
        let made = b.binary(Function::Mul, before, early)?;
        let made = b.reduce(ReduceKind::Sum, made, &[1], true)?;
        let made = b.map(&[made, last, late], DType::F32, |p, x| {
            let own = p.call(Function::Mul, &x[1..]);
            p.call(Function::Add, &[x[0], own])
        })?;
        b.reshape_to(made, &[rows, width.into()])
    }
}
