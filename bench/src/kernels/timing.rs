//! Times runs on a device: enough in one submission that its cost does not count, a device that is awake, and sides that
//! take turns.

use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use halite_hal::{Deadline, Result};
use halite_testing::library::Job;

/// A submission that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(300);
/// Most runs in one command buffer.
const MOST_REPEATS: u32 = 20_000;
/// Fewest and most samples of a side.
const SAMPLES: (usize, usize) = (5, 500);

/// What a second is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// One of the day's.
    #[default]
    Wall,
    /// One that a processor worked for this process, on any of its threads. For devices that run on the processor, while
    /// others use it too.
    Processor,
}

/// A running measurement.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    clock: Clock,
    wall: Instant,
    processor: ProcessTime,
}

impl Stopwatch {
    /// Starts.
    pub fn start(clock: Clock) -> Self {
        Stopwatch { clock, wall: Instant::now(), processor: ProcessTime::now() }
    }

    /// Seconds since then.
    pub fn seconds(&self) -> f64 {
        match self.clock {
            Clock::Wall => self.wall.elapsed(),
            Clock::Processor => self.processor.elapsed(),
        }
        .as_secs_f64()
    }
}

/// How long is measured.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// What samples are in.
    pub clock: Clock,
    /// How long the device is kept busy first, so that its clocks are up.
    pub warm: Duration,
    /// How long one sample takes at least.
    pub sample: Duration,
    /// How long each side is measured; five samples are taken in any case.
    pub measure: Duration,
}

/// What was measured of one side: seconds of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Timing {
    /// Median of the samples.
    pub median: f64,
    /// Least of them.
    pub least: f64,
    /// Most of them.
    pub most: f64,
    /// Number of samples.
    pub samples: usize,
    /// Runs in one sample.
    pub repeat: u32,
}

impl Timing {
    /// Of samples in seconds; all zero when there are none.
    pub fn of(samples: &mut [f64], repeat: u32) -> Timing {
        samples.sort_by(f64::total_cmp);
        let middle = samples.len() / 2;
        let median = match samples.len() {
            0 => 0.0,
            n if n % 2 == 0 => f64::midpoint(samples[middle - 1], samples[middle]),
            _ => samples[middle],
        };
        let (least, most) = (samples.first().copied(), samples.last().copied());
        let (least, most) = (least.unwrap_or_default(), most.unwrap_or_default());
        Timing { median, least, most, samples: samples.len(), repeat }
    }
}

/// Something that can be timed.
pub trait Side {
    /// Runs in one sample.
    fn repeat(&self) -> u32;
    /// Seconds that all runs of one sample took together.
    fn sample(&mut self) -> Result<f64>;
}

/// A job with as many runs in its command buffer as a sample needs.
#[derive(Debug)]
pub struct Recorded<'a> {
    job: &'a mut Job,
    repeat: u32,
    clock: Clock,
    /// Seconds of one run, by the last sample that found out how many are needed.
    tried: f64,
}

impl<'a> Recorded<'a> {
    /// Finds out how many runs a sample needs, and records them.
    pub fn new(job: &'a mut Job, pace: &Pace) -> Result<Self> {
        let mut recorded = Recorded { job, repeat: 1, clock: pace.clock, tried: 0.0 };
        let wanted = pace.sample.as_secs_f64();
        recorded.job.record(1)?;
        recorded.sample()?;
        // The time of few runs is mostly that of the submission, and clocks rise meanwhile: come near in steps.
        for _ in 0..8 {
            let took = recorded.sample()?;
            recorded.tried = took / f64::from(recorded.repeat);
            if took >= wanted || recorded.repeat == MOST_REPEATS {
                break;
            }
            let times = (wanted * 1.2 / took.max(1e-9)).clamp(2.0, 50.0);
            recorded.repeat = ((f64::from(recorded.repeat) * times).ceil() as u32).min(MOST_REPEATS);
            recorded.job.record(recorded.repeat)?;
        }
        Ok(recorded)
    }
}

impl Side for Recorded<'_> {
    fn repeat(&self) -> u32 {
        self.repeat
    }

    fn sample(&mut self) -> Result<f64> {
        let start = Stopwatch::start(self.clock);
        self.job.run(Deadline::after(LIMIT))?;
        Ok(start.seconds())
    }
}

/// Measures sides that take turns, so that whatever disturbs the machine disturbs all of them.
pub fn measure(sides: &mut [&mut dyn Side], pace: &Pace) -> Result<Vec<Timing>> {
    let start = Instant::now();
    while start.elapsed() < pace.warm {
        for side in sides.iter_mut() {
            side.sample()?;
        }
    }
    let mut samples = vec![Vec::new(); sides.len()];
    let (fewest, most) = SAMPLES;
    let long = pace.measure * u32::try_from(sides.len()).unwrap_or(1);
    let start = Instant::now();
    for round in 0..most {
        if round >= fewest && start.elapsed() >= long {
            break;
        }
        for (side, samples) in sides.iter_mut().zip(&mut samples) {
            samples.push(side.sample()? / f64::from(side.repeat()));
        }
    }
    Ok(sides.iter().zip(&mut samples).map(|(side, s)| Timing::of(s, side.repeat())).collect())
}

