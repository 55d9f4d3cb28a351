//! Owns the sizes and values that a command line gives for a model: `--dim`, `--shape`, `--value`, and the versions that
//! come of several of them. Does not own: whether the model agrees.

use clap::Args;
use halite::tensor::{ArgumentKind, HostTensor, HostValue, InputReader};
use halite_compiler::{
    graph::ElementType,
    signature::{Bindings, BoundValue},
};
use halite_hal::ElementKind;
use halite_shaders::DType;

use crate::console::{Failure, Result};

/// Most versions of a function.
const MOST_VERSIONS: usize = 64;

/// What the model leaves open.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "What the model leaves open")]
pub struct RequestFlags {
    /// Size of a symbolic dimension, such as batch=1. Several sizes (seq=16,64,256) make a version of the function for each;
    /// the module chooses by the inputs that it is called with. May be repeated
    #[arg(long = "dim", value_name = "NAME=SIZE,…")]
    dim: Vec<String>,
    /// Dimensions of an input, such as image=1x3x224x224. Several (image=1x3x224x224,1x3x320x320) make versions. May be
    /// repeated
    #[arg(long = "shape", value_name = "INPUT=AxBxC,…")]
    shape: Vec<String>,
    /// Elements of an input that decide the sizes of others, such as shape=2xi64=3,4 or shape=@shape.npy, in the language of
    /// --input of run-module. The module refuses other elements. May be repeated
    #[arg(long = "value", value_name = "INPUT=VALUE")]
    value: Vec<String>,
}

impl RequestFlags {
    /// One set of sizes and values for each version, in the order of the command line, the last flag changing first.
    pub fn versions(&self) -> Result<Vec<Bindings>> {
        let mut versions = vec![Bindings::default()];
        for text in &self.dim {
            let (name, sizes) = named("--dim", text, "NAME=SIZE")?;
            let sizes =
                each(sizes, |size| size.parse::<u64>().ok(), || format!("--dim={text}: sizes are numbers"))?;
            versions = product(&versions, &sizes, |bindings, size| {
                bindings.dims.insert(name.to_owned(), *size);
            })?;
        }
        for text in &self.shape {
            let (name, shapes) = named("--shape", text, "INPUT=AxBxC")?;
            let shapes = each(shapes, dims, || format!("--shape={text}: write dimensions as 1x3x224x224"))?;
            versions = product(&versions, &shapes, |bindings, dims| {
                bindings.shapes.insert(name.to_owned(), dims.clone());
            })?;
        }
        for text in &self.value {
            let (name, value) = named("--value", text, "INPUT=VALUE")?;
            let value =
                bound(&tensor(text, value)?).map_err(|why| usage(format!("--value={text}: {why}")))?;
            versions.iter_mut().for_each(|bindings| {
                bindings.values.insert(name.to_owned(), value.clone());
            });
        }
        Ok(versions)
    }
}

fn usage(text: String) -> Failure {
    Failure::Usage(text)
}

fn named<'a>(flag: &str, text: &'a str, form: &str) -> Result<(&'a str, &'a str)> {
    text.split_once('=')
        .filter(|(name, rest)| !name.is_empty() && !rest.is_empty())
        .ok_or_else(|| usage(format!("{flag}={text} is not of the form {form}")))
}

fn each<T>(text: &str, read: impl Fn(&str) -> Option<T>, wrong: impl Fn() -> String) -> Result<Vec<T>> {
    text.split(',').map(|item| read(item.trim()).ok_or_else(|| usage(wrong()))).collect()
}

/// `1x3x224x224`; nothing is a scalar.
fn dims(text: &str) -> Option<Vec<u64>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    text.split('x').map(|size| size.parse().ok()).collect()
}

/// Every version with every choice.
fn product<T>(
    versions: &[Bindings],
    choices: &[T],
    set: impl Fn(&mut Bindings, &T),
) -> Result<Vec<Bindings>> {
    let count = versions.len().saturating_mul(choices.len());
    if count > MOST_VERSIONS {
        return Err(usage(format!("{count} versions are more than {MOST_VERSIONS}; give fewer sizes")));
    }
    let with = |bindings: &Bindings, choice: &T| {
        let mut bindings = bindings.clone();
        set(&mut bindings, choice);
        bindings
    };
    Ok(versions.iter().flat_map(|bindings| choices.iter().map(|choice| with(bindings, choice))).collect())
}

