//! The rules of the crate, each broken on purpose.

mod folder;
mod many;
mod single;
mod store;

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use crate::{Folder, Key, Kind, Store};

const KIND: Kind = Kind::new("vmfb");

/// A folder for a test, and a path in it where nothing is.
fn place() -> (tempfile::TempDir, PathBuf) {
    let above = tempfile::tempdir().unwrap();
    let path = above.path().join("cache");
    (above, path)
}

fn store(limit: u64) -> (tempfile::TempDir, Store) {
    let (above, path) = place();
    let store = Store::new(Folder::open(&path).unwrap(), limit);
    (above, store)
}

fn key(number: u64) -> Key {
    Key::of(&[&number.to_le_bytes()])
}

fn file_of(store: &Store, key: Key) -> PathBuf {
    store.folder().path().join(format!("{key}-{KIND}.halite"))
}

/// Makes a file look as if it had been used that long ago.
fn age(path: &Path, by: Duration) {
    File::options().append(true).open(path).unwrap().set_modified(SystemTime::now() - by).unwrap();
}

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

const HOUR: Duration = Duration::from_secs(3600);
