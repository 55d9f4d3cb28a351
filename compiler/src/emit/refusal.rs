//! What a caller is told whose inputs no version of a function is for.

use std::collections::BTreeSet;

use halite_sizes::Size;

use super::call::describe;
use crate::{
    Function,
    graph::{Graph, Port},
};

/// Most versions, or sizes of a dimension, that a message lists one by one.
const MOST_LISTED: usize = 16;
/// Most bytes of a bound value that a message shows.
const MOST_SHOWN: usize = 64;

/// The message: the versions, or the ranges of their sizes where they are many.
pub fn refusal(function: &Function) -> String {
    let known = if function.versions.len() > MOST_LISTED { ranges(function) } else { each(function) };
    let left_out = function.left_out.as_ref();
    let left_out = left_out.map_or_else(String::new, |sizes| format!("; not for all of them: {sizes}"));
    format!(
        "'{}' was not compiled for inputs of these sizes; it was compiled for: {known}{left_out}",
        function.name
    )
}

fn each(function: &Function) -> String {
    let shape = |graph: &Graph, index: usize, port: &Port| {
        let sizes = graph.port_sizes(port);
        let between = if sizes.iter().all(|size| size.is_constant()) { "x" } else { " x " };
        let dims: Vec<_> = sizes.iter().map(|size| range(*size)).collect();
        format!("{} [{}]{}", describe(port, index), dims.join(between), value(port))
    };
    let mut listed: Vec<String> = Vec::new();
    for graph in &function.versions {
        // What is known of open sizes is in their trace.
        let _entered = graph.open.as_ref().map(|open| open.trace.enter());
        let inputs = graph.inputs.iter().enumerate();
        let text = inputs.map(|(index, port)| shape(graph, index, port)).collect::<Vec<_>>().join(", ");
        if !listed.contains(&text) {
            listed.push(text);
        }
    }
    listed.join("; or ")
}

/// A size for people, an open one as all that it can be: `3..16`.
fn range(size: Size) -> String {
    let (least, most) = (size.least(), size.most());
    match (least == most, u32::try_from(most)) {
        (true, _) => least.to_string(),
        (false, Ok(most)) => format!("{least}..{most}"),
        (false, Err(_)) => format!("{least} and more"),
    }
}

fn value(port: &Port) -> String {
    port.value.as_ref().map_or_else(String::new, |bytes| {
        let shown: Vec<_> = bytes.iter().take(MOST_SHOWN).map(|byte| format!("{byte:02x}")).collect();
        format!(" with the bytes {}", shown.join(" "))
    })
}

/// What each input can be. Not every combination of it need be there.
fn ranges(function: &Function) -> String {
    let first = &function.versions[0];
    let input = |(index, port): (usize, &Port)| {
        let dims = |graph: &Graph| numbers(graph.port_sizes(&graph.inputs[index]));
        let rank = dims(first).len();
        let shapes: Vec<Vec<u64>> = function.versions.iter().map(dims).collect();
        if shapes.iter().any(|dims| dims.len() != rank) {
            return format!("{} of several numbers of dimensions", describe(port, index));
        }
        let sizes = (0..rank).map(|axis| listed(&shapes.iter().map(|dims| dims[axis]).collect()));
        format!("{} [{}]", describe(port, index), sizes.collect::<Vec<_>>().join(" x "))
    };
    let inputs: Vec<String> = first.inputs.iter().enumerate().map(input).collect();
    format!("{} ({} combinations of sizes)", inputs.join(", "), function.versions.len())
}

fn numbers(sizes: &[Size]) -> Vec<u64> {
    sizes.iter().map(|size| size.value()).collect()
}

/// Sizes for people: `1..128`, `16|64`.
fn listed(sizes: &BTreeSet<u64>) -> String {
    let (Some(first), Some(last)) = (sizes.first(), sizes.last()) else { return String::new() };
    if sizes.len() > 2 && last - first == sizes.len() as u64 - 1 {
        return format!("{first}..{last}");
    }
    let mut parts: Vec<String> = sizes.iter().take(MOST_LISTED).map(ToString::to_string).collect();
    if sizes.len() > MOST_LISTED {
        parts.push(format!("… {last}"));
    }
    parts.join("|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_listed_as_ranges_where_they_are() {
        assert_eq!(listed(&(1..=128).collect()), "1..128");
        assert_eq!(listed(&[16, 64].into()), "16|64");
        assert_eq!(listed(&[3].into()), "3");
        assert!(listed(&(0..40).map(|n| n * 2).collect()).ends_with("|28|30|… 78"));
    }
}
