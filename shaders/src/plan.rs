//! What has to be dispatched for an operation.

use std::{fmt, sync::Arc};

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
    /// Push constants.
    pub push: Vec<u32>,
    /// Storage buffers: set 0, binding n is entry n.
    pub bindings: Vec<Slot>,
    /// Workgroups. A zero means that there is nothing to do.
    pub grid: [u32; 3],
    /// Subgroup size that the code requires; 0 for any.
    pub subgroup_size: u32,
}

/// The dispatches of an operation, in order, with a barrier between each two unless they are independent.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The dispatches.
    pub steps: Vec<Step>,
    /// Bytes of each scratch buffer.
    pub scratch: Vec<u64>,
    /// Whether the steps may run at the same time, in any order.
    pub independent: bool,
    /// Whether the first step copies input 0 to output 0, and the others change what is there: where both are one memory, it has
    /// nothing to do.
    pub updates: bool,
}

impl Plan {
    /// A plan of one dispatch.
    pub fn of(step: Step) -> Plan {
        Plan::new(vec![step], Vec::new())
    }

    /// A plan of dispatches one after the other, and the bytes of each scratch buffer between them.
    pub fn new(steps: Vec<Step>, scratch: Vec<u64>) -> Plan {
        Plan { steps, scratch, independent: false, updates: false }
    }

    /// The plan as one whose first step copies what the others change.
    pub(crate) fn updating(self) -> Plan {
        Plan { updates: true, ..self }
    }
}

/// A dimension as a 32-bit number, as kernels count.
pub(crate) fn narrow(what: &str, value: u64) -> Result<u32, Unfit> {
    u32::try_from(value).map_err(|_| Unfit(format!("{what} of {value} needs more than 32 bits")))
}

/// Workgroups that cover `total` in pieces of `piece`.
pub(crate) fn groups(total: u64, piece: u32) -> Result<u32, Unfit> {
    narrow("a number of workgroups", total.div_ceil(piece.max(1).into()))
}

/// A build that has to be there.
pub(crate) fn module(build: &str) -> Result<Module, Unfit> {
    library::module(build).ok_or_else(|| Unfit(format!("has no build '{build}'")))
}
