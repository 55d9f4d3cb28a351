//! The tool `halite devices`, or `list-devices`: which devices are there, which one would be chosen and why, and all that a bug report
//! needs. Drivers find devices; `halite::hal::choice` weighs them.

mod json;
mod probe;
mod survey;
mod text;

use std::io::Write;

use clap::Parser;
use halite::hal::{DriverRegistry, Options, status};

use self::survey::{DriverLine, Survey};
use crate::{
    console::{self, CommonFlags, Failure, Result, Tool},
    devices,
    flags::DeviceFlags,
};

const EXAMPLES: &str = "\
Examples:
  halite devices                              what is there; * marks what runs without --device
  halite devices -v vulkan                    everything about the devices of one driver
  halite devices --device=vulkan://llvmpipe   opens one device and tells everything about it
  halite devices --probe                      opens all devices, each in a process of its own that may crash
  halite devices --drivers                    drivers, where they come from, and what was skipped
  halite devices --json > report.json         for a bug report, or to add a GPU to the table of targets

The index of a device, its path and a part of its name all work after vulkan:// in --device.
Exit code: 0 when a device can be used, 1 when none can, 2 for wrong usage.
";

/// Lists the devices that modules can run on.
#[derive(Parser, Debug)]
#[command(version = console::VERSION, after_help = EXAMPLES, max_term_width = 110, mut_arg("verbose", |arg| arg.help(VERBOSE).alias("properties")))]
pub struct Flags {
    /// Only the devices of this driver
    #[arg(value_name = "DRIVER")]
    driver: Option<String>,
    /// Prints one JSON object with everything
    #[arg(long)]
    json: bool,
    /// Prints the drivers instead of devices, without loading any; with -v loads them, in a process of its own first, and
    /// tells whether they work
    #[arg(long)]
    drivers: bool,
    /// Prints the faults that drivers know of and steer around, and which of them are in force on the devices here
    #[arg(long)]
    workarounds: bool,
    /// Opens each device in a process of its own first: drivers that crash or hang are found out that way
    #[arg(long)]
    probe: bool,
    #[command(flatten)]
    common: CommonFlags,
    #[command(flatten)]
    devices: DeviceFlags,
}

/// What -v means here.
const VERBOSE: &str = "\
Prints all that is known: points and their reasons, properties, limits, features, memory, queues, extensions, the driver's \
library and its hash. Twice, also logs to standard error: information, then more";

impl Flags {
    fn details(&self) -> bool {
        self.common.verbose > 0
    }
}

impl Tool for Flags {
    fn common(&self) -> &CommonFlags {
        &self.common
    }

    /// The first -v asks for details, those that follow for more of the log.
    fn verbosity(&self) -> i16 {
        i16::from(self.common.verbose.saturating_sub(1)) - i16::from(self.common.quiet)
    }

    fn json(&self) -> bool {
        self.json
    }

    fn run(self) -> Result<()> {
        run(&self)
    }
}

fn run(flags: &Flags) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if devices::answer_queries(&flags.devices, &mut out)? {
        return Ok(());
    }
    let registry = flags.devices.registry()?;
    let options = flags.devices.vulkan_options()?;
    if flags.drivers {
        return drivers(&registry, flags, &mut out);
    }
    let survey = take_survey(&registry, flags, &options)?;
    if flags.workarounds && flags.json {
        writeln!(out, "{}", json::workarounds(&registry, &survey))?;
    } else if flags.workarounds {
        text::workarounds(&registry, &survey, &mut out)?;
    } else if flags.json {
        writeln!(out, "{}", json::report(&registry, &survey))?;
    } else if flags.details() || !flags.devices.device.is_empty() {
        text::details(&registry, &survey, &mut out)?;
    } else {
        text::table(&survey, &mut out)?;
    }
    if survey.usable() {
        return Ok(());
    }
    let failure = Failure::Status(survey.nothing_usable(&registry));
    Err(if flags.json { failure.beside_results() } else { failure })
}

fn drivers(registry: &DriverRegistry, flags: &Flags, out: &mut dyn Write) -> Result<()> {
    let lines = DriverLine::all(registry, flags.details());
    if flags.json {
        writeln!(out, "{}", json::drivers(registry, &lines))?;
    } else {
        text::drivers(registry, &lines, out)?;
    }
    Ok(())
}

/// The devices that are asked for. Those that are named are opened: that is the proof that they can be.
fn take_survey(registry: &DriverRegistry, flags: &Flags, options: &Options) -> Result<Survey> {
    let uris = devices::uris(&flags.devices, options)?;
    let plugins = (flags.probe && !crate::trial::is_trial()).then_some(&flags.devices.plugins);
    if uris.is_empty() {
        if plugins.is_some() {
            probe::listing()?;
        }
        let mut found = devices::enumerate(registry, flags.driver.as_deref(), options)?;
        if let Some(plugins) = plugins {
            probe::devices(&mut found, plugins, options)?;
        }
        return Ok(Survey::of_drivers(found, flags.driver.is_none()));
    }
    if flags.driver.is_some() {
        return Err(Failure::Usage("name a driver or devices, not both".to_owned()));
    }
    for uri in plugins.iter().flat_map(|_| &uris) {
        if let Some(why) = probe::named(uri, &flags.devices.plugins, options)? {
            return Err(Failure::Status(status!(Unavailable, "device '{uri}' cannot be used: {why}")));
        }
    }
    Survey::of_named(registry, &uris)
}
