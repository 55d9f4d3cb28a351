//! Run machine-learning models on any Vulkan device, from a phone's GPU to a data-centre card, and on processors.
//!
//! A [`Session`] takes a model (ONNX, ExecuTorch's `.pte`, GGUF, …), or a module that was compiled ahead of time (`.vmfb`, from Halite or
//! from IREE's compiler). It opens a device, compiles the model for it, loads the weights, and runs:
//!
//! ```no_run
//! use halite::{Session, Tensor};
//!
//! fn main() -> halite::Result<()> {
//!     // A network that reads a picture of a digit.
//!     let session = Session::builder().device("vulkan").model("digits.onnx").build()?;
//!
//!     // Inputs go in by name. They are copied to the device.
//!     let pixels = vec![0.0f32; 16 * 16];
//!     let out = session.run([("picture", Tensor::from_slice(&pixels, [1, 1, 16, 16])?)])?;
//!
//!     // Results stay on the device until they are read, or go into the next call as they are.
//!     let probabilities: Vec<f32> = out["probabilities"].to_vec()?;
//!     println!("{probabilities:?}");
//!     Ok(())
//! }
//! ```
//!
//! `docs/tutorials/getting-started-library.md` is a tutorial, `docs/how-to/embedding.md` says how to do the rest, and `halite/examples` has programs
//! that run. The command line is the program `halite` (`docs/tutorials/getting-started.md`).
//!
//! # What is where
//! | to | use |
//! |---|---|
//! | run a model or module | [`Session`], made by a [`SessionBuilder`]; one of its functions: [`Function`]; a call that goes on: [`Pending`] |
//! | pass values in and out | [`Tensor`], [`Inputs`], [`Outputs`]; what is no tensor: [`Value`]; inputs that devices read where they are filled: [`PinnedTensor`] |
//! | ask what a model takes | [`FunctionInfo`], [`ValueInfo`], [`ValueType`], [`Dimension`] |
//! | choose and share devices | [`Device`], [`DeviceInfo`], [`Drivers`], [`devices`] |
//! | run on a Vulkan device that the program opened | [`vulkan`] |
//! | bound, stop and watch work | [`RunOptions`], [`CancelToken`], [`Progress`] |
//! | see where the time of a call goes | [`Profile`], from [`Session::profile`] |
//! | write text with a language model | [`Generator`], [`Sequence`], [`Sampler`] |
//! | turn texts into tokens without a model | [`Tokenizer`] |
//! | make vectors of texts | [`Embedder`] |
//! | keep compiled models for the next process | [`Cache`] |
//! | compile ahead of time, for devices that are elsewhere | [`compile`] |
//! | handle failures | [`Error`], [`ErrorKind`] |
//! | read `.npy` files, parse tensors from text | [`host`] |
//! | write a driver, look into devices | [`hal`] |
//!
//! # Threads
//! All types are `Send`, and all but [`Source`] and [`SessionBuilder`] are `Sync`. Many threads may run one session at once, and
//! several sessions may share one [`Device`].
//!
//! # Features
//! | feature | default | what it brings |
//! |---|---|---|
//! | `compiler` | yes | models, and [`compile`]; without it, sessions take compiled modules only |
//! | `text` | yes | language models that write text: [`Generator`]; with it, tokenizers and chat templates |
//! | `vulkan` | yes | the Vulkan driver; the Vulkan loader is opened at run time |
//! | `cpu` | yes | the drivers `local-task` and `local-sync`, for modules that were compiled for the processor |
//! | `null` | no | a driver that executes nothing, for tests of programs |
//! | `ndarray` | no | `Tensor::from_array` and `Tensor::to_array`, for arrays of the crate `ndarray` |
//!
//! # Trust
//! Models, modules and parameter files may be damaged or hostile: they cause errors, not undefined behaviour. Machine code in a
//! module never runs unless the program names a device for it (`local-task`, `local-sync`). A module may loop for ever: give calls a
//! timeout with [`RunOptions`]. `docs/how-to/embedding.md` has the whole recipe.
//!
//! # Stability
//! The interface is meant to stay as it is, except for [`hal`], [`host`], and functions that name their types. [`hal`] is the layer
//! below, for programs that bring a driver or look into devices; [`host`] is what the tools are made from. These change with every
//! release.
#![forbid(unsafe_code)]

mod cache;
#[cfg(feature = "compiler")]
pub mod compile;
mod device;
mod error;
#[cfg(feature = "text")]
mod generate;
#[cfg(feature = "compiler")]
mod kept;
mod options;
mod profile;
mod session;
mod shared;
mod signature;
mod source;
mod state;
mod tensor;
mod value;

