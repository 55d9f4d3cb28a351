//! The addresses that each invocation of a workgroup may access, as far as they can be computed.
//!
//! An index is evaluated for every invocation of the workgroup as `base + sum of coefficient * symbol` in wrapping
//! 32-bit arithmetic. Ids of the invocation are numbers, loop counters with constant bounds are enumerated, values
//! that are the same for the whole workgroup are symbols, anything else is unknown.

use std::collections::{BTreeMap, HashMap};

use spirv::{BuiltIn, Decoration, Op};

use super::{
    lanes::Lane,
    uniform::{Uniformity, root_variable},
};
use crate::{cfg::Function, decorations::Decorations, program::ParsedModule, types::Type};

/// Loop counters longer than this are not enumerated.
const MAX_TRIP: usize = 4096;
/// Expressions deeper than this are unknown.
const MAX_DEPTH: u32 = 200;

/// A symbol: a value that is fixed for a whole workgroup, or one that changes as the kernel runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Symbol {
    /// The same for all invocations during the whole run.
    Fixed(u32),
    /// Component of a built-in that is the same for the whole workgroup.
    BuiltIn(u32, u32),
    /// May differ from moment to moment.
    Varying(u32),
}

/// `base + sum of coefficient * symbol`, modulo 2^32.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct Linear {
    pub base: u32,
    pub terms: BTreeMap<Symbol, u32>,
}

impl Linear {
    fn constant(base: u32) -> Self {
        Linear { base, terms: BTreeMap::new() }
    }

    fn symbol(symbol: Symbol) -> Self {
        Linear { base: 0, terms: BTreeMap::from([(symbol, 1)]) }
    }

    fn known(&self) -> Option<u32> {
        self.terms.is_empty().then_some(self.base)
    }

    fn plus(&self, other: &Linear, factor: u32) -> Linear {
        let mut sum = self.clone();
        sum.base = sum.base.wrapping_add(other.base.wrapping_mul(factor));
        for (symbol, coefficient) in &other.terms {
            let entry = sum.terms.entry(*symbol).or_insert(0);
            *entry = entry.wrapping_add(coefficient.wrapping_mul(factor));
        }
        sum.terms.retain(|_, c| *c != 0);
        sum
    }
}

/// What one invocation may access.
#[derive(Clone, Debug)]
pub(super) struct Path {
    /// A value per index, `None` where unknown.
    pub at: Vec<Option<Linear>>,
    /// The bits of the word there; all of them for anything but packed values.
    pub bits: u32,
}

/// What a class of accesses goes through: index expressions, outermost first, and the part of the word there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Address {
    pub indices: Vec<u32>,
    pub lane: Option<Lane>,
}

/// Evaluates indices for one function.
pub(super) struct Evaluator<'a, 'w> {
    pub program: &'a ParsedModule<'w>,
    pub function: &'a Function,
    pub decorations: &'a Decorations<'w>,
    pub uniformity: &'a Uniformity,
    pub local_size: [u32; 3],
    /// Evaluations left before everything counts as unknown.
    pub budget: &'a std::cell::Cell<usize>,
}

/// One invocation, with the loop counters fixed so far.
struct Scene {
    local_id: [u32; 3],
    counters: HashMap<u32, Linear>,
    memo: HashMap<u32, Option<Linear>>,
}

impl Evaluator<'_, '_> {
    /// Every path that each invocation may take to `address` in `block`; the outer list is by local index.
    ///
    /// `None` if the budget ran out.
    pub fn paths(&self, block: usize, address: &Address) -> Option<Vec<Vec<Path>>> {
        let mut counters = Vec::new();
        let expressions = address.indices.iter().copied().chain(address.lane.and_then(|l| l.shift));
        expressions.for_each(|i| self.counters_in(i, &mut counters));
        counters.sort_by_key(|c| self.program.module.def_index(*c));
        let (once, guards): (Vec<_>, Vec<_>) =
            self.guards(block, &counters).into_iter().partition(|g| g.once);
        let [x, y, z] = self.local_size;
        let mut all = Vec::new();
        for local in 0..x.checked_mul(y)?.checked_mul(z)? {
            let local_id = [local % x, local / x % y, local / (x * y)];
            let mut scene = Scene { local_id, counters: HashMap::new(), memo: HashMap::new() };
            let mut found = Vec::new();
            if once.iter().any(|g| self.blocks(&mut scene, g)) {
                all.push(found);
                continue;
            }
            self.enumerate(&mut scene, &counters, &guards, address, &mut found)?;
            all.push(found);
        }
        Some(all)
    }

