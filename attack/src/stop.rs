//! How soon work ends that is stopped: a model is loaded and called again and again, and a token stops that at another point each
//! time. Tells for each stage how late the call returned, and how long the device went on. Times depend on the machine and on what
//! else it does: this reports them, no test asserts them.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use halite::{Cache, CancelToken, ErrorKind, RunOptions, Session, Source};

use crate::{made, noise::Noise};

/// Layers of the model that is used where no file is given.
const LAYERS: usize = 64;
const WIDTH: i64 = 384;

#[derive(clap::Args)]
pub struct Options {
    /// The device.
    #[arg(long, default_value = "vulkan")]
    device: String,
    /// Points in time, over the whole way from the file to the end of the second call.
    #[arg(long, default_value_t = 40)]
    rounds: u32,
    /// Models; without any, a network of our own with 64 layers.
    files: Vec<PathBuf>,
}

/// What was seen when the work was stopped in a stage.
#[derive(Default)]
struct Seen {
    latencies: Vec<Duration>,
    /// Until everything was closed, which waits for the device.
    closed: Duration,
    /// What the errors said, one of them.
    text: String,
}

/// Stops work at many points, and prints a table.
pub fn run(options: &Options) -> Result<()> {
    let mut models: Vec<(String, Bytes)> = Vec::new();
    for path in &options.files {
        let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        models.push((path.display().to_string(), bytes.into()));
    }
    if models.is_empty() {
        models
            .push(("layers.onnx".to_owned(), made::layers(&mut Noise::new(1), LAYERS, WIDTH, WIDTH).into()));
    }
    let mut stages: BTreeMap<String, Seen> = BTreeMap::new();
    for (name, bytes) in &models {
        let begin = Instant::now();
        let never = CancelToken::new();
        work(name, bytes, &options.device, &never, &Arc::default()).context("without being stopped")?;
        let whole = begin.elapsed();
        println!("{name}: {} ms when nobody stops it", whole.as_millis());
        for round in 0..options.rounds {
            stop(name, bytes, &options.device, whole * (2 * round + 1) / (2 * options.rounds), &mut stages)?;
        }
    }
    println!("\n| stopped while | times | median ms | most ms | until closed, most ms | the error said |");
    println!("|---|---|---|---|---|---|");
    for (stage, mut seen) in stages {
        seen.latencies.sort();
        let (median, most) =
            (seen.latencies[seen.latencies.len() / 2], seen.latencies[seen.latencies.len() - 1]);
        let (times, closed) = (seen.latencies.len(), seen.closed.as_millis());
        println!(
            "| {stage} | {times} | {} | {} | {closed} | {} |",
            median.as_millis(),
            most.as_millis(),
            seen.text.replace('|', "/")
        );
    }
    Ok(())
}

type Stage = Arc<Mutex<String>>;

/// Loads a model and calls its first function twice.
fn work(
    name: &str,
    bytes: &Bytes,
    device: &str,
    token: &CancelToken,
    stage: &Stage,
) -> halite::Result<Session> {
    let told = stage.clone();
    let set = |stage: &Stage, text: &str| {
        if let Ok(mut stage) = stage.lock() {
            text.clone_into(&mut stage);
        }
    };
    let options = RunOptions::new().cancel(token).progress(move |progress| {
        set(&told, &format!("{:?}", progress.stage));
    });
    set(stage, "opening the device");
    let source = Source::bytes(bytes.clone()).named(name);
    let session = Session::builder()
        .cache(Cache::off())
        .device(device)
        .options(options.clone())
        .model(source)
        .build()?;
    let first = session.functions().first().map(|info| info.name.clone()).unwrap_or_default();
    let function = session.function(&first)?;
    for _ in 0..2 {
        let Some(inputs) = function.zeros() else { break };
        set(stage, "a call");
        function.run_with(inputs, &options)?;
    }
    Ok(session)
}

fn stop(
    name: &str,
    bytes: &Bytes,
    device: &str,
    after: Duration,
    stages: &mut BTreeMap<String, Seen>,
) -> Result<()> {
    let (token, stage) = (CancelToken::new(), Stage::default());
    let (switch, seen) = (token.clone(), stage.clone());
    let timer = thread::spawn(move || {
        crate::pause(after);
        let stage = seen.lock().map(|stage| stage.clone()).unwrap_or_default();
        let at = Instant::now();
        switch.cancel();
        (at, stage)
    });
    let ended = work(name, bytes, device, &token, &stage);
    let returned = Instant::now();
    let text = match &ended {
        Ok(_) => None,
        Err(error) if error.kind() == ErrorKind::Cancelled => Some(error.to_string()),
        Err(error) => bail!("it was stopped, and failed with something else: {error}"),
    };
    drop(ended);
    let closed = Instant::now();
    let Ok((at, stage)) = timer.join() else { bail!("the timer panicked") };
    // It may have been done before it was stopped.
    let Some(text) = text else { return Ok(()) };
    let seen = stages.entry(stage).or_default();
    seen.latencies.push(returned.saturating_duration_since(at));
    seen.closed = seen.closed.max(closed.saturating_duration_since(at));
    seen.text = text;
    Ok(())
}
