//! What models say of their inputs and outputs, and the sizes and values that a caller gives for them.

use std::collections::BTreeMap;

use bytes::Bytes;
use halite_sizes::{Size, Trace};

use crate::{CompileError, graph::ElementType};

/// A size that a model states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dim {
    /// Known.
    Known(u64),
    /// The same wherever the symbol is.
    Symbol(String),
    /// Not known, and at most this.
    UpTo(u64),
    /// Not known.
    Unknown,
}

impl std::fmt::Display for Dim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Dim::Known(size) => size.fmt(f),
            Dim::Symbol(name) => name.fmt(f),
            Dim::UpTo(most) => write!(f, "..{most}"),
            Dim::Unknown => f.write_str("?"),
        }
    }
}

/// How many tensors a value of a model is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arity {
    /// One.
    #[default]
    Tensor,
    /// Any number: a list. Its tensors are called `NAME[0]`, `NAME[1]`, ….
    Sequence,
}

/// An input or output of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Its name.
    pub name: String,
    /// How many tensors it is.
    pub arity: Arity,
    /// Whether it may be left out.
    pub is_optional: bool,
    /// Type of its elements, if the model says it and it is one that is supported; of a list or an optional value that of its
    /// tensors. Types of less than a byte and 8-bit floats are handed in and given in the type that holds them (`i8`, `u8`,
    /// `f32`), which is what stands here. The module takes no other type, so it can be checked before anything is compiled.
    pub element: Option<ElementType>,
    /// Dimensions, unless not even their number is known.
    pub dims: Option<Vec<Dim>>,
}

impl std::fmt::Display for Signature {
    /// `'x' f32[batch,3,224,224]`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let element = self.element.map_or("?".to_owned(), |element| element.to_string());
        let dims = self.dims.as_ref().map_or("…".to_owned(), |dims| {
            dims.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
        });
        write!(f, "'{}' {element}[{dims}]", self.name)
    }
}

/// The elements of an input that a graph is built for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundValue {
    /// Their type.
    pub element: ElementType,
    /// Dimensions.
    pub dims: Vec<u64>,
    /// Little-endian, row-major; booleans as bytes of 0 and 1.
    pub bytes: Bytes,
}

/// Sizes and values that decide the sizes of tensors, where the model leaves them open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bindings {
    /// Sizes of symbols.
    pub dims: BTreeMap<String, u64>,
    /// Dimensions of inputs, by name.
    pub shapes: BTreeMap<String, Vec<u64>>,
    /// Elements of inputs, by name.
    pub values: BTreeMap<String, BoundValue>,
    /// Dimensions that stay open, by [`open_name`], each with the least and the largest size that it may have: what stands above
    /// is an example for them. Front ends that cannot keep them open make a graph of the example.
    pub open: BTreeMap<String, (u64, u64)>,
    /// Inputs that are state, and the outputs that replace them, by name; see [`crate::states`].
    pub states: BTreeMap<String, String>,
    /// Rows in a multiple of which states have memory that grow by concatenation; 0 where each call makes all of their memory anew.
    pub row_step: u64,
    /// What the place in its buffer is a multiple of where a state's next value begins, in bytes, so that windows move over rows; 0 where
    /// a state begins with its buffer. Without a step it is only found out whether there are such windows.
    pub row_alignment: u64,
    /// Dimensions of inputs that what is made has to hold for beside the example, the first, or should, the others: where sizes are open.
    pub holds: Vec<Vec<Vec<u64>>>,
    /// Seed of the random numbers of operators that have none of their own.
    pub seed: u64,
    /// Most bytes of weights that a kernel binds at once, where the devices that this is for bind more than every device does.
    pub largest_binding: Option<u64>,
    /// Whether all devices that this is for multiply matrices of 16-bit floats in hardware.
    pub matrix_units: bool,
}

/// The name of a dimension of an input among open ones: that of its symbol, or of the input with the dimension's number.
pub fn open_name(input: &Signature, axis: usize) -> String {
    match input.dims.as_ref().and_then(|dims| dims.get(axis)) {
        Some(Dim::Symbol(name)) => name.clone(),
        _ => format!("{}#{axis}", input.name),
    }
}

/// Dimensions of inputs of which some are open.
#[derive(Debug)]
pub struct OpenShapes {
    /// What the sizes are computed of.
    pub trace: Trace,
    /// For each symbol the input and the dimension that give its value.
    pub symbols: Vec<(usize, usize)>,
    /// The dimensions of each input.
    pub shapes: Vec<Vec<Size>>,
}

impl Bindings {
    /// The dimensions `shapes` of inputs with those that stay open as symbols; `None` where none does. A size of 0 or 1 is never
    /// open: it means another graph.
    pub fn open_shapes(&self, inputs: &[Signature], shapes: &[Vec<u64>]) -> Option<OpenShapes> {
        let trace = Trace::new();
        let (mut known, mut symbols) = (BTreeMap::<String, Size>::new(), Vec::new());
        let mut one = |(index, input): (usize, &Signature), axis: usize, size: u64| {
            let name = open_name(input, axis);
            match self.open.get(&name) {
                Some((least, most)) if size >= 2 => *known.entry(name.clone()).or_insert_with(|| {
                    symbols.push((index, axis));
                    trace.symbol(&name, size, (*least).max(2), *most)
                }),
                _ => Size::from(size),
            }
        };
        let open: Vec<Vec<Size>> = inputs
            .iter()
            .enumerate()
            .zip(shapes)
            .map(|(input, dims)| {
                dims.iter().enumerate().map(|(axis, size)| one(input, axis, *size)).collect()
            })
            .collect();
        let size = |shapes: &[Vec<u64>], (input, axis): (usize, usize)| shapes.get(input)?.get(axis).copied();
        let values = |shapes: &Vec<Vec<u64>>| symbols.iter().map(|place| size(shapes, *place)).collect();
        let holds: Option<Vec<Vec<u64>>> = self.holds.iter().map(values).collect();
        trace.hold(&holds.unwrap_or_default());
        (!symbols.is_empty()).then_some(OpenShapes { trace, symbols, shapes: open })
    }

