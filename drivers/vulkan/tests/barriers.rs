//! The barriers that recordings become, read from the calls that the driver makes: drivers that run everything in order, as
//! those on processors do, would not miss one, and layers see only some.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;
#[path = "common/shim.rs"]
mod shim;

use std::sync::Arc;

use ash::vk::{AccessFlags as Access, PipelineStageFlags as Stages};
use common::*;
use halite_hal::{
    BindingTable, Buffer, BufferRef, Command, CommandBufferMode, CommandCategory, CommandList, CommandTarget,
    Device, DispatchCounts, DispatchFlags, Executable, Fence, QueueAffinity, QueueOp,
};
use shim::{Shim, on_shim};

const WORK: [&str; 4] = ["dispatch", "fill", "update", "copy"];
const NOTHING: Stages = Stages::from_raw(0);

/// A barrier, as it was recorded.
struct Barrier {
    before: Stages,
    behind: Stages,
    wrote: Access,
    uses: Access,
}

impl Barrier {
    fn of(line: &str) -> Option<Self> {
        let numbers = line.strip_prefix("barrier ")?;
        let mut numbers = numbers.split(' ').map(|n| n.parse::<u32>().unwrap());
        let mut next = || numbers.next().unwrap();
        Some(Barrier {
            before: Stages::from_raw(next()),
            behind: Stages::from_raw(next()),
            wrote: Access::from_raw(next()),
            uses: Access::from_raw(next()),
        })
    }

    fn orders(&self, before: Stages, wrote: Access, behind: Stages, uses: Access) -> bool {
        self.before.contains(before)
            && self.behind.contains(behind)
            && self.wrote.contains(wrote)
            && self.uses.contains(uses)
    }
}

/// Whether some barrier of these lines orders such work before such work.
#[track_caller]
fn ordered(lines: &[String], what: &str, before: (Stages, Access), behind: (Stages, Access)) {
    let found = lines.iter().filter_map(|line| Barrier::of(line));
    let mut found = found.filter(|b| b.orders(before.0, before.1, behind.0, behind.1));
    // As bits: names of flags are a feature of ash that takes half of its compilation.
    let told =
        |(stages, access): (Stages, Access)| format!("{:#x} of {:#x}", access.as_raw(), stages.as_raw());
    let (before, behind) = (told(before), told(behind));
    assert!(found.next().is_some(), "{what}: {before} is not ordered before {behind} in {lines:?}");
}

/// The lines between the nth piece of work (0 for the beginning) and the next.
fn gap(lines: &[String], work: usize) -> &[String] {
    let places: Vec<usize> = (0..lines.len()).filter(|i| WORK.contains(&lines[*i].as_str())).collect();
    let from = if work == 0 { 0 } else { places[work - 1] + 1 };
    let to = places.get(work).copied().unwrap_or(lines.len());
    &lines[from..to]
}

fn whole(buffer: &Arc<dyn Buffer>) -> BufferRef {
    BufferRef { target: CommandTarget::Direct(buffer.clone()), offset: 0, length: buffer.byte_length() }
}

fn fill(buffer: &Arc<dyn Buffer>) -> Command {
    Command::Fill { target: whole(buffer), pattern: 1, pattern_length: 4 }
}

fn dispatch(executable: &Arc<dyn Executable>, from: &Arc<dyn Buffer>, to: &Arc<dyn Buffer>) -> Command {
    Command::Dispatch {
        executable: executable.clone(),
        function: 0,
        counts: DispatchCounts::Direct([1, 1, 1]),
        constants: [2, 64].into_iter().collect(),
        bindings: [whole(from), whole(to)].into_iter().collect(),
        flags: DispatchFlags::empty(),
    }
}

fn execution(device: &Arc<dyn Device>, mode: CommandBufferMode, commands: Vec<Command>) -> QueueOp {
    let list = CommandList {
        mode,
        categories: CommandCategory::all(),
        affinity: QueueAffinity::ANY,
        binding_capacity: 0,
        commands,
    };
    let command_buffer = device.create_command_buffer(list).unwrap();
    QueueOp::Execute { command_buffer, bindings: BindingTable::default() }
}

/// What the driver records for operations that wait for each other, none of them for the host.
fn recorded(shim: &Shim, device: &Arc<dyn Device>, operations: Vec<QueueOp>) -> Vec<String> {
    shim.commands();
    let done = fence(device);
    let mut before = Fence::default();
    let last = operations.len() as u64;
    let semaphore = done.points()[0].semaphore.clone();
    for (index, operation) in (1..).zip(operations) {
        // The last value is that of the fence; the semaphore counts up to it.
        let value = if index == last { last } else { index };
        let signal = Fence::new(semaphore.clone(), value);
        device.queue_submit(ANY, &before, &signal, operation).unwrap();
        before = signal;
    }
    before.wait(seconds(30)).unwrap();
    shim.commands()
}

