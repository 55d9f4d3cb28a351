//! Owns the native module `io_parameters`: load, gather, scatter as queue operations. Does not own: the index.

use std::{any::Any, sync::Arc};

use halite_hal::{BufferSpan, Device, Fence, FileAccess, QueueAffinity, QueueOp};
use halite_status::{Result, ResultExt, bail, status};
use halite_vm::{Arguments, NativeFunction, NativeModule, Ref, Results, Value};

use super::{
    index::{Parameter, ParameterIndex},
    table::{Span, Table},
};
use crate::{
    hal_module::{BufferObject, QueueArgs, read_buffer, read_buffer_params},
    vmdata,
};

const FUNCTIONS: [(&str, &str); 3] =
    [("load", "0rIrrrIiirrr_r"), ("gather", "0rIrrrrrrr_v"), ("scatter", "0rIrrrrrrr_v")];

/// The native module `io_parameters` over an index. Immutable; any thread may call it.
#[derive(Debug)]
pub struct ParameterModule {
    index: ParameterIndex,
}

impl ParameterModule {
    /// The module over these parameters.
    pub fn new(index: ParameterIndex) -> Self {
        ParameterModule { index }
    }

    /// Puts each parameter in a buffer of its own.
    fn load(&self, args: &mut Arguments, results: &mut Results) -> Result<()> {
        let queue = QueueArgs::read(args)?;
        let scope = scope(args)?;
        let target_affinity = QueueAffinity(args.i64()?.cast_unsigned());
        let params = read_buffer_params(args, target_affinity)?;
        let table = table(args)?;
        let mut transfers = Transfers::new(&queue, table.len())?;
        let mut buffers = Vec::with_capacity(table.len());
        for entry in table.iter() {
            let (key, span) = entry?;
            let parameter = self.find(&scope, key, span)?;
            let byte_length = span.buffer_offset.checked_add(span.length).ok_or_else(|| {
                status!(OutOfRange, "buffer for parameter '{key}' overflows: {span:?}")
            })?;
            let buffer = BufferSpan::whole(queue.device().allocate_buffer(&params, byte_length)?);
            transfers.read(parameter, &span, &buffer).context(|| format!("loading parameter '{key}'"))?;
            buffers.push(Value::Ref(Ref::new(BufferObject(buffer))));
        }
        transfers.finish()?;
        results.reference(vmdata::list(buffers)?);
        Ok(())
    }

    /// Reads parameters into ranges of one buffer.
    fn gather(&self, args: &mut Arguments) -> Result<()> {
        let queue = QueueArgs::read(args)?;
        let scope = scope(args)?;
        let target = read_buffer(args)?;
        let table = table(args)?;
        let mut transfers = Transfers::new(&queue, table.len())?;
        for entry in table.iter() {
            let (key, span) = entry?;
            let parameter = self.find(&scope, key, span)?;
            transfers.read(parameter, &span, &target).context(|| format!("gathering parameter '{key}'"))?;
        }
        transfers.finish()
    }

    /// Writes ranges of one buffer to parameters.
    fn scatter(&self, args: &mut Arguments) -> Result<()> {
        let queue = QueueArgs::read(args)?;
        let source = read_buffer(args)?;
        let scope = scope(args)?;
        let table = table(args)?;
        let mut transfers = Transfers::new(&queue, table.len())?;
        for entry in table.iter() {
            let (key, span) = entry?;
            let parameter = self.find(&scope, key, span)?;
            transfers.write(parameter, &span, &source).context(|| format!("scattering parameter '{key}'"))?;
        }
        transfers.finish()
    }

    fn find(&self, scope: &str, key: &str, span: Span) -> Result<&Parameter> {
        let parameter = self.index.get(scope, key)?;
        let length = parameter.length();
        match span.parameter_offset.checked_add(span.length) {
            Some(end) if end <= length => Ok(parameter),
            _ => bail!(
                OutOfRange,
                "{} bytes at offset {} of parameter '{key}' in scope '{scope}' were asked for; it has {length}",
                span.length,
                span.parameter_offset
            ),
        }
    }
}

impl NativeModule for ParameterModule {
    fn name(&self) -> &str {
        "io_parameters"
    }

    fn version(&self) -> u32 {
        0
    }

    fn lookup(&self, name: &str) -> Option<NativeFunction> {
        let ordinal = FUNCTIONS.iter().position(|(n, _)| *n == name)?;
        Some(NativeFunction { ordinal: ordinal as u32, signature: FUNCTIONS[ordinal].1 })
    }

    fn call(
        &self, _state: &mut (dyn Any + Send), ordinal: u32, args: &mut Arguments, results: &mut Results,
    ) -> Result<()> {
        let name = FUNCTIONS.get(ordinal as usize).map_or("?", |(name, _)| name);
        match ordinal {
            0 => self.load(args, results),
            1 => self.gather(args),
            2 => self.scatter(args),
            _ => bail!(Internal, "module 'io_parameters' has no function {ordinal}"),
        }
        .context(|| format!("while invoking native function io_parameters.{name}"))
    }
}

