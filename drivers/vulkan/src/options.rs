//! The options that the driver understands and their parsing.

use std::{path::PathBuf, time::Duration};

use halite_facts::{VERSION_1_1, VERSION_1_2, VERSION_1_3, VERSION_1_4};
use halite_hal::{MEMORY_LIMIT, Options, Result, UNTRUSTED, bail, status};

use crate::workarounds::WorkaroundOverrides;

/// (name, meaning) of every option, sorted by name.
pub const OPTIONS: &[(&str, &str)] = &[
    (
        "allow_subgroup_mismatch",
        "on|off (off): run kernels compiled for another subgroup size; results may be wrong",
    ),
    (
        "api_version",
        "1.1|1.2|1.3|1.4 (1.4): newest Vulkan version to use; lower ones exercise the paths of older devices",
    ),
    ("compile_threads", "number (0: one per core): threads that compile pipelines"),
    ("debug_names", "on|off (off): name Vulkan objects for debuggers; always on with validation"),
    ("dedicated_compute_queue", "on|off (on): prefer a queue family that cannot draw"),
    (
        "dispatch_abi",
        "auto|descriptors|bda|all (auto): how kernels receive buffers; auto takes what the device does well and confines",
    ),
    (
        "icd",
        "path, or list of paths in the system's PATH form: libraries or manifests of Vulkan drivers to load directly \
         instead of through a Vulkan loader; no validation then",
    ),
    ("kept_kernels", "number (64): compiled kernels kept when no executable has them any more"),
    (
        "libvulkan",
        "path, or list of paths in the system's PATH form: Vulkan loaders to try before the system's",
    ),
    ("memory", "auto|unified|staged (auto): keep buffers mapped, or copy through staging memory"),
    (MEMORY_LIMIT, "bytes (none): device memory that buffers may take together"),
    ("pipeline_cache", "on|off|directory (on): keep compiled pipelines between runs"),
    ("push_descriptors", "on|off (on): push descriptors where the device can"),
    ("queues", "1..8 (1): queues to open"),
    ("repair", "on|off (on): repair SPIR-V that drivers are known to misread"),
    (
        "robust_buffer_access",
        "auto|on|off (auto: on for CPU devices): out-of-range accesses of kernels read zero and write nothing",
    ),
    (
        "stall_limit",
        "seconds|off (600): how long reads, writes and file transfers wait while the device finishes nothing",
    ),
    (
        "submission_limit",
        "milliseconds|off (50): longest estimated work of one submission; longer recordings are cut, so that what is \
         cancelled ends soon",
    ),
    (
        "swiftshader",
        "auto|on|off|path (auto: when nothing else can be used): run on the processor with SwiftShader, loaded \
         directly; on lists it beside other devices, a path names its library",
    ),
    ("synchronization2", "on|off (on): newer barriers where the device has them"),
    (
        "timeline",
        "auto|native|emulated (auto): how queues count what has finished: with timeline semaphores, or with fences where the \
         device has none",
    ),
    (
        UNTRUSTED,
        "on|off (off): for modules of strangers: implies dispatch_abi=descriptors and robust_buffer_access=on, and refuses \
         options that contradict them",
    ),
    (
        "validation",
        "off|core|sync|gpuav|all, or a comma list (off): Khronos validation layer, messages go to the log",
    ),
    (
        "workarounds",
        "+name,-name,… (): known driver faults to avoid besides, or not to avoid; list-devices --workarounds has the names",
    ),
];

/// The dispatch ABIs that a caller wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DispatchAbiChoice {
    /// What the device does well.
    #[default]
    Auto,
    /// Only descriptor sets.
    Descriptors,
    /// Only buffer device addresses; opening fails where they cannot be used.
    BufferDeviceAddress,
    /// Both; opening fails where one cannot be used.
    All,
}

/// Where compiled pipelines are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PipelineCacheChoice {
    /// In the user's cache directory.
    #[default]
    Default,
    /// Nowhere.
    Off,
    /// In this directory.
    Directory(PathBuf),
}

