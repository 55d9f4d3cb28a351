//! Devices in front of other devices.

use std::{any::Any, fmt, sync::Arc};

use halite_hal::{
    Buffer, BufferParams, CommandBuffer, CommandList, Deadline, Device, DeviceInfo, DeviceProfile,
    Executable, ExecutableDesc, ExternalKind, ExternalMemory, Fence, MemoryStats, QueueAffinity, QueueOp,
    RecordingStats, Result, Semaphore,
};

/// Declares [`Layer`] and [`Layered`] over the methods of [`Device`], each of which stands here once. The compiler notices
/// one that is missing only if drivers have to write it, too.
macro_rules! forward {
    ($(fn $name:ident(&self $(, $argument:ident: $type:ty)*) $(-> $result:ty)?;)*) => {
        /// What stands in front of a device. Every method hands its call on; a layer writes those that it changes.
        pub trait Layer: fmt::Debug + Send + Sync + 'static {
            /// The device behind it.
            fn inner(&self) -> &Arc<dyn Device>;
            $(
                #[doc = concat!("In place of [`Device::", stringify!($name), "`].")]
                fn $name(&self $(, $argument: $type)*) $(-> $result)? {
                    self.inner().$name($($argument),*)
                }
            )*
        }

        impl<L: Layer> Device for Layered<L> {
            $(fn $name(&self $(, $argument: $type)*) $(-> $result)? {
                self.0.$name($($argument),*)
            })*
        }
    };
}

/// A layer and the device behind it, as one device.
#[derive(Debug)]
pub struct Layered<L>(L);

impl<L: Layer> Layered<L> {
    /// Puts a layer in front of its device.
    pub fn new(layer: L) -> Arc<Self> {
        Arc::new(Layered(layer))
    }

    /// The layer.
    pub fn layer(&self) -> &L {
        &self.0
    }
}

forward! {
    fn id(&self) -> u64;
    fn info(&self) -> &DeviceInfo;
    fn queue_count(&self) -> u32;
    fn query_i64(&self, category: &str, key: &str) -> Option<i64>;
    fn memory_stats(&self) -> MemoryStats;
    fn recording_stats(&self) -> RecordingStats;
    fn trim(&self);
    fn check_process(&self) -> Result<()>;
    fn allocate_buffer(&self, params: &BufferParams, byte_length: u64) -> Result<Arc<dyn Buffer>>;
    fn import_buffer(&self, params: &BufferParams, memory: ExternalMemory) -> Result<Arc<dyn Buffer>>;
    fn allocate_exportable(
        &self, params: &BufferParams, byte_length: u64, kind: ExternalKind
    ) -> Result<Arc<dyn Buffer>>;
    fn export_buffer(&self, buffer: &Arc<dyn Buffer>, kind: ExternalKind) -> Result<ExternalMemory>;
    fn create_semaphore(&self, initial: u64) -> Result<Arc<dyn Semaphore>>;
    fn create_executable(&self, desc: ExecutableDesc) -> Result<Arc<dyn Executable>>;
    fn create_command_buffer(&self, list: CommandList) -> Result<Arc<dyn CommandBuffer>>;
    fn queue_alloca(
        &self, affinity: QueueAffinity, wait: &Fence, signal: &Fence, params: &BufferParams, byte_length: u64
    ) -> Result<Arc<dyn Buffer>>;
    fn queue_submit(&self, affinity: QueueAffinity, wait: &Fence, signal: &Fence, op: QueueOp) -> Result<()>;
    fn queue_flush(&self, affinity: QueueAffinity) -> Result<()>;
    fn wait_idle(&self, deadline: Deadline) -> Result<()>;
    fn start_profiling(&self) -> Result<()>;
    fn stop_profiling(&self, deadline: Deadline) -> Result<DeviceProfile>;
    fn is_validated(&self) -> bool;
    fn as_any(&self) -> &dyn Any;
}
