//! What a method keeps from call to call: its mutable buffers, found in the plan and in delegates, as inputs and outputs of the
//! method's function.
//!
//! A plan does not say which of its tensors are kept. They are those that are read before a step writes them: an instruction
//! copies their new elements into their memory, or an operator changes them where they are.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use halite_formats::pte::{Allocation, Plan, Program, Tensor, Value as PlanValue};

use super::{
    back_ends,
    names::COPY_ROW,
    ops,
    outside::{Method, Step},
    tenant::{Tenant, has_heads, not_zeros},
    types::element_of,
    value::Value,
};
use crate::{
    signature::{Arity, BoundValue, Dim, Signature},
    states::Kept,
};

/// Where a method has a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Holder {
    /// A value of the plan.
    Plan(usize),
    /// A buffer of a delegate, by the place among the delegate's.
    Delegate(usize, usize),
}

impl Holder {
    /// Whether it is a buffer of a delegate.
    pub(super) fn is_of(self, delegate: usize) -> bool {
        matches!(self, Holder::Delegate(own, _) if own == delegate)
    }
}

/// A tensor that is kept from call to call.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    pub(super) holder: Holder,
    /// Name of the input with its old elements.
    pub(super) name: String,
    pub(super) tenant: Tenant,
}

/// The order of the dimensions of what is held with heads before rows, both ways.
const HEADS_FIRST: [usize; 4] = [0, 2, 1, 3];

impl Buffer {
    /// The order of its dimensions where it is held: dimension `i` is dimension `order[i]` as operators see it. Turned twice, it
    /// is as it was.
    pub(super) fn order(&self) -> Vec<usize> {
        match self.tenant.by_heads {
            true => HEADS_FIRST.to_vec(),
            false => (0..self.tenant.dims.len()).collect(),
        }
    }

    /// Its dimensions where it is held.
    pub(super) fn held_dims(&self) -> Vec<u64> {
        self.order().iter().map(|i| self.tenant.dims[*i]).collect()
    }

    /// Name of the output with its new elements.
    pub(super) fn new_name(&self) -> String {
        format!("{}.next", self.name)
    }

    /// The input that it is.
    pub(super) fn input(&self) -> Signature {
        self.signature(self.name.clone())
    }

    /// The output that it is.
    pub(super) fn output(&self) -> Signature {
        self.signature(self.new_name())
    }

    fn signature(&self, name: String) -> Signature {
        let dims = Some(self.held_dims().into_iter().map(Dim::Known).collect());
        Signature { name, arity: Arity::Tensor, is_optional: false, element: Some(self.tenant.element), dims }
    }

    /// It as callers keep it.
    pub(super) fn kept(&self) -> Kept {
        let (element, dims) = (self.tenant.element, self.held_dims());
        let first = self.tenant.first.as_ref().map(|bytes| BoundValue {
            element,
            bytes: if self.tenant.by_heads { heads_first(bytes, &self.tenant.dims) } else { bytes.clone() },
            dims,
        });
        Kept { input: self.name.clone(), output: self.new_name(), first }
    }
}

/// Elements of `[batch, rows, heads, size]` with heads before rows.
fn heads_first(bytes: &Bytes, dims: &[u64]) -> Bytes {
    let &[batch, rows, heads, _] = dims else { return bytes.clone() };
    let count = batch.saturating_mul(rows).saturating_mul(heads).max(1);
    let row = (bytes.len() as u64 / count) as usize;
    let mut made = Vec::with_capacity(bytes.len());
    for b in 0..batch {
        for h in 0..heads {
            for r in 0..rows {
                let at = ((b * rows + r) * heads + h) as usize * row;
                made.extend_from_slice(bytes.get(at..at + row).unwrap_or_default());
            }
        }
    }
    made.into()
}