    fn enumerate(
        &self,
        scene: &mut Scene,
        counters: &[u32],
        guards: &[Guard],
        address: &Address,
        found: &mut Vec<Path>,
    ) -> Option<()> {
        self.budget.set(self.budget.get().saturating_sub(1));
        let Some((&counter, rest)) = counters.split_first() else {
            if !guards.iter().any(|g| self.blocks(scene, g)) {
                found.push(self.path(scene, address));
            }
            return (self.budget.get() > 0).then_some(());
        };
        for value in self.counter_values(scene, counter) {
            scene.counters.insert(counter, value);
            scene.memo.clear();
            self.enumerate(scene, rest, guards, address, found)?;
        }
        scene.counters.remove(&counter);
        scene.memo.clear();
        Some(())
    }

    fn path(&self, scene: &mut Scene, address: &Address) -> Path {
        let at = address.indices.iter().map(|i| self.eval(scene, *i, 0)).collect();
        let bits = address.lane.map_or(u32::MAX, |lane| match lane.shift {
            Some(shift) => lane.bits(self.eval(scene, shift, 0).and_then(|v| v.known())),
            None => lane.bits(Some(0)),
        });
        Path { at, bits }
    }

    /// The values of a loop counter: all of them if its bounds are known, else one symbolic value.
    fn counter_values(&self, scene: &mut Scene, counter: u32) -> Vec<Linear> {
        let Some(shape) = self.counter_shape(counter) else { return vec![] };
        let start = self.eval(scene, shape.start, 0);
        let mut values = Vec::new();
        let mut next = start.as_ref().and_then(Linear::known);
        while let (Some(value), Some((condition, stay))) = (next, shape.condition) {
            scene.counters.insert(counter, Linear::constant(value));
            scene.memo.clear();
            let go = self.eval(scene, condition, 0).and_then(|v| v.known());
            values.push(Linear::constant(value));
            match go {
                Some(go) if (go != 0) != stay => return values,
                Some(_) if values.len() < MAX_TRIP => next = Some(value.wrapping_add(shape.step)),
                _ => break,
            }
        }
        scene.counters.remove(&counter);
        scene.memo.clear();
        let symbol = Linear::symbol(Symbol::Varying(counter));
        // An unknown start makes the whole counter unknown: a step of one covers every value.
        vec![start.map_or_else(|| symbol.clone(), |s| s.plus(&symbol, shape.step))]
    }

    fn counter_shape(&self, phi: u32) -> Option<Counter> {
        let module = &self.program.module;
        let inst = module.def(phi).filter(|d| d.op == Op::Phi)?;
        let block = self.function.block_of_inst(module.def_index(phi)?)?;
        let (merge, _) = self.function.blocks[block].loop_merge?;
        let (mut start, mut step) = (None, None);
        for pair in module.operands(inst).chunks(2) {
            let parent = self.function.block_of_label(pair[1])?;
            if self.function.dominates(block, parent) {
                let add = module.def(pair[0]).filter(|d| d.op == Op::IAdd)?;
                let [left, right] = *module.operands(add) else { return None };
                let amount = if left == phi { right } else { left };
                let amount = module.constant_u32(amount).filter(|_| left == phi || right == phi)?;
                step = (step.is_none() || step == Some(amount)).then_some(amount);
                step?;
            } else if start.replace(pair[0]).is_some() {
                return None;
            }
        }
        let end = &module.insts()[self.function.blocks[block].last];
        let condition = (end.op == Op::BranchConditional).then(|| {
            let words = module.operands(end);
            let leaves_if_true = self.function.block_of_label(words[1]) == Some(merge);
            let leaves_if_false = self.function.block_of_label(words[2]) == Some(merge);
            (leaves_if_true != leaves_if_false).then_some((words[0], leaves_if_false))
        });
        let is_32_bit = matches!(self.program.types.get(inst.ty), Some(Type::Int { width: 32 }));
        is_32_bit.then_some(Counter { start: start?, step: step?, condition: condition.flatten() })
    }

    /// Loop counters that an expression depends on, the counters in their start values included.
    fn counters_in(&self, root: u32, found: &mut Vec<u32>) {
        let module = &self.program.module;
        let mut seen = std::collections::HashSet::new();
        let mut stack = vec![root];
        while let Some(id) = stack.pop() {
            self.budget.set(self.budget.get().saturating_sub(1));
            let Some(def) = module.def(id).filter(|d| seen.insert(d.id) && d.ty != 0) else { continue };
            if def.op == Op::Phi {
                if let Some(shape) = self.counter_shape(id) {
                    stack.push(shape.start);
                    if !found.contains(&id) {
                        found.push(id);
                    }
                }
                continue;
            }
            stack.extend(module.uses(def).map(|used| used.id).filter(|id| *id != def.ty));
        }
    }

