//! The HAL driver: listing devices, choosing one, opening it.

use std::sync::Arc;

use halite_hal::{
    Device, DeviceInfo, Driver, InfoGroup, Options, Result, ResultExt as _, StaticDriver, choice, inventory,
    status,
};

use crate::{
    context::DeviceContext,
    device::VulkanDevice,
    discovery::{Found, discover},
    options::{OPTIONS, SwiftShaderChoice, VulkanOptions},
    swiftshader, workarounds,
};

inventory::submit! {
    StaticDriver { name: "vulkan", create: || Arc::new(VulkanDriver) }
}

/// The Vulkan driver. Holds nothing: instances are made on use and shared while they live.
#[derive(Clone, Copy, Debug, Default)]
pub struct VulkanDriver;

impl Driver for VulkanDriver {
    fn name(&self) -> &str {
        "vulkan"
    }

    fn description(&self) -> &str {
        "GPUs (and CPU implementations) through Vulkan 1.1 or later"
    }

    fn options(&self) -> &[(&'static str, &'static str)] {
        OPTIONS
    }

    fn enumerate(&self, options: &Options) -> Result<Vec<DeviceInfo>> {
        let found = discover(&VulkanOptions::parse(options)?)?;
        if found.devices.is_empty() {
            return Err(found.nothing_usable());
        }
        Ok(found.devices.into_iter().map(|device| device.info).collect())
    }

    fn find_unlisted(&self, name: &str, options: &Options) -> Result<Option<String>> {
        let options = VulkanOptions::parse(options)?;
        let name = name.to_lowercase();
        let meant = name.contains("swiftshader") || name == swiftshader::DEVICE_PATH.to_lowercase();
        if !meant || options.swiftshader != SwiftShaderChoice::Auto {
            return Ok(None);
        }
        let found = discover(&VulkanOptions { swiftshader: SwiftShaderChoice::On, ..options })?;
        let fits =
            |d: &Found| d.info.path.to_lowercase() == name || d.info.name.to_lowercase().contains(&name);
        Ok(found.devices.into_iter().find(fits).map(|device| device.info.path))
    }

    fn tables(&self) -> Vec<InfoGroup> {
        vec![workarounds::listing()]
    }

    fn open(&self, path: &str, options: &Options) -> Result<Arc<dyn Device>> {
        let options = VulkanOptions::parse(options)?;
        let found = find(path, &options)?;
        let context = DeviceContext::open(&found, options)
            .context(|| format!("opening Vulkan device '{}' ({})", found.info.name, found.info.uri()))?;
        Ok(Arc::new(VulkanDevice::new(context)?))
    }
}

/// The device with this path; for an empty path the best usable one.
fn find(path: &str, options: &VulkanOptions) -> Result<Found> {
    let found = discover(options)?;
    let infos: Vec<DeviceInfo> = found.devices.iter().map(|device| device.info.clone()).collect();
    if path.is_empty() {
        let index = choose(&infos).ok_or_else(|| found.nothing_usable())?;
        return Ok(found.devices[index].clone());
    }
    if let Some(device) = found.devices.iter().find(|d| d.info.path == path) {
        return Ok(device.clone());
    }
    // Named, it need not be listed.
    if path == swiftshader::DEVICE_PATH && options.swiftshader == SwiftShaderChoice::Auto {
        return find(path, &VulkanOptions { swiftshader: SwiftShaderChoice::On, ..options.clone() });
    }
    let known: Vec<_> = infos.iter().map(DeviceInfo::uri).collect();
    Err(status!(NotFound, "Vulkan device '{path}' not found; available: {}", known.join(", ")))
}

/// The usable device with the most points, which is a real GPU if there is any.
fn choose(devices: &[DeviceInfo]) -> Option<usize> {
    let best =
        choice::rank(devices, &|_| false).into_iter().next().filter(|best| best.ruled_out.is_none())?;
    if let Some(line) = devices[best.index].processor_warning() {
        log::warn!("{line}");
    }
    Some(best.index)
}

#[cfg(test)]
mod tests {
    use halite_hal::DeviceKind;

    use super::*;

    fn device(name: &str, kind: DeviceKind, unusable: Option<&str>) -> DeviceInfo {
        DeviceInfo {
            driver: "vulkan".to_owned(),
            path: format!("GPU-{name}"),
            name: name.to_owned(),
            kind,
            unusable: unusable.map(str::to_owned),
            properties: Vec::new(),
            ..DeviceInfo::default()
        }
    }

    #[test]
    fn real_gpus_are_preferred_and_unusable_ones_skipped() {
        let broken = device("a", DeviceKind::DiscreteGpu, Some("no queue family with compute"));
        let cpu = device("b", DeviceKind::Cpu, None);
        let gpu = device("c", DeviceKind::IntegratedGpu, None);
        assert_eq!(choose(&[broken.clone(), cpu.clone(), gpu]), Some(2));
        assert_eq!(choose(&[broken.clone(), cpu]), Some(1));
        assert_eq!(choose(&[broken]), None);
    }
}
