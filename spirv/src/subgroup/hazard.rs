//! The search for memory that invocations of a workgroup exchange without a barrier between them.
//!
//! A kernel's run falls into intervals, each from the start or a barrier to the next barriers. Two accesses may
//! happen at the same time if both can be reached from one such starting point without passing a barrier. They
//! conflict if one writes, and two different invocations may access the same place. A conflict inside an interval is
//! a hazard: the kernel is right only if the invocations run in lockstep.
//!
//! Workgroup memory: what cannot be proved to be apart counts as a conflict. Storage buffers: only a proved overlap
//! counts, since kernels address them through values that are unknown here.

use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::{BTreeSet, HashMap, HashSet},
};

use spirv::{Op, Scope};

use super::{
    access::{
        Access, Unknown, accesses_shared, accesses_workgroup, aliased_shared_memory, collect, stored_constant,
    },
    address::{Address, Evaluator, Linear, Path, Symbol},
    barrier::{UNIFORM_MEMORY, WORKGROUP_MEMORY},
    lanes::Lanes,
    replica::{Equal, dimensions_of_no_value, replica_dimensions},
    uniform::Uniformity,
};
use crate::{cfg::Function, decorations::Decorations, entry::Entry, module::Inst, program::ParsedModule};

/// Expression evaluations per kernel before addresses count as unknown.
const EVAL_BUDGET: usize = 1_000_000;
/// Comparisons of addresses per kernel before the rest counts as conflicts.
const COMPARE_BUDGET: usize = 8_000_000;
/// Paths to packed values that are compared at once, bit by bit.
const MAX_PACKED: usize = 1 << 15;
/// Events looked at per kernel before it counts as one with hazards.
const STEP_BUDGET: usize = 20_000_000;

/// Memory semantics bits: acquire, release, both, sequential.
const ORDERING: u32 = 0x2 | 0x4 | 0x8 | 0x10;

/// What happens in a block, in order: accesses, barriers, and places where a barrier could be.
#[derive(Clone, Copy, Debug)]
enum Event {
    Access(usize),
    Barrier { shared: bool, buffers: bool },
    Place(usize),
}

/// The memory accesses of one entry point, ready to be asked about barriers.
pub(super) struct Analysis<'a, 'w> {
    pub program: &'a ParsedModule<'w>,
    pub function: &'a Function,
    pub uniformity: Uniformity,
    pub accesses: Vec<Access>,
    /// Instruction indices before which a barrier would be legal.
    pub places: Vec<usize>,
    events: Vec<Vec<Event>>,
    decorations: &'a Decorations<'w>,
    local_size: [u32; 3],
    classes: Vec<Class>,
    /// By local index: the first invocation that this one is a replica of.
    replica_of: Vec<usize>,
    conflicts: RefCell<HashMap<(usize, usize, bool), bool>>,
    repeats: RefCell<HashMap<usize, bool>>,
    evals: Cell<usize>,
    compares: Cell<usize>,
    steps: Cell<usize>,
}

/// Accesses with the same addresses.
struct Class {
    block: usize,
    address: Address,
    /// What each invocation may access, `None` if that is too much; computed when a question needs it, for kernels
    /// with the barriers they need ask about few of their accesses.
    paths: OnceCell<Option<Vec<Vec<Path>>>>,
}

/// A conflict that no barrier separates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Hazard {
    /// Indices into [`Analysis::accesses`].
    pub first: usize,
    pub second: usize,
}

