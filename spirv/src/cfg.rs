//! Functions, basic blocks, and the graph questions about them: predecessors, dominators, post-dominators.

use std::collections::HashMap;

use spirv::Op;

use crate::{error::SpirvError, grammar::is_terminator, module::Module};

/// A basic block: instruction indices from its label to its terminator, both included.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub label: u32,
    pub first: usize,
    pub last: usize,
    pub succs: Vec<usize>,
    pub preds: Vec<usize>,
    /// Merge and continue blocks if this block has an OpLoopMerge.
    pub loop_merge: Option<(usize, usize)>,
    /// Merge block if this block has an OpSelectionMerge.
    pub selection_merge: Option<usize>,
}

/// A function with its blocks; block 0 is the entry.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub id: u32,
    /// Index of the OpFunction instruction.
    pub first: usize,
    pub blocks: Vec<Block>,
    /// Immediate dominator of each block; itself for the entry, `None` if unreachable.
    pub idom: Vec<Option<usize>>,
    /// First and last visit of each block in a walk over the dominator tree.
    spans: Vec<(u32, u32)>,
    by_label: HashMap<u32, usize>,
}

impl Function {
    /// Reads the function whose OpFunction has this index; returns it and the index after its end.
    pub fn read(module: &Module<'_>, first: usize) -> Result<(Self, usize), SpirvError> {
        let insts = module.insts();
        let (blocks, end) = split(module, first)?;
        let by_label: HashMap<u32, usize> = blocks.iter().enumerate().map(|(i, b)| (b.label, i)).collect();
        let idom = vec![None; blocks.len()];
        let mut function = Function { id: insts[first].id, first, blocks, idom, spans: Vec::new(), by_label };
        if function.blocks.is_empty() {
            return Err(SpirvError::at(
                insts[first].at,
                "the function has no body; linking is not supported",
            ));
        }
        function.link(module)?;
        let succs: Vec<&[usize]> = function.blocks.iter().map(|b| b.succs.as_slice()).collect();
        let preds: Vec<&[usize]> = function.blocks.iter().map(|b| b.preds.as_slice()).collect();
        let idom = dominators(0, &succs, &preds).ok_or_else(|| {
            SpirvError::at(insts[first].at, "the control flow of the function is too large")
        })?;
        function.spans = spans(&idom);
        function.idom = idom;
        Ok((function, end + 1))
    }

    /// The block with this label.
    pub fn block_of_label(&self, label: u32) -> Option<usize> {
        self.by_label.get(&label).copied()
    }

    /// The block that holds this instruction index.
    pub fn block_of_inst(&self, inst: usize) -> Option<usize> {
        let at = self.blocks.partition_point(|b| b.first <= inst).checked_sub(1)?;
        (inst <= self.blocks[at].last).then_some(at)
    }

    /// Whether every path from the entry to `b` passes `a` (a block dominates itself).
    pub fn dominates(&self, a: usize, b: usize) -> bool {
        let (outer, inner) = (self.spans[a], self.spans[b]);
        self.reachable(a) && self.reachable(b) && outer.0 <= inner.0 && inner.1 <= outer.1
    }

    /// Whether a path leads from the entry to this block.
    pub fn reachable(&self, block: usize) -> bool {
        self.idom[block].is_some()
    }

    fn link(&mut self, module: &Module<'_>) -> Result<(), SpirvError> {
        for b in 0..self.blocks.len() {
            let term = &module.insts()[self.blocks[b].last];
            let words = module.operands(term);
            let mut labels: Vec<u32> = match term.op {
                Op::Branch => vec![words[0]],
                Op::BranchConditional => words[1..3].to_vec(),
                Op::Switch => {
                    let step = module.switch_literal_words(term) + 1;
                    if !(words.len() - 2).is_multiple_of(step) {
                        return Err(SpirvError::at(term.at, "OpSwitch: literals and labels do not pair up"));
                    }
                    let cases = words[2..].chunks(step).map(|pair| pair[step - 1]);
                    std::iter::once(words[1]).chain(cases).collect()
                }
                _ => Vec::new(),
            };
            labels.sort_unstable();
            labels.dedup();
            for label in labels {
                let to = self.target(term.at, label)?;
                if to == 0 {
                    return Err(SpirvError::at(term.at, "a branch leads to the entry block"));
                }
                self.blocks[b].succs.push(to);
                self.blocks[to].preds.push(b);
            }
            self.link_merge(module, b)?;
        }
        Ok(())
    }

