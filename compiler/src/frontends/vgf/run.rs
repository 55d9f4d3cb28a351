//! The segments of a file in their order: each takes what it reads from resources, and says what it writes.

use halite_formats::vgf::{Code, Module, ModuleKind, Segment, Vgf};
use halite_spirv::{graph, words_from_bytes};

use super::{
    Result, graph as tosa_graph, kernel,
    resources::{Contents, pushed, tensor_of},
    segment::{bound, words},
};
use crate::{
    CompileError, SourceLocation, UnsupportedOperator,
    build::Builder,
    frontends::tosa::{self, element_of},
    graph::{TensorId, elements},
};

/// Puts a file's segments where the builder is: `inputs` are what its input slots hold, and behind that the push constants of
/// segments that have some; what comes back is what its output slots hold. Both are as the file's resources say.
///
/// # Errors
/// The file contradicts itself, asks for what is not supported, or the builder's control ended the work.
pub(crate) fn import(builder: &mut Builder, file: &Vgf, inputs: &[TensorId]) -> Result<Vec<TensorId>> {
    missing(file)?;
    let mut contents = Contents::new(file);
    for (slot, given) in file.inputs.iter().zip(inputs) {
        contents.set(slot.resource, *given);
    }
    let mut pushes = inputs.iter().skip(file.inputs.len()).copied();
    for (i, segment) in file.segments.iter().enumerate() {
        let push = if pushed(segment, i)?.is_some() { pushes.next() } else { None };
        builder.watch().step(i, file.segments.len())?;
        builder.at(segment_location(file, i));
        match segment.kind {
            ModuleKind::Graph => run_graph(builder, file, segment, &mut contents)?,
            ModuleKind::Compute => kernel::run(builder, file, segment, push, &mut contents)?,
        }
    }
    builder.at(SourceLocation::new("the model's outputs"));
    let mut outputs = Vec::with_capacity(file.outputs.len());
    for slot in &file.outputs {
        let (element, dims) = tensor_of(&file.resources[slot.resource], slot.resource)?;
        outputs.push(contents.get(builder, slot.resource, element, &dims)?);
    }
    Ok(outputs)
}

/// Whether a tensor has as many bytes as the resource that it is handed in for.
///
/// # Errors
/// It has not, or the resource is no tensor.
pub(crate) fn check_input(builder: &Builder, file: &Vgf, resource: usize, given: TensorId) -> Result<()> {
    let (element, dims) = tensor_of(&file.resources[resource], resource)?;
    let wants = elements(&dims).saturating_mul(element.storage().size());
    if builder.tensor(given).bytes() == wants {
        return Ok(());
    }
    let what = builder.describe(&[given]);
    Err(builder.invalid(format!("{what} is handed in for resource {resource}, which is {element}{dims:?}")))
}

/// The graphs of a file's modules, but for those that cannot be read.
fn graphs(file: &Vgf) -> impl Iterator<Item = graph::GraphModule> {
    file.modules.iter().filter_map(|module| {
        let Code::SpirV(bytes) = &module.code else { return None };
        words_from_bytes(bytes).and_then(|words| graph::read(&words)).ok()
    })
}

/// The operations of a file's graphs that are not known.
pub(crate) fn unsupported(file: &Vgf) -> Vec<UnsupportedOperator> {
    let mut all = Vec::new();
    for read in graphs(file) {
        read.graphs.iter().for_each(|found| tosa_graph::unknown(&read, &found.operations, &mut all));
    }
    all
}

/// The names of the operations of a file's graphs that are known, in order.
pub(crate) fn operators(file: &Vgf) -> Vec<&'static str> {
    let mut all = Vec::new();
    for read in graphs(file) {
        let operations = read.graphs.iter().flat_map(|found| &found.operations);
        all.extend(operations.filter_map(|operation| tosa_graph::name_of(&read, operation)));
    }
    all
}

/// What a segment is called in messages.
pub(super) fn segment_location(file: &Vgf, index: usize) -> SourceLocation {
    let segment = &file.segments[index];
    let name = match segment.name.is_empty() {
        true => &file.modules[segment.module].name,
        false => &segment.name,
    };
    SourceLocation::new(format!("segment {index} '{name}'"))
}

/// What a module is called in messages.
fn module_name(module: &Module, index: usize) -> String {
    format!("{} module {index} '{}'", module.kind.name(), module.name)
}

/// Names all modules at once that segments run and that cannot be.
fn missing(file: &Vgf) -> Result<()> {
    let (mut missing, mut foreign) = (Vec::new(), Vec::new());
    for (i, module) in file.modules.iter().enumerate() {
        if !file.segments.iter().any(|segment| segment.module == i) {
            continue;
        }
        let name = module_name(module, i);
        match &module.code {
            Code::SpirV(_) => {}
            Code::Missing(_) => missing.push(name),
            Code::Glsl(_) | Code::Hlsl(_) => foreign.push(format!("{name} in {}", module.code.language())),
        }
    }
    let location = SourceLocation::new("the file's modules");
    if !missing.is_empty() {
        return Err(CompileError::unsupported(
            &location,
            format!(
                "the file has no code of: {}; the program that runs it is meant to bring that: convert the model again \
                 with the SPIR-V of its shaders inside",
                missing.join(", ")
            ),
        ));
    }
    if !foreign.is_empty() {
        return Err(CompileError::unsupported(
            &location,
            format!(
                "source code is not compiled: {}; convert the model again with shaders as SPIR-V",
                foreign.join(", ")
            ),
        ));
    }
    Ok(())
}

fn run_graph(
    builder: &mut Builder,
    file: &Vgf,
    segment: &Segment,
    contents: &mut Contents<'_>,
) -> Result<()> {
    let module = &file.modules[segment.module];
    let read = graph::read(&words(builder, module)?).map_err(|e| builder.invalid(e.to_string()))?;
    let Some(entry) = read.entry(&module.entry_point) else {
        let all: Vec<_> = read.entry_points.iter().map(|entry| entry.name.as_str()).collect();
        return Err(builder.invalid(format!(
            "the module has no graph '{}'; it has: {}",
            module.entry_point,
            all.join(", ")
        )));
    };
    let resource = |builder: &Builder, port: &graph::Port| {
        bound(segment, port.set, port.binding).ok_or_else(|| {
            let (set, binding) = (port.set, port.binding);
            builder.invalid(format!("the graph's binding {binding} of set {set} is bound to no resource"))
        })
    };
    let program = tosa_graph::program(builder, file, segment, &read, entry.graph)?;
    let whole = &program.graphs[0];
    let mut inputs = Vec::with_capacity(entry.inputs.len());
    for (port, id) in entry.inputs.iter().zip(&whole.inputs) {
        let resource = resource(builder, port)?;
        let tensor = &whole.tensors[*id];
        inputs.push(contents.get(builder, resource, element_of(tensor.element), &tensor.shape)?);
    }
    let location = builder.location().clone();
    let results = tosa::lower(builder, &program, 0, &inputs)?;
    builder.at(location);
    for (port, result) in entry.outputs.iter().zip(results) {
        contents.set(resource(builder, port)?, result);
    }
    Ok(())
}
