//! Entry points of graphs: which descriptors their inputs and outputs are bound to.

use std::{collections::HashMap, sync::Arc};

use spirv::{Decoration, Op};

use super::{Graph, GraphEntry, Port};
use crate::{
    error::SpirvError,
    module::{Inst, Module},
    words::{literal_text, literal_words},
};

/// Where the variables of a module are bound, and what they are called.
struct Variables<'m, 'w> {
    module: &'m Module<'w>,
    names: &'m HashMap<u32, Arc<str>>,
    sets: HashMap<u32, u32>,
    bindings: HashMap<u32, u32>,
}

/// Reads all entry points; `types` are the types of each graph's inputs and outputs.
pub(super) fn entries(
    module: &Module<'_>,
    graphs: &[Graph],
    types: &[(Vec<u32>, Vec<u32>)],
    names: &HashMap<u32, Arc<str>>,
) -> Result<Vec<GraphEntry>, SpirvError> {
    let places: HashMap<u32, usize> = graphs.iter().enumerate().map(|(i, graph)| (graph.id, i)).collect();
    let (sets, bindings) = (numbers(module, Decoration::DescriptorSet), numbers(module, Decoration::Binding));
    let variables = Variables { module, names, sets, bindings };
    let points = module.insts().iter().filter(|inst| inst.op == Op::GraphEntryPointARM);
    points.map(|inst| entry(&variables, inst, &places, types)).collect()
}

/// The numbers that a decoration gives to ids.
fn numbers(module: &Module<'_>, decoration: Decoration) -> HashMap<u32, u32> {
    let decorated = module.insts().iter().filter(|inst| inst.op == Op::Decorate);
    let of = |inst: &Inst| match *module.operands(inst) {
        [id, kind, number] if kind == decoration as u32 => Some((id, number)),
        _ => None,
    };
    decorated.filter_map(of).collect()
}

fn entry(
    variables: &Variables<'_, '_>,
    inst: &Inst,
    graphs: &HashMap<u32, usize>,
    types: &[(Vec<u32>, Vec<u32>)],
) -> Result<GraphEntry, SpirvError> {
    let bad = |what: &str| SpirvError::at(inst.at, format!("the graph's entry point {what}"));
    let [id, rest @ ..] = variables.module.operands(inst) else { return Err(bad("names no graph")) };
    let graph = *graphs.get(id).ok_or_else(|| bad("names no graph"))?;
    let name = literal_text(rest).ok_or_else(|| bad("has no name"))?;
    let ids = &rest[literal_words(rest).unwrap_or(rest.len())..];
    let (inputs, outputs) = &types[graph];
    if ids.len() != inputs.len() + outputs.len() {
        let reason = format!(
            "lists {} variables; its graph has {} inputs and {} outputs",
            ids.len(),
            inputs.len(),
            outputs.len()
        );
        return Err(bad(&reason));
    }
    let types = inputs.iter().chain(outputs);
    let ports = ids.iter().zip(types).map(|(id, ty)| variables.port(inst, *id, *ty));
    let mut ports = ports.collect::<Result<Vec<Port>, SpirvError>>()?;
    let outputs = ports.split_off(inputs.len());
    Ok(GraphEntry { name, graph, inputs: ports, outputs })
}

impl Variables<'_, '_> {
    /// What a variable of an entry point is bound to, if it holds a tensor of the type.
    fn port(&self, entry: &Inst, id: u32, ty: u32) -> Result<Port, SpirvError> {
        let bad = |what: &str| SpirvError::at(entry.at, format!("the graph's variable {id} {what}"));
        let variable = self.module.def(id).filter(|def| def.op == Op::Variable);
        let variable = variable.ok_or_else(|| bad("is no variable"))?;
        let pointer = self.module.def(variable.ty).filter(|def| def.op == Op::TypePointer);
        if pointer.and_then(|pointer| self.module.operands(pointer).get(1)) != Some(&ty) {
            return Err(bad("has another type than the graph"));
        }
        Ok(Port {
            name: self.names.get(&id).cloned().unwrap_or_default(),
            set: self.sets.get(&id).copied().unwrap_or(0),
            binding: *self.bindings.get(&id).ok_or_else(|| bad("has no binding"))?,
        })
    }
}
