//! The graphs of a SPIR-V module, with operations, operands and constants in words.

use std::collections::HashMap;

use halite_formats::tosa::{ElementType, Kind, Spec};
use halite_spirv::graph::{Element, GraphEntry, GraphModule, Operation, Origin, Port, Value};
use serde::Serialize;

/// The set whose operations are known by name.
const TOSA: &str = "TOSA.001000.1";
/// Elements of a constant that are shown, at most.
const MOST_ELEMENTS: usize = 16;

/// All graphs of a module.
#[derive(Debug, Serialize)]
pub(super) struct GraphFacts {
    pub(super) spirv_version: String,
    /// Sets of instructions that it imports.
    pub(super) sets: Vec<String>,
    pub(super) graphs: Vec<EntryFacts>,
    pub(super) debug: Vec<DebugFacts>,
}

/// A graph that can be run.
#[derive(Debug, Serialize)]
pub(super) struct EntryFacts {
    pub(super) name: String,
    pub(super) inputs: Vec<PortFacts>,
    pub(super) operations: Vec<OperationFacts>,
    pub(super) outputs: Vec<PortFacts>,
}

#[derive(Debug, Serialize)]
pub(super) struct PortFacts {
    pub(super) set: u32,
    pub(super) binding: u32,
    pub(super) value: String,
    #[serde(rename = "type")]
    pub(super) ty: String,
    pub(super) name: String,
}

#[derive(Debug, Serialize)]
pub(super) struct OperationFacts {
    pub(super) operator: String,
    /// From debug information.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) name: String,
    /// (name, value).
    pub(super) operands: Vec<(String, String)>,
    /// (value, type).
    pub(super) results: Vec<(String, String)>,
}

/// What debug information says.
#[derive(Debug, Serialize)]
pub(super) struct DebugFacts {
    pub(super) kind: &'static str,
    pub(super) text: String,
    pub(super) ids: Vec<u32>,
}

/// Says what the graphs of a module are.
pub(super) fn collect(module: &GraphModule) -> GraphFacts {
    let (major, minor) = module.version;
    let names = names(module);
    let debug = module.debug.iter().map(|found| DebugFacts {
        kind: found.kind,
        text: found.text.to_string(),
        ids: found.ids.clone(),
    });
    GraphFacts {
        spirv_version: format!("{major}.{minor}"),
        sets: module.sets.clone(),
        graphs: module.entry_points.iter().map(|found| entry(module, &names, found)).collect(),
        debug: debug.collect(),
    }
}

/// What values are called: `%id`, with a number behind it where an operation makes several.
fn names(module: &GraphModule) -> HashMap<usize, String> {
    let mut names = HashMap::new();
    for operation in module.graphs.iter().flat_map(|graph| &graph.operations) {
        for (i, result) in operation.results.iter().enumerate() {
            let name = match operation.results.len() {
                1 => format!("%{}", operation.id),
                _ => format!("%{}.{i}", operation.id),
            };
            names.insert(*result, name);
        }
    }
    names
}

fn entry(module: &GraphModule, names: &HashMap<usize, String>, found: &GraphEntry) -> EntryFacts {
    let graph = &module.graphs[found.graph];
    let port = |(port, value): (&Port, &usize)| PortFacts {
        set: port.set,
        binding: port.binding,
        value: shown(module, names, *value),
        ty: type_of(&module.values[*value]),
        name: port.name.to_string(),
    };
    EntryFacts {
        name: found.name.clone(),
        inputs: found.inputs.iter().zip(&graph.inputs).map(port).collect(),
        operations: graph.operations.iter().map(|found| operation(module, names, found)).collect(),
        outputs: found.outputs.iter().zip(&graph.outputs).map(port).collect(),
    }
}

fn operation(module: &GraphModule, names: &HashMap<usize, String>, found: &Operation) -> OperationFacts {
    let set = &module.sets[found.set];
    let spec = if set == TOSA { Spec::numbered(found.number) } else { None };
    let operands = found.operands.iter().enumerate().map(|(place, id)| {
        let known = spec.and_then(|spec| spec.operands.get(place).or(spec.operands.last()));
        let name = known.map_or_else(|| place.to_string(), |(name, _)| (*name).to_owned());
        let value = &module.values[*id];
        let choice = known.and_then(|(_, kind)| choice(*kind, value));
        (name, choice.map_or_else(|| shown(module, names, *id), str::to_owned))
    });
    let result = |id: &usize| (shown(module, names, *id), type_of(&module.values[*id]));
    OperationFacts {
        operator: spec.map_or_else(|| format!("{set}:{}", found.number), |spec| spec.name.to_owned()),
        name: found.name.to_string(),
        operands: operands.collect(),
        results: found.results.iter().map(result).collect(),
    }
}

/// What a number means that is a choice.
fn choice(kind: Kind, value: &Value) -> Option<&'static str> {
    let Origin::Splat(bytes) = &value.origin else { return None };
    let number = u32::from_le_bytes(*bytes.first_chunk()?);
    kind.names().get(number.checked_sub(1)? as usize).copied()
}

/// `i8[1,9,9,8]`; numbers that are no tensors have no brackets.
fn type_of(value: &Value) -> String {
    let Some(shape) = &value.shape else { return value.element.to_string() };
    let sizes: Vec<_> = shape.iter().map(ToString::to_string).collect();
    format!("{}[{}]", value.element, sizes.join(","))
}

/// A value in the place of an operand: what it is called, or the constant itself.
fn shown(module: &GraphModule, names: &HashMap<usize, String>, place: usize) -> String {
    let value = &module.values[place];
    match &value.origin {
        Origin::Input(number) if value.id == 0 => format!("input {number}"),
        Origin::Input(_) => format!("%{}", value.id),
        Origin::Result => names.get(&place).cloned().unwrap_or_else(|| format!("%{}", value.id)),
        Origin::GraphConstant(id) => format!("constant {id}: {}", type_of(value)),
        Origin::Splat(bytes) => match value.shape {
            None => number(value.element, bytes),
            Some(_) => format!("{} of {}", type_of(value), number(value.element, bytes)),
        },
        Origin::Elements(bytes) => {
            let size = value.element.size().max(1);
            let count = bytes.len() / size;
            let shown = bytes.chunks(size).take(MOST_ELEMENTS).map(|bytes| number(value.element, bytes));
            let mut all: Vec<String> = shown.collect();
            if count > MOST_ELEMENTS {
                all.push(format!("… {count} in all"));
            }
            format!("[{}]", all.join(", "))
        }
    }
}

/// A number or boolean.
fn number(element: Element, bytes: &[u8]) -> String {
    let of = match element {
        Element::Bool => return (bytes.first() != Some(&0)).to_string(),
        Element::Int(8) => ElementType::I8,
        Element::Int(16) => ElementType::I16,
        Element::Int(32) => ElementType::I32,
        Element::Float(16) => ElementType::F16,
        Element::Float(32) => ElementType::F32,
        Element::BFloat16 => ElementType::BF16,
        Element::Float8E4M3 => ElementType::F8E4M3,
        Element::Float8E5M2 => ElementType::F8E5M2,
        Element::Float(_) => {
            let bits: Option<&[u8; 8]> = bytes.first_chunk();
            return bits.map_or_else(String::new, |bits| f64::from_le_bytes(*bits).to_string());
        }
        Element::Int(_) => ElementType::I64,
    };
    let integer = of.integer(bytes).map(|value| value.to_string());
    integer.or_else(|| of.float(bytes).map(|value| value.to_string())).unwrap_or_default()
}
