//! The assembler: a module with one entry point made from nothing. It gives ids, keeps types and constants without
//! duplicates, puts sections in order, and makes branches and loops.
//!
//! A pure instruction whose result is there already is not made again (value numbering), so whoever generates code need not
//! look for common subexpressions. Layout: SPIR-V specification 1.3, section 2.4.

use std::collections::{BTreeMap, BTreeSet};

use spirv::{
    Capability, Decoration, ExecutionMode, ExecutionModel, GlslStd450Op, MemoryModel, Op, StorageClass,
};

use crate::{
    module::GLSL,
    words::{literal, push},
};

/// A result of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id(
    /// The number.
    pub u32,
);

/// `1.3`, which every Vulkan 1.1 device takes.
const VERSION: u32 = 0x0001_0300;

/// Types that need a capability: the instruction, its width in bits, and the capability.
const OF_TYPES: [(Op, u32, Capability); 5] = [
    (Op::TypeFloat, 16, Capability::Float16),
    (Op::TypeFloat, 64, Capability::Float64),
    (Op::TypeInt, 64, Capability::Int64),
    (Op::TypeInt, 16, Capability::Int16),
    (Op::TypeInt, 8, Capability::Int8),
];

/// A branch in the making.
#[derive(Debug)]
pub struct If {
    no: Id,
    merge: Id,
    yes_end: Id,
    before: BTreeMap<Vec<u32>, Id>,
    has_else: bool,
}

/// Types and constants that loops count with.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    /// Type of the counter.
    pub word: Id,
    /// Type of the comparison.
    pub boolean: Id,
    /// The first number.
    pub zero: Id,
    /// What is added.
    pub one: Id,
    /// Number of rounds.
    pub count: Id,
}

/// A loop in the making.
#[derive(Debug)]
pub struct Repeat<const N: usize> {
    /// The values at the beginning of a round; after the loop, the results.
    pub values: [Id; N],
    /// Where in the code the values of the next round are named.
    next: [usize; N],
    counter: Counter,
    number: Id,
    next_number: Id,
    header: Id,
    continued: Id,
    merge: Id,
    before: BTreeMap<Vec<u32>, Id>,
}

/// A module in the making.
#[derive(Debug, Default)]
pub struct Assembler {
    last: u32,
    decorations: Vec<u32>,
    /// Types, constants and variables.
    declarations: Vec<u32>,
    body: Vec<u32>,
    /// Types and constants by their words without the result.
    known: BTreeMap<Vec<u32>, Id>,
    /// Pure instructions whose results are there in the current block, by their words without the result.
    in_block: BTreeMap<Vec<u32>, Id>,
    /// Results decorated as exact.
    exact: BTreeSet<Id>,
    ext: Option<Id>,
    inputs: Vec<Id>,
    /// Label of the block that instructions go to.
    current: Id,
}

impl Assembler {
    fn id(&mut self) -> Id {
        self.last += 1;
        Id(self.last)
    }

    /// A result id for what comes later, such as a label.
    pub fn reserve(&mut self) -> Id {
        self.id()
    }

    /// A type by its instruction; the same words give the same id.
    pub fn ty(&mut self, op: Op, operands: &[u32]) -> Id {
        let mut key = vec![op as u32];
        key.extend(operands);
        if let Some(id) = self.known.get(&key) {
            return *id;
        }
        let id = self.id();
        push(&mut self.declarations, op, &[&[id.0], operands]);
        self.known.insert(key, id);
        id
    }

    /// A type that is distinct from all others, because its decorations are its own.
    pub fn own_type(&mut self, op: Op, operands: &[u32]) -> Id {
        let id = self.id();
        push(&mut self.declarations, op, &[&[id.0], operands]);
        id
    }

    /// A constant by its instruction; the same words give the same id.
    pub fn constant(&mut self, op: Op, ty: Id, operands: &[u32]) -> Id {
        let mut key = vec![op as u32, ty.0];
        key.extend(operands);
        if let Some(id) = self.known.get(&key) {
            return *id;
        }
        let id = self.id();
        push(&mut self.declarations, op, &[&[ty.0, id.0], operands]);
        self.known.insert(key, id);
        id
    }

