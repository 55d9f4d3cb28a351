//! The replacement of subgroup instructions by exchanges through workgroup memory.
//!
//! A compiler that assumes subgroups of W invocations numbers them along the workgroup: invocation i is lane i % W
//! of subgroup i / W. Here every invocation stores its operand in an array, a barrier makes the array visible, and
//! each one reads what the instruction would have given it. That is right for any real width, as long as all
//! invocations of the workgroup get to the instruction together.

use std::collections::HashMap;

use spirv::{BuiltIn, Decoration, Op, StorageClass};

use super::{barrier::barrier, hazard::Analysis, repair::insert_barriers, uniform::Uniformity};
use crate::{
    cfg::Function, decorations::Decorations, edit::Editor, entry::Entry, facts::is_subgroup_op, module::Inst,
    program::ParsedModule, types::Type, validate::validated, words::instruction,
};

/// Workgroup memory that every Vulkan device has.
const MEMORY_LIMIT: u64 = 16 * 1024;
/// Words that the new instructions may take.
const SIZE_LIMIT: usize = 1 << 16;

/// The module without subgroup instructions, or why that is not possible.
pub(super) fn emulate(program: &ParsedModule<'_>, entry: &Entry, width: u32) -> Result<Vec<u32>, String> {
    let decorations = Decorations::read(&program.module);
    let invocations = entry.local_size.iter().product::<u32>();
    check(program, &decorations, invocations, width)?;
    let function = program.function(entry.function).ok_or("its function is missing")?;
    let uniformity =
        Uniformity::of(program, function, &decorations).ok_or("its control flow is too large")?;
    let mut edit = Editor::new(&program.module);
    let start = first_after_variables(program, function);
    let mut lanes = Lanes::new(program, &decorations, &mut edit, start, width, invocations);
    let mut added = 0;
    for (number, block) in function.blocks.iter().enumerate() {
        for inst in &program.module.insts()[block.first..=block.last] {
            if !is_subgroup_op(inst.op) {
                continue;
            }
            if uniformity.non_uniform[number] {
                return Err(format!(
                    "Op{:?} stands where invocations part ways, so no barrier is legal",
                    inst.op
                ));
            }
            let words = lanes.replace(&mut edit, inst)?;
            added += words.len();
            if added > SIZE_LIMIT {
                return Err("the replacement would be too large".to_owned());
            }
            edit.replace(inst, words);
        }
    }
    let memory = workgroup_bytes(program).saturating_add(lanes.bytes);
    if memory > MEMORY_LIMIT {
        return Err(format!(
            "the replacement needs {memory} bytes of workgroup memory, more than {MEMORY_LIMIT}"
        ));
    }
    for inst in program.module.insts().iter().filter(|i| i.op == Op::Capability) {
        // The GroupNonUniform family.
        if (61..=68).contains(&program.module.operands(inst)[0]) {
            edit.remove(inst);
        }
    }
    let words = edit.finish().map_err(|e| e.to_string())?;
    synchronized(words, &entry.name)
}

/// What the whole module must be like.
fn check(
    program: &ParsedModule<'_>,
    decorations: &Decorations<'_>,
    invocations: u32,
    width: u32,
) -> Result<(), String> {
    if program.functions.len() != 1 || program.entries.len() != 1 {
        return Err("the module has several functions".to_owned());
    }
    if !width.is_power_of_two() || !(2..=128).contains(&width) || !invocations.is_multiple_of(width) {
        return Err(format!("{invocations} invocations are no whole number of subgroups of {width}"));
    }
    if invocations > 1024 {
        return Err(format!("its workgroup has {invocations} invocations, more than 1024"));
    }
    let subgroup = [
        BuiltIn::SubgroupSize,
        BuiltIn::SubgroupId,
        BuiltIn::NumSubgroups,
        BuiltIn::SubgroupLocalInvocationId,
    ];
    let asks = program.module.insts().iter().filter(|i| i.op == Op::Variable).any(|i| {
        decorations
            .value(i.id, Decoration::BuiltIn)
            .is_some_and(|b| subgroup.iter().any(|s| *s as u32 == b) || (4416..=4420).contains(&b))
    });
    if asks {
        return Err("it reads the device's own subgroup ids".to_owned());
    }
    // A barrier of subgroup scope would mean the real subgroup.
    let narrow =
        program.module.insts().iter().filter(|i| i.op == Op::ControlBarrier).any(|i| {
            program.module.constant_u32(program.module.operands(i)[0]).is_none_or(|scope| scope > 2)
        });
    if narrow { Err("it has barriers of subgroup scope".to_owned()) } else { Ok(()) }
}

