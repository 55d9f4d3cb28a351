//! Kernels and their code, each once; and the choice of what computes a step on a target, once for equal computations.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    rc::Rc,
    sync::Arc,
};

use halite_ops::Operation;
use halite_targets::Capabilities;

use crate::{
    CompileError, SourceLocation,
    backend::{Backend, Binary, Choice, Code, Computation, Dispatch},
};

/// Chooses what computes on one target. Equal computations are decided once.
#[derive(Debug)]
pub struct Chooser<'a> {
    backend: &'a dyn Backend,
    target: &'a Capabilities,
    known: HashMap<Computation, Rc<Choice>>,
}

impl<'a> Chooser<'a> {
    /// Of a target.
    pub fn new(backend: &'a dyn Backend, target: &'a Capabilities) -> Self {
        Chooser { backend, target, known: HashMap::new() }
    }

    /// Forgets what was decided: for a graph whose open sizes have expressions of their own.
    pub fn forget(&mut self) {
        self.known.clear();
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
        if let Some(choice) = self.known.get(computation) {
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
        self.known.insert(computation.clone(), choice.clone());
        Ok(choice)
    }
}

/// The choosers of all targets, to ask them before steps are there.
#[derive(Debug)]
pub(super) struct Takers<'a>(RefCell<Vec<Chooser<'a>>>);

impl<'a> Takers<'a> {
    /// Of targets.
    pub(super) fn new(backend: &'a dyn Backend, targets: &'a [Capabilities]) -> Self {
        Takers(RefCell::new(targets.iter().map(|target| Chooser::new(backend, target)).collect()))
    }

    /// Whether all targets compute an operation with runs by the kernel that they compute it by without, in as many dispatches.
    pub(super) fn take(&self, operation: &Operation) -> bool {
        let Some(apart) = operation.apart() else { return true };
        let [with, without] =
            [operation.clone(), apart.operation].map(|op| Computation::Operation(Box::new(op)));
        self.0.borrow_mut().iter_mut().all(|chooser| {
            let mut chosen = |computation| chooser.choose(computation, &SourceLocation::default()).ok();
            let (Some(with), Some(without)) = (chosen(&with), chosen(&without)) else { return false };
            with.variant == without.variant && with.dispatches.len() == without.dispatches.len()
        })
    }

    /// Whether all targets are estimated to compute `other` faster than `one`.
    pub(super) fn prefer(&self, one: &Operation, other: &Operation) -> bool {
        let [one, other] = [one, other].map(|op| Computation::Operation(Box::new(op.clone())));
        self.0.borrow_mut().iter_mut().all(|chooser| {
            let mut estimated = |computation| {
                chooser
                    .choose(computation, &SourceLocation::default())
                    .ok()
                    .and_then(|choice| choice.estimate)
            };
            estimated(&other).zip(estimated(&one)).is_some_and(|(other, one)| other < one)
        })
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

#[cfg(test)]
mod tests {
    use halite_ops::{
        DType, Operation,
        elementwise::Elementwise,
        expression::{Expression, Function, Operand, Scalar},
    };
    use halite_shaders::Tuning;
    use halite_targets::Target;

    use super::*;
    use crate::backend::vulkan::Vulkan;

    /// `x * factor`, of which the text has the factor's nearest `f32` only.
    fn scaled(factor: f64) -> Computation {
        let mut program = Expression::default();
        let factor = Operand::Constant(Scalar::Float(factor));
        let product = program.call(Function::Mul, &[Operand::Input(0), factor]);
        program.store(product, DType::F32);
        let operation = Elementwise::new(vec![(DType::F32, vec![4])], program);
        Computation::Operation(Box::new(Operation::Elementwise(operation)))
    }

    #[test]
    fn equal_operations_are_decided_once_whatever_their_text_is() {
        let target = Capabilities::of(Target::parse("hopper-h200-linux").unwrap());
        let backend = Vulkan::new(Tuning::shipped());
        let mut chooser = Chooser::new(&backend, &target);
        let location = SourceLocation::default();
        let nan = f32::from_bits(f32::NAN.to_bits() | 1);
        let [one, other] = [scaled(f32::NAN.into()), scaled(nan.into())];
        assert_eq!(one.to_string(), other.to_string());
        assert_ne!(one, other);
        let first = chooser.choose(&one, &location).unwrap();
        assert!(Rc::ptr_eq(&first, &chooser.choose(&one.clone(), &location).unwrap()));
        assert!(!Rc::ptr_eq(&first, &chooser.choose(&other, &location).unwrap()));
    }
}
