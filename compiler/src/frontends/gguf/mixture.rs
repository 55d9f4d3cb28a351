//! Mixtures of experts: which of a layer's feed-forward networks a token takes, and how their results come together.

use halite_ops::{
    DType,
    expression::{Function, Operand, Scalar},
    reduce::ReduceKind,
};
use halite_sizes::Size;

use super::{
    Result,
    experts::{Experts, Gating, Groups, Sharers},
    family::Activation,
    layer::Call,
};
use crate::{build::Builder, graph::TensorId};

impl Call<'_> {
    /// The feed-forward network of the experts that a router chooses for each row, of what it is `given`, and of those that all rows
    /// share.
    pub fn experts(
        &self,
        b: &mut Builder,
        [x, given]: [TensorId; 2],
        layer: u64,
        experts: &Experts,
    ) -> Result<TensorId> {
        let h = self.hyper;
        let (chosen, weights, all) = self.chosen(b, given, layer, experts)?;
        let names = match self.has(layer, "ffn_routed_down") {
            true => ["ffn_routed_down", "ffn_routed_up"],
            false => ["ffn_latent_down", "ffn_latent_up"],
        };
        let (whole, short) = (x, self.rows_of(layer, names[0]));
        // Experts may work on a shorter row.
        let x = match short {
            Some(short) => self.product(b, x, layer, names[0], [short, h.width])?,
            None => x,
        };
        let (rows, used, width) = (b.sizes(x)[0], Size::from(experts.used), b.sizes(x)[1]);
        let (own, factors) = match h.family.weighed_before {
            true => {
                let weights = b.reshape_to(weights, &[rows, used, Size::constant(1)])?;
                let each = b.reshape_to(x, &[rows, Size::constant(1), width])?;
                let each = b.binary(Function::Mul, each, weights)?;
                (b.reshape_to(each, &[rows * used, width])?, None)
            }
            false => (x, Some(weights)),
        };
        let mut made = self.networks(b, [own, chosen], factors, layer, ("exps", experts.count))?;
        if let Some(sharers) = experts.sharers {
            let beside = self.sharers(b, made, [chosen, all], layer, (experts, sharers))?;
            made = b.binary(Function::Add, made, beside)?;
        }
        if let Some(short) = short {
            made = self.inner_norm(b, made, layer, "ffn_routed_norm", short)?;
            made = self.product(b, made, layer, names[1], [h.width, short])?;
        }
        match self.shared_expert(b, whole, layer)? {
            Some(shared) => {
                let both = b.binary(Function::Add, made, shared)?;
                self.scaled(b, both, h.family.shared_scale)
            }
            None => Ok(made),
        }
    }

    /// What the networks make that are chosen for each row, `[rows, used]`: their sum, by these weights if there are some. They are
    /// those whose names end like this.
    fn networks(
        &self,
        b: &mut Builder,
        [x, chosen]: [TensorId; 2],
        weights: Option<TensorId>,
        layer: u64,
        (kind, count): (&str, u64),
    ) -> Result<TensorId> {
        let h = self.hyper;
        let [rows, used] = b.sizes(chosen)[..] else { return Err(b.invalid("experts of no rows")) };
        let width = b.sizes(x)[1].exact();
        let inner = self.columns_of(layer, &format!("ffn_down_{kind}"))?;
        let limit = h.activations.limits[1][layer as usize];
        let product = |b: &mut Builder, x: TensorId, part: &str, [rows, length]: [u64; 2]| {
            self.expert_part(b, [x, chosen], layer, &format!("ffn_{part}_{kind}"), [count, rows, length])
        };
        let has = |part: &str| self.has(layer, &format!("ffn_{part}_{kind}"));
        let made = if has("gate_up") {
            let both = product(b, x, "gate_up", [2 * inner, width])?;
            let (gate, up) = (self.columns(b, both, 0, inner)?, self.columns(b, both, inner, inner)?);
            self.gated(b, [gate, up], limit)?
        } else {
            let up = product(b, x, "up", [inner, width])?;
            match has("gate") {
                true => {
                    let gate = product(b, x, "gate", [inner, width])?;
                    self.gated(b, [gate, up], limit)?
                }
                false => self.activated(b, up, layer)?,
            }
        };
        let mut made = product(b, made, "down", [width, inner])?;
        made = b.reshape_to(made, &[rows, used, width.into()])?;
        if let Some(weights) = weights {
            let weights = b.reshape_to(weights, &[rows, used, Size::constant(1)])?;
            made = b.binary(Function::Mul, made, weights)?;
        }
        b.reduce(ReduceKind::Sum, made, &[1], false)
    }

    /// What networks make that several experts share, of what the experts made. As in llama.cpp a network is weighed like the expert
    /// with its number.
    fn sharers(
        &self,
        b: &mut Builder,
        x: TensorId,
        [chosen, all]: [TensorId; 2],
        layer: u64,
        (experts, sharers): (&Experts, Sharers),
    ) -> Result<TensorId> {
        let each = Operand::Constant(Scalar::Int((experts.count / sharers.count) as i64, DType::I64));
        let own = b.map(&[chosen], DType::I64, |p, x| p.call(Function::Div, &[x[0], each]))?;
        let weights = b.gather_elements(all, own, 1)?;
        let weights = if experts.normed { self.summing_to_one(b, weights)? } else { weights };
        let made = self.networks(b, [x, own], Some(weights), layer, ("chexps", sharers.count))?;
        self.scaled(b, made, Some(sharers.scale))
    }

    /// Rows of weights that are 1 in sum.
    fn summing_to_one(&self, b: &mut Builder, weights: TensorId) -> Result<TensorId> {
        let sum = b.reduce(ReduceKind::Sum, weights, &[1], true)?;
        let least = Operand::Constant(Scalar::Float(f64::from(6.103_515_6e-5_f32)));
        b.map(&[weights, sum], DType::F32, |p, x| {
            let sum = p.call(Function::Max, &[x[1], least]);
            p.call(Function::Div, &[x[0], sum])
        })
    }

    /// A product of rows with weights of the experts that are chosen for them, with a factor and a bias of each expert if there are
    /// such.
    fn expert_part(
        &self,
        b: &mut Builder,
        [x, chosen]: [TensorId; 2],
        layer: u64,
        part: &str,
        [count, rows, length]: [u64; 3],
    ) -> Result<TensorId> {
        let name = |kind: &str| self.name(layer, part, kind);
        let matrices = self.tensors.expert_matrices(b, &name("weight"), [count, rows, length])?;
        let x = self.tensors.turned(b, x, &name("weight"))?;
        let mut made = b.expert_product(x, chosen, &matrices)?;
        // As beside other weights, the factor of activations is for devices that round them.
        self.tensors.find(&name("input_scale"));
        let scales = self.tensors.floats_as(b, &name("scale"), &[count, 1])?;
        let biases = self.tensors.float_rows(b, &name("bias"), [count, rows])?;
        for (own, function) in [(scales, Function::Mul), (biases, Function::Add)] {
            let Some(own) = own else { continue };
            let (ids, all) = (b.cast(chosen, DType::I32)?, b.sizes(made)[0]);
            let ids = b.reshape_to(ids, &[all])?;
            let own = b.gather(own, ids, 0)?;
            made = b.binary(function, made, own)?;
        }
        Ok(made)
    }

    /// The experts of each row, `[rows, used]`, their weights, and the weights that all have before those of the chosen are made to be 1
    /// in sum.
    fn chosen(
        &self,
        b: &mut Builder,
        x: TensorId,
        layer: u64,
        experts: &Experts,
    ) -> Result<(TensorId, TensorId, TensorId)> {
        let scores = self.linear(b, x, layer, "ffn_gate_inp", [experts.count, self.hyper.width])?;
        // Some converters leave the kind out.
        let bias = match self.tensors.vector(b, &self.name(layer, "exp_probs_b", "bias"), experts.count)? {
            None => self.tensors.vector(b, &self.bare_name(layer, "exp_probs_b"), experts.count)?,
            own => own,
        };
        let told = self.told_experts(b, layer, experts)?;
        self.chosen_by(b, scores, (bias, told), experts)
    }

    /// The experts of each row that its token tells, `i64[rows, used]`, in layers where it does.
    fn told_experts(&self, b: &mut Builder, layer: u64, experts: &Experts) -> Result<Option<TensorId>> {
        if self.hyper.condensed.as_ref().is_none_or(|own| layer >= own.told) {
            return Ok(None);
        }
        let name = self.name(layer, "ffn_gate_tid2eid", "weight");
        let table = self.tensors.numbers(b, &name, [self.hyper.vocabulary, experts.used], experts.count)?;
        let tokens = self.tokens.ok_or_else(|| b.invalid("no tokens that tell experts"))?;
        let told = b.gather(table, tokens, 0)?;
        b.cast(told, DType::I64).map(Some)
    }

    /// The same by a router's numbers, `[rows, experts]`, and a bias, or experts that are chosen already.
    fn chosen_by(
        &self,
        b: &mut Builder,
        scores: TensorId,
        (bias, told): (Option<TensorId>, Option<TensorId>),
        experts: &Experts,
    ) -> Result<(TensorId, TensorId, TensorId)> {
        let weights = match experts.gating {
            Gating::Softmax | Gating::Chosen => b.softmax(scores, 1, false)?,
            Gating::Sigmoid => b.unary(Function::Sigmoid, scores)?,
            Gating::Root => b.map(&[scores], DType::F32, |p, x| {
                let made = p.call(Function::Softplus, &[x[0]]);
                p.call(Function::Sqrt, &[made])
            })?,
        };
        if let Some(told) = told {
            let made = b.gather_elements(weights, told, 1)?;
            let made = if experts.normed { self.summing_to_one(b, made)? } else { made };
            return Ok((told, self.scaled(b, made, experts.scale)?, weights));
        }
        // The bias and the groups count for the choice alone.
        let has_more = bias.is_some() || experts.groups.is_some();
        let by_scores = experts.gating == Gating::Chosen || self.hyper.family.weighed_before;
        let mut judged = if by_scores && has_more { scores } else { weights };
        if let Some(bias) = bias {
            judged = b.binary(Function::Add, judged, bias)?;
        }
        if let Some(groups) = experts.groups {
            judged = in_groups(b, judged, experts.count, groups)?;
        }
        let [best, chosen] = b.top_k(judged, 1, experts.used, false)?;
        let mut made = match judged == weights {
            true => best,
            false => b.gather_elements(weights, chosen, 1)?,
        };
        if experts.normed {
            made = self.summing_to_one(b, made)?;
        }
        Ok((chosen, self.scaled(b, made, experts.scale)?, weights))
    }

    /// The network that all rows share, if there is one; perhaps with a weight for each row.
    fn shared_expert(&self, b: &mut Builder, x: TensorId, layer: u64) -> Result<Option<TensorId>> {
        if self.tensors.find(&self.name(layer, "ffn_down_shexp", "weight")).is_none() {
            return Ok(None);
        }
        let inner = self.columns_of(layer, "ffn_down_shexp")?;
        let width = self.hyper.width;
        let up = self.linear(b, x, layer, "ffn_up_shexp", [inner, width])?;
        let made = match self.tensors.find(&self.name(layer, "ffn_gate_shexp", "weight")) {
            Some(_) => {
                let gate = self.linear(b, x, layer, "ffn_gate_shexp", [inner, width])?;
                self.gated(b, [gate, up], self.hyper.activations.limits[0][layer as usize])?
            }
            None => self.activated(b, up, layer)?,
        };
        let made = self.linear(b, made, layer, "ffn_down_shexp", [width, inner])?;
        let Some(weights) =
            self.tensors.vector(b, &self.name(layer, "ffn_gate_inp_shexp", "weight"), width)?
        else {
            return Ok(Some(made));
        };
        let score = b.binary(Function::Mul, x, weights)?;
        let score = b.reduce(ReduceKind::Sum, score, &[1], true)?;
        let made = b.map(&[made, score], DType::F32, |p, x| {
            let weight = p.call(Function::Sigmoid, &[x[1]]);
            p.call(Function::Mul, &[x[0], weight])
        })?;
        Ok(Some(made))
    }

    /// Values of all heads that experts make which a router chooses: a sum of a SiLU of what each makes, by its weight.
    pub fn routed_values(&self, b: &mut Builder, x: TensorId, layer: u64, values: u64) -> Result<TensorId> {
        let missing = || b.invalid("no experts of values");
        let experts = self.hyper.rare.value_experts.ok_or_else(missing)?;
        let scores = self.product(b, x, layer, "attn_v_gate", [experts.count, self.hyper.width])?;
        let bias = self.tensors.vector(b, &self.name(layer, "attn_v_gate", "bias"), experts.count)?;
        let (chosen, weights, _) = self.chosen_by(b, scores, (bias, None), &experts)?;
        let dims = [experts.count, values, self.hyper.width];
        let made = self.expert_part(b, [x, chosen], layer, "attn_v_exps", dims)?;
        let (rows, used, one) = (b.sizes(x)[0], Size::from(experts.used), Size::constant(1));
        let made = b.reshape_to(made, &[rows, used, values.into()])?;
        let weights = b.reshape_to(weights, &[rows, used, one])?;
        let made = b.map(&[made, weights], DType::F32, |p, x| {
            let made = p.call(Function::Silu, &[x[0]]);
            p.call(Function::Mul, &[made, x[1]])
        })?;
        b.reduce(ReduceKind::Sum, made, &[1], false)
    }

    /// Two factors of a feed-forward network: the gate's through the activation.
    pub fn gated(&self, b: &mut Builder, [gate, up]: [TensorId; 2], limit: Option<f64>) -> Result<TensorId> {
        let activation = self.hyper.family.activation;
        let float = |value: f64| Operand::Constant(Scalar::Float(f64::from(value as f32)));
        b.map(&[gate, up], DType::F32, |p, x| {
            if let Some((first, second)) = self.hyper.activations.bends {
                let part = p.call(Function::Sigmoid, &[x[0]]);
                let gate = bowed(p, x[0], first);
                let up = second.map_or(x[1], |second| bowed(p, x[1], second));
                let made = p.call(Function::Mul, &[gate, part]);
                return p.call(Function::Mul, &[made, up]);
            }
            if activation == Activation::LimitedSilu {
                let gate = p.call(Function::Min, &[x[0], float(7.0)]);
                let up = p.call(Function::Min, &[x[1], float(7.0)]);
                let up = p.call(Function::Max, &[up, float(-7.0)]);
                let turned = p.call(Function::Mul, &[gate, float(1.702)]);
                let part = p.call(Function::Sigmoid, &[turned]);
                let made = p.call(Function::Mul, &[gate, part]);
                let more = p.call(Function::Add, &[up, float(1.0)]);
                return p.call(Function::Mul, &[made, more]);
            }
            let before = limit.filter(|_| self.hyper.family.cuts_gates);
            let gate = before.map_or(x[0], |limit| p.call(Function::Min, &[x[0], float(limit)]));
            let made = bent(p, activation, gate);
            let Some(limit) = limit else { return p.call(Function::Mul, &[made, x[1]]) };
            let made = match before {
                Some(_) => made,
                None => p.call(Function::Min, &[made, float(limit)]),
            };
            let up = p.call(Function::Min, &[x[1], float(limit)]);
            let up = p.call(Function::Max, &[up, float(-limit)]);
            p.call(Function::Mul, &[made, up])
        })
    }

    /// A feed-forward network's one factor.
    pub fn activated(&self, b: &mut Builder, x: TensorId, layer: u64) -> Result<TensorId> {
        let activation = match self.hyper.family.activation {
            Activation::GeluOfGates => Activation::Relu,
            own => own,
        };
        if let Some(numbers) = self.hyper.activations.xielu.get(layer as usize) {
            return b.map(&[x], DType::F32, |p, x| numbers.bent(p, x[0]));
        }
        b.map(&[x], DType::F32, |p, x| bent(p, activation, x[0]))
    }
}

