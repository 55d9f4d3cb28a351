//! Where a user's caches are.

use std::{ffi::OsString, path::PathBuf, sync::Once};

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

/// Halite's folder among this user's caches: `halite` in `$XDG_CACHE_HOME` or `~/.cache`, `~/Library/Caches`,
/// `%LOCALAPPDATA%`. `None` when the environment does not say, as in an Android app: then there is no cache, unless the
/// caller names a folder. `variable` gives environment variables. Relative paths are ignored, as the XDG rules want it.
pub fn user_cache(os: Os, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let variable = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = match os {
        Os::Windows => variable("LOCALAPPDATA"),
        Os::Mac => variable("HOME").map(|home| home.join("Library").join("Caches")),
        Os::Unix => variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache"))),
    };
    base.map(|b| b.join("halite"))
}

/// [`user_cache`] of this process. Where there is none, one line is logged, once.
pub fn user_cache_here() -> Option<PathBuf> {
    static TOLD: Once = Once::new();
    let found = user_cache(Os::THIS, &|name| std::env::var_os(name));
    if found.is_none() {
        let variables =
            if cfg!(windows) { "LOCALAPPDATA is not" } else { "neither XDG_CACHE_HOME nor HOME is" };
        TOLD.call_once(|| {
            log::warn!("nothing is cached: {variables} set to an absolute path; set one, or name a folder for the cache");
        });
    }
    found
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
        assert_eq!(of(Os::Unix, &[("HOME", "relative")]), None);
    }
}
