//! The `--input` language: scalars, tensors, and references to `.npy` and raw files.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek},
};

use halite_abi::ElementType;
use halite_abi::{Result, ResultExt, bail, status};

use super::{
    HostTensor, byte_length, npy,
    number::{parse_f32, parse_f64, parse_i32, parse_i64},
    text,
};

/// What a function takes in one place: a character of its calling convention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// `i`.
    I32,
    /// `I`.
    I64,
    /// `f`.
    F32,
    /// `F`.
    F64,
    /// `r`.
    Reference,
}

impl ArgumentKind {
    /// The kind of a calling-convention character.
    pub fn from_char(c: char) -> Option<Self> {
        Some(match c {
            'i' => ArgumentKind::I32,
            'I' => ArgumentKind::I64,
            'f' => ArgumentKind::F32,
            'F' => ArgumentKind::F64,
            'r' => ArgumentKind::Reference,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            ArgumentKind::I32 => "i32",
            ArgumentKind::I64 => "i64",
            ArgumentKind::F32 => "f32",
            ArgumentKind::F64 => "f64",
            ArgumentKind::Reference => "tensor",
        }
    }
}

/// A value in host memory.
#[derive(Clone, Debug, PartialEq)]
pub enum HostValue {
    /// Scalar.
    I32(i32),
    /// Scalar.
    I64(i64),
    /// Scalar.
    F32(f32),
    /// Scalar.
    F64(f64),
    /// To be passed as a buffer view.
    Tensor(HostTensor),
    /// To be passed as a plain buffer with the tensor's bytes.
    Buffer(HostTensor),
    /// A list of values, which a model takes as one.
    List(Vec<HostValue>),
    /// The null reference. As an expected value: anything will do.
    Null,
    /// A scalar that was not given. As an argument zero, as an expected value: anything will do.
    Ignored(ArgumentKind),
}

/// Reads `--input` texts in order. Files stay open, because `+file` continues where an earlier text stopped.
#[derive(Debug, Default)]
pub struct InputReader {
    files: BTreeMap<String, BufReader<File>>,
    /// Files of raw bytes, with what was read of them last.
    raw: BTreeMap<String, String>,
    /// Whether `@-` is standard input, and not a file of that name.
    reads_standard_input: bool,
}

/// What stands for standard input.
const STANDARD_INPUT: &str = "-";

impl InputReader {
    /// A reader without open files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes `@-` as standard input, which has one numpy array after the other, or raw bytes.
    #[must_use]
    pub fn with_standard_input(mut self) -> Self {
        self.reads_standard_input = true;
        self
    }

    fn is_standard_input(&self, path: &str) -> bool {
        self.reads_standard_input && path == STANDARD_INPUT
    }

    /// Reads all texts against the kinds that the function takes. `*file.npy` gives as many values as the file has
    /// arrays, so there may be more values than texts. There may be fewer than `kinds`: the caller decides.
    pub fn read_all<S: AsRef<str>>(&mut self, texts: &[S], kinds: &[ArgumentKind]) -> Result<Vec<HostValue>> {
        let mut values = Vec::new();
        for text in texts {
            let text = text.as_ref();
            let kinds = kinds.get(values.len()..).unwrap_or_default();
            values.extend(self.read(text, kinds).context(|| format!("parsing input `{text}`"))?);
        }
        Ok(values)
    }

    fn read(&mut self, text: &str, kinds: &[ArgumentKind]) -> Result<Vec<HostValue>> {
        let text = unquote(text.trim());
        let Some(kind) = kinds.first().copied() else {
            bail!(InvalidArgument, "function expected fewer input values");
        };
        match text {
            "" => bail!(InvalidArgument, "no value specified for input"),
            "(null)" | "(ignored)" if kind == ArgumentKind::Reference => return Ok(vec![HostValue::Null]),
            "(null)" | "(ignored)" => return Ok(vec![HostValue::Ignored(kind)]),
            _ => {}
        }
        // `*16=…` is a tensor of opaque elements, not a file.
        let opaque = text.starts_with('*') && text.contains('=');
        if text.starts_with(['@', '+', '*']) && !opaque && !is_number(text) {
            return self.arrays(text, kinds);
        }
        if kind != ArgumentKind::Reference {
            return scalar(text, kind).map(|v| vec![v]);
        }
        Ok(vec![match text.strip_prefix('&') {
            Some(text) => HostValue::Buffer(self.tensor(text)?),
            None => HostValue::Tensor(self.tensor(text)?),
        }])
    }

