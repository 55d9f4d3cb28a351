//! How a random graph grows: each step is an operation, applied to the model, with the fences it must wait for.

use std::{io::Write as _, sync::Arc};

use bytes::Bytes;
use halite_hal::{
    Buffer, BufferParams, BufferSpan, Command, Executable, Fence, File, FileAccess, QueueAffinity, QueueOp,
    Result, Semaphore, SoftSemaphore, status,
};
use halite_testing::{
    Random,
    hal::{
        kernels::{AFFINE, Kernels},
        support::{ANY, Dev, buffer, dispatch, execute, fence, fill, record, slot, span},
    },
};

use super::model::{Access, Model};

const BUFFERS: usize = 5;
const FILES: usize = 2;
/// Every device accepts bindings at multiples of this.
const BINDING_UNIT: u64 = 256;

/// An operation that is ready to be submitted.
#[derive(Debug)]
pub(super) struct Step {
    pub op: QueueOp,
    pub wait: Fence,
    pub signal: Fence,
    pub affinity: QueueAffinity,
}

/// A graph while it grows.
pub(super) struct Graph {
    device: Dev,
    executable: Option<Arc<dyn Executable>>,
    buffers: Vec<Arc<dyn Buffer>>,
    files: Vec<File>,
    model: Model,
    accesses: Vec<(Access, Fence)>,
    /// Some steps wait for it.
    pub start: Fence,
    /// In program order.
    pub steps: Vec<Step>,
}

impl Graph {
    /// Buffers and files with random sizes and contents; later resources of the model are the files.
    pub fn new(device: &Dev, kernels: Option<&Kernels>, random: &mut Random) -> Result<Self> {
        let sizes =
            (0..BUFFERS + FILES).map(|i| 1 + random.below(if i == 0 { 70_000 } else { 3000 }) as usize);
        let bytes: Vec<Vec<u8>> = sizes.collect::<Vec<_>>().into_iter().map(|n| random.bytes(n)).collect();
        let make_file = |bytes: &Vec<u8>| -> std::io::Result<File> {
            let mut file = tempfile::tempfile()?;
            file.write_all(bytes)?;
            Ok(File::Handle { file: Arc::new(file), access: FileAccess::ReadWrite })
        };
        let files = bytes[BUFFERS..].iter().map(make_file).collect::<std::io::Result<_>>();
        Ok(Graph {
            device: device.clone(),
            executable: kernels.map(|k| k.create(device.as_ref())).transpose()?,
            buffers: bytes[..BUFFERS].iter().map(|b| buffer(device, b)).collect::<Result<_>>()?,
            files: files.map_err(|e| status!(Unknown, "the test's own file: {e}"))?,
            model: Model { bytes },
            accesses: Vec::new(),
            start: fence(device)?,
            steps: Vec::new(),
        })
    }

