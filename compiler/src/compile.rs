//! From a program to a module file: the stages in their order, and what comes out.

use halite_formats::Rope;

use crate::{
    CompileError, CompileOptions, Control, ParameterArchive, Program, Stage,
    backend::vulkan::Vulkan,
    emit,
    explain::{self, Report},
    plan::{self, ModulePlan},
};

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
    let plan = plan::plan(program, options, &Vulkan::new(&options.tuning), control)?;
    of_plan(program, &plan, options, control)
}

/// The module of a program that was planned with these options.
pub(crate) fn of_plan(
    program: &Program,
    plan: &ModulePlan,
    options: &CompileOptions,
    control: &Control,
) -> Result<Compiled, CompileError> {
    if options.module_name.is_empty() {
        return Err(CompileError::Request("the module needs a name".to_owned()));
    }
    let backend = Vulkan::new(&options.tuning);
    let emitted = emit::emit(program, plan, options, &backend, control)?;
    control.check(Stage::Writing)?;
    let report = explain::report(program, plan, options, &emitted);
    Ok(Compiled { module: emitted.module, parameters: emitted.parameters, report })
}
