//! Devices that are opened by a URI stand behind the layers.
#![allow(clippy::unwrap_used, reason = "a failure is a failed test, also in helpers")]

use crate::common::refused;
use halite_hal::*;

#[test]
fn devices_from_the_registry_are_validated() {
    let device =
        halite_layers::open(&DriverRegistry::with_static_drivers(), "null?memory=100", &Options::new())
            .unwrap();
    refused(device.allocate_buffer(&BufferParams::DEVICE, u64::MAX), Code::InvalidArgument, &[]);
    refused(device.allocate_buffer(&BufferParams::DEVICE, 101), Code::ResourceExhausted, &["100 bytes"]);
    assert_eq!(device.query_i64("hal.device.id", "nul?"), Some(1));
}
