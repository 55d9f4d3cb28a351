//! The line that tells how far a run is.

use std::{
    io::{self, IsTerminal as _, Write as _},
    time::{Duration, Instant},
};

/// Time between two drawings.
const PACE: Duration = Duration::from_millis(100);

/// A line on standard error that is drawn over; nothing where that is no terminal.
pub struct Progress {
    shown: bool,
    all: usize,
    done: usize,
    failed: usize,
    start: Instant,
    drawn: Option<Instant>,
}

impl Progress {
    /// For so many cases.
    pub fn new(all: usize) -> Self {
        let shown = io::stderr().is_terminal();
        Progress { shown, all, done: 0, failed: 0, start: Instant::now(), drawn: None }
    }

    /// A case has ended.
    pub fn step(&mut self, failed: bool) {
        self.done += 1;
        self.failed += usize::from(failed);
        let due = self.drawn.is_none_or(|at| at.elapsed() >= PACE) || self.done == self.all;
        if self.shown && due {
            self.drawn = Some(Instant::now());
            let line = line(self.done, self.all, self.failed, self.start.elapsed());
            eprint!("\r{line}\x1b[K");
            // Whoever closed it wants no progress.
            _ = io::stderr().flush();
        }
    }

    /// Removes the line, so that something else can be printed.
    pub fn clear(&self) {
        if self.shown && self.drawn.is_some() {
            eprint!("\r\x1b[K");
        }
    }
}

fn line(done: usize, all: usize, failed: usize, time: Duration) -> String {
    const WIDTH: usize = 24;
    let filled = WIDTH * done / all.max(1);
    let bar = format!("{}{}", "#".repeat(filled), ".".repeat(WIDTH - filled.min(WIDTH)));
    let rate = done as f64 / time.as_secs_f64().max(1e-3);
    let left = (all.saturating_sub(done)) as f64 / rate.max(1e-9);
    let told = if failed > 0 { format!(", {failed} failed") } else { String::new() };
    format!("[{bar}] {done}/{all}, {rate:.0} cases/s, {} left{told}", clock(left))
}

fn clock(seconds: f64) -> String {
    let seconds = seconds.round().clamp(0.0, 359_999.0) as u64;
    match seconds / 3600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_rate_and_time_left() {
        let text = line(50, 200, 2, Duration::from_secs(10));
        assert_eq!(text, "[######..................] 50/200, 5 cases/s, 0:30 left, 2 failed");
        assert_eq!(clock(3725.0), "1:02:05");
        assert!(line(0, 0, 0, Duration::ZERO).contains("0/0"));
    }
}
