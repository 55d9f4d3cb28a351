//! Fills, updates, copies, reads and writes of any alignment, on every device, in both memory strategies.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::{io::Write as _, sync::Arc};

use common::*;
use halite_hal::{
    BufferParams, Code, Command, CommandBufferMode, CommandCategory, CommandList, Device, Fence, File,
    FileAccess, QueueAffinity, QueueOp,
};

const SIZE: u64 = 300;

fn pattern_bytes(pattern: u64, period: usize, length: u64) -> Vec<u8> {
    pattern.to_le_bytes()[..period].iter().copied().cycle().take(length as usize).collect()
}

#[test]
fn fills_of_every_alignment() {
    on_devices(BOTH_WAYS, |device| {
        let pattern = 0x8877_6655_4433_2211u64;
        for (offset, length, period) in [
            (0, SIZE, 4),
            (0, 0, 4),
            (3, 1, 1),
            (1, 2, 1),
            (1, 7, 1),
            (5, 200, 1),
            (2, 6, 2),
            (6, 100, 2),
            (4, 8, 8),
            (8, 160, 8),
            (4, 4, 4),
        ] {
            let target = buffer(device, &[0xEE; SIZE as usize]);
            let op = QueueOp::Fill {
                target: span(&target, offset, length),
                pattern,
                pattern_length: period as u32,
            };
            run(device, op);
            let mut expected = vec![0xEE; SIZE as usize];
            expected[offset as usize..(offset + length) as usize]
                .copy_from_slice(&pattern_bytes(pattern, period, length));
            assert_eq!(read(&target), expected, "offset {offset} length {length} period {period}");
        }
    });
}

/// Fills beyond 4096 bytes from every word, also in two steps, as for drivers that cannot do it in one.
#[test]
fn big_fills_from_every_word() {
    on_devices(&[&[], &[("workarounds", "avoid-unaligned-fill")]], |device| {
        for (offset, length) in [(0, 8192), (4, 4096), (8, 4112), (12, 8000), (20, 4100), (13, 4090)] {
            let target = buffer(device, &[0xEE; 9000]);
            let op =
                QueueOp::Fill { target: span(&target, offset, length), pattern: 0xAB, pattern_length: 1 };
            run(device, op);
            let mut expected = vec![0xEE; 9000];
            expected[offset as usize..(offset + length) as usize].fill(0xAB);
            assert!(read(&target) == expected, "offset {offset} length {length}");
        }
    });
}

#[test]
fn big_eight_byte_fill() {
    on_devices(&[&[]], |device| {
        let length = (2 << 20) + 24;
        let target = device.allocate_buffer(&BufferParams::DEVICE, length).unwrap();
        let op = QueueOp::Fill {
            target: span(&target, 0, length),
            pattern: 0x0102_0304_0506_0708,
            pattern_length: 8,
        };
        run(device, op);
        assert_eq!(read(&target), pattern_bytes(0x0102_0304_0506_0708, 8, length));
    });
}

#[test]
fn updates_and_copies_of_every_alignment() {
    on_devices(BOTH_WAYS, |device| {
        let bytes: Vec<u8> = (0..=255).cycle().take(70_000).collect();
        for (offset, length) in [(0, 4), (0, 3), (1, 4), (5, 9), (4, 65536), (0, 65540), (0, 0)] {
            let target = buffer(device, &vec![0; 70_000]);
            let source = bytes::Bytes::copy_from_slice(&bytes[..length]);
            run(device, QueueOp::Update { source, target: span(&target, offset, length as u64) });
            let copied = buffer(device, &vec![1; 70_000]);
            let (source, to) =
                (span(&target, offset, length as u64), span(&copied, offset + 1, length as u64));
            run(device, QueueOp::Copy { source, target: to });
            let (from, result) = (read(&target), read(&copied));
            let start = offset as usize;
            assert_eq!(from[start..start + length], bytes[..length]);
            assert!(from[start + length..].iter().all(|b| *b == 0));
            assert_eq!(result[start + 1..start + 1 + length], bytes[..length]);
            assert!(result[..=start].iter().chain(&result[start + 1 + length..]).all(|b| *b == 1));
        }
    });
}

