//! Mapped images: native code in memory, never writable and executable at once.

use std::{ffi::c_void, io, ops::Range, ptr::NonNull};

use halite_abi::{Result, ResultExt, Status, bail, status};

use super::{ElfError, ElfFile, Machine, Protection, relocate};

/// A loaded file. The memory goes back when it is dropped, so whoever keeps a pointer into it keeps the image.
#[derive(Debug)]
pub(crate) struct Image {
    base: NonNull<u8>,
    mapped: usize,
    size: usize,
    /// Where code is, by address within the image.
    code: Vec<Range<u64>>,
    /// What can be read.
    readable: Vec<Range<u64>>,
    /// Functions that are known.
    functions: Vec<Range<u64>>,
    query: u64,
}

// SAFETY: the image is read-only for this process but for its data segments, which only its own code touches.
unsafe impl Send for Image {}
// SAFETY: as above.
unsafe impl Sync for Image {}

impl Image {
    /// Maps a file, and finds the exported function `symbol`. The file's initializers have run.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a damaged file, INCOMPATIBLE for code of another processor, UNIMPLEMENTED for what
    /// embedded code must not need or where this process cannot load code, RESOURCE_EXHAUSTED without memory.
    pub fn load(bytes: &[u8], symbol: &str) -> Result<Self> {
        let Some(machine) = Machine::host() else {
            bail!(Unimplemented, "native code for {} processors cannot be loaded", std::env::consts::ARCH);
        };
        let file = ElfFile::parse(bytes, machine).map_err(to_status)?;
        let query = file.function(symbol).map_err(to_status)?;
        let mut image = Image::reserve(&file, query)?;
        let base = image.base.as_ptr().expose_provenance() as u64;
        relocate::fill_image(&file, image.bytes_mut(), base).map_err(to_status)?;
        image.protect(&file)?;
        image.check_entry(query).context(|| symbol.to_owned())?;
        image.initialize(&file)?;
        Ok(image)
    }

    fn reserve(file: &ElfFile<'_>, query: u64) -> Result<Self> {
        let size =
            usize::try_from(file.image_size()).map_err(|_| status!(ResourceExhausted, "image too large"))?;
        let mapped = size.next_multiple_of(page_size());
        // SAFETY: a new private mapping without a wished-for address disturbs no other memory.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        let base = (base != libc::MAP_FAILED).then(|| NonNull::new(base.cast())).flatten();
        let base = base.ok_or_else(|| system("mmap", &format!("{mapped} bytes for code")))?;
        let select = |wanted: fn(&Protection) -> bool| {
            let segments = file.segments().iter().filter(|s| wanted(&s.protection));
            segments.map(|s| s.address..s.address + s.memory_size).collect()
        };
        let (code, readable) = (select(|p| p.execute), select(|p| p.read));
        Ok(Image { base, mapped, size, code, readable, functions: file.functions(), query })
    }

