//! What was measured: which variants are best for which shapes on which GPUs.

use std::{cell::OnceCell, collections::HashMap};

use halite_ops::Operation;
use halite_targets::Target;
use serde::{Deserialize, Serialize};

/// The order of variants for shapes of one class on one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TuningRow {
    /// Target that it was measured on, as a triple; product or family.
    pub target: String,
    /// Name of the operation.
    pub operation: String,
    /// Its signature.
    pub signature: String,
    /// What the flops of the operation must at least be.
    #[serde(default)]
    pub min_flops: f64,
    /// Variants by name, the best first. A name that ends with `*` stands for all whose names begin so, in the order of their
    /// estimates, or else in the general one.
    pub order: Vec<String>,
    /// Whether the order follows from documents, not from measurements.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub documented: bool,
    /// Where it comes from: device, driver, shape, and the measured times; or the document.
    pub source: String,
}

/// The order of a row, to be asked for one variant after the other.
#[derive(Clone, Debug, Default)]
struct Places {
    /// Places of whole names.
    names: HashMap<String, usize>,
    /// Beginnings of names, in the order of their places.
    beginnings: Vec<(String, usize)>,
}

impl Places {
    fn of(order: &[String]) -> Places {
        let mut places = Places::default();
        for (place, name) in order.iter().enumerate() {
            match name.strip_suffix('*') {
                Some(beginning) => places.beginnings.push((beginning.to_owned(), place)),
                None => _ = places.names.entry(name.clone()).or_insert(place),
            }
        }
        places
    }

    /// The first place that is a variant's, and whether several share it, so that estimates order them.
    fn of_variant(&self, variant: &str) -> Option<(usize, bool)> {
        let named = self.names.get(variant).map(|place| (*place, false));
        let begins = self.beginnings.iter().find(|(beginning, _)| variant.starts_with(beginning.as_str()));
        let shared = begins.map(|(_, place)| (*place, true));
        [named, shared].into_iter().flatten().min()
    }
}

/// A row that fits an operation on a target.
#[derive(Clone, Copy, Debug)]
pub struct Fitting<'a> {
    /// The row.
    pub row: &'a TuningRow,
    /// How near its target is.
    pub nearness: Nearness,
    places: &'a Places,
}

impl Fitting<'_> {
    /// The place of a variant, and whether several share it, so that estimates order them.
    pub fn place(&self, variant: &str) -> Option<(usize, bool)> {
        self.places.of_variant(variant)
    }
}

/// Families that nobody measured, and the one whose orders they take. NVIDIA's CUDA C++ Programming Guide (Technical
/// Specifications per Compute Capability) gives these generations the same warps, and the same registers for an SM and for a
/// thread; they differ in units and caches, which estimates count.
const RELATIVES: [(&str, &str); 4] =
    [("turing", "hopper"), ("ampere", "hopper"), ("ada", "hopper"), ("blackwell", "hopper")];

/// How near the target of a row is to the one that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Nearness {
    /// A family that is like its own.
    Relative,
    /// Another product of its family, or the whole family.
    Family,
    /// The same product.
    Product,
}

/// Tuning rows: those of the crate, after rows of the user.
#[derive(Clone, Debug, Default)]
pub struct Tuning {
    rows: Vec<TuningRow>,
    /// What is read of each row once, as every operation of a model asks for it.
    known: Vec<Known>,
}

/// What a row says, read.
#[derive(Clone, Debug)]
struct Known {
    /// `None` where the text names no target.
    target: Option<Target>,
    places: Places,
}

impl Known {
    fn of(row: &TuningRow) -> Known {
        Known { target: Target::parse(&row.target).ok(), places: Places::of(&row.order) }
    }
}

