//! Decoders that are no GGUF files: what their inputs are for, and calls of them.
//!
//! ONNX models and ExecuTorch programs say nothing of what they are. Inputs are told by their names and types, which exporters
//! agree on; what is left over is an error that names it.

use std::fmt;

use half::{bf16, f16};

use crate::{
    Dimension, ElementType, Error, ErrorKind, Function, FunctionInfo, Result, RunOptions, Session, State,
    Tensor, ValueInfo, ValueType,
};

/// Most tokens of a call, where the model takes any number.
const MOST: usize = 512;
/// The method of ExecuTorch programs that computes.
const FORWARD: &str = "forward";

/// A decoder.
pub(super) struct Decoder {
    pub function: Function,
    inputs: Vec<(String, Role)>,
    logits: String,
    /// Tokens of a call.
    count: Count,
    caches: Caches,
}

/// How many tokens a call takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    Exactly(usize),
    AtMost(usize),
}

impl Count {
    /// Of a model whose calls take `size` tokens, or at most `most`.
    fn of(size: Option<usize>, most: Option<usize>, caches: Caches) -> std::result::Result<Count, String> {
        match size {
            // What fills a call up would be among the rows that it appends.
            Some(size) if size != 1 && caches == Caches::Appended => {
                Err(format!("its calls take {size} tokens each, no fewer, and its caches keep all of them"))
            }
            Some(0) => Err("its calls take no tokens".to_owned()),
            Some(size) => Ok(Count::Exactly(size)),
            None => Ok(Count::AtMost(most.unwrap_or(MOST).clamp(1, MOST))),
        }
    }
}

/// What stays of a call for the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caches {
    /// Nothing: each call takes all tokens.
    None,
    /// Rows at the tokens' places: what is behind the tokens does not count.
    Placed,
    /// Rows that the calls append, which cannot be taken back.
    Appended,
}

/// What an input is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The new tokens.
    Tokens(Form),
    /// Their places, or the first one's.
    Positions(Form),
    /// Which of all tokens count: all.
    Mask(Form),
    /// How many tokens there are with the new ones.
    Total(Form),
    /// One less than that: the last one's place.
    Last(Form),
    /// Whether there are caches.
    HasPast(Form),
}

/// How an input takes numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Form {
    element: ElementType,
    rank: usize,
    /// The last dimension, where it is known.
    size: Option<usize>,
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder").field("inputs", &self.inputs).field("caches", &self.caches).finish()
    }
}

impl Decoder {
    /// The decoder that a session's model is.
    pub fn of(session: &Session) -> Result<Decoder> {
        let named = session.functions().iter().any(|function| function.name == FORWARD);
        let function = if named { session.function(FORWARD)? } else { session.default_function()? };
        let info = function.info();
        let is_state = |input: &&ValueInfo| info.states.iter().any(|pair| pair.input == input.name);
        let mut inputs: Vec<(String, Role)> = Vec::new();
        for input in info.inputs.iter().filter(|input| !is_state(input)) {
            match Role::of(input, &inputs) {
                Some(role) => inputs.push((input.name.clone(), role)),
                None if input.is_optional => {}
                None => return Err(unknown(info, input)),
            }
        }
        let tokens = inputs
            .iter()
            .find_map(|(_, role)| if let Role::Tokens(form) = role { Some(*form) } else { None });
        let tokens = tokens.ok_or_else(|| no_decoder(info, "none of its inputs takes tokens"))?;
        let logits = logits(info).ok_or_else(|| no_decoder(info, "none of its outputs has logits"))?;
        let caches = caches(info, &inputs);
        let count =
            Count::of(tokens.size, most_tokens(info), caches).map_err(|why| no_decoder(info, &why))?;
        Ok(Decoder { inputs, logits: logits.name.clone(), count, caches, function: function.clone() })
    }

