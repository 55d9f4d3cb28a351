//! Owns the HAL driver: listing devices, choosing one, opening it. Does not own: what opening decides (`plan`).

use std::sync::Arc;

use halite_hal::{
    Device, DeviceInfo, DeviceKind, Driver, Options, Result, ResultExt as _, StaticDriver, inventory, status,
};

use crate::{
    context::{DeviceContext, enumerate},
    device::VulkanDevice,
    instance::InstanceContext,
    options::{OPTIONS, VulkanOptions},
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
        "GPUs (and CPU implementations) through Vulkan 1.1 or later with timeline semaphores"
    }

    fn options(&self) -> &[(&'static str, &'static str)] {
        OPTIONS
    }

    fn enumerate(&self, options: &Options) -> Result<Vec<DeviceInfo>> {
        let options = VulkanOptions::parse(options)?;
        let instance = InstanceContext::get(&options)?;
        Ok(enumerate(&instance)?.into_iter().map(|(_, info, _)| info).collect())
    }

    fn open(&self, path: &str, options: &Options) -> Result<Arc<dyn Device>> {
        let options = VulkanOptions::parse(options)?;
        let instance = InstanceContext::get(&options)?;
        let found = enumerate(&instance)?;
        let infos: Vec<&DeviceInfo> = found.iter().map(|(_, info, _)| info).collect();
        let index = choose(path, &infos)?;
        let (physical, info, _) = &found[index];
        let context = DeviceContext::open(instance.clone(), *physical, options)
            .context(|| format!("opening Vulkan device '{}' ({})", info.name, info.uri()))?;
        Ok(Arc::new(VulkanDevice::new(context)?))
    }
}

/// The device with this path; for an empty path the first usable one, which is a real GPU if there is any.
fn choose(path: &str, devices: &[&DeviceInfo]) -> Result<usize> {
    if !path.is_empty() {
        return devices.iter().position(|d| d.path == path).ok_or_else(|| {
            let known: Vec<_> = devices.iter().map(|d| d.uri()).collect();
            status!(NotFound, "Vulkan device '{path}' not found; available: {}", known.join(", "))
        });
    }
    let usable = |d: &&&DeviceInfo| d.unusable.is_none();
    let gpu = devices.iter().position(|d| usable(&d) && d.kind != DeviceKind::Cpu);
    if let Some(index) = gpu.or_else(|| devices.iter().position(|d| usable(&d))) {
        if devices[index].kind == DeviceKind::Cpu {
            log::warn!(
                "no Vulkan GPU was found; using the CPU device '{}', which is slow",
                devices[index].name
            );
        }
        return Ok(index);
    }
    let reasons: Vec<_> = devices
        .iter()
        .map(|d| format!("'{}': {}", d.name, d.unusable.as_deref().unwrap_or("not usable")))
        .collect();
    let list =
        if reasons.is_empty() { "no Vulkan device is installed".to_owned() } else { reasons.join("; ") };
    Err(status!(Unavailable, "no usable Vulkan device ({list}); install a driver for this machine's GPU"))
}

#[cfg(test)]
mod tests {
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
        let broken = device("a", DeviceKind::DiscreteGpu, Some("no timelineSemaphore"));
        let cpu = device("b", DeviceKind::Cpu, None);
        let gpu = device("c", DeviceKind::IntegratedGpu, None);
        assert_eq!(choose("", &[&broken, &cpu, &gpu]).unwrap(), 2);
        assert_eq!(choose("", &[&broken, &cpu]).unwrap(), 1);
        assert_eq!(choose("GPU-a", &[&broken, &cpu]).unwrap(), 0);
        let error = choose("", &[&broken]).unwrap_err().to_string();
        assert!(error.contains("no timelineSemaphore"), "{error}");
        assert!(choose("GPU-x", &[&cpu]).unwrap_err().to_string().contains("vulkan://GPU-b"));
    }
}
