//! Hand-made files for reading and relocating, and damaged ones.

use super::{super::Segment, *};

/// A file under construction: bytes at offsets that are also addresses.
struct Builder {
    bytes: Vec<u8>,
    headers: Vec<[u64; 6]>,
    dynamic: Vec<(u64, u64)>,
}

/// Offset, type, symbol, addend.
type Rela = (u64, u64, u64, i64);

const DYNAMIC_AT: u64 = 0x200;
const SYMBOLS_AT: u64 = 0x400;
const STRINGS_AT: u64 = 0x480;
const HASH_AT: u64 = 0x4C0;
const RELA_AT: u64 = 0x500;
const CODE_AT: u64 = 0x800;
const DATA_AT: u64 = 0xC00;
const END: u64 = 0x1000;

impl Builder {
    /// A file with code, data, and the symbols `run` (code), `lost` (undefined) and `weak` (undefined, weak).
    fn new() -> Self {
        let mut b = Builder { bytes: vec![0; END as usize], headers: Vec::new(), dynamic: Vec::new() };
        b.put(SYMBOLS_AT + 24, 1, 4).put(SYMBOLS_AT + 30, 1, 2).put(SYMBOLS_AT + 32, CODE_AT + 8, 8);
        b.put(SYMBOLS_AT + 48, 5, 4);
        b.put(SYMBOLS_AT + 72, 10, 4).put(SYMBOLS_AT + 76, 0x20, 1);
        b.bytes[STRINGS_AT as usize..][..15].copy_from_slice(b"\0run\0lost\0weak\0");
        b.put(HASH_AT + 4, 4, 4);
        b.headers = vec![
            [1, 4, 0, 0, CODE_AT, CODE_AT],
            [1, 5, CODE_AT, CODE_AT, 0x400, 0x400],
            [1, 6, DATA_AT, DATA_AT, 0x200, 0x400],
            [2, 6, DYNAMIC_AT, DYNAMIC_AT, 0x200, 0x200],
        ];
        b.dynamic = vec![(6, SYMBOLS_AT), (5, STRINGS_AT), (10, 15), (4, HASH_AT), (9, 24), (11, 24)];
        b
    }

    fn put(&mut self, at: u64, value: u64, length: usize) -> &mut Self {
        self.bytes[at as usize..][..length].copy_from_slice(&value.to_le_bytes()[..length]);
        self
    }

    /// Adds relocations (offset, type, symbol, addend).
    fn relocations(&mut self, list: &[Rela]) -> &mut Self {
        for (index, (offset, kind, symbol, addend)) in list.iter().enumerate() {
            let at = RELA_AT + 24 * index as u64;
            self.put(at, *offset, 8).put(at + 8, kind | symbol << 32, 8).put(
                at + 16,
                addend.cast_unsigned(),
                8,
            );
        }
        self.dynamic.extend([(7, RELA_AT), (8, 24 * list.len() as u64)]);
        self
    }

    fn build(&mut self) -> Vec<u8> {
        self.put(0, 0x464C_457F, 4).put(4, 2, 1).put(5, 1, 1).put(6, 1, 1).put(16, 3, 2).put(18, 62, 2);
        let count = self.headers.len() as u64;
        self.put(32, 64, 8).put(54, 56, 2).put(56, count, 2);
        for (index, [kind, flags, offset, address, in_file, in_memory]) in
            self.headers.clone().into_iter().enumerate()
        {
            let at = 64 + 56 * index as u64;
            self.put(at, kind, 4).put(at + 4, flags, 4).put(at + 8, offset, 8).put(at + 16, address, 8);
            self.put(at + 32, in_file, 8).put(at + 40, in_memory, 8);
        }
        for (index, (tag, value)) in self.dynamic.clone().into_iter().enumerate() {
            let at = DYNAMIC_AT + 16 * index as u64;
            self.put(at, tag, 8).put(at + 8, value, 8);
        }
        self.bytes.clone()
    }
}

fn parse(bytes: &[u8]) -> Result<ElfFile<'_>, ElfError> {
    ElfFile::parse(bytes, Machine::X86_64)
}

fn load(bytes: &[u8], base: u64) -> Result<Vec<u8>, ElfError> {
    parse(bytes)?.image(base)
}

fn word(image: &[u8], at: u64) -> u64 {
    u64::from_le_bytes(image[at as usize..][..8].try_into().unwrap())
}

#[test]
fn a_good_file_is_read() {
    let bytes = Builder::new().build();
    let file = parse(&bytes).unwrap();
    assert_eq!(file.image_size(), 0x1000);
    assert_eq!(file.function("run"), Ok(CODE_AT + 8));
    for name in ["lost", "weak", "ru", "runx", ""] {
        assert_eq!(file.function(name), Err(ElfError::NoSymbol { name: name.to_owned() }), "{name}");
    }
    let data: &Segment = &file.segments()[2];
    assert_eq!((data.file.len(), data.memory_size, data.protection.write), (0x200, 0x400, true));
}

