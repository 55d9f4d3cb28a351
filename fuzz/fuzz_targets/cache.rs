//! Entries of caches: whatever lies under an entry's name is returned only if it is what was kept, and is gone otherwise.
//! Also the lists of entries, and the notes on input files.
#![no_main]

use std::{path::PathBuf, sync::OnceLock};

use halite_cache::{Folder, InputFile, Key, Kind, Store};
use libfuzzer_sys::fuzz_target;

const KIND: Kind = Kind::new("fuzz");
const KEPT: &[u8] = b"what was kept";

struct Place {
    store: Store,
    key: Key,
    entry: PathBuf,
    good: Vec<u8>,
}

fn place() -> &'static Place {
    static PLACE: OnceLock<Place> = OnceLock::new();
    PLACE.get_or_init(|| {
        let path = std::env::temp_dir().join(format!("halite-fuzz-cache-{}", std::process::id()));
        let store = Store::new(Folder::open(&path).expect("the folder is new"), 1 << 20);
        let key = Key::of(&[b"entry"]);
        store.put(key, KIND, "label", &[KEPT]).expect("there is room");
        let entry = path.join(format!("{key}-{KIND}.halite"));
        let good = std::fs::read(&entry).expect("it was kept");
        Place { store, key, entry, good }
    })
}

/// The whole entry with a part replaced: a position, and bytes for it; what follows may be cut.
fn damaged(good: &[u8], data: &[u8]) -> Vec<u8> {
    let Some((&[low, high], rest)) = data.split_first_chunk::<2>() else { return data.to_vec() };
    let at = usize::from(u16::from_le_bytes([low, high & 0x7F])) % (good.len() + 1);
    let tail = if high & 0x80 == 0 { good.get(at + rest.len()..).unwrap_or_default() } else { &[] };
    [&good[..at], rest, tail].concat()
}

fuzz_target!(|data: &[u8]| {
    let place = place();
    let Some((first, data)) = data.split_first() else { return };
    let bytes = if first & 1 == 0 { data.to_vec() } else { damaged(&place.good, data) };
    std::fs::write(&place.entry, &bytes).expect("the folder is ours");
    let _ = place.store.list();
    let found = place.store.get(place.key, KIND);
    assert_eq!(found.is_some(), bytes == place.good, "only what was kept is returned");
    if found.is_none() {
        assert!(!place.entry.exists(), "what is damaged goes");
    }
    // What is remembered of a file is remembered in such an entry.
    std::fs::write(&place.entry, data).expect("the folder is ours");
    if let Ok(file) = InputFile::open(&place.entry) {
        let digest = file.digest(Some(&place.store)).expect("it can be read");
        assert_eq!(digest, halite_cache::Digest::of(data));
    }
});
