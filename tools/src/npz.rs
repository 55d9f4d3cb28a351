//! `.npz` archives: arrays by name in a zip file, as `numpy.savez` writes them.

use std::{
    fs::File,
    io::{BufReader, Write},
    path::Path,
};

use zip::{CompressionMethod, ZipArchive, ZipWriter, write::SimpleFileOptions};

use crate::{
    console::{Failure, Result},
    engine::{HostTensor, npy},
};

/// What the names of arrays end with inside of an archive.
const SUFFIX: &str = ".npy";

/// All arrays in the order of the archive, by name.
pub(crate) fn read(path: &Path) -> Result<Vec<(String, HostTensor)>> {
    let file = File::open(path).map_err(|e| Failure::file("cannot read", path, &e))?;
    let wrong =
        |what: &dyn std::fmt::Display| Failure::invalid(format!("reading '{}': {what}", path.display()));
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|e| wrong(&e))?;
    let mut arrays = Vec::new();
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).map_err(|e| wrong(&e))?;
        let name = member.name().map_err(|e| wrong(&e))?.into_owned();
        let Some(plain) = name.strip_suffix(SUFFIX) else {
            return Err(wrong(&format!("its member '{name}' is no array: arrays end in {SUFFIX}")));
        };
        let array =
            npy::read(&mut member).map_err(|e| Failure::from(e).context(format!("reading '{name}'")))?;
        let array = array.ok_or_else(|| wrong(&format!("its member '{name}' is empty")))?;
        arrays.push((plain.to_owned(), array));
    }
    Ok(arrays)
}

/// Writes arrays by name, compressed.
pub(crate) fn write(out: impl Write + std::io::Seek, arrays: &[(String, HostTensor)]) -> Result<()> {
    let failed = |e: zip::result::ZipError| Failure::invalid(format!("writing the archive: {e}"));
    let mut archive = ZipWriter::new(out);
    for (name, array) in arrays {
        let large = array.data.len() as u64 > u64::from(u32::MAX / 2);
        let options =
            SimpleFileOptions::default().compression_method(CompressionMethod::Deflated).large_file(large);
        archive.start_file(format!("{name}{SUFFIX}"), options).map_err(failed)?;
        npy::write(&mut archive, array)?;
    }
    archive.finish().map_err(failed)?.flush()?;
    Ok(())
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
