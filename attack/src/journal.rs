//! What a campaign has told so far, in a file: one that was ended goes on where it was, and those of several machines become one report.

use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    sync::Mutex,
};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::worker::Answer;

/// What reading a file came to: an answer, or how the process ended.
pub type Ended = Result<Answer, String>;

/// A line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    file: String,
    ended: Ended,
}

/// The file, and what it holds.
#[derive(Debug)]
pub struct Journal {
    told: HashMap<String, Ended>,
    file: Mutex<File>,
}

impl Journal {
    /// Opens a journal, or begins one. What is no whole line, as the last one of a process that was killed, counts as not told.
    pub fn open(path: &Path) -> Result<Journal> {
        let at = || format!("the journal {}", path.display());
        let mut file = OpenOptions::new().create(true).append(true).read(true).open(path).with_context(at)?;
        let (mut told, mut whole) = (HashMap::new(), true);
        for line in BufReader::new(&file).split(b'\n') {
            let line = line.with_context(at)?;
            let parsed = serde_json::from_slice::<Line>(&line);
            whole = parsed.is_ok();
            told.extend(parsed.map(|line| (line.file, line.ended)));
        }
        if !whole {
            // Behind a half line, the next one would be none, too.
            writeln!(file).with_context(at)?;
        }
        Ok(Journal { told, file: Mutex::new(file) })
    }

    /// What was told of a file.
    pub fn told(&self, file: &str) -> Option<&Ended> {
        self.told.get(file)
    }

    /// Writes what is told of a file.
    pub fn tell(&self, file: &str, ended: &Ended) -> Result<()> {
        let line = Line { file: file.to_owned(), ended: ended.clone() };
        let text = serde_json::to_string(&line)? + "\n";
        // In one piece: a process that is killed leaves whole lines but for the last.
        let mut file = self.file.lock().expect("no other thread panicked");
        file.write_all(text.as_bytes()).context("writing the journal")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::End;

    #[test]
    fn what_was_told_is_found_again_whatever_ended_it() {
        let path = std::env::temp_dir().join(format!("halite-journal-{}", std::process::id()));
        _ = std::fs::remove_file(&path);
        let answer = Answer { end: End::Taken, milliseconds: 7, memory: 9, text: "so".to_owned() };
        let journal = Journal::open(&path).expect("it is made");
        journal.tell("kind 1", &Ok(answer)).expect("it is written");
        drop(journal);
        let mut text = std::fs::read(&path).expect("it is there");
        text.extend(br#"{"file":"kind 2","en"#);
        std::fs::write(&path, text).expect("it is written");
        let journal = Journal::open(&path).expect("it is read");
        assert!(journal.told("kind 2").is_none());
        journal.tell("kind 3", &Err("it ended".to_owned())).expect("it is written");
        drop(journal);
        let journal = Journal::open(&path).expect("it is read");
        assert!(matches!(journal.told("kind 1"), Some(Ok(answer)) if answer.milliseconds == 7));
        assert!(matches!(journal.told("kind 3"), Some(Err(text)) if text == "it ended"));
        std::fs::remove_file(&path).expect("it is ours");
    }
}
