//! Owns the modules that models were compiled to, as files in this user's cache. Does not own: what is in them.
//!
//! A *key* names a model file, the shapes of its inputs, the device, and this program. Under it lies an index: which inputs'
//! values the module was compiled for too, and which other files the model was read from. Index and values name the module.
//! A file of a model counts as unchanged while its size and time of change are the same.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use bytes::Bytes;
use halite_compiler::Model;
use halite_hal::user_cache::{Os, user_cache};
use halite_runtime::tensor::HostTensor;
use halite_shaders::TuningFile;
use halite_targets::Capabilities;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{
    compile::replace,
    console::{Failure, Result},
};

/// Most bytes of all that is kept; what was used longest ago goes first.
const MOST_BYTES: u64 = 4 << 30;

/// The modules that are kept.
#[derive(Debug)]
pub(super) struct Cache {
    folder: PathBuf,
}

/// What a module was compiled for, but for the values of inputs.
#[derive(Debug)]
pub(super) struct Key(String);

/// What else a module depends on.
#[derive(Debug, Serialize, Deserialize)]
struct Index {
    /// Places of the inputs whose values it was compiled for.
    bound: Vec<usize>,
    /// Further files of the model.
    files: Vec<Stamp>,
}

/// A file as it was.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    path: PathBuf,
    length: u64,
    /// Nanoseconds since 1970.
    changed: u128,
}

impl Stamp {
    fn of(path: &Path) -> io::Result<Stamp> {
        let path = path.canonicalize()?;
        let data = fs::metadata(&path)?;
        let changed = data.modified()?.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        Ok(Stamp { path, length: data.len(), changed })
    }
}

impl Key {
    /// The key of a model for inputs and a device.
    pub fn new(
        path: &Path,
        function: Option<&str>,
        given: &[Option<HostTensor>],
        device: &Capabilities,
        tuning: &TuningFile,
    ) -> Result<Key> {
        let stamp = Stamp::of(path).map_err(|e| Failure::file("cannot read", path, &e))?;
        // Another build of this program may compile differently.
        let program = std::env::current_exe().and_then(|path| Stamp::of(&path)).ok();
        let shapes: Vec<_> = given
            .iter()
            .map(|t| t.as_ref().map(|t| (t.element_type.to_string(), t.shape.to_vec())))
            .collect();
        let all = serde_json::json!({
            "model": stamp, "program": program, "function": function, "inputs": shapes,
            "device": format!("{device:?}"), "tuning": tuning.rows,
        });
        Ok(Key(hash(all.to_string().as_bytes())))
    }
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

impl Cache {
    /// The cache that is asked for; `None` for `off`, and where the environment names no folder.
    pub fn of(asked: Option<&Path>) -> Option<Cache> {
        let folder = match asked {
            Some(path) if path.as_os_str() == "off" => return None,
            Some(path) => path.to_owned(),
            None => user_cache(Os::THIS, &|name| std::env::var_os(name))?.join("modules"),
        };
        Some(Cache { folder })
    }

    fn index_file(&self, key: &Key) -> PathBuf {
        self.folder.join(format!("{}.json", key.0))
    }

    /// The module for a key and the values of those inputs that count.
    fn module_file(&self, key: &Key, given: &[Option<HostTensor>], bound: &[usize]) -> PathBuf {
        let mut text = key.0.clone().into_bytes();
        for place in bound {
            let data = given.get(*place).and_then(Option::as_ref).map(|tensor| tensor.data.as_slice());
            text.extend(hash(data.unwrap_or_default()).as_bytes());
        }
        self.folder.join(format!("{}.vmfb", hash(&text)))
    }

    /// The module, if it is there and nothing it came from has changed.
    pub fn find(&self, key: &Key, given: &[Option<HostTensor>]) -> Option<Bytes> {
        let index: Index = serde_json::from_slice(&fs::read(self.index_file(key)).ok()?).ok()?;
        let same = |stamp: &Stamp| Stamp::of(&stamp.path).is_ok_and(|now| now == *stamp);
        if !index.files.iter().all(same) {
            return None;
        }
        let path = self.module_file(key, given, &index.bound);
        let module = fs::read(&path).ok()?;
        // Files that were used last are kept longest; where the time cannot be set, the order is a little worse.
        let _ = fs::File::options()
            .append(true)
            .open(&path)
            .and_then(|f| f.set_modified(std::time::SystemTime::now()));
        Some(module.into())
    }

    /// Keeps a module; removes what was used longest ago when there is too much.
    pub fn keep(
        &self,
        key: &Key,
        given: &[Option<HostTensor>],
        bound: &[usize],
        model: &Model,
        module: &[u8],
    ) -> Result<(), String> {
        let text = |failure: Failure| failure.to_string();
        let said = |error: io::Error| format!("{}: {error}", self.folder.display());
        fs::create_dir_all(&self.folder).map_err(said)?;
        let files: io::Result<Vec<_>> = model.files().iter().map(|path| Stamp::of(path)).collect();
        let index = Index { bound: bound.to_vec(), files: files.map_err(said)? };
        let index = serde_json::to_vec(&index).map_err(|e| e.to_string())?;
        replace(&self.module_file(key, given, bound), |out| io::Write::write_all(out, module))
            .map_err(text)?;
        replace(&self.index_file(key), |out| io::Write::write_all(out, &index)).map_err(text)?;
        self.trim().map_err(said)
    }

    fn trim(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let data = entry.metadata()?;
            files.push((data.modified()?, data.len(), entry.path()));
        }
        files.sort();
        let mut total: u64 = files.iter().map(|(_, length, _)| length).sum();
        for (_, length, path) in files {
            if total <= MOST_BYTES {
                break;
            }
            // Somebody else may have removed it.
            if fs::remove_file(path).is_ok() {
                total -= length;
            }
        }
        Ok(())
    }
}
