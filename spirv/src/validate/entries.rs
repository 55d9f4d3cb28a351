//! The rules of entry points and of calls between functions.

use std::collections::HashMap;

use spirv::Op;

use crate::{error::SpirvError, program::ParsedModule, types::Type};

/// Checks entry functions and that no function can call itself.
pub(crate) fn check(program: &ParsedModule<'_>) -> Result<(), SpirvError> {
    let module = &program.module;
    for entry in &program.entries {
        let function = program.function(entry.function).ok_or_else(|| {
            SpirvError::at(
                0,
                format!("entry point `{}` names id {}, which is no function", entry.name, entry.function),
            )
        })?;
        let inst = &module.insts()[function.first];
        let ty = program.types.get(module.operands(inst)[1]);
        let fits = matches!(ty, Some(Type::Function { ret, params })
            if params.is_empty() && program.types.get(*ret) == Some(&Type::Void));
        if !fits {
            return Err(SpirvError::at(
                inst.at,
                format!("entry point `{}` must be a void function", entry.name),
            ));
        }
        if entry.local_size.iter().fold(1u64, |n, s| n.saturating_mul(u64::from(*s))) > 0x1_0000 {
            return Err(SpirvError::at(
                inst.at,
                format!("workgroup size {:?} is too large", entry.local_size),
            ));
        }
    }
    for (inst, entry) in module.entry_points() {
        for id in entry.interface {
            if !module.def(*id).is_some_and(|d| matches!(d.op, Op::Variable | Op::UntypedVariableKHR)) {
                return Err(SpirvError::at(inst.at, format!("interface id {id} is no variable")));
            }
        }
    }
    check_calls(program)
}

/// Removes functions that call nothing (left) until none is left; what remains calls itself.
fn check_calls(program: &ParsedModule<'_>) -> Result<(), SpirvError> {
    let module = &program.module;
    let index: HashMap<u32, usize> = program.functions.iter().enumerate().map(|(i, f)| (f.id, i)).collect();
    let mut callers: Vec<Vec<usize>> = vec![Vec::new(); program.functions.len()];
    let mut open = vec![0usize; program.functions.len()];
    for (caller, function) in program.functions.iter().enumerate() {
        for inst in program.body(function).filter(|i| i.op == Op::FunctionCall) {
            let callee = index.get(&module.operands(inst)[0]);
            let callee =
                *callee.ok_or_else(|| SpirvError::at(inst.at, "OpFunctionCall: no such function"))?;
            callers[callee].push(caller);
            open[caller] += 1;
        }
    }
    let mut ready: Vec<usize> = (0..open.len()).filter(|f| open[*f] == 0).collect();
    let mut done = 0;
    while let Some(function) = ready.pop() {
        done += 1;
        for &caller in &callers[function] {
            open[caller] -= 1;
            if open[caller] == 0 {
                ready.push(caller);
            }
        }
    }
    if done < program.functions.len() {
        return Err(SpirvError::at(0, "a function calls itself, directly or through others"));
    }
    Ok(())
}
