//! Many threads run one session, and several sessions share one device: `cargo run -p halite --example threads`.

use std::thread;

use halite::{Device, Session, Tensor};

/// `next = 0.5 * state + 0.5 * sample`, for any number of elements; `smooth.py` made it.
const MODEL: &[u8] = include_bytes!("smooth.onnx");

pub(crate) fn main() -> halite::Result<()> {
    let device = Device::open("vulkan")?;

    // Clones of a session are the same session. Each thread has its own inputs and gets its own results.
    let session = Session::builder().device(&device).model(MODEL).dimension("n", 4).build()?;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..8u8)
            .map(|number| {
                let session = session.clone();
                scope.spawn(move || smooth(&session, f32::from(number)))
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("the threads do not panic"))
    })?;
    println!("8 threads ran one session on {}.", device.info().name());

    // Sessions on one device share its queue and its pools of memory.
    let sessions = (0..8)
        .map(|_| Session::builder().device(&device).model(MODEL).dimension("n", 4).build())
        .collect::<halite::Result<Vec<_>>>()?;
    thread::scope(|scope| {
        let threads: Vec<_> = sessions.iter().map(|session| scope.spawn(|| smooth(session, 1.0))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("the threads do not panic"))
    })?;
    println!("{} sessions share one device.", sessions.len());

    // A thread need not wait: a call can go on while the program does something else.
    let state = Tensor::from_slice(&[0.0f32; 4], 4)?;
    let pending = (1..=4u8)
        .map(|i| session.start([("state", &state), ("sample", &Tensor::from_slice(&[f32::from(i); 4], 4)?)]))
        .collect::<halite::Result<Vec<_>>>()?;
    for (i, pending) in (1..=4u8).zip(pending) {
        let next: Vec<f32> = pending.wait()?["next"].to_vec()?;
        assert_eq!(next, [f32::from(i) / 2.0; 4]);
    }
    println!("4 calls were under way at once.");
    Ok(())
}

/// Runs the session a few times and checks its results.
fn smooth(session: &Session, value: f32) -> halite::Result<()> {
    let sample = Tensor::from_slice(&[value; 4], 4)?;
    for round in 0..20u8 {
        let state = Tensor::from_slice(&[f32::from(round); 4], 4)?;
        let out = session.run([("state", &state), ("sample", &sample)])?;
        assert_eq!(out["next"].to_vec::<f32>()?, [(f32::from(round) + value) / 2.0; 4]);
    }
    Ok(())
}
