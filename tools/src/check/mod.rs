//! The tool `halite check`: whether a device computes a model right, node by node, against the operations' references on the host and
//! against what another runtime recorded.

mod report;

use std::{path::PathBuf, time::Duration};

use clap::Parser;
use halite::{
    Drivers, LoadMode, Tensor,
    compile::{Checker, Model, OpenOptions},
};

use crate::{
    console::{self, CommonFlags, Failure, Result, tool},
    devices,
    flags::{self, DeviceFlags, InputFlags, PrecisionFlag},
    inputs::made_up,
    interrupt::{self, Watchdog, cancel_on_interrupt},
    npz, session, values,
};

const EXAMPLES: &str = "\
Examples:
  Every operation of a model on the best Vulkan device against its reference on the host:
    halite check model.onnx --input=@image.npy
  The same with inputs that are made up, where all sizes are fixed:
    halite check model.onnx
  On another device, three runs that must give the same bits:
    halite check model.onnx --input=@image.npy --device=vulkan://llvmpipe --runs=3
  Against values that another runtime recorded, by tensor name:
    halite check model.onnx --input=@image.npy --recorded=onnxruntime.npz

Each node is compared with its reference on the very values that the device computed before it, so the first wrong node is the
one that is wrong, and not one that got wrong values. Exit status: 0 when nothing is wrong, 1 otherwise, 2 wrong usage.
";

/// Checks a model on a device, node by node.
#[derive(Parser, Debug)]
#[command(version = console::VERSION, after_help = EXAMPLES, max_term_width = 110)]
pub struct Flags {
    /// Model (.onnx, .pte)
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Function to check. Default: the first
    #[arg(long, value_name = "NAME")]
    function: Option<String>,
    /// Floats inside: those of the model, f16 where kernels take them, or f32 where the model has 16 bits
    #[arg(long, value_enum, default_value = "model", value_name = "FLOATS")]
    precision: PrecisionFlag,
    /// How often the model runs; all runs must give the same bits
    #[arg(long, default_value = "2", value_parser = clap::value_parser!(u32).range(1..=10_000), value_name = "N")]
    runs: u32,
    /// Archive (.npz) of tensors that another runtime computed of the same inputs, by their names in the model. May be repeated
    #[arg(long, value_name = "FILE")]
    recorded: Vec<PathBuf>,
    /// How far recorded values may be off beside what --relative allows
    #[arg(long, default_value = "0.0001", value_parser = flags::not_negative, value_name = "X")]
    absolute: f64,
    /// How far recorded values may be off for their size
    #[arg(long, default_value = "0.001", value_parser = flags::not_negative, value_name = "X")]
    relative: f64,
    /// Lists every node, not only those that are wrong
    #[arg(long)]
    all: bool,
    /// Prints the report as one JSON object on standard output, errors included
    #[arg(long)]
    json: bool,
    /// Gives up after this many seconds
    #[arg(long, value_parser = flags::seconds, value_name = "SECONDS")]
    timeout: Option<Duration>,
    #[command(flatten)]
    inputs: InputFlags,
    #[command(flatten)]
    devices: DeviceFlags,
    #[command(flatten)]
    common: CommonFlags,
}

tool!(Flags);

fn run(flags: &Flags) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if devices::answer_queries(&flags.devices, &mut out)? {
        return Ok(());
    }
    let (cancel, watchdog) = (cancel_on_interrupt(), Watchdog::start(flags.devices.time(flags.timeout)));
    let options = watchdog.options(&cancel);
    let mut how = OpenOptions::new().options(options.clone());
    if flags.devices.untrusted {
        how = how.load_mode(LoadMode::Preload);
    }
    let model = Model::open_with(session::source(&flags.model), &how)?;
    let functions = model.functions()?;
    let info = match &flags.function {
        Some(name) => functions.iter().find(|info| info.name == *name),
        None => functions.first(),
    };
    let info = info.ok_or_else(|| {
        let names: Vec<_> = functions.iter().map(|info| info.name.as_str()).collect();
        Failure::Usage(format!("the model has no such function; it has {}", names.join(", ")))
    })?;
    let device = device(flags)?;
    let on_host = made_up::read(info, &flags.inputs)?;
    values::check_count(info, on_host.len())?;
    made_up::tell(info, &flags.inputs);
    let mut checker =
        Checker::new().runs(flags.runs as usize).function(&info.name).precision(flags.precision.into());
    checker = checker.tolerance(flags.absolute, flags.relative);
    for path in &flags.recorded {
        for (name, array) in npz::read(path)? {
            checker = checker.recorded(name, Tensor::from(array));
        }
    }
    let inputs = values::upload(None, &on_host)?;
    let report = checker.check_with(&model, &device, inputs, &options).inspect_err(interrupt::note)?;
    let device = format!("{} ({})", device.uri(), device.info().name());
    let written = match flags.json {
        true => report::write_json(&report, &device, &mut out),
        false => report::write_text(&report, &device, flags.all, &mut out),
    };
    session::check_validation()?;
    console::verdict(written, report.is_right())
}

/// The device that was named, or the best Vulkan device.
fn device(flags: &Flags) -> Result<halite::Device> {
    let options = flags.devices.vulkan_options()?;
    let drivers = Drivers::from_registry(flags.devices.registry()?);
    let uris = devices::uris(&flags.devices, &options)?;
    match &uris[..] {
        [] => {
            let uri = devices::with_options(flags::VULKAN, &options)?;
            let uri = if flags.devices.untrusted { devices::for_strangers(&uri)? } else { uri };
            Ok(drivers.open(&uri)?)
        }
        [uri] => Ok(drivers.open(uri)?),
        _ => Err(Failure::Usage(format!("a check runs on one device; {} were named", uris.len()))),
    }
}
