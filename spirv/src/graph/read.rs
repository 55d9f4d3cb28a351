//! Reading the graphs of a module.

use std::{collections::HashMap, sync::Arc};

use spirv::Op;

use super::{
    Graph, GraphModule, Operation, Origin, Value, constants, debug, interface,
    types::{Type, value_type},
};
use crate::{
    error::SpirvError,
    module::{Inst, Module},
    words::literal_text,
};

type Result<T, E = SpirvError> = std::result::Result<T, E>;

/// Reads the graphs of a module from its words.
///
/// # Errors
/// The words are no module, a rule of graphs is broken, or a graph has what this reader does not know: arrays of tensors,
/// tensors whose sizes are open, instructions other than operations. The error names the instruction.
pub fn read(words: &[u32]) -> Result<GraphModule> {
    let module = Module::parse(words)?;
    let mut reader = Reader {
        names: debug::names(&module),
        made: GraphModule { version: version(&module), ..GraphModule::default() },
        sets: HashMap::new(),
        constants: HashMap::new(),
        types: Vec::new(),
        budget: constants::budget(&module),
        module: &module,
    };
    reader.survey();
    let mut open: Option<Open> = None;
    for inst in module.insts() {
        match (inst.op, &mut open) {
            (Op::GraphARM, None) => open = Some(reader.begin(inst)?),
            (Op::GraphEndARM, Some(_)) => {
                if let Some(graph) = open.take() {
                    reader.end(inst, graph)?;
                }
            }
            (_, Some(graph)) => reader.inside(inst, graph)?,
            (Op::GraphInputARM | Op::GraphSetOutputARM | Op::GraphEndARM, None) => {
                return Err(SpirvError::at(inst.at, format!("Op{:?} stands outside of a graph", inst.op)));
            }
            _ => {}
        }
    }
    if let Some(graph) = open {
        return Err(SpirvError::at(words.len(), format!("graph {} has no end", graph.id)));
    }
    let Reader { names, mut made, types, .. } = reader;
    made.entry_points = interface::entries(&module, &made.graphs, &types, &names)?;
    Ok(made)
}

fn version(module: &Module<'_>) -> (u8, u8) {
    ((module.version() >> 16) as u8, (module.version() >> 8) as u8)
}

struct Reader<'m, 'w> {
    module: &'m Module<'w>,
    made: GraphModule,
    names: HashMap<u32, Arc<str>>,
    /// Place of each set by the id of its import.
    sets: HashMap<u32, usize>,
    /// Constants that were met, by id.
    constants: HashMap<u32, usize>,
    /// Type ids of the inputs and outputs of each graph.
    types: Vec<(Vec<u32>, Vec<u32>)>,
    /// Bytes that constants may still take.
    budget: u64,
}

/// A graph that is being read.
struct Open {
    id: u32,
    inputs: Vec<usize>,
    input_types: Vec<u32>,
    outputs: Vec<Option<usize>>,
    output_types: Vec<u32>,
    operations: Vec<Operation>,
    /// Values by id.
    known: HashMap<u32, usize>,
    /// Results of operations that make several.
    groups: HashMap<u32, Vec<usize>>,
}

impl Reader<'_, '_> {
    /// Collects what may stand behind its use: imports, debug information.
    fn survey(&mut self) {
        for inst in self.module.insts() {
            match inst.op {
                Op::ExtInstImport => {
                    self.sets.insert(inst.id, self.made.sets.len());
                    self.made.sets.push(literal_text(self.module.operands(inst)).unwrap_or_default());
                }
                Op::ExtInst => {
                    let set = self.module.operands(inst).first().and_then(|id| self.sets.get(id));
                    let set = set.map(|set| self.made.sets[*set].as_str()).unwrap_or_default();
                    let Some(found) = debug::name(self.module, set, inst) else { continue };
                    self.names.extend(found.ids.iter().map(|id| (*id, found.text.clone())));
                    self.made.debug.push(found);
                }
                _ => {}
            }
        }
    }

    fn name(&self, id: u32) -> Arc<str> {
        self.names.get(&id).cloned().unwrap_or_default()
    }