    fn link_merge(&mut self, module: &Module<'_>, b: usize) -> Result<(), SpirvError> {
        let block = &self.blocks[b];
        let merges = (block.first..block.last)
            .filter(|i| matches!(module.insts()[*i].op, Op::LoopMerge | Op::SelectionMerge));
        for index in merges.collect::<Vec<_>>() {
            let inst = &module.insts()[index];
            let term = module.insts()[self.blocks[b].last].op;
            if index + 1 != self.blocks[b].last
                || matches!(term, Op::Return | Op::ReturnValue | Op::Unreachable)
            {
                return Err(SpirvError::at(inst.at, "a merge instruction must come just before a branch"));
            }
            let words = module.operands(inst);
            let merge = self.target(inst.at, words[0])?;
            if inst.op == Op::LoopMerge {
                let next = self.target(inst.at, words[1])?;
                self.blocks[b].loop_merge = Some((merge, next));
            } else {
                self.blocks[b].selection_merge = Some(merge);
            }
            if merge == b || merge == 0 {
                return Err(SpirvError::at(
                    inst.at,
                    "a block cannot be its own merge block, nor the entry one",
                ));
            }
        }
        Ok(())
    }

    fn target(&self, at: usize, label: u32) -> Result<usize, SpirvError> {
        self.block_of_label(label)
            .ok_or_else(|| SpirvError::at(at, format!("id {label} is no block of this function")))
    }

    /// Immediate post-dominators; index `blocks.len()` stands for the exit of the function.
    ///
    /// Blocks from which the exit cannot be reached (endless loops) have none. `None` if the graph is too large.
    pub fn post_dominators(&self) -> Option<Vec<Option<usize>>> {
        let exit = self.blocks.len();
        let last: Vec<usize> = (0..exit).filter(|b| self.blocks[*b].succs.is_empty()).collect();
        let to_exit = [exit];
        let mut succs: Vec<&[usize]> = self.blocks.iter().map(|b| b.preds.as_slice()).collect();
        let mut preds: Vec<&[usize]> = self.blocks.iter().map(|b| b.succs.as_slice()).collect();
        last.iter().for_each(|b| preds[*b] = &to_exit);
        succs.push(&last);
        preds.push(&[]);
        dominators(exit, &succs, &preds)
    }
}

fn split(module: &Module<'_>, first: usize) -> Result<(Vec<Block>, usize), SpirvError> {
    let insts = module.insts();
    let mut blocks: Vec<Block> = Vec::new();
    let mut open: Option<(u32, usize)> = None;
    for (index, inst) in insts.iter().enumerate().skip(first + 1) {
        let bad = |what: &str| Err(SpirvError::at(inst.at, format!("Op{:?}: {what}", inst.op)));
        match (inst.op, open) {
            (Op::FunctionEnd, None) => return Ok((blocks, index)),
            (Op::FunctionEnd, Some(_)) => return bad("the last block has no terminator"),
            (Op::FunctionParameter, None) if blocks.is_empty() => {}
            (Op::Line | Op::NoLine, _) => {}
            (Op::Label, None) => open = Some((inst.id, index)),
            (Op::Label, Some(_)) => return bad("the block before has no terminator"),
            (_, None) => return bad("not inside a block"),
            (op, Some((label, start))) => {
                if is_terminator(op) {
                    let (succs, preds) = (Vec::new(), Vec::new());
                    let (loop_merge, selection_merge) = (None, None);
                    blocks.push(Block {
                        label,
                        first: start,
                        last: index,
                        succs,
                        preds,
                        loop_merge,
                        selection_merge,
                    });
                    open = None;
                } else if !belongs_in_block(op) {
                    return bad("not allowed inside a function");
                }
            }
        }
    }
    Err(SpirvError::at(insts[first].at, "the function has no OpFunctionEnd"))
}

