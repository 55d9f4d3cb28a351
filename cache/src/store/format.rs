//! The contents of an entry's file: a header that says what it is, and the payload.
//!
//! Layout, little-endian: magic (8 bytes), version u32, length of the kind u16, length of the label u16, key (16 bytes),
//! length of the payload u64, SHA-256 of the payload (32 bytes); the kind; the label; SHA-256 of all that (32 bytes); the
//! payload, which ends with the file.

use std::io::{self, Read};

use thiserror::Error;

use super::{Key, Kind};
use crate::{Digest, Hasher};

pub(super) const MAGIC: [u8; 8] = *b"HALITECE";
const VERSION: u32 = 1;
const FIXED: usize = 72;
const DIGEST: usize = 32;

/// A label is for a line of a list.
const LABEL_BYTES: usize = 256;

/// What is said about an entry before its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub key: Key,
    pub kind: Kind,
    /// For people: one line.
    pub label: String,
    /// Of the payload, in bytes.
    pub length: u64,
    /// Of the payload.
    pub digest: Digest,
}

/// Why an entry's file is of no use.
#[derive(Debug, Error)]
pub(super) enum Damage {
    #[error("it is cut off")]
    Cut,
    #[error("it is no entry of this version of Halite")]
    Foreign,
    #[error("its header is damaged")]
    Header,
    #[error("it is another entry under this name")]
    Name,
    #[error("its contents are damaged")]
    Payload,
    /// Nothing is known about the file's contents.
    #[error("{0}")]
    Io(io::Error),
}

impl From<io::Error> for Damage {
    fn from(error: io::Error) -> Damage {
        if error.kind() == io::ErrorKind::UnexpectedEof { Damage::Cut } else { Damage::Io(error) }
    }
}

impl Header {
    pub fn new(key: Key, kind: Kind, label: &str) -> Header {
        let label = line(label);
        Header { key, kind, label, length: 0, digest: Hasher::new().finish() }
    }

    /// Bytes before the payload. They do not depend on it.
    pub fn size(&self) -> u64 {
        (FIXED + self.kind.as_str().len() + self.label.len() + DIGEST) as u64
    }

    pub fn encode(&self) -> Vec<u8> {
        let kind = self.kind.as_str().as_bytes();
        let length =
            |text: &[u8]| u16::try_from(text.len()).expect("kinds and labels are short").to_le_bytes();
        let mut bytes = Vec::new();
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(length(kind));
        bytes.extend(length(self.label.as_bytes()));
        bytes.extend(self.key.as_bytes());
        bytes.extend(self.length.to_le_bytes());
        bytes.extend(self.digest.as_bytes());
        bytes.extend(kind);
        bytes.extend(self.label.as_bytes());
        bytes.extend(Digest::of(&bytes).as_bytes());
        bytes
    }

    /// Reads and checks a header. The reader stands before the payload afterwards.
    pub fn read(from: &mut impl Read) -> Result<Header, Damage> {
        let mut bytes = vec![0; FIXED];
        from.read_exact(&mut bytes)?;
        if bytes[..8] != MAGIC || bytes[8..12] != VERSION.to_le_bytes() {
            return Err(Damage::Foreign);
        }
        let kind_length = usize::from(u16::from_le_bytes(part(&bytes, 12)));
        let label_length = usize::from(u16::from_le_bytes(part(&bytes, 14)));
        let end = FIXED + kind_length + label_length;
        bytes.resize(end + DIGEST, 0);
        from.read_exact(&mut bytes[FIXED..])?;
        if Digest::of(&bytes[..end]).as_bytes() != &bytes[end..] {
            return Err(Damage::Header);
        }
        let text = |from: usize, to: usize| str::from_utf8(&bytes[from..to]).map_err(|_| Damage::Header);
        let kind = text(FIXED, FIXED + kind_length)?;
        Ok(Header {
            key: Key::from_bytes(part(&bytes, 16)),
            kind: Kind::parse(kind).ok_or(Damage::Header)?,
            label: text(FIXED + kind_length, end)?.to_owned(),
            length: u64::from_le_bytes(part(&bytes, 32)),
            digest: Digest::from_bytes(part(&bytes, 40)),
        })
    }

    /// Reads the payload behind the header and checks it. `rest` is how many bytes the file has there.
    pub fn payload(&self, from: &mut impl Read, rest: u64) -> Result<Vec<u8>, Damage> {
        if self.length != rest {
            return Err(if rest < self.length { Damage::Cut } else { Damage::Payload });
        }
        let mut payload = Vec::new();
        let room = usize::try_from(rest).map_err(io::Error::other)?;
        payload.try_reserve_exact(room).map_err(io::Error::other)?;
        if from.take(rest).read_to_end(&mut payload)? != room {
            return Err(Damage::Cut);
        }
        if Digest::of(&payload) != self.digest {
            return Err(Damage::Payload);
        }
        Ok(payload)
    }
}

fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&bytes[at..at + N]);
    part
}

/// A label as one line that a terminal can print.
fn line(label: &str) -> String {
    let mut text: String = label.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.truncate(text.floor_char_boundary(LABEL_BYTES));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> (Header, Vec<u8>) {
        let payload: Vec<u8> = (0..50).collect();
        let mut header = Header::new(Key::of(&[b"x"]), Kind::new("vmfb"), "mobilenet.onnx");
        header.length = 50;
        header.digest = Digest::of(&payload);
        let bytes = [header.encode(), payload].concat();
        (header, bytes)
    }

    fn read(mut bytes: &[u8]) -> Result<(Header, Vec<u8>), Damage> {
        let from = &mut bytes;
        let header = Header::read(from)?;
        let rest = from.len() as u64;
        let payload = header.payload(from, rest)?;
        Ok((header, payload))
    }

    #[test]
    fn every_cut_and_every_flip_is_found() {
        let (header, good) = entry();
        assert_eq!(header.size() as usize + 50, good.len());
        assert_eq!(read(&good).unwrap(), (header, (0..50).collect()));
        for cut in 0..good.len() {
            assert!(matches!(read(&good[..cut]), Err(Damage::Cut)), "cut at {cut}");
        }
        for place in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[place / 8] ^= 1 << (place % 8);
            assert!(read(&bad).is_err(), "bit {place}");
        }
        assert!(read(&[good.as_slice(), b"x"].concat()).is_err());
    }

    #[test]
    fn labels_are_one_short_line() {
        let label =
            Header::new(Key::of(&[]), Kind::new("a"), &format!("a\nb\u{1b}[31m{}", "ä".repeat(300))).label;
        assert!(label.starts_with("a b [31mää") && label.len() <= LABEL_BYTES, "{label}");
    }
}
