//! Timeline semaphores on the host's side: signals, waits, time-outs, failures, callbacks.

use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicU32, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use halite_hal::{Code, Deadline, Fence, Result, Semaphore, Status};
use halite_testing::hal::support::{eventually, soon};

use crate::suites::{
    Cases, Context, Outcome, Stop,
    case::{check, refused, same},
};

/// Adds the cases of this file.
pub(super) fn add(cases: &mut Cases) {
    cases.add("semaphore.initial_value", &[], initial);
    cases.add("semaphore.values_only_grow", &[], grows);
    cases.add("semaphore.large_values", &[], large);
    cases.add("semaphore.wait_times_out", &[], times_out);
    cases.add("semaphore.wait_sees_other_threads", &[], other_threads);
    cases.add("semaphore.failure_is_final", &[], failure);
    cases.add("semaphore.failure_wakes_waiters", &[], failure_wakes);
    cases.add("semaphore.callback_once_when_reached", &[], callbacks);
    cases.add("semaphore.callback_once_on_failure", &[], callbacks_on_failure);
    cases.add("semaphore.callback_at_once_when_due", &[], callback_when_due);
    cases.add("semaphore.callback_may_use_the_device", &[], callback_uses_device);
    cases.add("semaphore.callbacks_under_racing_signals", &[], racing);
    cases.add("semaphore.fence_over_several", &[], fences);
    cases.add("semaphore.dropped_callbacks_are_not_called", &[], dropped);
}

fn initial(t: &Context) -> Outcome {
    for value in [0, 1, 77, u64::from(u32::MAX) + 5] {
        let semaphore = t.device().create_semaphore(value)?;
        same("payload", semaphore.query()?, value)?;
        semaphore.wait(value, Deadline::Now)?;
        same("owner", semaphore.device_id(), t.device().id())?;
    }
    Ok(())
}

fn grows(t: &Context) -> Outcome {
    let semaphore = t.device().create_semaphore(3)?;
    for value in [0, 2, 3] {
        refused(&format!("a signal of {value} at 3"), semaphore.signal(value), &[Code::InvalidArgument])?;
    }
    semaphore.signal(4)?;
    semaphore.signal(9)?;
    same("payload", semaphore.query()?, 9)?;
    semaphore.wait(5, Deadline::Now)?;
    refused("a signal of 9 at 9", semaphore.signal(9), &[Code::InvalidArgument])?;
    same("payload after a refusal", semaphore.query()?, 9)
}

fn large(t: &Context) -> Outcome {
    let semaphore = t.device().create_semaphore(1 << 40)?;
    for value in [(1 << 40) + 1, 1 << 62, i64::MAX as u64 - 1] {
        refused("a wait that is early", semaphore.wait(value, Deadline::Now), &[Code::DeadlineExceeded])?;
        semaphore.signal(value)?;
        semaphore.wait(value, Deadline::Now)?;
        same("payload", semaphore.query()?, value)?;
    }
    Ok(())
}

fn times_out(t: &Context) -> Outcome {
    let semaphore = t.device().create_semaphore(0)?;
    refused("a wait without time", semaphore.wait(1, Deadline::Now), &[Code::DeadlineExceeded])?;
    let start = Instant::now();
    let deadline = Deadline::after(Duration::from_millis(30));
    refused("a short wait", semaphore.wait(1, deadline), &[Code::DeadlineExceeded])?;
    let took = start.elapsed();
    check!(took >= Duration::from_millis(29), "the wait gave up after {took:?} of 30 ms");
    check!(took < Duration::from_secs(10), "the wait of 30 ms took {took:?}");
    let past = Deadline::At(Instant::now());
    refused("a wait that is over", semaphore.wait(1, past), &[Code::DeadlineExceeded])?;
    semaphore.signal(1)?;
    semaphore.wait(1, past)?;
    Ok(semaphore.wait(1, Deadline::Never)?)
}

