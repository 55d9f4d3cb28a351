//! All kinds of storage: bounds, permissions, copies between any two of them, threads.

use std::{
    hash::Hasher,
    sync::atomic::{AtomicU8, Ordering},
};

use halite_abi::Code;
use siphasher::sip::SipHasher24;

use super::*;

/// Foreign memory of a driver, part of an allocation that several may share.
#[derive(Debug)]
struct Shared {
    bytes: Arc<[AtomicU8]>,
    range: Range<usize>,
}

impl Shared {
    fn allocate(content: &[u8]) -> Arc<[AtomicU8]> {
        content.iter().map(|b| AtomicU8::new(*b)).collect()
    }

    fn part(&self, offset: u64, length: usize) -> Result<&[AtomicU8]> {
        let bytes = &self.bytes[self.range.clone()];
        bytes
            .get(offset as usize..)
            .and_then(|rest| rest.get(..length))
            .ok_or_else(|| status!(Internal, "the VM let a bad range through"))
    }
}

impl HostMemory for Shared {
    fn len(&self) -> u64 {
        self.range.len() as u64
    }

    fn address(&self) -> usize {
        self.bytes[self.range.clone()].as_ptr().addr()
    }

    fn load(&self, offset: u64, target: &mut [u8]) -> Result<()> {
        let part = self.part(offset, target.len())?;
        part.iter().zip(target).for_each(|(from, to)| *to = from.load(Ordering::Relaxed));
        Ok(())
    }

    fn store(&self, offset: u64, source: &[u8]) -> Result<()> {
        let part = self.part(offset, source.len())?;
        part.iter().zip(source).for_each(|(to, from)| to.store(*from, Ordering::Relaxed));
        Ok(())
    }
}

fn view(bytes: &Arc<[AtomicU8]>, range: Range<usize>) -> Buffer {
    Buffer::from_host_memory(Arc::new(Shared { bytes: bytes.clone(), range }))
}

fn foreign(content: &[u8]) -> Buffer {
    view(&Shared::allocate(content), 0..content.len())
}

type Make = fn(&[u8]) -> Buffer;

const KINDS: [(&str, Make); 3] = [
    ("constant", |bytes| Buffer::from_bytes(Bytes::copy_from_slice(bytes))),
    ("mutable", |bytes| Buffer::from_vec(bytes.to_vec())),
    ("foreign", foreign),
];

