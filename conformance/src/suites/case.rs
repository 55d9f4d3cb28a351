//! What a case is, what it sees and how it ends.

use std::{fmt, sync::Arc, time::Duration};

use halite_hal::{Code, Deadline, Device, Result, Status};
use halite_testing::{Numbers, Wrong, drivers::Opener, hal::kernels::Kernels};

/// How a case ends: it holds, or it stops early.
pub type Outcome = std::result::Result<(), Stop>;

/// Why a case stopped early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The device lacks what the case is about.
    Skip(String),
    /// The device does not do what it should.
    Fail(String),
    /// It gives a result, which is wrong.
    Wrong(Box<Wrong>),
}

impl Stop {
    /// The same with words in front.
    fn after(self, head: &str) -> Self {
        match self {
            Stop::Skip(reason) => Stop::Skip(reason),
            Stop::Fail(what) => Stop::Fail(format!("{head}: {what}")),
            Stop::Wrong(wrong) => {
                Stop::Wrong(Box::new(Wrong { what: format!("{head}: {}", wrong.what), ..*wrong }))
            }
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Skip(text) | Stop::Fail(text) => f.write_str(text),
            Stop::Wrong(wrong) => f.write_str(&wrong.what),
        }
    }
}

impl From<Box<Wrong>> for Stop {
    fn from(wrong: Box<Wrong>) -> Self {
        Stop::Wrong(wrong)
    }
}

impl From<Status> for Stop {
    /// An error where none should be.
    fn from(status: Status) -> Self {
        Stop::Fail(format!("unexpected error: {status}"))
    }
}

impl From<std::io::Error> for Stop {
    fn from(e: std::io::Error) -> Self {
        Stop::Fail(format!("the test's own file: {e}"))
    }
}

/// Stops the case unless the condition holds.
macro_rules! check {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::suites::Stop::Fail(format!($($message)+)));
        }
    };
}
pub(crate) use check;

/// Stops the case unless two values are equal.
pub(crate) fn same<T: PartialEq + fmt::Debug>(what: &str, found: T, wanted: T) -> Outcome {
    if found == wanted {
        return Ok(());
    }
    let (expected, got) = (format!("{wanted:?}"), format!("{found:?}"));
    let what_is = format!("{what} is {got}, it should be {expected}");
    let numbers = Numbers {
        output: what.to_owned(),
        shape: String::new(),
        index: Vec::new(),
        expected,
        got,
        ulp: None,
        tolerance: String::new(),
        wrong: 1,
        of: 1,
    };
    Err(Stop::Wrong(Box::new(Wrong { what: what_is, numbers: Some(numbers) })))
}

/// Stops the case unless the bytes are equal; names the first that is not.
pub(crate) fn same_bytes(what: &str, found: &[u8], wanted: &[u8]) -> Outcome {
    if found == wanted {
        return Ok(());
    }
    same(&format!("length of {what}"), found.len(), wanted.len())?;
    match found.iter().zip(wanted).position(|(a, b)| a != b) {
        None => Ok(()),
        Some(at) => {
            let (expected, got) = (format!("{:#04x}", wanted[at]), format!("{:#04x}", found[at]));
            let (wrong, of) = (found.iter().zip(wanted).filter(|(a, b)| a != b).count(), found.len());
            let told =
                format!("{what}: byte {at} of {of} is {got}, it should be {expected}; {wrong} bytes differ");
            let numbers = Numbers {
                output: what.to_owned(),
                shape: format!("{of}xbyte"),
                index: vec![at as u64],
                expected,
                got,
                ulp: None,
                tolerance: String::new(),
                wrong: wrong as u64,
                of: of as u64,
            };
            Err(Stop::Wrong(Box::new(Wrong { what: told, numbers: Some(numbers) })))
        }
    }
}

/// Stops the case unless the result is an error with one of these codes. Returns the error.
pub(crate) fn refused<T>(what: &str, result: Result<T>, codes: &[Code]) -> std::result::Result<Status, Stop> {
    match result {
        Ok(_) => Err(Stop::Fail(format!("{what} was accepted, it should be refused with {codes:?}"))),
        Err(status) if codes.contains(&status.code()) => Ok(status),
        Err(status) => {
            Err(Stop::Fail(format!("{what} was refused with {status}; the code should be {codes:?}")))
        }
    }
}

/// What a case needs beyond memory and queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A format for which the suite has an executable, which may do nothing.
    Executables,
    /// A format for which the suite has kernels that compute.
    Kernels,
    /// Kernels with specialization constants.
    Specialization,
    /// The validation layer above the driver.
    Validation,
    /// More than one queue.
    Queues,
}

impl Need {
    fn is_of_executables(self) -> bool {
        matches!(self, Need::Executables | Need::Kernels | Need::Specialization)
    }
}

