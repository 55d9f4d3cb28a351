//! The two driver objects: what exists, what options there are, opening.

use std::sync::Arc;

use halite_abi::{Result, bail};
use halite_hal::{
    Device, DeviceInfo, DeviceKind, Driver, InfoGroup, MEMORY_LIMIT, Options, ScoreItem, StaticDriver,
    UNTRUSTED, UnconfinedCode,
};
use halite_targets::Target;

use crate::{cpu, device::LocalDevice, settings::Settings};

/// Name of the driver that works on its callers' threads.
pub const SYNC_NAME: &str = "local-sync";
/// Name of the driver with a pool of threads.
pub const TASK_NAME: &str = "local-task";

inventory::submit! {
    StaticDriver { name: SYNC_NAME, create: || Arc::new(LocalDriver::SYNC) }
}

inventory::submit! {
    StaticDriver { name: TASK_NAME, create: || Arc::new(LocalDriver::TASK) }
}

/// One of the two drivers. Stateless: every open makes a device of its own.
#[derive(Clone, Copy, Debug)]
pub struct LocalDriver {
    name: &'static str,
    options: &'static [(&'static str, &'static str)],
}

const MEMORY: (&str, &str) = (
    "memory",
    "bytes (all that the machine, or the container, has): bytes that all buffers together may have",
);
const LIMIT: (&str, &str) = (MEMORY_LIMIT, "bytes (none): the same, where memory says more");
const NATIVE_CODE: (&str, &str) = (
    "native_code",
    "on|off (on; off for a device that nobody named): run native code of modules; off refuses executables that hold it",
);
const STRANGERS: (&str, &str) = (
    UNTRUSTED,
    "on|off (off): for modules of strangers; machine code is refused, and native_code=on contradicts it",
);
const SPIN: (&str, &str) =
    ("spin_us", "0..100000 (50): microseconds that a thread without work looks for more before it sleeps");
const THREADS: (&str, &str) =
    ("threads", "1..1024 (one per core): threads that run a dispatch, the waiting one included");

impl LocalDriver {
    /// `local-sync`.
    pub const SYNC: LocalDriver =
        LocalDriver { name: SYNC_NAME, options: &[MEMORY, LIMIT, NATIVE_CODE, STRANGERS] };
    /// `local-task`.
    pub const TASK: LocalDriver =
        LocalDriver { name: TASK_NAME, options: &[MEMORY, LIMIT, NATIVE_CODE, SPIN, THREADS, STRANGERS] };

    /// Of the two, the one with threads is what people want who name none.
    fn score(self) -> Vec<ScoreItem> {
        if self.name == SYNC_NAME {
            return Vec::new();
        }
        vec![ScoreItem { points: 1, reason: "all cores work on a dispatch".to_owned() }]
    }

    fn info(self, settings: &Settings) -> DeviceInfo {
        let threads = settings.threads.unwrap_or(1);
        let memory = format!("{} MiB", settings.memory >> 20);
        let native = if settings.native_code { "on" } else { "off" };
        DeviceInfo {
            driver: self.name.to_owned(),
            path: String::new(),
            name: cpu::name(),
            kind: DeviceKind::Cpu,
            target: Some(Target::host_cpu().to_string()),
            executable_formats: settings.formats().into_iter().map(str::to_owned).collect(),
            unconfined: unconfined(),
            score: self.score(),
            properties: vec![
                ("architecture".to_owned(), std::env::consts::ARCH.to_owned()),
                ("cores".to_owned(), cpu::count().to_string()),
                ("threads".to_owned(), threads.to_string()),
                ("native code".to_owned(), native.to_owned()),
                ("memory".to_owned(), memory),
            ],
            groups: vec![InfoGroup {
                title: "features".to_owned(),
                entries: cpu::features().into_iter().map(|name| (name.to_owned(), String::new())).collect(),
            }],
            ..DeviceInfo::default()
        }
    }
}

/// Machine code of modules: the one thing that a module can do here without being checked.
fn unconfined() -> Vec<UnconfinedCode> {
    let machine_code = |format: &str| UnconfinedCode {
        formats: vec![format.to_owned()],
        reason: "it is machine code for this processor, which runs with the rights of the program".to_owned(),
        option: "native_code".to_owned(),
        allow: "on".to_owned(),
        refuse: "off".to_owned(),
        default_allows: true,
    };
    cpu::NATIVE_FORMAT.map(machine_code).into_iter().collect()
}

impl Driver for LocalDriver {
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &str {
        if self.name == SYNC_NAME {
            "runs executables for the processor on the caller's thread"
        } else {
            "runs executables for the processor on all of its cores"
        }
    }

    fn options(&self) -> &[(&'static str, &'static str)] {
        self.options
    }

    fn enumerate(&self, options: &Options) -> Result<Vec<DeviceInfo>> {
        Ok(vec![self.info(&Settings::parse(self.name == TASK_NAME, options)?)])
    }

    fn open(&self, path: &str, options: &Options) -> Result<Arc<dyn Device>> {
        if !path.is_empty() {
            bail!(NotFound, "driver {} has one device, with an empty path; there is no '{path}'", self.name);
        }
        let settings = Settings::parse(self.name == TASK_NAME, options)?;
        Ok(Arc::new(LocalDevice::new(self.info(&settings), &settings)?))
    }
}
