//! NumPy's `.npy` format, versions 1 to 3 in and 1 out.

use std::io::{Read, Write};

use halite_abi::{ElementKind, ElementType};
use halite_abi::{Result, ResultExt, Status, bail, status};

use super::{HostTensor, byte_length};
use crate::Shape;

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Longest header that is read; real ones have about a hundred bytes.
const MAX_HEADER: u64 = 64 * 1024;
/// The length that written headers are padded to, magic included.
const HEADER_ALIGNMENT: usize = 128;
/// NumPy's own limit is 64; more would only slow the transposition down.
const MAX_RANK: usize = 64;

/// Reads the next array of a stream; `None` at its end. Big-endian and Fortran-order arrays are converted. Memory
/// grows with the bytes that the stream really has. Positions the stream behind the array.
pub fn read(reader: &mut impl Read) -> Result<Option<HostTensor>> {
    let mut preamble = Vec::with_capacity(8);
    reader.take(8).read_to_end(&mut preamble).map_err(|e| io_error("reading the npy magic", &e))?;
    if preamble.is_empty() {
        return Ok(None);
    }
    if preamble.len() < 8 || &preamble[..6] != MAGIC {
        bail!(InvalidArgument, "not an npy file: it does not begin with the bytes \\x93NUMPY");
    }
    let length_bytes = match preamble[6] {
        1 => 2,
        2 | 3 => 4,
        other => bail!(Unimplemented, "npy format version {other} is not known; versions 1, 2 and 3 are"),
    };
    let mut length = [0; 4];
    length[..length_bytes].copy_from_slice(&exactly(reader, length_bytes as u64, "header length")?);
    let length = u64::from(u32::from_le_bytes(length));
    if length > MAX_HEADER {
        bail!(InvalidArgument, "npy header claims {length} bytes; at most {MAX_HEADER} are read");
    }
    let header = exactly(reader, length, "header")?;
    let header = std::str::from_utf8(&header)
        .map_err(|_| status!(InvalidArgument, "npy header is not UTF-8 text"))
        .and_then(|text| Header::parse(text).context(|| format!("in npy header {}", text.trim())))?;
    read_data(reader, header).map(Some)
}

fn read_data(reader: &mut impl Read, header: Header) -> Result<HostTensor> {
    let bytes = byte_length(header.element_type, &header.shape)?;
    let mut data = exactly(reader, bytes as u64, "data")?;
    let width = header.element_type.byte_count() as usize;
    if header.big_endian {
        // Complex numbers are two numbers.
        let part = if header.element_type.kind() == Some(ElementKind::Complex) { width / 2 } else { width };
        data.chunks_exact_mut(part).for_each(<[u8]>::reverse);
    }
    if header.fortran_order {
        data = transpose(&data, &header.shape, width)?;
    }
    HostTensor::new(header.element_type, header.shape, data)
}

/// Writes an array as version 1.0. UNIMPLEMENTED for element types that NumPy has no name for.
pub fn write(writer: &mut impl Write, tensor: &HostTensor) -> Result<()> {
    let descr = descr_of(tensor.element_type).ok_or_else(|| {
        status!(
            Unimplemented,
            "npy files cannot hold elements of type {}; write raw bytes to a .bin file instead",
            tensor.element_type
        )
    })?;
    let dims: Vec<_> = tensor.shape.iter().map(u64::to_string).collect();
    let comma = if dims.len() == 1 { "," } else { "" };
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}{comma}), }}", dims.join(", "));
    let unpadded = MAGIC.len() + 4 + header.len() + 1;
    let padding = unpadded.next_multiple_of(HEADER_ALIGNMENT) - unpadded;
    header.extend(std::iter::repeat_n(' ', padding));
    header.push('\n');
    let length = u16::try_from(header.len())
        .map_err(|_| status!(OutOfRange, "a tensor of rank {} has no npy v1.0 header", dims.len()))?;
    let fail = |e: std::io::Error| io_error("writing npy data", &e);
    writer.write_all(MAGIC).map_err(fail)?;
    writer.write_all(&[1, 0]).map_err(fail)?;
    writer.write_all(&length.to_le_bytes()).map_err(fail)?;
    writer.write_all(header.as_bytes()).map_err(fail)?;
    writer.write_all(&tensor.data).map_err(fail)
}

fn io_error(doing: &str, error: &std::io::Error) -> Status {
    status!(Unknown, "{doing}: {error}")
}

fn exactly(reader: &mut impl Read, length: u64, what: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(length).read_to_end(&mut bytes).map_err(|e| io_error("reading npy data", &e))?;
    if bytes.len() as u64 != length {
        bail!(OutOfRange, "npy {what} is cut short: {length} bytes expected, {} are there", bytes.len());
    }
    Ok(bytes)
}

