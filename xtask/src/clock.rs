//! Measures time that was spent: on the wall, and on the processor by this program and all that it has run.

use std::time::{Duration, Instant};

/// Ticks of a second in `/proc`, on every system that Rust builds for.
const TICKS: f64 = 100.0;

/// A point in time.
#[derive(Clone, Copy)]
pub struct Clock {
    wall: Instant,
    processor: Option<f64>,
}

/// What passed since.
#[derive(Clone, Copy)]
pub struct Spent {
    /// By the clock on the wall.
    pub wall: Duration,
    /// Seconds on all processors, of this program and the programs that it ran to their end; `None` where no system tells.
    pub processor: Option<f64>,
}

impl Clock {
    /// Now.
    pub fn start() -> Clock {
        Clock { wall: Instant::now(), processor: processor() }
    }

    /// Since the start.
    pub fn spent(&self) -> Spent {
        let processor = self.processor.zip(processor()).map(|(before, now)| now - before);
        Spent { wall: self.wall.elapsed(), processor }
    }
}

impl std::fmt::Display for Spent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.1} s", self.wall.as_secs_f64())?;
        match self.processor {
            Some(seconds) => write!(f, ", {seconds:.1} s of processor time"),
            None => Ok(()),
        }
    }
}

fn processor() -> Option<f64> {
    of_process("self")
}

/// Seconds on all processors of a process, by its id, and of those that it ran to their end.
pub fn of_process(id: &str) -> Option<f64> {
    ticks(&std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?).map(|ticks| ticks as f64 / TICKS)
}

/// User and system time of a process and of its children that have ended, from its line in `/proc`.
fn ticks(stat: &str) -> Option<u64> {
    // The name of the program, the second field, may hold anything; the state follows it.
    let (_, fields) = stat.rsplit_once(") ")?;
    let times: Vec<u64> =
        fields.split(' ').skip(11).take(4).map(str::parse).collect::<Result<_, _>>().ok()?;
    (times.len() == 4).then(|| times.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_fields_are_the_time() {
        let stat = "7 (a ) b) S 1 2 3 4 5 6 7 8 9 10 100 20 3000 400 20 0 1";
        assert_eq!(ticks(stat), Some(3520));
        assert_eq!(ticks("7 (x) S 1 2 3"), None);
        assert_eq!(ticks(""), None);
    }
}
