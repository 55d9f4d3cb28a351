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

/// The kind of a distance from a token to a key: the near ones each for itself, then by their logarithm. Where tokens see those behind
/// them, half of the kinds are of these; else distances to them are as those to the token itself.
fn bucket(distance: i64, count: u64, sees_ahead: bool) -> i64 {
    let (side, far) = match sees_ahead {
        true => ((count / 2) as i64, distance.abs()),
        false => (count as i64, (-distance).max(0)),
    };
    let exact = side / 2;
    let ahead = if sees_ahead && distance > 0 { side } else { 0 };
    if far < exact {
        return ahead + far;
    }
    let more =
        (far as f32 / exact as f32).ln() * (side - exact) as f32 / (FARTHEST as f32 / exact as f32).ln();
    ahead + ((exact as f32 + more).floor() as i64).min(side - 1)
}

impl Call<'_> {
    /// What is added to the scores of a layer, `f32[sequences, heads, len, keys]`. Layers without weights of their own have the first's.
    pub fn relative_mask(&self, b: &mut Builder, layer: u64, count: u64) -> Result<TensorId> {
        let of = if self.has(layer, WEIGHTS) { layer } else { 0 };
        let made = self.relative.borrow().iter().find(|(own, _)| *own == of).map(|(_, mask)| *mask);
        if let Some(made) = made {
            return Ok(made);
        }
        let heads = self.hyper.heads_of(layer).count;
        let weights = self.tensors.matrix(b, &self.name(of, WEIGHTS, "weight"), [count, heads])?;
        let ahead = self.hyper.vectors.sees_ahead;
        let kinds: Vec<i64> = (-FARTHEST..=FARTHEST).map(|distance| bucket(distance, count, ahead)).collect();
        let kinds = b.ints_constant(&kinds)?;
        let (one, sequences, len, all) = (Size::constant(1), self.sequences, self.len, self.keys);
        let places = b.reshape_to(self.positions, &[sequences, len, one])?;
        let keys = match self.place {
            Some(_) => b.count_from(0, all)?,
            None => b.reshape_to(self.positions, &[all])?,
        };
        let int = |value: i64| Operand::Constant(Scalar::Int(value, DType::I64));
        let distances = b.map(&[places, keys], DType::I64, |p, x| {
            let apart = p.call(Function::Sub, &[x[1], x[0]]);
            let apart = p.call(Function::Max, &[apart, int(-FARTHEST)]);
            let apart = p.call(Function::Min, &[apart, int(FARTHEST)]);
            p.call(Function::Add, &[apart, int(FARTHEST)])
        })?;
        let distances = b.reshape_to(distances, &[sequences * len * all])?;
        let kinds = b.gather(kinds, distances, 0)?;
        let made = b.rows_by_index(&weights, kinds)?;
        let made = b.reshape_to(made, &[sequences, len, all, heads.into()])?;
        let made = b.transpose(made, &[0, 3, 1, 2])?;
        let made = self.without_others(b, made, keys)?;
        self.relative.borrow_mut().push((of, made));
        Ok(made)
    }

    /// The same without keys that do not count: those behind a token, or what fills the text of an encoder up.
    fn without_others(&self, b: &mut Builder, made: TensorId, keys: TensorId) -> Result<TensorId> {
        let one = Size::constant(1);
        if !self.hyper.vectors.sees_ahead {
            let places = b.reshape_to(self.positions, &[self.sequences, one, self.len, one])?;
            let band = b.band_of(places, keys, None, Some(0))?;
            return b.binary(Function::Add, made, band);
        }
        let Some(source) = self.source else { return Ok(made) };
        let source = b.cast(source, DType::I64)?;
        let source = b.reshape_to(source, &[self.sequences, one, one, one])?;
        b.map(&[made, keys, source], DType::F32, |p, x| {
            let counts = p.call(Function::Lt, &[x[1], x[2]]);
            p.call(Function::Select, &[counts, x[0], Operand::Constant(Scalar::Float(f64::NEG_INFINITY))])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{super::heads::MOST_BUCKETS, FARTHEST, bucket};

    #[test]
    fn far_distances_are_of_one_kind() {
        let kinds: Vec<i64> =
            [0, -1, -7, -8, -16, -127, -128, 1, 128].map(|far| bucket(far, 32, true)).into();
        assert_eq!(kinds, [0, 1, 7, 8, 10, 15, 15, 17, 31]);
    }

    #[test]
    fn kinds_of_decoders_are_of_what_lies_before() {
        let kinds: Vec<i64> =
            [0, -1, -15, -16, -32, -127, -128, 1, 128].map(|far| bucket(far, 32, false)).into();
        assert_eq!(kinds, [0, 1, 15, 16, 21, 31, 31, 0, 0]);
    }

    #[test]
    fn kinds_grow_with_distances_and_are_known() {
        for count in (4..=MOST_BUCKETS).step_by(2) {
            for (sees_ahead, most) in [(false, count as i64), (true, count as i64 / 2)] {
                let kinds: Vec<i64> = (0..=FARTHEST).map(|far| bucket(-far, count, sees_ahead)).collect();
                assert!(kinds.is_sorted() && kinds[0] == 0, "{count}: {kinds:?}");
                assert_eq!(kinds.last(), Some(&(most - 1)), "{count}");
            }
        }
    }
}
