//! The reader: a word stream cut into instructions, and the table of ids.
//!
//! Every operation of this crate on a module begins here, and finds instructions by this cut. It checks what it takes to be
//! able to look at any word without fear; rules between instructions are in `validate`.

use spirv::{GlslStd450Op, Op};

use crate::{
    error::SpirvError,
    grammar,
    words::{BOUND_WORD, HEADER_WORDS, literal_text, literal_words},
};

/// Largest id bound that Vulkan implementations must accept.
const MAX_BOUND: u32 = 0x3F_FFFF;

/// One instruction: where it lies and which of its words are the result type and the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inst {
    /// What it does.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdUse {
    /// The id.
    pub id: u32,
    /// Where it stands among the words of the instruction.
    pub at: usize,
    /// May be defined after this instruction.
    pub forward: bool,
}

/// What an `OpEntryPoint` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryPoint<'w> {
    /// Number of the execution model.
    pub model: u32,
    /// Id of the function.
    pub function: u32,
    /// Name, as pipelines refer to it.
    pub name: String,
    /// The variables that it lists.
    pub interface: &'w [u32],
}

/// A module cut into instructions, every word accounted for.
#[derive(Debug)]
pub struct Module<'w> {
    words: &'w [u32],
    bound: u32,
    insts: Vec<Inst>,
    /// Instruction that defines each id, `NONE` where nothing does.
    defs: Vec<u32>,
}

/// Name of the set of extended instructions that kernels use.
pub(crate) const GLSL: &str = "GLSL.std.450";

const NONE: u32 = u32::MAX;

impl<'w> Module<'w> {
    /// Cuts the words.
    ///
    /// # Errors
    /// [`SpirvError::Invalid`] if the header, a word count, the number of operands, an opcode, or an id is none that a
    /// compute shader has, or an id is defined twice.
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

    /// All words, the header included.
    pub fn words(&self) -> &'w [u32] {
        self.words
    }

    /// All ids are below this number.
    pub fn bound(&self) -> u32 {
        self.bound
    }

    /// The version word: major in bits 16 and up, minor in bits 8 to 15.
    pub fn version(&self) -> u32 {
        self.words[1]
    }

    /// The instructions in order.
    pub fn insts(&self) -> &[Inst] {
        &self.insts
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

    /// The entry points, with their instructions.
    pub fn entry_points(&self) -> impl Iterator<Item = (&Inst, EntryPoint<'w>)> {
        let entries = self.insts.iter().filter(|inst| inst.op == Op::EntryPoint);
        entries.filter_map(|inst| {
            let [model, function, rest @ ..] = self.operands(inst) else { return None };
            let interface = &rest[literal_words(rest)?..];
            Some((
                inst,
                EntryPoint { model: *model, function: *function, name: literal_text(rest)?, interface },
            ))
        })
    }

    /// The number of the storage class of a variable; `None` for what is no variable.
    pub fn variable_class(&self, id: u32) -> Option<u32> {
        let variable = self.def(id).filter(|def| def.op == Op::Variable)?;
        self.operands(variable).first().copied()
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

    /// The id operands of an instruction, its result type included, its result excluded.
    pub fn uses(&self, inst: &Inst) -> impl Iterator<Item = IdUse> + use<'w> {
        let words = self.words_of(inst);
        let literal = self.switch_literal_words(inst);
        let mut next = 1;
        grammar::shape_of(inst.op, words).unwrap_or_default().bytes().flat_map(move |kind| {
            let at = next;
            // How many words the operand has, and which of them are ids.
            let (len, ids, step) = match kind {
                b't' | b'i' | b'f' => (1, at..at + 1, 1),
                b'o' => (1, at..words.len().min(at + 1), 1),
                b'r' | b'l' | b'w' => (1, at..at, 1),
                b's' => (words.get(at..).and_then(literal_words).unwrap_or(0), at..at, 1),
                b'I' | b'F' | b'P' => (words.len(), at..words.len(), 1),
                b'S' => (words.len(), at + literal..words.len(), literal + 1),
                _ => (words.len(), at..at, 1),
            };
            next += len;
            let forward = matches!(kind, b'f' | b'F' | b'P' | b'S');
            ids.step_by(step).filter_map(move |at| Some(IdUse { id: *words.get(at)?, at, forward }))
        })
    }

    /// Whether an instruction has this id among its operands or as its type.
    pub fn has_use(&self, inst: &Inst, id: u32) -> bool {
        self.uses(inst).any(|used| used.id == id)
    }

    /// The instruction of `GLSL.std.450` that an `OpExtInst` names by set and number; `None` of other sets.
    pub fn glsl_op(&self, set: u32, number: u32) -> Option<GlslStd450Op> {
        let import = self.def(set).filter(|def| def.op == Op::ExtInstImport)?;
        (literal_text(self.operands(import))? == GLSL).then(|| GlslStd450Op::from_u32(number))?
    }

    /// Words per case literal of a switch: two for a 64-bit selector.
    pub(crate) fn switch_literal_words(&self, inst: &Inst) -> usize {
        let selector = self.words_of(inst).get(1).copied().filter(|_| inst.op == Op::Switch).unwrap_or(0);
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
    let (bound, limit) = (words[BOUND_WORD], bound_limit(words.len()));
    if bound == 0 || bound > limit {
        return Err(SpirvError::at(3, format!("id bound {bound} is not in 1..={limit}")));
    }
    Ok(bound)
}

/// Largest bound of ids that a module of so many words may have. An id takes two words to define, so a bound far above the
/// module's size is a lie that would cost memory.
pub(crate) fn bound_limit(words: usize) -> u32 {
    MAX_BOUND.min(u32::try_from(words.saturating_mul(4)).unwrap_or(MAX_BOUND).max(0x1_0000))
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
        return Err(SpirvError::at(
            at,
            format!("Op{op:?} is not an instruction of compute shaders or graphs"),
        ));
    };
    let mut inst = Inst { op, at, len, ty: 0, id: 0 };
    let mut next = 1;
    for kind in shape.bytes() {
        let wrong = || SpirvError::at(at, format!("Op{op:?} has a wrong number of operands ({} words)", len));
        match kind {
            b'I' | b'F' | b'L' | b'P' | b'S' => next = len,
            b'o' | b'w' => next = len.min(next + 1),
            b's' => {
                next += literal_words(&words[next.min(len)..])
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
