//! The version of the library.

use std::ffi::c_char;

/// Incompatible changes of this interface. 0 while it is young: then a change of the minor number may be incompatible, too.
pub const HALITE_C_ABI_MAJOR: u32 = 0;
/// Compatible additions to this interface.
pub const HALITE_C_ABI_MINOR: u32 = 9;

/// The version of the library, such as `0.1.0`. The text is valid until the process ends.
#[unsafe(no_mangle)]
pub extern "C" fn halite_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// The version of the interface that the library has: major in the upper half, minor in the lower. Compare it with
/// `HALITE_C_ABI_MAJOR` and `HALITE_C_ABI_MINOR` of the header where a program loads the library by itself.
#[unsafe(no_mangle)]
pub extern "C" fn halite_abi_version() -> u32 {
    (HALITE_C_ABI_MAJOR << 16) | HALITE_C_ABI_MINOR
}
