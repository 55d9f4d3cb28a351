//! Reading an ELF file: headers, segments, symbols.

use std::ops::Range;

use super::{
    ElfError,
    dynamic::{Dynamic, Symbol},
    frames,
    numbers::{u16_at, u32_at, u64_at},
    relocate::{self, Relocation},
};

/// Bytes that a loaded file may be longer than the file itself: zeroed data, and gaps between segments.
const MAX_GROWTH: u64 = 64 << 20;
/// Most program headers; linkers write about ten.
const MAX_SEGMENTS: u16 = 64;

const ELF_HEADER_SIZE: u64 = 64;
const PROGRAM_HEADER_SIZE: u64 = 56;

const ET_DYN: u16 = 3;
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const PT_TLS: u32 = 7;
const PT_GNU_RELRO: u32 = 0x6474_E552;

/// Processors whose code can be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// EM_X86_64.
    X86_64,
    /// EM_AARCH64.
    Aarch64,
}

impl Machine {
    /// The processor that this process runs on, if its code can be loaded.
    pub fn host() -> Option<Machine> {
        match std::env::consts::ARCH {
            "x86_64" => Some(Machine::X86_64),
            "aarch64" => Some(Machine::Aarch64),
            _ => None,
        }
    }

    fn number(self) -> u16 {
        match self {
            Machine::X86_64 => 62,
            Machine::Aarch64 => 183,
        }
    }
}

/// What may be done to memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protection {
    /// Read.
    pub read: bool,
    /// Write.
    pub write: bool,
    /// Execute.
    pub execute: bool,
}

/// A piece of the file that is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Address within the image.
    pub address: u64,
    /// Bytes in memory; those behind the file's are zero.
    pub memory_size: u64,
    /// Bytes in the file.
    pub file: Range<usize>,
    /// What the program may do to it.
    pub protection: Protection,
}

impl Segment {
    /// Whether all bytes of a range of the image lie in it.
    pub(super) fn contains(&self, address: u64, length: u64) -> bool {
        let offset = address.checked_sub(self.address);
        offset.is_some_and(|o| o.checked_add(length).is_some_and(|end| end <= self.memory_size))
    }
}

/// A file that was read and checked: what loading needs to know of it.
#[derive(Clone, Debug)]
pub struct ElfFile<'a> {
    bytes: &'a [u8],
    machine: Machine,
    /// Pieces to load, by address.
    segments: Vec<Segment>,
    /// Bytes of the image that become read-only after relocation.
    relro: Option<Range<u64>>,
    dynamic: Dynamic,
}

impl<'a> ElfFile<'a> {
    /// Reads a file for a processor.
    ///
    /// # Errors
    /// What is wrong with it, or what it needs that embedded code must not: an interpreter, libraries, thread-local
    /// storage, memory that is both writable and executable, implicit addends.
    pub fn parse(bytes: &'a [u8], machine: Machine) -> Result<Self, ElfError> {
        let headers = program_headers(bytes, machine)?;
        let mut segments = Vec::new();
        let (mut relro, mut dynamic) = (None, None);
        for header in &headers {
            match header.kind {
                PT_LOAD if header.memory_size > 0 => segments.push(header.segment(bytes)?),
                PT_DYNAMIC => dynamic = Some(header),
                PT_GNU_RELRO => relro = Some(header.range()?),
                PT_INTERP => return Err(ElfError::unsupported("an interpreter (PT_INTERP)")),
                PT_TLS => return Err(ElfError::unsupported("thread-local storage (PT_TLS)")),
                _ => {}
            }
        }
        check_layout(&segments, bytes.len() as u64)?;
        let dynamic = dynamic.ok_or_else(|| ElfError::inconsistent("the file has no dynamic section"))?;
        let mut file = ElfFile { bytes, machine, segments, relro, dynamic: Dynamic::default() };
        if let Some(relro) = &file.relro
            && relro.end > file.image_size()
        {
            return Err(ElfError::inconsistent("the read-only part (GNU_RELRO) ends behind the image"));
        }
        file.dynamic = Dynamic::read(&file, dynamic.address, dynamic.file_size)?;
        Ok(file)
    }

    /// Processor that the code is for.
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// Pieces to load, by address; they do not overlap.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Bytes of the image that become read-only after relocation.
    pub fn relro(&self) -> Option<Range<u64>> {
        self.relro.clone()
    }

    /// Address ranges of functions, as far as the file's table for unwinding says; empty where nothing is known.
    pub fn functions(&self) -> Vec<Range<u64>> {
        frames::functions(self.bytes)
    }

    /// Bytes of address space that the image takes.
    pub fn image_size(&self) -> u64 {
        self.segments.last().map_or(0, |s| s.address + s.memory_size)
    }

    /// The image as it is in memory that begins at address `base`: segments copied, numbers relocated.
    pub fn image(&self, base: u64) -> Result<Vec<u8>, ElfError> {
        let mut image = vec![0; self.image_size() as usize];
        relocate::fill_image(self, &mut image, base)?;
        Ok(image)
    }

    /// Relocations in order.
    pub(super) fn relocations(&self) -> Result<Vec<Relocation>, ElfError> {
        self.dynamic.relocations(self)
    }

    /// Addresses of functions to call before any other: DT_INIT first. Those in the array are only numbers of the
    /// file as yet: relocation gives them values, at these addresses of the image.
    pub fn initializers(&self) -> (Option<u64>, &[u64]) {
        self.dynamic.initializers()
    }

