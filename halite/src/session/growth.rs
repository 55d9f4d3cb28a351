//! Which sizes of a function's inputs grow from call to call, as those of a decoder's caches do.

use std::collections::{BTreeMap, BTreeSet};

use halite_compiler::signature::{Dim, Signature, open_name};

/// The dimensions that grow by every call, by their names among open ones: those of `caches`, and those that count the rows of these
/// and of this call. Without caches that names show, those that grew by the same `step` twice, if another input with open sizes kept
/// them: where all grow, as the inputs of an encoder, kernels for few rows are not those for many.
pub(super) fn growing(
    inputs: &[Signature],
    caches: &BTreeSet<String>,
    shapes: &[Vec<u64>],
    step: Option<&[Vec<u64>]>,
) -> BTreeSet<String> {
    let sizes = open_sizes(inputs, shapes);
    if caches.is_empty() {
        let stays = |(input, step): (&Signature, &Vec<u64>)| {
            (0..step.len()).any(|axis| is_open(input, axis)) && step.iter().all(|more| *more == 0)
        };
        let step = step.filter(|step| inputs.iter().zip(*step).any(stays));
        let grew = step.map(|step| open_sizes(inputs, step)).unwrap_or_default();
        return grew.into_iter().filter(|(_, more)| *more > 0).map(|(name, _)| name).collect();
    }
    let held = sizes.iter().filter(|(name, _)| caches.contains(name)).map(|(_, size)| *size);
    let Some(held) = held.max() else { return BTreeSet::new() };
    let is_of_call = |rows: u64| shapes.iter().flatten().any(|size| *size == rows);
    let counts_all = |size: u64| size.checked_sub(held).is_some_and(|rows| rows > 0 && is_of_call(rows));
    let grows = |(name, size): &(String, u64)| caches.contains(name) || counts_all(*size);
    sizes.into_iter().filter(grows).map(|(name, _)| name).collect()
}

/// The sizes of the call behind one with these: a row for each sequence, and caches that have those of this call too. `caches` names their
/// dimensions, and `totals` those of the outputs that replace them; where inputs have none of these, masks tell how many rows there
/// are in all. None where nothing shows which sizes count rows. A guess: whoever prepares for such a call may do so in vain.
pub(super) fn stepped(
    inputs: &[Signature],
    (caches, totals): (&BTreeSet<String>, &BTreeSet<String>),
    shapes: &[Vec<u64>],
) -> Option<Vec<Vec<u64>>> {
    let held = open_sizes(inputs, shapes).into_iter().filter(|(name, _)| caches.contains(name));
    let held = held.map(|(_, size)| size).max()?;
    let is_cache = |input: &Signature| (0..rank(input)).any(|axis| caches.contains(&open_name(input, axis)));
    let own =
        || inputs.iter().zip(shapes).filter(|(input, _)| !is_cache(input) && !input.name.contains("encoder"));
    let counts_all = |input: &Signature, axis: usize| {
        totals.contains(&open_name(input, axis)) || input.name.contains("mask") && axis + 1 == rank(input)
    };
    let all = own().find_map(|(input, dims)| {
        let axis = (1..dims.len()).find(|axis| is_open(input, *axis) && counts_all(input, *axis))?;
        Some(dims[axis])
    })?;
    let rows = all.checked_sub(held).filter(|rows| *rows > 0)?;
    // A cache of one row has a version of its own: the call behind that one is looked at.
    let then = all.max(2);
    let mut next: BTreeMap<String, u64> = caches.iter().map(|name| (name.clone(), then)).collect();
    for (input, dims) in own() {
        for axis in (1..dims.len()).filter(|axis| is_open(input, *axis)) {
            let size = if counts_all(input, axis) && dims[axis] == all {
                then + 1
            } else if dims[axis] == rows {
                1
            } else {
                continue;
            };
            next.entry(open_name(input, axis)).or_insert(size);
        }
    }
    let of = |(input, dims): (&Signature, &Vec<u64>)| {
        let size = |(axis, size): (usize, &u64)| next.get(&open_name(input, axis)).copied().unwrap_or(*size);
        dims.iter().enumerate().map(size).collect()
    };
    Some(inputs.iter().zip(shapes).map(of).collect())
}

