//! The driver object: what exists, what options there are, opening.

use std::sync::Arc;

use halite_abi::{BUFFER_PADDING, Result, bail};
use halite_hal::{
    Device, DeviceInfo, DeviceKind, Driver, ExternalKind, ExternalSupport, MEMORY_LIMIT, Options, ScoreItem,
    StaticDriver, UNTRUSTED,
};

use crate::{
    buffer::Memory,
    device::{NAME, NullDevice},
    executable::EXECUTABLE_FORMAT,
};

/// Memory of the device unless the `memory` option says otherwise: 1 GiB.
const DEFAULT_MEMORY: u64 = 1 << 30;

inventory::submit! {
    StaticDriver { name: NAME, create: || Arc::new(NullDriver) }
}

/// The driver. Stateless: every open makes a device of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullDriver;

impl NullDriver {
    fn info() -> DeviceInfo {
        DeviceInfo {
            driver: NAME.to_owned(),
            path: String::new(),
            name: "null device".to_owned(),
            kind: DeviceKind::Other,
            executable_formats: vec![EXECUTABLE_FORMAT.to_owned()],
            score: vec![ScoreItem { points: -1_000_000, reason: "executes no device code".to_owned() }],
            external_memory: vec![ExternalSupport {
                kind: ExternalKind::Host,
                import: true,
                export: false,
                alignment: BUFFER_PADDING,
            }],
            properties: vec![("executes".to_owned(), "transfers only".to_owned())],
            ..DeviceInfo::default()
        }
    }
}

impl Driver for NullDriver {
    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> &str {
        "keeps memory and order but executes no device code"
    }

    fn options(&self) -> &[(&'static str, &'static str)] {
        &[
            ("memory", "bytes that all buffers together may have (default 1073741824)"),
            (MEMORY_LIMIT, "bytes (none): the same, where memory says more"),
            (UNTRUSTED, "on|off (off): for modules of strangers; no code runs here either way"),
        ]
    }

    fn enumerate(&self, _options: &Options) -> Result<Vec<DeviceInfo>> {
        Ok(vec![Self::info()])
    }

    fn open(&self, path: &str, options: &Options) -> Result<Arc<dyn Device>> {
        if !path.is_empty() {
            bail!(NotFound, "the null driver has one device, with an empty path; there is no '{path}'");
        }
        let bytes = |name: &str| match options.get(name).map(|text| (text, text.parse::<u64>())) {
            None => Ok(None),
            Some((_, Ok(bytes))) => Ok(Some(bytes)),
            Some((text, Err(e))) => {
                bail!(InvalidArgument, "option {name}='{text}' is no number of bytes: {e}")
            }
        };
        match options.get(UNTRUSTED).map(String::as_str) {
            None | Some("on" | "true" | "off" | "false") => {}
            Some(other) => bail!(InvalidArgument, "option {UNTRUSTED}='{other}': write on or off"),
        }
        let limit = bytes("memory")?.unwrap_or(DEFAULT_MEMORY).min(bytes(MEMORY_LIMIT)?.unwrap_or(u64::MAX));
        Ok(Arc::new(NullDevice::new(Self::info(), Memory::new(limit))))
    }
}
