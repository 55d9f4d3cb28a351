//! Tensors that stand for values whose dimensions are in another order, so that nothing is moved until somebody needs it.

use halite_sizes::Size;

use super::Result;
use crate::{build::Builder, graph::TensorId};

/// The order of the dimensions of images, channels last, in a tensor with channels first.
pub(super) const CHANNELS_LAST: [usize; 4] = [0, 2, 3, 1];

/// A value: a tensor, and where in it each of the value's dimensions is.
#[derive(Clone, Debug)]
pub(super) struct Held {
    /// The tensor.
    pub(super) tensor: TensorId,
    /// Dimension `i` of the value is dimension `order[i]` of the tensor.
    pub(super) order: Vec<usize>,
    /// What the integers of a dynamically quantized value stand for.
    pub(super) dynamic: Option<Dynamic>,
}

/// Scale (`f32`) and zero point (`i32`) of integers, which are broadcast to them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dynamic {
    pub(super) scale: TensorId,
    pub(super) zero: TensorId,
}

impl Held {
    /// A tensor whose dimensions are the value's.
    pub(super) fn plain(b: &Builder, tensor: TensorId) -> Held {
        Held { tensor, order: (0..b.rank(tensor)).collect(), dynamic: None }
    }

    /// A tensor in which the value's dimensions have an order.
    pub(super) fn ordered(tensor: TensorId, order: &[usize]) -> Held {
        Held { tensor, order: order.to_vec(), dynamic: None }
    }

    /// Another tensor with the same order.
    pub(super) fn with(&self, tensor: TensorId) -> Held {
        Held::ordered(tensor, &self.order)
    }

    /// Sizes of the value's dimensions.
    pub(super) fn sizes(&self, b: &Builder) -> Vec<Size> {
        let own = b.sizes(self.tensor);
        self.order.iter().map(|d| own[*d]).collect()
    }

    /// A tensor in which the value's dimension `i` is dimension `order[i]`.
    pub(super) fn laid(&self, b: &mut Builder, order: &[usize]) -> Result<TensorId> {
        let mut turn = vec![0; order.len()];
        for (own, to) in self.order.iter().zip(order) {
            turn[*to] = *own;
        }
        b.transpose(self.tensor, &turn)
    }

    /// A tensor whose dimensions are the value's.
    pub(super) fn in_order(&self, b: &mut Builder) -> Result<TensorId> {
        let order: Vec<usize> = (0..self.order.len()).collect();
        self.laid(b, &order)
    }

    /// Images with channels first.
    pub(super) fn channels_first(&self, b: &mut Builder) -> Result<TensorId> {
        if self.order.len() != CHANNELS_LAST.len() {
            return Err(b.invalid(format!("{:?} are no images", self.sizes(b))));
        }
        self.laid(b, &CHANNELS_LAST)
    }

    /// Images from a tensor with channels first.
    pub(super) fn of_channels_first(tensor: TensorId) -> Held {
        Held::ordered(tensor, &CHANNELS_LAST)
    }
}

/// Tensors of values that are broadcast, all in the order of the one that needs it most; and that order.
pub(super) fn alike(b: &mut Builder, all: &[Held]) -> Result<(Vec<TensorId>, Vec<usize>)> {
    let weight = |held: &Held| (held.order.len(), b.tensor(held.tensor).count().value());
    // Of equal ones the first.
    let lead = all.iter().rev().max_by_key(|held| weight(held)).map(|held| held.order.clone());
    let order = lead.unwrap_or_default();
    let mut tensors = Vec::new();
    for held in all {
        let missing = order.len() - held.order.len();
        let tensor = match missing {
            0 => held.laid(b, &order)?,
            _ => {
                let own = held.in_order(b)?;
                let ones = std::iter::repeat_n(Size::from(1), missing);
                let dims: Vec<Size> = ones.chain(held.sizes(b)).collect();
                let wide = b.reshape_to(own, &dims)?;
                Held::plain(b, wide).laid(b, &order)?
            }
        };
        tensors.push(tensor);
    }
    Ok((tensors, order))
}
