//! Loops whose number of runs is a size that is open: what is carried keeps its sizes.

use halite_ops::{DType, Values};
use halite_sizes::Size;

use super::{Builder, Result};
use crate::graph::{ElementType, NodeOp, TensorId};

impl Builder {
    /// Runs again and again, `count` times: `run` is given the number of the run, an `i64` scalar, and what is carried, and gives
    /// what is carried to the next. What it scatters into one of them is changed in place.
    ///
    /// # Errors
    /// Those of `run`, or what it gives is of other types.
    pub fn repeat(
        &mut self,
        count: Size,
        carried: &[TensorId],
        run: impl FnOnce(&mut Self, TensorId, &[TensorId]) -> Result<Vec<TensorId>>,
    ) -> Result<Vec<TensorId>> {
        self.repeat_while(count, carried, |b, turn, carried| Ok((None, run(b, turn, carried)?)))
    }

    /// The same, at most `count` times: a run may also say, by a truth, whether there is another.
    ///
    /// # Errors
    /// As [`Builder::repeat`].
    pub fn repeat_while(
        &mut self,
        count: Size,
        carried: &[TensorId],
        run: impl FnOnce(&mut Self, TensorId, &[TensorId]) -> Result<(Option<TensorId>, Vec<TensorId>)>,
    ) -> Result<Vec<TensorId>> {
        let types: Vec<_> = carried.iter().map(|id| (self.element(*id), self.sizes(*id).to_vec())).collect();
        let mut parameters = vec![(ElementType::Of(DType::I64), vec![]), (ElementType::Bool, vec![])];
        parameters.extend(types.iter().cloned());
        let arguments = self.region(&parameters)?;
        let (goes_on, made) = run(self, arguments[0], &arguments[2..])?;
        let same = |(id, wanted): (&TensorId, &(ElementType, Vec<Size>))| {
            let sizes = self.sizes(*id).iter();
            self.element(*id) == wanted.0 && sizes.zip(&wanted.1).all(|(own, other)| own.agrees(*other))
        };
        if made.len() != types.len() || !made.iter().zip(&types).all(same) {
            let what = self.describe(&made);
            return Err(self.invalid(format!("a run of a loop gives {what}, which is not what it was given")));
        }
        let holds = self.values(ElementType::Bool, &[], &Values::Int(vec![1]))?;
        let results: Vec<TensorId> = std::iter::once(goes_on.unwrap_or(holds)).chain(made).collect();
        let region = self.close(&results);
        let most = self.computed(DType::I64, &[], vec![count])?;
        let inputs: Vec<TensorId> = [most, holds].into_iter().chain(carried.iter().copied()).collect();
        self.push(NodeOp::Loop(Box::new(region)), &inputs, &types)
    }
}
