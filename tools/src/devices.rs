//! Listing and choosing devices for the tools.

use std::io::Write;

use halite::hal::{DeviceInfo, Driver, DriverRegistry, Options, UNTRUSTED, uri::DeviceUri};

use crate::{
    console::{Failure, Result},
    flags::{DeviceFlags, VULKAN},
};

/// A driver that computes nothing: listed only when it is named.
const NULL: &str = "null";

/// The device URIs to open, with the options that flags ask for; empty when the user named none.
pub(crate) fn uris(flags: &DeviceFlags, options: &Options) -> Result<Vec<String>> {
    let all = flags.device.iter().map(|uri| with_options(uri, options)).collect::<Result<Vec<_>>>()?;
    if !flags.untrusted {
        return Ok(all);
    }
    all.iter().map(|uri| for_strangers(uri)).collect()
}

/// The URI of the same device, opened for programs of strangers.
pub(crate) fn for_strangers(uri: &str) -> Result<String> {
    let parsed = DeviceUri::parse(uri).map_err(|e| Failure::Usage(e.message().to_owned()))?;
    match parsed.options.get(UNTRUSTED).map(String::as_str) {
        None => Ok(format!("{uri}{}{UNTRUSTED}=on", if uri.contains('?') { '&' } else { '?' })),
        Some("on" | "true") => Ok(uri.to_owned()),
        Some(_) => Err(Failure::Usage(format!("--device={uri} contradicts --untrusted"))),
    }
}

/// Adds Vulkan options to a Vulkan URI. What the URI itself says comes first.
pub(crate) fn with_options(uri: &str, options: &Options) -> Result<String> {
    let parsed = DeviceUri::parse(uri).map_err(|e| Failure::Usage(e.message().to_owned()))?;
    let mut text = uri.to_owned();
    if parsed.driver != VULKAN {
        return Ok(text);
    }
    for (name, value) in options.iter().filter(|(name, _)| !parsed.options.contains_key(*name)) {
        if value.contains('&') {
            return Err(Failure::Usage(format!(
                "'&' cannot be part of the value '{value}' of option {name}"
            )));
        }
        text.push(if text.contains('?') { '&' } else { '?' });
        text.push_str(&format!("{name}={value}"));
    }
    Ok(text)
}

/// Does what `--list_drivers`, `--list_devices` or `--dump_devices` ask for; `false` when none of them was given.
pub(crate) fn answer_queries(flags: &DeviceFlags, out: &mut dyn Write) -> Result<bool> {
    if !flags.list_drivers && flags.list_devices.is_none() && flags.dump_devices.is_none() {
        return Ok(false);
    }
    let registry = flags.registry()?;
    let options = flags.vulkan_options()?;
    if flags.list_drivers {
        list_drivers(&registry, out)?;
    } else if let Some(driver) = &flags.list_devices {
        for device in enumerate(&registry, driver.as_deref(), &options)? {
            writeln!(out, "{}", device.uri())?;
        }
    } else if let Some(driver) = &flags.dump_devices {
        dump_devices(&registry, driver.as_deref(), &options, out)?;
    }
    Ok(true)
}

const RULE: &str = "# ============================================================================";

fn list_drivers(registry: &DriverRegistry, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "{RULE}\n# Available HAL drivers\n{RULE}")?;
    writeln!(out, "# Use --list_devices={{driver name}} to enumerate available devices.\n")?;
    for driver in registry.entries() {
        writeln!(out, "{:>16}: {}", driver.name(), driver.description())?;
    }
    Ok(())
}

/// The devices of one driver, or of all. That one of several drivers has no support on this system, or cannot be loaded, is
/// only a warning.
pub(crate) fn enumerate(
    registry: &DriverRegistry,
    only: Option<&str>,
    options: &Options,
) -> Result<Vec<DeviceInfo>> {
    let none = Options::new();
    let of = |driver: &dyn Driver| driver.enumerate(if driver.name() == VULKAN { options } else { &none });
    let mut found = Vec::new();
    match only.filter(|name| !name.is_empty()) {
        Some(name) => {
            let driver = registry.driver(name)?;
            found.extend(of(driver.as_ref())?);
        }
        None => {
            for entry in registry.entries().iter().filter(|e| e.name() != NULL) {
                match entry.driver().and_then(|driver| of(driver.as_ref())) {
                    Ok(devices) => found.extend(devices),
                    Err(error) => log::warn!("driver '{}': {error}", entry.name()),
                }
            }
        }
    }
    Ok(found)
}

fn dump_devices(
    registry: &DriverRegistry,
    only: Option<&str>,
    options: &Options,
    out: &mut dyn Write,
) -> Result<()> {
    let devices = enumerate(registry, only, options)?;
    let mut current = None;
    for device in &devices {
        let driver = device.driver.as_str();
        if current != Some(driver) {
            writeln!(out, "{RULE}\n# Enumerated devices for driver '{driver}'\n{RULE}\n")?;
            current = Some(driver);
        }
        dump_device(device, out)?;
    }
    if devices.is_empty() {
        writeln!(out, "# no devices")?;
    }
    Ok(())
}

fn dump_device(device: &DeviceInfo, out: &mut dyn Write) -> Result<()> {
    let unusable = device.unusable.as_deref().map(|why| format!(" [unusable: {why}]")).unwrap_or_default();
    writeln!(out, "# ===----------------------------------------------------------------------===")?;
    writeln!(out, "# --device={}\n#   {}{unusable}", device.uri(), device.name)?;
    writeln!(out, "# ===----------------------------------------------------------------------===")?;
    for (name, value) in &device.properties {
        writeln!(out, "{name}: {value}")?;
    }
    writeln!(out)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_become_uri_options_that_the_uri_may_override() {
        let options = Options::from([("repair".into(), "off".into()), ("validation".into(), "core".into())]);
        let add = |uri| with_options(uri, &options).unwrap();
        assert_eq!(add("vulkan"), "vulkan?repair=off&validation=core");
        assert_eq!(add("vulkan://0?validation=sync"), "vulkan://0?validation=sync&repair=off");
        assert_eq!(add("null"), "null");
        assert_eq!(for_strangers("null").unwrap(), "null?untrusted=on");
        assert_eq!(for_strangers("vulkan://0?repair=off").unwrap(), "vulkan://0?repair=off&untrusted=on");
        assert!(matches!(for_strangers("vulkan?untrusted=off"), Err(Failure::Usage(_))));
        assert!(matches!(with_options("://x", &options), Err(Failure::Usage(_))));
        let bad = Options::from([("libvulkan".into(), "a&b".into())]);
        assert!(matches!(with_options("vulkan", &bad), Err(Failure::Usage(_))));
    }
}
