//! The verification of a function's bytecode and its translation to [`Function`]. After it, every register, ordinal, branch
//! target and call list is known to be good.

mod calls;
mod operands;

use std::sync::Arc;

use halite_abi::{Result, Status, status};
use halite_formats::vmfb::{ModuleDef, requirement};

use crate::{
    code::{Function, Insn, Span},
    decode::{Decoder, Field, RawInsn},
    isa::{self, Op, OpSet, Operand},
    signature::{ArgLayout, Param, Signature},
};

/// What functions of a module are checked against.
pub(crate) struct Scope<'a> {
    pub def: &'a ModuleDef,
    /// Of functions, by ordinal.
    pub functions: &'a [Arc<Signature>],
    /// Of imports, by ordinal.
    pub imports: &'a [Arc<Signature>],
}

/// What is wrong with an instruction.
type Check<T = ()> = Result<T, String>;

/// Verifies one function. The error names module, function, offset and mnemonic.
pub(crate) fn function(scope: &Scope<'_>, ordinal: u32) -> Result<Function> {
    let at = |offset: u32, what: &str, problem: &str| -> Status {
        let (module, name) = (&scope.def.name, scope.def.function_name(ordinal));
        status!(InvalidArgument, "module '{module}' function '{name}' at {offset:#x}, {what}: {problem}")
    };
    let code = scope
        .def
        .function_code(ordinal)
        .ok_or_else(|| at(0, "descriptor", "the code lies outside of the module's bytecode"))?;
    let mut verifier = Verifier::new(scope, ordinal).map_err(|e| at(0, "descriptor", &e))?;
    let mut decoder = Decoder::new(&code);
    while let Some(next) = decoder.next() {
        let insn = next.map_err(|(e, info)| {
            at(decoder.offset(), info.map_or("opcode", |i| i.mnemonic), &e.to_string())
        })?;
        verifier.insn(&insn).map_err(|e| at(insn.offset, insn.info.mnemonic, &e))?;
    }
    verifier.finish().map_err(|(offset, e)| at(offset, "blocks", &e))
}

/// State while one function is walked.
struct Verifier<'a> {
    scope: &'a Scope<'a>,
    requirements: u32,
    block_count: usize,
    /// Registers that may be named.
    cell_limit: u32,
    ref_limit: u32,
    /// Bytecode offset and instruction index of each block.
    blocks: Vec<(u32, u32)>,
    in_block: bool,
    /// Edge targets are bytecode offsets until `finish`.
    out: Function,
    /// Bytecode offset that each edge leaves from, for messages; parallel to `out.edges`.
    edge_origins: Vec<u32>,
}

fn rounded(count: u16) -> u32 {
    if count == 0 { 0 } else { u32::from(count).next_power_of_two() }
}

impl<'a> Verifier<'a> {
    fn new(scope: &'a Scope<'a>, ordinal: u32) -> Check<Self> {
        let index = ordinal as usize;
        let (Some(descriptor), Some(signature)) =
            (scope.def.functions.get(index), scope.functions.get(index))
        else {
            return Err(format!("there is no function {ordinal}"));
        };
        if descriptor.block_count == 0 || descriptor.bytecode_length == 0 {
            return Err("a function needs at least one block".into());
        }
        if descriptor.i32_register_count > isa::MAX_CELLS || descriptor.ref_register_count > isa::MAX_REFS {
            return Err(format!(
                "{} cells and {} refs are more than the {} and {} that can be encoded",
                descriptor.i32_register_count,
                descriptor.ref_register_count,
                isa::MAX_CELLS,
                isa::MAX_REFS
            ));
        }
        let unknown = descriptor.requirements & !requirement::KNOWN;
        if unknown != 0 {
            return Err(format!("requirement bits {unknown:#x} are not known"));
        }
        let mut this = Verifier {
            scope,
            requirements: descriptor.requirements,
            block_count: usize::from(descriptor.block_count),
            cell_limit: rounded(descriptor.i32_register_count),
            ref_limit: rounded(descriptor.ref_register_count),
            blocks: Vec::new(),
            in_block: false,
            out: empty(signature.clone()),
            edge_origins: Vec::new(),
        };
        this.entry(signature)?;
        Ok(this)
    }

    /// Arguments arrive in registers, which must exist.
    fn entry(&mut self, signature: &Signature) -> Check {
        let mut layout = ArgLayout::default();
        for param in &signature.args {
            match param {
                Param::One(kind) => {
                    layout.next(*kind);
                }
                Param::Span(_) => return Err("only imports may be variadic".into()),
            }
        }
        if layout.cells > self.cell_limit as usize || layout.refs > self.ref_limit as usize {
            return Err(format!(
                "arguments need {} cells and {} refs, but the function has {} and {}",
                layout.cells, layout.refs, self.cell_limit, self.ref_limit
            ));
        }
        self.out.cells = layout.cells as u32;
        self.out.refs = layout.refs as u32;
        Ok(())
    }

