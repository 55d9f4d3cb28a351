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

    /// The row that fits best: the same product before the same family, more flops before fewer, earlier before later.
    pub fn row(&self, operation: &Operation, target: &Target) -> Option<&TuningRow> {
        let flops = operation.work().flops;
        let fits = |row: &&TuningRow| {
            row.operation == operation.name()
                && row.signature == operation.signature()
                && flops >= row.min_flops
        };
        let nearness = |row: &TuningRow| {
            let measured = Target::parse(&row.target).ok()?;
            match () {
                () if measured.family().map(|f| &f.name) != target.family().map(|f| &f.name) => None,
                () if measured.product_name() == target.product_name() => Some(2),
                () if measured.family().is_some() => Some(1),
                () => None,
            }
        };
        let mut best: Option<(i32, &TuningRow)> = None;
        for row in self.rows.iter().filter(fits) {
            let Some(near) = nearness(row) else { continue };
            let better = best
                .is_none_or(|(other, old)| near > other || (near == other && row.min_flops > old.min_flops));
            if better {
                best = Some((near, row));
            }
        }
        best.map(|(_, row)| row)
    }

    /// All rows.
    pub fn rows(&self) -> &[TuningRow] {
        &self.rows
    }
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
}
