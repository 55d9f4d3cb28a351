//! Owns the compiled kernels and the data of variants, as they lie in the crate's folder. Does not own: what they mean.

/// (name, SPIR-V) of every build, sorted by name.
static MODULES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/modules.rs"));

/// A build by name.
pub(crate) fn module(name: &str) -> Option<crate::Module> {
    let index = MODULES.binary_search_by(|(n, _)| (*n).cmp(name)).ok()?;
    let (name, bytes) = MODULES[index];
    Some(crate::Module::Compiled { name, bytes })
}

/// Names of all builds.
#[cfg(test)]
pub(crate) fn module_names() -> impl Iterator<Item = &'static str> {
    MODULES.iter().map(|(name, _)| *name)
}

/// (operation, `variants.json`) of every operation.
pub(crate) const VARIANTS: &[(&str, &str)] = &[
    ("arg_reduce", include_str!("../ops/arg_reduce/variants.json")),
    ("attention", include_str!("../ops/attention/variants.json")),
    ("concat", include_str!("../ops/concat/variants.json")),
    ("conv1d", include_str!("../ops/conv1d/variants.json")),
    ("conv2d", include_str!("../ops/conv2d/variants.json")),
    ("conv2d_int8", include_str!("../ops/conv2d_int8/variants.json")),
    ("conv_transpose2d", include_str!("../ops/conv_transpose2d/variants.json")),
    ("copy", include_str!("../ops/copy/variants.json")),
    ("cumulative_sum", include_str!("../ops/cumulative_sum/variants.json")),
    ("elementwise", include_str!("../ops/elementwise/variants.json")),
    ("embedding", include_str!("../ops/embedding/variants.json")),
    ("gather", include_str!("../ops/gather/variants.json")),
    ("gather_elements", include_str!("../ops/gather_elements/variants.json")),
    ("gather_nd", include_str!("../ops/gather_nd/variants.json")),
    ("kv_append", include_str!("../ops/kv_append/variants.json")),
    ("matmul", include_str!("../ops/matmul/variants.json")),
    ("norm", include_str!("../ops/norm/variants.json")),
    ("pad", include_str!("../ops/pad/variants.json")),
    ("pool2d", include_str!("../ops/pool2d/variants.json")),
    ("quant_matmul", include_str!("../ops/quant_matmul/variants.json")),
    ("reduce", include_str!("../ops/reduce/variants.json")),
    ("resize", include_str!("../ops/resize/variants.json")),
    ("rotary", include_str!("../ops/rotary/variants.json")),
    ("scatter_elements", include_str!("../ops/scatter_elements/variants.json")),
    ("scatter_nd", include_str!("../ops/scatter_nd/variants.json")),
    ("softmax", include_str!("../ops/softmax/variants.json")),
    ("sort", include_str!("../ops/sort/variants.json")),
    ("top_k", include_str!("../ops/top_k/variants.json")),
];
