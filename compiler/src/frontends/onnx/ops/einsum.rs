//! Einstein sums: a product of tensors whose dimensions have labels, summed over the labels that the result lacks. They
//! become products of matrices, two operands at a time, from the left.

use std::collections::BTreeMap;

use halite_ops::{expression::Function, reduce::ReduceKind};
use halite_sizes::Size;

use super::{Import, NodeView, Result};
use crate::{build::Builder, graph::TensorId};

pub(super) const OPS: &[(&str, Import)] = &[("Einsum", einsum)];

/// A label: a letter, or a number from the end for a dimension of the ellipsis (as a character that is no letter).
type Label = char;

/// An operand, and the label of each of its dimensions.
#[derive(Clone, Debug)]
struct Term {
    tensor: TensorId,
    labels: Vec<Label>,
}

/// The label of a dimension of the ellipsis, counted from its end.
fn ellipsis(from_end: usize) -> Label {
    char::from_u32(0xE000 + from_end as u32).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn einsum(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let equation: String = node.string("equation", "")?.chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = match equation.split_once("->") {
        Some((left, right)) => (left, Some(right)),
        None => (equation.as_str(), None),
    };
    let operands = node.variadic()?;
    let texts: Vec<&str> = left.split(',').collect();
    if texts.len() != operands.len() {
        return Err(node.invalid(format!("'{equation}' is for {} operands", texts.len())));
    }
    let mut terms = Vec::new();
    for (text, tensor) in texts.iter().zip(operands) {
        let labels = labels(node, text, b.rank(tensor))?;
        terms.push(diagonals(b, Term { tensor, labels })?);
    }
    let sizes = sizes(b, node, &terms)?;
    let output = output_labels(node, right, &terms)?;
    let last = terms.len() - 1;
    let mut result = terms[0].clone();
    for index in 0..=last {
        // Labels that are needed later on.
        let later: Vec<Label> = terms[(index + 1).min(terms.len())..]
            .iter()
            .flat_map(|term| term.labels.iter().copied())
            .chain(output.iter().copied())
            .collect();
        result = match index {
            0 => summed(b, result, &later)?,
            _ => product(b, result, terms[index].clone(), &later, &sizes)?,
        };
    }
    Ok(vec![ordered(b, result, &output, &sizes)?])
}

/// The labels of an operand of so many dimensions.
fn labels(node: &NodeView<'_>, text: &str, rank: usize) -> Result<Vec<Label>> {
    let (before, behind) = text.split_once("...").unwrap_or((text, ""));
    let letters = before.chars().chain(behind.chars());
    if let Some(other) = letters.clone().find(|c| !c.is_ascii_alphabetic()) {
        return Err(node.invalid(format!("'{other}' is no label, in '{text}'")));
    }
    let named = letters.count();
    let open = rank.checked_sub(named).filter(|open| *open == 0 || text.contains("..."));
    let open = open.ok_or_else(|| node.invalid(format!("'{text}' is for {named} dimensions, not {rank}")))?;
    let middle = (0..open).rev().map(ellipsis);
    Ok(before.chars().chain(middle).chain(behind.chars()).collect())
}

/// Repeated labels of an operand mean its diagonal.
fn diagonals(b: &mut Builder, mut term: Term) -> Result<Term> {
    let mut second = 0;
    while second < term.labels.len() {
        match term.labels[..second].iter().position(|label| *label == term.labels[second]) {
            Some(first) => {
                term.tensor = b.diagonal(term.tensor, first, second)?;
                term.labels.remove(second);
            }
            None => second += 1,
        }
    }
    Ok(term)
}

/// The size of each label; 1 gives way to others, as broadcasting has it.
fn sizes(b: &Builder, node: &NodeView<'_>, terms: &[Term]) -> Result<BTreeMap<Label, Size>> {
    let mut sizes = BTreeMap::new();
    for term in terms {
        for (label, size) in term.labels.iter().zip(b.sizes(term.tensor)) {
            let known = sizes.entry(*label).or_insert(*size);
            if *known == 1 {
                *known = *size;
            } else if *size != 1 && !known.agrees(size) {
                return Err(node.invalid(format!("a label has the sizes {known} and {size}")));
            }
        }
    }
    Ok(sizes)
}

/// The labels of the result: given, or the ellipsis and all that are there once, by the alphabet.
fn output_labels(node: &NodeView<'_>, right: Option<&str>, terms: &[Term]) -> Result<Vec<Label>> {
    let mut counts: BTreeMap<Label, usize> = BTreeMap::new();
    for label in terms.iter().flat_map(|term| &term.labels) {
        *counts.entry(*label).or_default() += 1;
    }
    let mut open: Vec<Label> = counts.keys().copied().filter(|label| !label.is_ascii()).collect();
    open.reverse();
    let Some(text) = right else {
        let once = counts.iter().filter(|(label, count)| label.is_ascii() && **count == 1);
        return Ok(open.into_iter().chain(once.map(|(label, _)| *label)).collect());
    };
    let rank = text.replace("...", "").chars().count() + if text.contains("...") { open.len() } else { 0 };
    let labels = labels(node, text, rank)?;
    let mut sorted = labels.clone();
    sorted.sort_unstable();
    sorted.dedup();
    if sorted.len() != labels.len() || labels.iter().any(|label| !counts.contains_key(label)) {
        return Err(node.invalid(format!("'{text}' has a label twice, or one that no operand has")));
    }
    Ok(labels)
}

/// Without the labels that nobody needs.
fn summed(b: &mut Builder, term: Term, needed: &[Label]) -> Result<Term> {
    let axes: Vec<usize> =
        (0..term.labels.len()).filter(|axis| !needed.contains(&term.labels[*axis])).collect();
    if axes.is_empty() {
        return Ok(term);
    }
    let tensor = b.reduce(ReduceKind::Sum, term.tensor, &axes, false)?;
    let labels = term.labels.into_iter().filter(|label| needed.contains(label)).collect();
    Ok(Term { tensor, labels })
}

/// A term with exactly these labels, in this order, all of them in their size.
fn ordered(b: &mut Builder, term: Term, labels: &[Label], sizes: &BTreeMap<Label, Size>) -> Result<TensorId> {
    let place = |label: &Label| term.labels.iter().position(|own| own == label);
    let order: Vec<usize> = labels.iter().filter_map(place).collect();
    let tensor = b.transpose(term.tensor, &order)?;
    let dims: Vec<Size> = labels.iter().map(|label| sizes[label]).collect();
    b.expand_to(tensor, &dims)
}

/// The product of two terms, summed over the labels that only they have.
fn product(
    b: &mut Builder,
    left: Term,
    right: Term,
    later: &[Label],
    sizes: &BTreeMap<Label, Size>,
) -> Result<Term> {
    let with = |needed: &[Label], other: &Term| [needed, &other.labels].concat();
    let left = {
        let needed = with(later, &right);
        summed(b, left, &needed)?
    };
    let right = {
        let needed = with(later, &left);
        summed(b, right, &needed)?
    };
    let (mut batch, mut contracted, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    for label in &left.labels {
        match (right.labels.contains(label), later.contains(label)) {
            (true, true) => batch.push(*label),
            (true, false) => contracted.push(*label),
            (false, _) => rows.push(*label),
        }
    }
    let columns: Vec<Label> =
        right.labels.iter().copied().filter(|label| !left.labels.contains(label)).collect();
    let count = |labels: &[Label]| labels.iter().map(|label| sizes[label]).product::<Size>();
    let [batches, m, k, n] = [&batch, &rows, &contracted, &columns].map(|labels| count(labels));
    let left = ordered(b, left, &[&batch[..], &rows, &contracted].concat(), sizes)?;
    let right = ordered(b, right, &[&batch[..], &contracted, &columns].concat(), sizes)?;
    let labels = [&batch[..], &rows, &columns].concat();
    let dims: Vec<Size> = labels.iter().map(|label| sizes[label]).collect();
    let one = Size::constant(1);
    let tensor = if contracted.is_empty() {
        let left = b.reshape_to(left, &[batches, m, one])?;
        let right = b.reshape_to(right, &[batches, one, n])?;
        b.binary(Function::Mul, left, right)?
    } else {
        let left = b.reshape_to(left, &[batches, m, k])?;
        let right = b.reshape_to(right, &[batches, k, n])?;
        b.matmul(left, right)?
    };
    Ok(Term { tensor: b.reshape_to(tensor, &dims)?, labels })
}
