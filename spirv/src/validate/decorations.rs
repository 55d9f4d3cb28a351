//! The rules of decorations: which ones a kernel may have, on what, with how many operands, and which ones it must have.

use std::collections::HashSet;

use spirv::{BuiltIn, Decoration, Op, StorageClass};

use crate::{
    decorations::Decorations, error::SpirvError, grammar::is_constant, module::Inst, program::ParsedModule,
    types::Type,
};

/// Checks all decorations of a module.
pub(crate) fn check(program: &ParsedModule<'_>) -> Result<(), SpirvError> {
    let mut seen = HashSet::new();
    for inst in program.module.insts() {
        let words = program.module.operands(inst);
        let key = match inst.op {
            Op::Decorate => {
                check_decorate(program, inst, words)?;
                (words[0], None, words[1])
            }
            Op::MemberDecorate => {
                check_member(program, inst, words)?;
                (words[0], Some(words[1]), words[2])
            }
            Op::DecorationGroup | Op::GroupDecorate => {
                return Err(bad(inst, "decoration groups are not supported; decorate each id by itself"));
            }
            Op::DecorateId => match Decoration::from_u32(words[1]) {
                Some(Decoration::UniformId | Decoration::CounterBuffer) if words.len() == 3 => continue,
                _ => return Err(bad(inst, format!("decoration {} is not for kernels", words[1]))),
            },
            Op::DecorateString if words[1] == Decoration::UserSemantic as u32 => continue,
            Op::MemberDecorateString if words[2] == Decoration::UserSemantic as u32 => continue,
            Op::DecorateString | Op::MemberDecorateString => {
                return Err(bad(inst, "only UserSemantic may have text"));
            }
            _ => continue,
        };
        if !seen.insert(key) {
            return Err(bad(inst, format!("id {} has this decoration twice", key.0)));
        }
    }
    check_variables(program)
}

fn bad(inst: &Inst, what: impl AsRef<str>) -> SpirvError {
    SpirvError::at(inst.at, format!("Op{:?}: {}", inst.op, what.as_ref()))
}

/// What a decoration may stand on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    Anything,
    Variable,
    Memory,
    Struct,
    Strided,
    Constant,
    Value,
}

fn check_decorate(program: &ParsedModule<'_>, inst: &Inst, words: &[u32]) -> Result<(), SpirvError> {
    let Some(decoration) = Decoration::from_u32(words[1]) else {
        return Err(bad(inst, format!("there is no decoration {}", words[1])));
    };
    let (on, operands) = match decoration {
        Decoration::RelaxedPrecision | Decoration::NonUniform | Decoration::Uniform => (On::Anything, 0),
        Decoration::SpecId => (On::Constant, 1),
        Decoration::Block | Decoration::BufferBlock => (On::Struct, 0),
        Decoration::ArrayStride => (On::Strided, 1),
        Decoration::BuiltIn => return check_builtin(program, inst, words),
        Decoration::Restrict
        | Decoration::Aliased
        | Decoration::Volatile
        | Decoration::Coherent
        | Decoration::NonWritable
        | Decoration::NonReadable
        | Decoration::RestrictPointer
        | Decoration::AliasedPointer => (On::Memory, 0),
        Decoration::Binding | Decoration::DescriptorSet => (On::Variable, 1),
        Decoration::NoContraction | Decoration::NoSignedWrap | Decoration::NoUnsignedWrap => (On::Value, 0),
        Decoration::FPRoundingMode | Decoration::FPFastMathMode => (On::Value, 1),
        other => return Err(bad(inst, format!("decoration {other:?} is not for kernels"))),
    };
    if words.len() != 2 + operands {
        return Err(bad(inst, format!("{decoration:?} has {operands} operands, not {}", words.len() - 2)));
    }
    let target = program.module.def(words[0]).ok_or_else(|| bad(inst, "decorates nothing"))?;
    let fits = match on {
        On::Anything => true,
        On::Variable => matches!(target.op, Op::Variable | Op::UntypedVariableKHR),
        On::Memory => {
            matches!(target.op, Op::Variable | Op::UntypedVariableKHR | Op::FunctionParameter)
                || target.ty != 0
        }
        On::Struct => target.op == Op::TypeStruct,
        On::Strided => matches!(target.op, Op::TypeArray | Op::TypeRuntimeArray | Op::TypePointer),
        On::Constant => is_constant(target.op),
        On::Value => target.ty != 0,
    };
    if fits { Ok(()) } else { Err(bad(inst, format!("{decoration:?} on Op{:?}", target.op))) }
}

fn check_member(program: &ParsedModule<'_>, inst: &Inst, words: &[u32]) -> Result<(), SpirvError> {
    match program.types.get(words[0]) {
        Some(Type::Struct { members }) if (words[1] as usize) < members.len() => {}
        Some(Type::Struct { members }) => {
            return Err(bad(inst, format!("member {} of a struct with {}", words[1], members.len())));
        }
        _ => return Err(bad(inst, format!("id {} is no struct", words[0]))),
    }
    let operands = match Decoration::from_u32(words[2]) {
        Some(Decoration::Offset | Decoration::MatrixStride) => 1,
        Some(
            Decoration::RelaxedPrecision
            | Decoration::RowMajor
            | Decoration::ColMajor
            | Decoration::Restrict
            | Decoration::Aliased
            | Decoration::Volatile
            | Decoration::Coherent
            | Decoration::NonWritable
            | Decoration::NonReadable,
        ) => 0,
        _ => {
            return Err(bad(inst, format!("decoration {} is not for members of kernels' structs", words[2])));
        }
    };
    let found = words.len() - 3;
    if found == operands { Ok(()) } else { Err(bad(inst, format!("{found} operands, expected {operands}"))) }
}

