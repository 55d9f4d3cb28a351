//! Naming the device that cases run on, so that another process can open the same one.

use std::{ffi::OsString, path::PathBuf};

use halite_hal::Options;
use halite_layers::hazards;
use halite_testing::drivers::{self, Opener};

use crate::suites::Settings;

/// A device as a user names it.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// Its URI.
    pub uri: String,
    /// Options of its driver.
    pub options: Options,
    /// Driver plug-ins.
    pub driver_paths: Vec<PathBuf>,
    /// Parts of the Khronos validation layer to run under, for drivers that have such an option.
    pub validate: Option<String>,
}

impl Target {
    /// Opens it, as often as it is called. Where validation is asked for, recordings are checked for barriers that they lack,
    /// and drivers that have a validation layer run under it.
    pub fn opener(&self) -> Opener {
        let registry = drivers::registry(&self.driver_paths);
        let mut options = self.options.clone();
        if let Some(parts) = self.validate.as_ref().filter(|_| self.can_validate()) {
            options.insert("validation".to_owned(), parts.clone());
        }
        if self.validate.is_some() {
            options.entry(hazards::OPTION.to_owned()).or_insert_with(|| "on".to_owned());
        }
        drivers::opener(registry, &self.uri, options)
    }

    /// Whether the driver of its URI knows the option `validation`.
    pub fn can_validate(&self) -> bool {
        let registry = drivers::registry(&self.driver_paths);
        let name = self.uri.split([':', '?']).next().unwrap_or_default();
        let knows =
            registry.driver(name).map(|driver| driver.options().iter().any(|(o, _)| *o == "validation"));
        knows.unwrap_or(false)
    }

    /// The flags that name it.
    pub fn flags(&self) -> Vec<OsString> {
        let mut flags = vec![OsString::from(format!("--device={}", self.uri))];
        flags.extend(self.options.iter().map(|(name, value)| format!("--option={name}={value}").into()));
        flags.extend(self.driver_paths.iter().map(|path| joined("--driver-path=", path)));
        flags.extend(self.validate.iter().map(|parts| format!("--validate={parts}").into()));
        flags
    }
}

/// The flags that name settings.
pub fn setting_flags(settings: &Settings) -> Vec<OsString> {
    let mut flags =
        vec![format!("--seed={}", settings.seed).into(), format!("--rounds={}", settings.rounds).into()];
    let folders = [
        ("--corpus=", &settings.corpus),
        ("--repository=", &settings.repository),
        ("--onnx-tests=", &settings.onnx_tests),
        ("--pte-models=", &settings.pte_models),
        ("--vgf-models=", &settings.vgf_models),
    ];
    flags.extend(folders.into_iter().filter_map(|(flag, path)| Some(joined(flag, path.as_ref()?))));
    flags
}

fn joined(flag: &str, path: &std::path::Path) -> OsString {
    let mut text = OsString::from(flag);
    text.push(path);
    text
}
