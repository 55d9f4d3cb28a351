//! Queue reads and writes of files: bytes in memory, open files, files that somebody else implements and that fail.

use std::{
    io::Write as _,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use halite_hal::{BufferParams, Code, Fence, File, FileAccess, FileSource, QueueOp, Result, bail, status};
use halite_testing::hal::support::{ANY, after, buffer, counting, fence, fill, read, run, soon, span, whole};

use crate::suites::{
    Cases, Context, Need, Outcome, Stop,
    case::{check, refused, same_bytes},
};

const KINDS: [&str; 3] = ["memory", "handle", "custom"];
/// More than drivers stage at once.
const BIG: usize = (17 << 20) + 5;

/// Adds the cases of this file.
pub(super) fn add(cases: &mut Cases) {
    for kind in KINDS {
        for (from, to, length) in [(0, 0, 1000), (3, 0, 17), (0, 5, 17), (7, 9, 333), (1000, 64, 0)] {
            let name = format!("file.read:kind={kind};from={from};to={to};length={length}");
            cases.add(name, &[], move |t| read_part(t, kind, from, to, length));
        }
        cases.add(format!("file.read_big:kind={kind}"), &[], move |t| read_big(t, kind));
        cases.add(format!("file.bad_ranges_are_refused:kind={kind}"), &[Need::Validation], move |t| {
            bad_ranges(t, kind)
        });
    }
    for kind in &KINDS[1..] {
        cases.add(format!("file.write:kind={kind}"), &[], move |t| write_parts(t, kind));
        cases.add(format!("file.write_big:kind={kind}"), &[], move |t| write_big(t, kind));
        cases.add(format!("file.in_queue_order:kind={kind}"), &[], move |t| in_order(t, kind));
    }
    cases.add("file.failing_source_fails_the_fence", &[], failing_read);
    cases.add("file.failing_target_fails_the_fence", &[], failing_write);
    cases.add("file.handle_without_rights_fails_the_fence", &[], without_rights);
    cases.add("file.read_only_targets_are_refused", &[Need::Validation], read_only);
    cases.add("file.source_without_a_length_is_refused", &[Need::Validation], no_length);
}

/// A file of the suite's own, which may be broken.
struct Source {
    bytes: Mutex<Vec<u8>>,
    /// Accesses that touch bytes from here on fail.
    broken_from: u64,
}

impl Source {
    fn file(bytes: Vec<u8>, broken_from: u64) -> (Arc<Source>, File) {
        let source = Arc::new(Source { bytes: Mutex::new(bytes), broken_from });
        (source.clone(), File::Custom { source, access: FileAccess::ReadWrite })
    }

    fn check(&self, offset: u64, length: usize) -> Result<std::ops::Range<usize>> {
        let end = offset.saturating_add(length as u64);
        if end > self.broken_from {
            bail!(DataLoss, "the disk is on fire at byte {}", self.broken_from);
        }
        if end > self.byte_length()? {
            bail!(OutOfRange, "the file ends before byte {end}");
        }
        Ok(offset as usize..end as usize)
    }
}

impl FileSource for Source {
    fn byte_length(&self) -> Result<u64> {
        Ok(self.bytes.lock().unwrap_or_else(PoisonError::into_inner).len() as u64)
    }

    fn read_at(&self, offset: u64, target: &mut [u8]) -> Result<()> {
        let range = self.check(offset, target.len())?;
        target.copy_from_slice(&self.bytes.lock().unwrap_or_else(PoisonError::into_inner)[range]);
        Ok(())
    }

    fn write_at(&self, offset: u64, source: &[u8]) -> Result<()> {
        let range = self.check(offset, source.len())?;
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)[range].copy_from_slice(source);
        Ok(())
    }
}

fn file(kind: &str, bytes: Vec<u8>) -> std::result::Result<File, Stop> {
    Ok(match kind {
        "memory" => File::Memory(Bytes::from(bytes)),
        "handle" => handle(&bytes, FileAccess::ReadWrite)?,
        _ => Source::file(bytes, u64::MAX).1,
    })
}

fn handle(bytes: &[u8], access: FileAccess) -> std::io::Result<File> {
    let mut file = tempfile::tempfile()?;
    file.write_all(bytes)?;
    Ok(File::Handle { file: Arc::new(file), access })
}

fn contents(file: &File) -> Result<Vec<u8>> {
    let mut bytes = vec![0; file.byte_length()? as usize];
    file.read_at(0, &mut bytes)?;
    Ok(bytes)
}

