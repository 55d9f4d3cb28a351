//! The steps of a chore: every one is taken, whatever became of the others; each is timed, and all are told at the end.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::{Result, bail};

use crate::{
    clock::{Clock, Spent},
    process::{self, LIMIT},
    shell::say,
};

/// The steps that were taken so far.
pub struct Steps {
    clock: Clock,
    done: Vec<Step>,
    /// Hundredths of seconds on the processor of steps that ended beside others, which are no part of what those took.
    elsewhere: Arc<AtomicU64>,
}

/// A step that needs none of the others and changes nothing of theirs, in a process of its own: what it says is told when it has ended.
pub struct Apart {
    name: String,
    command: Command,
}

impl Apart {
    /// The step of this name that this program takes by itself as `cargo xtask part PART ARGS`.
    pub fn new(name: String, part: &str, args: Vec<String>) -> Apart {
        let mut command = Command::new(program());
        command.args(["part", part]).args(args);
        Apart { name, command }
    }

    /// What it is called in the table.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn take(self) -> Step {
        let again: Vec<_> = self.command.get_args().map(|arg| arg.to_string_lossy().into_owned()).collect();
        let again = format!("again with: cargo xtask {}", again.join(" "));
        let clock = Clock::start();
        let failed = |why: String| Outcome::Failed(format!("{why}; {again}"));
        let (outcome, said, spent) = match process::end_of(self.command) {
            Ok((Some(status), said, spent)) if status.success() => (Outcome::Passed, said, spent),
            Ok((Some(status), said, spent)) => {
                (failed(error_in(&said).unwrap_or_else(|| status.to_string())), said, spent)
            }
            Ok((None, said, spent)) => {
                (failed(format!("took longer than {} s and was ended", LIMIT.as_secs())), said, spent)
            }
            Err(error) => {
                let spent = Spent { wall: clock.spent().wall, processor: None };
                (failed(format!("{error:#}")), String::new(), spent)
            }
        };
        let step = Step { name: self.name, outcome, spent };
        // At once, so that the words of others do not mix with it.
        print!("\n== {}\n{said}-- {}\n", step.name, step.told());
        step
    }
}

/// This program, where it was when steps began: a build of everything may put another one of the same sources into its place, and then the
/// system calls the first one deleted. Without a name parts fail, as nothing starts.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| std::env::current_exe().unwrap_or_default())
}

/// The error that one of our programs ended with, without its backtrace.
fn error_in(said: &str) -> Option<String> {
    let (_, error) = said.rsplit_once("\nError: ")?;
    Some(error.split("\n\nStack backtrace").next().unwrap_or(error).trim().to_owned())
}

struct Step {
    name: String,
    outcome: Outcome,
    spent: Spent,
}

impl Step {
    fn told(&self) -> String {
        let passed = if matches!(self.outcome, Outcome::Passed) { "passed" } else { "FAILED" };
        format!("{}: {passed}, {}", self.name, self.spent)
    }
}

enum Outcome {
    Passed,
    /// Why, and how to run it again.
    Failed(String),
    /// Why it was not taken.
    Skipped(String),
}

impl Steps {
    /// None yet.
    pub fn begin() -> Steps {
        program();
        Steps { clock: Clock::start(), done: Vec::new(), elsewhere: Arc::default() }
    }

    /// Takes a step. `None` when it failed: that is told, and the chore goes on.
    pub fn take<T>(&mut self, name: &str, step: impl FnOnce() -> Result<T>) -> Option<T> {
        say(name);
        let (clock, before) = (Clock::start(), self.seconds_elsewhere());
        let result = step();
        let mut spent = clock.spent();
        let elsewhere = self.seconds_elsewhere() - before;
        spent.processor = spent.processor.map(|seconds| (seconds - elsewhere).max(0.0));
        let (outcome, value) = match result {
            Ok(value) => (Outcome::Passed, Some(value)),
            Err(error) => (Outcome::Failed(format!("{error:#}")), None),
        };
        let step = Step { name: name.to_owned(), outcome, spent };
        println!("-- {}", step.told());
        if let Outcome::Failed(why) = &step.outcome {
            println!("{why}");
        }
        self.done.push(step);
        value
    }

    /// Takes steps that stand by themselves, so many at once, while `own` takes others.
    pub fn beside(&mut self, apart: Vec<Apart>, jobs: usize, own: impl FnOnce(&mut Steps)) {
        let queue: Mutex<VecDeque<_>> = Mutex::new(apart.into_iter().enumerate().collect());
        let next = || lock(&queue).pop_front();
        let (done, elsewhere) = (Mutex::new(Vec::new()), self.elsewhere.clone());
        let work = || {
            while let Some((place, apart)) = next() {
                let step = apart.take();
                let seconds = step.spent.processor.unwrap_or(0.0);
                elsewhere.fetch_add((seconds * 100.0) as u64, Ordering::Relaxed);
                lock(&done).push((place, step));
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..jobs.max(1) {
                scope.spawn(work);
            }
            own(self);
        });
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_by_key(|(place, _)| *place);
        self.done.extend(done.into_iter().map(|(_, step)| step));
    }

