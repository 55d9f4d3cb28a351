//! The bits of a 32-bit word that an access is about, for values narrower than a word that share one.
//!
//! Devices without 8-bit and 16-bit storage get kernels that keep several values in one word. A value is replaced by
//! an atomic AND with `~(ones << shift)` and an atomic OR with `(value & ones) << shift`, and read as
//! `(word >> shift) & ones`. Aligned words do not tear, and nobody else changes these bits, so neighbours in one
//! word are as independent as neighbours in memory.

use std::collections::HashMap;

use spirv::Op;

use crate::{cfg::Function, program::ParsedModule, types::Type};

/// Expressions deeper than this may have any bit set.
const MAX_DEPTH: u32 = 8;

/// `ones << shift`: the bits that an access reads or changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Lane {
    ones: u32,
    /// The id of the distance; `None` for zero.
    pub shift: Option<u32>,
}

impl Lane {
    /// The bits for a known distance.
    pub fn bits(self, shift: Option<u32>) -> u32 {
        let shifted = shift.and_then(|s| u64::from(self.ones).checked_shl(s));
        // What is shifted out may come back as copies of the sign.
        shifted.and_then(|bits| u32::try_from(bits).ok()).unwrap_or(u32::MAX)
    }
}

/// Finds the lanes of one function's accesses.
pub(super) struct Lanes<'a, 'w> {
    program: &'a ParsedModule<'w>,
    /// Instruction indices by the ids they use; empty if nothing is packed.
    users: HashMap<u32, Vec<usize>>,
}

impl<'a, 'w> Lanes<'a, 'w> {
    pub fn of(program: &'a ParsedModule<'w>, function: &Function) -> Self {
        let mut users = HashMap::<u32, Vec<usize>>::new();
        let body = function.blocks.iter().flat_map(|b| b.first..=b.last);
        if program.body(function).any(|i| matches!(i.op, Op::AtomicAnd | Op::AtomicOr)) {
            for index in body {
                for used in program.module.uses(&program.module.insts()[index]) {
                    users.entry(used.id).or_default().push(index);
                }
            }
        }
        Lanes { program, users }
    }

    /// The lane of the access by this instruction; `None` if it may be about the whole word, or is no such access.
    pub fn lane(&self, inst: usize) -> Option<Lane> {
        let module = &self.program.module;
        let inst = &module.insts()[inst];
        let words = module.operands(inst);
        let is_word = matches!(self.program.types.get(inst.ty), Some(Type::Int { width: 32 }));
        if self.users.is_empty() || !is_word {
            return None;
        }
        match inst.op {
            Op::Load => self.lane_read(inst.id),
            Op::AtomicAnd | Op::AtomicOr if self.users.contains_key(&inst.id) => None,
            Op::AtomicAnd => self.lane_cleared(words[3]),
            Op::AtomicOr => Some(self.lane_set(words[3])),
            _ => None,
        }
    }

    fn lane_cleared(&self, mask: u32) -> Option<Lane> {
        let module = &self.program.module;
        if let Some(mask) = module.constant_u32(mask) {
            return Some(Lane { ones: !mask, shift: None });
        }
        let not = module.def(mask).filter(|d| d.op == Op::Not)?;
        Some(self.lane_set(module.operands(not)[0]))
    }

    fn lane_set(&self, bits: u32) -> Lane {
        let module = &self.program.module;
        match module.def(bits).filter(|d| d.op == Op::ShiftLeftLogical) {
            Some(shifted) => {
                let words = module.operands(shifted);
                Lane { ones: self.ones(words[0], 0), shift: Some(words[1]) }
            }
            None => Lane { ones: self.ones(bits, 0), shift: None },
        }
    }

    /// The bits that all users of a loaded word take, if they all take the same.
    fn lane_read(&self, word: u32) -> Option<Lane> {
        let mut lane = None;
        for user in self.users.get(&word)? {
            let user = &self.program.module.insts()[*user];
            let words = self.program.module.operands(user);
            match user.op {
                Op::ShiftRightLogical | Op::ShiftRightArithmetic if words[0] == word && words[1] != word => {
                    for taken in self.users.get(&user.id).into_iter().flatten() {
                        let ones = self.ones_taken(*taken)?;
                        let this = Lane { ones, shift: Some(words[1]) };
                        (*lane.get_or_insert(this) == this).then_some(())?;
                    }
                }
                _ => return None,
            }
        }
        lane
    }

    /// The constant mask of an AND.
    fn ones_taken(&self, inst: usize) -> Option<u32> {
        let module = &self.program.module;
        let inst = Some(&module.insts()[inst]).filter(|i| i.op == Op::BitwiseAnd)?;
        module.operands(inst).iter().find_map(|w| module.constant_u32(*w))
    }

    /// The bits that may be set in a value.
    fn ones(&self, id: u32, depth: u32) -> u32 {
        let module = &self.program.module;
        if let Some(value) = module.constant_u32(id) {
            return value;
        }
        let Some(def) = module.def(id).filter(|_| depth < MAX_DEPTH) else { return u32::MAX };
        let of = |id: &u32| self.ones(*id, depth + 1);
        match (def.op, module.operands(def)) {
            (Op::BitwiseAnd, [a, b]) => of(a) & of(b),
            (Op::BitwiseOr | Op::BitwiseXor, [a, b]) | (Op::Select, [_, a, b]) => of(a) | of(b),
            _ => u32::MAX,
        }
    }
}
