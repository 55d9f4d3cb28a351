//! The metadata and tensors of a GGUF model, which may be split into several files.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    sync::{Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use halite_formats::gguf::{self, Value};
use halite_ops::{DType, blocks::BlockFormat, expert_matmul::RowLayout, expression::Function};

pub(super) use super::errors::{invalid, missing, unsupported};
use super::{
    Result,
    families::FAMILIES,
    family::Family,
    folds::{Described, Folds},
};
use crate::{
    Control, Stage,
    build::{Builder, ExpertMatrices, RowFormat, RowMatrix},
    frontends::Source,
    graph::TensorId,
};

/// Most files of a model.
const MOST_FILES: i128 = 4096;

/// A tensor with its bytes.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    pub dims: Vec<u64>,
    /// What the format calls its element type.
    element: &'static str,
    bytes: Bytes,
}

/// What is in the files of a model.
#[derive(Debug)]
pub(super) struct File {
    metadata: Vec<(String, Value)>,
    tensors: HashMap<String, Tensor>,
    /// Which weights are folded.
    folds: Option<Folds>,
}

impl File {
    /// Whether there is a tensor of this name.
    pub fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// A file with these metadata alone.
    #[cfg(test)]
    pub fn of_metadata(metadata: Vec<(String, Value)>) -> File {
        File { metadata, tensors: HashMap::new(), folds: None }
    }

    /// Reads a model's files.
    pub fn read(source: &Source, control: &Control) -> Result<File> {
        let first = parse(&source.bytes, source.name().unwrap_or("the file"))?;
        let mut file = File { metadata: Vec::new(), tensors: HashMap::new(), folds: None };
        let count = match first.value("split.count") {
            Some(Value::Int(count)) => *count,
            _ => 1,
        };
        if !(0..=MOST_FILES).contains(&count) {
            return Err(invalid(format!("'split.count' is {count}; a model has 1 to {MOST_FILES} files")));
        }
        file.add(first.tensors, &source.bytes)?;
        for place in 1..count {
            control.check(Stage::Reading)?;
            let name = sibling(source.name(), place, count)?;
            let files = source.files.as_ref().ok_or_else(|| {
                unsupported(format!("the model is split into {count} files; open it by its path"))
            })?;
            let bytes = files.read(&name, 0, None).map_err(invalid)?;
            file.add(parse(&bytes, &name)?.tensors, &bytes)?;
        }
        file.metadata = first.metadata;
        file.folds = Folds::read(&file)?;
        Ok(file)
    }

    fn add(&mut self, tensors: Vec<gguf::Tensor>, bytes: &Bytes) -> Result<()> {
        for tensor in tensors {
            // Reading checked that data are within the file.
            let range = tensor.offset as usize..(tensor.offset + tensor.length) as usize;
            let own = Tensor { dims: tensor.dims, element: tensor.element.name, bytes: bytes.slice(range) };
            if self.tensors.insert(tensor.name.clone(), own).is_some() {
                return Err(invalid(format!("two tensors are called '{}'", tensor.name)));
            }
        }
        Ok(())
    }

    /// The value of a key.
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.metadata.iter().find(|(own, _)| own == key).map(|(_, value)| value)
    }

    /// All keys.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.metadata.iter().map(|(key, _)| key.as_str())
    }

    /// The names of all tensors.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// A tensor's dimensions, the outermost first.
    pub fn dims(&self, name: &str) -> Option<&[u64]> {
        self.tensors.get(name).map(|tensor| &tensor.dims[..])
    }
}

impl Described for File {
    fn value(&self, key: &str) -> Option<&Value> {
        File::value(self, key)
    }

    fn has_prefix(&self, prefix: &str) -> bool {
        self.keys().any(|key| key.starts_with(prefix))
    }

    fn dims(&self, name: &str) -> Option<&[u64]> {
        File::dims(self, name)
    }
}

fn parse(bytes: &Bytes, name: &str) -> Result<gguf::Gguf> {
    gguf::Gguf::read(bytes).map_err(|error| invalid(format!("{name}: {error}")))
}

