//! Writing an entry: digested on its way, header last, under another name until it is whole.

use std::{
    fs::File,
    io::{self, BufWriter, Seek, SeekFrom, Write},
};

use super::{Store, format::Header};
use crate::{CacheError, Hasher, sys::Dir, temporary::Temporary};

/// Counts and digests what is written, and stops when it is too much.
struct Payload<'a> {
    out: BufWriter<&'a File>,
    hasher: Hasher,
    length: u64,
    most: u64,
    too_much: bool,
}

impl Write for Payload<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.length += bytes.len() as u64;
        if self.length > self.most {
            self.too_much = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.out.write_all(bytes)?;
        self.hasher.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

pub(super) fn write(
    store: &Store,
    dir: &Dir,
    name: &str,
    mut header: Header,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), CacheError> {
    let failed = || store.folder.io("cannot write to");
    let temporary = Temporary::create(dir).map_err(failed())?;
    let most = store.limit.saturating_sub(header.size());
    let out = BufWriter::with_capacity(1 << 16, temporary.file());
    let mut payload = Payload { out, hasher: Hasher::new(), length: 0, most, too_much: false };
    // Zeros until all is written: what is not finished is no entry, whatever becomes of it.
    let room = vec![0; header.encode().len()];
    let written =
        payload.out.write_all(&room).and_then(|()| write(&mut payload)).and_then(|()| payload.flush());
    if payload.too_much {
        let (path, bytes) = (store.folder.path().to_owned(), payload.length);
        return Err(CacheError::TooLarge { path, bytes, limit: store.limit });
    }
    written.map_err(failed())?;
    (header.length, header.digest) = (payload.length, payload.hasher.clone().finish());
    drop(payload);
    let mut file = temporary.file();
    let headed = file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(&header.encode()));
    headed.and_then(|()| temporary.keep_as(name)).map_err(failed())
}
