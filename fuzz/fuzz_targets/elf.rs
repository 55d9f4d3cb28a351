//! Embedded ELF files: reading and relocating, which are plain functions over bytes. A module file serves as input too:
//! the first ELF file in it is used. Nothing is mapped or called.
#![no_main]

use halite_local::elf::{ElfFile, Machine};
use libfuzzer_sys::fuzz_target;

/// Larger images are legal, but zeroing them is all that a run would do.
const LARGEST_IMAGE: u64 = 1 << 20;

fuzz_target!(|data: &[u8]| {
    let start = data.windows(4).position(|w| w == b"\x7fELF").unwrap_or(0);
    for machine in [Machine::X86_64, Machine::Aarch64] {
        let Ok(file) = ElfFile::parse(&data[start..], machine) else { continue };
        let size = file.image_size();
        assert!(file.functions().iter().all(|function| function.start <= function.end));
        for segment in file.segments() {
            assert!(segment.address + segment.memory_size <= size);
            assert!(segment.file.end <= data.len() - start);
            assert!(!(segment.protection.write && segment.protection.execute));
        }
        if let Ok(address) = file.function("iree_hal_executable_library_query") {
            assert!(address < size);
        }
        if size <= LARGEST_IMAGE
            && let Ok(image) = file.image(0x7F00_0000_0000)
        {
            assert_eq!(image.len() as u64, size);
        }
    }
});
