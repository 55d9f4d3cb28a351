//! What has to be dispatched for an operation.

use std::{fmt, sync::Arc};

use halite_sizes::Size;
use halite_spirv::words_to_bytes;

use crate::library;

/// Why a variant cannot compute an operation; words that follow its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit(pub String);

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A kernel's code: one entry point, `main`.
#[derive(Clone)]
pub enum Module {
    /// Compiled from a template; bytes of little-endian SPIR-V words.
    Compiled {
        /// Name of the build.
        name: &'static str,
        /// The SPIR-V.
        bytes: &'static [u8],
    },
    /// Emitted for this operation.
    Emitted(Arc<[u32]>),
}

impl Module {
    /// The SPIR-V as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Module::Compiled { bytes, .. } => bytes.to_vec(),
            Module::Emitted(words) => words_to_bytes(words),
        }
    }

    /// Where the code lies: the same for copies of a module.
    pub(crate) fn place(&self) -> usize {
        match self {
            Module::Compiled { bytes, .. } => bytes.as_ptr().addr(),
            Module::Emitted(words) => words.as_ptr().addr(),
        }
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Module::Compiled { name, bytes } => write!(f, "Module({name}, {} bytes)", bytes.len()),
            Module::Emitted(words) => write!(f, "Module(emitted, {} bytes)", words.len() * 4),
        }
    }
}

/// What a binding of a dispatch holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// An input of the operation.
    Input(usize),
    /// An output of the operation.
    Output(usize),
    /// Memory between the steps of a plan.
    Scratch(usize),
}

/// One dispatch.
#[derive(Clone, Debug)]
pub struct Step {
    /// The code.
    pub module: Module,
    /// Specialization constants with ids 0, 1, 2, ….
    pub constants: Vec<u32>,
    /// Push constants, wrapped to 32 bits.
    pub push: Vec<Size>,
    /// Storage buffers: set 0, binding n is entry n.
    pub bindings: Vec<Slot>,
    /// Workgroups. A zero means that there is nothing to do.
    pub grid: [Size; 3],
    /// Subgroup size that the code requires; 0 for any.
    pub subgroup_size: u32,
}

impl Step {
    /// Workgroups, for a plan of known sizes.
    pub fn exact_grid(&self) -> [u32; 3] {
        self.grid.map(Size::exact_word)
    }

    /// Push constants, for a plan of known sizes.
    pub fn exact_push(&self) -> Vec<u32> {
        self.push.iter().map(|word| word.exact_word()).collect()
    }
}

/// The dispatches of an operation, in order, with a barrier between each two unless they are independent.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The dispatches.
    pub steps: Vec<Step>,
    /// Bytes of each scratch buffer.
    pub scratch: Vec<Size>,
    /// Whether the steps may run at the same time, in any order.
    pub independent: bool,
    /// Whether the first step copies input 0 to output 0, and the others change what is there: where both are one memory, it has
    /// nothing to do.
    pub updates: bool,
    /// The most turns that all loops of an invocation take, estimated from above; 0 where they are few whatever the sizes are.
    pub turns: Size,
}

impl Plan {
    /// A plan of one dispatch.
    pub fn of(step: Step) -> Plan {
        Plan::new(vec![step], Vec::new())
    }

    /// A plan of dispatches one after the other, and the bytes of each scratch buffer between them.
    pub fn new(steps: Vec<Step>, scratch: Vec<Size>) -> Plan {
        Plan { steps, scratch, ..Plan::default() }
    }

    /// The plan as one whose first step copies what the others change.
    pub(crate) fn updating(self) -> Plan {
        Plan { updates: true, ..self }
    }
}

/// Turns of a dispatch of kernels whose work is cut into dispatches, whatever the target: a little less than the least limit.
pub(crate) const MOST_TURNS: u64 = 60_000;

/// A dimension that is a 32-bit number, as kernels count.
pub(crate) fn narrow(what: &str, value: impl Into<Size>) -> Result<Size, Unfit> {
    let value = value.into();
    let fits = value.fits_u32();
    fits.then_some(value).ok_or_else(|| Unfit(format!("{what} of {value} needs more than 32 bits")))
}

/// The same, as a number that a pipeline is made for.
pub(crate) fn fixed(what: &str, value: impl Into<Size>) -> Result<u32, Unfit> {
    let value = value.into().exact();
    u32::try_from(value).map_err(|_| Unfit(format!("{what} of {value} needs more than 32 bits")))
}

/// Workgroups that cover `total` in pieces of `piece`.
pub(crate) fn groups(total: impl Into<Size>, piece: u32) -> Result<Size, Unfit> {
    narrow("a number of workgroups", total.into().div_ceil(piece.max(1)))
}

/// The same as a plain number.
pub(crate) fn fixed_groups(total: u64, piece: u32) -> Result<u32, Unfit> {
    fixed("a number of workgroups", total.div_ceil(piece.max(1).into()))
}

/// A build that has to be there.
pub(crate) fn module(build: &str) -> Result<Module, Unfit> {
    library::module(build).ok_or_else(|| Unfit(format!("has no build '{build}'")))
}
