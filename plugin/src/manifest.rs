//! Manifests: the small JSON files that name driver libraries, so that listing drivers loads nothing.

use std::{
    fs::File,
    io::Read,
    path::{Component, Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::abi;
use halite_hal::{Result, bail, status};

/// How the names of manifests end: `vulkan.halite-driver.json`.
pub const SUFFIX: &str = ".halite-driver.json";
/// Format of manifests that this version reads and writes.
pub const FORMAT: u32 = 1;

/// Bytes of a manifest, at most.
const MAX_BYTES: u64 = 64 << 10;
/// Bytes of a driver's name, at most.
const MAX_NAME: usize = 64;
/// Bytes of a description or a version, at most.
const MAX_TEXT: usize = 1024;

/// The version of the C interface that a library was built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AbiVersion {
    /// Changes that break.
    pub major: u32,
    /// Additions.
    pub minor: u32,
}

impl AbiVersion {
    /// What this program speaks.
    pub const OURS: AbiVersion = AbiVersion { major: abi::HALITE_ABI_MAJOR, minor: abi::HALITE_ABI_MINOR };

    /// Whether a library that was built for this version can be loaded: the rule is in [`abi`]'s contract.
    pub fn is_compatible(self) -> bool {
        self.major == Self::OURS.major && (self.major > 0 || self.minor == Self::OURS.minor)
    }
}

impl std::fmt::Display for AbiVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// What a manifest says about a driver library. Fields that nobody knows are ignored, so that later ones may be added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT`].
    pub format: u32,
    /// Name of the driver, as device URIs begin.
    pub name: String,
    /// One line for people.
    #[serde(default)]
    pub description: String,
    /// The library: a path relative to the manifest's folder that does not leave it, or an absolute one.
    pub library: String,
    /// The version of the C interface.
    pub abi: AbiVersion,
    /// System, in the words of `std::env::consts::OS`, such as `linux`.
    pub os: String,
    /// Processor, in the words of `std::env::consts::ARCH`, such as `x86_64`.
    pub arch: String,
    /// Version of the plug-in, for people.
    #[serde(default)]
    pub version: String,
}

/// Why a well-formed manifest does not fit this program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// For another system or processor. Normal in a folder that serves several machines.
    Machine(String),
    /// For another version of the C interface.
    Abi(String),
}

impl Manifest {
    /// A manifest for a library of this machine and this version of the interface.
    pub fn for_this_machine(name: &str, description: &str, library: &str, version: &str) -> Self {
        Manifest {
            format: FORMAT,
            name: name.to_owned(),
            description: description.to_owned(),
            library: library.to_owned(),
            abi: AbiVersion::OURS,
            os: std::env::consts::OS.to_owned(),
            arch: std::env::consts::ARCH.to_owned(),
            version: version.to_owned(),
        }
    }

    /// Reads and checks a manifest file. INVALID_ARGUMENT says what is wrong with its text, INCOMPATIBLE that it is of a
    /// later format. Whether it fits this machine is told by [`Manifest::misfit`]. Messages do not repeat the path.
    pub fn read(path: &Path) -> Result<Self> {
        Self::parse(&read_small(path)?)
    }

    /// The same from text.
    pub fn parse(text: &str) -> Result<Self> {
        #[derive(Deserialize)]
        struct Head {
            format: u32,
        }
        let wrong = |e: serde_json::Error| status!(InvalidArgument, "is no driver manifest: {e}");
        let head: Head = serde_json::from_str(text).map_err(wrong)?;
        if head.format != FORMAT {
            bail!(
                Incompatible,
                "has manifest format {}, this program reads format {FORMAT}; install a driver that is made for it",
                head.format
            );
        }
        let manifest: Manifest = serde_json::from_str(text).map_err(wrong)?;
        manifest.check()?;
        Ok(manifest)
    }

