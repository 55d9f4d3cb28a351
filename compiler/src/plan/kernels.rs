//! Kernels and their code, each once; and the choice of what computes a step on a target, once for equal computations.

use std::{
    collections::{BTreeMap, HashMap},
    rc::Rc,
    sync::Arc,
};

use halite_targets::Capabilities;

use crate::{
    CompileError, SourceLocation,
    backend::{Backend, Binary, Choice, Code, Computation, Dispatch},
    graph::ForeignKernel,
};

/// Chooses what computes on one target. Equal computations are decided once.
#[derive(Debug)]
pub struct Chooser<'a> {
    backend: &'a dyn Backend,
    target: &'a Capabilities,
    operations: HashMap<String, Rc<Choice>>,
    foreign: HashMap<Arc<ForeignKernel>, Rc<Choice>>,
}

impl<'a> Chooser<'a> {
    /// Of a target.
    pub fn new(backend: &'a dyn Backend, target: &'a Capabilities) -> Self {
        Chooser { backend, target, operations: HashMap::new(), foreign: HashMap::new() }
    }

    /// What computes something on the target.
    ///
    /// # Errors
    /// Nothing does.
    pub fn choose(
        &mut self,
        computation: &Computation,
        location: &SourceLocation,
    ) -> Result<Rc<Choice>, CompileError> {
        let known = match computation {
            Computation::Operation(operation) => self.operations.get(&operation.to_string()),
            Computation::Foreign(kernel) => self.foreign.get(kernel),
        };
        if let Some(choice) = known {
            return Ok(choice.clone());
        }
        let choice =
            self.backend.choose(computation, self.target).map_err(|reason| CompileError::NoKernel {
                location: location.clone(),
                target: self.target.target.to_string(),
                operation: computation.to_string(),
                reason,
            })?;
        let choice = Rc::new(choice);
        match computation {
            Computation::Operation(operation) => {
                self.operations.insert(operation.to_string(), choice.clone())
            }
            Computation::Foreign(kernel) => self.foreign.insert(kernel.clone(), choice.clone()),
        };
        Ok(choice)
    }
}

/// Codes, each once for all targets.
#[derive(Debug, Default)]
pub struct Codes {
    /// The codes.
    pub all: Vec<Code>,
    library: BTreeMap<(&'static str, [u32; 3]), usize>,
    made: HashMap<(Arc<[u32]>, [u32; 3]), usize>,
}

impl Codes {
    /// The index of a dispatch's code.
    pub fn index(&mut self, dispatch: &Dispatch, variant: &str) -> usize {
        let shape = [dispatch.bindings.len() as u32, dispatch.push.len() as u32, dispatch.subgroup_size];
        let (next, entry) = (
            self.all.len(),
            match &dispatch.binary {
                Binary::Library { name, .. } => self.library.entry((name, shape)).or_insert(self.all.len()),
                Binary::Made(words) => self.made.entry((words.clone(), shape)).or_insert(self.all.len()),
            },
        );
        let index = *entry;
        if index == next {
            let name = match &dispatch.binary {
                Binary::Library { name, .. } => (*name).to_owned(),
                Binary::Made(_) => format!("{variant}.{index}"),
            };
            let [bindings, push_words, subgroup_size] = shape;
            self.all.push(Code {
                name,
                binary: dispatch.binary.clone(),
                bindings,
                push_words,
                subgroup_size,
            });
        }
        index
    }
}

/// Code with specialization constants: what one target has of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kernel {
    /// An index into [`Codes::all`].
    pub code: usize,
    /// Specialization constants with ids 0, 1, 2, ….
    pub constants: Vec<u32>,
}

/// Kernels of a target, each once.
#[derive(Debug, Default)]
pub struct Kernels {
    /// The kernels.
    pub all: Vec<Kernel>,
    index: HashMap<Kernel, usize>,
}

impl Kernels {
    /// The index of a kernel.
    pub fn index(&mut self, kernel: Kernel) -> usize {
        let next = self.all.len();
        let index = *self.index.entry(kernel.clone()).or_insert(next);
        if index == next {
            self.all.push(kernel);
        }
        index
    }
}
