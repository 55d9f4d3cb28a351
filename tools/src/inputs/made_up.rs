//! Inputs for those who want to see how fast something is, and have none: random numbers between 0 and 1 where floats are
//! wanted, ones where whole numbers are. A one is a token, a place and a mask's "yes" in every model.

use half::{bf16, f16};

use crate::{
    console::{Result, remark},
    engine::{ElementKind, ElementType, FunctionInfo, HostTensor, HostValue},
    flags::InputFlags,
    ports::{self, Port},
    values,
};

/// Values for all inputs of a function; `None` where a size or a type is open, or the function takes what is no tensor.
pub(crate) fn values(info: &FunctionInfo) -> Option<Vec<HostValue>> {
    let ports = Port::inputs(info);
    ports.iter().enumerate().map(|(index, port)| value(port, index as u64)).collect()
}

/// The inputs that are given, or some that are made up where none is.
pub(crate) fn read(info: &FunctionInfo, flags: &InputFlags) -> Result<Vec<HostValue>> {
    match flags.input.is_empty().then(|| values(info)).flatten() {
        Some(values) => Ok(values),
        None => values::read_inputs(info, flags),
    }
}

/// Tells the user of inputs that were made up.
pub(crate) fn tell(info: &FunctionInfo, flags: &InputFlags) {
    if flags.input.is_empty() && !info.inputs.is_empty() {
        let list = ports::list(&Port::inputs(info));
        remark(format_args!("no --input is given, so inputs of '{}' are made up: {list}", info.name));
    }
}

fn value(port: &Port, seed: u64) -> Option<HostValue> {
    if port.is_optional {
        return Some(HostValue::Null);
    }
    let (element, dims) = (port.element?, port.dims.as_ref()?);
    let shape = dims.iter().copied().collect::<Option<Vec<u64>>>()?;
    let count = shape.iter().try_fold(1u64, |count, size| count.checked_mul(*size))?;
    let data = elements(element, usize::try_from(count).ok()?, seed)?;
    HostTensor::new(element, shape.as_slice(), data).ok().map(HostValue::Tensor)
}

fn elements(element: ElementType, count: usize, seed: u64) -> Option<Vec<u8>> {
    let floats = (0..count as u64).map(|at| uniform(seed, at));
    Some(match (element.kind()?, element.bit_count()) {
        (ElementKind::Float, 16) => floats.flat_map(|x| f16::from_f32(x).to_le_bytes()).collect(),
        (ElementKind::Float, 32) => floats.flat_map(f32::to_le_bytes).collect(),
        (ElementKind::Float, 64) => floats.flat_map(|x| f64::from(x).to_le_bytes()).collect(),
        (ElementKind::BFloat, 16) => floats.flat_map(|x| bf16::from_f32(x).to_le_bytes()).collect(),
        (
            ElementKind::Int | ElementKind::SInt | ElementKind::UInt | ElementKind::Bool,
            bits @ (8 | 16 | 32 | 64),
        ) => 1u64.to_le_bytes()[..bits as usize / 8].repeat(count),
        _ => return None,
    })
}

/// A number from 0 up to 1 for a place: the mixing steps of SplitMix64 (Steele, Lea, Flood 2014).
fn uniform(seed: u64, at: u64) -> f32 {
    let mut bits = (seed << 40 | at).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((bits ^ bits >> 31) >> 40) as f32 / (1u64 << 24) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ArgumentKind;

    fn made(element: ElementType, dims: Option<Vec<Option<u64>>>) -> Option<HostValue> {
        value(&Port::for_test("x", ArgumentKind::Reference, element, dims), 0)
    }

    #[test]
    fn fixed_sizes_are_filled_and_open_ones_are_not() {
        let fixed = || Some(vec![Some(2), Some(3)]);
        let Some(HostValue::Tensor(floats)) = made(ElementType::F32, fixed()) else { panic!("no tensor") };
        let numbers: Vec<f32> = floats.data.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        assert!(numbers.iter().all(|x| (0.0..1.0).contains(x)) && numbers[0] != numbers[1], "{numbers:?}");
        let Some(HostValue::Tensor(whole)) = made(ElementType::I64, fixed()) else { panic!("no tensor") };
        assert_eq!(whole.data, 1i64.to_le_bytes().repeat(6));
        for open in [None, Some(vec![Some(2), None]), Some(vec![Some(u64::MAX), Some(2)])] {
            assert!(made(ElementType::F32, open).is_none());
        }
        assert!(made(ElementType::NONE, fixed()).is_none());
        let optional = Port::for_test("x?", ArgumentKind::Reference, ElementType::F32, None);
        assert!(matches!(value(&optional, 0), Some(HostValue::Null)));
    }
}
