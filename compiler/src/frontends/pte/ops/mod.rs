//! What the operators of the Vulkan delegate compute, one importer for each. Names, argument orders and rules are those of
//! ExecuTorch 1.5 (`backends/vulkan/op_registry.py`, `backends/vulkan/runtime/graph/ops`); where the delegate's shaders
//! differ from PyTorch, PyTorch's rules hold.

mod attention;
mod backward;
mod binary;
mod cache;
mod conv;
mod create;
mod curves;
mod cutting;
mod images;
mod integers;
mod linear;
mod moves;
mod norm;
mod picking;
mod prim;
mod quant_bytes;
mod quant_conv;
mod quant_linear;
mod quant_tables;
mod quantize;
mod random;
mod reduce;
mod scaling;
mod scatter;
mod sizes;
mod statistics;
mod training;
mod unary;

use super::{Result, names::COPY_ROW, node::Node};
use crate::{SourceLocation, UnsupportedOperator};

/// Says with the builder what a call computes.
pub(super) type Import = fn(&mut Node<'_, '_>) -> Result<()>;

/// Operators and what imports them.
type Table = &'static [(&'static str, Import)];

const TABLES: &[Table] = &[
    attention::OPERATORS,
    backward::OPERATORS,
    binary::OPERATORS,
    cache::OPERATORS,
    conv::OPERATORS,
    create::OPERATORS,
    images::OPERATORS,
    linear::OPERATORS,
    moves::OPERATORS,
    norm::OPERATORS,
    picking::OPERATORS,
    quant_bytes::OPERATORS,
    quant_conv::OPERATORS,
    quant_linear::OPERATORS,
    quant_tables::OPERATORS,
    quantize::OPERATORS,
    random::OPERATORS,
    prim::OPERATORS,
    reduce::OPERATORS,
    sizes::OPERATORS,
    curves::OPERATORS,
    cutting::OPERATORS,
    integers::OPERATORS,
    scaling::OPERATORS,
    scatter::OPERATORS,
    statistics::OPERATORS,
    training::OPERATORS,
    unary::OPERATORS,
];

/// What is known but not supported: what the name begins with, and why.
const REFUSED: &[(&str, &str)] = &[
    ("et_vk.adamw_step", "it is for training"),
    ("aten.view_as_real_copy", "complex numbers are not supported"),
];

/// Operators that change arguments where they are, and which.
const CHANGED: &[(&str, &[usize])] = &[
    ("sdpa_with_kv_cache.default", &[3, 4]),
    ("llama.sdpa_with_kv_cache.default", &[3, 4]),
    ("update_cache.default", &[1]),
    ("llama.update_cache.default", &[1]),
    ("llama.update_cache_with_indices.default", &[1]),
];

/// The arguments that an operator changes where they are: it puts new rows into them.
pub(super) fn changed(name: &str) -> &'static [usize] {
    CHANGED.iter().find(|(own, _)| *own == name).map_or(&[], |(_, changed)| changed)
}

/// The importer of an operator.
pub(super) fn find(name: &str) -> Option<Import> {
    let mut all = TABLES.iter().flat_map(|table| table.iter());
    all.find(|(own, _)| *own == name).map(|(_, import)| *import)
}

/// Whether an operator outside of delegates, by the name that it would have inside, is supported at least with some arguments.
pub(super) fn is_known_outside(name: &str) -> bool {
    name == COPY_ROW || find(name).is_some()
}

/// Whether an operator gives a number, which is known when a graph is built.
pub(super) fn is_number(name: &str) -> bool {
    [prim::OPERATORS, sizes::OPERATORS].iter().any(|table| table.iter().any(|(own, _)| *own == name))
}

/// An operator outside of delegates that has no importer, as an error lists it: under its own name. `inside` is the one that
/// it would have inside.
pub(super) fn unknown_outside(name: &str, inside: &str, first: SourceLocation) -> UnsupportedOperator {
    UnsupportedOperator { name: name.to_owned(), ..unknown(inside, first) }
}

/// An operator that has no importer, as an error lists it.
pub(super) fn unknown(name: &str, first: SourceLocation) -> UnsupportedOperator {
    let known = REFUSED.iter().find(|(start, _)| name.starts_with(start));
    let reason = known.map(|(_, reason)| (*reason).to_owned());
    UnsupportedOperator { name: name.to_owned(), domain: None, count: 1, first, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_has_one_importer() {
        let mut names: Vec<_> = TABLES.iter().flat_map(|table| table.iter().map(|(name, _)| *name)).collect();
        names.sort_unstable();
        let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert!(twice.is_empty(), "{twice:?}");
        assert!(names.iter().all(|name| find(name).is_some()));
    }

    #[test]
    fn what_is_refused_has_no_importer() {
        for (start, _) in REFUSED {
            let found =
                TABLES.iter().flat_map(|table| table.iter()).find(|(name, _)| name.starts_with(start));
            assert!(found.is_none(), "{start}: {found:?}");
        }
    }
}
