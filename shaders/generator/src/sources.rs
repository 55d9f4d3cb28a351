//! Where templates are, which builds are made of them, and what the kernels depend on. A test uses this file too: it tells
//! without the compiler whether the kernels that are kept are current.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::expand::{BUILDS, VARIANTS, expand};

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

    /// Every build with its folder, sorted by name: the lists in `ops/*/builds.json` written out.
    pub fn builds(&self) -> Result<Vec<(PathBuf, Build)>> {
        let mut builds = Vec::new();
        for (folder, text) in self.lists("builds.json")? {
            let place = || format!("in {}", folder.join("builds.json").display());
            for item in expand(&text, &BUILDS).with_context(place)? {
                let name = item["name"].clone();
                let build: Build = serde_json::from_value(Value::Object(item))
                    .with_context(|| format!("build {name}"))
                    .with_context(place)?;
                builds.push((folder.clone(), build));
            }
        }
        builds.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
        if let Some(pair) = builds.windows(2).find(|pair| pair[0].1.name == pair[1].1.name) {
            bail!("two builds are called '{}'", pair[0].1.name);
        }
        Ok(builds)
    }

    /// Number of variants in `ops/*/variants.json`; fails if one of them names a build that is not there.
    pub fn variants(&self, builds: &[(PathBuf, Build)]) -> Result<usize> {
        let mut variants = 0;
        for (folder, text) in self.lists("variants.json")? {
            let place = || format!("in {}", folder.join("variants.json").display());
            for item in expand(&text, &VARIANTS).with_context(place)? {
                variants += 1;
                // Variants whose kernels are made at run time have no build.
                let Some(build) = item.get("build").and_then(Value::as_str) else { continue };
                if builds.binary_search_by(|(_, own)| own.name.as_str().cmp(build)).is_err() {
                    return Err(anyhow!("variant {} is of '{build}', which is no build", item["name"]))
                        .with_context(place);
                }
            }
        }
        Ok(variants)
    }

    /// A file of every folder of `ops` that has it, with its folder.
    fn lists(&self, name: &str) -> Result<Vec<(PathBuf, String)>> {
        let mut lists = Vec::new();
        for entry in fs::read_dir(self.root.join("ops"))? {
            let folder = entry?.path();
            let list = folder.join(name);
            if list.exists() {
                let text =
                    fs::read_to_string(&list).with_context(|| format!("reading {}", list.display()))?;
                lists.push((folder, text));
            }
        }
        Ok(lists)
    }

    /// SHA-256 over everything that the result depends on: of the include files, those that the template reaches.
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
        let source = self.source(folder, build)?;
        part(&source);
        for name in self.reached(&source).with_context(|| format!("build '{}'", build.name))? {
            part(name);
            part(&self.includes[name]);
        }
        Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// A template's text.
    pub fn source(&self, folder: &Path, build: &Build) -> Result<String> {
        let path = folder.join(&build.source);
        fs::read_to_string(&path).with_context(|| format!("template {}", path.display()))
    }

    /// Names of the include files that a text names, and of those that they name, and so on. A directive counts also where
    /// the preprocessor would skip it: a kernel may be made anew for nothing, and is never kept when it is not current.
    fn reached(&self, source: &str) -> Result<BTreeSet<&str>> {
        let mut reached = BTreeSet::new();
        let mut open = vec![source];
        while let Some(text) = open.pop() {
            for directive in text.lines().filter_map(include) {
                let asked = name(directive)
                    .with_context(|| format!("'#include {directive}' names no file in quotes"))?;
                let (name, text) = self
                    .includes
                    .get_key_value(asked)
                    .with_context(|| format!("'{asked}' is not in the folder of include files"))?;
                if reached.insert(name.as_str()) {
                    open.push(text);
                }
            }
        }
        Ok(reached)
    }
}

/// What follows `#include` in a line that is one.
fn include(line: &str) -> Option<&str> {
    let directive = line.trim_start().strip_prefix('#')?.trim_start();
    Some(directive.strip_prefix("include")?.trim())
}

/// The name in `"name"` or `<name>`.
fn name(directive: &str) -> Option<&str> {
    let close = match directive.chars().next()? {
        '"' => '"',
        '<' => '>',
        _ => return None,
    };
    directive[1..].split_once(close).map(|(name, _)| name)
}
