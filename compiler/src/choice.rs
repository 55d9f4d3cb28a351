//! Functions of language models that choose the next token on the device: what comes behind the logits.
//!
//! A host that chooses waits for all logits, half a megabyte for each token, and the device waits for the host. Where the device
//! chooses, a token goes into the next call without coming by the host, which may hand over that call before this one is done.

use std::{collections::BTreeMap, fmt};

use halite_ops::{
    DType,
    expression::{self, Function, Operand, Scalar},
    reduce::ReduceKind,
};
use halite_sizes::Size;

use crate::{
    CompileError, Control, SourceLocation,
    build::{Builder, Range},
    graph::{Graph, OpenSizes, TensorId},
    signature::{Arity, Bindings, Dim, Signature},
};

/// Where nodes of a choice come from, which no node of a model says in these words.
const LOCATION: &str = "the choice of the next token";

/// Whether a node is one of a choice, which is computed with 32 bits whatever a caller wants of the model: sums of probabilities with 16 are
/// others.
pub(crate) fn is_of_choice(location: &SourceLocation) -> bool {
    location.as_str() == LOCATION
}

type Result<T, E = CompileError> = std::result::Result<T, E>;

/// Which function of a model gives the logits of the next token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenChoice {
    /// The function.
    pub function: String,
    /// Its output with the logits: floats whose last dimension is the vocabulary. The last row counts.
    pub logits: String,
    /// Sizes of dimensions that have only these where tokens are chosen: one token for a call.
    pub sizes: BTreeMap<String, u64>,
}

/// How a token is chosen: each is a function beside the one that gives logits. It takes and gives the same, but for the logits, in whose
/// place [`CHOSEN`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChoiceWay {
    /// The most likely one; of equal ones the first.
    Greedy,
    /// One of the most likely ones, by [`SAMPLING`].
    Sample,
}

/// The output of functions that choose: the number of the token, `i32[1]`; -1 where no logit is a number, or one is no number.
pub const CHOSEN: &str = "chosen";
/// The input of [`ChoiceWay::Sample`], `f32[5]`: how many of the most likely tokens count, at most [`MOST_CANDIDATES`]; which part of all
/// probability is enough, more than 0; how likely one is at least, beside the first; what logits are multiplied by, which is one over the
/// temperature; and a random number from 0 to 1 - 2^-23.
pub const SAMPLING: &str = "sampling";
/// Of so many tokens one may be drawn.
pub const MOST_CANDIDATES: u64 = 64;

impl ChoiceWay {
    /// All of them.
    pub const ALL: [ChoiceWay; 2] = [ChoiceWay::Greedy, ChoiceWay::Sample];

    /// The name of its function.
    pub fn name(self) -> &'static str {
        match self {
            ChoiceWay::Greedy => "greedy",
            ChoiceWay::Sample => "sample",
        }
    }

    /// The way that a function of this name chooses.
    pub fn of(function: &str) -> Option<ChoiceWay> {
        ChoiceWay::ALL.into_iter().find(|way| way.name() == function)
    }

    /// What it takes beside what the function with the logits takes.
    pub(crate) fn inputs(self) -> Option<Signature> {
        matches!(self, ChoiceWay::Sample).then(|| port(SAMPLING, DType::F32, 5))
    }
}

impl fmt::Display for ChoiceWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl TokenChoice {
    /// Checks that a model has what this names.
    pub(crate) fn check(&self, functions: &[String], outputs: &[Signature]) -> Result<()> {
        let wrong = |reason: String| Err(CompileError::Request(reason));
        if let Some(taken) = functions.iter().find(|name| ChoiceWay::of(name).is_some()) {
            return wrong(format!("the model has a function '{taken}' of its own"));
        }
        let names = || outputs.iter().map(|own| own.name.as_str()).collect::<Vec<_>>().join(", ");
        match outputs.iter().find(|own| own.name == self.logits) {
            None => wrong(format!("there is no output '{}'; there are: {}", self.logits, names())),
            Some(own) if own.arity != Arity::Tensor || own.element.is_some_and(|e| !e.is_float()) => {
                wrong(format!("the output {own} has no logits: these are floats"))
            }
            Some(_) => Ok(()),
        }
    }