/// When SwiftShader, a driver for the processor, is loaded directly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SwiftShaderChoice {
    /// When there is no other device that can be used, or when it is named.
    #[default]
    Auto,
    /// Always; listing and opening fail where it is not found.
    On,
    /// Never.
    Off,
    /// Always, from this library or the folder it is in.
    Path(PathBuf),
}

/// How host and device exchange data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryChoice {
    /// By the device's memory types.
    #[default]
    Auto,
    /// Buffers stay mapped; opening fails where device memory cannot be mapped.
    Unified,
    /// Through staging buffers.
    Staged,
}

/// How queues count what has finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimelineChoice {
    /// With timeline semaphores where the device has them.
    #[default]
    Auto,
    /// With timeline semaphores; opening fails where there are none.
    Native,
    /// With fences, whatever the device has.
    Emulated,
}

/// What the validation layer checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ValidationModes {
    /// API use.
    pub core: bool,
    /// Missing barriers and other hazards.
    pub synchronization: bool,
    /// Out-of-bounds accesses of shaders, by instrumenting them.
    pub gpu_assisted: bool,
}

impl ValidationModes {
    /// Whether the layer is loaded at all.
    pub fn any(self) -> bool {
        self.core || self.synchronization || self.gpu_assisted
    }

    fn parse(text: &str) -> Result<Self> {
        let mut modes = ValidationModes::default();
        for word in text.split(',').map(str::trim) {
            match word {
                "off" | "false" | "0" | "" => {}
                "on" | "true" | "1" | "core" => modes.core = true,
                "sync" => (modes.core, modes.synchronization) = (true, true),
                "gpuav" => (modes.core, modes.gpu_assisted) = (true, true),
                "all" => modes = ValidationModes { core: true, synchronization: true, gpu_assisted: true },
                _ => return Err(bad_value("validation", text)),
            }
        }
        Ok(modes)
    }
}

/// The parsed options of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VulkanOptions {
    /// Run kernels compiled for another subgroup size.
    pub allow_subgroup_mismatch: bool,
    /// Newest Vulkan version to use, packed.
    pub api_version: u32,
    /// Threads that compile pipelines; 0 means one per core.
    pub compile_threads: u32,
    /// Name Vulkan objects. [`VulkanOptions::names_wanted`] adds validation's need for names.
    pub debug_names: bool,
    /// Prefer a queue family that cannot draw.
    pub dedicated_compute_queue: bool,
    /// How kernels receive buffers.
    pub dispatch_abi: DispatchAbiChoice,
    /// Libraries or manifests of drivers that are loaded directly; no loader is used when there is one.
    pub icd: Vec<PathBuf>,
    /// Compiled kernels that are kept when no executable has them any more.
    pub kept_kernels: u32,
    /// Loaders to try before the system's.
    pub libvulkan: Vec<PathBuf>,
    /// How host and device exchange data.
    pub memory: MemoryChoice,
    /// Most bytes of device memory for buffers.
    pub memory_limit: Option<u64>,
    /// Where compiled pipelines are kept.
    pub pipeline_cache: PipelineCacheChoice,
    /// Push descriptors where the device can.
    pub push_descriptors: bool,
    /// Queues to open, 1 to [`VulkanOptions::MAX_QUEUES`]; a family with fewer gives what it has.
    pub queues: u32,
    /// Repair SPIR-V that drivers are known to misread.
    pub repair: bool,
    /// Bounds-check buffer accesses of kernels. `None`: on CPU devices, whose kernels would otherwise reach the
    /// memory of this process; a GPU's reach only their own.
    pub robust_buffer_access: Option<bool>,
    /// Longest wait of the driver for itself while the device finishes nothing; `None` waits for ever.
    pub stall_limit: Option<Duration>,
    /// Longest estimated work of one submission; `None` leaves recordings whole.
    pub submission_limit: Option<Duration>,
    /// When SwiftShader is loaded directly.
    pub swiftshader: SwiftShaderChoice,
    /// Newer barriers where the device has them.
    pub synchronization2: bool,
    /// How queues count what has finished.
    pub timeline: TimelineChoice,
    /// The device is for programs of strangers.
    pub untrusted: bool,
    /// What the validation layer checks.
    pub validation: ValidationModes,
    /// Driver faults that are avoided, or not, whatever the table says.
    pub workarounds: WorkaroundOverrides,
}

