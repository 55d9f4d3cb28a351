//! AVG_POOL2D and MAX_POOL2D in all types.

use halite_formats::tosa::{ElementType as Tosa, NanMode, Pool};
use halite_ops::{DType, Values, expression::Function, pool2d::Pooling};

use super::{
    super::{Result, element_of},
    call::Call,
    cast::{computable, stored},
    conv::bytes_of_i16,
    rules,
    values::{float, int, saturated, scaled, to},
};
use crate::{
    build::{Builder, BytesLess, Sliding},
    graph::TensorId,
};

/// MAX_POOL2D; integers pass through `f32`, which holds all of 16 bits.
pub(super) fn max(b: &mut Builder, call: &Call<'_>, pool: &Pool, nan: NanMode) -> Result<TensorId> {
    let (kernel, sliding) = window(b, call, pool)?;
    let element = call.element(0);
    let x = computable(b, element, call.inputs[0])?;
    let kept = if element == Tosa::F16 { DType::F16 } else { DType::F32 };
    let x = b.cast(x, kept)?;
    let pooled = if element.is_float() && nan == NanMode::Ignore {
        let lowest = float(f64::NEG_INFINITY);
        let numbers = b.map(&[x], kept, |p, x| {
            let is_nan = p.call(Function::IsNan, &[x[0]]);
            p.call(Function::Select, &[is_nan, lowest, x[0]])
        })?;
        let any = b.map(&[x], kept, |p, x| {
            let is_nan = p.call(Function::IsNan, &[x[0]]);
            p.call(Function::Select, &[is_nan, float(0.0), float(1.0)])
        })?;
        let most = b.pool_nhwc(numbers, Pooling::Max, kernel, &sliding)?;
        let any = b.pool_nhwc(any, Pooling::Max, kernel, &sliding)?;
        b.map(&[most, any], kept, |p, x| {
            let has = p.call(Function::Gt, &[x[1], float(0.0)]);
            p.call(Function::Select, &[has, x[0], float(f64::NAN)])
        })?
    } else {
        b.pool_nhwc(x, Pooling::Max, kernel, &sliding)?
    };
    stored(b, call.output().element, pooled)
}

/// AVG_POOL2D: the mean of the elements in the image; of integers by the reciprocal of their number, as RESCALE.
pub(super) fn average(
    b: &mut Builder,
    call: &Call<'_>,
    pool: &Pool,
    [input_zero, output_zero]: [i64; 2],
) -> Result<TensorId> {
    let (kernel, sliding) = window(b, call, pool)?;
    let element = call.element(0);
    if element.is_integer() {
        let sums = sums(b, call, kernel, &sliding, input_zero)?;
        return mean(b, call, sums, kernel, &sliding, output_zero);
    }
    let x = computable(b, element, call.inputs[0])?;
    let kept = if element == Tosa::F16 { DType::F16 } else { DType::F32 };
    let x = b.cast(x, kept)?;
    let pooled = b.pool_nhwc(x, Pooling::Average, kernel, &sliding)?;
    stored(b, call.output().element, pooled)
}

/// The window, within the level's bounds.
fn window(b: &Builder, call: &Call<'_>, pool: &Pool) -> Result<([u64; 2], Sliding)> {
    let [_, _, _, _] = call.dims(b, 0)?;
    let kernel = call.sizes(b, &pool.kernel, "a kernel")?;
    let strides = call.sizes(b, &pool.stride, "a stride")?;
    let pads = call.sizes(b, &pool.pad, "a pad")?;
    for d in 0..2 {
        rules::bounded(b, call, "a kernel", kernel[d], rules::MOST_KERNEL)?;
        rules::bounded(b, call, "a stride", strides[d], rules::MOST_STRIDE)?;
        if pads[2 * d].max(pads[2 * d + 1]) >= kernel[d] {
            let reason = format!("{}: pads {pads:?} are as wide as the kernel {kernel:?}", call.name());
            return Err(b.invalid(reason));
        }
    }
    let pads = pads.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    Ok(([kernel[0], kernel[1]], Sliding { strides, dilations: vec![1; 2], pads }))
}

