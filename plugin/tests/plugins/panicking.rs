//! A driver library that panics where the option `where` says: `enumerate`, `open` or `submit`. Otherwise it is the null
//! driver. Loaded by `tests/bad_plugins.rs`.

use std::{any::Any, sync::Arc};

use halite_hal::{
    Buffer, BufferParams, CommandBuffer, CommandList, Deadline, Device, DeviceInfo, Driver, Executable,
    ExecutableDesc, Fence, MemoryStats, Options, QueueAffinity, QueueOp, Result, Semaphore,
};
use halite_null::NullDriver;

halite_plugin::export_driver!(|| Arc::new(Panicking));

#[derive(Debug)]
struct Panicking;

fn panic_at(place: &str, options: &Options) {
    assert!(
        options.get("where").is_none_or(|wanted| wanted != place),
        "the {place} of this driver always panics"
    );
}

impl Driver for Panicking {
    fn name(&self) -> &str {
        "panicking"
    }

    fn description(&self) -> &str {
        "for tests"
    }

    fn options(&self) -> &[(&'static str, &'static str)] {
        &[("where", "enumerate, open or submit")]
    }

    fn enumerate(&self, options: &Options) -> Result<Vec<DeviceInfo>> {
        panic_at("enumerate", options);
        let mut devices = NullDriver.enumerate(&Options::new())?;
        devices.iter_mut().for_each(|info| info.driver = self.name().to_owned());
        Ok(devices)
    }

    fn open(&self, path: &str, options: &Options) -> Result<Arc<dyn Device>> {
        panic_at("open", options);
        let device = NullDriver.open(path, &Options::new())?;
        Ok(Arc::new(PanickingDevice { device, options: options.clone() }))
    }
}

/// A null device with a fault.
#[derive(Debug)]
struct PanickingDevice {
    device: Arc<dyn Device>,
    options: Options,
}

impl Device for PanickingDevice {
    fn id(&self) -> u64 {
        self.device.id()
    }
    fn info(&self) -> &DeviceInfo {
        self.device.info()
    }
    fn query_i64(&self, category: &str, key: &str) -> Option<i64> {
        self.device.query_i64(category, key)
    }
    fn memory_stats(&self) -> MemoryStats {
        self.device.memory_stats()
    }
    fn allocate_buffer(&self, params: &BufferParams, byte_length: u64) -> Result<Arc<dyn Buffer>> {
        self.device.allocate_buffer(params, byte_length)
    }
    fn create_semaphore(&self, initial: u64) -> Result<Arc<dyn Semaphore>> {
        self.device.create_semaphore(initial)
    }
    fn create_executable(&self, desc: ExecutableDesc) -> Result<Arc<dyn Executable>> {
        self.device.create_executable(desc)
    }
    fn create_command_buffer(&self, list: CommandList) -> Result<Arc<dyn CommandBuffer>> {
        self.device.create_command_buffer(list)
    }
    fn queue_alloca(
        &self,
        affinity: QueueAffinity,
        wait: &Fence,
        signal: &Fence,
        params: &BufferParams,
        byte_length: u64,
    ) -> Result<Arc<dyn Buffer>> {
        self.device.queue_alloca(affinity, wait, signal, params, byte_length)
    }
    fn queue_submit(&self, affinity: QueueAffinity, wait: &Fence, signal: &Fence, op: QueueOp) -> Result<()> {
        panic_at("submit", &self.options);
        self.device.queue_submit(affinity, wait, signal, op)
    }
    fn queue_flush(&self, affinity: QueueAffinity) -> Result<()> {
        self.device.queue_flush(affinity)
    }
    fn wait_idle(&self, deadline: Deadline) -> Result<()> {
        self.device.wait_idle(deadline)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}
