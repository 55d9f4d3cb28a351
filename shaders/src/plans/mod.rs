//! How Vulkan computes operations: for each one the dispatches of its kernels, by template.
//!
//! To add an operation's kernels: a file here that implements [`Lower`], its lines in this file, and a folder
//! `shaders/ops/<name>/` with templates (`*.comp`), `builds.json` and `variants.json`.

mod arg_reduce;
mod attention;
mod axis;
mod block_matmul;
mod block_rows;
mod compact;
mod concat;
mod conv1d;
mod conv2d;
mod conv2d_int8;
mod conv_transpose2d;
mod convolution;
mod copy;
mod cumulative_sum;
pub(crate) mod elementwise;
mod embedding;
pub(crate) mod epilogue;
pub(crate) mod expert_matmul;
mod gather;
mod gather_elements;
mod gather_nd;
mod kv_append;
mod line_codes;
mod lines;
pub(crate) mod matmul;
mod moves;
mod norm;
pub(crate) mod norm_last;
mod numbers;
mod order;
mod pad;
mod pool2d;
mod quant_matmul;
mod recurrent;
mod reduce;
mod resize;
mod rotary;
pub(crate) mod runs;
mod scatter_elements;
mod scatter_nd;
pub(crate) mod scatters;
mod softmax;
mod sort;
pub(crate) mod suppress;
mod top_k;

use halite_ops::Operation;

use crate::{Params, Plan, Unfit};

pub(crate) use matmul::tile_needs;

/// An operation that kernels compute.
pub(crate) trait Lower {
    /// The dispatches of a variant: `build` with `params`, used as `template` says.
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit>;
}

macro_rules! lowered {
    ($($variant:ident,)*) => {
        /// The operation as what its kernels are chosen for.
        pub(crate) fn of(operation: &Operation) -> &dyn Lower {
            match operation { $(Operation::$variant(op) => op,)* }
        }
    };
}

lowered! {
    ArgReduce,
    Attention,
    BlockMatMul,
    BlockRows,
    Compact,
    Concat,
    Conv1d,
    Conv2d,
    Conv2dInt8,
    ConvTranspose2d,
    StridedCopy,
    CumulativeSum,
    Elementwise,
    Embedding,
    ExpertMatMul,
    Gather,
    GatherElements,
    GatherNd,
    KvAppend,
    LineCodes,
    MatMul,
    Norm,
    Numbers,
    Pad,
    Pool2d,
    QuantMatMul,
    Recurrent,
    Reduce,
    Resize,
    Rotary,
    ScatterElements,
    ScatterNd,
    Softmax,
    Sort,
    Suppress,
    TopK,
}
