//! Which global holds what. The same for all targets: only one of them is at work.

use crate::plan::ModulePlan;

/// The device.
pub const DEVICE: u32 = 0;
/// The number of the target at work (`i32`): an offset of a global number.
pub const TARGET: u32 = 0;

/// Ordinals of global references, and offsets of global numbers.
#[derive(Debug)]
pub struct Globals {
    executables: u32,
    constants: u32,
    packed: u32,
    recordings: Vec<Vec<u32>>,
    recorded_sizes: Vec<Vec<u32>>,
    sizes: Vec<u32>,
    symbols: Vec<Vec<u32>>,
    /// References in all.
    pub refs: u32,
    /// Bytes of numbers.
    pub bytes: u32,
}

impl Globals {
    /// The globals of a module.
    pub fn of(plan: &ModulePlan) -> Self {
        let executables = DEVICE + 1;
        let most = plan.targets.iter().map(|target| target.kernels.len()).max().unwrap_or(0);
        let constants = executables + most as u32;
        let packed = constants + plan.slabs.constant_slabs.len() as u32;
        let mut globals = Globals {
            executables,
            constants,
            packed,
            recordings: Vec::new(),
            recorded_sizes: Vec::new(),
            sizes: Vec::new(),
            symbols: Vec::new(),
            refs: packed + plan.slabs.packed_slabs.len() as u32,
            // The target at work comes first.
            bytes: 8,
        };
        for flows in &plan.functions {
            let mut recordings = Vec::new();
            for flow in flows {
                recordings.push(globals.refs);
                globals.refs += flow.segments.len() as u32;
            }
            globals.recordings.push(recordings);
            let mut sizes = Vec::new();
            for flow in flows {
                sizes.push(globals.bytes);
                globals.bytes += 8 * flow.symbols as u32 * flow.segments.len() as u32;
            }
            globals.recorded_sizes.push(sizes);
            globals.symbols.push(flows.iter().map(|flow| flow.symbols as u32).collect());
            globals.sizes.push(globals.bytes);
            globals.bytes += 8;
        }
        globals
    }

    /// The executable of a kernel of the target at work.
    pub fn executable(&self, kernel: usize) -> u32 {
        self.executables + kernel as u32
    }

    /// A slab of constants.
    pub fn constants(&self, slab: u32) -> u32 {
        self.constants + slab
    }

    /// A slab of what was computed at load.
    pub fn packed(&self, slab: u32) -> u32 {
        self.packed + slab
    }

    /// The recording of a segment.
    pub fn recording(&self, function: usize, version: usize, segment: usize) -> u32 {
        self.recordings[function][version] + segment as u32
    }

    /// The values of symbols for which the recording of a segment was made: the first of them, 8 bytes each.
    pub fn recorded_sizes(&self, function: usize, version: usize, segment: usize) -> u32 {
        let each = 8 * self.symbols[function][version];
        self.recorded_sizes[function][version] + each * segment as u32
    }

    /// Bytes of a function's transient memory: those of the version that needs the most, so that a pool serves all.
    pub fn transient_bytes(&self, function: usize) -> u32 {
        self.sizes[function]
    }
}
