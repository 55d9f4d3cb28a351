//! Layers between several states of a token: each part takes a sum of them, by weights that the states tell, and what it makes is added to
//! each, by other weights (Zhu et al., Hyper-Connections).

use halite_ops::{
    DType,
    expression::{Function, Operand, Scalar},
    norm::NormKind,
    reduce::ReduceKind,
};
use halite_sizes::Size;

use super::{
    Result,
    file::{invalid, missing},
    layer::{Call, Given, Held},
    paths::{Connections, Paths, Weights},
    steps::float,
};
use crate::{
    build::{Builder, Normalization},
    graph::TensorId,
};

/// How what a part makes comes to states.
#[derive(Clone, Copy)]
struct Back {
    /// How much of it each gets, `[rows, count, 1]`.
    weights: TensorId,
    /// How much of each state goes into each, where they do, `[rows, count, count]`.
    spread: Option<TensorId>,
}

impl Call<'_> {
    /// The states of tokens, `[rows, count, width]`: each is the embedding.
    pub fn connected(&self, b: &mut Builder, x: TensorId, connections: &Connections) -> Result<TensorId> {
        let width = Size::from(self.hyper.width);
        let x = b.reshape_to(x, &[self.rows(), Size::constant(1), width])?;
        b.expand_to(x, &[self.rows(), connections.count.into(), width])
    }

    /// The states behind a layer, and what it keeps.
    pub fn layer_of_connections(
        &self,
        b: &mut Builder,
        given: Given<'_>,
        connections: &Connections,
    ) -> Result<(TensorId, Held)> {
        let Given { layer, x, .. } = given;
        b.at(crate::SourceLocation::new(format!("layer {layer}, attention")));
        let ngrams = self.hyper.more.ngrams.as_ref().filter(|ngrams| ngrams.layer == layer);
        let (x, more) = match ngrams {
            Some(ngrams) => self.with_ngrams(b, x, ngrams, given.held)?,
            None => (x, Vec::new()),
        };
        let (state, back) = self.entered(b, x, layer, "hc_attn", connections)?;
        let normed = self.norm_of_part(b, state, layer, ("attn_norm", connections))?;
        let (made, mut held) = self.mixed(b, Given { x: normed, ..given })?;
        held.states.extend(more);
        let x = self.returned(b, x, made, back)?;
        b.at(crate::SourceLocation::new(format!("layer {layer}, feed-forward network")));
        let (state, back) = self.entered(b, x, layer, "hc_ffn", connections)?;
        let normed = self.norm_of_part(b, state, layer, (self.hyper.family.feed_norm, connections))?;
        let made = self.feed_forward(b, [normed, state, state], layer)?;
        Ok((self.returned(b, x, made, back)?, held))
    }

    /// What a part takes with its norm, where that is not made already.
    fn norm_of_part(
        &self,
        b: &mut Builder,
        x: TensorId,
        layer: u64,
        (part, connections): (&str, &Connections),
    ) -> Result<TensorId> {
        match connections.kind {
            Weights::Gated { .. } => Ok(x),
            _ => self.layer_norm(b, x, layer, part),
        }
    }

    /// What a part takes, `[rows, width]`, and how what it makes comes to the states.
    fn entered(
        &self,
        b: &mut Builder,
        x: TensorId,
        layer: u64,
        part: &str,
        connections: &Connections,
    ) -> Result<(TensorId, Back)> {
        let (name, count) = (self.bare_name(layer, part), connections.count);
        let (epsilon, [factor, more], spreads) = match connections.kind {
            Weights::Gated { rank } => {
                let [taken, weights] = self.entered_by_gates(b, x, &name, rank)?;
                return Ok((taken, Back { weights, spread: None }));
            }
            Weights::Weighed { epsilon, magnitude } => (epsilon, [magnitude, epsilon], None),
            Weights::Spread { epsilon, rounds, .. } => (epsilon, [2.0, 0.0], Some(rounds)),
        };
        let (all, parts) = if spreads.is_some() { ((2 + count) * count, 3) } else { (2 * count, 2) };
        let mixes = self.mixes(b, x, &name, all)?;
        let scales = self.numbers_of(&format!("{name}_scale.weight"), parts)?;
        let bases = self.numbers_of(&format!("{name}_base.weight"), all)?;
        let (first, rest) = bases.split_at(count as usize);
        let (second, third) = rest.split_at(count as usize);
        let taken = self.columns(b, mixes, 0, count)?;
        let taken = weighed(b, taken, (scales[0], first), [1.0, epsilon])?;
        let given = self.columns(b, mixes, count, count)?;
        let given = weighed(b, given, (scales[1], second), [factor, more])?;
        let weights = b.reshape_to(given, &[self.rows(), count.into(), 1.into()])?;
        let spread = match spreads {
            Some(rounds) => {
                let mixes = self.columns(b, mixes, 2 * count, count * count)?;
                Some(self.spread(b, mixes, (scales[2], third), (count, epsilon, rounds))?)
            }
            None => None,
        };
        Ok((self.summed(b, x, taken)?, Back { weights, spread }))
    }

    /// States with what a part made.
    fn returned(&self, b: &mut Builder, x: TensorId, made: TensorId, back: Back) -> Result<TensorId> {
        let x = back.spread.map_or(Ok(x), |spread| self.spread_states(b, x, spread))?;
        added(b, x, made, back.weights)
    }

    /// One state of tokens, `[rows, width]`, of all in front of the output.
    pub fn disconnected(&self, b: &mut Builder, x: TensorId, connections: &Connections) -> Result<TensorId> {
        let (name, count) = ("output_hc", connections.count);
        let epsilon = match connections.kind {
            Weights::Gated { rank } => return self.left_by_gates(b, x, rank),
            Weights::Spread { mean: true, .. } => return b.reduce(ReduceKind::Mean, x, &[1], false),
            Weights::Weighed { epsilon, .. } | Weights::Spread { epsilon, .. } => epsilon,
        };
        let mixes = self.mixes(b, x, name, count)?;
        let scale = self.numbers_of(&format!("{name}_scale.weight"), 1)?;
        let base = self.numbers_of(&format!("{name}_base.weight"), count)?;
        let weights = weighed(b, mixes, (scale[0], &base), [1.0, epsilon])?;
        self.summed(b, x, weights)
    }

    /// The norm in front of the output, where that is not made already.
    pub fn last_norm(&self, b: &mut Builder, x: TensorId) -> Result<TensorId> {
        match self.hyper.paths {
            Paths::Connections(Connections { kind: Weights::Gated { .. }, .. }) => Ok(x),
            _ => self.model_norm(b, x, self.hyper.family.output_norm),
        }
    }

    /// Numbers of a tensor, which has to be there.
    fn numbers_of(&self, name: &str, count: u64) -> Result<Vec<f32>> {
        let numbers = self.tensors.floats(name)?.ok_or_else(|| missing(name))?;
        match numbers.len() as u64 == count {
            true => Ok(numbers),
            false => Err(invalid(format!("the tensor '{name}' has {} elements, not {count}", numbers.len()))),
        }
    }

    /// What weights are made of, `[rows, wanted]`: products of all states as one row, made to have a mean square of 1.
    fn mixes(&self, b: &mut Builder, x: TensorId, name: &str, wanted: u64) -> Result<TensorId> {
        let [rows, count, width] = b.sizes(x)[..] else { return Err(b.invalid("no states of tokens")) };
        let all = count.exact() * width.exact();
        let flat = b.reshape_to(x, &[rows, all.into()])?;
        let norm =
            Normalization { kind: NormKind::Rms, first: 1, end: 2, groups: 1, epsilon: self.hyper.epsilon };
        let flat = b.normalize(flat, None, None, norm)?;
        let weights = self.tensors.matrix(b, &format!("{name}_fn.weight"), [wanted, all])?;
        b.row_product(flat, &weights)
    }

    /// The sum of states by weights, `[rows, count]`.
    fn summed(&self, b: &mut Builder, x: TensorId, weights: TensorId) -> Result<TensorId> {
        let [rows, count] = b.sizes(weights)[..] else { return Err(b.invalid("no weights of states")) };
        let weights = b.reshape_to(weights, &[rows, count, 1.into()])?;
        let made = b.binary(Function::Mul, x, weights)?;
        b.reduce(ReduceKind::Sum, made, &[1], false)
    }
}

