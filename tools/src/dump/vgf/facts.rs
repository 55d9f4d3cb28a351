//! What is known about a VGF file, as data: the text and the JSON form are made from it.

use halite_formats::vgf::{Binding, Code, Constant, Module, Resource, Sampler, Segment, Vgf};
use halite_spirv::{BindingFacts, analyze, words_from_bytes};
use serde::Serialize;

use super::graph::{self, GraphFacts};

/// Everything about a file.
#[derive(Debug, Serialize)]
pub(super) struct Facts {
    pub(super) format: &'static str,
    pub(super) version: String,
    pub(super) file_bytes: usize,
    pub(super) sections: Vec<SectionFacts>,
    pub(super) inputs: Vec<PortFacts>,
    /// Inputs of the original model that nothing reads.
    pub(super) unused_inputs: Vec<String>,
    pub(super) outputs: Vec<PortFacts>,
    pub(super) resources: Vec<ResourceFacts>,
    pub(super) constants: Vec<ConstantFacts>,
    pub(super) segments: Vec<SegmentFacts>,
    pub(super) modules: Vec<ModuleFacts>,
}

#[derive(Debug, Serialize)]
pub(super) struct SectionFacts {
    pub(super) name: &'static str,
    pub(super) offset: usize,
    pub(super) bytes: usize,
}

/// An input or output of the model.
#[derive(Debug, Serialize)]
pub(super) struct PortFacts {
    pub(super) name: String,
    /// Its number in the original model.
    pub(super) number: u32,
    pub(super) resource: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct ResourceFacts {
    pub(super) category: &'static str,
    pub(super) descriptor: String,
    pub(super) format: String,
    /// The type of its elements in graphs, if it is one.
    pub(super) element: Option<&'static str>,
    pub(super) shape: Vec<i64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) strides: Vec<i64>,
    pub(super) alias_group: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sampler: Option<SamplerFacts>,
}

/// In Vulkan's numbers.
#[derive(Debug, Serialize)]
pub(super) struct SamplerFacts {
    pub(super) min_filter: u32,
    pub(super) mag_filter: u32,
    pub(super) address_mode_u: u32,
    pub(super) address_mode_v: u32,
    pub(super) border_color: u32,
}

#[derive(Debug, Serialize)]
pub(super) struct ConstantFacts {
    pub(super) resource: usize,
    pub(super) bytes: usize,
    /// The axis along which of every four elements two are zero: a hint.
    pub(super) sparse_axis: Option<u32>,
}

#[derive(Debug, Serialize)]
pub(super) struct SlotFacts {
    pub(super) binding: u32,
    pub(super) resource: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct SetFacts {
    pub(super) set: u32,
    pub(super) bindings: Vec<SlotFacts>,
}

#[derive(Debug, Serialize)]
pub(super) struct ConstantSlotFacts {
    /// The number in the graph.
    pub(super) id: u32,
    pub(super) constant: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct RangeFacts {
    pub(super) stages: u32,
    pub(super) offset: u32,
    pub(super) bytes: u32,
}

#[derive(Debug, Serialize)]
pub(super) struct SegmentFacts {
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) module: usize,
    pub(super) sets: Vec<SetFacts>,
    pub(super) inputs: Vec<SlotFacts>,
    pub(super) outputs: Vec<SlotFacts>,
    pub(super) constants: Vec<ConstantSlotFacts>,
    /// Workgroups; zeros for graphs.
    pub(super) dispatch: [u32; 3],
    pub(super) push_constants: Vec<RangeFacts>,
}

#[derive(Debug, Serialize)]
pub(super) struct ModuleFacts {
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) entry_point: String,
    /// `SPIR-V`, `GLSL`, `HLSL`, or none.
    pub(super) language: &'static str,
    /// Whether there is no code.
    pub(super) is_missing: bool,
    pub(super) bytes: usize,
    /// Why its code cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// What a compute kernel binds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) bindings: Vec<BindingFacts>,
    /// Graphs, where code is wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) graphs: Option<GraphFacts>,
    /// Source code, where code is wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<String>,
}

