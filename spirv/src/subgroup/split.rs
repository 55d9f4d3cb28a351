//! Taking branches apart, so that a barrier becomes legal in the middle of what only some invocations do.
//!
//! Where all invocations reach `if (c) { first; second }`, and whoever runs `first` also runs `second`, the kernel
//! does the same as `if (c) { first } if (c) { second }`; between the two every invocation is back. What `second`
//! needs of `first` is computed again if that is cheap, and handed over by a phi if not.

use std::collections::HashMap;

use spirv::{Op, StorageClass};

use super::{
    hazard::{Analysis, Hazard},
    uniform::is_pure,
};
use crate::{
    decorations::Decorations, edit::Editor, module::Inst, types::Type, validate::validated,
    words::instruction,
};

/// Branches taken apart in one kernel.
const MAX_SPLITS: usize = 4;
/// Points tried for one split.
const MAX_POINTS: usize = 24;
/// Effort for all analyses of one kernel, in percent of what one may take.
const MAX_EFFORT: usize = 100;
/// Instructions that are computed again after a split.
const MAX_CLONES: usize = 64;
/// Expressions deeper than this are handed over.
const MAX_DEPTH: u32 = 32;

/// A module in which barriers can separate everything.
pub(super) struct Split {
    pub words: Vec<u32>,
    /// Branches taken apart.
    pub count: usize,
}

/// Takes branches apart until barriers can separate every hazard; `None` if that does not lead there.
pub(super) fn split(words: &[u32], entry: &str) -> Option<Split> {
    let mut words = words.to_vec();
    let mut effort = 0;
    for count in 1..=MAX_SPLITS {
        let (better, left) = best_split(&words, entry, &mut effort)?;
        words = better;
        if left == 0 {
            return Some(Split { words, count });
        }
    }
    None
}

/// The split that leaves the fewest hazards that barriers cannot separate, and how many that are.
fn best_split(words: &[u32], entry: &str, effort: &mut usize) -> Option<(Vec<u32>, usize)> {
    let program = validated(words).ok()?;
    let decorations = Decorations::read(&program.module);
    let analysis = Analysis::of(&program, program.entry(entry).ok()?, &decorations).ok()??;
    let hazards = analysis.hazards(&vec![true; analysis.places.len()]);
    let mut best: Option<(Vec<u32>, usize)> = None;
    *effort += 1 + analysis.effort();
    for (region, at) in points(&analysis, hazards.iter()).into_iter().take(MAX_POINTS) {
        if *effort > MAX_EFFORT {
            break;
        }
        let Some(words) = Cut::new(&analysis, &region, at).apply() else { continue };
        let Some(left) = hazards_left(&words, entry, effort) else { continue };
        if left < best.as_ref().map_or(hazards.len(), |b| b.1) {
            best = Some((words, left));
        }
        if left == 0 {
            break;
        }
    }
    best
}

/// How many hazards remain however many barriers there are; `None` if that cannot be told.
fn hazards_left(words: &[u32], entry: &str, effort: &mut usize) -> Option<usize> {
    let program = validated(words).ok()?;
    let decorations = Decorations::read(&program.module);
    let analysis = Analysis::of(&program, program.entry(entry).ok()?, &decorations).ok()??;
    let left = analysis.hazards(&vec![true; analysis.places.len()]).len();
    *effort += 1 + analysis.effort();
    Some(left)
}

/// A branch that all invocations reach, and some of them take.
#[derive(Clone, Debug)]
struct Region {
    header: usize,
    inside: usize,
    merge: usize,
    /// Blocks that every run of the region goes through exactly once, in order.
    spine: Vec<usize>,
}

/// Regions with the instructions before which a split may separate one of the hazards.
fn points<'h>(
    analysis: &Analysis<'_, '_>,
    hazards: impl Iterator<Item = &'h Hazard>,
) -> Vec<(Region, usize)> {
    let regions = regions(analysis);
    let mut points: Vec<(Region, usize)> = Vec::new();
    for hazard in hazards {
        let accesses = [analysis.accesses[hazard.first].inst, analysis.accesses[hazard.second].inst];
        for region in &regions {
            let heads = region.spine.iter().skip(1).map(|b| head(analysis, *b));
            for at in heads.chain(accesses) {
                let sides = accesses.map(|a| side(analysis, region, at, a));
                let separates = matches!(sides, [Some(a), Some(b)] if a != b);
                let known = points.iter().any(|(r, p)| r.header == region.header && *p == at);
                if separates && !known {
                    points.push((region.clone(), at));
                }
            }
        }
    }
    points
}