    /// The image before it is protected.
    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is this long, readable and writable until `protect`, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.size) }
    }

    /// Gives every page the protection that its segments ask for. A page that two segments share gets what both
    /// need, unless that is writing and executing.
    fn protect(&mut self, file: &ElfFile<'_>) -> Result<()> {
        self.flush_instructions();
        let page = page_size();
        let mut pages = vec![Protection::default(); self.mapped / page];
        for segment in file.segments() {
            let end = (segment.address + segment.memory_size) as usize;
            for entry in &mut pages[segment.address as usize / page..end.div_ceil(page)] {
                entry.read |= segment.protection.read;
                entry.write |= segment.protection.write;
                entry.execute |= segment.protection.execute;
            }
        }
        if let Some(relro) = file.relro() {
            let (start, end) = (relro.start as usize / page, relro.end as usize / page);
            if start < end {
                pages[start..end].iter_mut().for_each(|p| p.write = false);
            }
        }
        if pages.iter().any(|p| p.write && p.execute) {
            bail!(
                Unimplemented,
                "code and data share a page of {page} bytes; compile the module for pages of that size"
            );
        }
        let mut first = 0;
        while first < pages.len() {
            let same = pages[first..].iter().take_while(|p| **p == pages[first]).count();
            self.protect_pages(first * page, same * page, pages[first])?;
            first += same;
        }
        Ok(())
    }

    fn protect_pages(&self, offset: usize, length: usize, protection: Protection) -> Result<()> {
        let bit = |set: bool, bit| if set { bit } else { 0 };
        let bits = bit(protection.read, libc::PROT_READ)
            | bit(protection.write, libc::PROT_WRITE)
            | bit(protection.execute, libc::PROT_EXEC);
        let start = self.base.as_ptr().wrapping_add(offset).cast::<c_void>();
        // SAFETY: whole pages of this image's own mapping, to which nobody holds a reference.
        if unsafe { libc::mprotect(start, length, bits) } != 0 {
            return Err(system("mprotect", &format!("{length} bytes at {offset:#x} of an image")));
        }
        Ok(())
    }

    /// Makes instructions that were written as data visible to instruction fetch. x86-64 does that by itself.
    fn flush_instructions(&self) {
        #[cfg(target_arch = "aarch64")]
        // SAFETY: cache maintenance over mapped memory changes no contents. 16 bytes divide every line size.
        unsafe {
            use std::arch::asm;
            let (start, end) = (self.base.as_ptr().addr(), self.base.as_ptr().addr() + self.mapped);
            for line in (start..end).step_by(16) {
                asm!("dc cvau, {0}", in(reg) line, options(nostack, preserves_flags));
            }
            asm!("dsb ish", options(nostack, preserves_flags));
            for line in (start..end).step_by(16) {
                asm!("ic ivau, {0}", in(reg) line, options(nostack, preserves_flags));
            }
            asm!("dsb ish", "isb", options(nostack, preserves_flags));
        }
    }

    fn initialize(&self, file: &ElfFile<'_>) -> Result<()> {
        let (first, array) = file.initializers();
        let mut functions: Vec<u64> =
            first.into_iter().map(|address| self.base_address() + address).collect();
        for address in array {
            let bytes = self.bytes_at(self.base_address() + address, 8).context(|| "initializer")?;
            let function = u64::from_le_bytes(bytes.try_into().expect("eight bytes were asked for"));
            // Both mean that the entry is not used.
            if function != 0 && function != u64::MAX {
                functions.push(function);
            }
        }
        for function in functions {
            let pointer = self.code_at(function).context(|| "initializer")?;
            // SAFETY: the address is code of the image, and initializers are functions without arguments.
            let function: extern "C" fn() = unsafe { std::mem::transmute(pointer) };
            function();
        }
        Ok(())
    }

    fn base_address(&self) -> u64 {
        self.base.as_ptr().addr() as u64
    }

    fn offset_of(&self, address: u64) -> Option<u64> {
        address.checked_sub(self.base_address()).filter(|offset| *offset < self.size as u64)
    }

    /// The exported function that was asked for.
    pub fn query(&self) -> *const c_void {
        self.base.as_ptr().wrapping_add(self.query as usize).cast()
    }

    /// An address, checked to be code of this image.
    pub fn code_at(&self, address: u64) -> Result<*const c_void> {
        let offset = self.offset_of(address).filter(|o| self.code.iter().any(|range| range.contains(o)));
        let offset =
            offset.ok_or_else(|| status!(InvalidArgument, "{address:#x} is no code of the image"))?;
        self.check_entry(offset)?;
        Ok(self.base.as_ptr().wrapping_add(offset as usize).cast())
    }

    /// Fails in the middle of a function: calling that would do anything.
    fn check_entry(&self, offset: u64) -> Result<()> {
        match self.functions.iter().find(|function| function.start < offset && offset < function.end) {
            None => Ok(()),
            Some(function) => bail!(
                InvalidArgument,
                "a pointer to a function leads to {offset:#x}, into the middle of the one at {:#x}",
                function.start
            ),
        }
    }

    /// Bytes of the image at an address: a copy, because the image's code may change them.
    pub fn bytes_at(&self, address: u64, length: usize) -> Result<Vec<u8>> {
        let outside = || status!(InvalidArgument, "{length} bytes at {address:#x} lie outside of the image");
        let offset = self.offset_of(address).ok_or_else(outside)?;
        let end = offset.checked_add(length as u64).ok_or_else(outside)?;
        if !self.readable.iter().any(|range| range.start <= offset && end <= range.end) {
            return Err(outside());
        }
        let mut bytes = vec![0; length];
        // SAFETY: the range lies in one readable segment of the mapping.
        unsafe {
            let source = self.base.as_ptr().add(offset as usize);
            source.copy_to_nonoverlapping(bytes.as_mut_ptr(), length);
        }
        Ok(bytes)
    }

    /// The text of at most `limit` bytes that ends with a zero byte.
    pub fn text_at(&self, address: u64, limit: usize) -> Result<String> {
        let outside = || status!(InvalidArgument, "text at {address:#x} lies outside of the image");
        let offset = self.offset_of(address).ok_or_else(outside)?;
        let range = self.readable.iter().find(|range| range.contains(&offset)).ok_or_else(outside)?;
        let length = usize::try_from(range.end - offset).unwrap_or(limit).min(limit);
        let bytes = self.bytes_at(address, length)?;
        let Some(end) = bytes.iter().position(|b| *b == 0) else {
            bail!(InvalidArgument, "text at {address:#x} has no end within {length} bytes");
        };
        Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // SAFETY: the mapping is this image's own; nobody may call its code any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.mapped) };
    }
}

fn page_size() -> usize {
    // SAFETY: asks the system for a number.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).ok().filter(|size| size.is_power_of_two()).unwrap_or(4096)
}

fn system(call: &str, what: &str) -> Status {
    status!(ResourceExhausted, "{call} of {what}: {}", io::Error::last_os_error())
}

fn to_status(error: ElfError) -> Status {
    match error {
        ElfError::Machine { .. } => status!(Incompatible, "{error}"),
        ElfError::Unsupported { .. } => status!(Unimplemented, "{error}"),
        _ => status!(InvalidArgument, "{error}"),
    }
}