/// How many dimensions an input has, as far as the model says.
fn rank(input: &Signature) -> usize {
    input.dims.as_ref().map_or(0, Vec::len)
}

/// The open dimensions and their numbers.
fn open_sizes(inputs: &[Signature], shapes: &[Vec<u64>]) -> Vec<(String, u64)> {
    let of = |(input, sizes): (&Signature, &Vec<u64>)| -> Vec<(String, u64)> {
        let open = sizes.iter().enumerate().filter(|(axis, _)| is_open(input, *axis));
        open.map(|(axis, size)| (open_name(input, axis), *size)).collect()
    };
    inputs.iter().zip(shapes).flat_map(of).collect()
}

/// Whether a dimension may have other sizes.
fn is_open(input: &Signature, axis: usize) -> bool {
    input.dims.as_ref().is_none_or(|dims| !matches!(dims.get(axis), Some(Dim::Known(_))))
}

#[cfg(test)]
mod tests {
    use halite_compiler::signature::Arity;

    use super::*;

    fn input(name: &str, dims: &[&str]) -> Signature {
        let dim = |text: &&str| text.parse().map_or_else(|_| Dim::Symbol((*text).to_owned()), Dim::Known);
        let dims = Some(dims.iter().map(dim).collect());
        Signature { name: name.to_owned(), arity: Arity::Tensor, is_optional: false, element: None, dims }
    }

    fn decoder() -> [Signature; 3] {
        [
            input("ids", &["batch", "length"]),
            input("mask", &["batch", "total"]),
            input("past", &["batch", "2", "past", "8"]),
        ]
    }

    fn shapes(batch: u64, past: u64) -> Vec<Vec<u64>> {
        vec![vec![batch, 1], vec![batch, past + 1], vec![batch, 2, past, 8]]
    }

    #[test]
    fn caches_grow_and_what_counts_their_rows() {
        let found = |caches: &[&str], step: Option<&[Vec<u64>]>| {
            let caches = caches.iter().map(|name| (*name).to_owned()).collect();
            growing(&decoder(), &caches, &shapes(3, 5), step).into_iter().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(found(&["past"], None), "past total");
        // Names that do not show caches: what grew.
        let step = [vec![0, 0], vec![0, 1], vec![0, 0, 1, 0]];
        assert_eq!((found(&[], Some(&step)), found(&[], None)), ("past total".to_owned(), String::new()));
        // Where all inputs grow there may be no caches.
        let all = [vec![0, 1], vec![0, 1], vec![0, 0, 1, 0]];
        assert_eq!(found(&[], Some(&all)), "");
    }
    #[test]
    fn steps_follow_prompts() {
        let names =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<String>>();
        let after = |totals: &[&str], shapes: &[Vec<u64>]| {
            stepped(&decoder(), (&names(&["past"]), &names(totals)), shapes)
        };
        let step = Some(vec![vec![3, 1], vec![3, 9], vec![3, 2, 8, 8]]);
        for totals in [&["batch", "2", "total"][..], &["batch", "past + length"]] {
            // A prompt of 8, the rest of one behind 5, and a step.
            for (rows, past) in [(8, 0), (3, 5), (1, 7)] {
                assert_eq!(after(totals, &[vec![3, rows], vec![3, 8], vec![3, 2, past, 8]]), step, "{rows}");
            }
        }
        // The token with which a decoder starts.
        let first = after(&[], &[vec![1, 1], vec![1, 1], vec![1, 2, 0, 8]]);
        assert_eq!(first, Some(vec![vec![1, 1], vec![1, 3], vec![1, 2, 2, 8]]));
        // As many sequences as rows, and a mask that counts no rows.
        let square = after(&[], &[vec![4, 4], vec![4, 4], vec![4, 2, 0, 8]]);
        assert_eq!(square, Some(vec![vec![4, 1], vec![4, 5], vec![4, 2, 4, 8]]));
        assert_eq!(after(&[], &[vec![1, 4], vec![1, 5], vec![1, 2, 5, 8]]), None);
        assert_eq!(stepped(&decoder()[..1], (&names(&["past"]), &names(&[])), &[vec![1, 4]]), None);
    }
}
