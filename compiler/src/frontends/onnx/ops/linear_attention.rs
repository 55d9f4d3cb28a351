//! Layers that carry a state from token to token: linear attention, and the causal convolution in front of it.

use halite_ops::{
    DType,
    expression::{Function, Operand},
};

use super::{Import, NodeView, Result};
use crate::{
    build::{Builder, Range, Sliding},
    graph::{ElementType, TensorId, elements},
};

pub(super) const OPS: &[(&str, Import)] =
    &[("CausalConvWithState", causal_conv), ("LinearAttention", linear_attention)];

/// Most tokens whose states are computed one after the other.
const MOST_TOKENS: u64 = 4096;

/// A tensor of zeros.
fn zeros(b: &mut Builder, element: ElementType, dims: &[u64]) -> Result<TensorId> {
    let zero = b.float(element, 0.0)?;
    b.expand(zero, dims)
}

/// Places of one axis.
fn places(b: &mut Builder, x: TensorId, axis: usize, start: u64, count: u64) -> Result<TensorId> {
    let mut ranges: Vec<Range> = b.dims(x).iter().map(|size| Range::all(*size)).collect();
    ranges[axis] = Range { start: if count == 0 { 0 } else { start }, step: 1, count };
    b.slice(x, &ranges)
}

/// Each channel convolved with its own taps, over what came before: the state, or zeros. Gives the last places as the new state.
fn causal_conv(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, w) = (node.input(0)?, node.input(1)?);
    let (&[batch, channels, _], &[filters, 1, taps]) = (b.dims(x), b.dims(w)) else {
        return Err(node.invalid(format!("no causal convolution of {}", b.describe(&[x, w]))));
    };
    if filters != channels || taps == 0 {
        return Err(node.invalid(format!("{} has not a filter for each channel", b.describe(&[w]))));
    }
    let state = [batch, channels, taps - 1];
    let past = match node.optional(3) {
        Some(past) if b.dims(past) == state => past,
        Some(past) => return Err(node.invalid(format!("the state {} is not {state:?}", b.describe(&[past])))),
        None => zeros(b, b.element(x), &state)?,
    };
    let padded = if taps > 1 { b.concat(&[past, x], 2)? } else { x };
    let made = b.conv(padded, w, node.optional(2), &Sliding::plain(1), channels)?;
    let made = match node.string("activation", "none")?.as_str() {
        "none" => made,
        "silu" | "swish" => b.unary(Function::Silu, made)?,
        other => {
            return Err(
                node.invalid(format!("there is no activation '{other}'; there are none, silu, swish"))
            );
        }
    };
    let length = b.dims(padded)[2];
    let present = places(b, padded, 2, length - (taps - 1), taps - 1)?;
    Ok(vec![made, present])
}

/// How states follow each other.
struct Rule {
    /// They shrink by the decay.
    is_gated: bool,
    /// What is written is corrected by what the state has for the key.
    is_delta: bool,
}

impl Rule {
    fn of(node: &NodeView<'_>) -> Result<Self> {
        let name = node.string("update_rule", "gated_delta")?;
        let (is_gated, is_delta) = match name.as_str() {
            "linear" => (false, false),
            "gated" => (true, false),
            "delta" => (false, true),
            "gated_delta" => (true, true),
            other => {
                let known = "linear, gated, delta, gated_delta";
                return Err(node.invalid(format!("there is no update_rule '{other}'; there are {known}")));
            }
        };
        for (index, what, is_wanted) in [(4, "decay", is_gated), (5, "beta", is_delta)] {
            if node.optional(index).is_some() != is_wanted {
                let verb = if is_wanted { "needs" } else { "takes no" };
                return Err(node.invalid(format!("update_rule '{name}' {verb} {what}")));
            }
        }
        Ok(Rule { is_gated, is_delta })
    }
}

/// Sizes of linear attention.
struct Sizes {
    batch: u64,
    tokens: u64,
    heads: u64,
    /// Queries that share a head's state.
    group: u64,
    key: u64,
    value: u64,
}

/// Inputs for all tokens as `f32`, `[batch, heads, tokens, …]`.
struct Tokens {
    /// `[batch, heads, tokens * group, key]`.
    queries: TensorId,
    keys: TensorId,
    values: TensorId,
    /// What states are multiplied with, `[batch, heads, tokens, key or 1]`.
    decay: Option<TensorId>,
    /// `[batch, heads or 1, tokens, 1]`.
    beta: Option<TensorId>,
}

