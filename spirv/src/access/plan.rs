//! The list of a kernel's accesses to buffers: through which binding, where in it, and under which conditions.

use std::collections::HashSet;

use spirv::{Decoration, Op, StorageClass};

use super::{
    expr::{Expr, ExprId},
    lower::Lowering,
};
use crate::{
    cfg::Function, decorations::Decorations, error::SpirvError, module::Inst, pointers::accessed,
    program::ParsedModule, types::Type, validate::validated,
};

/// Kernels with more accesses than this are not looked into: any of their bindings may be accessed.
const MOST_ACCESSES: usize = 1 << 14;

/// A buffer as a kernel names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// A descriptor.
    Descriptor {
        /// Descriptor set.
        set: u32,
        /// Binding in the set.
        binding: u32,
    },
    /// An entry of the table whose address is the first eight bytes of the push constants.
    Address(u32),
}

/// One access in the code.
#[derive(Clone, Debug)]
pub(super) struct Site {
    pub resource: Resource,
    pub write: bool,
    /// First byte in the buffer and number of bytes; `None` where the code does not tell.
    pub place: Option<(ExprId, u32)>,
    /// Index of the block's conditions.
    pub guards: usize,
}

/// A condition, and the value that it has where an access happens.
pub(super) type Guard = (ExprId, bool);

/// What a kernel does to its buffers, as far as its code tells without running it. Made once for a kernel; [`AccessPlan::of`]
/// a launch gives the bytes.
#[derive(Clone, Debug)]
pub struct AccessPlan {
    pub(super) exprs: Vec<Expr>,
    pub(super) sites: Vec<Site>,
    /// Conditions by block of the entry point's function, outermost first.
    pub(super) guards: Vec<Vec<Guard>>,
    pub(super) local_size: [u32; 3],
    /// Whether it reaches buffers through pointers that cannot be traced.
    pub(super) blind: bool,
}

/// Where a pointer leads.
#[derive(Clone, Copy, Debug)]
enum Root {
    Resource(Resource),
    /// The table of addresses.
    Table,
}

struct Pointer {
    root: Root,
    offset: Option<ExprId>,
}

impl AccessPlan {
    /// Looks into the entry point of this name.
    ///
    /// # Errors
    /// [`SpirvError`] if the words are no valid module, or have no such entry point.
    pub fn new(words: &[u32], entry: &str) -> Result<Self, SpirvError> {
        let program = validated(words)?;
        let entry = program.entry(entry)?;
        let decorations = Decorations::read(&program.module);
        let mut plan = AccessPlan {
            exprs: Vec::new(),
            sites: Vec::new(),
            guards: Vec::new(),
            local_size: entry.local_size,
            blind: false,
        };
        for function in program.call_tree(entry.function) {
            let lowering = Lowering::new(&program, function, &decorations);
            let mut reader = Reader { lowering, plan: &mut plan, inner: function.id != entry.function };
            reader.read();
            if function.id == entry.function {
                plan.exprs = reader.lowering.exprs;
            }
        }
        if plan.sites.len() > MOST_ACCESSES {
            plan.blind = true;
            plan.sites.clear();
        }
        Ok(plan)
    }
}

/// Reads one function.
struct Reader<'p, 'a, 'w> {
    lowering: Lowering<'a, 'w>,
    plan: &'p mut AccessPlan,
    /// Whether it is called by others: its arguments are not known.
    inner: bool,
}

