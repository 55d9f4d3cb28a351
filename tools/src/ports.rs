//! What tools need to know of a function's inputs and outputs.

use std::{borrow::Cow, fmt};

use halite::{Dimension, ValueType};

use crate::engine::{ArgumentKind, ElementType, FunctionInfo, Value, ValueInfo};

/// An input or output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Port {
    /// As the model or the module calls it; compilers make up one where the source has none.
    pub name: String,
    /// How it is passed.
    pub kind: ArgumentKind,
    /// Type of a tensor's elements, where it is told.
    pub element: Option<ElementType>,
    /// Dimensions of a tensor, where they are told; `None` inside for a size that is open.
    pub dims: Option<Vec<Option<u64>>>,
    /// Whether it may be left out.
    pub is_optional: bool,
    /// Whether it is a list of tensors, which are called `NAME[0]`, `NAME[1]`, ….
    pub is_list: bool,
    /// For messages.
    text: String,
}

impl Port {
    /// The inputs of a function.
    pub fn inputs(info: &FunctionInfo) -> Vec<Port> {
        info.inputs.iter().map(Port::of).collect()
    }

    /// The results of a function.
    pub fn outputs(info: &FunctionInfo) -> Vec<Port> {
        info.outputs.iter().map(Port::of).collect()
    }

    fn of(value: &ValueInfo) -> Port {
        let (element, dims) = match &value.value_type {
            ValueType::Tensor { element_type, shape } => {
                let size = |dim: &Dimension| {
                    if let Dimension::Fixed(size) = dim { Some(*size as u64) } else { None }
                };
                (*element_type, shape.as_ref().map(|shape| shape.iter().map(size).collect()))
            }
            _ => (None, None),
        };
        let kind = value.argument_kind();
        let (name, is_optional, text) = (value.name.clone(), value.is_optional, value.to_string());
        let is_list = value.value_type == ValueType::Sequence;
        Port { name, kind, element, dims, is_optional, is_list, text }
    }

    /// A tensor of the list that this is, or turned out to be.
    fn tensor(&self, index: usize) -> Port {
        let name = format!("{}[{index}]", self.name);
        let text = format!("'{name}'");
        Port { name, text, is_list: false, is_optional: false, ..self.clone() }
    }

    /// One for tests.
    #[cfg(test)]
    pub fn for_test(
        name: &str,
        kind: ArgumentKind,
        element: ElementType,
        dims: Option<Vec<Option<u64>>>,
    ) -> Port {
        Port {
            name: name.to_owned(),
            kind,
            element: Some(element),
            dims,
            is_optional: name.ends_with('?'),
            is_list: name.ends_with('*'),
            text: format!("'{name}' {element}"),
        }
    }

    /// A text as the port's value: of a tensor without dimensions a number says no type, as the port does.
    pub fn spelled<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let is_single = self.kind == ArgumentKind::Reference && self.dims.as_ref().is_some_and(Vec::is_empty);
        let is_number = |text: &str| {
            let plain = text.trim().trim_start_matches(['-', '+']);
            plain.starts_with(|c: char| c.is_ascii_digit() || c == '.')
                || ["inf", "nan", "true", "false"].contains(&&*plain.to_ascii_lowercase())
        };
        match self.element.filter(|_| is_single && !text.contains('=') && is_number(text)) {
            Some(element) => format!("{element}={text}").into(),
            None => text.into(),
        }
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
    /// `'picture' f32[1,3,height,width]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text.trim_end())
    }
}

/// Results of a model one by one: the tensors of a list instead of the list.
pub(crate) fn one_by_one(ports: &[Port], results: Vec<Value>) -> (Vec<Port>, Vec<Value>) {
    let mut all = (Vec::with_capacity(ports.len()), Vec::with_capacity(results.len()));
    for (port, value) in ports.iter().zip(results) {
        match value {
            Value::List(values) => {
                all.0.extend((0..values.len()).map(|index| port.tensor(index)));
                all.1.extend(values);
            }
            value => {
                all.0.push(port.clone());
                all.1.push(value);
            }
        }
    }
    all
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
        let port = |name: &str| Port::for_test(name, ArgumentKind::Reference, ElementType::F32, None);
        for name in ["", "input0", "arg12", "output", "ret0"] {
            assert_eq!(port(name).own_name(), None, "{name}");
        }
        for name in ["picture", "inputs", "input_ids", "x:0"] {
            assert_eq!(port(name).own_name(), Some(name));
        }
        assert_eq!(list(&[port("x")]), "'x' f32");
        assert_eq!(list(&[]), "none");
    }
}
