//! Checks of recordings: what `create_command_buffer` takes and what it refuses, check by check.
#![allow(clippy::unwrap_used, reason = "a failure is a failed test, also in helpers")]

use crate::common::*;
use halite_hal::*;
use halite_layers::{dump, validation::MAX_BINDING_CAPACITY};

#[test]
fn a_sound_recording_of_every_command_is_taken() {
    let d = device();
    let (b, e) = (buffer(&d, 64), executable(&d));
    let counts = buffer_for(&d, BufferUsage::DISPATCH_INDIRECT_PARAMETERS, 16);
    let mut indirect = dispatch(&e, &[direct(&b, 0, 32), slot(0, 0, WHOLE_BUFFER)]);
    if let Command::Dispatch { counts: c, flags, .. } = &mut indirect {
        *c = DispatchCounts::Indirect(direct(&counts, 4, 12));
        *flags = DispatchFlags::DYNAMIC_INDIRECT_PARAMETERS;
    }
    let commands = vec![
        Command::BeginDebugGroup("g".to_owned()),
        fill(direct(&b, 8, 16), 8),
        update(b"abcd", direct(&b, 60, 4)),
        copy(direct(&b, 0, 32), direct(&b, 32, WHOLE_BUFFER)),
        Command::Barrier,
        indirect,
        Command::EndDebugGroup,
    ];
    let recorded = record(&d, commands, 1).unwrap();
    assert_eq!(recorded.list().commands.len(), 7);
    assert_eq!(recorded.device_id(), d.id());
}

#[test]
fn doing_nothing_is_legal() {
    let d = device();
    let (b, none, e) = (buffer(&d, 64), buffer_for(&d, BufferUsage::empty(), 0), executable(&d));
    let mut idle = dispatch(&e, &[direct(&none, 0, 0), slot(0, 0, 0)]);
    if let Command::Dispatch { counts, .. } = &mut idle {
        *counts = DispatchCounts::Direct([4, 0, 1]);
    }
    let commands = vec![
        fill(direct(&b, 64, 0), 4),
        fill(direct(&none, 0, WHOLE_BUFFER), 4),
        update(b"", direct(&none, 0, 0)),
        copy(direct(&b, 5, 0), direct(&b, 5, 0)),
        idle,
    ];
    let recorded = record(&d, commands, 1).unwrap();
    execute(&d, &recorded, &[None]).unwrap();
}

#[test]
fn objects_of_another_device_are_refused() {
    let (d, other) = (device(), device());
    let (b, foreign, e) = (buffer(&d, 16), buffer(&other, 16), executable(&other));
    let whole = |b| direct(b, 0, 16);
    for (command, what) in [
        (fill(whole(&foreign), 1), "target"),
        (copy(whole(&foreign), whole(&b)), "source"),
        (copy(whole(&b), whole(&foreign)), "target"),
        (dispatch(&e, &[whole(&b), whole(&b)]), "executable"),
        (dispatch(&executable(&d), &[whole(&b), whole(&foreign)]), "binding"),
    ] {
        refused(record(&d, vec![command], 0), Code::InvalidArgument, &[what, "another device", "command 0"]);
    }
}

#[test]
fn ranges_beyond_a_buffer_are_refused() {
    let d = device();
    let b = buffer(&d, 64);
    for (offset, length) in [(0, 65), (64, 1), (65, 0), (u64::MAX, 8), (8, u64::MAX - 1), (72, WHOLE_BUFFER)]
    {
        let commands = vec![Command::Barrier, fill(direct(&b, offset, length), 1)];
        refused(record(&d, commands, 0), Code::OutOfRange, &["target", "64 bytes", "command 1 (fill)"]);
    }
    let mismatch = copy(direct(&b, 60, 8), direct(&b, 0, 8));
    refused(record(&d, vec![mismatch], 0), Code::OutOfRange, &["source", "8 bytes at offset 60"]);
}

