//! The compute entry points of a module, with their workgroup sizes.

use spirv::{ExecutionMode, ExecutionModel, Op};

use crate::{
    error::SpirvError,
    module::{Inst, Module},
};

/// Invocations per workgroup beyond which no device goes; analyses look at each of them.
const MAX_INVOCATIONS: u32 = 0x1_0000;

/// A compute entry point with its function and workgroup size.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub name: String,
    /// Id of the function.
    pub function: u32,
    pub local_size: [u32; 3],
}

/// Reads entry points and their execution modes.
pub(crate) fn read_entries(module: &Module<'_>) -> Result<Vec<Entry>, SpirvError> {
    let mut entries: Vec<(Entry, bool)> = Vec::new();
    for (inst, found) in module.entry_points() {
        if found.model != ExecutionModel::GLCompute as u32 {
            let number = found.model;
            let model = ExecutionModel::from_u32(number).map_or(format!("#{number}"), |m| format!("{m:?}"));
            let message = format!("entry point of model {model}, only GLCompute runs here");
            return Err(SpirvError::at(inst.at, message));
        }
        let name = found.name;
        if entries.iter().any(|(e, _)| e.name == name) {
            return Err(SpirvError::at(inst.at, format!("two entry points are named `{name}`")));
        }
        entries.push((Entry { name, function: found.function, local_size: [1; 3] }, false));
    }
    for inst in module.insts() {
        if inst.op == Op::ExecutionModeId {
            let message = "execution modes by id are not supported; use a literal LocalSize";
            return Err(SpirvError::at(inst.at, message));
        }
        if let Some((function, size)) = local_size(module, inst)? {
            for (entry, sized) in entries.iter_mut().filter(|(e, _)| e.function == function) {
                entry.local_size = size;
                *sized = true;
            }
        }
    }
    if let Some((entry, _)) = entries.iter().find(|(_, sized)| !sized) {
        return Err(SpirvError::at(0, format!("entry point `{}` has no literal LocalSize", entry.name)));
    }
    if entries.is_empty() {
        return Err(SpirvError::at(0, "the module has no entry point"));
    }
    Ok(entries.into_iter().map(|(e, _)| e).collect())
}

/// The function and the size that an execution mode `LocalSize` gives it.
fn local_size(module: &Module<'_>, inst: &Inst) -> Result<Option<(u32, [u32; 3])>, SpirvError> {
    let words = module.operands(inst);
    if inst.op != Op::ExecutionMode || words[1] != ExecutionMode::LocalSize as u32 {
        return Ok(None);
    }
    let size: [u32; 3] =
        words[2..].try_into().map_err(|_| SpirvError::at(inst.at, "LocalSize needs three numbers"))?;
    let all = size.iter().try_fold(1u32, |all, s| all.checked_mul(*s));
    if !all.is_some_and(|all| (1..=MAX_INVOCATIONS).contains(&all)) {
        return Err(SpirvError::at(inst.at, format!("LocalSize {size:?} is not a workgroup size")));
    }
    Ok(Some((words[0], size)))
}