const TRANSFER: (Stages, Access) = (Stages::TRANSFER, Access::TRANSFER_WRITE);
const KERNEL: (Stages, Access) = (Stages::COMPUTE_SHADER, Access::SHADER_WRITE);
const BY_TRANSFER: (Stages, Access) =
    (Stages::TRANSFER, Access::from_raw(Access::TRANSFER_READ.as_raw() | Access::TRANSFER_WRITE.as_raw()));
const BY_KERNEL: (Stages, Access) =
    (Stages::COMPUTE_SHADER, Access::from_raw(Access::SHADER_READ.as_raw() | Access::SHADER_WRITE.as_raw()));
const BY_HOST: (Stages, Access) = (Stages::HOST, Access::HOST_READ);

#[test]
fn barriers_order_execution_and_memory_in_every_mode() {
    on_shim(|shim, info| {
        let device = shim.open(info, &[]).unwrap();
        let executable = test_executable(&device);
        let (a, b) = (words_buffer(&device, &[1; 64]), words_buffer(&device, &[2; 64]));
        for mode in [CommandBufferMode::ONE_SHOT, CommandBufferMode::empty()] {
            let commands = vec![
                fill(&a),
                Command::Barrier,
                dispatch(&executable, &a, &b),
                Command::Barrier,
                Command::Copy { source: whole(&b), target: whole(&a) },
                Command::Barrier,
                dispatch(&executable, &a, &b),
                Command::Barrier,
                dispatch(&executable, &b, &a),
            ];
            let lines = recorded(shim, &device, vec![execution(&device, mode, commands)]);
            let work: Vec<&String> = lines.iter().filter(|l| WORK.contains(&l.as_str())).collect();
            assert_eq!(work, ["fill", "dispatch", "copy", "dispatch", "dispatch"]);
            let what = format!("{mode}");
            ordered(gap(&lines, 1), &what, TRANSFER, BY_KERNEL);
            ordered(gap(&lines, 2), &what, KERNEL, BY_TRANSFER);
            ordered(gap(&lines, 3), &what, TRANSFER, BY_KERNEL);
            ordered(gap(&lines, 4), &what, KERNEL, BY_KERNEL);
            ordered(gap(&lines, 5), &what, KERNEL, BY_HOST);
            ordered(gap(&lines, 5), &what, TRANSFER, BY_HOST);
        }
    });
}

#[test]
fn what_follows_on_a_queue_comes_after_all_before() {
    on_shim(|shim, info| {
        let device = shim.open(info, &[]).unwrap();
        let executable = test_executable(&device);
        let (a, b) = (words_buffer(&device, &[1; 64]), words_buffer(&device, &[2; 64]));
        for mode in [CommandBufferMode::ONE_SHOT, CommandBufferMode::empty()] {
            let one = |command| execution(&device, mode, vec![command]);
            let operations = vec![
                one(dispatch(&executable, &a, &b)),
                one(dispatch(&executable, &b, &a)),
                one(Command::Copy { source: whole(&a), target: whole(&b) }),
                one(dispatch(&executable, &b, &a)),
            ];
            let lines = recorded(shim, &device, operations);
            let what = format!("{mode}: {lines:?}");
            // Reused command buffers are recorded one after the other, with their host barriers between.
            ordered(gap(&lines, 1), &what, KERNEL, BY_KERNEL);
            ordered(gap(&lines, 2), &what, KERNEL, BY_TRANSFER);
            ordered(gap(&lines, 3), &what, TRANSFER, BY_KERNEL);
        }
    });
}

#[test]
fn without_a_barrier_nothing_waits() {
    on_shim(|shim, info| {
        let device = shim.open(info, &[]).unwrap();
        let executable = test_executable(&device);
        let data: Vec<_> = (0..4).map(|n| words_buffer(&device, &[n; 64])).collect();
        let commands =
            vec![dispatch(&executable, &data[0], &data[1]), dispatch(&executable, &data[2], &data[3])];
        let lines = recorded(shim, &device, vec![execution(&device, CommandBufferMode::ONE_SHOT, commands)]);
        let between: Vec<_> = gap(&lines, 1).iter().filter_map(|l| Barrier::of(l)).collect();
        assert!(between.iter().all(|b| b.before == NOTHING), "{lines:?}");
    });
}
