//! Fills, updates and copies as queue operations: every alignment, big ones, refusals.

use bytes::Bytes;
use halite_hal::{BufferParams, BufferUsage, Code, Fence, QueueOp};
use halite_testing::hal::support::{
    ANY, Dev, buffer, counting, fence, fill, pattern_bytes, read, run, soon, span, whole,
};

use crate::suites::{
    Cases, Context, Need, Outcome,
    case::{check, refused, same_bytes},
};

const PATTERN: u64 = 0x8877_6655_4433_2211;
const LARGE: u64 = (5 << 20) + 24;

/// Adds the cases of this file.
pub(super) fn add(cases: &mut Cases) {
    for unit in [1u64, 2, 4, 8] {
        for (offset, length) in [(0, 64), (0, 0), (1, 1), (1, 3), (3, 5), (5, 31), (7, 25)] {
            let (offset, length) = (offset * unit, length * unit);
            let name = format!("transfer.fill:pattern={unit};offset={offset};length={length}");
            cases.add(name, &[], move |t| fill_part(t, unit as u32, offset, length));
        }
        cases.add(format!("transfer.big_fill:pattern={unit}"), &[], move |t| big_fill(t, unit as u32));
    }
    for (offset, length) in [(0, 4), (0, 3), (1, 4), (5, 9), (4, 65_536), (3, 65_541), (0, 0), (2, 300_000)] {
        let name = format!("transfer.update:offset={offset};length={length}");
        cases.add(name, &[], move |t| update(t, offset, length));
    }
    for (from, to, length) in [
        (0, 0, 64),
        (0, 4, 60),
        (1, 0, 7),
        (0, 1, 7),
        (3, 5, 33),
        (5, 3, 33),
        (8, 8, 0),
        (7, 2, 70_001),
        (64, 128, 1),
    ] {
        let name = format!("transfer.copy:from={from};to={to};length={length}");
        cases.add(name, &[], move |t| copy(t, from, to, length));
    }
    for distance in [16, 17, 100] {
        let name = format!("transfer.copy_within_a_buffer:distance={distance}");
        cases.add(name, &[], move |t| copy_within(t, distance));
    }
    cases.add("transfer.big_copy", &[], big_copy);
    cases.add("transfer.between_memory_types", &[], between_types);
    cases.add("transfer.overlaps_are_refused", &[Need::Validation], overlaps);
    cases.add("transfer.bad_ranges_are_refused", &[Need::Validation], bad_ranges);
    cases.add("transfer.bad_patterns_are_refused", &[Need::Validation], bad_patterns);
    cases.add("transfer.usage_is_required", &[Need::Validation], usage);
    cases.add("transfer.foreign_buffers_are_refused", &[Need::Validation], foreign);
}

fn fill_part(t: &Context, unit: u32, offset: u64, length: u64) -> Outcome {
    // The size is no multiple of anything, so that the last word is a partial one.
    let target = buffer(t.device(), &[0xEE; 523])?;
    run(t.device(), fill(span(&target, offset, length), PATTERN, unit))?;
    let mut wanted = vec![0xEE; 523];
    wanted[offset as usize..(offset + length) as usize]
        .copy_from_slice(&pattern_bytes(PATTERN, unit, length));
    same_bytes("target", &read(&target)?, &wanted)
}

fn big_fill(t: &Context, unit: u32) -> Outcome {
    let target = t.device().allocate_buffer(&BufferParams::DEVICE, LARGE + 8)?;
    run(t.device(), fill(whole(&target), 0, 1))?;
    run(t.device(), fill(span(&target, unit.into(), LARGE), PATTERN, unit))?;
    let mut wanted = vec![0; unit as usize];
    wanted.extend(pattern_bytes(PATTERN, unit, LARGE));
    wanted.resize(LARGE as usize + 8, 0);
    same_bytes("target", &read(&target)?, &wanted)
}

fn update(t: &Context, offset: usize, length: usize) -> Outcome {
    let target = buffer(t.device(), &vec![0x11; offset + length + 13])?;
    let source = Bytes::from(counting(length));
    let op = QueueOp::Update { source: source.clone(), target: span(&target, offset as u64, length as u64) };
    run(t.device(), op)?;
    let mut wanted = vec![0x11; offset + length + 13];
    wanted[offset..offset + length].copy_from_slice(&source);
    same_bytes("target", &read(&target)?, &wanted)
}

fn copy_op(source: halite_hal::BufferSpan, target: halite_hal::BufferSpan) -> QueueOp {
    QueueOp::Copy { source, target }
}

fn copy(t: &Context, from: usize, to: usize, length: usize) -> Outcome {
    let bytes = counting(from + length + 9);
    let source = buffer(t.device(), &bytes)?;
    let target = buffer(t.device(), &vec![0x22; to + length + 5])?;
    let op = copy_op(span(&source, from as u64, length as u64), span(&target, to as u64, length as u64));
    run(t.device(), op)?;
    let mut wanted = vec![0x22; to + length + 5];
    wanted[to..to + length].copy_from_slice(&bytes[from..from + length]);
    same_bytes("target", &read(&target)?, &wanted)?;
    same_bytes("source", &read(&source)?, &bytes)
}

fn copy_within(t: &Context, distance: usize) -> Outcome {
    let mut wanted = counting(300);
    let data = buffer(t.device(), &wanted)?;
    run(t.device(), copy_op(span(&data, 3, 16), span(&data, 3 + distance as u64, 16)))?;
    wanted.copy_within(3..19, 3 + distance);
    same_bytes("after a copy upward", &read(&data)?, &wanted)?;
    run(t.device(), copy_op(span(&data, 5 + distance as u64, 16), span(&data, 5, 16)))?;
    wanted.copy_within(5 + distance..21 + distance, 5);
    same_bytes("after a copy downward", &read(&data)?, &wanted)
}

