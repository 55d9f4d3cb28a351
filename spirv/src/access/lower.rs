//! Cutting expressions out of a kernel's code.

use std::collections::HashMap;

use spirv::{BuiltIn, Decoration, GlslStd450Op, Op, StorageClass};

use super::expr::{Binary, Expr, ExprId, Limit, Order, Resize};
use crate::{cfg::Function, decorations::Decorations, module::Inst, program::ParsedModule, types::Type};

/// Expressions deeper than this are unknown.
const MOST_DEPTH: u32 = 160;
/// More expressions than this are unknown.
const MOST_EXPRESSIONS: usize = 1 << 16;

/// Cuts expressions out of one function. Each id becomes one expression, so that what is computed once stays one value.
pub(super) struct Lowering<'a, 'w> {
    pub program: &'a ParsedModule<'w>,
    pub function: &'a Function,
    pub decorations: &'a Decorations<'w>,
    pub exprs: Vec<Expr>,
    of_id: HashMap<u32, ExprId>,
    /// Phis that are being cut: they meet themselves in loops.
    open: Vec<u32>,
    depth: u32,
}

impl<'a, 'w> Lowering<'a, 'w> {
    pub fn new(
        program: &'a ParsedModule<'w>,
        function: &'a Function,
        decorations: &'a Decorations<'w>,
    ) -> Self {
        let (exprs, of_id, open) = (Vec::new(), HashMap::new(), Vec::new());
        Lowering { program, function, decorations, exprs, of_id, open, depth: 0 }
    }

    pub fn add(&mut self, expr: Expr) -> ExprId {
        self.exprs.push(expr);
        self.exprs.len() - 1
    }

    pub fn constant(&mut self, value: i64) -> ExprId {
        self.add(Expr::Constant(value))
    }

    /// A sum of offsets, which do not wrap.
    pub fn sum(&mut self, left: ExprId, right: ExprId) -> ExprId {
        self.add(Expr::Binary { op: Binary::Add, left, right, width: 64 })
    }

    pub fn scaled(&mut self, value: ExprId, by: u64) -> ExprId {
        let right = self.constant(i64::try_from(by).unwrap_or(i64::MAX));
        self.add(Expr::Binary { op: Binary::Mul, left: value, right, width: 64 })
    }

    /// The expression of an id; one that nothing is known of for what is no integer or not looked into.
    pub fn value(&mut self, id: u32) -> ExprId {
        if let Some(known) = self.of_id.get(&id) {
            return *known;
        }
        let width = self.width_of(id);
        if self.depth >= MOST_DEPTH || self.exprs.len() >= MOST_EXPRESSIONS || self.open.contains(&id) {
            return self.add(Expr::Unknown(width.unwrap_or(64)));
        }
        self.depth += 1;
        let expr = match width {
            Some(width) => self.expression(id, width).unwrap_or(Expr::Unknown(width)),
            None if self.is_float(id) => self.float(id),
            None => Expr::Unknown(64),
        };
        self.depth -= 1;
        let made = self.add(expr);
        self.of_id.insert(id, made);
        made
    }

    /// Bits of an integer, 1 for a boolean.
    pub fn width_of(&self, id: u32) -> Option<u32> {
        match self.program.types.get(self.program.module.def(id)?.ty)? {
            Type::Int { width } => Some(*width),
            Type::Bool => Some(1),
            _ => None,
        }
    }