/// The buffers of a method: those of the plan in the order in which they are read, then those of delegates.
///
/// # Errors
/// Says which buffer cannot be told, or that its data are damaged.
pub(super) fn of(program: &Program, plan: &Plan) -> Result<Vec<Buffer>, String> {
    let [instructions] = &plan.chains[..] else { return Ok(Vec::new()) };
    let method = Method::new(plan, instructions);
    let mut walk = Walk::new(program, plan, &method);
    for step in &method.steps {
        walk.step(step)?;
    }
    plan.outputs.iter().for_each(|id| walk.read(*id));
    let found = std::mem::take(&mut walk.found);
    let mut all = Vec::new();
    for id in found {
        let Some(PlanValue::Tensor(tensor)) = plan.values.get(id) else { continue };
        let by_heads = walk.appended.contains(&id);
        all.push((Holder::Plan(id), tensor.name.clone(), tenant(program, tensor, by_heads)?));
    }
    let inside = walk.inside.into_iter().flat_map(|(delegate, tenants)| {
        tenants
            .into_iter()
            .enumerate()
            .map(move |(place, tenant)| (Holder::Delegate(delegate, place), None, tenant))
    });
    all.extend(inside);
    Ok(named(all))
}

/// Buffers with names that no input or output has: those of the file, where it tells them, or numbers.
fn named(all: Vec<(Holder, Option<String>, Tenant)>) -> Vec<Buffer> {
    let mut taken = HashSet::new();
    let free = |name: &String| !name.starts_with("input") && !name.starts_with("output");
    let mut one = |(number, (holder, told, tenant)): (usize, (Holder, Option<String>, Tenant))| {
        let own = told.filter(|name| free(name) && !name.ends_with(".next") && taken.insert(name.clone()));
        let name = own.unwrap_or_else(|| format!("state{number}"));
        taken.insert(name.clone());
        Buffer { holder, name, tenant }
    };
    all.into_iter().enumerate().map(&mut one).collect()
}

/// A tensor of a plan as one that is kept.
fn tenant(program: &Program, tensor: &Tensor, appended: bool) -> Result<Tenant, String> {
    let element = element_of(tensor.scalar_type)
        .ok_or_else(|| format!("a buffer of the type {} is kept from call to call", tensor.scalar_type))?;
    let bytes = match tensor.allocation {
        Some(_) if tensor.external.is_none() => program.initial(tensor),
        _ => program.constant(tensor),
    };
    let first = bytes.map_err(|e| e.to_string())?.and_then(not_zeros);
    if first.is_some() && !tensor.is_contiguous() {
        let (order, dims) = (&tensor.dim_order, &tensor.sizes);
        return Err(format!(
            "a buffer {dims:?} with its dimensions in the order {order:?} has a first value"
        ));
    }
    let by_heads = appended && has_heads(element, &tensor.sizes);
    Ok(Tenant { element, dims: tensor.sizes.clone(), first, by_heads })
}

/// A method while it is asked which of its tensors are read before they are written.
struct Walk<'a> {
    program: &'a Program,
    plan: &'a Plan,
    method: &'a Method,
    /// Values that the caller or a step has written, or that were found to be kept.
    known: Vec<bool>,
    /// Places in memory that were written.
    places: HashSet<(u32, u64)>,
    found: Vec<usize>,
    /// Values that rows were appended to.
    appended: HashSet<usize>,
    /// The buffers of delegates, by number of the delegate, and how many inputs these have.
    inside: Vec<(usize, Vec<Tenant>)>,
    taken: HashMap<usize, usize>,
}

impl<'a> Walk<'a> {
    fn new(program: &'a Program, plan: &'a Plan, method: &'a Method) -> Self {
        let mut walk = Walk {
            program,
            plan,
            method,
            known: vec![false; method.values.len()],
            places: HashSet::new(),
            found: Vec::new(),
            appended: HashSet::new(),
            inside: Vec::new(),
            taken: HashMap::new(),
        };
        plan.inputs.iter().for_each(|id| walk.write(*id));
        walk
    }