    /// Address of a function that the file exports, within the image.
    pub fn function(&self, name: &str) -> Result<u64, ElfError> {
        let symbol = self.dynamic.symbol(self, name)?;
        let missing = || ElfError::NoSymbol { name: name.to_owned() };
        let address = symbol.filter(Symbol::is_defined).ok_or_else(missing)?.value;
        self.check_code(address, name)?;
        Ok(address)
    }

    /// An address that will be called must be code.
    pub(super) fn check_code(&self, address: u64, what: &str) -> Result<(), ElfError> {
        if self.segments.iter().any(|s| s.protection.execute && s.contains(address, 1)) {
            return Ok(());
        }
        Err(ElfError::inconsistent(format!("'{what}' at {address:#x} is not in executable memory")))
    }

    /// The symbol with this index of the dynamic table.
    pub(super) fn symbol_at(&self, index: u32) -> Result<Symbol, ElfError> {
        self.dynamic.symbol_at(self, index)
    }

    /// Bytes of the file.
    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The file's bytes behind an address of the image.
    pub(super) fn at(&self, what: &'static str, address: u64, length: u64) -> Result<&'a [u8], ElfError> {
        let limit = self.image_size();
        let missing = ElfError::OutOfFile { what, offset: address, length, limit };
        let segment = self.segments.iter().find(|s| s.contains(address, length)).ok_or(missing)?;
        let offset = segment.file.start as u64 + (address - segment.address);
        let part = slice(self.bytes, what, offset, length)?;
        if offset + length > segment.file.end as u64 {
            return Err(ElfError::inconsistent(format!("{what} lies in memory that the file does not fill")));
        }
        Ok(part)
    }
}

/// A program header.
struct ProgramHeader {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    file_size: u64,
    memory_size: u64,
}

impl ProgramHeader {
    fn range(&self) -> Result<Range<u64>, ElfError> {
        let end = self.address.checked_add(self.memory_size);
        let end = end.ok_or_else(|| ElfError::inconsistent("a segment ends beyond all addresses"))?;
        Ok(self.address..end)
    }

    fn segment(&self, bytes: &[u8]) -> Result<Segment, ElfError> {
        slice(bytes, "segment", self.offset, self.file_size)?;
        self.range()?;
        if self.file_size > self.memory_size {
            return Err(ElfError::inconsistent("a segment has more bytes in the file than in memory"));
        }
        let protection = Protection {
            read: self.flags & 4 != 0,
            write: self.flags & 2 != 0,
            execute: self.flags & 1 != 0,
        };
        if protection.write && protection.execute {
            return Err(ElfError::unsupported("memory that is both writable and executable"));
        }
        let start = self.offset as usize;
        Ok(Segment {
            address: self.address,
            memory_size: self.memory_size,
            file: start..start + self.file_size as usize,
            protection,
        })
    }
}

fn program_headers(bytes: &[u8], machine: Machine) -> Result<Vec<ProgramHeader>, ElfError> {
    let header = slice(bytes, "ELF header", 0, ELF_HEADER_SIZE)?;
    let expect = |field, found: u64, expected: u64| match found == expected {
        true => Ok(()),
        false => Err(ElfError::Header { field, found, expected }),
    };
    expect("magic number", u32_at(header, 0).into(), 0x464C_457F)?;
    expect("class (EI_CLASS)", header[4].into(), 2)?;
    expect("byte order (EI_DATA)", header[5].into(), 1)?;
    expect("version (EI_VERSION)", header[6].into(), 1)?;
    expect("type (e_type)", u16_at(header, 16).into(), ET_DYN.into())?;
    let found = u16_at(header, 18);
    if found != machine.number() {
        return Err(ElfError::Machine { found, host: machine });
    }
    expect("program header size (e_phentsize)", u16_at(header, 54).into(), PROGRAM_HEADER_SIZE)?;
    let count = u16_at(header, 56);
    if count > MAX_SEGMENTS {
        return Err(ElfError::unsupported(format!("{count} program headers")));
    }
    let table = slice(bytes, "program headers", u64_at(header, 32), u64::from(count) * PROGRAM_HEADER_SIZE)?;
    let headers = table.chunks_exact(PROGRAM_HEADER_SIZE as usize).map(|h| ProgramHeader {
        kind: u32_at(h, 0),
        flags: u32_at(h, 4),
        offset: u64_at(h, 8),
        address: u64_at(h, 16),
        file_size: u64_at(h, 32),
        memory_size: u64_at(h, 40),
    });
    Ok(headers.collect())
}

/// Segments come by address, do not overlap, and the image is not out of proportion.
fn check_layout(segments: &[Segment], file_size: u64) -> Result<(), ElfError> {
    for pair in segments.windows(2) {
        if pair[0].address + pair[0].memory_size > pair[1].address {
            return Err(ElfError::inconsistent("segments overlap or are out of order"));
        }
    }
    let Some(last) = segments.last() else {
        return Err(ElfError::inconsistent("the file has nothing to load"));
    };
    let size = last.address + last.memory_size;
    if size > file_size + MAX_GROWTH {
        return Err(ElfError::unsupported(format!(
            "{size:#x} bytes of address space for a file of {file_size:#x} bytes"
        )));
    }
    Ok(())
}

/// Part of the file.
pub(super) fn slice<'a>(
    bytes: &'a [u8],
    what: &'static str,
    offset: u64,
    length: u64,
) -> Result<&'a [u8], ElfError> {
    let limit = bytes.len() as u64;
    let end = offset.checked_add(length).filter(|end| *end <= limit);
    match end {
        Some(end) => Ok(&bytes[offset as usize..end as usize]),
        None => Err(ElfError::OutOfFile { what, offset, length, limit }),
    }
}