    fn seconds_elsewhere(&self) -> f64 {
        self.elsewhere.load(Ordering::Relaxed) as f64 / 100.0
    }

    /// A step that cannot be taken.
    pub fn skip(&mut self, name: &str, why: &str) {
        println!("\nSKIPPED: {name}: {why}");
        let spent = Clock::start().spent();
        self.done.push(Step { name: name.to_owned(), outcome: Outcome::Skipped(why.to_owned()), spent });
    }

    /// Prints what became of all; an error when a step failed.
    pub fn finish(self) -> Result<()> {
        say("summary");
        print!("{}", self.table());
        let failed: Vec<_> = self.failed().collect();
        if failed.is_empty() {
            return Ok(());
        }
        println!("\nWhat failed, and how to run it again:");
        for (name, why) in &failed {
            println!("{name}:\n  {}", why.replace('\n', "\n  "));
        }
        bail!("{} of {} steps failed", failed.len(), self.done.len());
    }

    fn failed(&self) -> impl Iterator<Item = (&str, &str)> {
        self.done.iter().filter_map(|step| match &step.outcome {
            Outcome::Failed(why) => Some((step.name.as_str(), why.as_str())),
            _ => None,
        })
    }

    fn table(&self) -> String {
        let width = self.done.iter().map(|step| step.name.len()).max().unwrap_or(0).max("all of it".len());
        let line = |name: &str, word: &str, spent: &Spent, why: &str| {
            let processor = spent.processor.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.1}"));
            let line =
                format!("{name:<width$}  {word:<7} {:>8.1} {processor:>10}  {why}", spent.wall.as_secs_f64());
            line.trim_end().to_owned() + "\n"
        };
        let mut text = format!("{:<width$}  {:<7} {:>8} {:>10}\n", "step", "", "seconds", "processor");
        for step in &self.done {
            let (word, why) = match &step.outcome {
                Outcome::Passed => ("passed", ""),
                Outcome::Failed(_) => ("FAILED", ""),
                Outcome::Skipped(why) => ("skipped", why.as_str()),
            };
            text += &line(&step.name, word, &step.spent, why);
        }
        text + &line("all of it", "", &self.clock.spent(), "")
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step that is a shell script.
    fn script(name: &str, text: &str) -> Apart {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", text]);
        Apart { name: name.to_owned(), command }
    }

    #[test]
    #[cfg(unix)]
    fn steps_beside_others_are_told_behind_them_in_their_order() {
        let mut steps = Steps::begin();
        let apart = vec![
            script("good", "echo well"),
            script("bad", "echo 'TypeError: told\nError: it broke\n\nStack backtrace:\n 0: x' >&2; exit 1"),
            script("silent", "exit 3"),
        ];
        steps.beside(apart, 2, |steps| {
            assert_eq!(steps.take("own", || Ok(7)), Some(7));
        });
        let names: Vec<_> = steps.done.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(names, ["own", "good", "bad", "silent"]);
        let failed: Vec<_> = steps.failed().collect();
        assert_eq!(failed.len(), 2, "{failed:?}");
        assert!(failed[0].1.starts_with("it broke; again with: cargo xtask -c "), "{failed:?}");
        assert!(failed[1].1.starts_with("exit status: 3; again with: "), "{failed:?}");
    }

    #[test]
    fn every_step_is_taken_and_told() {
        let mut steps = Steps::begin();
        assert_eq!(steps.take("first", || Ok(7)), Some(7));
        assert_eq!(steps.take("second", || -> Result<()> { bail!("it broke\ncargo test again") }), None);
        steps.skip("third", "there is no device");
        assert_eq!(steps.take("fourth", || Ok(())), Some(()));
        let table = steps.table();
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines.len(), 6, "{table}");
        for (line, parts) in lines[1..5].iter().zip([
            ["first", "passed"],
            ["second", "FAILED"],
            ["third", "there is no device"],
            ["fourth", "passed"],
        ]) {
            assert!(parts.iter().all(|part| line.contains(part)), "{line}");
        }
        assert_eq!(steps.failed().collect::<Vec<_>>(), [("second", "it broke\ncargo test again")]);
        assert_eq!(steps.finish().unwrap_err().to_string(), "1 of 4 steps failed");
    }

    #[test]
    fn nothing_that_failed_is_no_error() {
        let mut steps = Steps::begin();
        steps.take("first", || Ok(()));
        steps.skip("second", "not here");
        assert!(steps.finish().is_ok());
    }
}
