//! Of `ai.onnx.ml` support vectors.

use halite_ops::{
    DType,
    expression::{Function, Operand, Scalar},
    reduce::ReduceKind,
};

use super::{
    Import, NodeView, Result,
    classic_coupling::coupled,
    classic_scores::{above, best, labels, lines, row, transformed},
};
use crate::{
    build::{Builder, budget::Cost},
    graph::TensorId,
};

pub(super) const CLASSIC: &[(&str, Import)] = &[("SVMClassifier", classifier), ("SVMRegressor", regressor)];

/// So many numbers of vectors are summed up while the model is compiled.
const MOST_FOLDED: usize = 1 << 26;

/// Probabilities of pairs are kept so far from 0 and 1.
const LEAST: f64 = 1e-7;

/// The sum of the kernel's values for each support vector, each with its coefficient.
fn regressor(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let x = lines(b, node)?;
    let coefficients = node.floats("coefficients")?.unwrap_or_default();
    let vectors = match node.int("n_supports", 0)? {
        0 => None,
        count => Some((count, node.floats("support_vectors")?.unwrap_or_default())),
    };
    let rho = node.floats("rho")?.unwrap_or_default().first().copied().unwrap_or_default();
    let values = match vectors {
        None => x,
        Some((count, vectors)) => {
            let count =
                u64::try_from(count).ok().filter(|count| (vectors.len() as u64).is_multiple_of(*count));
            let Some(count) = count.filter(|count| b.sizes(x)[1].agrees(vectors.len() as u64 / count)) else {
                let text = format!("{} numbers of support vectors for {}", vectors.len(), b.describe(&[x]));
                return Err(node.invalid(text));
            };
            let vectors = row(b, &[count, vectors.len() as u64 / count], vectors)?;
            kernel(b, node, x, vectors)?
        }
    };
    let count = coefficients.len() as u64;
    if !b.sizes(values)[1].agrees(count) || count == 0 {
        return Err(node.invalid(format!("{count} coefficients for {}", b.describe(&[values]))));
    }
    let coefficients = row(b, &[count, 1], coefficients)?;
    let sum = b.matmul(values, coefficients)?;
    let rho = b.float(DType::F32, f64::from(rho))?;
    let sum = b.binary(Function::Add, sum, rho)?;
    if node.flag("one_class", false)? {
        let inside = above(b, sum, 0.0)?;
        let (yes, no) = (b.float(DType::F32, 1.0)?, b.float(DType::F32, -1.0)?);
        return Ok(vec![b.select(inside, yes, no)?]);
    }
    Ok(vec![transformed(b, node, sum)?])
}

/// Two classes or more: by votes of all pairs of classes, or, without vectors, by scores of each.
fn classifier(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let labels = labels(node)?;
    if labels.len() < 2 {
        return Err(node.unsupported("support vectors of less than two classes"));
    }
    let counts = node.ints("vectors_per_class")?.unwrap_or_default();
    let [first, second] = ["prob_a", "prob_b"].map(|name| node.floats(name));
    let factors = [first?.unwrap_or_default(), second?.unwrap_or_default()];
    if counts.iter().all(|count| *count == 0) {
        return linear(b, node, &labels, !factors[0].is_empty());
    }
    let pairs = labels.len() * (labels.len() - 1) / 2;
    let scores = scores_of_pairs(b, node, &counts, labels.len())?;
    let label = voted(b, scores, &labels)?;
    let made = match &factors {
        [a, b_] if a.is_empty() && b_.is_empty() => {
            return Ok(vec![label, without_shares(b, node, scores, pairs)?]);
        }
        [a, b_] if a.len() >= pairs && b_.len() >= pairs => {
            let [a, added] = [a, b_].map(|all| row(b, &[1, pairs as u64], all[..pairs].iter().copied()));
            let (a, added) = (a?, added?);
            let probabilities = b.map(&[scores, a, added], DType::F32, |program, x| {
                let scaled = program.call(Function::Mul, &x[..2]);
                let moved = program.call(Function::Add, &[scaled, x[2]]);
                let turned = program.call(Function::Neg, &[moved]);
                let share = program.call(Function::Sigmoid, &[turned]);
                let [least, most] = [LEAST, 1.0 - LEAST].map(|bound| Operand::Constant(Scalar::Float(bound)));
                let share = program.call(Function::Max, &[share, least]);
                program.call(Function::Min, &[share, most])
            })?;
            coupled(b, probabilities, labels.len() as u64)?
        }
        _ => return Err(node.invalid(format!("'prob_a' and 'prob_b' are not for {pairs} pairs of classes"))),
    };
    Ok(vec![label, transformed(b, node, made)?])
}