    fn check(&self) -> Result<()> {
        if !is_driver_name(&self.name) {
            bail!(
                InvalidArgument,
                "names driver {:?}; a name has 1 to {MAX_NAME} of a-z, 0-9, '-' and '_'",
                self.name
            );
        }
        // They are printed: no escape sequences, no second line.
        for (field, text) in [("description", &self.description), ("version", &self.version)] {
            if text.len() > MAX_TEXT || text.chars().any(char::is_control) {
                bail!(
                    InvalidArgument,
                    "has a {field} that is longer than {MAX_TEXT} bytes or has control characters"
                );
            }
        }
        check_library(&self.library)
    }

    /// Why the library cannot be used by this program; `None` when it can.
    pub fn misfit(&self) -> Option<Misfit> {
        let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
        if (self.os.as_str(), self.arch.as_str()) != (os, arch) {
            return Some(Misfit::Machine(format!(
                "is for {} on {}, this program runs on {os} on {arch}",
                self.os, self.arch
            )));
        }
        let (theirs, ours) = (self.abi, AbiVersion::OURS);
        if theirs.is_compatible() {
            return None;
        }
        let advice = if (theirs.major, theirs.minor) < (ours.major, ours.minor) {
            "install a newer driver"
        } else {
            "install a newer Halite or an older driver"
        };
        Some(Misfit::Abi(format!("is for driver interface {theirs}, this program speaks {ours}; {advice}")))
    }

    /// Where the library lies, given the manifest's own path.
    pub fn library_path(&self, manifest: &Path) -> PathBuf {
        manifest.parent().unwrap_or(Path::new("")).join(&self.library)
    }
}

/// Whether a driver may be called so: device URIs begin with the name.
pub(super) fn is_driver_name(name: &str) -> bool {
    let good = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-' || c == b'_';
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(good)
}

/// A relative path must stay in the manifest's folder; an absolute one is taken as it is.
fn check_library(library: &str) -> Result<()> {
    let path = Path::new(library);
    let inside = path.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
    let control = library.chars().any(char::is_control);
    if library.is_empty() || control || path.file_name().is_none() || !(path.is_absolute() || inside) {
        bail!(
            InvalidArgument,
            "names library {library:?}; write a path below the manifest's folder, without '..', or an absolute one"
        );
    }
    Ok(())
}