/// The first instruction of a block before which others may stand.
fn head(analysis: &Analysis<'_, '_>, block: usize) -> usize {
    let block = &analysis.function.blocks[block];
    let fixed = |i: &usize| {
        matches!(analysis.program.module.insts()[*i].op, Op::Label | Op::Phi | Op::Line | Op::NoLine)
    };
    (block.first..=block.last).find(|i| !fixed(i)).unwrap_or(block.last)
}

/// Whether the instruction runs after the point; `None` if the point is not on the spine, or outside of the region.
fn side(analysis: &Analysis<'_, '_>, region: &Region, at: usize, inst: usize) -> Option<bool> {
    let function = analysis.function;
    let (block, own) = (function.block_of_inst(at)?, function.block_of_inst(inst)?);
    let inside = function.dominates(region.inside, own) && region.spine.contains(&block);
    let after = if own == block { inst >= at } else { function.dominates(block, own) };
    inside.then_some(after)
}

fn regions(analysis: &Analysis<'_, '_>) -> Vec<Region> {
    let function = analysis.function;
    let Some(up) = function.post_dominators() else { return Vec::new() };
    let of_header = |header: usize| {
        let block = &function.blocks[header];
        let merge = block.selection_merge?;
        let end = &analysis.program.module.insts()[block.last];
        let mixed = !analysis.uniformity.non_uniform[header]
            && end.op == Op::BranchConditional
            && analysis.uniformity.branch_diverges(analysis.program, function, header);
        let inside = *block.succs.iter().find(|s| **s != merge)?;
        if !mixed || !block.succs.contains(&merge) || function.blocks[inside].preds != [header] {
            return None;
        }
        let in_loop = |block: usize| {
            (0..function.blocks.len()).any(|h| {
                let of_loop = function.blocks[h].loop_merge;
                function.dominates(inside, h)
                    && of_loop.is_some_and(|(after, _)| {
                        function.dominates(h, block) && !function.dominates(after, block)
                    })
            })
        };
        let mut spine = Vec::new();
        let mut at = inside;
        while at != merge && at < function.blocks.len() && function.dominates(inside, at) {
            if !in_loop(at) {
                spine.push(at);
            }
            at = up[at]?;
        }
        Some(Region { header, inside, merge, spine })
    };
    (0..function.blocks.len()).filter(|b| function.reachable(*b)).filter_map(of_header).collect()
}

/// One split: the region's first part ends before the instruction `at`.
struct Cut<'a, 'w> {
    analysis: &'a Analysis<'a, 'w>,
    region: &'a Region,
    at: usize,
    edit: Editor<'a, 'w>,
    /// Blocks of the first part; the one with `at` belongs to both.
    block: usize,
    /// New labels: between the parts, and of the second part.
    between: u32,
    second: u32,
    /// What stands for the values of the first part in the second.
    carried: HashMap<u32, u32>,
    phis: Vec<u32>,
    clones: Vec<u32>,
    cloned: usize,
}

impl<'a, 'w> Cut<'a, 'w> {
    fn new(analysis: &'a Analysis<'a, 'w>, region: &'a Region, at: usize) -> Self {
        let mut edit = Editor::new(&analysis.program.module);
        let (between, second) = (edit.fresh(), edit.fresh());
        let block = analysis.function.block_of_inst(at).unwrap_or(region.inside);
        let (carried, phis, clones) = (HashMap::new(), Vec::new(), Vec::new());
        Cut { analysis, region, at, edit, block, between, second, carried, phis, clones, cloned: 0 }
    }

