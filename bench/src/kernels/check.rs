//! Checks that what was timed is right: inputs of any size, and what results are compared with.

use std::thread;

use halite_ops::{Operation, TensorDesc, Tolerance, Values};
use halite_testing::{
    Random,
    library::data::{self, Inputs},
};

/// Elements after which large inputs repeat: a prime, so that no tile sees the same as its neighbour.
const PERIOD: u64 = 1_000_003;
/// Elements from which on threads share a comparison.
const LARGE: usize = 1 << 16;
/// Bytes that are looked at in one piece, a multiple of all elements' sizes.
const PIECE: usize = 1 << 16;

/// What results are compared with.
#[derive(Clone, Debug)]
pub enum Reference {
    /// The reference's results.
    Host(Vec<Values>),
    /// Those of another variant, for shapes that the reference takes too long for.
    Variant(String, Vec<Values>),
}

impl Reference {
    /// What it is, for reports.
    pub fn name(&self) -> &str {
        match self {
            Reference::Host(_) => "the reference",
            Reference::Variant(name, _) => name,
        }
    }

    fn values(&self) -> &[Values] {
        match self {
            Reference::Host(values) | Reference::Variant(_, values) => values,
        }
    }

    /// Compares the bytes of all outputs; the error names the first wrong element.
    pub fn compare(
        &self,
        operation: &Operation,
        magnitudes: &[f64],
        outputs: &[Vec<u8>],
    ) -> Result<(), String> {
        let mut tolerance = operation.tolerance(magnitudes);
        if matches!(self, Reference::Variant(..)) {
            // Both may be off.
            tolerance.absolute *= 2.0;
            tolerance.relative *= 2.0;
        }
        for ((tensor, bytes), expected) in operation.outputs().iter().zip(outputs).zip(self.values()) {
            if all_near(tensor, bytes, expected, tolerance) {
                continue;
            }
            data::compare(tensor, bytes, expected, tolerance).map_err(|wrong| wrong.what)?;
        }
        Ok(())
    }
}

/// Whether all elements of a large tensor are right: parts of it, on several threads. What it does not know is no.
fn all_near(tensor: &TensorDesc, bytes: &[u8], expected: &Values, tolerance: Tolerance) -> bool {
    let (size, count) = (tensor.dtype.size() as usize, expected.len());
    if count < LARGE || size == 0 || tensor.elements().exact_usize() != count || bytes.len() < count * size {
        return false;
    }
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let part = count.div_ceil(threads);
    let right = |from: usize| {
        let to = count.min(from + part);
        let wanted = match expected {
            Values::Float(all) => Values::Float(all[from..to].to_vec()),
            Values::Int(all) => Values::Int(all[from..to].to_vec()),
        };
        let tensor = TensorDesc::new(tensor.name, tensor.dtype, [(to - from) as u64]);
        data::compare(&tensor, &bytes[from * size..to * size], &wanted, tolerance).is_ok()
    };
    thread::scope(|scope| {
        let right = &right;
        let parts: Vec<_> = (0..count).step_by(part).map(|from| scope.spawn(move || right(from))).collect();
        // All are joined, whatever the first says.
        let right: Vec<bool> = parts.into_iter().map(|part| part.join().unwrap_or(false)).collect();
        right.into_iter().all(|one| one)
    })
}

/// Bytes of every input. Large ones repeat themselves.
pub fn input_bytes(operation: &Operation, seed: u64) -> Vec<Vec<u8>> {
    let mut random = Random::new(seed);
    let one = |(index, tensor): (usize, &TensorDesc)| {
        if let Some(own) = operation.sample_input(index, &mut || random.next_u64()) {
            return own.to_bytes(tensor.dtype);
        }
        let length = tensor.bytes().exact_usize();
        let part = TensorDesc::new(tensor.name, tensor.dtype, [tensor.elements().min(PERIOD)]);
        let part = data::values(&part, Inputs::Plain, &mut random).to_bytes(tensor.dtype);
        part.iter().copied().cycle().take(if part.is_empty() { 0 } else { length }).collect()
    };
    operation.inputs().iter().enumerate().map(one).collect()
}

/// Inputs as the reference takes them.
pub fn input_values(operation: &Operation, bytes: &[Vec<u8>]) -> Vec<Values> {
    let tensors = operation.inputs();
    tensors.iter().zip(bytes).map(|(tensor, bytes)| Values::from_bytes(tensor.dtype, bytes)).collect()
}

/// What the finite elements of each input are at most.
pub fn magnitudes(operation: &Operation, bytes: &[Vec<u8>]) -> Vec<f64> {
    // In pieces: as values, elements take up to eight times their bytes.
    let piece = |dtype, bytes: &[u8]| Values::from_bytes(dtype, bytes).magnitude();
    let all = |dtype, bytes: &[u8]| bytes.chunks(PIECE).map(|part| piece(dtype, part)).fold(0.0, f64::max);
    operation.inputs().iter().zip(bytes).map(|(tensor, bytes)| all(tensor.dtype, bytes)).collect()
}

/// Outputs as references keep them.
pub fn output_values(operation: &Operation, bytes: &[Vec<u8>]) -> Vec<Values> {
    let cut = |(tensor, bytes): (&TensorDesc, &Vec<u8>)| {
        let length = tensor.bytes().exact_usize().min(bytes.len());
        Values::from_bytes(tensor.dtype, &bytes[..length])
    };
    operation.outputs().iter().zip(bytes).map(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_find_wrong_results() {
        let operation = Operation::parse("matmul:m=2,n=2,k=2").expect("it is one");
        let inputs = input_bytes(&operation, 1);
        assert_eq!(inputs.iter().map(Vec::len).collect::<Vec<_>>(), [16, 16]);
        let magnitudes = magnitudes(&operation, &inputs);
        assert!(magnitudes.iter().all(|m| (0.01..=1.0).contains(m)), "{magnitudes:?}");
        let expected = operation.reference(&input_values(&operation, &inputs));
        let mut bytes = vec![expected[0].to_bytes(operation.outputs()[0].dtype)];
        let reference = Reference::Host(expected);
        assert_eq!(reference.compare(&operation, &magnitudes, &bytes), Ok(()));
        bytes[0][7] ^= 0x40;
        assert!(reference.compare(&operation, &magnitudes, &bytes).is_err());
    }

    #[test]
    fn one_wrong_element_of_a_large_result_is_found() {
        let operation = Operation::parse("matmul:m=300,n=401,k=1").expect("it is one");
        let inputs = input_bytes(&operation, 3);
        let expected = operation.reference(&input_values(&operation, &inputs));
        let mut bytes = vec![expected[0].to_bytes(operation.outputs()[0].dtype)];
        let (reference, magnitudes) = (Reference::Host(expected), magnitudes(&operation, &inputs));
        assert_eq!(reference.compare(&operation, &magnitudes, &bytes), Ok(()));
        *bytes[0].last_mut().expect("it has elements") ^= 0x40;
        let why = reference.compare(&operation, &magnitudes, &bytes).expect_err("the last one is wrong");
        assert!(why.contains("[0, 299, 400]") || why.contains("[299, 400]"), "{why}");
    }

    #[test]
    fn large_inputs_repeat_after_a_prime() {
        let operation = Operation::parse("matmul:m=1100,n=1,k=1000").expect("it is one");
        let lhs = &input_bytes(&operation, 1)[0];
        assert_eq!(lhs.len(), 4_400_000);
        assert_eq!(lhs[..4000], lhs[4 * PERIOD as usize..][..4000]);
    }
}
