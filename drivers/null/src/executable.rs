//! Executables: a JSON list of function facts.

use std::any::Any;

use halite_abi::{Result, bail, status};
use halite_hal::{ByteRuns, Executable, ExecutableDesc, Footprint, FunctionInfo};
use serde::Deserialize;

/// The only executable format: a JSON array with an object per function,
/// `[{"name": "add", "bindings": 2, "constants": 1, "workgroup_size": [64, 1, 1]}]`. Only `name` is required;
/// counts are 0 and sizes open when left out. `touches` says what a dispatch would touch: objects with `binding`, `write`, and
/// `start`, `width` and `strides` (pairs of distance and number) of the bytes, or without those for all of the binding.
pub const EXECUTABLE_FORMAT: &str = "null-json";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryPoint {
    name: String,
    #[serde(default)]
    bindings: u32,
    #[serde(default)]
    constants: u32,
    #[serde(default)]
    workgroup_size: [u32; 3],
    touches: Option<Vec<Touch>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Touch {
    binding: u32,
    write: bool,
    #[serde(default)]
    start: i64,
    width: Option<u64>,
    #[serde(default)]
    strides: Vec<(u64, u64)>,
}

impl Touch {
    fn footprint(self) -> Footprint {
        let Touch { binding, write, start, width, strides } = self;
        let bytes = width.map(|width| ByteRuns { start, width, strides: strides.into() });
        Footprint { binding, write, bytes }
    }
}

/// A list of functions that do nothing.
#[derive(Debug)]
pub(crate) struct NullExecutable {
    device_id: u64,
    functions: Vec<FunctionInfo>,
    footprints: Vec<Option<Vec<Footprint>>>,
}

impl NullExecutable {
    /// Reads the list. INCOMPATIBLE for another format, INVALID_ARGUMENT for text that is no such list.
    pub(crate) fn new(device_id: u64, desc: &ExecutableDesc) -> Result<Self> {
        if desc.format != EXECUTABLE_FORMAT {
            bail!(
                Incompatible,
                "executable '{}' has format '{}'; the null device takes '{EXECUTABLE_FORMAT}' only",
                desc.label,
                desc.format
            );
        }
        let functions: Vec<EntryPoint> = serde_json::from_slice(&desc.data).map_err(|e| {
            status!(InvalidArgument, "executable '{}' is no list of functions: {e}", desc.label)
        })?;
        let (functions, footprints) = functions
            .into_iter()
            .map(|f| {
                let info = FunctionInfo {
                    name: f.name,
                    binding_count: f.bindings,
                    constant_count: f.constants,
                    workgroup_size: f.workgroup_size,
                };
                (info, f.touches.map(|touches| touches.into_iter().map(Touch::footprint).collect()))
            })
            .unzip();
        Ok(NullExecutable { device_id, functions, footprints })
    }
}

impl Executable for NullExecutable {
    fn device_id(&self) -> u64 {
        self.device_id
    }

    fn functions(&self) -> &[FunctionInfo] {
        &self.functions
    }

    fn footprints(
        &self,
        function: u32,
        _constants: &[u32],
        _workgroups: Option<[u32; 3]>,
    ) -> Option<Vec<Footprint>> {
        self.footprints.get(usize::try_from(function).ok()?)?.clone()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
