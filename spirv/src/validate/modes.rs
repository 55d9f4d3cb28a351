//! The rules of masks and enumerations: memory model, control masks, memory operands, execution modes.

use spirv::{AddressingModel, ExecutionMode, LoopControl, MemoryAccess, MemoryModel, Op};

use crate::{
    error::SpirvError,
    grammar::is_constant,
    module::{Inst, Module},
    program::ParsedModule,
};

/// Checks all instructions.
pub(crate) fn check(program: &ParsedModule<'_>) -> Result<(), SpirvError> {
    let module = &program.module;
    for inst in module.insts() {
        let words = module.operands(inst);
        match inst.op {
            Op::MemoryModel => memory_model(inst, words)?,
            Op::ExecutionMode => execution_mode(inst, words)?,
            Op::SelectionMerge => mask(inst, words[1], 0x3)?,
            Op::Function => mask(inst, words[0], 0xF)?,
            Op::LoopMerge => loop_control(inst, words)?,
            Op::Load => memory_operands(module, inst, &words[1..])?,
            Op::Store => memory_operands(module, inst, &words[2..])?,
            Op::CopyMemory => copy_operands(module, inst, &words[2..])?,
            _ => {}
        }
    }
    Ok(())
}

fn bad(inst: &Inst, what: impl AsRef<str>) -> SpirvError {
    SpirvError::at(inst.at, format!("Op{:?}: {}", inst.op, what.as_ref()))
}

fn mask(inst: &Inst, found: u32, known: u32) -> Result<(), SpirvError> {
    if found & !known == 0 {
        Ok(())
    } else {
        Err(bad(inst, format!("unknown control bits {:#x}", found & !known)))
    }
}

fn memory_model(inst: &Inst, words: &[u32]) -> Result<(), SpirvError> {
    let addressing = AddressingModel::from_u32(words[0]);
    let addressed =
        matches!(addressing, Some(AddressingModel::Logical | AddressingModel::PhysicalStorageBuffer64));
    let model = MemoryModel::from_u32(words[1]);
    let modelled = matches!(model, Some(MemoryModel::Simple | MemoryModel::GLSL450 | MemoryModel::Vulkan));
    if addressed && modelled {
        return Ok(());
    }
    Err(bad(inst, format!("addressing model {} with memory model {} is not for Vulkan", words[0], words[1])))
}

fn execution_mode(inst: &Inst, words: &[u32]) -> Result<(), SpirvError> {
    let operands = match ExecutionMode::from_u32(words[1]) {
        Some(ExecutionMode::LocalSize) => 3,
        Some(
            ExecutionMode::DenormPreserve
            | ExecutionMode::DenormFlushToZero
            | ExecutionMode::SignedZeroInfNanPreserve
            | ExecutionMode::RoundingModeRTE
            | ExecutionMode::RoundingModeRTZ,
        ) => 1,
        Some(ExecutionMode::SubgroupUniformControlFlowKHR | ExecutionMode::MaximallyReconvergesKHR) => 0,
        _ => return Err(bad(inst, format!("execution mode {} is not for kernels", words[1]))),
    };
    let found = words.len() - 2;
    let float_width = operands != 1 || matches!(words.get(2), Some(16 | 32 | 64));
    if found == operands && float_width {
        return Ok(());
    }
    Err(bad(inst, format!("execution mode {} does not take {:?}", words[1], &words[2..])))
}

fn loop_control(inst: &Inst, words: &[u32]) -> Result<(), SpirvError> {
    let with_operand = LoopControl::DEPENDENCY_LENGTH
        | LoopControl::MIN_ITERATIONS
        | LoopControl::MAX_ITERATIONS
        | LoopControl::ITERATION_MULTIPLE
        | LoopControl::PEEL_COUNT
        | LoopControl::PARTIAL_COUNT;
    let plain = LoopControl::UNROLL | LoopControl::DONT_UNROLL | LoopControl::DEPENDENCY_INFINITE;
    mask(inst, words[2], (plain | with_operand).bits())?;
    let wanted = (words[2] & with_operand.bits()).count_ones() as usize;
    if words.len() - 3 == wanted {
        return Ok(());
    }
    Err(bad(inst, format!("{} operands for control {:#x}, which has {wanted}", words.len() - 3, words[2])))
}

/// One mask with its operands, or nothing.
fn memory_operands(module: &Module<'_>, inst: &Inst, words: &[u32]) -> Result<(), SpirvError> {
    match one_mask(module, inst, words)? {
        [] => Ok(()),
        rest => Err(bad(inst, format!("{} words follow the memory operands", rest.len()))),
    }
}

/// Up to two masks: of the target, and of the source.
fn copy_operands(module: &Module<'_>, inst: &Inst, words: &[u32]) -> Result<(), SpirvError> {
    let rest = one_mask(module, inst, words)?;
    memory_operands(module, inst, rest)
}

/// Checks the first mask with its operands and returns what follows.
fn one_mask<'w>(module: &Module<'_>, inst: &Inst, words: &'w [u32]) -> Result<&'w [u32], SpirvError> {
    let Some((&found, mut rest)) = words.split_first() else { return Ok(words) };
    mask(inst, found, 0x3F)?;
    let access = MemoryAccess::from_bits_truncate(found);
    let mut take = || {
        let (first, others) = rest.split_first().ok_or_else(|| bad(inst, "a memory operand is missing"))?;
        rest = others;
        Ok::<u32, SpirvError>(*first)
    };
    if access.contains(MemoryAccess::ALIGNED) {
        let alignment = take()?;
        if !alignment.is_power_of_two() {
            return Err(bad(inst, format!("alignment {alignment} is no power of two")));
        }
    }
    for scoped in [MemoryAccess::MAKE_POINTER_AVAILABLE, MemoryAccess::MAKE_POINTER_VISIBLE] {
        if access.contains(scoped) {
            let scope = take()?;
            if !module.def(scope).is_some_and(|d| is_constant(d.op)) {
                return Err(bad(inst, format!("memory scope {scope} is no constant")));
            }
        }
    }
    Ok(rest)
}
