//! Which constants of a Vulkan delegate's graph are kept from call to call: those that calls change where they are, and those
//! whose new elements the graph gives without that the method takes them.

use std::collections::{HashMap, HashSet};

use halite_formats::pte::{VulkanGraph, VulkanTensor, VulkanValue};

use super::ops;

/// What brings a constant onto the device.
pub(super) const PREPACK: &str = "et_vk.prepack.default";

/// A constant that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mutation {
    /// The value of the constant.
    pub(super) constant: usize,
    /// The value that calls read: the constant, or what it becomes on the device.
    pub(super) begin: usize,
    /// The value that has the new elements when all calls were run.
    pub(super) end: usize,
    /// Whether rows are appended to it.
    pub(super) appended: bool,
}

/// The constants that a graph keeps, of which the method takes the last `given` outputs.
///
/// # Errors
/// Says which output may be the new value of several constants, or of none.
pub(super) fn of(graph: &VulkanGraph, given: usize) -> Result<Vec<Mutation>, String> {
    let mut found = in_place(graph);
    let extra = graph.outputs.len().saturating_sub(given);
    for output in &graph.outputs[..extra] {
        if found.iter().any(|mutation| mutation.end == *output) {
            continue;
        }
        let (constant, begin) = origin(graph, *output, &found)?;
        found.push(Mutation { constant, begin, end: *output, appended: false });
    }
    Ok(found)
}

fn constant(graph: &VulkanGraph, id: usize) -> Option<&VulkanTensor> {
    match graph.values.get(id) {
        Some(VulkanValue::Tensor(tensor)) if tensor.constant.is_some() => Some(tensor),
        _ => None,
    }
}

fn items(graph: &VulkanGraph, id: usize) -> &[usize] {
    match graph.values.get(id) {
        Some(VulkanValue::List(items)) => items,
        _ => &[],
    }
}

/// For each value that is a constant on the device, the constant.
fn prepacked(graph: &VulkanGraph) -> HashMap<usize, usize> {
    let calls = graph.calls.iter().filter(|call| call.name == PREPACK);
    let pair = |args: &[usize]| match args {
        [from, .., to] if constant(graph, *from).is_some() => Some((*to, *from)),
        _ => None,
    };
    calls.filter_map(|call| pair(&call.args)).collect()
}

/// What calls change where it is.
fn in_place(graph: &VulkanGraph) -> Vec<Mutation> {
    let packed = prepacked(graph);
    let mut defined: HashSet<usize> = graph.inputs.iter().copied().collect();
    let mut found: Vec<Mutation> = Vec::new();
    for call in &graph.calls {
        let Some((result, before)) = call.args.split_last() else { continue };
        let appended: Vec<usize> =
            ops::changed(&call.name).iter().filter_map(|i| before.get(*i).copied()).collect();
        let results = std::iter::once(result).chain(items(graph, *result));
        let again: Vec<usize> = results.clone().copied().filter(|id| defined.contains(id)).collect();
        for (id, appended) in appended.iter().map(|id| (*id, true)).chain(again.iter().map(|id| (*id, false)))
        {
            let source = packed.get(&id).copied().or_else(|| constant(graph, id).map(|_| id));
            let Some(constant) = source else { continue };
            match found.iter_mut().find(|mutation| mutation.begin == id) {
                Some(mutation) => mutation.appended |= appended,
                None => found.push(Mutation { constant, begin: id, end: id, appended }),
            }
        }
        defined.extend(results);
    }
    found
}

/// The constant whose new value an output is: the nearest of its type and size that it is computed of.
fn origin(graph: &VulkanGraph, output: usize, taken: &[Mutation]) -> Result<(usize, usize), String> {
    let wrong = |problem: &str| {
        Err(format!(
            "value {output}, which the graph gives and the method does not take, is the new value of {problem}"
        ))
    };
    let Some(VulkanValue::Tensor(wanted)) = graph.values.get(output) else { return wrong("no tensor") };
    let packed = prepacked(graph);
    let mut made: HashMap<usize, &[usize]> = HashMap::new();
    for call in &graph.calls {
        let Some((result, before)) = call.args.split_last() else { continue };
        made.extend(std::iter::once(result).chain(items(graph, *result)).map(|id| (*id, before)));
    }
    let fits = |id: usize| {
        let own = constant(graph, id).filter(|own| own.dims == wanted.dims && own.staging == wanted.staging);
        own.is_some() && taken.iter().all(|mutation| mutation.constant != id)
    };
    let (mut seen, mut level) = (HashSet::from([output]), vec![output]);
    while !level.is_empty() {
        let next = level.iter().flat_map(|id| made.get(id).copied().unwrap_or_default());
        let next: Vec<usize> =
            next.flat_map(|id| std::iter::once(id).chain(items(graph, *id))).copied().collect();
        level = next.into_iter().filter(|id| seen.insert(*id)).collect();
        let near = level.iter().filter_map(|id| Some((*packed.get(id)?, *id)));
        let near: Vec<(usize, usize)> = near.filter(|(constant, _)| fits(*constant)).collect();
        match near[..] {
            [] => {}
            [only] => return Ok(only),
            _ => return wrong("one of several constants; which, the file does not tell"),
        }
    }
    wrong("no constant of its type and size")
}