    /// Inputs with the sizes that they have here.
    pub(crate) fn sized(&self, mut inputs: Vec<Signature>) -> Vec<Signature> {
        for dim in inputs.iter_mut().filter_map(|input| input.dims.as_mut()).flatten() {
            if let Dim::Symbol(name) = dim
                && let Some(size) = self.sizes.get(name)
            {
                *dim = Dim::Known(*size);
            }
        }
        inputs
    }

    /// Outputs with the token in the place of the logits.
    pub(crate) fn outputs(&self, outputs: Vec<Signature>) -> Vec<Signature> {
        let one = |own: Signature| if own.name == self.logits { port(CHOSEN, DType::I32, 1) } else { own };
        self.sized(outputs.into_iter().map(one).collect())
    }

    /// What the function with the logits is bound to.
    pub(crate) fn bindings(&self, bindings: &Bindings) -> Bindings {
        let mut all = bindings.clone();
        all.dims.extend(self.sizes.iter().map(|(name, size)| (name.clone(), *size)));
        all.shapes.remove(SAMPLING);
        all.values.remove(SAMPLING);
        all
    }

    /// Appends the choice to the graph of the function with the logits, of whose inputs and outputs the last `kept` are the program's own.
    pub(crate) fn append(
        &self,
        graph: Graph,
        kept: usize,
        way: ChoiceWay,
        control: &Control,
    ) -> Result<Graph> {
        let Some(place) = graph.outputs.iter().position(|port| port.name == self.logits) else {
            return Err(CompileError::Request(format!("there is no output '{}'", self.logits)));
        };
        let _entered = graph.open.as_ref().map(OpenSizes::enter);
        let logits = graph.outputs[place].tensor;
        let mut b = Builder::further(graph, control);
        b.at(SourceLocation::new(LOCATION));
        let logits = last_row(&mut b, logits)?;
        let chosen = match way {
            ChoiceWay::Greedy => greedy(&mut b, logits)?,
            ChoiceWay::Sample => {
                let sampling = b.input(SAMPLING, DType::F32.into(), &[5])?;
                let sampling = b.reshape(sampling, &[1, 5])?;
                sampled(&mut b, logits, sampling)?
            }
        };
        b.replace_output(place, CHOSEN, chosen);
        if way.inputs().is_some() {
            b.move_last_input(kept);
        }
        b.finish()
    }
}

fn port(name: &str, element: DType, size: u64) -> Signature {
    let dims = Some(vec![Dim::Known(size)]);
    Signature {
        name: name.to_owned(),
        arity: Arity::Tensor,
        is_optional: false,
        element: Some(element.into()),
        dims,
    }
}

fn number(value: f64) -> Operand {
    Operand::Constant(Scalar::Float(value))
}

/// The logits of the last row, `f32[1, vocabulary]`.
fn last_row(b: &mut Builder, logits: TensorId) -> Result<TensorId> {
    let sizes = b.sizes(logits).to_vec();
    let Some((width, rows)) = sizes.split_last() else {
        return Err(b.invalid("logits have a dimension for the vocabulary"));
    };
    let rows: Size = rows.iter().product();
    let all = b.reshape_to(logits, &[rows, *width])?;
    let range = |start: Size, count: Size| Range { start, step: 1, count };
    let last = b.slice(all, &[range(rows - 1, 1.into()), range(0.into(), *width)])?;
    b.cast(last, DType::F32)
}

/// The most likely token of each row of logits `f32[rows, vocabulary]`, `i32[rows]`: as [`ChoiceWay::Greedy`] chooses it.
pub(crate) fn most_likely(b: &mut Builder, logits: TensorId) -> Result<TensorId> {
    let logits = b.cast(logits, DType::F32)?;
    greedy(b, logits)
}

