//! What is in a model's file, for those who look at it: the parts of each function, their operators, memory and data.

use serde::Serialize;

/// What is in a model's file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Outline {
    /// The functions, in the order of the file.
    pub functions: Vec<FunctionOutline>,
    /// Data that are kept by name, in the file or in files beside it.
    pub data: Vec<DataOutline>,
}

/// A function of a model's file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FunctionOutline {
    /// Its name.
    pub name: String,
    /// What runs one after the other: delegates, and what is between them.
    pub parts: Vec<PartOutline>,
    /// Bytes of each memory that the file plans for it. Compiled modules plan their own.
    pub memory: Vec<u64>,
    /// Bytes of the constants that the function itself has.
    pub constants: u64,
}

/// Where the operators of a part run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RunsOn {
    /// On the device.
    Device,
    /// Nowhere: they are computed when the model is compiled.
    Compiler,
    /// Nowhere, as they are not supported.
    Refused,
}

/// A part of a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PartOutline {
    /// What it is called, such as `delegate 0 (VulkanBackend)`.
    pub name: String,
    /// Bytes of its own data.
    pub bytes: u64,
    /// Options with which it was made, by name.
    pub options: Vec<(String, String)>,
    /// Its operators by name, with how often they are called.
    pub operators: Vec<OperatorOutline>,
    /// Why it cannot be read, if so.
    pub problem: Option<String>,
}

/// An operator of a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OperatorOutline {
    /// Its name in the file.
    pub name: String,
    /// How often it is called.
    pub count: usize,
    /// Where it runs.
    pub runs: RunsOn,
    /// Why it is refused, if something more is known.
    pub reason: Option<String>,
}

/// Data that have a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DataOutline {
    /// The name.
    pub name: String,
    /// How many bytes they have.
    pub bytes: u64,
    /// Whether they lie in another file.
    pub external: bool,
}

impl PartOutline {
    /// A part without operators.
    pub fn new(name: impl Into<String>, bytes: u64) -> Self {
        PartOutline { name: name.into(), bytes, options: Vec::new(), operators: Vec::new(), problem: None }
    }

    /// Counts a call of an operator.
    pub fn count(&mut self, name: &str, runs: RunsOn, reason: Option<String>) {
        match self.operators.iter_mut().find(|operator| operator.name == name) {
            Some(known) => known.count += 1,
            None => self.operators.push(OperatorOutline { name: name.to_owned(), count: 1, runs, reason }),
        }
    }
}