    /// `@file.npy`, `+file.npy` or `*file.npy`.
    fn arrays(&mut self, text: &str, kinds: &[ArgumentKind]) -> Result<Vec<HostValue>> {
        let path = &text[1..];
        if !path.to_ascii_lowercase().ends_with(".npy") && !self.is_standard_input(path) {
            // Whatever is not there has no wrong form.
            std::fs::metadata(path).map_err(|e| status!(NotFound, "unable to open file `{path}`: {e}"))?;
            bail!(
                Unimplemented,
                "'{path}' does not tell shape and type of its bytes, as numpy files (.npy) do; write them too: \
                 'SHAPExTYPE=@{path}'"
            );
        }
        let file = self.open(path, text.starts_with('+'))?;
        let mut values = Vec::new();
        loop {
            let array = npy::read(file).context(|| format!("reading '{path}'"))?;
            let Some(array) = array else { break };
            let Some(kind) = kinds.get(values.len()) else {
                bail!(InvalidArgument, "function expected fewer input values; '{path}' has more arrays");
            };
            values.push(from_array(array, *kind)?);
            if !text.starts_with('*') {
                return Ok(values);
            }
        }
        if values.is_empty() {
            bail!(OutOfRange, "'{path}' has no further array");
        }
        Ok(values)
    }

    /// `2x2xf32=1 2 3 4`, or `2x2xf32=@file.bin`.
    fn tensor(&mut self, text: &str) -> Result<HostTensor> {
        let (metadata, data) = text::split(text)?;
        let (element_type, shape) = text::parse_metadata(metadata)?;
        let Some(path) = data.strip_prefix(['@', '+']).filter(|_| !is_number(data)) else {
            return HostTensor::parse_elements(element_type, shape, data);
        };
        let length = byte_length(element_type, &shape)?;
        let file = self.open(path, data.starts_with('+'))?;
        let failed = |e: io::Error| status!(Unknown, "reading '{path}': {e}");
        if let Some((what, form)) = told_by(file.fill_buf().map_err(failed)?) {
            bail!(
                InvalidArgument,
                "'{path}' is {what}: its header would be taken for elements. Give {form}, or a file of nothing but elements"
            );
        }
        let mut bytes = Vec::new();
        file.take(length as u64).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() != length {
            bail!(OutOfRange, "'{path}' holds {} bytes of the {length} that {metadata} needs", bytes.len());
        }
        self.raw.insert(path.to_owned(), metadata.to_owned());
        HostTensor::new(element_type, shape, bytes)
    }

    /// Refuses files of raw bytes that hold more than was read, which has another shape or type then; to be called behind the last text, as
    /// `+file` reads on. Devices and pipes tell no length.
    pub fn finish(&mut self) -> Result<()> {
        for (path, metadata) in &self.raw {
            let Some(file) = self.files.get_mut(path) else { continue };
            let Ok(about) = file.get_ref().metadata() else { continue };
            if !about.is_file() {
                continue;
            }
            let at = file.stream_position().map_err(|e| status!(Unknown, "reading '{path}': {e}"))?;
            if at < about.len() {
                bail!(
                    OutOfRange,
                    "'{path}' holds {} bytes, and {at} were read, the last for {metadata}; a further value reads on with +{path}",
                    about.len()
                );
            }
        }
        Ok(())
    }

