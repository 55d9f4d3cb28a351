//! Owns how a compiled model lies in the cache, and finding it again. Does not own: files and their safety (`halite-cache`),
//! compiling.
//!
//! A *request* is everything that decides what is compiled, but for the values of inputs. Under its key lies an index: the
//! inputs whose values the module was compiled for, and the files of the model with their digests. Request and values name
//! the module. Weights that lie in the model's files are not copied: the module's entry says where they are.

use bytes::Bytes;
use halite_cache::{Digest, Key, Kind, Store};
use serde::{Deserialize, Serialize};

use crate::{Result, compile::Files};

const INDEX: Kind = Kind::new("index");
const MODULE: Kind = Kind::new("vmfb");

/// What compiles: its sources, as they were when this was built.
const COMPILER: &str = env!("HALITE_COMPILER_DIGEST");

/// What is asked for.
pub(crate) struct Request<'a> {
    /// What it is called, for people.
    pub label: &'a str,
    /// The model's files.
    pub files: &'a Files,
    /// All else that decides: function, sizes, device, ….
    pub parts: Vec<String>,
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
}

#[derive(Debug, Serialize, Deserialize)]
struct Index {
    bound: Vec<usize>,
    /// Path and digest of the files beside the model's own.
    files: Vec<(std::path::PathBuf, String)>,
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
    /// Place among the model's files; `None` for this entry, behind the module.
    file: Option<usize>,
    offset: u64,
    length: u64,
}

impl Request<'_> {
    fn key(&self, store: &Store) -> Option<Key> {
        let model = self.files.all().first()?.digest(store)?;
        let mut fields: Vec<&[u8]> = vec![COMPILER.as_bytes(), model.as_bytes()];
        fields.extend(self.parts.iter().map(String::as_bytes));
        Some(Key::of(&fields))
    }
}

fn module_key(request: Key, values: Digest) -> Key {
    Key::of(&[b"module", request.as_bytes(), values.as_bytes()])
}

/// The module, if it was kept and nothing that it came from is different. `values` hashes the values of inputs.
pub(crate) fn find(store: &Store, request: &Request<'_>, values: &dyn Fn(&[usize]) -> Result<Digest>) -> Option<Kept> {
    let key = request.key(store)?;
    let index: Index = serde_json::from_slice(&store.get(key, INDEX)?).ok()?;
    for (path, digest) in &index.files {
        request.files.read(path).ok()?;
        let file = request.files.all().into_iter().find(|file| file.path == *path)?;
        if file.digest(store)?.to_string() != *digest {
            return None;
        }
    }
    let entry = Bytes::from(store.get(module_key(key, values(&index.bound).ok()?), MODULE)?);
    unpack(&entry, request.files, &index)
}

/// The parts of an entry. The cache has checked that it is what was written, so what does not fit was written by another
/// version, and is none.
fn unpack(entry: &Bytes, files: &Files, index: &Index) -> Option<Kept> {
    let head = u64::from_le_bytes(entry.get(..8)?.try_into().ok()?);
    let head = 8usize.checked_add(usize::try_from(head).ok()?)?;
    let contents: Contents = serde_json::from_slice(entry.get(8..head)?).ok()?;
    let module_end = head.checked_add(contents.module_bytes)?;
    entry.get(head..module_end)?;
    let all = files.all();
    let own = |place: usize| match place {
        0 => all.first(),
        _ => all.iter().find(|file| file.path == index.files.get(place - 1).map_or("".as_ref(), |f| f.0.as_path())),
    };
    let weight = |weight: Weight| {
        let (offset, length) = (usize::try_from(weight.offset).ok()?, usize::try_from(weight.length).ok()?);
        let (bytes, start) = match weight.file {
            Some(place) => (&own(place)?.bytes, offset),
            None => (entry, module_end.checked_add(offset)?),
        };
        let end = start.checked_add(length).filter(|end| *end <= bytes.len())?;
        Some((weight.key, bytes.slice(start..end)))
    };
    let parameters = contents.parameters.into_iter().map(weight).collect::<Option<_>>()?;
    Some(Kept { module: entry.slice(head..module_end), parameters, bound: index.bound.clone() })
}

/// Keeps a compiled model. What stands in the way is logged: the cache saves time, and no result depends on it.
pub(crate) fn keep(store: &Store, request: &Request<'_>, kept: &Kept, values: &dyn Fn(&[usize]) -> Result<Digest>) {
    match write(store, request, kept, values) {
        Ok(()) => {}
        Err(why) => log::warn!("the compiled model '{}' is not kept: {why}", request.label),
    }
}

fn write(
    store: &Store,
    request: &Request<'_>,
    kept: &Kept,
    values: &dyn Fn(&[usize]) -> Result<Digest>,
) -> Result<(), String> {
    let changed = || "a file of the model changed while it was compiled".to_owned();
    let key = request.key(store).ok_or_else(changed)?;
    let values = values(&kept.bound).map_err(|e| e.to_string())?;
    let files = request.files.all();
    let others = files.get(1..).unwrap_or_default();
    let digest = |file: &std::sync::Arc<crate::compile::ModelFile>| {
        Some((file.path.clone(), file.digest(store)?.to_string()))
    };
    let files_known = others.iter().map(digest).collect::<Option<Vec<_>>>().ok_or_else(changed)?;
    let (mut parameters, mut own, mut end) = (Vec::new(), Vec::new(), 0);
    for (key, bytes) in &kept.parameters {
        let length = bytes.len() as u64;
        let (file, offset) = match request.files.locate(bytes) {
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
    let contents = json(&Contents { module_bytes: kept.module.len(), parameters })?;
    let index = json(&Index { bound: kept.bound.clone(), files: files_known })?;
    let head = (contents.len() as u64).to_le_bytes();
    let mut parts: Vec<&[u8]> = vec![&head, &contents, &kept.module];
    parts.extend(own.iter().map(|bytes| &bytes[..]));
    if !files.iter().all(|file| file.is_unchanged()) {
        return Err(changed());
    }
    store.put(module_key(key, values), MODULE, request.label, &parts).map_err(|e| e.to_string())?;
    store.put(key, INDEX, request.label, &[&index]).map_err(|e| e.to_string())
}

fn json(what: &impl Serialize) -> Result<Vec<u8>, String> {
    serde_json::to_vec(what).map_err(|e| e.to_string())
}
