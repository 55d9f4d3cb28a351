//! Host bytes that are written to memory which the host cannot map: nobody waits for them, and whatever comes later finds them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;
#[path = "common/shim.rs"]
mod shim;

use common::*;
use halite_hal::{BufferParams, Code, Fence, QueueAffinity, QueueOp};
use shim::{OUT_OF_HOST_MEMORY, on_shim};

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