/// `judged`, what experts are chosen by, with minus infinity outside of each row's best groups.
fn in_groups(b: &mut Builder, judged: TensorId, experts: u64, groups: Groups) -> Result<TensorId> {
    let (rows, count, one) = (b.sizes(judged)[0], Size::from(groups.count), Size::constant(1));
    let apart = b.reshape_to(judged, &[rows, count, Size::from(experts / groups.count)])?;
    let [best, _] = b.top_k(apart, 2, Groups::JUDGED, false)?;
    let scores = b.reduce(ReduceKind::Sum, best, &[2], false)?;
    let [_, chosen] = b.top_k(scores, 1, groups.used, false)?;
    let chosen = b.reshape_to(chosen, &[rows, one, Size::from(groups.used)])?;
    let all = b.count_from(0, groups.count)?;
    let all = b.reshape_to(all, &[one, count, one])?;
    let is_chosen = b.map(&[chosen, all], DType::F32, |p, x| {
        let is_own = p.call(Function::Eq, &[x[0], x[1]]);
        let float = |value: f64| Operand::Constant(Scalar::Float(value));
        p.call(Function::Select, &[is_own, float(1.0), float(0.0)])
    })?;
    let is_chosen = b.reduce(ReduceKind::Max, is_chosen, &[2], true)?;
    let masked = b.map(&[apart, is_chosen], DType::F32, |p, x| {
        let float = |value: f64| Operand::Constant(Scalar::Float(value));
        let is_out = p.call(Function::Eq, &[x[1], float(0.0)]);
        p.call(Function::Select, &[is_out, float(f64::NEG_INFINITY), x[0]])
    })?;
    b.reshape_to(masked, &[rows, Size::from(experts)])
}

/// A number bent to be within another by a hyperbolic tangent.
fn bowed(p: &mut halite_ops::expression::Expression, x: Operand, most: f64) -> Operand {
    let most = Operand::Constant(Scalar::Float(f64::from(most as f32)));
    let part = p.call(Function::Div, &[x, most]);
    let part = p.call(Function::Tanh, &[part]);
    p.call(Function::Mul, &[part, most])
}

/// An activation of one number.
fn bent(p: &mut halite_ops::expression::Expression, activation: Activation, x: Operand) -> Operand {
    match activation {
        Activation::Gelu | Activation::GeluOfGates => p.call(Function::GeluTanh, &[x]),
        Activation::Relu => p.call(Function::Max, &[x, Operand::Constant(Scalar::Float(0.0))]),
        Activation::ReluSquared => {
            let zero = Operand::Constant(Scalar::Float(0.0));
            let part = p.call(Function::Max, &[x, zero]);
            p.call(Function::Mul, &[part, part])
        }
        Activation::Silu | Activation::LimitedSilu | Activation::Situ | Activation::XIelu => {
            let part = p.call(Function::Sigmoid, &[x]);
            p.call(Function::Mul, &[x, part])
        }
    }
}
