//! Where driver libraries are looked for, and in which order. Loads nothing.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use halite_hal::Skipped;

use super::manifest::{Manifest, Misfit, SUFFIX};

/// Environment variable with more places: folders and manifests, separated as in `PATH`.
pub const PATH_VARIABLE: &str = "HALITE_DRIVER_PATH";
/// Folder of drivers, as seen from above the folder of the executable.
const INSTALLED: &str = "lib/halite/drivers";

/// How a place came to be searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The user named it for this program: what lies there replaces linked drivers.
    Given,
    /// It stands in [`PATH_VARIABLE`].
    Environment,
    /// It lies beside the executable, or where installation puts drivers.
    Installed,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Origin::Given => "given",
            Origin::Environment => PATH_VARIABLE,
            Origin::Installed => "installed",
        })
    }
}

/// Places to look for driver libraries, in order: given paths, [`PATH_VARIABLE`], the executable's own folder,
/// `../lib/halite/drivers` from there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discovery {
    places: Vec<(Origin, PathBuf)>,
}

/// A driver library that may be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its manifest and where that lies; `None` for a library that was given itself and has to be loaded to learn its name.
    pub manifest: Option<(PathBuf, Manifest)>,
    /// The library's absolute path: a bare name would be looked up in the system's folders.
    pub library: PathBuf,
    /// How it was found.
    pub origin: Origin,
}

/// The result of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// What may be used, in search order.
    pub plugins: Vec<Found>,
    /// What may not.
    pub skipped: Vec<Skipped>,
}

impl Discovery {
    /// Nowhere: no plug-ins.
    pub fn none() -> Self {
        Self::default()
    }

    /// [`PATH_VARIABLE`], the folder of the executable, and `../lib/halite/drivers` from there.
    pub fn standard() -> Self {
        let listed = std::env::var_os(PATH_VARIABLE).unwrap_or_default();
        let listed: Vec<_> = std::env::split_paths(&listed).collect();
        // Through symbolic links: what was installed lies around the real file.
        let executable = std::env::current_exe().ok();
        let executable = executable.map(|path| path.canonicalize().unwrap_or(path));
        Self::around(&listed, executable.as_deref())
    }

    /// The same for a list of paths and an executable that are told.
    pub fn around(listed: &[PathBuf], executable: Option<&Path>) -> Self {
        let listed = listed.iter().filter(|path| !path.as_os_str().is_empty());
        let mut places: Vec<_> = listed.map(|path| (Origin::Environment, path.clone())).collect();
        if let Some(folder) = executable.and_then(Path::parent) {
            places.push((Origin::Installed, folder.to_owned()));
            if let Some(root) = folder.parent() {
                places.push((Origin::Installed, root.join(INSTALLED)));
            }
        }
        Discovery { places }
    }

    /// Looks at these paths before all others. Each is a manifest, a library, or a folder of manifests.
    #[must_use]
    pub fn given(mut self, paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        let mut places: Vec<_> = paths.into_iter().map(|path| (Origin::Given, path.into())).collect();
        places.append(&mut self.places);
        Discovery { places }
    }

    /// The places, in order.
    pub fn places(&self) -> impl Iterator<Item = (Origin, &Path)> {
        self.places.iter().map(|(origin, path)| (*origin, path.as_path()))
    }