impl<'a, 'w> Reader<'_, 'a, 'w> {
    fn program(&self) -> &'a ParsedModule<'w> {
        self.lowering.program
    }

    fn read(&mut self) {
        let function = self.lowering.function;
        for block in (0..function.blocks.len()).filter(|b| function.reachable(*b)) {
            let first = self.plan.guards.len();
            let mut used = false;
            for index in function.blocks[block].first..=function.blocks[block].last {
                let inst = &self.program().module.insts()[index];
                if inst.op == Op::FunctionCall {
                    self.call(inst);
                }
                for (pointer, write) in accessed(&self.program().module, inst) {
                    used |= self.access(inst, pointer, write, first);
                }
                if self.plan.blind || self.plan.sites.len() > MOST_ACCESSES {
                    return;
                }
            }
            if used {
                let guards = if self.inner { Vec::new() } else { self.guards(function, block) };
                self.plan.guards.push(guards);
            }
        }
    }

    /// Pointers to buffers that are handed on are not followed.
    fn call(&mut self, inst: &Inst) {
        let module = &self.program().module;
        let handed = &module.operands(inst)[1..];
        let class = |id: &u32| module.def(*id).and_then(|d| self.buffer_class(d.ty));
        self.plan.blind |= handed.iter().any(|id| class(id).is_some());
    }

    /// The storage class of a pointer to what several invocations and the host share.
    fn buffer_class(&self, ty: u32) -> Option<StorageClass> {
        match self.program().types.get(ty)? {
            Type::Pointer { class, .. } => matches!(
                class,
                StorageClass::StorageBuffer | StorageClass::Uniform | StorageClass::PhysicalStorageBuffer
            )
            .then_some(*class),
            _ => None,
        }
    }

    /// Adds an access, if it is one to a buffer.
    fn access(&mut self, inst: &Inst, pointer: u32, write: bool, guards: usize) -> bool {
        let types = &self.program().types;
        let Some(def) = self.program().module.def(pointer) else { return false };
        if self.buffer_class(def.ty).is_none() {
            return false;
        }
        let Some(Pointer { root, offset }) = self.pointer(pointer) else {
            self.plan.blind = true;
            return false;
        };
        let Root::Resource(resource) = root else {
            // The table is the driver's; no kernel may write it.
            self.plan.blind |= write;
            return false;
        };
        let size = match types.get(def.ty) {
            Some(Type::Pointer { pointee, .. }) => self.sized(*pointee),
            _ => None,
        };
        let plain = !matches!(inst.op, Op::CooperativeMatrixLoadKHR | Op::CooperativeMatrixStoreKHR);
        let place = offset.zip(size).filter(|_| plain && !self.inner);
        self.plan.sites.push(Site { resource, write, place, guards });
        true
    }

    /// Bytes of a scalar or vector, whose layout leaves nothing out.
    fn sized(&self, ty: u32) -> Option<u32> {
        self.program().types.lanes(ty)?;
        u32::try_from(self.program().types.size(ty)).ok().filter(|size| *size > 0)
    }

    fn pointer(&mut self, id: u32) -> Option<Pointer> {
        let mut chain = Vec::new();
        let mut at = id;
        loop {
            let inst = self.program().module.def(at)?;
            let words = self.program().module.operands(inst);
            match inst.op {
                Op::AccessChain | Op::InBoundsAccessChain | Op::CopyObject | Op::PtrAccessChain => {
                    chain.push(inst);
                    // Each step goes to an earlier definition, so the walk ends.
                    if self.program().module.def(words[0])?.at >= inst.at {
                        return None;
                    }
                    at = words[0];
                }
                _ => break,
            }
        }
        let Pointer { root, mut offset } = self.base(at)?;
        for inst in chain.into_iter().rev() {
            let more = self.chain_offset(inst);
            offset = offset.zip(more).map(|(a, b)| self.lowering.sum(a, b));
        }
        Some(Pointer { root, offset })
    }

    fn base(&mut self, id: u32) -> Option<Pointer> {
        let program = self.program();
        let inst = program.module.def(id)?;
        let words = program.module.operands(inst);
        match inst.op {
            Op::Variable => {
                let decorations = self.lowering.decorations;
                let set = decorations.value(id, Decoration::DescriptorSet)?;
                let binding = decorations.value(id, Decoration::Binding)?;
                let offset = Some(self.lowering.constant(0));
                Some(Pointer { root: Root::Resource(Resource::Descriptor { set, binding }), offset })
            }
            Op::ConvertUToPtr | Op::Bitcast => self.address(words[0]),
            Op::Load => self.entry(words[0]),
            _ => None,
        }
    }

    /// An address computed as a number.
    fn address(&mut self, id: u32) -> Option<Pointer> {
        let program = self.program();
        let inst = program.module.def(id)?;
        let words = program.module.operands(inst);
        match inst.op {
            Op::ConvertPtrToU | Op::Bitcast
                if self.buffer_class(program.module.def(words[0])?.ty).is_some() =>
            {
                self.pointer(words[0])
            }
            Op::Load => self.entry(words[0]),
            Op::IAdd => {
                let ((base, more), _) = match (self.address(words[0]), self.address(words[1])) {
                    (Some(base), None) => ((base, words[1]), ()),
                    (None, Some(base)) => ((base, words[0]), ()),
                    _ => return None,
                };
                let more = self.lowering.value(more);
                let offset = base.offset.map(|offset| self.lowering.sum(offset, more));
                Some(Pointer { root: base.root, offset })
            }
            Op::BitwiseOr => {
                let halves = [self.half(words[0])?, self.half(words[1])?];
                let whole = halves == [(0, 0), (4, 32)] || halves == [(4, 32), (0, 0)];
                let offset = Some(self.lowering.constant(0));
                whole.then_some(Pointer { root: Root::Table, offset })
            }
            _ => None,
        }
    }

    /// Which push constant half of an address is, and how far it is shifted.
    fn half(&mut self, id: u32) -> Option<(u32, i64)> {
        let module = &self.program().module;
        let inst = module.def(id)?;
        let words = module.operands(inst);
        if inst.op == Op::ShiftLeftLogical {
            let by = self.lowering.value(words[1]);
            let Expr::Constant(by) = self.lowering.exprs[by] else { return None };
            return self.half(words[0]).filter(|(_, shift)| *shift == 0).map(|(word, _)| (word, by));
        }
        let word = self.lowering.value(*words.first().filter(|_| inst.op == Op::UConvert)?);
        match self.lowering.exprs[word] {
            Expr::Push(offset) => Some((offset, 0)),
            _ => None,
        }
    }

    /// What lies in the table of addresses at this pointer.
    fn entry(&mut self, pointer: u32) -> Option<Pointer> {
        let Pointer { root: Root::Table, offset } = self.pointer(pointer)? else { return None };
        let bytes = self.fixed(offset?)?;
        let index = u32::try_from(bytes).ok().filter(|b| b.is_multiple_of(8))? / 8;
        let offset = Some(self.lowering.constant(0));
        Some(Pointer { root: Root::Resource(Resource::Address(index)), offset })
    }

    /// The value of a sum of products of constants.
    fn fixed(&self, id: ExprId) -> Option<i64> {
        use super::expr::Binary;
        match self.lowering.exprs[id] {
            Expr::Constant(value) => Some(value),
            Expr::Binary { op: Binary::Add, left, right, .. } => {
                self.fixed(left)?.checked_add(self.fixed(right)?)
            }
            Expr::Binary { op: Binary::Mul, left, right, .. } => {
                self.fixed(left)?.checked_mul(self.fixed(right)?)
            }
            _ => None,
        }
    }

    /// Bytes from the base of an access chain to where it leads.
    fn chain_offset(&mut self, inst: &Inst) -> Option<ExprId> {
        let program = self.program();
        let words = program.module.operands(inst);
        let mut offset = self.lowering.constant(0);
        let Type::Pointer { pointee, .. } = program.types.get(program.module.def(words[0])?.ty)? else {
            return None;
        };
        let mut ty = *pointee;
        let mut path = &words[1..];
        if inst.op == Op::PtrAccessChain {
            let (element, rest) = path.split_first()?;
            let stride =
                self.lowering.decorations.value(program.module.def(words[0])?.ty, Decoration::ArrayStride);
            let element = self.lowering.value(*element);
            let step = self.lowering.scaled(element, stride?.into());
            offset = self.lowering.sum(offset, step);
            path = rest;
        }
        for index in path {
            let step = match program.types.get(ty)? {
                Type::Struct { members } => {
                    let member = program.module.constant_u32(*index)?;
                    let at = self.lowering.decorations.member_offset(ty, member)?;
                    ty = *members.get(member as usize)?;
                    self.lowering.constant(at.into())
                }
                Type::Array { elem, .. } | Type::RuntimeArray { elem } => {
                    let stride = self.lowering.decorations.value(ty, Decoration::ArrayStride)?;
                    ty = *elem;
                    let index = self.lowering.value(*index);
                    self.lowering.scaled(index, stride.into())
                }
                Type::Vector { elem, .. } => {
                    ty = *elem;
                    let index = self.lowering.value(*index);
                    self.lowering.scaled(index, program.types.size(ty))
                }
                _ => return None,
            };
            offset = self.lowering.sum(offset, step);
        }
        Some(offset)
    }

    /// Conditions that hold wherever the block runs, outermost first.
    fn guards(&mut self, function: &Function, block: usize) -> Vec<Guard> {
        let module = &self.program().module;
        let (mut found, mut seen) = (Vec::new(), HashSet::new());
        let mut at = block;
        while let Some(up) = function.idom[at].filter(|up| *up != at && seen.insert(*up)) {
            let end = &module.insts()[function.blocks[up].last];
            let words = module.operands(end);
            if end.op == Op::BranchConditional && words[1] != words[2] {
                for (label, wanted) in [(words[1], true), (words[2], false)] {
                    // Only the edge itself decides: the block behind it has no other way in.
                    let behind = function.block_of_label(label);
                    let only_way = behind
                        .is_some_and(|b| function.blocks[b].preds == [up] && function.dominates(b, block));
                    if only_way {
                        found.push((self.lowering.value(words[0]), wanted));
                    }
                }
            }
            at = up;
        }
        found.reverse();
        found
    }
}
