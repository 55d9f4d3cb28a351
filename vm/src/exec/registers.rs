//! Register access of the running frame.

use std::sync::Arc;

use super::{Globals, Insn, Linked};
use crate::{Ref, code::Function, invocation::Watch, isa::REG_MOVE, memory::Memory};

/// What instructions work on.
pub(crate) struct Env<'a> {
    pub cells: &'a mut [u32],
    pub refs: &'a mut [Ref],
    pub globals: &'a mut Globals,
    pub function: &'a Function,
    pub linked: &'a Linked,
    pub watch: &'a mut Watch,
    pub memory: &'a Arc<Memory>,
}

/// Index of a ref register.
#[inline(always)]
pub(super) fn index(reg: u16) -> usize {
    usize::from(reg & !REG_MOVE)
}

#[inline(always)]
pub(super) fn get64(cells: &[u32], reg: u16) -> u64 {
    let i = usize::from(reg);
    u64::from(cells[i]) | u64::from(cells[i + 1]) << 32
}

#[inline(always)]
pub(super) fn set64(cells: &mut [u32], reg: u16, value: u64) {
    let i = usize::from(reg);
    cells[i + 1] = (value >> 32) as u32;
    cells[i] = value as u32;
}

impl Env<'_> {
    #[inline(always)]
    pub(super) fn u32(&self, reg: u16) -> u32 {
        self.cells[usize::from(reg)]
    }

    #[inline(always)]
    pub(super) fn i32(&self, reg: u16) -> i32 {
        self.u32(reg) as i32
    }

    #[inline(always)]
    pub(super) fn f32(&self, reg: u16) -> f32 {
        f32::from_bits(self.u32(reg))
    }

    #[inline(always)]
    pub(super) fn u64(&self, reg: u16) -> u64 {
        get64(self.cells, reg)
    }

    #[inline(always)]
    pub(super) fn i64(&self, reg: u16) -> i64 {
        self.u64(reg) as i64
    }

    #[inline(always)]
    pub(super) fn f64(&self, reg: u16) -> f64 {
        f64::from_bits(self.u64(reg))
    }

    #[inline(always)]
    pub(super) fn set_u32(&mut self, reg: u16, value: u32) {
        self.cells[usize::from(reg)] = value;
    }

    #[inline(always)]
    pub(super) fn set_u64(&mut self, reg: u16, value: u64) {
        set64(self.cells, reg, value);
    }

    #[inline(always)]
    pub(super) fn set_f32(&mut self, reg: u16, value: f32) {
        self.set_u32(reg, value.to_bits());
    }

    #[inline(always)]
    pub(super) fn set_f64(&mut self, reg: u16, value: f64) {
        self.set_u64(reg, value.to_bits());
    }

    /// Value of a source ref register: moved out when it says so, else shared.
    #[inline(always)]
    pub(super) fn reference(&mut self, reg: u16) -> Ref {
        let slot = &mut self.refs[index(reg)];
        if reg & REG_MOVE != 0 { slot.take() } else { slot.clone() }
    }

    #[inline(always)]
    pub(super) fn set_reference(&mut self, reg: u16, value: Ref) {
        self.refs[index(reg)] = value;
    }

    #[inline(always)]
    pub(super) fn unary32(&mut self, insn: &Insn, f: impl Fn(u32) -> u32) {
        let v = f(self.u32(insn.a));
        self.set_u32(insn.b, v);
    }

    #[inline(always)]
    pub(super) fn binary32(&mut self, insn: &Insn, f: impl Fn(u32, u32) -> u32) {
        let v = f(self.u32(insn.a), self.u32(insn.b));
        self.set_u32(insn.c, v);
    }

    #[inline(always)]
    pub(super) fn signed32(&mut self, insn: &Insn, f: impl Fn(i32, i32) -> i32) {
        let v = f(self.i32(insn.a), self.i32(insn.b));
        self.set_u32(insn.c, v as u32);
    }

    #[inline(always)]
    pub(super) fn unary64(&mut self, insn: &Insn, f: impl Fn(u64) -> u64) {
        let v = f(self.u64(insn.a));
        self.set_u64(insn.b, v);
    }

    #[inline(always)]
    pub(super) fn binary64(&mut self, insn: &Insn, f: impl Fn(u64, u64) -> u64) {
        let v = f(self.u64(insn.a), self.u64(insn.b));
        self.set_u64(insn.c, v);
    }

    #[inline(always)]
    pub(super) fn signed64(&mut self, insn: &Insn, f: impl Fn(i64, i64) -> i64) {
        let v = f(self.i64(insn.a), self.i64(insn.b));
        self.set_u64(insn.c, v as u64);
    }

    #[inline(always)]
    pub(super) fn compare64(&mut self, insn: &Insn, f: impl Fn(u64, u64) -> bool) {
        let v = f(self.u64(insn.a), self.u64(insn.b));
        self.set_u32(insn.c, u32::from(v));
    }
}
