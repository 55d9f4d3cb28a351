//! Compiles the kernel templates: every build in `ops/*/builds.json` becomes `spirv/<name>.spv`, with `<name>.hash` beside
//! it, which tells what it was made from. Only what changed is compiled. Run it through `cargo xtask shaders`.

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

fn main() -> Result<()> {
    let mut check = false;
    let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut only = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--check" => check = true,
            "--root" => root = arguments.next().context("--root needs a folder")?.into(),
            "--only" => only = arguments.next(),
            other => bail!("unknown argument '{other}'; there are --check, --root DIR, --only PART-OF-NAME"),
        }
    }
    let library = Library::open(root)?;
    let (mut made, mut stale) = (Vec::new(), Vec::new());
    let builds = library.builds()?;
    for (folder, build) in &builds {
        if only.as_ref().is_some_and(|part| !build.name.contains(part.as_str())) {
            continue;
        }
        let hash = library.hash(folder, build)?;
        let current = fs::read_to_string(library.file(&build.name, "hash")).unwrap_or_default();
        if current.trim() == hash && !check {
            continue;
        }
        let words = library.compile(folder, build)?;
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let spv = library.file(&build.name, "spv");
        if check {
            if fs::read(&spv).ok().as_deref() != Some(&bytes) || current.trim() != hash {
                stale.push(build.name.clone());
            }
            continue;
        }
        fs::write(&spv, bytes).with_context(|| format!("writing {}", spv.display()))?;
        fs::write(library.file(&build.name, "hash"), hash + "\n")?;
        made.push(build.name.clone());
    }
    if only.is_none() {
        stale.extend(library.orphans(&builds, check)?);
    }
    if !stale.is_empty() {
        bail!(
            "not what the templates give: {}; run `cargo xtask shaders` and commit the result",
            stale.join(", ")
        );
    }
    println!("{} kernels, {} compiled: {}", builds.len(), made.len(), made.join(" "));
    Ok(())
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
                orphans.push(format!("{} (no build makes it)", path.display()));
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
