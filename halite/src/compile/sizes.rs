//! The sizes and values that a caller gives for what a model leaves open.

use std::collections::{BTreeMap, HashSet};

use halite_cache::{Digest, Hasher};
use halite_compiler::signature::{Arity, Bindings, Dim, Signature};

use crate::{Error, Result, Tensor, tensor::Shape};

/// Most combinations of sizes of a function: few plans hold for many of them.
const MOST_VERSIONS: usize = 1 << 16;

/// Settles what a model leaves open: sizes of named dimensions, shapes of inputs, values of inputs that decide sizes. Several sizes
/// or shapes make a version for every combination.
///
/// ```
/// use halite::{Sizes, Tensor};
///
/// let sizes = Sizes::new().dimension("length", 1..=128).shape("image", [1, 3, 224, 224]);
/// let with_value = sizes.value("k", Tensor::scalar(5i64));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Sizes {
    dimensions: BTreeMap<String, Vec<usize>>,
    shapes: BTreeMap<String, Vec<Shape>>,
    values: BTreeMap<String, Tensor>,
    seed: Option<u64>,
    /// Each of these with what stands above; none is the same as one that says nothing.
    alternatives: Vec<Sizes>,
}

impl Sizes {
    /// Nothing: all is as the model says.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sizes of a named dimension: `[1]`, `[16, 64, 256]`, `1..=128`.
    #[must_use]
    pub fn dimension(mut self, name: impl Into<String>, sizes: impl IntoIterator<Item = usize>) -> Self {
        // One more than can be used; the number is checked where it counts.
        let sizes = sizes.into_iter().take(MOST_VERSIONS + 1).collect();
        self.dimensions.insert(name.into(), sizes);
        self
    }

    /// Adds a shape of an input.
    #[must_use]
    pub fn shape(mut self, input: impl Into<String>, shape: impl Into<Shape>) -> Self {
        self.shapes.entry(input.into()).or_default().push(shape.into());
        self
    }

    /// Elements of an input that decide sizes. The function takes no others.
    #[must_use]
    pub fn value(mut self, input: impl Into<String>, tensor: Tensor) -> Self {
        self.values.insert(input.into(), tensor);
        self
    }

    /// The seed of random numbers that operators of the model draw (`RandomNormal`, `Bernoulli`, `Dropout` while training, …), where
    /// these have no seed of their own; 0 unless this says otherwise. The numbers are the same at each call and on every device.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Several sets of sizes, each with versions of its own, in the order in which a call tries them: for sizes that belong
    /// together, such as two inputs of the same open length. What is said besides counts for all of them.
    #[must_use]
    pub fn any_of(all: impl IntoIterator<Item = Sizes>) -> Self {
        Sizes { alternatives: all.into_iter().take(MOST_VERSIONS + 1).collect(), ..Sizes::default() }
    }

    /// Leaves sizes of a dimension out that are larger; gives whether some are left. A dimension without sizes is not spoken of any more.
    pub(crate) fn at_most(&mut self, name: &str, most: usize) -> bool {
        let Some(sizes) = self.dimensions.get_mut(name) else { return false };
        sizes.retain(|size| *size <= most);
        let some = !sizes.is_empty();
        if !some {
            self.dimensions.remove(name);
        }
        some
    }

    /// Adds what others say; where both say something, theirs counts.
    pub(crate) fn merge(&mut self, other: Sizes) {
        self.dimensions.extend(other.dimensions);
        self.shapes.extend(other.shapes);
        self.values.extend(other.values);
        self.seed = other.seed.or(self.seed);
        self.alternatives.extend(other.alternatives);
    }

