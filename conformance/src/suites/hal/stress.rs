//! Many threads on one device.

use std::thread;

use halite_hal::{BufferParams, Fence, QueueAffinity, QueueOp, Result, WHOLE_BUFFER, status};
use halite_testing::{
    Random,
    hal::support::{ANY, Dev, after, buffer, execute, fence, fill, read, record, slot, soon, span, whole},
};

use crate::suites::{Cases, Context, Outcome, Stop, case::same};

/// Adds the cases of this file.
pub(super) fn add(cases: &mut Cases, seed: u64) {
    for threads in [2u64, 8] {
        cases.add(format!("stress.threads_with_memory_of_their_own:threads={threads}"), &[], move |t| {
            on_threads(t, threads, own_memory)
        });
        cases.add(format!("stress.threads_share_a_recording:threads={threads}"), &[], move |t| {
            shared(t, threads)
        });
    }
    cases.add("stress.threads_signal_each_other_through_queues", &[], ping_pong);
    cases.add(format!("stress.threads_make_and_drop_everything:seed={seed}"), &[], move |t| {
        on_threads(t, 4, move |device, worker| make_and_drop(device, seed + worker))
    });
}

/// Runs `work(device, worker)` on this many threads.
fn on_threads(t: &Context, threads: u64, work: impl Fn(&Dev, u64) -> Result<()> + Sync) -> Outcome {
    let device = t.device();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|n| {
                (
                    n,
                    scope.spawn({
                        let work = &work;
                        move || work(device, n)
                    }),
                )
            })
            .collect();
        for (n, worker) in workers {
            let result = worker.join().map_err(|_| Stop::Fail(format!("thread {n} panicked")))?;
            result.map_err(|e| Stop::Fail(format!("thread {n}: {e}")))?;
        }
        Ok(())
    })
}

fn expect(what: &str, found: &[u8], wanted: u8) -> Result<()> {
    match found.iter().position(|b| *b != wanted) {
        None => Ok(()),
        Some(at) => Err(status!(Internal, "{what}: byte {at} is {}, it should be {wanted}", found[at])),
    }
}

/// Allocates, fills, copies and gives back in queue order; looks at the result now and then.
fn own_memory(device: &Dev, worker: u64) -> Result<()> {
    let affinity = QueueAffinity(1 << (worker % u64::from(device.queue_count())));
    let kept = buffer(device, &[0; 4096])?;
    let mut last = Fence::default();
    for round in 0..60u8 {
        let steps = (0..4).map(|_| fence(device)).collect::<Result<Vec<_>>>()?;
        let size = 4096 * (1 + u64::from(round % 3));
        let data = device.queue_alloca(affinity, &last, &steps[0], &BufferParams::DEVICE, size)?;
        let value = (worker as u8).wrapping_mul(61).wrapping_add(round);
        device.queue_submit(affinity, &steps[0], &steps[1], fill(whole(&data), value.into(), 1))?;
        let copy = QueueOp::Copy { source: span(&data, 0, 4096), target: whole(&kept) };
        device.queue_submit(affinity, &steps[1], &steps[2], copy)?;
        device.queue_submit(affinity, &steps[2], &steps[3], QueueOp::Dealloca { buffer: data })?;
        last = steps[3].clone();
        if round % 7 == 0 {
            last.wait(soon())?;
            expect(&format!("round {round}"), &read(&kept)?, value)?;
        }
    }
    last.wait(soon())
}

/// One reusable recording, executed by all threads with buffers of their own.
fn shared(t: &Context, threads: u64) -> Outcome {
    let commands = vec![
        halite_hal::Command::Fill { target: slot(0, 0, WHOLE_BUFFER), pattern: 0, pattern_length: 1 },
        halite_hal::Command::Barrier,
        halite_hal::Command::Copy { source: slot(1, 0, WHOLE_BUFFER), target: slot(0, 0, WHOLE_BUFFER) },
    ];
    let commands = record(t.device(), 2, commands)?;
    on_threads(t, threads, |device, worker| {
        for round in 0..40 {
            let value = (worker * 40 + round) as u8;
            let (target, source) = (buffer(device, &[0xFF; 500])?, buffer(device, &[value; 500])?);
            let op = execute(&commands, [Some(whole(&target)), Some(whole(&source))]);
            after(device, &Fence::default(), op)?.wait(soon())?;
            expect(&format!("round {round}"), &read(&target)?, value)?;
        }
        Ok(())
    })
}

/// Two threads take turns: each waits for the other's point and submits work that reaches the next.
fn ping_pong(t: &Context) -> Outcome {
    const ROUNDS: u64 = 300;
    let line = t.device().create_semaphore(0)?;
    let data = buffer(t.device(), &[0; 8])?;
    on_threads(t, 2, |device, worker| {
        for turn in (1..=ROUNDS).filter(|turn| turn % 2 == worker) {
            line.wait(turn - 1, soon())?;
            let op = fill(whole(&data), turn, 8);
            device.queue_submit(ANY, &Fence::default(), &Fence::new(line.clone(), turn), op)?;
            device.queue_flush(ANY)?;
        }
        Ok(())
    })?;
    line.wait(ROUNDS, soon())?;
    same("last fill", read(&data)?, ROUNDS.to_le_bytes().to_vec())
}

fn make_and_drop(device: &Dev, seed: u64) -> Result<()> {
    let mut random = Random::new(seed);
    for _ in 0..150 {
        let size = 1 + random.below(20_000);
        let data = device.allocate_buffer(&BufferParams::DEVICE, size)?;
        let value = random.next_u64() as u8;
        let done = after(device, &Fence::default(), fill(whole(&data), value.into(), 1))?;
        match random.below(4) {
            0 => drop(data),
            1 => drop(done),
            2 => drop((done, data)),
            _ => {
                done.wait(soon())?;
                expect("data", &read(&data)?, value)?;
            }
        }
    }
    Ok(())
}
