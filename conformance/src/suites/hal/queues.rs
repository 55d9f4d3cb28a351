//! Order on queues: fences make it and nothing else does; failures travel along them; foreign semaphores work.

use std::{
    sync::{Arc, Barrier, mpsc},
    thread,
    time::Duration,
};

use halite_hal::{Code, Deadline, Fence, QueueAffinity, QueueOp, Semaphore, SoftSemaphore, Status};
use halite_testing::hal::support::{ANY, after, buffer, fence, fill, read, semaphore, soon, span, whole};

use crate::suites::{
    Cases, Context, Need, Outcome, Stop,
    case::{check, refused, same, same_bytes},
};

/// Adds the cases of this file.
pub(super) fn add(cases: &mut Cases) {
    cases.add("queue.work_waits_for_its_fence", &[], waits);
    cases.add("queue.waits_submitted_before_signals", &[], reverse_order);
    cases.add("queue.no_head_of_line_blocking", &[], no_blocking);
    cases.add("queue.timeline_of_many_points", &[], timeline);
    cases.add("queue.one_operation_signals_many", &[], many_signals);
    cases.add("queue.one_operation_waits_for_many", &[], many_waits);
    cases.add("queue.empty_fences", &[], empty_fences);
    for length in [100, 3000] {
        cases.add(format!("queue.long_chain:length={length}"), &[], move |t| chain(t, length));
    }
    cases.add("queue.several_queues", &[Need::Queues], several);
    cases.add("queue.callbacks_of_queue_work", &[], callbacks);
    cases.add("queue.waiters_before_submission", &[], early_waiters);
    cases.add("queue.wait_times_out_and_work_goes_on", &[], times_out);
    for foreign in ["soft", "device"] {
        cases.add(format!("queue.waits_for_foreign_semaphores:kind={foreign}"), &[], move |t| {
            foreign_wait(t, foreign)
        });
    }
    cases.add("queue.signals_host_made_semaphores", &[], host_made_signal);
    cases.add("queue.failures_travel_with_their_code", &[], failures);
    cases.add("queue.failure_of_one_of_many_waits", &[], one_failure);
    cases.add("queue.failure_before_submission", &[], failed_already);
    cases.add("queue.failures_reach_callbacks", &[], failure_callbacks);
    cases.add("queue.failures_of_foreign_semaphores_travel", &[], foreign_failure);
    cases.add("queue.usable_after_failures", &[], usable_after_failure);
}

fn waits(t: &Context) -> Outcome {
    let device = t.device();
    let data = buffer(device, &[1; 64])?;
    let go = fence(device)?;
    let done = after(device, &go, fill(whole(&data), 2, 1))?;
    device.queue_flush(ANY)?;
    let early = done.wait(Deadline::after(Duration::from_millis(5)));
    refused("a wait for work whose wait fence is not reached", early, &[Code::DeadlineExceeded])?;
    same_bytes("data before the signal", &read(&data)?, &[1; 64])?;
    go.signal()?;
    done.wait(soon())?;
    same_bytes("data", &read(&data)?, &[2; 64])
}

/// Consumers are submitted first.
fn reverse_order(t: &Context) -> Outcome {
    let device = t.device();
    let buffers = (0..12u8).map(|i| buffer(device, &[i; 32])).collect::<halite_hal::Result<Vec<_>>>()?;
    let fences = (0..12).map(|_| fence(device)).collect::<halite_hal::Result<Vec<_>>>()?;
    for i in (1..12).rev() {
        let op = QueueOp::Copy { source: whole(&buffers[i - 1]), target: whole(&buffers[i]) };
        device.queue_submit(ANY, &fences[i - 1], &fences[i], op)?;
    }
    check!(!fences[11].query()?, "nothing was started, but the end is reached");
    device.queue_submit(ANY, &Fence::default(), &fences[0], fill(whole(&buffers[0]), 0x77, 1))?;
    fences[11].wait(soon())?;
    same_bytes("last buffer", &read(&buffers[11])?, &[0x77; 32])
}