fn other_threads(t: &Context) -> Outcome {
    let semaphore = t.device().create_semaphore(0)?;
    let waiters: Vec<_> = (1..=8)
        .map(|value| {
            let semaphore = semaphore.clone();
            thread::spawn(move || semaphore.wait(value, soon()))
        })
        .collect();
    for value in 1..=8 {
        thread::yield_now();
        semaphore.signal(value)?;
    }
    joined(waiters)
}

fn joined(threads: Vec<thread::JoinHandle<Result<()>>>) -> Outcome {
    for handle in threads {
        handle.join().map_err(|_| Stop::Fail("a thread panicked".to_owned()))??;
    }
    Ok(())
}

fn failure(t: &Context) -> Outcome {
    let semaphore = t.device().create_semaphore(0)?;
    semaphore.signal(2)?;
    semaphore.fail(Status::new(Code::DataLoss, "the first story"));
    semaphore.fail(Status::new(Code::Internal, "the second story"));
    let status = refused("a query of a failed semaphore", semaphore.query(), &[Code::DataLoss])?;
    check!(status.message().contains("the first story"), "the message is '{}'", status.message());
    refused("a wait for a new value", semaphore.wait(3, soon()), &[Code::DataLoss])?;
    refused("a wait for an old value", semaphore.wait(1, soon()), &[Code::DataLoss])?;
    refused("a signal", semaphore.signal(5), &[Code::DataLoss]).map(drop)
}

fn failure_wakes(t: &Context) -> Outcome {
    let semaphore = t.device().create_semaphore(0)?;
    let start = Arc::new(Barrier::new(5));
    let waiters: Vec<_> = (0..4)
        .map(|i| {
            let (semaphore, start) = (semaphore.clone(), start.clone());
            let deadline = if i % 2 == 0 { Deadline::Never } else { soon() };
            thread::spawn(move || {
                start.wait();
                semaphore.wait(1, deadline)
            })
        })
        .collect();
    start.wait();
    semaphore.fail(Status::new(Code::Cancelled, "not today"));
    for waiter in waiters {
        let result = waiter.join().map_err(|_| Stop::Fail("a thread panicked".to_owned()))?;
        refused("a wait for what fails", result, &[Code::Cancelled])?;
    }
    Ok(())
}

/// A callback that counts its calls: ones for success, thousands for failure.
fn counter(semaphore: &Arc<dyn Semaphore>, value: u64) -> Arc<AtomicU32> {
    let count = Arc::new(AtomicU32::new(0));
    let calls = count.clone();
    let note = move |r: Result<()>| _ = calls.fetch_add(if r.is_ok() { 1 } else { 1000 }, Ordering::SeqCst);
    semaphore.on_reached(value, Box::new(note));
    count
}

/// Calls may come from another thread; they come soon.
fn settled(count: &AtomicU32, wanted: u32) -> Outcome {
    eventually(|| count.load(Ordering::SeqCst) >= wanted);
    same("calls (1 each) and failures (1000 each)", count.load(Ordering::SeqCst), wanted)
}

fn callbacks(t: &Context) -> Outcome {
    let semaphore = t.device().create_semaphore(0)?;
    let counts: Vec<_> = [1, 2, 2, 5].iter().map(|value| counter(&semaphore, *value)).collect();
    semaphore.signal(1)?;
    settled(&counts[0], 1)?;
    same("calls for 2 at 1", counts[1].load(Ordering::SeqCst), 0)?;
    semaphore.signal(4)?;
    for (count, wanted) in counts.iter().zip([1, 1, 1, 0]) {
        settled(count, wanted)?;
    }
    semaphore.signal(100)?;
    semaphore.fail(Status::new(Code::Aborted, "over"));
    counts.iter().try_for_each(|count| settled(count, 1))
}

