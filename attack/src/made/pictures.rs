//! Pictures that say or unpack to more than they hold. Formats: PNG (ISO/IEC 15948), JPEG (ITU-T T.81), DEFLATE (RFC 1951).

use crate::noise::Noise;

/// Bits of a DEFLATE stream, the lowest of a byte first.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    used: usize,
}

impl Bits {
    /// Puts bits of a code, the highest first.
    fn code(&mut self, code: u32, length: usize) {
        for bit in (0..length).rev() {
            if self.used.is_multiple_of(8) {
                self.bytes.push(0);
            }
            let last = self.bytes.len() - 1;
            self.bytes[last] |= ((code >> bit & 1) as u8) << (self.used % 8);
            self.used += 1;
        }
    }
}

/// A zlib stream (RFC 1950) of zeros: 13 bits for each 258.
fn zeros(count: u64) -> Vec<u8> {
    let mut bits = Bits::default();
    // The last block, with the codes that are known: its kind has the lowest bit first.
    bits.code(1, 1);
    bits.code(0b10, 2);
    // A zero, then lengths of 258 at a distance of 1.
    bits.code(0x30, 8);
    for _ in 0..count.saturating_sub(1) / 258 {
        bits.code(0xC5, 8);
        bits.code(0, 5);
    }
    for _ in 0..count.saturating_sub(1) % 258 {
        bits.code(0x30, 8);
    }
    bits.code(0, 7);
    let sum = (count % 65_521) as u32;
    [&[0x78, 0x01][..], &bits.bytes, &(sum << 16 | 1).to_be_bytes()].concat()
}

/// The sum of a chunk (ISO/IEC 15948, annex D).
fn sum(bytes: &[u8]) -> u32 {
    let step = |all: u32, byte: &u8| {
        (0..8).fold(
            all ^ u32::from(*byte),
            |all, _| if all & 1 == 1 { all >> 1 ^ 0xEDB8_8320 } else { all >> 1 },
        )
    };
    !bytes.iter().fold(u32::MAX, step)
}

fn chunk(name: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let inner = [&name[..], content].concat();
    [&(content.len() as u32).to_be_bytes()[..], &inner, &sum(&inner).to_be_bytes()].concat()
}

/// Depths and the number of channels that a kind of colour has.
const COLOURS: [(u8, u64); 5] = [(0, 1), (2, 3), (3, 1), (4, 2), (6, 4)];

/// A PNG whose sizes, depths and chunks are whatever; its pixels are all the same.
pub fn png(noise: &mut Noise) -> Vec<u8> {
    let [width, height] =
        [(); 2].map(|()| if noise.once_in(30) { noise.next() as u32 } else { noise.size(1 << 14) as u32 });
    let depth = if noise.once_in(20) { noise.next() as u8 } else { 1 << noise.below(5) };
    let (colour, channels) = *noise.pick(&COLOURS);
    let mut file = b"\x89PNG\r\n\x1A\n".to_vec();
    let interlaced = noise.once_in(4);
    let head = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[depth, colour, 0, 0, interlaced.into()]];
    file.extend(chunk(b"IHDR", &head.concat()));
    // Texts, profiles and what moves, which readers unpack or skip.
    for _ in 0..noise.size(2000) {
        let packed = || [&b"a\0\0"[..], &zeros(1 << 22)].concat();
        file.extend(match noise.below(400) {
            0 => chunk(b"zTXt", &packed()),
            1 => chunk(b"iCCP", &packed()),
            2 => chunk(b"iTXt", &[&b"a\0\x01\0\0\0"[..], &zeros(1 << 22)].concat()),
            3 => chunk(b"acTL", &[0xFF; 8]),
            4 => chunk(
                b"eXIf",
                &[b"MM\0*\0\0\0\x08"[..].to_vec(), vec![0xFF; noise.size(1 << 12) as usize]].concat(),
            ),
            5 => chunk(b"tRNS", &vec![0; noise.size(1 << 9) as usize]),
            _ => chunk(b"tEXt", b"a\0b"),
        });
    }
    if colour == 3 && !noise.once_in(8) {
        file.extend(chunk(b"PLTE", &vec![7; 3 * noise.size(256) as usize]));
    }
    let row = (u64::from(width) * channels * u64::from(depth)).div_ceil(8) + 1;
    let all = row.saturating_mul(height.into());
    let held = if noise.once_in(4) { noise.size(all) } else { all };
    let data = zeros(held.min(1 << 28));
    let pieces = if noise.once_in(6) { 1 } else { 1 << 13 };
    for piece in data.chunks(pieces) {
        file.extend(chunk(b"IDAT", piece));
    }
    if !noise.once_in(6) {
        file.extend(chunk(b"IEND", &[]));
    }
    file
}

