//! The operators: for each its importer, which says with the builder what a node computes. One file for each family; a
//! file's tables are named below.

mod attention;
mod binary;
mod classic;
mod classic_coupling;
mod classic_ensemble;
mod classic_forest;
mod classic_labels;
mod classic_scores;
mod classic_trees;
mod classic_vectors;
mod columns;
mod conv;
mod counted;
mod einsum;
mod generate;
mod image;
mod index;
mod known;
mod linear;
mod linear_attention;
mod microsoft;
mod microsoft_attention;
mod microsoft_buffers;
mod microsoft_experts;
mod microsoft_group;
mod microsoft_layouts;
mod microsoft_mask;
mod microsoft_names;
mod microsoft_pictures;
mod microsoft_quantized;
mod microsoft_rows;
mod microsoft_shared;
mod microsoft_window;
mod moves;
mod norm;
mod order;
mod pool;
mod quantize;
mod random;
mod recurrent;
mod recurrent_activations;
mod recurrent_network;
mod recurrent_plain;
mod recurrent_weights;
mod reduce;
mod regions;
mod resize;
mod shape;
mod signal;
mod slice;
mod softmax;
mod unary;
mod window;

pub(super) use quantize::quantization;

use std::{collections::HashMap, sync::OnceLock};

use super::{Import, NodeView, Result, blocked as blocks};

/// Operators of ONNX's own domain.
const ONNX: &[&[(&str, Import)]] = &[
    binary::OPS,
    attention::OPS,
    columns::OPS,
    conv::OPS,
    counted::OPS,
    einsum::OPS,
    generate::OPS,
    index::OPS,
    image::OPS,
    linear::OPS,
    linear_attention::OPS,
    microsoft::OPS,
    moves::OPS,
    norm::OPS,
    order::OPS,
    pool::OPS,
    quantize::OPS,
    random::OPS,
    recurrent::OPS,
    reduce::OPS,
    regions::OPS,
    resize::OPS,
    shape::OPS,
    signal::OPS,
    slice::OPS,
    softmax::OPS,
    unary::OPS,
];

/// Operators of `com.microsoft`.
const MICROSOFT: &[&[(&str, Import)]] = &[
    conv::MICROSOFT,
    microsoft::MICROSOFT,
    microsoft_attention::MICROSOFT,
    microsoft_experts::MICROSOFT,
    microsoft_group::MICROSOFT,
    microsoft_pictures::MICROSOFT,
    microsoft_names::MICROSOFT,
    microsoft_quantized::MICROSOFT,
    microsoft_rows::MICROSOFT,
    microsoft_shared::MICROSOFT,
    quantize::MICROSOFT,
    recurrent::MICROSOFT,
];

/// Operators of `ai.onnx.ml`.
const CLASSIC: &[&[(&str, Import)]] = &[
    classic::CLASSIC,
    classic_ensemble::CLASSIC,
    classic_labels::CLASSIC,
    classic_scores::CLASSIC,
    classic_trees::CLASSIC,
    classic_vectors::CLASSIC,
];

/// Operators of `com.microsoft.nchwc` and `com.ms.internal.nhwc`.
const BLOCKED: &[&[(&str, Import)]] = &[microsoft_layouts::BLOCKED];
const CHANNELS_LAST: &[&[(&str, Import)]] = &[microsoft_layouts::CHANNELS_LAST];

/// The importer of an operator of a domain (empty for ONNX's own).
pub(super) fn find(domain: &str, op_type: &str) -> Option<Import> {
    static TABLES: OnceLock<[HashMap<&str, Import>; 5]> = OnceLock::new();
    let table =
        |tables: &[&[(&'static str, Import)]]| tables.iter().flat_map(|t| t.iter().copied()).collect();
    let [onnx, microsoft, classic, blocked, last] =
        TABLES.get_or_init(|| [ONNX, MICROSOFT, CLASSIC, BLOCKED, CHANNELS_LAST].map(table));
    match domain {
        "" => onnx.get(op_type).copied(),
        "com.microsoft" => microsoft.get(op_type).copied(),
        "ai.onnx.ml" => classic.get(op_type).copied(),
        blocks::DOMAIN => blocked.get(op_type).copied(),
        "com.ms.internal.nhwc" => last.get(op_type).copied(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::frontends::onnx::inputs;

    #[test]
    fn operators_are_there_once() {
        for (domain, tables) in [("", ONNX), ("com.microsoft", MICROSOFT), ("ai.onnx.ml", CLASSIC)] {
            let mut names = HashSet::new();
            for (name, _) in tables.iter().flat_map(|table| table.iter()) {
                assert!(names.insert(name), "{name} is there twice");
                assert!(inputs::is_known(domain, name), "nothing says how many inputs {name} takes");
            }
        }
    }
}
