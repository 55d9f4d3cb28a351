//! The trial of one execution.

use std::{collections::HashMap, sync::Arc, time::Duration};

use halite_hal::{
    BindingTable, Buffer, BufferRef, Command, CommandBufferMode, CommandCategory, CommandList, CommandTarget,
    Deadline, Device, DispatchCounts, Fence, QueueOp, Result,
};
use halite_layers::hazards::{self, Access, HazardCheck};

use super::Findings;

/// Longest time that a part of a recording may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// Runs of a access that are looked at one by one; of more, only their ends.
const MOST_RUNS: u64 = 1 << 20;

/// Contents of buffers, in the order of [`Trial::buffers`].
type Contents = Vec<Vec<u8>>;

/// One execution of a recording.
pub(super) struct Trial<'a> {
    device: &'a Arc<dyn Device>,
    list: &'a CommandList,
    table: &'a BindingTable,
    check: HazardCheck,
    /// Every buffer that is named, once.
    buffers: Vec<Arc<dyn Buffer>>,
}

impl<'a> Trial<'a> {
    pub fn new(
        device: &'a Arc<dyn Device>,
        list: &'a CommandList,
        table: &'a BindingTable,
        check: HazardCheck,
    ) -> Result<Self> {
        let mut by_address = HashMap::new();
        let mut buffers = Vec::new();
        let slots = table.entries.iter().flatten().map(|span| &span.buffer);
        let direct =
            list.commands.iter().flat_map(references).filter_map(|reference| match &reference.target {
                CommandTarget::Direct(buffer) => Some(buffer),
                CommandTarget::Slot(_) => None,
            });
        for buffer in slots.chain(direct) {
            if by_address.insert(Arc::as_ptr(buffer).cast::<()>().addr(), ()).is_none() {
                buffers.push(buffer.clone());
            }
        }
        Ok(Trial { device, list, table, check, buffers })
    }

    /// Executes the recording, and the parts of it that show something on the way. Afterwards buffers hold what the
    /// recording leaves in them.
    pub fn run(&mut self, findings: &mut Findings) -> Result<()> {
        findings.recordings += 1;
        let found = hazards::find(self.list, self.table, self.check)?;
        findings.hazards.extend(found.iter().map(ToString::to_string));
        let segments: Vec<Vec<&Command>> = self
            .list
            .commands
            .split(|command| matches!(command, Command::Barrier))
            .map(|segment| segment.iter().filter(|c| references(c).next().is_some()).collect())
            .filter(|segment: &Vec<_>| !segment.is_empty())
            .collect();
        for (index, segment) in segments.iter().enumerate() {
            findings.commands += segment.len();
            let before = self.contents()?;
            let mut now = before.clone();
            for command in segment {
                now = self.one(command, now, findings)?;
            }
            if let Some(next) = segments.get(index + 1) {
                self.barrier(&before, &now, segment, next, findings)?;
            }
        }
        Ok(())
    }

    /// Executes one command, and looks at what it changed.
    fn one(&self, command: &Command, before: Contents, findings: &mut Findings) -> Result<Contents> {
        let list = self.execute(&[command])?;
        let after = self.contents()?;
        let accesses = hazards::accesses(&list, self.table)?;
        for (buffer, (old, new)) in self.buffers.iter().zip(before.iter().zip(&after)) {
            if old == new {
                continue;
            }
            let address = Arc::as_ptr(buffer).cast::<()>().addr();
            let written = written(&accesses, address, new.len());
            let wrong = (0..new.len()).find(|at| old[*at] != new[*at] && !written[*at]);
            if let Some(at) = wrong {
                let text = format!("{} changed byte {at} of {}", name(command), new.len());
                findings.outside.push(text);
            }
        }
        Ok(after)
    }

    /// Tries the barrier between two segments. Buffers hold `between` before and afterwards.
    fn barrier(
        &self,
        before: &Contents,
        between: &Contents,
        first: &[&Command],
        second: &[&Command],
        findings: &mut Findings,
    ) -> Result<()> {
        self.execute(second)?;
        let in_order = self.contents()?;
        self.restore(before)?;
        self.execute(second)?;
        self.execute(first)?;
        let other_way_round = self.contents()?;
        self.restore(between)?;
        let commands: Vec<&Command> = first.iter().chain(second).copied().collect();
        let found = hazards::find(&self.list_of(&commands), self.table, self.check)?;
        let (needed, reported) = (in_order != other_way_round, !found.is_empty());
        findings.barriers += 1;
        findings.needed += usize::from(needed);
        findings.reported += usize::from(reported);
        if needed && !reported {
            let (last, next) = (first.last().map_or(String::new(), |c| name(c)), name(second[0]));
            findings.missed.push(format!("the barrier between {last} and {next} is needed, and not missed"));
        }
        Ok(())
    }