#[test]
fn relocations_compute_what_the_abi_says() {
    const BASE: u64 = 0x7F00_0000;
    let bytes = Builder::new()
        .relocations(&[
            (DATA_AT, 8, 0, 0x123),
            (DATA_AT + 8, 1, 1, -8),
            (DATA_AT + 16, 6, 1, 0),
            (DATA_AT + 24, 7, 3, 0),
            (DATA_AT + 32, 2, 1, -4),
            (DATA_AT + 40, 10, 1, 0),
            (DATA_AT + 48, 11, 1, 0),
            (DATA_AT + 56, 0, 77, 1),
            (DATA_AT + 64, 24, 1, 0),
        ])
        .build();
    let image = load(&bytes, BASE).unwrap();
    let run = BASE + CODE_AT + 8;
    let words: Vec<u64> = (0..9).map(|i| word(&image, DATA_AT + 8 * i)).collect();
    let place = BASE + DATA_AT + 32;
    let relative = run.wrapping_sub(4).wrapping_sub(place) & 0xFFFF_FFFF;
    let far = run.wrapping_sub(BASE + DATA_AT + 64);
    assert_eq!(words, [BASE + 0x123, run - 8, run, 0, relative, run, run, 0, far]);
    assert!(image[0xE00..].iter().all(|b| *b == 0));
}

#[test]
fn bad_relocations_are_refused_by_name() {
    let cases: [(u64, Rela, &str); 8] = [
        (0, (CODE_AT, 8, 0, 0), "changes code"),
        (0, (DATA_AT, 5, 1, 0), "type 5"),
        (0, (DATA_AT, 1, 2, 0), "symbol 2 is not in the file"),
        (0, (DATA_AT, 1, 9, 0), "symbol 9 of 4"),
        (0, (END - 4, 8, 0, 0), "not loaded"),
        (0, (u64::MAX - 3, 8, 0, 0), "not loaded"),
        (1 << 40, (DATA_AT, 10, 1, 0), "32 bits"),
        (1 << 31, (DATA_AT, 11, 1, 0), "32 bits"),
    ];
    for (base, relocation, expected) in cases {
        let bytes = Builder::new().relocations(&[relocation]).build();
        let error = load(&bytes, base).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn what_embedded_code_must_not_need_is_refused() {
    let with_header = |kind| {
        let mut b = Builder::new();
        b.headers.push([kind, 4, 0, 0, 8, 8]);
        b.build()
    };
    let with_dynamic = |tag, value| {
        let mut b = Builder::new();
        b.dynamic.push((tag, value));
        b.build()
    };
    for (bytes, expected) in [
        (with_header(3), "interpreter"),
        (with_header(7), "thread-local"),
        (with_dynamic(1, 1), "another library"),
        (with_dynamic(17, RELA_AT), "implicit addends"),
        (with_dynamic(20, 17), "implicit addends"),
        (with_dynamic(36, RELA_AT), "packed relocations"),
        (with_dynamic(12, DATA_AT), "not in executable memory"),
    ] {
        let error = parse(&bytes).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let mut b = Builder::new();
    b.headers[1][1] = 7;
    assert!(parse(&b.build()).unwrap_err().to_string().contains("writable and executable"));
    let mut b = Builder::new();
    b.headers[2][5] = 1 << 40;
    assert!(parse(&b.build()).unwrap_err().to_string().contains("address space"));
    let mut b = Builder::new();
    b.headers.swap(0, 2);
    assert!(parse(&b.build()).unwrap_err().to_string().contains("out of order"));
    assert_eq!(
        ElfFile::parse(&Builder::new().build(), Machine::Aarch64).unwrap_err(),
        ElfError::Machine { found: 62, host: Machine::Aarch64 }
    );
}

#[test]
fn cut_and_damaged_files_do_no_harm() {
    let good = Builder::new().relocations(&[(DATA_AT, 8, 0, 1), (DATA_AT + 8, 1, 1, 0)]).build();
    let mut refused = 0;
    for length in 0..good.len() {
        refused += usize::from(load(&good[..length], 0).is_err());
    }
    assert!(refused > 0xC00, "{refused}");
    for at in (0..good.len()).filter(|at| good[*at] != 0 || at % 64 == 0) {
        for value in [0, 1, 0x7F, 0x80, 0xFF] {
            let mut bad = good.clone();
            bad[at] = value;
            if let Ok(file) = parse(&bad) {
                assert!(file.image_size() < good.len() as u64 + (65 << 20));
                _ = load(&bad, 0x1000);
                _ = file.function("run");
            }
        }
    }
}