    /// Every combination.
    pub(crate) fn combinations(&self) -> Result<Vec<Bindings>> {
        if self.alternatives.is_empty() {
            return self.own_combinations();
        }
        // Once: there may be many alternatives.
        let besides = Sizes {
            dimensions: self.dimensions.clone(),
            shapes: self.shapes.clone(),
            values: self.values.clone(),
            alternatives: Vec::new(),
            ..*self
        };
        let mut all = Vec::new();
        for alternative in &self.alternatives {
            let mut one = besides.clone();
            one.merge(alternative.clone());
            all.extend(one.combinations()?);
            limited(all.len())?;
        }
        Ok(all)
    }

    fn own_combinations(&self) -> Result<Vec<Bindings>> {
        if let Some((name, _)) = self.dimensions.iter().find(|(_, sizes)| sizes.is_empty()) {
            return Err(Error::invalid(format!("dimension '{name}' was given no size")));
        }
        let mut all = vec![Bindings { seed: self.seed.unwrap_or(0), ..Bindings::default() }];
        for (name, sizes) in &self.dimensions {
            all = product(&all, sizes, |bindings, size| {
                bindings.dims.insert(name.clone(), *size as u64);
            })?;
        }
        for (input, shapes) in &self.shapes {
            all = product(&all, shapes, |bindings, shape| {
                let dims = shape.sizes().iter().map(|size| *size as u64).collect();
                bindings.shapes.insert(input.clone(), dims);
            })?;
        }
        for (input, tensor) in &self.values {
            let value = super::bound_value(tensor).map_err(|e| e.while_doing(format!("input '{input}'")))?;
            all.iter_mut().for_each(|bindings| {
                bindings.values.insert(input.clone(), value.clone());
            });
        }
        Ok(all)
    }

    /// The versions of a function, if nothing of it is left open; `None` where calls decide.
    pub(crate) fn for_function(&self, inputs: &[Signature]) -> Result<Option<Vec<Bindings>>> {
        let versions = self.combinations()?;
        let mut own: Vec<Bindings> = Vec::new();
        let mut known = HashSet::new();
        for version in versions.into_iter().map(|version| only(version, inputs)) {
            // What differs in sizes of other functions only is one version of this.
            if known.insert(digest(std::slice::from_ref(&version))) {
                own.push(version);
            }
        }
        let versions = own;
        // Of several sizes each is a version without what is optional.
        let several = versions.len() > 1;
        let known = |version: &Bindings| inputs.iter().all(|input| is_known(input, version, several));
        if versions.iter().all(known) {
            return Ok(Some(versions));
        }
        if several {
            // Several sizes were given and others are missing: the compiler's own words for that are the best.
            versions[0].resolve(inputs).map_err(super::error)?;
        }
        Ok(None)
    }

    /// Whether values of inputs are given, which decide sizes.
    pub(crate) fn has_values(&self) -> bool {
        !self.values.is_empty() || self.alternatives.iter().any(Sizes::has_values)
    }

    /// What is given once and for all calls.
    pub(crate) fn single(&self, inputs: &[Signature]) -> Result<Bindings> {
        let version = self.combinations()?.into_iter().next().unwrap_or_default();
        Ok(only(version, inputs))
    }

    /// Refuses names that no function has.
    pub(crate) fn check_names<'a>(&self, functions: impl Iterator<Item = &'a [Signature]>) -> Result<()> {
        let (mut inputs, mut symbols) = (Vec::new(), Vec::new());
        for input in functions.flatten() {
            inputs.push(input.name.as_str());
            symbols.extend(input.dims.iter().flatten().filter_map(|dim| match dim {
                Dim::Symbol(name) => Some(name.as_str()),
                _ => None,
            }));
        }
        let list = |names: &mut Vec<&str>| {
            names.sort_unstable();
            names.dedup();
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        };
        let all = || std::iter::once(self).chain(&self.alternatives);
        for name in all().flat_map(|sizes| sizes.dimensions.keys()) {
            if !symbols.contains(&name.as_str()) {
                let text =
                    format!("no input has an open dimension '{name}'; there are: {}", list(&mut symbols));
                return Err(Error::invalid(text));
            }
        }
        for name in all().flat_map(|sizes| sizes.shapes.keys().chain(sizes.values.keys())) {
            if !inputs.contains(&name.as_str()) {
                return Err(Error::invalid(format!(
                    "there is no input '{name}'; there are: {}",
                    list(&mut inputs)
                )));
            }
        }
        Ok(())
    }
}

