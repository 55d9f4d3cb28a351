//! Owns which drivers the conformance programs know. Does not own: the drivers.

use std::sync::{Arc, OnceLock};

use halite_hal::{Device, DriverRegistry, Options, Result};

/// Opens the device under test, every time another one.
pub type Opener = Arc<dyn Fn() -> Result<Arc<dyn Device>> + Send + Sync>;

/// The drivers that are linked into the programs of this crate.
pub fn registry() -> DriverRegistry {
    halite_vulkan::link();
    let mut registry = DriverRegistry::with_static_drivers();
    registry.register(Arc::new(halite_null::NullDriver));
    registry
}

/// Opens a device of a registry by URI, as often as it is called. What the first call found is what all get, also if
/// the URI leaves a choice.
pub fn opener(registry: DriverRegistry, uri: &str, options: Options) -> Opener {
    let (uri, found) = (uri.to_owned(), OnceLock::new());
    Arc::new(move || {
        let device = registry.open(found.get().unwrap_or(&uri), &options)?;
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
