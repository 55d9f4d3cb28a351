//! The options of a device, as its driver reads them.

use std::{ops::RangeInclusive, time::Duration};

use halite_abi::{Result, bail, format};
use halite_hal::{MEMORY_LIMIT, Options, UNTRUSTED};

use crate::cpu;

/// Most threads of a pool.
const MAX_THREADS: usize = 1024;

/// How long a thread looks for work unless the option says otherwise: longer than the pause between two calls of a
/// program, shorter than anybody notices.
const DEFAULT_SPIN_US: u64 = 50;

/// Options of a device, read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Threads of the pool; `None` for a device without one.
    pub threads: Option<usize>,
    /// How long a thread of the pool looks for work before it sleeps.
    pub patience: Duration,
    /// Whether native code may run.
    pub native_code: bool,
    /// Bytes that buffers may have.
    pub memory: u64,
    /// Whether the device is for programs of strangers.
    pub untrusted: bool,
}

impl Settings {
    /// Reads the options of a device with a pool of threads, or of one without.
    ///
    /// # Errors
    /// INVALID_ARGUMENT names an option whose value is none of the valid ones.
    pub fn parse(pooled: bool, options: &Options) -> Result<Self> {
        let untrusted = switch(options, UNTRUSTED)?.unwrap_or(false);
        let native_code = switch(options, "native_code")?;
        if untrusted && native_code == Some(true) {
            bail!(
                InvalidArgument,
                "native_code=on contradicts {UNTRUSTED}=on: nothing confines machine code"
            );
        }
        let native_code = native_code.unwrap_or(!untrusted);
        let memory = match number(options, "memory", "bytes", 1..=u64::MAX)? {
            Some(bytes) => bytes,
            None => halite_hal::host_memory::for_buffers().unwrap_or(u64::MAX),
        };
        let memory = memory.min(number(options, MEMORY_LIMIT, "bytes", 1..=u64::MAX)?.unwrap_or(u64::MAX));
        let threads = match pooled {
            false => None,
            true => Some(match number(options, "threads", "threads", 1..=MAX_THREADS as u64)? {
                Some(threads) => threads as usize,
                None => cpu::count().min(MAX_THREADS),
            }),
        };
        let spin = number(options, "spin_us", "microseconds", 0..=100_000)?.unwrap_or(DEFAULT_SPIN_US);
        Ok(Settings { threads, patience: Duration::from_micros(spin), native_code, memory, untrusted })
    }

    /// Formats of executables, best first.
    pub fn formats(&self) -> Vec<&'static str> {
        cpu::NATIVE_FORMAT.filter(|_| self.native_code).into_iter().chain([format::VMVX]).collect()
    }
}

/// A switch, if the option is given.
fn switch(options: &Options, key: &str) -> Result<Option<bool>> {
    match options.get(key).map(String::as_str) {
        None => Ok(None),
        Some("on" | "true") => Ok(Some(true)),
        Some("off" | "false") => Ok(Some(false)),
        Some(other) => bail!(InvalidArgument, "option {key}='{other}': write on or off"),
    }
}

/// A number in a range, if the option is given.
fn number(options: &Options, key: &str, what: &str, range: RangeInclusive<u64>) -> Result<Option<u64>> {
    let Some(text) = options.get(key) else { return Ok(None) };
    match text.parse() {
        Ok(number) if range.contains(&number) => Ok(Some(number)),
        _ => bail!(
            InvalidArgument,
            "option {key}='{text}' is no number of {what} from {} to {}",
            range.start(),
            range.end()
        ),
    }
}