/// Row-major copy of column-major data.
fn transpose(data: &[u8], shape: &[u64], width: usize) -> Result<Vec<u8>> {
    let mut strides = vec![width; shape.len()];
    for d in 1..shape.len() {
        strides[d] = strides[d - 1] * shape[d - 1] as usize;
    }
    let mut out = super::reserve(data.len())?;
    let (mut index, mut source) = (vec![0u64; shape.len()], 0usize);
    for _ in 0..data.len() / width {
        out.extend_from_slice(&data[source..source + width]);
        for d in (0..shape.len()).rev() {
            index[d] += 1;
            source += strides[d];
            if index[d] < shape[d] {
                break;
            }
            source -= strides[d] * shape[d] as usize;
            index[d] = 0;
        }
    }
    Ok(out)
}

#[derive(Debug)]
struct Header {
    element_type: ElementType,
    big_endian: bool,
    fortran_order: bool,
    shape: Shape,
}

impl Header {
    /// Reads the Python dictionary literal: `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.
    fn parse(text: &str) -> Result<Self> {
        let mut rest = Cursor(text.trim());
        let (mut descr, mut order, mut shape) = (None, None, None);
        rest.expect('{')?;
        while !rest.take('}') {
            let key = rest.string()?;
            rest.expect(':')?;
            match key {
                "descr" => descr = Some(rest.string()?),
                "fortran_order" => order = Some(rest.boolean()?),
                "shape" => shape = Some(rest.tuple()?),
                other => bail!(InvalidArgument, "npy header has an unknown key '{other}'"),
            }
            if !rest.take(',') {
                rest.expect('}')?;
                break;
            }
        }
        let missing = |key: &str| status!(InvalidArgument, "npy header has no '{key}'");
        let (element_type, big_endian) = type_of(descr.ok_or_else(|| missing("descr"))?)?;
        Ok(Header {
            element_type,
            big_endian,
            fortran_order: order.ok_or_else(|| missing("fortran_order"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
        })
    }
}

/// What is left of a header.
struct Cursor<'a>(&'a str);

impl<'a> Cursor<'a> {
    fn take(&mut self, c: char) -> bool {
        let found = self.0.trim_start().strip_prefix(c);
        self.0 = found.unwrap_or(self.0);
        found.is_some()
    }

    fn expect(&mut self, c: char) -> Result<()> {
        if self.take(c) {
            Ok(())
        } else {
            Err(status!(InvalidArgument, "npy header has no '{c}' where one belongs"))
        }
    }

    fn string(&mut self) -> Result<&'a str> {
        let text = self.0.trim_start();
        let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let parts = quote.and_then(|q| text[1..].split_once(q));
        let (value, rest) = parts.ok_or_else(|| {
            status!(
                Unimplemented,
                "npy header has something else than a string where one belongs (arrays of records are not supported)"
            )
        })?;
        self.0 = rest;
        Ok(value)
    }

    fn boolean(&mut self) -> Result<bool> {
        let text = self.0.trim_start();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = text.strip_prefix(word) {
                self.0 = rest;
                return Ok(value);
            }
        }
        Err(status!(InvalidArgument, "npy header has neither True nor False for fortran_order"))
    }

    fn tuple(&mut self) -> Result<Shape> {
        self.expect('(')?;
        let mut shape = Shape::new();
        while !self.take(')') {
            let text = self.0.trim_start();
            let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            let dim =
                text[..end].parse().map_err(|_| status!(InvalidArgument, "npy shape is not numbers"))?;
            shape.push(dim);
            self.0 = &text[end..];
            if shape.len() > MAX_RANK {
                bail!(InvalidArgument, "npy array has more than {MAX_RANK} dimensions");
            }
            if !self.take(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(shape)
    }
}

const TYPES: [(&str, ElementType); 15] = [
    ("b1", ElementType::I1),
    ("i1", ElementType::SI8),
    ("i2", ElementType::SI16),
    ("i4", ElementType::SI32),
    ("i8", ElementType::SI64),
    ("u1", ElementType::UI8),
    ("u2", ElementType::UI16),
    ("u4", ElementType::UI32),
    ("u8", ElementType::UI64),
    ("f2", ElementType::F16),
    ("f4", ElementType::F32),
    ("f8", ElementType::F64),
    ("c8", ElementType::CF64),
    ("c16", ElementType::CF128),
    ("?", ElementType::I1),
];

/// Element type and whether it is stored big-endian.
fn type_of(descr: &str) -> Result<(ElementType, bool)> {
    let name = descr.trim_start_matches(['<', '>', '|', '=']);
    let found = TYPES.iter().find(|(n, _)| *n == name).map(|(_, t)| *t);
    let element_type = found.ok_or_else(|| {
        status!(
            Unimplemented,
            "npy element type '{descr}' is not supported; give such data as raw bytes: 'SHAPExTYPE=@file.bin'"
        )
    })?;
    Ok((element_type, descr.starts_with('>')))
}

fn descr_of(element_type: ElementType) -> Option<String> {
    let numpy = match element_type.kind()? {
        ElementKind::Int => ElementType::new(ElementKind::SInt, element_type.bit_count() as u8),
        _ => element_type,
    };
    let (name, _) = TYPES.iter().find(|(_, t)| *t == numpy)?;
    let order = if element_type.byte_count() == 1 { '|' } else { '<' };
    Some(format!("{order}{name}"))
}

#[cfg(test)]
#[path = "npy_tests.rs"]
mod tests;
