//! The choice of a kernel for an operation on a target, and the code that the chosen kernels have.

use std::{
    collections::{BTreeMap, HashMap},
    rc::Rc,
    sync::Arc,
};

use halite_ops::{Operation, Work};
use halite_shaders::{Module, Plan, Step, Tuning, Variant, Verdict, rank};
use halite_targets::Capabilities;

use crate::{CompileError, SourceLocation};

/// Reasons that are named when no candidate of an operation can run.
const MOST_REASONS: usize = 8;

/// What computes an operation.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Name of the variant.
    pub variant: &'static str,
    /// Why it and no other.
    pub why: String,
    /// What is dispatched.
    pub plan: Plan,
    /// What the operation costs at least.
    pub work: Work,
}

/// Chooses kernels for one target. Equal operations are decided once.
#[derive(Debug)]
pub struct Chooser<'a> {
    target: &'a Capabilities,
    tuning: &'a Tuning,
    known: HashMap<Operation, Rc<Choice>>,
}

impl<'a> Chooser<'a> {
    /// Of a target.
    pub fn new(target: &'a Capabilities, tuning: &'a Tuning) -> Self {
        Chooser { target, tuning, known: HashMap::new() }
    }

    /// The first variant that computes the operation on the target.
    ///
    /// # Errors
    /// There is none.
    pub fn choose(
        &mut self,
        operation: &Operation,
        location: &SourceLocation,
    ) -> Result<Rc<Choice>, CompileError> {
        if let Some(choice) = self.known.get(operation) {
            return Ok(choice.clone());
        }
        let ranked = rank(operation, self.target, self.tuning);
        let mut refused: Vec<(&Variant, String)> = Vec::new();
        for candidate in ranked {
            match candidate.verdict {
                Verdict::Runs { plan, why } => {
                    let choice =
                        Choice { variant: &candidate.variant.name, why, plan, work: operation.work() };
                    let choice = Rc::new(choice);
                    self.known.insert(operation.clone(), choice.clone());
                    return Ok(choice);
                }
                Verdict::RuledOut(reason) => refused.push((candidate.variant, reason)),
            }
        }
        let reason = reasons(refused, &operation.signature());
        Err(CompileError::NoKernel {
            location: location.clone(),
            target: self.target.target.to_string(),
            operation: operation.to_string(),
            reason,
        })
    }
}

/// Why no candidate can run: what the plainest lack first, and nothing of those for other types.
fn reasons(mut refused: Vec<(&Variant, String)>, signature: &str) -> String {
    if refused.iter().any(|(variant, _)| variant.signatures.iter().any(|own| own == signature)) {
        refused.retain(|(variant, _)| variant.signatures.iter().any(|own| own == signature));
    }
    refused.sort_by_key(|(variant, _)| !variant.needs.is_baseline());
    let mut grouped: Vec<(String, Vec<&str>)> = Vec::new();
    for (variant, reason) in refused {
        match grouped.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(&variant.name),
            None => grouped.push((reason, vec![&variant.name])),
        }
    }
    let more = grouped.len().saturating_sub(MOST_REASONS);
    let listed = grouped.iter().take(MOST_REASONS).map(|(reason, names)| {
        let others = names.len() - 1;
        let others = if others > 0 { format!(" and {others} more") } else { String::new() };
        format!("{}{others}: {reason}", names[0])
    });
    let text = listed.collect::<Vec<_>>().join("; ");
    if more > 0 { format!("{text}; and {more} other reasons") } else { text }
}

/// Code of a kernel, as one executable has it.
#[derive(Clone, Debug)]
pub struct Code {
    /// Name of its pipeline.
    pub name: String,
    /// The SPIR-V.
    pub module: Module,
    /// Bindings 0, 1, … of set 0.
    pub bindings: u32,
    /// Push constants in words.
    pub push_words: u32,
    /// Subgroup size that it requires; 0 for any.
    pub subgroup_size: u32,
}

/// Codes, each once for all targets.
#[derive(Debug, Default)]
pub struct Codes {
    /// The codes.
    pub all: Vec<Code>,
    compiled: BTreeMap<(&'static str, [u32; 3]), usize>,
    emitted: HashMap<(Arc<[u32]>, [u32; 3]), usize>,
}

impl Codes {
    /// The index of a step's code.
    pub fn index(&mut self, step: &Step, variant: &str) -> usize {
        let shape = [step.bindings.len() as u32, step.push.len() as u32, step.subgroup_size];
        let (next, entry) = (
            self.all.len(),
            match &step.module {
                Module::Compiled { name, .. } => self.compiled.entry((name, shape)).or_insert(self.all.len()),
                Module::Emitted(words) => {
                    self.emitted.entry((words.clone(), shape)).or_insert(self.all.len())
                }
            },
        );
        let index = *entry;
        if index == next {
            let name = match &step.module {
                Module::Compiled { name, .. } => (*name).to_owned(),
                Module::Emitted(_) => format!("{variant}.{index}"),
            };
            let [bindings, push_words, subgroup_size] = shape;
            self.all.push(Code { name, module: step.module.clone(), bindings, push_words, subgroup_size });
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
        DType,
        elementwise::Elementwise,
        expression::{Expression, Function, Operand, Scalar},
    };
    use halite_targets::Target;

    use super::*;

    /// `x * factor`, of which the text has the factor's nearest `f32` only.
    fn scaled(factor: f64) -> Operation {
        let mut program = Expression::default();
        let factor = Operand::Constant(Scalar::Float(factor));
        let product = program.call(Function::Mul, &[Operand::Input(0), factor]);
        program.store(product, DType::F32);
        Operation::Elementwise(Elementwise::new(vec![(DType::F32, vec![4])], program))
    }

    #[test]
    fn equal_operations_are_decided_once_whatever_their_text_is() {
        let target = Capabilities::of(Target::parse("hopper-h200-linux").unwrap());
        let mut chooser = Chooser::new(&target, Tuning::shipped());
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
