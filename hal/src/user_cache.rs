//! Owns where this user's caches are. Does not own what is kept there.

use std::{ffi::OsString, path::PathBuf};

/// The operating systems whose folders differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Os {
    /// Linux, Android and the other Unixes: XDG folders.
    Unix,
    /// macOS and its kin.
    Mac,
    /// Windows.
    Windows,
}

impl Os {
    /// The system that this program was built for.
    pub const THIS: Os = if cfg!(windows) {
        Os::Windows
    } else if cfg!(any(target_os = "macos", target_os = "ios")) {
        Os::Mac
    } else {
        Os::Unix
    };
}

/// Halite's folder among this user's caches; `None` when the environment does not say. `variable` gives environment
/// variables.
pub fn user_cache(os: Os, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let variable = |name| variable(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let base = match os {
        Os::Windows => variable("LOCALAPPDATA"),
        Os::Mac => variable("HOME").map(|home| home.join("Library").join("Caches")),
        // The XDG rules say that a relative path is to be ignored.
        Os::Unix => variable("XDG_CACHE_HOME")
            .filter(|p| p.is_absolute())
            .or_else(|| variable("HOME").map(|home| home.join(".cache"))),
    };
    base.map(|b| b.join("halite"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_has_its_own_folder() {
        let of = |os, set: &[(&str, &str)]| {
            user_cache(os, &|name| set.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v)))
        };
        let home = [("HOME", "/home/x"), ("XDG_CACHE_HOME", "/xdg"), ("LOCALAPPDATA", "/local")];
        assert_eq!(of(Os::Unix, &home), Some("/xdg/halite".into()));
        assert_eq!(of(Os::Unix, &home[..1]), Some("/home/x/.cache/halite".into()));
        assert_eq!(
            of(Os::Unix, &[("XDG_CACHE_HOME", "relative"), home[0]]),
            Some("/home/x/.cache/halite".into())
        );
        assert_eq!(of(Os::Mac, &home), Some("/home/x/Library/Caches/halite".into()));
        assert_eq!(of(Os::Windows, &home), Some("/local/halite".into()));
        assert_eq!(of(Os::Unix, &[("HOME", "")]), None);
    }
}