/// The name of another file of a split model: `NAME-00001-of-00003.gguf` is the first of three.
fn sibling(own: Option<&str>, place: i128, count: i128) -> Result<String> {
    let tail = format!("-00001-of-{count:05}.gguf");
    let base = own.and_then(|own| own.strip_suffix(&tail)).ok_or_else(|| {
        let own = own.unwrap_or("the file");
        unsupported(format!("the model is split into {count} files: open the first, NAME{tail}, not '{own}'"))
    })?;
    Ok(format!("{base}-{:05}-of-{count:05}.gguf", place + 1))
}

/// Tensors on their way into a graph, which notes those that were used.
#[derive(Debug)]
pub(super) struct Tensors<'a> {
    file: &'a File,
    used: Mutex<HashSet<String>>,
    turned: Mutex<Turned>,
}

/// What was done for folded weights.
#[derive(Debug, Default)]
struct Turned {
    /// Rows that were turned, in groups or not, and what they became.
    rows: HashMap<(TensorId, bool), TensorId>,
    /// Names of the weights that they were turned for.
    names: HashSet<String>,
    /// Names of weights that a graph has.
    taken: HashSet<String>,
}

impl<'a> Tensors<'a> {
    pub fn of(file: &'a File) -> Self {
        Tensors { file, used: Mutex::default(), turned: Mutex::default() }
    }

