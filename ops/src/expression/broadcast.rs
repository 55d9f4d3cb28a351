//! The dimensions that tensors are broadcast to.

use halite_sizes::Size;

/// The dimensions that inputs are broadcast to by NumPy's rules: aligned at the innermost, 1 repeats.
///
/// # Errors
/// Names the dimensions that do not fit.
pub fn broadcast(inputs: &[Vec<Size>]) -> Result<Vec<Size>, String> {
    let rank = inputs.iter().map(Vec::len).max().unwrap_or(0);
    let mut dims = vec![Size::constant(1); rank];
    for (index, input) in inputs.iter().enumerate() {
        for (dim, size) in dims[rank - input.len()..].iter_mut().zip(input) {
            if *dim == 1 {
                *dim = *size;
            } else if *size != 1 && !size.agrees(*dim) {
                return Err(format!("input {index} has a dimension of {size} where others have {dim}"));
            }
        }
    }
    Ok(dims)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ones_repeat_and_other_sizes_have_to_agree() {
        let broadcast = |shapes: &[&[u64]]| {
            let sizes = |shape: &&[u64]| shape.iter().map(Size::from).collect();
            broadcast(&shapes.iter().map(sizes).collect::<Vec<_>>())
        };
        assert_eq!(broadcast(&[&[2, 3, 4, 5], &[3, 1, 1], &[1]]).unwrap(), [2, 3, 4, 5]);
        assert!(broadcast(&[&[2, 3], &[2]]).unwrap_err().contains("dimension of 2"));
        assert_eq!(broadcast(&[&[0, 3], &[1, 1]]).unwrap(), [0, 3]);
    }
}
