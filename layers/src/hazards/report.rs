//! What is said of a hazard.

use std::{fmt, ops::Range};

use super::accesses::Access;
use halite_hal::{BufferRef, Command, CommandList, CommandTarget, DispatchCounts};

/// Two commands that access the same bytes with no barrier between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hazard {
    /// What can go wrong.
    pub kind: HazardKind,
    /// The command recorded first.
    pub first: Party,
    /// The other one.
    pub second: Party,
    /// The bytes of the buffer that lie between the first and the last that both may access.
    pub bytes: Range<u64>,
}

/// What goes wrong when the second command does not wait for the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HazardKind {
    /// Either's bytes may stay.
    WriteAfterWrite,
    /// The second may read what was there before.
    ReadAfterWrite,
    /// The first may read what the second wrote.
    WriteAfterRead,
}

/// How it is known what a command accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The command says it.
    Exact,
    /// Computed from the dispatch's code.
    Code,
    /// The code says that the binding is accessed, but not where.
    Binding,
    /// Nothing is known of the code.
    Unknown,
}

/// One of the commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Party {
    /// Its index in the recording.
    pub command: usize,
    /// What it is: `copy`, `dispatch 'name'`.
    pub name: String,
    /// The binding that is accessed, of dispatches.
    pub binding: Option<usize>,
    /// The buffer as the recording names it: a slot, or a buffer of so many bytes.
    pub buffer: String,
    /// How its bytes are known.
    pub basis: Basis,
}

impl Hazard {
    /// Whether both are about the same two commands.
    pub(super) fn same_commands(&self, other: &Hazard) -> bool {
        (self.first.command, self.second.command) == (other.first.command, other.second.command)
    }
}

impl Party {
    pub(super) fn new(list: &CommandList, access: &Access) -> Self {
        let command = &list.commands[access.command];
        Party {
            command: access.command,
            name: name(command),
            binding: access.binding,
            buffer: reference(command, access).map(buffer).unwrap_or_default(),
            basis: access.basis,
        }
    }
}

fn name(command: &Command) -> String {
    let Command::Dispatch { executable, function, .. } = command else { return command.name().to_owned() };
    let info = usize::try_from(*function).ok().and_then(|f| executable.functions().get(f));
    match info {
        Some(info) => format!("dispatch '{}'", info.name),
        None => format!("dispatch of function {function}"),
    }
}

/// What the command names the buffer by.
fn reference<'a>(command: &'a Command, access: &Access) -> Option<&'a BufferRef> {
    match command {
        Command::Fill { target, .. } | Command::Update { target, .. } => Some(target),
        Command::Copy { source, target } => Some(if access.write { target } else { source }),
        Command::Dispatch { bindings, counts, .. } => match (access.binding, counts) {
            (Some(binding), _) => bindings.get(binding),
            (None, DispatchCounts::Indirect(counts)) => Some(counts),
            _ => None,
        },
        _ => None,
    }
}

fn buffer(reference: &BufferRef) -> String {
    match &reference.target {
        CommandTarget::Slot(slot) => format!("slot {slot}"),
        CommandTarget::Direct(buffer) => format!("a buffer of {} bytes", buffer.byte_length()),
    }
}

impl fmt::Display for HazardKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HazardKind::WriteAfterWrite => "write after write",
            HazardKind::ReadAfterWrite => "read after write",
            HazardKind::WriteAfterRead => "write after read",
        })
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "command {} ({}", self.command, self.name)?;
        if let Some(binding) = self.binding {
            write!(f, ", binding {binding}")?;
        }
        write!(f, ", {}", self.buffer)?;
        f.write_str(match self.basis {
            Basis::Exact | Basis::Code => ")",
            Basis::Binding => ", its code does not tell where)",
            Basis::Unknown => ", its code is not known)",
        })
    }
}

impl fmt::Display for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Hazard { kind, first, second, bytes } = self;
        let Range { start, end } = bytes;
        write!(
            f,
            "{kind} of bytes {start}..{end}: {second} does not wait for {first}; record a barrier between them"
        )
    }
}
