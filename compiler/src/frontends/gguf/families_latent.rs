//! The architectures with latent attention, as data.

use super::{
    families_base::LLAMA,
    family::{Activation, Connected, Family, LocalRope, Turn},
};

/// Decoders with latent attention. Converters write a tenth of the factor of YaRN's logarithm.
pub(super) const DEEPSEEK2: Family =
    Family { name: "deepseek2", normed_experts: false, yarn_scale: Some(0.1), bare_yarn: true, ..LLAMA };
/// The same, where an indexer chooses the keys.
pub(super) const DEEPSEEK32: Family =
    Family { name: "deepseek32", indexer: Some(Turn::Halves), bare_yarn: false, ..DEEPSEEK2 };
pub(super) const GLM_DSA: Family = Family {
    name: "glm-dsa",
    indexer: Some(Turn::Neighbours),
    some_indexers: Some((2, 1 << 20)),
    sigmoid_experts: true,
    ..DEEPSEEK2
};
/// The same with several states of a token.
pub(super) const HY_V4: Family = Family {
    name: "hy_v4",
    indexer: Some(Turn::Neighbours),
    late_index: true,
    some_indexers: Some((1, 0)),
    connections: Some(Connected::Weighed),
    cuts_gates: true,
    sigmoid_experts: true,
    normed_experts: false,
    ..LLAMA
};
/// The same beside layers with windows, whose latent attention has other sizes, all with a gate for each head.
pub(super) const DOTS3NOTE: Family = Family {
    name: "dots3note",
    indexer: Some(Turn::Halves),
    latent_windows: true,
    local_of: 2,
    always_windowed: true,
    local_rope: LocalRope::OwnScaled,
    normed_experts: false,
    ..LLAMA
};
/// Layers that attend to a window, and to rows that stand for groups of neighbours, with several states of a token.
pub(super) const DEEPSEEK4: Family = Family {
    name: "deepseek4",
    condenses: true,
    indexer: Some(Turn::Neighbours),
    connections: Some(Connected::Spread { mean: false }),
    one_limit: true,
    cuts_gates: true,
    normed_experts: false,
    local_of: 1,
    ..LLAMA
};
/// Delta nets with a decay of each place beside latent attention.
pub(super) const KIMI_LINEAR: Family = Family { name: "kimi-linear", plain_of: 1, ..LLAMA };
/// The same, where parts of layers attend to the states before.
pub(super) const KIMI_K3: Family =
    Family { name: "kimi-k3", activation: Activation::Situ, normed_experts: false, ..KIMI_LINEAR };
/// Delta nets whose decays and gates come of whole rows, beside latent attention with a gate for each head.
pub(super) const BAILINGMOE3: Family =
    Family { name: "bailingmoe3", whole_gates: true, normed_experts: false, ..LLAMA };
/// The same without rotary embedding, where an indexer chooses groups of neighbours and tokens have several states.
pub(super) const GLM5_NEXT: Family = Family {
    name: "glm5-next",
    turn: Turn::Nothing,
    indexer: Some(Turn::Nothing),
    pools: Some(true),
    connections: Some(Connected::Spread { mean: true }),
    one_limit: true,
    cuts_gates: true,
    sigmoid_experts: true,
    normed_experts: false,
    ..LLAMA
};
