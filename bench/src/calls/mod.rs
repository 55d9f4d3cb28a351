//! What calls into a driver cost: phases of recording, submitting and waiting, measured on two devices in turn, so that
//! drifts of the machine hit both alike. Owns the measuring; does not own which devices are compared.

mod work;

use std::time::{Duration, Instant};

use halite_hal::Result;

pub use work::{Bench, Pattern};

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Commands in a recording.
    pub commands: u32,
    /// Times that each side does its work. The first tenth is not counted.
    pub iterations: u32,
}

/// Times of one phase on both sides.
#[derive(Clone, Debug)]
pub struct Phase {
    /// What was done.
    pub name: &'static str,
    /// Medians of both sides.
    pub median: [Duration; 2],
    /// Second median by the first; `None` when the first is too short to be measured.
    pub ratio: Option<f64>,
}

/// Phases of one iteration, in the order they are done.
pub type Times = Vec<(&'static str, Duration)>;

/// Measures a pattern on both sides in turn: first, second, second, first, and so on. The last phase is the sum.
pub fn compare(sides: [&Bench; 2], pattern: Pattern, plan: &Plan) -> Result<Vec<Phase>> {
    let mut runs = [pattern.prepare(sides[0], plan)?, pattern.prepare(sides[1], plan)?];
    let mut times: [Vec<Times>; 2] = [Vec::new(), Vec::new()];
    let warm_up = plan.iterations.div_ceil(10);
    for iteration in 0..warm_up + plan.iterations {
        let order = if iteration % 2 == 0 { [0, 1] } else { [1, 0] };
        for side in order {
            let measured = runs[side]()?;
            if iteration >= warm_up {
                times[side].push(measured);
            }
        }
    }
    Ok(summarize(&times))
}

fn summarize(times: &[Vec<Times>; 2]) -> Vec<Phase> {
    let names: Vec<&'static str> = times[0].first().into_iter().flatten().map(|(name, _)| *name).collect();
    let phase = |name, pick: &dyn Fn(&Times) -> Duration| {
        let median = [0, 1].map(|side: usize| median(times[side].iter().map(pick).collect()));
        let [first, second] = median.map(|d| d.as_secs_f64());
        Phase { name, median, ratio: (first > 0.0).then(|| second / first) }
    };
    let mut phases: Vec<Phase> =
        names.iter().enumerate().map(|(n, name)| phase(*name, &|times: &Times| times[n].1)).collect();
    phases.push(phase("all", &|times: &Times| times.iter().map(|(_, time)| *time).sum()));
    phases
}

/// The middle one, or the mean of the two in the middle; zero for none.
fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    let upper = times.get(times.len() / 2).copied().unwrap_or_default();
    match times.len() {
        0 => Duration::ZERO,
        n if n % 2 == 1 => upper,
        n => (times[n / 2 - 1] + upper) / 2,
    }
}

/// Measures a step and appends its time.
fn timed<T>(times: &mut Times, name: &'static str, step: impl FnOnce() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    let made = step()?;
    times.push((name, start.elapsed()));
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    #[test]
    fn medians_ignore_outliers() {
        assert_eq!(median(vec![]), Duration::ZERO);
        assert_eq!(median(vec![micros(9000), micros(5), micros(4)]), micros(5));
        assert_eq!(median(vec![micros(4), micros(8), micros(6), micros(9000)]), micros(7));
    }

    #[test]
    fn phases_are_compared_side_by_side_and_summed_up() {
        let side = |a, b| vec![vec![("record", micros(a)), ("wait", micros(b))]; 5];
        let phases = summarize(&[side(10, 30), side(20, 40)]);
        let names: Vec<_> = phases.iter().map(|p| p.name).collect();
        assert_eq!(names, ["record", "wait", "all"]);
        assert_eq!(phases[0].ratio, Some(2.0));
        assert_eq!(phases[2].median, [micros(40), micros(60)]);
        assert_eq!(summarize(&[side(0, 0), side(1, 1)])[0].ratio, None);
    }
}