    /// A variable outside of functions. Those of class `Input` go into the interface.
    pub fn variable(&mut self, pointer: Id, class: StorageClass) -> Id {
        let id = self.id();
        push(&mut self.declarations, Op::Variable, &[&[pointer.0, id.0, class as u32]]);
        if class == StorageClass::Input {
            self.inputs.push(id);
        }
        id
    }

    /// `OpDecorate`.
    pub fn decorate(&mut self, id: Id, decoration: Decoration, operands: &[u32]) {
        push(&mut self.decorations, Op::Decorate, &[&[id.0, decoration as u32], operands]);
    }

    /// `OpMemberDecorate`.
    pub fn decorate_member(&mut self, id: Id, member: u32, decoration: Decoration, operands: &[u32]) {
        push(&mut self.decorations, Op::MemberDecorate, &[&[id.0, member, decoration as u32], operands]);
    }

    /// A pure instruction: not emitted where its result is there already.
    pub fn pure(&mut self, op: Op, ty: Id, operands: &[u32]) -> Id {
        let mut key = vec![op as u32, ty.0];
        key.extend(operands);
        if let Some(id) = self.in_block.get(&key) {
            return *id;
        }
        let id = self.effect(op, ty, operands);
        self.in_block.insert(key, id);
        id
    }

    /// A pure instruction on floats whose result must be that of this instruction alone. Without `NoContraction`, compilers
    /// (Mesa's, for one) do not only fuse multiplications with additions but also cancel and regroup terms.
    pub fn exact(&mut self, op: Op, ty: Id, operands: &[u32]) -> Id {
        let id = self.pure(op, ty, operands);
        if self.exact.insert(id) {
            self.decorate(id, Decoration::NoContraction, &[]);
        }
        id
    }

    /// A pure instruction of `GLSL.std.450`.
    pub fn ext(&mut self, op: GlslStd450Op, ty: Id, operands: &[Id]) -> Id {
        let set = match self.ext {
            Some(set) => set,
            None => self.id(),
        };
        self.ext = Some(set);
        let mut words = vec![set.0, op as u32];
        words.extend(operands.iter().map(|id| id.0));
        self.pure(Op::ExtInst, ty, &words)
    }

    /// An instruction with a result that is emitted each time.
    pub fn effect(&mut self, op: Op, ty: Id, operands: &[u32]) -> Id {
        let id = self.id();
        push(&mut self.body, op, &[&[ty.0, id.0], operands]);
        id
    }

    /// An instruction without a result.
    pub fn statement(&mut self, op: Op, operands: &[u32]) {
        push(&mut self.body, op, &[operands]);
    }

    /// Begins a block. What was computed before stays known: whoever leaves the blocks that it was computed in restores.
    pub fn block(&mut self, label: Id) {
        push(&mut self.body, Op::Label, &[&[label.0]]);
        self.current = label;
    }

    /// `if (condition)`: what follows is computed where it holds, until [`Assembler::otherwise`] or [`Assembler::end_if`].
    pub fn begin_if(&mut self, condition: Id) -> If {
        let [yes, no, merge] = [self.reserve(), self.reserve(), self.reserve()];
        self.statement(Op::SelectionMerge, &[merge.0, 0]);
        self.statement(Op::BranchConditional, &[condition.0, yes.0, no.0]);
        let before = self.in_block.clone();
        self.block(yes);
        If { no, merge, yes_end: yes, before, has_else: false }
    }

    /// `else`.
    pub fn otherwise(&mut self, branch: &mut If) {
        branch.yes_end = self.current;
        self.statement(Op::Branch, &[branch.merge.0]);
        self.in_block.clone_from(&branch.before);
        self.block(branch.no);
        branch.has_else = true;
    }

