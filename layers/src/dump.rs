//! The readable text of a recording, for traces and bug reports.

use std::{collections::HashMap, fmt, sync::Arc};

use halite_hal::{
    BufferRef, Command, CommandList, CommandTarget, DispatchCounts, DispatchFlags, Executable, QueueAffinity,
    WHOLE_BUFFER,
};

/// Readable text of a recording: a head, the buffers it names, then one line per command.
///
/// Buffers are `b0`, `b1`, … and executables `e0`, `e1`, … in order of appearance; ranges are `b0[offset..+length]`, with
/// `*` for "to the end". The text is for people and may change.
pub fn dump(list: &CommandList) -> CommandDump<'_> {
    CommandDump { list, names: Names::collect(list) }
}

/// A recording as text; see [`dump`].
#[derive(Debug)]
pub struct CommandDump<'a> {
    list: &'a CommandList,
    names: Names,
}

/// Numbers of buffers and executables by address, in order of appearance.
#[derive(Debug, Default)]
struct Names {
    buffers: HashMap<usize, usize>,
    buffer_lines: Vec<String>,
    executables: HashMap<usize, usize>,
}

impl Names {
    fn collect(list: &CommandList) -> Self {
        let mut names = Names::default();
        for command in &list.commands {
            match command {
                Command::Fill { target, .. } | Command::Update { target, .. } => names.reference(target),
                Command::Copy { source, target } => {
                    names.reference(source);
                    names.reference(target);
                }
                Command::Dispatch { executable, bindings, counts, .. } => {
                    let next = names.executables.len();
                    names.executables.entry(executable_address(executable)).or_insert(next);
                    bindings.iter().for_each(|binding| names.reference(binding));
                    if let DispatchCounts::Indirect(counts) = counts {
                        names.reference(counts);
                    }
                }
                Command::Barrier | Command::BeginDebugGroup(_) | Command::EndDebugGroup => {}
            }
        }
        names
    }

    fn reference(&mut self, reference: &BufferRef) {
        let CommandTarget::Direct(buffer) = &reference.target else { return };
        let next = self.buffers.len();
        self.buffers.entry(Arc::as_ptr(buffer).cast::<()>().addr()).or_insert_with(|| {
            self.buffer_lines.push(format!(
                "b{next}: {} bytes, {}, {}",
                buffer.byte_length(),
                buffer.memory_type(),
                buffer.usage()
            ));
            next
        });
    }

    fn range<'a>(&'a self, reference: &'a BufferRef) -> RangeText<'a> {
        RangeText { names: self, reference }
    }
}

fn executable_address(executable: &Arc<dyn Executable>) -> usize {
    Arc::as_ptr(executable).cast::<()>().addr()
}

struct RangeText<'a> {
    names: &'a Names,
    reference: &'a BufferRef,
}

impl fmt::Display for RangeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reference.target {
            CommandTarget::Slot(slot) => write!(f, "slot{slot}")?,
            CommandTarget::Direct(buffer) => {
                match self.names.buffers.get(&Arc::as_ptr(buffer).cast::<()>().addr()) {
                    Some(number) => write!(f, "b{number}")?,
                    None => f.write_str("b?")?,
                }
            }
        }
        match self.reference.length {
            WHOLE_BUFFER => write!(f, "[{}..*]", self.reference.offset),
            length => write!(f, "[{}..+{length}]", self.reference.offset),
        }
    }
}

impl fmt::Display for CommandDump<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = self.list;
        write!(f, "command buffer: mode {}, categories {}, queues ", list.mode, list.categories)?;
        match list.affinity {
            QueueAffinity::ANY => f.write_str("any")?,
            QueueAffinity(bits) => write!(f, "{bits:#b}")?,
        }
        writeln!(f, ", {} slots, {} commands", list.binding_capacity, list.commands.len())?;
        for line in &self.names.buffer_lines {
            writeln!(f, "  {line}")?;
        }
        let mut depth = 0usize;
        for (index, command) in list.commands.iter().enumerate() {
            if matches!(command, Command::EndDebugGroup) {
                depth = depth.saturating_sub(1);
            }
            // The depth of groups is the module's choice; the width of the text is not.
            write!(f, "  [{index}] {:1$}", "", 2 * depth.min(8))?;
            self.command(f, command)?;
            writeln!(f)?;
            if matches!(command, Command::BeginDebugGroup(_)) {
                depth += 1;
            }
        }
        Ok(())
    }
}

impl CommandDump<'_> {
    fn command(&self, f: &mut fmt::Formatter<'_>, command: &Command) -> fmt::Result {
        match command {
            Command::Fill { target, pattern, pattern_length } => {
                let bits = pattern_length.saturating_mul(8).min(64);
                let low = if bits == 64 { *pattern } else { pattern & ((1 << bits) - 1) };
                write!(f, "fill {} pattern {low:#x} ({pattern_length} bytes)", self.names.range(target))
            }
            Command::Update { source, target } => {
                write!(f, "update {} from {} host bytes", self.names.range(target), source.len())
            }
            Command::Copy { source, target } => {
                write!(f, "copy {} -> {}", self.names.range(source), self.names.range(target))
            }
            Command::Dispatch { .. } => self.dispatch(f, command),
            Command::BeginDebugGroup(label) => write!(f, "begin debug group {label:?}"),
            Command::Barrier | Command::EndDebugGroup => f.write_str(command.name()),
        }
    }

    fn dispatch(&self, f: &mut fmt::Formatter<'_>, command: &Command) -> fmt::Result {
        let Command::Dispatch { executable, function, counts, constants, bindings, flags } = command else {
            return Ok(());
        };
        match self.names.executables.get(&executable_address(executable)) {
            Some(number) => write!(f, "dispatch e{number}")?,
            None => f.write_str("dispatch e?")?,
        }
        match executable.functions().get(*function as usize) {
            Some(info) => write!(f, " {:?}", info.name)?,
            None => write!(f, " function {function}")?,
        }
        match counts {
            DispatchCounts::Direct([x, y, z]) => write!(f, " {x}x{y}x{z}")?,
            DispatchCounts::Indirect(counts) => write!(f, " counts in {}", self.names.range(counts))?,
        }
        if !constants.is_empty() {
            write!(f, " constants {:?}", constants.as_slice())?;
        }
        f.write_str(" bindings (")?;
        for (index, binding) in bindings.iter().enumerate() {
            write!(f, "{}{}", if index == 0 { "" } else { ", " }, self.names.range(binding))?;
        }
        f.write_str(")")?;
        if *flags == DispatchFlags::empty() { Ok(()) } else { write!(f, " flags {flags}") }
    }
}
