//! The tuning file of a machine: where it is, what is in it, reading and writing it.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use halite_cache::{CacheError, Os, check_trusted, replace_file};
use halite_ops::Operation;
use serde::{Deserialize, Serialize};

use crate::{Tuning, TuningRow, variants_of};

/// Environment variable that names the file; set and empty, there is none.
pub const TUNING_VARIABLE: &str = "HALITE_TUNING";

/// What was measured on a machine: rows that go before those that ship, and all timings that they come from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TuningFile {
    /// The orders of variants.
    pub rows: Vec<TuningRow>,
    /// The timings.
    #[serde(default)]
    pub measurements: Vec<Measurement>,
}

/// The variants of one operation on one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// The operation, as text.
    pub operation: String,
    /// Triple of the device.
    pub target: String,
    /// Its name.
    pub device: String,
    /// Name and version of its Vulkan driver.
    pub driver: String,
    /// Each variant that could run.
    pub variants: Vec<VariantTime>,
}

/// A variant's time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VariantTime {
    /// Its name.
    pub variant: String,
    /// Median seconds of one run; `None` when it failed.
    pub seconds: Option<f64>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// Why a tuning file is of no use.
#[derive(Debug, thiserror::Error)]
pub enum TuningError {
    /// It cannot be read or written.
    #[error("{doing} the tuning file '{path}': {error}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: String,
        /// What the system says.
        error: io::Error,
    },
    /// It cannot be written, or somebody else could have written it.
    #[error("{doing} the tuning file: {error}; set HALITE_TUNING to the path of another, or to nothing")]
    Place {
        /// What was tried.
        doing: &'static str,
        /// What is wrong, and with which file or folder.
        error: CacheError,
    },
    /// Its contents make no sense.
    #[error(
        "the tuning file '{path}' is damaged or of another version: {reason}; make it anew with `cargo xtask tune`, delete it, or \
         set HALITE_TUNING to nothing"
    )]
    Contents {
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// The environment does not say where it is.
    #[error("nothing says where the tuning file of this user is; set HALITE_TUNING to its path")]
    NoPlace,
}

impl TuningFile {
    /// Where the file of this user is: what `HALITE_TUNING` says, or `halite/tuning.json` in the folder for settings
    /// (`XDG_CONFIG_HOME` or `~/.config`, `~/Library/Application Support`, `%APPDATA%`). `None` when there is no such place.
    pub fn place() -> Option<PathBuf> {
        place_from(Os::THIS, &|name| std::env::var_os(name))
    }

    /// Reads a file.
    ///
    /// # Errors
    /// Names the file and what is wrong with it.
    pub fn read(path: &Path) -> Result<TuningFile, TuningError> {
        let name = || path.display().to_string();
        let text = fs::read_to_string(path).map_err(|error| TuningError::Io {
            doing: "reading",
            path: name(),
            error,
        })?;
        let contents = |reason: String| TuningError::Contents { path: name(), reason };
        let file: TuningFile = serde_json::from_str(&text).map_err(|e| contents(e.to_string()))?;
        for row in &file.rows {
            row.check().map_err(contents)?;
        }
        Ok(file)
    }

    /// The file of this user; empty when there is none. Unless `HALITE_TUNING` names it, it has to be one that nobody else
    /// could have written.
    ///
    /// # Errors
    /// It is there and cannot be used.
    pub fn of_user() -> Result<TuningFile, TuningError> {
        Self::of(Os::THIS, &|name| std::env::var_os(name))
    }

    fn of(os: Os, variable: &dyn Fn(&str) -> Option<OsString>) -> Result<TuningFile, TuningError> {
        let Some(path) = place_from(os, variable).filter(|path| path.exists()) else {
            return Ok(TuningFile::default());
        };
        if variable(TUNING_VARIABLE).is_none() {
            check_trusted(&path).map_err(|error| TuningError::Place { doing: "reading", error })?;
        }
        Self::read(&path)
    }

    /// Writes a file, and makes the folders above it if they are missing. Others see the old file or the new one, nothing
    /// between. A link is replaced by the file.
    ///
    /// # Errors
    /// Names the file and what the system says.
    pub fn write(&self, path: &Path) -> Result<(), TuningError> {
        let failed = |error| TuningError::Io { doing: "writing", path: path.display().to_string(), error };
        let mut text = serde_json::to_string_pretty(self).map_err(|e| failed(io::Error::other(e)))?;
        text.push('\n');
        replace_file(path, text.as_bytes()).map_err(|error| TuningError::Place { doing: "writing", error })
    }

    /// Its rows before those that ship.
    pub fn tuning(&self) -> Tuning {
        Tuning::of(self.rows.clone()).over(Tuning::shipped())
    }

    /// Puts in what was measured anew: rows and timings of the same operation, class and target are replaced.
    pub fn replace(&mut self, rows: Vec<TuningRow>, measurements: Vec<Measurement>) {
        let same = |a: &TuningRow, b: &TuningRow| {
            (&a.target, &a.operation, &a.signature, a.min_flops.to_bits())
                == (&b.target, &b.operation, &b.signature, b.min_flops.to_bits())
        };
        self.rows.retain(|old| !rows.iter().any(|new| same(old, new)));
        self.rows.extend(rows);
        let again = |old: &Measurement| {
            measurements.iter().any(|new| new.operation == old.operation && new.device == old.device)
        };
        self.measurements.retain(|old| !again(old));
        self.measurements.extend(measurements);
    }
}

