//! Owns the operations, one file for each: parameters, tensors, the twin, and the plan of each of its templates.
//!
//! To add one: a file here with a struct that implements the crate's `Op`, a line in `operation.rs`, and a folder
//! `shaders/ops/<name>/` with templates (`*.comp`), `builds.json` and `variants.json`.

pub mod arg_reduce;
pub mod attention;
mod axis;
pub mod concat;
pub mod conv1d;
pub mod conv2d;
pub mod conv2d_int8;
pub mod conv_transpose2d;
mod convolution;
pub mod copy;
pub mod cumulative_sum;
pub mod elementwise;
mod elementwise_samples;
pub mod embedding;
pub(crate) mod finish;
pub mod gather;
pub mod gather_elements;
pub mod gather_nd;
pub mod kv_append;
mod lines;
pub mod matmul;
mod moves;
pub mod norm;
mod order;
pub mod pad;
pub mod pool2d;
pub mod quant_matmul;
pub mod reduce;
pub mod resize;
pub mod rotary;
pub mod scatter_elements;
pub mod scatter_nd;
mod scatters;
pub mod softmax;
pub mod sort;
pub mod top_k;
mod window;

pub use self::scatters::Reduction;
pub use self::window::Layout;

use crate::{Params, Plan, TensorDesc, Tolerance, Unfit, Values};

/// What every operation can do.
pub(crate) trait Op {
    /// The reason when its numbers do not go together.
    fn check(&self) -> Result<(), String>;

    /// Tensors that it reads.
    fn inputs(&self) -> Vec<TensorDesc>;

    /// Tensors that it writes.
    fn outputs(&self) -> Vec<TensorDesc>;

    /// The combination of types, such as `f16xf16_f32`: every one that a caller may ask for has a baseline variant.
    fn signature(&self) -> String;

    /// Arithmetic operations.
    fn flops(&self) -> f64;

    /// Whether the steps of its plans may run at the same time, in any order.
    fn steps_are_independent(&self) -> bool {
        false
    }

    /// The results. `inputs` have the lengths that [`Op::inputs`] says.
    fn twin(&self, inputs: &[Values]) -> Vec<Values>;

    /// Whether an output keeps what it had where nothing is written to it.
    fn updates(&self, _output: usize) -> bool {
        false
    }

    /// The results where outputs that are updated had these elements before; [`Op::twin`] has zeros there.
    fn twin_over(&self, inputs: &[Values], _before: &[Values]) -> Vec<Values> {
        self.twin(inputs)
    }

    /// Values that an input must have where not any will do, such as indices; `random` gives 64 random bits.
    fn sample_input(&self, _index: usize, _random: &mut dyn FnMut() -> u64) -> Option<Values> {
        None
    }

    /// How far a kernel's result may be off; `magnitudes` has what the finite elements of each input are at most.
    fn tolerance(&self, magnitudes: &[f64]) -> Tolerance;

    /// The dispatches of a variant: `build` with `params`, used as `template` says.
    fn plan(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit>;
}
