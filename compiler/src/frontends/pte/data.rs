//! Data that a program does not hold itself: which they are, and in which files beside it they are looked for.

use std::collections::BTreeSet;

use halite_formats::pte::{DataFile, Program};

use super::{Result, back_ends};
use crate::{CompileError, Control, SourceLocation, Stage, frontends::files::Files};

/// The end of the names of files with data.
const EXTENSION: &str = "ptd";
/// Most such files of a folder.
const MOST_FILES: usize = 1024;

/// Names of data that the program needs and does not hold.
fn missing(program: &Program) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = program.external_tensors().map(str::to_owned).collect();
    for delegate in program.plans.iter().flat_map(|plan| &plan.delegates) {
        // What cannot be read is told where it is imported.
        let read = back_ends::find(&delegate.id).and_then(|back_end| back_end.read(&delegate.data).ok());
        names.extend(read.iter().flat_map(|graph| graph.data()).map(str::to_owned));
    }
    names.retain(|name| program.data(name).is_none());
    names
}

/// Adds what the program `name` needs from files beside it. Files whose names begin as that of the program are read first, and
/// others only for what is still missing then. What is in no file is told where it is read.
///
/// # Errors
/// A file is damaged, or several files have different data of one name.
pub(super) fn add(program: &mut Program, files: &Files, name: &str, control: &Control) -> Result<()> {
    let mut missing = missing(program);
    if missing.is_empty() {
        return Ok(());
    }
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let all = files.ending(EXTENSION, MOST_FILES);
    let (own, others): (Vec<String>, Vec<String>) = all.into_iter().partition(|file| file.starts_with(stem));
    for group in [own, others] {
        let mut found = BTreeSet::new();
        for file in group {
            control.check(Stage::Reading)?;
            found.append(&mut add_file(program, files, &file, &missing)?);
        }
        missing.retain(|name| !found.contains(name));
        if missing.is_empty() {
            break;
        }
    }
    Ok(())
}

/// Adds what is missing from a file, and gives its names.
fn add_file(
    program: &mut Program,
    files: &Files,
    file: &str,
    missing: &BTreeSet<String>,
) -> Result<BTreeSet<String>> {
    let place = SourceLocation::new(format!("data file '{file}'"));
    let wrong = |reason: String| CompileError::invalid(&place, reason);
    let bytes = files.read(file, 0, None).map_err(wrong)?;
    let data = DataFile::parse(&bytes).map_err(|e| wrong(e.to_string()))?;
    let mut found = BTreeSet::new();
    for (key, bytes) in data.named.into_iter().filter(|(key, _)| missing.contains(key)) {
        if program.external.get(&key).is_some_and(|known| *known != bytes) {
            return Err(wrong(format!(
                "other data of the name '{key}' are in another .ptd file of this folder; name the one that belongs to the \
                 program like it, or keep them apart"
            )));
        }
        found.insert(key.clone());
        program.external.insert(key, bytes);
    }
    Ok(found)
}