/// Next argument, the scope; null is the empty scope.
fn scope(args: &mut Arguments) -> Result<String> {
    let reference = args.reference()?;
    if reference.is_null() { Ok(String::new()) } else { vmdata::text(&reference, "parameter scope") }
}

fn table(args: &mut Arguments) -> Result<Table> {
    Table::new(
        vmdata::bytes(&args.reference()?)?,
        vmdata::bytes(&args.reference()?)?,
        vmdata::bytes(&args.reference()?)?,
    )
}

/// Transfers of one call, chained by a semaphore: the first waits for the call's wait fence, the last signals its
/// signal fence. When the call fails midway, the signal fence is never signalled by the chain, and the caller sees
/// the error itself.
struct Transfers<'a> {
    queue: &'a QueueArgs,
    device: &'a dyn Device,
    /// Fence between two transfers; made only when there are several.
    semaphore: Option<Arc<dyn halite_hal::Semaphore>>,
    total: usize,
    done: u64,
}

impl<'a> Transfers<'a> {
    fn new(queue: &'a QueueArgs, total: usize) -> Result<Self> {
        let device = queue.device();
        let semaphore = if total > 1 { Some(device.create_semaphore(0)?) } else { None };
        Ok(Transfers { queue, device, semaphore, total, done: 0 })
    }

    /// Submits the next transfer of the chain.
    fn submit(&mut self, op: QueueOp) -> Result<()> {
        let link = |value| self.semaphore.clone().map_or_else(Fence::default, |s| Fence::new(s, value));
        let wait = if self.done == 0 { self.queue.wait.clone() } else { link(self.done) };
        self.done += 1;
        let signal = if self.done == self.total as u64 { self.queue.signal.clone() } else { link(self.done) };
        self.device.queue_submit(self.queue.affinity, &wait, &signal, op)
    }

    fn read(&mut self, parameter: &Parameter, span: &Span, buffer: &BufferSpan) -> Result<()> {
        let target = buffer.subspan(span.buffer_offset, span.length)?;
        match parameter {
            Parameter::Stored { file, offset, .. } => {
                // Cannot overflow: the span lies in the parameter, the parameter in the file.
                let source_offset = offset.saturating_add(span.parameter_offset);
                self.submit(QueueOp::Read { source: file.clone(), source_offset, target })
            }
            Parameter::Splat { pattern, pattern_length, .. } => {
                let pattern = rotated(*pattern, *pattern_length, span.parameter_offset);
                self.submit(QueueOp::Fill { target, pattern, pattern_length: *pattern_length })
            }
        }
    }

    fn write(&mut self, parameter: &Parameter, span: &Span, buffer: &BufferSpan) -> Result<()> {
        let source = buffer.subspan(span.buffer_offset, span.length)?;
        match parameter {
            Parameter::Stored {
                file: file @ halite_hal::File::Handle { access: FileAccess::ReadWrite, .. },
                offset,
                ..
            } => {
                let target_offset = offset.saturating_add(span.parameter_offset);
                self.submit(QueueOp::Write { source, target: file.clone(), target_offset })
            }
            Parameter::Stored { .. } => bail!(
                PermissionDenied,
                "the parameter's archive is read-only; add it with ParameterIndex::add_writable_file"
            ),
            Parameter::Splat { .. } => {
                bail!(PermissionDenied, "the parameter is a repeated pattern without storage to write to")
            }
        }
    }

    /// Makes sure that the signal fence is signalled when there was nothing to transfer.
    fn finish(mut self) -> Result<()> {
        if self.total == 0 {
            self.total = 1;
            self.submit(QueueOp::Barrier)?;
        }
        self.device.queue_flush(self.queue.affinity)
    }
}

/// A pattern as it looks from `offset` bytes on.
fn rotated(pattern: u64, length: u32, offset: u64) -> u64 {
    let bits = (length * 8).clamp(8, 64);
    let shift = (offset % u64::from(bits / 8)) as u32 * 8;
    if shift == 0 {
        return pattern;
    }
    let mask = u64::MAX >> (64 - bits);
    let pattern = pattern & mask;
    ((pattern >> shift) | (pattern << (bits - shift))) & mask
}

#[cfg(test)]
mod unit {
    use super::rotated;

    #[test]
    fn patterns_rotate_with_the_offset() {
        assert_eq!(rotated(0x4433_2211, 4, 0), 0x4433_2211);
        assert_eq!(rotated(0x4433_2211, 4, 1), 0x1144_3322);
        assert_eq!(rotated(0x4433_2211, 4, 7), 0x3322_1144);
        assert_eq!(rotated(0xAB, 1, 3), 0xAB);
        assert_eq!(rotated(0x8877_6655_4433_2211, 8, 2), 0x2211_8877_6655_4433);
    }
}