/// What tells sizes and values from others.
pub(crate) fn digest(versions: &[Bindings]) -> Digest {
    let mut hasher = Hasher::new();
    let sizes = |sizes: &[u64]| sizes.iter().flat_map(|size| size.to_le_bytes()).collect::<Vec<u8>>();
    for version in versions {
        hasher.field(b"version").field(&version.seed.to_le_bytes());
        for (name, size) in &version.dims {
            hasher.field(b"dimension").field(name.as_bytes()).field(&size.to_le_bytes());
        }
        for (name, shape) in &version.shapes {
            hasher.field(b"shape").field(name.as_bytes()).field(&sizes(shape));
        }
        for (name, value) in &version.values {
            hasher.field(b"value").field(name.as_bytes()).field(value.element.to_string().as_bytes());
            hasher.field(&sizes(&value.dims)).field(&value.bytes);
        }
        for (input, output) in &version.states {
            hasher.field(b"state").field(input.as_bytes()).field(output.as_bytes());
        }
        hasher.field(&version.row_step.to_le_bytes()).field(&version.row_alignment.to_le_bytes());
    }
    hasher.finish()
}

/// Without what is for inputs of other functions.
fn only(mut version: Bindings, inputs: &[Signature]) -> Bindings {
    let own = |name: &String| inputs.iter().any(|input| input.name == *name);
    version.shapes.retain(|name, _| own(name));
    version.values.retain(|name, _| own(name));
    let dims = || inputs.iter().flat_map(|input| input.dims.iter().flatten());
    version.dims.retain(|name, _| dims().any(|dim| matches!(dim, Dim::Symbol(own) if own == name)));
    version
}

/// Whether nothing of an input is open, `without` those that are optional.
fn is_known(input: &Signature, version: &Bindings, without: bool) -> bool {
    if version.shape(&input.name).is_some() || (without && input.is_optional) {
        return true;
    }
    // Calls say how many tensors a list has, and whether an optional value is there.
    if input.arity == Arity::Sequence || input.is_optional {
        return false;
    }
    let known = |dim: &Dim| match dim {
        Dim::Known(_) => true,
        Dim::Symbol(name) => version.dims.contains_key(name),
        Dim::UpTo(_) | Dim::Unknown => false,
    };
    input.dims.as_ref().is_some_and(|dims| dims.iter().all(known))
}

/// Every version with every choice.
fn product<T>(
    versions: &[Bindings],
    choices: &[T],
    set: impl Fn(&mut Bindings, &T),
) -> Result<Vec<Bindings>> {
    limited(versions.len().saturating_mul(choices.len()))?;
    let with = |bindings: &Bindings, choice: &T| {
        let mut bindings = bindings.clone();
        set(&mut bindings, choice);
        bindings
    };
    Ok(versions.iter().flat_map(|bindings| choices.iter().map(|choice| with(bindings, choice))).collect())
}

/// Refuses more versions than a function has.
fn limited(count: usize) -> Result<()> {
    if count <= MOST_VERSIONS {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{count} versions are more than {MOST_VERSIONS}: every combination of sizes is one. Give lower bounds or fewer sizes, to \
         which inputs are padded"
    )))
}

#[cfg(test)]
mod tests {
    use halite_ops::DType;

    use super::*;

    fn input(name: &str, dims: Vec<Dim>) -> Signature {
        let element = Some(DType::F32.into());
        Signature { name: name.into(), arity: Arity::Tensor, is_optional: false, element, dims: Some(dims) }
    }

