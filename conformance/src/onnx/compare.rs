//! Whether values are those that are expected, by the measure of the `onnx` package's own runner.

use halite_compiler::{graph::ElementType, signature::BoundValue};
use halite_ops::{DType, Values};

/// The reason why a value is not the expected one. Floats of 32 and 64 bits may differ by a part in a thousand and by
/// `absolute` (`1e-7` in the package's runner); those of 16 bits by some of their own steps; all of them by
/// `2^-22` of the largest expected number; everything else not at all.
pub fn compare(got: &BoundValue, expected: &BoundValue, absolute: f64) -> Option<String> {
    compare_types(got, expected).or_else(|| compare_values(got, expected, absolute))
}

/// The reason why a value has not the type and the dimensions that are expected.
pub fn compare_types(got: &BoundValue, expected: &BoundValue) -> Option<String> {
    if got.element != expected.element || got.dims != expected.dims {
        return Some(format!(
            "{}{:?} where {}{:?} is expected",
            got.element, got.dims, expected.element, expected.dims
        ));
    }
    None
}

fn compare_values(got: &BoundValue, expected: &BoundValue, absolute: f64) -> Option<String> {
    let values = |of: &BoundValue| Values::from_bytes(of.element.storage(), &of.bytes);
    let (got_values, wanted) = (values(got), values(expected));
    if got_values.len() != wanted.len() {
        return Some(format!("{} elements where {} are expected", got_values.len(), wanted.len()));
    }
    let (relative, least) = tolerance(got.element);
    // Sums of large numbers leave in small ones what the larger ones' digits cannot tell.
    let largest = wanted.floats().into_iter().filter(|x| x.is_finite()).fold(0.0, |a: f64, x| a.max(x.abs()));
    let absolute = absolute.max(least).max(largest * 2f64.powi(-22));
    let differs = |index: &usize| match (&got_values, &wanted) {
        (Values::Int(got), Values::Int(wanted)) => got[*index] != wanted[*index],
        _ => {
            let (got, wanted) = (got_values.float(*index), wanted.float(*index));
            let same = got == wanted || got.is_nan() && wanted.is_nan();
            // Infinity and NaN are near nothing.
            let near = wanted.is_finite() && (got - wanted).abs() <= absolute + relative * wanted.abs();
            !same && !near
        }
    };
    let bad: Vec<usize> = (0..wanted.len()).filter(differs).collect();
    let first = *bad.first()?;
    Some(format!(
        "{} of {} elements differ, the first at {first}: {} where {} is expected",
        bad.len(),
        wanted.len(),
        got_values.float(first),
        wanted.float(first)
    ))
}

fn tolerance(element: ElementType) -> (f64, f64) {
    match element {
        ElementType::Of(DType::F16) => (4e-3, 1e-4),
        ElementType::Of(DType::BF16) => (1e-2, 1e-3),
        _ => (1e-3, 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(values: &[f64]) -> BoundValue {
        let bytes = Values::Float(values.to_vec()).to_bytes(DType::F32).into();
        BoundValue { element: DType::F32.into(), dims: vec![values.len() as u64], bytes }
    }

    #[test]
    fn what_is_too_far_is_told() {
        let nan = f64::NAN;
        assert_eq!(compare(&floats(&[1.0, nan]), &floats(&[1.0005, nan]), 1e-7), None);
        assert!(compare(&floats(&[1.0]), &floats(&[nan]), 1e-7).is_some());
        assert!(compare(&floats(&[nan]), &floats(&[1.0]), 1e-7).is_some());
        assert!(compare(&floats(&[1.0]), &floats(&[1.002]), 1e-7).is_some());
        assert!(
            compare(&floats(&[1.0]), &floats(&[f64::INFINITY]), 1e-7)
                .is_some_and(|text| text.contains("inf"))
        );
        assert!(compare(&floats(&[1.0]), &floats(&[1.0, 2.0]), 1e-7).is_some());
    }
}