    fn expression(&mut self, id: u32, width: u32) -> Option<Expr> {
        let module = &self.program.module;
        let inst = module.def(id)?;
        let words = module.operands(inst);
        match inst.op {
            Op::Constant => constant(words, width),
            Op::ConstantNull | Op::ConstantFalse => Some(Expr::Constant(0)),
            Op::ConstantTrue => Some(Expr::Constant(1)),
            Op::CopyObject => self.same(words[0]),
            Op::Bitcast => (self.width_of(words[0]) == Some(width)).then(|| self.same(words[0]))?,
            Op::UConvert | Op::SConvert => {
                let how = if inst.op == Op::UConvert { Resize::Unsigned } else { Resize::Signed };
                let from = self.width_of(words[0])?;
                Some(Expr::Resize { how, of: self.value(words[0]), from, to: width })
            }
            Op::ConvertFToU | Op::ConvertFToS if self.is_float(words[0]) => {
                Some(Expr::FromFloat(self.value(words[0])))
            }
            Op::FOrdLessThan | Op::FUnordLessThan => Some(self.less(words[0], words[1])),
            Op::FOrdGreaterThan | Op::FUnordGreaterThan => Some(self.less(words[1], words[0])),
            Op::CompositeExtract => self.component(words),
            Op::Load => self.load(words[0], None),
            Op::Phi => self.phi(inst, width),
            Op::Select => {
                let condition = Some(self.value(words[0]));
                let values = vec![self.value(words[1]), self.value(words[2])];
                Some(Expr::OneOf { values, condition })
            }
            Op::ExtInst => self.extended(words, width),
            Op::LogicalNot => Some(Expr::Not(self.value(words[0]))),
            Op::LogicalAnd => Some(Expr::AllOf(self.value(words[0]), self.value(words[1]))),
            Op::LogicalOr => Some(Expr::AnyOf(self.value(words[0]), self.value(words[1]))),
            Op::SNegate => {
                let left = self.constant(0);
                Some(Expr::Binary { op: Binary::Sub, left, right: self.value(words[0]), width })
            }
            op => self.of_two(op, words, width),
        }
    }

    /// Whether one number with a fraction is less than another.
    fn less(&mut self, left: u32, right: u32) -> Expr {
        Expr::FloatLess(self.value(left), self.value(right))
    }

    /// What an instruction makes of two integers.
    fn of_two(&mut self, op: Op, words: &[u32], width: u32) -> Option<Expr> {
        if let Some(op) = binary(op) {
            let (left, right) = (self.value(words[0]), self.value(words[1]));
            return Some(Expr::Binary { op, left, right, width });
        }
        let (order, signed, swap) = compare(op)?;
        let width = self.width_of(words[0])?;
        let (a, b) = (self.value(words[0]), self.value(words[1]));
        let (left, right) = if swap { (b, a) } else { (a, b) };
        Some(Expr::Compare { order, signed, left, right, width })
    }

    fn same(&mut self, id: u32) -> Option<Expr> {
        let value = self.value(id);
        Some(Expr::OneOf { values: vec![value], condition: None })
    }

    /// A component of a vector: of a built-in, or of a vector made of components.
    fn component(&mut self, words: &[u32]) -> Option<Expr> {
        let [vector, component] = *words else { return None };
        let def = self.program.module.def(vector)?;
        let parts = self.program.module.operands(def);
        match def.op {
            Op::Load => self.load(parts[0], Some(component)),
            Op::CompositeConstruct => {
                let part = *parts.get(component as usize)?;
                self.width_of(part)?;
                self.same(part)
            }
            _ => None,
        }
    }

    /// What lies in a variable that does not change: a built-in or push constants.
    fn load(&mut self, pointer: u32, component: Option<u32>) -> Option<Expr> {
        let module = &self.program.module;
        let def = module.def(pointer)?;
        let (variable, path) = match def.op {
            Op::Variable => (pointer, &[][..]),
            Op::AccessChain | Op::InBoundsAccessChain => {
                let words = module.operands(def);
                (words[0], &words[1..])
            }
            _ => return None,
        };
        let Type::Pointer { class, pointee } = self.program.types.get(module.def(variable)?.ty)? else {
            return None;
        };
        match class {
            StorageClass::Input => {
                let at = match (path, component) {
                    ([], at) => at,
                    ([index], None) => Some(module.constant_u32(*index)?),
                    _ => return None,
                };
                let built_in = self.decorations.value(variable, Decoration::BuiltIn)?;
                self.built_in(BuiltIn::from_u32(built_in)?, at)
            }
            StorageClass::PushConstant if component.is_none() => {
                let offset = self.constant_offset(*pointee, path)?;
                Some(Expr::Push(offset))
            }
            _ => None,
        }
    }

