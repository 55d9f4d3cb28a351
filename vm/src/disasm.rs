//! The text form of bytecode, for dumps and messages.

use std::collections::HashMap;

use halite_abi::{Result, bail, status};
use halite_formats::vmfb::ModuleDef;

use crate::{
    decode::{Decoder, Field, RawEdge, RawInsn, U16s},
    isa::{CALLEE_IMPORT, Op, Operand, REG_MOVE, REG_REF},
};

/// One line of a disassembly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Offset of its first byte in the function.
    pub offset: u32,
    /// Mnemonic without the `vm.` prefix; `block` for a block marker.
    pub mnemonic: &'static str,
    /// The whole line, such as `%i2 = vm.add.i32 %i0, %i1` or `^bb1:`. A capital `%R` is a moved reference.
    pub text: String,
}

/// Disassembles one function. Works on code that the verifier would refuse as long as it can be decoded;
/// INVALID_ARGUMENT says where it cannot.
pub fn disassemble(module: &ModuleDef, ordinal: u32) -> Result<Vec<Line>> {
    let Some(code) = module.function_code(ordinal) else {
        bail!(
            NotFound,
            "module '{}' has no code for function {ordinal}; it has {} functions",
            module.name,
            module.functions.len()
        );
    };
    let mut decoder = Decoder::new(&code);
    let mut insns = Vec::new();
    while let Some(next) = decoder.next() {
        insns.push(next.map_err(|(e, _)| {
            status!(
                InvalidArgument,
                "function '{}' cannot be decoded at {:#x}: {e}",
                module.function_name(ordinal),
                decoder.offset()
            )
        })?);
    }
    let blocks = insns.iter().filter(|i| i.info.op == Op::Block).map(|i| i.offset);
    let printer = Printer { module, blocks: blocks.zip(0..).collect() };
    Ok(insns.iter().map(|insn| printer.line(insn)).collect())
}

struct Printer<'a> {
    module: &'a ModuleDef,
    /// Block number by offset.
    blocks: HashMap<u32, usize>,
}

