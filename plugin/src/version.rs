//! The rule by which two ends of the interface agree on a version.

use super::raw::version;
use halite_hal::{Result, bail};

/// What a driver library that knows `own` answers a program whose newest version is `host`.
pub(super) fn accept(own: u32, host: u32) -> Result<u32> {
    if compatible(own, host) {
        return Ok(own.min(host));
    }
    let advice = if own < host { "install a newer build of this driver" } else { "update the program" };
    bail!(
        Incompatible,
        "this driver speaks version {} of the plug-in interface, the program speaks {}; {advice}",
        version(own),
        version(host)
    );
}

/// Whether a program that knows `own` can go on with what a library answered.
pub(super) fn check_answer(own: u32, answer: u32) -> Result<()> {
    if compatible(own, answer) && answer <= own {
        return Ok(());
    }
    let advice = if answer < own {
        "install a build of this driver that was made for the program's version"
    } else {
        "update the program, or install an older build of this driver"
    };
    bail!(
        Incompatible,
        "this driver speaks version {} of the plug-in interface, the program speaks {}; {advice}",
        version(answer),
        version(own)
    );
}

/// While the major version is 0, nothing but the same version fits.
fn compatible(a: u32, b: u32) -> bool {
    let major = a >> 16;
    major == b >> 16 && (major > 0 || a == b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use halite_hal::Code;

    const V: fn(u32, u32) -> u32 = |major, minor| (major << 16) | minor;

    #[test]
    fn young_versions_have_to_be_equal() {
        assert_eq!(accept(V(0, 1), V(0, 1)).unwrap(), V(0, 1));
        for (own, host) in [(V(0, 1), V(0, 2)), (V(0, 2), V(0, 1)), (V(0, 1), V(1, 1)), (V(1, 0), V(0, 9))] {
            assert_eq!(accept(own, host).unwrap_err().code(), Code::Incompatible);
            assert_eq!(check_answer(own, host).unwrap_err().code(), Code::Incompatible);
        }
    }

    #[test]
    fn from_one_on_the_older_minor_version_is_spoken() {
        assert_eq!(accept(V(1, 2), V(1, 5)).unwrap(), V(1, 2));
        assert_eq!(accept(V(1, 5), V(1, 2)).unwrap(), V(1, 2));
        assert!(accept(V(1, 5), V(2, 5)).is_err());
        assert!(check_answer(V(1, 5), V(1, 2)).is_ok());
        assert!(check_answer(V(1, 2), V(1, 5)).is_err(), "never newer than was offered");
    }

    #[test]
    fn refusals_tell_both_numbers_and_what_to_do() {
        let newer = check_answer(V(0, 1), V(0, 2)).unwrap_err().to_string();
        assert!(newer.contains("0.2") && newer.contains("0.1") && newer.contains("update"), "{newer}");
        let older = check_answer(V(0, 2), V(0, 1)).unwrap_err().to_string();
        assert!(older.contains("0.1") && older.contains("install a build"), "{older}");
        let driver = accept(V(0, 1), V(0, 2)).unwrap_err().to_string();
        assert!(driver.contains("install a newer build"), "{driver}");
    }
}