    fn built_in(&mut self, built_in: BuiltIn, component: Option<u32>) -> Option<Expr> {
        let axis = component.and_then(|c| u8::try_from(c).ok().filter(|c| *c < 3));
        match built_in {
            BuiltIn::WorkgroupId => axis.map(Expr::WorkgroupId),
            BuiltIn::NumWorkgroups => axis.map(Expr::NumWorkgroups),
            BuiltIn::LocalInvocationId => axis.map(Expr::LocalId),
            BuiltIn::GlobalInvocationId => {
                let axis = axis?;
                let workgroup = self.add(Expr::WorkgroupId(axis));
                let size = *self.local_size()?.get(usize::from(axis))?;
                let first = self.scaled(workgroup, size.into());
                let right = self.add(Expr::LocalId(axis));
                Some(Expr::Binary { op: Binary::Add, left: first, right, width: 32 })
            }
            BuiltIn::LocalInvocationIndex => {
                let [x, y, _] = self.local_size()?;
                let ids = [0, 1, 2].map(|axis| self.add(Expr::LocalId(axis)));
                let plane = self.scaled(ids[2], u64::from(x) * u64::from(y));
                let row = self.scaled(ids[1], x.into());
                let left = self.sum(plane, row);
                Some(Expr::Binary { op: Binary::Add, left, right: ids[0], width: 32 })
            }
            _ => None,
        }
    }

    fn local_size(&self) -> Option<[u32; 3]> {
        self.program.entries.iter().find(|e| e.function == self.function.id).map(|e| e.local_size)
    }

    /// The byte offset of a path of constants.
    fn constant_offset(&self, mut ty: u32, path: &[u32]) -> Option<u32> {
        let mut offset = 0u32;
        for index in path {
            let index = self.program.module.constant_u32(*index)?;
            match self.program.types.get(ty)? {
                Type::Struct { members } => {
                    offset = offset.checked_add(self.decorations.member_offset(ty, index)?)?;
                    ty = *members.get(index as usize)?;
                }
                Type::Array { elem, .. } => {
                    let stride = self.decorations.value(ty, Decoration::ArrayStride)?;
                    offset = offset.checked_add(stride.checked_mul(index)?)?;
                    ty = *elem;
                }
                _ => return None,
            }
        }
        (self.program.types.size(ty) == 4).then_some(offset)
    }

    fn phi(&mut self, inst: &Inst, width: u32) -> Option<Expr> {
        let block = self.function.block_of_inst(self.program.module.def_index(inst.id)?)?;
        self.open.push(inst.id);
        let expr = match self.function.blocks[block].loop_merge {
            Some(_) => self.counter(inst, block, width),
            None => {
                let values = self.program.module.operands(inst).chunks(2).map(|p| self.value(p[0])).collect();
                Some(Expr::OneOf { values, condition: None })
            }
        };
        self.open.pop();
        expr
    }

    /// A loop counter: one value from outside, and itself plus a step from each way round.
    fn counter(&mut self, inst: &Inst, block: usize, width: u32) -> Option<Expr> {
        let module = &self.program.module;
        let (mut start, mut step) = (None, None);
        for pair in module.operands(inst).chunks(2) {
            let parent = self.function.block_of_label(pair[1])?;
            if !self.function.dominates(block, parent) {
                if start.replace(pair[0]).is_some_and(|other| other != pair[0]) {
                    return None;
                }
                continue;
            }
            let add = module.def(pair[0]).filter(|d| d.op == Op::IAdd)?;
            let amount = match *module.operands(add) {
                [left, right] if left == inst.id => right,
                [left, right] if right == inst.id => left,
                _ => return None,
            };
            if step.replace(amount).is_some_and(|other| other != amount) {
                return None;
            }
        }
        let limit = self.limit(inst.id, block);
        Some(Expr::Counter { start: self.value(start?), step: self.value(step?), limit, width })
    }

