//! How a compiled model lies in the cache, and finding it again.
//!
//! A *request* is everything that decides what is compiled, but for what compiling finds out: the inputs whose values count, and
//! the files beside the model's own. Under the request's key lies an index of what was found out so far; request, values and
//! the digests of the files name the module. Weights that lie in the model's files are not copied: the module's entry says where
//! they are. Of a module for open sizes the index says which these are. Files are named as seen from the model's folder, so that a copy of the folder finds its own.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use halite_cache::{Digest, Hasher, Key, Kind, Store};
use halite_compiler::{Capacities, Coverage};
use serde::{Deserialize, Serialize};

use crate::{Result, Stage, compile::Files, options::Limits};

const INDEX: Kind = Kind::new("index");
const MODULE: Kind = Kind::new("vmfb");

/// What compiles: its sources, as they were when this was built.
const COMPILER: &str = env!("HALITE_COMPILER_DIGEST");

/// What finding a module is called, for people.
const LOOKING: &str = "looking for the compiled model";

/// Most findings of one request that are remembered.
const MOST_FINDINGS: usize = 16;

/// What is asked for.
pub(crate) struct Request<'a> {
    /// What it is called, for people.
    pub label: &'a str,
    /// The model's files.
    pub files: &'a Files,
    /// All else that decides: function, sizes, device, ….
    pub digest: Digest,
}

/// A compiled model.
#[derive(Debug)]
pub(crate) struct Kept {
    /// The module, without weights.
    pub module: Bytes,
    /// Key and bytes of the weights: slices of the model's files where they lie there.
    pub parameters: Vec<(String, Bytes)>,
    /// Places of the inputs whose values it was compiled for.
    pub bound: Vec<usize>,
    /// The sizes that it holds for, where these are open.
    pub coverage: Option<Coverage>,
    /// Its states that grow in place.
    pub capacities: Capacities,
}

/// The values of inputs, hashed.
pub(crate) type ValuesDigest<'a> = dyn Fn(&[usize]) -> Result<Digest> + 'a;

/// What compiling found out.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Finding {
    /// Places of the inputs whose values count.
    bound: Vec<usize>,
    /// The files beside the model's own, as seen from its folder.
    files: Vec<PathBuf>,
    /// The sizes that the module holds for, where these are open: no part of the request then.
    #[serde(default)]
    coverage: Option<Coverage>,
    /// The module's states that grow in place.
    #[serde(default)]
    capacities: Capacities,
}

/// The beginning of a module's entry.
#[derive(Debug, Serialize, Deserialize)]
struct Contents {
    module_bytes: usize,
    parameters: Vec<Weight>,
}

/// Where the bytes of a weight are.
#[derive(Debug, Serialize, Deserialize)]
struct Weight {
    key: String,
    /// Place among the files: 0 for the model's own, then those of the finding; `None` for this entry, behind the module.
    file: Option<usize>,
    offset: u64,
    length: u64,
}

/// What is asked of a store.
pub(crate) struct Lookup<'a> {
    pub store: &'a Store,
    pub request: &'a Request<'a>,
    pub values: &'a ValuesDigest<'a>,
    pub limits: &'a Limits,
}