    /// Conditions that must hold where the block runs, as far as they depend on the given counters only, or are
    /// those of loops around the block, which must hold when the loop starts.
    fn guards(&self, block: usize, counters: &[u32]) -> Vec<Guard> {
        let module = &self.program.module;
        let mut guards = Vec::new();
        let mut at = block;
        while let Some(up) = self.function.idom[at].filter(|up| *up != at && self.budget.get() > 0) {
            let end = &module.insts()[self.function.blocks[up].last];
            if end.op == Op::BranchConditional {
                let words = module.operands(end);
                for (label, wanted) in [(words[1], true), (words[2], false)] {
                    // Only the edge itself decides: the block behind it has no other way in.
                    let behind = self.function.block_of_label(label);
                    let only_way = behind.is_some_and(|b| {
                        self.function.blocks[b].preds == [up] && self.function.dominates(b, block)
                    });
                    if only_way && words[1] != words[2] {
                        guards.extend(self.guard(up, words[0], wanted, counters));
                    }
                }
            }
            at = up;
        }
        guards
    }

    /// The condition at the end of a block as a guard, if its value can be told from the counters.
    fn guard(&self, block: usize, condition: u32, wanted: bool, counters: &[u32]) -> Option<Guard> {
        let mut needed = Vec::new();
        self.counters_in(condition, &mut needed);
        let here = |c: &u32| {
            let index = self.program.module.def_index(*c);
            index.and_then(|i| self.function.block_of_inst(i)) == Some(block)
        };
        let (own, outer): (Vec<u32>, Vec<u32>) = needed.iter().partition(|c| !counters.contains(c));
        let once = outer.is_empty();
        match own.as_slice() {
            [] => Some(Guard { condition, wanted, start: None, once }),
            // Whoever is inside of a loop passed its condition with the counter's first value. Other counters of the
            // same loop have moved on since.
            [phi] if here(phi) && !outer.iter().any(here) => {
                let shape = self.counter_shape(*phi)?;
                let inside = shape.condition == Some((condition, wanted));
                inside.then_some(Guard { condition, wanted, start: Some((*phi, shape.start)), once })
            }
            _ => None,
        }
    }

    /// Whether the guard keeps this invocation out.
    fn blocks(&self, scene: &mut Scene, guard: &Guard) -> bool {
        if let Some((phi, start)) = guard.start {
            let Some(first) = self.eval(scene, start, 0) else { return false };
            scene.counters.insert(phi, first);
            scene.memo.clear();
        }
        let value = self.eval(scene, guard.condition, 0).and_then(|v| v.known());
        if let Some((phi, _)) = guard.start {
            scene.counters.remove(&phi);
            scene.memo.clear();
        }
        value.is_some_and(|v| (v != 0) != guard.wanted)
    }

    fn eval(&self, scene: &mut Scene, id: u32, depth: u32) -> Option<Linear> {
        if let Some(value) = scene.counters.get(&id) {
            return Some(value.clone());
        }
        if let Some(value) = scene.memo.get(&id) {
            return value.clone();
        }
        self.budget.set(self.budget.get().saturating_sub(1));
        if depth > MAX_DEPTH || self.budget.get() == 0 {
            return None;
        }
        let value = self.eval_new(scene, id, depth).or_else(|| self.as_symbol(id));
        scene.memo.insert(id, value.clone());
        value
    }

    /// A value that is the same for the whole workgroup is a symbol; others are unknown.
    fn as_symbol(&self, id: u32) -> Option<Linear> {
        if !self.uniformity.is_uniform(self.program, id) {
            return None;
        }
        let index = self.program.module.def_index(id)?;
        let block = self.function.block_of_inst(index);
        let fixed = block.is_none_or(|b| !self.uniformity.in_cycle[b]);
        Some(Linear::symbol(if fixed { Symbol::Fixed(id) } else { Symbol::Varying(id) }))
    }

