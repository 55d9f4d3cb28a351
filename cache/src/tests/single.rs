//! Files outside of private folders.

use super::*;
use crate::{check_trusted, replace_file};

#[test]
fn a_file_is_replaced_whole() {
    let above = tempfile::tempdir().unwrap();
    let path = above.path().join("deep/er/tuning.json");
    replace_file(&path, b"one").unwrap();
    replace_file(&path, b"two").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"two");
    assert_eq!(names(path.parent().unwrap()), ["tuning.json"]);
    assert!(check_trusted(&above.path().join("no")).unwrap_err().is_not_found());
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

    use super::*;
    use crate::{CacheError, Distrust};

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn library() -> (tempfile::TempDir, PathBuf) {
        let (above, folder) = place();
        let path = folder.join("swiftshader/lib.so");
        replace_file(&path, b"code").unwrap();
        (above, path)
    }

    fn distrust(path: &Path) -> String {
        match check_trusted(path) {
            Err(error @ CacheError::Untrusted { .. }) => error.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn nothing_is_written_through_links() {
        let above = tempfile::tempdir().unwrap();
        let (path, elsewhere) = (above.path().join("tuning.json"), above.path().join("elsewhere"));
        fs::write(&elsewhere, "precious").unwrap();
        symlink(&elsewhere, &path).unwrap();
        symlink(&elsewhere, above.path().join("tuning.json.new")).unwrap();
        replace_file(&path, b"new").unwrap();
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "precious");
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let linked = above.path().join("linked");
        fs::create_dir(above.path().join("real")).unwrap();
        symlink("real", &linked).unwrap();
        replace_file(&linked.join("x"), b"1").unwrap();
        assert_eq!(names(&above.path().join("real")), ["x"], "a folder may be a link");
    }

    #[test]
    fn code_that_others_could_write_is_refused() {
        let (above, path) = library();
        check_trusted(&path).unwrap();
        let folder = path.parent().unwrap();
        for (lax, mode) in
            [(path.as_path(), 0o662), (path.as_path(), 0o620), (folder, 0o777), (folder, 0o770)]
        {
            let before = fs::metadata(lax).unwrap().mode() & 0o7777;
            set_mode(lax, mode);
            let told = distrust(&path);
            assert!(told.contains(&format!("chmod go-w '{}'", lax.display())), "{told}");
            set_mode(lax, before);
        }
        check_trusted(&path).unwrap();
        set_mode(folder, 0o1777);
        check_trusted(&path).unwrap();
        let link = above.path().join("link.so");
        symlink(&path, &link).unwrap();
        check_trusted(&link).unwrap();
        set_mode(folder, 0o777);
        distrust(&link);
    }

    #[test]
    fn code_of_another_user_is_refused() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: only root can make a file of another user's");
            return;
        }
        let (_above, path) = library();
        for theirs in [path.as_path(), path.parent().unwrap()] {
            chown(theirs, Some(54321), None).unwrap();
            assert!(distrust(&path).contains("belongs to user 54321"));
            chown(theirs, Some(0), None).unwrap();
        }
        check_trusted(&path).unwrap();
        let expected = Distrust::Owner { owner: 54321, user: 0 };
        chown(&path, Some(54321), None).unwrap();
        assert!(matches!(check_trusted(&path), Err(CacheError::Untrusted { why, .. }) if why == expected));
    }
}
