//! The `list-devices` tool: which devices are there, and whether they can be used. Does not own: finding them.

use std::{io::Write, process::ExitCode};

use clap::Parser;
use halite_hal::{DeviceInfo, DeviceKind};
use serde_json::json;

use crate::{
    console::{self, Failure, Result},
    devices,
    flags::DeviceFlags,
};

const NAME: &str = "list-devices";

const EXAMPLES: &str = "\
Examples:
  list-devices
  list-devices --properties vulkan
  list-devices --workarounds vulkan
  list-devices --json | jq '.devices[0].uri'

The index of a device, its path and a part of its name all work after vulkan:// in --device.
";

/// Lists the devices that modules can run on.
#[derive(Parser, Debug)]
#[command(name = NAME, version = console::VERSION, after_help = EXAMPLES, max_term_width = 110)]
pub struct Flags {
    /// Only the devices of this driver
    #[arg(value_name = "DRIVER")]
    driver: Option<String>,
    /// Prints one JSON object
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", hide_default_value = true, hide_possible_values = true, value_name = "BOOL")]
    json: bool,
    /// Prints all that is known about each device
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", hide_default_value = true, hide_possible_values = true, value_name = "BOOL")]
    properties: bool,
    /// Prints the known faults of Vulkan drivers, and which of them are steered around on the devices here
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", hide_default_value = true, hide_possible_values = true, value_name = "BOOL")]
    workarounds: bool,
    /// Prints the completion script for a shell
    #[arg(long, value_name = "SHELL")]
    completions: Option<clap_complete::Shell>,
    #[command(flatten)]
    devices: DeviceFlags,
}

/// Entry point of the binary.
pub fn main() -> ExitCode {
    console::tool_main(NAME, run)
}

fn run(flags: Flags) -> Result<()> {
    if let Some(shell) = flags.completions {
        console::completions::<Flags>(NAME, shell);
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    if !flags.devices.device.is_empty() {
        return Err(Failure::Usage(
            "list-devices opens no device; name a driver as argument instead".to_owned(),
        ));
    }
    if devices::answer_queries(&flags.devices, &mut out)? {
        return Ok(());
    }
    let registry = flags.devices.plugins.registry()?;
    let options = flags.devices.vulkan_options()?;
    let found = devices::enumerate(&registry, flags.driver.as_deref(), &options)?;
    if flags.workarounds {
        return workarounds(&found, &mut out);
    }
    if flags.json {
        let list: Vec<_> = found.iter().map(to_json).collect();
        writeln!(out, "{}", json!({"devices": list}))?;
    } else {
        table(&found, flags.properties, &mut out)?;
    }
    Ok(())
}

fn workarounds(devices: &[DeviceInfo], out: &mut dyn Write) -> Result<()> {
    for device in devices {
        if let Some((_, names)) = device.properties.iter().find(|(name, _)| name == "workarounds") {
            writeln!(out, "in force on '{}' ({}): {names}", device.name, device.uri())?;
        }
    }
    #[cfg(feature = "static-drivers")]
    {
        writeln!(out, "\nAll of them; the option workarounds=+name,-name changes what is in force:\n")?;
        write!(out, "{}", halite_vulkan::workarounds::table_text())?;
    }
    #[cfg(not(feature = "static-drivers"))]
    writeln!(
        out,
        "\ndocs/vulkan-driver.md tells where all of them are listed; the driver is a plug-in here"
    )?;
    Ok(())
}

fn to_json(device: &DeviceInfo) -> serde_json::Value {
    let properties: serde_json::Map<_, _> =
        device.properties.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
    json!({
        "uri": device.uri(), "driver": device.driver, "path": device.path, "name": device.name,
        "kind": device.kind, "usable": device.unusable.is_none(), "unusable_because": device.unusable,
        "properties": properties,
    })
}

fn kind(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::DiscreteGpu => "discrete GPU",
        DeviceKind::IntegratedGpu => "integrated GPU",
        DeviceKind::VirtualGpu => "virtual GPU",
        DeviceKind::Cpu => "CPU",
        DeviceKind::Other => "other",
    }
}

fn table(devices: &[DeviceInfo], properties: bool, out: &mut dyn Write) -> Result<()> {
    if devices.is_empty() {
        writeln!(out, "no devices; HALITE_LOG=info says where was looked")?;
        return Ok(());
    }
    let width = devices.iter().map(|d| d.uri().len()).max().unwrap_or_default();
    writeln!(out, "  # {:<width$}  {:<14}  NAME", "URI", "KIND")?;
    let mut index = 0;
    let mut driver = "";
    for device in devices {
        // Indices count within a driver, as URIs do.
        index = if device.driver == driver { index + 1 } else { 0 };
        driver = &device.driver;
        writeln!(out, "{index:3} {:<width$}  {:<14}  {}", device.uri(), kind(device.kind), device.name)?;
        if let Some(why) = &device.unusable {
            writeln!(out, "      unusable: {why}")?;
        }
        if properties {
            for (name, value) in &device.properties {
                writeln!(out, "      {name}: {value}")?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(driver: &str, path: &str, unusable: Option<&str>) -> DeviceInfo {
        DeviceInfo {
            driver: driver.into(),
            path: path.into(),
            name: "Name".into(),
            kind: DeviceKind::Cpu,
            unusable: unusable.map(str::to_owned),
            properties: vec![("api".into(), "1.3".into())],
            ..DeviceInfo::default()
        }
    }

    #[test]
    fn table_counts_within_drivers() {
        let devices =
            [device("a", "x", None), device("a", "long-path", Some("too old")), device("b", "", None)];
        let mut out = Vec::new();
        table(&devices, true, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[1], "  0 a://x          CPU             Name");
        assert_eq!(lines[4], "      unusable: too old");
        assert!(lines[3].starts_with("  1 a://long-path") && lines[6].starts_with("  0 b://"), "{text}");
    }

    #[test]
    fn command_line_is_consistent() {
        <Flags as clap::CommandFactory>::command().debug_assert();
    }
}