/// What a side is held against while it is measured.
#[derive(Clone, Copy, Debug, Default)]
pub struct Patience {
    /// Seconds of a run of the fastest so far, and how many times as long a side may take before it is given up.
    pub best: Option<(f64, f64)>,
}

impl Patience {
    /// Whether a run of so many seconds is clearly slower than the fastest.
    pub fn ends(&self, seconds: f64) -> bool {
        self.best.is_some_and(|(best, times)| seconds > best * times)
    }
}

/// Measures one side, of which it may be `known` that a run takes no more than so many seconds. What is clearly slower than the fastest
/// so far has few samples: one, if neither the first nor what is known says otherwise.
pub fn measure_one(side: &mut dyn Side, pace: &Pace, patience: Patience, known: f64) -> Result<Timing> {
    let start = Instant::now();
    while start.elapsed() < pace.warm {
        side.sample()?;
    }
    let (mut samples, mut least) = (Vec::new(), known);
    let (fewest, most) = SAMPLES;
    let start = Instant::now();
    while samples.len() < most && (samples.len() < fewest || start.elapsed() < pace.measure) {
        let seconds = side.sample()? / f64::from(side.repeat());
        least = least.min(seconds);
        samples.push(seconds);
        if patience.ends(least) {
            break;
        }
    }
    Ok(Timing::of(&mut samples, side.repeat()))
}

/// Measures one job.
pub fn measure_job(job: &mut Job, pace: &Pace, patience: Patience) -> Result<Timing> {
    let mut side = Recorded::new(job, pace)?;
    // What was tried for how many runs fit a sample tells as much of long runs as a sample would.
    if side.repeat == 1 && side.tried >= pace.sample.as_secs_f64() && patience.ends(side.tried) {
        return Ok(Timing::of(&mut [side.tried], 1));
    }
    // Its last try is a sample, too, so that one that is disturbed ends nothing.
    let tried = side.tried;
    measure_one(&mut side, pace, patience, tried)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(Timing::of(&mut [3.0, 1.0, 2.0], 1).median, 2.0);
        assert_eq!(Timing::of(&mut [4.0, 1.0, 2.0, 3.0], 1).median, 2.5);
        assert_eq!(Timing::of(&mut [], 7), Timing { repeat: 7, ..Timing::default() });
    }

    #[test]
    fn the_clock_of_the_processor_runs_while_it_works() {
        let watch = Stopwatch::start(Clock::Processor);
        let mut sum = 0u64;
        while watch.seconds() < 0.005 {
            sum = std::hint::black_box(sum.wrapping_mul(31) + 1);
        }
        assert!(watch.seconds() >= 0.005);
    }

    struct Fake(u32, usize);

    impl Side for Fake {
        fn repeat(&self) -> u32 {
            self.0
        }
        fn sample(&mut self) -> Result<f64> {
            self.1 += 1;
            Ok(self.1 as f64)
        }
    }

    #[test]
    fn what_is_clearly_slow_has_one_sample() {
        let clock = Clock::Wall;
        let pace = Pace { clock, warm: Duration::ZERO, sample: Duration::ZERO, measure: Duration::ZERO };
        let samples = |best: Option<f64>, first: usize, known: f64| {
            let patience = Patience { best: best.map(|best| (best, 2.0)) };
            measure_one(&mut Fake(1, first), &pace, patience, known).unwrap().samples
        };
        let unknown = f64::INFINITY;
        assert_eq!(samples(None, 0, unknown), 5, "nothing is known of others");
        assert_eq!(
            samples(Some(0.6), 0, unknown),
            5,
            "the first sample is 1, and no more than twice the best"
        );
        assert_eq!(samples(Some(0.4), 0, unknown), 1);
        assert_eq!(samples(Some(4.0), 8, unknown), 1, "9 is more than twice 4");
        assert_eq!(samples(Some(4.0), 8, 7.0), 5, "it was faster before");
        // The least of the samples counts, so that a disturbance behind the first one ends nothing.
        assert_eq!(samples(Some(1.0), 1, unknown), 5);
    }

    #[test]
    fn sides_take_turns() {
        let (mut a, mut b) = (Fake(1, 0), Fake(10, 0));
        let clock = Clock::Wall;
        let pace = Pace { clock, warm: Duration::ZERO, sample: Duration::ZERO, measure: Duration::ZERO };
        let timings = measure(&mut [&mut a, &mut b], &pace).unwrap();
        assert_eq!((timings[0].samples, timings[0].median), (5, 3.0));
        assert_eq!((timings[1].least, timings[1].most), (0.1, 0.5));
    }
}
