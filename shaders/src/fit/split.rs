//! Taking expressions over many tensors apart: into several over fewer, whose results lie in scratch memory in between.

use std::collections::HashMap;

use halite_ops::{
    DType, Operation,
    elementwise::Elementwise,
    expression::{self, Expression, Node, Operand, Output, Type},
    strides::Strides,
};
use halite_sizes::{Size, Written};

use crate::{Plan, Slot, Step, Unfit, Variant, plans};

/// Steps that compute the results of an expression one by one, with at most `most` tensors each.
pub(super) fn split(whole: &Elementwise, variant: &Variant, most: usize) -> Result<Plan, Unfit> {
    let (alone, around) = plans::elementwise::apart(whole, &variant.params)?;
    let plan = parts(&alone, variant, most)?;
    match around {
        Some(around) => around.plan(plan),
        None => Ok(plan),
    }
}

fn parts(whole: &Elementwise, variant: &Variant, most: usize) -> Result<Plan, Unfit> {
    // A function has up to three operands, and one result; a look-up reads a number and a table.
    if most < 4 {
        return Err(super::too_many(most));
    }
    let dtypes: Vec<DType> = whole.inputs.0.iter().map(|(dtype, _)| *dtype).collect();
    let types = whole.program.types(&dtypes).map_err(Unfit)?;
    let shapes: Vec<Vec<Size>> = whole.inputs.0.iter().map(|(_, dims)| dims.clone()).collect();
    let dims = expression::broadcast(&shapes).map_err(Unfit)?;
    let (kept, lowered, plan) = (Vec::new(), HashMap::new(), Plan::default());
    let mut parts = Parts { whole, variant, types, dims, most, kept, lowered, plan };
    for node in 0..whole.program.nodes.len() {
        parts.lighten(node)?;
    }
    for (index, output) in whole.program.outputs.iter().enumerate() {
        parts.output(index, output)?;
    }
    Ok(parts.plan)
}

/// An expression that is being taken apart.
struct Parts<'a> {
    whole: &'a Elementwise,
    variant: &'a Variant,
    types: Vec<Type>,
    /// Dimensions of the results.
    dims: Vec<Size>,
    most: usize,
    /// Nodes whose results are in scratch memory, by its number, and the dimensions of these.
    kept: Vec<(usize, Vec<Size>)>,
    /// Steps of parts: long sums are cut into many that are equal.
    lowered: HashMap<Written<Operation>, Vec<Step>>,
    plan: Plan,
}

