//! Which drivers the tools link in: all that this repository has as crates, or none.

use halite::hal::DriverRegistry;
#[cfg(feature = "static-drivers")]
use halite::plugin::{discovery::Discovery, manifest::Manifest};
#[allow(
    clippy::single_component_path_imports,
    reason = "links the tools' library, which links the drivers"
)]
use halite_tools as _;

fn linked() -> Vec<String> {
    DriverRegistry::with_static_drivers().entries().iter().map(|e| e.name().to_owned()).collect()
}

#[cfg(feature = "static-drivers")]
#[test]
fn every_driver_crate_is_linked() {
    halite::hal::verify_linked().expect("what the tools state to link is linked");
    let drivers = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../drivers");
    let linked = linked();
    let mut crates = 0;
    for folder in
        std::fs::read_dir(drivers).expect("the repository has drivers").map(|e| e.expect("an entry"))
    {
        if !folder.path().join("Cargo.toml").is_file() {
            continue;
        }
        crates += 1;
        // A crate may have several drivers: local-sync and local-task are in drivers/local.
        let name = folder.file_name().into_string().expect("plain names");
        let prefix = format!("{name}-");
        assert!(
            linked.iter().any(|l| *l == name || l.starts_with(&prefix)),
            "drivers/{name} is not linked into the tools, which have: {linked:?}"
        );
    }
    assert!(crates >= 2, "only {crates} driver crates were found: the search is broken");
}

/// Every linked driver is a plug-in, too, and its manifest says what the driver says.
#[cfg(feature = "static-drivers")]
#[test]
fn every_driver_has_a_manifest() {
    let drivers = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../drivers");
    let folders = |path: &std::path::Path| -> Vec<_> {
        let entries = std::fs::read_dir(path).expect("a folder of the repository");
        entries.map(|e| e.expect("an entry").path()).filter(|p| p.is_dir()).collect()
    };
    let plugins = folders(&drivers).into_iter().flat_map(|driver| folders(&driver));
    let findings = Discovery::none().given(plugins.filter(|p| p.join("Cargo.toml").is_file())).find();
    // The libraries are elsewhere: `cargo xtask plugins` brings both together.
    let manifests = findings.skipped.iter().map(|s| Manifest::read(&s.path).expect("a manifest"));
    let mut told: Vec<_> = manifests.map(|m| (m.name, m.description)).collect();
    told.sort();
    let registry = DriverRegistry::with_static_drivers();
    let linked = registry.entries().iter().map(|e| (e.name().to_owned(), e.description().to_owned()));
    assert_eq!(told, linked.collect::<Vec<_>>());
}

#[cfg(not(feature = "static-drivers"))]
#[test]
fn no_driver_is_linked() {
    assert_eq!(linked(), Vec::<String>::new());
}