fn read_part(t: &Context, kind: &str, from: usize, to: usize, length: usize) -> Outcome {
    let bytes = counting(1000);
    let source = file(kind, bytes.clone())?;
    let target = buffer(t.device(), &[0xDD; 1100])?;
    let op =
        QueueOp::Read { source, source_offset: from as u64, target: span(&target, to as u64, length as u64) };
    run(t.device(), op)?;
    let mut wanted = vec![0xDD; 1100];
    wanted[to..to + length].copy_from_slice(&bytes[from..from + length]);
    same_bytes("target", &read(&target)?, &wanted)
}

fn read_big(t: &Context, kind: &str) -> Outcome {
    let bytes = counting(BIG);
    let source = file(kind, bytes.clone())?;
    let target = t.device().allocate_buffer(&BufferParams::DEVICE, BIG as u64)?;
    let part = span(&target, 2, BIG as u64 - 3);
    run(t.device(), QueueOp::Read { source, source_offset: 3, target: part.clone() })?;
    same_bytes("target", &part.read_all()?, &bytes[3..])
}

fn write_parts(t: &Context, kind: &str) -> Outcome {
    let bytes = counting(500);
    let source = buffer(t.device(), &bytes)?;
    let target = file(kind, vec![0xDD; 600])?;
    let mut wanted = vec![0xDD; 600];
    for (from, to, length) in [(0, 0, 10), (3, 100, 17), (400, 333, 100), (5, 600, 0), (499, 599, 1)] {
        let op = QueueOp::Write {
            source: span(&source, from as u64, length as u64),
            target: target.clone(),
            target_offset: to as u64,
        };
        run(t.device(), op)?;
        wanted[to..to + length].copy_from_slice(&bytes[from..from + length]);
        same_bytes("file", &contents(&target)?, &wanted)?;
    }
    Ok(())
}

fn write_big(t: &Context, kind: &str) -> Outcome {
    let bytes = counting(BIG);
    let source = buffer(t.device(), &bytes)?;
    let target = file(kind, vec![0; BIG + 3])?;
    let op = QueueOp::Write { source: whole(&source), target: target.clone(), target_offset: 3 };
    run(t.device(), op)?;
    same_bytes("file", &contents(&target)?[3..], &bytes)
}

/// Buffer to file to other buffer and back again, ordered by fences alone; all of it waits for the host.
fn in_order(t: &Context, kind: &str) -> Outcome {
    let device = t.device();
    let (a, b) = (buffer(device, &[0; 4000])?, buffer(device, &[0; 4000])?);
    let shared = file(kind, vec![0; 4000])?;
    let go = fence(device)?;
    let filled = after(device, &go, fill(whole(&a), 0x3C3B_3A39, 4))?;
    let write = QueueOp::Write { source: whole(&a), target: shared.clone(), target_offset: 0 };
    let written = after(device, &filled, write)?;
    let read_back = QueueOp::Read { source: shared.clone(), source_offset: 0, target: whole(&b) };
    let there = after(device, &written, read_back)?;
    let cleared = after(device, &there, fill(whole(&a), 0, 1))?;
    let write = QueueOp::Write { source: span(&a, 0, 2000), target: shared.clone(), target_offset: 1000 };
    let done = after(device, &cleared, write)?;
    check!(!done.query()?, "the work ran before its fence");
    check!(contents(&shared)? == vec![0; 4000], "the file was written before its fence");
    go.signal()?;
    done.wait(soon())?;
    let pattern = [0x39, 0x3A, 0x3B, 0x3C].repeat(1000);
    same_bytes("second buffer", &read(&b)?, &pattern)?;
    let mut wanted = pattern;
    wanted[1000..3000].fill(0);
    same_bytes("file", &contents(&shared)?, &wanted)
}

/// An error of the file, at once or through the fence, with the code that the file gave.
fn fails_with(t: &Context, what: &str, op: QueueOp, codes: &[Code]) -> Outcome {
    let device = t.device();
    let (go, done) = (fence(device)?, fence(device)?);
    let next = after(device, &done, QueueOp::Barrier)?;
    if let Err(e) = device.queue_submit(ANY, &go, &done, op) {
        check!(codes.contains(&e.code()), "{what} was refused with {e}");
    }
    // The fence may have failed already, in which case nobody listens any more.
    _ = go.signal();
    refused(what, done.wait(soon()), codes)?;
    refused("what waits for it", next.wait(soon()), codes)?;
    let data = buffer(device, &[0; 8])?;
    run(device, fill(whole(&data), 1, 1))?;
    same_bytes("a buffer afterwards", &read(&data)?, &[1; 8])
}

