//! Room for bytes whose number somebody else says: an error where the host has none, never the end of the process.

use std::collections::TryReserveError;

/// Makes bytes this long: those that are missing are zeros, those that are too many go.
///
/// This crate is optimized for tests too, which have megabytes filled with zeros.
///
/// # Errors
/// The host has no memory for them; the bytes stay as they were.
pub fn make_room(bytes: &mut Vec<u8>, length: usize) -> Result<(), TryReserveError> {
    bytes.try_reserve_exact(length.saturating_sub(bytes.len()))?;
    bytes.resize(length, 0);
    Ok(())
}

/// So many zeros.
///
/// # Errors
/// The host has no memory for them.
pub fn zeros(length: usize) -> Result<Vec<u8>, TryReserveError> {
    let mut bytes = Vec::new();
    make_room(&mut bytes, length)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_zeros_and_what_fits_nowhere_is_an_error() {
        let mut bytes = vec![7; 3];
        assert_eq!(make_room(&mut bytes, 5), Ok(()));
        assert_eq!(bytes, [7, 7, 7, 0, 0]);
        assert_eq!(make_room(&mut bytes, 2), Ok(()));
        assert_eq!(bytes, [7, 7]);
        assert!(make_room(&mut bytes, usize::MAX).is_err());
        assert_eq!(bytes, [7, 7]);
        assert_eq!(zeros(4), Ok(vec![0; 4]));
        assert!(zeros(usize::MAX).is_err());
    }
}
