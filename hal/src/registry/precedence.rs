//! Which of several drivers of one name is used.
//!
//! A source that the user named replaces a linked driver; any other does not. Of sources with one name the first that was
//! added counts. What is not used is kept for listings.

use std::{fmt, path::PathBuf};

use super::DriverEntry;

/// A driver that is not used because another one has its name.
#[derive(Clone, Debug)]
pub struct Shadowed {
    /// The driver.
    pub entry: DriverEntry,
    /// Which other one, and why it goes first.
    pub reason: String,
}

/// Something that was looked at for drivers and cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Manifest, library or folder.
    pub path: PathBuf,
    /// Why, in words that follow the path.
    pub reason: String,
    /// Whether people should be told unasked. Not so for libraries of other machines in a folder that serves several.
    pub notable: bool,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' {}", self.path.display(), self.reason)
    }
}

/// Adds a driver beside the one of its name, if there is one. Returns the one of both that is not used.
pub(super) fn add(entries: &mut Vec<DriverEntry>, new: DriverEntry) -> Option<Shadowed> {
    let Some(old) = entries.iter_mut().find(|e| e.name() == new.name()) else {
        entries.push(new);
        return None;
    };
    Some(match (old.source(), new.source()) {
        (Some(first), _) => {
            let reason = format!("{first} is found first");
            Shadowed { entry: new, reason }
        }
        (None, Some(source)) if source.is_given() => {
            let reason = format!("replaced by {source}, which was given");
            Shadowed { entry: std::mem::replace(old, new), reason }
        }
        (None, _) => {
            let reason = "the program has this driver linked in; give the plug-in to use it instead";
            Shadowed { entry: new, reason: reason.to_owned() }
        }
    })
}
