//! Owns which types of the engine the tools use for values: one place to look at. Does not own: the engine.

pub(crate) use halite_hal::{ElementKind, ElementType};
pub(crate) use halite_runtime::{
    Declaration, FunctionInfo, HostTensor, TypeInfo,
    tensor::{ArgumentKind, HostValue, InputReader, element_to_f64, npy, parse_type},
};