#[test]
fn usage_bits_are_asked_for() {
    let d = device();
    let (b, e) = (buffer(&d, 16), executable(&d));
    let source = buffer_for(&d, BufferUsage::TRANSFER_SOURCE, 16);
    let target = buffer_for(&d, BufferUsage::TRANSFER_TARGET, 16);
    let whole = |b| direct(b, 0, 16);
    record(&d, vec![copy(whole(&source), whole(&target))], 0).unwrap();
    for (command, needed) in [
        (fill(whole(&source), 1), "TRANSFER_TARGET"),
        (update(b"0123456789abcdef", whole(&source)), "TRANSFER_TARGET"),
        (copy(whole(&target), whole(&b)), "TRANSFER_SOURCE"),
        (copy(whole(&b), whole(&source)), "TRANSFER_TARGET"),
        (dispatch(&e, &[whole(&b), whole(&source)]), "DISPATCH_STORAGE"),
    ] {
        refused(record(&d, vec![command], 0), Code::PermissionDenied, &["usage", needed]);
    }
    let uniform = buffer_for(&d, BufferUsage::DISPATCH_UNIFORM_READ, 16);
    record(&d, vec![dispatch(&e, &[whole(&uniform), whole(&uniform)])], 0).unwrap();
}

#[test]
fn access_bits_are_asked_for() {
    let d = device();
    let guarded =
        |access| -> std::sync::Arc<dyn Buffer> { std::sync::Arc::new(Guarded { device_id: d.id(), access }) };
    let (read, write) = (guarded(MemoryAccess::READ), guarded(MemoryAccess::WRITE));
    record(&d, vec![copy(direct(&read, 0, 16), direct(&write, 0, 16))], 0).unwrap();
    let backwards = copy(direct(&write, 0, 16), direct(&read, 0, 16));
    refused(record(&d, vec![backwards], 0), Code::PermissionDenied, &["READ access", "allows WRITE"]);
    let fill_it = fill(direct(&read, 0, 16), 1);
    refused(record(&d, vec![fill_it], 0), Code::PermissionDenied, &["WRITE access", "allows READ"]);
}

#[test]
fn fills_are_made_of_whole_patterns() {
    let d = device();
    let b = buffer(&d, 70);
    for (pattern, offset, length) in [(1, 3, 5), (2, 2, 6), (4, 4, 8), (8, 8, 16), (2, 64, WHOLE_BUFFER)] {
        record(&d, vec![fill(direct(&b, offset, length), pattern)], 0).unwrap();
        record(&d, vec![fill(slot(0, offset, length), pattern)], 1).unwrap();
    }
    for pattern in [0, 3, 16, u32::MAX] {
        let refusal = record(&d, vec![fill(direct(&b, 0, 16), pattern)], 0);
        refused(refusal, Code::InvalidArgument, &["1, 2, 4 or 8"]);
    }
    for (pattern, offset, length) in [(2, 1, 2), (4, 0, 6), (8, 4, 8), (4, 0, WHOLE_BUFFER)] {
        let refusal = record(&d, vec![fill(direct(&b, offset, length), pattern)], 0);
        refused(refusal, Code::InvalidArgument, &["whole", "multiples"]);
    }
    refused(record(&d, vec![fill(slot(0, 2, 8), 4)], 1), Code::InvalidArgument, &["whole 4-byte patterns"]);
}

#[test]
fn lengths_on_both_sides_are_equal() {
    let d = device();
    let (a, b) = (buffer(&d, 64), buffer(&d, 64));
    let longer = copy(direct(&a, 0, 8), direct(&b, 0, 16));
    refused(record(&d, vec![longer], 0), Code::InvalidArgument, &["source has 8", "target has 16"]);
    let rest = copy(direct(&a, 60, WHOLE_BUFFER), direct(&b, 0, 4));
    record(&d, vec![rest], 0).unwrap();
    let cut = update(b"abcd", direct(&b, 0, 3));
    refused(record(&d, vec![cut], 0), Code::InvalidArgument, &["source has 4", "target has 3"]);
    record(&d, vec![update(b"abcd", slot(0, 0, 4))], 1).unwrap();
    let open = update(b"abcd", slot(0, 0, WHOLE_BUFFER));
    refused(record(&d, vec![open], 1), Code::InvalidArgument, &["must say its length"]);
}

#[test]
fn copies_do_not_overlap_themselves() {
    let d = device();
    let (a, b) = (buffer(&d, 64), buffer(&d, 64));
    record(&d, vec![copy(direct(&a, 0, 32), direct(&a, 32, 32))], 0).unwrap();
    record(&d, vec![copy(direct(&a, 0, 32), direct(&b, 0, 32))], 0).unwrap();
    record(&d, vec![copy(slot(0, 0, 32), slot(0, 32, 32))], 1).unwrap();
    for (from, to) in [(0, 31), (31, 0), (5, 5)] {
        let direct = copy(direct(&a, from, 32), direct(&a, to, 32));
        refused(record(&d, vec![direct], 0), Code::InvalidArgument, &["overlaps"]);
        let slots = copy(slot(0, from, 32), slot(0, to, 32));
        refused(record(&d, vec![slots], 1), Code::InvalidArgument, &["overlaps"]);
    }
}

