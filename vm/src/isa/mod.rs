//! The description of the instruction set (opcodes and operand patterns).

mod table;

pub use table::Op;

/// Byte that precedes an opcode of the f32 set.
pub const PREFIX_F32: u8 = 0xE0;
/// Byte that precedes an opcode of the f64 set.
pub const PREFIX_F64: u8 = 0xE1;
/// In a register operand: the register is of the ref bank.
pub const REG_REF: u16 = 0x8000;
/// In a ref register operand: the reference is moved, not copied.
pub const REG_MOVE: u16 = 0x4000;
/// In a function operand: the low bits are an import ordinal.
pub const CALLEE_IMPORT: u32 = 0x8000_0000;
/// Segment entry of a signature item that is not a variadic span.
pub const SEGMENT_PLAIN: u16 = 0xFFFF;
/// Most cells a function may have in its i32 bank.
pub const MAX_CELLS: u16 = 0x7FFF;
/// Most registers a function may have in its ref bank.
pub const MAX_REFS: u16 = 0x3FFF;

/// Opcode sets. The float sets need the matching requirement bit of the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpSet {
    /// One-byte opcodes.
    Core,
    /// Opcodes behind [`PREFIX_F32`].
    F32,
    /// Opcodes behind [`PREFIX_F64`].
    F64,
}

/// What one operand is and how it is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// Source cell, 32 bits (i32 or f32).
    Cell,
    /// Result cell.
    CellOut,
    /// Source cell pair, 64 bits, named by its even low cell.
    Pair,
    /// Result pair.
    PairOut,
    /// Source ref register that must not be moved.
    Ref,
    /// Source ref register that may be moved.
    RefMove,
    /// Result ref register; MOVE transfers out of a global or list.
    RefOut,
    /// 32 raw bits.
    Imm32,
    /// 64 raw bits.
    Imm64,
    /// Byte offset of a 4-byte global.
    Global4,
    /// Byte offset of an 8-byte global.
    Global8,
    /// Index of a ref global.
    GlobalRef,
    /// Rodata ordinal.
    Rodata,
    /// Type-table index.
    Type,
    /// Function ordinal, or import ordinal with [`CALLEE_IMPORT`].
    Function,
    /// Import ordinal.
    Import,
    /// Offset of a block, without a remap list.
    Target,
    /// Offset of a block and a remap list.
    Edge,
    /// String: u16 length and bytes.
    Text,
    /// List of source cells.
    Cells,
    /// List of source pairs.
    Pairs,
    /// List of ref registers, which may be moved.
    Refs,
    /// List of registers of any kind.
    Any,
    /// Call operands: registers by the callee's signature.
    Args,
    /// Call results: registers by the callee's signature.
    Results,
    /// One number per signature item: span length or [`SEGMENT_PLAIN`].
    Segments,
    /// Registers by the function's own result signature.
    Returns,
    /// Branch table: default edge, u16 count, edges.
    Cases,
}

impl Operand {
    /// Whether it is a register that the operation writes.
    pub fn is_result(self) -> bool {
        matches!(self, Operand::CellOut | Operand::PairOut | Operand::RefOut | Operand::Results)
    }
}

/// A row of the instruction table.
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    /// The operation.
    pub op: Op,
    /// Its set.
    pub set: OpSet,
    /// Its number within the set.
    pub code: u8,
    /// Name as in the VM dialect, without the `vm.` prefix.
    pub mnemonic: &'static str,
    /// Operands in encoding order.
    pub operands: &'static [Operand],
}

/// Every operation, sorted by [`Op`].
pub fn table() -> &'static [OpInfo] {
    table::TABLE
}

const NONE: u16 = u16::MAX;

/// Table index by opcode, per set; [`NONE`] where there is no operation.
static INDEX: [[u16; 256]; 3] = {
    let mut index = [[NONE; 256]; 3];
    let mut i = 0;
    while i < table::TABLE.len() {
        let row = &table::TABLE[i];
        index[row.set as usize][row.code as usize] = i as u16;
        i += 1;
    }
    index
};

/// The operation with this number in this set.
pub fn lookup(set: OpSet, code: u8) -> Option<&'static OpInfo> {
    table::TABLE.get(usize::from(INDEX[set as usize][usize::from(code)]))
}

impl Op {
    /// Its row in the table.
    pub fn info(self) -> &'static OpInfo {
        &table::TABLE[self as usize]
    }

    /// Whether it ends a basic block.
    pub fn is_terminator(self) -> bool {
        matches!(
            self,
            Op::Br
                | Op::CondBr
                | Op::BrTable
                | Op::Return
                | Op::Fail
                | Op::Yield
                | Op::Break
                | Op::CondBreak
                | Op::CallYieldable
                | Op::CallVariadicYieldable
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_dense_sorted_and_unique() {
        assert_eq!(table().len(), 265);
        for (i, row) in table().iter().enumerate() {
            assert_eq!(row.op as usize, i);
            assert_eq!(lookup(row.set, row.code).map(|r| r.op), Some(row.op));
        }
        assert!(lookup(OpSet::Core, PREFIX_F32).is_none());
        assert_eq!(lookup(OpSet::Core, 0x22).map(|r| r.op), Some(Op::AddI32));
        assert_eq!(lookup(OpSet::F64, 0x40).map(|r| r.mnemonic), Some("fpowi.f64"));
    }
}
