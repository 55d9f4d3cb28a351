//! The tool `halite dump`, or `dump-module`: shows what is in a module, VGF or GGUF file, without a device. Reading is done by
//! `halite-formats`, disassembly by `halite-vm`, facts of SPIR-V come from `halite-spirv`.

mod executables;
mod extract;
mod facts;
mod gguf;
mod outline;
mod text;
mod vgf;

use std::{
    collections::BTreeSet,
    io::{Read, Write},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use clap::{Parser, ValueEnum};
use halite::hal::{Code, ResultExt, Status, status};
use halite::{
    Source,
    compile::{Model, ModelFormat},
};
use halite_formats::vmfb::{self, Container, ModuleDef, VmfbError};

use crate::{
    console::{self, CommonFlags, Failure, Result, Tool},
    describe, text_file,
    visible::Visible,
};

const EXAMPLES: &str = "\
Examples:
  What does the module export, import and contain?
    halite dump --output=metadata model.vmfb
  The same for programs:
    halite dump --json model.vmfb
  The code of one function, with offsets:
    halite dump --output=disassembly --function=main --bytecode_offsets model.vmfb
  Its kernels, for spirv-dis and other tools:
    halite dump --spirv=kernels/ --output=metadata model.vmfb
  Resources, segments and graphs of a VGF file, and the VGF files inside of a program:
    halite dump model.vgf
    halite dump --extract=vgf model.pte
  Metadata and tensors of a language model:
    halite dump model.gguf
";

/// Prints what is in a compiled module (.vmfb) or a VGF or GGUF file (.vgf, .gguf), or what a model takes, gives and has in it (.onnx, .pte).
///
/// Takes the flags of iree-dump-module. The file is not trusted: damage is reported, never followed.
#[derive(Parser, Debug)]
#[command(version = console::VERSION, after_help = EXAMPLES, max_term_width = 110)]
pub struct Flags {
    /// Module or model file, or - for standard input
    #[arg(value_name = "FILE", required_unless_present = "completions")]
    file: Option<PathBuf>,
    /// What to print
    #[arg(long, value_enum, default_value = "all", value_name = "WHAT")]
    output: Output,
    /// Prints metadata as one JSON object; with --output=all or disassembly, code too
    #[arg(long)]
    json: bool,
    /// Indents JSON
    #[arg(long)]
    pretty: bool,
    /// Disassembles only the function with this name
    #[arg(long, value_name = "NAME")]
    function: Option<String>,
    /// Prints the offset of each instruction
    #[arg(long = "bytecode_offsets")]
    bytecode_offsets: bool,
    /// Writes the SPIR-V of each kernel into this folder, as SEGMENT_KERNEL.spv
    #[arg(long, value_name = "DIR")]
    spirv: Option<PathBuf>,
    /// Writes what the delegates of an ExecuTorch program hold into files beside each other, NAME.vgf or NAME-1.vgf, and
    /// prints their names; nothing else is printed
    #[arg(long, value_enum, value_name = "WHAT")]
    extract: Option<extract::What>,
    /// Where --extract writes: a folder. Default: the current one
    #[arg(long, value_name = "DIR", requires = "extract")]
    extract_to: Option<PathBuf>,
    #[command(flatten)]
    common: CommonFlags,
}

/// What to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Metadata and disassembly.
    All,
    /// Names, signatures, sizes, executables.
    Metadata,
    /// Code of all functions.
    Disassembly,
    /// The FlatBuffer, as it is in the file.
    #[value(alias = "flatbuffer_binary")]
    FlatbufferBinary,
    /// Metadata as JSON; the same as metadata with --json.
    #[value(alias = "flatbuffer_json")]
    FlatbufferJson,
}

/// A module file, read.
struct Input {
    file: Bytes,
    container: Container,
    module: ModuleDef,
}

impl Tool for Flags {
    fn common(&self) -> &CommonFlags {
        &self.common
    }

    fn json(&self) -> bool {
        self.json || self.output == Output::FlatbufferJson
    }

    fn run(self) -> Result<()> {
        run(&self)
    }
}

