//! The choice of a device when nobody named one.

use std::sync::Arc;

use halite_abi::{format, query};
use halite_hal::{
    Device, DeviceInfo, DeviceKind, DriverEntry, DriverRegistry, Options, Status, UnconfinedCode, choice,
    status,
};

use crate::{Result, hints::ModuleHints};

/// Devices to choose from, and how each is opened when it is chosen.
#[derive(Default)]
struct Candidates {
    devices: Vec<DeviceInfo>,
    options: Vec<Options>,
}

/// Opens the best usable device of all drivers that the modules have code for: a GPU before a processor. Code that nothing
/// confines is refused: nobody said that these modules may run it. UNAVAILABLE lists what was seen and why it was not
/// taken, PERMISSION_DENIED says how to run modules that have no other code.
pub(crate) fn open_default(
    registry: &DriverRegistry,
    defaults: &Options,
    hints: &[ModuleHints],
) -> Result<Arc<dyn Device>> {
    let (mut found, mut seen) = (Candidates::default(), Vec::new());
    for entry in registry.entries() {
        match enumerate(entry, defaults) {
            Ok(devices) => devices.into_iter().for_each(|info| found.add(info, defaults)),
            Err(e) => seen.push(format!("driver '{}': {e}", entry.name())),
        }
    }
    let devices = &found.devices;
    let named = |format: &str| hints.iter().any(|h| h.names_format(format));
    let ranked = choice::rank(devices, &named);
    let serves = |info: &DeviceInfo| info.executable_formats.iter().any(|format| named(format));
    let best = ranked.first().filter(|r| r.ruled_out.is_none());
    if !best.is_some_and(|best| serves(&devices[best.index]))
        && let Some(refusal) = ranked.iter().find_map(|r| refusal(&devices[r.index], defaults, &named))
    {
        return Err(refusal.into());
    }
    let Some(best) = best else {
        seen.extend(ranked.iter().map(|r| about(r, &devices[r.index])));
        let seen = if seen.is_empty() {
            "there is no driver; link one in or install a plug-in".to_owned()
        } else {
            seen.join("; ")
        };
        return Err(status!(Unavailable, "a module needs a device and none can be used: {seen}").into());
    };
    let info = &devices[best.index];
    log::info!("device {} chosen with {} points", info.uri(), best.score.total);
    warn_of_cpu(info, &ranked, devices);
    Ok(halite_layers::open(registry, &info.uri(), &found.options[best.index])?)
}

impl Candidates {
    fn add(&mut self, mut info: DeviceInfo, defaults: &Options) {
        self.options.push(choice::confine(&mut info, defaults));
        self.devices.push(info);
    }
}

fn about(ranked: &choice::Ranked, info: &DeviceInfo) -> String {
    let why = ranked.ruled_out.as_deref().unwrap_or("usable");
    format!("{} ({}): {why}", info.uri(), info.name)
}

/// Why a module does not run here, when all that keeps it from running is that nobody asked for such code.
fn refusal(info: &DeviceInfo, given: &Options, named: &dyn Fn(&str) -> bool) -> Option<Status> {
    let mut refused = info.unconfined.iter().filter(|code| !given.contains_key(&code.option));
    let (code, format) = refused.find_map(|c| Some((c, c.formats.iter().find(|f| named(f))?)))?;
    let uri = uri_that_allows(info, code);
    Some(status!(
        PermissionDenied,
        "the module holds code of format '{format}', which does not run unless a device is named: {}; if you trust \
         the module, name the device: --device='{uri}', in a program .device(\"{uri}\")",
        code.reason
    ))
}

/// How to name a device so that it runs the code. The name of a driver is enough for its only device.
fn uri_that_allows(info: &DeviceInfo, code: &UnconfinedCode) -> String {
    let device = if info.path.is_empty() { info.driver.clone() } else { info.uri() };
    if code.default_allows { device } else { format!("{device}?{}={}", code.option, code.allow) }
}

/// Adds to a module's failure to find a device that one was there and refuses the module's code unless it is asked for.
pub(crate) fn explain(failure: Status, devices: &[Arc<dyn Device>], hints: &[ModuleHints]) -> Status {
    let named = |format: &&String| hints.iter().any(|h| h.names_format(format));
    let refuses =
        |device: &dyn Device, format: &str| device.query_i64(query::EXECUTABLE_FORMAT, format) == Some(0);
    for device in devices {
        for code in &device.info().unconfined {
            let mut formats = code.formats.iter().filter(named);
            let Some(format) = formats.find(|format| refuses(device.as_ref(), format)) else { continue };
            return failure.annotate(format!(
                "device '{}' runs code of format '{format}' only with {}={}: {}",
                device.info().uri(),
                code.option,
                code.allow,
                code.reason
            ));
        }
    }
    match held_and_run(devices, hints) {
        Some(text) => failure.annotate(text),
        None => failure,
    }
}

/// Which code modules hold, and which code devices run, where these have nothing in common: the module's own message names neither in
/// a way that people can read.
fn held_and_run(devices: &[Arc<dyn Device>], hints: &[ModuleHints]) -> Option<String> {
    let held: Vec<&str> =
        format::ALL.into_iter().filter(|format| hints.iter().any(|h| h.names_format(format))).collect();
    let runs = |device: &Arc<dyn Device>| {
        held.iter().any(|format| device.query_i64(query::EXECUTABLE_FORMAT, format) == Some(1))
    };
    if held.is_empty() || devices.iter().any(runs) {
        return None;
    }
    let told = devices.iter().map(|device| {
        let info = device.info();
        let formats = match info.executable_formats.is_empty() {
            true => "none".to_owned(),
            false => info.executable_formats.join(", "),
        };
        format!(
            "device '{}' on {} {} runs {formats}",
            info.uri(),
            std::env::consts::OS,
            std::env::consts::ARCH
        )
    });
    let told: Vec<String> = told.collect();
    Some(format!("the module holds code of format {}; {}", held.join(", "), told.join("; ")))
}

/// What a driver finds. One that cannot be loaded is warned of: something is installed and broken.
fn enumerate(entry: &DriverEntry, defaults: &Options) -> halite_hal::Result<Vec<DeviceInfo>> {
    let driver = entry.driver().inspect_err(|e| log::warn!("driver '{}' is left out: {e}", entry.name()))?;
    driver.enumerate(defaults)
}

/// A processor behind a GPU interface is a fallback that nobody may mistake for a GPU. One that the module has code for
/// is what was meant.
fn warn_of_cpu(info: &DeviceInfo, ranked: &[choice::Ranked], devices: &[DeviceInfo]) {
    let Some(line) = info.processor_warning() else { return };
    let gpu = ranked.iter().find(|r| r.ruled_out.is_some() && devices[r.index].kind != DeviceKind::Cpu);
    match gpu.filter(|r| r.score.total >= 0) {
        Some(r) => {
            let (gpu, why) = (&devices[r.index], r.ruled_out.as_deref().unwrap_or_default());
            log::warn!("running on the processor ({}); {} ({}): {why}", info.name, gpu.uri(), gpu.name);
        }
        None => log::warn!("{line}"),
    }
}
