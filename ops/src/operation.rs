//! The operation as callers name it: one type for all of them, in text and JSON.

use crate::{Apart, DType, Operation, TensorDesc, Tolerance, Values};

/// What an operation costs at least: what has to be computed, and what has to be moved when everything is moved once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Arithmetic operations; a multiply-add counts twice.
    pub flops: f64,
    /// Bytes read and written.
    pub bytes: f64,
}

/// Declares [`crate::Operation`]: for each operation its documentation, `Struct(module)`, its name, and an example as text.
macro_rules! operations {
    ($($(#[$doc:meta])* $variant:ident($module:ident) $name:literal $example:literal,)*) => {
        /// A computation with types and shapes. Two are equal when they compute the same in the same way, whatever their text
        /// is.
        #[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Operation {
            $($(#[$doc])* #[serde(rename = $name)] $variant($module::$variant),)*
        }

        impl Operation {
            /// Names of all operations.
            pub const NAMES: &'static [&'static str] = &[$($name,)*];

            /// Its name.
            pub fn name(&self) -> &'static str {
                match self { $(Operation::$variant(_) => $name,)* }
            }

            /// The text of a small operation of a name, to show how one is written.
            pub fn example(name: &str) -> Option<&'static str> {
                match name { $($name => Some($example),)* _ => None }
            }

            fn op(&self) -> &dyn Op {
                match self { $(Operation::$variant(op) => op,)* }
            }

            fn op_mut(&mut self) -> &mut dyn Op {
                match self { $(Operation::$variant(op) => op,)* }
            }
        }

        #[cfg(any(test, feature = "testing"))]
        impl Operation {
            /// Operations that together exercise every path of the kernels of this name: odd sizes, no elements, sizes that
            /// divide no tile, each type.
            pub fn samples(name: &str) -> Vec<Operation> {
                let mut all: Vec<Operation> = match name {
                    $($name => $module::$variant::samples().into_iter().map(Operation::$variant).collect(),)*
                    _ => Vec::new(),
                };
                all.extend(crate::runs_samples::of(name));
                all
            }

            /// Values that an input must have where not any will do, such as indices; `random` gives 64 random bits.
            pub fn sample_input(&self, index: usize, random: &mut dyn FnMut() -> u64) -> Option<Values> {
                match self { $(Operation::$variant(op) => op.sample_input(index, random),)* }
            }
        }
    };
}

pub(crate) use operations;

/// Why a text is no operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperationError {
    /// The name is not known.
    #[error("there is no operation '{name}'; there are: {known}")]
    UnknownName {
        /// What was asked for.
        name: String,
        /// All names.
        known: String,
    },
    /// A field is missing, unknown or has a wrong value.
    #[error("operation '{text}': {reason}; write it as name:field=value,… or as JSON")]
    Fields {
        /// The text.
        text: String,
        /// What is wrong.
        reason: String,
    },
    /// The numbers do not go together.
    #[error("operation '{text}' makes no sense: {reason}")]
    Invalid {
        /// The operation.
        text: String,
        /// What is wrong.
        reason: String,
    },
}

impl Operation {
    /// Reads `matmul:m=64,n=32,k=16,lhs=f16` or JSON, `{"matmul":{"m":64,…}}`. Lists are `1x3x224x224`.
    ///
    /// # Errors
    /// Says which name or field is wrong and what there is.
    pub fn parse(text: &str) -> Result<Operation, OperationError> {
        let fields = |reason: String| OperationError::Fields { text: text.to_owned(), reason };
        let operation: Operation = if text.trim_start().starts_with('{') {
            serde_json::from_str(text).map_err(|e| fields(e.to_string()))?
        } else {
            let (name, rest) = text.split_once(':').unwrap_or((text, ""));
            if !Self::NAMES.contains(&name) {
                let known = Self::NAMES.join(", ");
                return Err(OperationError::UnknownName { name: name.to_owned(), known });
            }
            let mut object = serde_json::Map::new();
            for field in rest.split(',').filter(|f| !f.is_empty()) {
                let (key, value) =
                    field.split_once('=').ok_or_else(|| fields(format!("'{field}' has no value")))?;
                object.insert(key.trim().to_owned(), value_of(value.trim()));
            }
            serde_json::from_value(serde_json::json!({ name: object })).map_err(|e| fields(e.to_string()))?
        };
        operation.check().map_err(|reason| OperationError::Invalid { text: text.to_owned(), reason })?;
        Ok(operation)
    }

    /// Whether its numbers go together; the reason when they do not. Whether anything computes it is another question.
    pub fn check(&self) -> Result<(), String> {
        self.op().check()
    }

    /// Tensors that it reads, in binding order.
    pub fn inputs(&self) -> Vec<TensorDesc> {
        self.op().inputs()
    }

    /// Tensors that it writes, in binding order after the inputs.
    pub fn outputs(&self) -> Vec<TensorDesc> {
        self.op().outputs()
    }

    /// The operation on tensors of other types: `map` gives one for each that it has. Whether they go together is left to
    /// [`Operation::check`].
    #[must_use]
    pub fn with_types(&self, map: impl Fn(DType) -> DType) -> Operation {
        let mut operation = self.clone();
        operation.op_mut().types().into_iter().for_each(|dtype| *dtype = map(*dtype));
        operation
    }

    /// The type that decides which kernels are asked for; part of names.
    pub fn signature(&self) -> String {
        self.op().signature()
    }

