//! What stands between callers and drivers: the checks of what a caller can foresee, the check of barriers, and work of one
//! device on buffers of another. Each is a device in front of a device, so drivers know nothing of them.
//!
//! Internal to Halite; programs use the crate `halite`.
#![forbid(unsafe_code)]

mod dump;
mod forward;
pub mod hazards;
pub mod peer;
pub mod validation;

use std::sync::Arc;

use halite_hal::{Device, DriverRegistry, Options, Result};

pub use dump::{CommandDump, dump};
pub use forward::{Layer, Layered};

/// Opens the device that a URI names, and puts validation in front of it: by its stable path, by index (`vulkan://1`), or
/// by a part of its name that fits one device only (`vulkan://llvmpipe`). `defaults` are options that the URI may override.
/// The option [`hazards::OPTION`] is not the driver's: it chooses what [`validation::ValidatedDevice`] checks.
pub fn open(registry: &DriverRegistry, uri: &str, defaults: &Options) -> Result<Arc<dyn Device>> {
    let mut request = registry.request(uri, defaults)?;
    let hazards =
        request.options.remove(hazards::OPTION).map_or(Ok(hazards::HazardCheck::Off), |text| text.parse())?;
    let device = request.open_bare(&[hazards::OPTION])?;
    Ok(validation::ValidatedDevice::wrap_checking(device, hazards))
}
