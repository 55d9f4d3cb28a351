//! Which types of the library the tools use for values: one place to look at.

pub(crate) use halite::{
    ElementKind, ElementType, FunctionInfo, Value, ValueInfo,
    hal::{Code, Status, status},
    host::{ArgumentKind, HostTensor, HostValue, InputReader, element_to_f64, format_g, npy},
};
