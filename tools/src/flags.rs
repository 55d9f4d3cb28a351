//! The flags that several tools share, and what they mean in terms of driver options.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, ValueEnum};
use halite::{
    Cache, LoadMode, Precision,
    hal::{DriverRegistry, Options},
    host::Tolerance,
    plugin::{self, discovery::Discovery},
};

use crate::{
    console::{Failure, Result},
    logger,
    picture::PictureFlags,
    trial,
};

/// Name of the driver that `--vulkan_*` flags configure.
pub(crate) const VULKAN: &str = "vulkan";

/// Which devices, and how they are opened.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Devices")]
pub struct DeviceFlags {
    /// Device to run on: driver, or driver and device by path, index or part of the name, with options: vulkan,
    /// vulkan://GPU-UUID, vulkan://0, vulkan://llvmpipe?validation=core. Repeat for several; inputs are placed on
    /// the first. Default: the best usable GPU, else a CPU device, with a warning
    #[arg(long = "device", value_name = "URI")]
    pub device: Vec<String>,
    /// Lists the drivers
    #[arg(long = "list_drivers")]
    pub list_drivers: bool,
    /// Lists the devices of all drivers or of one, one URI per line
    #[arg(long = "list_devices", num_args = 0..=1, require_equals = true, value_name = "DRIVER")]
    pub list_devices: Option<Option<String>>,
    /// Prints all that is known about the devices of all drivers or of one
    #[arg(long = "dump_devices", num_args = 0..=1, require_equals = true, value_name = "DRIVER")]
    pub dump_devices: Option<Option<String>>,
    /// The model or module comes from a stranger: no machine code, no device addresses, bounds-checked buffers, only plug-ins that
    /// --driver-path names, files are read and not mapped, nothing is kept in caches unless --compile-cache names one; 60 seconds
    /// unless --timeout says otherwise, 1 GiB of host memory for module code and 4 GiB of device memory
    #[arg(long = "untrusted")]
    pub untrusted: bool,
    /// Runs kernels that were compiled for another subgroup size as they are; results may be wrong
    #[arg(long = "allow-subgroup-mismatch")]
    pub allow_subgroup_mismatch: bool,
    /// Does not repair kernels that rely on a subgroup size the device does not have; they are refused instead
    #[arg(long = "no-repair")]
    pub no_repair: bool,
    /// Which plug-ins may be used.
    #[command(flatten)]
    pub plugins: PluginFlags,
    #[command(flatten)]
    vulkan: VulkanFlags,
}

/// Which driver plug-ins.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Drivers")]
pub struct PluginFlags {
    /// Driver plug-in: a manifest (.halite-driver.json), a library, or a folder of manifests. Goes before a linked driver of
    /// the same name, and before those in HALITE_DRIVER_PATH and beside this program. A plug-in is native code: name only
    /// what you trust. May be repeated
    #[arg(long = "driver-path", alias = "driver_path", value_name = "PATH")]
    pub driver_path: Vec<PathBuf>,
    /// Uses no driver plug-ins, wherever they are
    #[arg(long = "no-plugins", alias = "no_plugins")]
    pub no_plugins: bool,
}

/// How long the whole run may take for a stranger's file.
const TIME_FOR_STRANGERS: Duration = Duration::from_secs(60);

impl DeviceFlags {
    /// The drivers that may be used; see [`PluginFlags::registry`].
    pub fn registry(&self) -> Result<DriverRegistry> {
        let places = if self.untrusted { Discovery::none() } else { Discovery::standard() };
        self.plugins.registry_from(places)
    }

    /// How long the run may take: as `asked`, or what a stranger's file gets.
    pub(crate) fn time(&self, asked: Option<Duration>) -> Option<Duration> {
        asked.or(self.untrusted.then_some(TIME_FOR_STRANGERS))
    }
}

impl PluginFlags {
    /// The drivers: those linked into the program and the plug-ins that the flags allow. Reads manifests and loads nothing,
    /// except a library that was given without one. Warnings about what cannot be used are logged.
    pub fn registry(&self) -> Result<DriverRegistry> {
        self.registry_from(Discovery::standard())
    }

