//! Host bytes that are written to memory which the host cannot map: nobody waits for them, and whatever comes later finds them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;
#[path = "common/shim.rs"]
mod shim;

use common::*;
use halite_hal::{BufferParams, Code, Fence, QueueAffinity, QueueOp};
use shim::{OUT_OF_HOST_MEMORY, Timelines, on_shim};

const STAGED: &[&[(&str, &str)]] = &[
    &[("memory", "staged")],
    &[("memory", "staged"), ("queues", "2"), ("dedicated_compute_queue", "off")],
    &[("memory", "staged"), ("queues", "2"), ("dedicated_compute_queue", "off"), ("timeline", "emulated")],
];

#[test]
fn work_on_any_queue_comes_after_writes() {
    on_devices(STAGED, |device| {
        let source = device.allocate_buffer(&BufferParams::DEVICE, 4096).unwrap();
        let target = device.allocate_buffer(&BufferParams::DEVICE, 4096).unwrap();
        for round in 0..40u8 {
            let queue = QueueAffinity(1 << (u32::from(round) % device.queue_count()));
            let done = fence(device);
            source.write(0, &[round; 4096]).unwrap();
            let copy = QueueOp::Copy { source: span(&source, 0, 4096), target: span(&target, 0, 4096) };
            // It waits for nothing that the caller knows.
            device.queue_submit(queue, &Fence::default(), &done, copy).unwrap();
            done.wait(seconds(30)).unwrap();
            assert_eq!(read(&target), [round; 4096], "round {round}");
        }
    });
}

#[test]
fn the_caller_may_change_bytes_that_it_has_written() {
    on_devices(STAGED, |device| {
        let target = device.allocate_buffer(&BufferParams::DEVICE, 1 << 20).unwrap();
        let mut bytes = vec![0u8; 1 << 20];
        // More than may be under way at once.
        for round in 0..60u8 {
            bytes.fill(round);
            target.write(0, &bytes).unwrap();
        }
        bytes.fill(255);
        assert!(read(&target).iter().all(|byte| *byte == 59));
    });
}

#[test]
fn work_after_a_write_that_was_not_submitted_fails() {
    on_shim(|shim, info| {
        let device = shim.open(info, &[("memory", "staged")]).unwrap();
        let data = device.allocate_buffer(&BufferParams::DEVICE, 64).unwrap();
        data.write(0, &[1; 64]).unwrap();
        let fill = |value| QueueOp::Fill { target: span(&data, 0, 32), pattern: value, pattern_length: 1 };
        run(&device, fill(2));
        shim.fail("vkQueueSubmit", 0, 1, OUT_OF_HOST_MEMORY);
        data.write(0, &[7; 64]).unwrap();
        let done = fence(&device);
        let placed = device.queue_submit(ANY, &Fence::default(), &done, fill(3));
        let told = placed.and_then(|()| done.wait(seconds(20)));
        assert_eq!(told.unwrap_err().code(), Code::ResourceExhausted);
        shim.clear();
        data.write(32, &[9; 32]).unwrap();
        let bytes = read(&data);
        assert_eq!((&bytes[..32], &bytes[32..]), (&[2; 32][..], &[9; 32][..]));
    });
}

#[test]
fn work_after_a_write_whose_submission_failed_before_fails() {
    on_shim(|shim, info| {
        let device = shim.open(info, &[("memory", "staged")]).unwrap();
        let data = device.allocate_buffer(&BufferParams::DEVICE, 64).unwrap();
        shim.fail("vkQueueSubmit", 0, 1, OUT_OF_HOST_MEMORY);
        data.write(0, &[7; 64]).unwrap();
        // The write goes alone, and fails: only the order behind all writes tells those who come later.
        _ = device.queue_flush(ANY);
        assert_eq!(shim.calls("vkQueueSubmit"), 1);
        let done = fence(&device);
        let fill = QueueOp::Fill { target: span(&data, 0, 32), pattern: 3, pattern_length: 1 };
        let told =
            device.queue_submit(ANY, &Fence::default(), &done, fill).and_then(|()| done.wait(seconds(20)));
        assert_eq!(told.unwrap_err().code(), Code::ResourceExhausted);
    });
}

#[test]
fn work_on_another_queue_has_the_writes_submitted_before_it() {
    on_shim(|shim, info| {
        if shim.timelines() != Timelines::Hidden {
            return;
        }
        let options = [("memory", "staged"), ("queues", "2"), ("dedicated_compute_queue", "off")];
        let device = shim.open(info, &options).unwrap();
        assert_eq!(device.queue_count(), 2, "the shim gives every device two");
        let source = device.allocate_buffer(&BufferParams::DEVICE, 64).unwrap();
        let target = device.allocate_buffer(&BufferParams::DEVICE, 64).unwrap();
        source.write(0, &[7; 64]).unwrap();
        let before = shim.calls("vkQueueSubmit");
        let (other, done) = (QueueAffinity(2), fence(&device));
        let copy = QueueOp::Copy { source: span(&source, 0, 64), target: span(&target, 0, 64) };
        device.queue_submit(other, &Fence::default(), &done, copy).unwrap();
        device.queue_flush(other).unwrap();
        assert!(shim.calls("vkQueueSubmit") - before >= 2, "the write, and what comes after it");
        done.wait(seconds(20)).unwrap();
        assert_eq!(read(&target), [7; 64]);
    });
}

#[test]
fn bytes_that_a_buffer_gave_away_stay_as_they_are() {
    on_devices(&[&[], &[("memory", "staged")]], |device| {
        let filled = |byte: u8| {
            let buffer = device.allocate_buffer(&BufferParams::READBACK, 1000).unwrap();
            run(
                device,
                QueueOp::Fill { target: span(&buffer, 0, 1000), pattern: byte.into(), pattern_length: 1 },
            );
            buffer
        };
        let given: Vec<_> = (1..=20u8).map(|byte| filled(byte).into_bytes().unwrap()).collect();
        // Their memory is not given to others.
        let others: Vec<_> = (100..140u8).map(filled).collect();
        for (bytes, byte) in given.iter().zip(1u8..) {
            assert_eq!(bytes.as_ref(), [byte; 1000]);
        }
        drop(given);
        for (buffer, byte) in others.iter().zip(100u8..) {
            assert_eq!(read(buffer), [byte; 1000]);
        }
        // What somebody else has is copied, and stays theirs.
        let shared = filled(7);
        let bytes = shared.clone().into_bytes().unwrap();
        shared.write(0, &[9; 1000]).unwrap();
        assert_eq!((bytes.as_ref(), read(&shared)), (&[7; 1000][..], vec![9; 1000]));
    });
}

#[test]
fn bytes_are_not_given_away_while_work_is_under_way() {
    on_shim(|shim, info| {
        let device = shim.open(info, &[]).unwrap();
        let buffer = device.allocate_buffer(&BufferParams::READBACK, 64).unwrap();
        buffer.write(0, &[1; 64]).unwrap();
        shim.stall(true);
        let done = fence(&device);
        let fill = QueueOp::Fill { target: span(&buffer, 0, 64), pattern: 5, pattern_length: 1 };
        device.queue_submit(ANY, &Fence::default(), &done, fill).unwrap();
        device.queue_flush(ANY).unwrap();
        // A caller that breaks the rule gets what was there, in memory that the device does not write.
        let bytes = buffer.into_bytes().unwrap();
        let before = bytes.to_vec();
        shim.stall(false);
        done.wait(seconds(20)).unwrap();
        assert_eq!(bytes.as_ref(), before);
    });
}
