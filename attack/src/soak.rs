//! A soak: random models, sizes, cancellations, timeouts and errors on one device, from several threads at a time, for as long as
//! wanted. Results of the same model and size have to be the same every time, nothing may hang or panic, and memory has to stay flat.

use std::{
    collections::HashMap,
    path::Path,
    sync::{
        Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use halite::{Cache, CancelToken, Device, ErrorKind, RunOptions, Session, Source, Tensor};

use halite_attack::heap;

use crate::{
    growth::{Bound, Growth, Level},
    made::{self, KINDS, Reader, Sound},
    measure,
    noise::Noise,
};

/// How long one piece of work may take before it counts as hanging.
const HANG: Duration = Duration::from_secs(120);
/// Bounds of a file that is there to do harm.
const HOSTILE: Duration = Duration::from_secs(3);
/// What the allocator gave out may grow by this.
const GIVEN_OUT: Bound = Bound(10, 4 << 20);
/// What the process holds may grow by this: the allocator keeps pieces for later, and drivers take memory elsewhere.
const RESIDENT: Bound = Bound(10, 48 << 20);
/// How often it is told how it goes.
const LEVELS: u32 = 60;

#[derive(clap::Args)]
pub struct Options {
    /// The device.
    #[arg(long, default_value = "vulkan")]
    device: String,
    /// How long.
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// Threads.
    #[arg(long, default_value_t = 4)]
    threads: u64,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Loses so many bytes with each piece of work, to see that such a loss is found.
    #[arg(long, default_value_t = 0)]
    lose: usize,
    /// Closes the device before each look at memory, and opens it anew: what its driver holds until then is the driver's.
    #[arg(long)]
    reopen: bool,
}

/// What happened so far.
#[derive(Default)]
struct Counts {
    right: AtomicU64,
    stopped: AtomicU64,
    refused: AtomicU64,
    hostile: AtomicU64,
}

struct Soak {
    /// There but for a look at memory.
    device: RwLock<Option<Device>>,
    /// What it is opened by; none where it stays open.
    reopen: Option<String>,
    sound: Sound,
    counts: Counts,
    /// Bytes of results, by what was computed.
    known: Mutex<HashMap<[u64; 3], Bytes>>,
    over: AtomicBool,
    /// Who works shares it; who looks at memory has it alone, so that nothing is under way then.
    quiet: RwLock<()>,
    lose: usize,
}

/// Memory, when so much had been done.
struct Held {
    given_out: Option<Level>,
    resident: Level,
}

/// Whether all was right.
pub fn run(root: &Path, options: &Options) -> Result<bool> {
    let soak = Soak {
        device: RwLock::new(Some(Device::open(&options.device)?)),
        reopen: options.reopen.then(|| options.device.clone()),
        sound: Sound::of_repository(root),
        counts: Counts::default(),
        known: Mutex::default(),
        over: AtomicBool::new(false),
        quiet: RwLock::default(),
        lose: options.lose,
    };
    let length = Duration::from_secs_f64(options.minutes * 60.0);
    println!("{}: {} minutes, {} threads", soak.device()?.info().name(), options.minutes, options.threads);
    println!("seconds   right stopped refused hostile  given out KiB  resident KiB  device KiB    kept KiB");
    let begin = Instant::now();
    let levels = thread::scope(|scope| {
        let soak = &soak;
        let work = |number: u64| {
            move || {
                let done = soak.work(&mut Noise::new(options.seed + number), begin + length);
                soak.over.fetch_or(done.is_err(), Ordering::Relaxed);
                done
            }
        };
        let threads: Vec<_> = (0..options.threads.max(1)).map(|number| scope.spawn(work(number))).collect();
        let levels = soak.watch(begin, length);
        soak.over.fetch_or(levels.is_err(), Ordering::Relaxed);
        threads.into_iter().try_for_each(|one| match one.join() {
            Ok(done) => done,
            Err(_) => bail!("a thread panicked"),
        })?;
        levels
    })?;
    let given_out: Option<Vec<Level>> = levels.iter().map(|held| held.given_out).collect();
    let resident: Vec<Level> = levels.iter().map(|held| held.resident).collect();
    match given_out {
        Some(given_out) => judge("given out", &given_out, GIVEN_OUT)?,
        None => println!("SKIPPED: memory that is given out: the C library does not tell"),
    }
    judge("resident", &resident, RESIDENT)?;
    Ok(true)
}

/// Waits until what nobody waits for any more has ended, as pipelines that a device still builds for sessions that are gone: until no
/// less is given out than before, for a while.
fn settle(device: &Device) {
    const STEP: Duration = Duration::from_millis(500);
    const STEPS: usize = 60;
    const SAME: usize = 4;
    let Some(mut least) = heap::live() else { return };
    let mut same = 0;
    for _ in 0..STEPS {
        crate::pause(STEP);
        device.trim();
        let now = heap::live().unwrap_or(least);
        same = if now < least - least / 64 { 0 } else { same + 1 };
        least = least.min(now);
        if same == SAME {
            return;
        }
    }
}

fn judge(what: &str, levels: &[Level], bound: Bound) -> Result<()> {
    let growth = Growth::of(levels, bound).with_context(|| {
        format!("{} looks at memory ({what}) are too few: let it run for longer", levels.len())
    })?;
    let Growth { middle, last, grown, most } = growth;
    let [middle, last, grown, most] = [middle, last, grown, most].map(|bytes| bytes >> 10);
    println!(
        "memory {what}: {middle} KiB in the middle third of the work, {last} KiB in the last; it grows by {grown} KiB \
         in a third, where {most} KiB are allowed"
    );
    ensure!(growth.is_none(), "memory ({what}) grows by {grown} KiB in a third of the work");
    Ok(())
}

impl Soak {
    /// Tells how it goes; the memory that was held each time.
    fn watch(&self, begin: Instant, length: Duration) -> Result<Vec<Held>> {
        let step = (length / LEVELS).max(Duration::from_secs(1));
        let mut levels = Vec::new();
        while begin.elapsed() < length && !self.over.load(Ordering::Relaxed) {
            crate::pause(step);
            levels.push(self.look(begin)?);
        }
        Ok(levels)
    }

    fn device(&self) -> Result<Device> {
        let device = self.device.read().unwrap_or_else(PoisonError::into_inner);
        device.clone().context("the device could not be opened again")
    }

    fn look(&self, begin: Instant) -> Result<Held> {
        // What a thread that panicked left does not matter: the run is over then.
        let _alone = self.quiet.write().unwrap_or_else(PoisonError::into_inner);
        // The device keeps blocks of memory for buffers to come, on a processor from the same allocator: as many as were needed at a
        // time at most. What is lost is what stays when these are given back.
        let device = self.device()?;
        let kept = device.memory().reserved;
        device.trim();
        settle(&device);
        let used = device.memory().used;
        if self.reopen.is_some() {
            *self.device.write().unwrap_or_else(PoisonError::into_inner) = None;
        }
        drop(device);
        heap::trim();
        let known = self.known.lock().expect("no other thread panicked");
        let own: u64 = known.values().map(|result| result.len() as u64).sum();
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        let Counts { right, stopped, refused, hostile } = &self.counts;
        let [right, stopped, refused, hostile] = [right, stopped, refused, hostile].map(count);
        // Results that are kept to compare with are this program's own matter.
        let given_out = heap::live().map(|bytes| bytes.saturating_sub(own));
        let resident = measure::resident();
        if let Some(uri) = &self.reopen {
            let again = Device::open(uri).context("opening the device again")?;
            *self.device.write().unwrap_or_else(PoisonError::into_inner) = Some(again);
        }
        println!(
            "{:>7} {right:>7} {stopped:>7} {refused:>7} {hostile:>7} {:>13} {:>13} {:>11} {:>11}",
            begin.elapsed().as_secs(),
            given_out.unwrap_or(0) >> 10,
            resident >> 10,
            used >> 10,
            kept >> 10
        );
        let level = |held| Level { work: right + stopped + refused + hostile, held };
        Ok(Held { given_out: given_out.map(level), resident: level(resident.saturating_sub(own)) })
    }

    fn work(&self, noise: &mut Noise, until: Instant) -> Result<()> {
        while Instant::now() < until && !self.over.load(Ordering::Relaxed) {
            let _busy = self.quiet.read().unwrap_or_else(PoisonError::into_inner);
            let (begin, before) = (Instant::now(), measure::processor_time(None));
            std::mem::forget(std::hint::black_box(vec![1u8; self.lose]));
            match noise.below(10) {
                0 => self.hostile(noise)?,
                1 => self.wrong(noise)?,
                _ => self.compute(noise)?,
            }
            let took = begin.elapsed();
            // On a machine that leaves this process next to nothing, the time by the clock says nothing of the work.
            let own = measure::processor_time(None).saturating_sub(before);
            ensure!(
                took < HANG || own < HANG / 2,
                "a piece of work took {} s, with {} s of processor time for the whole process meanwhile",
                took.as_secs(),
                own.as_secs()
            );
        }
        Ok(())
    }

    fn session(&self, noise: &mut Noise, options: RunOptions) -> Result<([u64; 3], halite::Result<Session>)> {
        let what = [noise.below(4) as u64 + 1, 16 << noise.below(3), noise.size(64).max(1)];
        let [layers, width, rows] = what;
        // The model is a matter of its sizes alone.
        let bytes =
            made::layers(&mut Noise::new(layers ^ width << 8), layers as usize, width as i64, rows as i64);
        let source = Source::bytes(bytes).named("layers.onnx");
        let builder = Session::builder().cache(Cache::off()).device(&self.device()?).options(options);
        Ok((what, builder.model(source).build()))
    }

    /// A model that is right, a third of the time with somebody who stops it, or with little time.
    fn compute(&self, noise: &mut Noise) -> Result<()> {
        let token = CancelToken::new();
        let after = Duration::from_millis(noise.size(400));
        let options = match noise.below(6) {
            0 => RunOptions::new().timeout(after),
            1 => {
                let token = token.clone();
                thread::spawn(move || {
                    crate::pause(after);
                    token.cancel();
                });
                RunOptions::new()
            }
            _ => RunOptions::new(),
        };
        let options = options.cancel(&token);
        let (what, session) = self.session(noise, options.clone())?;
        let run = |session: Session| -> halite::Result<Vec<Bytes>> {
            let mut results = Vec::new();
            for _ in 0..3 {
                let [_, width, rows] = what;
                let values: Vec<f32> = (0..width * rows).map(|i| (i % 7) as f32 / 7.0).collect();
                let input = Tensor::from_slice(&values, [rows as usize, width as usize])?;
                let out = session.run_with(input, &options)?;
                let name = out.names().next().unwrap_or_default();
                results.push(out.tensor(name)?.to_bytes()?);
            }
            Ok(results)
        };
        match session.and_then(run) {
            Ok(results) => {
                self.counts.right.fetch_add(1, Ordering::Relaxed);
                let mut known = self.known.lock().expect("no other thread panicked");
                let expected = known.entry(what).or_insert_with(|| results[0].clone());
                ensure!(
                    results.iter().all(|result| result == expected),
                    "{what:?} has another result than before"
                );
            }
            Err(error) if matches!(error.kind(), ErrorKind::Cancelled | ErrorKind::DeadlineExceeded) => {
                self.counts.stopped.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => return Err(error).with_context(|| format!("{what:?}")),
        }
        Ok(())
    }

    /// Inputs of another size than the model takes.
    fn wrong(&self, noise: &mut Noise) -> Result<()> {
        let (_, session) = self.session(noise, RunOptions::new())?;
        let error = session?.run(Tensor::from_slice(&[1.0f32; 3], 3)?);
        ensure!(error.is_err_and(|error| error.kind() == ErrorKind::InvalidInput), "a wrong input was taken");
        self.counts.refused.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// A model that is there to do harm, as a stranger's.
    fn hostile(&self, noise: &mut Noise) -> Result<()> {
        let models: Vec<_> = KINDS.iter().filter(|kind| kind.reader == Reader::Model).collect();
        let kind = **noise.pick(&models);
        let Some(bytes) = kind.make(noise.next() >> 32, &self.sound) else { return Ok(()) };
        let source = Source::bytes(bytes).named(format!("hostile.{}", kind.extension));
        let options = RunOptions::new().timeout(HOSTILE);
        let session = Session::builder()
            .cache(Cache::off())
            .device(&self.device()?)
            .options(options.clone())
            .model(source)
            .build();
        if let Ok(session) = session
            && let Ok(function) = session.default_function()
            && let Some(inputs) = function.zeros()
        {
            // Whatever it says: what counts is that it ends.
            _ = function.run_with(inputs, &options);
        }
        self.counts.hostile.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}