    #[test]
    fn sizes_make_versions_of_what_is_open() {
        let inputs = [input("x", vec![Dim::Symbol("n".into()), Dim::Known(4)])];
        assert_eq!(Sizes::new().for_function(&inputs).unwrap(), None);
        let bounded = Sizes::new().dimension("n", 1..=3).for_function(&inputs).unwrap().unwrap();
        assert_eq!(bounded.iter().map(|v| v.dims["n"]).collect::<Vec<_>>(), [1, 2, 3]);
        let shaped = Sizes::new().shape("x", [2, 4]).for_function(&inputs).unwrap().unwrap();
        assert_eq!(shaped[0].shapes["x"], [2, 4]);
        let fixed = Sizes::new().for_function(&[input("y", vec![Dim::Known(1)])]).unwrap();
        assert_eq!(fixed.map(|versions| versions.len()), Some(1));
    }

    #[test]
    fn versions_are_told_apart_by_their_contents() {
        let value = |elements: [i64; 2]| {
            let sizes = Sizes::new().value("k", Tensor::from_slice(&elements, 2).unwrap());
            digest(&sizes.combinations().unwrap())
        };
        assert_eq!(value([2, 3]), value([2, 3]));
        assert_ne!(value([2, 3]), value([3, 2]));
        let of = |sizes: Sizes| digest(&sizes.combinations().unwrap());
        assert_ne!(of(Sizes::new().dimension("n", [1])), of(Sizes::new().dimension("n", [2])));
        assert_ne!(of(Sizes::new().dimension("n", [1])), of(Sizes::new().dimension("n", [1, 2])));
    }

    #[test]
    fn sizes_of_other_functions_make_no_versions() {
        // Whether their names come first or last among the dimensions.
        for other in ["a", "z"] {
            let sizes = Sizes::new().dimension("n", [1, 2]).dimension(other, [3, 4]);
            let inputs = [input("x", vec![Dim::Symbol("n".into())])];
            let versions = sizes.for_function(&inputs).unwrap().unwrap();
            assert_eq!(versions.iter().map(|v| v.dims["n"]).collect::<Vec<_>>(), [1, 2]);
        }
    }

    #[test]
    fn sizes_that_belong_together_are_alternatives() {
        let of = |n: usize| Sizes::new().shape("x", [n, 4]).shape("y", [n]);
        let sizes = Sizes::any_of([of(2), of(7)]).dimension("m", [3]);
        let all = sizes.combinations().unwrap();
        assert_eq!(
            all.iter().map(|v| (v.shapes["x"][0], v.shapes["y"][0], v.dims["m"])).collect::<Vec<_>>(),
            [(2, 2, 3), (7, 7, 3)]
        );
        assert!(
            Sizes::any_of((0..70_000).map(of))
                .combinations()
                .unwrap_err()
                .message()
                .contains("more than 65536")
        );
        let inputs = [input("x", vec![Dim::Unknown, Dim::Known(4)])];
        let error = sizes.check_names([&inputs[..]].into_iter()).unwrap_err();
        assert!(error.message().contains("'m'"), "{error}");
    }

    #[test]
    fn wrong_names_and_too_many_versions_are_told() {
        let inputs = [input("x", vec![Dim::Symbol("n".into())])];
        let check =
            |sizes: Sizes| sizes.check_names([&inputs[..]].into_iter()).unwrap_err().message().to_owned();
        assert_eq!(
            check(Sizes::new().dimension("m", [1])),
            "no input has an open dimension 'm'; there are: n"
        );
        assert_eq!(check(Sizes::new().shape("y", [1])), "there is no input 'y'; there are: x");
        let many = Sizes::new().dimension("n", 1..=70_000).for_function(&inputs).unwrap_err();
        assert!(many.message().contains("versions are more than 65536"), "{many}");
        let none = Sizes::new().dimension("n", []).for_function(&inputs).unwrap_err();
        assert_eq!(none.message(), "dimension 'n' was given no size");
    }
}
