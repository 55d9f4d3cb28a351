//! The order in which a method's steps are put into the graph: jumps whose condition is known are followed, so that loops with
//! a known number of runs become that many copies; a branch that values decide becomes a node with two regions.

use std::{collections::HashMap, ops::Range};

use halite_ops::reduce::ReduceKind;

use super::{
    Result,
    buffers::Holder,
    names::COPY_ROW,
    ops,
    outside::Step,
    state::State,
    value::{Passed, Value},
};
use crate::graph::{ElementType, NodeOp, Region, TensorId};

/// Most steps that a method may take with all runs of its loops, and most branches inside of each other.
const MOST_STEPS: usize = 1 << 21;
const MOST_DEPTH: usize = 64;

/// What is known at some point of a method.
#[derive(Clone)]
struct Known {
    slots: Vec<Option<Passed>>,
    written: HashMap<(u32, u64), TensorId>,
    stacks: HashMap<usize, Vec<TensorId>>,
    kept: HashMap<Holder, TensorId>,
}

/// The two ways on from a step, and where they meet.
struct Fork {
    then: Range<usize>,
    other: Range<usize>,
    join: usize,
}

/// A method while it is walked.
pub(super) struct Running<'s, 'a> {
    state: &'s mut State<'a>,
    /// Steps that were taken so far.
    taken: usize,
}

/// Whether two ways leave a tensor at a place in memory: what either writes there, nobody behind them knows.
fn agree(first: &Known, second: &Known, place: &(u32, u64), tensor: TensorId) -> bool {
    [first, second].iter().all(|known| known.written.get(place) == Some(&tensor))
}

/// The buffers of delegates that two ways leave with different elements.
fn changed(before: &Known, first: &Known, second: &Known) -> Vec<Holder> {
    let mut holders: Vec<Holder> = before.kept.keys().copied().collect();
    holders.sort_unstable();
    holders.retain(|holder| first.kept[holder] != second.kept[holder]);
    holders
}

impl<'s, 'a> Running<'s, 'a> {
    pub(super) fn new(state: &'s mut State<'a>) -> Self {
        Running { state, taken: 0 }
    }

    /// Takes all steps.
    pub(super) fn all(&mut self) -> Result<()> {
        let count = self.state.method.steps.len();
        self.run(0..count, 0)
    }

    fn run(&mut self, range: Range<usize>, depth: usize) -> Result<()> {
        let mut at = range.start;
        while at < range.end {
            self.take(1)?;
            let method = self.state.method;
            let step = &method.steps[at];
            self.state.step(at, step)?;
            at = match step {
                Step::Jump { condition, to } => self.jump(at, *condition, *to, &range, depth)?,
                _ => at + 1,
            };
        }
        Ok(())
    }

    fn take(&mut self, count: usize) -> Result<()> {
        self.taken = self.taken.saturating_add(count);
        if self.taken > MOST_STEPS {
            let reason = format!("the method takes more than {MOST_STEPS} steps with all runs of its loops");
            return Err(self.state.scope.builder.unsupported(reason));
        }
        Ok(())
    }

    /// Where a jump leads; what both ways compute, if values decide.
    fn jump(
        &mut self,
        at: usize,
        condition: usize,
        to: usize,
        inside: &Range<usize>,
        depth: usize,
    ) -> Result<usize> {
        let known = match self.state.value(condition)? {
            Passed::Truth(truth) => truth,
            Passed::Number(number) => number != 0,
            Passed::Computed(base, more) => {
                let number = self.state.scope.known(Passed::Computed(base, more))?;
                number.int().is_some_and(|number| number != 0)
            }
            Passed::Float(_) => {
                return Err(self.state.scope.builder.invalid("a float decides where to go on"));
            }
            Passed::Tensor(tensor) => match self.state.scope.builder.ints(tensor) {
                Some(values) => values.iter().all(|value| *value != 0),
                None => {
                    let next = self.fork(at, tensor, to, depth)?;
                    return self.inside(next, inside);
                }
            },
        };
        self.inside(if known { at + 1 } else { to }, inside)
    }

