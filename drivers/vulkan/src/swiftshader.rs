//! Where SwiftShader's library is looked for, and in which order.
//!
//! SwiftShader is a Vulkan driver for processors. Browsers and desktop programs made from Chromium carry it, so many
//! machines without a Vulkan driver have it all the same.

mod places;
mod wildcard;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use halite_cache::{CacheError, Os, check_trusted, user_cache};

/// Environment variable that names the library, or the folder it is in.
pub(crate) const VARIABLE: &str = "HALITE_SWIFTSHADER";

/// How to get it.
pub(crate) const ADVICE: &str = "to run on the processor: cargo xtask swiftshader fetches SwiftShader on Debian and Ubuntu; an installed Chrome, \
     Chromium or Edge has it too; or name its library with HALITE_SWIFTSHADER or the option swiftshader=<path>";

/// The path of SwiftShader's only device: `SwiftShaderUUID` as a UUID, the same in all its versions.
pub(crate) const DEVICE_PATH: &str = "GPU-53776966745368616465725555494400";

/// Where the search happens; tests have their own.
pub(crate) struct Surroundings<'a> {
    pub os: Os,
    /// Environment variables.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// Folder of this program.
    pub program: Option<PathBuf>,
    /// What absolute paths begin with.
    pub root: PathBuf,
}

impl Surroundings<'_> {
    /// Those of this process.
    pub(crate) fn here() -> Surroundings<'static> {
        // Linux knows the program by /proc, which not every container has.
        let named = || std::env::args_os().next().map(PathBuf::from).filter(|path| path.is_absolute());
        let program = std::env::current_exe().ok().or_else(named);
        Surroundings {
            os: Os::THIS,
            variable: &|name| std::env::var_os(name).filter(|value| !value.is_empty()),
            program: program.as_deref().and_then(Path::parent).map(Path::to_owned),
            root: PathBuf::from("/"),
        }
    }

    fn folder(&self, variable: &str) -> Option<PathBuf> {
        (self.variable)(variable).map(PathBuf::from)
    }
}

/// One place to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SearchPath {
    /// What would be there: words for messages.
    pub what: &'static str,
    /// The library; components may have a `*`, for versions.
    pub pattern: PathBuf,
    /// Whether it is in this user's cache: only what nobody else could have put there is loaded from that.
    pub in_cache: bool,
}

impl SearchPath {
    /// The files that are there, the newest version first.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        wildcard::expand(&self.pattern)
    }

    /// Whether a file of this place may be loaded.
    ///
    /// # Errors
    /// Others could have written it. The text says what to do.
    pub(crate) fn judge(&self, file: &Path) -> Result<(), CacheError> {
        if self.in_cache { check_trusted(file) } else { Ok(()) }
    }
}

/// File name of the library.
pub(crate) fn file_name(os: Os) -> &'static str {
    match os {
        Os::Unix => "libvk_swiftshader.so",
        Os::Mac => "libvk_swiftshader.dylib",
        Os::Windows => "vk_swiftshader.dll",
    }
}

/// The library that a path names, which may be its folder.
pub(crate) fn library_in(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(file_name(Os::THIS)) } else { path.to_owned() }
}

/// Every place, the first one to be tried first: the environment variable, the cache that `cargo xtask swiftshader`
/// fills, beside this program, then what other programs install.
pub(crate) fn places(around: &Surroundings<'_>) -> Vec<SearchPath> {
    let name = file_name(around.os);
    let place = |what, pattern, in_cache| SearchPath { what, pattern, in_cache };
    let named = around.folder(VARIABLE).map(|path| place("HALITE_SWIFTSHADER", library_in(&path), false));
    let cache = user_cache(around.os, around.variable).map(|cache| cache.join("swiftshader").join(name));
    let cache = cache.map(|path| place("cache of cargo xtask swiftshader", path, true));
    let program = around.program.as_ref();
    let beside = program.map(|folder| place("beside this program", folder.join(name), false));
    let others = places::of_other_programs(around).into_iter();
    let others = others.map(|(what, folder)| place(what, folder.join(name), false));
    [named, cache, beside].into_iter().flatten().chain(others).collect()
}

/// The places in one line, those of one kind together.
pub(crate) fn describe(places: &[SearchPath]) -> String {
    let mut text = String::new();
    let mut last = None;
    for place in places {
        let path = place.pattern.display();
        if last == Some(place.what) {
            text.push_str(&format!(", {path}"));
        } else {
            let separator = if text.is_empty() { "" } else { "; " };
            text.push_str(&format!("{separator}{}: {path}", place.what));
        }
        last = Some(place.what);
    }
    text
}

#[cfg(test)]
mod tests;
