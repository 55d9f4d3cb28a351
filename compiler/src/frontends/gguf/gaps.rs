//! Layers that lack attention or a feed-forward network, or have a product in attention's place (Bercovich et al., Puzzle: searches leave
//! out what a model does not need).

use halite_ops::expression::Function;

use super::{
    Result,
    layer::{Call, Given, Held},
};
use crate::{build::Builder, graph::TensorId};

impl Call<'_> {
    /// The state behind a layer of those parts that it has.
    pub fn layer_with_gaps(&self, b: &mut Builder, given: Given<'_>) -> Result<(TensorId, Held)> {
        let Given { layer, x, held, .. } = given;
        let (mixer, width) = (self.hyper.mixer(layer), self.hyper.width);
        let (mut state, mut own) = (x, Held::default());
        if mixer.attends {
            let normed = self.layer_norm(b, x, layer, "attn_norm")?;
            let (made, kept) = self.attention(b, normed, layer, held)?;
            own = kept;
            state = b.binary(Function::Add, state, made)?;
        } else if self.rows_of(layer, "attn_output").is_some() {
            let normed = self.layer_norm(b, x, layer, "attn_norm")?;
            let made = self.linear(b, normed, layer, "attn_output", [width, width])?;
            state = b.binary(Function::Add, state, made)?;
        }
        let state = given.wanted_of(b, state)?;
        if !mixer.feeds {
            return Ok((state, own));
        }
        b.at(crate::SourceLocation::new(format!("layer {layer}, feed-forward network")));
        let normed = self.layer_norm(b, state, layer, self.hyper.family.feed_norm)?;
        let fed = self.feed_forward(b, [normed, state, state], layer)?;
        Ok((b.binary(Function::Add, state, fed)?, own))
    }
}
