//! The file that keeps a run's results as they come, so that a run that was interrupted goes on where it was.

use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    io::{BufRead as _, BufReader, Seek as _, SeekFrom, Write as _},
    path::Path,
};

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};

use crate::suites::Report;

/// First line of a file.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Head {
    journal: String,
    seed: u64,
    rounds: u64,
    validate: Option<String>,
}

/// What a line is, beside the case's report.
#[derive(Serialize, Deserialize)]
struct Line {
    device: String,
    #[serde(flatten)]
    report: Report,
}

const FORMAT: &str = "halite-conformance 1";

/// A journal that results are added to.
pub struct Journal {
    file: File,
    known: HashMap<(String, String), Report>,
}

impl Journal {
    /// Opens a journal, or begins one. What is in it was run with the same numbers and the same validation.
    ///
    /// # Errors
    /// The file cannot be read or written, is no journal, is of another run, or belongs to a run that has not ended.
    pub fn open(path: &Path, seed: u64, rounds: u64, validate: Option<&str>) -> Result<Self> {
        let shown = path.display();
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .with_context(|| format!("opening {shown}"))?;
        // Two runs would write over each other's lines.
        file.try_lock().with_context(|| {
            format!("{shown} cannot be had alone; wait for the run that has it, or name another file")
        })?;
        let head = Head { journal: FORMAT.to_owned(), seed, rounds, validate: validate.map(str::to_owned) };
        let mut known = HashMap::new();
        let mut good = 0;
        let mut reader = BufReader::new(&mut file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let length = reader.read_until(b'\n', &mut line).with_context(|| format!("reading {shown}"))?;
            // The last line may have been cut short: what follows the last whole one is written over.
            if length == 0 || line.last() != Some(&b'\n') {
                break;
            }
            if good == 0 {
                let Ok(found) = serde_json::from_slice::<Head>(&line) else {
                    bail!("{shown} is no journal of a run; name a file that does not exist yet");
                };
                if found != head {
                    bail!("{shown} is of a run with other settings: {found:?}, this run has {head:?}");
                }
            } else {
                let Ok(line) = serde_json::from_slice::<Line>(&line) else { break };
                known.insert((line.device, line.report.case.clone()), line.report);
            }
            good += length as u64;
        }
        file.set_len(good)?;
        file.seek(SeekFrom::End(0))?;
        let mut journal = Journal { file, known };
        if good == 0 {
            journal.write(&head)?;
        }
        Ok(journal)
    }

    /// What is known of a case on a device.
    pub fn known(&self, device: &str, case: &str) -> Option<&Report> {
        self.known.get(&(device.to_owned(), case.to_owned()))
    }

    /// Adds a result.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, device: &str, report: &Report) -> Result<()> {
        self.write(&Line { device: device.to_owned(), report: report.clone() })
    }

    fn write(&mut self, line: &impl Serialize) -> Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        // One write for each line, so that a line is there as a whole or, after a crash, is the last one and cut.
        self.file.write_all(&text).context("writing the journal")
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, time::Duration};

    use super::*;
    use crate::suites::Verdict;

    fn report(case: &str) -> Report {
        Report { case: case.to_owned(), verdict: Verdict::Pass, time: Duration::from_millis(3) }
    }

    #[test]
    fn a_journal_has_one_run_at_a_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("journal");
        let first = Journal::open(&path, 1, 20, None).expect("it is new");
        let second = Journal::open(&path, 1, 20, None).err().expect("the first has it");
        assert!(format!("{second:#}").contains("wait for the run"), "{second:#}");
        drop(first);
        Journal::open(&path, 1, 20, None).expect("the first has ended");
    }

    #[test]
    fn a_line_that_was_cut_short_is_forgotten_and_all_before_it_is_known() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("journal");
        let open = |seed| Journal::open(&path, seed, 20, None);
        let mut journal = open(1).expect("it is new");
        journal.add("null://", &report("a.b.c")).expect("it is written");
        journal.add("null://", &report("a.b.d")).expect("it is written");
        drop(journal);
        let whole = fs::read(&path).expect("it is there");
        fs::write(&path, &whole[..whole.len() - 5]).expect("it is cut");
        let mut journal = open(1).expect("it is a journal");
        assert_eq!(journal.known("null://", "a.b.c"), Some(&report("a.b.c")));
        assert_eq!(journal.known("null://", "a.b.d"), None);
        assert_eq!(journal.known("other://", "a.b.c"), None);
        journal.add("null://", &report("a.b.d")).expect("it is written");
        drop(journal);
        assert_eq!(fs::read(&path).expect("it is there"), whole);
        let told = open(2).err().expect("the seed is another").to_string();
        assert!(told.contains("other settings"), "{told}");
        fs::write(&path, "something\n").expect("it is written");
        assert!(open(1).err().expect("it is no journal").to_string().contains("no journal"));
        assert_eq!(fs::read(&path).expect("it is untouched"), b"something\n");
    }
}