fn tensor(text: &str, value: &str) -> Result<HostTensor> {
    let read = InputReader::new().read_all(&[value], &[ArgumentKind::Reference]);
    let values = read.map_err(|status| usage(format!("--value={text}: {}", status.message())))?;
    match <[HostValue; 1]>::try_from(values) {
        Ok([HostValue::Tensor(tensor)]) => Ok(tensor),
        _ => Err(usage(format!("--value={text} is not one tensor"))),
    }
}

/// A tensor as the compiler takes it.
///
/// # Errors
/// No element type of models is like that of the tensor.
pub fn bound(tensor: &HostTensor) -> Result<BoundValue, String> {
    let element = element(tensor.element_type)
        .ok_or_else(|| format!("elements of type {} are not known to models", tensor.element_type))?;
    Ok(BoundValue { element, dims: tensor.shape.to_vec(), bytes: tensor.data.clone().into() })
}

/// The compiler's name of an element type; integers without a sign count as signed.
fn element(of: halite_hal::ElementType) -> Option<ElementType> {
    use ElementKind::{BFloat, Bool, Float, Int, SInt, UInt};
    let dtype = match (of.kind()?, of.bit_count()) {
        (Bool, 8) => return Some(ElementType::Bool),
        (Float, 16) => DType::F16,
        (Float, 32) => DType::F32,
        (BFloat, 16) => DType::BF16,
        (Int | SInt, 8) => DType::I8,
        (UInt, 8) => DType::U8,
        (Int | SInt, 32) => DType::I32,
        (UInt, 32) => DType::U32,
        (Int | SInt, 64) => DType::I64,
        (kind, bits) => wide(kind, bits)?,
    };
    Some(dtype.into())
}

/// Types by the names of the kernel library, which tells whether it has them.
fn wide(kind: ElementKind, bits: u32) -> Option<DType> {
    let letter = match kind {
        ElementKind::Float => 'f',
        ElementKind::Int | ElementKind::SInt => 'i',
        ElementKind::UInt => 'u',
        _ => return None,
    };
    let name = format!("{letter}{bits}");
    DType::ALL.into_iter().find(|dtype| dtype.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(dim: &[&str], shape: &[&str], value: &[&str]) -> RequestFlags {
        let all = |texts: &[&str]| texts.iter().map(|t| (*t).to_owned()).collect();
        RequestFlags { dim: all(dim), shape: all(shape), value: all(value) }
    }

    #[test]
    fn several_sizes_make_versions() {
        let versions = flags(&["n=1", "s=16,64"], &["x=1x2,3x4"], &["k=2xi64=5,6"]).versions().unwrap();
        assert_eq!(versions.len(), 4);
        assert_eq!((versions[1].dims["s"], &versions[1].shapes["x"][..]), (16, &[3, 4][..]));
        assert_eq!((versions[2].dims["s"], &versions[2].shapes["x"][..]), (64, &[1, 2][..]));
        assert_eq!(versions[3].values["k"].bytes[..8], 5i64.to_le_bytes());
    }

    #[test]
    fn wrong_texts_are_told() {
        let error = |flags: RequestFlags| match flags.versions() {
            Err(Failure::Usage(text)) => text,
            other => panic!("{other:?}"),
        };
        assert!(error(flags(&["n"], &[], &[])).contains("NAME=SIZE"));
        assert!(error(flags(&["n=x"], &[], &[])).contains("numbers"));
        assert!(error(flags(&[], &["x=1y2"], &[])).contains("1x3x224x224"));
        assert!(error(flags(&[], &[], &["k=(null)"])).contains("not one tensor"));
        let many = ["a=1,2,3,4,5,6,7,8,9", "b=1,2,3,4,5,6,7,8"];
        assert!(error(flags(&many, &[], &[])).contains("72 versions"));
    }
}
