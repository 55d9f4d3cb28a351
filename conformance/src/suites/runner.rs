//! Running cases, each on a thread of its own under a time limit.

use std::{
    any::Any,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use halite_hal::DeviceInfo;
use halite_testing::drivers::Opener;

use super::{Case, Context, Outcome, Report, Stop, Summary, Verdict};

/// Tells what a validation layer said since it was last asked.
pub type Watch = Arc<dyn Fn() -> Vec<String> + Send + Sync>;

/// Runs cases on one device. A case that hangs is reported and left behind on its thread; after it, and after any
/// case that failed, the others get another device.
#[derive(Clone)]
pub struct Runner {
    opener: Opener,
    limit: Duration,
    watch: Option<Watch>,
}

impl Runner {
    /// `limit` is the longest time that one case may take.
    pub fn new(opener: Opener, limit: Duration) -> Self {
        Runner { opener, limit, watch: None }
    }

    /// A case fails when the watch has something to tell after it.
    pub fn watched(self, watch: Watch) -> Self {
        Runner { watch: Some(watch), ..self }
    }

    /// Runs cases in order, telling `observer` about each as it ends. An error means that no device could be opened
    /// at the beginning; if that happens later, what is left fails.
    pub fn run(&self, cases: &[Case], mut observer: impl FnMut(&Report)) -> halite_hal::Result<Summary> {
        let mut lane = self.lane()?;
        let mut summary = Summary::default();
        for case in cases {
            let report = lane.run(case);
            observer(&report);
            summary.reports.push(report);
        }
        Ok(summary)
    }

    /// Opens a device for cases that are run one by one.
    pub fn lane(&self) -> halite_hal::Result<Lane> {
        Ok(Lane { context: Ok(self.context()?), runner: self.clone() })
    }

    /// Another context. Opening may hang too, when the device before it does.
    fn context(&self) -> halite_hal::Result<Arc<Context>> {
        let (opener, limit) = (self.opener.clone(), self.limit);
        on_thread(limit, move || Context::new(&opener, limit))
            .unwrap_or_else(|problem| {
                Err(halite_hal::status!(DeadlineExceeded, "opening the device {problem}"))
            })
            .map(Arc::new)
    }

    fn guarded(&self, case: &Case, context: &Arc<Context>) -> Verdict {
        let (body, context) = (case.clone(), context.clone());
        match on_thread(self.limit, move || body.run(&context)) {
            Ok(outcome) => self.heard(verdict(outcome)),
            Err(Problem::Hang(text)) => Verdict::Timeout(format!("the case {text}")),
            Err(Problem::Other(text)) => Verdict::Fail(format!("the case {text}")),
        }
    }

    /// What the watch makes of a verdict.
    fn heard(&self, verdict: Verdict) -> Verdict {
        let messages = self.watch.as_ref().map_or_else(Vec::new, |watch| watch());
        match messages.first() {
            Some(first) if !verdict.failed() => {
                Verdict::Fail(format!("{} validation messages, the first: {first}", messages.len()))
            }
            _ => verdict,
        }
    }
}

/// A device, and cases run on it one by one.
pub struct Lane {
    runner: Runner,
    context: halite_hal::Result<Arc<Context>>,
}

impl Lane {
    /// What the device says of itself; nothing when it was lost and no other could be opened.
    pub fn device(&self) -> Option<&DeviceInfo> {
        self.context.as_ref().ok().map(|context| context.device().info())
    }

    /// Runs a case. After one that failed, the next gets another device.
    pub fn run(&mut self, case: &Case) -> Report {
        let start = Instant::now();
        let verdict = match &self.context {
            Ok(context) => self.runner.guarded(case, context),
            Err(reason) => Verdict::Fail(format!("no device to run on: {reason}")),
        };
        let time = start.elapsed();
        if verdict.failed() {
            self.context = self.runner.context();
        }
        Report { case: case.name.clone(), verdict, time }
    }
}

fn verdict(outcome: Outcome) -> Verdict {
    match outcome {
        Ok(()) => Verdict::Pass,
        Err(Stop::Skip(reason)) => Verdict::Skip(reason),
        Err(Stop::Fail(reason)) => Verdict::Fail(reason),
        Err(Stop::Wrong(wrong)) => Verdict::Wrong(wrong),
    }
}

/// Runs `work` on a thread. Says what went wrong when it panics or does not end in time; then its thread is left.
fn on_thread<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    let (sender, receiver) = mpsc::channel();
    let run = move || {
        // A receiver that has given up is gone; there is nobody to tell.
        _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
    };
    if let Err(e) = thread::Builder::new().name("case".to_owned()).spawn(run) {
        return Err(Problem::Other(format!("could not start: {e}")));
    }
    match receiver.recv_timeout(limit) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(panic)) => Err(Problem::Other(format!("panicked: {}", panic_text(panic.as_ref())))),
        Err(_) => {
            let text = format!("hangs: it did not end within {limit:?}; its thread is left behind");
            Err(Problem::Hang(text))
        }
    }
}

/// Why work on a thread has no result.
enum Problem {
    /// It did not end.
    Hang(String),
    /// It panicked, or did not begin.
    Other(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Problem::Hang(text) | Problem::Other(text)) = self;
        f.write_str(text)
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("with something that is no text")
}

#[cfg(test)]
mod tests {
    use halite_hal::Options;
    use halite_testing::drivers::{opener, registry};

    use super::*;
    use crate::suites::Cases;

    #[test]
    fn every_end_of_a_case_is_reported_and_the_next_case_runs() {
        let mut cases = Cases::new("test");
        cases.add("pass", &[], |_| Ok(()));
        cases.add("skip", &[], |_| Err(Stop::Skip("nothing here".to_owned())));
        cases.add("fail", &[], |_| Err(Stop::Fail("wrong".to_owned())));
        cases.add("panic", &[], |_| panic!("out of {}", "order"));
        cases.add("hang", &[], |_| {
            loop {
                thread::park();
            }
        });
        cases.add("after", &[], |t| Ok(t.device().wait_idle(halite_hal::Deadline::Now)?));
        let runner = Runner::new(opener(registry(&[]), "null", Options::new()), Duration::from_secs(5));
        let mut seen = 0;
        let summary = runner.run(&cases.finish(), |_| seen += 1).expect("the null device opens");
        assert_eq!((seen, summary.counts()), (6, (2, 1, 3)));
        let lines: Vec<_> = summary.reports.iter().map(ToString::to_string).collect();
        assert!(lines[2].contains("fail test.fail: wrong"), "{lines:?}");
        assert!(lines[3].contains("panicked: out of order"), "{lines:?}");
        assert!(lines[4].contains("test.hang") && lines[4].contains("hangs"), "{lines:?}");
    }

    #[test]
    fn a_device_that_does_not_open_is_an_error() {
        let runner = Runner::new(opener(registry(&[]), "nobody", Options::new()), Duration::from_secs(2));
        assert!(runner.run(&[], |_| ()).is_err());
    }
}