    /// What it costs at least.
    pub fn work(&self) -> Work {
        // Of larger tensors the runs are moved.
        if let Some(apart) = self.apart() {
            return apart.operation.work();
        }
        let moved = |t: &TensorDesc| t.bytes().as_f64();
        let bytes = self.inputs().iter().chain(&self.outputs()).map(moved).sum();
        Work { flops: self.op().flops(), bytes }
    }

    /// The results, computed on the host. Values of inputs are those of their types.
    pub fn reference(&self, inputs: &[Values]) -> Vec<Values> {
        self.op().reference(inputs)
    }

    /// Whether an output keeps what it had where nothing is written to it.
    pub fn updates(&self, output: usize) -> bool {
        self.op().updates(output)
    }

    /// What it is without runs, where its first input or its first output is runs of a larger tensor.
    pub fn apart(&self) -> Option<Apart> {
        self.op().apart()
    }

    /// The results where outputs that are updated had the elements `before`, which has those of each output;
    /// [`Operation::reference`] has zeros there.
    pub fn reference_over(&self, inputs: &[Values], before: &[Values]) -> Vec<Values> {
        self.op().reference_over(inputs, before)
    }

    /// How far each output of a kernel may be from the reference's. `magnitudes` has, for each input, what the finite ones of its
    /// elements are at most ([`Values::magnitude`]).
    pub fn tolerance(&self, magnitudes: &[f64]) -> Tolerance {
        self.op().tolerance(magnitudes)
    }

    /// The same for one of several outputs.
    pub fn output_tolerance(&self, output: usize, magnitudes: &[f64]) -> Tolerance {
        self.op().output_tolerance(output, magnitudes)
    }
}

/// A number, a list of numbers, a flag or a word.
fn value_of(text: &str) -> serde_json::Value {
    if let Ok(number) = text.parse::<u64>() {
        return number.into();
    }
    if let Ok(number) = text.parse::<i64>() {
        return number.into();
    }
    if let Ok(number) = text.parse::<f64>() {
        return number.into();
    }
    if text.contains('x') {
        let list: Result<Vec<i64>, _> = text.split('x').map(str::parse).collect();
        if let Ok(list) = list {
            return list.into();
        }
    }
    match text {
        "true" | "yes" => true.into(),
        "false" | "no" => false.into(),
        word => word.into(),
    }
}

impl std::fmt::Display for Operation {
    /// The form that [`Operation::parse`] reads.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let json = serde_json::to_value(self).map_err(|_| std::fmt::Error)?;
        let fields = json.get(self.name()).and_then(serde_json::Value::as_object);
        write!(f, "{}:", self.name())?;
        for (i, (key, value)) in fields.into_iter().flatten().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            match value {
                serde_json::Value::String(word) => write!(f, "{comma}{key}={word}")?,
                serde_json::Value::Array(list) => {
                    write!(f, "{comma}{key}=")?;
                    for (i, one) in list.iter().enumerate() {
                        let times = if i > 0 { "x" } else { "" };
                        write!(f, "{times}{one}")?;
                    }
                }
                other => write!(f, "{comma}{key}={other}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_json_mean_the_same() {
        for name in Operation::NAMES {
            for sample in Operation::samples(name) {
                assert_eq!(sample.check(), Ok(()), "{sample}");
                let json = serde_json::to_string(&sample).unwrap();
                assert_eq!(Operation::parse(&json).as_ref(), Ok(&sample));
                // Expressions have a form of their own and are written as JSON only.
                if !json.contains("[[") && !json.contains("[{") && !json.contains(":{\"expr") {
                    assert_eq!(Operation::parse(&sample.to_string()).as_ref(), Ok(&sample), "{sample}");
                }
            }
        }
    }

    fn renamed(json: &mut serde_json::Value) {
        match json {
            serde_json::Value::String(text) if text == "f32" => *text = "f16".to_owned(),
            // The bias of an integer convolution stays f32: it has no f16 form. Weights stay as they are in their file.
            serde_json::Value::Object(fields) => {
                fields
                    .iter_mut()
                    .filter(|(name, _)| *name != "bias_type" && *name != "format")
                    .for_each(|(_, value)| renamed(value));
            }
            _ => {}
        }
    }

    /// No field is left out: what changes is what the text names.
    #[test]
    fn types_change_everywhere() {
        let half = |dtype| if dtype == DType::F32 { DType::F16 } else { dtype };
        for sample in Operation::NAMES.iter().flat_map(|name| Operation::samples(name)) {
            let changed = sample.with_types(half);
            if let Operation::Elementwise(elementwise) = &changed {
                let outputs = elementwise.program.outputs.iter().map(|output| output.dtype);
                let mut types = elementwise.dtypes().into_iter().chain(outputs);
                assert!(types.all(|dtype| dtype != DType::F32), "{changed}");
                continue;
            }
            let mut json = serde_json::to_value(&sample).unwrap();
            renamed(&mut json);
            assert_eq!(serde_json::from_value::<Operation>(json).unwrap(), changed, "{sample}");
        }
    }

    #[test]
    fn examples_are_operations_of_their_names() {
        for name in Operation::NAMES {
            let example = Operation::parse(Operation::example(name).unwrap()).unwrap();
            assert_eq!(example.name(), *name);
        }
    }

    #[test]
    fn errors_say_what_there_is() {
        let error = |text| Operation::parse(text).unwrap_err().to_string();
        assert!(error("matmull:m=1").contains("there are: ") && error("matmull:m=1").contains("matmul"));
        assert!(error("matmul:m=1,n=1,k=1,q=2").contains('q'));
        assert!(error("matmul:m").contains("no value"));
        assert!(error("matmul:m=1,n=1,k=1,lhs=f32,rhs=i8").contains("makes no sense: operands are floats"));
    }
}
