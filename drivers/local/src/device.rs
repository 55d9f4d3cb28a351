//! The device object and what it answers.

use std::{any::Any, sync::Arc};

use halite_abi::{Result, ResultExt, query};
use halite_hal::{
    Buffer, BufferParams, CommandBuffer, CommandList, Deadline, Device, DeviceInfo, DeviceProfile,
    Executable, ExecutableDesc, Fence, MemoryStats, QueueAffinity, QueueOp, Semaphore, matches_pattern,
    next_device_id,
};
use halite_targets::{Capabilities, Target, rank_of};
use parking_lot::Mutex;

use crate::{
    buffer::LocalBuffer,
    cpu,
    engine::Engine,
    executable::LocalExecutable,
    job::Scratch,
    memory::Memory,
    operation::{Operation, Work},
    pool::Pool,
    program::LocalCommandBuffer,
    queue::Queue,
    semaphore::LocalSemaphore,
    settings::Settings,
};

/// Identifier that all CPU devices answer to beside the name of their driver.
const DEVICE_ID: &str = "local";

/// The host's processor as a device.
#[derive(Debug)]
pub(crate) struct LocalDevice {
    formats: Vec<&'static str>,
    threads: usize,
    untrusted: bool,
    engine: Arc<Engine>,
}

impl LocalDevice {
    /// Opens the device. RESOURCE_EXHAUSTED when its threads cannot be started.
    pub fn new(info: DeviceInfo, settings: &Settings) -> Result<Self> {
        // Workers have the numbers below.
        let leader = settings.threads.unwrap_or(0) as u32;
        let engine = Arc::new(Engine {
            id: next_device_id(),
            info,
            memory: Memory::new(settings.memory),
            profile: Arc::default(),
            queue: Queue::default(),
            scratch: Mutex::new(Scratch::new(leader)),
            pool: settings.threads.map(|threads| Pool::new(threads, settings.patience)),
        });
        let device = LocalDevice {
            formats: settings.formats(),
            threads: settings.threads.unwrap_or(1),
            untrusted: settings.untrusted,
            engine,
        };
        if let Some(pool) = &device.engine.pool {
            pool.start(device.engine.id)?;
        }
        Ok(device)
    }
}

impl Drop for LocalDevice {
    /// What was accepted is still done, by the threads or, when they are gone, by whoever makes it ready.
    fn drop(&mut self) {
        if let Some(pool) = &self.engine.pool {
            if pool.opener().is_forked() {
                // Its threads, and the locks that they had, are in the other process.
                std::mem::forget(self.engine.clone());
                return;
            }
            self.engine.start();
            pool.close();
        }
    }
}

impl Device for LocalDevice {
    fn id(&self) -> u64 {
        self.engine.id
    }

    fn info(&self) -> &DeviceInfo {
        &self.engine.info
    }

    fn query_i64(&self, category: &str, key: &str) -> Option<i64> {
        match (category, key) {
            (query::DEVICE_ID, pattern) => {
                let names = [DEVICE_ID, self.engine.info.driver.as_str()];
                Some(names.iter().any(|name| matches_pattern(pattern, name)).into())
            }
            (query::EXECUTABLE_FORMAT, format) => Some(self.formats.contains(&format).into()),
            (query::TARGET, triple) => Some(target_rank(triple)),
            (query::DEVICE, query::CONCURRENCY) => Some(1),
            (query::PROCESSOR_FEATURE, name) => cpu::has_feature(name).map(i64::from),
            (query::DEVICE, query::UNTRUSTED) => Some(self.untrusted.into()),
            (query::DISPATCH, query::CONCURRENCY) => i64::try_from(self.threads).ok(),
            _ => None,
        }
    }

    fn memory_stats(&self) -> MemoryStats {
        self.engine.memory.stats()
    }

    fn trim(&self) {
        if self.check_process().is_ok() {
            self.engine.memory.trim();
        }
    }

    fn check_process(&self) -> Result<()> {
        self.engine.check_process()
    }

    fn allocate_buffer(&self, params: &BufferParams, byte_length: u64) -> Result<Arc<dyn Buffer>> {
        self.check_process()?;
        Ok(Arc::new(LocalBuffer::new(self.engine.id, &self.engine.memory, params, byte_length)?))
    }

    fn create_semaphore(&self, initial: u64) -> Result<Arc<dyn Semaphore>> {
        self.check_process()?;
        Ok(Arc::new(LocalSemaphore::new(self.engine.clone(), initial)))
    }

    fn create_executable(&self, desc: ExecutableDesc) -> Result<Arc<dyn Executable>> {
        Ok(Arc::new(LocalExecutable::new(self.engine.id, &self.formats, &desc)?))
    }

    fn create_command_buffer(&self, list: CommandList) -> Result<Arc<dyn CommandBuffer>> {
        let lowered =
            LocalCommandBuffer::new(self.engine.id, list).context(|| "creating a command buffer")?;
        Ok(Arc::new(lowered))
    }

    /// A length that the device can never give is refused at once. Memory itself is taken in queue order, so that
    /// memory which earlier operations give back is used again.
    fn queue_alloca(
        &self,
        _affinity: QueueAffinity,
        wait: &Fence,
        signal: &Fence,
        params: &BufferParams,
        byte_length: u64,
    ) -> Result<Arc<dyn Buffer>> {
        self.check_process()?;
        let buffer =
            Arc::new(LocalBuffer::promised(self.engine.id, &self.engine.memory, params, byte_length)?);
        self.engine.submit(Operation::new(wait.clone(), signal.clone(), Work::Alloca(buffer.clone())));
        Ok(buffer)
    }

    fn queue_submit(
        &self,
        _affinity: QueueAffinity,
        wait: &Fence,
        signal: &Fence,
        op: QueueOp,
    ) -> Result<()> {
        self.check_process()?;
        self.engine.submit(Operation::new(wait.clone(), signal.clone(), Work::Operation(op)));
        Ok(())
    }

    fn queue_flush(&self, _affinity: QueueAffinity) -> Result<()> {
        self.check_process()?;
        self.engine.start();
        Ok(())
    }

    fn wait_idle(&self, deadline: Deadline) -> Result<()> {
        self.check_process()?;
        self.engine.wait_idle(deadline)
    }

    fn start_profiling(&self) -> Result<()> {
        self.engine.profile.start()
    }

    fn stop_profiling(&self, deadline: Deadline) -> Result<DeviceProfile> {
        if self.engine.profile.is_on() {
            self.engine.wait_idle(deadline)?;
        }
        self.engine.profile.stop(deadline)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// How well code for a target fits this processor: `halite_targets::rank_of`; 0 for a text that is no target.
fn target_rank(triple: &str) -> i64 {
    let here = Capabilities::of(Target::host_cpu());
    Target::parse(triple).map_or(0, |target| rank_of(&here, target).rank)
}