/// The place of the largest logit of each row.
fn greedy(b: &mut Builder, logits: TensorId) -> Result<TensorId> {
    let place = b.arg_reduce(logits, 1, false, false)?;
    // NaN is the largest of all.
    let largest = b.gather_elements(logits, place, 1)?;
    token(b, place, largest)
}

/// The place as a token, where the largest logit is a number.
fn token(b: &mut Builder, place: TensorId, largest: TensorId) -> Result<TensorId> {
    let chosen = b.map(&[place, largest], DType::I32, |p, x| {
        let place = p.cast(expression::Type::Of(DType::I32), x[0]);
        let least = p.call(Function::Gt, &[x[1], number(f64::from(f32::MIN))]);
        let most = p.call(Function::Le, &[x[1], number(f64::from(f32::MAX))]);
        let is_number = p.call(Function::And, &[least, most]);
        p.call(Function::Select, &[is_number, place, Operand::Constant(Scalar::Int(-1, DType::I32))])
    })?;
    let rows = b.sizes(chosen)[0];
    b.reshape_to(chosen, &[rows])
}

/// Numbers of [`SAMPLING`] for each row of logits, as tensors `f32[rows, 1]`.
struct Wanted {
    count: TensorId,
    part: TensorId,
    least: TensorId,
    factor: TensorId,
    random: TensorId,
}

impl Wanted {
    /// Those of `f32[rows, 5]`.
    fn read(b: &mut Builder, all: TensorId) -> Result<Wanted> {
        let rows = b.sizes(all)[0];
        let mut next = 0;
        let mut one = || {
            next += 1;
            b.slice(all, &[Range::all(rows), column(next - 1)])
        };
        Ok(Wanted { count: one()?, part: one()?, least: one()?, factor: one()?, random: one()? })
    }
}

/// One column.
fn column(place: u64) -> Range<Size> {
    Range { start: place.into(), step: 1, count: 1.into() }
}

/// A token for each row of logits `f32[rows, vocabulary]`, `i32[rows]`, each by its own [`SAMPLING`] of `f32[rows, 5]`: as
/// [`ChoiceWay::Sample`] chooses one.
pub(crate) fn drawn(b: &mut Builder, logits: TensorId, sampling: TensorId) -> Result<TensorId> {
    b.at(SourceLocation::new(LOCATION));
    let logits = b.cast(logits, DType::F32)?;
    sampled(b, logits, sampling)
}

/// Tokens drawn of the most likely ones, as `halite_text::Sampler` draws them on the host.
fn sampled(b: &mut Builder, logits: TensorId, sampling: TensorId) -> Result<TensorId> {
    let wanted = Wanted::read(b, sampling)?;
    let (rows, most) = (b.sizes(logits)[0], b.sizes(logits)[1]);
    let most = if most.is_constant() { most.exact().min(MOST_CANDIDATES) } else { MOST_CANDIDATES };
    let [values, places] = b.top_k(logits, 1, most, false)?;
    let first = b.slice(values, &[Range::all(rows), column(0)])?;
    let ranks: Vec<u8> = (0..most).flat_map(|place| (place as f32).to_le_bytes()).collect();
    let ranks = b.constant("ranks", DType::F32.into(), &[1, most], ranks.into())?;
    // How likely each is beside the first, of as many as count.
    let weights = b.map(&[values, first, ranks, wanted.count], DType::F32, |p, x| {
        let below = p.call(Function::Sub, &[x[0], x[1]]);
        let weight = p.call(Function::Exp, &[below]);
        let counts = p.call(Function::Lt, &[x[2], x[3]]);
        p.call(Function::Select, &[counts, weight, number(0.0)])
    })?;
    let sums = b.cumulative_sum(weights, 1, false, false)?;
    let end = |b: &mut Builder, sums| b.slice(sums, &[Range::all(rows), column(most - 1)]);
    let all = end(b, sums)?;
    // What is left, by the temperature.
    let ids = [values, first, weights, sums, all, wanted.part, wanted.least, wanted.factor];
    let drawn = b.map(&ids, DType::F32, |p, x| {
        let below = p.call(Function::Sub, &[x[0], x[1]]);
        let scaled = p.call(Function::Mul, &[below, x[7]]);
        let weight = p.call(Function::Exp, &[scaled]);
        let before = p.call(Function::Sub, &[x[3], x[2]]);
        let part = p.call(Function::Mul, &[x[4], x[5]]);
        let is_part = p.call(Function::Lt, &[before, part]);
        let is_likely = p.call(Function::Ge, &[x[2], x[6]]);
        let counts = p.call(Function::Gt, &[x[2], number(0.0)]);
        let both = p.call(Function::And, &[is_part, is_likely]);
        let kept = p.call(Function::And, &[both, counts]);
        p.call(Function::Select, &[kept, weight, number(0.0)])
    })?;
    // The first whose sum is beyond the random part of all. What is not left comes behind what is, and adds nothing, so that its sum is
    // that of all.
    let sums = b.cumulative_sum(drawn, 1, false, false)?;
    let all = end(b, sums)?;
    let passed = b.map(&[sums, all, wanted.random], DType::I64, |p, x| {
        let part = p.call(Function::Mul, &[x[1], x[2]]);
        let is_passed = p.call(Function::Le, &[x[0], part]);
        let count = |value| Operand::Constant(Scalar::Int(value, DType::I64));
        p.call(Function::Select, &[is_passed, count(1), count(0)])
    })?;
    let rank = b.reduce(ReduceKind::Sum, passed, &[1], true)?;
    let place = b.gather_elements(places, rank, 1)?;
    token(b, place, first)
}