    fn open(&mut self, path: &str, go_on: bool) -> Result<&mut BufReader<File>> {
        if !self.files.contains_key(path) {
            let file = match self.is_standard_input(path) {
                true => standard_input(),
                false => File::open(path),
            };
            let file = file.map_err(|e| status!(NotFound, "unable to open file `{path}`: {e}"))?;
            if file.metadata().is_ok_and(|about| about.is_dir()) {
                bail!(InvalidArgument, "`{path}` is a folder, not a file");
            }
            self.files.insert(path.to_owned(), BufReader::new(file));
        }
        let file = self.files.get_mut(path).expect("it was inserted above");
        if !go_on {
            // A pipe cannot seek; it is at its start when it was just opened.
            let _ = file.rewind();
        }
        Ok(file)
    }
}

/// Standard input as a file. Nothing else reads it meanwhile.
fn standard_input() -> io::Result<File> {
    #[cfg(unix)]
    let own = std::os::fd::AsFd::as_fd(&io::stdin()).try_clone_to_owned()?;
    #[cfg(windows)]
    let own = std::os::windows::io::AsHandle::as_handle(&io::stdin()).try_clone_to_owned()?;
    Ok(File::from(own))
}

/// What a file is that begins so, and how it is given, if it is no raw bytes.
fn told_by(start: &[u8]) -> Option<(&'static str, &'static str)> {
    let kinds: [(&[u8], _, _); 2] = [
        (b"\x93NUMPY", "a numpy file", "it as @FILE.npy, without shape and type"),
        (b"\x89PNG\r\n\x1a\n", "a picture", "it as @FILE.png, without shape and type"),
    ];
    kinds.into_iter().find(|(magic, ..)| start.starts_with(magic)).map(|(_, what, form)| (what, form))
}

/// Whether `+5` is meant, not a file named `5`.
fn is_number(text: &str) -> bool {
    text.starts_with('+') && (parse_i64(text).is_some() || parse_f64(text).is_some())
}

fn unquote(text: &str) -> &str {
    text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).map_or(text, str::trim)
}

fn scalar(text: &str, kind: ArgumentKind) -> Result<HostValue> {
    let value = match kind {
        ArgumentKind::I32 => parse_i32(text).map(HostValue::I32),
        ArgumentKind::I64 => parse_i64(text).map(HostValue::I64),
        ArgumentKind::F32 => parse_f32(text).map(HostValue::F32),
        ArgumentKind::F64 => parse_f64(text).map(HostValue::F64),
        ArgumentKind::Reference => None,
    };
    value.ok_or_else(|| {
        status!(
            InvalidArgument,
            "parsing value `{text}` as {}; the function takes a plain number here",
            kind.name()
        )
    })
}

/// An array for a tensor argument, or the one element of an array for a scalar argument.
fn from_array(array: HostTensor, kind: ArgumentKind) -> Result<HostValue> {
    if kind == ArgumentKind::Reference {
        return Ok(HostValue::Tensor(array));
    }
    let wanted = match kind {
        ArgumentKind::I32 => [ElementType::SI32, ElementType::UI32],
        ArgumentKind::I64 => [ElementType::SI64, ElementType::UI64],
        ArgumentKind::F32 => [ElementType::F32; 2],
        _ => [ElementType::F64; 2],
    };
    if array.element_count() != 1 || !wanted.contains(&array.element_type) {
        bail!(
            InvalidArgument,
            "function signature mismatch: expected a scalar {} but provided an array {}",
            kind.name(),
            array.metadata()
        );
    }
    // Integers print exactly, floats do not.
    match (kind, array.data.as_slice()) {
        (ArgumentKind::F32, &[a, b, c, d]) => Ok(HostValue::F32(f32::from_le_bytes([a, b, c, d]))),
        (ArgumentKind::F64, data) if data.len() == 8 => {
            Ok(HostValue::F64(f64::from_le_bytes(data.try_into().expect("eight bytes"))))
        }
        _ => scalar(&array.element_text(0), kind),
    }
}