/// A text file that is not larger than manifests may be. Anything but a regular file is refused: a pipe would block.
fn read_small(path: &Path) -> Result<String> {
    let cannot = |e: std::io::Error| status!(NotFound, "cannot be read: {e}");
    let data = std::fs::metadata(path).map_err(cannot)?;
    if !data.is_file() {
        bail!(InvalidArgument, "is no regular file");
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|f| f.take(MAX_BYTES + 1).read_to_end(&mut bytes)).map_err(cannot)?;
    if bytes.len() as u64 > MAX_BYTES {
        bail!(InvalidArgument, "is larger than the {MAX_BYTES} bytes that a driver manifest may have");
    }
    String::from_utf8(bytes).map_err(|_| status!(InvalidArgument, "is no driver manifest: not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use halite_hal::Code;

    fn text(change: impl FnOnce(&mut serde_json::Value)) -> String {
        let manifest = Manifest::for_this_machine("vulkan", "GPUs", "libhalite_driver_vulkan.so", "0.1.0");
        let mut json = serde_json::to_value(manifest).unwrap();
        change(&mut json);
        json.to_string()
    }

    #[track_caller]
    fn refused(text: &str, words: &str) {
        let error = Manifest::parse(text).unwrap_err();
        assert!(error.message().contains(words), "{error}");
    }

    #[test]
    fn a_manifest_of_this_machine_fits() {
        let manifest = Manifest::parse(&text(|json| json["later"] = 7.into())).unwrap();
        assert_eq!((manifest.name.as_str(), manifest.misfit()), ("vulkan", None));
        let library = manifest.library_path(Path::new("/d/vulkan.halite-driver.json"));
        assert_eq!(library, Path::new("/d/libhalite_driver_vulkan.so"));
        let short = text(|json| {
            let fields = json.as_object_mut().unwrap();
            fields.remove("description");
            fields.remove("version");
        });
        assert_eq!(Manifest::parse(&short).unwrap().version, "");
    }

    #[test]
    fn broken_text_is_told() {
        refused("", "EOF");
        refused("{\"format\":1}", "missing field `name`");
        refused(&text(|json| json["name"] = 3.into()), "expected a string");
        refused(&text(|json| json["format"] = 2.into()), "format 2");
        refused(&text(|json| json["name"] = "a/b".into()), "\"a/b\"");
        refused(&text(|json| json["name"] = "".into()), "a name has");
        refused(&text(|json| json["description"] = "a\u{1b}[2J".into()), "control characters");
        refused(&format!("{{\"format\":1,\"x\":{}", "[".repeat(100_000)), "is no driver manifest");
    }

    #[test]
    fn libraries_do_not_leave_the_folder() {
        for bad in ["", "../x.so", "a/../../x.so", ".", "a/..", "x\n.so"] {
            refused(&text(|json| json["library"] = bad.into()), "names library");
        }
        for good in ["x.so", "./x.so", "sub/x.so"] {
            Manifest::parse(&text(|json| json["library"] = good.into())).unwrap();
        }
        let absolute = std::env::temp_dir().join("x.so");
        let manifest = text(|json| json["library"] = absolute.to_str().unwrap().into());
        let manifest = Manifest::parse(&manifest).unwrap();
        assert_eq!(manifest.library_path(Path::new("/d/m.json")), absolute);
    }

    #[test]
    fn damaged_text_is_refused_or_harmless() {
        let whole = text(|_| {}).into_bytes();
        let check = |bytes: &[u8]| {
            let Ok(text) = std::str::from_utf8(bytes) else { return };
            let Ok(manifest) = Manifest::parse(text) else { return };
            let library = manifest.library_path(Path::new("/d/m.json"));
            let leaves = library.components().any(|c| c == Component::ParentDir);
            assert!(Path::new(&manifest.library).is_absolute() || !leaves, "{text}");
            manifest.misfit();
        };
        for at in 0..whole.len() {
            check(&whole[..at]);
            for byte in *b"\0\"{}[],:/.9-e\\" {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                check(&damaged);
                damaged.remove(at);
                check(&damaged);
            }
        }
    }

    #[test]
    fn others_are_told_from_ours() {
        let misfit = |change: fn(&mut serde_json::Value)| Manifest::parse(&text(change)).unwrap().misfit();
        assert!(
            matches!(misfit(|j| j["os"] = "plan9".into()), Some(Misfit::Machine(m)) if m.contains("plan9"))
        );
        assert!(matches!(misfit(|j| j["arch"] = "pdp11".into()), Some(Misfit::Machine(_))));
        let newer = misfit(|j| j["abi"]["minor"] = (abi::HALITE_ABI_MINOR + 1).into());
        assert!(matches!(&newer, Some(Misfit::Abi(m)) if m.contains("newer Halite")), "{newer:?}");
        let major = misfit(|j| j["abi"]["major"] = (abi::HALITE_ABI_MAJOR + 1).into());
        assert!(matches!(major, Some(Misfit::Abi(_))));
        if abi::HALITE_ABI_MAJOR == 0 && abi::HALITE_ABI_MINOR > 0 {
            let older = misfit(|j| j["abi"]["minor"] = 0.into());
            assert!(matches!(&older, Some(Misfit::Abi(m)) if m.contains("newer driver")), "{older:?}");
        }
    }

    #[test]
    fn files_are_small_and_regular() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.json");
        let code = |path: &Path| Manifest::read(path).unwrap_err().code();
        assert_eq!(code(&path), Code::NotFound);
        assert_eq!(code(dir.path()), Code::InvalidArgument);
        std::fs::write(&path, " ".repeat(MAX_BYTES as usize + 1)).unwrap();
        assert!(Manifest::read(&path).unwrap_err().message().contains("larger"));
        std::fs::write(&path, [0xff]).unwrap();
        assert!(Manifest::read(&path).unwrap_err().message().contains("UTF-8"));
        std::fs::write(&path, text(|_| {})).unwrap();
        assert_eq!(Manifest::read(&path).unwrap().name, "vulkan");
    }
}
