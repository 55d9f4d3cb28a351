//! Tensors that lie in a larger one in runs of elements, as what is joined lies in the result.

use halite_sizes::Size;
use serde::{Deserialize, Serialize};

use crate::{Operation, TensorDesc, Values};

/// The elements of a tensor, of which `length` at a time follow each other in a larger one: run `i` begins at element
/// `offset + i * pitch`. As a list: these three, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<u64>", into = "Vec<u64>")]
pub struct Runs {
    /// Elements of a run.
    pub length: u64,
    /// Elements from the begin of a run to that of the next.
    pub pitch: u64,
    /// The element that the first run begins with.
    pub offset: u64,
}

impl From<Runs> for Vec<u64> {
    fn from(runs: Runs) -> Self {
        vec![runs.length, runs.pitch, runs.offset]
    }
}

impl TryFrom<Vec<u64>> for Runs {
    type Error = String;

    fn try_from(list: Vec<u64>) -> Result<Self, String> {
        match list[..] {
            [length, pitch, offset] => Ok(Runs { length, pitch, offset }),
            _ => Err(format!("{} numbers; there are three: length, pitch, offset", list.len())),
        }
    }
}

impl Runs {
    /// Whether a tensor can lie so; the reason when it cannot.
    ///
    /// # Errors
    /// It is no whole number of runs, a run reaches into the next, or callers decide how many there are.
    pub fn check(&self, tensor: &TensorDesc) -> Result<(), String> {
        let inside = self.offset.checked_add(self.length).is_some_and(|end| end <= self.pitch);
        let elements = tensor.elements();
        if self.length == 0 || !inside {
            return Err(format!("runs of {self:?} do not lie side by side"));
        }
        if !elements.is_constant() || !elements.is_multiple_of(self.length) {
            return Err(format!("{elements} elements are no runs of {}", self.length));
        }
        Ok(())
    }

    /// Runs of a tensor that was checked.
    pub fn count(&self, tensor: &TensorDesc) -> Size {
        tensor.elements() / self.length.max(1)
    }

    /// The tensor that a tensor lies in.
    pub fn whole(&self, tensor: TensorDesc) -> TensorDesc {
        let dims = [self.count(&tensor), self.pitch.into()];
        TensorDesc { dims: dims.into(), ..tensor }
    }

    /// Whether runs begin and end at multiples of so many elements.
    pub fn are_multiples_of(&self, elements: u64) -> bool {
        [self.length, self.pitch, self.offset].iter().all(|number| number.is_multiple_of(elements))
    }

    /// Where an element lies.
    fn place(&self, at: usize) -> usize {
        let [length, pitch, offset] = [self.length, self.pitch, self.offset].map(|number| number as usize);
        at / length * pitch + offset + at % length
    }

    /// The elements out of the larger tensor.
    pub fn taken(&self, whole: &Values) -> Values {
        let count = whole.len() / (self.pitch.max(1) as usize) * self.length as usize;
        match whole {
            Values::Float(all) => Values::Float((0..count).map(|at| all[self.place(at)]).collect()),
            Values::Int(all) => Values::Int((0..count).map(|at| all[self.place(at)]).collect()),
        }
    }

    /// The larger tensor with these elements in it, and those that were there elsewhere.
    pub fn put(&self, own: &Values, before: &Values) -> Values {
        let mut all = before.clone();
        match (&mut all, own) {
            (Values::Float(all), Values::Float(own)) => {
                own.iter().enumerate().for_each(|(at, value)| all[self.place(at)] = *value);
            }
            (Values::Int(all), Values::Int(own)) => {
                own.iter().enumerate().for_each(|(at, value)| all[self.place(at)] = *value);
            }
            _ => {}
        }
        all
    }
}

/// An operation on tensors that lie by themselves, and the runs that another has instead.
#[derive(Clone, Debug)]
pub struct Apart {
    /// The operation.
    pub operation: Operation,
    /// Where the other reads the first input.
    pub read: Option<Runs>,
    /// Where it writes the first output.
    pub written: Option<Runs>,
}

impl Apart {
    /// Of an operation without runs; none where the other has none.
    pub(crate) fn of(operation: Operation, read: Option<Runs>, written: Option<Runs>) -> Option<Apart> {
        (read.is_some() || written.is_some()).then_some(Apart { operation, read, written })
    }
}

/// The values of inputs, of which the first lies in runs.
pub(crate) fn first_taken(read: Option<Runs>, inputs: &[Values]) -> Vec<Values> {
    let mut all = inputs.to_vec();
    if let (Some(runs), Some(first)) = (read, all.first_mut()) {
        *first = runs.taken(first);
    }
    all
}

/// Results of which the first is written in runs.
pub(crate) fn first_put(written: Option<Runs>, mut results: Vec<Values>, before: &[Values]) -> Vec<Values> {
    if let (Some(runs), Some(first), Some(before)) = (written, results.first_mut(), before.first()) {
        *first = runs.put(first, before);
    }
    results
}

/// Zeros for outputs whose elements nothing is known of.
pub(crate) fn zeros(outputs: &[TensorDesc]) -> Vec<Values> {
    let zeros = |tensor: &TensorDesc| {
        let count = tensor.elements().exact_usize();
        if tensor.dtype.is_float() { Values::Float(vec![0.0; count]) } else { Values::Int(vec![0; count]) }
    };
    outputs.iter().map(zeros).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Operation};

    #[test]
    fn runs_are_taken_and_put() {
        let runs = Runs { length: 2, pitch: 5, offset: 1 };
        let whole = Values::Int((0..10).collect());
        assert_eq!(runs.taken(&whole), Values::Int(vec![1, 2, 6, 7]));
        let put = runs.put(&Values::Int(vec![-1, -2, -3, -4]), &whole);
        assert_eq!(put, Values::Int(vec![0, -1, -2, 3, 4, 5, -3, -4, 8, 9]));
        let tensor = TensorDesc::new("t", DType::I32, [4u64]);
        assert_eq!(runs.check(&tensor), Ok(()));
        assert_eq!(runs.whole(tensor.clone()).elements(), 10);
        assert!(Runs { offset: 4, ..runs }.check(&tensor).is_err());
        assert!(Runs { length: 3, ..runs }.check(&tensor).is_err());
    }

    #[test]
    fn operations_write_their_run_and_leave_the_rest() {
        let op = Operation::parse("concat:outer=2,sizes=1x1,inner=1,dtype=i32,written=2x4x1").unwrap();
        assert!(op.updates(0));
        let inputs = [Values::Int(vec![1, 2]), Values::Int(vec![3, 4])];
        let before = [Values::Int((10..18).collect())];
        let after = Values::Int(vec![10, 1, 3, 13, 14, 2, 4, 17]);
        assert_eq!(op.reference_over(&inputs, &before), [after]);
        let op = Operation::parse("matmul:m=2,n=1,k=2,read=2x3x1,written=1x2x0").unwrap();
        let inputs = [Values::Float(vec![9.0, 1.0, 2.0, 9.0, 3.0, 4.0]), Values::Float(vec![1.0, 10.0])];
        assert_eq!(op.reference(&inputs), [Values::Float(vec![21.0, 0.0, 43.0, 0.0])]);
        assert!(Operation::parse("matmul:m=2,n=3,k=2,written=2x4x0").is_ok());
        assert!(Operation::parse("matmul:m=1,n=3,k=2,written=2x4x0").is_err());
    }
}