impl TuningRow {
    /// Whether its operation and target exist. Variants that are gone do no harm: [`TuningRow::unknown`] names them.
    ///
    /// # Errors
    /// Says what does not exist.
    pub fn check(&self) -> Result<(), String> {
        if !Operation::NAMES.contains(&self.operation.as_str()) {
            let known = Operation::NAMES.join(", ");
            return Err(format!("there is no operation '{}'; there are: {known}", self.operation));
        }
        halite_targets::Target::parse(&self.target).map(drop).map_err(|e| e.to_string())
    }

    /// Variants that it names and that do not exist (any more).
    pub fn unknown(&self) -> Vec<&str> {
        let known: BTreeSet<&str> = variants_of(&self.operation).map(|v| v.name.as_str()).collect();
        self.order.iter().map(String::as_str).filter(|name| !known.contains(name)).collect()
    }
}

fn place_from(os: Os, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    if let Some(named) = variable(TUNING_VARIABLE) {
        return Some(PathBuf::from(named)).filter(|path| !path.as_os_str().is_empty());
    }
    let folder = |name| variable(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let home = |rest: &str| folder("HOME").map(|home| home.join(rest));
    let base = match os {
        Os::Windows => folder("APPDATA"),
        Os::Mac => home("Library/Application Support"),
        // The XDG rules say that a relative path is to be ignored.
        Os::Unix => folder("XDG_CONFIG_HOME").filter(|path| path.is_absolute()).or_else(|| home(".config")),
    };
    base.map(|base| base.join("halite").join("tuning.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(order: &[&str]) -> TuningRow {
        TuningRow {
            target: "hopper-h200-linux".into(),
            operation: "matmul".into(),
            signature: "f32xf32_f32".into(),
            min_flops: 0.0,
            order: order.iter().map(|name| (*name).to_owned()).collect(),
            documented: false,
            source: "a test".into(),
        }
    }

    #[test]
    fn every_system_has_its_place() {
        let of = |os, set: &[(&str, &str)]| {
            place_from(os, &|name| set.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v)))
        };
        let set = [("HOME", "/home/x"), ("XDG_CONFIG_HOME", "/xdg"), ("APPDATA", "/app")];
        assert_eq!(of(Os::Unix, &set), Some("/xdg/halite/tuning.json".into()));
        assert_eq!(of(Os::Unix, &set[..1]), Some("/home/x/.config/halite/tuning.json".into()));
        assert_eq!(of(Os::Mac, &set), Some("/home/x/Library/Application Support/halite/tuning.json".into()));
        assert_eq!(of(Os::Windows, &set), Some("/app/halite/tuning.json".into()));
        assert_eq!(of(Os::Unix, &[("HALITE_TUNING", "/t.json"), set[0]]), Some("/t.json".into()));
        assert_eq!(of(Os::Unix, &[("HALITE_TUNING", ""), set[0]]), None);
        assert_eq!(of(Os::Unix, &[]), None);
    }

    #[test]
    fn new_rows_replace_old_ones_and_go_before_those_that_ship() {
        let mut file = TuningFile::default();
        file.replace(vec![row(&["matmul.f32.tile64x64x16"])], Vec::new());
        file.replace(vec![row(&["matmul.f32.tile32x32x16", "matmul.gone"])], Vec::new());
        assert_eq!(file.rows.len(), 1);
        assert_eq!(file.rows[0].unknown(), ["matmul.gone"]);
        let operation = Operation::parse("matmul:m=512,n=512,k=512").unwrap();
        let target = halite_targets::Target::parse("hopper-h200-linux").unwrap();
        assert_eq!(file.tuning().row(&operation, &target).unwrap().row.source, "a test");
    }

    /// Audit H4 and its low findings: what others may write is not read, and nothing is written through links.
    #[cfg(unix)]
    #[test]
    fn the_users_file_is_nobody_elses() {
        use std::os::unix::fs::{PermissionsExt, symlink};

        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(".config/halite/tuning.json");
        let file = TuningFile { rows: vec![row(&["matmul.f32.tile64x64x16"])], measurements: Vec::new() };
        let read = |named: Option<&Path>| {
            TuningFile::of(Os::Unix, &|name| match name {
                "HOME" => Some(home.path().into()),
                TUNING_VARIABLE => named.map(OsString::from),
                _ => None,
            })
        };
        assert_eq!(read(None).unwrap(), TuningFile::default());
        let precious = home.path().join("precious");
        fs::write(&precious, "text").unwrap();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(&precious, path.with_extension("json.new")).unwrap();
        file.write(&path).unwrap();
        assert_eq!(fs::read_to_string(&precious).unwrap(), "text");
        fs::set_permissions(path.parent().unwrap(), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(read(None).unwrap(), file);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        let told = read(None).unwrap_err().to_string();
        assert!(told.contains("chmod go-w") && told.contains("HALITE_TUNING"), "{told}");
        assert_eq!(read(Some(&path)).unwrap(), file, "what the user names is read");
    }

    #[test]
    fn files_come_back_and_damage_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep").join("tuning.json");
        let file = TuningFile { rows: vec![row(&["matmul.f32.tile64x64x16"])], measurements: Vec::new() };
        file.write(&path).unwrap();
        assert_eq!(TuningFile::read(&path).unwrap(), file);
        fs::write(&path, "{\"rows\": [{}]}").unwrap();
        let error = TuningFile::read(&path).unwrap_err().to_string();
        assert!(error.contains("tuning.json") && error.contains("cargo xtask tune"), "{error}");
        let text = serde_json::to_string(&file).unwrap().replace("\"matmul\"", "\"matmull\"");
        fs::write(&path, text).unwrap();
        assert!(TuningFile::read(&path).unwrap_err().to_string().contains("no operation 'matmull'"));
    }
}
