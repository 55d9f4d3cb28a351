//! How tools bring modules or a model, devices and parameters together.

use std::path::Path;

use halite::{Drivers, Generator, GeneratorOptions, LoadMode, RunOptions, Session, SessionBuilder, Source};

use crate::{
    console::{Failure, Result},
    devices,
    engine::{Code, Status},
    flags::{CacheFlags, DeviceFlags, ModuleFlags},
    interrupt, logger, state,
    text_flags::{DraftFlags, LanguageModelFlags},
};

/// What messages call standard input.
const STDIN: &str = "standard input";

/// A builder for a language model's file, with the devices and the cache that flags name.
pub(crate) fn language_model(model: &Path, flags: &LanguageModelFlags) -> Result<SessionBuilder> {
    language_model_beside(model, flags, None)
}

/// The same, on the device of another model, if there is one.
pub(crate) fn language_model_beside(
    model: &Path,
    flags: &LanguageModelFlags,
    other: Option<&Generator>,
) -> Result<SessionBuilder> {
    Ok(begin(&flags.devices, &flags.cache, other)?.model(source(model)))
}

/// The model that writes ahead of another, if flags name one.
pub(crate) fn draft(
    flags: &DraftFlags,
    (devices, cache): (&DeviceFlags, &CacheFlags),
    wanted: GeneratorOptions,
    options: RunOptions,
) -> Result<Option<Generator>> {
    let Some(file) = &flags.draft else { return Ok(None) };
    let builder = begin(devices, cache, None)?.model(source(file)).options(options);
    Ok(Some(builder.generator(wanted).inspect_err(interrupt::note)?))
}

/// A builder with everything that flags name.
pub(crate) fn builder(devices: &DeviceFlags, modules: &ModuleFlags) -> Result<SessionBuilder> {
    builder_beside(devices, modules, None)
}

/// The same, on the device of another model, if there is one.
pub(crate) fn builder_beside(
    devices: &DeviceFlags,
    modules: &ModuleFlags,
    other: Option<&Generator>,
) -> Result<SessionBuilder> {
    if modules.modules().next().is_none() {
        return Err(Failure::Usage(
            "no user module specified; name a model or a module (.vmfb), as FILE or --module=FILE; - is standard input"
                .to_owned(),
        ));
    }
    if modules.modules().filter(|module| module.as_os_str() == "-").count() > 1 {
        return Err(Failure::Usage("--module=- can be given once: there is one standard input".to_owned()));
    }
    let mut builder = begin(devices, &modules.cache, other)?;
    if let Some(mode) = modules.module_mode {
        builder = builder.load_mode(mode.into());
    }
    if let Some(seed) = modules.seed {
        builder = builder.seed(seed);
    }
    if let Some(precision) = modules.precision {
        builder = builder.precision(precision.into());
    }
    let mut sources: Vec<Source> = modules.modules().map(source).collect();
    let main = sources.pop();
    for module in sources {
        builder = builder.import(module);
    }
    if let Some(main) = main {
        builder = builder.model(main);
    }
    for (input, output) in state::patterns(&modules.state)?.0 {
        builder = builder.state(input, output);
    }
    for (scope, path) in modules.parameters()? {
        builder = match modules.parameter_mode {
            Some(mode) => builder.parameters_with(scope, path, mode.into()),
            // For strangers the library reads them, as all else.
            None if devices.untrusted => builder.parameters(scope, path),
            None => builder.parameters_with(scope, path, LoadMode::Map),
        };
    }
    Ok(builder)
}

/// A session for files that are trusted or not, on the device of another model or those that are named, and where it keeps what it
/// compiles.
fn begin(devices: &DeviceFlags, cache: &CacheFlags, other: Option<&Generator>) -> Result<SessionBuilder> {
    let options = devices.vulkan_options()?;
    let mut drivers = Drivers::from_registry(devices.registry()?);
    let uris = devices::uris(devices, &options)?;
    if uris.is_empty() {
        drivers = drivers.options(options);
    }
    let mut builder = Session::builder().drivers(&drivers);
    if devices.untrusted {
        builder = builder.untrusted();
    }
    if let Some(cache) = cache.cache(devices.untrusted)? {
        builder = builder.cache(cache);
    }
    match other.and_then(|other| other.session().device()) {
        Some(open) => builder = builder.device(open.clone()),
        None => builder = uris.into_iter().fold(builder, SessionBuilder::device),
    }
    Ok(builder)
}

/// A file, or standard input for `-`.
pub(crate) fn source(path: &Path) -> Source {
    match path.as_os_str() == "-" {
        true => Source::reader(std::io::stdin()).named(STDIN),
        false => Source::path(path),
    }
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
        let stats = device.memory();
        eprintln!("Device: {}", device.uri());
        eprintln!(
            "  memory: {} B reserved now, {} B at most; {} B used now, {} B at most; {} allocations",
            stats.reserved, stats.peak_reserved, stats.used, stats.peak_used, stats.allocations
        );
    }
}
