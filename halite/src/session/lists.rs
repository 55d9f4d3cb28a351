//! Lists of models: what they are compiled to has a tensor for each element, `NAME[0]`, `NAME[1]`, …, instead.

use std::{collections::BTreeMap, sync::Arc};

use halite_compiler::signature::{Arity, Signature};
use halite_runtime as runtime;

use super::started::Group;
use crate::{Error, ErrorKind, Result, Tensor, Value};

/// The dimensions of a tensor.
pub(crate) fn shape_of(value: &Value) -> Option<Vec<u64>> {
    Some(value.as_tensor()?.shape().iter().map(|size| *size as u64).collect())
}

/// The values that what is compiled takes: those of lists one by one, and none for what is not given.
pub(crate) fn one_by_one(values: &[Value]) -> impl Iterator<Item = &Value> {
    let all = values.iter().flat_map(|value| match value {
        Value::List(elements) => elements.as_slice(),
        one => std::slice::from_ref(one),
    });
    all.filter(|value| !matches!(value, Value::Null))
}

/// Adds the shapes of what lists have, as far as values of them are not bound.
pub(crate) fn add_shapes(inputs: &[Signature], values: &[Value], shapes: &mut BTreeMap<String, Vec<u64>>) {
    for (input, value) in inputs.iter().zip(values) {
        let (Arity::Sequence, Value::List(elements)) = (input.arity, value) else { continue };
        for (index, element) in elements.iter().enumerate() {
            shapes.extend(shape_of(element).map(|shape| (format!("{}[{index}]", input.name), shape)));
        }
    }
}

/// The place of the input to which a tensor of what is compiled belongs, and its value.
pub(crate) fn find<'a>(inputs: &[Signature], values: &'a [Value], name: &str) -> Option<(usize, &'a Tensor)> {
    let of = |(place, (input, value)): (usize, (&Signature, &'a Value))| {
        let rest = name.strip_prefix(input.name.as_str())?;
        let tensor = match value {
            Value::List(elements) => {
                let index = rest.strip_prefix('[')?.strip_suffix(']')?.parse::<usize>().ok()?;
                elements.get(index)?.as_tensor()
            }
            one if rest.is_empty() => one.as_tensor(),
            _ => None,
        };
        Some((place, tensor?))
    };
    inputs.iter().zip(values).enumerate().find_map(of)
}

/// What each output of a model is among the results of a function that it was compiled to; `None` where each is one of them.
pub(super) fn groups(outputs: &[Signature], function: &runtime::Function) -> Result<Option<Arc<[Group]>>> {
    let info = function.info();
    let names: Vec<&str> =
        (0..info.output_kinds().len()).map(|place| info.output_name(place).unwrap_or("")).collect();
    let same = names.len() == outputs.len();
    match matched(outputs, &names, true).or_else(|| matched(outputs, &names, false)) {
        Some(groups) if groups.iter().all(|group| *group == Group::One) => Ok(None),
        Some(groups) => Ok(Some(groups.into())),
        // Some front ends have no names, or others: each is one then.
        None if same && outputs.iter().all(|output| output.arity == Arity::Tensor) => Ok(None),
        None => {
            let text = format!(
                "what '{}' was compiled to gives {}, which are not the outputs of the model",
                function.name(),
                names.join(", ")
            );
            Err(Error::new(ErrorKind::Other, text))
        }
    }
}

/// Matches outputs with results by their names. Where a tensor has a name that a list's element would have, each tensor behind a list is
/// `there`, or may be missing.
fn matched(outputs: &[Signature], names: &[&str], there: bool) -> Option<Vec<Group>> {
    let (mut groups, mut at) = (Vec::with_capacity(outputs.len()), 0);
    let is_there = |output: &&Signature| there && output.arity == Arity::Tensor && !output.is_optional;
    let mut behind = outputs.iter().filter(is_there).count();
    for output in outputs {
        behind -= usize::from(is_there(&output));
        let own = names.get(at..names.len().saturating_sub(behind)).unwrap_or_default();
        let is_element = |(index, name): &(usize, &&str)| {
            let rest = name.strip_prefix(output.name.as_str());
            rest.and_then(|rest| rest.strip_prefix('[')?.strip_suffix(']')) == Some(&index.to_string()[..])
        };
        let group = match own.first() {
            Some(name) if *name == output.name => Group::One,
            _ => match own.iter().enumerate().take_while(is_element).count() {
                0 if output.arity == Arity::Tensor => Group::Absent,
                count => Group::List(count),
            },
        };
        at += match group {
            Group::One => 1,
            Group::List(count) => count,
            Group::Absent => 0,
        };
        groups.push(group);
    }
    (at == names.len()).then_some(groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(name: &str, arity: Arity, is_optional: bool) -> Signature {
        Signature { name: name.to_owned(), arity, is_optional, element: None, dims: None }
    }

    #[test]
    fn results_belong_to_the_outputs_of_their_names() {
        use Group::{Absent, List, One};
        let list = |name: &str| output(name, Arity::Sequence, false);
        let tensor = |name: &str| output(name, Arity::Tensor, false);
        let optional = |name: &str| output(name, Arity::Tensor, true);
        let of = |outputs: &[Signature], names: &[&str]| {
            matched(outputs, names, true).or_else(|| matched(outputs, names, false))
        };
        let both = [list("y"), tensor("w")];
        assert_eq!(of(&both, &["y[0]", "y[1]", "w"]).unwrap(), [List(2), One]);
        assert_eq!(of(&both, &["w"]).unwrap(), [List(0), One]);
        assert_eq!(of(&both, &["y[1]", "w"]), None);
        assert_eq!(of(&[tensor("w"), list("y")], &["w", "y[0]"]).unwrap(), [One, List(1)]);
        assert_eq!(of(&[optional("o"), tensor("w")], &["w"]).unwrap(), [Absent, One]);
        assert_eq!(of(&[optional("o"), tensor("w")], &["o", "w"]).unwrap(), [One, One]);
        // Names that look like elements of a list.
        let alike = [list("y"), tensor("y[0]"), list("z")];
        assert_eq!(of(&alike, &["y[0]"]).unwrap(), [List(0), One, List(0)]);
        assert_eq!(of(&alike, &["y[0]", "y[0]", "z[0]"]).unwrap()[..2], [List(1), One]);
        // A file may say nothing of the kind of an output, and name one twice.
        assert_eq!(of(&[tensor("y"), tensor("w")], &["y[0]", "y[1]", "w"]).unwrap(), [List(2), One]);
        assert_eq!(of(&[list("y"), list("y")], &["y[0]", "y[1]", "y[0]"]).unwrap(), [List(2), List(1)]);
        assert_eq!(of(&[tensor("a")], &["b"]), None);
    }
}
