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

#[cfg(test)]
mod tests {
    use super::*;

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
