//! A driver that a crate says to link in, and that is not there. In a program of its own, because the statement holds for
//! the whole program.
#![allow(clippy::unwrap_used, reason = "a failure is a failed test, also in helpers")]

use halite_hal::{Code, DriverRegistry, verify_linked};
use halite_null as _;

halite_hal::expect_drivers!("null", "ghost");

#[test]
fn a_missing_driver_is_told_at_once_and_on_use() {
    let error = verify_linked().unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition);
    assert!(error.message().contains("'ghost'") && error.message().contains("halite-hal"), "{error}");
    let registry = DriverRegistry::with_static_drivers();
    assert_eq!(registry.driver("ghost").unwrap_err().to_string(), error.to_string());
    assert_eq!(registry.driver("null").unwrap().name(), "null");
}