    /// The end of both parts. Gives the blocks that they ended in, for [`Assembler::phi`].
    pub fn end_if(&mut self, mut branch: If) -> (Id, Id) {
        if !branch.has_else {
            self.otherwise(&mut branch);
        }
        let no_end = self.current;
        self.statement(Op::Branch, &[branch.merge.0]);
        self.in_block = branch.before;
        self.block(branch.merge);
        (branch.yes_end, no_end)
    }

    /// A loop over values of type `ty`; what follows is a round, until [`Assembler::end_repeat`].
    pub fn begin_repeat<const N: usize>(&mut self, counter: Counter, ty: Id, initial: [Id; N]) -> Repeat<N> {
        let [header, body, continued, merge, next_number] = [(); 5].map(|()| self.reserve());
        let entry = self.current;
        self.statement(Op::Branch, &[header.0]);
        let before = self.in_block.clone();
        self.block(header);
        let first = [counter.zero.0, entry.0, next_number.0, continued.0];
        let number = self.effect(Op::Phi, counter.word, &first);
        let mut next = [0; N];
        let mut values = initial;
        for (value, place) in values.iter_mut().zip(&mut next) {
            // The value of the next round is not known yet.
            *value = self.effect(Op::Phi, ty, &[value.0, entry.0, 0, continued.0]);
            *place = self.body.len() - 2;
        }
        let more = self.effect(Op::ULessThan, counter.boolean, &[number.0, counter.count.0]);
        self.statement(Op::LoopMerge, &[merge.0, continued.0, 0]);
        self.statement(Op::BranchConditional, &[more.0, body.0, merge.0]);
        self.block(body);
        Repeat { values, next, counter, number, next_number, header, continued, merge, before }
    }

    /// The end of a loop: the values of the next round. Gives those after the last.
    pub fn end_repeat<const N: usize>(&mut self, repeat: Repeat<N>, next: [Id; N]) -> [Id; N] {
        for (place, value) in repeat.next.iter().zip(next) {
            self.body[*place] = value.0;
        }
        self.statement(Op::Branch, &[repeat.continued.0]);
        self.block(repeat.continued);
        let Counter { word, one, .. } = repeat.counter;
        let sum = [word.0, repeat.next_number.0, repeat.number.0, one.0];
        self.statement(Op::IAdd, &sum);
        self.statement(Op::Branch, &[repeat.header.0]);
        self.in_block = repeat.before;
        self.block(repeat.merge);
        repeat.values
    }

    /// The one of two values that was computed on the way here.
    pub fn phi(&mut self, ty: Id, (yes, no): (Id, Id), ends: (Id, Id)) -> Id {
        self.effect(Op::Phi, ty, &[yes.0, ends.0.0, no.0, ends.1.0])
    }

    /// The module: its one entry point is `function`, with this name and so many invocations in a workgroup. Capabilities are
    /// those of the types that are used.
    pub fn finish(mut self, function: Id, name: &str, local_size: [u32; 3]) -> Vec<u32> {
        let mut words = vec![spirv::MAGIC_NUMBER, VERSION, 0, self.last + 1, 0];
        push(&mut words, Op::Capability, &[&[Capability::Shader as u32]]);
        for (ty, width, capability) in OF_TYPES {
            if self.known.keys().any(|key| key.starts_with(&[ty as u32, width])) {
                push(&mut words, Op::Capability, &[&[capability as u32]]);
            }
        }
        if let Some(set) = self.ext {
            push(&mut words, Op::ExtInstImport, &[&[set.0], &literal(GLSL)]);
        }
        push(&mut words, Op::MemoryModel, &[&[0, MemoryModel::GLSL450 as u32]]);
        let inputs: Vec<u32> = self.inputs.iter().map(|id| id.0).collect();
        let head = [ExecutionModel::GLCompute as u32, function.0];
        push(&mut words, Op::EntryPoint, &[&head, &literal(name), &inputs]);
        push(&mut words, Op::ExecutionMode, &[&[function.0, ExecutionMode::LocalSize as u32], &local_size]);
        words.append(&mut self.decorations);
        words.append(&mut self.declarations);
        words.append(&mut self.body);
        words
    }
}
