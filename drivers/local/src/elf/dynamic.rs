//! The dynamic section: where symbols, strings, relocations and initializers are.

use super::{
    ElfError, ElfFile,
    numbers::{u16_at, u32_at, u64_at},
    relocate::Relocation,
};

const DT_NEEDED: u64 = 1;
const DT_PLTRELSZ: u64 = 2;
const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_RELAENT: u64 = 9;
const DT_STRSZ: u64 = 10;
const DT_SYMENT: u64 = 11;
const DT_INIT: u64 = 12;
const DT_REL: u64 = 17;
const DT_RELSZ: u64 = 18;
const DT_PLTREL: u64 = 20;
const DT_JMPREL: u64 = 23;
const DT_INIT_ARRAY: u64 = 25;
const DT_INIT_ARRAYSZ: u64 = 27;
const DT_RELRSZ: u64 = 35;
const DT_RELR: u64 = 36;

const SYMBOL_SIZE: u64 = 24;
const RELA_SIZE: u64 = 24;
const WEAK: u8 = 2;

/// Where things are, as addresses within the image.
#[derive(Clone, Debug, Default)]
pub(super) struct Dynamic {
    symbols: u64,
    symbol_count: u32,
    strings: (u64, u64),
    rela: (u64, u64),
    plt_rela: (u64, u64),
    init: Option<u64>,
    init_array: Vec<u64>,
}

/// An entry of the symbol table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Symbol {
    name: u32,
    info: u8,
    section: u16,
    /// Address within the image.
    pub(super) value: u64,
}

impl Symbol {
    pub(super) fn is_defined(&self) -> bool {
        self.section != 0
    }

    pub(super) fn is_weak(&self) -> bool {
        self.info >> 4 == WEAK
    }
}

impl Dynamic {
    /// Reads the section at this address.
    pub(super) fn read(file: &ElfFile<'_>, address: u64, size: u64) -> Result<Self, ElfError> {
        let bytes = file.at("dynamic section", address, size)?;
        let entries = bytes.chunks_exact(16).map(|e| (u64_at(e, 0), u64_at(e, 8)));
        let mut found = Dynamic::default();
        let (mut hash, mut init_array) = (None, (0, 0));
        for (tag, value) in entries.take_while(|(tag, _)| *tag != 0) {
            match tag {
                DT_NEEDED => return Err(ElfError::unsupported("another library (DT_NEEDED)")),
                DT_REL | DT_RELSZ => {
                    return Err(ElfError::unsupported("relocations with implicit addends (DT_REL)"));
                }
                DT_RELR | DT_RELRSZ => return Err(ElfError::unsupported("packed relocations (DT_RELR)")),
                DT_PLTREL if value != DT_RELA => {
                    return Err(ElfError::unsupported("relocations with implicit addends (DT_PLTREL)"));
                }
                DT_RELAENT => expect("relocation size (DT_RELAENT)", value, RELA_SIZE)?,
                DT_SYMENT => expect("symbol size (DT_SYMENT)", value, SYMBOL_SIZE)?,
                DT_HASH => hash = Some(value),
                DT_STRTAB => found.strings.0 = value,
                DT_STRSZ => found.strings.1 = value,
                DT_SYMTAB => found.symbols = value,
                DT_RELA => found.rela.0 = value,
                DT_RELASZ => found.rela.1 = value,
                DT_JMPREL => found.plt_rela.0 = value,
                DT_PLTRELSZ => found.plt_rela.1 = value,
                DT_INIT => found.init = Some(value),
                DT_INIT_ARRAY => init_array.0 = value,
                DT_INIT_ARRAYSZ => init_array.1 = value,
                _ => {}
            }
        }
        let hash =
            hash.ok_or_else(|| ElfError::inconsistent("the file has no symbol hash table (DT_HASH)"))?;
        // The number of chains is the number of symbols.
        found.symbol_count = u32_at(file.at("symbol hash table", hash, 8)?, 4);
        file.at("symbol table", found.symbols, u64::from(found.symbol_count) * SYMBOL_SIZE)?;
        file.at("symbol names", found.strings.0, found.strings.1)?;
        file.at("relocations", found.rela.0, found.rela.1)?;
        file.at("relocations", found.plt_rela.0, found.plt_rela.1)?;
        file.at("initializers", init_array.0, init_array.1)?;
        found.init_array = (0..init_array.1 / 8).map(|i| init_array.0 + i * 8).collect();
        if let Some(init) = found.init {
            file.check_code(init, "DT_INIT")?;
        }
        Ok(found)
    }

    pub(super) fn initializers(&self) -> (Option<u64>, &[u64]) {
        (self.init, &self.init_array)
    }

    pub(super) fn relocations(&self, file: &ElfFile<'_>) -> Result<Vec<Relocation>, ElfError> {
        let mut relocations = Vec::new();
        for (address, size) in [self.rela, self.plt_rela] {
            let bytes = file.at("relocations", address, size)?;
            relocations.extend(bytes.chunks_exact(RELA_SIZE as usize).map(|r| Relocation {
                offset: u64_at(r, 0),
                kind: u32_at(r, 8),
                symbol: u32_at(r, 12),
                addend: u64_at(r, 16),
            }));
        }
        Ok(relocations)
    }

    pub(super) fn symbol_at(&self, file: &ElfFile<'_>, index: u32) -> Result<Symbol, ElfError> {
        if index >= self.symbol_count {
            let what = format!("symbol {index} of {} is named", self.symbol_count);
            return Err(ElfError::inconsistent(what));
        }
        let bytes = file.at("symbol", self.symbols + u64::from(index) * SYMBOL_SIZE, SYMBOL_SIZE)?;
        Ok(Symbol {
            name: u32_at(bytes, 0),
            info: bytes[4],
            section: u16_at(bytes, 6),
            value: u64_at(bytes, 8),
        })
    }

    /// The symbol with this name, if there is one.
    pub(super) fn symbol(&self, file: &ElfFile<'_>, name: &str) -> Result<Option<Symbol>, ElfError> {
        let strings = file.at("symbol names", self.strings.0, self.strings.1)?;
        for index in 0..self.symbol_count {
            let symbol = self.symbol_at(file, index)?;
            let rest = strings.get(symbol.name as usize..).unwrap_or_default();
            if rest.split(|b| *b == 0).next() == Some(name.as_bytes()) {
                return Ok(Some(symbol));
            }
        }
        Ok(None)
    }
}

fn expect(field: &'static str, found: u64, expected: u64) -> Result<(), ElfError> {
    if found == expected { Ok(()) } else { Err(ElfError::Header { field, found, expected }) }
}
