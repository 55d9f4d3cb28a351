//! The in-memory form of verified functions that the interpreter runs.

use std::sync::Arc;

use crate::{
    isa::Op,
    signature::{Kind, Signature},
};

/// A fixed-size instruction. Registers are in operand order: the first three in `a`, `b`, `c`, further ones packed
/// behind the words. Ref registers keep their MOVE bit and lose their bank bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Insn {
    pub op: Op,
    pub a: u16,
    pub b: u16,
    pub c: u16,
    pub x: u32,
    pub y: u32,
}

impl Insn {
    /// Builds one from registers and words; `None` when they do not fit (a test shows that no table row is so wide).
    pub(crate) fn pack(op: Op, regs: &[u16], words: &[u32]) -> Option<Insn> {
        let reg = |i: usize| regs.get(i).copied().unwrap_or(0);
        let pair = |i: usize| u32::from(reg(i)) | u32::from(reg(i + 1)) << 16;
        let (room, x, y) = match *words {
            [] => (7, pair(3), pair(5)),
            [x] => (5, x, pair(3)),
            [x, y] => (3, x, y),
            _ => return None,
        };
        (regs.len() <= room).then(|| Insn { op, a: reg(0), b: reg(1), c: reg(2), x, y })
    }

    /// Fourth register of an instruction without words.
    #[inline(always)]
    pub(crate) fn d(&self) -> u16 {
        self.x as u16
    }

    /// Fifth register of an instruction without words.
    #[inline(always)]
    pub(crate) fn e(&self) -> u16 {
        (self.x >> 16) as u16
    }

    /// Sixth register of an instruction without words.
    #[inline(always)]
    pub(crate) fn f(&self) -> u16 {
        self.y as u16
    }

    /// Fourth register of an instruction with one word.
    #[inline(always)]
    pub(crate) fn d_after_word(&self) -> u16 {
        self.y as u16
    }

    /// The 64-bit immediate.
    #[inline(always)]
    pub(crate) fn imm64(&self) -> u64 {
        u64::from(self.x) | u64::from(self.y) << 32
    }
}

/// A range of a side table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub start: u32,
    pub len: u32,
}

impl Span {
    /// The part of the table it names.
    #[inline(always)]
    pub(crate) fn of<T>(self, table: &[T]) -> &[T] {
        &table[self.start as usize..][..self.len as usize]
    }
}

/// A branch edge. `pairs` holds the cell pairs first, then the ref pairs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    /// Instruction index.
    pub target: u32,
    pub cells: Span,
    pub refs: Span,
    /// Whether it goes back, so that a loop may form.
    pub backward: bool,
}

/// A register with its kind, in a call or return list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TypedReg {
    pub kind: Kind,
    /// Register; refs keep MOVE.
    pub reg: u16,
    /// In argument lists: the callee's register.
    pub dst: u16,
}

/// What a call site calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callee {
    /// Function of the same module.
    Internal(u32),
    /// Import of the module.
    Import(u32),
}

/// A call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallSite {
    pub callee: Callee,
    /// In `typed`.
    pub args: Span,
    /// In `typed`.
    pub results: Span,
    /// Element counts of variadic spans, in `regs`.
    pub spans: Span,
    /// Where to go on: the next instruction when absent.
    pub target: Option<u32>,
}

/// A verified function.
#[derive(Debug)]
pub(crate) struct Function {
    pub signature: Arc<Signature>,
    pub code: Vec<Insn>,
    /// Bytecode offset of each instruction.
    pub offsets: Vec<u32>,
    pub edges: Vec<Edge>,
    /// (source, destination) of all edges; refs keep MOVE on the source.
    pub pairs: Vec<(u16, u16)>,
    /// Pool of register lists and span counts.
    pub regs: Vec<u16>,
    /// Register lists, in `regs`.
    pub lists: Vec<Span>,
    pub sites: Vec<CallSite>,
    /// Pool of typed registers.
    pub typed: Vec<TypedReg>,
    /// Return lists, in `typed`.
    pub returns: Vec<Span>,
    pub strings: Vec<Box<str>>,
    /// Cells that are really used.
    pub cells: u32,
    /// Ref registers that are really used.
    pub refs: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::{Operand, table};

    #[test]
    fn every_row_fits() {
        assert_eq!(size_of::<Insn>(), 16);
        for row in table() {
            let (mut regs, mut words) = (0, 0);
            for operand in row.operands {
                match operand {
                    Operand::Cell | Operand::CellOut | Operand::Pair | Operand::PairOut => regs += 1,
                    Operand::Ref | Operand::RefMove | Operand::RefOut => regs += 1,
                    Operand::Imm64 | Operand::Cases => words += 2,
                    Operand::Args | Operand::Results | Operand::Segments | Operand::Target => {}
                    _ => words += 1,
                }
            }
            assert!(Insn::pack(row.op, &vec![0; regs], &vec![0; words]).is_some(), "{}", row.mnemonic);
        }
    }
}
