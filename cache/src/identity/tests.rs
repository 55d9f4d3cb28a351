//! Files that change in every way that does not show in size and time.

use std::time::Duration;

use super::*;
use crate::Folder;

struct Bench {
    folder: tempfile::TempDir,
    store: Store,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(Folder::open(&folder.path().join("cache")).unwrap(), 1 << 20);
        Bench { folder, store }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn memos(&self) -> usize {
        self.store.list().unwrap().len()
    }

    /// The digest of a file that is opened ten seconds from now, when its stamp stands for its content.
    fn later(&self, path: &Path) -> Digest {
        let file = InputFile {
            opened: SystemTime::now() + Duration::from_secs(10),
            ..InputFile::open(path).unwrap()
        };
        file.digest(Some(&self.store)).unwrap()
    }
}

/// Writes a file again and again until its stamp differs in the time that programs cannot set.
fn write_with_time(path: &Path, contents: &[u8], modified: SystemTime) {
    let changed = |path: &Path| Stamp::of(&File::open(path).unwrap()).unwrap().changed_ns;
    let before = changed(path);
    while changed(path) == before {
        fs::write(path, contents).unwrap();
        File::options().append(true).open(path).unwrap().set_modified(modified).unwrap();
    }
}

#[test]
fn an_unchanged_file_is_not_read_again() {
    let bench = Bench::new();
    let path = bench.path("model");
    fs::write(&path, "one").unwrap();
    assert_eq!(bench.later(&path), Digest::of(b"one"));
    assert_eq!(bench.memos(), 1);
    // A memo that says something else shows that it is asked.
    let file = InputFile::open(&path).unwrap();
    let memo = encode(&file.stamp, Digest::of(b"from the memo")).unwrap();
    bench.store.put(file.memo_key().unwrap(), MEMO, "", &[&memo]).unwrap();
    assert_eq!(file.digest(Some(&bench.store)).unwrap(), Digest::of(b"from the memo"));
    assert_eq!(file.digest_of(b"one", Some(&bench.store)).unwrap(), Digest::of(b"from the memo"));
    assert_eq!(file.digest(None).unwrap(), Digest::of(b"one"));
}

/// Audit H2: `cp -p`, `rsync -t` and `touch -r` gave yesterday's numbers.
#[test]
fn the_same_size_and_time_do_not_hide_other_contents() {
    let bench = Bench::new();
    let (path, fresh) = (bench.path("model"), bench.path("fresh"));
    fs::write(&path, "one").unwrap();
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    assert_eq!(bench.later(&path), Digest::of(b"one"));
    // In place, as by `cp -p`.
    write_with_time(&path, b"two", modified);
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), modified);
    assert_eq!(bench.later(&path), Digest::of(b"two"));
    // Another file under the same name, as by rsync.
    fs::write(&fresh, "six").unwrap();
    File::options().append(true).open(&fresh).unwrap().set_modified(modified).unwrap();
    fs::rename(&fresh, &path).unwrap();
    assert_eq!(bench.later(&path), Digest::of(b"six"));
    assert_eq!(bench.memos(), 1, "one memo for one path");
}

#[test]
fn a_file_that_was_written_just_now_is_not_remembered() {
    let bench = Bench::new();
    let path = bench.path("model");
    fs::write(&path, "one").unwrap();
    let old = SystemTime::now() - Duration::from_secs(3600);
    File::options().append(true).open(&path).unwrap().set_modified(old).unwrap();
    let file = InputFile::open(&path).unwrap();
    assert_eq!(file.digest(Some(&bench.store)).unwrap(), Digest::of(b"one"));
    assert_eq!(bench.memos(), 0, "its time of change is new, whatever its time of modification");
}

#[test]
fn stamps_settle_after_two_seconds() {
    let at = |seconds: i128| seconds * 1_000_000_000;
    let stamp = |modified, changed: Option<i128>| Stamp {
        device: 1,
        inode: 1,
        length: 1,
        modified_ns: at(modified),
        changed_ns: changed.map(at),
    };
    let now = UNIX_EPOCH + Duration::from_secs(100);
    assert!(stamp(98, Some(98)).settled(now));
    assert!(!stamp(99, Some(98)).settled(now) && !stamp(98, Some(99)).settled(now));
    assert!(!stamp(0, Some(200)).settled(now), "a time that has not come");
    assert!(!stamp(0, None).settled(now), "no time that can be trusted");
}

#[test]
fn a_file_that_is_written_while_it_is_digested_is_reported() {
    let bench = Bench::new();
    let path = bench.path("model");
    fs::write(&path, "one").unwrap();
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    let opened = || InputFile {
        opened: SystemTime::now() + Duration::from_secs(10),
        ..InputFile::open(&path).unwrap()
    };
    let file = opened();
    write_with_time(&path, b"two", modified);
    let store = Some(&bench.store);
    assert!(matches!(file.digest(store), Err(CacheError::Changed { .. })));
    assert!(matches!(file.digest_of(b"one", store), Err(CacheError::Changed { .. })));
    assert!(matches!(file.check_unchanged(), Err(CacheError::Changed { .. })));
    assert_eq!(bench.memos(), 0, "what was read is not filed under the stamp");
    let file = opened();
    assert!(matches!(file.digest_of(b"tw", store), Err(CacheError::Changed { .. })));
    assert_eq!(file.digest_of(b"two", store).unwrap(), Digest::of(b"two"));
    assert_eq!(bench.memos(), 1);
}

/// The model is replaced while it compiles: what was compiled keeps its own digest.
#[test]
fn a_replaced_file_does_not_get_the_old_ones_digest() {
    let bench = Bench::new();
    let (path, fresh) = (bench.path("model"), bench.path("fresh"));
    fs::write(&path, "one").unwrap();
    let file =
        InputFile { opened: SystemTime::now() + Duration::from_secs(10), ..InputFile::open(&path).unwrap() };
    fs::write(&fresh, "two").unwrap();
    fs::rename(&fresh, &path).unwrap();
    match file.digest(Some(&bench.store)) {
        Ok(digest) => assert_eq!(digest, Digest::of(b"one")),
        Err(error) => assert!(matches!(error, CacheError::Changed { .. }), "{error}"),
    }
    assert_eq!(bench.later(&path), Digest::of(b"two"));
}

#[test]
fn long_files_and_strange_ones() {
    let bench = Bench::new();
    let path = bench.path("long");
    let contents: Vec<u8> = (0..3 * CHUNK + 5).map(|n| n as u8).collect();
    fs::write(&path, &contents).unwrap();
    assert_eq!(InputFile::open(&path).unwrap().digest(None).unwrap(), Digest::of(&contents));
    assert!(InputFile::open(&bench.path("no")).unwrap_err().is_not_found());
    let error = InputFile::open(bench.folder.path()).unwrap_err();
    assert!(matches!(error, CacheError::Untrusted { why: Distrust::NotFile, .. }), "{error}");
}

#[test]
fn memos_are_read_back_or_not_at_all() {
    let stamp = Stamp { device: 1, inode: 2, length: 3, modified_ns: -4, changed_ns: Some(5) };
    let bytes = encode(&stamp, Digest::of(b"x")).unwrap();
    assert_eq!(decode(&bytes), Some((stamp, Digest::of(b"x"))));
    assert_eq!(decode(&bytes[1..]), None);
    assert_eq!(decode(&[bytes.as_slice(), &[0]].concat()), None);
    assert_eq!(encode(&Stamp { changed_ns: None, ..stamp }, Digest::of(b"x")), None);
}
