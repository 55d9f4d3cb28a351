//! Owns what a function says of its inputs and outputs: names, types, shapes. Does not own: the values.

use std::fmt;

use crate::engine::{ArgumentKind, Declaration, ElementType, FunctionInfo, TypeInfo, parse_type};

/// An input or output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Port {
    /// As the model or the module calls it; empty where it does not.
    pub name: String,
    /// How it is passed.
    pub kind: ArgumentKind,
    /// Type of a tensor's elements, where it is told.
    pub element: Option<ElementType>,
    /// Dimensions of a tensor, where they are told; `None` inside for a size that is open.
    pub dims: Option<Vec<Option<u64>>>,
    /// Whether it may be left out.
    pub is_optional: bool,
}

impl Port {
    /// The inputs of a function.
    pub fn inputs(info: &FunctionInfo) -> Vec<Port> {
        let names =
            info.declaration.as_deref().and_then(Declaration::parse).map(|d| d.inputs).unwrap_or_default();
        let kinds = super::values::argument_kinds(info).into_iter().enumerate();
        let name = |i: usize| names.get(i).map(|field| field.name.as_str());
        kinds.map(|(i, kind)| Port::new(name(i), kind, info.input_type(i))).collect()
    }

    /// The results of a function.
    pub fn outputs(info: &FunctionInfo) -> Vec<Port> {
        let names =
            info.declaration.as_deref().and_then(Declaration::parse).map(|d| d.outputs).unwrap_or_default();
        let kinds = super::values::result_kinds(info).into_iter().enumerate();
        let name = |i: usize| names.get(i).map(|field| field.name.as_str());
        kinds.map(|(i, kind)| Port::new(name(i), kind, info.output_type(i))).collect()
    }

    fn new(name: Option<&str>, kind: ArgumentKind, ty: Option<&TypeInfo>) -> Port {
        let (element, dims) = match ty {
            Some(TypeInfo::Tensor { dims, element }) => (parse_type(element).ok(), Some(dims.clone())),
            _ => (None, None),
        };
        Port { name: name.unwrap_or_default().to_owned(), kind, element, dims, is_optional: false }
    }

    /// The name, unless it is one that compilers give where the source has none: `input0`, `arg1`, `output0`.
    pub fn own_name(&self) -> Option<&str> {
        let generic = ["input", "output", "arg", "result", "ret"].iter().any(|word| {
            self.name.strip_prefix(word).is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
        });
        (!generic && !self.name.is_empty()).then_some(self.name.as_str())
    }
}

impl fmt::Display for Port {
    /// `'picture' 1x3x?x?xf32`, or what of it is known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.name.is_empty() {
            write!(f, "'{}' ", self.name)?;
        }
        for dim in self.dims.iter().flatten() {
            match dim {
                Some(dim) => write!(f, "{dim}x")?,
                None => f.write_str("?x")?,
            }
        }
        match (self.kind, self.element) {
            (_, Some(element)) => element.fmt(f),
            (ArgumentKind::Reference, None) => f.write_str("?"),
            (kind, None) => f.write_str(&format!("{kind:?}").to_ascii_lowercase()),
        }
    }
}

/// All of them, for messages.
pub(crate) fn list(ports: &[Port]) -> String {
    let all: Vec<_> = ports.iter().map(ToString::to_string).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_compilers_are_no_names() {
        let port = |name: &str| Port {
            name: name.to_owned(),
            kind: ArgumentKind::Reference,
            element: Some(ElementType::F32),
            dims: Some(vec![Some(1), None]),
            is_optional: false,
        };
        for name in ["", "input0", "arg12", "output", "ret0"] {
            assert_eq!(port(name).own_name(), None, "{name}");
        }
        for name in ["picture", "inputs", "input_ids", "x:0"] {
            assert_eq!(port(name).own_name(), Some(name));
        }
        assert_eq!(port("x").to_string(), "'x' 1x?xf32");
        assert_eq!(list(&[]), "none");
    }
}
