//! The progress line on a terminal.

use std::{
    io::{IsTerminal, Write},
    sync::Mutex,
    time::{Duration, Instant},
};

use halite::{Progress, RunOptions};

use crate::{console, logger};

/// Work that takes less is not worth a line.
const PATIENCE: Duration = Duration::from_millis(300);
/// Time between two changes of the line.
const PAUSE: Duration = Duration::from_millis(50);

/// The line, while something is on it: when it was written last.
static LINE: Mutex<Option<Instant>> = Mutex::new(None);

/// What is being done, for whoever has to end it.
static STAGE: Mutex<String> = Mutex::new(String::new());

/// Options that also tell how far work is: what is being done is remembered, and shown where somebody looks at standard error and
/// wants to hear of it.
pub(crate) fn shown(options: RunOptions) -> RunOptions {
    let is_seen = !logger::is_quiet() && std::io::stderr().is_terminal();
    let began = Instant::now();
    options.progress(move |progress| {
        if let Ok(mut stage) = STAGE.lock()
            && *stage != progress.detail
        {
            progress.detail.clone_into(&mut stage);
        }
        if is_seen && began.elapsed() >= PATIENCE {
            show(&progress);
        }
    })
}

/// What was done last, as ` while reading the model`; empty before anything was.
pub(crate) fn stage() -> String {
    let stage = STAGE.lock().map(|stage| stage.clone()).unwrap_or_default();
    if stage.is_empty() { stage } else { format!(" while {stage}") }
}

/// Goes on to something that reports no progress, such as writing results. Takes the line away.
pub(crate) fn go_on(what: &str) {
    clear();
    if let Ok(mut stage) = STAGE.lock() {
        what.clone_into(&mut stage);
    }
}

fn show(progress: &Progress<'_>) {
    let Ok(mut line) = LINE.lock() else { return };
    if line.is_some_and(|written| written.elapsed() < PAUSE) {
        return;
    }
    let count =
        if progress.total > 1 { format!(" {}/{}", progress.done, progress.total) } else { String::new() };
    // Whoever closed standard error looks at no progress.
    let _ = write!(std::io::stderr(), "\r\x1b[K{}: {}{count}", console::name(), progress.detail);
    *line = Some(Instant::now());
}

/// Takes the line away before something else is written.
pub(crate) fn clear() {
    if let Ok(mut line) = LINE.lock()
        && line.take().is_some()
    {
        let _ = write!(std::io::stderr(), "\r\x1b[K");
    }
}