    /// How many tokens its caches have room for, where they have places for so many.
    pub fn room(&self) -> Option<usize> {
        if self.caches != Caches::Placed {
            return None;
        }
        let info = self.function.info();
        let is_state = |input: &&ValueInfo| info.states.iter().any(|pair| pair.input == input.name);
        let kept = info.kept.iter().map(|kept| &kept.input);
        let all = info.inputs.iter().filter(is_state).chain(kept);
        all.filter_map(rows).min()
    }

    /// A new state; none where the model keeps nothing.
    pub fn state(&self) -> Result<Option<State>> {
        if self.caches == Caches::None { Ok(None) } else { self.function.state().map(Some) }
    }

    /// How many of so many tokens the next call takes, behind `before` others.
    pub fn piece(&self, left: usize) -> usize {
        match self.count {
            _ if self.caches == Caches::None => left,
            Count::Exactly(most) | Count::AtMost(most) => left.min(most),
        }
    }

    /// Whether caches can be cut by forgetting how long they are.
    pub fn forgets(&self) -> bool {
        self.caches != Caches::Appended
    }

    /// Logits behind the last of some tokens, which come behind `before`.
    pub fn logits(
        &self,
        state: Option<&mut State>,
        before: &[u32],
        tokens: &[u32],
        options: &RunOptions,
    ) -> Result<Vec<f32>> {
        let all = [before, tokens].concat();
        let (first, new) = if state.is_some() { (before.len(), tokens) } else { (0, &all[..]) };
        let size = if let Count::Exactly(size) = self.count { size.max(new.len()) } else { new.len() };
        let call = Call { first, new, size };
        let inputs = self.inputs.iter().map(|(name, role)| Ok((name.clone(), call.input(*role)?)));
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        let inputs: crate::Inputs = inputs.into_iter().collect();
        let outputs = match state {
            Some(state) => state.run_with(inputs, options)?,
            None => self.function.run_with(inputs, options)?,
        };
        last_row(outputs.tensor(&self.logits)?, new.len() - 1)
    }
}

/// A call that takes `new` tokens behind `first` others, filled up to `size`.
struct Call<'a> {
    first: usize,
    new: &'a [u32],
    size: usize,
}

impl Call<'_> {
    fn input(&self, role: Role) -> Result<Tensor> {
        let total = (self.first + self.new.len()) as i64;
        match role {
            Role::Tokens(form) => {
                let filled = self.new.iter().map(|token| i64::from(*token)).chain(std::iter::repeat(0));
                form.tensor(&filled.take(self.size).collect::<Vec<_>>())
            }
            Role::Positions(form) => {
                let count = if form.size == Some(1) || form.rank == 0 { 1 } else { self.size };
                form.tensor(&(self.first..self.first + count).map(|place| place as i64).collect::<Vec<_>>())
            }
            Role::Mask(form) => {
                let length = form.size.map_or(total, |size| size as i64);
                form.tensor(&(0..length).map(|place| i64::from(place < total)).collect::<Vec<_>>())
            }
            Role::Total(form) => form.tensor(&[total]),
            Role::Last(form) => form.tensor(&[total - 1]),
            Role::HasPast(form) => form.tensor(&[i64::from(self.first > 0)]),
        }
    }
}

impl Form {
    fn of(input: &ValueInfo) -> Option<Form> {
        let ValueType::Tensor { element_type: Some(element), shape: Some(shape) } = &input.value_type else {
            return None;
        };
        let size = match shape.last() {
            Some(Dimension::Fixed(size)) => Some(*size),
            _ => None,
        };
        Some(Form { element: *element, rank: shape.len(), size })
    }

    fn is(self, elements: &[ElementType]) -> bool {
        elements.contains(&self.element)
    }

