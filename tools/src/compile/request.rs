//! The sizes and values that a command line gives for a model: `--dim`, `--shape`, `--value`, and the versions that come of
//! several of them.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use halite::{Dimension, FunctionInfo, Sizes, Tensor, ValueType};

use crate::{
    console::{Failure, Result},
    engine::{ArgumentKind, HostTensor, HostValue, InputReader},
    ports::Port,
};

/// Most combinations of sizes of a function: few plans hold for many of them.
const MOST_VERSIONS: usize = 1 << 16;

/// Sizes and values of one version of the functions.
#[derive(Clone, Debug, Default)]
struct Version {
    dims: BTreeMap<String, u64>,
    shapes: BTreeMap<String, Vec<u64>>,
    values: BTreeMap<String, Tensor>,
}

/// What the model leaves open.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "What the model leaves open")]
pub struct RequestFlags {
    /// Size of a symbolic dimension, such as batch=1. Several sizes (seq=16,64,256), all of a range (seq=1..64) or some
    /// (seq=16..512:16, every 16th) make a version of the function for each; the module chooses by the inputs that it is
    /// called with. A sum of others (total=past+1, k=2*n+m) goes with them, which makes no combinations. May be repeated
    #[arg(long = "dim", value_name = "NAME=SIZE,…")]
    dim: Vec<String>,
    /// Largest size of a symbolic dimension: the module takes all sizes from 1 up to it, or those of a range (past=0..64), but
    /// for those that make no sense to the model. May be repeated
    #[arg(long = "bound", value_name = "NAME=SIZE")]
    bound: Vec<String>,
    /// Dimensions of an input, such as image=1x3x224x224. Several (image=1x3x224x224,1x3x320x320) and ranges (x=1..8x64) make
    /// versions. A name that --dim or --bound gives sizes (x=1xnx64) is the same size in all inputs. May be repeated
    #[arg(long = "shape", value_name = "INPUT=AxBxC,…")]
    shape: Vec<String>,
    /// Elements of an input that decide the sizes of others, such as shape=2xi64=3,4 or shape=@shape.npy, in the language of
    /// --input of run-module. The module refuses other elements. May be repeated
    #[arg(long = "value", value_name = "INPUT=VALUE")]
    value: Vec<String>,
    /// Seed of the random numbers that operators without one draw. A module draws the same numbers at each call
    #[arg(long = "seed", value_name = "NUMBER", default_value_t = 0)]
    seed: u64,
}

impl RequestFlags {
    /// All versions of these functions, as the library takes them.
    pub fn sizes(&self, functions: &[FunctionInfo]) -> Result<Sizes> {
        let ports: Vec<Port> = functions.iter().flat_map(Port::inputs).collect();
        let one = |version: Version| {
            let small = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
            let mut sizes = Sizes::new();
            for (name, size) in version.dims {
                sizes = sizes.dimension(name, [small(size)]);
            }
            for (name, shape) in version.shapes {
                sizes = sizes.shape(name, shape.into_iter().map(small).collect::<Vec<_>>());
            }
            version.values.into_iter().fold(sizes, |sizes, (name, value)| sizes.value(name, value))
        };
        Ok(Sizes::any_of(self.versions(&ports)?.into_iter().map(one)).seed(self.seed))
    }

    /// Refuses sizes of what no function has: a slip of the pen would compile for other sizes than those that were meant.
    pub fn check_names(&self, functions: &[FunctionInfo]) -> Result<()> {
        let known = symbols(functions);
        let in_shapes = |name: &str| {
            let shapes = self.shape.iter().filter_map(|text| text.split_once('='));
            shapes.into_iter().any(|(_, dims)| dims.split([',', 'x']).any(|part| part.trim() == name))
        };
        for (flag, text) in
            self.dim.iter().map(|t| ("--dim", t)).chain(self.bound.iter().map(|t| ("--bound", t)))
        {
            let (name, _) = named(flag, text, "NAME=SIZE")?;
            // A size may be computed of several, such as `past + 1`.
            if !known.iter().any(|size| words(size).any(|word| word == name) || size == name)
                && !in_shapes(name)
            {
                let all = match known.is_empty() {
                    true => "all its sizes are fixed".to_owned(),
                    false => format!("there are: {}", known.into_iter().collect::<Vec<_>>().join(", ")),
                };
                return Err(usage(format!("{flag}={text}: the model has no size '{name}'; {all}")));
            }
        }
        Ok(())
    }

