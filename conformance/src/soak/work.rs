//! What is called in a soak run: functions of a module with known results, or plain transfers.

use std::{path::Path, sync::Arc};

use anyhow::{Context as _, Result, bail, ensure};
use halite_hal::{BufferParams, Command, CommandBuffer, Device, Fence, QueueOp, WHOLE_BUFFER};
use halite_testing::{
    drivers::Opener,
    hal::support::{ANY, after, buffer, counting, execute, fence, record, slot, soon, span, whole},
};

use crate::{
    corpus::{Call, CorpusModule},
    replay,
};

/// One call of a session; the argument says which. An error is a wrong result or a failure.
pub type CallFn<'a> = Box<dyn FnMut(u64) -> Result<()> + 'a>;

/// Something that can be called in sessions, from any thread.
pub trait Work: Sync {
    /// In words.
    fn name(&self) -> String;

    /// The device that all sessions share.
    fn device(&self) -> &Arc<dyn Device>;

    /// Makes a session. Dropping the call ends it.
    fn session(&self) -> Result<CallFn<'_>>;
}

/// Calls of a module.
pub struct ModuleWork<'a> {
    device: Arc<dyn Device>,
    root: &'a Path,
    program: CorpusModule,
}

impl<'a> ModuleWork<'a> {
    /// A program of a corpus at `root`. Calls that say nothing about their results are made once: later ones must give
    /// the same.
    pub fn new(device: Arc<dyn Device>, root: &'a Path, mut program: CorpusModule) -> Result<Self> {
        ensure!(!program.calls.is_empty(), "there is nothing to call");
        let calls = std::mem::take(&mut program.calls);
        for mut call in calls {
            if call.expected.is_empty() {
                let session = replay::session(root, &program, &call, std::slice::from_ref(&device))?;
                call.expected = replay::expectation(&replay::results(root, &session, &call)?)?;
            }
            program.calls.push(call);
        }
        Ok(ModuleWork { device, root, program })
    }

    fn call(&self, session: &halite_runtime::Session, call: &Call) -> Result<()> {
        match replay::run_call(self.root, session, call)? {
            None => Ok(()),
            Some(wrong) => bail!("'{}' gave a wrong result: {}", call.function, wrong.what),
        }
    }
}

impl Work for ModuleWork<'_> {
    fn name(&self) -> String {
        self.program.name.clone()
    }

    fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    fn session(&self) -> Result<CallFn<'_>> {
        let calls = &self.program.calls;
        let session =
            replay::session(self.root, &self.program, &calls[0], std::slice::from_ref(&self.device))
                .with_context(|| format!("a session of {}", self.program.name))?;
        Ok(Box::new(move |n| self.call(&session, &calls[n as usize % calls.len()])))
    }
}

/// Queue-ordered memory, recorded commands and plain transfers; for devices that the suite has no module for.
pub struct TransferWork {
    device: Arc<dyn Device>,
    reopen: Option<Opener>,
}

/// Bytes that go through each call.
const TRANSFER: usize = 10_000;

impl TransferWork {
    /// Transfers on a device. With an opener every session opens a device of its own beside: what the system's driver
    /// loses with every device is seen then.
    pub fn new(device: Arc<dyn Device>, reopen: Option<Opener>) -> Self {
        TransferWork { device, reopen }
    }

    /// Uses a device of its own once, and closes it.
    fn open_and_close(&self, source: &[u8]) -> Result<()> {
        let Some(opener) = &self.reopen else { return Ok(()) };
        let data = buffer(&opener()?, source)?;
        ensure!(whole(&data).read_all()? == source, "a device of its own gave other bytes");
        Ok(())
    }

    fn commands(&self) -> halite_hal::Result<Arc<dyn CommandBuffer>> {
        let commands = vec![
            Command::Fill { target: slot(0, 0, WHOLE_BUFFER), pattern: 0, pattern_length: 1 },
            Command::Barrier,
            Command::Copy { source: slot(1, 1, WHOLE_BUFFER), target: slot(0, 1, WHOLE_BUFFER) },
        ];
        record(&self.device, 2, commands)
    }

    fn call(&self, commands: &Arc<dyn CommandBuffer>, source: &[u8]) -> Result<()> {
        let device = &self.device;
        let (input, output) = (buffer(device, source)?, buffer(device, &[1; TRANSFER])?);
        let ready = fence(device)?;
        let scratch =
            device.queue_alloca(ANY, &Fence::default(), &ready, &BufferParams::DEVICE, TRANSFER as u64)?;
        let done = after(device, &ready, execute(commands, [Some(whole(&scratch)), Some(whole(&input))]))?;
        let copy = QueueOp::Copy { source: span(&scratch, 0, 9000), target: span(&output, 1000, 9000) };
        let copied = after(device, &done, copy)?;
        after(device, &copied, QueueOp::Dealloca { buffer: scratch })?.wait(soon())?;
        let found = whole(&output).read_all()?;
        let mut wanted = vec![1; TRANSFER];
        wanted[1000] = 0;
        wanted[1001..].copy_from_slice(&source[1..9000]);
        ensure!(found == wanted, "a transfer gave other bytes");
        Ok(())
    }
}

impl Work for TransferWork {
    fn name(&self) -> String {
        let reopen = if self.reopen.is_some() { ", a device for each session," } else { "" };
        format!("transfers of {TRANSFER} bytes{reopen}")
    }

    fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    fn session(&self) -> Result<CallFn<'_>> {
        let (commands, source) = (self.commands()?, counting(TRANSFER));
        self.open_and_close(&source)?;
        Ok(Box::new(move |_| self.call(&commands, &source)))
    }
}
