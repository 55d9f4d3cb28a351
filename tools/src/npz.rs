//! `.npz` archives: arrays by name in a zip file, as `numpy.savez` writes them.

use std::{
    fs::File,
    io::{BufReader, Cursor, Read, Seek, Write},
    path::Path,
};

use zip::{CompressionMethod, ZipArchive, ZipWriter, write::SimpleFileOptions};

use crate::{
    console::{Failure, Result},
    engine::{ElementType, HostTensor, npy},
};

/// What the names of arrays end with inside of an archive.
const SUFFIX: &str = ".npy";

/// Bytes that the arrays of every archive may unpack to, and how many more for each of its bytes. Zeros pack a thousandfold, numbers of
/// models do not: what unpacks to more is there to take all memory.
const UNPACKED: u64 = 128 << 20;
const UNPACKED_FOR_BYTE: u64 = 16;

/// All arrays in the order of the archive, by name.
pub(crate) fn read(path: &Path) -> Result<Vec<(String, HostTensor)>> {
    let file = File::open(path).map_err(|e| Failure::file("cannot read", path, &e))?;
    let length = file.metadata().map_err(|e| Failure::file("cannot read", path, &e))?.len();
    read_from(BufReader::new(file), length, &path.display().to_string())
}

/// The same of what is open already; `name` is for messages.
pub fn read_from(file: impl Read + Seek, length: u64, name: &str) -> Result<Vec<(String, HostTensor)>> {
    let wrong = |what: &dyn std::fmt::Display| Failure::invalid(format!("reading '{name}': {what}"));
    let mut archive = ZipArchive::new(file).map_err(|e| wrong(&e))?;
    let most = UNPACKED.saturating_add(length.saturating_mul(UNPACKED_FOR_BYTE));
    let mut left = most;
    let mut arrays = Vec::new();
    for index in 0..archive.len() {
        let member = archive.by_index(index).map_err(|e| wrong(&e))?;
        let name = member.name().map_err(|e| wrong(&e))?.into_owned();
        let Some(plain) = name.strip_suffix(SUFFIX) else {
            return Err(wrong(&format!("its member '{name}' is no array: arrays end in {SUFFIX}")));
        };
        // Archives may lie about sizes: what comes out is counted.
        let mut member = member.take(left + 1);
        let array = npy::read(&mut member);
        if member.limit() == 0 {
            return Err(wrong(&format!(
                "its arrays unpack to more than {} MiB, the most for an archive of {length} bytes; save them without compression \
                 (numpy.savez)",
                most >> 20
            )));
        }
        let array = array.map_err(|e| Failure::from(e).context(format!("reading '{name}'")))?;
        // The archive's sum of a member is looked at where the member ends.
        let behind = member.read(&mut [0]).map_err(|e| wrong(&format!("its member '{name}': {e}")))?;
        if behind > 0 {
            return Err(wrong(&format!("its member '{name}' has more than one array")));
        }
        left = member.limit() - 1;
        let array = array.ok_or_else(|| wrong(&format!("its member '{name}' is empty")))?;
        arrays.push((plain.to_owned(), array));
    }
    Ok(arrays)
}

/// Writes arrays by name, compressed.
pub(crate) fn write(out: impl Write + Seek, arrays: &[(String, HostTensor)]) -> Result<()> {
    let mut archive = ZipWriter::new(out);
    if let Err(failure) = arrays.iter().try_for_each(|array| add(&mut archive, array)) {
        // It would try once more to write, and print why that fails.
        std::mem::forget(archive);
        return Err(failure);
    }
    archive.finish().map_err(|e| not_written(&e))?.flush()?;
    Ok(())
}

fn add(archive: &mut ZipWriter<impl Write + Seek>, (name, array): &(String, HostTensor)) -> Result<()> {
    let large = array.data.len() as u64 > u64::from(u32::MAX / 2);
    let options =
        SimpleFileOptions::default().compression_method(CompressionMethod::Deflated).large_file(large);
    archive.start_file(format!("{name}{SUFFIX}"), options).map_err(|e| not_written(&e))?;
    Ok(npy::write(archive, array)?)
}

fn not_written(error: &zip::result::ZipError) -> Failure {
    Failure::invalid(format!("writing the archive: {error}"))
}

