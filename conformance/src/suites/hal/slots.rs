//! Recordings whose buffers come with each execution: offsets, empty slots, reuse with other buffers, also in flight.

use bytes::Bytes;
use halite_hal::{Buffer, Code, Command, Fence, WHOLE_BUFFER};
use halite_testing::hal::support::{
    ANY, after, buffer, counting, execute, fence, read, record, run, slot, soon, span, whole,
};

use crate::suites::{
    Cases, Context, Need, Outcome,
    case::{check, refused, same_bytes},
};

/// Adds the cases of this file.
pub(super) fn add(cases: &mut Cases) {
    for (base, offset, length) in
        [(0, 0, 64), (4, 0, 60), (3, 5, 17), (64, 1, 1), (1, 0, WHOLE_BUFFER), (7, 9, WHOLE_BUFFER)]
    {
        let text = if length == WHOLE_BUFFER { "rest".to_owned() } else { length.to_string() };
        let name = format!("slots.offsets_add_up:entry={base};offset={offset};length={text}");
        cases.add(name, &[], move |t| offsets(t, base, offset, length));
    }
    cases.add("slots.copy_from_slot_to_slot", &[], copy);
    cases.add("slots.one_buffer_in_two_slots", &[], shared);
    cases.add("slots.empty_slots_without_bytes", &[], empty);
    cases.add("slots.unused_entries_are_ignored", &[], unused);
    cases.add("slots.reused_with_other_buffers", &[], other_buffers);
    cases.add("slots.reused_while_in_flight", &[], in_flight);
    cases.add("slots.bad_tables_are_refused", &[Need::Validation], bad_tables);
}

fn offsets(t: &Context, base: u64, offset: u64, length: u64) -> Outcome {
    let device = t.device();
    let data = buffer(device, &[0; 200])?;
    let fill = Command::Fill { target: slot(2, offset, length), pattern: 0xAB, pattern_length: 1 };
    let commands = record(device, 3, vec![fill])?;
    run(device, execute(&commands, [None, None, Some(span(&data, base, 100))]))?;
    let start = (base + offset) as usize;
    let end = if length == WHOLE_BUFFER { base as usize + 100 } else { start + length as usize };
    let mut wanted = vec![0; 200];
    wanted[start..end].fill(0xAB);
    same_bytes("data", &read(&data)?, &wanted)
}

fn copy(t: &Context) -> Outcome {
    let device = t.device();
    let source = buffer(device, &counting(100))?;
    let target = buffer(device, &[0; 100])?;
    let commands = vec![
        Command::Copy { source: slot(0, 1, 20), target: slot(1, 2, 20) },
        Command::Update { source: Bytes::from_static(b"xyz"), target: slot(1, 50, 3) },
        Command::Copy { source: slot(0, 60, WHOLE_BUFFER), target: slot(1, 60, 30) },
    ];
    let commands = record(device, 2, commands)?;
    run(device, execute(&commands, [Some(span(&source, 5, 90)), Some(span(&target, 3, 95))]))?;
    let (from, mut wanted) = (counting(100), vec![0; 100]);
    wanted[5..25].copy_from_slice(&from[6..26]);
    wanted[53..56].copy_from_slice(b"xyz");
    wanted[63..93].copy_from_slice(&from[65..95]);
    same_bytes("target", &read(&target)?, &wanted)
}

fn shared(t: &Context) -> Outcome {
    let device = t.device();
    let data = buffer(device, &counting(64))?;
    let commands = record(device, 2, vec![Command::Copy { source: slot(0, 0, 16), target: slot(1, 0, 16) }])?;
    run(device, execute(&commands, [Some(span(&data, 8, 20)), Some(span(&data, 40, 20))]))?;
    let mut wanted = counting(64);
    wanted.copy_within(8..24, 40);
    same_bytes("data", &read(&data)?, &wanted)
}

fn empty(t: &Context) -> Outcome {
    let device = t.device();
    let data = buffer(device, &counting(8))?;
    let commands = vec![
        Command::Fill { target: slot(0, 0, 0), pattern: 1, pattern_length: 4 },
        Command::Update { source: Bytes::new(), target: slot(1, 0, 0) },
        Command::Copy { source: slot(0, 0, 0), target: slot(1, 0, 0) },
        Command::Copy { source: slot(2, 8, 0), target: slot(0, 0, 0) },
        Command::Fill { target: slot(3, 0, 0), pattern: 1, pattern_length: 1 },
    ];
    let commands = record(device, 4, commands)?;
    run(device, execute(&commands, [None, None, Some(whole(&data))]))?;
    let nothing = buffer(device, &[])?;
    run(device, execute(&commands, [Some(whole(&nothing)), Some(span(&data, 8, 0)), Some(whole(&data))]))?;
    same_bytes("data", &read(&data)?, &counting(8))
}