impl Default for VulkanOptions {
    fn default() -> Self {
        VulkanOptions {
            allow_subgroup_mismatch: false,
            api_version: VERSION_1_4,
            compile_threads: 0,
            debug_names: false,
            dedicated_compute_queue: true,
            dispatch_abi: DispatchAbiChoice::default(),
            icd: Vec::new(),
            kept_kernels: 64,
            libvulkan: Vec::new(),
            memory: MemoryChoice::default(),
            memory_limit: None,
            pipeline_cache: PipelineCacheChoice::default(),
            push_descriptors: true,
            queues: 1,
            repair: true,
            robust_buffer_access: None,
            stall_limit: Some(Duration::from_secs(600)),
            submission_limit: Some(Duration::from_millis(50)),
            swiftshader: SwiftShaderChoice::default(),
            synchronization2: true,
            timeline: TimelineChoice::default(),
            untrusted: false,
            validation: ValidationModes::default(),
            workarounds: WorkaroundOverrides::default(),
        }
    }
}

impl VulkanOptions {
    /// Most queues that can be opened.
    pub const MAX_QUEUES: u32 = 8;

    /// Parses options by name. INVALID_ARGUMENT names an unknown option or value and lists the known ones.
    pub fn parse(options: &Options) -> Result<Self> {
        let mut parsed = VulkanOptions::default();
        for (name, value) in options {
            parsed.set(name, value.trim())?;
        }
        if parsed.untrusted {
            parsed.confine()?;
        }
        Ok(parsed)
    }

    /// What a device for programs of strangers needs. Fails where an option says otherwise.
    fn confine(&mut self) -> Result<()> {
        if self.robust_buffer_access == Some(false) {
            bail!(InvalidArgument, "robust_buffer_access=off contradicts {UNTRUSTED}=on");
        }
        if !matches!(self.dispatch_abi, DispatchAbiChoice::Auto | DispatchAbiChoice::Descriptors) {
            bail!(
                InvalidArgument,
                "a dispatch_abi with device addresses contradicts {UNTRUSTED}=on: nothing checks where they lead"
            );
        }
        self.robust_buffer_access = Some(true);
        self.dispatch_abi = DispatchAbiChoice::Descriptors;
        Ok(())
    }

    /// Whether Vulkan objects get names.
    pub fn names_wanted(&self) -> bool {
        self.debug_names || self.validation.any()
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "allow_subgroup_mismatch" => self.allow_subgroup_mismatch = switch(name, value)?,
            "api_version" => self.api_version = parse_api_version(value)?,
            "compile_threads" => self.compile_threads = number(name, value, 0, 1024)?,
            "debug_names" => self.debug_names = switch(name, value)?,
            "dedicated_compute_queue" => self.dedicated_compute_queue = switch(name, value)?,
            "dispatch_abi" => self.dispatch_abi = parse_dispatch_abi(value)?,
            "icd" => self.icd = paths(value),
            "kept_kernels" => self.kept_kernels = number(name, value, 0, 1 << 20)?,
            "libvulkan" => self.libvulkan = paths(value),
            "memory" => self.memory = parse_memory(value)?,
            MEMORY_LIMIT => match value.parse() {
                Ok(bytes) if bytes > 0 => self.memory_limit = Some(bytes),
                _ => return Err(bad_value(name, value)),
            },
            "pipeline_cache" => self.pipeline_cache = parse_pipeline_cache(value)?,
            "push_descriptors" => self.push_descriptors = switch(name, value)?,
            "queues" => self.queues = number(name, value, 1, Self::MAX_QUEUES)?,
            "repair" => self.repair = switch(name, value)?,
            "robust_buffer_access" if value == "auto" => self.robust_buffer_access = None,
            "robust_buffer_access" => self.robust_buffer_access = Some(switch(name, value)?),
            "stall_limit" if matches!(value, "off" | "false" | "no") => self.stall_limit = None,
            "stall_limit" => {
                let seconds = number(name, value, 1, 24 * 60 * 60)?;
                self.stall_limit = Some(Duration::from_secs(seconds.into()));
            }
            "submission_limit" if matches!(value, "off" | "false" | "no") => self.submission_limit = None,
            "submission_limit" => {
                let milliseconds = number(name, value, 1, 60 * 60 * 1000)?;
                self.submission_limit = Some(Duration::from_millis(milliseconds.into()));
            }
            "swiftshader" => self.swiftshader = parse_swiftshader(value)?,
            "synchronization2" => self.synchronization2 = switch(name, value)?,
            "timeline" => self.timeline = parse_timeline(value)?,
            UNTRUSTED => self.untrusted = switch(name, value)?,
            "validation" => self.validation = ValidationModes::parse(value)?,
            "workarounds" => self.workarounds = WorkaroundOverrides::parse(value)?,
            _ => {
                let known = OPTIONS.iter().map(|(n, _)| *n).collect::<Vec<_>>().join(", ");
                return Err(status!(
                    InvalidArgument,
                    "unknown Vulkan option '{name}'; known options: {known}"
                ));
            }
        }
        Ok(())
    }
}