    fn eval_new(&self, scene: &mut Scene, id: u32, depth: u32) -> Option<Linear> {
        let module = &self.program.module;
        let def = module.def(id)?;
        let words = module.operands(def);
        match def.op {
            Op::ConstantTrue => return Some(Linear::constant(1)),
            Op::ConstantFalse => return Some(Linear::constant(0)),
            Op::Constant | Op::ConstantNull => return module.constant_u32(id).map(Linear::constant),
            Op::CompositeExtract if words.len() == 2 => {
                let load = module.def(words[0]).filter(|d| d.op == Op::Load)?;
                return self.built_in(scene, module.operands(load)[0], Some(words[1]));
            }
            Op::Load => return self.load(scene, words[0]),
            Op::Phi => return None,
            _ => {}
        }
        let narrow = matches!(self.program.types.get(def.ty), Some(Type::Int { width: 32 } | Type::Bool));
        if !narrow || words.len() > 8 || def.op == Op::FunctionCall {
            return None;
        }
        if def.op == Op::ExtInst {
            let known = words[2..].iter().map(|w| self.eval(scene, *w, depth + 1)?.known());
            let known = known.collect::<Option<Vec<u32>>>()?;
            return super::fold::extended(self.program, words[0], words[1], &known).map(Linear::constant);
        }
        let same_width = |id: u32| {
            self.program.module.def(id).is_some_and(|d| {
                matches!(self.program.types.get(d.ty), Some(Type::Int { width: 32 } | Type::Bool))
            })
        };
        if !words.iter().all(|w| same_width(*w)) {
            return None;
        }
        let values = words.iter().map(|w| self.eval(scene, *w, depth + 1)).collect::<Vec<_>>();
        combined(def.op, &values)
    }

    fn load(&self, scene: &Scene, pointer: u32) -> Option<Linear> {
        let module = &self.program.module;
        let def = module.def(pointer)?;
        if def.op == Op::AccessChain {
            let words = module.operands(def);
            let component = (words.len() == 2).then(|| module.constant_u32(words[1])).flatten()?;
            return self.built_in(scene, words[0], Some(component));
        }
        self.built_in(scene, pointer, None)
    }

    /// The value of a component of a built-in input variable.
    fn built_in(&self, scene: &Scene, variable: u32, component: Option<u32>) -> Option<Linear> {
        let root = root_variable(self.program, variable).filter(|r| *r == variable)?;
        let built_in = self.decorations.value(root, Decoration::BuiltIn)?;
        let [x, y, z] = scene.local_id;
        let is = |b: BuiltIn| built_in == b as u32;
        let at = component.unwrap_or(0) as usize;
        if is(BuiltIn::LocalInvocationIndex) && component.is_none() {
            let [sx, sy, _] = self.local_size;
            return Some(Linear::constant((z * sy + y) * sx + x));
        }
        let component = component?;
        if is(BuiltIn::LocalInvocationId) {
            return scene.local_id.get(at).map(|v| Linear::constant(*v));
        }
        let symbol = |b: BuiltIn| Linear::symbol(Symbol::BuiltIn(b as u32, component));
        if is(BuiltIn::GlobalInvocationId) {
            let own = Linear::constant(*scene.local_id.get(at)?);
            return Some(own.plus(&symbol(BuiltIn::WorkgroupId), *self.local_size.get(at)?));
        }
        match () {
            () if is(BuiltIn::WorkgroupId) => Some(symbol(BuiltIn::WorkgroupId)),
            () if is(BuiltIn::NumWorkgroups) => Some(symbol(BuiltIn::NumWorkgroups)),
            () if is(BuiltIn::WorkgroupSize) => self.local_size.get(at).map(|s| Linear::constant(*s)),
            () => None,
        }
    }
}

/// A loop counter `phi(start, phi + step)` with the condition of its loop, and the condition's value that stays in.
struct Counter {
    start: u32,
    step: u32,
    condition: Option<(u32, bool)>,
}

/// A condition that must have this value where an access happens.
struct Guard {
    condition: u32,
    wanted: bool,
    /// A counter to be replaced by its start value first.
    start: Option<(u32, u32)>,
    /// Whether it depends on no other counter.
    once: bool,
}

/// The result of an instruction on 32-bit numbers of which some are known.
fn combined(op: Op, values: &[Option<Linear>]) -> Option<Linear> {
    if let [Some(left), Some(right)] = values {
        match (op, left.known(), right.known()) {
            (Op::IAdd, ..) => return Some(left.plus(right, 1)),
            (Op::ISub, ..) => return Some(left.plus(right, u32::MAX)),
            (Op::IMul, Some(factor), _) => return Some(Linear::default().plus(right, factor)),
            (Op::IMul, _, Some(factor)) => return Some(Linear::default().plus(left, factor)),
            (Op::ShiftLeftLogical, _, Some(by @ 0..=31)) => {
                return Some(Linear::default().plus(left, 1 << by));
            }
            _ => {}
        }
    }
    if let (Op::Select, [Some(condition), yes, no]) = (op, values) {
        return condition.known().and_then(|c| if c != 0 { yes.clone() } else { no.clone() });
    }
    let known = values.iter().map(|v| v.as_ref()?.known()).collect::<Option<Vec<u32>>>()?;
    super::fold::core(op, &known).map(Linear::constant)
}