#[test]
fn slots_lie_below_the_declared_capacity() {
    let d = device();
    record(&d, vec![fill(slot(1, 0, 4), 4)], 2).unwrap();
    refused(record(&d, vec![fill(slot(2, 0, 4), 4)], 2), Code::OutOfRange, &["slot 2", "2 slots"]);
    refused(record(&d, vec![fill(slot(0, u64::MAX - 3, 8), 4)], 1), Code::OutOfRange, &["fit in no buffer"]);
    record(&d, vec![fill(slot(MAX_BINDING_CAPACITY - 1, 0, 4), 4)], MAX_BINDING_CAPACITY).unwrap();
    refused(record(&d, Vec::new(), MAX_BINDING_CAPACITY + 1), Code::InvalidArgument, &["binding slots"]);
}

/// A dispatch of `f` with something changed.
fn changed(d: &std::sync::Arc<dyn Device>, change: impl FnOnce(&mut Command)) -> Result<()> {
    let b = buffer(d, 16);
    let mut command = dispatch(&executable(d), &[direct(&b, 0, 16), direct(&b, 0, 16)]);
    change(&mut command);
    record(d, vec![command], 1).map(drop)
}

#[test]
fn dispatches_fit_their_function() {
    let d = device();
    changed(&d, |_| ()).unwrap();
    let result = changed(&d, |c| {
        if let Command::Dispatch { function, .. } = c {
            *function = 1;
        }
    });
    refused(result, Code::OutOfRange, &["function 1", "1 functions"]);
    let result = changed(&d, |c| {
        if let Command::Dispatch { constants, .. } = c {
            constants.push(0);
        }
    });
    refused(result, Code::InvalidArgument, &["'f' takes 1 constants", "gives 2"]);
    let result = changed(&d, |c| {
        if let Command::Dispatch { bindings, .. } = c {
            bindings.pop();
        }
    });
    refused(result, Code::InvalidArgument, &["'f' takes 2 bindings", "gives 1"]);
    let result = changed(&d, |c| {
        if let Command::Dispatch { bindings, .. } = c {
            bindings[1].length = 17;
        }
    });
    refused(result, Code::OutOfRange, &["binding 1 of 'f'", "17 bytes"]);
}

#[test]
fn dispatch_flags_fit_the_arguments() {
    let d = device();
    for (bits, code, words) in [
        (DispatchFlags::CUSTOM_DIRECT_ARGUMENTS, Code::Unimplemented, "CUSTOM_DIRECT_ARGUMENTS"),
        (DispatchFlags::DYNAMIC_INDIRECT_ARGUMENTS, Code::Unimplemented, "DYNAMIC_INDIRECT_ARGUMENTS"),
        (DispatchFlags::STATIC_INDIRECT_PARAMETERS, Code::InvalidArgument, "numbers were given"),
        (DispatchFlags::from_bits_retain(3), Code::InvalidArgument, "not both"),
    ] {
        let result = changed(&d, |c| {
            if let Command::Dispatch { flags, .. } = c {
                *flags = bits;
            }
        });
        refused(result, code, &[words]);
    }
    changed(&d, |c| {
        if let Command::Dispatch { flags, .. } = c {
            *flags = DispatchFlags::ALLOW_INLINE_EXECUTION | DispatchFlags::BORROW_RESOURCE_LIFETIMES;
        }
    })
    .unwrap();
}

#[test]
fn indirect_counts_are_twelve_aligned_bytes_of_the_right_usage() {
    let d = device();
    let good = buffer_for(&d, BufferUsage::DISPATCH_INDIRECT_PARAMETERS, 24);
    let with = |reference: BufferRef| {
        changed(&d, |c| {
            if let Command::Dispatch { counts, .. } = c {
                *counts = DispatchCounts::Indirect(reference);
            }
        })
    };
    with(direct(&good, 12, 12)).unwrap();
    with(direct(&good, 4, WHOLE_BUFFER)).unwrap();
    with(slot(0, 8, 12)).unwrap();
    refused(with(direct(&good, 0, 8)), Code::InvalidArgument, &["12 bytes"]);
    refused(with(direct(&good, 2, 12)), Code::InvalidArgument, &["multiple of 4"]);
    refused(with(slot(0, 2, 12)), Code::InvalidArgument, &["multiple of 4"]);
    refused(with(direct(&good, 16, 12)), Code::OutOfRange, &["workgroup counts"]);
    refused(with(direct(&good, 16, WHOLE_BUFFER)), Code::OutOfRange, &["workgroup counts"]);
    let wrong = buffer(&d, 12);
    refused(with(direct(&wrong, 0, 12)), Code::PermissionDenied, &["DISPATCH_INDIRECT_PARAMETERS"]);
}