    /// Adds a value. There are fewer than words in a module, unless graphs repeat a type with very many parts.
    fn add(&mut self, at: usize, id: u32, ty: Type, origin: Origin) -> Result<usize> {
        if self.made.values.len() > self.module.words().len().saturating_mul(4) {
            return Err(SpirvError::at(at, "the graphs have far more values than the module is long"));
        }
        let value = Value { id, name: self.name(id), element: ty.element, shape: ty.shape, origin };
        self.made.values.push(value);
        Ok(self.made.values.len() - 1)
    }

    fn begin(&mut self, inst: &Inst) -> Result<Open> {
        let bad = |what: String| SpirvError::at(inst.at, format!("graph {}: {what}", inst.id));
        let ty = self.module.def(inst.ty).filter(|def| def.op == Op::TypeGraphARM);
        let parts = ty.map(|def| self.module.operands(def)).unwrap_or_default();
        let [count, types @ ..] = parts else { return Err(bad("its type is no graph type".to_owned())) };
        let Some((inputs, outputs)) = types.split_at_checked(*count as usize) else {
            return Err(bad(format!("{count} inputs of {} types", types.len())));
        };
        let mut made = Vec::with_capacity(inputs.len());
        for (place, ty) in inputs.iter().enumerate() {
            let ty = self.tensor_type(*ty, inst)?;
            made.push(self.add(inst.at, 0, ty, Origin::Input(place))?);
        }
        Ok(Open {
            id: inst.id,
            inputs: made,
            input_types: inputs.to_vec(),
            outputs: vec![None; outputs.len()],
            output_types: outputs.to_vec(),
            operations: Vec::new(),
            known: HashMap::new(),
            groups: HashMap::new(),
        })
    }

    fn tensor_type(&self, id: u32, inst: &Inst) -> Result<Type> {
        let ty = value_type(self.module, id, inst.at)?;
        match ty.shape {
            Some(_) => Ok(ty),
            None => Err(SpirvError::at(inst.at, format!("type {id} is no tensor"))),
        }
    }

    fn end(&mut self, inst: &Inst, graph: Open) -> Result<()> {
        let outputs: Option<Vec<usize>> = graph.outputs.into_iter().collect();
        let Some(outputs) = outputs else {
            return Err(SpirvError::at(inst.at, format!("graph {} does not set all outputs", graph.id)));
        };
        self.types.push((graph.input_types, graph.output_types));
        let Open { id, inputs, operations, .. } = graph;
        self.made.graphs.push(Graph { id, inputs, operations, outputs });
        Ok(())
    }

    fn inside(&mut self, inst: &Inst, graph: &mut Open) -> Result<()> {
        let operands = self.module.operands(inst);
        match inst.op {
            Op::Nop | Op::Line | Op::NoLine => Ok(()),
            Op::GraphInputARM => self.input(inst, graph, operands),
            Op::GraphSetOutputARM => self.output(inst, graph, operands),
            Op::ExtInst => self.operation(inst, graph),
            Op::CompositeExtract => {
                let group = operands.first().and_then(|id| graph.groups.get(id));
                let part = match operands {
                    [_, index] => group.and_then(|group| group.get(*index as usize)),
                    _ => None,
                };
                let none = || SpirvError::at(inst.at, "a part of what is no group of results");
                let part = *part.ok_or_else(none)?;
                graph.known.insert(inst.id, part);
                Ok(())
            }
            Op::GraphConstantARM => self.constant(inst.id, inst).map(drop),
            op => Err(SpirvError::at(inst.at, format!("Op{op:?} inside of a graph is not supported"))),
        }
    }

    fn input(&mut self, inst: &Inst, graph: &mut Open, operands: &[u32]) -> Result<()> {
        let place = self.index(inst, operands)?;
        let fits = graph.input_types.get(place) == Some(&inst.ty);
        let Some(value) = graph.inputs.get(place).copied().filter(|_| fits) else {
            let reason = format!("input {place} is none of the graph's, or has another type");
            return Err(SpirvError::at(inst.at, reason));
        };
        self.made.values[value].id = inst.id;
        self.made.values[value].name = self.name(inst.id);
        graph.known.insert(inst.id, value);
        Ok(())
    }

