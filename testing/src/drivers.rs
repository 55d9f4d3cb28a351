//! The drivers that tests and measurements know, and how they open devices.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use halite_hal::{Device, DriverRegistry, Options, Result};
use halite_local as _;
use halite_null as _;
use halite_plugin::discovery::Discovery;
use halite_vulkan as _;

halite_hal::expect_drivers!("local-sync", "local-task", "null", "vulkan");

/// Opens the device under test, every time another one.
pub type Opener = Arc<dyn Fn() -> Result<Arc<dyn Device>> + Send + Sync>;

/// The drivers that are linked into the programs of this crate, and the plug-ins at `paths` (manifests, libraries or
/// folders), which replace linked ones of the same name. Plug-ins that nobody names are not looked for: what is tested is
/// what was asked for.
pub fn registry(paths: &[PathBuf]) -> DriverRegistry {
    halite_plugin::discover(&Discovery::none().given(paths))
}

/// Opens a device of a registry by URI, as often as it is called. What the first call found is what all get, also if
/// the URI leaves a choice.
pub fn opener(registry: DriverRegistry, uri: &str, options: Options) -> Opener {
    let (uri, found) = (uri.to_owned(), OnceLock::<String>::new());
    Arc::new(move || {
        let device = halite_layers::open(&registry, found.get().unwrap_or(&uri), &options)?;
        found.get_or_init(|| {
            let query = uri.split_once('?').map(|(_, query)| format!("?{query}")).unwrap_or_default();
            device.info().uri() + &query
        });
        Ok(device)
    })
}

/// Driver options from `name=value` texts; a name alone means `true`.
pub fn parse_options(texts: &[String]) -> Options {
    let pairs = texts.iter().map(|o| o.split_once('=').unwrap_or((o, "true")));
    pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
}