/// Without vectors: a product for each class.
fn linear(b: &mut Builder, node: &NodeView<'_>, labels: &[i64], has_shares: bool) -> Result<Vec<TensorId>> {
    let x = lines(b, node)?;
    let coefficients = node.floats("coefficients")?.unwrap_or_default();
    let count = labels.len() as u64;
    let each = coefficients.len() as u64 / count;
    if !(coefficients.len() as u64).is_multiple_of(count) || !b.sizes(x)[1].agrees(each) {
        let text = format!("{} coefficients of {count} classes for {}", coefficients.len(), b.describe(&[x]));
        return Err(node.invalid(text));
    }
    let is_positive = coefficients.iter().all(|number| *number >= 0.0);
    let weights = row(b, &[count, each], coefficients)?;
    let made = b.product(x, weights, true)?;
    let rho = node.floats("rho")?.unwrap_or_default().first().copied().unwrap_or_default();
    let rho = b.float(DType::F32, rho.into())?;
    let scores = b.binary(Function::Add, made, rho)?;
    let mut label = best(b, scores, labels)?;
    if count == 2 && !has_shares {
        // So ONNX Runtime chooses of two: the second wherever a score is large.
        let most = b.reduce(ReduceKind::Max, scores, &[1], false)?;
        let second = b.ints_constant(&labels[1..])?;
        let is_large = match is_positive {
            true => {
                let half = b.float(DType::F32, 0.5)?;
                b.compare(Function::Ge, most, half)?
            }
            false => above(b, most, 0.0)?,
        };
        label = b.select(is_large, second, label)?;
    }
    Ok(vec![label, transformed(b, node, scores)?])
}

/// Where the vectors of each class begin, and where the last ones end.
fn starts(node: &NodeView<'_>, counts: &[i64]) -> Result<Vec<usize>> {
    let mut starts = vec![0_usize];
    for count in counts {
        let next = usize::try_from(*count).ok().and_then(|count| starts[starts.len() - 1].checked_add(count));
        starts.push(next.ok_or_else(|| node.invalid(format!("a class has {count} vectors")))?);
    }
    Ok(starts)
}

/// A score for each pair of classes: of the vectors of both, each with its coefficient against the other class.
fn scores_of_pairs(b: &mut Builder, node: &NodeView<'_>, counts: &[i64], classes: usize) -> Result<TensorId> {
    let x = lines(b, node)?;
    let coefficients = node.floats("coefficients")?.unwrap_or_default();
    let (vectors, added) = (node.floats("support_vectors")?, node.floats("rho")?);
    let (vectors, added) = (vectors.unwrap_or_default(), added.unwrap_or_default());
    let starts = starts(node, counts)?;
    let (total, pairs) = (starts[starts.len() - 1], classes * (classes - 1) / 2);
    let wanted = (classes - 1).checked_mul(total);
    if counts.len() != classes
        || wanted.is_none_or(|wanted| coefficients.len() < wanted)
        || added.len() < pairs
    {
        let text = format!("{} coefficients and {} offsets", coefficients.len(), added.len());
        return Err(
            node.invalid(format!("{text} for {total} vectors of {} classes of {classes}", counts.len()))
        );
    }
    let features = vectors.len() / total;
    if !vectors.len().is_multiple_of(total) || !b.sizes(x)[1].agrees(features as u64) {
        let text = format!("{} numbers of {total} support vectors for {}", vectors.len(), b.describe(&[x]));
        return Err(node.invalid(text));
    }
    let pairs_of = Pairs { starts: &starts, coefficients: &coefficients, classes };
    let is_linear = node.string("kernel_type", "LINEAR")? == "LINEAR";
    let made = if is_linear && (classes - 1).saturating_mul(vectors.len()) <= MOST_FOLDED {
        b.spend(Cost::Constant, (features as u64).saturating_mul(pairs as u64).saturating_mul(8))?;
        let weights = row(b, &[features as u64, pairs as u64], pairs_of.folded(&vectors, pairs))?;
        b.matmul(x, weights)?
    } else {
        let vectors = row(b, &[total as u64, features as u64], vectors)?;
        let values = kernel(b, node, x, vectors)?;
        b.spend(Cost::Constant, (total as u64).saturating_mul(pairs as u64).saturating_mul(4))?;
        let mut weights = vec![0.0; total * pairs];
        pairs_of.each(|pair, vector, weight| weights[vector * pairs + pair] = weight);
        let weights = row(b, &[total as u64, pairs as u64], weights)?;
        b.matmul(values, weights)?
    };
    let added = row(b, &[1, pairs as u64], added[..pairs].iter().copied())?;
    b.binary(Function::Add, made, added)
}

/// Coefficients of pairs of classes: a vector has one against each other class.
struct Pairs<'a> {
    starts: &'a [usize],
    coefficients: &'a [f32],
    classes: usize,
}