    /// The sizes of named dimensions for each version: `--dim` and `--bound`.
    fn sized(&self) -> Result<Vec<Version>> {
        let mut versions = vec![Version::default()];
        let (mut known, mut sums) = (BTreeMap::new(), Vec::new());
        for text in &self.dim {
            let (name, given) = named("--dim", text, "NAME=SIZE")?;
            once(&mut known, name, format!("--dim={text}"))?;
            match Sum::of(given) {
                Some(sum) => sums.push((name, sum, text)),
                None => versions = with_sizes(&versions, name, &sizes(given, &format!("--dim={text}"))?)?,
            }
        }
        for text in &self.bound {
            let (name, bound) = named("--bound", text, "NAME=SIZE")?;
            once(&mut known, name, format!("--bound={text}"))?;
            if bound.contains(',') {
                return Err(usage(format!("--bound={text}: give one size or range; --dim takes several")));
            }
            let given = if bound.contains("..") { bound.to_owned() } else { format!("1..{bound}") };
            versions = with_sizes(&versions, name, &sizes(&given, &format!("--bound={text}"))?)?;
        }
        for (name, sum, text) in sums {
            for version in &mut versions {
                let size = sum.size(&version.dims).map_err(|why| usage(format!("--dim={text}: {why}")))?;
                version.dims.insert(name.to_owned(), size);
            }
        }
        Ok(versions)
    }

    /// One set of sizes and values for each version, in the order of the command line, the last flag changing first.
    fn versions(&self, ports: &[Port]) -> Result<Vec<Version>> {
        let mut versions = self.sized()?;
        let mut shaped = BTreeMap::new();
        for text in &self.shape {
            let (name, given) = named("--shape", text, "INPUT=AxBxC")?;
            once(&mut shaped, name, format!("--shape={text}"))?;
            let known: BTreeSet<String> = versions[0].dims.keys().cloned().collect();
            let mut shapes = Vec::new();
            for dims in given.split(',') {
                shapes.extend(shapes_of(dims.trim(), &known, &format!("--shape={text}"))?);
                limited(shapes.len())?;
            }
            versions = product(&versions, &shapes, |bindings, shape| {
                let dims = shape.iter().map(|extent| extent.size(bindings)).collect();
                bindings.shapes.insert(name.to_owned(), dims);
            })?;
        }
        let mut valued = BTreeMap::new();
        for text in &self.value {
            let (name, value) = named("--value", text, "INPUT=VALUE")?;
            once(&mut valued, name, format!("--value={text}"))?;
            let port = ports.iter().find(|port| port.name == name);
            let spelled = port.map_or(value.into(), |port| port.spelled(value));
            let value = Tensor::from(tensor(text, &spelled)?);
            versions.iter_mut().for_each(|bindings| {
                bindings.values.insert(name.to_owned(), value.clone());
            });
        }
        Ok(versions)
    }
}

/// The names of open sizes.
fn symbols(functions: &[FunctionInfo]) -> BTreeSet<String> {
    let ports = functions.iter().flat_map(|function| function.inputs.iter().chain(&function.outputs));
    let dims = ports.filter_map(|port| match &port.value_type {
        ValueType::Tensor { shape: Some(dims), .. } => Some(dims),
        _ => None,
    });
    let name = |dim: &Dimension| match dim {
        Dimension::Named(name) => Some(name.clone()),
        _ => None,
    };
    dims.flatten().filter_map(name).collect()
}

/// What a name of a size is made of.
fn words(size: &str) -> impl Iterator<Item = &str> {
    size.split(|c: char| !(c.is_alphanumeric() || c == '_'))
}

fn usage(text: String) -> Failure {
    Failure::Usage(text)
}

fn named<'a>(flag: &str, text: &'a str, form: &str) -> Result<(&'a str, &'a str)> {
    text.split_once('=')
        .filter(|(name, rest)| !name.is_empty() && !rest.is_empty())
        .ok_or_else(|| usage(format!("{flag}={text} is not of the form {form}")))
}

