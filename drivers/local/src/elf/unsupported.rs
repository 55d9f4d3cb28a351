//! The answer of systems on which no native code is loaded.

use std::{convert::Infallible, ffi::c_void};

use halite_abi::{Result, bail};

/// No image: there is no value of this type.
#[derive(Debug)]
pub(crate) struct Image(Infallible);

impl Image {
    /// Always UNIMPLEMENTED.
    pub fn load(_bytes: &[u8], _symbol: &str) -> Result<Self> {
        let (system, processor) = (std::env::consts::OS, std::env::consts::ARCH);
        bail!(Unimplemented, "native code of modules cannot be loaded on {system} {processor}")
    }

    /// Never called.
    pub fn query(&self) -> *const c_void {
        match self.0 {}
    }

    /// Never called.
    pub fn code_at(&self, _address: u64) -> Result<*const c_void> {
        match self.0 {}
    }

    /// Never called.
    pub fn bytes_at(&self, _address: u64, _length: usize) -> Result<Vec<u8>> {
        match self.0 {}
    }

    /// Never called.
    pub fn text_at(&self, _address: u64, _limit: usize) -> Result<String> {
        match self.0 {}
    }
}