impl Tuning {
    /// What ships with the crate.
    pub fn shipped() -> &'static Tuning {
        static SHIPPED: std::sync::LazyLock<Tuning> = std::sync::LazyLock::new(|| {
            Tuning::parse(include_str!("../tuning.json")).expect("the crate's own data, read by every test")
        });
        &SHIPPED
    }

    /// Reads rows from JSON.
    ///
    /// # Errors
    /// Says where the text is no list of rows.
    pub fn parse(json: &str) -> Result<Tuning, serde_json::Error> {
        Ok(Tuning::of(serde_json::from_str(json)?))
    }

    /// Of rows.
    pub fn of(rows: Vec<TuningRow>) -> Tuning {
        let known = rows.iter().map(Known::of).collect();
        Tuning { rows, known }
    }

    /// These rows before those of `other`.
    #[must_use]
    pub fn over(mut self, other: &Tuning) -> Tuning {
        self.rows.extend_from_slice(&other.rows);
        self.known.extend_from_slice(&other.known);
        self
    }

    /// The row that fits best: the same product before the same family, that before a relative, more flops before fewer,
    /// earlier before later.
    pub fn row(&self, operation: &Operation, target: &Target) -> Option<Fitting<'_>> {
        let (name, flops) = (operation.name(), operation.work().flops);
        let signature = OnceCell::new();
        let mut best: Option<Fitting<'_>> = None;
        for (row, known) in self.rows.iter().zip(&self.known) {
            let fits = row.operation == name
                && flops >= row.min_flops
                && row.signature == *signature.get_or_init(|| operation.signature());
            let Some(nearness) = known.target.as_ref().filter(|_| fits).and_then(|own| nearness(own, target))
            else {
                continue;
            };
            let better = best.is_none_or(|old| {
                nearness > old.nearness || (nearness == old.nearness && row.min_flops > old.row.min_flops)
            });
            if better {
                best = Some(Fitting { row, nearness, places: &known.places });
            }
        }
        best
    }

    /// All rows.
    pub fn rows(&self) -> &[TuningRow] {
        &self.rows
    }
}

/// How near a target that was measured is to another.
fn nearness(measured: &Target, target: &Target) -> Option<Nearness> {
    let (theirs, ours) = (measured.family().map(|f| &f.name), target.family().map(|f| &f.name));
    if theirs == ours {
        let same = measured.product_name() == target.product_name();
        return if same { Some(Nearness::Product) } else { theirs.map(|_| Nearness::Family) };
    }
    let (theirs, ours) = (theirs?, ours?);
    RELATIVES.iter().any(|(family, like)| family == ours && like == theirs).then_some(Nearness::Relative)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_rows_name_what_exists() {
        for row in Tuning::shipped().rows() {
            assert!(Target::parse(&row.target).is_ok(), "{}", row.target);
            for name in &row.order {
                let named = name.strip_suffix('*').unwrap_or("-");
                let is_named = |v: &str| v == name || v.starts_with(named);
                assert!(crate::variants_of(&row.operation).any(|v| is_named(&v.name)), "{name}");
            }
            assert!(!row.source.is_empty());
        }
    }

    #[test]
    fn the_first_place_counts() {
        let order = ["f32.tile4", "f32.*", "f32.rows", "*"].map(String::from);
        let places = Places::of(&order);
        assert_eq!(places.of_variant("f32.tile4"), Some((0, false)));
        assert_eq!(places.of_variant("f32.rows"), Some((1, true)));
        assert_eq!(places.of_variant("f16.rows"), Some((3, true)));
        assert_eq!(Places::of(&order[..1]).of_variant("f32"), None);
    }

    #[test]
    fn families_that_nobody_measured_take_the_rows_of_their_relatives() {
        let operation = Operation::parse("matmul:m=64,n=64,k=64").unwrap();
        let found = |target: &str| {
            let target = Target::parse(target).unwrap();
            Tuning::shipped()
                .row(&operation, &target)
                .map(|found| (found.row.target.as_str(), found.nearness))
        };
        assert_eq!(found("hopper-h200-linux"), Some(("hopper-h200-linux", Nearness::Product)));
        assert_eq!(found("hopper-h100-linux"), Some(("hopper-h200-linux", Nearness::Family)));
        for (family, _) in RELATIVES {
            let found = found(&format!("{family}-unknown-unknown"));
            assert_eq!(found, Some(("hopper-h200-linux", Nearness::Relative)), "{family}");
        }
        assert_eq!(found("rdna1-5700xt-linux"), None);
    }
}