fn first_after_variables<'a>(program: &'a ParsedModule<'_>, function: &Function) -> &'a Inst {
    let block = &function.blocks[0];
    let head = |op: Op| matches!(op, Op::Label | Op::Variable | Op::Line | Op::NoLine);
    let insts = &program.module.insts()[block.first..=block.last];
    insts.iter().find(|i| !head(i.op)).unwrap_or(&insts[insts.len() - 1])
}

fn workgroup_bytes(program: &ParsedModule<'_>) -> u64 {
    let variables = program.module.insts().iter().filter(|i| i.op == Op::Variable);
    let sizes = variables.filter_map(|i| match program.types.get(i.ty)? {
        Type::Pointer { class: StorageClass::Workgroup, pointee } => Some(program.types.size(*pointee)),
        _ => None,
    });
    sizes.fold(0, u64::saturating_add)
}

/// Checks the result from scratch, and adds barriers that the kernel itself lacks.
fn synchronized(words: Vec<u32>, entry: &str) -> Result<Vec<u32>, String> {
    let invalid = |e: crate::SpirvError| format!("the replacement is not valid: {e}");
    let program = validated(&words).map_err(invalid)?;
    let found = program.entry(entry).map_err(invalid)?;
    let decorations = Decorations::read(&program.module);
    let analysis = Analysis::of(&program, found, &decorations)?;
    match analysis {
        Some(analysis) if !analysis.hazards(&[]).is_empty() => Ok(insert_barriers(&analysis, entry)?.words),
        _ => Ok(words.clone()),
    }
}

/// The invocation's place, and the arrays that operands are exchanged through.
struct Lanes<'a, 'w> {
    program: &'a ParsedModule<'w>,
    width: u32,
    invocations: u32,
    uint: u32,
    /// Index in the workgroup, lane in the subgroup, index of the subgroup's first lane.
    index: u32,
    lane: u32,
    base: u32,
    /// Array and pointer to its elements, by element type.
    arrays: HashMap<u32, (u32, u32)>,
    bytes: u64,
}

impl<'a, 'w> Lanes<'a, 'w> {
    fn new(
        program: &'a ParsedModule<'w>,
        decorations: &Decorations<'_>,
        edit: &mut Editor<'_, '_>,
        start: &Inst,
        width: u32,
        invocations: u32,
    ) -> Self {
        let uint = edit.uint();
        let is_index = |i: &&Inst| {
            let built_in = decorations.value(i.id, Decoration::BuiltIn);
            i.op == Op::Variable && built_in == Some(BuiltIn::LocalInvocationIndex as u32)
        };
        let existing = program.module.insts().iter().find(is_index).map(|i| i.id);
        let variable = existing.unwrap_or_else(|| edit.input(uint, BuiltIn::LocalInvocationIndex));
        let (index, lane, base) = (edit.fresh(), edit.fresh(), edit.fresh());
        let mask = edit.constant(width - 1);
        edit.insert_before(start, instruction(Op::Load, &[uint, index, variable]));
        edit.insert_before(start, instruction(Op::BitwiseAnd, &[uint, lane, index, mask]));
        edit.insert_before(start, instruction(Op::ISub, &[uint, base, index, lane]));
        Lanes { program, width, invocations, uint, index, lane, base, arrays: HashMap::new(), bytes: 0 }
    }

