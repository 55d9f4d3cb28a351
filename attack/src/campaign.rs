//! Thousands of hostile files, each read in a process that may end or hang on it, and what is told of them.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::{
    journal::{Ended, Journal},
    measure,
    worker::{self, Answer, End},
};

/// Files that a process reads before a new one takes its place: what it keeps would hide what a file costs.
const FILES: usize = 100;
/// How long a process may wait for nothing that is told here before it counts as hanging. Time that it waits for a processor, or that
/// it uses one, is not that: how busy the machine is decides nothing.
const IDLE: Duration = Duration::from_secs(60);
/// How often a process is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Bytes of the words of a process that are kept.
const WORDS: usize = 600;

/// The bounds that every file has to keep.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Processor time.
    pub time: Duration,
    /// Bytes of memory.
    pub memory: u64,
}

/// How files are read.
#[derive(Clone, Debug)]
pub struct How {
    /// The checkout.
    pub root: PathBuf,
    /// The device, if programs are run.
    pub device: Option<String>,
    /// Processes at a time.
    pub jobs: usize,
    /// What each file has to keep to.
    pub bounds: Bounds,
}

/// What is told of the files of a kind.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Tally {
    /// Files that were read.
    pub files: usize,
    /// Those that were taken.
    pub taken: usize,
    /// Those that were refused because of what they cost.
    pub over_budget: usize,
    /// Most milliseconds of processor time.
    pub most_milliseconds: u64,
    /// Most bytes of memory.
    pub most_memory: u64,
}

/// A file that was not taken as it should be.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The kind and the seed, or the path.
    pub file: String,
    /// What happened.
    pub what: String,
}

/// All that is told.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// By kinds.
    pub kinds: BTreeMap<String, Tally>,
    /// Faults.
    pub findings: Vec<Finding>,
}

/// Reads all files but those that a journal tells of.
pub fn run(files: &[String], how: &How, journal: Option<&Journal>) -> Result<Report> {
    let (next, report) = (AtomicUsize::new(0), Mutex::new(Report::default()));
    thread::scope(|scope| {
        let work = || -> Result<()> {
            let mut process: Option<Process> = None;
            while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                let add = |ended: &Ended| {
                    report.lock().expect("no other thread panicked").add(file, ended, &how.bounds);
                };
                if let Some(told) = journal.and_then(|journal| journal.told(file)) {
                    add(told);
                    continue;
                }
                let mut ended = ask(&mut process, file, how)?;
                if fault(&ended, &how.bounds).is_some() {
                    // It counts if it does the same to a process of its own.
                    process = None;
                    ended = ask(&mut process, file, how)?;
                    process = None;
                }
                journal.map_or(Ok(()), |journal| journal.tell(file, &ended))?;
                add(&ended);
            }
            Ok(())
        };
        let threads: Vec<_> = (0..how.jobs.max(1)).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("it does not panic"))
    })?;
    Ok(report.into_inner().expect("no thread panicked"))
}

fn fault(ended: &Ended, bounds: &Bounds) -> Option<String> {
    let answer = match ended {
        Err(how) => return Some(how.clone()),
        Ok(answer) => answer,
    };
    if answer.end == End::Panicked {
        return Some(format!("panicked: {}", answer.text));
    }
    if u128::from(answer.milliseconds) > bounds.time.as_millis() {
        return Some(format!("took {} ms; {}", answer.milliseconds, answer.text));
    }
    (answer.memory > bounds.memory).then(|| format!("took {} MiB; {}", answer.memory >> 20, answer.text))
}

impl Report {
    fn add(&mut self, file: &str, ended: &Ended, bounds: &Bounds) {
        let kind = file.split(' ').next().filter(|_| file.contains(' ')).unwrap_or("files");
        let tally = self.kinds.entry(kind.to_owned()).or_default();
        tally.files += 1;
        if let Ok(answer) = ended {
            tally.taken += usize::from(answer.end == End::Taken);
            let over =
                ["so far there are", "unpack to more than"].iter().any(|text| answer.text.contains(text));
            tally.over_budget += usize::from(over);
            tally.most_milliseconds = tally.most_milliseconds.max(answer.milliseconds);
            tally.most_memory = tally.most_memory.max(answer.memory);
        }
        if let Some(what) = fault(ended, bounds) {
            eprintln!("FOUND: {file}: {what}");
            self.findings.push(Finding { file: file.to_owned(), what });
        }
    }
}