    fn output(&mut self, inst: &Inst, graph: &mut Open, operands: &[u32]) -> Result<()> {
        let [id, operands @ ..] = operands else { return Ok(()) };
        let (place, value) = (self.index(inst, operands)?, self.value(inst, graph, *id)?);
        let ty = &self.made.values[value];
        let fits = match graph.output_types.get(place) {
            Some(wants) => {
                let wants = self.tensor_type(*wants, inst)?;
                (wants.element, &wants.shape) == (ty.element, &ty.shape)
            }
            None => false,
        };
        match graph.outputs.get_mut(place) {
            Some(output @ None) if fits => {
                *output = Some(value);
                Ok(())
            }
            _ => {
                let reason =
                    format!("output {place} is none of the graph's, has another type, or is set twice");
                Err(SpirvError::at(inst.at, reason))
            }
        }
    }

    /// The number of an input or output.
    fn index(&self, inst: &Inst, operands: &[u32]) -> Result<usize> {
        match operands {
            [id] => match self.module.constant_u32(*id) {
                Some(place) => Ok(place as usize),
                None => {
                    Err(SpirvError::at(inst.at, format!("{id} is no constant number of an input or output")))
                }
            },
            _ => Err(SpirvError::at(inst.at, "arrays of tensors are not supported")),
        }
    }

    fn operation(&mut self, inst: &Inst, graph: &mut Open) -> Result<()> {
        let [set, number, operands @ ..] = self.module.operands(inst) else { return Ok(()) };
        let unknown = || SpirvError::at(inst.at, format!("{set} is no import of extended instructions"));
        let set = *self.sets.get(set).ok_or_else(unknown)?;
        if self.made.sets[set].starts_with(debug::NON_SEMANTIC) {
            return Ok(());
        }
        let operands: Result<Vec<usize>> = operands.iter().map(|id| self.value(inst, graph, *id)).collect();
        let (operands, results) = (operands?, self.results(inst, graph)?);
        let name = self.name(inst.id);
        graph.operations.push(Operation { id: inst.id, name, set, number: *number, operands, results });
        Ok(())
    }

    /// What an operation makes: a tensor, or a structure of tensors.
    fn results(&mut self, inst: &Inst, graph: &mut Open) -> Result<Vec<usize>> {
        let group = self.module.def(inst.ty).filter(|def| def.op == Op::TypeStruct);
        let Some(group) = group else {
            let ty = self.tensor_type(inst.ty, inst)?;
            let made = self.add(inst.at, inst.id, ty, Origin::Result)?;
            graph.known.insert(inst.id, made);
            return Ok(vec![made]);
        };
        let mut made = Vec::new();
        for ty in self.module.operands(group) {
            let ty = self.tensor_type(*ty, inst)?;
            made.push(self.add(inst.at, inst.id, ty, Origin::Result)?);
        }
        graph.groups.insert(inst.id, made.clone());
        Ok(made)
    }

    /// A value that an instruction reads.
    fn value(&mut self, inst: &Inst, graph: &Open, id: u32) -> Result<usize> {
        match graph.known.get(&id) {
            Some(known) => Ok(*known),
            None => self.constant(id, inst),
        }
    }

    fn constant(&mut self, id: u32, user: &Inst) -> Result<usize> {
        if let Some(known) = self.constants.get(&id) {
            return Ok(*known);
        }
        let bad =
            || SpirvError::at(user.at, format!("{id} is read, but is no constant and not computed before"));
        let def = self.module.def(id).filter(|def| def.ty != 0).ok_or_else(bad)?;
        let ty = value_type(self.module, def.ty, def.at)?;
        let origin = constants::origin(self.module, def, &ty, &mut self.budget)?.ok_or_else(bad)?;
        let made = self.add(user.at, id, ty, origin)?;
        self.constants.insert(id, made);
        Ok(made)
    }
}
