//! An assembler for functions and modules, driven by the instruction table.

use bytes::Bytes;
use halite_abi::{Result, bail, status};
use halite_formats::vmfb::{
    BYTECODE_VERSION, Dependency, Export, Function, FunctionSignature, Import, ModuleDef, requirement,
};

use crate::isa::{self, CALLEE_IMPORT, Op, OpSet, Operand, REG_MOVE, REG_REF, SEGMENT_PLAIN};

/// A register operand as it is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reg(pub u16);

/// Cell `n` of the i32 bank; for 64-bit values the even low cell.
pub fn cell(n: u16) -> Reg {
    Reg(n & !REG_REF)
}

/// Ref register `n`, copied when it is a source.
pub fn reference(n: u16) -> Reg {
    Reg(REG_REF | n & isa::MAX_REFS)
}

/// Ref register `n`, moved.
pub fn moved(n: u16) -> Reg {
    Reg(reference(n).0 | REG_MOVE)
}

/// Function operand that names an import.
pub fn import(ordinal: u32) -> u32 {
    ordinal | CALLEE_IMPORT
}

/// Segment list entry of a parameter that is not a span.
pub const PLAIN: u16 = SEGMENT_PLAIN;

/// A block, made by [`FunctionBuilder::label`] and placed by [`FunctionBuilder::block`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Label(usize);

/// A branch: where to, and (source, destination) register pairs. 64-bit values need two pairs.
pub type Branch = (Label, Vec<(Reg, Reg)>);

/// An operand. Each must match the operand of the instruction table at its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arg {
    /// A register.
    Reg(Reg),
    /// An immediate, ordinal, type index or global offset.
    U32(u32),
    /// A 64-bit immediate.
    U64(u64),
    /// A string.
    Text(String),
    /// A register list.
    Regs(Vec<Reg>),
    /// A segment list.
    Segments(Vec<u16>),
    /// A block without remapping.
    Target(Label),
    /// A branch.
    Edge(Branch),
    /// A branch table: default first.
    Cases(Vec<Branch>),
}

macro_rules! arg_from {
    ($($from:ty => $to:ident),*) => { $(
        impl From<$from> for Arg {
            fn from(value: $from) -> Arg {
                Arg::$to(value.into())
            }
        }
    )* };
}

arg_from!(Reg => Reg, u32 => U32, u64 => U64, &str => Text, Vec<Reg> => Regs, Vec<u16> => Segments, Branch => Edge,
    Vec<Branch> => Cases);

impl From<Label> for Arg {
    fn from(label: Label) -> Arg {
        Arg::Edge((label, Vec::new()))
    }
}

impl From<i32> for Arg {
    fn from(value: i32) -> Arg {
        Arg::U32(value as u32)
    }
}

impl From<i64> for Arg {
    fn from(value: i64) -> Arg {
        Arg::U64(value as u64)
    }
}

/// Builds the code of one function. Register counts, block count and requirements are derived.
#[derive(Clone, Debug)]
pub struct FunctionBuilder {
    calling_convention: String,
    code: Vec<u8>,
    /// Offset of each label's block.
    labels: Vec<Option<u32>>,
    /// (place in code, label) of targets to fill in.
    fixups: Vec<(usize, Label)>,
    blocks: u16,
    cells: u16,
    refs: u16,
    requirements: u32,
}

impl FunctionBuilder {
    /// An empty function with its first block open.
    pub fn new(calling_convention: &str) -> Self {
        let signature = crate::Signature::parse(calling_convention).unwrap_or_default();
        let mut layout = crate::signature::ArgLayout::default();
        signature.plain_args().for_each(|kind| {
            layout.next(kind);
        });
        let mut this = FunctionBuilder {
            calling_convention: calling_convention.to_owned(),
            code: Vec::new(),
            labels: Vec::new(),
            fixups: Vec::new(),
            blocks: 0,
            cells: u16::try_from(layout.cells).unwrap_or(u16::MAX),
            refs: u16::try_from(layout.refs).unwrap_or(u16::MAX),
            requirements: 0,
        };
        let entry = this.label();
        this.block(entry);
        this
    }

