//! Reading a file's modules, resources and sequence.

use bytes::Bytes;

use super::container::{Container, Section};
use super::model::{
    Binding, Category, Code, ConstantBinding, DescriptorSet, Module, ModuleKind, PushConstants, Resource,
    Sampler, Segment, Vgf,
};
use super::tables::{each, index};
use super::{Format, Result, VgfError, read_constants, schema as s};
use crate::flatbuffer::{Child, Field, Reader, Table, Text, Vector};

impl Vgf {
    /// Reads a file. Code and constants are slices of `file`.
    ///
    /// # Errors
    /// Says which part of the file is damaged, or contradicts another, and how.
    pub fn parse(file: &Bytes) -> Result<Vgf> {
        let Container { version, sections } = Container::parse(file)?;
        let [modules, sequence, resources, constants] = &sections;
        let modules = table(file, modules, "ModuleTable", |t| {
            each(&t, &s::module_table::MODULES, |t, i| module(&t, i, file, modules))
        })?;
        let resources = table(file, resources, "ModelResourceTable", |t| {
            each(&t, &s::resource_table::ENTRIES, |t, i| resource(&t, i))
        })?;
        let constants = read_constants::all(file, constants, resources.len())?;
        let counts =
            Counts { modules: modules.len(), resources: resources.len(), constants: constants.len() };
        let mut vgf = Vgf {
            version,
            sections: sections.clone(),
            modules,
            resources,
            segments: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            input_names: Vec::new(),
            output_names: Vec::new(),
            constants,
        };
        if !sequence.range.is_empty() {
            let reader = Reader::new(&file[sequence.range.clone()], sequence.range.start);
            vgf.read_sequence(&reader.root_unnamed("ModelSequenceTable")?, &counts)?;
        }
        Ok(vgf)
    }

    fn read_sequence(&mut self, t: &Table<'_>, counts: &Counts) -> Result<()> {
        self.inputs = bindings(t, &s::sequence::INPUTS, counts)?;
        self.outputs = bindings(t, &s::sequence::OUTPUTS, counts)?;
        self.input_names = names(t, &s::sequence::INPUT_NAMES)?;
        self.output_names = names(t, &s::sequence::OUTPUT_NAMES)?;
        self.segments = each(t, &s::sequence::SEGMENTS, |t, i| segment(&t, i, counts))?;
        for (i, segment) in self.segments.iter().enumerate() {
            let module = &self.modules[segment.module];
            if module.kind != segment.kind {
                return Err(VgfError::invalid(
                    format!("ModelSequenceTable.segments[{i}]"),
                    format!(
                        "it is a {} segment, but its module {} is a {} module",
                        segment.kind.name(),
                        segment.module,
                        module.kind.name()
                    ),
                ));
            }
        }
        Ok(())
    }
}

/// How many parts there are that others refer to.
struct Counts {
    modules: usize,
    resources: usize,
    constants: usize,
}