/// The sum of each window, `i32`: a convolution of each channel with ones.
fn sums(
    b: &mut Builder,
    call: &Call<'_>,
    [rows, columns]: [u64; 2],
    sliding: &Sliding,
    zero: i64,
) -> Result<TensorId> {
    let x = call.inputs[0];
    let [_, _, _, channels] = call.dims(b, 0)?;
    let one = b.float(DType::I8, 1.0)?;
    let ones = BytesLess { tensor: b.expand(one, &[rows, columns, 1, channels])?, zero: 0 };
    let Ok(zero) = i32::try_from(zero) else {
        return Err(b.invalid(format!("{}: a zero point of {zero}", call.name())));
    };
    if call.element(0) == Tosa::I8 {
        return b.conv_of_bytes_nhwc(BytesLess { tensor: x, zero }, ones, None, sliding, channels);
    }
    if zero != 0 {
        return Err(b.invalid(format!("{} of i16: a zero point of {zero}; it is 0", call.name())));
    }
    let parts = bytes_of_i16(b, x)?
        .map(|x| b.conv_of_bytes_nhwc(BytesLess { tensor: x, zero: 0 }, ones, None, sliding, channels));
    let [high, low] = parts;
    b.map(&[high?, low?], DType::I32, |p, x| {
        let high = p.call(Function::Shl, &[x[0], int(8, DType::I32)]);
        p.call(Function::Add, &[high, x[1]])
    })
}

/// Sums by the numbers of elements in their windows.
fn mean(
    b: &mut Builder,
    call: &Call<'_>,
    sums: TensorId,
    kernel: [u64; 2],
    sliding: &Sliding,
    output_zero: i64,
) -> Result<TensorId> {
    let [_, height, width, _] = call.dims(b, 0)?;
    let [_, rows, columns] = [0, 1, 2].map(|d| b.dims(sums)[d]);
    b.countable(rows.saturating_mul(columns))?;
    let tall = counts(rows, height, kernel[0], sliding, 0);
    let wide = counts(columns, width, kernel[1], sliding, 1);
    let all = tall.iter().flat_map(|y| wide.iter().map(move |x| reciprocal(y.saturating_mul(*x))));
    let (multipliers, shifts): (Vec<i64>, Vec<i64>) = all.unzip();
    let same = multipliers.windows(2).all(|pair| pair[0] == pair[1])
        && shifts.windows(2).all(|pair| pair[0] == pair[1]);
    let dims: &[u64] = if same { &[] } else { &[rows, columns, 1] };
    let kept = |values: Vec<i64>| Values::Int(if same { values[..1].to_vec() } else { values });
    let multiplier = b.values(DType::I32, dims, &kept(multipliers))?;
    let shift = b.values(DType::I8, dims, &kept(shifts))?;
    let element = element_of(call.output().element);
    let known = same.then(|| (b.ints(multiplier), b.ints(shift)));
    let ids: &[TensorId] = if same { &[sums] } else { &[sums, multiplier, shift] };
    b.map(ids, element, |p, x| {
        let sum = to(p, DType::I64, x[0]);
        let (multiplier, shift) = match known {
            Some((Some(m), Some(s))) => (int(m[0], DType::I64), int(s[0], DType::I64)),
            _ => (to(p, DType::I64, x[1]), to(p, DType::I64, x[2])),
        };
        let value = scaled(p, sum, multiplier, shift, false);
        saturated(p, value, output_zero, element.storage())
    })
}

/// How many elements of one dimension each place of a window has.
fn counts(places: u64, size: u64, taps: u64, sliding: &Sliding, d: usize) -> Vec<u64> {
    let (stride, before) = (sliding.strides[d], sliding.pads[d].0);
    let one = |place: u64| {
        let start = place * stride;
        let (first, end) = (start.max(before), (start + taps).min(before + size));
        end.saturating_sub(first)
    };
    (0..places).map(one).collect()
}

/// The multiplier and shift of `1 / count` (`reciprocal_scale` of the specification).
fn reciprocal(count: u64) -> (i64, i64) {
    let count = count.clamp(1, 1 << 31);
    let bits = 32 - (count as u32 - 1).leading_zeros();
    let numerator = ((1u64 << 30) + 1) << bits;
    ((numerator / count) as i64, 30 + i64::from(bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reciprocals_are_those_of_the_specification() {
        assert_eq!(reciprocal(1), ((1 << 30) + 1, 30));
        assert_eq!(reciprocal(2), ((1 << 30) + 1, 31));
        assert_eq!(reciprocal(9), (((1i64 << 34) + 16) / 9, 34));
    }

    #[test]
    fn windows_count_what_is_in_the_image() {
        let sliding = Sliding { strides: vec![2], dilations: vec![1], pads: vec![(1, 1)] };
        assert_eq!(counts(3, 5, 3, &sliding, 0), [2, 3, 2]);
    }
}
