//! The checks of single operands: registers, ordinals, edges, lists.

use super::{Check, Verifier, span_from};
use crate::{
    code::Edge,
    decode::{RawEdge, U16s},
    isa::{Operand, REG_MOVE, REG_REF},
    signature::Kind,
};

impl Verifier<'_> {
    /// Checks a register operand; refs lose the bank bit and keep MOVE.
    pub(super) fn register(&mut self, operand: Operand, reg: u16) -> Check<u16> {
        match operand {
            Operand::Cell | Operand::CellOut => self.cell(reg),
            Operand::Pair | Operand::PairOut => self.pair(reg),
            Operand::Ref => {
                if reg & REG_REF != 0 && reg & REG_MOVE != 0 {
                    return Err(format!(
                        "ref register {} may not be moved here",
                        reg & !(REG_REF | REG_MOVE)
                    ));
                }
                self.reference(reg)
            }
            _ => self.reference(reg),
        }
    }

    pub(super) fn cell(&mut self, reg: u16) -> Check<u16> {
        if reg & REG_REF != 0 {
            return Err(format!("register {reg:#06x} is a ref where a number is expected"));
        }
        if u32::from(reg) >= self.cell_limit {
            return Err(format!("cell {reg} is out of range; the function has {}", self.cell_limit));
        }
        self.out.cells = self.out.cells.max(u32::from(reg) + 1);
        Ok(reg)
    }

    pub(super) fn pair(&mut self, reg: u16) -> Check<u16> {
        if reg & (REG_REF | 1) == 1 {
            return Err(format!("cell {reg} is odd, but 64-bit values begin on even cells"));
        }
        let low = self.cell(reg)?;
        self.cell(low + 1)?;
        Ok(low)
    }

    pub(super) fn reference(&mut self, reg: u16) -> Check<u16> {
        if reg & REG_REF == 0 {
            return Err(format!("register {reg:#06x} is a number where a ref is expected"));
        }
        let index = reg & !(REG_REF | REG_MOVE);
        if u32::from(index) >= self.ref_limit {
            return Err(format!("ref register {index} is out of range; the function has {}", self.ref_limit));
        }
        self.out.refs = self.out.refs.max(u32::from(index) + 1);
        Ok(reg & !REG_REF)
    }

    pub(super) fn kind(&mut self, kind: Kind, reg: u16) -> Check<u16> {
        match kind {
            Kind::I32 | Kind::F32 => self.cell(reg),
            Kind::I64 | Kind::F64 => self.pair(reg),
            Kind::Ref => self.reference(reg),
        }
    }

    /// Checks an immediate or ordinal.
    pub(super) fn word(&self, operand: Operand, value: u32) -> Check<u32> {
        let def = self.scope.def;
        let bounded = |what: &str, count: usize| {
            if (value as usize) < count {
                Ok(value)
            } else {
                Err(format!("{what} {value} does not exist; the module has {count}"))
            }
        };
        let global = |size: u32| {
            let capacity = def.global_bytes_capacity;
            match value.checked_add(size) {
                Some(end) if end <= capacity => Ok(value),
                _ => Err(format!(
                    "global of {size} bytes at {value} does not fit; the module has {capacity} bytes"
                )),
            }
        };
        match operand {
            Operand::Global4 => global(4),
            Operand::Global8 => global(8),
            Operand::GlobalRef => bounded("ref global", def.global_ref_count as usize),
            Operand::Rodata => bounded("rodata segment", def.rodata.len()),
            Operand::Type => bounded("type", def.types.len()),
            Operand::Import => {
                let ordinal = value & !crate::isa::CALLEE_IMPORT;
                if (ordinal as usize) < def.imports.len() {
                    Ok(ordinal)
                } else {
                    Err(format!("import {ordinal} does not exist; the module has {}", def.imports.len()))
                }
            }
            _ => Ok(value),
        }
    }

    /// Adds an edge whose target is resolved at the end; gives its index.
    pub(super) fn edge(&mut self, origin: u32, edge: &RawEdge<'_>) -> Check<u32> {
        let index = self.out.edges.len() as u32;
        let flat: Vec<u16> = edge.remap.iter().collect();
        let start = self.out.pairs.len();
        for pair in flat.chunks_exact(2).filter(|p| p[0] & REG_REF == 0) {
            let pair = (self.cell(pair[0])?, self.cell(pair[1])?);
            self.out.pairs.push(pair);
        }
        let cells = span_from(start, &self.out.pairs);
        let start = self.out.pairs.len();
        for pair in flat.chunks_exact(2).filter(|p| p[0] & REG_REF != 0) {
            let pair = (self.reference(pair[0])?, self.reference(pair[1])? & !REG_MOVE);
            self.out.pairs.push(pair);
        }
        let refs = span_from(start, &self.out.pairs);
        self.out.edges.push(Edge { target: edge.target, cells, refs, backward: true });
        self.edge_origins.push(origin);
        Ok(index)
    }

    /// Adds a register list; gives its index.
    pub(super) fn list(&mut self, operand: Operand, list: U16s<'_>) -> Check<u32> {
        let start = self.out.regs.len();
        for reg in list.iter() {
            let reg = match operand {
                Operand::Cells => self.cell(reg)?,
                Operand::Pairs => self.pair(reg)?,
                Operand::Any if reg & REG_REF == 0 => {
                    self.cell(reg)?;
                    continue;
                }
                _ => self.reference(reg)?,
            };
            self.out.regs.push(reg);
        }
        let index = self.out.lists.len() as u32;
        self.out.lists.push(span_from(start, &self.out.regs));
        Ok(index)
    }
}
