//! Compile models to modules, for a device at hand or for targets by name: `halite compile` as a library.
//!
//! A [`Session`](crate::Session) compiles for the device that it runs on by itself. Use a [`Compiler`] to make module files ahead of
//! time, for devices that are elsewhere, or to see what a model needs.
//!
//! ```no_run
//! use halite::compile::{Compiler, Target};
//!
//! let model = halite::compile::Model::open("digits.onnx")?;
//! let compiled = Compiler::new().target(Target::named("valhall-g78-android30")?).compile(&model)?;
//! std::fs::write("digits.vmfb", compiled.to_vec()).expect("the folder can be written to");
//! # Ok::<(), halite::Error>(())
//! ```
//!
//! This is what programs see of the compiler; the work is done in `halite-compiler` and `halite-shaders`.

mod check;
mod compiler;
mod files;
mod model;
mod sizes;
mod tuning;

use halite_abi::ElementKind;
use halite_compiler::{self as inner, CompileError, Control, signature::BoundValue};
use halite_hal as hal;
use halite_ops::DType;
use halite_targets::Capabilities;

pub use check::{CheckReport, Checker, Difference, NodeCheck, RecordedCheck};
pub use compiler::{Compiled, Compiler, HalfPrecision, Precision, Target};
pub(crate) use files::{Files, read};
pub use halite_compiler::{
    ModelFormat, PrintGraph, UnknownName,
    explain::{
        ConstantReport, FunctionReport, OperationReport, Report, SizeReport, StateReport, TargetReport,
        WorkReport,
    },
    frontends::outline::{self, Outline},
};
pub use model::{Model, OpenOptions};
pub use sizes::Sizes;
pub(crate) use sizes::digest as digest_sizes;
pub use tuning::Tuning;

use crate::{ElementType, Error, ErrorKind, Progress, Result, Stage, Tensor, options::Limits};

/// What a device can do, from the facts that its driver tells: what kernels are chosen by.
///
/// # Errors
/// The driver tells no facts: models cannot be compiled for it.
pub fn capabilities(info: &hal::DeviceInfo) -> Result<Capabilities> {
    let facts = info.facts.as_deref().ok_or_else(|| {
        let text = format!(
            "device '{}': its driver tells no capabilities, so it runs no models; name a Vulkan device, or a target to \
             compile for",
            info.uri()
        );
        Error::new(ErrorKind::Unsupported, text)
    })?;
    Ok(halite_targets::Target::detect(facts).capabilities())
}

/// The compiler's error as programs see it.
pub(crate) fn error(error: CompileError) -> Error {
    let kind = match &error {
        CompileError::Cancelled { .. } => ErrorKind::Cancelled,
        CompileError::DeadlineExceeded { .. } => ErrorKind::DeadlineExceeded,
        CompileError::Request(_) => ErrorKind::InvalidInput,
        CompileError::Io { source, .. } => match source.kind() {
            std::io::ErrorKind::NotFound => ErrorKind::NotFound,
            std::io::ErrorKind::PermissionDenied => ErrorKind::PermissionDenied,
            _ => ErrorKind::Io,
        },
        CompileError::Invalid { .. } => ErrorKind::InvalidModel,
        CompileError::Write(_) => ErrorKind::Other,
        _ => ErrorKind::Unsupported,
    };
    Error::new(kind, error.to_string())
}

/// The limits as the compiler knows them.
pub(crate) fn control(limits: &Limits) -> Control {
    let mut control = Control::new();
    if let Some(deadline) = limits.deadline {
        control = control.with_deadline(deadline);
    }
    if let Some(token) = &limits.cancel {
        control = control.with_cancel_flag(token.flag());
    }
    if let Some(told) = limits.progress.clone() {
        control = control.with_progress(move |progress| {
            let detail = progress.stage.to_string();
            let stage = match progress.stage {
                inner::Stage::Reading => Stage::Reading,
                inner::Stage::Importing => Stage::Importing,
                inner::Stage::Optimizing => Stage::Optimizing,
                inner::Stage::Planning => Stage::Planning,
                inner::Stage::ChoosingKernels(_) => Stage::ChoosingKernels,
                inner::Stage::Writing => Stage::Writing,
                _ => Stage::Other,
            };
            told(Progress {
                stage,
                detail: &detail,
                done: progress.done as u64,
                total: progress.total as u64,
            });
        });
    }
    control
}

/// The element type of graphs for one of tensors; integers without a sign of their own count as signed.
fn graph_type(of: ElementType) -> Option<inner::graph::ElementType> {
    if of == ElementType::I1 {
        return Some(inner::graph::ElementType::Bool);
    }
    let signless = match of.kind()? {
        ElementKind::SInt => ElementType::new(ElementKind::Int, of.bit_count() as u8),
        _ => of,
    };
    DType::ALL
        .into_iter()
        .map(inner::graph::ElementType::from)
        .find(|own| ElementType::from(*own) == signless)
}

/// A tensor whose elements decide sizes.
pub(crate) fn bound_value(tensor: &Tensor) -> Result<BoundValue> {
    let element = graph_type(tensor.element_type()).ok_or_else(|| {
        Error::invalid(format!("elements of type {} are not known to models", tensor.element_type()))
    })?;
    let dims = tensor.shape().iter().map(|size| *size as u64).collect();
    Ok(BoundValue { element, dims, bytes: tensor.to_bytes()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn element_types_go_both_ways() {
        for dtype in DType::ALL {
            let own = inner::graph::ElementType::from(dtype);
            assert_eq!(graph_type(own.into()), Some(own), "{dtype:?}");
        }
        assert_eq!(graph_type(ElementType::SI32), Some(DType::I32.into()));
        assert_eq!(graph_type(ElementType::I1), Some(inner::graph::ElementType::Bool));
    }
}