    /// A new block, to be placed later.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// The first block.
    pub fn entry(&self) -> Label {
        Label(0)
    }

    /// Places a block here.
    pub fn block(&mut self, label: Label) -> &mut Self {
        self.labels[label.0] = Some(self.code.len() as u32);
        self.code.push(Op::Block.info().code);
        self.blocks = self.blocks.saturating_add(1);
        self
    }

    /// Appends an instruction. INVALID_ARGUMENT when the operands are not those of the instruction table.
    pub fn op(&mut self, op: Op, args: &[Arg]) -> Result<&mut Self> {
        let info = op.info();
        if info.operands.len() != args.len() {
            bail!(
                InvalidArgument,
                "{} takes {:?} but {} are given",
                info.mnemonic,
                info.operands,
                args.len()
            );
        }
        match info.set {
            OpSet::Core => {}
            OpSet::F32 => {
                self.code.push(isa::PREFIX_F32);
                self.requirements |= requirement::EXT_F32;
            }
            OpSet::F64 => {
                self.code.push(isa::PREFIX_F64);
                self.requirements |= requirement::EXT_F64;
            }
        }
        self.code.push(info.code);
        for (i, (operand, arg)) in info.operands.iter().zip(args).enumerate() {
            self.operand(*operand, arg).ok_or_else(|| {
                status!(InvalidArgument, "operand {i} of {} is {operand:?}, not {arg:?}", info.mnemonic)
            })?;
        }
        Ok(self)
    }

    /// Appends raw bytes, to build what the verifier must refuse.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.code.extend_from_slice(bytes);
        self
    }

    fn operand(&mut self, operand: Operand, arg: &Arg) -> Option<()> {
        match (operand, arg) {
            (
                Operand::Cell
                | Operand::CellOut
                | Operand::Pair
                | Operand::PairOut
                | Operand::Ref
                | Operand::RefMove
                | Operand::RefOut,
                Arg::Reg(reg),
            ) => self.reg(*reg, matches!(operand, Operand::Pair | Operand::PairOut)),
            (
                Operand::Imm32
                | Operand::Global4
                | Operand::Global8
                | Operand::GlobalRef
                | Operand::Rodata
                | Operand::Type
                | Operand::Function
                | Operand::Import,
                Arg::U32(value),
            ) => self.code.extend(value.to_le_bytes()),
            (Operand::Imm64, Arg::U64(value)) => self.code.extend(value.to_le_bytes()),
            (Operand::Target, Arg::Target(label)) => self.target(*label),
            (Operand::Edge, Arg::Edge(branch)) => self.edge(branch)?,
            (Operand::Text, Arg::Text(text)) => {
                self.code.extend(u16::try_from(text.len()).ok()?.to_le_bytes());
                self.code.extend(text.as_bytes());
            }
            (Operand::Segments, Arg::Segments(list)) => {
                self.count(list.len())?;
                list.iter().for_each(|n| self.code.extend(n.to_le_bytes()));
            }
            (
                Operand::Cells
                | Operand::Pairs
                | Operand::Refs
                | Operand::Any
                | Operand::Args
                | Operand::Results
                | Operand::Returns,
                Arg::Regs(list),
            ) => {
                self.count(list.len())?;
                // Call lists may hold 64-bit values: count two cells for each.
                list.iter().for_each(|reg| self.reg(*reg, operand != Operand::Cells));
            }
            (Operand::Cases, Arg::Cases(branches)) => {
                let (default, cases) = branches.split_first()?;
                self.edge(default)?;
                self.code.extend(u16::try_from(cases.len()).ok()?.to_le_bytes());
                cases.iter().try_for_each(|branch| self.edge(branch))?;
            }
            _ => return None,
        }
        Some(())
    }

    fn reg(&mut self, reg: Reg, pair: bool) {
        if reg.0 & REG_REF != 0 {
            self.refs = self.refs.max((reg.0 & isa::MAX_REFS).saturating_add(1));
        } else {
            self.cells = self.cells.max(reg.0.saturating_add(1 + u16::from(pair)));
        }
        self.code.extend(reg.0.to_le_bytes());
    }

    fn count(&mut self, count: usize) -> Option<()> {
        if self.code.len() % 2 == 1 {
            self.code.push(0);
        }
        self.code.extend(u16::try_from(count).ok()?.to_le_bytes());
        Some(())
    }

    fn target(&mut self, label: Label) {
        self.fixups.push((self.code.len(), label));
        self.code.extend([0; 4]);
    }

    fn edge(&mut self, (label, pairs): &Branch) -> Option<()> {
        self.target(*label);
        self.count(pairs.len())?;
        for (from, to) in pairs {
            self.reg(*from, false);
            self.reg(*to, false);
        }
        Some(())
    }

    /// Fills in targets.
    fn finish(mut self) -> Result<FunctionBuilder> {
        for (place, label) in std::mem::take(&mut self.fixups) {
            let Some(offset) = self.labels.get(label.0).copied().flatten() else {
                bail!(InvalidArgument, "block {} is branched to but was never placed", label.0);
            };
            self.code[place..place + 4].copy_from_slice(&offset.to_le_bytes());
        }
        Ok(self)
    }
}

