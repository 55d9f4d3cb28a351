//! The order of the search, in surroundings of our own.

use super::*;

type Variables = &'static [(&'static str, &'static str)];

fn search(os: Os, variables: Variables, program: Option<&str>) -> Vec<SearchPath> {
    places(&Surroundings {
        os,
        variable: &|name| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v)),
        program: program.map(PathBuf::from),
        root: PathBuf::from("/"),
    })
}

fn at<'a>(places: &'a [SearchPath], path: &str) -> Option<(usize, &'a str)> {
    places.iter().enumerate().find(|(_, p)| p.pattern == Path::new(path)).map(|(i, p)| (i, p.what))
}

#[test]
fn what_the_user_says_comes_first_then_the_projects_own_then_others() {
    let set = &[("HALITE_SWIFTSHADER", "/named/lib.so"), ("HOME", "/home/x")];
    let found = search(Os::Unix, set, Some("/app/bin"));
    let firsts: Vec<_> = found.iter().take(3).map(|p| p.pattern.to_string_lossy().into_owned()).collect();
    let cache = "/home/x/.cache/halite/swiftshader/libvk_swiftshader.so";
    assert_eq!(firsts, ["/named/lib.so", cache, "/app/bin/libvk_swiftshader.so"]);
    let order = ["/opt/google/chrome", "/usr/lib/chromium", "/opt/microsoft/msedge", "/usr/lib/electron*"]
        .map(|folder| at(&found, &format!("{folder}/libvk_swiftshader.so")).unwrap().0);
    assert!(order.is_sorted() && order[0] > 2, "{order:?}");
    assert!(at(&found, "/home/x/.cache/ms-playwright/chromium*/chrome-*/libvk_swiftshader.so").is_some());
}

#[test]
fn what_is_not_known_is_left_out() {
    let found = search(Os::Unix, &[], None);
    assert_eq!(found[0].what, "system");
    assert!(
        found.iter().all(|p| p.pattern.is_absolute()),
        "nothing depends on the current folder: {found:?}"
    );
    assert!(search(Os::Windows, &[], None).is_empty());
}

#[test]
fn each_system_has_its_own_places() {
    let mac = search(Os::Mac, &[("HOME", "/Users/x")], None);
    let inside = "Contents/Frameworks/Google Chrome Framework.framework/Versions/Current/Libraries";
    for base in ["/Applications", "/Users/x/Applications"] {
        let path = format!("{base}/Google Chrome.app/{inside}/libvk_swiftshader.dylib");
        assert_eq!(at(&mac, &path).unwrap().1, "Chrome");
    }
    let set = &[("ProgramFiles(x86)", "/pf86"), ("LOCALAPPDATA", "/local")];
    let windows = search(Os::Windows, set, None);
    assert_eq!(at(&windows, "/local/halite/swiftshader/vk_swiftshader.dll").unwrap().0, 0);
    assert_eq!(at(&windows, "/pf86/Microsoft/Edge/Application/*/vk_swiftshader.dll").unwrap().1, "Edge");
    assert!(at(&windows, "/local/*/app-*/vk_swiftshader.dll").is_some());
}

#[test]
fn installed_files_are_found_below_a_root() {
    let root = tempfile::tempdir().unwrap();
    for folder in ["usr/lib/chromium", "opt/google/chrome", "opt/Some App"] {
        std::fs::create_dir_all(root.path().join(folder)).unwrap();
        std::fs::write(root.path().join(folder).join("libvk_swiftshader.so"), "").unwrap();
    }
    let around =
        Surroundings { os: Os::Unix, variable: &|_| None, program: None, root: root.path().to_owned() };
    let files: Vec<_> = places(&around).iter().flat_map(SearchPath::files).collect();
    let wanted = ["opt/google/chrome", "usr/lib/chromium", "opt/Some App"]
        .map(|folder| root.path().join(folder).join("libvk_swiftshader.so"));
    assert_eq!(files, wanted);
}

#[test]
fn a_folder_may_be_named_instead_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(library_in(folder.path()), folder.path().join(file_name(Os::THIS)));
    assert_eq!(library_in(Path::new("/no/such.so")), Path::new("/no/such.so"));
}

#[test]
fn the_description_groups_places() {
    let place = |what, path: &str| SearchPath { what, pattern: path.into(), in_cache: false };
    let text = describe(&[place("Edge", "/a"), place("Edge", "/b"), place("Chrome", "/c")]);
    assert_eq!(text, "Edge: /a, /b; Chrome: /c");
}

/// Audit H4: a library in a cache that everybody may write to was loaded.
#[cfg(unix)]
#[test]
fn only_the_users_own_library_is_taken_from_the_cache() {
    use std::os::unix::fs::PermissionsExt;

    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".cache/halite/swiftshader");
    let library = folder.join("libvk_swiftshader.so");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(&library, "").unwrap();
    let set = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let around = Surroundings {
        os: Os::Unix,
        variable: &|name| (name == "HOME").then(|| home.path().into()),
        program: None,
        root: home.path().join("root"),
    };
    let judged = || {
        let found = places(&around);
        let mut files =
            found.iter().flat_map(|place| place.files().into_iter().map(move |file| place.judge(&file)));
        files.next().expect("the library is there").map_err(|error| error.to_string())
    };
    for (path, good) in [(library.as_path(), 0o644), (&folder, 0o755)] {
        set(path, good);
    }
    judged().unwrap();
    for (path, bad, good) in [(library.as_path(), 0o666, 0o644), (&folder, 0o777, 0o755)] {
        set(path, bad);
        let told = judged().unwrap_err();
        assert!(told.contains(&format!("chmod go-w '{}'", path.display())), "{told}");
        set(path, good);
    }
    judged().unwrap();
}