/// A PNG of one bit for a pixel that is very long and very thin, one way or the other.
pub fn lines(noise: &mut Noise) -> Vec<u8> {
    let (long, thin) = (noise.size(1 << 24) as u32, noise.size(1 << 8) as u32);
    let [width, height] = if noise.once_in(2) { [long, thin] } else { [thin, long] };
    let mut file = b"\x89PNG\r\n\x1A\n".to_vec();
    file.extend(chunk(
        b"IHDR",
        &[&width.to_be_bytes()[..], &height.to_be_bytes(), &[1, 0, 0, 0, 0]].concat(),
    ));
    let row = u64::from(width).div_ceil(8) + 1;
    file.extend(chunk(b"IDAT", &zeros(row.saturating_mul(height.into()).min(1 << 28))));
    file.extend(chunk(b"IEND", &[]));
    file
}

fn segment(marker: u8, content: &[u8]) -> Vec<u8> {
    [&[0xFF, marker][..], &(content.len() as u16 + 2).to_be_bytes(), content].concat()
}

/// A JPEG whose sizes and sampling are whatever, with very many scans of next to nothing.
pub fn jpeg(noise: &mut Noise) -> Vec<u8> {
    let [height, width] =
        [(); 2].map(|()| if noise.once_in(20) { u16::MAX } else { noise.size(1 << 13) as u16 });
    let components = if noise.once_in(12) { noise.next() as u8 } else { *noise.pick(&[1, 3, 4]) };
    // Baseline, extended and progressive, and kinds that hardly anybody reads.
    let frame = *noise.pick(&[0xC0, 0xC1, 0xC2, 0xC2, 0xC3, 0xC9]);
    let mut file = vec![0xFF, 0xD8];
    if noise.once_in(4) {
        let tags = vec![0xFF; noise.size(1 << 12) as usize];
        file.extend(segment(0xE1, &[&b"Exif\0\0MM\0*\0\0\0\x08"[..], &tags].concat()));
    }
    file.extend(segment(0xDB, &[&[0][..], &[1; 64]].concat()));
    let mut head = [&[8][..], &height.to_be_bytes(), &width.to_be_bytes(), &[components]].concat();
    for component in 0..components {
        let sampling = if noise.once_in(12) { noise.next() as u8 } else { *noise.pick(&[0x11, 0x22, 0x21]) };
        head.extend([component + 1, sampling, 0]);
    }
    file.extend(segment(frame, &head));
    // One code for everything: of one bit, that nothing follows.
    for table in [0x00, 0x10] {
        let symbols = [&[table, 1][..], &[0; 15], &[0]].concat();
        file.extend(segment(0xC4, &symbols));
    }
    for _ in 0..noise.size(3000).max(1) {
        let used = components.clamp(1, 4).min(1 + noise.below(4) as u8);
        let mut scan = vec![used];
        (1..=used).for_each(|component| scan.extend([component, 0]));
        let spectral =
            if frame == 0xC2 { [noise.below(2) as u8, noise.size(63) as u8, 0] } else { [0, 63, 0] };
        scan.extend(spectral);
        file.extend(segment(0xDA, &scan));
        file.extend(vec![0; noise.size(64) as usize]);
        if noise.once_in(40) {
            file.extend(segment(0xDD, &(noise.next() as u16).to_be_bytes()));
        }
    }
    file.extend([0xFF, 0xD9]);
    file
}
