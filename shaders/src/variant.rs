//! Variants: data that says which build with which parameters computes an operation, and what it needs of a device. Which
//! one is best is for `select` and `tuning` to say.

use std::{
    collections::BTreeMap,
    sync::{LazyLock, OnceLock},
};

use halite_facts::{Feature, FeatureSet, MatrixShape, kernel_keys};
use halite_ops::{Operation, OperationError};
use halite_targets::Capabilities;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    Plan, Unfit,
    expand::{self, ExpandError, expand},
    library, plans,
    turns::turns,
};

/// Parameters of a variant by name: tile sizes, vector widths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Params(pub(crate) BTreeMap<String, u32>);

impl Params {
    /// The value of a parameter.
    ///
    /// # Errors
    /// The variant's data lacks it.
    pub fn get(&self, name: &str) -> Result<u32, Unfit> {
        self.0.get(name).copied().ok_or_else(|| Unfit(format!("lacks the parameter '{name}' in its data")))
    }

    /// All of them by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u32)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }
}

/// What a variant needs of a device beyond the baseline: Vulkan 1.1, 32-bit types, any subgroup size, 128 invocations
/// in a workgroup, 16 KiB of shared memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Needs {
    /// Invocations in a workgroup, when more than 128.
    pub invocations: u32,
    /// Bytes of shared memory, when more than 16384.
    pub shared_bytes: u32,
    /// Features, in JSON each under its key (`float16`, `storage_8bit`, …) beside the other fields.
    #[serde(flatten, deserialize_with = "kernel_keys::set::deserialize")]
    pub features: FeatureSet,
    /// Dot products of packed 8-bit integers, fast ones.
    pub packed_dot_product: bool,
    /// Subgroup operations by Vulkan's names (`arithmetic`, `shuffle`, `ballot`, …).
    pub subgroup: Vec<String>,
    /// A subgroup size that the code relies on; 0 when any will do.
    pub subgroup_size: u32,
    /// A shape of cooperative matrices.
    pub matrix: Option<MatrixShape>,
    /// A device that runs on the processor: kernels for the ways of drivers such as llvmpipe and SwiftShader.
    pub processor: bool,
    /// Vulkan version, as (major, minor), when more than 1.1.
    pub vulkan: Option<(u32, u32)>,
}

/// How lists of needs call `processor`.
const PROCESSOR: &str = "a device that runs on the processor";

impl Needs {
    /// Whether nothing beyond the baseline is needed.
    pub fn is_baseline(&self) -> bool {
        *self
            == Needs {
                invocations: self.invocations.min(128),
                shared_bytes: self.shared_bytes.min(16384),
                ..Needs::default()
            }
    }

    /// What is needed beyond the baseline, each as a phrase.
    pub fn listed(&self) -> Vec<String> {
        let mut listed = self.features_beyond(FeatureSet::EMPTY, false);
        let mut at_least = |value: u32, baseline: u32, what: &str| {
            if value > baseline {
                listed.push(format!("{value} {what}"));
            }
        };
        at_least(self.invocations, 128, "invocations in a workgroup");
        at_least(self.shared_bytes, 16384, "bytes of shared memory");
        at_least(self.subgroup_size, 0, "invocations in a subgroup");
        listed.extend(self.subgroup.iter().map(|operation| format!("subgroup operations '{operation}'")));
        listed.extend(self.matrix.iter().map(|matrix| format!("cooperative matrices {matrix}")));
        listed.extend(self.processor.then(|| PROCESSOR.to_owned()));
        listed.extend(self.vulkan.iter().map(|(major, minor)| format!("Vulkan {major}.{minor}")));
        listed
    }

    /// Whether a target lacks nothing of it.
    pub fn are_met(&self, target: &Capabilities) -> bool {
        let has = |name: &String| target.subgroup.operations.names().any(|known| known == name);
        self.features.without(target.features).is_empty()
            && (!self.packed_dot_product || target.packed_dot_product)
            && self.invocations <= target.max_workgroup_invocations
            && self.shared_bytes <= target.shared_memory_bytes
            && (self.subgroup_size == 0 || self.has_size(target))
            && self.subgroup.iter().all(has)
            && self.matrix.is_none_or(|matrix| target.cooperative_matrix.contains(&matrix))
            && (!self.processor || target.target.is_processor())
            && self.vulkan.is_none_or(|version| version <= target.api_version)
    }

