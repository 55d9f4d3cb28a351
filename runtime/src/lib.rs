//! Load and run models on any HAL device: sessions, modules, functions, values; and the native modules `hal` and
//! `io_parameters` that compiled modules import. Does not own: drivers, the interpreter, file formats.

mod cancel;
mod declaration;
mod error;
mod mapping;
pub mod tensor;
mod view;

pub use cancel::CancelToken;
pub use declaration::{Declaration, Field, TypeInfo};
pub use error::{Error, Result};
pub use halite_hal::{Deadline, ElementType, Encoding};
pub use mapping::LoadMode;
pub use tensor::HostTensor;
pub use view::{BufferView, Shape, Value};