    /// What the head of the loop compares the counter with to go on.
    fn limit(&mut self, counter: u32, block: usize) -> Option<Limit> {
        let module = &self.program.module;
        let (merge, _) = self.function.blocks[block].loop_merge?;
        let end = &module.insts()[self.function.blocks[block].last];
        if end.op != Op::BranchConditional {
            return None;
        }
        let words = module.operands(end);
        if self.function.block_of_label(words[2]) != Some(merge) {
            return None;
        }
        let condition = module.def(words[0])?;
        let (order, signed, swap) = compare(condition.op)?;
        let [first, second] = *module.operands(condition) else { return None };
        let (left, right) = if swap { (second, first) } else { (first, second) };
        let included = order == Order::LessEqual;
        let below = matches!(order, Order::Less | Order::LessEqual) && left == counter;
        below.then(|| Limit { value: self.value(right), included, signed })
    }

    fn extended(&mut self, words: &[u32], width: u32) -> Option<Expr> {
        let (low, high) = match self.program.module.glsl_op(words[0], words[1])? {
            GlslStd450Op::UMin => (None, Some(Binary::UMin)),
            GlslStd450Op::UMax => (Some(Binary::UMax), None),
            GlslStd450Op::SMin => (None, Some(Binary::SMin)),
            GlslStd450Op::SMax => (Some(Binary::SMax), None),
            GlslStd450Op::UClamp => (Some(Binary::UMax), Some(Binary::UMin)),
            GlslStd450Op::SClamp => (Some(Binary::SMax), Some(Binary::SMin)),
            _ => return None,
        };
        let args: Vec<ExprId> = words[2..].iter().map(|id| self.value(*id)).collect();
        match (low, high, args.as_slice()) {
            (Some(op), None, [left, right]) | (None, Some(op), [left, right]) => {
                Some(Expr::Binary { op, left: *left, right: *right, width })
            }
            (Some(max), Some(min), [value, low, high]) => {
                let left = self.add(Expr::Binary { op: max, left: *value, right: *low, width });
                Some(Expr::Binary { op: min, left, right: *high, width })
            }
            _ => None,
        }
    }
}

fn constant(words: &[u32], width: u32) -> Option<Expr> {
    let value = match (words, width) {
        ([low], 8 | 16) => i64::from(low & ((1 << width) - 1)),
        ([low], 32) => i64::from(*low),
        ([low, high], 64) => (u64::from(*low) | u64::from(*high) << 32) as i64,
        _ => return None,
    };
    Some(Expr::Constant(value))
}

fn binary(op: Op) -> Option<Binary> {
    Some(match op {
        Op::IAdd => Binary::Add,
        Op::ISub => Binary::Sub,
        Op::IMul => Binary::Mul,
        Op::UDiv => Binary::UDiv,
        Op::UMod => Binary::URem,
        Op::SDiv => Binary::SDiv,
        Op::SRem => Binary::SRem,
        Op::ShiftLeftLogical => Binary::Shl,
        Op::ShiftRightLogical => Binary::ShrLogical,
        Op::ShiftRightArithmetic => Binary::ShrArithmetic,
        Op::BitwiseAnd => Binary::And,
        Op::BitwiseOr => Binary::Or,
        _ => return None,
    })
}

/// The order that a comparison asks for, whether of signed numbers, and whether of its operands swapped.
fn compare(op: Op) -> Option<(Order, bool, bool)> {
    Some(match op {
        Op::IEqual => (Order::Equal, false, false),
        Op::INotEqual => (Order::NotEqual, false, false),
        Op::ULessThan => (Order::Less, false, false),
        Op::ULessThanEqual => (Order::LessEqual, false, false),
        Op::UGreaterThan => (Order::Less, false, true),
        Op::UGreaterThanEqual => (Order::LessEqual, false, true),
        Op::SLessThan => (Order::Less, true, false),
        Op::SLessThanEqual => (Order::LessEqual, true, false),
        Op::SGreaterThan => (Order::Less, true, true),
        Op::SGreaterThanEqual => (Order::LessEqual, true, true),
        _ => return None,
    })
}
