//! The fingerprint of a library, by which people tell one build from another.

use std::{fs::File, io::Read, path::Path};

use sha2::{Digest, Sha256};

use halite_hal::{Result, status};

/// SHA-256 of a file (FIPS 180-4) in lower-case hexadecimal digits. Reads it in pieces.
pub fn sha256(path: &Path) -> Result<String> {
    let cannot = |e: std::io::Error| status!(NotFound, "cannot read '{}': {e}", path.display());
    let mut file = File::open(path).map_err(cannot)?;
    let mut hash = Sha256::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        match file.read(&mut piece).map_err(cannot)? {
            0 => break,
            length => hash.update(&piece[..length]),
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_digest() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "abc").unwrap();
        // FIPS 180-4, example of one block.
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(file.path()).unwrap(), expected);
        assert!(sha256(Path::new("/no/such")).unwrap_err().message().contains("/no/such"));
    }
}
