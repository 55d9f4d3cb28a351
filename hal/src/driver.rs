//! Owns the driver trait and what it tells about devices before one is opened.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{Device, Result};

/// Named options of a driver or device, from a URI's `?k=v&k=v` or from tool flags. Unknown names are errors that
/// list the known ones.
pub type Options = BTreeMap<String, String>;

/// What kind of hardware a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceKind {
    /// A GPU with its own memory.
    DiscreteGpu,
    /// A GPU that shares the host's memory.
    IntegratedGpu,
    /// A GPU seen through virtualization.
    VirtualGpu,
    /// The host's processor, also behind a GPU API.
    Cpu,
    /// Something else.
    Other,
}

/// A device as enumeration sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// Name of the driver.
    pub driver: String,
    /// The stable path of the device within its driver, such as `GPU-<uuid>`; empty for the only device.
    pub path: String,
    /// Name for people, such as the GPU's marketing name.
    pub name: String,
    /// Kind of hardware.
    pub kind: DeviceKind,
    /// Why the device cannot be opened with default options; `None` when it can.
    pub unusable: Option<String>,
    /// Facts for people and bug reports, in display order.
    pub properties: Vec<(String, String)>,
}

impl DeviceInfo {
    /// The URI that opens exactly this device.
    pub fn uri(&self) -> String {
        format!("{}://{}", self.driver, self.path)
    }
}

/// A driver: finds devices and opens them. Object-safe; any thread may call it.
pub trait Driver: fmt::Debug + Send + Sync + 'static {
    /// Short name that URIs begin with, such as `vulkan`.
    fn name(&self) -> &str;

    /// One line for people.
    fn description(&self) -> &str;

    /// Options that [`Driver::open`] understands: (name, meaning).
    fn options(&self) -> &[(&'static str, &'static str)];

    /// The devices that exist now, best first by the driver's own order, stable between calls. UNAVAILABLE when the
    /// system has no support for the driver at all (the message says what was looked for).
    fn enumerate(&self, options: &Options) -> Result<Vec<DeviceInfo>>;

    /// Opens the device with this path, or the best usable one when the path is empty.
    fn open(&self, path: &str, options: &Options) -> Result<Arc<dyn Device>>;
}
