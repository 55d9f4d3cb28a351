//! The decoding of one instruction at a time from raw function code, driven by the instruction table.

use std::fmt;

use smallvec::SmallVec;
use thiserror::Error;

use crate::isa::{self, OpInfo, OpSet, Operand};

/// Why bytes are not an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum DecodeError {
    #[error("no operation has opcode 0x{code:02x} in the {set:?} set")]
    UnknownOpcode { set: OpSet, code: u8 },
    #[error("the code ends within the instruction")]
    Truncated,
}

/// A list of u16 in code, not copied.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct U16s<'a>(&'a [u8]);

impl<'a> U16s<'a> {
    pub(crate) fn len(self) -> usize {
        self.0.len() / 2
    }

    pub(crate) fn iter(self) -> impl ExactSizeIterator<Item = u16> + 'a {
        self.0.chunks_exact(2).map(|c| u16::from_le_bytes([c[0], c[1]]))
    }
}

impl fmt::Debug for U16s<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A branch edge: target offset and (source, destination) pairs flattened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawEdge<'a> {
    pub target: u32,
    pub remap: U16s<'a>,
}

/// A decoded operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Field<'a> {
    /// Register, with its bank and MOVE bits.
    Reg(u16),
    /// Immediate, ordinal, offset or target.
    U32(u32),
    /// 64-bit immediate.
    U64(u64),
    /// Branch edge.
    Edge(RawEdge<'a>),
    /// String bytes, not checked to be UTF-8.
    Text(&'a [u8]),
    /// Register or segment list.
    List(U16s<'a>),
    /// Branch table: default first.
    Cases(Vec<RawEdge<'a>>),
}

/// A decoded instruction.
#[derive(Clone, Debug)]
pub(crate) struct RawInsn<'a> {
    /// Offset of its first byte in the function.
    pub offset: u32,
    /// Its row.
    pub info: &'static OpInfo,
    /// One per operand of the row.
    pub fields: SmallVec<[Field<'a>; 6]>,
}

/// Reads instructions in order.
#[derive(Clone, Debug)]
pub(crate) struct Decoder<'a> {
    code: &'a [u8],
    pos: usize,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(code: &'a [u8]) -> Self {
        Decoder { code, pos: 0 }
    }

    /// Offset of the next byte.
    pub(crate) fn offset(&self) -> u32 {
        u32::try_from(self.pos).unwrap_or(u32::MAX)
    }

    /// The next instruction; `None` at the end. After an error decoding cannot go on; the error carries the row when
    /// the opcode itself was read.
    pub(crate) fn next(&mut self) -> Option<Result<RawInsn<'a>, (DecodeError, Option<&'static OpInfo>)>> {
        if self.pos >= self.code.len() {
            return None;
        }
        let offset = self.offset();
        Some(self.opcode().map_err(|e| (e, None)).and_then(|info| {
            let fields = info.operands.iter().map(|o| self.field(*o)).collect::<Result<_, _>>();
            fields.map(|fields| RawInsn { offset, info, fields }).map_err(|e| (e, Some(info)))
        }))
    }

    fn opcode(&mut self) -> Result<&'static OpInfo, DecodeError> {
        let first = self.bytes(1)?[0];
        let (set, code) = match first {
            isa::PREFIX_F32 => (OpSet::F32, self.bytes(1)?[0]),
            isa::PREFIX_F64 => (OpSet::F64, self.bytes(1)?[0]),
            code => (OpSet::Core, code),
        };
        isa::lookup(set, code).ok_or(DecodeError::UnknownOpcode { set, code })
    }

    fn field(&mut self, operand: Operand) -> Result<Field<'a>, DecodeError> {
        Ok(match operand {
            Operand::Cell
            | Operand::CellOut
            | Operand::Pair
            | Operand::PairOut
            | Operand::Ref
            | Operand::RefMove
            | Operand::RefOut => Field::Reg(self.u16()?),
            Operand::Imm32
            | Operand::Global4
            | Operand::Global8
            | Operand::GlobalRef
            | Operand::Rodata
            | Operand::Type
            | Operand::Function
            | Operand::Import
            | Operand::Target => Field::U32(self.u32()?),
            Operand::Imm64 => Field::U64(u64::from(self.u32()?) | u64::from(self.u32()?) << 32),
            Operand::Edge => Field::Edge(self.edge()?),
            Operand::Text => {
                let len = usize::from(self.u16()?);
                Field::Text(self.bytes(len)?)
            }
            Operand::Cells
            | Operand::Pairs
            | Operand::Refs
            | Operand::Any
            | Operand::Args
            | Operand::Results
            | Operand::Segments
            | Operand::Returns => Field::List(self.list(1)?),
            Operand::Cases => self.cases()?,
        })
    }

    fn cases(&mut self) -> Result<Field<'a>, DecodeError> {
        let mut edges = vec![self.edge()?];
        for _ in 0..self.u16()? {
            edges.push(self.edge()?);
        }
        Ok(Field::Cases(edges))
    }

    fn edge(&mut self) -> Result<RawEdge<'a>, DecodeError> {
        Ok(RawEdge { target: self.u32()?, remap: self.list(2)? })
    }

    fn list(&mut self, words: usize) -> Result<U16s<'a>, DecodeError> {
        if self.pos % 2 == 1 {
            self.bytes(1)?;
        }
        let count = usize::from(self.u16()?);
        self.bytes(count * words * 2).map(U16s)
    }

    fn bytes(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let end = self.pos.checked_add(len).ok_or(DecodeError::Truncated)?;
        let bytes = self.code.get(self.pos..end).ok_or(DecodeError::Truncated)?;
        self.pos = end;
        Ok(bytes)
    }

    fn u16(&mut self) -> Result<u16, DecodeError> {
        let b = self.bytes(2)?;
        Ok(u16::from_le_bytes([b[0], b[1]]))
    }

    fn u32(&mut self) -> Result<u32, DecodeError> {
        let b = self.bytes(4)?;
        Ok(u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Op;

    #[test]
    fn decodes_the_documented_example() {
        let code =
            [0x79, 0x58, 0, 0, 0, 0, 3, 0, 0, 0, 2, 0, 4, 0, 2, 0, 4, 0, 2, 0, 0x5A, 0, 2, 0, 4, 0, 2, 0];
        let mut d = Decoder::new(&code);
        let mut ops = Vec::new();
        while let Some(insn) = d.next() {
            ops.push(insn.unwrap());
        }
        assert_eq!(ops.iter().map(|i| i.info.op).collect::<Vec<_>>(), [Op::Block, Op::Call, Op::Return]);
        assert_eq!(ops[1].fields[1], Field::List(U16s(&[0, 0, 2, 0, 4, 0])));
        assert_eq!(ops[2].fields[0], Field::List(U16s(&[4, 0, 2, 0])));
    }

    #[test]
    fn truncation_is_an_error_everywhere() {
        let code = [0x58, 0, 0, 0, 0, 0, 3, 0, 0, 0, 2, 0, 4, 0];
        for end in 1..code.len() {
            assert!(matches!(Decoder::new(&code[..end]).next(), Some(Err((DecodeError::Truncated, _)))));
        }
    }
}