    /// Numbers as one row.
    fn tensor(self, numbers: &[i64]) -> Result<Tensor> {
        let shape: Vec<usize> = match self.rank {
            0 => Vec::new(),
            rank => std::iter::repeat_n(1, rank - 1).chain([numbers.len()]).collect(),
        };
        let bytes = |size: usize| {
            numbers.iter().flat_map(|number| number.to_le_bytes()[..size].to_vec()).collect::<Vec<u8>>()
        };
        match self.element {
            ElementType::F32 => {
                Tensor::from_vec(numbers.iter().map(|number| *number as f32).collect(), shape)
            }
            element => Tensor::from_bytes(element, shape, bytes(element.byte_count().min(8) as usize)),
        }
    }
}

/// Types that tokens and their places have.
const INTEGERS: &[ElementType] = &[ElementType::I64, ElementType::SI64, ElementType::I32, ElementType::SI32];
/// Types that masks and truths have beside these.
const TRUTHS: &[ElementType] = &[ElementType::I1, ElementType::UI8];

impl Role {
    /// What an input is for, by its name, its type and the inputs before it.
    fn of(input: &ValueInfo, before: &[(String, Role)]) -> Option<Role> {
        let form = Form::of(input)?;
        let name = input.name.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        let has_tokens = before.iter().any(|(_, role)| matches!(role, Role::Tokens(_)));
        let has_positions = before.iter().any(|(_, role)| matches!(role, Role::Positions(_)));
        if has(&["use_cache", "use_past", "has_past"]) && (form.is(TRUTHS) || form.is(INTEGERS)) {
            return Some(Role::HasPast(form));
        }
        if has(&["mask"]) && form.rank <= 2 && (form.is(TRUTHS) || form.is(INTEGERS)) {
            return Some(Role::Mask(form));
        }
        if !form.is(INTEGERS) || form.rank > 2 {
            return None;
        }
        if has(&["total_seq"]) {
            return Some(Role::Total(form));
        }
        if has(&["seqlens_k"]) {
            return Some(Role::Last(form));
        }
        if has(&["pos", "start"]) && !has_positions {
            return Some(Role::Positions(form));
        }
        if !has_tokens && form.rank > 0 && !has(&["token_type", "len"]) {
            return Some(Role::Tokens(form));
        }
        // Programs whose inputs have no names take tokens and then places.
        let is_nameless =
            name.strip_prefix("input").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
        (has_tokens && !has_positions && is_nameless).then_some(Role::Positions(form))
    }
}

/// Rows of a cache, which has heads before or behind them; there are fewer of these.
fn rows(cache: &ValueInfo) -> Option<usize> {
    let ValueType::Tensor { shape: Some(shape), .. } = &cache.value_type else { return None };
    match shape[..] {
        [_, Dimension::Fixed(one), Dimension::Fixed(other), _] => Some(one.max(other)),
        _ => None,
    }
}

/// The output with the logits.
fn logits(info: &FunctionInfo) -> Option<&ValueInfo> {
    let is_state = |output: &ValueInfo| info.states.iter().any(|pair| pair.output == output.name);
    let floats = [ElementType::F32, ElementType::F16, ElementType::BF16];
    let has_logits = |output: &&ValueInfo| match &output.value_type {
        ValueType::Tensor { element_type, shape } => {
            element_type.is_none_or(|element| floats.contains(&element))
                && shape.as_ref().is_none_or(|shape| !shape.is_empty())
        }
        _ => false,
    };
    let all = || info.outputs.iter().filter(|output| !is_state(output)).filter(has_logits);
    all().find(|output| output.name.contains("logits")).or_else(|| all().next())
}

/// Most tokens that a call takes, where the model says so.
fn most_tokens(info: &FunctionInfo) -> Option<usize> {
    let tokens = info.inputs.iter().find(|input| matches!(Role::of(input, &[]), Some(Role::Tokens(_))))?;
    match &tokens.value_type {
        ValueType::Tensor { shape: Some(shape), .. } => match shape.last()? {
            Dimension::AtMost(most) => Some(*most),
            _ => None,
        },
        _ => None,
    }
}

