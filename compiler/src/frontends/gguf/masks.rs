//! What is added to scores: masks of windows and of what comes later, and what distances count.

use halite_ops::{
    DType,
    expression::{Function, Operand, Scalar, Type},
};
use halite_sizes::Size;

use super::{Result, layer::Call};
use crate::{build::Builder, graph::TensorId};

impl Call<'_> {
    /// The mask of a window, which is made once.
    pub fn shared_mask(&self, b: &mut Builder, window: Option<u64>, heads: u64) -> Result<TensorId> {
        let of = (window, heads);
        let made = self.masks.borrow().iter().find(|(own, _)| *own == of).map(|(_, mask)| *mask);
        if let Some(mask) = made {
            return Ok(mask);
        }
        let mask = self.mask(b, window, heads)?;
        self.masks.borrow_mut().push((of, mask));
        Ok(mask)
    }

    /// What is added to scores so that tokens attend to a window of keys, or to all before them, and how much distances count:
    /// `f32[sequences, 1 or heads, len, keys]`.
    fn mask(&self, b: &mut Builder, window: Option<u64>, heads: u64) -> Result<TensorId> {
        let one = Size::constant(1);
        let h = self.hyper;
        let places = b.reshape_to(self.positions, &[self.sequences, one, self.len, one])?;
        let left = window.map(|window| h.keys_before(window) as i64);
        // Windows of encoders reach as far ahead, those of decoders leave out what lies before alone.
        let right = match (h.family.encoder, h.vectors.sees_ahead) {
            (_, false) => Some(0),
            (true, true) => left,
            (false, true) => None,
        };
        let keys = match self.place {
            Some(_) => b.count_from(0, self.keys.exact())?,
            None => b.reshape_to(self.positions, &[self.len])?,
        };
        let band = match (window, h.family.piece) {
            (Some(_), Some(piece)) => pieces(b, places, keys, piece)?,
            _ => b.band_of(places, keys, left, right)?,
        };
        let Some(most) = h.distance_bias else { return Ok(band) };
        let slopes = slopes(heads, most);
        let bytes: Vec<u8> = slopes.iter().flat_map(|slope| slope.to_le_bytes()).collect();
        let slopes = b.constant("slopes", DType::F32.into(), &[1, heads, 1, 1], bytes.into())?;
        b.map(&[band, places, keys, slopes], DType::F32, |p, x| {
            let ahead = p.call(Function::Sub, &[x[2], x[1]]);
            let ahead = p.cast(Type::Of(DType::F32), ahead);
            let far = p.call(Function::Abs, &[ahead]);
            let less = p.call(Function::Mul, &[far, x[3]]);
            p.call(Function::Sub, &[x[0], less])
        })
    }
}

/// What is added to scores so that tokens attend to keys of their own piece, up to themselves.
fn pieces(b: &mut Builder, places: TensorId, keys: TensorId, piece: u64) -> Result<TensorId> {
    let piece = Operand::Constant(Scalar::Int(piece as i64, DType::I64));
    b.map(&[places, keys], DType::F32, |p, x| {
        let within = p.call(Function::Mod, &[x[0], piece]);
        let first = p.call(Function::Sub, &[x[0], within]);
        let is_late = p.call(Function::Ge, &[x[1], first]);
        let is_early = p.call(Function::Le, &[x[1], x[0]]);
        let inside = p.call(Function::And, &[is_late, is_early]);
        let float = |value: f64| Operand::Constant(Scalar::Float(value));
        p.call(Function::Select, &[inside, float(0.0), float(f64::NEG_INFINITY)])
    })
}

/// How much the distance of keys counts for each head: powers of two (Press et al., Train Short, Test Long, section 3).
fn slopes(heads: u64, most: f64) -> Vec<f32> {
    let whole = 1u64 << heads.ilog2();
    let of = |head: u64| match head < whole {
        true => (-most / whole as f64 * (head + 1) as f64).exp2(),
        false => (-most / 2.0 / whole as f64 * (2 * (head - whole) + 1) as f64).exp2(),
    };
    (0..heads).map(|head| of(head) as f32).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn slopes_halve_from_head_to_head() {
        assert_eq!(super::slopes(8, 8.0)[..3], [0.5, 0.25, 0.125]);
        // Behind a power of two come those between the others.
        let all = super::slopes(3, 8.0);
        assert_eq!((all.len(), all[0], all[1], all[2]), (3, 0.0625, 0.00390625, 0.25));
    }
}