fn linear_attention(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let rule = Rule::of(node)?;
    let inputs = [node.input(0)?, node.input(1)?, node.input(2)?];
    let sizes = sizes(b, node, inputs)?;
    let element = b.element(inputs[0]);
    let tokens = tokens(b, node, &sizes, inputs)?;
    let dims = [sizes.batch, sizes.heads, sizes.key, sizes.value];
    let (mut state, kept_as) = match node.optional(3) {
        Some(past) if b.dims(past) == dims => (b.as_f32(past)?, b.element(past)),
        Some(past) => return Err(node.invalid(format!("the state {} is not {dims:?}", b.describe(&[past])))),
        None => (zeros(b, DType::F32.into(), &dims)?, element),
    };
    let scale = Some(node.float("scale", 0.0)?).filter(|scale| *scale != 0.0);
    let scale = scale.unwrap_or((sizes.key as f32).sqrt().recip());
    let mut read = Vec::new();
    for token in 0..sizes.tokens {
        state = next(b, &rule, &tokens, state, token)?;
        let queries = places(b, tokens.queries, 2, token * sizes.group, sizes.group)?;
        let made = b.matmul(queries, state)?;
        read.push(b.reshape(made, &[sizes.batch, 1, sizes.heads * sizes.group * sizes.value])?);
    }
    let joined = b.concat(&read, 1)?;
    let output = b.map(&[joined], element, |p, x| p.call(Function::Mul, &[x[0], scale.into()]))?;
    Ok(vec![output, b.cast(state, kept_as)?])
}

fn sizes(b: &Builder, node: &NodeView<'_>, inputs: [TensorId; 3]) -> Result<Sizes> {
    let wrong = || node.invalid(format!("no linear attention of {}", b.describe(&inputs)));
    let count = |name| Ok(u64::try_from(node.int(name, 0)?).unwrap_or(0));
    let (queries, heads): (u64, u64) = (count("q_num_heads")?, count("kv_num_heads")?);
    let [q, k, v] = inputs.map(|id| <[u64; 3]>::try_from(b.dims(id)).ok());
    let (Some([batch, tokens, q]), Some([b_k, t_k, k]), Some([b_v, t_v, v])) = (q, k, v) else {
        return Err(wrong());
    };
    let fits = heads > 0 && queries > 0 && queries % heads == 0 && q % queries == 0 && v % heads == 0;
    if !fits || [b_k, t_k] != [batch, tokens] || [b_v, t_v] != [batch, tokens] {
        return Err(wrong());
    }
    let key = q / queries;
    if heads.checked_mul(key) != Some(k) || key == 0 || v == 0 || batch == 0 {
        return Err(wrong());
    }
    if tokens == 0 || tokens > MOST_TOKENS {
        let reason = format!("linear attention of {tokens} tokens at once; 1 to {MOST_TOKENS} are supported");
        return Err(node.unsupported(reason));
    }
    Ok(Sizes { batch, tokens, heads, group: queries / heads, key, value: v / heads })
}

/// `[batch, tokens, heads * width]` as `[batch, heads, tokens, width]`, `f32`.
fn by_head(b: &mut Builder, x: TensorId, sizes: &Sizes, heads: u64) -> Result<TensorId> {
    let width = elements(b.dims(x)) / (sizes.batch * sizes.tokens * heads);
    let x = b.as_f32(x)?;
    let apart = b.reshape(x, &[sizes.batch, sizes.tokens, heads, width])?;
    b.transpose(apart, &[0, 2, 1, 3])
}

fn tokens(b: &mut Builder, node: &NodeView<'_>, sizes: &Sizes, [q, k, v]: [TensorId; 3]) -> Result<Tokens> {
    let Sizes { batch, tokens, heads, group, key, .. } = *sizes;
    let q = b.as_f32(q)?;
    let queries = b.reshape(q, &[batch, tokens, heads, group, key])?;
    let queries = b.transpose(queries, &[0, 2, 1, 3, 4])?;
    let queries = b.reshape(queries, &[batch, heads, tokens * group, key])?;
    let (keys, values) = (by_head(b, k, sizes, heads)?, by_head(b, v, sizes, heads)?);
    let per_token = |b: &mut Builder, index: usize, widths: [u64; 2]| -> Result<Option<TensorId>> {
        let Some(id) = node.optional(index) else { return Ok(None) };
        match *b.dims(id) {
            [own, count, width] if [own, count] == [batch, tokens] && widths.contains(&width) => Ok(Some(id)),
            _ => Err(node.invalid(format!("{} is not [{batch}, {tokens}, {widths:?}]", b.describe(&[id])))),
        }
    };
    let decay = match per_token(b, 4, [heads, heads * key])? {
        Some(decay) => {
            let decay = by_head(b, decay, sizes, heads)?;
            Some(b.unary(Function::Exp, decay)?)
        }
        None => None,
    };
    let beta = match per_token(b, 5, [heads, 1])? {
        Some(beta) => {
            let own = b.dims(beta)[2];
            Some(by_head(b, beta, sizes, own)?)
        }
        None => None,
    };
    Ok(Tokens { queries, keys, values, decay, beta })
}

