//! Owns the road from a program to a module file: its options, its stages, and what comes out. Does not own: any stage.

use std::io;

use bytes::Bytes;
use halite_formats::{
    Rope,
    params::{NewEntry, NewStorage, write_irpa},
};
use halite_shaders::Tuning;
use halite_targets::{Capabilities, Target};

use crate::{
    CompileError, Control, Program, Stage, emit,
    explain::{self, Report},
    plan,
};

/// The target whose kernels run on every Vulkan 1.1 device.
pub const BASELINE: &str = "vp-vulkan_1_1-unknown";

/// Where the constants of a module go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ParameterStorage {
    /// Into the module.
    #[default]
    Embedded,
    /// Into an archive of parameters beside it, which is loaded under this scope (`--parameters=SCOPE=FILE`).
    External {
        /// The scope; may be empty.
        scope: String,
    },
}

/// How a program is compiled.
#[derive(Clone, Debug)]
pub struct CompileOptions {
    /// What kernels are chosen for, each with what it can do: from the table ([`Capabilities::of`]) or from a device
    /// ([`Capabilities::of_device`]). A module runs the kernels of the target that fits the device best. May be empty where
    /// `baseline` is set.
    pub targets: Vec<Capabilities>,
    /// Whether kernels for every Vulkan 1.1 device are included too. They run where no target fits, and in runtimes that
    /// know no targets. Without them, such runtimes are given the first target's.
    pub baseline: bool,
    /// What was measured, for the choice of kernels.
    pub tuning: Tuning,
    /// Name of the module.
    pub module_name: String,
    /// Where the constants go.
    pub parameters: ParameterStorage,
}

impl Default for CompileOptions {
    /// The baseline alone, constants in the module, the tuning that ships, a module named `module`.
    fn default() -> Self {
        CompileOptions {
            targets: Vec::new(),
            baseline: true,
            tuning: Tuning::shipped().clone(),
            module_name: "module".to_owned(),
            parameters: ParameterStorage::Embedded,
        }
    }
}

impl CompileOptions {
    /// The default, for these targets and the baseline.
    pub fn for_targets(targets: &[Target]) -> Self {
        CompileOptions { targets: targets.iter().map(|t| Capabilities::of(*t)).collect(), ..Self::default() }
    }
}

/// A compiled program.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The module file. Its constants are slices of the model's, which may be a mapped file.
    pub module: Rope,
    /// What has to be loaded beside it, where parameters are external and there are any.
    pub parameters: Option<ParameterArchive>,
    /// What was decided, and what it costs.
    pub report: Report,
}

/// Constants that are kept outside of a module.
#[derive(Clone, Debug, Default)]
pub struct ParameterArchive {
    /// The scope that the module asks for.
    pub scope: String,
    /// Key and bytes of each; keys are distinct. May be parts of mapped files.
    pub entries: Vec<(String, Bytes)>,
}

impl ParameterArchive {
    /// Writes an IREE parameter archive (`.irpa`).
    ///
    /// # Errors
    /// `out` failed.
    pub fn write(&self, out: &mut impl io::Write) -> io::Result<()> {
        let entry = |(name, bytes)| NewEntry { name, metadata: &[], storage: NewStorage::Data(bytes) };
        let entries: Vec<NewEntry<'_>> =
            self.entries.iter().map(|(name, bytes)| entry((name.as_str(), bytes.as_ref()))).collect();
        write_irpa(&entries, out)
    }
}

/// Compiles a program to a module. The same program and options give the same bytes.
///
/// # Errors
/// What is asked for makes no sense, no kernel computes an operation on a target, the module would be too large, or `control`
/// ended the work.
pub fn compile(
    program: &Program,
    options: &CompileOptions,
    control: &Control,
) -> Result<Compiled, CompileError> {
    program.check()?;
    if options.module_name.is_empty() {
        return Err(CompileError::Request("the module needs a name".to_owned()));
    }
    let plan = plan::plan(program, options, control)?;
    let emitted = emit::emit(program, &plan, options, control)?;
    control.check(Stage::Writing)?;
    let report = explain::report(program, &plan, options, &emitted);
    Ok(Compiled { module: emitted.module, parameters: emitted.parameters, report })
}
