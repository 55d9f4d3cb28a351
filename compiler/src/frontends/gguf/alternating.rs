//! Layers that carry several states of a token and compute one: what the others become is predicted and corrected (Baykal et al.,
//! Alternating Updates for Efficient Transformers), with a low-rank path beside attention (Menghani et al., LAuReL).

use halite_ops::{
    DType,
    expression::{Function, Operand, Scalar},
    reduce::ReduceKind,
};
use halite_sizes::Size;

use super::{
    Result,
    file::invalid,
    layer::{Call, Given, Held},
    steps::float,
    streams::Streams,
};
use crate::{
    build::{Builder, Range},
    graph::TensorId,
};

impl Call<'_> {
    /// The states of tokens, `[rows, count, width]`, of their embeddings.
    pub fn begun(&self, b: &mut Builder, x: TensorId, streams: &Streams) -> Result<TensorId> {
        let (others, width) = (streams.count - 1, self.hyper.width);
        let matrices = self.tensors.expert_matrices(b, "altup_proj.weight", [others, width, width])?;
        let all = self.numbers(b, self.rows() * others, others)?;
        let all = b.reshape_to(all, &[self.rows(), others.into()])?;
        let made = b.expert_product(x, all, &matrices)?;
        let made = b.reshape_to(made, &[self.rows(), others.into(), width.into()])?;
        let own = b.reshape_to(x, &[self.rows(), Size::constant(1), width.into()])?;
        let made = sized_like(b, made, own)?;
        b.concat(&[own, made], 1)
    }

    /// One state of tokens, `[rows, width]`, of all.
    pub fn merged(&self, b: &mut Builder, x: TensorId, streams: &Streams) -> Result<TensorId> {
        let (others, width) = (streams.count - 1, self.hyper.width);
        let (rows, one) = (self.rows(), Size::constant(1));
        let rest = self.streams(b, x, 1, others)?;
        let rest = b.reshape_to(rest, &[rows * others, width.into()])?;
        let matrices = self.tensors.expert_matrices(b, "altup_unembd_proj.weight", [others, width, width])?;
        let all = self.numbers(b, rows * others, others)?;
        let all = b.reshape_to(all, &[rows * others, one])?;
        let made = b.expert_product(rest, all, &matrices)?;
        let made = b.reshape_to(made, &[rows, others.into(), width.into()])?;
        let active = self.streams(b, x, streams.active, 1)?;
        let made = sized_like(b, made, active)?;
        let first = self.streams(b, x, 0, 1)?;
        let all = b.concat(&[first, made], 1)?;
        b.reduce(ReduceKind::Mean, all, &[1], false)
    }

    /// Numbers below `count`, in turn.
    fn numbers(&self, b: &mut Builder, all: Size, count: u64) -> Result<TensorId> {
        let places = b.line_of_places(DType::I32, all)?;
        let count = Operand::Constant(Scalar::Int(count as i64, DType::I32));
        b.map(&[places], DType::I32, |p, x| p.call(Function::Mod, &[x[0], count]))
    }

    /// Some states, `[rows, count, width]`.
    fn streams(&self, b: &mut Builder, x: TensorId, first: u64, count: u64) -> Result<TensorId> {
        let part = Range { start: first.into(), step: 1, count: count.into() };
        b.slice(x, &[Range::all(self.rows()), part, Range::all(self.hyper.width.into())])
    }

    /// One state, `[rows, width]`.
    fn stream(&self, b: &mut Builder, x: TensorId, place: u64) -> Result<TensorId> {
        let one = self.streams(b, x, place, 1)?;
        b.reshape_to(one, &[self.rows(), self.hyper.width.into()])
    }

    /// What tells how states depend on each other, `[rows, count]`.
    fn modalities(&self, b: &mut Builder, x: TensorId, layer: u64, count: u64) -> Result<TensorId> {
        let width = self.hyper.width;
        let x = self.row_norm(b, x, layer, "altup_router_norm", width)?;
        let x = self.scaled(b, x, Some(1.0 / width as f64))?;
        let made = self.linear(b, x, layer, "altup_router", [count, width])?;
        b.unary(Function::Tanh, made)
    }

    /// What states become by a layer, as is thought before it is computed.
    fn predicted(&self, b: &mut Builder, x: TensorId, layer: u64, streams: &Streams) -> Result<TensorId> {
        let count = streams.count;
        let active = self.stream(b, x, streams.active)?;
        let modalities = self.modalities(b, active, layer, count)?;
        let factors = self.linear(b, modalities, layer, "altup_predict_coef", [count * count, count])?;
        let factors = b.reshape_to(factors, &[self.rows(), count.into(), count.into()])?;
        let made = b.matmul(factors, x)?;
        b.binary(Function::Add, made, x)
    }

    /// What states become as one of them was computed.
    fn amended(
        &self,
        b: &mut Builder,
        [predicted, computed]: [TensorId; 2],
        layer: u64,
        streams: &Streams,
    ) -> Result<TensorId> {
        let (count, one) = (streams.count, Size::constant(1));
        let modalities = self.modalities(b, computed, layer, count)?;
        let factors = self.linear(b, modalities, layer, "altup_correct_coef", [count, count])?;
        let factors = b.reshape_to(factors, &[self.rows(), count.into(), one])?;
        let active = self.streams(b, predicted, streams.active, 1)?;
        let computed = b.reshape_to(computed, &[self.rows(), one, self.hyper.width.into()])?;
        b.map(&[predicted, factors, computed, active], DType::F32, |p, x| {
            let wrong = p.call(Function::Sub, &x[2..]);
            let factor = p.call(Function::Add, &[x[1], float(1.0)]);
            let more = p.call(Function::Mul, &[wrong, factor]);
            p.call(Function::Add, &[x[0], more])
        })
    }

    /// The low-rank path beside attention.
    fn low_rank(&self, b: &mut Builder, x: TensorId, layer: u64) -> Result<TensorId> {
        let (rank, width) = (self.columns_of(layer, "laurel_r")?, self.hyper.width);
        let low = self.linear(b, x, layer, "laurel_l", [rank, width])?;
        let made = self.linear(b, low, layer, "laurel_r", [width, rank])?;
        let made = self.row_norm(b, made, layer, "laurel_post_norm", width)?;
        b.binary(Function::Add, made, x)
    }

    /// The states behind a layer.
    pub fn layer_of_streams(
        &self,
        b: &mut Builder,
        given: Given<'_>,
        streams: &Streams,
    ) -> Result<(TensorId, Held)> {
        let Given { layer, x, .. } = given;
        b.at(crate::SourceLocation::new(format!("layer {layer}, attention")));
        let predicted = self.predicted(b, x, layer, streams)?;
        let active = self.stream(b, predicted, streams.active)?;
        let normed = self.row_norm(b, active, layer, "attn_norm", self.hyper.width)?;
        let low = self.low_rank(b, normed, layer)?;
        let (attended, held) = self.mixed(b, Given { x: normed, ..given })?;
        let half = Operand::Constant(Scalar::Float(f64::from(0.5_f32.sqrt())));
        let state = b.map(&[active, attended, low], DType::F32, |p, x| {
            let sum = p.call(Function::Add, &x[..2]);
            let sum = p.call(Function::Add, &[sum, x[2]]);
            p.call(Function::Mul, &[sum, half])
        })?;
        b.at(crate::SourceLocation::new(format!("layer {layer}, feed-forward network")));
        let normed = self.row_norm(b, state, layer, "ffn_norm", self.hyper.width)?;
        let fed = self.feed_forward(b, [normed, x, state], layer)?;
        let computed = b.binary(Function::Add, state, fed)?;
        let made = self.amended(b, [predicted, computed], layer, streams)?;
        Ok((self.with_layer_input(b, made, layer, streams)?, held))
    }

    /// States with what the layer's own row adds to all but the first.
    fn with_layer_input(
        &self,
        b: &mut Builder,
        x: TensorId,
        layer: u64,
        streams: &Streams,
    ) -> Result<TensorId> {
        let Some(inputs) = self.layer_inputs else {
            return Err(invalid("the tensor 'per_layer_token_embd.weight' is missing"));
        };
        let mut active = self.stream(b, x, streams.active)?;
        let name = self.name(layer, "altup_correct_scale", "weight");
        if let Some(scale) = self.tensors.vector(b, &name, self.hyper.width)? {
            active = b.binary(Function::Mul, active, scale)?;
        }
        let more = self.of_layer_input(b, active, layer, inputs, None)?;
        let more = b.reshape_to(more, &[self.rows(), Size::constant(1), self.hyper.width.into()])?;
        let (first, rest) = (self.streams(b, x, 0, 1)?, self.streams(b, x, 1, streams.count - 1)?);
        let rest = b.binary(Function::Add, rest, more)?;
        b.concat(&[first, rest], 1)
    }
}

/// States as long as another, `[rows, 1, width]`.
fn sized_like(b: &mut Builder, x: TensorId, other: TensorId) -> Result<TensorId> {
    let mut length = |x: TensorId| {
        let squares = b.binary(Function::Mul, x, x)?;
        let sum = b.reduce(ReduceKind::Sum, squares, &[2], true)?;
        b.unary(Function::Sqrt, sum)
    };
    let (own, wanted) = (length(x)?, length(other)?);
    b.map(&[x, own, wanted], DType::F32, |p, x| {
        let made = p.call(Function::Mul, &[x[0], x[2]]);
        p.call(Function::Div, &[made, x[1]])
    })
}