/// Refuses a second flag for the same thing: one of them would count for nothing.
fn once(known: &mut BTreeMap<String, String>, name: &str, flag: String) -> Result<()> {
    match known.get(name) {
        Some(other) => Err(usage(format!(
            "{flag} contradicts {other}: say once what '{name}' is; --dim takes several sizes"
        ))),
        None => {
            known.insert(name.to_owned(), flag);
            Ok(())
        }
    }
}

/// A size that is computed of others: `past+1`, `2*n+m`.
#[derive(Debug, PartialEq, Eq)]
struct Sum {
    number: u64,
    /// Names, and how often each counts.
    terms: Vec<(String, u64)>,
}

impl Sum {
    /// `None` where no name is in it, or it is none.
    fn of(text: &str) -> Option<Sum> {
        let mut sum = Sum { number: 0, terms: Vec::new() };
        for term in text.split('+').map(str::trim) {
            let (times, name) = match term.split_once('*') {
                Some((times, name)) => (times.trim().parse().ok()?, name.trim()),
                None => (1, term),
            };
            match name.parse::<u64>() {
                Ok(number) => sum.number = sum.number.checked_add(number.checked_mul(times)?)?,
                Err(_)
                    if !name.is_empty()
                        && words(name).eq([name])
                        && !name.starts_with(|c: char| c.is_ascii_digit()) =>
                {
                    sum.terms.push((name.to_owned(), times));
                }
                Err(_) => return None,
            }
        }
        (!sum.terms.is_empty()).then_some(sum)
    }

    /// Its value among these sizes.
    fn size(&self, known: &BTreeMap<String, u64>) -> std::result::Result<u64, String> {
        let mut size = self.number;
        for (name, times) in &self.terms {
            let own = known.get(name).ok_or_else(|| {
                let all: Vec<&str> = known.keys().map(String::as_str).collect();
                let others = if all.is_empty() { "none has".to_owned() } else { all.join(", ") };
                format!(
                    "'{name}' has no size from --dim or --bound, or gets it later; these have: {others}. Sizes are numbers, \
                     ranges such as 1..64, and sums such as past+1"
                )
            })?;
            let more = own.checked_mul(*times).and_then(|own| size.checked_add(own));
            size = more.ok_or("the sum is too large")?;
        }
        Ok(size)
    }
}

/// Sizes: numbers and ranges, between commas.
fn sizes(text: &str, flag: &str) -> Result<Vec<u64>> {
    let mut all = Vec::new();
    for item in text.split(',') {
        all.extend(range(item.trim(), flag)?);
        limited(all.len())?;
    }
    Ok(all)
}

/// `16`, `1..64` with both ends, `16..512:16` by steps.
fn range(text: &str, flag: &str) -> Result<Vec<u64>> {
    let wrong = || {
        usage(format!(
            "{flag}: sizes are numbers, ranges such as 1..64, or steps such as 16..512:16; dimensions are 1x3x224x224"
        ))
    };
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
    let Some((first, rest)) = text.split_once("..") else { return Ok(vec![number(text)?]) };
    let (last, step) = match rest.split_once(':') {
        Some((last, step)) => (number(last)?, number(step)?),
        None => (number(rest)?, 1),
    };
    let first = number(first)?;
    if last < first || step == 0 {
        return Err(wrong());
    }
    let count = (last - first) / step;
    limited(usize::try_from(count.saturating_add(1)).unwrap_or(usize::MAX))?;
    Ok((0..=count).map(|i| first + i * step).collect())
}

/// A dimension of a shape.
#[derive(Clone, Debug)]
enum Extent {
    Size(u64),
    /// That of a symbol, which has one.
    Named(String),
}

impl Extent {
    fn size(&self, bindings: &Version) -> u64 {
        match self {
            Extent::Size(size) => *size,
            Extent::Named(name) => bindings.dims.get(name).copied().unwrap_or(0),
        }
    }
}

