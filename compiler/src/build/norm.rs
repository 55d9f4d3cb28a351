//! Normalizations.

use halite_ops::{
    Operation,
    norm::{Norm, NormKind},
};
use halite_sizes::Size;

use super::{Builder, Result, types::FLOATS};
use crate::graph::TensorId;

/// What a normalization of a tensor of batch x channels x spatial elements is; see [`Norm`].
#[derive(Clone, Copy, Debug)]
pub struct Normalization {
    /// What is normalized together.
    pub kind: NormKind,
    /// First dimension of the channels.
    pub first: usize,
    /// The dimension behind them.
    pub end: usize,
    /// Groups of neighbouring channels.
    pub groups: u64,
    /// Added to the variance.
    pub epsilon: f32,
}

impl Builder {
    /// Normalizes a tensor. `scale` and `bias` have an element for each channel, which may be several dimensions of the
    /// tensor. Computed in `f32` but for the types of the halves; the result has the tensor's type.
    ///
    /// # Errors
    /// The sizes do not go together, or the elements are no floats.
    pub fn normalize(
        &mut self,
        tensor: TensorId,
        scale: Option<TensorId>,
        bias: Option<TensorId>,
        norm: Normalization,
    ) -> Result<TensorId> {
        self.norm(tensor, None, scale, bias, norm)
    }

    /// Normalizes by a mean and a variance for each channel, which is dimension 1.
    ///
    /// # Errors
    /// The sizes do not go together, or the elements are no floats.
    pub fn batch_norm(
        &mut self,
        tensor: TensorId,
        [mean, variance]: [TensorId; 2],
        scale: Option<TensorId>,
        bias: Option<TensorId>,
        epsilon: f32,
    ) -> Result<TensorId> {
        let norm = Normalization { kind: NormKind::Batch, first: 1, end: 2, groups: 1, epsilon };
        self.norm(tensor, Some([mean, variance]), scale, bias, norm)
    }

    fn norm(
        &mut self,
        tensor: TensorId,
        moments: Option<[TensorId; 2]>,
        scale: Option<TensorId>,
        bias: Option<TensorId>,
        norm: Normalization,
    ) -> Result<TensorId> {
        let Normalization { kind, first, end, groups, epsilon } = norm;
        let (element, dims) = (self.element(tensor), self.sizes(tensor).to_vec());
        if first > end || end > dims.len() {
            return Err(self.invalid(format!("{} has no channels to normalize", self.describe(&[tensor]))));
        }
        let channels = dims[first..end].iter().product::<Size>().exact();
        let own = self.in_type_of(tensor, FLOATS, "a normalization")?;
        let dtype = self.element(own).storage();
        let mut inputs = vec![own];
        for id in moments.into_iter().flatten().chain(scale).chain(bias) {
            if self.tensor(id).elements() != channels {
                let what = self.describe(&[tensor, id]);
                return Err(self.invalid(format!("{channels} channels are normalized: {what}")));
            }
            inputs.push(self.cast(id, dtype)?);
        }
        let made = Norm {
            spatial: dims[end..].iter().product(),
            groups,
            scale: scale.is_some(),
            bias: bias.is_some(),
            ..Norm::of_lines(kind, dims[..first].iter().product(), channels, epsilon.into(), dtype)
        };
        let made = self.kernel1(Operation::Norm(made), &inputs, dtype.into(), &dims)?;
        self.cast(made, element)
    }
}
