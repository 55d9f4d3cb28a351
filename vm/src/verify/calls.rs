//! The checks of call and return lists against calling conventions.

use std::sync::Arc;

use super::{Check, Verifier, span_from};
use crate::{
    code::{CallSite, Callee, Insn, Span, TypedReg},
    decode::{Field, RawInsn, U16s},
    isa::{CALLEE_IMPORT, Operand, REG_MOVE, SEGMENT_PLAIN},
    signature::{ArgLayout, Kind, Param, Signature},
};

/// The operands of a call, by role.
#[derive(Default)]
struct Parts<'a> {
    callee: u32,
    segments: Option<U16s<'a>>,
    args: Option<U16s<'a>>,
    results: Option<U16s<'a>>,
    target: Option<u32>,
}

impl Verifier<'_> {
    /// Checks and packs a call; its word is the call site's index.
    pub(super) fn call(&mut self, insn: &RawInsn<'_>) -> Check<Insn> {
        let mut parts = Parts::default();
        for (operand, field) in insn.info.operands.iter().zip(&insn.fields) {
            match (operand, field) {
                (Operand::Function, Field::U32(v)) => parts.callee = *v,
                (Operand::Target, Field::U32(v)) => parts.target = Some(*v),
                (Operand::Segments, Field::List(l)) => parts.segments = Some(*l),
                (Operand::Args, Field::List(l)) => parts.args = Some(*l),
                (Operand::Results, Field::List(l)) => parts.results = Some(*l),
                _ => return Err("the operands are not those of a call".into()),
            }
        }
        let (callee, signature) = self.callee(parts.callee)?;
        if parts.segments.is_some() && matches!(callee, Callee::Internal(_)) {
            return Err("only imports may be called with segments".into());
        }
        let (spans, kinds) = match parts.segments {
            Some(segments) => self.segments(&signature, segments, parts.args.map_or(0, U16s::len))?,
            None if signature.is_variadic() => {
                return Err("the callee is variadic and needs a segment list".into());
            }
            None => (Span::default(), signature.plain_args().collect()),
        };
        let args = self.typed("argument", &kinds, parts.args)?;
        let results = self.typed("result", &signature.results, parts.results)?;
        let site = self.out.sites.len() as u32;
        self.out.sites.push(CallSite { callee, args, results, spans, target: parts.target });
        Insn::pack(insn.info.op, &[], &[site]).ok_or_else(|| "the call does not fit an instruction".into())
    }

    fn callee(&self, ordinal: u32) -> Check<(Callee, Arc<Signature>)> {
        let import = ordinal & CALLEE_IMPORT != 0;
        let index = ordinal & !CALLEE_IMPORT;
        let (table, what) =
            if import { (self.scope.imports, "import") } else { (self.scope.functions, "function") };
        let signature = table
            .get(index as usize)
            .ok_or_else(|| format!("{what} {index} does not exist; the module has {}", table.len()))?;
        let callee = if import { Callee::Import(index) } else { Callee::Internal(index) };
        Ok((callee, signature.clone()))
    }

    /// Checks a segment list; gives span counts and the kinds of all arguments.
    fn segments(
        &mut self,
        signature: &Signature,
        segments: U16s<'_>,
        args: usize,
    ) -> Check<(Span, Vec<Kind>)> {
        if segments.len() != signature.args.len() {
            return Err(format!(
                "{} segments given, but the callee has {} parameters",
                segments.len(),
                signature.args.len()
            ));
        }
        let start = self.out.regs.len();
        let mut kinds = Vec::new();
        for (param, count) in signature.args.iter().zip(segments.iter()) {
            match param {
                Param::One(kind) if count == SEGMENT_PLAIN => kinds.push(*kind),
                Param::One(_) => {
                    return Err(format!("segment {count} is given for a parameter that is no span"));
                }
                Param::Span(tuple) => {
                    if usize::from(count) * tuple.len() > args {
                        return Err(format!(
                            "a span of {count} elements needs more than the {args} arguments"
                        ));
                    }
                    (0..count).for_each(|_| kinds.extend(tuple));
                    self.out.regs.push(count);
                }
            }
            if kinds.len() > args {
                return Err(format!("{args} arguments are fewer than the callee takes"));
            }
        }
        Ok((span_from(start, &self.out.regs), kinds))
    }

    /// Checks a register list against kinds.
    fn typed(&mut self, what: &str, kinds: &[Kind], list: Option<U16s<'_>>) -> Check<Span> {
        let given = list.map_or(0, U16s::len);
        if given != kinds.len() {
            return Err(format!("{given} {what} registers given, but the signature has {}", kinds.len()));
        }
        let start = self.out.typed.len();
        let mut layout = ArgLayout::default();
        for (i, (kind, reg)) in kinds.iter().zip(list.into_iter().flat_map(U16s::iter)).enumerate() {
            let reg = self.kind(*kind, reg).map_err(|e| format!("{what} {i}: {e}"))?;
            // A layout beyond the registers belongs to a variadic import, which has no registers.
            let dst = u16::try_from(layout.next(*kind)).unwrap_or(u16::MAX);
            let reg = if what == "result" { reg & !move_bit(*kind) } else { reg };
            self.out.typed.push(TypedReg { kind: *kind, reg, dst });
        }
        Ok(span_from(start, &self.out.typed))
    }

    /// Checks a return list; gives its index.
    pub(super) fn returns(&mut self, list: U16s<'_>) -> Check<u32> {
        let signature = self.out.signature.clone();
        let span = self.typed("return", &signature.results, Some(list))?;
        let index = self.out.returns.len() as u32;
        self.out.returns.push(span);
        Ok(index)
    }
}

fn move_bit(kind: Kind) -> u16 {
    if kind == Kind::Ref { REG_MOVE } else { 0 }
}