    fn insn(&mut self, insn: &RawInsn<'_>) -> Check {
        let op = insn.info.op;
        if op == Op::Block {
            if self.in_block {
                return Err("the block before does not end in a terminator".into());
            }
            self.in_block = true;
            self.blocks.push((insn.offset, self.next_index()));
            return Ok(());
        }
        if !self.in_block {
            return Err("the instruction is outside of a block".into());
        }
        self.extension(insn.info.set)?;
        let lowered = match op {
            Op::Call | Op::CallVariadic | Op::CallYieldable | Op::CallVariadicYieldable => self.call(insn)?,
            _ => self.plain(insn)?,
        };
        self.out.code.push(lowered);
        self.out.offsets.push(insn.offset);
        self.in_block = !op.is_terminator();
        Ok(())
    }

    fn extension(&self, set: OpSet) -> Check {
        let (bit, name) = match set {
            OpSet::Core => return Ok(()),
            OpSet::F32 => (requirement::EXT_F32, "f32"),
            OpSet::F64 => (requirement::EXT_F64, "f64"),
        };
        if self.requirements & bit == 0 {
            return Err(format!("the function does not declare the {name} requirement"));
        }
        Ok(())
    }

    /// Checks and packs an instruction that is not a call.
    fn plain(&mut self, insn: &RawInsn<'_>) -> Check<Insn> {
        let mut regs = smallvec::SmallVec::<[u16; 8]>::new();
        let mut words = smallvec::SmallVec::<[u32; 4]>::new();
        for (operand, field) in insn.info.operands.iter().zip(&insn.fields) {
            match field {
                Field::Reg(reg) => regs.push(self.register(*operand, *reg)?),
                Field::U32(value) => words.push(self.word(*operand, *value)?),
                Field::U64(value) => words.extend([*value as u32, (*value >> 32) as u32]),
                Field::Edge(edge) => words.push(self.edge(insn.offset, edge)?),
                Field::Text(text) => {
                    words.push(self.out.strings.len() as u32);
                    self.out.strings.push(String::from_utf8_lossy(text).into());
                }
                Field::List(list) if *operand == Operand::Returns => words.push(self.returns(*list)?),
                Field::List(list) => words.push(self.list(*operand, *list)?),
                Field::Cases(edges) => {
                    words.extend([self.out.edges.len() as u32, edges.len() as u32 - 1]);
                    for edge in edges {
                        self.edge(insn.offset, edge)?;
                    }
                }
            }
        }
        Insn::pack(insn.info.op, &regs, &words).ok_or_else(|| "the operands do not fit an instruction".into())
    }

    fn next_index(&self) -> u32 {
        self.out.code.len() as u32
    }

    /// Instruction index of the block at a bytecode offset.
    fn resolve(&self, target: u32) -> Check<u32> {
        self.blocks
            .binary_search_by_key(&target, |b| b.0)
            .map(|i| self.blocks[i].1)
            .map_err(|_| format!("branch target {target:#x} is not the beginning of a block"))
    }

    fn finish(mut self) -> Result<Function, (u32, String)> {
        let end = self.out.offsets.last().copied().unwrap_or(0);
        if self.in_block || self.blocks.is_empty() {
            return Err((end, "the last block does not end in a terminator".into()));
        }
        if self.blocks.len() != self.block_count {
            let found = self.blocks.len();
            return Err((end, format!("{found} blocks found, but the descriptor says {}", self.block_count)));
        }
        for i in 0..self.out.edges.len() {
            let origin = self.edge_origins[i];
            let target = self.resolve(self.out.edges[i].target).map_err(|e| (origin, e))?;
            let edge = &mut self.out.edges[i];
            edge.backward = self.out.offsets.get(target as usize).is_none_or(|o| *o <= origin);
            edge.target = target;
        }
        for i in 0..self.out.sites.len() {
            if let Some(target) = self.out.sites[i].target {
                self.out.sites[i].target = Some(self.resolve(target).map_err(|e| (end, e))?);
            }
        }
        Ok(self.out)
    }
}

fn empty(signature: Arc<Signature>) -> Function {
    Function {
        signature,
        code: Vec::new(),
        offsets: Vec::new(),
        edges: Vec::new(),
        pairs: Vec::new(),
        regs: Vec::new(),
        lists: Vec::new(),
        sites: Vec::new(),
        typed: Vec::new(),
        returns: Vec::new(),
        strings: Vec::new(),
        cells: 0,
        refs: 0,
    }
}

/// The part of a table from `start` to its end.
fn span_from<T>(start: usize, table: &[T]) -> Span {
    Span { start: start as u32, len: (table.len() - start) as u32 }
}
