//! The proof that devices can be opened and plug-ins loaded: each in a process of its own, so that a driver that crashes or hangs
//! takes only that process along.

use std::{ffi::OsString, time::Duration};

use halite::{
    hal::{DeviceInfo, DriverEntry, Options, status},
    plugin::LibrarySource,
};

use crate::{
    console::{self, Failure, Result},
    devices,
    flags::PluginFlags,
    trial::{self, Outcome},
};

/// How long opening a device may take.
const LIMIT: Duration = Duration::from_secs(60);

/// Lists the devices with this process's own flags. UNAVAILABLE when a driver ends the process.
pub(super) fn listing() -> Result<()> {
    let how = match trial::run(console::arguments().iter().cloned(), LIMIT) {
        Outcome::Well | Outcome::Refused(_) => return Ok(()),
        Outcome::Crashed(how) => how,
        Outcome::Hung => format!("did not end within {LIMIT:?}"),
    };
    Err(Failure::Status(status!(
        Unavailable,
        "listing the devices in a process of its own {how}: a driver fails as soon as it is loaded; to find it, allow one \
         Vulkan driver at a time with VK_DRIVER_FILES=<manifest>, and leave plug-ins out with --no-plugins"
    )))
}

/// Marks the devices that cannot be opened.
pub(super) fn devices(found: &mut [DeviceInfo], plugins: &PluginFlags, options: &Options) -> Result<()> {
    for device in found.iter_mut().filter(|d| d.unusable.is_none()) {
        device.unusable = named(&device.uri(), plugins, options)?;
    }
    Ok(())
}

/// Why a device cannot be opened; `None` when it can.
pub(super) fn named(uri: &str, plugins: &PluginFlags, options: &Options) -> Result<Option<String>> {
    let mut args = vec![OsString::from(format!("--device={}", devices::with_options(uri, options)?))];
    for path in &plugins.driver_path {
        let mut flag = OsString::from("--driver-path=");
        flag.push(path);
        args.push(flag);
    }
    args.extend(plugins.no_plugins.then(|| OsString::from("--no-plugins")));
    Ok(match trial::run(args, LIMIT) {
        Outcome::Well => None,
        Outcome::Refused(why) => Some(why),
        Outcome::Crashed(how) => Some(format!("opening it in a process of its own {how}")),
        Outcome::Hung => Some(format!("opening it in a process of its own did not end within {LIMIT:?}")),
    })
}

/// Loads a plug-in and lists its devices in a process of its own: see [`trial::library`].
pub(super) fn driver(entry: &DriverEntry) -> halite::hal::Result<()> {
    LibrarySource::of(entry).map_or(Ok(()), |source| trial::library(source, entry.name()))
}
