//! Checks of executions: what a binding table must bring, and how often a recording may run.
#![allow(clippy::unwrap_used, reason = "a failure is a failed test, also in helpers")]

use crate::common::*;
use halite_hal::*;

#[test]
fn a_reusable_recording_runs_with_one_table_after_another() {
    let d = device();
    let a = buffer(&d, 32);
    let commands =
        vec![fill(slot(0, 0, 8), 4), update(b"wxyz", slot(0, 8, 4)), copy(slot(0, 0, 12), slot(1, 4, 12))];
    let recorded = record(&d, commands, 2).unwrap();
    for base in [0, 8] {
        let b = buffer(&d, 32);
        execute(&d, &recorded, &[Some(span(&a, base, 16)), Some(span(&b, base, 24))]).unwrap();
        let mut bytes = [0; 16];
        b.read(base, &mut bytes).unwrap();
        assert_eq!(bytes, *b"\0\0\0\0\x01\x02\x03\x04\x01\x02\x03\x04wxyz");
    }
}

#[test]
fn one_shot_recordings_run_once() {
    let d = device();
    let one_shot = CommandList { mode: CommandBufferMode::ONE_SHOT, ..list(vec![fill(slot(0, 0, 4), 4)], 1) };
    let recorded = d.create_command_buffer(one_shot).unwrap();
    let b = buffer(&d, 4);
    refused(execute(&d, &recorded, &[]), Code::InvalidArgument, &["slot 0"]);
    execute(&d, &recorded, &[Some(span(&b, 0, 4))]).unwrap();
    let again = execute(&d, &recorded, &[Some(span(&b, 0, 4))]);
    refused(again, Code::FailedPrecondition, &["executed already", "queue execute"]);
    let reusable = record(&d, vec![Command::Barrier], 0).unwrap();
    execute(&d, &reusable, &[]).unwrap();
    execute(&d, &reusable, &[]).unwrap();
}

#[test]
fn slots_that_commands_touch_have_entries() {
    let d = device();
    let b = buffer(&d, 16);
    let recorded =
        record(&d, vec![Command::Barrier, fill(slot(1, 0, 4), 4), fill(slot(0, 0, 0), 4)], 2).unwrap();
    execute(&d, &recorded, &[None, Some(span(&b, 0, 4))]).unwrap();
    for entries in [vec![], vec![Some(span(&b, 0, 4))], vec![Some(span(&b, 0, 4)), None]] {
        refused(execute(&d, &recorded, &entries), Code::InvalidArgument, &["command 1", "slot 1"]);
    }
    let whole = record(&d, vec![fill(slot(0, 0, WHOLE_BUFFER), 4)], 1).unwrap();
    refused(execute(&d, &whole, &[None]), Code::InvalidArgument, &["slot 0"]);
}

#[test]
fn entries_lie_within_buffers_of_this_device() {
    let (d, other) = (device(), device());
    let recorded = record(&d, vec![fill(slot(0, 0, 4), 4)], 2).unwrap();
    let (b, foreign) = (buffer(&d, 16), buffer(&other, 16));
    let good = Some(span(&b, 0, 4));
    let refusal = execute(&d, &recorded, &[Some(span(&foreign, 0, 4))]);
    refused(refusal, Code::InvalidArgument, &["another device", "slot 0"]);
    for (offset, length) in [(0, 17), (16, 1), (u64::MAX, 4), (8, u64::MAX)] {
        let refusal = execute(&d, &recorded, &[good.clone(), Some(span(&b, offset, length))]);
        refused(refusal, Code::OutOfRange, &["slot 1", "16 bytes"]);
    }
}

#[test]
fn entries_are_as_large_as_the_largest_reach() {
    let d = device();
    let commands = vec![fill(slot(0, 0, 4), 4), fill(slot(0, 16, 8), 8), fill(slot(0, 12, WHOLE_BUFFER), 1)];
    let recorded = record(&d, commands, 1).unwrap();
    let b = buffer(&d, 64);
    execute(&d, &recorded, &[Some(span(&b, 0, 24))]).unwrap();
    let refusal = execute(&d, &recorded, &[Some(span(&b, 0, 23))]);
    refused(refusal, Code::OutOfRange, &["command 1", "byte 24", "23 bytes"]);
    let rest = record(&d, vec![fill(slot(0, 12, WHOLE_BUFFER), 1)], 1).unwrap();
    execute(&d, &rest, &[Some(span(&b, 0, 12))]).unwrap();
    refused(execute(&d, &rest, &[Some(span(&b, 0, 11))]), Code::OutOfRange, &["byte 12"]);
}

#[test]
fn entries_are_placed_and_sized_for_the_fills() {
    let d = device();
    let recorded = record(&d, vec![fill(slot(0, 8, WHOLE_BUFFER), 8), fill(slot(0, 0, 2), 2)], 1).unwrap();
    let b = buffer(&d, 64);
    execute(&d, &recorded, &[Some(span(&b, 8, 16))]).unwrap();
    let refusal = execute(&d, &recorded, &[Some(span(&b, 4, 16))]);
    refused(refusal, Code::InvalidArgument, &["multiple of 8", "offset is 4"]);
    let refusal = execute(&d, &recorded, &[Some(span(&b, 8, 20))]);
    refused(refusal, Code::InvalidArgument, &["multiple of 8", "has 20"]);
}

