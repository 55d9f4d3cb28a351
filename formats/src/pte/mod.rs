//! ExecuTorch programs (`.pte`): the file, its program, and the graphs of the delegates inside, as plain data.
//!
//! A program has *plans* (methods); a plan is a list of instructions over *values*, most of which call a *delegate* when
//! the model was exported for one. The Vulkan delegate's data is a graph of its own, [`VulkanGraph`], and so is that of XNNPACK, [`XnnGraph`].
//!
//! The formats are those of ExecuTorch 1.5: `schema/program.fbs`, `runtime/executor` (the extended header) and
//! `backends/vulkan/serialization/schema.fbs`. Large data are slices of the file, which may be a mapping.

mod container;
mod data;
mod error;
mod etdump;
mod program;
mod read_program;
mod read_vulkan;
mod schema;
mod vulkan;
mod xnnpack;

pub use data::DataFile;
pub use error::PteError;
pub use etdump::{TimedEvent, write_etdump};
pub use program::{Allocation, Delegate, Dynamism, Instruction, Plan, Program, ScalarType, Tensor, Value};
pub use schema::PROGRAM_IDENTIFIER;
pub use vulkan::{Call, Constant, DataType, Value as VulkanValue, VulkanGraph, VulkanTensor};
pub use xnnpack::{
    XnnBinary, XnnConvolution, XnnGraph, XnnNode, XnnOperator, XnnPool, XnnPort, XnnQuantization, XnnScales,
    XnnType, XnnUnary, XnnValue,
};

type Result<T, E = PteError> = std::result::Result<T, E>;