    fn list_of(&self, commands: &[&Command]) -> CommandList {
        CommandList {
            mode: CommandBufferMode::empty(),
            categories: CommandCategory::ANY,
            affinity: self.list.affinity,
            binding_capacity: self.list.binding_capacity,
            commands: commands.iter().map(|c| (*c).clone()).collect(),
        }
    }

    /// Executes commands with barriers between all of them, and waits.
    fn execute(&self, commands: &[&Command]) -> Result<CommandList> {
        let list = self.list_of(commands);
        let mut ordered = list.clone();
        ordered.commands = list.commands.iter().cloned().flat_map(|c| [c, Command::Barrier]).collect();
        let command_buffer = self.device.create_command_buffer(ordered)?;
        let signal = Fence::new(self.device.create_semaphore(0)?, 1);
        let op = QueueOp::Execute { command_buffer, bindings: self.table.clone() };
        self.device.queue_submit(list.affinity, &Fence::default(), &signal, op)?;
        signal.wait(Deadline::after(PATIENCE))?;
        Ok(list)
    }

    fn contents(&self) -> Result<Contents> {
        let read = |buffer: &Arc<dyn Buffer>| {
            let mut bytes = vec![0; usize::try_from(buffer.byte_length()).unwrap_or(0)];
            buffer.read(0, &mut bytes).map(|()| bytes)
        };
        self.buffers.iter().map(read).collect()
    }

    fn restore(&self, contents: &Contents) -> Result<()> {
        self.buffers.iter().zip(contents).try_for_each(|(buffer, bytes)| buffer.write(0, bytes))
    }
}

/// What a command names.
fn references(command: &Command) -> impl Iterator<Item = &BufferRef> {
    let (first, second, bindings): (Option<&BufferRef>, Option<&BufferRef>, &[BufferRef]) = match command {
        Command::Fill { target, .. } | Command::Update { target, .. } => (Some(target), None, &[]),
        Command::Copy { source, target } => (Some(source), Some(target), &[]),
        Command::Dispatch { counts: DispatchCounts::Indirect(counts), bindings, .. } => {
            (Some(counts), None, bindings)
        }
        Command::Dispatch { bindings, .. } => (None, None, bindings),
        _ => (None, None, &[]),
    };
    first.into_iter().chain(second).chain(bindings)
}

fn name(command: &Command) -> String {
    match command {
        Command::Dispatch { executable, function, .. } => {
            let info = executable.functions().get(*function as usize);
            info.map_or_else(
                || format!("dispatch of function {function}"),
                |i| format!("dispatch '{}'", i.name),
            )
        }
        other => other.name().to_owned(),
    }
}

/// Which bytes of a buffer are said to be written.
fn written(accesses: &[Access], buffer: usize, length: usize) -> Vec<bool> {
    let mut bytes = vec![false; length];
    for access in accesses.iter().filter(|t| t.write && t.buffer == buffer) {
        let at = |byte: u64| usize::try_from(byte).unwrap_or(length).min(length);
        let ends = at(access.from)..at(access.to);
        let count =
            access.runs.iter().flat_map(|r| &r.strides).fold(1u64, |all, (_, n)| all.saturating_mul(*n));
        let Some(runs) = access.runs.as_ref().filter(|_| count <= MOST_RUNS) else {
            bytes[ends].fill(true);
            continue;
        };
        let mut starts = vec![runs.start];
        for (stride, count) in &runs.strides {
            let more = |start: &i64| {
                let (start, stride) = (*start, *stride);
                (0..*count).map(move |n| start.saturating_add_unsigned(stride.saturating_mul(n)))
            };
            starts = starts.iter().flat_map(more).collect();
        }
        for start in starts {
            let from = at(start.max(0).unsigned_abs()).max(ends.start);
            let to = at(start.saturating_add_unsigned(runs.width).max(0).unsigned_abs()).min(ends.end);
            if from < to {
                bytes[from..to].fill(true);
            }
        }
    }
    bytes
}