    /// (found, wanted) of every resource.
    pub fn contents(&self) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let buffers = self.buffers.iter().map(|b| BufferSpan::whole(b.clone()).read_all());
        let files = self.files.iter().map(|file| {
            let mut bytes = vec![0; file.byte_length()? as usize];
            file.read_at(0, &mut bytes)?;
            Ok(bytes)
        });
        buffers
            .chain(files)
            .zip(&self.model.bytes)
            .map(|(found, wanted)| Ok((found?, wanted.clone())))
            .collect()
    }

    /// Adds an operation, or a few that belong together.
    pub fn grow(&mut self, random: &mut Random) -> Result<()> {
        match random.below(8) {
            0 => {
                let (target, pattern, unit) = self.random_fill(random);
                self.push(fill(self.span(target), pattern, unit), &[target], &Fence::default(), random)
            }
            1 => {
                let target = self.random_range(random, true);
                let source = Bytes::from(random.bytes(target.end - target.start));
                self.model.update(target, &source);
                self.push(
                    QueueOp::Update { source, target: self.span(target) },
                    &[target],
                    &Fence::default(),
                    random,
                )
            }
            2 => {
                let Some((source, target)) = self.random_copy(random) else { return Ok(()) };
                let op = QueueOp::Copy { source: self.span(source), target: self.span(target) };
                self.push(op, &[source, target], &Fence::default(), random)
            }
            3 => self.file_step(random),
            4 => self.scratch_steps(random),
            5 => self.push(QueueOp::Barrier, &[], &Fence::default(), random),
            _ => self.recording(random),
        }
    }

    fn span(&self, access: Access) -> BufferSpan {
        span(&self.buffers[access.resource], access.start as u64, (access.end - access.start) as u64)
    }

    fn random_range(&self, random: &mut Random, write: bool) -> Access {
        let resource = random.index(BUFFERS);
        let size = self.model.bytes[resource].len();
        let start = random.index(size + 1);
        let longest = if random.once_in(4) { size - start } else { (size - start).min(40) };
        Access { resource, start, end: start + random.index(longest + 1), write }
    }

    /// The target, the pattern and its length; applied to the model.
    fn random_fill(&mut self, random: &mut Random) -> (Access, u64, u32) {
        let (unit, pattern) = (1usize << random.below(4), random.next_u64());
        let mut target = self.random_range(random, true);
        target.start = target.start / unit * unit;
        target.end = target.start + (target.end - target.start) / unit * unit;
        self.model.fill(target, &pattern.to_le_bytes()[..unit]);
        (target, pattern, unit as u32)
    }

    /// Two ranges of the same length that do not overlap; applied to the model.
    fn random_copy(&mut self, random: &mut Random) -> Option<(Access, Access)> {
        let (mut source, mut target) = (self.random_range(random, false), self.random_range(random, true));
        let length = (source.end - source.start).min(target.end - target.start);
        (source.end, target.end) = (source.start + length, target.start + length);
        if source.conflicts(&target) {
            return None;
        }
        self.model.copy(source, target);
        Some((source, target))
    }

    fn file_step(&mut self, random: &mut Random) -> Result<()> {
        let file = random.index(FILES);
        let (resource, write) = (BUFFERS + file, random.once_in(2));
        let mut memory = self.random_range(random, !write);
        let size = self.model.bytes[resource].len();
        let start = random.index(size + 1);
        let length = (memory.end - memory.start).min(size - start);
        memory.end = memory.start + length;
        let stored = Access { resource, start, end: start + length, write };
        let (handle, memory_span) = (self.files[file].clone(), self.span(memory));
        let op = if write {
            self.model.copy(memory, stored);
            QueueOp::Write { source: memory_span, target: handle, target_offset: start as u64 }
        } else {
            self.model.copy(stored, memory);
            QueueOp::Read { source: handle, source_offset: start as u64, target: memory_span }
        };
        self.push(op, &[memory, stored], &Fence::default(), random)
    }

    /// A copy that goes through queue-ordered memory.
    fn scratch_steps(&mut self, random: &mut Random) -> Result<()> {
        let Some((source, target)) = self.random_copy(random) else { return Ok(()) };
        let ready = fence(&self.device)?;
        let wait = if random.once_in(2) { self.start.clone() } else { Fence::default() };
        let length = (source.end - source.start) as u64;
        let scratch = self.device.queue_alloca(ANY, &wait, &ready, &BufferParams::DEVICE, length)?;
        let whole = BufferSpan::whole(scratch.clone());
        let into = QueueOp::Copy { source: self.span(source), target: whole.clone() };
        self.push(into, &[source], &ready, random)?;
        let filled = self.last_signal();
        self.push(QueueOp::Copy { source: whole, target: self.span(target) }, &[target], &filled, random)?;
        let emptied = self.last_signal();
        self.push(QueueOp::Dealloca { buffer: scratch }, &[], &emptied, random)
    }

    fn last_signal(&self) -> Fence {
        self.steps.last().map(|s| s.signal.clone()).unwrap_or_default()
    }

    /// Several commands with barriers where they need them, on buffers named directly or through slots.
    fn recording(&mut self, random: &mut Random) -> Result<()> {
        let through_slots = random.once_in(2);
        let place = |graph: &Graph, access: Access| {
            if through_slots {
                slot(access.resource as u32, access.start as u64, (access.end - access.start) as u64)
            } else {
                graph.span(access).into()
            }
        };
        let (mut commands, mut open, mut all) = (Vec::new(), Vec::<Access>::new(), Vec::new());
        for _ in 0..1 + random.below(8) {
            let (command, accesses) = match random.below(4) {
                0 => {
                    let target = self.random_range(random, true);
                    let source = Bytes::from(random.bytes((target.end - target.start).min(60_000)));
                    let target = Access { end: target.start + source.len(), ..target };
                    self.model.update(target, &source);
                    (Command::Update { source, target: place(self, target) }, vec![target])
                }
                1 => {
                    let Some((source, target)) = self.random_copy(random) else { continue };
                    let command = Command::Copy { source: place(self, source), target: place(self, target) };
                    (command, vec![source, target])
                }
                2 if self.executable.is_some() => match self.random_dispatch(random) {
                    Some(made) => made,
                    None => continue,
                },
                _ => {
                    let (target, pattern, pattern_length) = self.random_fill(random);
                    (Command::Fill { target: place(self, target), pattern, pattern_length }, vec![target])
                }
            };
            if accesses.iter().any(|a| open.iter().any(|o| o.conflicts(a))) {
                commands.push(Command::Barrier);
                open.clear();
            }
            commands.push(command);
            open.extend(&accesses);
            all.extend(accesses);
        }
        let commands = record(&self.device, BUFFERS as u32, commands)?;
        let table = self.buffers.iter().map(|b| Some(BufferSpan::whole(b.clone())));
        let op = execute(&commands, table.filter(|_| through_slots));
        self.push(op, &all, &Fence::default(), random)
    }

    /// A dispatch on whole words at offsets that every device accepts.
    fn random_dispatch(&mut self, random: &mut Random) -> Option<(Command, Vec<Access>)> {
        let mut range = |graph: &Graph, write| {
            let access = graph.random_range(random, write);
            let start = access.start / BINDING_UNIT as usize * BINDING_UNIT as usize;
            let words = (graph.model.bytes[access.resource].len() - start) / 4;
            (Access { start, ..access }, words.min(300))
        };
        let ((mut source, most), (mut target, room)) = (range(self, false), range(self, true));
        let words = random.index(most.min(room) + 1);
        (source.end, target.end) = (source.start + 4 * words, target.start + 4 * words);
        if words == 0 || source.conflicts(&target) {
            return None;
        }
        let add = random.next_u64() as u32;
        self.model.affine(source, target, add);
        let bindings = [self.span(source).into(), self.span(target).into()];
        let groups = [words.div_ceil(64) as u32, 1, 1];
        let executable = self.executable.as_ref()?;
        Some((dispatch(executable, AFFINE, groups, &[words as u32, add], bindings), vec![source, target]))
    }

    /// Adds a step that waits for every step before it whose bytes it must not overtake.
    fn push(&mut self, op: QueueOp, accesses: &[Access], also: &Fence, random: &mut Random) -> Result<()> {
        let before = self.accesses.iter().filter(|(old, _)| accesses.iter().any(|new| new.conflicts(old)));
        let mut wait = Fence::join(before.map(|(_, end)| end).chain([also]));
        if random.once_in(5) {
            wait = Fence::join([&wait, &self.start]);
        }
        let mut signal = fence(&self.device)?;
        if random.once_in(6) {
            let own: Arc<dyn Semaphore> = Arc::new(SoftSemaphore::new(self.device.id(), 3));
            signal.insert(own, 4);
        }
        self.accesses.extend(accesses.iter().map(|access| (*access, signal.clone())));
        let affinity = QueueAffinity(1 << random.below(self.device.queue_count().into()));
        self.steps.push(Step { op, wait, signal, affinity });
        Ok(())
    }
}
