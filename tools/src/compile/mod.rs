//! The tool `halite compile`, or `compile-module`: models to modules for many targets.

mod request;

use std::{
    io::Write,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use clap::Parser;
use halite::{
    ErrorKind, FunctionInfo, LoadMode, RunOptions,
    compile::{Compiled, Compiler, HalfPrecision, Model, ModelFormat, OpenOptions, PrintGraph, Target},
};
use serde_json::json;

use self::request::RequestFlags;
use crate::{
    console::{self, CommonFlags, Failure, Result, tool},
    describe,
    engine::{Code, Status},
    flags::{self, DeviceFlags, PrecisionFlag},
    interrupt::{self, Watchdog, cancel_on_interrupt},
    page, place, progress, session, state, units,
    visible::visible,
    whole,
};

const EXAMPLES: &str = "\
Examples:
  halite compile model.onnx                              model.vmfb, for any Vulkan device
  halite compile model.onnx --target=host                and with the kernels that suit the device at hand
  halite compile model.onnx --target=valhall-g78-android30 --target=adreno-unknown-android30 -o app.vmfb
  halite compile model.onnx --describe                   inputs and outputs, and what has to be given
  halite compile model.onnx --dim batch=1 --dim seq=16,64,256
  halite compile model.onnx --bound seq=128              one module for all lengths from 1 to 128
  halite compile model.onnx --split-params=weights.irpa  weights in a file of their own
  halite compile model.onnx --explain                    kernels, why they, memory, work, sizes
  halite compile model.onnx --html=page.html             the same as a page with the graph, for a browser
  halite compile model.onnx --print-graph=after:fuse-elementwise

The module runs with halite run and with iree-run-module. Targets are triples or other names of GPUs: 'halite kernels --help'.
Exit code: 0 success, 1 the model is wrong or not supported, 2 wrong usage.
";

/// Compiles a model (ONNX, ExecuTorch's .pte) to a module (.vmfb) that runs on Vulkan devices.
#[derive(Parser, Debug)]
#[command(version = console::VERSION, after_help = EXAMPLES, max_term_width = 110)]
pub struct Flags {
    /// The model: a file, or - for standard input
    #[arg(value_name = "MODEL", required_unless_present = "completions")]
    model: Option<PathBuf>,
    /// Where the module goes; - is standard output. Default: beside the model's name in the current folder, as .vmfb
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// What kernels are chosen for: a triple or another name of a GPU, or host for the device that programs here run on. May
    /// be repeated: the module runs what fits the device that it is loaded on best
    #[arg(long, value_name = "TARGET")]
    target: Vec<String>,
    /// Leaves out the kernels for every Vulkan device: the module runs on the named targets only
    #[arg(long = "no-baseline")]
    no_baseline: bool,
    #[command(flatten)]
    request: RequestFlags,
    /// Inputs that are state, and the outputs that replace them, such as past_*=present_*; what a * stands for is the same in both.
    /// auto finds pairs by their names. The module writes such outputs into the buffers of the inputs. May be repeated
    #[arg(long = "state", value_name = "INPUT=OUTPUT|auto")]
    state: Vec<String>,
    /// Function of the model that is compiled. May be repeated. Default: all
    #[arg(long = "function", value_name = "NAME")]
    function: Vec<String>,
    /// Type of floats inside: model (as the model says), f16 where kernels take it, or f32 where the model has 16 bits; inputs and outputs stay as they are
    #[arg(long, value_enum, default_value = "model", value_name = "PRECISION", hide_possible_values = true)]
    precision: PrecisionFlag,
    /// Format of the model, such as onnx or pte (ExecuTorch). Default: told by its content
    #[arg(long, value_parser = format, value_name = "FORMAT")]
    format: Option<ModelFormat>,
    /// Writes the weights to a parameter archive (.irpa) instead of into the module
    #[arg(long = "split-params", value_name = "FILE")]
    split_params: Option<PathBuf>,
    /// Scope under which the module asks for the weights
    #[arg(long = "param-scope", default_value = "model", value_name = "SCOPE")]
    scope: String,
    /// Name of the module. Default: that of the model's file
    #[arg(long = "module-name", value_name = "NAME")]
    module_name: Option<String>,
    /// Prints the inputs and outputs of the model and compiles nothing
    #[arg(long)]
    describe: bool,
    /// Prints the model's graph and compiles nothing: final (after all passes, the default), before:PASS, after:PASS, or all
    /// (as imported, and after each pass)
    #[arg(long = "print-graph", num_args = 0..=1, require_equals = true, default_missing_value = "final", value_parser = print_graph, value_name = "WHEN")]
    print_graph: Option<PrintGraph>,
    /// Prints which kernels were chosen and why, the memory plan, predicted work, and sizes
    #[arg(long)]
    explain: bool,
    /// Writes what --explain says as a page for a browser: the graph with its kernels, memory over time, sizes
    #[arg(long, value_name = "FILE", conflicts_with_all = ["describe", "print_graph"])]
    html: Option<PathBuf>,
    /// Prints one JSON object on standard output: what --explain says, and what was written
    #[arg(long)]
    json: bool,
    /// File of measurements that goes before those that ship: a path, or none. Default: this user's
    #[arg(long, value_name = "FILE|none")]
    tuning: Option<PathBuf>,
    /// Gives up after this many seconds
    #[arg(long, value_parser = flags::seconds, value_name = "SECONDS")]
    timeout: Option<Duration>,
    #[command(flatten)]
    common: CommonFlags,
    #[command(flatten)]
    devices: DeviceFlags,
}

tool!(Flags);

fn run(flags: &Flags) -> Result<()> {
    let path = flags.model.as_deref().expect("clap asks for it unless completions are wanted");
    let cancel = cancel_on_interrupt();
    let watchdog = Watchdog::start(flags.devices.time(flags.timeout));
    let options = progress::shown(watchdog.options(&cancel));
    let began = Instant::now();
    let model = open(path, flags, &options)?;
    let mut out = std::io::stdout().lock();
    if flags.describe {
        progress::clear();
        return describe::print(&functions(flags, &model)?, flags.json, &mut out);
    }
    let functions = functions(flags, &model)?;
    spare(flags, path, &[])?;
    let compiler = compiler(flags, &functions)?;
    if let Some(when) = flags.print_graph {
        write!(out, "{}", visible(&compiler.print_graph(&model, when).map_err(refused)?))?;
        return Ok(());
    }
    let compiled = compiler.compile_with(&model, &options).map_err(refused)?;
    progress::go_on("writing the module");
    if flags.precision == PrecisionFlag::F16 {
        kept_wide(&compiled);
    }
    left_out(&compiled);
    // Its weights were read by now.
    spare(flags, path, &model.files())?;
    let written = write(flags, path, &compiled)?;
    if let Some(file) = &flags.html {
        page::write(file, &page::explain(compiled.report()))?;
    }
    if flags.json {
        let report = serde_json::to_value(compiled.report()).map_err(|e| internal(&e))?;
        let files: Vec<_> =
            written.iter().map(|(file, bytes)| json!({"file": file, "bytes": bytes})).collect();
        let seconds = began.elapsed().as_secs_f64();
        writeln!(out, "{:#}", json!({"files": files, "seconds": seconds, "report": report}))?;
        return Ok(());
    }
    if flags.explain {
        write!(out, "{}", visible(&compiled.report().to_string()))?;
    }
    for (file, bytes) in &written {
        console::remark(format_args!("{file}: {}", units::bytes(*bytes)));
    }
    console::remark(format_args!("{:.2} s", began.elapsed().as_secs_f64()));
    Ok(())
}

/// Says which sizes the module does not take.
fn left_out(compiled: &Compiled) {
    // Versions are the same for all targets.
    for function in compiled.report().targets.iter().take(1).flat_map(|target| &target.functions) {
        if let Some(why) = &function.left_out {
            console::remark(format_args!(
                "'{}' takes not all sizes that were asked for: {why}",
                function.name
            ));
        }
    }
}

/// Reads the model.
fn open(path: &Path, flags: &Flags, options: &RunOptions) -> Result<Model> {
    let mut how = OpenOptions::new().options(options.clone());
    let format = flags.format;
    if flags.devices.untrusted {
        how = how.load_mode(LoadMode::Preload);
    }
    if let Some(format) = format {
        how = how.format(format);
    }
    Model::open_with(session::source(path), &how).map_err(|e| match e.kind() {
        ErrorKind::InvalidInput if e.message().contains("is a compiled module") => {
            Failure::from(e).context("'halite run' runs modules, 'halite dump' shows them")
        }
        ErrorKind::InvalidModel if format.is_none() => Failure::from(e).context("--format says which it is"),
        _ => e.into(),
    })
}

/// A format by its name on the command line.
fn format(text: &str) -> std::result::Result<ModelFormat, String> {
    ModelFormat::named(text).map_err(|e| e.to_string())
}

/// A time between passes by its name on the command line.
fn print_graph(text: &str) -> std::result::Result<PrintGraph, String> {
    text.parse().map_err(|e: <PrintGraph as std::str::FromStr>::Err| e.to_string())
}

/// The functions of the model that are wanted.
fn functions(flags: &Flags, model: &Model) -> Result<Vec<FunctionInfo>> {
    let known = model.functions()?;
    if let Some(name) = flags.function.iter().find(|name| known.iter().all(|f| f.name != **name)) {
        let all: Vec<_> = known.iter().map(|f| f.name.as_str()).collect();
        return Err(Failure::Usage(format!("--function={name}: the model has {}", all.join(", "))));
    }
    let wanted = |f: &FunctionInfo| flags.function.is_empty() || flags.function.contains(&f.name);
    Ok(known.into_iter().filter(wanted).collect())
}

fn compiler(flags: &Flags, functions: &[FunctionInfo]) -> Result<Compiler> {
    flags.request.check_names(functions)?;
    let mut compiler = Compiler::new()
        .baseline(!flags.no_baseline)
        .precision(flags.precision.into())
        .tuning(place::tuning(flags.tuning.as_deref()))
        .sizes(flags.request.sizes(functions)?);
    for name in &flags.target {
        let targets = match name.as_str() {
            "host" => place::host(&flags.devices)?,
            name => vec![Target::named(name).map_err(|e| Failure::Usage(e.message().to_owned()))?],
        };
        compiler = targets.into_iter().fold(compiler, Compiler::target);
    }
    if flags.no_baseline && flags.target.is_empty() {
        return Err(Failure::Usage(
            "--no-baseline leaves nothing to compile for; name a --target".to_owned(),
        ));
    }
    let (states, finds) = state::patterns(&flags.state)?;
    compiler =
        states.into_iter().fold(compiler, |c, (input, output)| c.state(input, output)).find_state(finds);
    for name in &flags.function {
        compiler = compiler.function(name);
    }
    if let Some(name) = &flags.module_name {
        compiler = compiler.module_name(name);
    }
    if flags.split_params.is_some() {
        compiler = compiler.external_parameters(&flags.scope);
    }
    Ok(compiler)
}

/// Writes what was compiled: name and size of each file.
fn write(flags: &Flags, path: &Path, compiled: &Compiled) -> Result<Vec<(String, u64)>> {
    let mut written = Vec::new();
    if let Some(file) = &flags.split_params {
        let Some(bytes) = compiled.parameter_bytes() else {
            return Err(Failure::Usage(format!(
                "--split-params={}: the model has no weights",
                file.display()
            )));
        };
        whole::write(file, |out| compiled.write_parameters(out))?;
        written.push((file.display().to_string(), bytes));
    }
    let output = output(flags, path);
    if output.as_os_str() == "-" {
        compiled.write(&mut std::io::stdout())?;
    } else {
        whole::write(&output, |out| compiled.write(out))?;
    }
    written.push((output.display().to_string(), compiled.byte_len()));
    Ok(written)
}

/// Says how much did not become 16 bits.
fn kept_wide(compiled: &Compiled) {
    let HalfPrecision { half, kept, .. } = compiled.half_precision();
    if kept > 0 {
        console::remark(format_args!(
            "{kept} of {} operations keep 32 bits: no kernel takes less, or a weight does not fit",
            half + kept
        ));
    }
}

/// Where the module goes.
fn output(flags: &Flags, model: &Path) -> PathBuf {
    flags.output.clone().unwrap_or_else(|| {
        let stem = model.file_stem().filter(|stem| *stem != "-").unwrap_or("module".as_ref());
        Path::new(stem).with_extension("vmfb")
    })
}

/// Refuses to put something in the place of the model and its weights, which may be the only copies, or two things in one place.
fn spare(flags: &Flags, model: &Path, beside: &[PathBuf]) -> Result<()> {
    let output = output(flags, model);
    let written: Vec<&Path> = [Some(&output), flags.split_params.as_ref(), flags.html.as_ref()]
        .into_iter()
        .flatten()
        .map(PathBuf::as_path)
        .collect();
    let twice = written.iter().enumerate().find(|(place, file)| written[..*place].contains(file));
    if let Some((_, file)) = twice {
        return Err(Failure::Usage(format!("two files would be written to '{}'", file.display())));
    }
    whole::spare(&written, std::iter::once(model).chain(beside.iter().map(PathBuf::as_path)))
}

/// The compiler's error: what is missing on the command line is wrong usage.
fn refused(error: halite::Error) -> Failure {
    interrupt::note(&error);
    match error.kind() {
        ErrorKind::InvalidInput => Failure::Usage(error.message().to_owned()),
        _ => error.into(),
    }
}

fn internal(error: &dyn std::fmt::Display) -> Failure {
    Failure::Status(Status::new(Code::Internal, error.to_string()))
}