/// The state after a token: `state * decay + key x written`.
fn next(b: &mut Builder, rule: &Rule, tokens: &Tokens, state: TensorId, token: u64) -> Result<TensorId> {
    let mut state = state;
    if let Some(decay) = tokens.decay.filter(|_| rule.is_gated) {
        let decay = places(b, decay, 2, token, 1)?;
        let decay = b.transpose(decay, &[0, 1, 3, 2])?;
        state = b.binary(Function::Mul, state, decay)?;
    }
    let key = places(b, tokens.keys, 2, token, 1)?;
    let mut written = places(b, tokens.values, 2, token, 1)?;
    if let Some(beta) = tokens.beta.filter(|_| rule.is_delta) {
        let beta = places(b, beta, 2, token, 1)?;
        let known = b.matmul(key, state)?;
        written = b.map(&[written, known, beta], DType::F32, |p: &mut _, x: &[Operand]| {
            let missing = p.call(Function::Sub, &x[..2]);
            p.call(Function::Mul, &[missing, x[2]])
        })?;
    }
    let column = b.transpose(key, &[0, 1, 3, 2])?;
    b.map(&[state, column, written], DType::F32, |p, x| {
        let added = p.call(Function::Mul, &x[1..]);
        p.call(Function::Add, &[x[0], added])
    })
}

#[cfg(test)]
mod tests {
    use halite_ops::Values;

    use crate::{
        frontends::onnx::{
            Model,
            encode::{FLOAT, Message, graph, int, model, node, port, text},
        },
        signature::Bindings,
    };

    const HEADS: usize = 2;
    const KEY: usize = 3;
    const VALUE: usize = 2;

    /// Numbers that repeat after long, from -1 to 1.
    fn some(count: usize, seed: usize) -> Vec<f64> {
        (0..count).map(|i| f64::from((((i + seed) * 37 % 101) as f32 - 50.0) / 50.0)).collect()
    }

    fn run(
        nodes: &[Message],
        inputs: &[(&str, &[i64], Vec<f64>)],
        outputs: &[(&str, &[i64])],
    ) -> Vec<Vec<f64>> {
        let given: Vec<Message> = inputs.iter().map(|(name, dims, _)| port(name, FLOAT, dims)).collect();
        let made: Vec<Message> = outputs.iter().map(|(name, dims)| port(name, FLOAT, dims)).collect();
        let bytes = model(&graph(nodes, &[], &given, &made), &[]);
        let graph = Model::from_bytes(bytes).unwrap().graph(&Bindings::default()).unwrap();
        let values: Vec<Values> = inputs.iter().map(|(_, _, values)| Values::Float(values.clone())).collect();
        graph.evaluate(&values).unwrap().iter().map(Values::floats).collect()
    }

    /// One batch of tokens, from a state of zeros or the one that is given, by the rule of the operator's documentation.
    fn attention(rule: &str, tokens: std::ops::Range<usize>, state: Option<Vec<f64>>) -> Vec<Vec<f64>> {
        let count = tokens.len();
        let part = |width: usize, seed: usize| {
            let all = some(8 * width, seed);
            all[tokens.start * width..tokens.end * width].to_vec()
        };
        let t = count as i64;
        let mut inputs: Vec<(&str, &[i64], Vec<f64>)> = Vec::new();
        let (q, k, v) =
            ([1, t, 4 * KEY as i64], [1, t, (HEADS * KEY) as i64], [1, t, (HEADS * VALUE) as i64]);
        let (s, g) = ([1, HEADS as i64, KEY as i64, VALUE as i64], [1, t, HEADS as i64]);
        inputs.push(("q", &q, part(4 * KEY, 1)));
        inputs.push(("k", &k, part(HEADS * KEY, 2)));
        inputs.push(("v", &v, part(HEADS * VALUE, 3)));
        let mut names = ["q", "k", "v", "", "", ""];
        if let Some(state) = state {
            inputs.push(("s", &s, state));
            names[3] = "s";
        }
        if rule.contains("gated") {
            inputs.push(("g", &g, part(HEADS, 4)));
            names[4] = "g";
        }
        if rule.contains("delta") {
            inputs.push(("b", &g, part(HEADS, 5)));
            names[5] = "b";
        }
        let attributes =
            [int("q_num_heads", 4), int("kv_num_heads", HEADS as i64), text("update_rule", rule)];
        let nodes = [node("LinearAttention", &names, &["y", "after"], &attributes)];
        run(&nodes, &inputs, &[("y", &[1, t, 4 * VALUE as i64]), ("after", &s)])
    }

