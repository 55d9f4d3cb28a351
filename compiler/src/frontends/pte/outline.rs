//! What is in a program's file: its methods, their delegates, and what is between them.

use halite_formats::pte::{Delegate, Plan, Program, Value};

use super::{
    back_ends,
    names::{delegate_name, instruction_location},
    ops,
    outside::{Method, Step},
};
use crate::frontends::outline::{DataOutline, FunctionOutline, Outline, PartOutline, RunsOn};

/// What a part of a method that no delegate does is called.
const BETWEEN: &str = "outside of delegates";

/// What is in a program.
pub(super) fn of(program: &Program) -> Outline {
    let data = |external: bool| {
        move |(name, bytes): (&String, &bytes::Bytes)| DataOutline {
            name: name.clone(),
            bytes: bytes.len() as u64,
            external,
        }
    };
    Outline {
        functions: program.plans.iter().map(|plan| method(program, plan)).collect(),
        data: program.named.iter().map(data(false)).chain(program.external.iter().map(data(true))).collect(),
    }
}

fn method(program: &Program, plan: &Plan) -> FunctionOutline {
    let mut parts: Vec<PartOutline> = Vec::new();
    for chain in &plan.chains {
        let method = Method::new(plan, chain);
        for (index, step) in method.steps.iter().enumerate() {
            match step {
                Step::Delegate(index, _) => parts.push(delegate(*index, plan)),
                Step::Call(operator, call) => {
                    let (name, inside) = (&plan.operators[*operator], call.name.as_str());
                    if parts.last().is_none_or(|part| part.name != BETWEEN) {
                        parts.push(PartOutline::new(BETWEEN, 0));
                    }
                    let place = instruction_location(index, plan);
                    let refused =
                        (!ops::is_known_outside(inside)).then(|| ops::unknown_outside(name, inside, place));
                    let runs = match refused {
                        Some(_) => RunsOn::Refused,
                        None if ops::is_number(inside) => RunsOn::Compiler,
                        None => RunsOn::Device,
                    };
                    let reason = refused.and_then(|operator| operator.reason);
                    parts.last_mut().expect("there is one").count(name, runs, reason);
                }
                Step::Move { .. } | Step::Jump { .. } | Step::Nothing => {}
            }
        }
    }
    let bytes = |value: &Value| match value {
        Value::Tensor(tensor) => program.constant(tensor).ok().flatten().map_or(0, |data| data.len() as u64),
        _ => 0,
    };
    let constants = plan.values.iter().map(bytes).fold(0, u64::saturating_add);
    FunctionOutline { name: plan.name.clone(), parts, memory: plan.memory.clone(), constants }
}

fn delegate(index: usize, plan: &Plan) -> PartOutline {
    let Delegate { id, data, specs } = &plan.delegates[index];
    let mut part = PartOutline::new(format!("delegate {index} ({id})"), data.len() as u64);
    part.options = specs.iter().map(|(key, value)| (key.clone(), option(value))).collect();
    let Some(back_end) = back_ends::find(id) else {
        part.problem = back_ends::unknown(id, crate::SourceLocation::default()).reason;
        return part;
    };
    match back_end.read(data) {
        Ok(graph) => {
            let refused = graph.unsupported(&delegate_name(index, plan));
            for name in graph.operators() {
                let known = refused.iter().find(|operator| operator.name == name);
                let runs = if known.is_some() { RunsOn::Refused } else { RunsOn::Device };
                part.count(name, runs, known.and_then(|operator| operator.reason.clone()));
            }
        }
        Err(problem) => part.problem = Some(problem),
    }
    part
}

/// A value of an option: back ends write numbers as little-endian bytes, and texts.
fn option(value: &[u8]) -> String {
    let number = || {
        let mut bytes = [0; 8];
        bytes.get_mut(..value.len())?.copy_from_slice(value);
        [1, 4, 8].contains(&value.len()).then(|| u64::from_le_bytes(bytes).to_string())
    };
    match std::str::from_utf8(value) {
        Ok(text) if !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() || c == ' ') => {
            text.to_owned()
        }
        _ => number().unwrap_or_else(|| format!("{} bytes", value.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::option;

    #[test]
    fn options_are_told_as_they_are_written() {
        let all: [(&[u8], &str); 5] = [
            (&[1], "1"),
            (&[0, 64, 0, 0], "16384"),
            (b"fp16", "fp16"),
            (&[0; 9], "9 bytes"),
            (&[], "0 bytes"),
        ];
        for (value, wanted) in all {
            assert_eq!(option(value), wanted);
        }
    }
}