fn bad_value(name: &str, value: &str) -> halite_hal::Status {
    let meaning = OPTIONS.iter().find(|(n, _)| *n == name).map_or("", |(_, meaning)| *meaning);
    status!(InvalidArgument, "Vulkan option {name}='{value}' is not understood; {name} is {meaning}")
}

fn paths(value: &str) -> Vec<PathBuf> {
    std::env::split_paths(value).filter(|p| p != "").collect()
}

fn switch(name: &str, value: &str) -> Result<bool> {
    match value {
        "on" | "true" | "1" | "yes" => Ok(true),
        "off" | "false" | "0" | "no" => Ok(false),
        _ => Err(bad_value(name, value)),
    }
}

fn number(name: &str, value: &str, least: u32, most: u32) -> Result<u32> {
    let n = value.parse().map_err(|_| bad_value(name, value))?;
    if (least..=most).contains(&n) { Ok(n) } else { Err(bad_value(name, value)) }
}

fn parse_api_version(value: &str) -> Result<u32> {
    match value {
        "1.1" => Ok(VERSION_1_1),
        "1.2" => Ok(VERSION_1_2),
        "1.3" => Ok(VERSION_1_3),
        "1.4" => Ok(VERSION_1_4),
        _ => Err(bad_value("api_version", value)),
    }
}

fn parse_dispatch_abi(value: &str) -> Result<DispatchAbiChoice> {
    match value {
        "auto" => Ok(DispatchAbiChoice::Auto),
        "descriptors" | "descriptor" => Ok(DispatchAbiChoice::Descriptors),
        "bda" | "buffer-device-address" => Ok(DispatchAbiChoice::BufferDeviceAddress),
        "all" => Ok(DispatchAbiChoice::All),
        _ => Err(bad_value("dispatch_abi", value)),
    }
}

fn parse_memory(value: &str) -> Result<MemoryChoice> {
    match value {
        "auto" => Ok(MemoryChoice::Auto),
        "unified" => Ok(MemoryChoice::Unified),
        "staged" => Ok(MemoryChoice::Staged),
        _ => Err(bad_value("memory", value)),
    }
}

fn parse_timeline(value: &str) -> Result<TimelineChoice> {
    match value {
        "auto" => Ok(TimelineChoice::Auto),
        "native" => Ok(TimelineChoice::Native),
        "emulated" => Ok(TimelineChoice::Emulated),
        _ => Err(bad_value("timeline", value)),
    }
}

fn parse_pipeline_cache(value: &str) -> Result<PipelineCacheChoice> {
    match value {
        "" => Err(bad_value("pipeline_cache", value)),
        "on" | "true" | "1" | "yes" => Ok(PipelineCacheChoice::Default),
        "off" | "false" | "0" | "no" => Ok(PipelineCacheChoice::Off),
        directory => Ok(PipelineCacheChoice::Directory(PathBuf::from(directory))),
    }
}

