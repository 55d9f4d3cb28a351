//! What a JPEG says of its samples, before anything is decoded. Format: ITU-T T.81, annex B.

use std::io::{self, Read, Seek, SeekFrom};

/// Whether the first colour of a JPEG has fewer samples than another one: decoders count on it having the most. Of what is no JPEG, no.
pub(super) fn first_is_coarser(file: &mut (impl Read + Seek)) -> io::Result<bool> {
    file.rewind()?;
    let found = frame(file);
    file.rewind()?;
    match found {
        Ok(samples) => {
            let most = |shift: u32| samples.iter().map(|sample| sample >> shift & 0xF).max();
            let first = |shift: u32| samples.first().map(|sample| sample >> shift & 0xF);
            Ok(most(0) != first(0) || most(4) != first(4))
        }
        // It is cut: whoever decodes it says so.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// The samples of the colours, across in the upper half of a byte and down in the lower; none where there is no frame.
fn frame(file: &mut (impl Read + Seek)) -> io::Result<Vec<u8>> {
    let mut pair = [0; 2];
    file.read_exact(&mut pair)?;
    if pair != [0xFF, 0xD8] {
        return Ok(Vec::new());
    }
    loop {
        let mut marker = [0xFF];
        file.read_exact(&mut marker)?;
        while marker == [0xFF] {
            file.read_exact(&mut marker)?;
        }
        match marker[0] {
            // What stands by itself.
            0x01 | 0xD0..=0xD7 => continue,
            // The scans, or the end.
            0xDA | 0xD9 => return Ok(Vec::new()),
            _ => {}
        }
        file.read_exact(&mut pair)?;
        let length = u16::from_be_bytes(pair).saturating_sub(2);
        let is_frame = matches!(marker[0], 0xC0..=0xCF) && !matches!(marker[0], 0xC4 | 0xC8 | 0xCC);
        if !is_frame {
            file.seek(SeekFrom::Current(length.into()))?;
            continue;
        }
        let mut content = vec![0; length.into()];
        file.read_exact(&mut content)?;
        // Depth, height, width and a count; then a number, the samples and a table for each colour.
        let colours = content.get(6..).unwrap_or_default().chunks_exact(3);
        return Ok(colours.map(|colour| colour[1]).collect());
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn jpeg(samples: &[u8]) -> Vec<u8> {
        let mut file = vec![0xFF, 0xD8, 0xFF, 0xE0, 0, 4, 0xFF, 0xC0, 0xFF, 0xFF, 0xC0];
        file.extend((8 + 3 * samples.len() as u16).to_be_bytes());
        file.extend([8, 0, 1, 0, 1, samples.len() as u8]);
        samples.iter().for_each(|samples| file.extend([1, *samples, 0]));
        file
    }

    #[test]
    fn the_first_colour_has_the_most_samples() {
        let coarser = |file: Vec<u8>| first_is_coarser(&mut Cursor::new(file)).unwrap();
        for usual in [&[0x11][..], &[0x22, 0x11, 0x11], &[0x21, 0x11, 0x11], &[0x11, 0x11, 0x11, 0x11]] {
            assert!(!coarser(jpeg(usual)), "{usual:x?}");
        }
        for unusual in [&[0x11, 0x21, 0x11][..], &[0x21, 0x12, 0x11], &[0x11, 0x11, 0x11, 0x22]] {
            assert!(coarser(jpeg(unusual)), "{unusual:x?}");
        }
        for length in 0..jpeg(&[0x11, 0x22]).len() {
            coarser(jpeg(&[0x11, 0x22])[..length].to_vec());
        }
        assert!(!coarser(b"\x89PNG".to_vec()));
    }
}
