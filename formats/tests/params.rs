//! Parameter archives written by other tools, and ours read by them.
#![allow(clippy::unwrap_used, reason = "a helper that fails is a failed test")]

use crate::common::Noise;
use bytes::Bytes;
use halite_formats::params::{
    Archive, Kind, NewEntry, NewStorage, ParamError, Storage, read, read_as, write_irpa,
};
use std::path::Path;

const IRPA: &[u8] = include_bytes!("data/mixed.irpa");
const SAFETENSORS: &[u8] = include_bytes!("data/small.safetensors");
const GGUF: &[u8] = include_bytes!("data/small.gguf");

fn open(kind: Kind, file: &'static [u8]) -> Archive {
    read_as(kind, Bytes::from_static(file)).unwrap_or_else(|e| panic!("{e}"))
}

fn range(archive: &Archive, name: &str) -> (u64, u64) {
    match archive.entry(name).unwrap().storage {
        Storage::Range { offset, length } => (offset, length),
        ref other => panic!("{name} is {other:?}"),
    }
}

#[test]
fn irpa_of_the_original_tool() {
    let archive = open(Kind::Irpa, IRPA);
    let names: Vec<_> = archive.entries.iter().map(|e| e.name.as_str()).collect();
    assert_eq!(names, ["weight", "empty", "bias", "f32", "q8"]);
    assert_eq!(range(&archive, "weight"), (576, 24));
    assert_eq!(range(&archive, "empty").1, 0);
    assert_eq!(range(&archive, "f32"), (640, 48));
    assert_eq!(range(&archive, "q8"), (704, 136));
    let bias = archive.entry("bias").unwrap().storage.clone();
    assert_eq!(bias, Storage::Splat { pattern: Bytes::from_static(&[5, 0]), length: 6 });
}

#[test]
fn the_same_data_is_found_in_every_format() {
    let data = |kind, file: &'static [u8], name| {
        let (offset, length) = range(&open(kind, file), name);
        &file[offset as usize..(offset + length) as usize]
    };
    let weight: Vec<u8> = (0..6u8).flat_map(|i| f32::from(i).to_le_bytes()).collect();
    assert_eq!(data(Kind::Irpa, IRPA, "weight"), weight);
    assert_eq!(data(Kind::Safetensors, SAFETENSORS, "weight"), weight);
    for name in ["f32", "q8"] {
        assert_eq!(data(Kind::Irpa, IRPA, name), data(Kind::Gguf, GGUF, name));
    }
}

#[test]
fn safetensors_of_the_original_library() {
    let archive = open(Kind::Safetensors, SAFETENSORS);
    assert_eq!(range(&archive, "weight"), (224, 24));
    assert_eq!(range(&archive, "bias"), (248, 6));
    assert_eq!(range(&archive, "empty"), (248, 0));
    let tensor = archive.entry("weight").unwrap().tensor.clone().unwrap();
    assert_eq!((tensor.dtype.as_str(), &tensor.shape[..]), ("F32", &[2, 3][..]));
    assert_eq!(archive.entries.len(), 3, "__metadata__ is not a tensor");
}

#[test]
fn gguf_of_the_original_library() {
    let archive = open(Kind::Gguf, GGUF);
    assert_eq!(range(&archive, "f32"), (384, 48));
    assert_eq!(range(&archive, "q8"), (448, 136));
    let tensor = archive.entry("q8").unwrap().tensor.clone().unwrap();
    assert_eq!((tensor.dtype.as_str(), &tensor.shape[..]), ("Q8_0", &[2, 64][..]));
}

#[test]
fn kinds_are_told_by_name_and_by_magic() {
    for (name, file, kind) in [
        ("a.irpa", IRPA, Kind::Irpa),
        ("a.SafeTensors", SAFETENSORS, Kind::Safetensors),
        ("weights", GGUF, Kind::Gguf),
        ("weights.bin", SAFETENSORS, Kind::Safetensors),
    ] {
        assert_eq!(read(Path::new(name), Bytes::from_static(file)).unwrap().kind, kind);
    }
    let error = |name: &str, file: &'static [u8]| {
        read(Path::new(name), Bytes::from_static(file)).unwrap_err().to_string()
    };
    assert_eq!(
        error("a.irpa", GGUF),
        "a.irpa: named like irpa, but its first bytes are those of gguf; rename it"
    );
    assert_eq!(
        error("a.txt", b"hello"),
        "a.txt: not a parameter archive that is known here; .irpa, .safetensors and .gguf files are"
    );
}

fn sample() -> Vec<NewEntry<'static>> {
    vec![
        NewEntry { name: "w", metadata: b"", storage: NewStorage::Data(&[1; 100]) },
        NewEntry { name: "s", metadata: b"note", storage: NewStorage::Splat { pattern: &[1, 2], length: 6 } },
        NewEntry { name: "empty", metadata: b"", storage: NewStorage::Data(&[]) },
        NewEntry { name: "long.name/β", metadata: b"x", storage: NewStorage::Data(&[9; 5000]) },
    ]
}

