//! Files that are written as a whole or not at all: a disk may be full, and a run may be ended in the middle.

use std::{
    fs,
    io::{BufWriter, Write},
    path::Path,
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
    let file = builder.tempfile_in(folder).map_err(failed)?;
    let _unfinished = Unfinished::begin(file.path());
    let mut out = BufWriter::new(file.as_file());
    fill(&mut out).and_then(|()| out.flush()).map_err(failed)?;
    drop(out);
    file.persist(&real).map_err(|e| failed(e.error))?;
    Ok(())
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
