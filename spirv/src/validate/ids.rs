//! The rule that ids are defined before they are used, along every path.

use spirv::Op;

use crate::{cfg::Function, error::SpirvError, grammar::is_type, module::Inst, program::ParsedModule};

/// Checks every id operand of the module.
pub(crate) fn check(program: &ParsedModule<'_>) -> Result<(), SpirvError> {
    let (module, first_function) = (&program.module, program.first_function);
    for (index, inst) in module.insts()[..first_function].iter().enumerate() {
        module.uses(inst).try_for_each(|used| match module.def_index(used.id) {
            None => Err(undefined(inst, used.id)),
            Some(def) if used.forward || def < index => Ok(()),
            Some(_) => Err(SpirvError::at(inst.at, format!("id {} is used before its definition", used.id))),
        })?;
        check_result_type(program, inst)?;
    }
    for function in &program.functions {
        for index in function.first..function.blocks[0].first {
            check_head(program, &module.insts()[index], first_function)?;
        }
        for (number, block) in function.blocks.iter().enumerate() {
            for index in block.first..=block.last {
                check_in_block(program, function, first_function, number, index)?;
            }
        }
    }
    Ok(())
}

fn check_head(program: &ParsedModule<'_>, inst: &Inst, first_function: usize) -> Result<(), SpirvError> {
    check_result_type(program, inst)?;
    program.module.uses(inst).try_for_each(|used| match program.module.def_index(used.id) {
        Some(def) if def < first_function => Ok(()),
        _ => Err(undefined(inst, used.id)),
    })
}

fn check_in_block(
    program: &ParsedModule<'_>,
    function: &Function,
    first_function: usize,
    block: usize,
    index: usize,
) -> Result<(), SpirvError> {
    let module = &program.module;
    let inst = &module.insts()[index];
    check_result_type(program, inst)?;
    if inst.op == Op::Phi {
        return check_phi(program, function, first_function, block, inst);
    }
    module.uses(inst).try_for_each(|used| {
        let def = module.def_index(used.id).ok_or_else(|| undefined(inst, used.id))?;
        let target = module.insts()[def].op;
        if used.forward {
            let wanted = if inst.op == Op::FunctionCall { Op::Function } else { Op::Label };
            return if target == wanted { Ok(()) } else { Err(undefined(inst, used.id)) };
        }
        if target == Op::Label || target == Op::Function {
            return Err(SpirvError::at(inst.at, format!("id {} is no value", used.id)));
        }
        let ok = def < first_function || defined_before(function, def, block, index);
        if ok {
            Ok(())
        } else {
            Err(SpirvError::at(inst.at, format!("id {} may be used before it is defined", used.id)))
        }
    })
}

fn check_phi(
    program: &ParsedModule<'_>,
    function: &Function,
    first_function: usize,
    block: usize,
    inst: &Inst,
) -> Result<(), SpirvError> {
    let module = &program.module;
    let pairs = module.operands(inst);
    let mut parents = Vec::new();
    if !pairs.len().is_multiple_of(2) {
        return Err(SpirvError::at(inst.at, "OpPhi: values and parents do not pair up"));
    }
    for pair in pairs.chunks(2) {
        let (value, label) = (pair[0], pair[1]);
        let def = module.def_index(value).ok_or_else(|| undefined(inst, value))?;
        let parent = function.block_of_label(label).ok_or_else(|| undefined(inst, label))?;
        if !function.blocks[block].preds.contains(&parent) {
            return Err(SpirvError::at(inst.at, format!("OpPhi: block {label} is no predecessor")));
        }
        if module.insts()[def].ty != inst.ty {
            return Err(SpirvError::at(
                inst.at,
                format!("OpPhi: id {value} has another type than the result"),
            ));
        }
        let ok = def < first_function || defined_before(function, def, parent, usize::MAX);
        if !ok {
            return Err(SpirvError::at(
                inst.at,
                format!("OpPhi: id {value} is not defined at the end of {label}"),
            ));
        }
        parents.push(parent);
    }
    parents.sort_unstable();
    parents.dedup();
    if parents.len() * 2 != pairs.len() || parents.len() != function.blocks[block].preds.len() {
        return Err(SpirvError::at(inst.at, "OpPhi: needs exactly one value for each predecessor"));
    }
    Ok(())
}

/// Whether the definition reaches the use; in unreachable blocks anything of the same function does.
fn defined_before(function: &Function, def: usize, block: usize, index: usize) -> bool {
    if def < function.first {
        return false;
    }
    if def < function.blocks[0].first {
        return true;
    }
    match function.block_of_inst(def) {
        None => false,
        Some(_) if !function.reachable(block) => true,
        Some(from) if from == block => def < index,
        Some(from) => function.dominates(from, block),
    }
}

fn check_result_type(program: &ParsedModule<'_>, inst: &Inst) -> Result<(), SpirvError> {
    if inst.ty != 0 && !program.module.def(inst.ty).is_some_and(|d| is_type(d.op)) {
        return Err(SpirvError::at(inst.at, format!("result type {} is no type", inst.ty)));
    }
    Ok(())
}

fn undefined(inst: &Inst, id: u32) -> SpirvError {
    SpirvError::at(inst.at, format!("Op{:?} uses id {id}, which is not defined as what it needs", inst.op))
}
