//! The library's side of being loaded: the one exported function.

use std::sync::{Arc, OnceLock};

use super::{
    abi::{HALITE_ABI_VERSION, HaliteDriver, HaliteHost, HalitePlugin, HaliteStatus},
    driver, host, panics,
    peer::{Peer, Side},
    raw::{self, Grows},
    status, version,
};
use halite_hal::{Driver, Result};

/// A driver library: what [`export_driver!`](crate::export_driver) puts in a static.
#[derive(Debug)]
pub struct Plugin {
    create: fn() -> Arc<dyn Driver>,
    version: &'static str,
    build: &'static str,
    driver: OnceLock<Handle>,
}

/// The library's driver, which lives for ever.
#[derive(Clone, Copy, Debug)]
struct Handle(*mut HaliteDriver);

// SAFETY: the interface lets any thread use a driver.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Plugin {
    /// A library with the driver that `create` makes when the library is first asked. `version` and `build` are for people.
    pub const fn new(create: fn() -> Arc<dyn Driver>, version: &'static str, build: &'static str) -> Self {
        Plugin { create, version, build, driver: OnceLock::new() }
    }

    /// Answers the program. Callable any number of times, on any thread; the driver is made once.
    ///
    /// # Safety
    /// `host` is null or a table that stays valid until the process ends; `out_plugin` is null or may be written as far as
    /// its `struct_size` says.
    pub unsafe fn query(
        &self,
        host: *const HaliteHost,
        max_version: u32,
        out_plugin: *mut HalitePlugin,
    ) -> *mut HaliteStatus {
        // SAFETY: the caller's promise.
        let answer = panics::catch("query", || unsafe {
            let answer = self.answer(host, max_version, out_plugin)?;
            raw::answer(out_plugin, answer);
            Ok(())
        });
        answer.and_then(|answer| answer).map_or_else(status::give, |()| std::ptr::null_mut())
    }

    /// # Safety
    /// As for [`Plugin::query`].
    unsafe fn answer(
        &self,
        host: *const HaliteHost,
        max_version: u32,
        out_plugin: *mut HalitePlugin,
    ) -> Result<HalitePlugin> {
        // The version comes first: what follows is only true for versions that fit.
        let abi_version = version::accept(HALITE_ABI_VERSION, max_version)?;
        // SAFETY: the caller's promise.
        unsafe {
            raw::structure(out_plugin.cast_const(), Peer::of(Side::Plugin))?;
            host::install(host)?;
        }
        let driver = self.driver.get_or_init(|| Handle(driver::give((self.create)(), Side::Plugin)));
        Ok(HalitePlugin {
            struct_size: HalitePlugin::SIZE,
            abi_version,
            driver: driver.0,
            version: raw::lend(self.version),
            build: raw::lend(self.build),
        })
    }
}

/// Makes the crate a driver library: `export_driver!(|| Arc::new(MyDriver));`. The argument is a `fn() -> Arc<dyn Driver>`
/// that does no device work. The crate has to be a `cdylib`, and panics have to unwind.
#[macro_export]
macro_rules! export_driver {
    ($create:expr) => {
        #[cfg(panic = "abort")]
        ::core::compile_error!(
            "a driver library must be built with panic=unwind: with panic=abort, a panic in it would end the program"
        );

        static HALITE_PLUGIN: $crate::Plugin = $crate::Plugin::new(
            $create,
            ::core::env!("CARGO_PKG_VERSION"),
            if ::core::cfg!(debug_assertions) {
                ::core::concat!(::core::env!("CARGO_PKG_NAME"), " ", ::core::env!("CARGO_PKG_VERSION"), ", debug")
            } else {
                ::core::concat!(::core::env!("CARGO_PKG_NAME"), " ", ::core::env!("CARGO_PKG_VERSION"), ", release")
            },
        );

        /// Answers a program that loads this library.
        ///
        /// # Safety
        /// As the plug-in interface says: `host` stays valid until the process ends, `out_plugin` may be written.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn halite_driver_query_v1(
            host: *const $crate::abi::HaliteHost,
            max_version: u32,
            out_plugin: *mut $crate::abi::HalitePlugin,
        ) -> *mut $crate::abi::HaliteStatus {
            // SAFETY: the caller's promise, handed on.
            unsafe { HALITE_PLUGIN.query(host, max_version, out_plugin) }
        }
    };
}