    /// What a target lacks, each as a phrase; empty when the variant can run there.
    pub fn missing(&self, target: &Capabilities) -> Vec<String> {
        let mut missing = self.features_beyond(target.features, target.packed_dot_product);
        let mut at_most = |what: &str, has: u32, wants: u32| {
            if wants > has {
                missing.push(format!("{what}: {wants} wanted, {has} there"));
            }
        };
        at_most("invocations in a workgroup", target.max_workgroup_invocations, self.invocations);
        at_most("bytes of shared memory", target.shared_memory_bytes, self.shared_bytes);
        if self.subgroup_size > 0 && !self.has_size(target) {
            missing
                .push(format!("subgroups of {}, there are {:?}", self.subgroup_size, target.subgroup.sizes));
        }
        for operation in &self.subgroup {
            if !target.subgroup.operations.names().any(|name| name == operation) {
                missing.push(format!("subgroup operations '{operation}'"));
            }
        }
        if let Some(matrix) = self.matrix.filter(|m| !target.cooperative_matrix.contains(m)) {
            missing.push(format!("cooperative matrices {matrix}"));
        }
        if self.processor && !target.target.is_processor() {
            missing.push(PROCESSOR.to_owned());
        }
        if let Some((major, minor)) = self.vulkan.filter(|version| *version > target.api_version) {
            missing.push(format!("Vulkan {major}.{minor}"));
        }
        missing
    }

    /// Whether kernels run with the size: by requiring it, or because there is no other.
    fn has_size(&self, target: &Capabilities) -> bool {
        let sizes = &target.subgroup.sizes;
        sizes.contains(&self.subgroup_size) && (target.has(Feature::SubgroupSizeControl) || sizes.len() == 1)
    }

    /// Whether a feature is needed.
    pub fn has(&self, feature: Feature) -> bool {
        self.features.has(feature)
    }

    /// Features that are needed beyond those in `there`, each as a phrase.
    fn features_beyond(&self, there: FeatureSet, fast_dot_products: bool) -> Vec<String> {
        let lacking = self.features.without(there);
        let mut phrases: Vec<String> = lacking.iter().map(|feature| feature.phrase().to_owned()).collect();
        if self.packed_dot_product && !fast_dot_products {
            phrases.push("fast packed dot products".to_owned());
        }
        phrases
    }
}

/// One way to compute an operation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Unique name, such as `matmul.f32.tile64x64x16`.
    pub name: String,
    /// Name of the operation.
    #[serde(skip)]
    pub operation: &'static str,
    /// Signatures of the operation that it computes.
    pub signatures: Vec<String>,
    /// Which code in `ops` plans it.
    pub template: String,
    /// The compiled kernel, or empty for kernels that are emitted.
    #[serde(default)]
    pub build: String,
    /// Tile sizes and the like.
    #[serde(default)]
    pub params: Params,
    /// What it needs of a device.
    #[serde(default)]
    pub needs: Needs,
    /// Place among the variants of the operation on a target without measurements; lower is better.
    pub order: u32,
    /// When it is good, for people.
    pub note: String,
}

impl Variant {
    /// The dispatches that compute `operation`.
    ///
    /// # Errors
    /// Says what in the operation the variant cannot do.
    pub fn plan(&self, operation: &Operation) -> Result<Plan, Unfit> {
        if operation.name() != self.operation {
            return Err(Unfit(format!("computes {}, not {}", self.operation, operation.name())));
        }
        let signature = operation.signature();
        if !self.signatures.contains(&signature) {
            return Err(Unfit(format!("computes {}, not {signature}", self.signatures.join(", "))));
        }
        self.plan_of_own(operation)
    }

    /// The plan for an operation that is known to be of one of its signatures.
    pub(crate) fn plan_of_own(&self, operation: &Operation) -> Result<Plan, Unfit> {
        let mut plan = plans::of(operation).lower(&self.template, &self.build, &self.params)?;
        for step in &mut plan.steps {
            step.subgroup_size = self.needs.subgroup_size;
        }
        plan.turns = turns(self, operation, &plan);
        Ok(plan)
    }
}

/// All variants, by operation.
pub fn variants() -> impl Iterator<Item = &'static Variant> {
    library::VARIANTS.iter().flat_map(|(operation, _)| variants_of(operation))
}

