//! Owns the cut of a word stream into instructions, and the table of ids.
//! Does not own: rules between instructions (`validate`).

use spirv::Op;

use crate::{error::SpirvError, grammar};

/// Number of words before the first instruction.
pub(crate) const HEADER_WORDS: usize = 5;
/// Largest id bound that Vulkan implementations must accept.
const MAX_BOUND: u32 = 0x3F_FFFF;

/// One instruction: where it lies and which of its words are the result type and the result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inst {
    pub op: Op,
    /// Offset of the first word in the module.
    pub at: usize,
    /// Number of words, the first one included.
    pub len: usize,
    /// Result type id, or 0.
    pub ty: u32,
    /// Result id, or 0.
    pub id: u32,
}

/// One operand that is an id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdUse {
    pub id: u32,
    /// Where it stands among the words of the instruction.
    pub at: usize,
    /// May be defined after this instruction.
    pub forward: bool,
}

/// A module cut into instructions, every word accounted for.
#[derive(Debug)]
pub(crate) struct Module<'w> {
    pub words: &'w [u32],
    pub bound: u32,
    pub insts: Vec<Inst>,
    /// Instruction that defines each id, `NONE` where nothing does.
    defs: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl<'w> Module<'w> {
    /// Cuts the words; checks header, word counts, operand counts, and that ids are in bound and defined once.
    pub fn parse(words: &'w [u32]) -> Result<Self, SpirvError> {
        let bound = check_header(words)?;
        let mut module = Module { words, bound, insts: Vec::new(), defs: vec![NONE; bound as usize] };
        let mut at = HEADER_WORDS;
        while at < words.len() {
            let inst = cut(words, at)?;
            module.define(inst)?;
            at += inst.len;
            module.insts.push(inst);
        }
        Ok(module)
    }

    fn define(&mut self, inst: Inst) -> Result<(), SpirvError> {
        if inst.id == 0 {
            return Ok(());
        }
        let index = self.insts.len() as u32;
        let Some(slot) = self.defs.get_mut(inst.id as usize) else {
            return Err(SpirvError::at(
                inst.at,
                format!("id {} is not below the bound {}", inst.id, self.bound),
            ));
        };
        if *slot != NONE {
            return Err(SpirvError::at(inst.at, format!("id {} is defined twice", inst.id)));
        }
        *slot = index;
        Ok(())
    }

    /// Index of the instruction that defines an id.
    pub fn def_index(&self, id: u32) -> Option<usize> {
        self.defs.get(id as usize).filter(|d| **d != NONE).map(|d| *d as usize)
    }

    /// The instruction that defines an id.
    pub fn def(&self, id: u32) -> Option<&Inst> {
        self.def_index(id).map(|i| &self.insts[i])
    }

    /// All words of an instruction, the opcode word included.
    pub fn words_of(&self, inst: &Inst) -> &'w [u32] {
        &self.words[inst.at..inst.at + inst.len]
    }

    /// The words after opcode, result type and result.
    pub fn operands(&self, inst: &Inst) -> &'w [u32] {
        let skip = 1 + usize::from(inst.ty != 0) + usize::from(inst.id != 0);
        &self.words_of(inst)[skip.min(inst.len)..]
    }

    /// The value of an integer constant that specialization cannot change, if it fits 32 bits.
    pub fn constant_u32(&self, id: u32) -> Option<u32> {
        let inst = self.def(id)?;
        let is_int = self.def(inst.ty)?.op == Op::TypeInt;
        match (inst.op, self.operands(inst)) {
            (Op::Constant, [value] | [value, 0]) if is_int => Some(*value),
            (Op::ConstantNull, _) if is_int => Some(0),
            _ => None,
        }
    }

    /// Calls `f` for every id operand, the result type included, the result excluded.
    pub fn for_each_use(
        &self,
        inst: &Inst,
        mut f: impl FnMut(IdUse) -> Result<(), SpirvError>,
    ) -> Result<(), SpirvError> {
        let words = self.words_of(inst);
        let shape = grammar::shape_of(inst.op, words).unwrap_or("L");
        let mut at = 1;
        for kind in shape.bytes() {
            let forward = matches!(kind, b'f' | b'F');
            match kind {
                b't' | b'i' | b'f' => {
                    f(IdUse { id: words[at], at, forward })?;
                    at += 1;
                }
                b'o' => {
                    if let Some(&id) = words.get(at) {
                        f(IdUse { id, at, forward })?;
                        at += 1;
                    }
                }
                b'r' | b'l' | b'w' => at += 1,
                b's' => at += string_words(&words[at..]).unwrap_or(words.len() - at),
                b'I' | b'F' => {
                    (at..words.len()).try_for_each(|at| f(IdUse { id: words[at], at, forward }))?;
                }
                b'P' => {
                    (at..words.len()).try_for_each(|at| f(IdUse { id: words[at], at, forward: true }))?;
                }
                b'S' => {
                    let step = self.switch_literal_words(inst) + 1;
                    let mut labels = (at + step - 1..words.len()).step_by(step);
                    labels.try_for_each(|at| f(IdUse { id: words[at], at, forward: true }))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Words per case literal of a switch: two for a 64-bit selector.
    pub fn switch_literal_words(&self, inst: &Inst) -> usize {
        let selector = self.words_of(inst).get(1).copied().unwrap_or(0);
        let ty = self.def(selector).and_then(|d| self.def(d.ty));
        match ty {
            Some(t) if t.op == Op::TypeInt && self.operands(t)[0] == 64 => 2,
            _ => 1,
        }
    }
}

fn check_header(words: &[u32]) -> Result<u32, SpirvError> {
    if words.len() < HEADER_WORDS {
        return Err(SpirvError::at(
            0,
            format!("{} words are too few for the header of 5 words", words.len()),
        ));
    }
    if words[0] != spirv::MAGIC_NUMBER {
        return Err(SpirvError::at(0, format!("magic number is {:#010x}, expected 0x07230203", words[0])));
    }
    let version = words[1];
    if version & 0xFF00_00FF != 0 || version >> 16 != 1 || (version >> 8) & 0xFF > 6 {
        return Err(SpirvError::at(1, format!("version word {version:#010x} is none of 1.0 to 1.6")));
    }
    if words[4] != 0 {
        return Err(SpirvError::at(4, "the schema word must be 0"));
    }
    let bound = words[3];
    // An id takes two words to define, so a bound far above the module's size is a lie that would cost memory.
    let limit =
        MAX_BOUND.min(u32::try_from(words.len().saturating_mul(4)).unwrap_or(MAX_BOUND).max(0x1_0000));
    if bound == 0 || bound > limit {
        return Err(SpirvError::at(3, format!("id bound {bound} is not in 1..={limit}")));
    }
    Ok(bound)
}

fn cut(words: &[u32], at: usize) -> Result<Inst, SpirvError> {
    let (len, code) = ((words[at] >> 16) as usize, words[at] & 0xFFFF);
    let Some(op) = Op::from_u32(code) else {
        return Err(SpirvError::at(at, format!("opcode {code} does not exist")));
    };
    if len == 0 || len > words.len() - at {
        let left = words.len() - at;
        return Err(SpirvError::at(at, format!("Op{op:?} claims {len} words, {left} are left")));
    }
    let words = &words[at..at + len];
    let Some(shape) = grammar::shape_of(op, words) else {
        return Err(SpirvError::at(at, format!("Op{op:?} is not an instruction of compute shaders")));
    };
    let mut inst = Inst { op, at, len, ty: 0, id: 0 };
    let mut next = 1;
    for kind in shape.bytes() {
        let wrong = || SpirvError::at(at, format!("Op{op:?} has a wrong number of operands ({} words)", len));
        match kind {
            b'I' | b'F' | b'L' | b'P' | b'S' => next = len,
            b'o' | b'w' => next = len.min(next + 1),
            b's' => {
                next += string_words(&words[next.min(len)..])
                    .ok_or_else(|| SpirvError::at(at, "text has no end, or is not UTF-8"))?;
            }
            _ => {
                let word = *words.get(next).ok_or_else(wrong)?;
                if matches!(kind, b't' | b'r' | b'i' | b'f') && word == 0 {
                    return Err(SpirvError::at(at, format!("Op{op:?} uses id 0")));
                }
                match kind {
                    b't' => inst.ty = word,
                    b'r' => inst.id = word,
                    _ => {}
                }
                next += 1;
            }
        }
    }
    if next != len {
        return Err(SpirvError::at(at, format!("Op{op:?} has {} words too many", len - next.min(len))));
    }
    Ok(inst)
}

/// Number of words a literal string takes, its end included; `None` if it never ends or is not UTF-8.
pub(crate) fn string_words(words: &[u32]) -> Option<usize> {
    let end = words.iter().position(|w| w.to_le_bytes().contains(&0))?;
    literal_string(&words[..=end]).map(|_| end + 1)
}

/// The text of a literal string that starts at the first word.
pub(crate) fn literal_string(words: &[u32]) -> Option<String> {
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).take_while(|b| *b != 0).collect();
    String::from_utf8(bytes).ok()
}
