//! Which driver counts, and loading once, with a loader that reads the driver's name from the file instead of running it.

use std::sync::atomic::{AtomicUsize, Ordering};

use halite_hal::{Code, Device, DeviceInfo, Options, bail};

use super::*;
use crate::manifest::{Manifest, SUFFIX};

#[derive(Debug)]
struct Fake(String);

impl Driver for Fake {
    fn name(&self) -> &str {
        &self.0
    }
    fn description(&self) -> &str {
        "for tests"
    }
    fn options(&self) -> &[(&'static str, &'static str)] {
        &[]
    }
    fn enumerate(&self, _options: &Options) -> Result<Vec<DeviceInfo>> {
        Ok(Vec::new())
    }
    fn open(&self, _path: &str, _options: &Options) -> Result<Arc<dyn Device>> {
        bail!(Unavailable, "no devices")
    }
}

static LOADS: AtomicUsize = AtomicUsize::new(0);

/// A file that says `counted` is counted; one that says `broken` cannot be loaded.
fn load(path: &Path) -> Result<DriverLibrary> {
    let text = std::fs::read_to_string(path).unwrap();
    if text == "counted" {
        LOADS.fetch_add(1, Ordering::Relaxed);
    }
    match text.as_str() {
        "broken" => bail!(Incompatible, "'{}' is broken", path.display()),
        name => Ok(DriverLibrary {
            driver: Arc::new(Fake(name.to_owned())),
            path: path.to_owned(),
            version: "1.2".to_owned(),
            build: String::new(),
            abi_version: (0, 1),
        }),
    }
}

/// A folder with a manifest for driver `name`, whose library says `content`.
fn plugin(root: &Path, folder: &str, name: &str, content: &str) -> PathBuf {
    let folder = root.join(folder);
    std::fs::create_dir_all(&folder).unwrap();
    let library = format!("lib{name}.so");
    std::fs::write(folder.join(&library), content).unwrap();
    let manifest = Manifest::for_this_machine(name, "described", &library, "1.2");
    std::fs::write(folder.join(format!("{name}{SUFFIX}")), serde_json::to_string(&manifest).unwrap())
        .unwrap();
    folder
}

/// A registry with a linked driver `linked`, and what is found.
fn discover_with(discovery: &Discovery) -> DriverRegistry {
    let mut registry = DriverRegistry::empty();
    registry.register(Arc::new(Fake("linked".to_owned())));
    add_found(&mut registry, discovery, load, None);
    registry
}

fn names(registry: &DriverRegistry) -> Vec<&str> {
    registry.entries().iter().map(DriverEntry::name).collect()
}

fn library(entry: &DriverEntry) -> Option<&Path> {
    LibrarySource::of(entry).map(|source| source.library.as_path())
}

#[test]
fn given_plug_ins_replace_linked_drivers_and_found_ones_do_not() {
    let dir = tempfile::tempdir().unwrap();
    let folder = plugin(dir.path(), "a", "linked", "linked");
    let found = discover_with(&Discovery::around(std::slice::from_ref(&folder), None));
    assert!(found.entries()[0].source().is_none());
    let shadowed = &found.shadowed()[0];
    assert!(library(&shadowed.entry).is_some() && shadowed.reason.contains("linked in"), "{shadowed:?}");
    let given = discover_with(&Discovery::none().given([&folder]));
    assert_eq!(library(&given.entries()[0]), Some(&*folder.join("liblinked.so")));
    let shadowed = &given.shadowed()[0];
    assert!(shadowed.entry.source().is_none() && shadowed.reason.contains("given"), "{shadowed:?}");
    assert_eq!(given.driver("linked").unwrap().name(), "linked");
}

#[test]
fn the_earlier_of_two_plug_ins_counts() {
    let dir = tempfile::tempdir().unwrap();
    let [first, second] = ["1", "2"].map(|folder| plugin(dir.path(), folder, "x", "x"));
    let registry = discover_with(&Discovery::around(std::slice::from_ref(&first), None).given([&second]));
    assert_eq!(names(&registry), ["linked", "x"]);
    assert_eq!(library(&registry.entries()[1]), Some(&*second.join("libx.so")));
    let shadowed = &registry.shadowed()[0];
    assert_eq!(library(&shadowed.entry), Some(&*first.join("libx.so")));
    assert!(shadowed.reason.contains("is found first"), "{shadowed:?}");
}

#[test]
fn libraries_are_loaded_once_and_only_when_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let folder = plugin(dir.path(), "a", "counted", "counted");
    let registry = discover_with(&Discovery::none().given([folder]));
    let entry = &registry.entries()[0];
    assert_eq!((entry.name(), entry.description()), ("counted", "described"));
    assert!(entry.loaded().is_none() && LOADS.load(Ordering::Relaxed) == 0);
    let clone = registry.clone();
    for registry in [&registry, &clone, &registry] {
        registry.driver("counted").unwrap();
    }
    assert!(entry.loaded().is_some() && LOADS.load(Ordering::Relaxed) == 1);
}

#[test]
fn failures_are_remembered_with_path_and_advice() {
    let dir = tempfile::tempdir().unwrap();
    let folder = plugin(dir.path(), "a", "bad", "broken");
    plugin(dir.path(), "a", "liar", "other");
    let registry = discover_with(&Discovery::none().given([&folder]));
    let error = registry.driver("bad").unwrap_err();
    assert_eq!(error.code(), Code::Incompatible);
    for words in ["libbad.so", "bad.halite-driver.json", "install it anew"] {
        assert!(error.to_string().contains(words), "{error}");
    }
    // Repaired meanwhile: what was told once stays true for this process.
    std::fs::write(folder.join("libbad.so"), "bad").unwrap();
    assert_eq!(registry.driver("bad").unwrap_err().to_string(), error.to_string());
    let error = registry.driver("liar").unwrap_err().to_string();
    assert!(error.contains("calls itself driver 'other', its manifest says 'liar'"), "{error}");
    assert_eq!(registry.driver("linked").unwrap().name(), "linked");
}

#[test]
fn libraries_without_manifest_are_loaded_to_learn_their_name() {
    let dir = tempfile::tempdir().unwrap();
    let [good, bad] = [("good.so", "good"), ("bad.so", "broken")].map(|(file, content)| {
        let path = dir.path().join(file);
        std::fs::write(&path, content).unwrap();
        path
    });
    let registry = discover_with(&Discovery::none().given([&bad, &good]));
    assert_eq!(names(&registry), ["good", "linked"]);
    assert_eq!(library(&registry.entries()[0]), Some(&*good));
    assert_eq!(registry.skipped()[0].path, bad);
    let error = registry.driver("bad").unwrap_err().to_string();
    assert!(
        error.contains("available drivers: good, linked; skipped: ") && error.contains("bad.so"),
        "{error}"
    );
}

#[test]
fn fingerprints_are_of_the_library() {
    let dir = tempfile::tempdir().unwrap();
    let folder = plugin(dir.path(), "a", "abc", "abc");
    let registry = discover_with(&Discovery::none().given([folder]));
    let source = LibrarySource::of(&registry.entries()[0]).expect("a plug-in");
    assert!(source.sha256().unwrap().starts_with("ba7816bf8f01cfea"));
    assert_eq!(source.version, "1.2");
}