fn failing_read(t: &Context) -> Outcome {
    for broken_from in [0, 500, (17 << 20) - 1] {
        let (_, source) = Source::file(counting(17 << 20), broken_from);
        let target = t.device().allocate_buffer(&BufferParams::DEVICE, 17 << 20)?;
        let op = QueueOp::Read { source, source_offset: 0, target: whole(&target) };
        fails_with(t, &format!("a source that breaks at {broken_from}"), op, &[Code::DataLoss])?;
    }
    Ok(())
}

fn failing_write(t: &Context) -> Outcome {
    for broken_from in [0, 500, (17 << 20) - 1] {
        let (_, target) = Source::file(vec![0; 17 << 20], broken_from);
        let source = t.device().allocate_buffer(&BufferParams::DEVICE, 17 << 20)?;
        let op = QueueOp::Write { source: whole(&source), target, target_offset: 0 };
        fails_with(t, &format!("a target that breaks at {broken_from}"), op, &[Code::DataLoss])?;
    }
    Ok(())
}

/// The caller claims more than the system allows: the error comes when the file is written.
fn without_rights(t: &Context) -> Outcome {
    let named = tempfile::NamedTempFile::new()?;
    named.as_file().set_len(100)?;
    let read_only = Arc::new(named.reopen().and_then(|_| std::fs::File::open(named.path()))?);
    let target = File::Handle { file: read_only, access: FileAccess::ReadWrite };
    let source = buffer(t.device(), &[1; 100])?;
    let op = QueueOp::Write { source: whole(&source), target, target_offset: 0 };
    fails_with(
        t,
        "a write to a read-only handle",
        op,
        &[Code::DataLoss, Code::PermissionDenied, Code::Unknown],
    )
}

fn bad_ranges(t: &Context, kind: &str) -> Outcome {
    let device = t.device();
    let data = buffer(device, &[4; 100])?;
    let source = file(kind, counting(100))?;
    for (offset, length) in [(1, 100), (100, 1), (101, 0), (u64::MAX, 1)] {
        let op =
            QueueOp::Read { source: source.clone(), source_offset: offset, target: span(&data, 0, length) };
        let done = fence(device)?;
        let refusal = device.queue_submit(ANY, &Fence::default(), &done, op);
        refused(&format!("a read of {length} at {offset}"), refusal, &[Code::OutOfRange])?;
        check!(!done.query()?, "the refused read touched its fence");
        if kind != "memory" {
            let (source, target) = (span(&data, 0, length), source.clone());
            let refusal =
                after(device, &Fence::default(), QueueOp::Write { source, target, target_offset: offset });
            refused(&format!("a write of {length} at {offset}"), refusal, &[Code::OutOfRange])?;
        }
    }
    same_bytes("data", &read(&data)?, &[4; 100])?;
    same_bytes("file", &contents(&source)?, &counting(100))
}

fn read_only(t: &Context) -> Outcome {
    let data = buffer(t.device(), &[1; 8])?;
    let custom = File::Custom { source: Source::file(vec![0; 8], u64::MAX).0, access: FileAccess::Read };
    for target in
        [File::Memory(Bytes::from_static(b"12345678")), handle(b"12345678", FileAccess::Read)?, custom]
    {
        let op = QueueOp::Write { source: whole(&data), target, target_offset: 0 };
        refused(
            "a write to a read-only file",
            after(t.device(), &Fence::default(), op),
            &[Code::PermissionDenied],
        )?;
    }
    Ok(())
}

/// A file that is not there any more.
struct Gone;

impl FileSource for Gone {
    fn byte_length(&self) -> Result<u64> {
        Err(status!(NotFound, "the file is gone"))
    }

    fn read_at(&self, _offset: u64, _target: &mut [u8]) -> Result<()> {
        self.byte_length().map(drop)
    }

    fn write_at(&self, _offset: u64, _source: &[u8]) -> Result<()> {
        self.byte_length().map(drop)
    }
}

fn no_length(t: &Context) -> Outcome {
    let data = buffer(t.device(), &[1; 8])?;
    let source = File::Custom { source: Arc::new(Gone), access: FileAccess::Read };
    let op = QueueOp::Read { source, source_offset: 0, target: whole(&data) };
    refused("a file that is gone", after(t.device(), &Fence::default(), op), &[Code::NotFound]).map(drop)
}