impl Parts<'_> {
    /// Keeps results of operands until the node can be computed of few enough tensors.
    fn lighten(&mut self, node: usize) -> Result<(), Unfit> {
        while self.sources(Operand::Node(node)).len() + 1 > self.most {
            let operands = &self.whole.program.nodes[node].operands;
            let heaviest = operands.iter().filter_map(|operand| match operand {
                Operand::Node(own) if self.scratch(*own).is_none() => Some(*own),
                _ => None,
            });
            let heaviest = heaviest.max_by_key(|own| self.sources(Operand::Node(*own)).len());
            self.keep(heaviest.ok_or_else(|| super::too_many(self.most))?)?;
        }
        Ok(())
    }

    /// Computes a node into scratch memory.
    fn keep(&mut self, node: usize) -> Result<(), Unfit> {
        let sources = self.sources(Operand::Node(node));
        let dims = self.broadcast(&sources)?;
        let dtype = stored(self.types[node]);
        let to = Slot::Scratch(self.kept.len());
        self.step(Operand::Node(node), dtype, &sources, None, to)?;
        let bytes = dims.iter().product::<Size>() * dtype.size();
        self.plan.scratch.push(bytes.next_multiple_of(4));
        self.kept.push((node, dims));
        Ok(())
    }

    /// Computes a result.
    fn output(&mut self, index: usize, output: &Output) -> Result<(), Unfit> {
        let sources = |parts: &Self| match output.value {
            // What was kept is stored from where it is.
            Operand::Node(node) if parts.scratch(node).is_some() => vec![output.value],
            value => parts.sources(value),
        };
        let mut own = sources(self);
        // What reads less than all places, or nothing at all, has the dimensions of all results.
        let shaping = match self.broadcast(&own)? == self.dims && !own.iter().all(is_table) {
            true => None,
            false => Some(self.shaping(&own)?),
        };
        if let (Operand::Node(node), Some(_)) = (output.value, shaping)
            && own.len() + 2 > self.most
            && self.scratch(node).is_none()
        {
            self.keep(node)?;
            own = sources(self);
        }
        self.step(output.value, output.dtype, &own, shaping, Slot::Output(index))
    }

    /// Where a node's result is kept.
    fn scratch(&self, node: usize) -> Option<usize> {
        self.kept.iter().position(|(own, _)| *own == node)
    }

    /// Tensors that a value is computed of: inputs and kept results.
    fn sources(&self, value: Operand) -> Vec<Operand> {
        let (mut found, mut seen, mut open) = (Vec::new(), vec![false; self.types.len()], vec![value]);
        while let Some(operand) = open.pop() {
            let inside = match operand {
                Operand::Node(node) if operand == value || self.scratch(node).is_none() => Some(node),
                _ => None,
            };
            if let Some(node) = inside {
                if !std::mem::replace(&mut seen[node], true) {
                    open.extend(&self.whole.program.nodes[node].operands);
                }
            } else if !matches!(operand, Operand::Constant(_)) && !found.contains(&operand) {
                found.push(operand);
            }
        }
        found.sort_by_key(|source| match source {
            Operand::Input(input) => (0, *input),
            Operand::Node(node) => (1, *node),
            Operand::Table(table) => (2, *table),
            Operand::Constant(_) => (3, 0),
        });
        found
    }

    /// Type and dimensions of a source, and where it is.
    fn tensor(&self, source: Operand) -> Result<((DType, Vec<Size>), Slot), Unfit> {
        match source {
            Operand::Input(input) => Ok((self.whole.inputs.0[input].clone(), Slot::Input(input))),
            Operand::Node(node) => {
                let scratch = self.scratch(node).ok_or_else(|| super::too_many(self.most))?;
                let dims = self.kept[scratch].1.clone();
                Ok(((stored(self.types[node]), dims), Slot::Scratch(scratch)))
            }
            Operand::Table(table) => {
                let slot = Slot::Input(self.whole.inputs.0.len() + table);
                Ok((self.whole.tables.0[table].clone(), slot))
            }
            Operand::Constant(_) => Err(super::too_many(self.most)),
        }
    }

    /// Dimensions of what is computed of sources.
    fn broadcast(&self, sources: &[Operand]) -> Result<Vec<Size>, Unfit> {
        let values = sources.iter().filter(|source| !is_table(source));
        let shapes: Result<Vec<_>, _> = values.map(|s| self.tensor(*s).map(|(t, _)| t.1)).collect();
        expression::broadcast(&shapes?).map_err(Unfit)
    }

    /// Appends the step that stores a value; `shaping` is an input that is bound for its dimensions alone.
    fn step(
        &mut self,
        value: Operand,
        dtype: DType,
        sources: &[Operand],
        shaping: Option<usize>,
        to: Slot,
    ) -> Result<(), Unfit> {
        let (tables, values): (Vec<Operand>, Vec<Operand>) =
            sources.iter().chain(&shaping.map(Operand::Input)).partition(|source| is_table(source));
        let bound = |sources: &[Operand]| -> Result<(Vec<_>, Vec<Slot>), Unfit> {
            let tensors: Result<Vec<_>, _> = sources.iter().map(|source| self.tensor(*source)).collect();
            Ok(tensors?.into_iter().unzip())
        };
        let ((inputs, slots), (tables, table_slots)) = (bound(&values)?, bound(&tables)?);
        if slots.len() + table_slots.len() + 1 > self.most {
            return Err(super::too_many(self.most));
        }
        let program = self.program(value, dtype, sources);
        let strided = slots.iter().enumerate().filter_map(|(input, slot)| match slot {
            Slot::Input(own) => Some(Strides { input, ..self.whole.strides_of(*own)?.clone() }),
            _ => None,
        });
        let strided = strided.collect();
        let written = self.whole.written.filter(|_| matches!(to, Slot::Output(_)));
        let part = Elementwise { strided, written, ..Elementwise::new(inputs, program).with_tables(tables) };
        let mut steps = self.lower(Operation::Elementwise(part))?;
        for step in &mut steps {
            step.subgroup_size = self.variant.needs.subgroup_size;
            step.bindings = slots.iter().chain(&table_slots).copied().chain([to]).collect();
        }
        self.plan.steps.append(&mut steps);
        Ok(())
    }

    /// The steps of a part, whose code is made once for all that are equal.
    fn lower(&mut self, part: Operation) -> Result<Vec<Step>, Unfit> {
        let part = Written(part);
        if let Some(steps) = self.lowered.get(&part) {
            return Ok(steps.clone());
        }
        let Variant { template, build, params, .. } = self.variant;
        let steps = plans::of(&part.0).lower(template, build, params)?.steps;
        self.lowered.insert(part, steps.clone());
        Ok(steps)
    }

    /// An input with which the others broadcast to the dimensions of the results.
    fn shaping(&self, others: &[Operand]) -> Result<usize, Unfit> {
        let fits = |input: &usize| {
            let with: Vec<Operand> = others.iter().copied().chain([Operand::Input(*input)]).collect();
            self.broadcast(&with).is_ok_and(|dims| dims == self.dims)
        };
        let found = (0..self.whole.inputs.0.len()).find(fits);
        found.ok_or_else(|| Unfit("has results that no single input is as large as".to_owned()))
    }

    /// The expression of a value over its sources.
    fn program(&self, value: Operand, dtype: DType, sources: &[Operand]) -> Expression {
        let mut program = Expression::default();
        let mut now: Vec<Option<Operand>> = vec![None; self.types.len()];
        for (index, source) in sources.iter().enumerate() {
            if let Operand::Node(node) = source {
                let read = Operand::Input(index);
                // Truth values lie in memory as bytes.
                let is_bool = self.types[*node] == Type::Bool;
                now[*node] = Some(if is_bool { program.cast(Type::Bool, read) } else { read });
            }
        }
        let place = |wanted: Operand| {
            let of_its_kind = sources.iter().filter(|source| is_table(source) == is_table(&wanted));
            let place = { of_its_kind }.position(|source| *source == wanted);
            place.expect("sources have all tensors that are read")
        };
        let input = |index: usize| Operand::Input(place(Operand::Input(index)));
        let needed = self.needed(value, &now);
        for (index, node) in self.whole.program.nodes.iter().enumerate().filter(|(i, _)| needed[*i]) {
            let operands = node.operands.iter().map(|operand| match operand {
                Operand::Input(own) => input(*own),
                Operand::Node(own) => now[*own].expect("operands come before what needs them"),
                Operand::Table(own) => Operand::Table(place(Operand::Table(*own))),
                constant @ Operand::Constant(_) => *constant,
            });
            let made = Node { operands: operands.collect(), ..node.clone() };
            now[index] = Some(program.push(made));
        }
        let value = match value {
            Operand::Input(own) => input(own),
            Operand::Node(own) => now[own].expect("it was just computed"),
            other @ (Operand::Constant(_) | Operand::Table(_)) => other,
        };
        program.store(value, dtype);
        program
    }

    /// Nodes that have to be computed for a value, `known` being there.
    fn needed(&self, value: Operand, known: &[Option<Operand>]) -> Vec<bool> {
        let (mut needed, mut open) = (vec![false; self.types.len()], vec![value]);
        while let Some(operand) = open.pop() {
            if let Operand::Node(node) = operand
                && known[node].is_none()
                && !std::mem::replace(&mut needed[node], true)
            {
                open.extend(&self.whole.program.nodes[node].operands);
            }
        }
        needed
    }
}

/// The type in which a value lies in scratch memory.
fn stored(ty: Type) -> DType {
    match ty {
        Type::Bool => DType::U8,
        Type::Of(dtype) => dtype,
        // No value is a table.
        Type::Table => DType::U32,
    }
}

fn is_table(source: &Operand) -> bool {
    matches!(source, Operand::Table(_))
}