fn run(flags: &Flags) -> Result<()> {
    let path = flags.file.as_deref().expect("clap asks for it unless completions are wanted");
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let file = bytes(path)?;
    if let Some(what) = flags.extract {
        return extract::run(what, path, &file, flags.extract_to.as_deref(), &mut out);
    }
    // Names of the file are no orders to a terminal.
    let mut out: Box<dyn Write> = match flags.json() || flags.output == Output::FlatbufferBinary {
        true => Box::new(out),
        false => Box::new(Visible(out)),
    };
    if halite_formats::vgf::is_vgf(&file) {
        vgf::print(flags, path, &file, &mut *out)?;
        return Ok(out.flush()?);
    }
    if halite_formats::gguf::is_gguf(&file) {
        gguf::print(flags, path, &file, &mut *out)?;
        return Ok(out.flush()?);
    }
    if ModelFormat::detect(&file[..file.len().min(16)], path).is_some() {
        return model(flags, path, file, &mut *out);
    }
    let input = read(path, file)?;
    if let Some(folder) = &flags.spirv {
        executables::extract(&input.module, folder)?;
    }
    let code = matches!(flags.output, Output::All | Output::Disassembly);
    if flags.output == Output::FlatbufferBinary {
        out.write_all(&input.file[input.container.flatbuffer.clone()])?;
    } else if flags.json || flags.output == Output::FlatbufferJson {
        print_json(&input, flags, code, &mut *out)?;
    } else {
        if flags.output != Output::Disassembly {
            text::metadata(&facts::collect(&input.file, &input.container, &input.module), &mut *out)?;
        }
        if code {
            text::disassembly(&input.module, flags.function.as_deref(), flags.bytecode_offsets, &mut *out)?;
        }
    }
    out.flush()?;
    Ok(())
}

/// The file, or all of standard input for `-`.
fn bytes(path: &Path) -> Result<Bytes> {
    let mut bytes = Vec::new();
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().lock().read_to_end(&mut bytes),
        false => text_file::open_finite(path).and_then(|mut file| file.read_to_end(&mut bytes)),
    };
    read.map_err(|e| Failure::file("cannot read", path, &e))?;
    Ok(bytes.into())
}

/// Tells what a model takes and gives, and what is in its file where the format has parts; it has no code yet.
fn model(flags: &Flags, path: &Path, file: Bytes, out: &mut dyn Write) -> Result<()> {
    if flags.spirv.is_some() || matches!(flags.output, Output::Disassembly | Output::FlatbufferBinary) {
        let text = format!("'{}' is a model, not a module: 'halite compile' makes one of it", path.display());
        return Err(Failure::Usage(text));
    }
    // A file may have its weights beside it; a stream is what was read.
    let source =
        if path.is_file() { Source::path(path) } else { Source::bytes(file).named("standard input") };
    let model = Model::open(source)?;
    let functions = model.functions()?;
    match model.outline() {
        Some(outline) if flags.json() => {
            let mut all = describe::json(&functions);
            all["outline"] = serde_json::to_value(&outline).map_err(std::io::Error::from)?;
            writeln!(out, "{all:#}")?;
        }
        outline => {
            describe::print(&functions, flags.json(), out)?;
            outline.map_or(Ok(()), |outline| outline::print(&outline, out))?;
        }
    }
    Ok(out.flush()?)
}

fn read(path: &Path, file: Bytes) -> Result<Input> {
    let fail = |e: VmfbError| {
        let code = if e.is_incompatible() { Code::Incompatible } else { Code::InvalidArgument };
        Failure::Status(
            Status::new(code, e.to_string()).annotate(format!("reading module '{}'", path.display())),
        )
    };
    let container = Container::parse(&file).map_err(|error| match fail(error) {
        // It may be something else altogether.
        Failure::Status(status) => {
            let others = ModelFormat::all().flat_map(ModelFormat::extensions);
            let others: Vec<_> = others.map(|extension| format!(".{extension}")).collect();
            Failure::Status(status.annotate(format!("other files that are read: {}", others.join(", "))))
        }
        other => other,
    })?;
    let module = vmfb::read_module(file.clone()).map_err(fail)?;
    Ok(Input { file, container, module })
}

fn print_json(input: &Input, flags: &Flags, code: bool, out: &mut dyn Write) -> Result<()> {
    let mut facts = facts::collect(&input.file, &input.container, &input.module);
    if code {
        facts.disassembly = Some(facts::disassembly(&input.module, flags.function.as_deref())?);
    }
    let text =
        if flags.pretty { serde_json::to_string_pretty(&facts) } else { serde_json::to_string(&facts) };
    writeln!(out, "{}", text.map_err(std::io::Error::from)?)?;
    Ok(())
}

/// The ordinals to disassemble: all, or those with a name.
fn selected(module: &ModuleDef, name: Option<&str>) -> halite::hal::Result<Vec<u32>> {
    let count = u32::try_from(module.functions.len()).unwrap_or(u32::MAX);
    let Some(name) = name.filter(|n| !n.is_empty()) else { return Ok((0..count).collect()) };
    let exported = module.exports.iter().filter(|e| e.local_name == name).map(|e| e.ordinal);
    let mut found: Vec<u32> =
        exported.chain((0..count).filter(|i| module.function_name(*i) == name)).collect();
    found.sort_unstable();
    found.dedup();
    if found.is_empty() {
        let names: BTreeSet<_> = (0..count).map(|i| module.function_name(i)).collect();
        let names: Vec<_> = names.into_iter().collect();
        return Err(status!(NotFound, "no function '{name}'; functions: {}", names.join(", ")))
            .context(|| "disassembling");
    }
    Ok(found)
}
