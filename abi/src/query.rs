//! What `hal.device.query.i64` may be asked: categories, and keys that are the same for all devices.

/// Category: whether the device's identity matches the pattern in the key.
pub const DEVICE_ID: &str = "hal.device.id";
/// Category: whether the device takes executables of the format in the key.
pub const EXECUTABLE_FORMAT: &str = "hal.executable.format";
/// Category: how well the target triple in the key fits the device: 0 for not at all, higher for better.
pub const TARGET: &str = "halite.target";
/// Category: facts about the device, such as its [`CONCURRENCY`] (queues).
pub const DEVICE: &str = "hal.device";
/// Category: facts about dispatches, such as their [`CONCURRENCY`].
pub const DISPATCH: &str = "hal.dispatch";
/// Key of [`DEVICE`]: 1 where the device was opened for programs of strangers, and keeps their code within its bounds.
pub const UNTRUSTED: &str = "untrusted";
/// Key: how many things go on at one time.
pub const CONCURRENCY: &str = "concurrency";
/// Category: whether the device's processor has a feature, by the name that compilers give it (`avx512f`): 1 or 0, and no answer
/// for names that the device does not know.
pub const PROCESSOR_FEATURE: &str = "halite.processor.feature";