/// Shapes such as `1x3x224x224`, of ranges `1..8x64`, or of symbols that are known `1xseqx64`; nothing is a scalar.
fn shapes_of(text: &str, known: &BTreeSet<String>, flag: &str) -> Result<Vec<Vec<Extent>>> {
    let mut shapes = vec![Vec::new()];
    for part in text.split('x').filter(|_| !text.is_empty()) {
        let extents = match known.get(part.trim()) {
            Some(name) => vec![Extent::Named(name.clone())],
            None => range(part, flag)?.into_iter().map(Extent::Size).collect(),
        };
        limited(shapes.len().saturating_mul(extents.len()))?;
        let with = |dims: &Vec<Extent>, extent: &Extent| [&dims[..], std::slice::from_ref(extent)].concat();
        shapes = shapes.iter().flat_map(|dims| extents.iter().map(|extent| with(dims, extent))).collect();
    }
    Ok(shapes)
}

fn with_sizes(versions: &[Version], name: &str, sizes: &[u64]) -> Result<Vec<Version>> {
    product(versions, sizes, |bindings, size| {
        bindings.dims.insert(name.to_owned(), *size);
    })
}

/// Refuses more versions than a module has.
fn limited(count: usize) -> Result<()> {
    if count <= MOST_VERSIONS {
        return Ok(());
    }
    Err(usage(format!(
        "{count} versions are more than {MOST_VERSIONS}: every combination of sizes is one. Give lower bounds, fewer sizes, \
         sums for sizes that go with others (--dim total=past+1), or steps (NAME=16..512:16) to which inputs are padded"
    )))
}

/// Every version with every choice.
fn product<T>(versions: &[Version], choices: &[T], set: impl Fn(&mut Version, &T)) -> Result<Vec<Version>> {
    limited(versions.len().saturating_mul(choices.len()))?;
    let with = |bindings: &Version, choice: &T| {
        let mut bindings = bindings.clone();
        set(&mut bindings, choice);
        bindings
    };
    Ok(versions.iter().flat_map(|bindings| choices.iter().map(|choice| with(bindings, choice))).collect())
}

