//! What `list-devices` found out: devices in the order of choice, drivers and their state.

use std::collections::HashMap;

use halite::{
    hal::{
        DeviceInfo, DriverEntry, DriverRegistry, Options, Status,
        choice::{self, Ranked},
        status,
    },
    plugin::LibrarySource,
};

use super::probe;
use crate::console::Result;

/// A device and its place.
#[derive(Debug)]
pub(super) struct Listed {
    /// What its driver says of it.
    pub info: DeviceInfo,
    /// Its number within its driver, as in `vulkan://0`; `None` for a device that is only there when it is named.
    pub index: Option<usize>,
    /// Points, and why it is not chosen unasked.
    pub rank: Ranked,
}

/// The devices, the one that is chosen unasked first.
#[derive(Debug)]
pub(super) struct Survey {
    /// In the order of choice.
    pub devices: Vec<Listed>,
    /// Whether the first usable one is what runs when no device is named. Not so when only some devices were looked at.
    pub marks_choice: bool,
}

impl Survey {
    /// The devices of one driver, or of `all`: then the first is what runs when none is named.
    pub fn of_drivers(found: Vec<DeviceInfo>, all: bool) -> Self {
        let mut counts: HashMap<String, usize> = HashMap::new();
        let mut number = |info: &DeviceInfo| {
            let count = counts.entry(info.driver.clone()).or_default();
            *count += 1;
            Some(*count - 1)
        };
        let indices: Vec<_> = found.iter().map(&mut number).collect();
        Survey { devices: in_order(found, &indices), marks_choice: all }
    }

    /// Devices that are named, each opened and closed again.
    pub fn of_named(registry: &DriverRegistry, uris: &[String]) -> Result<Self> {
        let none = Options::new();
        let open = |uri: &String| Ok(halite::layers::open(registry, uri, &none)?.info().clone());
        let found = uris.iter().map(open).collect::<Result<Vec<_>>>()?;
        let indices = vec![None; found.len()];
        Ok(Survey { devices: in_order(found, &indices), marks_choice: false })
    }

    /// Whether a program can run on one of them. A device that is only not chosen unasked counts.
    pub fn usable(&self) -> bool {
        self.devices.iter().any(|d| d.info.unusable.is_none())
    }

    /// Whether this is the device that runs when none is named.
    pub fn is_choice(&self, position: usize) -> bool {
        let first = self.devices.first().is_some_and(|d| d.rank.ruled_out.is_none());
        self.marks_choice && position == 0 && first
    }

    /// What to say when there is no usable device.
    pub fn nothing_usable(&self, registry: &DriverRegistry) -> Status {
        if self.devices.is_empty() {
            let names: Vec<_> = registry.entries().iter().map(DriverEntry::name).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return status!(
                Unavailable,
                "no device was found; drivers: {names}; HALITE_LOG=info tells where they looked"
            );
        }
        status!(
            Unavailable,
            "none of the {} devices can be used; the list above says why",
            self.devices.len()
        )
    }
}

fn in_order(found: Vec<DeviceInfo>, indices: &[Option<usize>]) -> Vec<Listed> {
    let ranked = choice::rank(&found, &|_| false);
    let mut found: Vec<_> = found.into_iter().map(Some).collect();
    let take = |rank: Ranked| {
        let info = found[rank.index].take()?;
        Some(Listed { info, index: indices[rank.index], rank })
    };
    ranked.into_iter().filter_map(take).collect()
}

/// A driver as it is listed.
#[derive(Debug)]
pub(super) struct DriverLine<'a> {
    /// The registry's entry.
    pub entry: &'a DriverEntry,
    /// Whether its library could be loaded; `None` when nobody tried.
    pub works: Option<Result<(), Status>>,
}

impl<'a> DriverLine<'a> {
    /// All drivers; `load` loads their libraries to find out whether they work, in a process of its own first.
    pub fn all(registry: &'a DriverRegistry, load: bool) -> Vec<Self> {
        let line = |entry: &'a DriverEntry| {
            let try_it = || probe::driver(entry).and_then(|()| entry.driver());
            let driver = if load { Some(try_it()) } else { entry.loaded() };
            DriverLine { entry, works: driver.map(|d| d.map(|_| ())) }
        };
        registry.entries().iter().map(line).collect()
    }
}

/// Where a driver comes from, for people.
pub(super) fn source(entry: &DriverEntry) -> String {
    match LibrarySource::of(entry) {
        None => "part of this program".to_owned(),
        Some(library) => format!("{library}, {}", library.origin),
    }
}

/// The hash of a driver's library, or why there is none.
pub(super) fn hash(entry: &DriverEntry) -> Option<Result<String, Status>> {
    LibrarySource::of(entry).map(LibrarySource::sha256)
}
