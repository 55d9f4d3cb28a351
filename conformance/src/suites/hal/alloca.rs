//! Memory in queue order: reserved and given back by operations, reused, refused when given back twice.

use halite_hal::{Buffer, BufferParams, Code, Command, Fence, QueueOp, Result};
use halite_testing::hal::support::{
    ANY, Dev, after, buffer, execute, fence, fill, read, record, slot, soon, span, whole,
};

use crate::suites::{
    Cases, Context, Need, Outcome,
    case::{check, refused, same, same_bytes},
};

/// Adds the cases of this file.
pub(super) fn add(cases: &mut Cases) {
    for size in [0, 1, 100, 1 << 20] {
        cases.add(format!("alloca.used_in_order:bytes={size}"), &[], move |t| in_order(t, size));
    }
    cases.add("alloca.handle_is_usable_before_the_memory_exists", &[], early_use);
    cases.add("alloca.steady_state_takes_no_more_memory", &[], steady);
    cases.add("alloca.handle_outlives_its_memory", &[], handle_stays);
    cases.add("alloca.dropped_without_dealloca", &[], dropped);
    cases.add("alloca.exhaustion_is_a_status", &[], exhausted);
    cases.add("alloca.failed_wait_fails_the_fence", &[], failed_wait);
    cases.add("alloca.dealloca_twice_is_refused", &[Need::Validation], twice);
    cases.add("alloca.dealloca_of_plain_buffers_only_orders", &[Need::Validation], plain);
}

fn alloca(device: &Dev, wait: &Fence, size: u64) -> Result<(std::sync::Arc<dyn Buffer>, Fence)> {
    let ready = fence(device)?;
    Ok((device.queue_alloca(ANY, wait, &ready, &BufferParams::DEVICE, size)?, ready))
}

fn in_order(t: &Context, size: u64) -> Outcome {
    let device = t.device();
    let kept = buffer(device, &vec![0; size as usize])?;
    let (data, ready) = alloca(device, &Fence::default(), size)?;
    same("byte length", data.byte_length(), size)?;
    same("owner", data.device_id(), device.id())?;
    let filled = after(device, &ready, fill(whole(&data), 0x5A, 1))?;
    let copied = after(device, &filled, QueueOp::Copy { source: whole(&data), target: whole(&kept) })?;
    let gone = after(device, &copied, QueueOp::Dealloca { buffer: data })?;
    gone.wait(soon())?;
    same_bytes("kept", &read(&kept)?, &vec![0x5A; size as usize])
}

/// Everything is submitted, recorded commands too, before the allocation may start.
fn early_use(t: &Context) -> Outcome {
    let device = t.device();
    let kept = buffer(device, &[0; 64])?;
    let go = fence(device)?;
    let (data, ready) = alloca(device, &go, 64)?;
    let commands = vec![
        Command::Fill { target: whole(&data).into(), pattern: 0x21, pattern_length: 1 },
        Command::Barrier,
        Command::Copy { source: span(&data, 1, 32).into(), target: slot(0, 2, 32) },
    ];
    let commands = record(device, 1, commands)?;
    let done = after(device, &ready, execute(&commands, [Some(whole(&kept))]))?;
    let gone = after(device, &done, QueueOp::Dealloca { buffer: data })?;
    drop(commands);
    check!(!gone.query()?, "the work ran before its fence");
    go.signal()?;
    gone.wait(soon())?;
    let mut wanted = vec![0; 64];
    wanted[2..34].fill(0x21);
    same_bytes("kept", &read(&kept)?, &wanted)
}

