//! Whose folder it is.

use super::*;
use crate::CacheError;

#[test]
fn a_new_folder_is_marked_and_opened_again() {
    let above = tempfile::tempdir().unwrap();
    let path = above.path().join("a/b/c");
    assert!(Folder::open_existing(&path).unwrap_err().is_not_found());
    assert!(!path.exists(), "opening for reading creates nothing");
    assert_eq!(Folder::open(&path).unwrap().path(), path);
    let marker = fs::read_to_string(path.join("CACHEDIR.TAG")).unwrap();
    assert!(marker.starts_with("Signature: 8a477f597d28d172789f06886806bc55\n"), "{marker}");
    assert!(marker.contains("Halite"), "{marker}");
    fs::write(path.join("thesis.tex"), "").unwrap();
    Folder::open(&path).unwrap();
    Folder::open_existing(&path).unwrap();
}

#[test]
fn an_empty_folder_is_taken_and_a_full_one_is_left_alone() {
    let above = tempfile::tempdir().unwrap();
    let empty = above.path().join("empty");
    fs::create_dir(&empty).unwrap();
    assert!(matches!(Folder::open_existing(&empty), Err(CacheError::NotOurs { .. })));
    Folder::open(&empty).unwrap();
    let full = above.path().join("full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("thesis.tex"), "text").unwrap();
    let error = Folder::open(&full).unwrap_err();
    assert!(matches!(error, CacheError::NotOurs { .. }));
    assert!(error.to_string().contains("name a new folder or an empty one"), "{error}");
    assert_eq!(names(&full), ["thesis.tex"]);
    let tag = "Signature: 8a477f597d28d172789f06886806bc55\n# This file is a cache directory tag created by cargo.\n";
    fs::write(full.join("CACHEDIR.TAG"), tag).unwrap();
    assert!(matches!(Folder::open(&full), Err(CacheError::NotOurs { .. })), "another program's marker");
}

#[test]
fn a_file_is_no_folder() {
    let (_above, path) = place();
    fs::write(&path, "").unwrap();
    let error = Folder::open(&path).unwrap_err().to_string();
    assert!(error.contains("no folder"), "{error}");
}

#[test]
fn a_folder_that_is_deleted_comes_back() {
    let (_above, store) = store(1 << 20);
    store.put(key(1), KIND, "", &[b"one"]).unwrap();
    fs::remove_dir_all(store.folder().path()).unwrap();
    assert_eq!(store.get(key(1), KIND), None);
    store.put(key(1), KIND, "", &[b"again"]).unwrap();
    assert_eq!(store.get(key(1), KIND).unwrap(), b"again");
    let reader = Store::new(Folder::open_existing(store.folder().path()).unwrap(), 1 << 20);
    fs::remove_dir_all(store.folder().path()).unwrap();
    assert!(reader.list().unwrap_err().is_not_found());
    assert!(!store.folder().path().exists(), "a folder that was opened for reading stays away");
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

    use super::*;
    use crate::Distrust;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn distrust(path: &Path) -> Distrust {
        match Folder::open(path) {
            Err(CacheError::Untrusted { why, .. }) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn everything_is_closed_to_others() {
        let (_above, store) = store(1 << 20);
        store.put(key(1), KIND, "private", &[b"weights"]).unwrap();
        assert_eq!(mode(store.folder().path()), 0o700);
        for name in names(store.folder().path()) {
            assert_eq!(mode(&store.folder().path().join(&name)), 0o600, "{name}");
        }
    }

    #[test]
    fn folders_above_are_never_writable_for_others() {
        let above = tempfile::tempdir().unwrap();
        Folder::open(&above.path().join("halite/modules")).unwrap();
        assert_eq!(mode(&above.path().join("halite")) & 0o022, 0);
    }

    #[test]
    fn our_folder_is_closed_again() {
        let (_above, store) = store(1 << 20);
        store.put(key(1), KIND, "", &[b"one"]).unwrap();
        for lax in [0o777, 0o770, 0o755] {
            set_mode(store.folder().path(), lax);
            assert_eq!(store.get(key(1), KIND).unwrap(), b"one");
            assert_eq!(mode(store.folder().path()), 0o700);
        }
        let other = store.folder().path().with_file_name("empty");
        fs::create_dir(&other).unwrap();
        set_mode(&other, 0o775);
        Folder::open(&other).unwrap();
        assert_eq!(mode(&other), 0o700, "an empty folder that is taken is closed");
    }

    #[test]
    fn a_folder_that_is_not_ours_keeps_its_mode() {
        let (_above, path) = place();
        fs::create_dir(&path).unwrap();
        set_mode(&path, 0o755);
        fs::write(path.join("x"), "").unwrap();
        Folder::open(&path).unwrap_err();
        assert_eq!(mode(&path), 0o755);
    }

    #[test]
    fn a_link_is_no_folder() {
        let (_above, path) = place();
        Folder::open(&path).unwrap();
        let link = path.with_file_name("link");
        symlink(&path, &link).unwrap();
        assert_eq!(distrust(&link), Distrust::Link);
        assert_eq!(distrust(&link.join("")), Distrust::Link, "with a slash at its end");
        assert_eq!(distrust(&link.join(".")), Distrust::Link);
        symlink("nowhere", path.with_file_name("broken")).unwrap();
        assert_eq!(distrust(&path.with_file_name("broken")), Distrust::Link);
    }

    #[test]
    fn a_marker_that_others_could_have_written_is_none() {
        let (_above, path) = place();
        Folder::open(&path).unwrap();
        let kept = path.with_file_name("kept");
        fs::rename(path.join("CACHEDIR.TAG"), &kept).unwrap();
        symlink(&kept, path.join("CACHEDIR.TAG")).unwrap();
        assert!(matches!(Folder::open(&path), Err(CacheError::NotOurs { .. })));
        fs::remove_file(path.join("CACHEDIR.TAG")).unwrap();
        fs::rename(&kept, path.join("CACHEDIR.TAG")).unwrap();
        set_mode(&path.join("CACHEDIR.TAG"), 0o666);
        assert!(matches!(Folder::open(&path), Err(CacheError::NotOurs { .. })));
        set_mode(&path.join("CACHEDIR.TAG"), 0o644);
        Folder::open(&path).unwrap();
    }

    /// Whether this process can give files away; says so when it cannot.
    fn can_give_away() -> bool {
        let root = rustix::process::geteuid().is_root();
        if !root {
            eprintln!("SKIPPED: only root can make a file of another user's");
        }
        root
    }

    const OTHER: u32 = 54321;

    #[test]
    fn the_folder_of_another_user_is_refused() {
        if !can_give_away() {
            return;
        }
        let (_above, store) = store(1 << 20);
        store.put(key(1), KIND, "", &[b"theirs"]).unwrap();
        let path = store.folder().path();
        chown(path, Some(OTHER), None).unwrap();
        let user = rustix::process::geteuid().as_raw();
        assert_eq!(distrust(path), Distrust::Owner { owner: OTHER, user });
        assert_eq!(store.get(key(1), KIND), None);
        assert!(store.put(key(2), KIND, "", &[b"x"]).is_err() && store.clear().is_err());
        assert_eq!(names(path).len(), 2, "nothing was touched");
    }

    #[test]
    fn the_file_of_another_user_is_ignored() {
        if !can_give_away() {
            return;
        }
        let (_above, store) = store(1 << 20);
        store.put(key(1), KIND, "", &[b"theirs"]).unwrap();
        let file = file_of(&store, key(1));
        chown(&file, Some(OTHER), None).unwrap();
        assert_eq!(store.get(key(1), KIND), None);
        assert_eq!(store.list().unwrap(), []);
        store.clear().unwrap();
        assert!(file.exists(), "it is not ours");
        store.put(key(1), KIND, "", &[b"ours"]).unwrap();
        assert_eq!(store.get(key(1), KIND).unwrap(), b"ours");
    }

    #[test]
    fn links_and_pipes_and_open_files_are_ignored() {
        let (above, store) = store(1 << 20);
        store.put(key(1), KIND, "", &[b"content"]).unwrap();
        let (good, file) = (file_of(&store, key(1)), file_of(&store, key(2)));
        // A whole entry under the right name, but elsewhere.
        let elsewhere = above.path().join("elsewhere");
        fs::rename(&good, &elsewhere).unwrap();
        symlink(&elsewhere, &good).unwrap();
        assert_eq!(store.get(key(1), KIND), None);
        assert_eq!(store.total().unwrap(), 0);
        store.put(key(1), KIND, "", &[b"new"]).unwrap();
        assert_eq!(store.get(key(1), KIND).unwrap(), b"new");
        assert!(!fs::symlink_metadata(&good).unwrap().is_symlink(), "the link was replaced");
        assert!(elsewhere.exists(), "and what it led to was not");
        rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
            .unwrap();
        assert_eq!(store.get(key(2), KIND), None, "nobody waits for a pipe");
        assert!(file.exists(), "it is no entry, so it is not removed either");
        set_mode(&good, 0o620);
        assert_eq!(store.get(key(1), KIND), None);
        set_mode(&good, 0o600);
        assert_eq!(store.get(key(1), KIND).unwrap(), b"new");
    }
}
