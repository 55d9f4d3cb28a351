//! What ends a run early: Ctrl-C and `--timeout`.

use std::{
    fmt::Display,
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use halite::{Cache, CancelToken, RunOptions};

use crate::{console, progress};

/// Exit code of a run that Ctrl-C ended, as shells report the signal.
pub(crate) const INTERRUPTED: u8 = 130;
/// How long a run may take to end by itself after its time is up: the device finishes what it has begun.
const GRACE: Duration = Duration::from_secs(2);
/// How long a run may take to end after Ctrl-C or SIGTERM. What the device has begun is not waited for: it ends with the process.
const INTERRUPT_GRACE: Duration = Duration::from_millis(90);

/// Whether Ctrl-C was pressed.
static PRESSED: AtomicBool = AtomicBool::new(false);
/// Why the work ended, for whoever has to end the process before that could be reported.
static REASON: Mutex<Option<String>> = Mutex::new(None);

/// Files that are no use unless they are finished.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Whether Ctrl-C was pressed in this run.
pub(crate) fn interrupted() -> bool {
    PRESSED.load(Ordering::Relaxed)
}

/// Keeps the failure that ended the work: dropping what it used may take longer than the process has left.
pub(crate) fn note(failure: &impl Display) {
    if let Ok(mut reason) = REASON.lock() {
        reason.get_or_insert_with(|| failure.to_string());
    }
}

/// A file that is taken away if the process has to end before this is dropped.
pub(crate) struct Unfinished(PathBuf);

impl Unfinished {
    pub(crate) fn begin(path: &Path) -> Self {
        if let Ok(mut unfinished) = UNFINISHED.lock() {
            unfinished.push(path.to_owned());
        }
        Unfinished(path.to_owned())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Ok(mut unfinished) = UNFINISHED.lock() {
            unfinished.retain(|path| *path != self.0);
        }
    }
}

/// Ends the process while its threads are at work. What they write is taken away: in caches, too. Nothing that drivers have
/// registered for the end runs: it would take away what their threads use, which has ended processes with SIGSEGV.
pub(crate) fn leave(code: u8) -> ! {
    let unfinished = UNFINISHED.lock().map(|mut paths| std::mem::take(&mut *paths)).unwrap_or_default();
    // Nobody else can say more about it either.
    unfinished.iter().for_each(|path| _ = std::fs::remove_file(path));
    Cache::abandon_unfinished();
    #[cfg(target_os = "linux")]
    hurry();
    #[cfg(unix)]
    signal_hook::low_level::exit(code.into());
    #[cfg(not(unix))]
    std::process::exit(code.into());
}

/// Gives all threads the priority of this one. The last of them to end gives the memory of the process back, and drivers have threads
/// of the lowest priority (Mesa's write its shader cache): beside busy processes that took seconds. Not everybody may do so.
#[cfg(target_os = "linux")]
fn hurry() {
    use rustix::process::{Pid, getpriority_process, setpriority_process};

    let Ok(own) = getpriority_process(None) else { return };
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let ids = threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok());
    for id in ids.filter_map(Pid::from_raw) {
        if let Err(error) = setpriority_process(Some(id), own) {
            log::debug!("a thread may end late, its priority stays as it is: {error}");
        }
    }
}

/// Says why the work ended, then ends the process.
fn end(otherwise: &str, device: &str, code: u8) -> ! {
    let reason = REASON.lock().ok().and_then(|mut reason| reason.take());
    let text = reason.unwrap_or_else(|| otherwise.to_owned());
    tell(&format!("{}: error: {text}; {device}", console::name()));
    leave(code)
}

/// Writes a line to standard error, unless that would wait: it may be a pipe that nobody reads.
pub(crate) fn tell(line: &str) {
    #[cfg(unix)]
    {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};

        let stderr = std::io::stderr();
        let now = Timespec::default();
        // What cannot be asked is written to.
        if poll(&mut [PollFd::new(&stderr, PollFlags::OUT)], Some(&now)) == Ok(0) {
            return;
        }
    }
    progress::clear();
    eprintln!("{line}");
}

/// A switch that the first Ctrl-C throws; the second one ends the process at once. So does a device that takes too long
/// to finish what it has begun.
pub(crate) fn cancel_on_interrupt() -> CancelToken {
    cancel_unless(|| false)
}

