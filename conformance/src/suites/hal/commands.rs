//! Recordings of transfers: order, reuse, one-shot execution, debug groups, refusals.

use bytes::Bytes;
use halite_hal::{Code, Command, CommandBufferMode, CommandCategory, CommandList, Fence, WHOLE_BUFFER};
use halite_testing::hal::support::{
    ANY, after, buffer, counting, execute, fence, pattern_bytes, read, record, record_as, run, slot, soon,
    span, whole,
};

use crate::suites::{
    Cases, Context, Need, Outcome,
    case::{check, refused, same_bytes},
};

const MODES: [(&str, CommandBufferMode); 4] = [
    ("reusable", CommandBufferMode::empty()),
    ("one_shot", CommandBufferMode::ONE_SHOT),
    ("unvalidated", CommandBufferMode::UNVALIDATED),
    ("inline", CommandBufferMode::ONE_SHOT.union(CommandBufferMode::ALLOW_INLINE_EXECUTION)),
];

/// Adds the cases of this file.
pub(super) fn add(cases: &mut Cases) {
    for (name, mode) in MODES {
        cases.add(format!("commands.transfers_in_order:mode={name}"), &[], move |t| in_order(t, mode));
    }
    for unit in [1u32, 2, 4, 8] {
        cases.add(format!("commands.fill:pattern={unit}"), &[], move |t| fills(t, unit));
    }
    for length in [1, 5, 65_536, 65_541, 1 << 20] {
        cases.add(format!("commands.update:bytes={length}"), &[], move |t| update(t, length));
    }
    cases.add("commands.copy_of_every_alignment", &[], copies);
    cases.add("commands.long_chain_of_dependent_copies", &[], chain);
    cases.add("commands.barriers_in_a_row", &[], barriers);
    cases.add("commands.empty", &[], empty);
    cases.add("commands.debug_groups", &[], debug_groups);
    cases.add("commands.reused_many_times", &[], reused);
    cases.add("commands.one_shot_twice_is_refused", &[Need::Validation], one_shot_twice);
    cases.add("commands.outlived_by_their_effects", &[], dropped_after_submission);
    cases.add("commands.bad_recordings_are_refused", &[Need::Validation], bad_recordings);
    cases.add("commands.foreign_command_buffers_are_refused", &[Need::Validation], foreign);
}

fn in_order(t: &Context, mode: CommandBufferMode) -> Outcome {
    let device = t.device();
    let (a, b) = (buffer(device, &[0; 64])?, buffer(device, &[9; 70])?);
    let commands = vec![
        Command::Fill { target: whole(&a).into(), pattern: 7, pattern_length: 1 },
        Command::Barrier,
        Command::Update { source: Bytes::from_static(b"abcdef"), target: span(&a, 5, 6).into() },
        Command::Barrier,
        Command::Copy { source: span(&a, 0, 32).into(), target: span(&b, 1, 32).into() },
        Command::Barrier,
        Command::Fill { target: span(&b, 4, 4).into(), pattern: 0x4241, pattern_length: 2 },
    ];
    let commands = record_as(device, mode, 0, commands)?;
    run(device, execute(&commands, []))?;
    // Bytes 1..33 of `b` are bytes 0..32 of `a`, of which 5..11 are the update.
    let mut copied = [7; 32];
    copied[5..11].copy_from_slice(b"abcdef");
    let mut full = vec![9; 70];
    full[1..33].copy_from_slice(&copied);
    full[4..8].copy_from_slice(b"ABAB");
    same_bytes("target", &read(&b)?, &full)
}

fn fills(t: &Context, unit: u32) -> Outcome {
    const PATTERN: u64 = 0x1817_1615_1413_1211;
    let device = t.device();
    let target = buffer(device, &[0; 409])?;
    let step = u64::from(unit);
    let mut wanted = vec![0; 409];
    let mut commands = Vec::new();
    // Neighbours that share words: the fills must not disturb each other although nothing orders them.
    for (offset, length) in [(0, 1), (1, 2), (3, 3), (6, 5), (11, 0), (11, 13)] {
        let (offset, length) = (offset * step, length * step);
        let pattern = PATTERN.rotate_left((offset % 7 * 8) as u32);
        let target = span(&target, offset, length).into();
        commands.push(Command::Fill { target, pattern, pattern_length: unit });
        wanted[offset as usize..(offset + length) as usize]
            .copy_from_slice(&pattern_bytes(pattern, unit, length));
    }
    run(device, execute(&record(device, 0, commands)?, []))?;
    same_bytes("target", &read(&target)?, &wanted)
}