    fn tensor(&self, id: usize) -> Option<&'a Tensor> {
        match self.plan.values.get(id) {
            Some(PlanValue::Tensor(tensor)) => Some(tensor),
            _ => None,
        }
    }

    fn items(&self, id: usize) -> Vec<usize> {
        match self.method.values.get(id) {
            Some(Value::List(items)) => items.clone(),
            _ => vec![id],
        }
    }

    fn read(&mut self, id: usize) {
        for id in self.items(id) {
            let Some(tensor) = self.tensor(id) else { continue };
            let Some(place) = tensor.allocation.filter(|_| !self.known[id]) else { continue };
            // What nothing computes at a place that was written is another tensor under other sizes.
            if tensor.data != 0 || tensor.external.is_some() || !self.places.contains(&key(place)) {
                self.keep(id);
            }
        }
    }

    fn keep(&mut self, id: usize) {
        self.found.push(id);
        self.write(id);
    }

    fn write(&mut self, id: usize) {
        for id in self.items(id) {
            if let Some(known) = self.known.get_mut(id) {
                *known = true;
            }
            if let Some(place) = self.tensor(id).and_then(|tensor| tensor.allocation) {
                self.places.insert(key(place));
            }
        }
    }

    /// A value that an operator changes where it is. A constant is a buffer then, too.
    fn change(&mut self, id: usize) {
        let is_constant = self.tensor(id).is_some_and(|tensor| tensor.data != 0 || tensor.external.is_some());
        if is_constant && !self.known[id] {
            self.keep(id);
        }
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Call(_, call) if call.name == COPY_ROW => {
                call.args.iter().skip(1).for_each(|id| self.read(*id));
                call.args.iter().take(1).for_each(|id| self.write(*id));
            }
            Step::Call(_, call) => {
                let Some((result, before)) = call.args.split_last() else { return Ok(()) };
                before.iter().for_each(|id| self.read(*id));
                for place in ops::changed(&call.name) {
                    let Some(id) = before.get(*place) else { continue };
                    self.change(*id);
                    self.appended.insert(*id);
                }
                if before.contains(result) {
                    self.change(*result);
                }
                self.write(*result);
            }
            Step::Delegate(delegate, args) => self.delegate(*delegate, args)?,
            Step::Move { from, to } => {
                self.read(*from);
                self.write(*to);
            }
            Step::Jump { condition, .. } => self.read(*condition),
            Step::Nothing => {}
        }
        Ok(())
    }

    fn delegate(&mut self, index: usize, args: &[usize]) -> Result<(), String> {
        let taken = match self.taken.get(&index) {
            Some(taken) => *taken,
            None => {
                let delegate = &self.plan.delegates[index];
                // What cannot be read is told where it is imported.
                let read = back_ends::find(&delegate.id).and_then(|b| b.read(&delegate.data).ok());
                let taken = read.as_ref().map_or(0, |graph| graph.inputs());
                if let Some(graph) = read {
                    let given = args.len().saturating_sub(taken);
                    let tenants = graph.kept(self.program, given)?;
                    self.inside.push((index, tenants));
                }
                self.taken.insert(index, taken);
                taken
            }
        };
        let (inputs, outputs) = args.split_at(taken.min(args.len()));
        inputs.iter().for_each(|id| self.read(*id));
        outputs.iter().for_each(|id| self.write(*id));
        Ok(())
    }
}

fn key(place: Allocation) -> (u32, u64) {
    (place.memory, place.offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_come_before_rows() {
        let bytes: Bytes = (0..12u8).collect::<Vec<_>>().into();
        // Two rows of three heads of two elements.
        assert_eq!(heads_first(&bytes, &[1, 2, 3, 2])[..], [0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11]);
    }

    #[test]
    fn names_are_like_no_others() {
        let tenant = || Tenant {
            element: crate::graph::ElementType::Bool,
            dims: vec![4],
            first: None,
            by_heads: false,
        };
        let of = |told: &[Option<&str>]| {
            let all = told.iter().map(|name| (Holder::Plan(0), name.map(str::to_owned), tenant())).collect();
            named(all).into_iter().map(|buffer| buffer.name).collect::<Vec<_>>()
        };
        assert_eq!(of(&[None, Some("cache"), Some("cache")]), ["state0", "cache", "state2"]);
        assert_eq!(of(&[Some("input0"), Some("a.next")]), ["state0", "state1"]);
    }
}
