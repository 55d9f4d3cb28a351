//! Where the time of one call went: the call's phases on the host, and every command that its devices ran.

mod etdump;
mod trace;

use std::{sync::Arc, time::Duration};

use halite_hal as hal;

/// What kind of work a command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum WorkKind {
    /// A kernel.
    Dispatch,
    /// A pattern that is repeated.
    Fill,
    /// Bytes of the host that are written.
    Update,
    /// A copy.
    Copy,
}

impl WorkKind {
    /// As reports write it: `dispatch`, `copy`.
    pub fn name(self) -> &'static str {
        match self {
            WorkKind::Dispatch => "dispatch",
            WorkKind::Fill => "fill",
            WorkKind::Update => "update",
            WorkKind::Copy => "copy",
        }
    }
}

impl From<hal::WorkKind> for WorkKind {
    fn from(kind: hal::WorkKind) -> Self {
        match kind {
            hal::WorkKind::Dispatch => WorkKind::Dispatch,
            hal::WorkKind::Fill => WorkKind::Fill,
            hal::WorkKind::Update => WorkKind::Update,
            hal::WorkKind::Copy => WorkKind::Copy,
        }
    }
}

/// An operation of the model that a command computes, or a part of it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct OperationInfo {
    /// Where in the model it comes from, such as `Conv 'features.0'`; empty where that is not known.
    pub location: String,
    /// Name of the operation after the compiler's passes, such as `conv2d`.
    pub kind: String,
    /// The operation with its types and shapes, as text, possibly cut.
    pub text: String,
    /// Name of the kernel's variant that was chosen.
    pub variant: String,
    /// Least arithmetic operations of all its commands together; `None` where that is not known.
    pub flops: Option<f64>,
    /// Least bytes that all its commands together read and write.
    pub bytes: Option<f64>,
}

/// A command that a device ran. Times count from the begin of the device's first command.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CommandProfile {
    /// What kind of work it is.
    pub kind: WorkKind,
    /// Place of the device in [`Profile::devices`].
    pub device: usize,
    /// The device's queue.
    pub queue: u32,
    /// When it began.
    pub start: Duration,
    /// When it had ended.
    pub end: Duration,
    /// How much of that time no earlier command was still running: commands without a barrier between them overlap, and these
    /// times add up to [`DeviceTimes::busy`].
    pub own: Duration,
    /// Name of the kernel's entry point; empty for transfers.
    pub entry_point: String,
    /// Workgroups of a kernel, where the host knows them.
    pub workgroups: Option<[u32; 3]>,
    /// Bytes that a transfer writes; 0 for a kernel, and where they are not known.
    pub bytes: u64,
    /// What of the model it computes. `None` for modules of other compilers, and for bytes that only move.
    pub operation: Option<Arc<OperationInfo>>,
    /// Whether it is a part of the program; otherwise it moves inputs or results.
    pub is_of_program: bool,
}

/// The time of one device.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeviceTimes {
    /// URI of the device.
    pub uri: String,
    /// From the program's first command to the end of its last.
    pub span: Duration,
    /// How much of `span` some command of the program was running.
    pub busy: Duration,
    /// How long the device moved inputs and results; 0 where the host reaches its memory.
    pub transfers: Duration,
    /// Smallest time that the device's clock can tell.
    pub resolution: Duration,
    /// Commands that ran and were not measured.
    pub unmeasured: u64,
}

impl DeviceTimes {
    /// How much of `span` nothing of the program was running: barriers, launches, waits for the host.
    pub fn gaps(&self) -> Duration {
        self.span.saturating_sub(self.busy)
    }
}

/// Where the time of one call went, from host to host: copying inputs to the device, running, copying results back. From
/// [`Session::profile`](crate::Session::profile) or [`Function::profile`](crate::Function::profile).
///
/// ```no_run
/// # let session = halite::Session::builder().model("digits.onnx").build()?;
/// let inputs = session.default_function()?.zeros().expect("the model states all sizes");
/// session.prewarm(inputs.clone())?;
/// let (_, profile) = session.profile(inputs)?;
/// println!("{:?} in all, {:?} of it on the device", profile.total(), profile.devices()[0].busy);
/// for command in profile.commands() {
///     let what = command.operation.as_ref().map_or(&command.entry_point, |operation| &operation.location);
///     println!("{:>10?} {what}", command.own);
/// }
/// std::fs::write("trace.json", profile.to_trace()).expect("the folder can be written");
/// # Ok::<(), halite::Error>(())
/// ```
///
/// Devices tell the times by timestamps around each command. Taking them costs a little (about a microsecond a command on GPUs),
/// so a profiled call is slower than others; nothing is paid by calls that are not profiled. Whatever else runs on the same devices
/// meanwhile is in the profile, too.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    pub(crate) upload: Duration,
    pub(crate) launch: Duration,
    pub(crate) wait: Duration,
    pub(crate) download: Duration,
    pub(crate) uploaded_bytes: u64,
    pub(crate) downloaded_bytes: u64,
    pub(crate) devices: Vec<DeviceTimes>,
    pub(crate) commands: Vec<CommandProfile>,
}

impl Profile {
    /// The whole call by the host's clock: upload, run, download.
    pub fn total(&self) -> Duration {
        self.upload + self.run() + self.download
    }

    /// Copying inputs to the device, by the host's clock. Inputs that lie there already take none.
    pub fn upload(&self) -> Duration {
        self.upload
    }

    /// From the inputs on the device to the results on the device, by the host's clock: [`Profile::launch`], then waiting.
    pub fn run(&self) -> Duration {
        self.launch + self.wait
    }

    /// The host's part of it: running the program's host code and submitting its work. Devices that work on their callers'
    /// threads do all of the work in it.
    pub fn launch(&self) -> Duration {
        self.launch
    }

    /// Copying results to the host, by the host's clock.
    pub fn download(&self) -> Duration {
        self.download
    }

    /// Bytes of inputs that were copied.
    pub fn uploaded_bytes(&self) -> u64 {
        self.uploaded_bytes
    }

    /// Bytes of results that were copied.
    pub fn downloaded_bytes(&self) -> u64 {
        self.downloaded_bytes
    }

    /// How much of [`Profile::run`] no device was at work on the program: submitting, waking up, waiting for the host.
    pub fn host(&self) -> Duration {
        let span = self.devices.iter().map(|device| device.span).max().unwrap_or_default();
        self.run().saturating_sub(span)
    }

    /// The devices of the session.
    pub fn devices(&self) -> &[DeviceTimes] {
        &self.devices
    }

    /// What the devices ran, by device and begin.
    pub fn commands(&self) -> &[CommandProfile] {
        &self.commands
    }

    /// The call as a trace in the form of Chrome's trace events (JSON), which <https://ui.perfetto.dev> opens. Devices have clocks of
    /// their own: their last command is drawn where the host saw the results, so what lies before it may be a little too late.
    pub fn to_trace(&self) -> String {
        Profile::to_trace_of(std::slice::from_ref(self))
    }

    /// Several calls one after the other in one trace.
    pub fn to_trace_of(calls: &[Profile]) -> String {
        trace::events(calls).to_string()
    }

    /// Calls as an ETDump file, which ExecuTorch's `Inspector` reads: of each call the whole and its operations, in nanoseconds.
    /// Instructions of a `.pte` file's method keep their numbers; calls in delegates are events of their own, by their places.
    pub fn to_etdump_of(calls: &[Profile]) -> Vec<u8> {
        etdump::of(calls)
    }
}