#[test]
fn entries_have_the_usage_of_all_their_commands() {
    let d = device();
    let e = executable(&d);
    let counts = {
        let mut command = dispatch(&e, &[slot(0, 0, 4), slot(0, 4, 4)]);
        if let Command::Dispatch { counts, .. } = &mut command {
            *counts = DispatchCounts::Indirect(slot(1, 0, 12));
        }
        command
    };
    let recorded = record(&d, vec![copy(slot(0, 0, 4), slot(0, 4, 4)), counts], 2).unwrap();
    let with = |usage0, usage1| {
        let (a, b) = (buffer_for(&d, usage0, 16), buffer_for(&d, usage1, 16));
        execute(&d, &recorded, &[Some(BufferSpan::whole(a)), Some(BufferSpan::whole(b))])
    };
    let counts = BufferUsage::DISPATCH_INDIRECT_PARAMETERS;
    with(BufferUsage::DEFAULT, counts).unwrap();
    refused(with(BufferUsage::TRANSFER, counts), Code::PermissionDenied, &["DISPATCH_STORAGE", "slot 0"]);
    let no_source = BufferUsage::DISPATCH_STORAGE | BufferUsage::TRANSFER_TARGET;
    refused(with(no_source, counts), Code::PermissionDenied, &["TRANSFER_SOURCE", "slot 0"]);
    let refusal = with(BufferUsage::DEFAULT, BufferUsage::DEFAULT);
    refused(refusal, Code::PermissionDenied, &["DISPATCH_INDIRECT_PARAMETERS", "slot 1"]);
}

#[test]
fn indirect_counts_in_a_slot_are_aligned() {
    let d = device();
    let mut command = dispatch(&executable(&d), &[slot(0, 0, 0), slot(0, 0, 0)]);
    if let Command::Dispatch { counts, .. } = &mut command {
        *counts = DispatchCounts::Indirect(slot(0, 4, WHOLE_BUFFER));
    }
    let recorded = record(&d, vec![command], 1).unwrap();
    let b = buffer_for(&d, BufferUsage::DISPATCH_INDIRECT_PARAMETERS, 32);
    execute(&d, &recorded, &[Some(span(&b, 4, 16))]).unwrap();
    refused(execute(&d, &recorded, &[Some(span(&b, 4, 15))]), Code::OutOfRange, &["byte 16"]);
    refused(execute(&d, &recorded, &[Some(span(&b, 6, 16))]), Code::InvalidArgument, &["multiple of 4"]);
}

#[test]
fn copies_through_slots_meet_at_execution() {
    let d = device();
    let (a, b) = (buffer(&d, 64), buffer(&d, 64));
    let two = record(&d, vec![copy(slot(0, 0, 16), slot(1, 0, 16))], 2).unwrap();
    let table = |x: &BufferSpan, y: &BufferSpan| [Some(x.clone()), Some(y.clone())];
    let (low, high, middle) = (span(&a, 0, 16), span(&a, 16, 16), span(&a, 8, 16));
    execute(&d, &two, &table(&low, &high)).unwrap();
    execute(&d, &two, &table(&middle, &span(&b, 8, 16))).unwrap();
    refused(
        execute(&d, &two, &table(&low, &middle)),
        Code::InvalidArgument,
        &["overlaps", "command 0 (copy)"],
    );
    let mixed = record(&d, vec![copy(direct(&a, 0, 16), slot(0, 0, WHOLE_BUFFER))], 1).unwrap();
    execute(&d, &mixed, &[Some(high)]).unwrap();
    refused(execute(&d, &mixed, &[Some(middle)]), Code::InvalidArgument, &["overlaps"]);
    let refusal = execute(&d, &mixed, &[Some(span(&b, 0, 20))]);
    refused(refusal, Code::InvalidArgument, &["source has 16", "target has 20"]);
    let nothing = record(&d, vec![copy(slot(0, 0, 0), slot(1, 0, 0))], 2).unwrap();
    execute(&d, &nothing, &[None, None]).unwrap();
}

#[test]
fn command_buffers_come_from_this_device() {
    let (d, other) = (device(), device());
    let foreign = record(&other, vec![Command::Barrier], 0).unwrap();
    refused(execute(&d, &foreign, &[]), Code::InvalidArgument, &["command buffer", "another device"]);
}

#[test]
fn command_buffers_from_behind_the_validation_are_refused() {
    let bare = driver().open("", &Options::new()).unwrap();
    let unchecked = bare.create_command_buffer(list(vec![Command::Barrier], 0)).unwrap();
    let d = halite_layers::validation::ValidatedDevice::wrap(bare);
    refused(execute(&d, &unchecked, &[]), Code::InvalidArgument, &["behind this device's back"]);
}
