//! The extension module `halite._halite`: the public crate `halite` as Python sees it. The package around it is `python/halite`.
//!
//! It translates objects, NumPy arrays, exceptions and signals, and does nothing that a program in Rust could not do as
//! well. While the library works, the interpreter's lock is released (`work.rs`).
#![deny(unsafe_code)]

mod array;
mod compiled;
mod device;
mod direct;
mod embedder;
mod error;
mod external;
mod function;
mod generator;
mod info;
mod inputs;
#[allow(unsafe_code, reason = "memory and handles of others come by addresses and numbers")]
mod lent;
mod main_thread;
mod messages;
mod options;
mod outputs;
mod pattern;
mod pending;
mod profile;
mod progress;
mod prompt;
mod running;
mod schema;
mod sequence;
mod session;
mod shared;
mod source;
mod state;
mod steps;
mod stream;
mod tensor;
mod tokenizer;
mod tokens;
mod work;

/// Halite's extension module; use the package `halite`.
#[pyo3::pymodule]
mod _halite {
    #[pymodule_export]
    use crate::{
        compiled::{Compiled, compile, inspect},
        device::{Device, DeviceInfo, devices, unavailable_drivers},
        embedder::Embedder,
        external::ExternalMemory,
        function::Function,
        generator::Generator,
        info::{FunctionInfo, ValueInfo},
        inputs::Opaque,
        messages::set_log_level,
        options::CancelToken,
        outputs::Outputs,
        pattern::Pattern,
        pending::Pending,
        progress::Progress,
        sequence::Sequence,
        session::Session,
        shared::SharedMemory,
        state::State,
        steps::Sampler,
        stream::Stream,
        tensor::Tensor,
        tokenizer::Tokenizer,
    };
    use pyo3::{
        Bound, PyResult,
        types::{PyAnyMethods, PyModule, PyModuleMethods},
        wrap_pyfunction,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::messages::install();
        crate::main_thread::is_main_thread(module.py())?;
        let end_calls = wrap_pyfunction!(crate::running::end_calls, module)?;
        module.py().import("atexit")?.call_method1("register", (end_calls,))?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
