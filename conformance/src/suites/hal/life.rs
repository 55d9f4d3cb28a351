//! Lives of objects: handles dropped in any order, with and without work under way, and nothing left behind.

use std::{
    any::Any,
    sync::{Arc, Barrier},
    thread,
};

use halite_hal::{Code, Command, Fence, QueueOp, Result};
use halite_testing::{
    Random,
    hal::support::{
        Dev, after, buffer, eventually, execute, fence, fill, read, record, semaphore, slot, soon, whole,
    },
};

use crate::suites::{
    Cases, Context, Outcome, Stop,
    case::{check, same, same_bytes},
};

/// Adds the cases of this file.
pub(super) fn add(cases: &mut Cases, seed: u64) {
    for work in ["none", "running", "waiting"] {
        for seed in seed..seed + 3 {
            cases.add(format!("life.drop_order:work={work};seed={seed}"), &[], move |t| {
                (0..6).try_for_each(|round| drop_order(t, work, &mut Random::new(seed * 1000 + round)))
            });
        }
    }
    cases.add("life.buffers_outlive_their_device", &[], buffers_outlive);
    cases.add("life.semaphores_outlive_their_device", &[], semaphores_outlive);
    cases.add("life.callbacks_end_with_their_device", &[], callbacks_end);
    cases.add("life.handles_dropped_by_many_threads_at_once", &[], dropped_at_once);
    cases.add("life.devices_opened_and_closed_by_threads", &[], opened_by_threads);
}

/// Makes one of everything on a device of its own and drops it in random order.
fn drop_order(t: &Context, work: &str, random: &mut Random) -> Outcome {
    let device = t.open()?;
    let (go, data, other) = (fence(&device)?, buffer(&device, &[1; 4096])?, buffer(&device, &[2; 4096])?);
    let copy = Command::Copy { source: whole(&other).into(), target: slot(0, 0, 4096) };
    let commands = record(&device, 1, vec![copy])?;
    let mut end = fence(&device)?;
    if work != "none" {
        let wait = if work == "waiting" { go.clone() } else { Fence::default() };
        let filled = after(&device, &wait, fill(whole(&other), 7, 1))?;
        end = after(&device, &filled, execute(&commands, [Some(whole(&data))]))?;
    }
    let (watched, starter) = (end.clone(), go.clone());
    let mut things: Vec<Box<dyn Any + Send>> =
        vec![Box::new(data), Box::new(other), Box::new(commands), Box::new(end), Box::new(go)];
    if let Ok(kernels) = t.kernels() {
        things.push(Box::new(kernels.create(device.as_ref())?));
    }
    things.push(Box::new(device));
    random.shuffle(&mut things);
    // One thing after the other, from the front.
    things.into_iter().for_each(drop);
    if work == "none" {
        return Ok(());
    }
    // Work that never began may have been given up with its device.
    _ = starter.signal();
    match watched.wait(soon()) {
        Err(e) if e.code() == Code::DeadlineExceeded => {
            Err(Stop::Fail("the work neither ended nor failed after its device was dropped".to_owned()))
        }
        _ => Ok(()),
    }
}

fn buffers_outlive(t: &Context) -> Outcome {
    let device = t.open()?;
    let data = buffer(&device, &[5; 10_000])?;
    let done = after(&device, &Fence::default(), fill(whole(&data), 6, 1))?;
    done.wait(soon())?;
    drop(device);
    same_bytes("data", &read(&data)?, &[6; 10_000])?;
    data.write(3, b"late")?;
    let mut back = [0; 4];
    data.read(3, &mut back)?;
    same_bytes("data written late", &back, b"late")
}

fn semaphores_outlive(t: &Context) -> Outcome {
    let device = t.open()?;
    let (free, done) = (device.create_semaphore(4)?, after(&device, &Fence::default(), QueueOp::Barrier)?);
    done.wait(soon())?;
    drop(device);
    same("payload", free.query()?, 4)?;
    free.signal(5)?;
    free.wait(5, soon())?;
    check!(done.query()?, "what was reached is so no more");
    Ok(())
}

/// A callback for work that cannot start any more is called with an error or dropped, and holds nothing for ever.
fn callbacks_end(t: &Context) -> Outcome {
    let token = Arc::new(());
    {
        let device = t.open()?;
        let go = fence(&device)?;
        let end = after(&device, &go, QueueOp::Barrier)?;
        let held = token.clone();
        semaphore(&end).on_reached(1, Box::new(move |_| drop(held)));
        drop(device);
        drop(end);
    }
    eventually(|| Arc::strong_count(&token) == 1);
    same("holders of what the callback held", Arc::strong_count(&token), 1)
}

fn dropped_at_once(t: &Context) -> Outcome {
    for _ in 0..10 {
        let device = t.open()?;
        let data = buffer(&device, &[0; 4096])?;
        let end = after(&device, &Fence::default(), fill(whole(&data), 1, 1))?;
        let start = Arc::new(Barrier::new(4));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (start, all) = (start.clone(), (device.clone(), data.clone(), end.clone()));
                thread::spawn(move || {
                    start.wait();
                    drop(all);
                })
            })
            .collect();
        drop((device, data, end));
        for thread in threads {
            thread.join().map_err(|_| Stop::Fail("a thread panicked".to_owned()))?;
        }
    }
    Ok(())
}

fn opened_by_threads(t: &Context) -> Outcome {
    let devices = (0..3).map(|_| t.open()).collect::<Result<Vec<Dev>>>()?;
    let work = |device: &Dev| -> Result<Vec<u8>> {
        let data = buffer(device, &[0; 64])?;
        after(device, &Fence::default(), fill(whole(&data), 3, 1))?.wait(soon())?;
        read(&data)
    };
    thread::scope(|scope| {
        let opened: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| (0..3).try_for_each(|_| t.open().and_then(|device| work(&device)).map(drop)))
            })
            .collect();
        for device in &devices {
            same_bytes("data", &work(device)?, &[3; 64])?;
        }
        for thread in opened {
            thread.join().map_err(|_| Stop::Fail("a thread panicked".to_owned()))??;
        }
        Ok(())
    })
}
