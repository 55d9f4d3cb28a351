//! The patterns that are measured.

use std::sync::Arc;

use halite_hal::{
    Buffer, BufferParams, Command, CommandBufferMode, CommandCategory, CommandList, Device, Executable,
    Fence, QueueOp, Result,
};
use halite_testing::hal::{
    kernels::{AFFINE, Kernels},
    support::{ANY, Dev, dispatch, execute, fence, semaphore, slot, soon, span, whole, words_buffer},
};

use super::{Plan, Times, timed};

/// Bytes from one command's target to the next: no command touches what another does, so none has to wait.
const STRIDE: u64 = 256;
/// Objects that are made and dropped in one iteration.
const OBJECTS: u32 = 100;

/// A device with what the patterns need.
pub struct Bench {
    device: Dev,
    executable: Option<Arc<dyn Executable>>,
    source: Arc<dyn Buffer>,
    target: Arc<dyn Buffer>,
}

impl Bench {
    /// Prepares a device. One without an executable format that the suite knows is measured with fills.
    pub fn new(device: Arc<dyn Device>, plan: &Plan) -> Result<Self> {
        let kernels = Kernels::for_device(device.as_ref())?.into_iter().next();
        Ok(Bench {
            executable: kernels.map(|k| k.create(device.as_ref())).transpose()?,
            source: words_buffer(&device, &[1])?,
            target: device.allocate_buffer(&BufferParams::DEVICE, u64::from(plan.commands) * STRIDE)?,
            device,
        })
    }

    /// What the commands are.
    pub fn command_name(&self) -> &'static str {
        if self.executable.is_some() { "dispatches" } else { "fills" }
    }

    fn list(&self, mode: CommandBufferMode, slots: u32, plan: &Plan) -> CommandList {
        let target = |n: u32| {
            let offset = u64::from(n) * STRIDE;
            if slots > 0 { slot(0, offset, 4) } else { span(&self.target, offset, 4).into() }
        };
        let command = |n: u32| match &self.executable {
            Some(code) => {
                let bindings = [span(&self.source, 0, 4).into(), target(n)];
                dispatch(code, AFFINE, [1, 1, 1], &[1, n], bindings)
            }
            None => Command::Fill { target: target(n), pattern: n.into(), pattern_length: 4 },
        };
        CommandList {
            mode,
            categories: CommandCategory::ANY,
            affinity: ANY,
            binding_capacity: slots,
            commands: (0..plan.commands).map(command).collect(),
        }
    }
}

/// What one iteration does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Records, hands over, submits and waits, every time.
    OneShot,
    /// Submits what was recorded once, with its target in a slot, and waits.
    Reused,
    /// As `OneShot`, with a single command: what a call of a small model pays.
    Single,
    /// Makes, uses and drops semaphores and small buffers.
    Objects,
}

/// One iteration.
pub(super) type Iteration<'a> = Box<dyn FnMut() -> Result<Times> + 'a>;

impl Pattern {
    /// All of them.
    pub const ALL: [Pattern; 4] = [Pattern::OneShot, Pattern::Reused, Pattern::Single, Pattern::Objects];

    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::OneShot => "one-shot",
            Pattern::Reused => "reused",
            Pattern::Single => "single",
            Pattern::Objects => "objects",
        }
    }

    /// What is done in one iteration, in words.
    pub fn describe(self, bench: &Bench, plan: &Plan) -> String {
        let (commands, count) = (bench.command_name(), plan.commands);
        match self {
            Pattern::OneShot => format!("record, submit and wait for {count} {commands}"),
            Pattern::Reused => format!("submit and wait for {count} {commands} that were recorded before"),
            Pattern::Single => format!("record, submit and wait for one of the {commands}"),
            Pattern::Objects => {
                format!("make, use and drop {OBJECTS} semaphores and {OBJECTS} buffers of 64 bytes")
            }
        }
    }

    pub(super) fn prepare<'a>(self, bench: &'a Bench, plan: &'a Plan) -> Result<Iteration<'a>> {
        match self {
            Pattern::OneShot => Ok(Box::new(move || one_shot(bench, plan))),
            Pattern::Reused => reused(bench, plan),
            Pattern::Single => {
                let one = Plan { commands: 1, ..*plan };
                Ok(Box::new(move || one_shot(bench, &one)))
            }
            Pattern::Objects => Ok(Box::new(move || objects(&bench.device))),
        }
    }
}

fn one_shot(bench: &Bench, plan: &Plan) -> Result<Times> {
    let mut times = Times::new();
    let list = timed(&mut times, "record", || Ok(bench.list(CommandBufferMode::ONE_SHOT, 0, plan)))?;
    let commands = timed(&mut times, "create_command_buffer", || bench.device.create_command_buffer(list))?;
    submit_and_wait(bench, &mut times, execute(&commands, []))?;
    timed(&mut times, "drop", || {
        drop(commands);
        Ok(())
    })?;
    Ok(times)
}

fn reused<'a>(bench: &'a Bench, plan: &'a Plan) -> Result<Iteration<'a>> {
    let commands = bench.device.create_command_buffer(bench.list(CommandBufferMode::empty(), 1, plan))?;
    Ok(Box::new(move || {
        let mut times = Times::new();
        submit_and_wait(bench, &mut times, execute(&commands, [Some(whole(&bench.target))]))?;
        Ok(times)
    }))
}

fn submit_and_wait(bench: &Bench, times: &mut Times, op: QueueOp) -> Result<()> {
    let device = &bench.device;
    let done = timed(times, "create_semaphore", || fence(device))?;
    timed(times, "queue_submit", || {
        device.queue_submit(ANY, &Fence::default(), &done, op)?;
        device.queue_flush(ANY)
    })?;
    timed(times, "wait", || done.wait(soon()))
}

fn objects(device: &Dev) -> Result<Times> {
    let mut times = Times::new();
    timed(&mut times, "semaphores", || {
        (0..OBJECTS).try_for_each(|_| {
            let made = fence(device)?;
            semaphore(&made).signal(1)?;
            semaphore(&made).query().map(drop)
        })
    })?;
    timed(&mut times, "buffers", || {
        (0..OBJECTS).try_for_each(|n| {
            let data = device.allocate_buffer(&BufferParams::DEVICE, 64)?;
            data.write(0, &n.to_le_bytes())?;
            data.read(0, &mut [0; 4])
        })
    })?;
    Ok(times)
}

#[cfg(test)]
mod tests {
    use halite_hal::Options;
    use halite_testing::drivers::{opener, registry};

    use super::*;
    use crate::calls::compare;

    #[test]
    fn every_pattern_runs_with_dispatches_that_do_their_work() {
        let plan = Plan { commands: 20, iterations: 3 };
        let open = |driver| opener(registry(&[]), driver, Options::new())().expect("the device opens");
        let sides =
            ["null", "local-sync"].map(|driver| Bench::new(open(driver), &plan).expect("it has memory"));
        for pattern in Pattern::ALL {
            let phases = compare([&sides[0], &sides[1]], pattern, &plan).expect("the pattern runs");
            assert_eq!(phases.last().map(|p| p.name), Some("all"), "{pattern:?}");
        }
        let words = halite_testing::hal::support::read_words(&sides[1].target).expect("it is read back");
        for n in 0..20 {
            // 1 * 2 + n, at every stride.
            assert_eq!(words[n * STRIDE as usize / 4], 2 + n as u32);
        }
    }
}
