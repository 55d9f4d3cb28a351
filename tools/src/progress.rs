//! The line that tells how far work is, on a terminal.

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

/// Options that also tell how far work is, where somebody looks at standard error and wants to hear of it.
pub(crate) fn shown(options: RunOptions) -> RunOptions {
    if logger::is_quiet() || !std::io::stderr().is_terminal() {
        return options;
    }
    let began = Instant::now();
    options.progress(move |progress| {
        if began.elapsed() >= PATIENCE {
            show(&progress);
        }
    })
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