fn parse_swiftshader(value: &str) -> Result<SwiftShaderChoice> {
    match value {
        "" => Err(bad_value("swiftshader", value)),
        "auto" => Ok(SwiftShaderChoice::Auto),
        "on" | "true" | "1" | "yes" => Ok(SwiftShaderChoice::On),
        "off" | "false" | "0" | "no" => Ok(SwiftShaderChoice::Off),
        path => Ok(SwiftShaderChoice::Path(PathBuf::from(path))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Result<VulkanOptions> {
        VulkanOptions::parse(&pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect())
    }

    #[test]
    fn every_listed_option_is_known_and_sorted() {
        assert!(OPTIONS.is_sorted_by_key(|(name, _)| *name));
        for (name, _) in OPTIONS {
            let error = parse(&[(name, "?")]).err().map(|e| e.to_string()).unwrap_or_default();
            assert!(!error.contains("unknown"), "{error}");
        }
    }

    #[test]
    fn values() {
        assert_eq!(parse(&[]).unwrap(), VulkanOptions::default());
        let o = parse(&[
            ("api_version", "1.1"),
            ("validation", "sync,gpuav"),
            ("dispatch_abi", "bda"),
            ("pipeline_cache", "some/dir"),
            ("queues", "2"),
            ("robust_buffer_access", "true"),
            ("submission_limit", "7"),
        ])
        .unwrap();
        assert_eq!(o.validation, ValidationModes { core: true, synchronization: true, gpu_assisted: true });
        assert_eq!(o.api_version, VERSION_1_1);
        assert_eq!(o.dispatch_abi, DispatchAbiChoice::BufferDeviceAddress);
        assert_eq!(o.pipeline_cache, PipelineCacheChoice::Directory("some/dir".into()));
        assert!(o.robust_buffer_access == Some(true) && o.names_wanted() && o.queues == 2);
        assert_eq!(o.submission_limit, Some(Duration::from_millis(7)));
        assert_eq!(parse(&[("submission_limit", "off")]).unwrap().submission_limit, None);
        assert_eq!(parse(&[("robust_buffer_access", "auto")]).unwrap(), VulkanOptions::default());
        assert_eq!(parse(&[("timeline", "emulated")]).unwrap().timeline, TimelineChoice::Emulated);
        let o = parse(&[("swiftshader", "some/lib.so"), ("icd", "a.json")]).unwrap();
        assert_eq!(o.swiftshader, SwiftShaderChoice::Path("some/lib.so".into()));
        assert_eq!(o.icd, [PathBuf::from("a.json")]);
        assert_eq!(parse(&[("swiftshader", "off")]).unwrap().swiftshader, SwiftShaderChoice::Off);
        assert!(!parse(&[("validation", "off")]).unwrap().validation.any());
    }

    #[test]
    fn strangers_get_descriptors_and_bounds() {
        let o = parse(&[("untrusted", "on"), ("memory_limit", "4096")]).unwrap();
        assert_eq!((o.robust_buffer_access, o.dispatch_abi), (Some(true), DispatchAbiChoice::Descriptors));
        assert!(o.untrusted && o.memory_limit == Some(4096));
        for (name, value) in
            [("robust_buffer_access", "off"), ("dispatch_abi", "all"), ("dispatch_abi", "bda")]
        {
            let e = parse(&[("untrusted", "on"), (name, value)]).unwrap_err().to_string();
            assert!(e.contains("contradicts untrusted=on"), "{e}");
        }
        assert!(parse(&[("memory_limit", "0")]).is_err());
    }

    #[test]
    fn errors_say_what_is_possible() {
        let e = parse(&[("dispach_abi", "bda")]).unwrap_err().to_string();
        assert!(e.contains("'dispach_abi'") && e.contains("dispatch_abi,"), "{e}");
        let e = parse(&[("queues", "9")]).unwrap_err().to_string();
        assert!(e.contains("queues='9'") && e.contains("1..8"), "{e}");
        assert!(parse(&[("validation", "core,hard")]).is_err());
        assert!(parse(&[("memory", "")]).is_err() && parse(&[("api_version", "1.0")]).is_err());
    }
}
