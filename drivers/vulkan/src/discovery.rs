//! Which libraries are asked for devices, and the joint list of what they have.

use std::{
    path::Path,
    sync::{Arc, Once},
};

use ash::vk;
use halite_facts::DeviceFacts;
use halite_hal::{Code, DeviceInfo, Result, ResultExt as _, Status, status};

use crate::{
    enumerate::ordered,
    icd,
    instance::{InstanceContext, Source},
    loader::install_advice,
    options::{SwiftShaderChoice, ValidationModes, VulkanOptions},
    plan::DevicePlan,
    probe::probe,
    swiftshader::{self, SearchPath, Surroundings},
    workarounds::Workarounds,
};

/// A device that was found. Its handle is only good for functions of its own instance.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// The instance that the handle belongs to.
    pub instance: Arc<InstanceContext>,
    /// The device.
    pub physical: vk::PhysicalDevice,
    /// What enumeration says about it.
    pub info: DeviceInfo,
    /// What it can do.
    pub facts: DeviceFacts,
}

/// The devices of all libraries that the options allow.
#[derive(Debug)]
pub(crate) struct Discovery {
    /// Best first: by kind, then by name and UUID.
    pub devices: Vec<Found>,
    /// What was looked for in vain.
    pub missing: Vec<String>,
}

impl Discovery {
    /// The status when no device can be used: every reason, and what to do.
    pub(crate) fn nothing_usable(&self) -> Status {
        let unusable = self.devices.iter().filter_map(|d| Some((&d.info.name, d.info.unusable.as_ref()?)));
        let mut parts: Vec<String> = unusable.map(|(name, why)| format!("'{name}': {why}")).collect();
        parts.extend(self.missing.iter().cloned());
        // What a missing loader says includes it.
        if !parts.iter().any(|part| part.contains(install_advice())) {
            parts.push(format!("to run on a GPU: {}", install_advice()));
        }
        status!(Unavailable, "no usable Vulkan device; {}; {}", parts.join("; "), swiftshader::ADVICE)
    }
}

/// A device before the list is made.
struct Candidate {
    instance: Arc<InstanceContext>,
    physical: vk::PhysicalDevice,
    facts: DeviceFacts,
}

impl Candidate {
    fn usable(&self) -> bool {
        DevicePlan::new(&self.facts, &VulkanOptions::default(), &Workarounds::for_device(&self.facts)).is_ok()
    }
}

/// Finds the devices that the options lead to: those of the loader or of the drivers that are named, and SwiftShader's
/// as the option `swiftshader` says. A library that was named and cannot be used is an error.
pub(crate) fn discover(options: &VulkanOptions) -> Result<Discovery> {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    if let SwiftShaderChoice::Path(path) = &options.swiftshader {
        add(&mut found, direct(&swiftshader::library_in(path), options).context(|| "option swiftshader")?);
    }
    for path in &options.icd {
        add(&mut found, direct(path, options).context(|| "option icd")?);
    }
    if options.icd.is_empty() {
        match through_loader(options) {
            Ok(devices) if devices.is_empty() => missing.push("the Vulkan loader lists no device".to_owned()),
            Ok(devices) => add(&mut found, devices),
            Err(why) if why.code() == Code::Unavailable && loader_is_missing(options) => {
                log::debug!("{why}");
                missing.push(why.message().to_owned());
            }
            Err(why) => return Err(why),
        }
    }
    let fall_back = options.swiftshader == SwiftShaderChoice::Auto && !found.iter().any(Candidate::usable);
    if fall_back || options.swiftshader == SwiftShaderChoice::On {
        match installed_swiftshader(options) {
            Ok(devices) => add(&mut found, devices),
            Err(why) if fall_back => missing.push(why),
            Err(why) => {
                return Err(status!(Unavailable, "option swiftshader=on: {why}; {}", swiftshader::ADVICE));
            }
        }
    }
    if options.swiftshader == SwiftShaderChoice::Off {
        missing.push("SwiftShader was not looked for (option swiftshader=off)".to_owned());
    }
    Ok(Discovery { devices: listed(found), missing })
}

