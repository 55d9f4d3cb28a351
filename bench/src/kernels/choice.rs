//! How good the choice of variants is: the time of the one that is chosen beside that of the fastest.

use halite_ops::Operation;
use halite_tools::units;
use serde_json::{Value, json};

use super::{Report, Row};

/// What was chosen for a shape, and what would have been the fastest.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The shape.
    pub operation: Operation,
    /// The first choice that computes what is right, and its seconds.
    pub chosen: (&'static str, f64),
    /// The fastest, and its seconds.
    pub fastest: (&'static str, f64),
}

impl Chosen {
    /// Out of measurements of one shape, of which the least time of each variant counts; `None` when nothing could be measured.
    pub fn of(reports: &[Report]) -> Option<Chosen> {
        let first = reports.first()?;
        let least = |row: &Row| {
            let same =
                reports.iter().flat_map(|report| &report.rows).filter(|other| other.variant == row.variant);
            let times = same.filter_map(|row| Some(row.outcome.as_ref().ok()?.timing.least));
            Some((row.variant, times.min_by(f64::total_cmp)?))
        };
        let chosen = first.rows.iter().find_map(least)?;
        let fastest = first.rows.iter().filter_map(least).min_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(Chosen { operation: first.operation.clone(), chosen, fastest })
    }

    /// How many times as long as the fastest the chosen one takes.
    pub fn ratio(&self) -> f64 {
        if self.fastest.1 > 0.0 { self.chosen.1 / self.fastest.1 } else { 1.0 }
    }

    /// A line for people.
    pub fn text(&self) -> String {
        format!(
            "{:6.2}  {} {}, fastest {} {}: {}",
            self.ratio(),
            self.chosen.0,
            units::seconds(self.chosen.1),
            self.fastest.0,
            units::seconds(self.fastest.1),
            self.operation
        )
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let one = |(variant, seconds): (&str, f64)| json!({"variant": variant, "seconds": seconds});
        json!({
            "operation": self.operation.to_string(), "ratio": self.ratio(),
            "chosen": one(self.chosen), "fastest": one(self.fastest),
        })
    }
}

/// The share of shapes whose choice takes at most `within` times as long as the fastest; 1 when there are none.
pub fn share(chosen: &[Chosen], within: f64) -> f64 {
    let good = chosen.iter().filter(|one| one.ratio() <= within).count();
    if chosen.is_empty() { 1.0 } else { good as f64 / chosen.len() as f64 }
}

/// How good the choices of several shapes are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Shapes of which all variants were measured.
    pub shapes: usize,
    /// How many times as long as the fastest the chosen variants take, in the geometric mean.
    pub mean: f64,
    /// The same at most.
    pub most: f64,
    /// The share of shapes whose choice takes at most [`Summary::WITHIN`] times as long as the fastest.
    pub share: f64,
}

impl Summary {
    /// A choice is good that takes at most so many times as long as the fastest variant.
    pub const WITHIN: f64 = 1.3;

    /// Out of what was chosen for each shape.
    pub fn of(ratios: &[f64]) -> Summary {
        let count = ratios.len().max(1) as f64;
        let good = ratios.iter().filter(|ratio| **ratio <= Self::WITHIN).count();
        Summary {
            shapes: ratios.len(),
            mean: (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / count).exp(),
            most: ratios.iter().copied().fold(1.0, f64::max),
            share: if ratios.is_empty() { 1.0 } else { good as f64 / count },
        }
    }

    /// Out of measurements, of which those that are complete count.
    pub fn of_reports(reports: &[Report]) -> Summary {
        let complete = reports.iter().filter(|report| report.complete);
        let ratios: Vec<f64> =
            complete.filter_map(|report| Some(Chosen::of(std::slice::from_ref(report))?.ratio())).collect();
        Summary::of(&ratios)
    }

    /// A line for people.
    pub fn text(&self) -> String {
        format!(
            "the choice takes {:.3} times the fastest in the geometric mean of {} shapes, {:.2} at most; {:.0} % are within {}",
            self.mean,
            self.shapes,
            self.most,
            self.share * 100.0,
            Self::WITHIN
        )
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        json!({
            "shapes": self.shapes, "geometric_mean": self.mean, "most": self.most,
            "share": self.share, "within": Self::WITHIN,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_are_geometric_means() {
        let summary = Summary::of(&[1.0, 2.0, 1.0, 1.3]);
        assert_eq!((summary.shapes, summary.most, summary.share), (4, 2.0, 0.75));
        assert!((summary.mean - 2.6f64.powf(0.25)).abs() < 1e-12, "{summary:?}");
        assert_eq!(Summary::of(&[]), Summary { shapes: 0, mean: 1.0, most: 1.0, share: 1.0 });
    }

    #[test]
    fn shares_count_what_is_near_the_fastest() {
        let operation = Operation::parse("matmul:m=2,n=3,k=4").expect("it is one");
        let one = |chosen, fastest| Chosen {
            operation: operation.clone(),
            chosen: ("a", chosen),
            fastest: ("b", fastest),
        };
        let all = [one(1.0, 1.0), one(1.2, 1.0), one(2.0, 1.0), one(1.3, 1.0)];
        assert_eq!(share(&all, 1.3), 0.75);
        assert_eq!(share(&all, 1.0), 0.25);
        assert_eq!(share(&[], 1.3), 1.0);
        assert!(all[2].text().contains("2.00"), "{}", all[2].text());
    }
}
