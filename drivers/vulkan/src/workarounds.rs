//! Owns the table of driver faults that the planner steers around: what, for which drivers, and why.
//! Does not own: the steering itself (`plan`).

use serde::Serialize;

use crate::caps::{DeviceCaps, driver_id};

/// What the planner must not do on a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Avoid {
    /// Run kernels that take buffer device addresses.
    BufferDeviceAddress,
    /// Push descriptors.
    PushDescriptors,
    /// Keep compiled pipelines between runs.
    PipelineCache,
}

/// One known fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Workaround {
    /// Short stable name for logs and bug reports.
    pub name: &'static str,
    /// What is avoided.
    pub avoid: Avoid,
    /// What goes wrong otherwise.
    pub reason: &'static str,
    /// Where to read more.
    pub link: &'static str,
    #[serde(skip)]
    applies: Match,
}

/// Which devices a workaround is for; every given part must fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Match {
    driver_id: Option<u32>,
    vendor_id: Option<u32>,
    /// First driver version that is affected.
    since: Option<u32>,
    /// First driver version that is fixed.
    fixed_in: Option<u32>,
}

impl Match {
    fn fits(&self, caps: &DeviceCaps) -> bool {
        self.driver_id.is_none_or(|id| id == caps.driver_id)
            && self.vendor_id.is_none_or(|id| id == caps.vendor_id)
            && self.since.is_none_or(|v| caps.driver_version >= v)
            && self.fixed_in.is_none_or(|v| caps.driver_version < v)
    }
}

/// Every known fault.
static TABLE: &[Workaround] = &[Workaround {
    name: "swiftshader-no-bda",
    avoid: Avoid::BufferDeviceAddress,
    reason: "SwiftShader reports bufferDeviceAddress, but its compiler ends the process on the conversion of \
                 an integer to a pointer (OpConvertUToPtr) that such kernels begin with",
    link: "https://swiftshader.googlesource.com/SwiftShader",
    applies: Match {
        driver_id: Some(driver_id::GOOGLE_SWIFTSHADER),
        vendor_id: None,
        since: None,
        fixed_in: None,
    },
}];

/// The workarounds that one device needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workarounds {
    applied: Vec<&'static Workaround>,
}

impl Workarounds {
    /// The table's entries that fit this device.
    pub fn for_device(caps: &DeviceCaps) -> Self {
        Workarounds { applied: TABLE.iter().filter(|w| w.applies.fits(caps)).collect() }
    }

    /// The entry that forbids something, if there is one.
    pub fn find(&self, avoid: Avoid) -> Option<&'static Workaround> {
        self.applied.iter().copied().find(|w| w.avoid == avoid)
    }

    /// The entries in table order.
    pub fn applied(&self) -> &[&'static Workaround] {
        &self.applied
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{caps::api_version, plan::tests::recorded};

    #[test]
    fn entries_fit_by_driver_and_version() {
        let mut caps = recorded("swiftshader");
        assert!(Workarounds::for_device(&caps).find(Avoid::BufferDeviceAddress).is_some());
        assert!(Workarounds::for_device(&caps).find(Avoid::PushDescriptors).is_none());
        assert_eq!(Workarounds::for_device(&recorded("llvmpipe")), Workarounds::default());
        caps.driver_version = api_version(5, 2, 0);
        let rule = Match {
            driver_id: Some(driver_id::GOOGLE_SWIFTSHADER),
            vendor_id: Some(caps.vendor_id),
            since: Some(api_version(5, 1, 0)),
            fixed_in: Some(api_version(5, 3, 0)),
        };
        assert!(rule.fits(&caps));
        caps.driver_version = api_version(5, 3, 0);
        assert!(!rule.fits(&caps), "fixed");
        caps.driver_version = api_version(5, 0, 9);
        assert!(!rule.fits(&caps), "not yet broken");
        caps.driver_version = api_version(5, 2, 0);
        caps.vendor_id += 1;
        assert!(!rule.fits(&caps), "another vendor");
    }

    #[test]
    fn every_entry_explains_itself() {
        for entry in TABLE {
            assert!(!entry.name.is_empty() && entry.reason.len() > 20 && entry.link.starts_with("https://"));
            assert_ne!(entry.applies, Match::default(), "'{}' would apply to every device", entry.name);
        }
    }
}
