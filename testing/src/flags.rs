//! Flags of the programs that test and measure devices.

use std::path::PathBuf;

use clap::Args;
use halite_hal::DeviceInfo;
use halite_plugin::LibrarySource;

use crate::drivers::{self, Opener};

/// Flags that choose the device.
#[derive(Args)]
pub struct DeviceFlags {
    /// Device URI.
    #[arg(long, default_value = "vulkan")]
    pub device: String,
    /// Option for the driver, as `name=value`.
    #[arg(long = "option")]
    pub options: Vec<String>,
    /// Driver plug-in: a manifest, a library, or a folder of manifests. Replaces a linked driver of its name.
    #[arg(long = "driver-path", alias = "driver_path", value_name = "PATH")]
    pub driver_path: Vec<PathBuf>,
}

impl DeviceFlags {
    /// The device in words, and the library that its driver comes from, if it is not linked in.
    pub fn headline(&self, info: &DeviceInfo) -> String {
        let registry = drivers::registry(&self.driver_path);
        let mut text = format!("# {} ({})", info.uri(), info.name);
        let entry = registry.entries().iter().find(|e| e.name() == info.driver);
        if let Some(library) = entry.and_then(LibrarySource::of) {
            text.push_str(&format!(", driver from {library}"));
        }
        text
    }

    /// What opens the device.
    pub fn opener(&self) -> Opener {
        self.opener_with(&[])
    }

    /// The same with options that hold where no flag says otherwise.
    pub fn opener_with(&self, options: &[(&str, String)]) -> Opener {
        let registry = drivers::registry(&self.driver_path);
        let mut all = drivers::parse_options(&self.options);
        for (name, value) in options {
            all.entry((*name).to_owned()).or_insert_with(|| value.clone());
        }
        drivers::opener(registry, &self.device, all)
    }
}