    /// The same with other places than the usual ones.
    fn registry_from(&self, places: Discovery) -> Result<DriverRegistry> {
        halite::hal::verify_linked()?;
        if !self.no_plugins {
            let places = places.given(&self.driver_path);
            // A trial loads them untried: that is what it is for, and what it finds is not for it to remember.
            return Ok(match trial::is_trial() {
                true => plugin::discover(&places),
                false => plugin::discover_tried(&places, trial::library),
            });
        }
        if let Some(path) = self.driver_path.first() {
            let text = format!("--driver-path={} contradicts --no-plugins", path.display());
            return Err(Failure::Usage(text));
        }
        Ok(DriverRegistry::with_static_drivers())
    }
}

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Vulkan")]
struct VulkanFlags {
    /// Vulkan loader to use instead of the system's: a library, or a folder that has it. May be repeated
    #[arg(long = "vulkan_libvulkan_search_path", value_name = "PATH")]
    libvulkan: Vec<String>,
    /// Vulkan driver to load directly, without a loader: its library, or its manifest. May be repeated
    #[arg(long = "vulkan_icd", value_name = "PATH")]
    icd: Vec<String>,
    /// SwiftShader, a Vulkan driver for the processor: auto (when nothing else can be used), on (always listed), off,
    /// or its library
    #[arg(long = "vulkan_swiftshader", default_value = "auto", value_name = "auto|on|off|PATH")]
    swiftshader: String,
    /// Validation layer: true or core, sync, gpuav, all, or a comma list. Any message of it makes the tool fail
    #[arg(long = "vulkan_validation_layers", num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", value_name = "MODES")]
    validation: String,
    /// Names Vulkan objects for debuggers
    #[arg(long = "vulkan_debug_utils", num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", hide_possible_values = true, value_name = "BOOL")]
    debug_utils: bool,
    /// Validation messages shown: 0 none, 1 errors, 2 warnings, 3 information, 4 all
    #[arg(long = "vulkan_debug_verbosity", default_value = "2", value_parser = clap::value_parser!(u8).range(0..=4), value_name = "0-4")]
    verbosity: u8,
    /// Bounds-checks buffer accesses of kernels. Default: on CPU devices only
    #[arg(long = "vulkan_robust_buffer_access", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true, value_name = "BOOL")]
    robust_buffer_access: Option<bool>,
    /// Kernels may receive buffers as device addresses
    #[arg(long = "vulkan_buffer_device_addresses", num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true", hide_possible_values = true, value_name = "BOOL")]
    buffer_device_addresses: bool,
    /// How kernels receive buffers: auto (what the device does well and confines), descriptor, bda (addresses), or all
    #[arg(long = "vulkan_dispatch_abi", default_value = "auto", value_name = "ABI")]
    dispatch_abi: String,
    /// Prefers a queue family that cannot draw
    #[arg(long = "vulkan_dedicated_compute_queue", num_args = 0..=1, require_equals = true, default_value = "true", default_missing_value = "true", hide_possible_values = true, value_name = "BOOL")]
    dedicated_compute_queue: bool,
}

impl DeviceFlags {
    /// Options for Vulkan devices; only what differs from the driver's defaults.
    pub(crate) fn vulkan_options(&self) -> Result<Options> {
        let v = &self.vulkan;
        let mut options = Options::new();
        let mut set = |name: &str, value: &str| options.insert(name.to_owned(), value.to_owned());
        if !v.libvulkan.is_empty() {
            let files = v.libvulkan.iter().map(|path| loader_file(Path::new(path)));
            set("libvulkan", &path_list("--vulkan_libvulkan_search_path", files)?);
        }
        if !v.icd.is_empty() {
            set("icd", &path_list("--vulkan_icd", v.icd.iter().map(PathBuf::from))?);
        }
        if v.swiftshader != "auto" {
            set("swiftshader", &v.swiftshader);
        }
        match v.validation.as_str() {
            "false" | "off" => None,
            "true" => set("validation", "core"),
            modes => set("validation", modes),
        };
        let abi = match v.dispatch_abi.as_str() {
            "descriptor" | "descriptors" => Some("descriptors"),
            "bda" | "buffer-device-address" => Some("bda"),
            "auto" => (!v.buffer_device_addresses).then_some("descriptors"),
            "all" if v.buffer_device_addresses => Some("all"),
            "all" => Some("descriptors"),
            other => {
                let text = format!("--vulkan_dispatch_abi={other} is none of auto, descriptor, bda, all");
                return Err(Failure::Usage(text));
            }
        };
        if abi == Some("bda") && !v.buffer_device_addresses {
            let text = "--vulkan_dispatch_abi=bda contradicts --vulkan_buffer_device_addresses=false";
            return Err(Failure::Usage(text.to_owned()));
        }
        if let Some(abi) = abi {
            set("dispatch_abi", abi);
        }
        let switches = [
            (v.debug_utils, "debug_names", "on"),
            (v.robust_buffer_access == Some(true), "robust_buffer_access", "on"),
            (v.robust_buffer_access == Some(false), "robust_buffer_access", "off"),
            (!v.dedicated_compute_queue, "dedicated_compute_queue", "off"),
            (self.no_repair, "repair", "off"),
            (self.allow_subgroup_mismatch, "allow_subgroup_mismatch", "on"),
        ];
        for (_, name, value) in switches.iter().filter(|(wanted, _, _)| *wanted) {
            set(name, value);
        }
        logger::set_validation_verbosity(v.verbosity);
        Ok(options)
    }
}