/// Bytes in no pattern, more than are moved at a time.
fn noise(length: usize) -> Vec<u8> {
    (0..length as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

#[test]
fn copies_and_comparisons_between_all_kinds() {
    let source = noise(5000);
    for (from_name, from) in KINDS {
        for (to_name, to) in KINDS {
            let (a, b) = (from(&source), to(&[9; 5000]));
            let copied = a.copy_to(7, &b, 11, 4900);
            if to_name == "constant" {
                assert_eq!(copied.unwrap_err().code(), Code::PermissionDenied, "{from_name}");
                continue;
            }
            copied.unwrap();
            let mut expected = vec![9; 5000];
            expected[11..4911].copy_from_slice(&source[7..4907]);
            assert!(b.to_bytes().unwrap()[..] == expected, "{from_name} to {to_name}");
            assert!(a.equal(7, &b, 11, 4900).unwrap() && b.equal(11, &a, 7, 4900).unwrap());
            b.store::<1>(4910, [source[4906] ^ 1]).unwrap();
            assert!(!a.equal(7, &b, 11, 4900).unwrap() && !b.equal(11, &a, 7, 4900).unwrap());
            assert!(a.equal(7, &b, 11, 4899).unwrap());
            for (offset, target, length) in [(4999, 0, 2), (0, 4999, 2), (0, 0, 5001), (u64::MAX, 0, 1)] {
                assert_eq!(a.copy_to(offset, &b, target, length).unwrap_err().code(), Code::OutOfRange);
                assert_eq!(a.equal(offset, &b, target, length).unwrap_err().code(), Code::OutOfRange);
            }
            a.copy_to(5000, &b, 5000, 0).unwrap();
            assert!(a.equal(5000, &b, 5000, 0).unwrap());
        }
    }
}

#[test]
fn ranges_of_one_memory_may_overlap() {
    let content = noise(4000);
    for (from, to) in [(0, 700), (700, 0), (5, 5), (0, 1), (1, 0), (0, 1024), (1024, 0)] {
        let mut expected = content.clone();
        expected.copy_within(from..from + 2500, to);
        for (name, make) in &KINDS[1..] {
            let b = make(&content);
            b.copy_to(from as u64, &b, to as u64, 2500).unwrap();
            assert!(b.to_bytes().unwrap()[..] == expected, "{name} {from} {to}");
        }
        // Two buffers over one memory, as two bindings of a dispatch may be.
        let memory = Shared::allocate(&content);
        let (a, b) = (view(&memory, from..from + 2500), view(&memory, to..to + 2500));
        a.copy_to(0, &b, 0, 2500).unwrap();
        assert!(view(&memory, 0..4000).to_bytes().unwrap()[..] == expected, "two views, {from} {to}");
    }
}

#[test]
fn elements_of_foreign_memory() {
    let b = foreign(&[0; 24]);
    b.store::<8>(1, 0x0102_0304_0506_0708u64.to_le_bytes()).unwrap();
    assert_eq!(b.load::<2>(5).unwrap(), [6, 5]);
    b.fill::<4>(4, 2, [1, 2, 3, 4]).unwrap();
    assert_eq!(b.slice(14, 6).unwrap()[..], [2, 1, 1, 2, 3, 4]);
    for index in [3, u64::MAX, u64::MAX / 8 + 1] {
        assert_eq!(b.load::<8>(index).unwrap_err().code(), Code::OutOfRange);
        assert_eq!(b.store::<8>(index, [0; 8]).unwrap_err().code(), Code::OutOfRange);
        assert_eq!(b.fill::<8>(index, 1, [0; 8]).unwrap_err().code(), Code::OutOfRange);
    }
    b.fill::<8>(3, 0, [0; 8]).unwrap();
    let empty = foreign(&[]);
    assert!(empty.is_empty() && empty.to_bytes().unwrap().is_empty());
    assert_eq!(empty.load::<1>(0).unwrap_err().code(), Code::OutOfRange);
    let large = foreign(&noise(3000));
    large.fill::<4>(1, 700, [5, 6, 7, 8]).unwrap();
    let mut expected = noise(3000);
    expected[4..2804].chunks_exact_mut(4).for_each(|c| c.copy_from_slice(&[5, 6, 7, 8]));
    assert!(large.to_bytes().unwrap()[..] == expected);
}

#[test]
fn ranges_are_read_written_cloned_and_hashed_alike() {
    let content = noise(3000);
    let hash = |buffer: &Buffer| {
        let mut hasher = SipHasher24::new();
        buffer.hash(3, 2990, &mut hasher).unwrap();
        hasher.finish()
    };
    let memory = Memory::new(1 << 20);
    let expected = hash(&Buffer::from_vec(content.clone()));
    for (name, make) in KINDS {
        let b = make(&content);
        assert_eq!(hash(&b), expected, "{name}");
        assert_eq!(b.hash(3, 3000, &mut SipHasher24::new()).unwrap_err().code(), Code::OutOfRange);
        let clone = b.clone_range(10, 2000, &memory).unwrap();
        assert!(clone.to_bytes().unwrap()[..] == content[10..2010], "{name}");
        let mut read = [0; 5];
        b.read_at(2995, &mut read).unwrap();
        assert_eq!(read[..], content[2995..], "{name}");
        assert_eq!(b.read_at(2996, &mut read).unwrap_err().code(), Code::OutOfRange);
        assert_eq!(b.slice(1, 3000).unwrap_err().code(), Code::OutOfRange);
        let written = b.write_at(2995, b"abcde");
        if name == "constant" {
            assert_eq!(written.unwrap_err().code(), Code::PermissionDenied);
        } else {
            written.unwrap();
            assert_eq!(b.slice(2994, 6).unwrap()[1..], *b"abcde", "{name}");
            assert_eq!(b.write_at(2996, b"abcde").unwrap_err().code(), Code::OutOfRange);
        }
    }
}

#[test]
fn threads_copy_in_opposite_directions() {
    let memory = Shared::allocate(&[1; 4096]);
    let buffers = [
        view(&memory, 0..2048),
        view(&memory, 1024..3072),
        Buffer::from_vec(vec![1; 2048]),
        foreign(&[1; 2048]),
    ];
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let buffers = &buffers;
            scope.spawn(move || {
                for round in 0..200 {
                    let (a, b) = (&buffers[(worker + round) % 4], &buffers[(worker * 3 + round / 4) % 4]);
                    a.copy_to(0, b, 24, 2000).unwrap();
                    assert!(b.equal(0, a, 0, 2000).unwrap());
                }
            });
        }
    });
}

#[test]
fn bounds_speak_of_bytes() {
    let b = Buffer::from_vec(vec![0; 8]);
    let e = b.load::<4>(8).unwrap_err();
    assert_eq!(
        e.message(),
        "out-of-bounds access detected (offset=32, length=4, alignment=4, buffer length=8)"
    );
    for index in [2, u64::MAX, u64::MAX / 4 + 1] {
        assert_eq!(b.load::<4>(index).unwrap_err().code(), Code::OutOfRange);
        assert_eq!(b.store::<4>(index, [0; 4]).unwrap_err().code(), Code::OutOfRange);
        assert_eq!(b.fill::<4>(index, 1, [0; 4]).unwrap_err().code(), Code::OutOfRange);
    }
    b.fill::<2>(1, 3, [1, 2]).unwrap();
    assert_eq!(b.to_bytes().unwrap()[..], [0, 0, 1, 2, 1, 2, 1, 2]);
    assert!(b.fill::<2>(1, 4, [1, 2]).is_err());
}

#[test]
fn constants_refuse_writes_and_share() {
    let b = Buffer::from_bytes(Bytes::from_static(b"abcdef"));
    assert_eq!(b.store::<1>(0, [0]).unwrap_err().code(), Code::PermissionDenied);
    let m = Buffer::from_vec(vec![0; 6]);
    b.copy_to(1, &m, 2, 4).unwrap();
    assert_eq!(m.to_bytes().unwrap()[..], *b"\0\0bcde");
    m.copy_to(2, &m, 0, 4).unwrap();
    assert_eq!(m.to_bytes().unwrap()[..], *b"bcdede");
    assert_eq!(m.copy_to(0, &b, 0, 1).unwrap_err().code(), Code::PermissionDenied);
    assert!(b.equal(1, &m, 0, 4).unwrap() && !b.equal(0, &m, 0, 4).unwrap());
    let n = Buffer::from_vec(vec![7; 4]);
    n.copy_to(0, &m, 1, 2).unwrap();
    m.copy_to(0, &n, 0, 4).unwrap();
    assert_eq!(n.to_bytes().unwrap()[..], [b'b', 7, 7, b'e']);
}