/// Builds a module.
#[derive(Clone, Debug)]
pub struct ModuleBuilder {
    def: ModuleDef,
    code: Vec<u8>,
}

impl ModuleBuilder {
    /// An empty module.
    pub fn new(name: &str) -> Self {
        let def =
            ModuleDef { name: name.to_owned(), bytecode_version: BYTECODE_VERSION, ..ModuleDef::default() };
        ModuleBuilder { def, code: Vec::new() }
    }

    /// Index of a type, added when new.
    pub fn ty(&mut self, name: &str) -> u32 {
        let types = &mut self.def.types;
        let index = types.iter().position(|t| t == name).unwrap_or_else(|| {
            types.push(name.to_owned());
            types.len() - 1
        });
        index as u32
    }

    /// Adds an import; gives the function operand that calls it.
    pub fn import(&mut self, full_name: &str, calling_convention: &str, optional: bool) -> u32 {
        let signature =
            FunctionSignature { calling_convention: calling_convention.to_owned(), attrs: Vec::new() };
        self.def.imports.push(Import { full_name: full_name.to_owned(), signature, optional });
        import(self.def.imports.len() as u32 - 1)
    }

    /// Adds a dependency.
    pub fn dependency(&mut self, name: &str, minimum_version: u32, optional: bool) -> &mut Self {
        self.def.dependencies.push(Dependency { name: name.to_owned(), minimum_version, optional });
        self
    }

    /// Adds read-only data; gives its ordinal.
    pub fn rodata(&mut self, data: impl Into<Bytes>) -> u32 {
        self.def.rodata.push(data.into());
        self.def.rodata.len() as u32 - 1
    }

    /// Sets the size of global state.
    pub fn globals(&mut self, bytes: u32, refs: u32) -> &mut Self {
        (self.def.global_bytes_capacity, self.def.global_ref_count) = (bytes, refs);
        self
    }

    /// Adds a function; gives its ordinal. With a name it is exported.
    pub fn function(&mut self, name: Option<&str>, function: FunctionBuilder) -> Result<u32> {
        let function = function.finish()?;
        self.code.resize(self.code.len().next_multiple_of(8), 0);
        let ordinal = self.def.functions.len() as u32;
        self.def.requirements |= function.requirements;
        self.def.functions.push(Function {
            signature: FunctionSignature {
                calling_convention: function.calling_convention,
                attrs: Vec::new(),
            },
            bytecode_offset: self.code.len() as u32,
            bytecode_length: function.code.len() as u32,
            requirements: function.requirements,
            block_count: function.blocks,
            i32_register_count: function.cells,
            ref_register_count: function.refs,
        });
        self.code.extend(function.code);
        if let Some(name) = name {
            self.def.exports.push(Export { local_name: name.to_owned(), ordinal });
        }
        Ok(ordinal)
    }

    /// The module.
    pub fn finish(mut self) -> ModuleDef {
        self.def.bytecode = Bytes::from(self.code);
        self.def
    }
}