/// Weights of numbers with a scale and a base for each: the logistic function times a factor, and a number more.
fn weighed(
    b: &mut Builder,
    mixes: TensorId,
    (scale, base): (f32, &[f32]),
    [factor, more]: [f64; 2],
) -> Result<TensorId> {
    let bytes: Vec<u8> = base.iter().flat_map(|number| number.to_le_bytes()).collect();
    let base = b.constant("base", DType::F32.into(), &[1, base.len() as u64], bytes.into())?;
    let scale = Operand::Constant(Scalar::Float(f64::from(scale)));
    b.map(&[mixes, base], DType::F32, |p, x| {
        let made = p.call(Function::Mul, &[x[0], scale]);
        let made = p.call(Function::Add, &[made, x[1]]);
        let made = p.call(Function::Sigmoid, &[made]);
        let made = p.call(Function::Mul, &[made, float(factor)]);
        p.call(Function::Add, &[made, float(more)])
    })
}

/// States with what a part made, by weights.
fn added(b: &mut Builder, x: TensorId, made: TensorId, weights: TensorId) -> Result<TensorId> {
    let [rows, width] = b.sizes(made)[..] else { return Err(b.invalid("no rows")) };
    let made = b.reshape_to(made, &[rows, 1.into(), width])?;
    b.map(&[x, made, weights], DType::F32, |p, x| {
        let more = p.call(Function::Mul, &x[1..]);
        p.call(Function::Add, &[x[0], more])
    })
}
