//! The small questions that type rules ask about operands.

use spirv::StorageClass;

use crate::{error::SpirvError, grammar::is_type, module::Inst, program::ParsedModule, types::Type};

/// An instruction under examination.
#[derive(Clone, Copy)]
pub(super) struct Operands<'a, 'w> {
    pub program: &'a ParsedModule<'w>,
    pub inst: &'a Inst,
    pub words: &'w [u32],
}

impl<'a> Operands<'a, '_> {
    /// An error that names the instruction.
    pub fn bad(&self, what: impl AsRef<str>) -> SpirvError {
        SpirvError::at(self.inst.at, format!("Op{:?}: {}", self.inst.op, what.as_ref()))
    }

    /// The type id of an operand, which must be a value.
    pub fn type_of(&self, operand: usize) -> Result<u32, SpirvError> {
        let id = *self.words.get(operand).ok_or_else(|| self.bad("an operand is missing"))?;
        let def = self.program.module.def(id).filter(|d| d.ty != 0 && !is_type(d.op));
        def.map(|d| d.ty).ok_or_else(|| self.bad(format!("id {id} is no value")))
    }

    /// The pointer type of an operand.
    pub fn pointer(&self, operand: usize) -> Result<(StorageClass, u32), SpirvError> {
        match self.program.types.get(self.type_of(operand)?) {
            Some(Type::Pointer { class, pointee }) => Ok((*class, *pointee)),
            _ => Err(self.bad(format!("id {} is no pointer", self.words[operand]))),
        }
    }

    /// Scalar kind and lane count of a type.
    pub fn lanes_of(&self, ty: u32) -> Option<(&'a Type, u32)> {
        self.program.types.lanes(ty)
    }

    /// Fails unless the type is a scalar or vector of a kind that `accept` takes; returns its lane count.
    pub fn expect(&self, ty: u32, what: &str, accept: fn(&Type) -> bool) -> Result<u32, SpirvError> {
        match self.lanes_of(ty) {
            Some((scalar, count)) if accept(scalar) => Ok(count),
            _ => Err(self.bad(format!("type {ty} is no {what} scalar or vector"))),
        }
    }

    /// Fails unless the operand has exactly the result type.
    pub fn same_as_result(&self, operand: usize) -> Result<(), SpirvError> {
        if self.type_of(operand)? == self.inst.ty {
            return Ok(());
        }
        Err(self.bad(format!("operand {} has another type than the result", self.words[operand])))
    }
}

pub(super) fn is_int(ty: &Type) -> bool {
    matches!(ty, Type::Int { .. })
}

pub(super) fn is_float(ty: &Type) -> bool {
    matches!(ty, Type::Float { .. })
}

pub(super) fn is_bool(ty: &Type) -> bool {
    *ty == Type::Bool
}