    /// The step to go on with, which has to be one of those that are walked, or the one behind them.
    fn inside(&self, next: usize, inside: &Range<usize>) -> Result<usize> {
        if next < inside.start || next > inside.end {
            return Err(self.state.scope.builder.unsupported(format!("a jump to {next}, out of a branch")));
        }
        Ok(next)
    }

    /// The ways on from a jump to `to` that values decide.
    fn ways(&self, at: usize, to: usize) -> Option<Fork> {
        let method = self.state.method;
        if to <= at || to > method.steps.len() {
            return None;
        }
        let never =
            |id: usize| self.state.scope.slots[id].is_none() && method.values[id] == Value::Bool(false);
        Some(match &method.steps[to - 1] {
            // The end of the first way jumps over the second.
            Step::Jump { condition, to: end } if to - 1 > at && never(*condition) => {
                if *end < to {
                    return None;
                }
                Fork { then: at + 1..to - 1, other: to..*end, join: *end }
            }
            _ => Fork { then: at + 1..to, other: to..to, join: to },
        })
    }

    /// A branch that a tensor decides: a node with a region for each way. Gives where the ways meet.
    fn fork(&mut self, at: usize, condition: TensorId, to: usize, depth: usize) -> Result<usize> {
        let Some(ways) = self.ways(at, to) else {
            let reason = "a loop whose number of runs depends on values";
            return Err(self.state.scope.builder.unsupported(reason));
        };
        if depth >= MOST_DEPTH {
            let reason = format!("more than {MOST_DEPTH} branches inside of each other");
            return Err(self.state.scope.builder.unsupported(reason));
        }
        self.take(self.state.scope.slots.len() / 16 + self.state.method.steps.len() / 16)?;
        let location = self.state.scope.builder.location().clone();
        let condition = self.truth(condition)?;
        let before = self.known();
        let then = self.way(ways.then.clone(), &before, depth)?;
        let other = self.way(ways.other.clone(), &before, depth)?;
        self.state.scope.builder.at(location);
        self.join(condition, before, [then, other], &(at..ways.join))?;
        Ok(ways.join)
    }

    /// A boolean scalar: whether all elements are true.
    fn truth(&mut self, tensor: TensorId) -> Result<TensorId> {
        let builder = &mut self.state.scope.builder;
        let truth = builder.cast(tensor, ElementType::Bool)?;
        if builder.tensor(truth).elements() == 1 {
            return builder.reshape(truth, &[]);
        }
        let numbers = builder.cast(truth, halite_ops::DType::I32)?;
        let axes: Vec<usize> = (0..builder.dims(numbers).len()).collect();
        let least = builder.reduce(ReduceKind::Min, numbers, &axes, false)?;
        builder.cast(least, ElementType::Bool)
    }

    fn known(&self) -> Known {
        let State { written, stacks, scope, kept, .. } = &*self.state;
        Known {
            slots: scope.slots.clone(),
            written: written.clone(),
            stacks: stacks.clone(),
            kept: kept.clone(),
        }
    }

    fn restore(&mut self, known: Known) {
        self.state.scope.slots = known.slots;
        self.state.written = known.written;
        self.state.stacks = known.stacks;
        self.state.kept = known.kept;
    }

    /// One way in a region of its own, which stays without results, and what is known at its end.
    fn way(&mut self, steps: Range<usize>, before: &Known, depth: usize) -> Result<(Region, Known)> {
        self.restore(before.clone());
        self.state.scope.builder.region::<u64>(&[])?;
        self.run(steps, depth + 1)?;
        let filled: Vec<usize> = self.state.stacks.keys().copied().collect();
        filled.into_iter().try_for_each(|id| self.state.unstack(id))?;
        let known = self.known();
        Ok((self.state.scope.builder.close(&[]), known))
    }

