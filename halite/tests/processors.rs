//! Sessions on the devices that run bytecode kernels on the processor, from many threads at a time. Nothing of it is code that is built
//! elsewhere, so that ThreadSanitizer sees all of it (docs/how-to/testing.md).
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::thread;

use halite::{CancelToken, Device, ErrorKind, RunOptions, Session, Tensor, Value};

/// `main(x [n, 16], w [16, 16], steps)` multiplies by `w` so many times, in a loop on the host.
const STEPS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../drivers/local/tests/data/steps_vmvx.vmfb");
const THREADS: usize = 6;
const ROUNDS: usize = 8;
const DOUBLINGS: i32 = 3;

fn session(device: &Device) -> Session {
    Session::builder().device(device).model(STEPS).build().unwrap()
}

/// Rows of numbers that no other call has, doubled a few times.
fn inputs(rows: usize, first: usize) -> [Value; 3] {
    let x: Vec<f32> = (0..rows * 16).map(|at| (first * 1000 + at) as f32).collect();
    let w: Vec<f32> = (0..256).map(|at| if at / 16 == at % 16 { 2.0 } else { 0.0 }).collect();
    [
        Tensor::from_slice(&x, [rows, 16]).unwrap().into(),
        Tensor::from_slice(&w, [16, 16]).unwrap().into(),
        DOUBLINGS.into(),
    ]
}

fn check(out: &halite::Outputs, rows: usize, first: usize) {
    let found: Vec<f32> = out[0].to_vec().unwrap();
    let wanted: Vec<f32> = (0..rows * 16).map(|at| ((first * 1000 + at) << DOUBLINGS) as f32).collect();
    assert_eq!(found, wanted);
}

#[test]
fn threads_share_a_session_some_calls_are_stopped_and_some_dropped() {
    for uri in ["local-task?threads=4", "local-sync"] {
        let session = session(&Device::open(uri).unwrap());
        thread::scope(|scope| {
            for number in 0..THREADS {
                let session = &session;
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let (rows, first) = (1 + (number + round) % 5, number * ROUNDS + round);
                        let started = session.start(inputs(rows, first)).unwrap();
                        check(&session.run(inputs(rows, first + 1)).unwrap(), rows, first + 1);
                        match round % 3 {
                            0 => drop(started),
                            _ => check(&started.wait().unwrap(), rows, first),
                        }
                        let token = CancelToken::new();
                        thread::scope(|inner| {
                            inner.spawn(|| token.cancel());
                            let options = RunOptions::new().cancel(&token);
                            match session.run_with(inputs(rows, first), &options) {
                                Ok(out) => check(&out, rows, first),
                                Err(error) => assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}"),
                            }
                        });
                    }
                });
            }
        });
    }
}

#[test]
fn sessions_come_and_go_on_one_device() {
    let device = Device::open("local-task?threads=4").unwrap();
    thread::scope(|scope| {
        for number in 0..THREADS {
            let device = &device;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let own = session(device);
                    let pending = own.start(inputs(2, number)).unwrap();
                    if round % 2 == 0 {
                        drop(own);
                    }
                    check(&pending.wait().unwrap(), 2, number);
                }
            });
        }
    });
}