    /// The instructions that give `inst`'s result under its id.
    fn replace(&mut self, edit: &mut Editor<'_, '_>, inst: &Inst) -> Result<Vec<u32>, String> {
        let operands = self.program.module.operands(inst);
        let constant = |id: u32| self.program.module.constant_u32(id);
        if constant(operands[0]) != Some(3) {
            return Err(format!("Op{:?} is not of subgroup scope", inst.op));
        }
        match (inst.op, &operands[1..]) {
            (Op::GroupNonUniformShuffle | Op::GroupNonUniformBroadcast, &[value, lane]) => {
                self.read_lane(edit, inst, value, |_, _| lane)
            }
            (Op::GroupNonUniformBroadcastFirst, &[value]) => {
                self.read_lane(edit, inst, value, |edit, _| edit.constant(0))
            }
            (Op::GroupNonUniformShuffleXor, &[value, mask]) => {
                let lane = self.lane;
                self.computed_lane(edit, inst, value, Op::BitwiseXor, lane, mask)
            }
            (Op::GroupNonUniformShuffleUp, &[value, delta]) => {
                let lane = self.lane;
                self.computed_lane(edit, inst, value, Op::ISub, lane, delta)
            }
            (Op::GroupNonUniformShuffleDown, &[value, delta]) => {
                let lane = self.lane;
                self.computed_lane(edit, inst, value, Op::IAdd, lane, delta)
            }
            // Group operations 0 and 3: reduction over the subgroup, and over clusters of it.
            (_, &[0, value]) if combine(inst.op).is_some() => self.reduce(edit, inst, value, self.width),
            (_, &[3, value, cluster]) if combine(inst.op).is_some() => {
                let size = constant(cluster).filter(|c| c.is_power_of_two() && *c <= self.width);
                let size = size.ok_or("a cluster has an unknown size")?;
                self.reduce(edit, inst, value, size)
            }
            _ => Err(format!("Op{:?} has no replacement", inst.op)),
        }
    }

    /// Stores every invocation's value; the array may still be read from the exchange before, hence two barriers.
    fn publish(
        &mut self,
        edit: &mut Editor<'_, '_>,
        inst: &Inst,
        value: u32,
    ) -> Result<(Vec<u32>, u32, u32), String> {
        if self.program.types.lanes(inst.ty).is_none_or(|(scalar, _)| *scalar == Type::Bool) {
            return Err(format!("Op{:?} works on a type that has no replacement", inst.op));
        }
        let (array, pointer) = match self.arrays.get(&inst.ty) {
            Some(known) => *known,
            None => {
                self.bytes += self.program.types.size(inst.ty) * u64::from(self.invocations);
                let array = edit.workgroup_array(inst.ty, self.invocations);
                let pointer = edit.pointer(StorageClass::Workgroup, inst.ty);
                self.arrays.insert(inst.ty, (array, pointer));
                (array, pointer)
            }
        };
        let own = edit.fresh();
        let mut words = barrier(edit, false);
        words.extend(instruction(Op::AccessChain, &[pointer, own, array, self.index]));
        words.extend(instruction(Op::Store, &[own, value]));
        words.extend(barrier(edit, false));
        Ok((words, array, pointer))
    }

    fn computed_lane(
        &mut self,
        edit: &mut Editor<'_, '_>,
        inst: &Inst,
        value: u32,
        op: Op,
        left: u32,
        right: u32,
    ) -> Result<Vec<u32>, String> {
        let uint = self.uint;
        self.read_lane(edit, inst, value, |edit, words| {
            let id = edit.fresh();
            words.extend(instruction(op, &[uint, id, left, right]));
            id
        })
    }