#[test]
fn irpa_written_by_us_reads_back() {
    let mut file = Vec::new();
    write_irpa(&sample(), &mut file).unwrap();
    assert_eq!(file.len() % 4096, 0);
    let archive = read_as(Kind::Irpa, Bytes::from(file.clone())).unwrap();
    for (entry, new) in archive.entries.iter().zip(sample()) {
        assert_eq!((entry.name.as_str(), &entry.metadata[..]), (new.name, new.metadata));
        match (&entry.storage, new.storage) {
            (Storage::Range { offset, length }, NewStorage::Data(data)) => {
                assert_eq!(offset % 64, 0);
                assert_eq!(&file[*offset as usize..(offset + length) as usize], data);
            }
            (Storage::Splat { pattern, length }, NewStorage::Splat { pattern: p, length: l }) => {
                assert_eq!((&pattern[..], *length), (p, l));
            }
            other => panic!("{other:?}"),
        }
    }
    write_irpa(&[], &mut Vec::new()).unwrap();
}

#[test]
fn the_writer_refuses_what_readers_would() {
    let new = |name, storage| NewEntry { name, metadata: b"", storage };
    let write = |entries: &[NewEntry<'_>]| write_irpa(entries, &mut Vec::new()).unwrap_err().to_string();
    let data = NewStorage::Data(b"x");
    assert_eq!(
        write(&[new("a", data), new("a", data)]),
        "irpa: two parameters are named `a`; names must be unique"
    );
    let splat = NewStorage::Splat { pattern: &[1, 2, 3], length: 3 };
    assert!(
        write(&[new("a", splat)]).contains("pattern of 3 bytes for 3 bytes; it must be 1, 2, 4, 8 or 16")
    );
}

#[test]
fn errors_name_the_entry_and_the_limit() {
    let error = |kind, file: Vec<u8>| read_as(kind, Bytes::from(file)).unwrap_err().to_string();
    let mut file = IRPA.to_vec();
    file.truncate(800);
    assert_eq!(
        error(Kind::Irpa, file),
        "irpa: storage segment at 576 of 264 bytes ends past 800; the file is damaged or cut short"
    );
    let mut file = IRPA.to_vec();
    file[4] = 1;
    assert_eq!(error(Kind::Irpa, file), "irpa: version 1.0 is not supported; version 0 is");
    let mut file = IRPA.to_vec();
    file[0x68] = 3;
    assert!(error(Kind::Irpa, file).contains("entry 0 of 5 (`weight`): its data is in another file"));
    let mut file = GGUF.to_vec();
    file[4] = 1;
    assert_eq!(
        error(Kind::Gguf, file),
        "gguf: version 1 is not supported; versions 2 and 3 are; convert the file"
    );
    let cut = GGUF[..448].to_vec();
    assert_eq!(
        error(Kind::Gguf, cut),
        "gguf: data of tensor `q8` at 448 of 136 bytes ends past 448; the file is damaged or cut short"
    );
    let json = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes(), &[0; 8]].concat();
    let text = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,9]}}"#;
    assert_eq!(
        error(Kind::Safetensors, json(text)),
        "safetensors: tensor `a`: data_offsets 0 to 9; the file has 8 bytes of data"
    );
    let text = r#"{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}"#;
    assert_eq!(
        error(Kind::Safetensors, json(text)),
        "safetensors: tensor `a`: F32 of rank 1 takes 12 bytes, but data_offsets give 8"
    );
    let twice = r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}"#;
    assert!(matches!(
        read_as(Kind::Safetensors, Bytes::from(json(twice))),
        Err(ParamError::Duplicate { .. })
    ));
}

#[test]
fn overlapping_headers_cannot_multiply_work() {
    // Thousands of headers in a chain, all pointing at the same table of entries far behind.
    const HEADERS: usize = 4000;
    const STRIDE: usize = 96;
    const ENTRIES: usize = 4000;
    let (table, names) = (HEADERS * STRIDE, HEADERS * STRIDE + ENTRIES * 80);
    let mut file = vec![0u8; names + 16];
    for i in 0..HEADERS {
        let (base, last) = (i * STRIDE, i + 1 == HEADERS);
        let header = &mut file[base..];
        header[..4].copy_from_slice(b"IRPA");
        let next = if last { 0 } else { STRIDE };
        let fields = [88, next, 0, ENTRIES, table - base, ENTRIES * 80, names - base, 16, 0, 0];
        for (k, v) in fields.into_iter().enumerate() {
            header[8 + 8 * k..16 + 8 * k].copy_from_slice(&(v as u64).to_le_bytes());
        }
    }
    for i in 0..ENTRIES {
        file[table + i * 80..][..8].copy_from_slice(&76u64.to_le_bytes());
        file[table + i * 80 + 8] = 2;
    }
    let error = read_as(Kind::Irpa, Bytes::from(file)).unwrap_err().to_string();
    assert!(error.contains("they overlap"), "{error}");
}

#[test]
fn damage_never_panics() {
    let mut noise = Noise(0x9E37_79B9_7F4A_7C15);
    for (kind, good) in [(Kind::Irpa, IRPA), (Kind::Safetensors, SAFETENSORS), (Kind::Gguf, GGUF)] {
        let mut refused = 0;
        for length in 0..good.len() {
            refused += usize::from(read_as(kind, Bytes::from_static(&good[..length])).is_err());
        }
        assert!(refused > good.len() / 2, "{kind}: only {refused} cuts of {} refused", good.len());
        for _ in 0..20_000 {
            let mut file = good.to_vec();
            for _ in 0..=noise.below(3) {
                let at = noise.below(file.len());
                file[at] = noise.next() as u8;
            }
            if let Ok(archive) = read_as(kind, Bytes::from(file)) {
                let fits = |e: &halite_formats::params::Entry| match e.storage {
                    Storage::Range { offset, length } => offset + length <= good.len() as u64,
                    Storage::Splat { .. } => true,
                };
                assert!(archive.entries.iter().all(fits));
            }
        }
    }
}
