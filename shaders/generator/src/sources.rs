//! Owns where templates are and what their kernels depend on. Shared with a test that tells, without the compiler, whether
//! the kernels that are kept are current.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use sha2::{Digest, Sha256};

/// Part of every hash: a new version of the compiler makes all kernels anew.
pub const COMPILER: &str = "glslang 0.9.1";

/// One template with one set of definitions.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Build {
    /// Name of the kernel.
    pub name: String,
    /// Template in the operation's folder.
    pub source: String,
    /// `#define`s; an empty value defines a flag.
    #[serde(default)]
    pub defines: BTreeMap<String, String>,
    /// Vulkan version that decides the SPIR-V version: `1.1` (SPIR-V 1.3), `1.2` (1.5) or `1.3` (1.6).
    #[serde(default)]
    pub vulkan: Option<String>,
}

/// The templates and what is made from them.
pub struct Library {
    /// Folder of the crate.
    pub root: PathBuf,
    /// `include/*.glsl` by name.
    pub includes: BTreeMap<String, String>,
}

impl Library {
    /// Reads the includes.
    pub fn open(root: PathBuf) -> Result<Self> {
        let mut includes = BTreeMap::new();
        for entry in fs::read_dir(root.join("include"))? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            includes.insert(name, fs::read_to_string(&path)?);
        }
        Ok(Library { root, includes })
    }

    /// What is made of a build: `spv` or `hash`.
    pub fn file(&self, name: &str, extension: &str) -> PathBuf {
        self.root.join("spirv").join(format!("{name}.{extension}"))
    }

    /// Every build with its folder, sorted by name.
    pub fn builds(&self) -> Result<Vec<(PathBuf, Build)>> {
        let mut builds = Vec::new();
        for entry in fs::read_dir(self.root.join("ops"))? {
            let folder = entry?.path();
            let list = folder.join("builds.json");
            if !list.exists() {
                continue;
            }
            let text = fs::read_to_string(&list)?;
            let found: Vec<Build> =
                serde_json::from_str(&text).with_context(|| format!("reading {}", list.display()))?;
            builds.extend(found.into_iter().map(|build| (folder.clone(), build)));
        }
        builds.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
        if let Some(pair) = builds.windows(2).find(|pair| pair[0].1.name == pair[1].1.name) {
            bail!("two builds are called '{}'", pair[0].1.name);
        }
        Ok(builds)
    }

    /// SHA-256 over everything that the result depends on.
    pub fn hash(&self, folder: &Path, build: &Build) -> Result<String> {
        let mut hash = Sha256::new();
        let mut part = |text: &str| {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        };
        part(COMPILER);
        part(build.vulkan.as_deref().unwrap_or("1.1"));
        for (name, value) in &build.defines {
            part(name);
            part(value);
        }
        part(&self.source(folder, build)?);
        for (name, text) in &self.includes {
            part(name);
            part(text);
        }
        Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// A template's text.
    pub fn source(&self, folder: &Path, build: &Build) -> Result<String> {
        let path = folder.join(&build.source);
        fs::read_to_string(&path).with_context(|| format!("template {}", path.display()))
    }
}