#[test]
fn overlapping_copies_are_refused_and_fail_their_fence() {
    on_devices(&[&[]], |device| {
        let data = buffer(device, &[0; 64]);
        let done = fence(device);
        let op = QueueOp::Copy { source: span(&data, 0, 32), target: span(&data, 16, 32) };
        assert!(device.queue_submit(ANY, &Fence::default(), &done, op).is_err());
        assert_ne!(done.wait(seconds(30)).unwrap_err().code(), Code::DeadlineExceeded);
    });
}

#[test]
fn files_go_both_ways_in_chunks() {
    on_devices(BOTH_WAYS, |device| {
        // More than the staging memory that may be in flight at once.
        let length = 37 * (1 << 20) + 5;
        let bytes: Vec<u8> =
            (0..length as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let handle = File::Handle { file: Arc::new(file), access: FileAccess::ReadWrite };
        for source in [File::Memory(bytes.clone().into()), handle.clone()] {
            let target = device.allocate_buffer(&BufferParams::DEVICE, length).unwrap();
            run(device, QueueOp::Read { source, source_offset: 3, target: span(&target, 2, length - 3) });
            assert_eq!(read(&target)[2..length as usize - 1], bytes[3..]);
            let op = QueueOp::Write {
                source: span(&target, 2, 9_000_000),
                target: handle.clone(),
                target_offset: 1,
            };
            run(device, op);
            let mut back = vec![0; 9_000_000];
            handle.read_at(1, &mut back).unwrap();
            assert!(back == bytes[3..9_000_003]);
            handle.write_at(1, &bytes[1..9_000_001]).unwrap();
        }
        let failed = fence(device);
        let target = device.allocate_buffer(&BufferParams::DEVICE, 100).unwrap();
        let op = QueueOp::Read { source: handle, source_offset: length, target: span(&target, 0, 100) };
        _ = device.queue_submit(ANY, &Fence::default(), &failed, op);
        let code = failed.wait(seconds(30)).unwrap_err().code();
        assert_ne!(code, Code::DeadlineExceeded, "a read past the end of a file fails its fence");
    });
}

fn list(mode: CommandBufferMode, commands: Vec<Command>) -> CommandList {
    CommandList {
        mode,
        categories: CommandCategory::ANY,
        affinity: QueueAffinity::ANY,
        binding_capacity: 0,
        commands,
    }
}

#[test]
fn recorded_transfers_keep_their_order() {
    on_devices(BOTH_WAYS, |device: &Arc<dyn Device>| {
        for mode in [CommandBufferMode::ONE_SHOT, CommandBufferMode::empty()] {
            let (a, b) = (buffer(device, &[0; 64]), buffer(device, &[0; 64]));
            let commands = vec![
                Command::Barrier,
                Command::BeginDebugGroup("transfers".to_owned()),
                Command::Fill { target: span(&a, 0, 64).into(), pattern: 7, pattern_length: 1 },
                Command::Barrier,
                Command::Barrier,
                Command::Update { source: vec![1, 2, 3].into(), target: span(&a, 5, 3).into() },
                Command::Barrier,
                Command::Copy { source: span(&a, 0, 32).into(), target: span(&b, 1, 32).into() },
                Command::EndDebugGroup,
                Command::Barrier,
            ];
            let commands = device.create_command_buffer(list(mode, commands)).unwrap();
            run(device, QueueOp::Execute { command_buffer: commands, bindings: Default::default() });
            let mut expected = vec![7; 32];
            expected[5..8].copy_from_slice(&[1, 2, 3]);
            assert_eq!(read(&b)[1..33], expected);
        }
    });
}
