//! What is compiled: functions, and the versions of each.

use std::{collections::HashSet, fmt};

use crate::{
    CompileError,
    graph::{Graph, Port},
};
use halite_abi::export;

/// Functions that become one module. Constants that several of them share are stored once.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The functions, in the order of the module's exports.
    pub functions: Vec<Function>,
    /// The model that they come from, if they come from one: the module names it.
    pub model: Option<ModelInfo>,
}

/// What a module says of the model that it was compiled from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelInfo {
    /// The name of its format, such as `ONNX`.
    pub format: String,
    /// The name of its file without the folder; or, of a model that came as bytes, the name that it gives itself. May be
    /// empty.
    pub name: String,
}

/// A function and the graphs among which the module chooses when it is called.
#[derive(Clone, Debug)]
pub struct Function {
    /// Name of the export: not empty, without `$`, not beginning with `__`.
    pub name: String,
    /// One graph for each set of sizes and bound values. All have the same ports: names and element types. The first whose
    /// dimensions and bound values are those of the inputs at hand is run.
    pub versions: Vec<Graph>,
    /// Sizes that were asked for and that no version is for.
    pub left_out: Option<LeftOut>,
}

/// Sizes for which a model makes no sense, such as those of pictures of which nothing is left when the model scales them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// How many combinations of sizes.
    pub combinations: usize,
    /// What is wrong with the largest of them: the node, why, and the sizes.
    pub why: String,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LeftOut { combinations, why } = self;
        if *combinations == 1 {
            write!(f, "{why}")
        } else {
            write!(f, "{why}, and {} more", combinations - 1)
        }
    }
}

impl Function {
    /// A function of these versions.
    pub fn new(name: impl Into<String>, versions: Vec<Graph>) -> Function {
        Function { name: name.into(), versions, left_out: None }
    }

    /// Whether a version has sizes that callers decide.
    pub fn is_open(&self) -> bool {
        self.versions.iter().any(|graph| graph.open.is_some())
    }
}

impl Program {
    /// A program of one function with one version.
    pub fn of(name: impl Into<String>, graph: Graph) -> Self {
        let functions = vec![Function::new(name, vec![graph])];
        Program { functions, model: None }
    }

    /// Whether it can be compiled: names are distinct and callable, and versions agree on their ports.
    ///
    /// # Errors
    /// Names the function and the rule.
    pub fn check(&self) -> Result<(), CompileError> {
        if self.functions.is_empty() {
            return Err(CompileError::Request("there is no function to compile".to_owned()));
        }
        let mut names = HashSet::new();
        for function in &self.functions {
            let name = &function.name;
            if name.is_empty() || !export::is_for_users(name) || name.contains(['@', '\0']) {
                return Err(CompileError::Request(format!(
                    "'{name}' cannot be the name of a function: it must not be empty, begin with '__' or contain '$' or '@'"
                )));
            }
            if !names.insert(name) {
                return Err(CompileError::Request(format!("two functions have the name '{name}'")));
            }
            function.check()?;
        }
        Ok(())
    }
}

impl Function {
    fn check(&self) -> Result<(), CompileError> {
        let Some((first, others)) = self.versions.split_first() else {
            return Err(CompileError::Request(format!("the function '{}' has no version", self.name)));
        };
        let ports = |graph: &Graph, ports: &[Port]| -> Vec<_> {
            ports.iter().map(|p| (p.name.clone(), graph.tensor(p.tensor).element)).collect()
        };
        let all = |graph: &Graph| (ports(graph, &graph.inputs), ports(graph, &graph.outputs));
        if let Some(index) = others.iter().position(|graph| all(graph) != all(first)) {
            let (inputs, outputs) = all(&others[index]);
            return Err(CompileError::Request(format!(
                "version {} of '{}' has the inputs {inputs:?} and outputs {outputs:?}; the first has {:?}",
                index + 1,
                self.name,
                all(first)
            )));
        }
        Ok(())
    }
}