    /// Dimensions that are given for an input, by its value or its shape.
    pub fn shape(&self, input: &str) -> Option<&[u64]> {
        let value = self.values.get(input).map(|value| &value.dims);
        value.or_else(|| self.shapes.get(input)).map(Vec::as_slice)
    }

    /// Dimensions of inputs: those of the model, with symbols and unknown sizes filled in. A symbol has the size that is
    /// given for it, or that a shape gives it.
    ///
    /// # Errors
    /// Sizes contradict the model or each other, are missing, or are given for what is no input.
    pub fn resolve(&self, inputs: &[Signature]) -> Result<Vec<Vec<u64>>, CompileError> {
        let names: Vec<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
        let given = self.shapes.keys().chain(self.values.keys());
        if let Some(name) = given.into_iter().find(|name| !names.contains(&name.as_str())) {
            let reason = format!("'{name}' is no input; there are: {}", names.join(", "));
            return Err(CompileError::Request(reason));
        }
        let mut symbols = self.dims.clone();
        for input in inputs {
            self.agrees(input, &mut symbols)?;
        }
        let mut missing = Vec::new();
        let shapes = inputs.iter().map(|input| self.filled(input, &symbols, &mut missing)).collect();
        if missing.is_empty() {
            return Ok(shapes);
        }
        missing.sort();
        missing.dedup();
        let all: Vec<_> = inputs.iter().map(ToString::to_string).collect();
        Err(CompileError::Request(format!(
            "sizes are open: give {} (a symbol with --dim NAME=SIZE, an input's dimensions with --shape NAME=AxBxC); the \
             inputs are {}",
            missing.join(", "),
            all.join(", ")
        )))
    }

    /// Checks the shape that is given for an input, and learns its symbols.
    fn agrees(&self, input: &Signature, symbols: &mut BTreeMap<String, u64>) -> Result<(), CompileError> {
        let (Some(shape), Some(dims)) = (self.shape(&input.name), &input.dims) else { return Ok(()) };
        let wrong =
            |reason: String| Err(CompileError::Request(format!("{input} is given as {shape:?}: {reason}")));
        if shape.len() != dims.len() {
            return wrong(format!("it has {} dimensions", dims.len()));
        }
        for (size, dim) in shape.iter().zip(dims) {
            match dim {
                Dim::Known(own) if own != size => return wrong(format!("its size is {own}, not {size}")),
                Dim::UpTo(most) if size > most => {
                    return wrong(format!("its size is at most {most}, not {size}"));
                }
                Dim::Symbol(name) => match symbols.insert(name.clone(), *size) {
                    Some(other) if other != *size => {
                        return wrong(format!("{name} is {other} elsewhere, and {size} here"));
                    }
                    _ => {}
                },
                _ => {}
            }
        }
        Ok(())
    }

    fn filled(
        &self,
        input: &Signature,
        symbols: &BTreeMap<String, u64>,
        missing: &mut Vec<String>,
    ) -> Vec<u64> {
        if let Some(shape) = self.shape(&input.name) {
            return shape.to_vec();
        }
        let Some(dims) = &input.dims else {
            missing.push(format!("the dimensions of '{}'", input.name));
            return Vec::new();
        };
        let mut size = |dim: &Dim| match dim {
            Dim::Known(size) => *size,
            Dim::Symbol(name) => symbols.get(name).copied().unwrap_or_else(|| {
                missing.push(name.clone());
                0
            }),
            Dim::UpTo(_) | Dim::Unknown => {
                missing.push(format!("the dimensions of '{}'", input.name));
                0
            }
        };
        dims.iter().map(&mut size).collect()
    }
}

#[cfg(test)]
mod tests {
    use halite_ops::DType;

    use super::*;

    fn input(name: &str, dims: Vec<Dim>) -> Signature {
        let element = Some(DType::F32.into());
        Signature { name: name.into(), arity: Arity::Tensor, is_optional: false, element, dims: Some(dims) }
    }

    #[test]
    fn symbols_come_from_shapes_and_names() {
        let n = || Dim::Symbol("n".into());
        let inputs = [input("x", vec![n(), Dim::Known(3)]), input("y", vec![n(), Dim::Unknown])];
        let mut bindings = Bindings::default();
        let error = bindings.resolve(&inputs).unwrap_err().to_string();
        assert!(error.contains("give n, the dimensions of 'y'"), "{error}");
        bindings.shapes.insert("y".into(), vec![4, 7]);
        assert_eq!(bindings.resolve(&inputs).unwrap(), [vec![4, 3], vec![4, 7]]);
        bindings.dims.insert("n".into(), 5);
        assert!(bindings.resolve(&inputs).unwrap_err().to_string().contains("n is 5 elsewhere"));
        let most = [input("x", vec![Dim::UpTo(4)])];
        let of = |size| Bindings { shapes: [("x".to_owned(), vec![size])].into(), ..Bindings::default() };
        assert_eq!(of(4).resolve(&most).unwrap(), [vec![4]]);
        assert!(
            of(5)
                .resolve(&most)
                .unwrap_err()
                .to_string()
                .contains("'x' f32[..4] is given as [5]: its size is at most 4")
        );
        bindings.shapes.insert("z".into(), vec![]);
        assert!(bindings.resolve(&inputs).unwrap_err().to_string().contains("'z' is no input"));
    }
}
