//! A process that runs cases for this one: starting it, asking it, and what its end says.

use std::{
    collections::VecDeque,
    ffi::OsString,
    io::{BufRead as _, BufReader, Read, Write as _},
    path::PathBuf,
    process::{Child as Process, ChildStdin, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use super::protocol::Said;
use crate::suites::{Report, Verdict};

/// Lines of a process that are kept to explain its end.
const TAIL: usize = 12;
/// How much longer than a case's limit a process may be silent: it tells of a hang by itself, if it can.
const GRACE: Duration = Duration::from_secs(10);
/// Longest time that a process may take to open the device and list its cases.
const START: Duration = Duration::from_secs(180);

/// How processes are started.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The program.
    pub program: PathBuf,
    /// What makes it run cases.
    pub arguments: Vec<OsString>,
    /// Longest time that a case may take.
    pub limit: Duration,
}

/// What came instead of a report.
enum Silence {
    /// It did not answer in time.
    Late,
    /// It ended.
    Gone,
}

/// A running process.
struct Child {
    process: Process,
    input: Option<ChildStdin>,
    said: mpsc::Receiver<Said>,
    tail: Arc<Mutex<VecDeque<String>>>,
}

impl Child {
    fn start(recipe: &Recipe) -> Result<Child, String> {
        let mut command = Command::new(&recipe.program);
        command.args(&recipe.arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process =
            command.spawn().map_err(|e| format!("{} does not start: {e}", recipe.program.display()))?;
        let (sender, said) = mpsc::channel();
        let tail = Arc::new(Mutex::new(VecDeque::new()));
        let outputs: [Option<Box<dyn Read + Send>>; 2] = [
            process.stdout.take().map(|stream| Box::new(stream) as _),
            process.stderr.take().map(|stream| Box::new(stream) as _),
        ];
        for stream in outputs.into_iter().flatten() {
            let (sender, tail) = (sender.clone(), tail.clone());
            thread::spawn(move || listen(stream, &sender, &tail));
        }
        let input = process.stdin.take();
        let mut child = Child { process, input, said, tail };
        match child.hear(START) {
            Ok(Said::Ready) => Ok(child),
            Ok(Said::Unable(why)) => Err(why),
            Ok(Said::Ended(_)) => Err("the process gave a result before it was asked".to_owned()),
            Err(Silence::Late) => Err(format!("the device did not open within {START:?}")),
            Err(Silence::Gone) => Err(format!("opening the device ended the process: {}", child.end())),
        }
    }

    fn hear(&self, limit: Duration) -> Result<Said, Silence> {
        self.said.recv_timeout(limit).map_err(|e| match e {
            mpsc::RecvTimeoutError::Timeout => Silence::Late,
            mpsc::RecvTimeoutError::Disconnected => Silence::Gone,
        })
    }

    /// Runs a case; silence for longer than `limit` is none of its answers.
    fn ask(&mut self, case: &str, limit: Duration) -> Result<Report, Silence> {
        let input = self.input.as_mut().ok_or(Silence::Gone)?;
        input
            .write_all(format!("{case}\n").as_bytes())
            .and_then(|()| input.flush())
            .map_err(|_| Silence::Gone)?;
        match self.hear(limit)? {
            Said::Ended(report) => Ok(report),
            Said::Ready | Said::Unable(_) => Err(Silence::Gone),
        }
    }

    /// How it ended, and its last words.
    fn end(&mut self) -> String {
        self.input = None;
        // Its output has ended; what is left of it is not waited for longer than a kill takes.
        _ = self.process.kill();
        let how = self.process.wait().map_or_else(|e| format!("it cannot be waited for: {e}"), told);
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let words: Vec<&str> = tail.iter().map(String::as_str).collect();
        if words.is_empty() { how } else { format!("{how}; its last words: {}", words.join(" | ")) }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // An error means that it is gone already.
        self.input = None;
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

fn listen(stream: impl Read, sender: &mpsc::Sender<Said>, tail: &Mutex<VecDeque<String>>) {
    for line in BufReader::new(stream).split(b'\n') {
        let Ok(line) = line else { return };
        let line = String::from_utf8_lossy(&line);
        match Said::parse(line.trim_end()) {
            // Nobody listens any more when the run is over.
            Some(said) => drop(sender.send(said)),
            None => {
                let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
                if tail.len() == TAIL {
                    tail.pop_front();
                }
                tail.push_back(line.trim_end().to_owned());
            }
        }
    }
}

fn told(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        let name = match signal {
            4 => " (illegal instruction)",
            6 => " (abort)",
            7 => " (bus error)",
            8 => " (arithmetic exception)",
            9 => " (killed, perhaps for lack of memory)",
            11 => " (invalid memory access)",
            _ => "",
        };
        return format!("signal {signal}{name}");
    }
    status.to_string()
}

/// Runs cases in a process of their own: one process for all of them until one kills it, or one for each.
pub struct Caller {
    recipe: Recipe,
    alone: bool,
    child: Option<Child>,
    /// Why no process could be started, so often in a row.
    refusals: (u32, String),
    /// Cases that the process at hand has run.
    served: u64,
    grace: Duration,
}

impl Caller {
    /// With `alone`, every case gets a process of its own.
    pub fn new(recipe: Recipe, alone: bool) -> Self {
        Caller { recipe, alone, child: None, refusals: (0, String::new()), served: 0, grace: GRACE }
    }

    /// Runs a case. When its process dies the case is run once more alone, and the report says whether that kills it too.
    pub fn run(&mut self, case: &str) -> Report {
        let start = Instant::now();
        let verdict = match self.attempt(case) {
            Ok(report) => {
                // Its thread still runs: the next case gets a process without it.
                let hangs = matches!(report.verdict, Verdict::Timeout(_));
                if self.alone || hangs {
                    self.child = None;
                }
                return report;
            }
            Err(verdict) => verdict,
        };
        Report { case: case.to_owned(), verdict, time: start.elapsed() }
    }

    fn attempt(&mut self, case: &str) -> Result<Report, Verdict> {
        let mut child = self.ready().map_err(|why| Verdict::Fail(format!("no device to run on: {why}")))?;
        let before = self.served;
        match child.ask(case, self.recipe.limit + self.grace) {
            Ok(report) => {
                self.served += 1;
                self.child = Some(child);
                Ok(report)
            }
            Err(Silence::Late) => {
                let silent = self.recipe.limit + self.grace;
                Err(Verdict::Timeout(format!("the process did not answer for {silent:?} and was ended")))
            }
            Err(Silence::Gone) => {
                let how = child.end();
                let again = if before == 0 { String::new() } else { self.again(case, before) };
                Err(Verdict::Crash(format!("the process died: {how}{again}")))
            }
        }
    }

    /// Runs a case alone that died with others before it; what to add to its report.
    fn again(&mut self, case: &str, before: u64) -> String {
        self.served = 0;
        let Ok(mut child) = Child::start(&self.recipe) else { return String::new() };
        match child.ask(case, self.recipe.limit + self.grace) {
            Ok(report) => {
                let how = report.verdict.name();
                self.served = 1;
                self.child = Some(child);
                format!("; that was after {before} other cases, and alone it ends with: {how}")
            }
            Err(Silence::Late) => "; alone it does not end".to_owned(),
            Err(Silence::Gone) => format!("; alone it dies as well: {}", child.end()),
        }
    }

    fn ready(&mut self) -> Result<Child, String> {
        /// After so many refusals in a row the device is given up.
        const PATIENCE: u32 = 3;
        if let Some(child) = self.child.take() {
            return Ok(child);
        }
        if self.refusals.0 >= PATIENCE {
            return Err(self.refusals.1.clone());
        }
        self.served = 0;
        match Child::start(&self.recipe) {
            Ok(child) => {
                self.refusals.0 = 0;
                Ok(child)
            }
            Err(why) => {
                self.refusals = (self.refusals.0 + 1, why.clone());
                Err(why)
            }
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// A process that answers as `script` says, with a shell's `say CASE VERDICT` for results.
    fn caller(script: &str, alone: bool) -> Caller {
        let head = r#"
            say() { printf '@halite-conformance {"ended":{"case":"%s","verdict":"%s","seconds":0.5}}\n' "$1" "$2"; }
            echo '@halite-conformance "ready"'
            while read -r name; do
        "#;
        let arguments = vec!["-c".into(), format!("{head}\n{script}\ndone").into()];
        Caller::new(Recipe { program: "/bin/sh".into(), arguments, limit: Duration::from_secs(20) }, alone)
    }

    #[test]
    fn a_case_that_kills_its_process_is_a_crash_and_the_next_one_runs() {
        let script = r#"echo noise; case $name in *bad*) echo last words >&2; kill -SEGV $$;; *) say "$name" pass;; esac"#;
        let mut caller = caller(script, false);
        assert_eq!(caller.run("a.b.first").verdict, Verdict::Pass);
        let Verdict::Crash(told) = caller.run("a.b.bad").verdict else { panic!("it must crash") };
        assert!(told.contains("signal 11") && told.contains("last words"), "{told}");
        assert!(told.contains("alone it dies as well"), "{told}");
        assert_eq!(caller.run("a.b.last").verdict, Verdict::Pass);
    }

    #[test]
    fn a_crash_that_needs_the_cases_before_it_says_so() {
        let script =
            r#"case $name in *bad*) [ -n "$seen" ] && kill -ABRT $$;; esac; seen=1; say "$name" pass"#;
        let mut caller = caller(script, false);
        assert_eq!(caller.run("a.b.first").verdict, Verdict::Pass);
        let Verdict::Crash(told) = caller.run("a.b.bad").verdict else { panic!("it must crash") };
        assert!(told.contains("after 1 other cases, and alone it ends with: pass"), "{told}");
    }

    #[test]
    fn every_case_may_have_its_own_process() {
        let script = r#"if [ -n "$seen" ]; then exit 3; fi; seen=1; say "$name" pass"#;
        let mut caller = caller(script, true);
        for name in ["a.b.c", "a.b.d", "a.b.e"] {
            assert_eq!(caller.run(name).verdict, Verdict::Pass);
        }
    }

    #[test]
    fn a_device_that_does_not_open_fails_cases_with_its_reason() {
        let arguments = vec!["-c".into(), r#"echo '@halite-conformance {"unable":"no such device"}'"#.into()];
        let recipe = Recipe { program: "/bin/sh".into(), arguments, limit: Duration::from_secs(20) };
        let mut caller = Caller::new(recipe, false);
        for _ in 0..5 {
            let Verdict::Fail(told) = caller.run("a.b.c").verdict else { panic!("it cannot run") };
            assert_eq!(told, "no device to run on: no such device");
        }
    }

    #[test]
    fn silence_ends_a_process() {
        let mut caller = caller("while :; do :; done", false);
        caller.recipe.limit = Duration::ZERO;
        caller.grace = Duration::from_millis(300);
        assert!(matches!(caller.run("a.b.c").verdict, Verdict::Timeout(_)));
    }
}
