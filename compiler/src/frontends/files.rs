//! Files beside a model's own, which hold its weights: which of them may be read, and that each is read once.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use bytes::Bytes;

/// Reads a whole file, or maps it. The number is how many of its bytes the model has a use for, where that is known before.
pub type ReadFile = dyn Fn(&Path, Option<u64>) -> io::Result<Bytes> + Send + Sync;

/// What was read of a model's files, by the name that the model has for each.
type Contents = Arc<Mutex<BTreeMap<PathBuf, Bytes>>>;

/// Files beside a model's.
#[derive(Clone)]
pub(crate) struct Files {
    /// The model's folder as it was named.
    path: PathBuf,
    /// Folders that files have to be in once links are followed: that of the model as it was named, and the one where its
    /// file really is (caches of downloads keep both in one place and link to them).
    allowed: Vec<PathBuf>,
    read: Arc<ReadFile>,
    contents: Contents,
    /// How many bytes the model has a use for, by the name that it has for each file.
    expected: Arc<OnceLock<BTreeMap<String, u64>>>,
}

impl Files {
    /// Files in the folder of a model's file.
    pub fn beside(model: &Path, read: Arc<ReadFile>) -> Self {
        let path = folder(model);
        let real = fs::canonicalize(model).map(|model| folder(&model));
        let allowed = [fs::canonicalize(&path), real].into_iter().flatten().collect();
        Files { path, allowed, read, contents: Contents::default(), expected: Arc::default() }
    }

    /// Tells how many bytes the model has a use for, by the names of files; once, before any is read.
    pub fn expect(&self, bytes: BTreeMap<String, u64>) {
        _ = self.expected.set(bytes);
    }

    /// The files that were read so far.
    pub fn read_so_far(&self) -> Vec<PathBuf> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// Names of the files in the folder that end with a dot and this, in the order of their names; at most so many.
    pub fn ending(&self, extension: &str, most: usize) -> Vec<String> {
        let Ok(entries) = fs::read_dir(&self.path) else { return Vec::new() };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> =
            names.filter(|name| Path::new(name).extension().is_some_and(|own| own == extension)).collect();
        names.sort_unstable();
        names.truncate(most);
        names
    }

    /// A file's contents.
    fn contents(&self, location: &str) -> Result<Bytes, String> {
        let path = self.path.join(location);
        let mut contents = self.contents.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = contents.get(&path) {
            return Ok(bytes.clone());
        }
        let said = |error: io::Error| format!("{}: {error}", path.display());
        let real = fs::canonicalize(&path).map_err(said)?;
        if !self.allowed.iter().any(|folder| real.starts_with(folder)) {
            return Err(format!(
                "{} is really {}, outside of the model's folder; put the file itself there",
                path.display(),
                real.display()
            ));
        }
        if !fs::metadata(&real).map_err(said)?.is_file() {
            return Err(format!("{} is no plain file", path.display()));
        }
        let expected = self.expected.get().and_then(|all| all.get(location).copied());
        let bytes = (self.read)(&real, expected).map_err(said)?;
        contents.insert(path, bytes.clone());
        Ok(bytes)
    }

    /// A part of a file, up to its end where no length is given.
    ///
    /// # Errors
    /// The file is outside of the folder, cannot be read, or is shorter.
    pub fn read(&self, location: &str, offset: u64, length: Option<u64>) -> Result<Bytes, String> {
        let bytes = self.contents(location)?;
        let size = bytes.len() as u64;
        let end = length.map_or(Some(size), |length| offset.checked_add(length));
        let range = end.filter(|end| *end <= size && offset <= *end);
        let Some(end) = range else {
            let wanted = length.map_or_else(|| "any".to_owned(), |length| length.to_string());
            return Err(format!(
                "'{location}' has {size} bytes; {wanted} from byte {offset} on are asked for"
            ));
        };
        Ok(bytes.slice(offset as usize..end as usize))
    }
}

fn folder(file: &Path) -> PathBuf {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder `models` with `m.onnx` and `w.bin`, and a secret beside it.
    fn tree() -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir(tree.path().join("models")).unwrap();
        fs::write(tree.path().join("models/m.onnx"), b"").unwrap();
        fs::write(tree.path().join("models/w.bin"), b"weights").unwrap();
        fs::write(tree.path().join("secret"), b"secret").unwrap();
        tree
    }

    fn of(model: &Path) -> Files {
        Files::beside(model, Arc::new(|path: &Path, _| fs::read(path).map(Bytes::from)))
    }

    #[test]
    fn parts_of_files_are_slices_of_one_reading() {
        let tree = tree();
        let folder = of(&tree.path().join("models/m.onnx"));
        let all = folder.read("w.bin", 0, None).unwrap();
        let part = folder.read("w.bin", 2, Some(3)).unwrap();
        assert_eq!((&all[..], &part[..]), (&b"weights"[..], &b"igh"[..]));
        assert_eq!(part.as_ptr(), all[2..].as_ptr());
        assert_eq!(folder.read_so_far(), [tree.path().join("models/w.bin")]);
        for (offset, length) in [(0, Some(8)), (8, None), (u64::MAX, Some(2)), (1, Some(u64::MAX))] {
            let error = folder.read("w.bin", offset, length).unwrap_err();
            assert!(error.contains("has 7 bytes"), "{error}");
        }
        assert_eq!(folder.ending("bin", 9), ["w.bin"]);
        assert!(folder.ending("bin", 0).is_empty() && folder.ending("ptd", 9).is_empty());
        assert!(folder.read("none.bin", 0, None).unwrap_err().contains("none.bin"));
        assert!(folder.read(".", 0, None).unwrap_err().contains("no plain file"));
    }

    #[test]
    #[cfg(unix)]
    fn links_lead_nowhere_else() {
        use std::os::unix::fs::symlink;
        let tree = tree();
        let models = tree.path().join("models");
        symlink("../secret", models.join("link.bin")).unwrap();
        let error = of(&models.join("m.onnx")).read("link.bin", 0, None).unwrap_err();
        assert!(error.contains("outside of the model's folder"), "{error}");
        // A cache: both are links to files in one place.
        let cache = tree.path().join("snapshot");
        fs::create_dir(&cache).unwrap();
        symlink("../models/m.onnx", cache.join("model.onnx")).unwrap();
        symlink("../models/w.bin", cache.join("w.bin")).unwrap();
        let folder = of(&cache.join("model.onnx"));
        assert_eq!(folder.read("w.bin", 0, Some(1)).unwrap(), b"w"[..]);
    }
}
