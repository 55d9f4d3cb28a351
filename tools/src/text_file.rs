//! Files that command lines name beside models: prompts, labels, tokens of access, what `dump` shows. A device may never end.

use std::{
    fs::{self, File, FileType},
    io::{self, Read},
    path::Path,
};

use crate::console::{Failure, Result};

/// Most bytes of a text: more than any that a language model takes.
const MOST: u64 = 256 << 20;

/// The text of a file, a pipe or a terminal, as far as the limit goes; `-` is standard input.
pub(crate) fn read(path: &Path) -> Result<String> {
    let is_stream = path.as_os_str() == "-";
    let name = if is_stream { Path::new("standard input") } else { path };
    let bytes = if is_stream {
        bytes(&mut io::stdin().lock(), MOST)
    } else {
        open(path).and_then(|mut file| bytes(&mut file, MOST))
    };
    let text = bytes.and_then(|bytes| {
        let wrong = |_| io::Error::new(io::ErrorKind::InvalidData, "it is no text in UTF-8");
        String::from_utf8(bytes).map_err(wrong)
    });
    text.map_err(|e| Failure::file("cannot read", name, &e))
}

/// Opens what can be read, and says plainly what cannot.
fn open(path: &Path) -> io::Result<File> {
    match fs::metadata(path)?.file_type() {
        kind if kind.is_dir() => Err(invalid("it is a folder, not a file")),
        kind if is_socket(kind) => Err(invalid("it is a socket, not a file or a pipe")),
        _ => File::open(path),
    }
}

/// Opens a file or a pipe. Devices are refused: no limit would be right for all models, and what they give may have no end.
pub(crate) fn open_finite(path: &Path) -> io::Result<File> {
    match is_device(fs::metadata(path)?.file_type()) {
        true => Err(invalid("it is a device, not a file or a pipe")),
        false => open(path),
    }
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

/// All that a reader gives, up to a number of bytes.
pub(crate) fn bytes(reader: &mut dyn Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {most} bytes"))),
        false => Ok(bytes),
    }
}

#[cfg(unix)]
fn is_device(kind: FileType) -> bool {
    use std::os::unix::fs::FileTypeExt;
    kind.is_char_device() || kind.is_block_device()
}

#[cfg(unix)]
fn is_socket(kind: FileType) -> bool {
    std::os::unix::fs::FileTypeExt::is_socket(&kind)
}

#[cfg(not(unix))]
fn is_device(_: FileType) -> bool {
    false
}

#[cfg(not(unix))]
fn is_socket(_: FileType) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_text_is_refused() {
        let error = bytes(&mut io::repeat(b'a'), 1000).unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string()),
            (io::ErrorKind::FileTooLarge, "it has more than 1000 bytes".into())
        );
        assert_eq!(bytes(&mut io::repeat(b'a').take(1000), 1000).unwrap().len(), 1000);
    }

    #[test]
    fn folders_and_texts_that_are_none_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let error = read(folder.path()).unwrap_err().to_string();
        assert!(
            error.starts_with("INVALID_ARGUMENT") && error.ends_with("it is a folder, not a file"),
            "{error}"
        );
        let file = folder.path().join("a");
        fs::write(&file, b"a\xff").unwrap();
        let error = read(&file).unwrap_err().to_string();
        assert!(
            error.starts_with("INVALID_ARGUMENT") && error.ends_with("it is no text in UTF-8"),
            "{error}"
        );
        fs::write(&file, "ä\n").unwrap();
        assert_eq!(read(&file).unwrap(), "ä\n");
    }

    #[test]
    #[cfg(unix)]
    fn devices_are_no_models() {
        let error = open_finite(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(error.to_string(), "it is a device, not a file or a pipe");
        assert_eq!(read(Path::new("/dev/null")).unwrap(), "");
    }
}
