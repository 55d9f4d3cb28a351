//! Instructions in the making: values of 32 bits, and the types and constants that they need.

use std::collections::HashMap;

use spirv::{GlslStd450Op, Op};

use crate::{edit::Editor, module::Module};

/// Functions that put words where a condition holds: by variable, and whether they put whole words.
#[derive(Default)]
pub(super) struct Puts {
    pub known: HashMap<(u32, bool), u32>,
    pub words: Vec<u32>,
}

impl Puts {
    pub fn take(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.words)
    }
}

/// Instructions for the place of one, and what all such places share.
pub(super) struct Code<'e, 'm, 'w> {
    pub module: &'m Module<'w>,
    pub edit: &'e mut Editor<'m, 'w>,
    words: Vec<u32>,
    pub puts: Puts,
}

impl<'e, 'm, 'w> Code<'e, 'm, 'w> {
    pub fn new(module: &'m Module<'w>, edit: &'e mut Editor<'m, 'w>) -> Self {
        Code { module, edit, words: Vec::new(), puts: Puts::default() }
    }

    /// The instructions so far; there are none afterwards.
    pub fn take(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.words)
    }

    /// Goes on with what was taken.
    pub fn resume(&mut self, words: Vec<u32>) {
        self.words = words;
    }

    /// An instruction with a result.
    pub fn value(&mut self, op: Op, ty: u32, operands: &[u32]) -> u32 {
        let id = self.edit.fresh();
        self.named(op, ty, id, operands);
        id
    }

    /// An instruction whose result has this id.
    pub fn named(&mut self, op: Op, ty: u32, id: u32, operands: &[u32]) {
        crate::words::push(&mut self.words, op, &[&[ty, id], operands]);
    }

    /// An instruction without a result.
    pub fn effect(&mut self, op: Op, operands: &[u32]) {
        crate::words::push(&mut self.words, op, &[operands]);
    }

    /// A function of `GLSL.std.450`.
    pub fn ext(&mut self, op: GlslStd450Op, ty: u32, operands: &[u32]) -> u32 {
        let set = self.edit.glsl();
        self.value(Op::ExtInst, ty, &[&[set, op as u32], operands].concat())
    }

    pub fn uint(&mut self) -> u32 {
        self.edit.uint()
    }

    pub fn int(&mut self) -> u32 {
        self.edit.global(Op::TypeInt, None, &[32, 1])
    }

    pub fn float(&mut self) -> u32 {
        self.edit.global(Op::TypeFloat, None, &[32])
    }

    pub fn boolean(&mut self) -> u32 {
        self.edit.global(Op::TypeBool, None, &[])
    }

    pub fn vector(&mut self, element: u32, count: u32) -> u32 {
        self.edit.global(Op::TypeVector, None, &[element, count])
    }

    /// An unsigned constant.
    pub fn word(&mut self, value: u32) -> u32 {
        self.edit.constant(value)
    }

    /// A signed constant.
    pub fn number(&mut self, value: i32) -> u32 {
        let int = self.int();
        self.edit.global(Op::Constant, Some(int), &[value as u32])
    }

    /// A constant of f32.
    pub fn real(&mut self, value: f32) -> u32 {
        let float = self.float();
        self.edit.global(Op::Constant, Some(float), &[value.to_bits()])
    }

    /// An operation on two unsigned integers.
    pub fn words2(&mut self, op: Op, a: u32, b: u32) -> u32 {
        let uint = self.uint();
        self.value(op, uint, &[a, b])
    }

    /// An operation on two signed integers.
    pub fn ints2(&mut self, op: Op, a: u32, b: u32) -> u32 {
        let int = self.int();
        self.value(op, int, &[a, b])
    }

    /// An operation on two floats.
    pub fn floats2(&mut self, op: Op, a: u32, b: u32) -> u32 {
        let float = self.float();
        self.value(op, float, &[a, b])
    }

    /// A comparison, or an operation on two truths.
    pub fn test(&mut self, op: Op, a: u32, b: u32) -> u32 {
        let boolean = self.boolean();
        self.value(op, boolean, &[a, b])
    }

    /// `condition ? yes : no`.
    pub fn select(&mut self, ty: u32, condition: u32, yes: u32, no: u32) -> u32 {
        self.value(Op::Select, ty, &[condition, yes, no])
    }

    /// A 32-bit value as another type of 32 bits.
    pub fn as_type(&mut self, ty: u32, value: u32) -> u32 {
        self.value(Op::Bitcast, ty, &[value])
    }

    /// The parts of a vector or an array of so many parts of type `part`; a scalar is its own part.
    pub fn parts(&mut self, value: u32, part: u32, count: u32) -> Vec<u32> {
        match self.is_scalar(value) {
            true => vec![value],
            false => (0..count).map(|i| self.value(Op::CompositeExtract, part, &[value, i])).collect(),
        }
    }

    fn is_scalar(&self, value: u32) -> bool {
        let ty = self.type_of(value).and_then(|ty| self.module.def(ty));
        ty.is_some_and(|ty| matches!(ty.op, Op::TypeInt | Op::TypeFloat | Op::TypeBool))
    }

    /// The type of a value of the module.
    pub fn type_of(&self, value: u32) -> Option<u32> {
        self.module.def(value).map(|def| def.ty)
    }

    /// The instruction and operands of a type of the module.
    pub fn type_def(&self, ty: u32) -> Option<(Op, &'w [u32])> {
        self.module.def(ty).map(|def| (def.op, self.module.operands(def)))
    }

    /// The integer parts of coordinates: a scalar, a vector or an array of 32-bit integers, as signed ones.
    pub fn coordinates(&mut self, value: u32, count: u32) -> Option<Vec<u32>> {
        let (op, operands) = self.type_def(self.type_of(value)?)?;
        let (part, has) = match op {
            Op::TypeInt => (self.type_of(value)?, 1),
            Op::TypeVector => (operands[0], operands[1]),
            Op::TypeArray => (operands[0], self.module.constant_u32(operands[1])?),
            _ => return None,
        };
        let (Op::TypeInt, [32, _]) = self.type_def(part)? else { return None };
        if has < count || op == Op::TypeInt && count != 1 {
            return None;
        }
        let int = self.int();
        let parts = self.parts(value, part, count);
        Some(parts.into_iter().map(|part| self.as_type(int, part)).collect())
    }

    /// Puts what stores need in front of the module's functions.
    pub fn finish(&mut self) {
        let Some(first) = self.module.insts().iter().find(|inst| inst.op == Op::Function) else { return };
        let functions = self.puts.take();
        self.edit.insert_before(first, functions);
    }
}
