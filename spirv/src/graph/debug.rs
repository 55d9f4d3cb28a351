//! What debug information (`NonSemantic.Graph.DebugInfo`) says of graphs.

use std::{collections::HashMap, sync::Arc};

use spirv::Op;

use crate::{
    module::{Inst, Module},
    words::literal_text,
};

/// How the names of sets begin that mean nothing to what is computed.
pub(super) const NON_SEMANTIC: &str = "NonSemantic.";
/// How the names of sets of debug information begin.
const DEBUG: &str = "NonSemantic.Graph.DebugInfo.";

/// What an instruction of debug information says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugName {
    /// What it is about: `graph`, `operation` or `tensor`.
    pub kind: &'static str,
    /// What that is called.
    pub text: Arc<str>,
    /// The ids that it is about.
    pub ids: Vec<u32>,
}

/// Reads an instruction of a set; `None` if it is no debug information that is known.
///
/// Whatever it is about, its operands are a text and, behind it, ids.
pub(super) fn name(module: &Module<'_>, set: &str, inst: &Inst) -> Option<DebugName> {
    let [_, number, operands @ ..] = module.operands(inst) else { return None };
    let kind = match number {
        1 => "graph",
        2 => "operation",
        3 => "tensor",
        _ => return None,
    };
    let text = |id: &u32| {
        let def = module.def(*id).filter(|def| def.op == Op::String)?;
        literal_text(module.operands(def))
    };
    let at = operands.iter().position(|id| text(id).is_some()).filter(|_| set.starts_with(DEBUG))?;
    Some(DebugName { kind, text: text(&operands[at])?.into(), ids: operands[at + 1..].to_vec() })
}

/// The names of ids: those of `OpName`, and better ones of debug information.
pub(super) fn names(module: &Module<'_>) -> HashMap<u32, Arc<str>> {
    let named = module.insts().iter().filter(|inst| inst.op == Op::Name);
    let of = |inst: &Inst| {
        let [id, text @ ..] = module.operands(inst) else { return None };
        Some((*id, literal_text(text)?.into()))
    };
    named.filter_map(of).collect()
}