    /// Notes that a tensor is known, and gives it if it is there.
    pub fn find(&self, name: &str) -> Option<&'a Tensor> {
        let tensor = self.file.tensors.get(name)?;
        self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
        Some(tensor)
    }

    /// Which weights are folded, and how.
    pub fn folds(&self) -> Option<&'a Folds> {
        self.file.folds.as_ref()
    }

    fn done(&self) -> MutexGuard<'_, Turned> {
        self.turned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that rows were turned for these weights.
    pub fn note_turned(&self, name: &str) {
        self.done().names.insert(name.to_owned());
    }

    /// What rows became that were turned before.
    pub fn known_turned(&self, rows: TensorId, grouped: bool) -> Option<TensorId> {
        self.done().rows.get(&(rows, grouped)).copied()
    }

    /// Keeps what rows became.
    pub fn keep_turned(&self, rows: TensorId, grouped: bool, made: TensorId) {
        self.done().rows.insert((rows, grouped), made);
    }

    /// Refuses folded weights that a graph has without what they need: its results would be wrong.
    fn all_turned(&self) -> Result<()> {
        let (Some(folds), done) = (self.folds(), self.done()) else { return Ok(()) };
        let is_folded = |name: &String| folds.is_before(name) || folds.is_table(name);
        match done.taken.iter().filter(|name| is_folded(name)).find(|name| !done.names.contains(*name)) {
            None => Ok(()),
            Some(name) => Err(unsupported(format!(
                "the weights '{name}' are folded with Hadamard matrices ('prism.hadamard.weight_names'), and these are not known to be so"
            ))),
        }
    }

    fn need(&self, name: &str, dims: &[u64]) -> Result<&'a Tensor> {
        let tensor = self.find(name).ok_or_else(|| missing(name))?;
        self.done().taken.insert(name.to_owned());
        if tensor.dims != dims {
            return Err(invalid(format!("the tensor '{name}' is {:?}, and not {dims:?}", tensor.dims)));
        }
        Ok(tensor)
    }

    /// A matrix of weights, a row for each result.
    pub fn matrix(&self, b: &mut Builder, name: &str, [rows, length]: [u64; 2]) -> Result<RowMatrix> {
        let tensor = self.need(name, &[rows, length])?;
        b.row_matrix(name, format(name, tensor)?, [rows, length], &tensor.bytes)
    }

    /// A matrix of weights for each expert.
    pub fn expert_matrices(&self, b: &mut Builder, name: &str, dims: [u64; 3]) -> Result<ExpertMatrices> {
        // Some files have the rows of all in one matrix.
        let flat = [dims[0].saturating_mul(dims[1]), dims[2]];
        let is_flat = self.dims(name) == Some(&flat[..]);
        let tensor = self.need(name, if is_flat { &flat } else { &dims })?;
        let layout = match format(name, tensor)? {
            RowFormat::Blocks(format) => RowLayout::Blocks(format),
            RowFormat::Floats(dtype) => {
                BlockFormat::of_floats(dtype).map_or(RowLayout::Floats(dtype), RowLayout::Blocks)
            }
        };
        b.expert_matrices(name, layout, dims, &tensor.bytes)
    }

    /// A matrix of `f32`, if it is there.
    pub fn float_rows(&self, b: &mut Builder, name: &str, dims: [u64; 2]) -> Result<Option<TensorId>> {
        if self.find(name).is_none() {
            return Ok(None);
        }
        let tensor = self.need(name, &dims)?;
        if tensor.element != "F32" {
            return Err(unsupported(format!("the tensor '{name}' is {}, and not F32", tensor.element)));
        }
        b.constant(name, DType::F32.into(), &dims, tensor.bytes.clone()).map(Some)
    }

    /// A matrix of integers from 0 to below a number, which has to be there, `i32`.
    pub fn numbers(&self, b: &mut Builder, name: &str, dims: [u64; 2], below: u64) -> Result<TensorId> {
        let tensor = self.need(name, &dims)?;
        if tensor.element != "I32" {
            return Err(unsupported(format!("the tensor '{name}' is {}, and not I32", tensor.element)));
        }
        let all = tensor.bytes.as_chunks::<4>().0.iter().map(|bytes| i32::from_le_bytes(*bytes));
        let is_known = |number: &i32| u64::try_from(*number).is_ok_and(|own| own < below);
        match all.into_iter().find(|number| !is_known(number)) {
            Some(other) => {
                Err(invalid(format!("the tensor '{name}' has the number {other}, of {below} from 0 on")))
            }
            None => b.constant(name, DType::I32.into(), &dims, tensor.bytes.clone()),
        }
    }

    /// A tensor's dimensions, the outermost first.
    pub fn dims(&self, name: &str) -> Option<&'a [u64]> {
        self.file.dims(name)
    }

    /// A vector of floats, if it is there: scales of norms, biases, factors.
    pub fn vector(&self, b: &mut Builder, name: &str, length: u64) -> Result<Option<TensorId>> {
        let Some(tensor) = self.find(name) else { return Ok(None) };
        if tensor.dims != [length] || tensor.element != "F32" {
            let (element, dims) = (tensor.element, &tensor.dims);
            return Err(unsupported(format!(
                "the vector '{name}' is {element} {dims:?}, and not F32 [{length}]"
            )));
        }
        b.constant(name, DType::F32.into(), &[length], tensor.bytes.clone()).map(Some)
    }

    /// The floats of a vector.
    pub fn floats(&self, name: &str) -> Result<Option<Vec<f32>>> {
        let Some(tensor) = self.find(name) else { return Ok(None) };
        let halves = |of: fn(u16) -> f32| {
            let all = tensor.bytes.chunks_exact(2).map(|bytes| of(u16::from_le_bytes([bytes[0], bytes[1]])));
            Ok(Some(all.collect()))
        };
        match tensor.element {
            "F32" => {
                let floats = tensor.bytes.chunks_exact(4);
                let of = |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                Ok(Some(floats.map(of).collect()))
            }
            "F16" => halves(of_half),
            "BF16" => halves(|bits| f32::from_bits(u32::from(bits) << 16)),
            other => Err(unsupported(format!("the factors '{name}' are {other}, and not F32, F16 or BF16"))),
        }
    }

    /// The floats of a tensor with other dimensions, if it is there: its elements are as many.
    pub fn floats_as(&self, b: &mut Builder, name: &str, dims: &[u64]) -> Result<Option<TensorId>> {
        let Some(tensor) = self.find(name) else { return Ok(None) };
        let dtype = match tensor.element {
            "F32" => Some(DType::F32),
            "F16" => Some(DType::F16),
            "BF16" => Some(DType::BF16),
            _ => None,
        };
        let count = dims.iter().product::<u64>();
        let dtype = dtype.filter(|dtype| count.checked_mul(dtype.size()) == Some(tensor.bytes.len() as u64));
        let Some(dtype) = dtype else {
            let (element, own) = (tensor.element, &tensor.dims);
            return Err(invalid(format!("the tensor '{name}' is {element} {own:?}, and not F32 {dims:?}")));
        };
        let made = b.constant(name, dtype.into(), dims, tensor.bytes.clone())?;
        b.as_f32(made).map(Some)
    }

    /// What a product with weights made, times the factor of all of them, where the file has one (`.scale`).
    pub fn rescaled(&self, b: &mut Builder, made: TensorId, part: &str) -> Result<TensorId> {
        // The other factor is for devices that round activations to 4 bits.
        self.find(&format!("{part}.input_scale"));
        let name = format!("{part}.scale");
        match self.dims(&name) {
            Some([1]) => match self.vector(b, &name, 1)? {
                Some(scale) => b.binary(Function::Mul, made, scale),
                None => Ok(made),
            },
            _ => Ok(made),
        }
    }

    /// Refuses tensors that nothing used: what they are for would be missing from results. Those of `spare` layers need no use, and
    /// those that the family knows as not needed.
    pub fn all_used(&self, family: &Family, spare: Range<u64>) -> Result<()> {
        self.all_turned()?;
        let architecture = family.name;
        // The parts in front of each other are built apart.
        let other = match family.front {
            Some(front) => Some(front.prefix),
            None => FAMILIES
                .iter()
                .find(|own| own.name == family.name && own.front.is_some())
                .map(|own| own.prefix),
        };
        let is_spare = |name: &str| {
            if other.is_some_and(|prefix| name.starts_with(prefix)) {
                return true;
            }
            let Some((layer, part)) = name.strip_prefix("blk.").and_then(|rest| rest.split_once('.')) else {
                return false;
            };
            let is_unread = family.unread.is_some_and(|unread| part.starts_with(unread));
            is_unread || layer.parse::<u64>().is_ok_and(|layer| spare.contains(&layer))
        };
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rest: Vec<&str> = self
            .file
            .tensors
            .keys()
            .filter(|name| !used.contains(*name))
            .map(String::as_str)
            .filter(|name| !is_spare(name))
            .collect();
        if rest.is_empty() {
            return Ok(());
        }
        rest.sort_unstable();
        let (count, some) = (rest.len(), rest[..rest.len().min(8)].join(", "));
        Err(unsupported(format!(
            "the file has {count} tensors that a model '{architecture}' is not known to have: {some}"
        )))
    }
}

