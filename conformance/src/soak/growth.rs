//! The judgement on growth of the process: a line through the second half of the samples against a bound.
//!
//! # The bound
//! The slope may be 1 KiB for 100 calls, plus two allowances that are computed and printed:
//! * One step of the C library's heap over the calls that were measured: glibc takes and returns the top of its heap in pieces
//!   of 128 KiB and a page (`M_TOP_PAD`, `M_TRIM_THRESHOLD`), so one step more or less says nothing.
//! * Three standard errors of the slope, from how the samples scatter around the line. Drivers that compile kernels on the
//!   processor leave the heap differently full each time: about 1 MiB up and down on llvmpipe, nothing on a quiet driver. Samples
//!   beside each other are alike, which makes the plain error too small; it is widened by the correction for a first-order
//!   autoregression, the root of (1 + r) / (1 - r) with r the correlation of neighbours.
//!
//! On a quiet driver and over 5,000 calls the bound is 3.7 KiB for 100 calls: an object of 40 bytes that is lost in every call is
//! found. The longer the run, the less both allowances count.

use super::Sample;

/// Bytes for 100 calls that are no growth.
const ALLOWED: f64 = 1024.0;
/// One step of the heap.
const HEAP_STEP: f64 = (132 * 1024) as f64;

/// Fewer samples than this are not judged.
const FEWEST: usize = 8;

/// Correlation of neighbours that is believed at most: few samples do not show more.
const MOST_ALIKE: f64 = 0.9;

/// A line through samples of resident memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// Bytes for 100 calls.
    pub slope: f64,
    /// Standard error of the slope.
    pub error: f64,
    /// Most that the slope may be.
    pub allowed: f64,
    /// Calls that it was measured over.
    pub calls: u64,
}

/// What is to be said about a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// Within the bound.
    Steady(Growth),
    /// Beyond it.
    Grows(Growth),
    /// Too few samples, or the system does not tell.
    Unknown,
}

/// Judges the second half of the samples; the first is warm-up.
pub fn judge(samples: &[Sample]) -> Verdict {
    let measured = &samples[samples.len() / 2..];
    let points: Option<Vec<(f64, f64)>> =
        measured.iter().map(|s| Some((s.calls as f64, s.resident? as f64))).collect();
    let (Some(points), Some(first), Some(last)) = (points, measured.first(), measured.last()) else {
        return Verdict::Unknown;
    };
    let calls = last.calls - first.calls;
    if points.len() < FEWEST || calls == 0 {
        return Verdict::Unknown;
    }
    let (slope, error) = line(&points);
    let (slope, error) = (slope * 100.0, error * 100.0);
    let allowed = ALLOWED + HEAP_STEP / calls as f64 * 100.0 + 3.0 * error;
    let growth = Growth { slope, error, allowed, calls };
    if slope <= allowed { Verdict::Steady(growth) } else { Verdict::Grows(growth) }
}

/// Slope of the least-squares line, and its standard error for points whose neighbours are alike.
fn line(points: &[(f64, f64)]) -> (f64, f64) {
    let count = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let covariance: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let variance: f64 = points.iter().map(|(x, _)| (x - mean_x) * (x - mean_x)).sum();
    let slope = covariance / variance;
    let rest: Vec<f64> = points.iter().map(|(x, y)| y - mean_y - slope * (x - mean_x)).collect();
    let squares: f64 = rest.iter().map(|r| r * r).sum();
    let neighbours: f64 = rest.windows(2).map(|pair| pair[0] * pair[1]).sum();
    // Without scatter there is nothing to correlate.
    let alike = if squares > 0.0 { (neighbours / squares).clamp(0.0, MOST_ALIKE) } else { 0.0 };
    let widened = (1.0 + alike) / (1.0 - alike);
    (slope, (squares / (count - 2.0) / variance * widened).sqrt())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn samples(resident: impl Fn(u64) -> u64) -> Vec<Sample> {
        let at = |round: u64| Sample {
            calls: round * 250,
            sessions: round,
            time: Duration::ZERO,
            resident: Some(resident(round)),
            used: 0,
            peak_used: 0,
            reserved: 0,
        };
        (1..=40).map(at).collect()
    }

    #[test]
    fn a_small_object_lost_in_every_call_is_found() {
        let base = 50 << 20;
        let steady = judge(&samples(|round| base + (round * 7919 % 11) * 4096));
        assert!(matches!(steady, Verdict::Steady(_)), "{steady:?}");
        let leak = judge(&samples(|round| base + round * 250 * 64 / 4096 * 4096));
        assert!(matches!(leak, Verdict::Grows(_)), "{leak:?}");
    }

    #[test]
    fn warming_up_and_one_step_of_the_heap_are_no_growth() {
        let warm = judge(&samples(|round| (50 << 20) + round.min(18) * (1 << 20)));
        assert!(matches!(warm, Verdict::Steady(_)), "{warm:?}");
        let step = judge(&samples(|round| (50 << 20) + u64::from(round > 30) * (132 << 10)));
        assert!(matches!(step, Verdict::Steady(_)), "{step:?}");
        let noisy = judge(&samples(|round| (50 << 20) + (round * 7919 % 13) * (150 << 10)));
        assert!(matches!(noisy, Verdict::Steady(_)), "{noisy:?}");
        // A slow wave: what looks like growth in a part of it comes back.
        let wave = judge(&samples(|round| {
            (50 << 20) + [0, 1, 2, 3, 4, 5, 4, 3, 2, 1][round as usize / 4 % 10] * (300 << 10)
        }));
        assert!(matches!(wave, Verdict::Steady(_)), "{wave:?}");
        let noisy_leak =
            judge(&samples(|round| (50 << 20) + (round * 7919 % 13) * (15 << 10) + round * (250 << 9)));
        assert!(matches!(noisy_leak, Verdict::Grows(_)), "{noisy_leak:?}");
        let shrinks = judge(&samples(|round| (50 << 20) - round * 100_000));
        assert!(matches!(shrinks, Verdict::Steady(_)), "{shrinks:?}");
    }

    #[test]
    fn few_samples_and_silent_systems_are_not_judged() {
        assert_eq!(judge(&[]), Verdict::Unknown);
        assert_eq!(judge(&samples(|_| 0)[..14]), Verdict::Unknown);
        let silent: Vec<_> = samples(|_| 0).into_iter().map(|s| Sample { resident: None, ..s }).collect();
        assert_eq!(judge(&silent), Verdict::Unknown);
    }
}