fn steady(t: &Context) -> Outcome {
    let device = t.open()?;
    let mut last = Fence::default();
    let mut reserved = Vec::new();
    for round in 0..60u64 {
        let (a, ready_a) = alloca(&device, &last, 1 << 20)?;
        let (b, ready_b) = alloca(&device, &ready_a, 300_000)?;
        let filled = after(&device, &ready_b, fill(whole(&a), round, 1))?;
        let copied =
            after(&device, &filled, QueueOp::Copy { source: span(&a, 0, 300_000), target: whole(&b) })?;
        if round % 10 == 9 {
            copied.wait(soon())?;
            same_bytes("copy", &read(&b)?, &vec![round as u8; 300_000])?;
        }
        let gone = after(&device, &copied, QueueOp::Dealloca { buffer: a })?;
        last = after(&device, &gone, QueueOp::Dealloca { buffer: b })?;
        last.wait(soon())?;
        reserved.push(device.memory_stats().reserved);
    }
    let later = reserved[30..].iter().max().copied();
    check!(later <= reserved[..30].iter().max().copied(), "reserved memory grows: {reserved:?}");
    device.wait_idle(soon())?;
    same("bytes in use at the end", device.memory_stats().used, 0)
}

fn handle_stays(t: &Context) -> Outcome {
    let device = t.device();
    let (data, ready) = alloca(device, &Fence::default(), 4096)?;
    ready.wait(soon())?;
    data.write(0, b"still here")?;
    let gone = after(device, &ready, QueueOp::Dealloca { buffer: data.clone() })?;
    gone.wait(soon())?;
    same("byte length", data.byte_length(), 4096)?;
    refused("a read", data.read(0, &mut [0]), &[Code::FailedPrecondition])?;
    refused("a write", data.write(0, &[0]), &[Code::FailedPrecondition]).map(drop)
}

fn dropped(t: &Context) -> Outcome {
    let device = t.open()?;
    let mut last = Fence::default();
    for _ in 0..20 {
        let (data, ready) = alloca(&device, &last, 100_000)?;
        last = after(&device, &ready, fill(whole(&data), 1, 1))?;
    }
    last.wait(soon())?;
    device.wait_idle(soon())?;
    same("bytes in use", device.memory_stats().used, 0)
}

/// It is refused at once, or its fence fails; nothing waits for ever.
fn exhausted(t: &Context) -> Outcome {
    let device = t.device();
    let ready = fence(device)?;
    let made = device.queue_alloca(ANY, &Fence::default(), &ready, &BufferParams::DEVICE, 1 << 60);
    match made {
        Err(e) => same("code of the refusal", e.code(), Code::ResourceExhausted)?,
        Ok(_) => {
            refused("the fence", ready.wait(soon()), &[Code::ResourceExhausted])?;
        }
    }
    let (data, ready) = alloca(device, &Fence::default(), 64)?;
    let gone = after(device, &ready, QueueOp::Dealloca { buffer: data })?;
    Ok(gone.wait(soon())?)
}

fn failed_wait(t: &Context) -> Outcome {
    let device = t.device();
    let go = fence(device)?;
    let (data, ready) = alloca(device, &go, 4096)?;
    let filled = after(device, &ready, fill(whole(&data), 1, 1))?;
    go.fail(&halite_hal::Status::new(Code::Cancelled, "never mind"));
    refused("the allocation's fence", ready.wait(soon()), &[Code::Cancelled])?;
    refused("the fill's fence", filled.wait(soon()), &[Code::Cancelled]).map(drop)
}

fn twice(t: &Context) -> Outcome {
    let device = t.device();
    let (data, ready) = alloca(device, &Fence::default(), 64)?;
    let gone = after(device, &ready, QueueOp::Dealloca { buffer: data.clone() })?;
    let again = after(device, &gone, QueueOp::Dealloca { buffer: data });
    refused("a second dealloca", again, &[Code::FailedPrecondition])?;
    Ok(gone.wait(soon())?)
}

fn plain(t: &Context) -> Outcome {
    let device = t.device();
    let data = buffer(device, &[8; 64])?;
    let gone = after(device, &Fence::default(), QueueOp::Dealloca { buffer: data.clone() })?;
    gone.wait(soon())?;
    same_bytes("data", &read(&data)?, &[8; 64])?;
    data.write(0, &[9; 64])?;
    same_bytes("data", &read(&data)?, &[9; 64])
}