fn update(t: &Context, length: usize) -> Outcome {
    let device = t.device();
    let target = buffer(device, &vec![0; length + 6])?;
    let source = Bytes::from(counting(length));
    let command = Command::Update { source: source.clone(), target: span(&target, 3, length as u64).into() };
    let commands = record(device, 0, vec![command])?;
    for _ in 0..2 {
        run(device, execute(&commands, []))?;
        let mut wanted = vec![0; length + 6];
        wanted[3..length + 3].copy_from_slice(&source);
        same_bytes("target", &read(&target)?, &wanted)?;
        target.write(0, &vec![0; length + 6])?;
    }
    Ok(())
}

fn copies(t: &Context) -> Outcome {
    let device = t.device();
    let bytes = counting(64);
    let source = buffer(device, &bytes)?;
    let target = buffer(device, &[0xCC; 16 * 16])?;
    let mut wanted = vec![0xCC; 16 * 16];
    let mut commands = Vec::new();
    for from in 0..4 {
        for to in 0..4 {
            let at = (from * 4 + to) * 16 + to;
            let length = 5 + from + to;
            commands.push(Command::Copy {
                source: span(&source, from as u64, length as u64).into(),
                target: span(&target, at as u64, length as u64).into(),
            });
            wanted[at..at + length].copy_from_slice(&bytes[from..from + length]);
        }
    }
    run(device, execute(&record(device, 0, commands)?, []))?;
    same_bytes("target", &read(&target)?, &wanted)
}

/// Each copy reads what the one before it wrote.
fn chain(t: &Context) -> Outcome {
    const LENGTH: usize = 400;
    let device = t.device();
    let data = buffer(device, &[0; LENGTH + 4])?;
    let mut commands =
        vec![Command::Update { source: Bytes::from_static(b"wave"), target: span(&data, 0, 4).into() }];
    for at in (0..LENGTH as u64).step_by(4) {
        commands.push(Command::Barrier);
        commands
            .push(Command::Copy { source: span(&data, at, 4).into(), target: span(&data, at + 4, 4).into() });
    }
    run(device, execute(&record(device, 0, commands)?, []))?;
    same_bytes("data", &read(&data)?, &b"wave".repeat(LENGTH / 4 + 1))
}

fn barriers(t: &Context) -> Outcome {
    let device = t.device();
    let data = buffer(device, &[0; 8])?;
    let mut commands = vec![Command::Barrier; 50];
    commands.push(Command::Fill { target: whole(&data).into(), pattern: 5, pattern_length: 1 });
    commands.extend(vec![Command::Barrier; 50]);
    run(device, execute(&record(device, 0, commands)?, []))?;
    same_bytes("data", &read(&data)?, &[5; 8])
}

fn empty(t: &Context) -> Outcome {
    let device = t.device();
    let nothing = record(device, 0, Vec::new())?;
    let mut last = Fence::default();
    for _ in 0..3 {
        last = after(device, &last, execute(&nothing, []))?;
    }
    Ok(last.wait(soon())?)
}

fn debug_groups(t: &Context) -> Outcome {
    let device = t.device();
    let data = buffer(device, &[0; 8])?;
    let mut commands = Vec::new();
    for name in ["outer", "", "Zwölf 🦀 %s \" \\", &"long ".repeat(500)] {
        commands.push(Command::BeginDebugGroup(name.to_owned()));
    }
    commands.push(Command::Fill { target: whole(&data).into(), pattern: 1, pattern_length: 1 });
    commands.extend(vec![Command::EndDebugGroup; 4]);
    run(device, execute(&record(device, 0, commands)?, []))?;
    same_bytes("data", &read(&data)?, &[1; 8])
}

