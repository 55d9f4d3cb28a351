//! What is computed of constants when a module is loaded: its buffers, what others have of it already, and the rest.

use halite_abi::{
    import::{hal, io_parameters},
    object,
};
use halite_vm::{asm::Reg, isa::Op};

use super::{
    code::{Code, Part},
    load::{Load, Registers},
    needs,
    record::{Buffers, Recorder},
};
use crate::{
    CompileError,
    plan::{TargetPlan, schedule::Command, schedule::Memory},
};

impl Load<'_> {
    /// Gives the slabs of what is computed their buffers: those of others, where these have the same, and new ones. Notes what is
    /// missing.
    pub(super) fn packed(
        &mut self,
        code: &mut Code,
        registers: &Registers,
        target: &TargetPlan,
    ) -> Result<Buffers, CompileError> {
        let plan = self.plan;
        for flag in registers.missing.iter().chain([&registers.any]) {
            code.op(Op::ConstI32Zero, &[(*flag).into()]);
        }
        let mut buffers = Buffers::default();
        let slabs: Vec<Reg> = plan.slabs.packed_slabs.iter().map(|_| code.reference()).collect();
        for unit in 0..plan.shared.units.len() {
            self.watch.check()?;
            let asked = self.recipe(code, registers, target, unit)?;
            self.writer.call(code, io_parameters::RESULTS_FIND, &asked, &[registers.object]);
            let own: Vec<u32> = self.unit_slabs(unit).collect();
            let (found, new, done) = (code.label(), code.label(), code.label());
            let any = code.temporary();
            code.op(Op::CmpNzRef, &[registers.object.into(), any.into()]);
            code.branch(any, found, new);
            code.block(found);
            for (place, slab) in (0..).zip(&own) {
                let (place, ty) = (code.i32(place), self.writer.ty(object::BUFFER));
                let to = slabs[*slab as usize];
                code.op(Op::ListGetRef, &[registers.object.into(), place.into(), ty.into(), to.into()]);
            }
            code.jump(done);
            code.block(new);
            for slab in &own {
                let bytes = plan.slabs.packed_slabs[*slab as usize].bytes;
                self.allocate(code, registers, bytes, needs::TENSOR_USAGE, slabs[*slab as usize]);
            }
            let sets = plan.shared.sets.iter().zip(&registers.missing);
            for (_, flag) in sets.filter(|(set, _)| set.contains(&unit)) {
                code.op(Op::ConstI32, &[1i32.into(), (*flag).into()]);
            }
            code.op(Op::ConstI32, &[1i32.into(), registers.any.into()]);
            code.jump(done);
            code.block(done);
        }
        for (index, (slab, buffer)) in (0..).zip(plan.slabs.packed_slabs.iter().zip(slabs)) {
            if !slab.apart {
                self.allocate(code, registers, slab.bytes, needs::TENSOR_USAGE, buffer);
            }
            self.writer.store(code, self.globals.packed(index), object::BUFFER, buffer);
            buffers.known.insert(Memory::Packed(index), buffer);
        }
        Ok(buffers)
    }

    /// Computes what is missing, after the constants are there.
    pub(super) fn pack(
        &mut self,
        code: &mut Code,
        registers: &Registers,
        target: &TargetPlan,
        kernels: &[(u32, String)],
        buffers: &mut Buffers,
    ) -> Result<(), CompileError> {
        let Some(commands) = target.load.segments.first() else { return Ok(()) };
        let conditions = self.conditions(registers, target, commands);
        let is_always = |(command, condition): (&Command, &Option<Reg>)| {
            !matches!(command, Command::Barrier) && condition.is_none()
        };
        let after = match commands.iter().zip(&conditions).any(is_always) {
            true => None,
            false => Some(code.only_if(registers.any)),
        };
        let transient_bytes = target.load.transient_bytes.exact();
        if transient_bytes > 0 {
            let buffer = code.reference();
            self.allocate(code, registers, transient_bytes, needs::TENSOR_USAGE, buffer);
            buffers.known.insert(Memory::Transient(0), buffer);
        }
        let Registers { device, object: target_of, executable, text, ordinal, .. } = *registers;
        Recorder {
            writer: &mut *self.writer,
            code,
            target: target_of,
            executable,
            text,
            ordinal,
            buffers,
            kernels,
            group: "",
            watch: self.watch,
            conditions: &conditions,
        }
        .record(device, true, &[commands])?;
        self.writer.new_fence(code, device, registers.signal);
        let (queue, flags) = (code.i64(needs::ANY_QUEUE), code.i64(0));
        let args = [device, queue, registers.done, registers.signal, target_of, flags];
        self.writer.call(code, hal::DEVICE_QUEUE_EXECUTE, &args, &[]);
        code.op(Op::AssignRef, &[registers.signal.into(), registers.done.into()]);
        self.keep(code, registers, target, buffers)?;
        after.into_iter().for_each(|after| code.end_if(after));
        Ok(())
    }

    /// Lets others have what was computed.
    fn keep(
        &mut self,
        code: &mut Code,
        registers: &Registers,
        target: &TargetPlan,
        buffers: &Buffers,
    ) -> Result<(), CompileError> {
        for unit in 0..self.plan.shared.units.len() {
            self.watch.check()?;
            let set = self.plan.shared.packings[self.plan.shared.units[unit].packing];
            let after = set.map(|set| code.only_if(registers.missing[set]));
            let asked = self.recipe(code, registers, target, unit)?;
            let own: Vec<Reg> =
                self.unit_slabs(unit).map(|slab| buffers.known[&Memory::Packed(slab)]).collect();
            let mut parts = vec![Part::One(registers.done)];
            parts.extend(asked.map(Part::One));
            parts.push(Part::Span(own.len(), &own));
            self.writer.call_variadic(code, io_parameters::RESULTS_KEEP, &parts, &[]);
            after.into_iter().for_each(|after| code.end_if(after));
        }
        Ok(())
    }

    /// Scope, text and parameters of a unit. The text has the kernels that the target computes it with.
    fn recipe(
        &mut self,
        code: &mut Code,
        registers: &Registers,
        target: &TargetPlan,
        unit: usize,
    ) -> Result<[Reg; 5], CompileError> {
        let plan = self.plan;
        let unit = &plan.shared.units[unit];
        let mut how = unit.recipe.clone();
        for operation in &unit.operations {
            let step = plan.load_packings.iter().position(|packing| *packing == Some(*operation));
            let choice = step.and_then(|step| target.load.choices.get(step)).and_then(Option::as_ref);
            how.push_str(choice.map_or("", |choice| &choice.variant));
            how.push('\n');
        }
        let tables = self.stored.sources(&plan.pool, &plan.slabs, &unit.sources)?;
        let scope = self.scope(code, registers);
        self.writer.text(code, &how, registers.signal);
        let [keys, key_data, spans] = self.tables(code, registers, &tables);
        Ok([scope, registers.signal, keys, key_data, spans])
    }

    /// The slabs with the results of a unit.
    fn unit_slabs(&self, unit: usize) -> impl Iterator<Item = u32> + use<'_> {
        let plan = self.plan;
        plan.shared.results(&plan.pool, unit).iter().map(|id| plan.slabs.packed[id.index()].0)
    }

    /// For each command that computes something for sets alone: whether it is recorded.
    fn conditions(
        &self,
        registers: &Registers,
        target: &TargetPlan,
        commands: &[Command],
    ) -> Vec<Option<Reg>> {
        let plan = self.plan;
        let mut steps = target.load.sources.first().into_iter().flatten();
        let condition = |command: &Command| {
            if matches!(command, Command::Barrier) {
                return None;
            }
            let packing = plan.load_packings.get(*steps.next()?).copied().flatten()?;
            plan.shared.packings[packing].map(|set| registers.missing[set])
        };
        commands.iter().map(condition).collect()
    }
}