fn big_copy(t: &Context) -> Outcome {
    let device = t.device();
    let bytes = counting(LARGE as usize);
    let source = buffer(device, &bytes)?;
    let target = device.allocate_buffer(&BufferParams::DEVICE, LARGE)?;
    run(device, copy_op(whole(&source), whole(&target)))?;
    same_bytes("target", &read(&target)?, &bytes)?;
    run(device, copy_op(span(&source, 3, LARGE - 3), span(&target, 0, LARGE - 3)))?;
    let mut wanted = bytes[3..].to_vec();
    wanted.extend(&bytes[LARGE as usize - 3..]);
    same_bytes("target of the shifted copy", &read(&target)?, &wanted)
}

fn between_types(t: &Context) -> Outcome {
    use halite_hal::MemoryType as M;
    let types = [M::DEVICE_LOCAL, M::HOST_LOCAL | M::DEVICE_VISIBLE, M::HOST_VISIBLE | M::DEVICE_VISIBLE];
    let bytes = counting(777);
    for from in types {
        for to in types {
            let make = |memory_type| {
                let params = BufferParams { memory_type, ..BufferParams::DEVICE };
                t.device().allocate_buffer(&params, 777)
            };
            let (source, target) = (make(from)?, make(to)?);
            source.write(0, &bytes)?;
            run(t.device(), copy_op(whole(&source), whole(&target)))?;
            same_bytes(&format!("copy from {from} to {to}"), &read(&target)?, &bytes)?;
        }
    }
    Ok(())
}

/// A refused operation leaves its fence alone.
fn refuse(device: &Dev, what: &str, op: QueueOp, code: Code) -> Outcome {
    let done = fence(device)?;
    refused(what, device.queue_submit(ANY, &Fence::default(), &done, op), &[code])?;
    check!(!done.query()?, "{what} was refused, but its signal fence was touched");
    Ok(done.signal()?)
}

fn overlaps(t: &Context) -> Outcome {
    let device = t.device();
    let data = buffer(device, &counting(64))?;
    for (from, to) in [(0, 0), (0, 15), (15, 0), (7, 8)] {
        let op = copy_op(span(&data, from, 16), span(&data, to, 16));
        refuse(device, &format!("a copy from {from} to {to}"), op, Code::InvalidArgument)?;
    }
    same_bytes("data", &read(&data)?, &counting(64))
}

fn bad_ranges(t: &Context) -> Outcome {
    let device = t.device();
    let data = buffer(device, &counting(64))?;
    let other = buffer(device, &counting(64))?;
    for (offset, length) in [(64, 1), (65, 0), (0, 65), (u64::MAX, 2), (4, u64::MAX)] {
        let bad = || span(&data, offset, length);
        refuse(device, "a fill", fill(bad(), 0, 1), Code::OutOfRange)?;
        let ops = [copy_op(bad(), span(&other, 0, length)), copy_op(span(&other, 0, length), bad())];
        for op in ops {
            refuse(device, "a copy", op, Code::OutOfRange)?;
        }
    }
    let uneven = copy_op(span(&data, 0, 8), span(&other, 0, 9));
    refuse(device, "an uneven copy", uneven, Code::InvalidArgument)?;
    let short = QueueOp::Update { source: Bytes::from_static(b"abc"), target: span(&data, 0, 4) };
    refuse(device, "an uneven update", short, Code::InvalidArgument)?;
    same_bytes("data", &read(&data)?, &counting(64))
}

fn bad_patterns(t: &Context) -> Outcome {
    let device = t.device();
    let data = buffer(device, &counting(64))?;
    for (offset, length, unit) in [(0, 8, 0), (0, 9, 3), (0, 16, 16), (1, 2, 2), (0, 6, 4), (4, 8, 8)] {
        let what = format!("a fill of {length} bytes at {offset} with {unit}");
        refuse(device, &what, fill(span(&data, offset, length), 0, unit), Code::InvalidArgument)?;
    }
    same_bytes("data", &read(&data)?, &counting(64))
}

fn usage(t: &Context) -> Outcome {
    let device = t.device();
    let make = |usage| device.allocate_buffer(&BufferParams { usage, ..BufferParams::DEVICE }, 16);
    let (from, to) = (make(BufferUsage::TRANSFER_SOURCE)?, make(BufferUsage::TRANSFER_TARGET)?);
    run(device, copy_op(whole(&from), whole(&to)))?;
    for (what, op) in [
        ("a fill of a source", fill(whole(&from), 0, 1)),
        ("a copy to a source", copy_op(whole(&from), whole(&from))),
        ("a copy from a target", copy_op(whole(&to), whole(&to))),
    ] {
        refuse(device, what, op, Code::PermissionDenied)?;
    }
    Ok(())
}

fn foreign(t: &Context) -> Outcome {
    let (device, other) = (t.device(), t.open()?);
    let (own, foreign) = (buffer(device, &[1; 8])?, buffer(&other, &[2; 8])?);
    for op in [
        fill(whole(&foreign), 0, 1),
        copy_op(whole(&foreign), whole(&own)),
        copy_op(whole(&own), whole(&foreign)),
    ] {
        refuse(device, "an operation on a foreign buffer", op, Code::InvalidArgument)?;
    }
    same_bytes("own buffer", &read(&own)?, &[1; 8])?;
    other.wait_idle(soon())?;
    same_bytes("foreign buffer", &read(&foreign)?, &[2; 8])
}