fn callbacks_on_failure(t: &Context) -> Outcome {
    let semaphore = t.device().create_semaphore(0)?;
    let counts: Vec<_> = (1..4).map(|value| counter(&semaphore, value)).collect();
    semaphore.signal(1)?;
    semaphore.fail(Status::new(Code::Aborted, "over"));
    semaphore.fail(Status::new(Code::Aborted, "over and over"));
    for (count, wanted) in counts.iter().zip([1, 1000, 1000]) {
        settled(count, wanted)?;
    }
    settled(&counter(&semaphore, 1), 1000)
}

fn callback_when_due(t: &Context) -> Outcome {
    let semaphore = t.device().create_semaphore(5)?;
    settled(&counter(&semaphore, 0), 1)?;
    settled(&counter(&semaphore, 5), 1)
}

/// Drivers hold no lock while callbacks run.
fn callback_uses_device(t: &Context) -> Outcome {
    let device = t.device().clone();
    let (first, second) = (device.create_semaphore(0)?, device.create_semaphore(0)?);
    let (sender, receiver) = mpsc::channel();
    let (again, next) = (first.clone(), second.clone());
    let work = move |r: Result<()>| {
        let outcome = r.and_then(|()| {
            again.query()?;
            again.signal(9)?;
            device.create_semaphore(1)?;
            let fence = Fence::new(next.clone(), 1);
            device.queue_submit(
                halite_testing::hal::support::ANY,
                &Fence::default(),
                &fence,
                halite_hal::QueueOp::Barrier,
            )?;
            device.queue_flush(halite_testing::hal::support::ANY)
        });
        _ = sender.send(outcome);
    };
    first.on_reached(1, Box::new(work));
    first.signal(1)?;
    let outcome = receiver.recv_timeout(Duration::from_secs(20));
    outcome.map_err(|_| Stop::Fail("the callback did not come back".to_owned()))??;
    second.wait(1, soon())?;
    same("payload", first.query()?, 9)
}

fn racing(t: &Context) -> Outcome {
    for _ in 0..50 {
        let semaphore = t.device().create_semaphore(0)?;
        let counts: Vec<_> = (1..=4).map(|value| counter(&semaphore, value)).collect();
        let threads: Vec<_> = (1..=4)
            .map(|value| {
                let semaphore = semaphore.clone();
                thread::spawn(move || match semaphore.signal(value) {
                    Err(e) if e.code() != Code::InvalidArgument => Err(e),
                    _ => Ok(()),
                })
            })
            .collect();
        let late: Vec<_> = (1..=4).map(|value| counter(&semaphore, value)).collect();
        joined(threads)?;
        same("payload", semaphore.query()?, 4)?;
        counts.iter().chain(&late).try_for_each(|count| settled(count, 1))?;
    }
    Ok(())
}

fn fences(t: &Context) -> Outcome {
    let semaphores: Vec<_> = (0..3).map(|_| t.device().create_semaphore(0)).collect::<Result<_>>()?;
    let parts: Vec<_> =
        semaphores.iter().enumerate().map(|(i, s)| Fence::new(s.clone(), i as u64 + 1)).collect();
    let all = Fence::join(&parts);
    check!(!all.query()?, "nothing is signalled, but the fence is reached");
    semaphores[1].signal(2)?;
    semaphores[2].signal(30)?;
    check!(!all.query()?, "a point is missing, but the fence is reached");
    refused("a wait", all.wait(Deadline::Now), &[Code::DeadlineExceeded])?;
    all.signal()?;
    check!(all.query()?, "the fence is signalled, but not reached");
    all.wait(Deadline::Now)?;
    same("payloads", (semaphores[0].query()?, semaphores[1].query()?, semaphores[2].query()?), (1, 2, 30))
}

fn dropped(t: &Context) -> Outcome {
    let semaphore = t.device().create_semaphore(0)?;
    let count = counter(&semaphore, 1);
    drop(semaphore);
    // What is dropped uncalled releases what it holds.
    eventually(|| Arc::strong_count(&count) == 1);
    same("holders of the callback's state", Arc::strong_count(&count), 1)?;
    check!(count.load(Ordering::SeqCst).is_multiple_of(1000), "the callback was told of success");
    Ok(())
}
