//! Run models on any Vulkan device, from a phone's GPU to a data-centre card, and on processors.
//!
//! A [`Session`] takes a model as it is (ONNX, ExecuTorch's `.pte`), or a module that was compiled ahead of time (`.vmfb`, from
//! Halite or from IREE's compiler), and runs it:
//!
//! ```no_run
//! use halite::{Session, Tensor};
//!
//! fn main() -> halite::Result<()> {
//!     let session = Session::builder().device("vulkan").model("digits.onnx").build()?;
//!     let pixels = vec![0.0f32; 16 * 16];
//!     let out = session.run([("picture", Tensor::from_slice(&pixels, [1, 1, 16, 16])?)])?;
//!     let probabilities: Vec<f32> = out["probabilities"].to_vec()?;
//!     println!("{probabilities:?}");
//!     Ok(())
//! }
//! ```
//!
//! # What is where
//! * [`Session`], [`SessionBuilder`], [`Function`], [`Pending`]: what runs.
//! * [`Tensor`], [`Value`], [`Inputs`], [`Outputs`]: what goes in and comes out.
//! * [`Device`], [`DeviceInfo`], [`Drivers`], [`devices`]: what it runs on.
//! * [`RunOptions`], [`CancelToken`], [`Progress`]: how long it may take, and how far it is.
//! * [`Cache`]: compiled models for the next process.
//! * [`compile`]: modules ahead of time, for devices that are elsewhere.
//! * [`Error`], [`ErrorKind`]: one error type for all of it.
//! * [`host`]: tensors as text and `.npy` files, comparison with tolerances.
//!
//! # Threads
//! All types are `Send`, and all but [`Source`] and [`SessionBuilder`] are `Sync`. Many threads may run one session; several sessions may share one
//! [`Device`].
//!
//! # Features
//! | feature | default | what it brings |
//! |---|---|---|
//! | `compiler` | yes | models; without it, sessions take compiled modules only |
//! | `vulkan` | yes | the Vulkan driver |
//! | `cpu` | yes | the drivers `local-task` and `local-sync`, for modules that were compiled for the processor |
//! | `null` | no | a driver without kernels, for tests of programs |
//! | `ndarray` | no | [`Tensor`] from and to arrays of the crate `ndarray` |
//!
//! # Trust
//! Models, modules and parameter files are not trusted: they cause errors, not undefined behaviour. Machine code in modules is
//! never run unless its device (`local-task`, `local-sync`) was named. A program may run for ever: give calls a timeout ([`RunOptions`]).
//! `docs/embedding.md` says more.
//!
//! # Stability
//! Everything is meant to stay as it is, but for [`hal`] and [`host`] and what names them: [`hal`] is the layer below, for programs
//! that bring a driver or look into devices, [`host`] is what the tools are made from. These change with every release.
#![forbid(unsafe_code)]

mod cache;
#[cfg(feature = "compiler")]
pub mod compile;
mod device;
mod error;
#[cfg(feature = "compiler")]
mod kept;
mod options;
mod session;
mod signature;
mod source;
mod tensor;
mod value;

pub use bytes::Bytes;
pub use cache::{Cache, CacheEntry, Cleared};
#[cfg(feature = "compiler")]
pub use compile::{Precision, Sizes, Tuning};
pub use device::{Device, DeviceInfo, DeviceKind, Drivers, MemoryUse, Options, TransferStats, devices};
pub use error::{Error, ErrorKind, Result};
pub use half::{bf16, f16};
pub use halite_runtime::ElementType;
pub use options::{CancelToken, Progress, ProgressFn, RunOptions, Stage};
pub use session::{DeviceChoice, Function, Pending, Session, SessionBuilder};
pub use signature::{Dimension, FunctionInfo, ValueInfo, ValueType};
pub use source::{LoadMode, Source};
pub use tensor::{Element, Shape, Tensor};
pub use value::{DeviceBuffer, Inputs, Object, Outputs, Value};

/// The layer below: drivers, devices, queues. For programs that bring a driver or look into devices. Changes with every release.
pub use halite_hal as hal;

/// Tensors in memory as text and as `.npy` files, in the form of IREE's tools; comparison with tolerances. What the tools are made
/// from: like [`hal`], it changes with every release.
pub mod host {
    pub use halite_runtime::tensor::{
        ArgumentKind, HostTensor, HostValue, InputReader, Mismatch, Printed, Tolerance, compare,
        element_to_f64, format_g, npy, parse_type,
    };
}

/// What a compiled model's choices are made of, for programs that name targets; changes with every release, like [`hal`].
#[cfg(feature = "compiler")]
pub use halite_targets::Capabilities;

#[cfg(feature = "compiler")]
pub use halite_shaders::TuningFile;

/// Drivers that are linked in for their registration and never named.
mod linked {
    #[cfg(feature = "cpu")]
    use halite_local as _;
    #[cfg(feature = "null")]
    use halite_null as _;
    #[cfg(feature = "vulkan")]
    use halite_vulkan as _;

    #[cfg(feature = "vulkan")]
    halite_hal::expect_drivers!("vulkan");
    #[cfg(feature = "cpu")]
    halite_hal::expect_drivers!("local-sync", "local-task");
    #[cfg(feature = "null")]
    halite_hal::expect_drivers!("null");
}