    /// Values that steps of a branch compute and others read.
    fn joined(&self, steps: &Range<usize>) -> Vec<usize> {
        let method = self.state.method;
        let (mut live, mut made) = (vec![false; method.values.len()], vec![false; method.values.len()]);
        for (index, step) in method.steps.iter().enumerate() {
            let (noted, all) = match (steps.contains(&index), step) {
                (true, Step::Call(_, call)) if call.name == COPY_ROW => {
                    (&mut made, &call.args[..1.min(call.args.len())])
                }
                (true, Step::Call(_, call)) => {
                    for i in ops::changed(&call.name) {
                        call.args.get(*i).into_iter().for_each(|id| made[*id] = true);
                    }
                    (&mut made, &call.args[call.args.len().saturating_sub(1)..])
                }
                (true, Step::Delegate(_, args)) => (&mut made, &args[..]),
                (true, Step::Move { to, .. }) => (&mut made, std::slice::from_ref(to)),
                (false, Step::Call(_, call)) => (&mut live, &call.args[..]),
                (false, Step::Delegate(_, args)) => (&mut live, &args[..]),
                (false, Step::Move { from: id, .. } | Step::Jump { condition: id, .. }) => {
                    (&mut live, std::slice::from_ref(id))
                }
                _ => continue,
            };
            for id in all {
                noted[*id] = true;
                if let Value::List(items) = &method.values[*id] {
                    items.iter().for_each(|item| noted[*item] = true);
                }
            }
        }
        self.state.outputs().iter().for_each(|id| live[*id] = true);
        let buffers = (0..live.len()).filter(|id| self.state.is_buffer(*id));
        buffers.for_each(|id| live[id] = true);
        (0..live.len()).filter(|id| live[*id] && made[*id] && self.state.writable(*id).is_ok()).collect()
    }

    /// Goes on behind a branch with what either way made of the values that are read there.
    fn join(
        &mut self,
        condition: TensorId,
        before: Known,
        [(mut then, first), (mut other, second)]: [(Region, Known); 2],
        steps: &Range<usize>,
    ) -> Result<()> {
        let candidates = self.joined(steps);
        let mut after = before;
        after.written.retain(|place, tensor| agree(&first, &second, place, *tensor));
        let (mut joined, mut pairs) = (Vec::new(), Vec::new());
        for id in candidates {
            after.slots[id] = match [first.slots[id], second.slots[id]] {
                [Some(a), Some(b)] if a == b => Some(a),
                [Some(Passed::Tensor(a)), Some(Passed::Tensor(b))] => {
                    pairs.push((a, b));
                    joined.push(id);
                    None
                }
                [Some(a), Some(b)] => {
                    let reason = format!("a branch that decides a number: {a:?} or {b:?}");
                    return Err(self.state.scope.builder.unsupported(reason));
                }
                _ => None,
            };
        }
        let holders = changed(&after, &first, &second);
        pairs.extend(holders.iter().map(|holder| (first.kept[holder], second.kept[holder])));
        let mut types = Vec::new();
        for (a, b) in pairs {
            types.push(self.common_type(a, b)?);
            then.results.push(a);
            other.results.push(b);
        }
        after.stacks.clear();
        self.restore(after);
        if types.is_empty() {
            return Ok(());
        }
        let node = NodeOp::If(Box::new([then, other]));
        let made = self.state.scope.builder.push(node, &[condition], &types)?;
        let (values, kept) = made.split_at(joined.len());
        for (id, made) in joined.into_iter().zip(values) {
            self.state.scope.slots[id] = Some(Passed::Tensor(*made));
            self.state.note(id)?;
        }
        self.state.kept.extend(holders.into_iter().zip(kept.iter().copied()));
        Ok(())
    }

    /// The type and dimensions of what both ways give.
    fn common_type(&self, a: TensorId, b: TensorId) -> Result<(ElementType, Vec<u64>)> {
        let builder = &self.state.scope.builder;
        let of = |id| (builder.element(id), builder.dims(id).to_vec());
        if of(a) != of(b) {
            let what = builder.describe(&[a, b]);
            return Err(
                builder.unsupported(format!("a branch whose ways give tensors of different sizes: {what}"))
            );
        }
        Ok(of(a))
    }
}