    /// Reads the value of one other lane; lanes outside the subgroup give any value, here that of a lane inside.
    fn read_lane(
        &mut self,
        edit: &mut Editor<'_, '_>,
        inst: &Inst,
        value: u32,
        lane: impl FnOnce(&mut Editor<'_, '_>, &mut Vec<u32>) -> u32,
    ) -> Result<Vec<u32>, String> {
        let (mut words, array, pointer) = self.publish(edit, inst, value)?;
        let lane = lane(edit, &mut words);
        let (inside, at, place) = (edit.fresh(), edit.fresh(), edit.fresh());
        let mask = edit.constant(self.width - 1);
        words.extend(instruction(Op::BitwiseAnd, &[self.uint, inside, lane, mask]));
        words.extend(instruction(Op::IAdd, &[self.uint, at, self.base, inside]));
        words.extend(instruction(Op::AccessChain, &[pointer, place, array, at]));
        words.extend(instruction(Op::Load, &[inst.ty, inst.id, place]));
        Ok(words)
    }

    /// Combines the values of `size` lanes, in the same order for all of them.
    fn reduce(
        &mut self,
        edit: &mut Editor<'_, '_>,
        inst: &Inst,
        value: u32,
        size: u32,
    ) -> Result<Vec<u32>, String> {
        let (mut words, array, pointer) = self.publish(edit, inst, value)?;
        let first = edit.fresh();
        let mask = edit.constant(!(size - 1));
        words.extend(instruction(Op::BitwiseAnd, &[self.uint, first, self.index, mask]));
        let mut sum = None;
        for lane in 0..size {
            let (at, place) = (edit.fresh(), edit.fresh());
            let offset = edit.constant(lane);
            words.extend(instruction(Op::IAdd, &[self.uint, at, first, offset]));
            words.extend(instruction(Op::AccessChain, &[pointer, place, array, at]));
            let last = lane + 1 == size;
            let part = if last && sum.is_none() { inst.id } else { edit.fresh() };
            words.extend(instruction(Op::Load, &[inst.ty, part, place]));
            sum = Some(match sum {
                None => part,
                Some(sum) => {
                    let id = if last { inst.id } else { edit.fresh() };
                    match combine(inst.op).ok_or("no such combination")? {
                        Combine::Core(op) => words.extend(instruction(op, &[inst.ty, id, sum, part])),
                        Combine::Glsl(number) => {
                            let set = edit.glsl();
                            words.extend(instruction(
                                Op::ExtInst,
                                &[inst.ty, id, set, number as u32, sum, part],
                            ));
                        }
                    }
                    id
                }
            });
        }
        Ok(words)
    }
}

enum Combine {
    Core(Op),
    Glsl(spirv::GlslStd450Op),
}

/// The instruction that combines two values as the subgroup instruction combines many.
fn combine(op: Op) -> Option<Combine> {
    use spirv::GlslStd450Op as Glsl;
    Some(match op {
        Op::GroupNonUniformIAdd => Combine::Core(Op::IAdd),
        Op::GroupNonUniformFAdd => Combine::Core(Op::FAdd),
        Op::GroupNonUniformIMul => Combine::Core(Op::IMul),
        Op::GroupNonUniformFMul => Combine::Core(Op::FMul),
        Op::GroupNonUniformBitwiseAnd => Combine::Core(Op::BitwiseAnd),
        Op::GroupNonUniformBitwiseOr => Combine::Core(Op::BitwiseOr),
        Op::GroupNonUniformBitwiseXor => Combine::Core(Op::BitwiseXor),
        Op::GroupNonUniformSMin => Combine::Glsl(Glsl::SMin),
        Op::GroupNonUniformUMin => Combine::Glsl(Glsl::UMin),
        Op::GroupNonUniformSMax => Combine::Glsl(Glsl::SMax),
        Op::GroupNonUniformUMax => Combine::Glsl(Glsl::UMax),
        // The group versions pass over NaN where another value exists.
        Op::GroupNonUniformFMin => Combine::Glsl(Glsl::NMin),
        Op::GroupNonUniformFMax => Combine::Glsl(Glsl::NMax),
        _ => return None,
    })
}