/// A float of 16 bits.
fn of_half(bits: u16) -> f32 {
    let (exponent, mantissa) = (i32::from(bits >> 10 & 0x1f), f32::from(bits & 0x3ff));
    let size = match exponent {
        0 => mantissa * 2.0_f32.powi(-24),
        31 if mantissa == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1024.0 + mantissa) * 2.0_f32.powi(exponent - 25),
    };
    if bits >> 15 == 0 { size } else { -size }
}

/// How the rows of a tensor lie in their bytes.
fn format(name: &str, tensor: &Tensor) -> Result<RowFormat> {
    let floats = match tensor.element {
        "F32" => Some(DType::F32),
        "F16" => Some(DType::F16),
        "BF16" => Some(DType::BF16),
        _ => None,
    };
    let blocks = BlockFormat::named(tensor.element).map(RowFormat::Blocks);
    floats.map(RowFormat::Floats).or(blocks).ok_or_else(|| {
        let known: Vec<_> = BlockFormat::ALL.into_iter().map(BlockFormat::ggml_name).collect();
        let (own, known) = (tensor.element, known.join(", "));
        unsupported(format!("the weights '{name}' are {own}; there are F32, F16, BF16, {known}"))
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn floats_of_16_bits_are_read_as_they_are() {
        for bits in 0..=u16::MAX {
            let (found, wanted) = (super::of_half(bits), half::f16::from_bits(bits).to_f32());
            assert!(found.to_bits() == wanted.to_bits() || found.is_nan() && wanted.is_nan(), "{bits:#x}");
        }
    }
}