/// Built-in variables of compute kernels, and the lanes of each; all are 32-bit integers.
fn builtin_lanes(builtin: BuiltIn) -> Option<u32> {
    Some(match builtin {
        BuiltIn::NumWorkgroups
        | BuiltIn::WorkgroupSize
        | BuiltIn::WorkgroupId
        | BuiltIn::LocalInvocationId
        | BuiltIn::GlobalInvocationId => 3,
        BuiltIn::LocalInvocationIndex
        | BuiltIn::SubgroupSize
        | BuiltIn::NumSubgroups
        | BuiltIn::SubgroupId
        | BuiltIn::SubgroupLocalInvocationId
        | BuiltIn::DeviceIndex => 1,
        BuiltIn::SubgroupEqMask
        | BuiltIn::SubgroupGeMask
        | BuiltIn::SubgroupGtMask
        | BuiltIn::SubgroupLeMask
        | BuiltIn::SubgroupLtMask => 4,
        _ => return None,
    })
}

fn check_builtin(program: &ParsedModule<'_>, inst: &Inst, words: &[u32]) -> Result<(), SpirvError> {
    let &[target, _, number] = words else { return Err(bad(inst, "BuiltIn has one operand")) };
    let builtin = BuiltIn::from_u32(number).filter(|b| builtin_lanes(*b).is_some());
    let builtin = builtin.ok_or_else(|| bad(inst, format!("built-in {number} is not for kernels")))?;
    let def = program.module.def(target).ok_or_else(|| bad(inst, "decorates nothing"))?;
    let ty = match (builtin, def.op, program.types.get(def.ty)) {
        (BuiltIn::WorkgroupSize, op, _) if is_constant(op) => def.ty,
        (BuiltIn::WorkgroupSize, ..) => return Err(bad(inst, "WorkgroupSize must be a constant")),
        (_, Op::Variable, Some(Type::Pointer { class: StorageClass::Input, pointee })) => *pointee,
        _ => return Err(bad(inst, format!("{builtin:?} must be an input variable"))),
    };
    let fits = matches!(program.types.lanes(ty), Some((Type::Int { width: 32 }, n)) if Some(n) == builtin_lanes(builtin));
    if fits { Ok(()) } else { Err(bad(inst, format!("{builtin:?} has the wrong type"))) }
}

/// Variables have the decorations without which a driver cannot find or lay out what they stand for.
fn check_variables(program: &ParsedModule<'_>) -> Result<(), SpirvError> {
    let decorations = Decorations::read(&program.module);
    let mut laid_out = HashSet::new();
    for inst in program.module.insts().iter().filter(|i| i.op == Op::Variable) {
        let Some(Type::Pointer { class, pointee }) = program.types.get(inst.ty) else { continue };
        let has = |decoration| decorations.value(inst.id, decoration).is_some();
        match class {
            StorageClass::StorageBuffer | StorageClass::Uniform | StorageClass::UniformConstant
                if !has(Decoration::DescriptorSet) || !has(Decoration::Binding) =>
            {
                return Err(bad(
                    inst,
                    format!("{class:?} variable {} has no DescriptorSet or Binding", inst.id),
                ));
            }
            StorageClass::Input if !has(Decoration::BuiltIn) => {
                return Err(bad(inst, format!("input variable {} is no built-in", inst.id)));
            }
            StorageClass::StorageBuffer | StorageClass::Uniform | StorageClass::PushConstant => {
                check_layout(program, &decorations, inst, *pointee, &mut laid_out)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// All that can be reached within the type has explicit places: members an offset, arrays a stride.
fn check_layout(
    program: &ParsedModule<'_>,
    decorations: &Decorations<'_>,
    variable: &Inst,
    ty: u32,
    done: &mut HashSet<u32>,
) -> Result<(), SpirvError> {
    let mut open = vec![ty];
    // An array of blocks is an array of bindings and has no stride.
    let mut outermost = true;
    while let Some(ty) = open.pop() {
        if !done.insert(ty) {
            continue;
        }
        match program.types.get(ty) {
            Some(Type::Struct { members }) => {
                let placed = decorations.all_members_have(ty, members.len(), Decoration::Offset);
                if !placed && !members.is_empty() {
                    return Err(bad(
                        variable,
                        format!("struct {ty} in a buffer has a member without Offset"),
                    ));
                }
                open.extend(members);
            }
            Some(Type::Array { elem, .. } | Type::RuntimeArray { elem }) => {
                if !outermost && !decorations.has(ty, Decoration::ArrayStride) {
                    return Err(bad(variable, format!("array {ty} in a buffer has no ArrayStride")));
                }
                open.push(*elem);
            }
            _ => {}
        }
        outermost = false;
    }
    Ok(())
}
