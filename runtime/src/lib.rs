//! Load and run models on any HAL device: sessions, modules, functions, values; and the native modules `hal` and
//! `io_parameters` that compiled modules import.
//!
//! Internal to Halite; programs use the crate `halite`.
//!
//! # Use
//! A [`Session`] links module files against devices and parameters; a [`Function`] of it takes and returns
//! [`Value`]s. Drivers are those linked into the program, or those of a registry that the caller fills.
//!
//! ```no_run
//! use halite_runtime::{BufferView, ElementType, HostTensor, Session, Value};
//!
//! fn main() -> Result<(), halite_runtime::Error> {
//!     let session = Session::builder().device("vulkan").module_file("add.vmfb").build()?;
//!     let add = session.function("main")?;
//!     println!("{}", add.declaration().unwrap_or("?"));
//!
//!     let ones = HostTensor::new(ElementType::F32, [4].as_slice(), bytes_of(&[1.0; 4]))?;
//!     let device = session.device().expect("the module computes on a device");
//!     let input = Value::View(BufferView::from_host(device, &ones)?);
//!     for result in add.call(&[input.clone(), input])? {
//!         if let Value::View(view) = result {
//!             println!("{}", view.to_host()?.display(1024));
//!         }
//!     }
//!     Ok(())
//! }
//!
//! fn bytes_of(values: &[f32]) -> Vec<u8> {
//!     values.iter().flat_map(|v| v.to_le_bytes()).collect()
//! }
//! ```
//!
//! # Trust
//! Module files, parameter archives and what the programs in them do are not trusted: they cannot cause undefined
//! behaviour or a crash of the host. A program may run for ever; give calls a deadline ([`CallOptions`]).

mod begun;
mod builder;
mod call;
mod cancel;
mod choose;
mod declaration;
mod error;
mod function;
mod hal_module;
mod hints;
mod info;
mod mapping;
mod parameters;
mod progress;
mod session;
mod shared;
pub mod tensor;
mod values;
mod view;
mod vmdata;

pub use builder::SessionBuilder;
pub use call::{CallOptions, PendingCall};
pub use cancel::CancelToken;
pub use declaration::{Declaration, Field, TypeInfo};
pub use error::{Error, Result};
pub use function::Function;
pub use hal_module::{BufferObject, DeviceObject, FenceObject, FileObject, HalModule, TraceSink};
pub use halite_abi::{ElementType, Encoding};
pub use halite_formats::vmfb::{OperationNote, RecordingNotes, VersionNote};
pub use halite_hal::Deadline;
pub use halite_vm::{Kind, Limits};
pub use info::FunctionInfo;
pub use mapping::{LoadMode, is_cut, is_device, release_pages};
pub use parameters::{Parameter, ParameterIndex, ParameterModule, SharedParameters};
pub use progress::{PARAMETERS as PROGRESS_PARAMETERS, PIPELINES as PROGRESS_PIPELINES, ProgressSink};
pub use session::{ModuleInfo, Session};
pub use tensor::HostTensor;
pub use view::{BufferView, Shape, Value};
