//! What distances add to scores by weights of a few kinds of distance (Raffel et al., Exploring the Limits of Transfer Learning, section
//! 2.1).

use halite_ops::{
    DType,
    expression::{Function, Operand, Scalar},
};
use halite_sizes::Size;

use super::{Result, layer::Call};
use crate::{build::Builder, graph::TensorId};

/// The distance from which on all are of one kind.
const FARTHEST: i64 = 128;
const WEIGHTS: &str = "attn_rel_b";

/// The kind of a distance from a token to a key, of those to both sides: the near ones each for itself, then by their logarithm.
fn bucket(distance: i64, count: u64) -> i64 {
    let (side, far) = ((count / 2) as i64, distance.abs());
    let exact = side / 2;
    let ahead = if distance > 0 { side } else { 0 };
    if far < exact {
        return ahead + far;
    }
    let more =
        (far as f32 / exact as f32).ln() * (side - exact) as f32 / (FARTHEST as f32 / exact as f32).ln();
    ahead + ((exact as f32 + more).floor() as i64).min(side - 1)
}

impl Call<'_> {
    /// What is added to the scores of a layer, `f32[1, heads, len, len]`. Layers without weights of their own have the first's.
    pub fn relative_mask(&self, b: &mut Builder, layer: u64, count: u64) -> Result<TensorId> {
        let of = if self.has(layer, WEIGHTS) { layer } else { 0 };
        let made = self.relative.borrow().iter().find(|(own, _)| *own == of).map(|(_, mask)| *mask);
        if let Some(made) = made {
            return Ok(made);
        }
        let heads = self.hyper.heads_of(layer).count;
        let weights = self.tensors.matrix(b, &self.name(of, WEIGHTS, "weight"), [count, heads])?;
        let kinds: Vec<i64> = (-FARTHEST..=FARTHEST).map(|distance| bucket(distance, count)).collect();
        let kinds = b.ints_constant(&kinds)?;
        let (one, len) = (Size::constant(1), self.len);
        let places = b.reshape_to(self.positions, &[len, one])?;
        let keys = b.reshape_to(self.positions, &[one, len])?;
        let int = |value: i64| Operand::Constant(Scalar::Int(value, DType::I64));
        let distances = b.map(&[places, keys], DType::I64, |p, x| {
            let apart = p.call(Function::Sub, &[x[1], x[0]]);
            let apart = p.call(Function::Max, &[apart, int(-FARTHEST)]);
            let apart = p.call(Function::Min, &[apart, int(FARTHEST)]);
            p.call(Function::Add, &[apart, int(FARTHEST)])
        })?;
        let distances = b.reshape_to(distances, &[len * len])?;
        let kinds = b.gather(kinds, distances, 0)?;
        let made = b.rows_by_index(&weights, kinds)?;
        let made = b.reshape_to(made, &[len, len, heads.into()])?;
        let made = b.transpose(made, &[2, 0, 1])?;
        let made = b.reshape_to(made, &[one, heads.into(), len, len])?;
        self.relative.borrow_mut().push((of, made));
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn far_distances_are_of_one_kind() {
        let kinds: Vec<i64> =
            [0, -1, -7, -8, -16, -127, -128, 1, 128].map(|far| super::bucket(far, 32)).into();
        assert_eq!(kinds, [0, 1, 7, 8, 10, 15, 15, 17, 31]);
    }
}
