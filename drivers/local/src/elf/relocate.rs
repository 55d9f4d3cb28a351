//! Relocation: turning the numbers of a file into addresses, in a copy of it.

use super::{ElfError, ElfFile, Machine};

/// A relocation with explicit addend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Relocation {
    /// What it changes: an address within the image.
    pub(super) offset: u64,
    /// Type, by the processor's supplement.
    pub(super) kind: u32,
    /// Index of a symbol; 0 for none.
    pub(super) symbol: u32,
    /// A number to add, as two's complement.
    pub(super) addend: u64,
}

/// How a value is computed: S is the symbol's address, A the addend, B the image's base, P the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Formula {
    None,
    /// B + A.
    Relative,
    /// S + A.
    Absolute,
    /// S + A - P.
    Relative2Place,
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    Word64,
    /// Zero-extends to the value.
    Unsigned32,
    /// Sign-extends to the value.
    Signed32,
}

/// What a type of relocation means; `None` for one that embedded code does not have.
fn meaning(machine: Machine, kind: u32) -> Option<(Formula, Width)> {
    use Formula::{Absolute, None as Nothing, Relative, Relative2Place};
    use Width::{Signed32, Unsigned32, Word64};
    Some(match (machine, kind) {
        (_, 0) | (Machine::Aarch64, 256) => (Nothing, Word64),
        (Machine::X86_64, 8) | (Machine::Aarch64, 1027) => (Relative, Word64),
        // 64, GLOB_DAT, JUMP_SLOT; ABS64, GLOB_DAT, JUMP_SLOT.
        (Machine::X86_64, 1 | 6 | 7) | (Machine::Aarch64, 257 | 1025 | 1026) => (Absolute, Word64),
        // 32, 32S.
        (Machine::X86_64, 10) => (Absolute, Unsigned32),
        (Machine::X86_64, 11) => (Absolute, Signed32),
        // PC32, PC64; PREL32, PREL64.
        (Machine::X86_64, 2) | (Machine::Aarch64, 261) => (Relative2Place, Signed32),
        (Machine::X86_64, 24) | (Machine::Aarch64, 260) => (Relative2Place, Word64),
        _ => return None,
    })
}

/// Copies the file's segments to `image`, which is all zeros and [`ElfFile::image_size`] long, and relocates them
/// for an image that begins at address `base`.
pub(super) fn fill_image(file: &ElfFile<'_>, image: &mut [u8], base: u64) -> Result<(), ElfError> {
    for segment in file.segments() {
        let source = &file.bytes()[segment.file.clone()];
        let target = image.get_mut(segment.address as usize..).and_then(|rest| rest.get_mut(..source.len()));
        let target = target.ok_or_else(|| ElfError::inconsistent("a segment lies outside of the image"))?;
        target.copy_from_slice(source);
    }
    for (index, relocation) in file.relocations()?.iter().enumerate() {
        let error = |what: String| ElfError::Relocation {
            index,
            kind: relocation.kind,
            offset: relocation.offset,
            what,
        };
        apply(file, image, base, relocation).map_err(error)?;
    }
    Ok(())
}

fn apply(file: &ElfFile<'_>, image: &mut [u8], base: u64, relocation: &Relocation) -> Result<(), String> {
    let Some((formula, width)) = meaning(file.machine(), relocation.kind) else {
        return Err("embedded code cannot have relocations of this type".to_owned());
    };
    if formula == Formula::None {
        return Ok(());
    }
    let symbol = || symbol_address(file, base, relocation.symbol);
    let place = base.wrapping_add(relocation.offset);
    let value = match formula {
        Formula::None => return Ok(()),
        Formula::Relative => base.wrapping_add(relocation.addend),
        Formula::Absolute => symbol()?.wrapping_add(relocation.addend),
        Formula::Relative2Place => symbol()?.wrapping_add(relocation.addend).wrapping_sub(place),
    };
    let bytes = value.to_le_bytes();
    let fits = match width {
        Width::Word64 => true,
        Width::Unsigned32 => u32::try_from(value).is_ok(),
        Width::Signed32 => i32::try_from(value.cast_signed()).is_ok(),
    };
    if !fits {
        return Err(format!("{value:#x} does not fit in 32 bits"));
    }
    let bytes = if width == Width::Word64 { &bytes[..] } else { &bytes[..4] };
    match file.segments().iter().find(|s| s.contains(relocation.offset, bytes.len() as u64)) {
        None => return Err("it changes what is not loaded".to_owned()),
        Some(segment) if segment.protection.execute => {
            return Err("it changes code, which embedded code must not need".to_owned());
        }
        Some(_) => {}
    }
    let at = relocation.offset as usize;
    let target = image.get_mut(at..at + bytes.len()).ok_or("it changes what is not loaded")?;
    target.copy_from_slice(bytes);
    Ok(())
}

/// Address of a symbol. Embedded code has nobody to import from: one that the file does not define is refused, a
/// weak one is 0.
fn symbol_address(file: &ElfFile<'_>, base: u64, index: u32) -> Result<u64, String> {
    if index == 0 {
        return Ok(0);
    }
    let symbol = file.symbol_at(index).map_err(|e| e.to_string())?;
    if symbol.is_defined() {
        Ok(base.wrapping_add(symbol.value))
    } else if symbol.is_weak() {
        Ok(0)
    } else {
        Err(format!("symbol {index} is not in the file"))
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