#[cfg(test)]
mod tests {
    use halite_ops::Values;

    use super::*;

    /// A function that gives its input as logits, two rows of which the last counts.
    fn chosen(way: ChoiceWay, logits: &[f64], sampling: [f64; 5]) -> i64 {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[2, logits.len() as u64]).unwrap();
        let kept = b.input("kept", DType::F32.into(), &[1]).unwrap();
        b.output("before", kept);
        b.output("logits", x);
        let choice =
            TokenChoice { function: "main".into(), logits: "logits".into(), sizes: BTreeMap::default() };
        let graph = choice.append(b.finish().unwrap(), 1, way, &Control::default()).unwrap();
        let names: Vec<&str> = graph.inputs.iter().map(|port| port.name.as_str()).collect();
        assert_eq!(graph.outputs[1].name, CHOSEN);
        let rows = [&vec![9.0; logits.len()], logits].concat();
        let mut inputs = vec![Values::Float(rows)];
        if way == ChoiceWay::Sample {
            assert_eq!(names, ["x", SAMPLING, "kept"], "what a program keeps stays last");
            inputs.push(Values::Float(sampling.to_vec()));
        }
        inputs.push(Values::Float(vec![1.0]));
        graph.evaluate(&inputs).unwrap()[1].int(0)
    }

    #[test]
    fn sums_of_probabilities_have_32_bits_in_any_precision() {
        let mut b = Builder::new();
        let x = b.input("x", DType::F32.into(), &[1, 100]).unwrap();
        let x = b.map(&[x], DType::F32, |p, x| p.call(Function::Tanh, &[x[0]])).unwrap();
        b.output("logits", x);
        let choice =
            TokenChoice { function: "main".into(), logits: "logits".into(), sizes: BTreeMap::default() };
        let mut graph =
            choice.append(b.finish().unwrap(), 0, ChoiceWay::Sample, &Control::default()).unwrap();
        crate::passes::optimize_with(&mut graph, crate::Precision::F16, &Control::default(), &mut |_, _| ())
            .unwrap();
        let of_choice = graph.body.nodes.iter().filter(|node| is_of_choice(&node.location));
        let results = of_choice.flat_map(|node| &node.outputs).map(|id| graph.tensor(*id).element.storage());
        let results: Vec<DType> = results.collect();
        assert!(results.len() > 5 && !results.contains(&DType::F16), "{results:?}");
    }

    const ANY: [f64; 5] = [64.0, 2.0, 0.0, 1.0, 0.5];

    #[test]
    fn the_first_of_the_largest_is_taken_where_it_is_a_number() {
        let infinite = f64::NEG_INFINITY;
        for way in ChoiceWay::ALL {
            let one = |logits: &[f64]| chosen(way, logits, [1.0, 2.0, 0.0, 1.0, 0.9]);
            assert_eq!(one(&[1.0, 3.0, 2.0, 3.0, infinite]), 1);
            assert_eq!(one(&[infinite, infinite, -5.0]), 2);
            assert_eq!(one(&[1.0, f64::NAN, 2.0]), -1, "the host has to look");
            assert_eq!(one(&[infinite, infinite]), -1);
            assert_eq!(one(&[1.0, f64::INFINITY]), -1);
        }
    }

    #[test]
    fn each_is_drawn_as_often_as_it_is_likely_of_those_that_count() {
        let of = |parts: &[f64]| parts.iter().map(|part| part.ln()).collect::<Vec<f64>>();
        let logits = of(&[0.1, 0.4, 0.2, 0.3]);
        let drawn = |sampling: [f64; 4]| -> Vec<i64> {
            let [count, part, least, factor] = sampling;
            let all = (0..10).map(|tenth| (f64::from(tenth) + 0.5) / 10.0);
            all.map(|random| chosen(ChoiceWay::Sample, &logits, [count, part, least, factor, random]))
                .collect()
        };
        assert_eq!(drawn([64.0, 2.0, 0.0, 1.0]), [1, 1, 1, 1, 3, 3, 3, 2, 2, 0]);
        // Two: four to three.
        assert_eq!(drawn([2.0, 2.0, 0.0, 1.0]), [1, 1, 1, 1, 1, 1, 3, 3, 3, 3]);
        // The second reaches 0.6.
        assert_eq!(drawn([64.0, 0.6, 0.0, 1.0]), [1, 1, 1, 1, 1, 1, 3, 3, 3, 3]);
        assert_eq!(drawn([64.0, 1e-20, 0.0, 1.0]), [1; 10]);
        // At least 0.6 of 0.4: three and four tenths.
        assert_eq!(drawn([64.0, 2.0, 0.6, 1.0]), [1, 1, 1, 1, 1, 1, 3, 3, 3, 3]);
        // Squares: 16, 9, 4, 1 of 30.
        assert_eq!(drawn([64.0, 2.0, 0.0, 2.0]), [1, 1, 1, 1, 1, 3, 3, 3, 2, 2]);
        assert_eq!(
            chosen(ChoiceWay::Sample, &logits, [64.0, 2.0, 0.0, 1.0, 1.0 - f64::from(f32::EPSILON)]),
            0
        );
    }

    #[test]
    fn what_cannot_choose_is_told() {
        let output = |name: &str, element: DType| Signature {
            element: Some(element.into()),
            ..port(name, element, 4)
        };
        let choice = TokenChoice {
            function: "main".into(),
            logits: "logits".into(),
            sizes: [("n".to_owned(), 1)].into(),
        };
        let check = |functions: &[&str], outputs: &[Signature]| {
            let functions: Vec<String> = functions.iter().map(|name| (*name).to_owned()).collect();
            choice.check(&functions, outputs).map_err(|error| error.to_string())
        };
        assert_eq!(check(&["main"], &[output("logits", DType::F16)]), Ok(()));
        assert!(check(&["main", "sample"], &[]).unwrap_err().contains("'sample' of its own"));
        assert!(check(&["main"], &[output("y", DType::F32)]).unwrap_err().contains("there are: y"));
        assert!(check(&["main"], &[output("logits", DType::I32)]).unwrap_err().contains("floats"));
        let open = Signature {
            dims: Some(vec![Dim::Symbol("n".into()), Dim::Symbol("m".into())]),
            ..port("x", DType::I32, 1)
        };
        assert_eq!(choice.sized(vec![open])[0].dims, Some(vec![Dim::Known(1), Dim::Symbol("m".into())]));
        assert_eq!(chosen(ChoiceWay::Sample, &[0.0; 100], ANY), 32, "of 64 of them");
    }
}
