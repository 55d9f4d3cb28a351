//! Names of the types that the objects of the module `hal` have. In a module's table of types they stand behind a `!`.

/// A device.
pub const DEVICE: &str = "hal.device";
/// The allocator of a device.
pub const ALLOCATOR: &str = "hal.allocator";
/// A range of a device's memory.
pub const BUFFER: &str = "hal.buffer";
/// A tensor: a buffer with a shape and an element type.
pub const BUFFER_VIEW: &str = "hal.buffer_view";
/// A set of points in time.
pub const FENCE: &str = "hal.fence";
/// A file.
pub const FILE: &str = "hal.file";
/// Device code.
pub const EXECUTABLE: &str = "hal.executable";
/// A recording.
pub const COMMAND_BUFFER: &str = "hal.command_buffer";
