//! The order of a module's sections.

use spirv::Op;

use crate::{
    error::SpirvError,
    grammar::{is_constant, is_type},
    module::Module,
};

/// Checks the order of the sections; returns the index of the first function.
pub(crate) fn check(module: &Module<'_>) -> Result<usize, SpirvError> {
    let (mut rank, mut models) = (0, 0);
    for (index, inst) in module.insts().iter().enumerate() {
        if inst.op == Op::Function {
            if models != 1 {
                return Err(SpirvError::at(
                    inst.at,
                    format!("{models} OpMemoryModel instructions, expected one"),
                ));
            }
            return Ok(index);
        }
        models += usize::from(inst.op == Op::MemoryModel);
        let here = match section(inst.op) {
            Some(here) => here,
            None => {
                return Err(SpirvError::at(inst.at, format!("Op{:?} stands outside a function", inst.op)));
            }
        };
        if here < rank {
            return Err(SpirvError::at(
                inst.at,
                format!("Op{:?} comes after a later section began", inst.op),
            ));
        }
        rank = here;
    }
    Err(SpirvError::at(0, "the module has no function"))
}

fn section(op: Op) -> Option<u32> {
    Some(match op {
        Op::Capability => 0,
        Op::Extension => 1,
        Op::ExtInstImport => 2,
        Op::MemoryModel => 3,
        Op::EntryPoint => 4,
        Op::ExecutionMode | Op::ExecutionModeId => 5,
        Op::String | Op::SourceExtension | Op::Source | Op::SourceContinued => 6,
        Op::Name | Op::MemberName => 7,
        Op::ModuleProcessed => 8,
        Op::Decorate
        | Op::MemberDecorate
        | Op::DecorateId
        | Op::DecorateString
        | Op::MemberDecorateString => 9,
        Op::DecorationGroup | Op::GroupDecorate => 9,
        Op::Variable | Op::UntypedVariableKHR | Op::Undef | Op::Line | Op::NoLine => 10,
        // Non-semantic extended instructions (debug information) may stand between the declarations.
        Op::ExtInst => 10,
        op if is_type(op) || is_constant(op) => 10,
        _ => return None,
    })
}