fn no_blocking(t: &Context) -> Outcome {
    let device = t.device();
    let (a, b) = (buffer(device, &[0; 8])?, buffer(device, &[0; 8])?);
    let never = fence(device)?;
    let stuck = after(device, &never, fill(whole(&a), 1, 1))?;
    let free = after(device, &Fence::default(), fill(whole(&b), 2, 1))?;
    free.wait(soon())?;
    same_bytes("data of the free one", &read(&b)?, &[2; 8])?;
    check!(!stuck.query()?, "the one that waits is done");
    never.signal()?;
    stuck.wait(soon())?;
    same_bytes("data of the one that waited", &read(&a)?, &[1; 8])
}

fn timeline(t: &Context) -> Outcome {
    let device = t.device();
    let line = device.create_semaphore(0)?;
    let data = buffer(device, &[0; 100])?;
    let at = |value| Fence::new(line.clone(), value);
    for i in 0..100u64 {
        let op = fill(span(&data, i, 100 - i), i + 1, 1);
        let wait = if i == 0 { Fence::default() } else { at(i) };
        device.queue_submit(ANY, &wait, &at(i + 1), op)?;
    }
    at(50).wait(soon())?;
    check!(line.query()? >= 50, "50 is reached, the payload is {}", line.query()?);
    at(100).wait(soon())?;
    same("payload", line.query()?, 100)?;
    same_bytes("data", &read(&data)?, &(1..=100).collect::<Vec<u8>>())?;
    refused("a signal below the payload", line.signal(100), &[Code::InvalidArgument]).map(drop)
}

fn many_signals(t: &Context) -> Outcome {
    let device = t.device();
    let semaphores = (0..20).map(|i| device.create_semaphore(i)).collect::<halite_hal::Result<Vec<_>>>()?;
    let mut all = Fence::default();
    semaphores.iter().enumerate().for_each(|(i, s)| all.insert(s.clone(), 2 * i as u64 + 1));
    device.queue_submit(ANY, &Fence::default(), &all, QueueOp::Barrier)?;
    all.wait(soon())?;
    for (i, s) in semaphores.iter().enumerate() {
        same("payload", s.query()?, 2 * i as u64 + 1)?;
    }
    Ok(())
}

fn many_waits(t: &Context) -> Outcome {
    let device = t.device();
    let parts = (0..20).map(|_| fence(device)).collect::<halite_hal::Result<Vec<_>>>()?;
    let done = after(device, &Fence::join(&parts), QueueOp::Barrier)?;
    for (i, part) in parts.iter().enumerate() {
        check!(!done.query()?, "{i} of 20 are reached, but the work is done");
        if i % 2 == 0 {
            part.signal()?;
        } else {
            device.queue_submit(ANY, &Fence::default(), part, QueueOp::Barrier)?;
        }
    }
    Ok(done.wait(soon())?)
}

fn empty_fences(t: &Context) -> Outcome {
    let device = t.device();
    let data = buffer(device, &[0; 16])?;
    let none = Fence::default();
    device.queue_submit(ANY, &none, &none, fill(whole(&data), 6, 1))?;
    device.queue_submit(ANY, &none, &none, QueueOp::Barrier)?;
    device.wait_idle(soon())?;
    same_bytes("data", &read(&data)?, &[6; 16])
}

/// Waits for the host, and then for one another: releasing it must not need a stack as deep as it is long.
fn chain(t: &Context, length: u32) -> Outcome {
    let device = t.device();
    let data = buffer(device, &[0; 4])?;
    let go = fence(device)?;
    let mut last = go.clone();
    for i in 0..length {
        let op = if i % 50 == 0 { fill(whole(&data), i.into(), 4) } else { QueueOp::Barrier };
        last = after(device, &last, op)?;
    }
    check!(!last.query()?, "the chain is done before it began");
    let first = go.clone();
    let small = thread::Builder::new().stack_size(256 * 1024).spawn(move || first.signal())?;
    small.join().map_err(|_| Stop::Fail("the signalling thread panicked".to_owned()))??;
    last.wait(soon())?;
    same_bytes("data", &read(&data)?, &((length - 1) / 50 * 50).to_le_bytes())
}

