//! Files that are written as a whole or not at all: a disk may be full, and a run may be ended in the middle.

use std::{
    fs,
    io::{BufWriter, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use crate::{
    console::{Failure, Result},
    interrupt::Unfinished,
};

/// Writes a file as a whole or not at all: whoever reads meanwhile sees the old one. What is there and no plain file, such as a
/// pipe or /dev/null, is written into: a file in its place would be another thing.
pub(crate) fn write(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<&fs::File>) -> std::io::Result<()>,
) -> Result<()> {
    // What a link leads to, not the link.
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = real.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let failed = |e: std::io::Error| Failure::file("cannot write", path, &e);
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        let file = fs::File::options().write(true).open(path).map_err(failed)?;
        let mut out = BufWriter::new(&file);
        return fill(&mut out).and_then(|()| out.flush()).map_err(failed);
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".halite-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // As any file that a program makes; the user's mask applies.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let file = match builder.tempfile_in(folder) {
        Ok(file) => file,
        // Whoever may write to the file, and not to its folder.
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied && real.is_file() => {
            let file = fs::File::options().write(true).truncate(true).open(&real).map_err(failed)?;
            let mut out = BufWriter::new(&file);
            return fill(&mut out).and_then(|()| out.flush()).map_err(failed);
        }
        Err(e) => return Err(failed(plain(e))),
    };
    let _unfinished = Unfinished::begin(file.path());
    let mut out = BufWriter::new(file.as_file());
    fill(&mut out).and_then(|()| out.flush()).map_err(failed)?;
    drop(out);
    file.persist(&real).map_err(|e| failed(e.error))?;
    Ok(())
}

/// The same for whoever does not fail with errors of files: what the disk says goes before what is made of it.
pub(crate) fn write_by(path: &Path, fill: impl FnOnce(&mut Noting<'_>) -> Result<()>) -> Result<()> {
    let mut other = None;
    let written = write(path, |out| {
        let mut out = Noting { out, error: None };
        fill(&mut out).map_err(|failure| {
            out.error.take().unwrap_or_else(|| {
                other = Some(failure);
                std::io::ErrorKind::Other.into()
            })
        })
    });
    other.map_or(written, Err)
}

/// A file that remembers why it could not be written.
pub(crate) struct Noting<'a> {
    out: &'a mut dyn WriteSeek,
    error: Option<std::io::Error>,
}

/// What archives are written to.
trait WriteSeek: Write + Seek {}
impl<T: Write + Seek> WriteSeek for T {}

impl Noting<'_> {
    fn noted<T>(&mut self, done: std::io::Result<T>) -> std::io::Result<T> {
        done.map_err(|error| {
            let kind = error.kind();
            self.error.get_or_insert(error);
            kind.into()
        })
    }
}

impl Write for Noting<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let done = self.out.write(bytes);
        self.noted(done)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let done = self.out.flush();
        self.noted(done)
    }
}

impl Seek for Noting<'_> {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        let done = self.out.seek(to);
        self.noted(done)
    }
}

/// An error without the name of the file that stands for the wanted one until it is finished.
fn plain(error: std::io::Error) -> std::io::Error {
    match error.to_string().split_once(" at path ") {
        Some((what, _)) => std::io::Error::new(error.kind(), what),
        None => error,
    }
}

/// Refuses to write to files that the work reads: they may be the only copies.
pub(crate) fn spare<'a>(written: &[&Path], read: impl IntoIterator<Item = &'a Path>) -> Result<()> {
    let read: Vec<PathBuf> =
        read.into_iter().filter_map(|file| file.canonicalize().ok()).filter(|file| file.is_file()).collect();
    match written.iter().find(|file| file.canonicalize().is_ok_and(|file| read.contains(&file))) {
        Some(file) => Err(Failure::Usage(format!(
            "'{}' is a file of the model itself; name another file to write to",
            file.display()
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn what_is_no_plain_file_stays_what_it_is() {
        use std::os::unix::net::UnixDatagram;

        // A socket stands for all of them: it cannot be opened, so the error shows that nothing was put in its place.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let _socket = UnixDatagram::bind(&path).unwrap();
        assert!(write(&path, |out| out.write_all(b"module")).is_err());
        assert!(!fs::symlink_metadata(&path).unwrap().is_file());
        let plain = folder.path().join("module.vmfb");
        for text in ["one", "other"] {
            write(&plain, |out| out.write_all(text.as_bytes())).unwrap();
            assert_eq!(fs::read_to_string(&plain).unwrap(), text);
        }
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&plain, &link).unwrap();
        write(&link, |out| out.write_all(b"through")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&plain).unwrap(), "through");
    }

    #[test]
    fn a_folder_that_is_missing_is_told_by_the_name_that_was_given() {
        let folder = tempfile::tempdir().unwrap();
        let text = write(&folder.path().join("no/m.vmfb"), |_| Ok(())).unwrap_err().to_string();
        assert!(text.contains("no/m.vmfb") && !text.contains(".halite-"), "{text}");
    }

    #[test]
    fn the_disk_is_heard_before_what_is_made_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.npy");
        let error = write_by(&path, |_| Err(Failure::invalid("no such thing"))).unwrap_err().to_string();
        assert_eq!(error, "INVALID_ARGUMENT; no such thing");
        let full = fs::File::options().write(true).open("/dev/full");
        if let Ok(full) = full {
            let mut out = Noting { out: &mut &full, error: None };
            assert!(out.write_all(b"x").is_err());
            assert_eq!(out.error.unwrap().kind(), std::io::ErrorKind::StorageFull);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_was_there_stays_when_writing_fails() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        fs::write(&path, "before").unwrap();
        let full = |out: &mut BufWriter<&fs::File>| {
            out.write_all(b"half")?;
            Err(std::io::ErrorKind::StorageFull.into())
        };
        let failure = write(&path, full).unwrap_err();
        assert!(failure.to_string().starts_with("RESOURCE_EXHAUSTED; cannot write"), "{failure}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing half stays");
    }
}