/// An archive of arrays of so many zeros of one byte each, for tests of what reads archives.
pub fn zeros(counts: &[u64]) -> Result<Vec<u8>> {
    let array = |(index, count): (usize, &u64)| {
        let zeros = HostTensor::zeros(ElementType::UI8, [*count].as_slice())?;
        Ok((format!("a{index}"), zeros))
    };
    let arrays = counts.iter().enumerate().map(array).collect::<Result<Vec<_>>>()?;
    let mut out = Cursor::new(Vec::new());
    write(&mut out, &arrays)?;
    Ok(out.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ElementType;

    #[test]
    fn arrays_come_back_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npz");
        let array = |value: u8, n: usize| {
            HostTensor::new(ElementType::UI8, [n as u64].as_slice(), vec![value; n]).unwrap()
        };
        let arrays = vec![
            ("z".to_owned(), array(1, 1000)),
            ("a/b".to_owned(), array(2, 3)),
            ("é".to_owned(), array(3, 0)),
        ];
        write(File::create(&path).unwrap(), &arrays).unwrap();
        assert!(std::fs::metadata(&path).unwrap().len() < 900, "it is compressed");
        assert_eq!(read(&path).unwrap(), arrays);
    }

    #[test]
    fn few_bytes_do_not_unpack_to_all_memory() {
        let bytes = zeros(&[100 << 20, 100 << 20]).unwrap();
        assert!(bytes.len() < 1 << 20);
        let refused = read_from(Cursor::new(&bytes), bytes.len() as u64, "x.npz").unwrap_err().to_string();
        assert!(refused.contains("unpack to more than 13") && refused.contains("numpy.savez"), "{refused}");
        let bytes = zeros(&[100 << 20]).unwrap();
        assert_eq!(read_from(Cursor::new(&bytes), bytes.len() as u64, "x.npz").unwrap().len(), 1);
    }

    #[test]
    fn members_that_were_changed_are_refused() {
        let array = HostTensor::new(ElementType::UI8, [64].as_slice(), vec![7; 64]).unwrap();
        let mut bytes = Cursor::new(Vec::new());
        let mut archive = ZipWriter::new(&mut bytes);
        let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        archive.start_file("x.npy", stored).unwrap();
        npy::write(&mut archive, &array).unwrap();
        archive.finish().unwrap();
        let mut bytes = bytes.into_inner();
        let length = bytes.len() as u64;
        assert_eq!(read_from(Cursor::new(&bytes), length, "x").unwrap()[0].1, array);
        let place = bytes.windows(64).position(|part| part == [7; 64]).unwrap();
        bytes[place + 9] ^= 16;
        let error = read_from(Cursor::new(&bytes), length, "x").unwrap_err().to_string();
        assert!(error.contains("'x.npy'"), "{error}");
        // Two arrays in one member.
        let mut bytes = Cursor::new(Vec::new());
        let mut archive = ZipWriter::new(&mut bytes);
        archive.start_file("x.npy", stored).unwrap();
        (0..2).for_each(|_| npy::write(&mut archive, &array).unwrap());
        archive.finish().unwrap();
        let bytes = bytes.into_inner();
        let error = read_from(Cursor::new(&bytes), bytes.len() as u64, "x").unwrap_err().to_string();
        assert!(error.contains("more than one array"), "{error}");
    }

    #[test]
    fn what_is_no_archive_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npz");
        assert!(read(&path).unwrap_err().to_string().contains("NOT_FOUND"));
        std::fs::write(&path, "PK no archive").unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("x.npz"));
        let mut archive = ZipWriter::new(File::create(&path).unwrap());
        archive.start_file("readme.txt", SimpleFileOptions::default()).unwrap();
        archive.write_all(b"text").unwrap();
        archive.finish().unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("'readme.txt' is no array"));
        // A whole one, cut.
        let array = HostTensor::zeros(ElementType::F32, [64].as_slice()).unwrap();
        write(File::create(&path).unwrap(), &[("x".to_owned(), array)]).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        for length in 0..bytes.len() {
            std::fs::write(&path, &bytes[..length]).unwrap();
            assert!(read(&path).is_err(), "{length} of {} bytes", bytes.len());
        }
    }
}