/// The same, unless `instead` says that it did something else about the first Ctrl-C.
pub(crate) fn cancel_unless(instead: impl Fn() -> bool + Send + 'static) -> CancelToken {
    let token = CancelToken::new();
    let switch = token.clone();
    let mut before = false;
    let installed = ctrlc::set_handler(move || {
        if std::mem::replace(&mut before, true) {
            leave(INTERRUPTED);
        }
        if instead() {
            return;
        }
        PRESSED.store(true, Ordering::Relaxed);
        tell("interrupted; stopping (again to end at once)");
        switch.cancel();
        std::thread::spawn(end_soon);
    });
    if let Err(error) = installed {
        log::warn!("Ctrl-C will end the process without cleaning up: {error}");
    }
    token
}

/// Ends the process unless it has ended by itself by then.
fn end_soon() {
    let until = Instant::now() + INTERRUPT_GRACE;
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        std::thread::park_timeout(left);
    }
    let text = format!("CANCELLED; interrupted{}", progress::stage());
    let device = format!("what was begun did not end within {INTERRUPT_GRACE:?}, ended without it");
    end(&text, &device, INTERRUPTED)
}

/// Ends the process when a run outlives its time by more than it should: loading, initializers and drivers can hang
/// where no deadline is looked at. Does nothing once dropped.
pub(crate) struct Watchdog {
    done: Arc<(Mutex<bool>, Condvar)>,
    deadline: Option<Instant>,
}

impl Watchdog {
    /// Watches from now on; without a limit there is nothing to watch.
    pub(crate) fn start(limit: Option<Duration>) -> Self {
        let done = Arc::new((Mutex::new(false), Condvar::new()));
        let Some(limit) = limit else { return Watchdog { done, deadline: None } };
        let (watched, hard) = (done.clone(), Instant::now().checked_add(limit.saturating_add(GRACE)));
        std::thread::spawn(move || {
            let (finished, signal) = &*watched;
            let Ok(mut guard) = finished.lock() else { return };
            while !*guard {
                let left = hard.map(|t| t.saturating_duration_since(Instant::now()));
                let Some(left) = left else { return };
                if left.is_zero() {
                    let device = format!("not finished after {limit:?} (--timeout)");
                    end(&format!("DEADLINE_EXCEEDED{}", progress::stage()), &device, 1)
                }
                guard = match signal.wait_timeout(guard, left) {
                    Ok((guard, _)) => guard,
                    Err(_) => return,
                };
            }
        });
        Watchdog { done, deadline: Instant::now().checked_add(limit) }
    }

    /// The options of work that should give up by itself: when it is time, or when the token is set.
    pub(crate) fn options(&self, cancel: &CancelToken) -> RunOptions {
        let options = RunOptions::new().cancel(cancel);
        match self.deadline {
            Some(deadline) => options.deadline(deadline),
            None => options,
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        let (finished, signal) = &*self.done;
        if let Ok(mut finished) = finished.lock() {
            *finished = true;
        }
        signal.notify_all();
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::mpsc;

    use rustix::process::{Pid, getpriority_process, setpriority_process};

    use super::*;

    /// The number of the calling thread.
    fn own_thread() -> Option<Pid> {
        let link = std::fs::read_link("/proc/thread-self").ok()?;
        Pid::from_raw(link.file_name()?.to_str()?.parse().ok()?)
    }

    #[test]
    fn threads_of_the_lowest_priority_end_as_soon_as_others() {
        let (tell, told) = mpsc::channel();
        let (stop, stopped) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let id = own_thread().unwrap();
            setpriority_process(Some(id), 19).unwrap();
            tell.send(id).unwrap();
            // It ends when the test is done with it.
            let _ = stopped.recv();
        });
        let id = told.recv().unwrap();
        hurry();
        match (getpriority_process(Some(id)).unwrap(), getpriority_process(None).unwrap()) {
            (19, own) if own != 19 => eprintln!("SKIPPED: this user may not raise priorities"),
            (found, own) => assert_eq!(found, own),
        }
        drop(stop);
        thread.join().unwrap();
    }
}