/// Collects what a file says; graphs and source with `code`.
pub(super) fn collect(vgf: &Vgf, file_bytes: usize, code: bool) -> Facts {
    let [major, minor, patch] = vgf.version;
    let used = |number: usize| vgf.inputs.iter().any(|slot| slot.binding as usize == number);
    let unused = vgf.input_names.iter().enumerate().filter(|(number, _)| !used(*number));
    let section = |section: &halite_formats::vgf::Section| SectionFacts {
        name: section.name,
        offset: section.range.start,
        bytes: section.range.len(),
    };
    Facts {
        format: "VGF",
        version: format!("{major}.{minor}.{patch}"),
        file_bytes,
        sections: vgf.sections.iter().map(section).collect(),
        inputs: vgf.inputs.iter().map(|slot| port(slot, slot.binding as usize, &vgf.input_names)).collect(),
        unused_inputs: unused.map(|(_, name)| name.clone()).collect(),
        outputs: vgf.outputs.iter().enumerate().map(|(i, slot)| port(slot, i, &vgf.output_names)).collect(),
        resources: vgf.resources.iter().map(resource).collect(),
        constants: vgf.constants.iter().map(constant).collect(),
        segments: vgf.segments.iter().map(segment).collect(),
        modules: vgf.modules.iter().map(|found| module(found, code)).collect(),
    }
}

fn port(slot: &Binding, place: usize, names: &[String]) -> PortFacts {
    let name = names.get(place).cloned().unwrap_or_default();
    PortFacts { name, number: slot.binding, resource: slot.resource }
}

fn resource(found: &Resource) -> ResourceFacts {
    let sampler = |sampler: &Sampler| SamplerFacts {
        min_filter: sampler.min_filter,
        mag_filter: sampler.mag_filter,
        address_mode_u: sampler.address[0],
        address_mode_v: sampler.address[1],
        border_color: sampler.border,
    };
    ResourceFacts {
        category: found.category.name(),
        descriptor: found.descriptor_name(),
        format: found.format.to_string(),
        element: found.format.element().map(halite_formats::tosa::ElementType::name),
        shape: found.shape.clone(),
        strides: found.strides.clone(),
        alias_group: found.alias_group,
        sampler: found.sampler.as_ref().map(sampler),
    }
}

fn constant(found: &Constant) -> ConstantFacts {
    ConstantFacts { resource: found.resource, bytes: found.data.len(), sparse_axis: found.sparse_axis }
}

fn slots(all: &[Binding]) -> Vec<SlotFacts> {
    all.iter().map(|slot| SlotFacts { binding: slot.binding, resource: slot.resource }).collect()
}

fn segment(found: &Segment) -> SegmentFacts {
    let constants = found.constants.iter();
    let ranges = found.push_constants.iter();
    SegmentFacts {
        kind: found.kind.name(),
        name: found.name.clone(),
        module: found.module,
        sets: found
            .sets
            .iter()
            .map(|set| SetFacts { set: set.index, bindings: slots(&set.bindings) })
            .collect(),
        inputs: slots(&found.inputs),
        outputs: slots(&found.outputs),
        constants: constants.map(|c| ConstantSlotFacts { id: c.id, constant: c.constant }).collect(),
        dispatch: found.dispatch,
        push_constants: ranges
            .map(|range| RangeFacts { stages: range.stages, offset: range.offset, bytes: range.size })
            .collect(),
    }
}

fn module(found: &Module, code: bool) -> ModuleFacts {
    let mut facts = ModuleFacts {
        kind: found.kind.name(),
        name: found.name.clone(),
        entry_point: found.entry_point.clone(),
        language: found.code.language(),
        is_missing: matches!(found.code, Code::Missing(_)),
        bytes: 0,
        error: None,
        bindings: Vec::new(),
        graphs: None,
        source: None,
    };
    match &found.code {
        Code::Missing(_) => {}
        Code::Glsl(text) | Code::Hlsl(text) => {
            facts.bytes = text.len();
            facts.source = code.then(|| text.clone());
        }
        Code::SpirV(bytes) => {
            facts.bytes = bytes.len();
            if let Err(error) = spirv(found, bytes, code, &mut facts) {
                facts.error = Some(error.to_string());
            }
        }
    }
    facts
}

/// Adds what the SPIR-V of a module says.
fn spirv(
    module: &Module,
    bytes: &[u8],
    code: bool,
    facts: &mut ModuleFacts,
) -> Result<(), halite_spirv::SpirvError> {
    let words = words_from_bytes(bytes)?;
    match module.kind {
        halite_formats::vgf::ModuleKind::Compute => {
            let entries = analyze(&words)?.entry_points;
            let entry = entries.into_iter().find(|entry| entry.name == module.entry_point);
            facts.bindings = entry.map(|entry| entry.bindings).unwrap_or_default();
        }
        halite_formats::vgf::ModuleKind::Graph => {
            let read = halite_spirv::graph::read(&words)?;
            facts.graphs = code.then(|| graph::collect(&read));
        }
    }
    Ok(())
}