/// Reads a section with a table as its root; nothing of an empty one.
fn table<T>(
    file: &Bytes,
    section: &Section,
    name: &'static str,
    read: impl FnOnce(Table<'_>) -> Result<Vec<T>>,
) -> Result<Vec<T>> {
    if section.range.is_empty() {
        return Ok(Vec::new());
    }
    let reader = Reader::new(&file[section.range.clone()], section.range.start);
    read(reader.root_unnamed(name)?)
}

fn text(table: &Table<'_>, f: &Field<Text>) -> Result<String> {
    Ok(table.text(f)?.unwrap_or_default().to_owned())
}

fn names(table: &Table<'_>, f: &Field<Vector<Text>>) -> Result<Vec<String>> {
    table.vector(f)?.iter().map(|name| Ok(name?.to_owned())).collect()
}

fn kind(number: u8, place: &str) -> Result<ModuleKind> {
    match number {
        0 => Ok(ModuleKind::Compute),
        1 => Ok(ModuleKind::Graph),
        _ => Err(VgfError::invalid(place, format!("type {number}; there are 0 (compute) and 1 (graph)"))),
    }
}

fn module(t: &Table<'_>, i: usize, file: &Bytes, section: &Section) -> Result<Module> {
    let place = format!("ModuleTable.modules[{i}]");
    let code = t.child(&s::module::CODE)?;
    let code = match t.scalar(&s::module::CODE_KIND)? {
        0 => Code::Missing(None),
        1 => words(code.as_ref(), file, section)?,
        2 => source(code.as_ref())?.map_or(Code::Missing(Some("GLSL")), Code::Glsl),
        3 => source(code.as_ref())?.map_or(Code::Missing(Some("HLSL")), Code::Hlsl),
        other => {
            let problem = format!("code type {other}; there are 1 (SPIR-V), 2 (GLSL) and 3 (HLSL)");
            return Err(VgfError::invalid(place, problem));
        }
    };
    Ok(Module {
        kind: kind(t.scalar(&s::module::KIND)?, &place)?,
        name: text(t, &s::module::NAME)?,
        entry_point: text(t, &s::module::ENTRY_POINT)?,
        code,
    })
}

/// SPIR-V, as a slice of the file.
fn words(code: Option<&Table<'_>>, file: &Bytes, section: &Section) -> Result<Code> {
    let range = code.map(|code| code.range(&s::code::WORDS)).transpose()?.flatten();
    let start = section.range.start;
    Ok(match range.filter(|range| !range.is_empty()) {
        Some(range) => Code::SpirV(file.slice(start + range.start..start + range.end)),
        None => Code::Missing(Some("SPIR-V")),
    })
}

/// Source text, if there is any.
fn source(code: Option<&Table<'_>>) -> Result<Option<String>> {
    let Some(code) = code else { return Ok(None) };
    let text = text(code, &s::code::TEXT)?;
    Ok((!text.is_empty()).then_some(text))
}

fn resource(t: &Table<'_>, i: usize) -> Result<Resource> {
    let category = match t.scalar(&s::resource::CATEGORY)? {
        0 => Category::Input,
        1 => Category::Output,
        2 => Category::Intermediate,
        3 => Category::Constant,
        other => {
            let place = format!("ModelResourceTable.mrt_entry[{i}]");
            return Err(VgfError::invalid(place, format!("category {other}; there are 0 to 3")));
        }
    };
    let description = t.child(&s::resource::DESCRIPTION)?;
    let numbers = |f: &Field<Vector<i64>>| -> Result<Vec<i64>> {
        let Some(t) = &description else { return Ok(Vec::new()) };
        Ok(t.vector(f)?.iter().collect::<Result<_, _>>()?)
    };
    let sampler = match (t.scalar(&s::resource::EXTRA_KIND)?, t.child(&s::resource::EXTRA)?) {
        (1, Some(t)) => Some(Sampler {
            min_filter: t.scalar(&s::sampler::MIN_FILTER)?,
            mag_filter: t.scalar(&s::sampler::MAG_FILTER)?,
            address: [t.scalar(&s::sampler::ADDRESS_U)?, t.scalar(&s::sampler::ADDRESS_V)?],
            border: t.scalar(&s::sampler::BORDER)?,
        }),
        _ => None,
    };
    let known = |number: u32| (number != u32::MAX).then_some(number);
    Ok(Resource {
        category,
        descriptor: known(t.scalar(&s::resource::DESCRIPTOR)?),
        format: Format(t.scalar(&s::resource::FORMAT)?),
        shape: numbers(&s::description::SHAPE)?,
        strides: numbers(&s::description::STRIDES)?,
        sampler,
        alias_group: known(t.scalar(&s::resource::ALIAS_GROUP)?),
    })
}

fn bindings(t: &Table<'_>, f: &Field<Vector<Child>>, counts: &Counts) -> Result<Vec<Binding>> {
    each(t, f, |t, i| {
        let place = || format!("{}.{}[{i}]", f.table, f.name);
        let resource = t.scalar(&s::slot::RESOURCE)?;
        let resource = index(resource, counts.resources, "resource", place)?;
        Ok(Binding { binding: t.scalar(&s::slot::BINDING)?, resource })
    })
}

fn segment(t: &Table<'_>, i: usize, counts: &Counts) -> Result<Segment> {
    let place = || format!("ModelSequenceTable.segments[{i}]");
    let dispatch: Vec<u32> = t.vector(&s::segment::DISPATCH)?.iter().collect::<Result<_, _>>()?;
    let dispatch = match dispatch[..] {
        [] => [0; 3],
        [x, y, z] => [x, y, z],
        _ => {
            let problem = format!("the dispatch has {} sizes; there are three", dispatch.len());
            return Err(VgfError::invalid(place(), problem));
        }
    };
    Ok(Segment {
        kind: kind(t.scalar(&s::segment::KIND)?, &place())?,
        name: text(t, &s::segment::NAME)?,
        module: index(t.scalar(&s::segment::MODULE)?, counts.modules, "module", place)?,
        sets: each(t, &s::segment::SETS, |t, i| {
            let number = t.scalar(&s::set_info::INDEX)?;
            let number = if number == u32::MAX { i as u32 } else { number };
            Ok(DescriptorSet { index: number, bindings: bindings(&t, &s::set_info::BINDINGS, counts)? })
        })?,
        inputs: bindings(t, &s::segment::INPUTS, counts)?,
        outputs: bindings(t, &s::segment::OUTPUTS, counts)?,
        constants: constant_bindings(t, counts, place)?,
        dispatch,
        push_constants: each(t, &s::segment::PUSH_CONSTANTS, |t, _| {
            Ok(PushConstants {
                stages: t.scalar(&s::push_constants::STAGES)?,
                offset: t.scalar(&s::push_constants::OFFSET)?,
                size: t.scalar(&s::push_constants::SIZE)?,
            })
        })?,
    })
}

/// Which constants a segment's graph has. Files before 0.5 list their places, which are the graph's numbers too.
fn constant_bindings(
    t: &Table<'_>,
    counts: &Counts,
    place: impl Fn() -> String,
) -> Result<Vec<ConstantBinding>> {
    let named = each(t, &s::segment::CONSTANT_BINDINGS, |t, _| {
        let constant = t.scalar(&s::constant_binding::CONSTANT)?;
        let constant = index(constant, counts.constants, "constant", &place)?;
        Ok(ConstantBinding { id: t.scalar(&s::constant_binding::GRAPH_CONSTANT)?, constant })
    })?;
    let listed = t.vector(&s::segment::CONSTANTS)?;
    if !named.is_empty() {
        return Ok(named);
    }
    let mut all = Vec::with_capacity(listed.len());
    for id in listed.iter() {
        let id = id?;
        all.push(ConstantBinding { id, constant: index(id, counts.constants, "constant", &place)? });
    }
    Ok(all)
}
