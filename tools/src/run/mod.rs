//! The tool `halite run`, or `run-module`: loads modules, calls one function, prints, writes or checks its results.
//! `values` has the text form of values.

mod expect;
mod output;
mod top;

use std::{io::Write, path::Path, time::Duration};

use clap::Parser;
use halite::{FunctionInfo, Session};
use serde_json::json;

use crate::{
    console::{self, CommonFlags, Failure, Result, tool},
    devices,
    flags::{self, CompareFlags, DeviceFlags, InputFlags, ModuleFlags},
    foreign,
    interrupt::{self, Watchdog, cancel_on_interrupt},
    logger,
    ports::Port,
    progress, session,
    state::{self, StateFlags},
    values,
    visible::visible,
    whole,
};

use self::{
    output::{Plan, Results},
    top::{Ranking, Top, TopFlags},
};

const EXAMPLES: &str = "\
Examples:
  Call the only function of a module with a tensor of ones, on the best device:
    halite run --module=model.vmfb --input=1x224x224x3xf32=1
  Choose device, function and inputs from files, write the result as .npy:
    halite run --device=vulkan://0 --module=model.vmfb --function=main \\
        --input=@image.npy --input=4xi32=1,2,3,4 --output=@result.npy
  Check a result against expected values:
    halite run --module=model.vmfb --input=@in.npy --expected_output=@out.npy --expected_f32_threshold=1e-3
  A picture and the names of the classes:
    halite run mobilenet.onnx --input=@cat.jpg --labels=imagenet.txt --top=3
  Inputs by name, all results into an archive:
    halite run model.onnx --input=ids=@ids.npy --input=mask=1x16xi64=1 --output=@all.npz
  Give a module its weights:
    halite run --module=model.vmfb --parameters=model=weights.safetensors --input=@tokens.npy
  See what is there:
    halite run --list_devices

Exit status: 0 success, 1 failure or a result that is not as expected, 2 wrong usage.
HALITE_LOG=off|error|warn|info|debug|trace sets what is logged to standard error.
";

/// Runs a model (.onnx, .pte) or a function of compiled modules (.vmfb) on a device.
///
/// Takes the flags of iree-run-module and prints what it prints. Names of flags may be written with dashes or
/// underscores; --flagfile=FILE reads flags from a file, one per line.
#[derive(Parser, Debug)]
#[command(version = console::VERSION, after_help = EXAMPLES, after_long_help = long_help(), max_term_width = 110)]
pub struct Flags {
    #[command(flatten)]
    modules: ModuleFlags,
    #[command(flatten)]
    inputs: InputFlags,
    /// What to do with a result: NAME=WHERE for the result of that name, or WHERE for the next one that none names. - prints
    /// it, @FILE.npy or +FILE.npy writes or appends an array, @FILE.png or .jpg a picture, @FILE or +FILE raw bytes, no text at
    /// all drops it; @FILE.npz takes all results that nothing else names. Default: all are printed
    #[arg(
        long = "output",
        value_name = "WHERE",
        help_heading = "Inputs and outputs",
        allow_hyphen_values = true
    )]
    output: Vec<String>,
    /// Elements of a tensor that are printed at most
    #[arg(
        long = "output_max_element_count",
        default_value = "1024",
        value_name = "N",
        help_heading = "Inputs and outputs"
    )]
    max_elements: u64,
    #[command(flatten)]
    top: TopFlags,
    #[command(flatten)]
    state: StateFlags,
    #[command(flatten)]
    compare: CompareFlags,
    #[command(flatten)]
    devices: DeviceFlags,
    /// Gives up after this many seconds
    #[arg(long, value_parser = flags::seconds, value_name = "SECONDS", help_heading = "General")]
    timeout: Option<Duration>,
    /// Prints results as one JSON object on standard output, errors included
    #[arg(long, help_heading = "General")]
    json: bool,
    /// Prints memory statistics of the devices to standard error
    #[arg(long = "print_statistics", visible_alias = "print_device_statistics", help_heading = "General")]
    print_statistics: bool,
    #[command(flatten)]
    common: CommonFlags,
}

fn long_help() -> String {
    format!("{EXAMPLES}\n{}", foreign::help_text())
}

tool!(Flags);

fn run(flags: &Flags) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if devices::answer_queries(&flags.devices, &mut out)? {
        return Ok(());
    }
    if !flags.output.is_empty() && !flags.compare.expected_output.is_empty() {
        let text = "--output and --expected_output exclude each other: results are either written or checked";
        return Err(Failure::Usage(text.to_owned()));
    }
    if !flags.compare.expected_output.is_empty() && flags.top.read()?.is_some() {
        return Err(Failure::Usage(
            "--top and --labels show results, --expected_output checks them".to_owned(),
        ));
    }
    execute(flags, &mut out)
}

