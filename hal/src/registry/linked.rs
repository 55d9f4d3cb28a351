//! Which drivers are linked into the program, and noticing when one is not that should be.

use std::sync::Arc;

use crate::{Driver, Result, Status, status};

/// A driver linked into the program: `inventory::submit! { StaticDriver { .. } }`.
pub struct StaticDriver {
    /// Name of the driver; the registry sorts by it, because link order is arbitrary.
    pub name: &'static str,
    /// Makes the driver object. Cheap; does no device work.
    pub create: fn() -> Arc<dyn Driver>,
}

inventory::collect!(StaticDriver);

/// Says that a driver has to be linked in; made by [`expect_drivers!`](crate::expect_drivers).
pub struct ExpectedDriver {
    /// Name of the driver.
    pub name: &'static str,
    /// The package that depends on it.
    pub package: &'static str,
}

inventory::collect!(ExpectedDriver);

/// States which drivers this crate links in. The linker leaves out a crate that nothing names, without a word; with this,
/// [`DriverRegistry`](crate::DriverRegistry) tells.
///
/// ```
/// use halite_null as _;
///
/// halite_hal::expect_drivers!("null");
/// # fn main() { halite_hal::verify_linked().expect("the driver is linked in") }
/// ```
#[macro_export]
macro_rules! expect_drivers {
    ($($name:literal),+ $(,)?) => {
        $($crate::inventory::submit! {
            $crate::ExpectedDriver { name: $name, package: env!("CARGO_PKG_NAME") }
        })+
    };
}

/// FAILED_PRECONDITION when a driver that some crate of the program states to link in is not there. For the first line of
/// programs and for tests.
pub fn verify_linked() -> Result<()> {
    missing().into_iter().next().map_or(Ok(()), |(_, status)| Err(status))
}

/// Names of drivers that should be linked in and are not, with what to say.
pub(super) fn missing() -> Vec<(&'static str, Status)> {
    let linked = |name| inventory::iter::<StaticDriver>.into_iter().any(|d| d.name == name);
    let missing = inventory::iter::<ExpectedDriver>.into_iter().filter(|e| !linked(e.name));
    missing.map(|e| (e.name, tell(e))).collect()
}

fn tell(expected: &ExpectedDriver) -> Status {
    status!(
        FailedPrecondition,
        "driver '{}' should be linked into this program by the package {}, but is not: name the driver's crate there \
         (`use … as _;`) and build it with the feature that brings the driver",
        expected.name,
        expected.package
    )
}