impl Printer<'_> {
    fn line(&self, insn: &RawInsn<'_>) -> Line {
        let (mut results, mut sources) = (Vec::new(), Vec::new());
        for (operand, field) in insn.info.operands.iter().zip(&insn.fields) {
            if let ("const.f32", Field::U32(bits)) = (insn.info.mnemonic, field) {
                sources.push(f32::from_bits(*bits).to_string());
            } else if let ("const.f64", Field::U64(bits)) = (insn.info.mnemonic, field) {
                sources.push(f64::from_bits(*bits).to_string());
            } else if operand.is_result() {
                results.extend(self.registers(*operand, field));
            } else {
                sources.push(self.source(*operand, field));
            }
        }
        let mnemonic = insn.info.mnemonic;
        let (results, sources) = (results.join(", "), join(mnemonic, arrange(mnemonic, sources)));
        let text = if insn.info.op == Op::Block {
            format!("{}:", self.block(insn.offset))
        } else if insn.info.operands.contains(&Operand::Target) {
            // The results are the arguments of the block that follows.
            format!("vm.{mnemonic}{sources}({results})")
        } else if results.is_empty() {
            format!("vm.{mnemonic}{sources}")
        } else {
            format!("{results} = vm.{mnemonic}{sources}")
        };
        Line { offset: insn.offset, mnemonic, text }
    }

    fn registers(&self, operand: Operand, field: &Field<'_>) -> Vec<String> {
        match field {
            Field::Reg(reg) => vec![register(*reg, is_pair(operand))],
            Field::List(list) => list.iter().map(|r| register(r, is_pair(operand))).collect(),
            _ => Vec::new(),
        }
    }

    fn source(&self, operand: Operand, field: &Field<'_>) -> String {
        match field {
            Field::Reg(reg) => register(*reg, is_pair(operand)),
            Field::U32(value) => self.word(operand, *value),
            Field::U64(value) => format!("{}  // {value:#018X}", *value as i64),
            Field::Edge(edge) => self.edge(edge),
            Field::Text(text) => format!("{:?}", String::from_utf8_lossy(text)),
            Field::List(list) if operand == Operand::Segments => format!("segments{list:?}"),
            Field::List(list) => self.list(operand, *list),
            Field::Cases(edges) => {
                let case = |(i, e): (usize, &RawEdge<'_>)| match i {
                    0 => format!("default: {}", self.edge(e)),
                    _ => format!("{}: {}", i - 1, self.edge(e)),
                };
                format!("{{ {} }}", edges.iter().enumerate().map(case).collect::<Vec<_>>().join(", "))
            }
        }
    }

    fn list(&self, operand: Operand, list: U16s<'_>) -> String {
        let registers: Vec<_> = list.iter().map(|r| register(r, is_pair(operand))).collect();
        match operand {
            Operand::Returns | Operand::Refs => registers.join(", "),
            Operand::Cells | Operand::Pairs => format!("[{}]", registers.join(", ")),
            _ => format!("({})", registers.join(", ")),
        }
    }

    fn word(&self, operand: Operand, value: u32) -> String {
        let import = |ordinal: u32| {
            let import = self.module.imports.get(ordinal as usize);
            format!("@{}", import.map_or("?", |i| i.full_name.as_str()))
        };
        match operand {
            Operand::Imm32 => format!("{}  // {value:#010X}", value as i32),
            Operand::Global4 | Operand::Global8 => format!(".rwdata[{value}]"),
            Operand::GlobalRef => format!(".refs[{value}]"),
            Operand::Type => {
                format!(": {}", self.module.types.get(value as usize).map_or("?", String::as_str))
            }
            Operand::Rodata => match self.module.rodata.get(value as usize) {
                Some(data) => format!("{value}  // {}b", data.len()),
                None => format!("{value}"),
            },
            Operand::Function if value & CALLEE_IMPORT == 0 => {
                format!("@{}.{}", self.module.name, self.module.function_name(value))
            }
            Operand::Function | Operand::Import => import(value & !CALLEE_IMPORT),
            Operand::Target => format!("-> {}", self.block(value)),
            _ => format!("{value}"),
        }
    }

    fn block(&self, offset: u32) -> String {
        match self.blocks.get(&offset) {
            Some(number) => format!("^bb{number}"),
            None => format!("^{offset:#x}"),
        }
    }

    fn edge(&self, edge: &RawEdge<'_>) -> String {
        let pairs: Vec<u16> = edge.remap.iter().collect();
        let pairs =
            pairs.chunks_exact(2).map(|p| format!("{}->{}", register(p[0], false), register(p[1], false)));
        format!("{}({})", self.block(edge.target), pairs.collect::<Vec<_>>().join(", "))
    }
}

/// Sources in the order that people write them: stores name the value first, a selection its type last.
fn arrange(mnemonic: &str, mut sources: Vec<String>) -> Vec<String> {
    if mnemonic.contains(".store.") {
        sources.rotate_right(1);
    } else if mnemonic == "select.ref" && sources.len() == 4 {
        let ty = sources.remove(1);
        sources.push(ty.replacen(':', "->", 1));
    }
    sources.retain(|s| !s.is_empty());
    sources
}

/// Sources with what belongs between them.
fn join(mnemonic: &str, sources: Vec<String>) -> String {
    let select = mnemonic.starts_with("select.");
    let mut text = String::new();
    for (i, source) in sources.iter().enumerate() {
        text.push_str(match (i, source.as_bytes().first()) {
            (0, _) | (_, Some(b':' | b'{' | b's' | b'-')) => " ",
            (_, Some(b'(')) => "",
            (1, _) if select => " ? ",
            (2, _) if select => " : ",
            _ => ", ",
        });
        text.push_str(source);
    }
    text
}

fn is_pair(operand: Operand) -> bool {
    matches!(operand, Operand::Pair | Operand::PairOut | Operand::Pairs)
}

fn register(reg: u16, pair: bool) -> String {
    if reg & REG_REF == 0 {
        return if pair { format!("%i{reg}:{}", reg.saturating_add(1)) } else { format!("%i{reg}") };
    }
    let letter = if reg & REG_MOVE != 0 { 'R' } else { 'r' };
    format!("%{letter}{}", reg & !(REG_REF | REG_MOVE))
}
