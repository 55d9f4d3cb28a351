//! Back ends: how a kind of device computes what graphs ask for.
//!
//! Plans and emission know the trait [`Backend`] alone. A back end chooses for one [`Computation`] on one target; what it
//! chose comes as [`Dispatch`]es over slots, so there is no third step of lowering for it to do: which memory a slot is, when it
//! runs and how that is recorded are the same for all of them, and decided by [`crate::plan`].

pub mod vulkan;

use std::{cell::OnceCell, fmt, sync::Arc};

use halite_ops::{Operation, Work};
use halite_sizes::Size;
use halite_targets::Capabilities;

use crate::{CompileError, graph::ForeignKernel};

/// What computes on a kind of device.
pub trait Backend: fmt::Debug {
    /// The format of its executables, which runtimes ask devices for.
    fn executable_format(&self) -> &'static str;

    /// What computes something on a target. The same question has the same answer.
    ///
    /// # Errors
    /// Nothing does; says why.
    fn choose(&self, computation: &Computation, target: &Capabilities) -> Result<Choice, String>;

    /// The file of an executable with the one kernel that has this code, under the code's name.
    ///
    /// # Errors
    /// The code cannot be written so.
    fn executable(&self, code: &Code) -> Result<Vec<u8>, CompileError>;
}

/// Whether an operation keeps its rules, and some back end computes operations of its types.
///
/// # Errors
/// Says what is wrong, or which types there are.
pub fn check(operation: &Operation) -> Result<(), String> {
    vulkan::check(operation)
}

/// Whether every device of a back end computes an operation.
pub fn runs_everywhere(operation: &Operation) -> bool {
    vulkan::runs_everywhere(operation)
}

/// What a step of a plan computes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Computation {
    /// An operation by its meaning.
    Operation(Box<Operation>),
    /// A kernel that the model brings along.
    Foreign(Arc<ForeignKernel>),
}

impl Computation {
    /// What it costs at least. Of a foreign kernel only the bytes are known.
    pub fn work(&self) -> Work {
        match self {
            Computation::Operation(operation) => operation.work(),
            Computation::Foreign(kernel) => Work { flops: 0.0, bytes: kernel.bytes() as f64 },
        }
    }
}

impl fmt::Display for Computation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Computation::Operation(operation) => operation.fmt(f),
            Computation::Foreign(kernel) => kernel.fmt(f),
        }
    }
}

/// What computes something on a target.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Name of what was chosen.
    pub variant: String,
    /// Why it and nothing else.
    pub why: String,
    /// What is dispatched, in order. Those without workgroups are left out.
    pub dispatches: Vec<Dispatch>,
    /// Whether the dispatches do not wait for each other.
    pub independent: bool,
    /// Bytes of each buffer that the dispatches need for themselves.
    pub scratch: Vec<Size>,
    /// Whether each element of a result is written after the same element of an input was read, and by the same invocation,
    /// so that the result may take the input's memory.
    pub elementwise: bool,
    /// Whether the first dispatch copies the first input to the first output, and the others change what is there: it is left
    /// out where both are one memory.
    pub updates: bool,
    /// Microseconds that it is estimated to take, where there is an estimate.
    pub estimate: Option<f64>,
    /// What it costs at least.
    pub work: Work,
    /// What it was chosen for as text, once that was asked for.
    pub text: OnceCell<String>,
}

impl Choice {
    /// The computation that it was chosen for as text. Several reports have it, of each of what may be tens of thousands.
    pub fn text(&self, chosen_for: &Computation) -> &str {
        self.text.get_or_init(|| chosen_for.to_string())
    }
}

/// One run of a kernel.
#[derive(Clone, Debug)]
pub struct Dispatch {
    /// The kernel's code.
    pub binary: Binary,
    /// Specialization constants with ids 0, 1, 2, ….
    pub constants: Vec<u32>,
    /// Push constants, wrapped to 32 bits.
    pub push: Vec<Size>,
    /// What is bound: binding n is entry n.
    pub bindings: Vec<Slot>,
    /// Workgroups.
    pub grid: [Size; 3],
    /// Subgroup size that the code requires; 0 for any.
    pub subgroup_size: u32,
}

/// What a binding of a dispatch holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// An input of the computation.
    Input(usize),
    /// An output of the computation.
    Output(usize),
    /// A buffer between the dispatches.
    Scratch(usize),
}

/// Code for a device.
#[derive(Clone)]
pub enum Binary {
    /// Part of a library, in which no other has its name.
    Library {
        /// The name.
        name: &'static str,
        /// The code.
        bytes: &'static [u8],
    },
    /// Made for this computation, or the model's own: known by its words.
    Made(Arc<[u32]>),
}

impl Binary {
    /// The code, words in little-endian order.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Binary::Library { bytes, .. } => bytes.to_vec(),
            Binary::Made(words) => words.iter().flat_map(|word| word.to_le_bytes()).collect(),
        }
    }
}

impl fmt::Debug for Binary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Binary::Library { name, bytes } => write!(f, "Binary({name}, {} bytes)", bytes.len()),
            Binary::Made(words) => write!(f, "Binary(made, {} bytes)", words.len() * 4),
        }
    }
}

/// Code of a kernel, as one executable has it.
#[derive(Clone, Debug)]
pub struct Code {
    /// Name of its pipeline.
    pub name: String,
    /// The code.
    pub binary: Binary,
    /// Bindings 0, 1, … of set 0.
    pub bindings: u32,
    /// Push constants in words.
    pub push_words: u32,
    /// Subgroup size that it requires; 0 for any.
    pub subgroup_size: u32,
}
