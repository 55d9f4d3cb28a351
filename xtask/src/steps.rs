//! The steps of a chore: every one is taken, whatever became of the others; each is timed, and all are told at the end.

use anyhow::{Result, bail};

use crate::{
    clock::{Clock, Spent},
    shell::say,
};

/// The steps that were taken so far.
pub struct Steps {
    clock: Clock,
    done: Vec<Step>,
}

struct Step {
    name: String,
    outcome: Outcome,
    spent: Spent,
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
        Steps { clock: Clock::start(), done: Vec::new() }
    }

    /// Takes a step. `None` when it failed: that is told, and the chore goes on.
    pub fn take<T>(&mut self, name: &str, step: impl FnOnce() -> Result<T>) -> Option<T> {
        say(name);
        let clock = Clock::start();
        let result = step();
        let spent = clock.spent();
        println!("-- {name}: {}, {spent}", if result.is_ok() { "passed" } else { "FAILED" });
        let (outcome, value) = match result {
            Ok(value) => (Outcome::Passed, Some(value)),
            Err(error) => {
                println!("{error:#}");
                (Outcome::Failed(format!("{error:#}")), None)
            }
        };
        self.done.push(Step { name: name.to_owned(), outcome, spent });
        value
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

#[cfg(test)]
mod tests {
    use super::*;

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
