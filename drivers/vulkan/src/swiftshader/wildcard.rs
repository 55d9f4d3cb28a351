//! Paths with a `*` in a component.

use std::{
    cmp::Ordering,
    path::{Path, PathBuf},
};

/// The files that a pattern fits, the highest version number first. A component may have one `*`, which stands for any
/// run of characters; folders that cannot be read hold nothing.
pub(super) fn expand(pattern: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for component in pattern.components() {
        let text = component.as_os_str().to_string_lossy();
        found = match text.split_once('*') {
            None => found.into_iter().map(|base| base.join(component)).collect(),
            Some((before, after)) => found.iter().flat_map(|base| matching(base, before, after)).collect(),
        };
    }
    found.retain(|path| path.is_file());
    found
}

fn matching(folder: &Path, before: &str, after: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
    let mut fitting: Vec<(String, PathBuf)> = names
        .map(|name| (name.to_string_lossy().into_owned(), folder.join(name)))
        .filter(|(text, _)| {
            text.len() >= before.len() + after.len() && text.starts_with(before) && text.ends_with(after)
        })
        .collect();
    fitting.sort_by(|(a, _), (b, _)| by_version(b, a));
    fitting.into_iter().map(|(_, path)| path).collect()
}

/// Orders texts with their numbers as numbers: `99.1` before `100.0`.
fn by_version(a: &str, b: &str) -> Ordering {
    let key = |text: &str| -> Vec<(u64, String)> {
        let runs = text.split(|c: char| !c.is_ascii_digit()).filter(|run| !run.is_empty());
        runs.map(|digits| (digits.parse().unwrap_or(u64::MAX), digits.to_owned())).collect()
    };
    key(a).cmp(&key(b)).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(by_version("99.1.2", "100.0"), Ordering::Less);
        assert_eq!(by_version("app-1.10", "app-1.9"), Ordering::Greater);
        assert_eq!(by_version("a", "b"), Ordering::Less);
        assert_eq!(by_version("99999999999999999999999", "1"), Ordering::Greater);
    }

    #[test]
    fn only_files_that_fit_are_found() {
        let folder = tempfile::tempdir().unwrap();
        for version in ["9.1", "10.2", "other"] {
            std::fs::create_dir_all(folder.path().join(format!("app-{version}/lib"))).unwrap();
        }
        for version in ["9.1", "10.2"] {
            std::fs::write(folder.path().join(format!("app-{version}/lib/x.so")), "").unwrap();
        }
        let found = expand(&folder.path().join("app-*/lib/x.so"));
        let wanted = ["app-10.2/lib/x.so", "app-9.1/lib/x.so"].map(|p| folder.path().join(p));
        assert_eq!(found, wanted);
        assert!(expand(&folder.path().join("app-*/lib")).is_empty(), "a folder is no file");
        assert!(expand(&folder.path().join("none-*/x.so")).is_empty());
        assert!(expand(&folder.path().join("app-9.1/lib/x.so/*/y")).is_empty());
    }
}