    /// The module with the split; `None` if a value can neither be computed again nor handed over.
    fn apply(mut self) -> Option<Vec<u32>> {
        let Analysis { program, function, .. } = self.analysis;
        let mut changed = Vec::new();
        for number in (0..function.blocks.len()).filter(|b| function.reachable(*b)) {
            let block = &function.blocks[number];
            for index in block.first..=block.last {
                if self.in_first(index) {
                    continue;
                }
                let inst = &program.module.insts()[index];
                let words = self.rewritten(number, inst)?;
                if words != program.module.words_of(inst) {
                    changed.push((inst, words));
                }
            }
        }
        let label = |block: usize| function.blocks[block].label;
        let end = program.module.operands(&program.module.insts()[function.blocks[self.region.header].last]);
        let (condition, merge) = (end[0], label(self.region.merge));
        let (yes, no) =
            if end[1] == label(self.region.inside) { (self.second, merge) } else { (merge, self.second) };
        let parts = [
            instruction(Op::Branch, &[self.between]),
            instruction(Op::Label, &[self.between]),
            std::mem::take(&mut self.phis),
            instruction(Op::SelectionMerge, &[merge, 0]),
            instruction(Op::BranchConditional, &[condition, yes, no]),
            instruction(Op::Label, &[self.second]),
            std::mem::take(&mut self.clones),
        ];
        self.edit.insert_before(&program.module.insts()[self.at], parts.concat());
        for (inst, words) in changed {
            self.edit.replace(inst, words);
        }
        self.edit.finish().ok()
    }

    /// Whether the instruction belongs to the first part.
    fn in_first(&self, inst: usize) -> bool {
        let function = self.analysis.function;
        let Some(block) = function.block_of_inst(inst) else { return false };
        if block == self.block {
            return inst < self.at;
        }
        function.dominates(self.region.inside, block) && !function.dominates(self.block, block)
    }

    /// An instruction outside of the first part, with new ids for what has moved.
    fn rewritten(&mut self, block: usize, inst: &Inst) -> Option<Vec<u32>> {
        let Analysis { program, function, .. } = self.analysis;
        let label = |block: usize| function.blocks[block].label;
        let mut words = program.module.words_of(inst).to_vec();
        for used in program.module.uses(inst) {
            let word = &mut words[used.at];
            let is_label = |number: usize| used.id == label(number);
            let leads = matches!(inst.op, Op::SelectionMerge | Op::BranchConditional);
            if leads && block == self.region.header && is_label(self.region.merge) {
                *word = self.between;
            } else if inst.op == Op::Phi && is_label(self.block) {
                *word = self.second;
            } else if inst.op == Op::Phi && block == self.region.merge && is_label(self.region.header) {
                *word = self.between;
            } else {
                *word = self.carry(used.id, 0)?;
            }
        }
        Some(words)
    }

    /// The id that stands for a value in the second part.
    fn carry(&mut self, id: u32, depth: u32) -> Option<u32> {
        let module = &self.analysis.program.module;
        let index = module.def_index(id)?;
        let def = &module.insts()[index];
        if def.ty == 0 || !self.in_first(index) {
            return Some(id);
        }
        if let Some(known) = self.carried.get(&id) {
            return Some(*known);
        }
        let new = if self.is_cheap(def) && self.cloned < MAX_CLONES && depth < MAX_DEPTH {
            self.cloned += 1;
            let mut words = module.words_of(def).to_vec();
            for used in module.uses(def) {
                words[used.at] = self.carry(used.id, depth + 1)?;
            }
            let new = self.edit.fresh();
            words[2] = new;
            self.clones.extend(words);
            new
        } else {
            if matches!(self.analysis.program.types.get(def.ty), Some(Type::Pointer { .. }) | None) {
                return None;
            }
            let label = |block: usize| self.analysis.function.blocks[block].label;
            let (from, around) = (label(self.block), label(self.region.header));
            // Nobody who comes around the first part looks at it.
            let (new, none) = (self.edit.fresh(), self.edit.null(def.ty));
            self.phis.extend(instruction(Op::Phi, &[def.ty, new, id, from, none, around]));
            new
        };
        self.carried.insert(id, new);
        Some(new)
    }

    /// Whether computing the value again gives the same, at little cost: ids, indices, and pointers.
    fn is_cheap(&self, def: &Inst) -> bool {
        let Analysis { program, .. } = self.analysis;
        let ty = program.types.get(def.ty);
        let of_input = |id: u32| {
            let ty = program.module.def(id).and_then(|d| program.types.get(d.ty));
            matches!(ty, Some(Type::Pointer { class: StorageClass::Input, .. }))
        };
        match def.op {
            Op::Load => of_input(program.module.operands(def)[0]),
            op => is_pure(op) && matches!(ty, Some(Type::Int { .. } | Type::Bool | Type::Pointer { .. })),
        }
    }
}
