//! Load and run models on any HAL device: sessions, modules, functions, values; and the native modules `hal` and
//! `io_parameters` that compiled modules import. Does not own: drivers, the interpreter, file formats.

pub mod tensor;
mod view;

pub use halite_hal::{ElementType, Encoding};
pub use view::{BufferView, Shape, Value};
