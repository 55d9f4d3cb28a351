//! What is kept, what comes back, and what goes.

use std::io;

use super::*;
use crate::{CacheError, Cleared};

#[test]
fn entries_come_back_and_are_listed() {
    let (_above, store) = store(1 << 20);
    assert_eq!(store.get(key(1), KIND), None);
    store.put(key(1), KIND, "mobilenet.onnx", &[b"one ", b"", b"two"]).unwrap();
    store.put(key(1), Kind::new("json"), "index", &[]).unwrap();
    assert_eq!(store.get(key(1), KIND).unwrap(), b"one two");
    assert_eq!(store.get(key(1), Kind::new("json")).unwrap(), b"");
    store.put(key(1), KIND, "mobilenet.onnx", &[b"three"]).unwrap();
    assert_eq!(store.get(key(1), KIND).unwrap(), b"three");
    age(&file_of(&store, key(1)), HOUR);
    let list = store.list().unwrap();
    let shown: Vec<_> = list.iter().map(|e| (e.key, e.kind.as_str(), e.label.as_str())).collect();
    assert_eq!(shown, [(key(1), "json", "index"), (key(1), "vmfb", "mobilenet.onnx")]);
    assert_eq!(store.total().unwrap(), list.iter().map(|entry| entry.bytes).sum::<u64>());
    assert!(store.remove(key(1), KIND).unwrap());
    assert!(!store.remove(key(1), KIND).unwrap());
    assert_eq!(store.get(key(1), KIND), None);
}

#[test]
fn damage_heals_by_itself() {
    let (_above, store) = store(1 << 20);
    let file = file_of(&store, key(1));
    let payload = vec![7; 1000];
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 6] = [
        ("empty", Vec::clear),
        ("cut in the header", |b| b.truncate(30)),
        ("cut in the payload", |b| b.truncate(600)),
        ("a flipped bit", |b| b[700] ^= 4),
        ("zeros, as after a power cut", |b| b.fill(0)),
        ("a file of something else", |b| *b = b"not an entry at all, but long enough to be one".repeat(9)),
    ];
    for (what, damage) in damages {
        store.put(key(1), KIND, "", &[&payload]).unwrap();
        let mut bytes = fs::read(&file).unwrap();
        damage(&mut bytes);
        fs::write(&file, bytes).unwrap();
        assert_eq!(store.get(key(1), KIND), None, "{what}");
        assert!(!file.exists(), "{what} is removed");
    }
    store.put(key(1), KIND, "", &[&payload]).unwrap();
    assert_eq!(store.get(key(1), KIND).unwrap(), payload);
}

#[test]
fn an_entry_under_another_name_is_not_taken() {
    let (_above, store) = store(1 << 20);
    store.put(key(1), KIND, "", &[b"one"]).unwrap();
    fs::rename(file_of(&store, key(1)), file_of(&store, key(2))).unwrap();
    assert_eq!(store.list().unwrap(), []);
    assert_eq!(store.get(key(2), KIND), None);
    assert_eq!(names(store.folder().path()), ["CACHEDIR.TAG"]);
}

/// Audit H1: trimming deleted whatever was oldest, whatever its name.
#[test]
fn only_entries_are_trimmed_and_those_used_last_stay() {
    let (_above, store) = store(5000);
    let folder = store.folder().path().to_owned();
    let bare = key(9);
    let theirs = [
        "thesis.tex",
        "model.safetensors",
        "notes.halite",
        &format!("{bare}.vmfb"),
        &format!("{bare}-vmfb.halite"),
    ];
    for name in theirs {
        fs::write(folder.join(name), vec![1; 9000]).unwrap();
        age(&folder.join(name), 1000 * HOUR);
    }
    fs::create_dir(folder.join("sub")).unwrap();
    for number in 0..4 {
        store.put(key(number), KIND, "", &[&[0; 1000]]).unwrap();
        age(&file_of(&store, key(number)), HOUR * (10 - number as u32));
    }
    // The oldest is used once more, so that the second goes.
    store.get(key(0), KIND).unwrap();
    store.put(key(4), KIND, "", &[&[0; 1000]]).unwrap();
    let there: Vec<_> = (0..5).map(|n| file_of(&store, key(n)).exists()).collect();
    assert_eq!(there, [true, false, true, true, true]);
    store.put(key(5), KIND, "", &[&[0; 4000]]).unwrap();
    assert_eq!(store.list().unwrap().len(), 1, "the newest stays");
    assert!(store.total().unwrap() <= 5000);
    let gone = store.clear().unwrap();
    assert_eq!((gone.files, store.list().unwrap().len()), (1, 0));
    for name in theirs {
        assert_eq!(fs::metadata(folder.join(name)).unwrap().len(), 9000, "{name}");
    }
    assert!(folder.join("sub").exists());
}

