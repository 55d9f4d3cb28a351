//! Attributes of modules and functions: keys, and values with a meaning. Other runtimes ignore the keys of Halite, and
//! modules of other compilers lack them.

/// Of a module: what wrote it, and which version, such as `halite 0.1.0`.
pub const PRODUCER: &str = "halite.producer";
/// Of a module: the format of the model that it was compiled from, such as `ONNX`.
pub const MODEL_FORMAT: &str = "halite.model.format";
/// Of a module: the name of that model, mostly that of its file without the folder.
pub const MODEL_NAME: &str = "halite.model.name";
/// Of a module: the targets that it has kernels for, a JSON list of triples.
pub const TARGETS: &str = "halite.targets";
/// Of a function: the model's names of the inputs in order, a JSON list of texts.
pub const INPUTS: &str = "halite.inputs";
/// Of a function: the model's names of the outputs in order, a JSON list of texts.
pub const OUTPUTS: &str = "halite.outputs";
/// Of a function: the inputs whose buffers it writes, and the outputs that are in them afterwards, in turns: a JSON list of texts.
pub const STATES: &str = "halite.states";
/// Of a function: what its calls have to do with each other, such as [`INDEPENDENT`].
pub const CALLS: &str = "halite.calls";
/// The value of [`CALLS`] where calls share nothing that they write. A module that says so and is wrong gets wrong numbers.
pub const INDEPENDENT: &str = "independent";
/// Of a function that makes a recording: what the recording's commands come from, JSON for profiles (`halite_formats::vmfb::RecordingNotes`).
pub const COMMANDS: &str = "halite.commands";
/// Of a function: its signature in the words of the source.
pub const DECLARATION: &str = "iree.abi.declaration";
/// Of a function: how it is called, such as [`COARSE_FENCES`].
pub const CALL_MODEL: &str = "iree.abi.model";
/// The value of [`CALL_MODEL`] of functions that return before their work is done: see [`crate::export::FENCES`].
pub const COARSE_FENCES: &str = "coarse-fences";