fn reused(t: &Context) -> Outcome {
    let device = t.device();
    let (one, all) = (buffer(device, &[0])?, buffer(device, &[0; 64])?);
    let commands = record(
        device,
        0,
        vec![Command::Copy { source: whole(&one).into(), target: span(&all, 63, 1).into() }],
    )?;
    let shift = record(
        device,
        0,
        (0..63)
            .flat_map(|i| {
                let copy =
                    Command::Copy { source: span(&all, i + 1, 1).into(), target: span(&all, i, 1).into() };
                [copy, Command::Barrier]
            })
            .collect(),
    )?;
    let mut last = Fence::default();
    for i in 0..64u8 {
        last = after(device, &last, halite_testing::hal::support::fill(whole(&one), i.into(), 1))?;
        last = after(device, &last, execute(&shift, []))?;
        last = after(device, &last, execute(&commands, []))?;
    }
    last.wait(soon())?;
    same_bytes("data", &read(&all)?, &(0..64).collect::<Vec<u8>>())
}

fn one_shot_twice(t: &Context) -> Outcome {
    let device = t.device();
    let data = buffer(device, &[0; 8])?;
    let command = Command::Fill { target: whole(&data).into(), pattern: 1, pattern_length: 1 };
    let commands = record_as(device, CommandBufferMode::ONE_SHOT, 0, vec![command])?;
    run(device, execute(&commands, []))?;
    let done = fence(device)?;
    let again = device.queue_submit(ANY, &Fence::default(), &done, execute(&commands, []));
    refused("a second execution", again, &[Code::FailedPrecondition])?;
    check!(!done.query()?, "the refused execution touched its fence");
    same_bytes("data", &read(&data)?, &[1; 8])
}

/// Recording, buffers and fence handles may go as soon as the work is submitted.
fn dropped_after_submission(t: &Context) -> Outcome {
    let device = t.device();
    let kept = buffer(device, &vec![0; 100_000])?;
    let go = fence(device)?;
    let mut last = go.clone();
    for i in 0..20u8 {
        let scratch = device.allocate_buffer(&halite_hal::BufferParams::DEVICE, 100_000)?;
        let commands = vec![
            Command::Fill { target: whole(&scratch).into(), pattern: (i + 1).into(), pattern_length: 1 },
            Command::Barrier,
            Command::Copy { source: whole(&scratch).into(), target: whole(&kept).into() },
        ];
        last = after(device, &last, execute(&record(device, 0, commands)?, []))?;
    }
    go.signal()?;
    last.wait(soon())?;
    same_bytes("data", &read(&kept)?, &vec![20; 100_000])
}

fn bad_recordings(t: &Context) -> Outcome {
    let device = t.device();
    let data = buffer(device, &[0; 16])?;
    let fill = |target| Command::Fill { target, pattern: 0, pattern_length: 4 };
    let list = |categories, commands| CommandList {
        mode: CommandBufferMode::empty(),
        categories,
        affinity: ANY,
        binding_capacity: 1,
        commands,
    };
    let any = CommandCategory::ANY;
    let copy =
        |from, to| Command::Copy { source: span(&data, from, 8).into(), target: span(&data, to, 8).into() };
    for (what, list, code) in [
        ("a fill past the end", list(any, vec![fill(span(&data, 8, 12).into())]), Code::OutOfRange),
        ("a misplaced fill", list(any, vec![fill(span(&data, 2, 4).into())]), Code::InvalidArgument),
        ("an overlapping copy", list(any, vec![copy(0, 4)]), Code::InvalidArgument),
        ("a slot beyond the capacity", list(any, vec![fill(slot(1, 0, WHOLE_BUFFER))]), Code::OutOfRange),
        (
            "an open debug group",
            list(any, vec![Command::BeginDebugGroup("x".into())]),
            Code::FailedPrecondition,
        ),
        ("a group that nobody opened", list(any, vec![Command::EndDebugGroup]), Code::FailedPrecondition),
        (
            "a fill among dispatches",
            list(CommandCategory::DISPATCH, vec![fill(whole(&data).into())]),
            Code::InvalidArgument,
        ),
    ] {
        refused(what, device.create_command_buffer(list), &[code])?;
    }
    Ok(())
}

fn foreign(t: &Context) -> Outcome {
    let (device, other) = (t.device(), t.open()?);
    let commands = record(&other, 0, vec![Command::Barrier])?;
    let done = fence(device)?;
    let refusal = device.queue_submit(ANY, &Fence::default(), &done, execute(&commands, []));
    refused("a command buffer of another device", refusal, &[Code::InvalidArgument]).map(drop)
}
