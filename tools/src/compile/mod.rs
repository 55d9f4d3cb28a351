//! The `compile-module` tool: models to modules for many targets. Does not own: compiling (`halite-compiler`).

pub(crate) mod request;

use std::{
    fs,
    io::{BufWriter, Read, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Instant,
};

use clap::{Parser, ValueEnum};
use halite_compiler::{
    CompileError, CompileOptions, Compiled, Control, Model, ModelFormat, ParameterStorage, Precision,
    Program, compile, signature::Signature,
};
use halite_runtime::LoadMode;
use halite_status::{Code, Status};
use halite_targets::Capabilities;
use serde_json::json;

use self::request::RequestFlags;
use crate::{
    console::{self, Failure, Result},
    flags::DeviceFlags,
    place, units,
};

const NAME: &str = "compile-module";

const EXAMPLES: &str = "\
Examples:
  compile-module model.onnx                              model.vmfb, for any Vulkan device
  compile-module model.onnx --target=host                and with the kernels that suit the device at hand
  compile-module model.onnx --target=valhall-g78-android30 --target=adreno-unknown-android30 -o app.vmfb
  compile-module model.onnx --describe                   inputs and outputs, and what has to be given
  compile-module model.onnx --dim batch=1 --dim seq=16,64,256
  compile-module model.onnx --bound seq=128              one module for all lengths from 1 to 128
  compile-module model.onnx --split-params=weights.irpa  weights in a file of their own
  compile-module model.onnx --explain                    kernels, why they, memory, work, sizes

The module runs with run-module and with iree-run-module. Targets are triples or other names of GPUs: 'kernels --help'.
Exit code: 0 success, 1 the model is wrong or not supported, 2 wrong usage.
";

/// Compiles a model (ONNX, ExecuTorch's .pte) to a module (.vmfb) that runs on Vulkan devices.
#[derive(Parser, Debug)]
#[command(name = NAME, version = console::VERSION, after_help = EXAMPLES, max_term_width = 110)]
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
    #[arg(long = "no-baseline", num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", hide_default_value = true, hide_possible_values = true, value_name = "BOOL")]
    no_baseline: bool,
    #[command(flatten)]
    request: RequestFlags,
    /// What becomes of an operation that no kernel of a target can run, which only limits of a device bring about, such as a
    /// weight larger than one binding: error (refused, with its place and the limit), or cpu, which computes such operations on
    /// the processor where there is code for it; so far there is for none
    #[arg(long, value_enum, default_value = "error", value_name = "cpu|error", hide_possible_values = true)]
    fallback: FallbackFlag,
    /// Function of the model that is compiled. May be repeated. Default: all
    #[arg(long = "function", value_name = "NAME")]
    function: Vec<String>,
    /// Type of floats inside: model (as the model says), or f16 where kernels take it; inputs and outputs stay as they are
    #[arg(long, value_enum, default_value = "model", value_name = "PRECISION", hide_possible_values = true)]
    precision: PrecisionFlag,
    /// Format of the model: onnx, or pte (ExecuTorch). Default: told by its content
    #[arg(long, value_enum, value_name = "FORMAT", hide_possible_values = true)]
    format: Option<FormatFlag>,
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
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", hide_default_value = true, hide_possible_values = true, value_name = "BOOL")]
    describe: bool,
    /// Prints the model as operations of the kernel library, after all passes, and compiles nothing
    #[arg(long = "print-graph", num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", hide_default_value = true, hide_possible_values = true, value_name = "BOOL")]
    print_graph: bool,
    /// Prints which kernels were chosen and why, the memory plan, predicted work, and sizes
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", hide_default_value = true, hide_possible_values = true, value_name = "BOOL")]
    explain: bool,
    /// Prints one JSON object on standard output: what --explain says, and what was written
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", hide_default_value = true, hide_possible_values = true, value_name = "BOOL")]
    json: bool,
    /// File of measurements that goes before those that ship: a path, or none. Default: this user's
    #[arg(long, value_name = "FILE|none")]
    tuning: Option<PathBuf>,
    /// Prints nothing but errors
    #[arg(short, long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", hide_default_value = true, hide_possible_values = true, value_name = "BOOL")]
    quiet: bool,
    /// Prints the completion script for a shell
    #[arg(long, value_name = "SHELL")]
    completions: Option<clap_complete::Shell>,
    #[command(flatten)]
    devices: DeviceFlags,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FallbackFlag {
    Cpu,
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PrecisionFlag {
    #[value(alias = "f32")]
    Model,
    F16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FormatFlag {
    Onnx,
    Pte,
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
    let path = flags.model.clone().expect("clap asks for it unless completions are wanted");
    let outcome = work(&flags, &path);
    match outcome {
        Err(Failure::Status(status)) if flags.json => {
            let error = json!({"code": status.code().name(), "message": status.message()});
            writeln!(std::io::stdout(), "{}", json!({"error": error}))?;
            Err(Failure::Reported)
        }
        other => other,
    }
}

fn work(flags: &Flags, path: &Path) -> Result<()> {
    let model = open(path, flags.format)?;
    let functions = functions(flags, &model)?;
    let mut out = std::io::stdout().lock();
    if flags.describe {
        return describe(flags, &model, &functions, &mut out);
    }
    let began = Instant::now();
    let program = program(flags, &model, &functions)?;
    let imported = began.elapsed();
    if flags.print_graph {
        for function in &program.functions {
            for graph in &function.versions {
                writeln!(out, "function {}\n{graph}", function.name)?;
            }
        }
        return Ok(());
    }
    let options = options(flags, path)?;
    let compiled = compile(&program, &options, &progress(flags)).map_err(|e| refused(flags, &e))?;
    let written = write(flags, path, &compiled)?;
    if flags.json {
        let report = serde_json::to_value(&compiled.report).map_err(|e| internal(&e))?;
        let files: Vec<_> =
            written.iter().map(|(file, bytes)| json!({"file": file, "bytes": bytes})).collect();
        let seconds = began.elapsed().as_secs_f64();
        writeln!(out, "{:#}", json!({"files": files, "seconds": seconds, "report": report}))?;
        return Ok(());
    }
    if flags.explain {
        write!(out, "{}", compiled.report)?;
    }
    if !flags.quiet {
        for (file, bytes) in &written {
            eprintln!("{NAME}: {file}: {}", units::bytes(*bytes));
        }
        let total = began.elapsed();
        eprintln!(
            "{NAME}: {:.2} s, {:.2} s of them for reading and rewriting the model",
            total.as_secs_f64(),
            imported.as_secs_f64()
        );
    }
    Ok(())
}

/// Reads the model.
fn open(path: &Path, format: Option<FormatFlag>) -> Result<Model> {
    let format = format.map(|format| match format {
        FormatFlag::Onnx => ModelFormat::Onnx,
        FormatFlag::Pte => ModelFormat::Pte,
    });
    if path.as_os_str() == "-" {
        let bytes = crate::load::read_stdin()?;
        let format =
            format.or_else(|| ModelFormat::detect(&bytes, path)).ok_or_else(|| unknown(path, &bytes))?;
        return Model::from_bytes(bytes.into(), format, &Control::default()).map_err(|e| failure(&e));
    }
    let format = match format {
        Some(format) => format,
        None => {
            let start = start(path)?;
            ModelFormat::detect(&start, path).ok_or_else(|| unknown(path, &start))?
        }
    };
    read(path, format, LoadMode::Map)
}

/// Reads a model; mapped, its weights go from there to the module's file without a copy in memory.
pub(crate) fn read(path: &Path, format: ModelFormat, mode: LoadMode) -> Result<Model> {
    let load = move |path: &Path| mode.load(path);
    Model::open_with(path, format, Arc::new(load), &Control::default()).map_err(|e| failure(&e))
}

/// The format of a model file; `None` for what is none, such as a module.
pub(crate) fn detect(path: &Path) -> Result<Option<ModelFormat>> {
    Ok(ModelFormat::detect(&start(path)?, path))
}

/// The first bytes of a file, by which formats are told.
fn start(path: &Path) -> Result<Vec<u8>> {
    let mut start = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(16).read_to_end(&mut start));
    read.map_err(|e| Failure::file("cannot read", path, &e))?;
    Ok(start)
}

fn unknown(path: &Path, start: &[u8]) -> Failure {
    if ModelFormat::is_module(start) {
        let text = format!("'{}' is a compiled module, not a model; run-module runs it", path.display());
        return Failure::Status(Status::new(Code::InvalidArgument, text));
    }
    let known: Vec<_> = ModelFormat::ALL.iter().map(|format| format.name()).collect();
    let text = format!(
        "'{}' is no model of a format that is known ({}); --format says which it is",
        path.display(),
        known.join(", ")
    );
    Failure::Status(Status::new(Code::InvalidArgument, text))
}

fn functions(flags: &Flags, model: &Model) -> Result<Vec<String>> {
    let known = model.functions();
    if let Some(name) = flags.function.iter().find(|name| !known.contains(name)) {
        return Err(Failure::Usage(format!("--function={name}: the model has {}", known.join(", "))));
    }
    Ok(if flags.function.is_empty() { known } else { flags.function.clone() })
}

fn describe(flags: &Flags, model: &Model, functions: &[String], out: &mut dyn Write) -> Result<()> {
    let of = |signature: &Signature| {
        json!({
            "name": signature.name,
            "element_type": signature.element.map(|element| element.to_string()),
            "dims": signature.dims.as_ref().map(|dims| dims.iter().map(ToString::to_string).collect::<Vec<_>>()),
        })
    };
    let mut all = Vec::new();
    for name in functions {
        let inputs = model.inputs(name).map_err(|e| failure(&e))?;
        let outputs = model.outputs(name).map_err(|e| failure(&e))?;
        if flags.json {
            let (inputs, outputs): (Vec<_>, Vec<_>) =
                (inputs.iter().map(of).collect(), outputs.iter().map(of).collect());
            all.push(json!({"function": name, "inputs": inputs, "outputs": outputs}));
        } else {
            writeln!(out, "function {name}")?;
            inputs.iter().try_for_each(|input| writeln!(out, "  input  {input}"))?;
            outputs.iter().try_for_each(|output| writeln!(out, "  output {output}"))?;
        }
    }
    if flags.json {
        writeln!(out, "{:#}", json!({"functions": all}))?;
    }
    Ok(())
}

fn program(flags: &Flags, model: &Model, functions: &[String]) -> Result<Program> {
    let versions = flags.request.versions()?;
    let precision = match flags.precision {
        PrecisionFlag::Model => Precision::Model,
        PrecisionFlag::F16 => Precision::F16,
    };
    let mut program = Program { model: Some(model.info()), ..Program::default() };
    for name in functions {
        let (function, halved) =
            model.function(name, &versions, precision, &progress(flags)).map_err(|e| failure(&e))?;
        if precision == Precision::F16 && halved.kept > 0 && !flags.quiet {
            eprintln!(
                "{NAME}: {} of {} operations of '{name}' keep 32 bits: no kernel takes less, or a weight does not fit",
                halved.kept,
                halved.kept + halved.halved
            );
        }
        program.functions.push(function);
    }
    Ok(program)
}

fn options(flags: &Flags, path: &Path) -> Result<CompileOptions> {
    let mut targets: Vec<Capabilities> = Vec::new();
    for name in &flags.target {
        if name == "host" {
            targets.extend(place::at_hand(&flags.devices)?.into_iter().map(|place| place.capabilities));
        } else {
            targets.push(place::Place::of_triple(name)?.capabilities);
        }
    }
    if flags.no_baseline && targets.is_empty() {
        return Err(Failure::Usage(
            "--no-baseline leaves nothing to compile for; name a --target".to_owned(),
        ));
    }
    let stem = path.file_stem().and_then(|stem| stem.to_str()).filter(|stem| *stem != "-");
    let parameters = match &flags.split_params {
        Some(_) => ParameterStorage::External { scope: flags.scope.clone() },
        None => ParameterStorage::Embedded,
    };
    Ok(CompileOptions {
        targets,
        baseline: !flags.no_baseline,
        tuning: place::tuning(flags.tuning.as_deref())?.tuning(),
        module_name: flags.module_name.clone().unwrap_or_else(|| identifier(stem.unwrap_or("module"))),
        parameters,
    })
}

/// A name as modules have them.
fn identifier(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
    let name: String = text.chars().map(plain).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

/// Stages on standard error, where somebody looks at it.
fn progress(flags: &Flags) -> Control {
    use std::io::IsTerminal;
    if flags.quiet || !std::io::stderr().is_terminal() {
        return Control::default();
    }
    Control::default().with_progress(|progress| {
        let end = if progress.done >= progress.total { "\r\x1b[K" } else { "" };
        eprint!("\r\x1b[K{NAME}: {} {}/{}{end}", progress.stage, progress.done, progress.total);
    })
}

/// Writes what was compiled: name and size of each file.
fn write(flags: &Flags, path: &Path, compiled: &Compiled) -> Result<Vec<(String, u64)>> {
    let mut written = Vec::new();
    if let Some(file) = &flags.split_params {
        let Some(archive) = &compiled.parameters else {
            return Err(Failure::Usage(format!(
                "--split-params={}: the model has no weights",
                file.display()
            )));
        };
        replace(file, |out| archive.write(out))?;
        written.push((file.display().to_string(), archive.entries.iter().map(|(_, b)| b.len() as u64).sum()));
    }
    let output = flags.output.clone().unwrap_or_else(|| {
        let stem = path.file_stem().filter(|stem| *stem != "-").unwrap_or("module".as_ref());
        Path::new(stem).with_extension("vmfb")
    });
    if output.as_os_str() == "-" {
        compiled.module.write(&mut std::io::stdout())?;
    } else {
        replace(&output, |out| compiled.module.write(out))?;
    }
    written.push((output.display().to_string(), compiled.module.len()));
    Ok(written)
}

/// Writes a file as a whole or not at all: whoever reads meanwhile sees the old one. What is there and no plain file, such as a
/// pipe or /dev/null, is written into: a file in its place would be another thing.
pub(crate) fn replace(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<&fs::File>) -> std::io::Result<()>,
) -> Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let failed = |e: std::io::Error| Failure::file("cannot write", path, &e);
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        let file = fs::File::options().write(true).open(path).map_err(failed)?;
        let mut out = BufWriter::new(&file);
        return fill(&mut out).and_then(|()| out.flush()).map_err(failed);
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".halite-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // As any file that a program makes; the user's mask applies.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let file = builder.tempfile_in(folder).map_err(failed)?;
    let mut out = BufWriter::new(file.as_file());
    fill(&mut out).and_then(|()| out.flush()).map_err(failed)?;
    drop(out);
    file.persist(path).map_err(|e| failed(e.error))?;
    Ok(())
}

/// The compiler's error, and for an operation without a kernel what can be done.
fn refused(flags: &Flags, error: &CompileError) -> Failure {
    match (error, flags.fallback) {
        (CompileError::NoKernel { .. }, FallbackFlag::Cpu) => Failure::Status(Status::new(
            Code::Unimplemented,
            format!(
                "{error}; --fallback=cpu does not help here, as modules have no code for the processor: leave the target out, \
                 or make the tensor smaller (--precision=f16 halves it)"
            ),
        )),
        _ => failure(error),
    }
}

/// The compiler's error as the tools report it.
pub(crate) fn failure(error: &CompileError) -> Failure {
    let code = match error {
        unsupported if unsupported.is_unsupported() => Code::Unimplemented,
        CompileError::Cancelled { .. } => Code::Cancelled,
        CompileError::DeadlineExceeded { .. } => Code::DeadlineExceeded,
        CompileError::Io { .. } => Code::NotFound,
        CompileError::Write(_) => Code::ResourceExhausted,
        CompileError::Request(text) => return Failure::Usage(text.clone()),
        _ => Code::InvalidArgument,
    };
    Failure::Status(Status::new(code, error.to_string()))
}

fn internal(error: &dyn std::fmt::Display) -> Failure {
    Failure::Status(Status::new(Code::Internal, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_is_consistent() {
        <Flags as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    #[cfg(unix)]
    fn what_is_no_plain_file_stays_what_it_is() {
        use std::os::unix::net::UnixDatagram;

        // A socket stands for all of them: it cannot be opened, so the error shows that nothing was put in its place.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let _socket = UnixDatagram::bind(&path).unwrap();
        assert!(replace(&path, |out| out.write_all(b"module")).is_err());
        assert!(!fs::symlink_metadata(&path).unwrap().is_file());
        let plain = folder.path().join("module.vmfb");
        for text in ["one", "other"] {
            replace(&plain, |out| out.write_all(text.as_bytes())).unwrap();
            assert_eq!(fs::read_to_string(&plain).unwrap(), text);
        }
    }

    #[test]
    fn names_of_modules_are_identifiers() {
        assert_eq!(identifier("mobilenet-v2.int8"), "mobilenet_v2_int8");
        assert_eq!(identifier("3d"), "_3d");
    }
}