fn several(t: &Context) -> Outcome {
    let device = t.device();
    let data = buffer(device, &[0; 64])?;
    let mut last = Fence::default();
    for i in 0..60u32 {
        let next = fence(device)?;
        let affinity = QueueAffinity(1 << (i % device.queue_count()));
        device.queue_submit(affinity, &last, &next, fill(whole(&data), i.into(), 1))?;
        last = next;
    }
    last.wait(soon())?;
    same_bytes("data", &read(&data)?, &[59; 64])
}

/// Nobody waits: the device has to notice by itself that work is done.
fn callbacks(t: &Context) -> Outcome {
    let device = t.device();
    let (sender, receiver) = mpsc::channel();
    let line = device.create_semaphore(0)?;
    let mut last = Fence::default();
    for i in 1..=10 {
        let sender = sender.clone();
        line.on_reached(i, Box::new(move |r| _ = sender.send((i, r.is_ok()))));
        let next = Fence::new(line.clone(), i);
        device.queue_submit(ANY, &last, &next, QueueOp::Barrier)?;
        last = next;
    }
    drop(sender);
    let mut seen = Vec::new();
    for _ in 0..10 {
        let call = receiver.recv_timeout(Duration::from_secs(20));
        seen.push(call.map_err(|_| Stop::Fail(format!("no call after {seen:?}")))?);
    }
    seen.sort_unstable();
    same("calls", seen, (1..=10).map(|i| (i, true)).collect())?;
    check!(receiver.recv_timeout(Duration::from_millis(5)).is_err(), "an eleventh call came");
    Ok(())
}

fn early_waiters(t: &Context) -> Outcome {
    let device = t.device();
    let data = buffer(device, &[0; 256])?;
    let done = fence(device)?;
    let start = Arc::new(Barrier::new(5));
    let waiters: Vec<_> = (0..4)
        .map(|_| {
            let (done, start) = (done.clone(), start.clone());
            thread::spawn(move || {
                start.wait();
                done.wait(soon())
            })
        })
        .collect();
    start.wait();
    device.queue_submit(ANY, &Fence::default(), &done, fill(whole(&data), 9, 1))?;
    for waiter in waiters {
        waiter.join().map_err(|_| Stop::Fail("a thread panicked".to_owned()))??;
    }
    same_bytes("data", &read(&data)?, &[9; 256])
}

fn times_out(t: &Context) -> Outcome {
    let device = t.device();
    let go = fence(device)?;
    let done = after(device, &go, QueueOp::Barrier)?;
    for deadline in [Deadline::Now, Deadline::after(Duration::from_millis(10))] {
        refused("a wait for work that cannot start", done.wait(deadline), &[Code::DeadlineExceeded])?;
    }
    go.signal()?;
    Ok(done.wait(soon())?)
}

fn foreign_wait(t: &Context, kind: &str) -> Outcome {
    let device = t.device();
    let other = t.open()?;
    let foreign: Arc<dyn Semaphore> = match kind {
        "soft" => Arc::new(SoftSemaphore::new(0, 0)),
        _ => other.create_semaphore(0)?,
    };
    let data = buffer(device, &[0; 8])?;
    let done = after(device, &Fence::new(foreign.clone(), 2), fill(whole(&data), 1, 1))?;
    let both = Fence::join([&Fence::new(foreign.clone(), 3), &done]);
    let last = after(device, &both, fill(whole(&data), 2, 1))?;
    foreign.signal(1)?;
    check!(!done.query()?, "the work ran at 1 of 2");
    if kind == "soft" {
        foreign.signal(2)?;
    } else {
        other.queue_submit(ANY, &Fence::default(), &Fence::new(foreign.clone(), 2), QueueOp::Barrier)?;
        other.queue_flush(ANY)?;
    }
    done.wait(soon())?;
    same_bytes("data", &read(&data)?, &[1; 8])?;
    foreign.signal(3)?;
    last.wait(soon())?;
    same_bytes("data at the end", &read(&data)?, &[2; 8])
}

