//! Executables and the choice of what reads their format.

use std::{
    any::Any,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use halite_abi::{Result, ResultExt, bail, format};
use halite_hal::{Executable, ExecutableDesc, FunctionInfo};

use crate::{code::Code, cpu, library::NativeCode, vmvx};

/// Code of a module, ready to be dispatched. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct LocalExecutable {
    device_id: u64,
    code: Arc<dyn Code>,
    /// By function.
    paces: Arc<[Pace]>,
}

/// How fast a function is: a running average, which decides whether threads are called for it.
#[derive(Debug, Default)]
pub(crate) struct Pace(AtomicU64);

impl Pace {
    /// Picoseconds in a nanosecond: averages keep fractions.
    const FINE: u64 = 1000;

    /// Notes that one thread took this long for so many workgroups.
    pub fn note(&self, time: Duration, workgroups: u64) {
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / Self::FINE).saturating_mul(Self::FINE);
        let new = time / workgroups.max(1);
        let old = self.0.load(Relaxed);
        let average = if old == 0 { new } else { old - old / 4 + new / 4 };
        self.0.store(average.max(1), Relaxed);
    }

    /// Nanoseconds that one thread takes for so many workgroups; `None` before the first run.
    pub fn estimate(&self, workgroups: u64) -> Option<u64> {
        match self.0.load(Relaxed) {
            0 => None,
            pace => Some(pace.saturating_mul(workgroups) / Self::FINE),
        }
    }
}

impl LocalExecutable {
    /// Reads code in one of the formats that the device takes. INCOMPATIBLE for another.
    pub fn new(device_id: u64, formats: &[&'static str], desc: &ExecutableDesc) -> Result<Self> {
        let Some(format) = formats.iter().find(|format| **format == desc.format) else {
            let why = if cpu::ELF_FORMATS.contains(&desc.format.as_str()) {
                "; it holds native code, which the device refuses (native_code=off, also where nobody named the device)"
            } else {
                ""
            };
            bail!(
                Incompatible,
                "executable '{}' has format '{}'{why}; the device takes {}",
                desc.label,
                desc.format,
                formats.join(", ")
            );
        };
        let code: Arc<dyn Code> = match *format {
            format::VMVX => Arc::new(vmvx::VmvxCode::load(desc).context(|| context(desc))?),
            _ => Arc::new(NativeCode::load(desc).context(|| context(desc))?),
        };
        Ok(LocalExecutable::with_code(device_id, code))
    }

    /// Code of whatever kind as an executable.
    pub fn with_code(device_id: u64, code: Arc<dyn Code>) -> Self {
        let paces = code.functions().iter().map(|_| Pace::default()).collect();
        LocalExecutable { device_id, code, paces }
    }

    /// The code.
    pub fn code(&self) -> &dyn Code {
        self.code.as_ref()
    }

    /// How fast a function is.
    pub fn pace(&self, function: u32) -> &Pace {
        &self.paces[function as usize]
    }

    /// Whether it was made by this device.
    pub fn is_of(&self, device_id: u64) -> bool {
        self.device_id == device_id
    }
}

fn context(desc: &ExecutableDesc) -> String {
    format!("loading executable '{}' of format '{}'", desc.label, desc.format)
}

impl Executable for LocalExecutable {
    fn device_id(&self) -> u64 {
        self.device_id
    }

    fn functions(&self) -> &[FunctionInfo] {
        self.code.functions()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_follows_what_was_seen() {
        let pace = Pace::default();
        assert_eq!(pace.estimate(10), None);
        pace.note(Duration::from_nanos(500), 100);
        assert_eq!(pace.estimate(1000), Some(5000));
        (0..40).for_each(|_| pace.note(Duration::from_nanos(900), 100));
        assert!((8500..=9000).contains(&pace.estimate(1000).unwrap()));
        pace.note(Duration::ZERO, 0);
        assert!(pace.estimate(u64::MAX).is_some());
        pace.note(Duration::MAX, 1);
        assert!(pace.estimate(u64::MAX).is_some());
    }
}
