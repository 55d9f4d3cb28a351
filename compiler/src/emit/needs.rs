//! What compiled programs ask of memory, queues and recordings.

use halite_abi::{BufferUsage, ExecutionStage, MemoryType, QueueAffinity};

/// Memory that the host reads after the device wrote it.
pub const HOST_READS: MemoryType = MemoryType::HOST_LOCAL.union(MemoryType::DEVICE_VISIBLE);
/// Of tensors: transfers and storage buffers.
pub const TENSOR_USAGE: BufferUsage = BufferUsage::DEFAULT;
/// The same, for what is written once, at load.
pub const CONSTANT_USAGE: BufferUsage = TENSOR_USAGE.union(BufferUsage::SHARING_IMMUTABLE);
/// The same, mapped for short accesses by the host in any order.
pub const READBACK_USAGE: BufferUsage =
    TENSOR_USAGE.union(BufferUsage::MAPPING_SCOPED).union(BufferUsage::MAPPING_ACCESS_RANDOM);
/// Any queue.
pub const ANY_QUEUE: i64 = QueueAffinity::ANY.0.cast_signed();
/// What barriers wait for: everything that was before.
pub const BARRIER_SOURCE: ExecutionStage =
    ExecutionStage::DISPATCH.union(ExecutionStage::TRANSFER).union(ExecutionStage::COMMAND_RETIRE);
/// What barriers hold back: everything after them.
pub const BARRIER_TARGET: ExecutionStage =
    ExecutionStage::COMMAND_ISSUE.union(ExecutionStage::DISPATCH).union(ExecutionStage::TRANSFER);

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers that compilers of IREE write.
    #[test]
    fn numbers_are_those_of_other_compilers() {
        assert_eq!((BARRIER_SOURCE.bits(), BARRIER_TARGET.bits()), (28, 13));
        assert_eq!((TENSOR_USAGE.bits(), CONSTANT_USAGE.bits()), (0xC03, 0x8_0C03));
        assert_eq!((HOST_READS.bits(), READBACK_USAGE.bits()), (0x56, 0x0900_0C03));
        assert_eq!(ANY_QUEUE, -1);
    }
}
