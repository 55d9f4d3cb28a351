//! What was measured: which variants are best for which shapes on which GPUs.

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

impl TuningRow {
    /// The place of a variant, and whether several share it, so that estimates order them.
    pub fn place(&self, variant: &str) -> Option<(usize, bool)> {
        self.order.iter().enumerate().find_map(|(place, name)| match name.strip_suffix('*') {
            Some(beginning) => variant.starts_with(beginning).then_some((place, true)),
            None => (name == variant).then_some((place, false)),
        })
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
        Ok(Tuning { rows: serde_json::from_str(json)? })
    }

    /// Of rows.
    pub fn of(rows: Vec<TuningRow>) -> Tuning {
        Tuning { rows }
    }

    /// These rows before those of `other`.
    #[must_use]
    pub fn over(mut self, other: &Tuning) -> Tuning {
        self.rows.extend(other.rows.iter().cloned());
        self
    }

    /// The row that fits best: the same product before the same family, that before a relative, more flops before fewer,
    /// earlier before later.
    pub fn row(&self, operation: &Operation, target: &Target) -> Option<(&TuningRow, Nearness)> {
        let flops = operation.work().flops;
        let fits = |row: &&TuningRow| {
            row.operation == operation.name()
                && row.signature == operation.signature()
                && flops >= row.min_flops
        };
        let mut best: Option<(&TuningRow, Nearness)> = None;
        for row in self.rows.iter().filter(fits) {
            let Some(near) = nearness(row, target) else { continue };
            let better = best
                .is_none_or(|(old, other)| near > other || (near == other && row.min_flops > old.min_flops));
            if better {
                best = Some((row, near));
            }
        }
        best
    }

    /// All rows.
    pub fn rows(&self) -> &[TuningRow] {
        &self.rows
    }
}

fn nearness(row: &TuningRow, target: &Target) -> Option<Nearness> {
    let measured = Target::parse(&row.target).ok()?;
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
    fn families_that_nobody_measured_take_the_rows_of_their_relatives() {
        let operation = Operation::parse("matmul:m=64,n=64,k=64").unwrap();
        let found = |target: &str| {
            let target = Target::parse(target).unwrap();
            Tuning::shipped().row(&operation, &target).map(|(row, near)| (row.target.as_str(), near))
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
