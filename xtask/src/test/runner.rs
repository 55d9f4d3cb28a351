//! Runs test programs: some at once, each with a deadline, whatever becomes of the others; and says which took longest.

use std::{
    collections::VecDeque,
    ffi::OsString,
    process::Command,
    sync::{Mutex, PoisonError},
};

use anyhow::{Context, Result, bail};

use super::binaries::Binary;
use crate::{
    clock::Spent,
    process::{self, LIMIT},
    shell::root,
};

/// So many of those that took longest are named at the end.
const LONGEST: usize = 12;

/// A variable of the environment: what it is set to, or that it is taken away.
pub type Variable = (&'static str, Option<OsString>);

/// Sets variables for a program.
pub fn set(command: &mut Command, variables: &[Variable]) {
    for (name, value) in variables {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
}

/// How test programs are run.
#[derive(Clone, Default)]
pub struct Manner {
    /// The environment.
    pub variables: Vec<Variable>,
    /// Arguments of each program.
    pub args: Vec<String>,
    /// Programs at once.
    pub jobs: usize,
    /// Whether what programs say is shown when they pass, too.
    pub shown: bool,
}

/// A program that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which.
    pub binary: Binary,
    /// How it ended.
    pub why: String,
    /// Names of tests that failed, as far as the program told them.
    pub tests: Vec<String>,
}

impl Failure {
    /// What failed, on one line, and how it is run again on another.
    pub fn describe(&self, manner: &Manner) -> String {
        let tests =
            if self.tests.is_empty() { String::new() } else { format!(": {}", self.tests.join(", ")) };
        let set = manner.variables.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        let set: String = set.map(|(name, value)| format!("{name}='{}' ", value.to_string_lossy())).collect();
        let selection = self.binary.selection();
        format!("{} {}{tests}\n    {set}cargo test {selection}", self.binary.selection(), self.why)
    }
}

/// Runs all of them; returns those that failed, in order.
pub fn run(binaries: &[&Binary], manner: &Manner) -> Result<Vec<Failure>> {
    let queue: Mutex<VecDeque<(usize, &Binary)>> = Mutex::new(binaries.iter().copied().enumerate().collect());
    let failures = Mutex::new(Vec::new());
    let times = Mutex::new(Vec::new());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let work = || -> Result<()> {
        while let Some((place, binary)) = next() {
            let (failure, told, spent) = run_one(binary, manner)?;
            times.lock().unwrap_or_else(PoisonError::into_inner).push((binary, spent));
            // Held while it is told, so that the words of two programs do not mix.
            let mut failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
            if manner.shown || failure.is_some() {
                print!("{told}");
            }
            failures.extend(failure.map(|failure| (place, failure)));
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..manner.jobs.max(1)).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().expect("workers do not panic"))
            .collect::<Result<Vec<()>>>()
    })?;
    if manner.shown {
        print!("{}", longest(times.into_inner().unwrap_or_else(PoisonError::into_inner)));
    }
    let mut failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    failures.sort_by_key(|(place, _)| *place);
    Ok(failures.into_iter().map(|(_, failure)| failure).collect())
}

/// A table of the programs that took most of the processor's time, or of time where no system tells.
fn longest(mut times: Vec<(&Binary, Spent)>) -> String {
    let cost = |spent: &Spent| spent.processor.unwrap_or(spent.wall.as_secs_f64());
    times.sort_by(|(_, a), (_, b)| cost(b).total_cmp(&cost(a)));
    let line = |(binary, spent): &(&Binary, Spent)| {
        let processor = spent.processor.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.1}"));
        format!("{:>8.1} {processor:>10}  {}\n", spent.wall.as_secs_f64(), binary.selection())
    };
    let lines: String = times.iter().take(LONGEST).map(line).collect();
    format!("\n{:>8} {:>10}  of the longest\n{lines}", "seconds", "processor")
}

/// Runs one; what is to be told of it, and what it took.
fn run_one(binary: &Binary, manner: &Manner) -> Result<(Option<Failure>, String, Spent)> {
    let (status, said, spent) =
        process::end_of(command(binary, manner)).with_context(|| format!("{}", binary.path.display()))?;
    let path = binary.path.strip_prefix(root()).unwrap_or(&binary.path).display();
    let unit = if binary.kind == "test" { "" } else { "unittests " };
    let told = format!("     Running {unit}{} ({path}): {spent}\n{said}", binary.source);
    let failure = match status {
        Some(status) if status.success() => None,
        Some(status) => Some(status.to_string()),
        None => Some(format!("took longer than {} s and was ended", LIMIT.as_secs())),
    };
    let failure = failure.map(|why| Failure { binary: binary.clone(), why, tests: failed_tests(&said) });
    Ok((failure, told, spent))
}