    /// The same in plain arithmetic.
    fn expected(rule: &str) -> Vec<f64> {
        let (q, k, v) = (some(8 * 4 * KEY, 1), some(8 * HEADS * KEY, 2), some(8 * HEADS * VALUE, 3));
        let (g, beta) = (some(8 * HEADS, 4), some(8 * HEADS, 5));
        let mut state = [[[0f64; VALUE]; KEY]; HEADS];
        let mut y = Vec::new();
        for token in 0..8 {
            for (head, state) in state.iter_mut().enumerate() {
                let key = &k[(token * HEADS + head) * KEY..][..KEY];
                if rule.contains("gated") {
                    let decay = g[token * HEADS + head].exp();
                    state.iter_mut().flatten().for_each(|x| *x *= decay);
                }
                for place in 0..VALUE {
                    let mut written = v[(token * HEADS + head) * VALUE + place];
                    if rule.contains("delta") {
                        let known: f64 = key.iter().zip(&*state).map(|(k, row)| k * row[place]).sum();
                        written = beta[token * HEADS + head] * (written - known);
                    }
                    key.iter().zip(&mut *state).for_each(|(k, row)| row[place] += k * written);
                }
            }
            for query in 0..4 {
                let own = &q[(token * 4 + query) * KEY..][..KEY];
                let read =
                    |place: usize| own.iter().zip(&state[query / 2]).map(|(q, row)| q * row[place]).sum();
                y.extend((0..VALUE).map(read).map(|sum: f64| sum / (KEY as f64).sqrt()));
            }
        }
        y
    }

    #[test]
    fn states_go_from_token_to_token_and_from_call_to_call() {
        for rule in ["linear", "gated", "delta", "gated_delta"] {
            let wants = expected(rule);
            let whole = attention(rule, 0..8, None);
            let first = attention(rule, 0..5, None);
            let second = attention(rule, 5..8, Some(first[1].clone()));
            let parts: Vec<f64> = first[0].iter().chain(&second[0]).copied().collect();
            for got in [&whole[0], &parts] {
                assert_eq!(got.len(), wants.len());
                for (got, want) in got.iter().zip(&wants) {
                    assert!((got - want).abs() < 1e-5 * (1.0 + want.abs()), "{rule}: {got} {want}");
                }
            }
        }
    }

    #[test]
    fn convolutions_look_back_only() {
        let nodes = [
            node("CausalConvWithState", &["x", "w", "c"], &["y", "s"], &[]),
            node("CausalConvWithState", &["x", "w", "c", "s"], &["z", "t"], &[text("activation", "silu")]),
        ];
        let (x, w) = (some(2 * 3, 7), some(2 * 3, 9));
        let inputs: [(&str, &[i64], Vec<f64>); 3] =
            [("x", &[1, 2, 3], x.clone()), ("w", &[2, 1, 3], w.clone()), ("c", &[2], vec![0.5, -0.5])];
        let made = run(&nodes, &inputs, &[("y", &[1, 2, 3]), ("z", &[1, 2, 3]), ("t", &[1, 2, 2])]);
        for channel in 0..2 {
            let own = &x[channel * 3..][..3];
            let twice: Vec<f64> = [0.0; 2].iter().chain(own).chain(own).copied().collect();
            let at = |place: usize| {
                let sum: f64 = (0..3).map(|tap| twice[place + tap] * w[channel * 3 + tap]).sum();
                sum + [0.5, -0.5][channel]
            };
            for place in 0..3 {
                assert!((made[0][channel * 3 + place] - at(place)).abs() < 1e-5);
                let z = at(3 + place);
                assert!((made[1][channel * 3 + place] - z / (1.0 + (-z).exp())).abs() < 1e-5);
            }
            assert_eq!(made[2][channel * 2..][..2], own[1..]);
        }
    }
}