/// The variants of an operation by its name, in the order in which they are chosen where nothing was measured: by `order`, then
/// by name. Operations are read one by one, when they are first asked for: a model needs few of them.
pub fn variants_of(operation: &str) -> impl Iterator<Item = &'static Variant> + use<> {
    static LISTS: LazyLock<Vec<OnceLock<Vec<Variant>>>> =
        LazyLock::new(|| library::VARIANTS.iter().map(|_| OnceLock::new()).collect());
    let index = library::VARIANTS.binary_search_by(|(name, _)| (*name).cmp(operation));
    index.into_iter().flat_map(|index| {
        let (operation, compressed) = library::VARIANTS[index];
        let list = || read(operation, &library::text(compressed));
        LISTS[index].get_or_init(|| list().expect("the crate's own data, read by every test"))
    })
}

fn read(operation: &'static str, text: &str) -> Result<Vec<Variant>, ExpandError> {
    let variant = |item| {
        let mut variant: Variant = serde_json::from_value(Value::Object(item))?;
        variant.operation = operation;
        Ok(variant)
    };
    let variants: Result<Vec<Variant>, ExpandError> =
        expand(text, &expand::VARIANTS)?.into_iter().map(variant).collect();
    let mut variants = variants?;
    variants.sort_by(|a, b| (a.order, &a.name).cmp(&(b.order, &b.name)));
    Ok(variants)
}

/// Whether an operation makes sense and some variant is for its types; the reason when not.
///
/// # Errors
/// Says what is wrong with its numbers, or which types there are kernels for.
pub fn check(operation: &Operation) -> Result<(), String> {
    operation.check()?;
    let (name, signature) = (operation.name(), operation.signature());
    if variants_of(name).any(|variant| variant.signatures.contains(&signature)) {
        return Ok(());
    }
    let mut known: Vec<_> = variants_of(name).flat_map(|v| &v.signatures).map(String::as_str).collect();
    known.sort_unstable();
    known.dedup();
    Err(format!("no kernel of {name} has the types {signature}; there are: {}", known.join(", ")))
}

/// Reads an operation, as [`Operation::parse`] does, that some variant is for.
///
/// # Errors
/// Says which name, field or type is wrong and what there is.
pub fn parse(text: &str) -> Result<Operation, OperationError> {
    let operation = Operation::parse(text)?;
    check(&operation).map_err(|reason| OperationError::Invalid { text: text.to_owned(), reason })?;
    Ok(operation)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn names_are_unique_and_builds_exist() {
        let builds: BTreeSet<&str> = library::module_names().collect();
        let mut seen = BTreeSet::new();
        for variant in variants() {
            assert!(seen.insert(&variant.name), "'{}' is there twice", variant.name);
            assert!(variant.name.starts_with(variant.operation), "{}", variant.name);
            assert!(variant.build.is_empty() || builds.contains(variant.build.as_str()), "{}", variant.name);
            assert!(!variant.note.is_empty() && !variant.signatures.is_empty(), "{}", variant.name);
        }
        let mut used: BTreeSet<&str> = variants().map(|v| v.build.as_str()).collect();
        // Plans of several steps use further builds.
        for sample in Operation::NAMES.iter().flat_map(|name| Operation::samples(name)) {
            let plans = variants_of(sample.name()).filter_map(|v| v.plan(&sample).ok());
            used.extend(plans.flat_map(|plan| plan.steps).filter_map(|step| match step.module {
                crate::Module::Compiled { name, .. } => Some(name),
                crate::Module::Emitted(_) => None,
            }));
        }
        let orphans: Vec<_> = builds.difference(&used).filter(|name| !name.starts_with("probe_")).collect();
        assert!(orphans.is_empty(), "builds that no variant uses: {orphans:?}");
    }

    #[test]
    fn types_without_a_kernel_are_refused_with_those_that_have_one() {
        let matmul = parse("matmul:m=1,n=1,k=1,lhs=i16,rhs=u16,out=i32").unwrap_err().to_string();
        assert!(
            matmul.contains("types i16xu16_i32; there are: ") && matmul.contains("i8xi8_i32"),
            "{matmul}"
        );
    }

    #[test]
    fn every_signature_has_a_baseline_variant_that_plans_every_sample() {
        for name in Operation::NAMES {
            let mut asked: BTreeMap<String, Vec<Operation>> = BTreeMap::new();
            for sample in Operation::samples(name) {
                asked.entry(sample.signature()).or_default().push(sample);
            }
            assert!(!asked.is_empty(), "{name} has no samples");
            for (signature, samples) in asked {
                for sample in samples {
                    let baseline = variants_of(name)
                        .filter(|v| v.needs.is_baseline() && v.signatures.contains(&signature))
                        .any(|v| v.plan(&sample).is_ok());
                    assert!(baseline, "no baseline variant computes {sample} ({signature})");
                }
            }
        }
    }
}