fn execute(flags: &Flags, out: &mut dyn Write) -> Result<()> {
    let cancel = cancel_on_interrupt();
    // All that is read counts: any file may be a pipe.
    let watchdog = Watchdog::start(flags.devices.time(flags.timeout));
    let top = flags.top.read()?;
    let options = progress::shown(watchdog.options(&cancel));
    let builder = session::builder(&flags.devices, &flags.modules)?;
    let session = builder.options(options.clone()).build().inspect_err(interrupt::note)?;
    let function = match flags.modules.function() {
        Some(name) => session.function(name)?,
        None => session.default_function()?,
    };
    progress::go_on("reading inputs");
    let info = match flags.state.is_used() {
        true => state::without_state(function.info()),
        false => function.info().clone(),
    };
    let inputs = values::read_inputs(&info, &flags.inputs)?;
    if !flags.json && !logger::is_quiet() {
        writeln!(out, "EXEC @{}", visible(function.name()))?;
        out.flush()?;
    }
    let outputs = Port::outputs(&info);
    let plan = Plan::new(&flags.output, &outputs)?;
    let parameters = flags.modules.parameters()?;
    let read = flags.modules.modules().chain(parameters.iter().map(|(_, file)| Path::new(file)));
    whole::spare(&plan.files(), read)?;
    values::check_count(&info, inputs.len())?;
    let results = {
        // They are gone behind the call: inputs that live on would count as memory in use.
        let inputs = values::upload(session.device(), &inputs)?;
        match flags.state.is_used() {
            true => flags.state.call(&function, inputs, &options)?,
            false => function.run_with(inputs, &options).inspect_err(interrupt::note)?,
        }
    };
    progress::go_on("writing results");
    let results = Results::new(&outputs, results.into_values(), info.module.is_empty());
    let done = Done { session: &session, info: &info, results: &results };
    let outcome = finish(flags, &done, &plan, top.as_ref(), out).map_err(|failure| {
        failure
            .context("processing function outputs")
            .context(format!("`{}`", values::describe(function.info())))
    });
    if flags.print_statistics {
        session::print_statistics(&session);
    }
    outcome?;
    session::check_validation().map_err(|failure| if flags.json { failure.beside_results() } else { failure })
}

/// A call and what came of it.
struct Done<'a> {
    session: &'a Session,
    info: &'a FunctionInfo,
    results: &'a Results,
}

fn finish(flags: &Flags, done: &Done<'_>, plan: &Plan, top: Option<&Top>, out: &mut dyn Write) -> Result<()> {
    if !flags.compare.expected_output.is_empty() {
        let report = expect::check(&done.results.ports, &done.results.values, &flags.compare)?;
        return expect::print(&report, flags.json, flags.max_elements, out);
    }
    let ranking = top.map(|top| top.rank(&done.results.values)).transpose()?;
    if flags.json {
        return print_json(flags, done, plan, ranking.as_ref(), out);
    }
    let name = |index: usize| {
        let name = done.results.ports.get(index).and_then(Port::own_name);
        name.map(|name| format!(" '{}'", visible(name))).unwrap_or_default()
    };
    let ranked = |index: usize| ranking.as_ref().filter(|ranking| ranking.result == index);
    if !flags.output.is_empty() {
        plan.write(done.results, flags.max_elements, out)?;
    }
    for (i, value) in done.results.values.iter().enumerate() {
        match ranked(i) {
            Some(ranking) => {
                write!(out, "result[{i}]{}: ", name(i))?;
                ranking.print(out)?;
            }
            None if flags.output.is_empty() => {
                write!(out, "result[{i}]{}: ", name(i))?;
                values::print(out, value, flags.max_elements)?;
            }
            None => {}
        }
    }
    if flags.output.is_empty() {
        for name in done.results.empty_lists() {
            writeln!(out, "result '{}': a list without tensors", visible(name))?;
        }
    }
    Ok(())
}

fn print_json(
    flags: &Flags,
    done: &Done<'_>,
    plan: &Plan,
    ranking: Option<&Ranking>,
    out: &mut dyn Write,
) -> Result<()> {
    // Files are still written; the object says what was computed.
    if !flags.output.is_empty() {
        plan.write(done.results, flags.max_elements, &mut std::io::sink())?;
    }
    let mut values = Vec::with_capacity(done.results.values.len());
    for (i, value) in done.results.values.iter().enumerate() {
        let mut object = values::to_json(value, flags.max_elements)?;
        if let Some(name) = done.results.ports.get(i).and_then(Port::own_name) {
            object["name"] = name.into();
        }
        values.push(object);
    }
    let info = done.info;
    let devices: Vec<_> = done.session.devices().iter().map(halite::Device::uri).collect();
    let mut object = json!({
        "function": info.full_name(),
        "declaration": info.declaration,
        "devices": devices,
        "results": values,
    });
    if let Some(ranking) = ranking {
        object["top"] = ranking.to_json();
    }
    let empty: Vec<_> = done.results.empty_lists().collect();
    if !empty.is_empty() {
        object["empty_lists"] = empty.into();
    }
    writeln!(out, "{object}")?;
    Ok(())
}