impl<'a, 'w> Analysis<'a, 'w> {
    /// Collects the accesses of an entry point; `None` if it shares no memory that it writes.
    pub fn of(
        program: &'a ParsedModule<'w>,
        entry: &Entry,
        decorations: &'a Decorations<'w>,
    ) -> Result<Option<Self>, Unknown> {
        let functions = program.call_tree(entry.function);
        let alone = entry.local_size.iter().product::<u32>() == 1;
        let Some(&function) = functions.first().filter(|_| !alone) else { return Ok(None) };
        if !functions.iter().any(|f| accesses_shared(program, f)) {
            return Ok(None);
        }
        if aliased_shared_memory(program, decorations) {
            return Err("its workgroup variables overlay each other".to_owned());
        }
        if functions.len() > 1 {
            // In storage buffers only an overlap that is proved counts, and none is across calls.
            let shares = functions.iter().any(|f| accesses_workgroup(program, f));
            let reason = "it calls functions, which this analysis does not follow";
            return if shares { Err(reason.to_owned()) } else { Ok(None) };
        }
        let uniformity = Uniformity::of(program, function, decorations)
            .ok_or("its control flow is too large, or has a loop without an exit")?;
        let (accesses, classes) = classified(program, function)?;
        let local_size = entry.local_size;
        let (conflicts, repeats, evals) = (RefCell::default(), RefCell::default(), Cell::new(EVAL_BUDGET));
        let (compares, steps) = (Cell::new(COMPARE_BUDGET), Cell::new(STEP_BUDGET));
        let (places, events) = (Vec::new(), Vec::new());
        let replicas = replica_dimensions(program, function, decorations, local_size, Equal::SharedStores);
        let replica_of = first_replicas(local_size, replicas);
        let mut this = Analysis {
            program,
            function,
            uniformity,
            accesses,
            places,
            events,
            decorations,
            local_size,
            classes,
            replica_of,
            conflicts,
            repeats,
            evals,
            compares,
            steps,
        };
        this.places = this.find_places();
        this.events = this.find_events();
        Ok(Some(this))
    }

    /// The hazards that remain if barriers stand at the chosen places.
    pub fn hazards(&self, chosen: &[bool]) -> BTreeSet<Hazard> {
        let mut hazards = BTreeSet::new();
        for shared in [true, false] {
            let starts = self.starts(chosen, shared);
            let mut done: HashSet<BTreeSet<usize>> = HashSet::new();
            for (block, from) in starts {
                let together = self.reach(block, from, chosen, shared);
                let pairs = together.len() * together.len();
                self.steps.set(self.steps.get().saturating_sub(pairs));
                if self.steps.get() == 0 || !done.insert(together.clone()) {
                    continue;
                }
                for &first in together.iter().filter(|a| self.accesses[**a].write) {
                    for &second in &together {
                        // Two writes meet twice in these loops; once is enough.
                        if self.accesses[second].write && second < first {
                            continue;
                        }
                        if self.conflict(first, second) {
                            hazards.insert(Hazard { first, second });
                        }
                    }
                }
            }
        }
        if self.steps.get() == 0 && !self.accesses.is_empty() {
            // Not everything was looked at: no claim that the kernel is free of hazards.
            hazards.insert(Hazard { first: 0, second: 0 });
        }
        hazards
    }

    /// How much of the largest share of its budgets this analysis has used, in percent.
    pub fn effort(&self) -> usize {
        let used = |left: &Cell<usize>, all: usize| (all - left.get()) * 100 / all;
        used(&self.evals, EVAL_BUDGET)
            .max(used(&self.compares, COMPARE_BUDGET))
            .max(used(&self.steps, STEP_BUDGET))
    }

    fn starts(&self, chosen: &[bool], shared: bool) -> Vec<(usize, usize)> {
        let mut starts = vec![(0, 0)];
        for (block, events) in self.events.iter().enumerate() {
            for (at, event) in events.iter().enumerate() {
                if separates(event, chosen, shared) {
                    starts.push((block, at + 1));
                }
            }
        }
        starts
    }

