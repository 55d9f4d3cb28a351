//! Files that somebody else may change: what they contain, and whether they are still the same.

use std::{
    fs::{self, File, Metadata},
    io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::{CacheError, Digest, Distrust, Hasher, Key, Kind, Store, sys};

/// Digests of files, so that those that did not change are not read again.
const MEMO: Kind = Kind::new("digest");

const MEMO_BYTES: usize = 1 + 3 * 8 + 2 * 16 + 32;

/// Layout of a memo.
const MEMO_VERSION: u8 = 1;

/// A file may change twice within one tick of its file system's clock, and then both states have one stamp. So a stamp
/// stands for the content only if it was older than this before the content was read.
const SETTLED: Duration = Duration::from_secs(2);

const CHUNK: usize = 1 << 20;

/// What tells one state of a file from another without reading it. It belongs to an open file, not to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// Which file system; 0 where that is not known.
    pub device: u64,
    /// Which file in it; 0 where that is not known.
    pub inode: u64,
    /// Bytes.
    pub length: u64,
    /// Time of the last change of the content, in nanoseconds since 1970. Copying programs set it to what they like.
    pub modified_ns: i128,
    /// Time of the last change of content, name or times, in nanoseconds since 1970. Programs cannot set it. `None` on
    /// systems that do not have it.
    pub changed_ns: Option<i128>,
}

impl Stamp {
    /// The stamp of an open file, as of now.
    ///
    /// # Errors
    /// What the system says.
    pub fn of(file: &File) -> io::Result<Stamp> {
        sys::stamp(file)
    }

    /// Whether a change after `now` is bound to change the stamp.
    fn settled(&self, now: SystemTime) -> bool {
        let Ok(now) = now.duration_since(UNIX_EPOCH) else { return false };
        let now = i128::try_from(now.as_nanos()).unwrap_or(i128::MAX);
        let old = |time: i128| now.saturating_sub(time) >= SETTLED.as_nanos().cast_signed();
        old(self.modified_ns) && self.changed_ns.is_some_and(old)
    }
}

/// A file that is read as input: a model, weights, a module. Opened once, and stamped before anything is read.
///
/// Read or map [`InputFile::file`], not the path: the path may lead to another file by then. Then
/// [`InputFile::digest_of`] says what was read, or [`InputFile::digest`] says it without reading if the file is known.
/// Before a result is filed under the digest, [`InputFile::check_unchanged`] tells whether the file was written to
/// meanwhile.
#[derive(Debug)]
pub struct InputFile {
    file: File,
    path: PathBuf,
    opened: SystemTime,
    stamp: Stamp,
}

impl InputFile {
    /// Opens a file for reading and stamps it. Links are followed: an input is what the user names.
    ///
    /// # Errors
    /// It cannot be opened, or is no regular file: what comes through a pipe has to be digested by whoever reads it, with
    /// [`Digest::of`].
    pub fn open(path: &Path) -> Result<InputFile, CacheError> {
        let opened = SystemTime::now();
        let examined = || CacheError::io("cannot examine", path);
        let regular = |data: Metadata| match data.is_file() {
            true => Ok(()),
            false => Err(CacheError::Untrusted { path: path.to_owned(), why: Distrust::NotFile }),
        };
        // Opening a pipe and closing it again would end its writer.
        regular(fs::metadata(path).map_err(CacheError::io("cannot open", path))?)?;
        let file = sys::open_input(path).map_err(CacheError::io("cannot open", path))?;
        regular(file.metadata().map_err(examined())?)?;
        let stamp = Stamp::of(&file).map_err(examined())?;
        Ok(InputFile { file, path: path.to_owned(), opened, stamp })
    }

    /// The open file. Its position is nobody's.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The path that it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its stamp when it was opened.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// The digest of its content. With a store, a file that did not change since it was digested last is not read again.
    ///
    /// # Errors
    /// [`CacheError::Changed`] if the file was written to since it was opened; or it cannot be read. Trouble with the
    /// store is none: then the file is read.
    pub fn digest(&self, memo: Option<&Store>) -> Result<Digest, CacheError> {
        if let Some(known) = memo.and_then(|store| self.recall(store)) {
            return Ok(known);
        }
        let read = |at: u64, buffer: &mut [u8]| sys::read_at(&self.file, buffer, at);
        let digest =
            digest_all(self.stamp.length, read).map_err(CacheError::io("cannot read", &self.path))?;
        self.check_unchanged()?;
        self.remember(memo, digest);
        Ok(digest)
    }