fn belongs_in_block(op: Op) -> bool {
    let code = op as u32;
    let module_level = (code < 54 && !matches!(op, Op::Nop | Op::Undef | Op::Line | Op::ExtInst))
        || (71..=75).contains(&code)
        || matches!(op, Op::Function | Op::FunctionParameter | Op::FunctionEnd | Op::ModuleProcessed)
        || matches!(op, Op::ExecutionModeId | Op::DecorateId | Op::DecorateString | Op::MemberDecorateString)
        || crate::grammar::is_type(op)
        || matches!(op, Op::ConstantCompositeReplicateEXT | Op::SpecConstantCompositeReplicateEXT);
    !module_level
}

/// Steps that the dominator computation may take before a graph counts as too large.
const STEP_LIMIT: usize = 50_000_000;

/// Immediate dominators by iteration in reverse post-order; `None` when the steps run out.
fn dominators(root: usize, succs: &[&[usize]], preds: &[&[usize]]) -> Option<Vec<Option<usize>>> {
    let count = succs.len();
    let order = post_order(count, root, |b| succs[b]);
    let mut rank = vec![usize::MAX; count];
    order.iter().enumerate().for_each(|(i, b)| rank[*b] = i);
    let mut idom: Vec<Option<usize>> = vec![None; count];
    idom[root] = Some(root);
    let mut steps = 0;
    let mut changed = true;
    while changed {
        changed = false;
        for &block in order.iter().rev().filter(|b| **b != root) {
            let mut new: Option<usize> = None;
            for &pred in preds[block].iter().filter(|p| idom[**p].is_some()) {
                let (mut a, mut b) = (pred, new.unwrap_or(pred));
                while a != b {
                    steps += 1;
                    let lower = if rank[a] < rank[b] { &mut a } else { &mut b };
                    *lower = idom[*lower]?;
                }
                new = Some(a);
                steps += 1;
            }
            if steps > STEP_LIMIT {
                return None;
            }
            if new.is_some() && idom[block] != new {
                idom[block] = new;
                changed = true;
            }
        }
    }
    Some(idom)
}

/// Entry and exit times of a walk over a dominator tree, so that dominance is a comparison.
fn spans(idom: &[Option<usize>]) -> Vec<(u32, u32)> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); idom.len()];
    for (block, up) in idom.iter().enumerate() {
        if let Some(up) = up.filter(|up| *up != block) {
            children[up].push(block);
        }
    }
    let mut spans = vec![(0, 0); idom.len()];
    let mut clock = 0;
    let mut stack = vec![(0, 0)];
    while let Some((block, next)) = stack.pop() {
        if next == 0 {
            spans[block].0 = clock;
        }
        clock += 1;
        match children[block].get(next) {
            Some(&child) => {
                stack.push((block, next + 1));
                stack.push((child, 0));
            }
            None => spans[block].1 = clock,
        }
    }
    spans
}

fn post_order<'a>(count: usize, root: usize, succs: impl Fn(usize) -> &'a [usize]) -> Vec<usize> {
    let mut seen = vec![false; count];
    let mut order = Vec::with_capacity(count);
    let mut stack = vec![(root, 0)];
    seen[root] = true;
    while let Some((block, next)) = stack.pop() {
        match succs(block).get(next) {
            Some(&to) => {
                stack.push((block, next + 1));
                if !seen[to] {
                    seen[to] = true;
                    stack.push((to, 0));
                }
            }
            None => order.push(block),
        }
    }
    order
}
