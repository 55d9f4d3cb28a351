//! How a plan becomes a module: the host code, and the order of things in the file. The functions of a module:
//!
//! * `record.TARGET.F.G.S`: makes the recording of segment S of a version of group G of function F; groups are versions with the
//!   same code, whose numbers come from a table,
//! * `load.TARGET`: executables, constants, what is computed of them, recordings,
//! * `equals`: whether an input has a certain value, where versions ask for one,
//! * `NAME$async` and `NAME`, which are exported, and `NAME.G` where there are several versions,
//! * `__init`: finds the device, chooses the target, and loads.

mod call;
mod code;
mod computed;
mod conditions;
mod control_flow;
mod function;
mod globals;
mod init;
mod load;
mod module;
mod needs;
mod notes;
mod numbers;
mod open;
mod pack;
mod parameters;
mod read;
mod record;
mod recording;
mod refusal;
mod search;
mod slots;
mod table;
mod values;

use std::collections::BTreeMap;

use halite_abi::attribute;
use halite_formats::{
    Rope,
    vmfb::{Attr, ModuleDef, WriteOptions, write_module_while},
};

use crate::{
    CompileError, CompileOptions, Control, ParameterArchive, ParameterStorage, Program, Progress, Stage,
    backend::Backend, control::Watch, plan::ModulePlan,
};
use function::Functions;
use globals::Globals;
use load::{Load, Recorders, Tables};
use module::Writer;
use slots::Slots;
use table::Table;

/// What modules name as their producer.
const PRODUCER: &str = concat!("halite ", env!("CARGO_PKG_VERSION"));

/// A module that was written.
#[derive(Debug)]
pub struct Emitted {
    /// The file; its constants are slices of the model's.
    pub module: Rope,
    /// What is in it, without its large data.
    pub def: ModuleDef,
    /// What has to be loaded beside it.
    pub parameters: Option<ParameterArchive>,
    /// Bytes of the numbers in which versions differ.
    pub table_bytes: u64,
    /// Name and bytes of each kernel's executable.
    pub executables: Vec<(String, u64)>,
}

/// Writes the module of a plan.
///
/// # Errors
/// Something does not fit into a module, or `control` ended the work.
pub fn emit(
    program: &Program,
    plan: &ModulePlan,
    options: &CompileOptions,
    backend: &dyn Backend,
    control: &Control,
) -> Result<Emitted, CompileError> {
    let watch = control.at(Stage::Writing);
    let external = matches!(options.parameters, ParameterStorage::External { .. });
    let needs_parameters = external && !plan.slabs.constant_slabs.is_empty();
    let mut writer = Writer::new(&options.module_name, about(program, plan), needs_parameters);
    let globals = Globals::of(plan);
    let slots = tables(plan);
    let stored = parameters::store(&mut writer, &plan.pool, &plan.slabs, &options.parameters);
    let (globals, steps) = (&globals, plan.targets.len() * 2 + program.functions.len() + 1);
    let (stored_in, executables) = (&stored, BTreeMap::new());
    let mut load = Load {
        writer: &mut writer,
        program,
        plan,
        backend,
        globals,
        stored: stored_in,
        slots: &slots,
        watch,
        executables,
    };
    let mut tables = empty_tables(plan);
    let mut done = 0;
    let mut step = || {
        control.report(Progress { stage: Stage::Writing, done, total: steps });
        done += 1;
        watch.check()
    };
    let (recorders, loads) = targets(&mut load, &mut tables, &mut step)?;
    let executables = load.executables.into_values().collect();
    let equals = if has_values(program) { Some(values::equals(&mut writer)?) } else { None };
    let (slots, recorders) = (&slots, &recorders);
    let mut functions = Functions { writer: &mut writer, plan, globals, slots, recorders, equals };
    for ((index, function), tables) in program.functions.iter().enumerate().zip(&mut tables) {
        step()?;
        functions.function(index, function, tables)?;
    }
    step()?;
    init::init(&mut writer, plan, backend.executable_format(), &loads)?;
    let (module, def) = write(writer, globals, watch)?;
    control.report(Progress { stage: Stage::Writing, done: steps, total: steps });
    let table_bytes = tables.iter().flatten().flatten().map(|table| table.to_bytes().len() as u64).sum();
    Ok(Emitted { module, def, parameters: stored.archive, table_bytes, executables })
}

/// The file of a module whose functions are all there, and what is in it.
fn write(writer: Writer, globals: &Globals, watch: Watch<'_>) -> Result<(Rope, ModuleDef), CompileError> {
    let (def, large) = writer.finish(globals.bytes, globals.refs);
    let module = write_module_while(&def, &large, &WriteOptions::default(), &|| watch.goes_on());
    watch.check()?;
    Ok((module.map_err(|e| CompileError::Write(e.to_string()))?, def))
}

