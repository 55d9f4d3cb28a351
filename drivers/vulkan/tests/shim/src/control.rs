//! Steering the shim from tests of safe crates: its own functions, called in the library as the driver loads it.

use std::{
    ffi::{CString, c_char},
    path::PathBuf,
};

/// The shim, in this process.
pub struct Control {
    library: libloading::Library,
    path: PathBuf,
}

impl Control {
    /// Loads the library that lies beside this test program.
    ///
    /// # Panics
    /// It is not there.
    pub fn load() -> Control {
        let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
        let program = std::env::current_exe().expect("tests know their path");
        let path = program.with_file_name(format!("{prefix}halite_vulkan_shim{suffix}"));
        // SAFETY: a library of this workspace without initialisers.
        let library = unsafe { libloading::Library::new(&path) };
        let library = library.unwrap_or_else(|e| panic!("{} was not built: {e}", path.display()));
        Control { library, path }
    }

    /// Where it lies, for the driver's option `libvulkan`.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    fn function<F: Copy>(&self, name: &str) -> F {
        // SAFETY: each caller below names a function of the shim with its type.
        unsafe { *self.library.get::<F>(name).expect("the shim exports it") }
    }

    /// See [`halite_shim_fail`](crate::halite_shim_fail).
    pub fn fail(&self, call: &str, after: u32, times: u32, result: i32) {
        type Fail = unsafe extern "C" fn(*const c_char, u32, u32, i32);
        let name = CString::new(call).expect("names of calls have no zeros");
        // SAFETY: the function's own type; the name is a C string.
        unsafe { self.function::<Fail>("halite_shim_fail")(name.as_ptr(), after, times, result) };
    }

    /// How often a call was made since the last reset.
    pub fn calls(&self, call: &str) -> u32 {
        type Calls = unsafe extern "C" fn(*const c_char) -> u32;
        let name = CString::new(call).expect("names of calls have no zeros");
        // SAFETY: the function's own type; the name is a C string.
        unsafe { self.function::<Calls>("halite_shim_calls")(name.as_ptr()) }
    }

    /// Forgets all rules, counts and lost devices.
    pub fn reset(&self) {
        self.function::<extern "C" fn()>("halite_shim_reset")();
    }

    /// Forgets the rules, and nothing else.
    pub fn clear(&self) {
        self.function::<extern "C" fn()>("halite_shim_clear")();
    }

    /// Objects that were made since the last reset and not destroyed.
    pub fn live(&self) -> i64 {
        self.function::<extern "C" fn() -> i64>("halite_shim_live")()
    }
}
