//! Statistics over samples.

/// Summary of one repetition's calls, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Summary {
    pub(super) min: f64,
    pub(super) p50: f64,
    pub(super) p90: f64,
    pub(super) p99: f64,
}

impl Summary {
    /// Of at least one sample; sorts them.
    pub(super) fn of(samples: &mut [f64]) -> Self {
        samples.sort_by(f64::total_cmp);
        Summary {
            min: samples.first().copied().unwrap_or_default(),
            p50: percentile(samples, 0.5),
            p90: percentile(samples, 0.9),
            p99: percentile(samples, 0.99),
        }
    }
}

/// Percentile of sorted samples, linear between neighbours.
fn percentile(sorted: &[f64], fraction: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = fraction * last as f64;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    low + (high - low) * place.fract()
}

/// Mean, median, sample standard deviation, coefficient of variation: what Google Benchmark reports.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Aggregate {
    pub(super) mean: f64,
    pub(super) median: f64,
    pub(super) stddev: f64,
    pub(super) cv: f64,
}

impl Aggregate {
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        let count = values.len() as f64;
        if values.is_empty() {
            return Aggregate::default();
        }
        values.sort_by(f64::total_cmp);
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        let stddev = if values.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
        Aggregate {
            mean,
            median: percentile(&values, 0.5),
            stddev,
            cv: if mean == 0.0 { 0.0 } else { stddev / mean },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_between_neighbours() {
        let mut samples: Vec<f64> = (1..=101).rev().map(f64::from).collect();
        let s = Summary::of(&mut samples);
        assert_eq!((s.min, s.p50, s.p90, s.p99), (1.0, 51.0, 91.0, 100.0));
        let one = Summary::of(&mut [7.0]);
        assert_eq!((one.min, one.p50, one.p99), (7.0, 7.0, 7.0));
        assert_eq!(percentile(&[1.0, 2.0], 0.5), 1.5);
    }

    #[test]
    fn aggregates() {
        let a = Aggregate::of([2.0, 4.0, 4.0, 6.0].into_iter());
        assert_eq!((a.mean, a.median), (4.0, 4.0));
        assert!((a.stddev - (8.0f64 / 3.0).sqrt()).abs() < 1e-12 && (a.cv - a.stddev / 4.0).abs() < 1e-12);
        assert_eq!(Aggregate::of([3.0].into_iter()).stddev, 0.0);
    }
}