#[test]
fn categories_allow_only_their_commands() {
    let d = device();
    let (b, e) = (buffer(&d, 16), executable(&d));
    let only = |categories, command| {
        d.create_command_buffer(CommandList { categories, ..list(vec![Command::Barrier, command], 0) })
    };
    let (fill, run) = (fill(direct(&b, 0, 16), 4), dispatch(&e, &[direct(&b, 0, 8), direct(&b, 8, 8)]));
    only(CommandCategory::TRANSFER, fill.clone()).unwrap();
    only(CommandCategory::DISPATCH, run.clone()).unwrap();
    refused(only(CommandCategory::DISPATCH, fill), Code::InvalidArgument, &["needs TRANSFER"]);
    refused(only(CommandCategory::TRANSFER, run), Code::InvalidArgument, &["needs DISPATCH", "command 1"]);
}

#[test]
fn debug_groups_are_balanced() {
    let d = device();
    let begin = || Command::BeginDebugGroup("g".to_owned());
    record(&d, vec![begin(), begin(), Command::EndDebugGroup, Command::EndDebugGroup], 0).unwrap();
    let open = record(&d, vec![begin(), begin(), Command::EndDebugGroup], 0);
    refused(open, Code::FailedPrecondition, &["command 0 begins", "never ended"]);
    let extra = record(&d, vec![begin(), Command::EndDebugGroup, Command::EndDebugGroup], 0);
    refused(extra, Code::FailedPrecondition, &["no debug group is open", "command 2"]);
}

#[test]
fn a_recording_that_asks_for_no_validation_is_validated() {
    let d = device();
    let b = buffer(&d, 16);
    let mode = CommandBufferMode::UNVALIDATED | CommandBufferMode::ONE_SHOT;
    let wild = CommandList { mode, ..list(vec![fill(direct(&b, 0, 1 << 40), 4)], 0) };
    refused(d.create_command_buffer(wild), Code::OutOfRange, &["target"]);
}

#[test]
fn dumps_name_every_command() {
    let d = device();
    let (a, b, e) = (buffer(&d, 64), buffer_for(&d, BufferUsage::TRANSFER_SOURCE, 8), executable(&d));
    let commands = vec![
        Command::BeginDebugGroup("warm\nup".to_owned()),
        fill(direct(&a, 0, WHOLE_BUFFER), 2),
        Command::EndDebugGroup,
        update(b"abcd", slot(1, 4, 4)),
        copy(direct(&b, 0, 8), direct(&a, 8, 8)),
        Command::Barrier,
        dispatch(&e, &[direct(&a, 0, 16), slot(0, 0, WHOLE_BUFFER)]),
    ];
    let text = dump(&list(commands, 2)).to_string();
    let expected = "\
command buffer: mode none, categories TRANSFER | DISPATCH, queues any, 2 slots, 7 commands
  b0: 64 bytes, DEVICE, TRANSFER
  b1: 8 bytes, DEVICE, TRANSFER_SOURCE
  [0] begin debug group \"warm\\nup\"
  [1]   fill b0[0..*] pattern 0x201 (2 bytes)
  [2] end debug group
  [3] update slot1[4..+4] from 4 host bytes
  [4] copy b1[0..+8] -> b0[8..+8]
  [5] barrier
  [6] dispatch e0 \"f\" 1x1x1 constants [7] bindings (b0[0..+16], slot0[0..*])
";
    let a = direct(&a, 0, 0);
    let CommandTarget::Direct(a) = a.target else { panic!("direct() makes direct references") };
    let expected = expected
        .replace("DEVICE, TRANSFER\n", &format!("{}, {}\n", a.memory_type(), a.usage()))
        .replace("DEVICE, TRANSFER_SOURCE", &format!("{}, TRANSFER_SOURCE", a.memory_type()));
    assert_eq!(text, expected);
}