pub use bytes::Bytes;
pub use cache::{Cache, CacheEntry, Cleared};
#[cfg(feature = "compiler")]
pub use compile::{Precision, Sizes, Tuning};
pub use device::{
    Device, DeviceInfo, DeviceKind, Drivers, MemoryUse, Options, RecordingUse, TransferStats, devices,
};
pub use error::{Error, ErrorKind, Result};
#[cfg(feature = "text")]
pub use generate::{
    CacheType, CallScanner, Callable, ChooseOn, Divided, Drafted, Embedder, Generator, GeneratorOptions,
    JsonSchema, Likely, Message, Next, Piece, Sampler, Sampling, Sequence, Stop, StopTexts, TextDecoder,
    Thoughts, TokenTexts, Tokenizer, ToolCall,
};
pub use half::{bf16, f16};
pub use halite_abi::{ElementKind, ElementType};
pub use halite_hal::{ExternalHandle, ExternalKind, ExternalMemory, ExternalSupport};
pub use options::{CancelToken, Progress, ProgressFn, RunOptions, Stage};
pub use profile::{CommandProfile, DeviceTimes, OperationInfo, Profile, WorkKind};
pub use session::{DeviceChoice, Function, Pending, Session, SessionBuilder};
pub use shared::SharedMemory;
pub use signature::{Dimension, FunctionInfo, StatePair, ValueInfo, ValueType};
pub use source::{LoadMode, Source};
pub use state::State;
pub use tensor::{Element, PinnedTensor, Shape, Tensor};
pub use value::{DeviceBuffer, Inputs, Object, Outputs, Value};

/// The layer below, for programs that bring a driver or look into devices: drivers, devices, queues. It changes with every release.
pub use halite_hal as hal;

/// What stands between callers and drivers: validation, the check of barriers. Like [`hal`], it changes with every release.
pub use halite_layers as layers;

/// Drivers in libraries: where they are looked for, and loading them. Like [`hal`], it changes with every release.
pub use halite_plugin as plugin;

/// Devices that the program opened itself, with Vulkan: [`Drivers::import_vulkan`] takes them. Like [`hal`], it changes with every
/// release.
#[cfg(feature = "vulkan")]
pub mod vulkan {
    pub use halite_vulkan::import::{CallersDevice, CallersInstance, QueueLock, Wanted};
}

/// Tensors as text and as `.npy` files, in the form of IREE's tools, and comparison with tolerances. The tools are made from it; like
/// [`hal`], it changes with every release.
///
/// ```
/// use halite::{Tensor, host};
///
/// let text = "2x2xf32=1 2 3 4";
/// let values = host::InputReader::new().read_all(&[text], &[host::ArgumentKind::Reference])?;
/// let [host::HostValue::Tensor(array)] = &values[..] else { panic!("one text is one tensor") };
/// let tensor = Tensor::from(array.clone());
/// assert_eq!(tensor.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
/// # Ok::<(), halite::Error>(())
/// ```
pub mod host {
    pub use halite_runtime::tensor::{
        ArgumentKind, HostTensor, HostValue, InputReader, Mismatch, Printed, Tolerance, compare,
        element_to_f64, format_g, npy,
    };
}

/// What a driver knows of a device ([`hal::DeviceInfo`] has it), and the features that devices have and kernels need. Like [`hal`],
/// they change with every release.
pub use halite_facts::{DeviceFacts, Feature, FeatureSet};

/// What a device or target can do, which is what kernels are chosen by. Like [`hal`], it changes with every release.
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

/// The Rust programs of the documents, compiled as they stand by `cargo test --doc`.
#[cfg(all(doctest, feature = "compiler"))]
mod documents {
    #[doc = include_str!("../../README.md")]
    mod readme {}
    #[doc = include_str!("../../docs/tutorials/getting-started-library.md")]
    mod getting_started {}
    #[doc = include_str!("../../docs/how-to/state.md")]
    mod state {}
    #[cfg(feature = "text")]
    #[doc = include_str!("../../docs/reference/generate.md")]
    mod generate {}
    #[cfg(feature = "text")]
    #[doc = include_str!("../../docs/reference/embed.md")]
    mod embed {}
    #[cfg(unix)]
    #[doc = include_str!("../../docs/how-to/external-memory.md")]
    mod external_memory {}
    #[doc = include_str!("../../docs/how-to/embedding.md")]
    mod embedding {}
}
