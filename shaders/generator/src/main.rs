//! Compiles the kernel templates: every build of `ops/*/builds.json` becomes `spirv/<name>.spv`, with `<name>.hash` beside
//! it, which tells what it was made from. Only what changed is compiled. Run it through `cargo xtask shaders`.

#[path = "../../src/expand/mod.rs"]
mod expand;
mod sources;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow, bail};
use glslang::{
    Compiler, CompilerOptions, ShaderInput, ShaderMessage, ShaderSource, ShaderStage, SourceLanguage,
    SpirvVersion, Target, VulkanVersion,
    include::{IncludeHandler, IncludeResult, IncludeType},
};
use sources::{Build, Library};

/// What to do.
struct Options {
    /// Compile everything, write nothing, and tell what differs.
    check: bool,
    /// Print the builds instead of compiling them.
    list: bool,
    /// The folder `shaders`.
    root: PathBuf,
    /// Only builds whose name contains this.
    only: Option<String>,
}

impl Options {
    fn read() -> Result<Options> {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut options = Options { check: false, list: false, root, only: None };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--check" => options.check = true,
                "--list" => options.list = true,
                "--root" => options.root = arguments.next().context("--root needs a folder")?.into(),
                "--only" => options.only = Some(arguments.next().context("--only needs a part of a name")?),
                other => bail!(
                    "unknown argument '{other}'; there are: --check, --list, --root DIR, --only PART-OF-NAME"
                ),
            }
        }
        Ok(options)
    }
}

fn main() -> Result<()> {
    let options = Options::read()?;
    let library = Library::open(options.root)?;
    let builds = library.builds()?;
    let variants = library.variants(&builds)?;
    let asked = |build: &Build| options.only.as_ref().is_none_or(|part| build.name.contains(part.as_str()));
    let chosen: Vec<_> = builds.iter().filter(|(_, build)| asked(build)).collect();
    if options.list {
        chosen.iter().for_each(|(folder, build)| println!("{}", described(folder, build)));
        return Ok(());
    }
    let (mut made, mut differ) = (Vec::new(), Vec::new());
    for (folder, build) in &chosen {
        let hash = library.hash(folder, build)?;
        let current = fs::read_to_string(library.file(&build.name, "hash")).unwrap_or_default();
        if current.trim() == hash && !options.check {
            continue;
        }
        let words = library.compile(folder, build)?;
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let spv = library.file(&build.name, "spv");
        if options.check {
            differ.extend(difference(&build.name, fs::read(&spv).ok(), &bytes, current.trim() == hash));
            continue;
        }
        fs::write(&spv, bytes).with_context(|| format!("writing {}", spv.display()))?;
        fs::write(library.file(&build.name, "hash"), hash + "\n")?;
        made.push(build.name.clone());
    }
    if options.only.is_none() {
        differ.extend(library.orphans(&builds, options.check)?);
    }
    if !differ.is_empty() {
        bail!(
            "run `cargo xtask shaders` and commit the result; what is kept differs:\n  {}",
            differ.join("\n  ")
        );
    }
    let what = match made.len() {
        _ if options.check => "compiled and compared".to_owned(),
        0 => "none compiled, all are current".to_owned(),
        _ => format!("compiled {}", made.join(" ")),
    };
    println!("{} of {} builds, {variants} variants: {what}", chosen.len(), builds.len());
    Ok(())
}

/// What is wrong with a kept kernel, if anything is.
fn difference(name: &str, kept: Option<Vec<u8>>, made: &[u8], same_hash: bool) -> Option<String> {
    match kept {
        None => Some(format!("{name}: there is no SPIR-V")),
        Some(kept) if kept != made => Some(format!(
            "{name}: {} bytes of SPIR-V are kept, the template gives other {}",
            kept.len(),
            made.len()
        )),
        Some(_) if !same_hash => {
            Some(format!("{name}: the SPIR-V is the same, the hash of what it is made from is not"))
        }
        Some(_) => None,
    }
}

/// A build in a line.
fn described(folder: &Path, build: &Build) -> String {
    let folder = folder.file_name().unwrap_or_default().to_string_lossy();
    let mut text = format!("{}: {folder}/{}", build.name, build.source);
    for (name, value) in &build.defines {
        let equals = if value.is_empty() { "" } else { "=" };
        text.push_str(&format!(" {name}{equals}{value}"));
    }
    if let Some(version) = &build.vulkan {
        text.push_str(&format!(" (Vulkan {version})"));
    }
    text
}

/// What needs the compiler.
trait Compile {
    fn compile(&self, folder: &Path, build: &Build) -> Result<Vec<u32>>;
    fn orphans(&self, builds: &[(PathBuf, Build)], check: bool) -> Result<Vec<String>>;
}

impl Compile for Library {
    fn compile(&self, folder: &Path, build: &Build) -> Result<Vec<u32>> {
        let compiler = Compiler::acquire().context("the GLSL compiler does not start")?;
        let (version, spirv_version) = match build.vulkan.as_deref().unwrap_or("1.1") {
            "1.1" => (VulkanVersion::Vulkan1_1, SpirvVersion::SPIRV1_3),
            "1.2" => (VulkanVersion::Vulkan1_2, SpirvVersion::SPIRV1_5),
            "1.3" => (VulkanVersion::Vulkan1_3, SpirvVersion::SPIRV1_6),
            other => bail!("build '{}': Vulkan '{other}' is none of 1.1, 1.2, 1.3", build.name),
        };
        let source = ShaderSource::from(self.source(folder, build)?);
        let options = CompilerOptions {
            source_language: SourceLanguage::GLSL,
            target: Target::Vulkan { version, spirv_version },
            messages: ShaderMessage::DEFAULT | ShaderMessage::VULKAN_RULES | ShaderMessage::SPV_RULES,
            ..CompilerOptions::default()
        };
        let mut includes = Includes(&self.includes);
        let defines: Vec<(&str, Option<&str>)> =
            build.defines.iter().map(|(k, v)| (k.as_str(), Some(v.as_str()))).collect();
        let failed = |error: glslang::error::GlslangError| anyhow!("build '{}':\n{error}", build.name);
        let input =
            ShaderInput::new(&source, ShaderStage::Compute, &options, Some(&defines), Some(&mut includes))
                .map_err(failed)?;
        compiler.create_shader(input).map_err(failed)?.compile().map_err(failed)
    }

    /// Files that no build makes: removed, or reported when only checking.
    fn orphans(&self, builds: &[(PathBuf, Build)], check: bool) -> Result<Vec<String>> {
        let mut orphans = Vec::new();
        for entry in fs::read_dir(self.root.join("spirv"))? {
            let path = entry?.path();
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            if builds.iter().any(|(_, build)| build.name == stem) {
                continue;
            }
            if check {
                orphans.push(format!("{stem}: no build makes {}", path.display()));
            } else {
                fs::remove_file(&path)?;
            }
        }
        Ok(orphans)
    }
}

struct Includes<'a>(&'a BTreeMap<String, String>);

impl IncludeHandler for Includes<'_> {
    fn include(
        &mut self,
        _kind: IncludeType,
        header: &str,
        _includer: &str,
        _depth: usize,
    ) -> Option<IncludeResult> {
        let data = self.0.get(header)?.clone();
        Some(IncludeResult { name: header.to_owned(), data })
    }
}
