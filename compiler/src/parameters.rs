//! Where the constants of a module go, and archives of those that are kept outside of it.

use std::io;

use bytes::Bytes;
use halite_formats::params::{NewEntry, NewStorage, write_irpa};

/// Where the constants of a module go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ParameterStorage {
    /// Into the module.
    #[default]
    Embedded,
    /// Into an archive of parameters beside it, which is loaded under this scope (`--parameters=SCOPE=FILE`).
    External {
        /// The scope; may be empty.
        scope: String,
    },
}

/// Constants that are kept outside of a module.
#[derive(Clone, Debug, Default)]
pub struct ParameterArchive {
    /// The scope that the module asks for.
    pub scope: String,
    /// Key and bytes of each; keys are distinct. May be parts of mapped files.
    pub entries: Vec<(String, Bytes)>,
}

impl ParameterArchive {
    /// Writes an IREE parameter archive (`.irpa`).
    ///
    /// # Errors
    /// `out` failed.
    pub fn write(&self, out: &mut impl io::Write) -> io::Result<()> {
        let entry = |(name, bytes)| NewEntry { name, metadata: &[], storage: NewStorage::Data(bytes) };
        let entries: Vec<NewEntry<'_>> =
            self.entries.iter().map(|(name, bytes)| entry((name.as_str(), bytes.as_ref()))).collect();
        write_irpa(&entries, out)
    }
}