    /// Accesses of one kind of memory that can be reached from an event without passing a barrier.
    fn reach(&self, block: usize, from: usize, chosen: &[bool], shared: bool) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut seen = vec![false; self.function.blocks.len()];
        let mut stack = vec![(block, from)];
        while let Some((block, from)) = stack.pop() {
            let cost = 1 + self.events[block].len() - from;
            self.steps.set(self.steps.get().saturating_sub(cost));
            if self.steps.get() == 0 {
                break;
            }
            if from == 0 && std::mem::replace(&mut seen[block], true) {
                continue;
            }
            let mut open = true;
            for event in &self.events[block][from..] {
                match event {
                    Event::Access(access) if self.accesses[*access].shared == shared => {
                        found.insert(self.accesses[*access].like);
                    }
                    event if separates(event, chosen, shared) => {
                        open = false;
                        break;
                    }
                    _ => {}
                }
            }
            if open {
                stack.extend(self.function.blocks[block].succs.iter().map(|s| (*s, 0)));
            }
        }
        found
    }

    fn conflict(&self, first: usize, second: usize) -> bool {
        let (a, b) = (&self.accesses[first], &self.accesses[second]);
        if !a.write && !b.write {
            return false;
        }
        let both_atomic = a.atomic && b.atomic;
        // Several invocations that store one constant leave that constant, whoever is last.
        let idempotent = a.write && b.write && a.constant.is_some() && a.constant == b.constant;
        let both_write = a.write && b.write;
        if a.variable != b.variable || both_atomic || idempotent || (!a.shared && both_write) {
            return false;
        }
        let key = (a.class.min(b.class), a.class.max(b.class), both_write);
        let known = self.conflicts.borrow().get(&key).copied();
        let conflict = known.unwrap_or_else(|| {
            let overlap = self.overlap(key.0, key.1, both_write.then_some(self.replica_of.as_slice()));
            let conflict = if a.shared { overlap != Overlap::Never } else { overlap == Overlap::Proved };
            self.conflicts.borrow_mut().insert(key, conflict);
            conflict
        });
        conflict && !(first == second && self.repeats(first))
    }

    /// Whether all invocations that get to the same place by this store, or by those like it, leave the same values.
    ///
    /// They do if they differ only in dimensions that the values do not depend on, and store once: then it does not
    /// matter which of them is last, and no earlier value comes back.
    fn repeats(&self, store: usize) -> bool {
        if let Some(known) = self.repeats.borrow().get(&store) {
            return *known;
        }
        let class = self.accesses[store].class;
        let equal =
            self.accesses.iter().filter(|a| a.like == store).map(|a| &self.program.module.insts()[a.inst]);
        let values: Option<Vec<u32>> =
            equal.map(|i| (i.op == Op::Store).then(|| self.program.module.operands(i)[1])).collect();
        let free = match values {
            Some(values) if !self.uniformity.in_cycle[self.classes[class].block] => dimensions_of_no_value(
                self.program,
                self.function,
                self.decorations,
                self.local_size,
                &values,
            ),
            _ => [false; 3],
        };
        let replica_of = first_replicas(self.local_size, free);
        let repeats = free != [false; 3] && self.overlap(class, class, Some(&replica_of)) == Overlap::Never;
        self.repeats.borrow_mut().insert(store, repeats);
        repeats
    }

    /// Where barriers would be legal and may help: in uniform blocks, at the start, between accesses that conflict,
    /// and at the end of blocks with accesses.
    fn find_places(&self) -> Vec<usize> {
        let mut accesses_at: HashMap<usize, Vec<usize>> = HashMap::new();
        self.accesses.iter().enumerate().for_each(|(n, a)| accesses_at.entry(a.inst).or_default().push(n));
        let mut places = BTreeSet::new();
        let op = |index: usize| self.program.module.insts()[index].op;
        for (number, block) in self.function.blocks.iter().enumerate() {
            if self.uniformity.non_uniform[number] || !self.function.reachable(number) {
                continue;
            }
            let head = |op| matches!(op, Op::Label | Op::Phi | Op::Variable | Op::Line | Op::NoLine);
            places.extend((block.first..=block.last).find(|i| !head(op(*i))));
            let mut since: BTreeSet<usize> = BTreeSet::new();
            for index in block.first..=block.last {
                for access in accesses_at.get(&index).into_iter().flatten() {
                    let access = self.accesses[*access].like;
                    if since
                        .iter()
                        .any(|before| self.conflict(*before, access) || self.conflict(access, *before))
                    {
                        places.insert(index);
                        since.clear();
                    }
                    since.insert(access);
                }
                let ends = index == block.last || matches!(op(index), Op::LoopMerge | Op::SelectionMerge);
                if ends && !since.is_empty() {
                    places.insert(index);
                    break;
                }
            }
        }
        places.into_iter().collect()
    }

    fn find_events(&self) -> Vec<Vec<Event>> {
        let place_at: HashMap<usize, usize> = self.places.iter().enumerate().map(|(n, i)| (*i, n)).collect();
        let mut accesses_at: HashMap<usize, Vec<usize>> = HashMap::new();
        self.accesses.iter().enumerate().for_each(|(n, a)| accesses_at.entry(a.inst).or_default().push(n));
        let in_block = |block: &crate::cfg::Block| {
            let mut events = Vec::new();
            for index in block.first..=block.last {
                events.extend(place_at.get(&index).map(|p| Event::Place(*p)));
                events.extend(accesses_at.get(&index).into_iter().flatten().map(|a| Event::Access(*a)));
                // A barrier that is there is legal, or the module is undefined anyway: all invocations reach it.
                events.extend(barrier(self.program, &self.program.module.insts()[index]));
            }
            events
        };
        self.function.blocks.iter().map(in_block).collect()
    }

    fn paths(&self, class: usize) -> Option<&Vec<Vec<Path>>> {
        let Class { block, address, paths } = &self.classes[class];
        let evaluate = || {
            let Analysis { program, function, decorations, uniformity, local_size, evals, .. } = self;
            let evaluator = Evaluator {
                program,
                function,
                decorations,
                uniformity,
                local_size: *local_size,
                budget: evals,
            };
            evaluator.paths(*block, address)
        };
        paths.get_or_init(evaluate).as_ref()
    }

    /// Whether two different invocations may access the same place through these classes of accesses.
    ///
    /// Invocations with the same `replica_of` count as one.
    fn overlap(&self, a: usize, b: usize, replica_of: Option<&[usize]>) -> Overlap {
        let who = |invocation: usize| replica_of.map_or(invocation, |r| r[invocation]);
        let (Some(a), Some(b)) = (self.paths(a), self.paths(b)) else { return Overlap::Possible };
        let all = || a.iter().chain(b).flatten();
        let depth = all().map(|p| p.at.len()).min().unwrap_or(0);
        // Packed values are compared bit by bit.
        let packed = all().any(|p| p.bits != u32::MAX);
        if packed && all().count() > MAX_PACKED {
            return Overlap::Possible;
        }
        let cost = all().count() * depth.max(1) * if packed { 32 } else { 1 };
        let Some(left) = self.compares.get().checked_sub(cost) else { return Overlap::Possible };
        self.compares.set(left);
        let masks: Vec<Option<u32>> =
            (0..depth).map(|i| comparable_bits(all().map(|p| p.at[i].as_ref()))).collect();
        let exact = masks.iter().all(|m| *m == Some(u32::MAX));
        let keys = |path: &Path| {
            let at = path.at.iter().zip(&masks);
            let at: Vec<u32> = at.map(|(v, m)| v.as_ref().map_or(0, |v| v.base) & m.unwrap_or(0)).collect();
            let bits = if packed { path.bits } else { 1 };
            (0..32).filter(move |b| bits >> b & 1 != 0).map(move |b| (at.clone(), b))
        };
        let mut owner: HashMap<(Vec<u32>, u32), Option<usize>> = HashMap::new();
        for (invocation, path) in
            a.iter().enumerate().flat_map(|(i, paths)| paths.iter().map(move |p| (i, p)))
        {
            for key in keys(path) {
                let entry = owner.entry(key).or_insert(Some(who(invocation)));
                if *entry != Some(who(invocation)) {
                    *entry = None;
                }
            }
        }
        let mut others = b.iter().enumerate().flat_map(|(i, paths)| paths.iter().map(move |p| (i, p)));
        let meets = others.any(|(invocation, path)| {
            keys(path).any(|key| owner.get(&key).is_some_and(|o| *o != Some(who(invocation))))
        });
        match (meets, exact) {
            (false, _) => Overlap::Never,
            (true, true) => Overlap::Proved,
            (true, false) => Overlap::Possible,
        }
    }
}