#[test]
fn what_was_just_kept_stays_even_if_clocks_were_wrong() {
    let (_above, store) = store(2500);
    for number in 0..2 {
        store.put(key(number), KIND, "", &[&[0; 1000]]).unwrap();
        let file = File::options().append(true).open(file_of(&store, key(number))).unwrap();
        file.set_modified(SystemTime::now() + HOUR * 100).unwrap();
    }
    store.put(key(2), KIND, "", &[&[0; 1000]]).unwrap();
    assert!(store.get(key(2), KIND).is_some());
    assert_eq!(store.list().unwrap().len(), 2);
}

#[test]
fn the_time_of_last_use_is_set_at_most_once_a_minute() {
    let (_above, store) = store(1 << 20);
    store.put(key(1), KIND, "", &[b"x"]).unwrap();
    let file = file_of(&store, key(1));
    let used = || fs::metadata(&file).unwrap().modified().unwrap();
    age(&file, Duration::from_secs(50));
    let before = used();
    store.get(key(1), KIND).unwrap();
    assert_eq!(used(), before);
    age(&file, Duration::from_secs(70));
    store.get(key(1), KIND).unwrap();
    assert!(used() > before);
    File::options().append(true).open(&file).unwrap().set_modified(SystemTime::now() + HOUR).unwrap();
    store.get(key(1), KIND).unwrap();
    assert!(used() <= SystemTime::now(), "a clock that was wrong keeps nothing for ever");
}

#[test]
fn what_is_too_large_is_refused_and_the_rest_stays() {
    let (_above, store) = store(1000);
    store.put(key(1), KIND, "", &[b"small"]).unwrap();
    let error = store.put(key(1), KIND, "", &[&[0; 1000]]).unwrap_err();
    assert!(matches!(error, CacheError::TooLarge { limit: 1000, .. }), "{error}");
    assert_eq!(store.get(key(1), KIND).unwrap(), b"small");
    assert_eq!(names(store.folder().path()).len(), 2, "nothing is left of it");
}

#[test]
fn a_writer_that_fails_leaves_nothing() {
    let (_above, store) = store(1 << 20);
    let result = store.put_with(key(1), KIND, "", |out| {
        out.write_all(&vec![1; 100_000])?;
        Err(io::ErrorKind::StorageFull.into())
    });
    assert!(result.unwrap_err().is_full());
    assert_eq!(names(store.folder().path()), ["CACHEDIR.TAG"]);
}

#[test]
fn what_killed_processes_left_is_removed_and_what_is_being_written_is_not() {
    let (_above, store) = store(1 << 20);
    let folder = store.folder().path().to_owned();
    let left = folder.join(".halite-0123456789abcdef.tmp");
    let theirs = folder.join(".halite-mine.tmp");
    for path in [&left, &theirs] {
        fs::write(path, [0; 500]).unwrap();
        age(path, 1000 * HOUR);
    }
    store
        .put_with(key(1), KIND, "", |out| {
            // Another process tidies up meanwhile, and this one seems to have been at it for long.
            let own = |name: &&String| name.starts_with(".halite-") && !name.contains("mine");
            let own: Vec<_> = names(&folder).iter().filter(own).map(|name| folder.join(name)).collect();
            own.iter().for_each(|path| age(path, HOUR));
            assert_eq!((own.len(), store.clear().unwrap()), (2, Cleared { files: 1, bytes: 500 }));
            out.write_all(b"whole")
        })
        .unwrap();
    assert_eq!(store.get(key(1), KIND).unwrap(), b"whole");
    assert!(!left.exists() && theirs.exists());
}