/// A worker, and its answers.
struct Process {
    child: Child,
    to: ChildStdin,
    answers: mpsc::Receiver<Answer>,
    words: mpsc::Receiver<String>,
    left: usize,
}

impl Drop for Process {
    fn drop(&mut self) {
        // It is ours, and may hang; one that has ended cannot be killed any more, which is no matter.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

impl Process {
    fn start(how: &How) -> Result<Process> {
        let mut command = Command::new(std::env::current_exe().context("finding this program")?);
        command.arg("--root").arg(&how.root).arg("work");
        if let Some(device) = &how.device {
            command.arg(format!("--device={device}"));
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("starting a process")?;
        let to = child.stdin.take().context("its input")?;
        let (out, error) =
            (child.stdout.take().context("its output")?, child.stderr.take().context("its words")?);
        let (send, answers) = mpsc::channel();
        thread::spawn(move || {
            let lines = BufReader::new(out).lines().map_while(Result::ok);
            let parsed = lines.filter_map(|line| serde_json::from_str(&line).ok());
            parsed.take_while(|answer: &Answer| send.send(answer.clone()).is_ok()).for_each(drop);
        });
        let (send, words) = mpsc::channel();
        thread::spawn(move || {
            let lines = BufReader::new(error).lines().map_while(Result::ok);
            lines.take_while(|line| send.send(line.clone()).is_ok()).for_each(drop);
        });
        Ok(Process { child, to, answers, words, left: FILES })
    }

    /// What it said on standard error since it was asked last.
    fn words(&self) -> String {
        // They come through another pipe than the answers do.
        let lines = std::iter::from_fn(|| self.words.recv_timeout(Duration::from_millis(10)).ok());
        let mut text: String = lines.collect::<Vec<_>>().join(" | ");
        text.truncate(text.floor_char_boundary(WORDS));
        text
    }
}

/// Processor time after which a file will not end any more: some times what it may take, and what functions that run may take on all
/// cores. What a device on the processor does as a program is loaded is not counted, as the library's own deadline ends it.
fn most_time(how: &How) -> Duration {
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    (how.bounds.time + how.device.as_ref().map_or(Duration::ZERO, |_| worker::RUN * cores)) * 4
}

/// Processor time of a process without that of threads that are a device.
fn host_time(process: u32) -> Duration {
    measure::processor_time(Some(process)).saturating_sub(measure::device_time(Some(process)))
}

/// Has a process read a file, and starts one where there is none.
fn ask(process: &mut Option<Process>, file: &str, how: &How) -> Result<Ended> {
    if process.as_ref().is_none_or(|process| process.left == 0) {
        *process = Some(Process::start(how)?);
    }
    let running = process.as_mut().expect("it was started");
    running.left -= 1;
    running.words.try_iter().for_each(drop);
    // One that has ended says so below.
    _ = writeln!(running.to, "{file}");
    let (mut idle, most) = (Duration::ZERO, most_time(how));
    let before = host_time(running.child.id());
    loop {
        match running.answers.recv_timeout(LOOK) {
            Ok(mut answer) => {
                if answer.end == End::Panicked {
                    answer.text = running.words();
                }
                return Ok(Ok(answer));
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let used = host_time(running.child.id()).saturating_sub(before);
                idle =
                    if measure::wants_processor(running.child.id()) { Duration::ZERO } else { idle + LOOK };
                if used > most || idle > IDLE {
                    *process = None;
                    let way = if idle > IDLE { "it waits for something, after" } else { "did not end:" };
                    return Ok(Err(format!("{way} {} ms of processor time", used.as_millis())));
                }
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let ended = running.child.wait().context("waiting for a process")?;
                let words = running.words();
                *process = None;
                return Ok(Err(format!("the process ended: {ended}: {words}")));
            }
        }
    }
}