fn command(binary: &Binary, manner: &Manner) -> Command {
    let mut command = Command::new(&binary.path);
    command.args(&manner.args).current_dir(&binary.folder);
    command.env("CARGO_MANIFEST_DIR", &binary.folder);
    set(&mut command, &manner.variables);
    command
}

/// Names of tests that failed, in the output of Rust's test programs.
fn failed_tests(text: &str) -> Vec<String> {
    let failed = |line: &str| {
        let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
        Some(name.trim_end_matches(" - should panic").to_owned())
    };
    text.lines().filter_map(failed).collect()
}

/// An error that says what failed, if something did.
pub fn verdict(failures: &[Failure], manner: &Manner) -> Result<()> {
    if failures.is_empty() {
        return Ok(());
    }
    let told: Vec<String> = failures.iter().map(|failure| failure.describe(manner)).collect();
    bail!("{}", told.join("\n"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A test program that is a shell script.
    fn script(folder: &std::path::Path, name: &str, text: &str) -> Binary {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        Binary {
            package: "p".to_owned(),
            target: name.to_owned(),
            kind: "test".to_owned(),
            source: format!("tests/{name}.rs"),
            folder: folder.to_owned(),
            path: "/bin/sh".into(),
        }
    }

    #[test]
    #[cfg(unix)]
    fn all_run_whatever_becomes_of_the_others() {
        let folder = std::env::temp_dir().join(format!("halite-xtask-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let text = "echo $1 $ANSWER; echo \"test a::$1 ... FAILED\" >&2; test $1 = good";
        let mut manner = Manner { jobs: 2, ..Manner::default() };
        manner.variables = vec![("ANSWER", Some("42".into())), ("HOME", None)];
        // The argument of the shell is the script.
        let one = |name: &str| {
            let binary = script(&folder, name, text);
            let mut manner = manner.clone();
            manner.args = vec![folder.join(name).display().to_string(), name.to_owned()];
            let (failure, told, _) = run_one(&binary, &manner).unwrap();
            (failure, told)
        };
        let (failure, told) = one("good");
        assert_eq!(failure, None);
        assert!(told.contains("Running tests/good.rs") && told.contains("good 42\n"), "{told}");
        let (failure, _) = one("bad");
        let failure = failure.unwrap();
        assert_eq!(failure.tests, ["a::bad"]);
        assert!(verdict(&[], &manner).is_ok());
        let told = verdict(&[failure], &manner).unwrap_err().to_string();
        assert!(told.contains("a::bad") && told.contains("ANSWER='42' cargo test -p p --test bad"), "{told}");
        let binaries = [script(&folder, "good", text), script(&folder, "bad", text)];
        manner.args = vec!["-c".to_owned(), "exit 3".to_owned()];
        let failures = run(&binaries.iter().collect::<Vec<_>>(), &manner).unwrap();
        let names: Vec<_> = failures.iter().map(|failure| failure.binary.target.as_str()).collect();
        assert_eq!(names, ["good", "bad"]);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_longest_come_first() {
        let folder = std::env::temp_dir();
        let [short, long] = ["short", "long"].map(|name| script(&folder, name, ""));
        let spent = |seconds| Spent { wall: Duration::from_secs(9), processor: Some(seconds) };
        let told = longest(vec![(&short, spent(1.5)), (&long, spent(20.0))]);
        let lines: Vec<_> = told.lines().skip(2).map(|l| l.split_whitespace().collect::<Vec<_>>()).collect();
        assert_eq!(lines[0], ["9.0", "20.0", "-p", "p", "--test", "long"], "{told}");
        assert_eq!(lines[1][5], "short");
    }

    #[test]
    fn failed_tests_are_named() {
        let text = "test a ... ok\ntest b::c ... FAILED\ntest d - should panic ... FAILED\n";
        assert_eq!(failed_tests(text), ["b::c", "d"]);
    }
}
