//! Holds files to 500 lines and functions to 50, but for as many in each crate as `limits.txt` says.

use super::{
    limits::{self, Found},
    sources::files,
    text::{code_only, functions},
};

const FILE: usize = 500;
const FUNCTION: usize = 50;

/// The folder of the crate that a file belongs to: the innermost that has a manifest. What is outside of the workspace counts, too.
fn folder<'a>(name: &str, folders: &'a [String]) -> &'a str {
    let inside = folders
        .iter()
        .filter(|folder| name.strip_prefix(folder.as_str()).is_some_and(|r| r.starts_with('/')));
    inside.max_by_key(|folder| folder.len()).map_or("", String::as_str)
}

/// Each crate's sources: folder, name and text.
fn sources() -> Option<Vec<(String, String, String)>> {
    let manifests = files(&["toml"])?;
    let folders: Vec<String> =
        manifests.iter().filter_map(|(name, _)| Some(name.strip_suffix("/Cargo.toml")?.to_owned())).collect();
    let sources = files(&["rs"])?.into_iter();
    Some(sources.map(|(name, text)| (folder(&name, &folders).to_owned(), name, text)).collect())
}

#[test]
fn files_are_short() {
    let Some(sources) = sources() else { return };
    let mut found = Found::new();
    for (folder, name, text) in sources {
        let lines = text.lines().count();
        let entry = found.entry(folder).or_default();
        if lines > FILE {
            entry.push(format!("{name}: {lines} lines"));
        }
    }
    limits::hold("long files", &found);
}

#[test]
fn functions_are_short() {
    let Some(sources) = sources() else { return };
    let mut found = Found::new();
    for (folder, name, text) in sources {
        let code = code_only(&text);
        let long = functions(&code).into_iter().filter(|function| function.lines > FUNCTION);
        let told = long.map(|f| format!("{name}:{}: {}: {} lines", f.line, f.name, f.lines));
        found.entry(folder).or_default().extend(told);
    }
    limits::hold("long functions", &found);
}

#[test]
fn files_belong_to_the_innermost_crate() {
    let folders = ["drivers/vulkan".to_owned(), "drivers/vulkan/plugin".to_owned(), "vm".to_owned()];
    assert_eq!(folder("drivers/vulkan/plugin/src/lib.rs", &folders), "drivers/vulkan/plugin");
    assert_eq!(folder("drivers/vulkan/pluginx.rs", &folders), "drivers/vulkan");
    assert_eq!(folder("vmx/src/lib.rs", &folders), "");
}
