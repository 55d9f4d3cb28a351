//! How the module reads its arguments: sizes, ranges, handles.

use std::sync::Arc;

use halite_abi::{REST_OF_BUFFER, Result, object, status};
use halite_hal::{
    BufferParams, BufferSpan, BufferUsage, Device, Fence, MemoryType, QueueAffinity, WHOLE_BUFFER,
};
use halite_vm::Arguments;

use super::objects::{BufferObject, DeviceObject, FenceObject};

/// Next argument `I` as an offset or a length. INVALID_ARGUMENT when negative.
pub(super) fn size(args: &mut Arguments, what: &str) -> Result<u64> {
    let value = args.i64()?;
    u64::try_from(value).map_err(|_| status!(InvalidArgument, "{what} {value} is negative"))
}

/// Next argument `I` as a length, or [`REST_OF_BUFFER`].
pub(super) fn length(args: &mut Arguments) -> Result<u64> {
    match args.i64()? {
        REST_OF_BUFFER => Ok(WHOLE_BUFFER),
        value => u64::try_from(value).map_err(|_| status!(InvalidArgument, "length {value} is negative")),
    }
}

/// Next argument `i` as an unsigned number of its own width.
pub(super) fn bits(args: &mut Arguments) -> Result<u32> {
    args.i32().map(i32::cast_unsigned)
}

/// Next argument `I` as a queue mask.
pub(super) fn affinity(args: &mut Arguments) -> Result<QueueAffinity> {
    args.i64().map(|mask| QueueAffinity(mask.cast_unsigned()))
}

/// Next two arguments `ii`: memory type and usage.
pub(crate) fn buffer_params(args: &mut Arguments, affinity: QueueAffinity) -> Result<BufferParams> {
    let memory_type = MemoryType::from_bits_retain(bits(args)?);
    let usage = BufferUsage::from_bits_retain(bits(args)?);
    Ok(BufferParams { memory_type, usage, affinity })
}

/// Next argument, a device.
pub(super) fn device(args: &mut Arguments) -> Result<Arc<DeviceObject>> {
    args.object(object::DEVICE)
}

/// Next argument, a fence; null is the empty fence (nothing to wait for, nothing to signal).
pub(crate) fn fence(args: &mut Arguments) -> Result<Fence> {
    let reference = args.reference()?;
    if reference.is_null() {
        return Ok(Fence::default());
    }
    reference.expect::<FenceObject>(object::FENCE).map(|fence| fence.0.clone())
}

/// Next argument, a buffer.
pub(crate) fn buffer(args: &mut Arguments) -> Result<BufferSpan> {
    args.reference()?.expect::<BufferObject>(object::BUFFER).map(|buffer| buffer.0.clone())
}

/// Next argument, a buffer or null.
pub(super) fn optional_buffer(args: &mut Arguments) -> Result<Option<BufferSpan>> {
    let reference = args.reference()?;
    if reference.is_null() {
        return Ok(None);
    }
    reference.expect::<BufferObject>(object::BUFFER).map(|buffer| Some(buffer.0.clone()))
}

/// What every queue operation begins with: `(device, affinity, wait, signal)`.
pub(crate) struct QueueArgs {
    pub device: Arc<DeviceObject>,
    pub affinity: QueueAffinity,
    pub wait: Fence,
    pub signal: Fence,
}

impl QueueArgs {
    pub(crate) fn read(args: &mut Arguments) -> Result<Self> {
        Ok(QueueArgs {
            device: device(args)?,
            affinity: affinity(args)?,
            wait: fence(args)?,
            signal: fence(args)?,
        })
    }

    pub(crate) fn device(&self) -> &dyn Device {
        self.device.device.as_ref()
    }
}