    /// Reads the manifests. What is reached on two ways counts once.
    pub fn find(&self) -> Findings {
        let mut search = Search::default();
        for (origin, path) in self.places() {
            search.place(origin, path);
        }
        search.findings
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[derive(Default)]
struct Search {
    seen: HashSet<PathBuf>,
    findings: Findings,
}

impl Search {
    fn place(&mut self, origin: Origin, path: &Path) {
        if path.is_dir() {
            self.folder(origin, path);
        } else if path.extension().is_some_and(|e| e == "json") {
            self.manifest(origin, path, true);
        } else if !path.exists() {
            // The places around the executable are guesses.
            if origin != Origin::Installed {
                self.skip(
                    path,
                    "does not exist; give a driver manifest, a driver library or a folder".to_owned(),
                );
            }
        } else if origin == Origin::Given {
            self.library(path);
        } else if origin == Origin::Environment {
            let reason =
                format!("is no folder and no manifest; a library has to be given by itself, not in {origin}");
            self.skip(path, reason);
        }
    }

    fn folder(&mut self, origin: Origin, folder: &Path) {
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(e) => {
                if origin != Origin::Installed {
                    self.skip(folder, format!("cannot be listed: {e}"));
                }
                return;
            }
        };
        let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
        let mut names: Vec<_> = names.filter(|name| name.to_string_lossy().ends_with(SUFFIX)).collect();
        // The order of a folder's entries is arbitrary.
        names.sort();
        for name in names {
            self.manifest(origin, &folder.join(name), false);
        }
    }

    /// `direct` when the path itself was given, not a folder that has it.
    fn manifest(&mut self, origin: Origin, path: &Path, direct: bool) {
        if !self.is_new(path) {
            return;
        }
        let manifest = match Manifest::read(path) {
            Ok(manifest) => manifest,
            Err(e) => return self.skip(path, e.message().to_owned()),
        };
        match manifest.misfit() {
            None => {}
            Some(Misfit::Abi(reason)) => return self.skip(path, reason),
            Some(Misfit::Machine(reason)) => {
                self.findings.skipped.push(Skipped { path: path.to_owned(), reason, notable: direct });
                return;
            }
        }
        let library = absolute(&manifest.library_path(path));
        if !library.is_file() {
            let reason = format!("names the library '{}', which is not there", library.display());
            return self.skip(path, reason);
        }
        let manifest = Some((path.to_owned(), manifest));
        self.findings.plugins.push(Found { manifest, library, origin });
    }

    fn library(&mut self, path: &Path) {
        if self.is_new(path) {
            self.findings.plugins.push(Found {
                manifest: None,
                library: absolute(path),
                origin: Origin::Given,
            });
        }
    }

    fn is_new(&mut self, path: &Path) -> bool {
        self.seen.insert(path.canonicalize().unwrap_or_else(|_| path.to_owned()))
    }

    fn skip(&mut self, path: &Path, reason: String) {
        self.findings.skipped.push(Skipped { path: path.to_owned(), reason, notable: true });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a manifest and an empty library.
    fn install(folder: &Path, name: &str) -> PathBuf {
        std::fs::create_dir_all(folder).unwrap();
        let library = format!("lib{name}.so");
        std::fs::write(folder.join(&library), "").unwrap();
        let manifest = Manifest::for_this_machine(name, "", &library, "");
        write(folder, name, &manifest)
    }

    fn write(folder: &Path, name: &str, manifest: &Manifest) -> PathBuf {
        let path = folder.join(format!("{name}{SUFFIX}"));
        std::fs::write(&path, serde_json::to_string(manifest).unwrap()).unwrap();
        path
    }

    fn names(findings: &Findings) -> Vec<(Origin, String)> {
        let manifest = |f: &Found| f.manifest.clone().map(|(_, manifest)| manifest.name);
        findings.plugins.iter().map(|f| (f.origin, manifest(f).unwrap_or_default())).collect()
    }

    #[test]
    fn places_are_searched_in_order_and_once() {
        let dir = tempfile::tempdir().unwrap();
        let [given, listed, bin] = ["given", "listed", "bin"].map(|name| dir.path().join(name));
        install(&given, "g");
        let direct = install(&listed, "b");
        install(&listed, "a");
        install(&bin, "own");
        install(&dir.path().join("lib/halite/drivers"), "installed");
        let executable = bin.join("run-module");
        let discovery =
            Discovery::around(&[listed.clone(), given.clone(), PathBuf::new()], Some(&executable))
                .given([&given, &direct]);
        let findings = discovery.find();
        use Origin::*;
        let expected =
            [(Given, "g"), (Given, "b"), (Environment, "a"), (Installed, "own"), (Installed, "installed")];
        assert_eq!(names(&findings), expected.map(|(origin, name)| (origin, name.to_owned())));
        assert_eq!(findings.skipped, []);
        assert_eq!(Discovery::none().find(), Findings::default());
    }

    #[test]
    fn what_is_not_usable_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path();
        install(folder, "good");
        std::fs::write(folder.join(format!("bad{SUFFIX}")), "{").unwrap();
        std::fs::write(folder.join("other.json"), "{").unwrap();
        let manifest = |name: &str| Manifest::for_this_machine(name, "", "libgood.so", "");
        write(folder, "mars", &Manifest { os: "mars".into(), ..manifest("mars") });
        write(folder, "missing", &Manifest { library: "nothing.so".into(), ..manifest("missing") });
        let findings = Discovery::none().given([folder]).find();
        assert_eq!(names(&findings), [(Origin::Given, "good".to_owned())]);
        let told: Vec<_> = findings.skipped.iter().map(|s| (s.notable, s.to_string())).collect();
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[0].0 && told[0].1.contains("is no driver manifest"), "{told:?}");
        assert!(!told[1].0 && told[1].1.contains("is for mars"), "{told:?}");
        assert!(told[2].0 && told[2].1.contains("nothing.so', which is not there"), "{told:?}");
        let direct = Discovery::none().given([folder.join(format!("mars{SUFFIX}"))]).find();
        assert!(direct.skipped[0].notable);
    }

    #[test]
    fn libraries_are_taken_only_when_given() {
        let dir = tempfile::tempdir().unwrap();
        let library = dir.path().join("libx.so");
        std::fs::write(&library, "").unwrap();
        let given = Discovery::none().given([&library, &library]).find();
        assert_eq!(given.plugins.len(), 1);
        assert_eq!((given.plugins[0].library.as_path(), given.plugins[0].origin), (&*library, Origin::Given));
        let missing = dir.path().join("no");
        let listed = Discovery::around(&[library, missing.clone()], None).find();
        assert!(listed.plugins.is_empty());
        assert!(listed.skipped[0].reason.contains("has to be given by itself"), "{:?}", listed.skipped);
        assert!(listed.skipped[1].reason.contains("does not exist"), "{:?}", listed.skipped);
        assert_eq!(Discovery::around(&[], Some(&missing.join("tool"))).find(), Findings::default());
    }
}