/// Adds the devices of another library. One that is there already through an earlier one, by UUID and driver, is left
/// out: it must not be listed twice, and its path must mean one thing.
fn add(found: &mut Vec<Candidate>, devices: Vec<Candidate>) {
    let known = |new: &Candidate| {
        let key = |device: &Candidate| (device.facts.driver_id, device.facts.uuid.clone());
        // Devices that do not say what they are are never the same.
        let same = |old: &Candidate| new.facts.driver_id != 0 && key(old) == key(new);
        found.iter().any(same)
    };
    let new: Vec<_> = devices.into_iter().filter(|device| !known(device)).collect();
    found.extend(new);
}

fn listed(found: Vec<Candidate>) -> Vec<Found> {
    let facts: Vec<&DeviceFacts> = found.iter().map(|candidate| &candidate.facts).collect();
    let order = ordered(&facts);
    let mut found: Vec<Option<Candidate>> = found.into_iter().map(Some).collect();
    let take = |(index, mut info): (usize, DeviceInfo)| {
        let Candidate { instance, physical, facts } = found[index].take()?;
        info.properties.push(("reached_by".to_owned(), instance.library.to_string()));
        Some(Found { instance, physical, info, facts })
    };
    order.into_iter().filter_map(take).collect()
}

fn through_loader(options: &VulkanOptions) -> Result<Vec<Candidate>> {
    let instance = InstanceContext::get(Source::Loader(options.libvulkan.clone()), options)?;
    devices_of(&instance)
}

/// Whether the loader itself is what is missing, and not the validation that was asked of it.
fn loader_is_missing(options: &VulkanOptions) -> bool {
    let source = Source::Loader(options.libvulkan.clone());
    !options.validation.any() || InstanceContext::get(source, &unvalidated(options)).is_err()
}

fn unvalidated(options: &VulkanOptions) -> VulkanOptions {
    VulkanOptions { validation: ValidationModes::default(), ..options.clone() }
}

/// The devices of a driver that is loaded directly. They are listed with validation too; opening refuses it.
fn direct(path: &Path, options: &VulkanOptions) -> Result<Vec<Candidate>> {
    let source = Source::Driver(icd::library_of(path)?);
    devices_of(&InstanceContext::get(source, &unvalidated(options))?)
}

fn devices_of(instance: &Arc<InstanceContext>) -> Result<Vec<Candidate>> {
    let mut found = Vec::new();
    for physical in instance.physical_devices()? {
        match probe(instance, physical) {
            Ok(facts) => found.push(Candidate { instance: instance.clone(), physical, facts }),
            // One broken driver must not hide the others' devices.
            Err(error) => log::warn!("a Vulkan device is left out: {error}"),
        }
    }
    Ok(found)
}

/// The devices of the first SwiftShader that works; otherwise where it was looked for, and what was wrong.
fn installed_swiftshader(options: &VulkanOptions) -> Result<Vec<Candidate>, String> {
    let places = swiftshader::places(&Surroundings::here());
    let mut refused = Vec::new();
    for (place, file) in places.iter().flat_map(|place| place.files().into_iter().map(move |f| (place, f))) {
        if let Err(why) = place.judge(&file) {
            static TOLD: Once = Once::new();
            TOLD.call_once(|| log::warn!("the SwiftShader in the user's cache is left out: {why}"));
            refused.push(why.to_string());
            continue;
        }
        match direct(&file, options) {
            Ok(devices) if devices.iter().any(Candidate::usable) => {
                log::debug!("SwiftShader: {} ({})", file.display(), place.what);
                return Ok(devices);
            }
            Ok(_) => refused.push(format!("'{}' has no device that can be used", file.display())),
            Err(why) => refused.push(why.message().to_owned()),
        }
    }
    Err(not_found(&places, &refused))
}

fn not_found(places: &[SearchPath], refused: &[String]) -> String {
    let looked = swiftshader::describe(places);
    if refused.is_empty() {
        format!("SwiftShader was not found (looked for {looked})")
    } else {
        format!("SwiftShader was found but not used: {} (looked for {looked})", refused.join("; "))
    }
}

/// The facts of every device that the options lead to, for records and bug reports, in the driver's order.
///
/// # Errors
/// Vulkan could not be loaded, or a device does not answer.
pub fn capture_facts(options: &VulkanOptions) -> Result<Vec<DeviceFacts>> {
    Ok(discover(options)?.devices.into_iter().map(|found| found.facts).collect())
}

#[cfg(test)]
mod tests;