/// Writes the functions that make recordings, and those that load, of each target.
fn targets(
    load: &mut Load<'_>,
    tables: &mut Tables,
    step: &mut dyn FnMut() -> Result<(), CompileError>,
) -> Result<(Vec<Recorders>, Vec<u32>), CompileError> {
    let (mut recorders, mut loads): (Vec<Recorders>, Vec<u32>) = (Vec::new(), Vec::new());
    let plan = load.plan;
    for target in &plan.targets {
        step()?;
        recorders.push(load.recorders(target, tables)?);
    }
    for (index, made) in recorders.iter().enumerate() {
        step()?;
        loads.push(load.target(index, made)?);
    }
    Ok((recorders, loads))
}

/// Whether a version was made for values of inputs.
fn has_values(program: &Program) -> bool {
    let graphs = program.functions.iter().flat_map(|function| &function.versions);
    graphs.flat_map(|graph| &graph.inputs).any(|port| port.value.is_some())
}

/// What a module says of itself: what wrote it, which model it was, and the targets.
fn about(program: &Program, plan: &ModulePlan) -> Vec<Attr> {
    let mut attrs = vec![Attr::new(attribute::PRODUCER, PRODUCER)];
    if let Some(model) = &program.model {
        attrs.push(Attr::new(attribute::MODEL_FORMAT, &model.format));
        attrs.push(Attr::new(attribute::MODEL_NAME, &model.name));
    }
    let targets: Vec<String> = plan.targets.iter().map(|target| target.target.to_string()).collect();
    attrs.push(Attr::list(attribute::TARGETS, &targets));
    attrs
}

/// A table for each group of several versions.
fn empty_tables(plan: &ModulePlan) -> Tables {
    let table = |versions: &Vec<usize>| (versions.len() > 1).then(|| Table::new(versions.len()));
    plan.groups.iter().map(|groups| groups.iter().map(table).collect()).collect()
}

/// The binding table of each version.
fn tables(plan: &ModulePlan) -> Vec<Vec<Slots>> {
    let table = |function: usize, version: usize| {
        let flow = &plan.functions[function][version];
        let needs = |era: usize| {
            let mut all = plan.targets.iter().map(|target| &target.functions[function][version]);
            all.any(|lowered| {
                let bytes = lowered.era_bytes(era);
                !bytes.is_constant() || bytes.value() > 0
            })
        };
        let eras: Vec<bool> = (0..=flow.reads.len()).map(needs).collect();
        Slots::of(flow, &eras)
    };
    let versions = |function: usize| 0..plan.functions[function].len();
    let functions = 0..plan.functions.len();
    functions.map(|f| versions(f).map(|v| table(f, v)).collect()).collect()
}

#[cfg(test)]
mod tests {
    use halite_formats::vmfb::read_module;
    use halite_ops::{DType, expression::Function as Call};
    use halite_targets::Target;

    use crate::{BASELINE, CompileOptions, Control, Function, ModelInfo, Program, build::Builder, compile};

    fn program(sizes: &[u64]) -> Program {
        let version = |size: &u64| {
            let mut b = Builder::new();
            let x = b.input("input ids:0", DType::F32.into(), &[*size]).unwrap();
            let y = b.input("\u{e4}\"\n", DType::F32.into(), &[*size]).unwrap();
            let sum = b.binary(Call::Add, x, y).unwrap();
            b.output("/out/Add", sum);
            b.finish().unwrap()
        };
        let versions = sizes.iter().map(version).collect();
        let model = ModelInfo { format: "ONNX".to_owned(), name: "a model.onnx".to_owned() };
        let functions = vec![Function::new("main", versions)];
        Program { functions, model: Some(model) }
    }

    #[test]
    fn modules_say_what_they_are_and_the_names_of_the_model() {
        let options = CompileOptions::for_targets(&[Target::parse("cpu-llvmpipe-linux").unwrap()]);
        for sizes in [&[4][..], &[4, 8]] {
            let program = program(sizes);
            let module = compile(&program, &options, &Control::new()).unwrap().module.to_vec();
            assert_eq!(compile(&program, &options, &Control::new()).unwrap().module.to_vec(), module);
            let def = read_module(module.into()).unwrap();
            assert_eq!(def.producer(), Some(concat!("halite ", env!("CARGO_PKG_VERSION"))));
            assert_eq!((def.model_format(), def.model_name()), (Some("ONNX"), Some("a model.onnx")));
            assert_eq!(def.targets(), ["cpu-llvmpipe-linux", BASELINE]);
            for export in ["main", "main$async"] {
                let signature = def.export_signature(export).unwrap();
                assert_eq!(signature.input_names().unwrap(), ["input ids:0", "\u{e4}\"\n"], "{export}");
                assert_eq!(signature.output_names().unwrap(), ["/out/Add"], "{export}");
            }
        }
        let alone = Program { model: None, ..program(&[4]) };
        let module = compile(&alone, &options, &Control::new()).unwrap().module.to_vec();
        assert_eq!(read_module(module.into()).unwrap().model_name(), None);
    }
}