/// A semaphore that the host made for this device, as programs with a fence of their own do.
fn host_made_signal(t: &Context) -> Outcome {
    let device = t.device();
    let soft: Arc<dyn Semaphore> = Arc::new(SoftSemaphore::new(device.id(), 0));
    let data = buffer(device, &[0; 8])?;
    let at = |value| Fence::new(soft.clone(), value);
    device.queue_submit(ANY, &at(1), &at(2), fill(whole(&data), 5, 1))?;
    device.queue_submit(ANY, &at(2), &at(3), fill(span(&data, 0, 4), 6, 1))?;
    soft.signal(1)?;
    // Nobody waits on the device: it has to raise the host's semaphore by itself.
    soft.wait(3, soon())?;
    same_bytes("data", &read(&data)?, &[6, 6, 6, 6, 5, 5, 5, 5])
}

fn failures(t: &Context) -> Outcome {
    for code in [Code::Cancelled, Code::DataLoss, Code::ResourceExhausted, Code::Aborted] {
        let device = t.device();
        let data = buffer(device, &[3; 8])?;
        let go = fence(device)?;
        let first = after(device, &go, fill(whole(&data), 1, 1))?;
        let second = after(device, &first, fill(whole(&data), 2, 1))?;
        let third = after(device, &second, QueueOp::Barrier)?;
        go.fail(&Status::new(code, "pulled the plug"));
        for fence in [first, second, third] {
            let status = refused("a wait for what failed", fence.wait(soon()), &[code])?;
            check!(status.to_string().contains("pulled the plug"), "the story is lost: {status}");
            refused("a query of what failed", fence.query(), &[code])?;
        }
        same_bytes("data", &read(&data)?, &[3; 8])?;
    }
    Ok(())
}

fn one_failure(t: &Context) -> Outcome {
    let device = t.device();
    let parts = (0..5).map(|_| fence(device)).collect::<halite_hal::Result<Vec<_>>>()?;
    let done = after(device, &Fence::join(&parts), QueueOp::Barrier)?;
    parts[0].signal()?;
    parts[3].fail(&Status::new(Code::Unavailable, "gone"));
    // A driver may look at the other points first, so they are given.
    for part in [&parts[1], &parts[2], &parts[4]] {
        part.signal()?;
    }
    refused("a wait", done.wait(soon()), &[Code::Unavailable]).map(drop)
}

fn failed_already(t: &Context) -> Outcome {
    let device = t.device();
    let data = buffer(device, &[3; 8])?;
    let broken = fence(device)?;
    broken.fail(&Status::new(Code::PermissionDenied, "no"));
    let done = fence(device)?;
    // It may be refused at once; either way its fence tells.
    match device.queue_submit(ANY, &broken, &done, fill(whole(&data), 1, 1)) {
        Ok(()) => {}
        Err(e) => same("code of the refusal", e.code(), Code::PermissionDenied)?,
    }
    refused("a wait", done.wait(soon()), &[Code::PermissionDenied])?;
    same_bytes("data", &read(&data)?, &[3; 8])
}

fn failure_callbacks(t: &Context) -> Outcome {
    let device = t.device();
    let go = fence(device)?;
    let done = after(device, &go, QueueOp::Barrier)?;
    let (sender, receiver) = mpsc::channel();
    semaphore(&done).on_reached(1, Box::new(move |r| _ = sender.send(r.map_err(|e| e.code()))));
    go.fail(&Status::new(Code::NotFound, "lost"));
    let call = receiver.recv_timeout(Duration::from_secs(20));
    let call = call.map_err(|_| Stop::Fail("the callback was not called".to_owned()))?;
    same("what the callback was told", call, Err(Code::NotFound))
}

fn foreign_failure(t: &Context) -> Outcome {
    let device = t.device();
    let foreign: Arc<dyn Semaphore> = Arc::new(SoftSemaphore::new(0, 0));
    let done = after(device, &Fence::new(foreign.clone(), 1), QueueOp::Barrier)?;
    foreign.fail(Status::new(Code::Unauthenticated, "who are you"));
    refused("a wait", done.wait(soon()), &[Code::Unauthenticated]).map(drop)
}

fn usable_after_failure(t: &Context) -> Outcome {
    failures(t)?;
    let device = t.device();
    let data = buffer(device, &[0; 8])?;
    halite_testing::hal::support::run(device, fill(whole(&data), 4, 1))?;
    same_bytes("data", &read(&data)?, &[4; 8])?;
    Ok(device.wait_idle(soon())?)
}
