//! Owns how tools bring modules, devices and parameters together. Does not own: the session itself.

use std::{io::Read, path::Path};

use halite_hal::Device;
use halite_runtime::{ParameterIndex, Session, SessionBuilder};
use halite_status::{Code, Status};

use crate::{
    compile,
    console::{Failure, Result},
    devices,
    flags::{DeviceFlags, InputFlags, ModuleFlags},
    jit, logger,
};

/// A builder with everything that flags name. Models among the modules are compiled for the device and the inputs.
pub(crate) fn session_builder(
    devices: &DeviceFlags,
    modules: &ModuleFlags,
    inputs: &InputFlags,
) -> Result<SessionBuilder> {
    if modules.modules().next().is_none() {
        return Err(Failure::Usage(
            "no user module specified; use --module=file.vmfb to load from a file or --module=- to load from stdin"
                .to_owned(),
        ));
    }
    let options = devices.vulkan_options()?;
    let mut builder =
        Session::builder().registry(devices.plugins.registry()?).load_mode(modules.module_mode.into());
    let uris = devices::uris(devices, &options)?;
    if uris.is_empty() {
        builder = builder.device_options(options);
    }
    for uri in uris {
        builder = builder.device(uri);
    }
    if modules.modules().filter(|m| *m == "-").count() > 1 {
        return Err(Failure::Usage("--module=- can be given once: there is one standard input".to_owned()));
    }
    for module in modules.modules() {
        builder = match module {
            "-" => builder.module_bytes(read_stdin()?),
            path => match compile::detect(Path::new(path))? {
                Some(format) => {
                    builder.module_bytes(jit::compile(Path::new(path), format, devices, modules, inputs)?)
                }
                None => builder.module_file(path),
            },
        };
    }
    let mut index = ParameterIndex::default();
    for (scope, path) in modules.parameters()? {
        index.add_file(&scope, Path::new(&path), modules.parameter_mode.into())?;
    }
    Ok(builder.parameter_index(index))
}

/// All of standard input.
pub(crate) fn read_stdin() -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .read_to_end(&mut bytes)
        .map_err(|e| Failure::file("cannot read", Path::new("standard input"), &e))?;
    Ok(bytes)
}

/// Fails when the validation layer said anything, however the run ended.
pub(crate) fn check_validation() -> Result<()> {
    match logger::validation_messages() {
        0 => Ok(()),
        count => Err(Failure::Status(Status::new(
            Code::FailedPrecondition,
            format!("the Vulkan validation layer reported {count} problem(s), see above"),
        ))),
    }
}

/// Prints what each device's allocator did to standard error.
pub(crate) fn print_statistics(session: &Session) {
    for device in session.devices() {
        let stats = device.memory_stats();
        eprintln!("Device: {}", Device::info(device.as_ref()).uri());
        eprintln!(
            "  memory: {} B reserved now, {} B at most; {} B used now, {} B at most; {} allocations",
            stats.reserved, stats.peak_reserved, stats.used, stats.peak_used, stats.allocation_count
        );
    }
}
