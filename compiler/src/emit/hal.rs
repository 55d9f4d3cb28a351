//! The imports that modules use and the numbers of their interface. Source: docs/formats/vmfb.md.

/// Memory of the device.
pub const DEVICE_LOCAL: i32 = 0x30;
/// What kernels and copies need of memory: device visible.
pub const DEVICE_VISIBLE: i32 = 0x10;
/// Memory that the host reads after the device wrote it.
pub const HOST_READS: i32 = 0x56;
/// Transfers and storage buffers.
pub const TENSOR_USAGE: i32 = 0xC03;
/// The same, for what is written once, at load.
pub const CONSTANT_USAGE: i32 = 0x8_0C03;
/// The same, mapped for short accesses by the host (scoped, optional).
pub const READBACK_USAGE: i32 = 0x0900_0C03;
/// Any queue.
pub const ANY_QUEUE: i64 = -1;
/// Source and target stages of barriers, as compilers of IREE write them: everything that was before, everything after.
pub const BARRIER_STAGES: (i32, i32) = (28, 13);
/// Recordings with dispatches and transfers.
pub const CATEGORIES: i32 = 3;
/// Recordings that are executed once.
pub const ONE_SHOT: i32 = 1;
/// The encoding of dense row-major tensors.
pub const DENSE: i32 = 1;
/// Files that are read.
pub const READ_ACCESS: i32 = 1;
/// Status codes of failures.
pub mod status {
    /// Arguments are wrong.
    pub const INVALID_ARGUMENT: i32 = 3;
    /// The device is not right.
    pub const INCOMPATIBLE: i32 = 18;
}
/// Version of the `hal` module that is asked for.
pub const HAL_VERSION: u32 = 7;
/// The executable format of all kernels.
pub const FORMAT: &str = "vulkan-spirv-fb";

/// Signature of an import by its full name.
///
/// # Panics
/// The name is not in the table: this crate calls what it does not know.
pub fn signature(name: &str) -> &'static str {
    let found = SIGNATURES.iter().find(|(known, _)| *known == name);
    found.map(|(_, signature)| *signature).expect("every import that is used is in the table")
}

const SIGNATURES: &[(&str, &str)] = &[
    ("hal.allocator.allocate", "0rIiiI_r"),
    ("hal.buffer.assert", "0rrrIii_v"),
    ("hal.buffer.load", "0rIi_i"),
    ("hal.buffer_view.assert", "0rriiCID_v"),
    ("hal.buffer_view.buffer", "0r_r"),
    ("hal.buffer_view.create", "0rIIiiCID_r"),
    ("hal.buffer_view.dim", "0ri_I"),
    ("hal.buffer_view.rank", "0r_i"),
    ("hal.command_buffer.copy_buffer", "0riirIrIII_v"),
    ("hal.command_buffer.create", "0riiIi_r"),
    ("hal.command_buffer.dispatch", "0rrIiiiICiDCiirIID_v"),
    ("hal.command_buffer.execution_barrier", "0riiI_v"),
    ("hal.command_buffer.finalize", "0r_v"),
    ("hal.device.allocator", "0r_r"),
    ("hal.device.query.i64", "0rrr_iI"),
    ("hal.device.queue.alloca", "0rIrrIiiII_r"),
    ("hal.device.queue.barrier", "0rIrrI_v"),
    ("hal.device.queue.copy", "0rIrrrIrIII_v"),
    ("hal.device.queue.dealloca", "0rIrrrI_v"),
    ("hal.device.queue.execute", "0rIrrrI_v"),
    ("hal.device.queue.execute.indirect", "0rIrrrICrIID_v"),
    ("hal.device.queue.read", "0rIrrrIrIII_v"),
    ("hal.device.queue.update", "0rIrrrIrIII_v"),
    ("hal.devices.count", "0v_i"),
    ("hal.devices.get", "0i_r"),
    ("hal.ex.file.from_memory", "0rIirIIi_r"),
    ("hal.executable.create", "0rIrrr_r"),
    ("hal.executable.lookup.function", "0rr_I"),
    ("hal.fence.await", "0iICrD_i"),
    ("hal.fence.create", "0rI_r"),
    ("hal.fence.join", "0ICrD_r"),
    ("io_parameters.gather", "0rIrrrrrrr_v"),
];

#[cfg(test)]
mod tests {
    use halite_vm::Signature;

    use super::*;

    #[test]
    fn signatures_can_be_read() {
        for (name, text) in SIGNATURES {
            assert!(Signature::parse(text).is_ok(), "{name} {text}");
        }
    }
}