impl Pairs<'_> {
    /// Tells of each pair the vectors, with their coefficients.
    fn each(&self, mut tell: impl FnMut(usize, usize, f32)) {
        let total = self.starts[self.classes];
        let mut pair = 0;
        for first in 0..self.classes {
            for second in first + 1..self.classes {
                for (own, other) in [(first, second - 1), (second, first)] {
                    for vector in self.starts[own]..self.starts[own + 1] {
                        tell(pair, vector, self.coefficients[other * total + vector]);
                    }
                }
                pair += 1;
            }
        }
    }

    /// Without a kernel the sum of vectors is one vector for each pair. Coefficients are large and their sums small where classes are hard
    /// to tell apart: 32 bits would not do.
    fn folded(&self, vectors: &[f32], pairs: usize) -> Vec<f32> {
        let features = vectors.len() / self.starts[self.classes];
        let mut sums = vec![0.0_f64; features * pairs];
        self.each(|pair, vector, weight| {
            for (feature, value) in vectors[vector * features..][..features].iter().enumerate() {
                sums[feature * pairs + pair] += f64::from(weight) * f64::from(*value);
            }
        });
        sums.into_iter().map(|sum| sum as f32).collect()
    }
}

/// The class that wins most pairs: the first of a pair where its score is above 0.
fn voted(b: &mut Builder, scores: TensorId, labels: &[i64]) -> Result<TensorId> {
    let classes = labels.len();
    let pairs = (0..classes).flat_map(|first| (first + 1..classes).map(move |second| [first, second]));
    let count = classes as u64;
    b.spend(Cost::Constant, (count * (count - 1) / 2).saturating_mul(count).saturating_mul(4))?;
    let mut changes = vec![0.0; classes * (classes - 1) / 2 * classes];
    let mut all = vec![0.0; classes];
    for (pair, [first, second]) in pairs.enumerate() {
        changes[pair * classes + first] = 1.0;
        changes[pair * classes + second] = -1.0;
        all[second] += 1.0;
    }
    let wins = above(b, scores, 0.0)?;
    let wins = b.cast(wins, DType::F32)?;
    let changes = row(b, &[count * (count - 1) / 2, count], changes)?;
    let made = b.matmul(wins, changes)?;
    let all = row(b, &[1, count], all)?;
    let votes = b.binary(Function::Add, made, all)?;
    best(b, votes, labels)
}

/// Scores of pairs as they are; of one pair there are two, which add up to nothing, or to 1 where they are made to shares.
fn without_shares(b: &mut Builder, node: &NodeView<'_>, scores: TensorId, pairs: usize) -> Result<TensorId> {
    if pairs > 1 {
        return transformed(b, node, scores);
    }
    let name = node.string("post_transform", "NONE")?;
    let scores = if name == "LOGISTIC" { transformed(b, node, scores)? } else { scores };
    let other = if name == "NONE" {
        b.unary(Function::Neg, scores)?
    } else {
        let one = b.float(DType::F32, 1.0)?;
        b.binary(Function::Sub, one, scores)?
    };
    let both = b.concat(&[other, scores], 1)?;
    if name == "PROBIT" { transformed(b, node, both) } else { Ok(both) }
}

/// What a kernel makes of each line and vector.
fn kernel(b: &mut Builder, node: &NodeView<'_>, x: TensorId, vectors: TensorId) -> Result<TensorId> {
    let products = b.product(x, vectors, true)?;
    let numbers = node.floats("kernel_params")?.unwrap_or_default();
    let number = |place: usize| f64::from(numbers.get(place).copied().unwrap_or_default());
    let [gamma, added, degree] = [0, 1, 2].map(number);
    let kind = node.string("kernel_type", "LINEAR")?;
    if kind == "LINEAR" {
        return Ok(products);
    }
    let gamma = b.float(DType::F32, gamma)?;
    if kind == "RBF" {
        let own = b.reduce(ReduceKind::SumSquare, x, &[1], true)?;
        let others = b.reduce(ReduceKind::SumSquare, vectors, &[1], true)?;
        let others = b.swap_last(others)?;
        let none = b.float(DType::F32, 0.0)?;
        return b.map(&[products, own, others, gamma, none], DType::F32, |program, x| {
            let squares = program.call(Function::Add, &x[1..3]);
            let twice = program.call(Function::Add, &[x[0], x[0]]);
            let distance = program.call(Function::Sub, &[squares, twice]);
            let distance = program.call(Function::Max, &[distance, x[4]]);
            let scaled = program.call(Function::Mul, &[distance, x[3]]);
            let scaled = program.call(Function::Neg, &[scaled]);
            program.call(Function::Exp, &[scaled])
        });
    }
    let (added, degree) = (b.float(DType::F32, added)?, b.float(DType::F32, degree)?);
    let is_power = match kind.as_str() {
        "POLY" => true,
        "SIGMOID" => false,
        other => {
            return Err(node.invalid(format!("the kernel {other}; there are LINEAR, POLY, RBF and SIGMOID")));
        }
    };
    b.map(&[products, gamma, added, degree], DType::F32, |program, x| {
        let scaled = program.call(Function::Mul, &x[..2]);
        let moved = program.call(Function::Add, &[scaled, x[2]]);
        match is_power {
            true => program.call(Function::Pow, &[moved, x[3]]),
            false => program.call(Function::Tanh, &[moved]),
        }
    })
}