fn unused(t: &Context) -> Outcome {
    let device = t.device();
    let (data, other) = (buffer(device, &[0; 8])?, buffer(device, &[1; 8])?);
    let commands =
        record(device, 1, vec![Command::Fill { target: slot(0, 0, 8), pattern: 2, pattern_length: 1 }])?;
    run(device, execute(&commands, [Some(whole(&data)), Some(whole(&other)), None]))?;
    same_bytes("bound buffer", &read(&data)?, &[2; 8])?;
    same_bytes("other buffer", &read(&other)?, &[1; 8])
}

fn other_buffers(t: &Context) -> Outcome {
    let device = t.device();
    let commands = record(
        device,
        2,
        vec![Command::Copy { source: slot(0, 0, WHOLE_BUFFER), target: slot(1, 0, WHOLE_BUFFER) }],
    )?;
    for size in [1, 64, 100_000, 64, 7, 100_000] {
        let source = buffer(device, &counting(size))?;
        let target = buffer(device, &vec![0; size])?;
        run(device, execute(&commands, [Some(whole(&source)), Some(whole(&target))]))?;
        same_bytes("target", &read(&target)?, &counting(size))?;
    }
    Ok(())
}

/// Executions of one recording that all wait for the host, each with buffers of its own.
fn in_flight(t: &Context) -> Outcome {
    let device = t.device();
    let commands = vec![
        Command::Fill { target: slot(0, 0, WHOLE_BUFFER), pattern: 0x3333, pattern_length: 2 },
        Command::Barrier,
        Command::Copy { source: slot(1, 0, 2), target: slot(0, 4, 2) },
    ];
    let commands = record(device, 2, commands)?;
    let go = fence(device)?;
    let mut running = Vec::new();
    for i in 0..40u8 {
        let (target, tag) = (buffer(device, &[0; 12])?, buffer(device, &[i, !i])?);
        let done = after(device, &go, execute(&commands, [Some(whole(&target)), Some(whole(&tag))]))?;
        running.push((i, target, done));
    }
    go.signal()?;
    drop(commands);
    for (i, target, done) in running {
        done.wait(soon())?;
        let wanted = [0x33, 0x33, 0x33, 0x33, i, !i, 0x33, 0x33, 0x33, 0x33, 0x33, 0x33];
        same_bytes(&format!("target {i}"), &read(&target)?, &wanted)?;
    }
    Ok(())
}

fn bad_tables(t: &Context) -> Outcome {
    let (device, other) = (t.device(), t.open()?);
    let data = buffer(device, &[5; 64])?;
    let foreign = buffer(&other, &[6; 64])?;
    let fill = Command::Fill { target: slot(0, 8, 16), pattern: 1, pattern_length: 4 };
    let commands =
        record(device, 2, vec![fill, Command::Copy { source: slot(0, 0, 8), target: slot(1, 0, 8) }])?;
    let owned: &dyn Buffer = data.as_ref();
    check!(owned.device_id() == device.id(), "a buffer of this device has another owner");
    for (what, entries, code) in [
        ("a table without entries", vec![], Code::InvalidArgument),
        ("an empty slot", vec![None, Some(whole(&data))], Code::InvalidArgument),
        ("a short entry", vec![Some(span(&data, 0, 23)), Some(span(&data, 32, 8))], Code::OutOfRange),
        ("an entry past the buffer", vec![Some(span(&data, 48, 24)), Some(whole(&data))], Code::OutOfRange),
        (
            "a misplaced entry",
            vec![Some(span(&data, 2, 24)), Some(span(&data, 32, 8))],
            Code::InvalidArgument,
        ),
        (
            "entries that overlap in a copy",
            vec![Some(span(&data, 0, 24)), Some(span(&data, 4, 8))],
            Code::InvalidArgument,
        ),
        ("a foreign entry", vec![Some(whole(&foreign)), Some(whole(&data))], Code::InvalidArgument),
    ] {
        let done = fence(device)?;
        let refusal = device.queue_submit(ANY, &Fence::default(), &done, execute(&commands, entries));
        refused(what, refusal, &[code])?;
        check!(!done.query()?, "{what} was refused, but its fence was touched");
    }
    same_bytes("data", &read(&data)?, &[5; 64])
}
