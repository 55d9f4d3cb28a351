//! Deadlines, cancellation and progress: `cargo run -p halite --example limits`.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use halite::{Cache, CancelToken, ElementType, ErrorKind, RunOptions, Session, Tensor};

/// `next = 0.5 * state + 0.5 * sample`, for any number of elements; `smooth.py` made it.
const MODEL: &[u8] = include_bytes!("smooth.onnx");

pub(crate) fn main() -> halite::Result<()> {
    // Progress comes from the threads that work. Nothing is cached here, so that there is something to do.
    let reports = Arc::new(AtomicUsize::new(0));
    let count = reports.clone();
    let session = Session::builder()
        .device("vulkan")
        .model(MODEL)
        .dimension("n", 16)
        .cache(Cache::off())
        .timeout(Duration::from_secs(600))
        .progress(move |progress| {
            count.fetch_add(1, Ordering::Relaxed);
            println!("{} {}/{}", progress.detail, progress.done, progress.total);
        })
        .build()?;
    assert!(reports.load(Ordering::Relaxed) > 0, "building a session tells its progress");

    // A call with options. A deadline that does not pass changes nothing.
    let x = Tensor::zeros(ElementType::F32, 16)?;
    let inputs = [("state", &x), ("sample", &x)];
    let soon = RunOptions::new().timeout(Duration::from_secs(60));
    assert_eq!(session.run_with(inputs, &soon)?["next"].to_vec::<f32>()?, [0.0; 16]);

    // One that has passed ends the call, and the error says at what.
    let late = RunOptions::new().timeout(Duration::ZERO);
    let error = session.run_with(inputs, &late).expect_err("the deadline has passed");
    println!("{error}");
    assert_eq!(error.kind(), ErrorKind::DeadlineExceeded);

    // Any thread may cancel: here, the one that hears of progress.
    let token = CancelToken::new();
    let switch = token.clone();
    let build = Session::builder()
        .device("vulkan")
        .model(MODEL)
        .dimension("n", 32)
        .cache(Cache::off())
        .cancel(&token)
        .progress(move |_| switch.cancel())
        .build();
    let error = build.expect_err("the build was cancelled");
    println!("{error}");
    assert_eq!(error.kind(), ErrorKind::Cancelled);

    // The session is as good as before.
    session.run(inputs)?;
    Ok(())
}
