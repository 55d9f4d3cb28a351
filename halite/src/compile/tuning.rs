//! Which measurements of kernels count for their choice.

use std::path::PathBuf;

use halite_shaders::TuningFile;

use crate::{Error, Result};

/// Which measurements of kernels go before those that ship with Halite.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tuning {
    /// This user's: the file that `HALITE_TUNING` names, or that tuning on this machine wrote.
    #[default]
    User,
    /// None.
    Shipped,
    /// Those of a file.
    File(PathBuf),
}

impl Tuning {
    /// The measurements. Variants of other versions of Halite are logged and left out.
    ///
    /// # Errors
    /// The file cannot be read or is none.
    pub fn read(&self) -> Result<TuningFile> {
        let file = match self {
            Tuning::User => TuningFile::of_user(),
            Tuning::Shipped => Ok(TuningFile::default()),
            Tuning::File(path) => TuningFile::read(path),
        };
        let file = file.map_err(|e| Error::invalid(e.to_string()))?;
        for row in &file.rows {
            for variant in row.unknown() {
                log::warn!(
                    "the tuning file names '{variant}', which is no variant of {} any more",
                    row.operation
                );
            }
        }
        Ok(file)
    }
}
