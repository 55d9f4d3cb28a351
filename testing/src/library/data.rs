//! Inputs that kernels are tried with, and the comparison of what comes out.

use halite_ops::{DType, Operation, TensorDesc, Tolerance, Values};

use crate::{Numbers, Random, Wrong, ulp};

/// What inputs are like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inputs {
    /// Values up to 1 in magnitude, small integers.
    Plain,
    /// The same, with infinities, NaN, large values and both zeros among them.
    Special,
    /// The same, with denormal and other tiny values among them. Apart from infinities, because a device may take a
    /// denormal value for zero, and zero times infinity is NaN.
    Tiny,
}

impl Inputs {
    /// All kinds.
    pub const ALL: [Inputs; 3] = [Inputs::Plain, Inputs::Special, Inputs::Tiny];

    /// What names of cases end with.
    pub fn suffix(self) -> &'static str {
        match self {
            Inputs::Plain => "",
            Inputs::Special => ";values=special",
            Inputs::Tiny => ";values=tiny",
        }
    }
}

/// Values of every input of an operation.
pub fn inputs(operation: &Operation, kind: Inputs, random: &mut Random) -> Vec<Values> {
    let given = |(index, tensor): (usize, &TensorDesc)| {
        let own = operation.sample_input(index, &mut || random.next_u64());
        own.unwrap_or_else(|| values(tensor, kind, random))
    };
    operation.inputs().iter().enumerate().map(given).collect()
}

/// Values of a tensor.
pub fn values(tensor: &TensorDesc, kind: Inputs, random: &mut Random) -> Values {
    let count = tensor.elements().exact_usize();
    if tensor.dtype.is_float() {
        let dtype = tensor.dtype;
        return Values::Float((0..count).map(|_| dtype.round(float(dtype, kind, random))).collect());
    }
    let (least, most) = match tensor.dtype {
        DType::I8 => (-128, 127),
        DType::U8 => (0, 255),
        DType::U32 | DType::U16 | DType::U64 => (0, 1000),
        _ => (-1000, 1000),
    };
    let span = (most - least + 1) as u64;
    Values::Int((0..count).map(|_| least + random.below(span) as i64).collect())
}

fn float(dtype: DType, kind: Inputs, random: &mut Random) -> f64 {
    let special = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 0.0, -0.0, 100.0, -100.0];
    let tiny = [dtype.min_normal() / 4.0, -dtype.min_normal() / 2.0, dtype.min_normal(), 0.0, -0.0];
    match kind {
        Inputs::Special if random.once_in(16) => return special[random.index(special.len())],
        Inputs::Tiny if random.once_in(4) => return tiny[random.index(tiny.len())],
        _ => {}
    }
    // More bits than an f32 has, where there are.
    let steps = if dtype == DType::F64 { 1u64 << 51 } else { 1 << 19 };
    random.below(2 * steps) as f64 / steps as f64 - 1.0
}

/// Compares an output with what the reference says; the failure names the first wrong element and how many there are.
pub fn compare(
    tensor: &TensorDesc,
    got: &[u8],
    expected: &Values,
    tolerance: Tolerance,
) -> Result<(), Box<Wrong>> {
    let length = tensor.bytes().exact_usize();
    let found = Values::from_bytes(tensor.dtype, &got[..length.min(got.len())]);
    if found.len() != expected.len() {
        return Err(Wrong::words(format!(
            "{} has {} elements, not {}",
            tensor.name,
            found.len(),
            expected.len()
        )));
    }
    let wrong = |i: &usize| !near(tensor.dtype, &found, expected, *i, tolerance);
    let mut all = (0..expected.len()).filter(wrong);
    let Some(first) = all.next() else { return Ok(()) };
    let shape: Vec<_> = tensor.dims.iter().map(ToString::to_string).collect();
    let dims: Vec<u64> = tensor.dims.iter().map(|size| size.exact()).collect();
    let index = place(first as u64, &dims);
    let words: Vec<_> = index.iter().map(ToString::to_string).collect();
    let numbers = Numbers {
        output: tensor.name.to_owned(),
        shape: format!("{}x{}", shape.join("x"), tensor.dtype),
        index,
        expected: shown(expected, first),
        got: shown(&found, first),
        ulp: distance(tensor.dtype, &found, expected, first),
        tolerance: format!("{:.3e} + {:.3e} * |expected|", tolerance.absolute, tolerance.relative),
        wrong: 1 + all.count() as u64,
        of: expected.len() as u64,
    };
    let what = format!(
        "{}[{}] of {}: got {}, expected {} (tolerance {}); {} of {} elements are wrong",
        tensor.name,
        words.join(", "),
        numbers.shape,
        numbers.got,
        numbers.expected,
        numbers.tolerance,
        numbers.wrong,
        numbers.of,
    );
    Err(Box::new(Wrong { what, numbers: Some(numbers) }))
}

fn distance(dtype: DType, found: &Values, expected: &Values, index: usize) -> Option<String> {
    match (found, expected) {
        (Values::Float(found), Values::Float(expected)) => ulp(found[index], expected[index], dtype),
        _ => None,
    }
}

fn near(dtype: DType, found: &Values, expected: &Values, index: usize, tolerance: Tolerance) -> bool {
    match expected {
        Values::Int(_) => found.int(index) == expected.int(index),
        Values::Float(_) => {
            let wanted = expected.float(index);
            let got = found.float(index);
            // A device may flush denormal values to zero.
            tolerance.accepts(got, wanted, dtype) || (wanted.abs() < dtype.min_normal() && got == 0.0)
        }
    }
}

fn shown(values: &Values, index: usize) -> String {
    match values {
        Values::Float(v) => v[index].to_string(),
        Values::Int(v) => v[index].to_string(),
    }
}

/// Index in each dimension.
fn place(mut index: u64, dims: &[u64]) -> Vec<u64> {
    let mut parts = Vec::new();
    for dim in dims.iter().rev() {
        parts.push(index % dim.max(&1));
        index /= dim.max(&1);
    }
    parts.reverse();
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_wrong_element_is_named() {
        let tensor = TensorDesc::new("out", DType::F32, [2, 3]);
        let expected = Values::Float(vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        let mut bytes = expected.to_bytes(DType::F32);
        let tolerance = Tolerance::of_value(1.0, DType::F32, DType::F32);
        assert_eq!(compare(&tensor, &bytes, &expected, tolerance), Ok(()));
        bytes[16..20].copy_from_slice(&9.0f32.to_le_bytes());
        let Err(wrong) = compare(&tensor, &bytes, &expected, tolerance) else { panic!("it is wrong") };
        let text = wrong.what;
        assert!(
            text.starts_with("out[1, 1] of 2x3xf32: got 9, expected 4")
                && text.ends_with("1 of 6 elements are wrong"),
            "{text}"
        );
        let numbers = wrong.numbers.expect("an element is wrong");
        assert_eq!((numbers.index, numbers.wrong, numbers.of), (vec![1, 1], 1, 6));
        assert_eq!(numbers.ulp.as_deref(), Some("1.05e7"));
    }
}