/// The accesses of a function, and the classes that they fall into.
fn classified(program: &ParsedModule<'_>, function: &Function) -> Result<(Vec<Access>, Vec<Class>), Unknown> {
    let (mut numbers, mut classes, mut accesses) = (HashMap::new(), Vec::new(), Vec::<Access>::new());
    let mut equal = HashMap::new();
    let lanes = Lanes::of(program, function);
    for (mut access, indices) in collect(program, function)? {
        let block = function.block_of_inst(access.inst).ok_or("an access outside of the blocks")?;
        let address = Address { indices, lane: lanes.lane(access.inst) };
        access.class = *numbers.entry((access.variable, block, address.clone())).or_insert_with(|| {
            classes.push(Class { block, address, paths: OnceCell::new() });
            classes.len() - 1
        });
        access.constant = stored_constant(program, access.inst);
        let next = accesses.len();
        access.like =
            *equal.entry((access.class, access.write, access.atomic, access.constant)).or_insert(next);
        accesses.push(access);
    }
    Ok((accesses, classes))
}

/// For each invocation, the one whose ids are the same but zero in the given dimensions.
fn first_replicas([x, y, z]: [u32; 3], replicas: [bool; 3]) -> Vec<usize> {
    let keep = |value: u32, dimension: usize| if replicas[dimension] { 0 } else { value };
    let one = |local: u32| {
        let (lx, ly, lz) = (keep(local % x, 0), keep(local / x % y, 1), keep(local / (x * y), 2));
        ((lz * y + ly) * x + lx) as usize
    };
    (0..x * y * z).map(one).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Overlap {
    Never,
    Possible,
    Proved,
}

/// The low bits in which values differ only by their bases; `None` if one value is unknown.
///
/// A symbol that is fixed for the workgroup cancels if all values have it equally often. Any other symbol moves the
/// value by multiples of its coefficient, so only the bits below the coefficient's lowest set bit can be compared.
fn comparable_bits<'v>(values: impl Iterator<Item = Option<&'v Linear>>) -> Option<u32> {
    let (mut fixed, mut moving, mut count) = (HashMap::<Symbol, (usize, u32, bool)>::new(), 0u32, 0usize);
    for value in values {
        let value = value?;
        count += 1;
        for (symbol, coefficient) in &value.terms {
            if matches!(symbol, Symbol::Varying(_)) {
                moving |= coefficient;
            }
            let entry = fixed.entry(*symbol).or_insert((0, *coefficient, true));
            entry.0 += 1;
            entry.2 &= entry.1 == *coefficient;
            entry.1 |= *coefficient;
        }
    }
    for (times, coefficients, equal) in fixed.values() {
        if *times != count || !equal {
            moving |= coefficients;
        }
    }
    Some(match moving {
        0 => u32::MAX,
        m => (1 << m.trailing_zeros()) - 1,
    })
}

fn separates(event: &Event, chosen: &[bool], for_shared: bool) -> bool {
    match *event {
        Event::Access(_) => false,
        Event::Barrier { shared, buffers } => {
            if for_shared {
                shared
            } else {
                buffers
            }
        }
        Event::Place(place) => chosen.get(place).copied().unwrap_or(false),
    }
}

/// What a barrier instruction of workgroup scope orders.
fn barrier(program: &ParsedModule<'_>, inst: &Inst) -> Option<Event> {
    if inst.op != Op::ControlBarrier {
        return None;
    }
    let words = program.module.operands(inst);
    let value = |i: usize| program.module.constant_u32(words[i]);
    let (execution, memory, semantics) = (value(0)?, value(1)?, value(2)?);
    let wide = |scope: u32| scope <= Scope::Workgroup as u32;
    let orders = wide(execution) && wide(memory) && semantics & ORDERING != 0;
    let (shared, buffers) = (semantics & WORKGROUP_MEMORY != 0, semantics & UNIFORM_MEMORY != 0);
    orders.then_some(Event::Barrier { shared, buffers })
}