fn tensor(text: &str, value: &str) -> Result<HostTensor> {
    let mut reader = InputReader::new();
    let read = reader.read_all(&[value], &[ArgumentKind::Reference]);
    let read = read.and_then(|values| reader.finish().map(|()| values));
    let values = read.map_err(|status| usage(format!("--value={text}: {}", status.message())))?;
    match <[HostValue; 1]>::try_from(values) {
        Ok([HostValue::Tensor(tensor)]) => Ok(tensor),
        _ => Err(usage(format!("--value={text} is not one tensor"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ElementType;

    fn flags(dim: &[&str], shape: &[&str], value: &[&str]) -> RequestFlags {
        let all = |texts: &[&str]| texts.iter().map(|t| (*t).to_owned()).collect();
        RequestFlags { dim: all(dim), shape: all(shape), value: all(value), ..RequestFlags::default() }
    }

    fn bounds(bound: &[&str]) -> RequestFlags {
        RequestFlags { bound: bound.iter().map(|t| (*t).to_owned()).collect(), ..RequestFlags::default() }
    }

    #[test]
    fn sums_go_with_what_they_are_made_of() {
        let sum = |text: &str| Sum::of(text).map(|sum| (sum.number, sum.terms.len()));
        assert_eq!(["past+1", "n", "2*n + m+3"].map(sum), [Some((1, 1)), Some((0, 1)), Some((3, 2))]);
        assert_eq!(["4", "1..64", "16,64", "1+2", "a b", "n*2", "3n", ""].map(sum), [None; 8]);
        let given = RequestFlags {
            bound: vec!["past=0..4".into()],
            ..flags(&["total=past+len", "len=1,2", "both=2*total+past"], &["x=1xtotal"], &[])
        };
        let made = given.versions(&[]).unwrap();
        let sizes: Vec<_> =
            made.iter().map(|v| ["len", "past", "total", "both"].map(|name| v.dims[name])).collect();
        assert_eq!(sizes.len(), 10, "no combination more");
        assert_eq!((sizes[0], sizes[9]), ([1, 0, 1, 2], [2, 4, 6, 16]));
        assert_eq!(made[9].shapes["x"], [1, 6]);
        let error = |dim: &[&str]| match flags(dim, &[], &[]).versions(&[]) {
            Err(Failure::Usage(text)) => text,
            other => panic!("{other:?}"),
        };
        assert!(error(&["len=1", "total=past+1"]).contains("'past' has no size from --dim or --bound"));
        assert!(error(&["n=18446744073709551615", "m=n+1"]).contains("too large"));
    }

    #[test]
    fn ranges_are_all_their_sizes() {
        let of = |flags: RequestFlags, name: &str| {
            flags.versions(&[]).unwrap().iter().map(|v| v.dims[name]).collect::<Vec<_>>()
        };
        assert_eq!(of(bounds(&["s=4"]), "s"), [1, 2, 3, 4]);
        assert_eq!(of(bounds(&["s=0..2"]), "s"), [0, 1, 2]);
        assert_eq!(of(flags(&["s=1,16..40:8"], &[], &[]), "s"), [1, 16, 24, 32, 40]);
        let shapes = flags(&[], &["x=1..2x8x3..4"], &[]).versions(&[]).unwrap();
        assert_eq!(shapes[1].shapes["x"], [1, 8, 4]);
        assert_eq!(shapes.len(), 4);
        let named = RequestFlags { bound: vec!["n=3".into()], ..flags(&[], &["x=nx8", "y=8xn"], &[]) };
        let shapes = named.versions(&[]).unwrap();
        assert_eq!(
            (shapes.len(), &shapes[2].shapes["x"][..], &shapes[2].shapes["y"][..]),
            (3, &[3, 8][..], &[8, 3][..])
        );
    }

    #[test]
    fn several_sizes_make_versions() {
        let versions = flags(&["n=1", "s=16,64"], &["x=1x2,3x4"], &["k=2xi64=5,6"]).versions(&[]).unwrap();
        assert_eq!(versions.len(), 4);
        assert_eq!((versions[1].dims["s"], &versions[1].shapes["x"][..]), (16, &[3, 4][..]));
        assert_eq!((versions[2].dims["s"], &versions[2].shapes["x"][..]), (64, &[1, 2][..]));
        assert_eq!(versions[3].values["k"].to_bytes().unwrap()[..8], 5i64.to_le_bytes());
    }

    #[test]
    fn numbers_have_the_type_of_their_input() {
        let port = Port::for_test("c", ArgumentKind::Reference, ElementType::I64, Some(Vec::new()));
        let versions = flags(&[], &[], &["c=3"]).versions(&[port]).unwrap();
        assert_eq!(versions[0].values["c"].to_bytes().unwrap()[..], 3i64.to_le_bytes());
        assert!(flags(&[], &[], &["c=3"]).versions(&[]).is_err());
    }

    #[test]
    fn wrong_texts_are_told() {
        let error = |flags: RequestFlags| match flags.versions(&[]) {
            Err(Failure::Usage(text)) => text,
            other => panic!("{other:?}"),
        };
        assert!(error(flags(&["n"], &[], &[])).contains("NAME=SIZE"));
        assert!(error(flags(&["n=x"], &[], &[])).contains("numbers"));
        assert!(error(flags(&[], &["x=1y2"], &[])).contains("1x3x224x224"));
        assert!(error(flags(&[], &[], &["k=(null)"])).contains("not one tensor"));
        let many = error(bounds(&["a=1000", "b=200"]));
        assert!(many.contains("200000 versions are more than 65536") && many.contains("steps"), "{many}");
        assert!(error(bounds(&["a=18446744073709551615"])).contains("versions are more"));
        assert!(error(flags(&[], &["x=1..999x1..99"], &[])).contains("98901 versions"));
        assert!(error(bounds(&["a=8..4"])).contains("ranges"));
        assert!(error(bounds(&["a=4,8"])).contains("--dim"));
        let both = RequestFlags { dim: vec!["n=3".into()], ..bounds(&["n=4"]) };
        assert!(error(both).contains("--bound=n=4 contradicts --dim=n=3"));
        assert!(error(flags(&["n=1", "n=2"], &[], &[])).contains("contradicts"));
        assert!(error(flags(&[], &["x=1", "x=2"], &[])).contains("contradicts"));
        assert!(error(flags(&[], &[], &["k=i64=1", "k=i64=2"])).contains("contradicts"));
    }
}