fn path_list(flag: &str, paths: impl Iterator<Item = PathBuf>) -> Result<String> {
    let joined = std::env::join_paths(paths).map_err(|e| Failure::Usage(format!("{flag}: {e}")))?;
    Ok(joined.to_string_lossy().into_owned())
}

fn loader_file(path: &Path) -> PathBuf {
    let name = if cfg!(windows) {
        "vulkan-1.dll"
    } else if cfg!(target_os = "macos") {
        "libvulkan.dylib"
    } else {
        "libvulkan.so.1"
    };
    if path.is_dir() { path.join(name) } else { path.to_owned() }
}

/// How files are brought into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FileMode {
    /// Read as a whole.
    Preload,
    /// Mapped; pages are read when they are touched.
    #[value(alias = "file")]
    Mmap,
}

impl From<FileMode> for LoadMode {
    fn from(mode: FileMode) -> Self {
        match mode {
            FileMode::Preload => LoadMode::Preload,
            FileMode::Mmap => LoadMode::Map,
        }
    }
}

/// Where compiled models are kept.
#[derive(Args, Clone, Debug, Default)]
pub struct CacheFlags {
    /// Where compiled models are kept: a folder, or off. Default: this user's cache
    #[arg(long = "compile-cache", alias = "compile_cache", value_name = "FOLDER|off")]
    compile_cache: Option<PathBuf>,
}

impl CacheFlags {
    /// The cache; `None`, which leaves it to the library, where none was named for a stranger's file.
    pub(crate) fn cache(&self, untrusted: bool) -> Result<Option<Cache>> {
        match (untrusted, &self.compile_cache) {
            (true, None) => Ok(None),
            (_, folder) => cache(folder.as_deref()).map(Some),
        }
    }
}

/// Which modules, parameters and function.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Modules")]
pub struct ModuleFlags {
    /// Model (.onnx, .pte), which is compiled for the device and the shapes of the inputs, or module file (.vmfb); - is
    /// standard input. The same as --module
    #[arg(value_name = "MODULE")]
    positional: Vec<PathBuf>,
    /// Model or module file, or - for standard input. Repeat for several modules, those that others import from first; the
    /// last is the main one
    #[arg(long = "module", visible_alias = "model", value_name = "FILE")]
    module: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) cache: CacheFlags,
    /// How files of modules and models are read: preload, or mmap (pages are read when they are touched). Default: mmap
    #[arg(long = "module_mode", value_enum, value_name = "MODE", hide_possible_values = true)]
    pub module_mode: Option<FileMode>,
    /// Seed of the random numbers that operators of a model draw, where they have none of their own. Default: 0
    #[arg(long = "seed", value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// Floats inside of a model: model (as the model says, but f32 on processors), f16 where kernels take them, or f32 where the model
    /// has 16 bits; inputs and outputs stay as they are. Default: model
    #[arg(long = "precision", value_enum, value_name = "FLOATS", hide_possible_values = true)]
    pub(crate) precision: Option<PrecisionFlag>,
    /// Function to call, by name or module.name. Default: the only one
    #[arg(long = "function", value_name = "NAME")]
    pub function: Option<String>,
    /// Inputs of a model that are state, and the outputs that replace them, such as past_*=present_*; what a * stands for is the
    /// same in both. May be repeated. Default: auto, which finds pairs by their names
    #[arg(long = "state", value_name = "INPUT=OUTPUT|auto")]
    pub state: Vec<String>,
    /// Parameter archive (.irpa, .safetensors, .gguf), with the scope that the module names. May be repeated
    #[arg(long = "parameters", value_name = "[SCOPE=]FILE")]
    pub parameters: Vec<String>,
    /// How parameter files are read: file (mapped, pages are read when they are touched), or preload. Default: file
    #[arg(long = "parameter_mode", value_enum, value_name = "MODE", hide_possible_values = true)]
    pub parameter_mode: Option<FileMode>,
}

impl ModuleFlags {
    /// All module files in order.
    pub(crate) fn modules(&self) -> impl Iterator<Item = &Path> {
        self.module.iter().chain(&self.positional).map(PathBuf::as_path)
    }

    /// The function that was asked for; an empty name counts as none, as in IREE's tools.
    pub(crate) fn function(&self) -> Option<&str> {
        self.function.as_deref().filter(|name| !name.is_empty())
    }