/// A function that every device with what it needs should pass.
#[derive(Clone)]
pub struct Case {
    /// `suite.area.case:parameter=value;…`.
    pub name: String,
    /// What it needs.
    pub needs: &'static [Need],
    /// What it is about beyond its name, such as the type or the feature that a device must have. Reports count by them.
    pub tags: Vec<&'static str>,
    body: Arc<dyn Fn(&Context) -> Outcome + Send + Sync>,
}

impl Case {
    /// Runs it on this thread; if it is about executables, once for each of the suite's formats that the device takes. It
    /// is skipped when it is for all of them.
    pub fn run(&self, context: &Context) -> Outcome {
        if !self.needs.iter().any(|need| need.is_of_executables()) || context.kernels.len() < 2 {
            return self.run_once(context);
        }
        let mut skipped = Ok(());
        let mut ran = false;
        for index in 0..context.kernels.len() {
            match self.run_once(&Context { selected: index, ..context.clone() }) {
                Ok(()) => ran = true,
                Err(Stop::Skip(reason)) => skipped = Err(Stop::Skip(reason)),
                Err(stop) => return Err(stop.after(&format!("as {}", context.kernels[index].format()))),
            }
        }
        if ran { Ok(()) } else { skipped }
    }

    fn run_once(&self, context: &Context) -> Outcome {
        self.needs.iter().try_for_each(|need| context.check_need(*need))?;
        (self.body)(context)
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case").field("name", &self.name).field("needs", &self.needs).finish_non_exhaustive()
    }
}

/// A list of cases while it is made.
#[derive(Debug)]
pub struct Cases {
    suite: &'static str,
    list: Vec<Case>,
}

impl Cases {
    /// No cases of this suite.
    pub fn new(suite: &'static str) -> Self {
        Cases { suite, list: Vec::new() }
    }

    /// Adds a case; `name` is `area.case` or `area.case:parameter=value;…`.
    pub fn add(
        &mut self,
        name: impl fmt::Display,
        needs: &'static [Need],
        body: impl Fn(&Context) -> Outcome + Send + Sync + 'static,
    ) {
        self.add_tagged(name, needs, Vec::new(), body);
    }

    /// Adds a case with tags.
    pub fn add_tagged(
        &mut self,
        name: impl fmt::Display,
        needs: &'static [Need],
        tags: Vec<&'static str>,
        body: impl Fn(&Context) -> Outcome + Send + Sync + 'static,
    ) {
        self.list.push(Case { name: format!("{}.{name}", self.suite), needs, tags, body: Arc::new(body) });
    }

    /// The cases in the order they were added.
    pub fn finish(self) -> Vec<Case> {
        self.list
    }
}

/// What cases run on: one device that they share, and a way to open more.
#[derive(Clone)]
pub struct Context {
    device: Arc<dyn Device>,
    opener: Opener,
    kernels: Arc<[Kernels]>,
    selected: usize,
    limit: Duration,
}

impl Context {
    /// Opens a device for cases to share, each of which may take this long.
    pub fn new(opener: &Opener, limit: Duration) -> Result<Self> {
        let device = opener()?;
        let kernels = Kernels::for_device(device.as_ref())?.into();
        Ok(Context { device, opener: opener.clone(), kernels, selected: 0, limit })
    }

    /// The shared device.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// When waits for long work should give up: before the case is given up, so that the driver can say what it waited for.
    pub fn deadline(&self) -> Deadline {
        Deadline::after(self.limit - self.limit / 8)
    }

    /// A device of the case's own.
    pub fn open(&self) -> Result<Arc<dyn Device>> {
        (self.opener)()
    }

    /// The suite's executables in one of the device's formats. Cases that call this need [`Need::Executables`].
    pub fn kernels(&self) -> std::result::Result<&Kernels, Stop> {
        self.kernels.get(self.selected).ok_or_else(|| {
            let formats = self.device.info().executable_formats.join(", ");
            let formats = if formats.is_empty() { "none" } else { formats.as_str() };
            Stop::Skip(format!("the suite has no executable for this device, whose formats are: {formats}"))
        })
    }

    fn check_need(&self, need: Need) -> Outcome {
        let skip = |reason: &str| Err(Stop::Skip(reason.to_owned()));
        match need {
            Need::Executables => self.kernels().map(drop),
            Need::Kernels if !self.kernels()?.compute() => skip("the device executes no device code"),
            Need::Specialization if !self.kernels()?.specialize() => {
                skip("the suite's kernels in this format have no specialization constants")
            }
            Need::Validation if !self.device.is_validated() => skip("no validation layer above the driver"),
            Need::Queues if self.device.queue_count() < 2 => skip("the device has one queue"),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("device", &self.device).finish_non_exhaustive()
    }
}