impl Lookup<'_> {
    fn index_key(&self) -> Option<Key> {
        let model = self.request.files.digest(Path::new(""), self.store, self.limits)?;
        Some(Key::of(&[COMPILER.as_bytes(), model.as_bytes(), self.request.digest.as_bytes()]))
    }

    /// The key of the module of a finding, whose files are read.
    fn module_key(&self, index: Key, finding: &Finding) -> Option<Key> {
        let mut hasher = Hasher::new();
        hasher.field(b"module").field(index.as_bytes());
        for place in &finding.bound {
            hasher.field(&place.to_le_bytes());
        }
        hasher.field((self.values)(&finding.bound).ok()?.as_bytes());
        if let Some(coverage) = &finding.coverage {
            hasher.field(b"open").field(&json(coverage).ok()?);
        }
        for file in &finding.files {
            hasher.field(file.as_os_str().as_encoded_bytes());
            hasher.field(self.request.files.digest(file, self.store, self.limits)?.as_bytes());
        }
        Some(Key::from(hasher.finish()))
    }

    fn findings(&self, index: Key) -> Vec<Finding> {
        let bytes = self.store.get(index, INDEX).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// The module, if it was kept and nothing that it came from is different.
    pub fn find(&self) -> Option<Kept> {
        self.limits.tell(Stage::Reading, LOOKING, 0, 1);
        let index = self.index_key()?;
        self.findings(index).iter().find_map(|finding| self.module(index, finding))
    }

    /// The same, of modules for open sizes one that inputs of these dimensions are for.
    pub fn find_open(&self, shapes: &[Vec<u64>]) -> Option<Kept> {
        self.limits.tell(Stage::Reading, LOOKING, 0, 1);
        let index = self.index_key()?;
        let has = |coverage: &Coverage| coverage.has(shapes.iter().map(Vec::as_slice));
        let findings = self.findings(index);
        let mut fitting = findings.iter().filter(|finding| finding.coverage.as_ref().is_some_and(has));
        fitting.find_map(|finding| self.module(index, finding))
    }

    fn module(&self, index: Key, finding: &Finding) -> Option<Kept> {
        for file in &finding.files {
            self.request.files.read_beside(file).ok()?;
        }
        let entry = Bytes::from(self.store.get(self.module_key(index, finding)?, MODULE)?);
        unpack(&entry, self.request.files, finding)
    }

    /// Keeps a compiled model. What stands in the way is logged: the cache saves time, and no result depends on it.
    pub fn keep(&self, kept: &Kept) {
        if let Err(why) = self.write(kept) {
            log::warn!("the compiled model '{}' is not kept: {why}", self.request.label);
        }
    }

    fn write(&self, kept: &Kept) -> Result<(), String> {
        let files = self.request.files;
        let lost = || "a file of the model changed meanwhile, or the work was ended".to_owned();
        let index = self.index_key().ok_or_else(lost)?;
        let others = files.beside().ok_or("a file of the model is outside of its folder")?;
        let (bound, coverage, capacities) =
            (kept.bound.clone(), kept.coverage.clone(), kept.capacities.clone());
        let finding = Finding { bound, files: others, coverage, capacities };
        let key = self.module_key(index, &finding).ok_or_else(lost)?;
        let (contents, own) = contents(kept, files)?;
        let head = (contents.len() as u64).to_le_bytes();
        let mut parts: Vec<&[u8]> = vec![&head, &contents, &kept.module];
        parts.extend(own.iter().map(|bytes| &bytes[..]));
        if !files.are_unchanged() {
            return Err(lost());
        }
        self.store.put(key, MODULE, self.request.label, &parts).map_err(|e| e.to_string())?;
        let mut findings = self.findings(index);
        findings.retain(|known| *known != finding);
        findings.insert(0, finding);
        findings.truncate(MOST_FINDINGS);
        self.store.put(index, INDEX, self.request.label, &[&json(&findings)?]).map_err(|e| e.to_string())
    }
}

/// The beginning of an entry, and the weights that are part of it.
fn contents<'a>(kept: &'a Kept, files: &Files) -> Result<(Vec<u8>, Vec<&'a Bytes>), String> {
    let (mut parameters, mut own, mut end) = (Vec::new(), Vec::new(), 0);
    for (key, bytes) in &kept.parameters {
        let length = bytes.len() as u64;
        let (file, offset) = match files.locate(bytes) {
            Some((place, offset)) => (Some(place), offset),
            None => {
                own.push(bytes);
                let offset = end;
                end += length;
                (None, offset)
            }
        };
        parameters.push(Weight { key: key.clone(), file, offset, length });
    }
    Ok((json(&Contents { module_bytes: kept.module.len(), parameters })?, own))
}

/// The parts of an entry. The cache has checked that it is what was written, so what does not fit was written by another
/// version, and is none.
fn unpack(entry: &Bytes, files: &Files, finding: &Finding) -> Option<Kept> {
    let head = u64::from_le_bytes(entry.get(..8)?.try_into().ok()?);
    let head = 8usize.checked_add(usize::try_from(head).ok()?)?;
    let contents: Contents = serde_json::from_slice(entry.get(8..head)?).ok()?;
    let module_end = head.checked_add(contents.module_bytes)?;
    entry.get(head..module_end)?;
    let mut all = vec![files.bytes(Path::new(""))?];
    for file in &finding.files {
        all.push(files.bytes(file)?);
    }
    let weight = |weight: Weight| {
        let (offset, length) = (usize::try_from(weight.offset).ok()?, usize::try_from(weight.length).ok()?);
        let (bytes, start) = match weight.file {
            Some(place) => (all.get(place)?, offset),
            None => (entry, module_end.checked_add(offset)?),
        };
        let end = start.checked_add(length).filter(|end| *end <= bytes.len())?;
        Some((weight.key, bytes.slice(start..end)))
    };
    let parameters = contents.parameters.into_iter().map(weight).collect::<Option<_>>()?;
    let (bound, coverage, capacities) =
        (finding.bound.clone(), finding.coverage.clone(), finding.capacities.clone());
    Some(Kept { module: entry.slice(head..module_end), parameters, bound, coverage, capacities })
}

fn json(what: &impl Serialize) -> Result<Vec<u8>, String> {
    serde_json::to_vec(what).map_err(|e| e.to_string())
}