    /// (scope, path) of every parameter archive.
    pub(crate) fn parameters(&self) -> Result<Vec<(String, String)>> {
        let split = |text: &String| {
            let (scope, path) = text.split_once('=').unwrap_or(("", text));
            if path.is_empty() {
                return Err(Failure::Usage(format!("--parameters={text} names no file; write [SCOPE=]FILE")));
            }
            Ok((scope.to_owned(), path.to_owned()))
        };
        self.parameters.iter().map(split).collect()
    }
}

/// Which floats a model computes with inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PrecisionFlag {
    Model,
    F16,
    F32,
}

impl From<PrecisionFlag> for Precision {
    fn from(flag: PrecisionFlag) -> Precision {
        match flag {
            PrecisionFlag::Model => Precision::Model,
            PrecisionFlag::F16 => Precision::F16,
            PrecisionFlag::F32 => Precision::F32,
        }
    }
}

/// The cache in a folder, none for `off`, without a name that of this user. A folder that is named has to be of use.
pub(crate) fn cache(asked: Option<&Path>) -> Result<Cache> {
    match asked {
        None => Ok(Cache::user()),
        Some(path) if path.as_os_str() == "off" => Ok(Cache::off()),
        Some(path) => {
            let cache = Cache::at(path);
            cache.check()?;
            Ok(cache)
        }
    }
}

/// The inputs of the call.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Inputs and outputs")]
pub struct InputFlags {
    /// Argument: NAME=VALUE for the input of that name, or VALUE for the next input that none names. A value is a number for a
    /// scalar; SHAPExTYPE=VALUES for a tensor (2x2xf32=1 2 3 4; one value fills it; none are zeros); @FILE.npy for an array,
    /// +FILE.npy for the next one of the same file, *FILE.npy for all; @FILE.npz for all arrays of an archive, by their names;
    /// @FILE.png or .jpg for a picture; SHAPExTYPE=@FILE.bin for raw bytes; @- reads an array from standard input; a leading & passes
    /// a plain buffer; (null) a null reference
    #[arg(long = "input", value_name = "VALUE", allow_hyphen_values = true)]
    pub input: Vec<String>,
    /// How pictures become tensors.
    #[command(flatten)]
    pub pictures: PictureFlags,
}

/// How results are compared with expected values.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Comparison")]
pub struct CompareFlags {
    /// Expected result, in the language of --input; (ignored) matches anything. Give one for each result, in order, by name,
    /// or all as @FILE.npz
    #[arg(long = "expected_output", value_name = "VALUE", allow_hyphen_values = true)]
    pub expected_output: Vec<String>,
    /// approximate: |actual - expected| <= threshold + rtol * |expected|; exact: equal bytes
    #[arg(long = "equality_mode", value_enum, default_value = "approximate", value_name = "MODE")]
    equality_mode: EqualityMode,
    /// Absolute threshold for f16
    #[arg(long = "expected_f16_threshold", value_parser = not_negative, default_value = "0.001", value_name = "X")]
    f16: f64,
    /// Absolute threshold for f32
    #[arg(long = "expected_f32_threshold", value_parser = not_negative, default_value = "0.0001", value_name = "X")]
    f32: f64,
    /// Absolute threshold for f64
    #[arg(long = "expected_f64_threshold", value_parser = not_negative, default_value = "0.0001", value_name = "X")]
    f64: f64,
    /// Absolute threshold for bf16
    #[arg(long = "expected_bf16_threshold", value_parser = not_negative, default_value = "0.01", value_name = "X")]
    bf16: f64,
    /// Relative threshold of all float types
    #[arg(long = "expected_rtol", value_parser = not_negative, default_value = "1e-05", value_name = "X")]
    rtol: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum EqualityMode {
    Approximate,
    Exact,
}

impl CompareFlags {
    /// The thresholds.
    pub(crate) fn tolerance(&self) -> Tolerance {
        Tolerance {
            exact: self.equality_mode == EqualityMode::Exact,
            f16: self.f16,
            bf16: self.bf16,
            f32: self.f32,
            f64: self.f64,
            relative: self.rtol,
        }
    }
}

/// Reads a duration in seconds; `0` is allowed, negative, endless and such as no clock counts are not.
pub(crate) fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let number = text.strip_suffix('s').unwrap_or(text);
    let time = number.parse::<f64>().ok().and_then(|value| Duration::try_from_secs_f64(value).ok());
    time.ok_or_else(|| format!("'{text}' is not a number of seconds from 0 up"))
}

/// Reads a tolerance.
pub(crate) fn not_negative(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        _ => Err(format!("'{text}' is not a number from 0 up")),
    }
}
