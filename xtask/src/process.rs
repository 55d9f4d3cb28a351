//! Runs other programs with a deadline, and hears all that they say.

use std::{
    io::Read as _,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError, mpsc},
    time::{Duration, Instant},
};

use anyhow::Result;

use crate::clock::{Spent, of_process};

/// A program that takes longer hangs.
pub const LIMIT: Duration = Duration::from_secs(30 * 60);
/// What programs leave behind them is waited for no longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs to the end or to the limit; the status, if it came to an end, what it said on both ways, and what it took.
pub fn end_of(mut command: Command) -> Result<(Option<ExitStatus>, String, Spent)> {
    let (mut reader, writer) = std::io::pipe()?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let child = command.spawn()?;
    // The command keeps its ends of the pipe open.
    drop(command);
    let said = Arc::new(Mutex::new(Vec::new()));
    let (ended, end) = mpsc::channel::<()>();
    let heard = said.clone();
    std::thread::spawn(move || {
        let mut part = [0; 4096];
        while let Ok(count @ 1..) = reader.read(&mut part) {
            heard.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&part[..count]);
        }
        drop(ended);
    });
    let (status, timely, spent) = wait(child, LIMIT)?;
    // Until all that it started has closed its end, too: nobody sends, so this ends when the reader does.
    let _ = end.recv_timeout(PATIENCE);
    let said = said.lock().unwrap_or_else(PoisonError::into_inner);
    Ok((timely.then_some(status), String::from_utf8_lossy(&said).into_owned(), spent))
}

/// Waits for a program, and ends it when the limit is over; whether it ended by itself, and what it took: on the processor as far as
/// was seen shortly before its end.
fn wait(mut child: Child, limit: Duration) -> Result<(ExitStatus, bool, Spent)> {
    let begun = Instant::now();
    let id = child.id().to_string();
    let mut processor = None;
    let spent = |processor| Spent { wall: begun.elapsed(), processor };
    loop {
        processor = of_process(&id).or(processor);
        if let Some(status) = child.try_wait()? {
            return Ok((status, true, spent(processor)));
        }
        if begun.elapsed() >= limit {
            child.kill()?;
            return Ok((child.wait()?, false, spent(processor)));
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn what_hangs_is_ended() {
        let child = Command::new("/bin/sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        assert!(!wait(child, Duration::from_millis(50)).unwrap().1);
    }
}