fn caches(info: &FunctionInfo, inputs: &[(String, Role)]) -> Caches {
    let shape_of = |values: &[ValueInfo], name: &str| {
        let value = values.iter().find(|value| value.name == name)?;
        match &value.value_type {
            ValueType::Tensor { shape, .. } => shape.clone(),
            _ => None,
        }
    };
    let has_places = inputs.iter().any(|(_, role)| matches!(role, Role::Positions(_) | Role::Last(_)));
    if info.states.is_empty() {
        return if info.keeps_state() { Caches::Placed } else { Caches::None };
    }
    let stay = info.states.iter().all(|pair| {
        let (before, after) = (shape_of(&info.inputs, &pair.input), shape_of(&info.outputs, &pair.output));
        before.is_none_or(|before| {
            Some(&before) == after.as_ref() && before.iter().all(|dim| matches!(dim, Dimension::Fixed(_)))
        })
    });
    if stay && has_places { Caches::Placed } else { Caches::Appended }
}

/// How many tokens a program says that it has room for, by the methods that ExecuTorch's exporters give it.
pub(super) fn stated_context(session: &Session) -> Option<usize> {
    let told = |name: &str| {
        let function = session.function(name).ok().filter(|function| function.info().inputs.is_empty())?;
        let outputs = function.run(crate::Inputs::new()).ok()?;
        let number = outputs.values().first()?.as_tensor()?.item::<i64>().ok()?;
        usize::try_from(number).ok().filter(|number| *number > 0)
    };
    ["get_max_context_len", "get_max_seq_len"].into_iter().find_map(told)
}

/// A row of logits, or the only one.
fn last_row(logits: &Tensor, row: usize) -> Result<Vec<f32>> {
    let width = logits.shape().last().copied().unwrap_or(0);
    let rows = logits.len().checked_div(width).unwrap_or(0);
    if rows == 0 {
        return Err(Error::new(ErrorKind::Other, "the model gave no logits".to_owned()));
    }
    let row = row.min(rows - 1);
    let own = logits.reshape([rows, width])?.part(row..row + 1)?;
    match own.element_type() {
        ElementType::F16 => Ok(own.to_vec::<f16>()?.into_iter().map(f16::to_f32).collect()),
        ElementType::BF16 => Ok(own.to_vec::<bf16>()?.into_iter().map(bf16::to_f32).collect()),
        _ => own.to_vec::<f32>(),
    }
}

fn no_decoder(info: &FunctionInfo, why: &str) -> Error {
    let list = |all: &[ValueInfo]| all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let (inputs, outputs) = (list(&info.inputs), list(&info.outputs));
    let text = format!("'{}' is no decoder: {why}; it takes {inputs}, and gives {outputs}", info.name);
    Error::new(ErrorKind::Unsupported, text)
}

fn unknown(info: &FunctionInfo, input: &ValueInfo) -> Error {
    let why = format!(
        "what its input {input} is for is not known; decoders take tokens ('input_ids'), their places ('position_ids', 'input_pos'), a mask \
         ('attention_mask') and caches that outputs replace"
    );
    no_decoder(info, &why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_filled_up_where_nothing_keeps_what_fills_them() {
        for caches in [Caches::None, Caches::Placed] {
            assert_eq!(Count::of(Some(8), None, caches), Ok(Count::Exactly(8)));
        }
        assert_eq!(Count::of(Some(1), None, Caches::Appended), Ok(Count::Exactly(1)));
        let told = Count::of(Some(8), None, Caches::Appended).unwrap_err();
        assert!(told.contains("take 8 tokens"), "{told}");
        assert!(Count::of(Some(0), None, Caches::Placed).is_err());
        assert_eq!(Count::of(None, Some(100), Caches::Appended), Ok(Count::AtMost(100)));
        assert_eq!(Count::of(None, Some(usize::MAX), Caches::Placed), Ok(Count::AtMost(MOST)));
        assert_eq!(Count::of(None, None, Caches::Placed), Ok(Count::AtMost(MOST)));
    }
}