    /// The same when all its bytes were read from [`InputFile::file`], or mapped: they are digested, and the file is not
    /// read again.
    ///
    /// # Errors
    /// [`CacheError::Changed`] if the file was written to since it was opened, or if these are not as many bytes as it
    /// had. `Digest::of(bytes)` is the digest of the bytes even so, unless they are mapped.
    pub fn digest_of(&self, bytes: &[u8], memo: Option<&Store>) -> Result<Digest, CacheError> {
        let digest = self.digest_while(bytes, memo, &|| true)?;
        Ok(digest.expect("nothing ended the work"))
    }

    /// The same as long as `goes_on` says so, which is asked every few megabytes; `None` when it ended the work.
    ///
    /// # Errors
    /// As [`InputFile::digest_of`].
    pub fn digest_while(
        &self,
        bytes: &[u8],
        memo: Option<&Store>,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Option<Digest>, CacheError> {
        if bytes.len() as u64 != self.stamp.length {
            return Err(self.changed());
        }
        if let Some(known) = memo.and_then(|store| self.recall(store)) {
            self.check_unchanged()?;
            return Ok(Some(known));
        }
        let Some(digest) = Digest::of_while(bytes, goes_on) else { return Ok(None) };
        self.check_unchanged()?;
        self.remember(memo, digest);
        Ok(Some(digest))
    }

    /// Whether nobody wrote to the file since it was opened. To be asked when all was read, and once more before what was
    /// made of it is filed, if it was mapped. A file that was replaced counts as changed too, to be on the safe side.
    ///
    /// # Errors
    /// [`CacheError::Changed`]; or the system does not say.
    pub fn check_unchanged(&self) -> Result<(), CacheError> {
        let now = Stamp::of(&self.file).map_err(CacheError::io("cannot examine", &self.path))?;
        if now == self.stamp { Ok(()) } else { Err(self.changed()) }
    }

    fn changed(&self) -> CacheError {
        CacheError::Changed { path: self.path.clone() }
    }

    /// Under which key its digest is kept: its path, so that a file that is made anew takes the place of the old one.
    fn memo_key(&self) -> Option<Key> {
        let path = self.path.canonicalize().ok()?;
        Some(Key::of(&[b"digest of a file", path.as_os_str().as_encoded_bytes()]))
    }

    fn recall(&self, store: &Store) -> Option<Digest> {
        // Without this time, a stamp does not stand for the content.
        self.stamp.changed_ns?;
        let (stamp, digest) = decode(&store.get(self.memo_key()?, MEMO)?)?;
        (stamp == self.stamp).then_some(digest)
    }

    fn remember(&self, store: Option<&Store>, digest: Digest) {
        let (Some(store), true) = (store, self.stamp.settled(self.opened)) else { return };
        let (Some(key), Some(memo)) = (self.memo_key(), encode(&self.stamp, digest)) else { return };
        let label = self.path.file_name().unwrap_or_default().to_string_lossy();
        if let Err(error) = store.put(key, MEMO, &label, &[&memo]) {
            log::debug!("the digest of '{}' was not kept: {error}", self.path.display());
        }
    }
}

/// Digests what `read` gives, which may end early; no more than one byte beyond `length` is read.
fn digest_all(length: u64, read: impl Fn(u64, &mut [u8]) -> io::Result<usize>) -> io::Result<Digest> {
    let mut hasher = Hasher::new();
    let mut buffer = vec![0; CHUNK];
    let mut at = 0;
    while at <= length {
        match read(at, &mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                hasher.update(&buffer[..count]);
                at += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(hasher.finish())
}

fn encode(stamp: &Stamp, digest: Digest) -> Option<Vec<u8>> {
    let mut bytes = vec![MEMO_VERSION];
    for number in [stamp.device, stamp.inode, stamp.length] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(stamp.modified_ns.to_le_bytes());
    bytes.extend(stamp.changed_ns?.to_le_bytes());
    bytes.extend(digest.as_bytes());
    Some(bytes)
}

fn decode(bytes: &[u8]) -> Option<(Stamp, Digest)> {
    let bytes: &[u8; MEMO_BYTES] = bytes.try_into().ok()?;
    let (version, mut rest) = bytes.split_first()?;
    if *version != MEMO_VERSION {
        return None;
    }
    let stamp = Stamp {
        device: u64::from_le_bytes(take(&mut rest)?),
        inode: u64::from_le_bytes(take(&mut rest)?),
        length: u64::from_le_bytes(take(&mut rest)?),
        modified_ns: i128::from_le_bytes(take(&mut rest)?),
        changed_ns: Some(i128::from_le_bytes(take(&mut rest)?)),
    };
    Some((stamp, Digest::from_bytes(take(&mut rest)?)))
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (part, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*part)
}

#[cfg(test)]
mod tests;
