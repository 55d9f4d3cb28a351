//! Operators that `com.microsoft` had before ONNX had them, or under another name.

use halite_ops::{
    DType, Values,
    expression::{Function, Operand, Scalar},
    reduce::ReduceKind,
};
use halite_sizes::Size;

use super::{Import, NodeView, Result, generate, image, index, microsoft, moves, shape};
use crate::{
    build::Builder,
    graph::{TensorId, elements},
};

pub(super) const MICROSOFT: &[(&str, Import)] = &[
    ("CDist", distances),
    ("ExpandDims", |b, node| shape::unsqueeze(b, &node.of_version(13))),
    ("GatherND", |b, node| index::gather_nd(b, &node.of_version(13))),
    ("GridSample", |b, node| image::grid_sample(b, &node.of_version(16))),
    ("MatMulBnb4", product_of_places),
    ("Pad", |b, node| moves::pad(b, &node.of_version(13))),
    ("Range", |b, node| generate::range(b, &node.of_version(11))),
    ("TransposeMatMul", microsoft::fused_matmul),
    ("Trilu", |b, node| generate::trilu(b, &node.of_version(14))),
];

/// Values of 4 bits that quantiles of a normal distribution give (NF4), and floats of 4 bits (FP4), as bitsandbytes has them.
const NORMAL: [f64; 16] = [
    -1.0,
    -0.696_192_800_998_687_7,
    -0.525_073_051_452_636_7,
    -0.394_917_488_098_144_53,
    -0.284_441_381_692_886_35,
    -0.184_773_430_228_233_34,
    -0.091_050_036_251_544_95,
    0.0,
    0.079_580_299_556_255_34,
    0.160_930_201_411_247_25,
    0.246_112_301_945_686_34,
    0.337_915_241_718_292_24,
    0.440_709_829_330_444_34,
    0.562_617_003_917_694_1,
    0.722_956_836_223_602_3,
    1.0,
];
const FLOATS: [f64; 8] = [0.0, 5.208_333_333_333_333e-3, 2.0 / 3.0, 1.0, 1.0 / 3.0, 0.5, 1.0 / 6.0, 0.25];

/// Distances of all rows of one matrix from all of another.
fn distances(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let parts = [node.input(0)?, node.input(1)?];
    let ([rows, width], [columns, other]) = (b.sizes(parts[0]), b.sizes(parts[1])) else {
        return Err(node.invalid(format!("{} are no matrices", b.describe(&parts))));
    };
    let (rows, width, columns, other, one) = (*rows, *width, *columns, *other, Size::constant(1));
    if width != other {
        return Err(node.invalid(format!("{} have rows of different lengths", b.describe(&parts))));
    }
    let root = match node.string("metric", "sqeuclidean")?.as_str() {
        "euclidean" => true,
        "sqeuclidean" => false,
        metric => return Err(node.invalid(format!("the metric '{metric}'"))),
    };
    let left = b.reshape_to(parts[0], &[rows, one, width])?;
    let right = b.reshape_to(parts[1], &[one, columns, width])?;
    let difference = b.binary(Function::Sub, left, right)?;
    let squares = b.binary(Function::Mul, difference, difference)?;
    let sum = b.reduce(ReduceKind::Sum, squares, &[2], false)?;
    Ok(vec![if root { b.unary(Function::Sqrt, sum)? } else { sum }])
}

/// A product with weights that are places of 4 bits in a table, with a factor for each block of them. Rows of weights are columns of the
/// product; the higher half of a byte comes first.
fn product_of_places(b: &mut Builder, node: &NodeView<'_>) -> Result<Vec<TensorId>> {
    let (x, packed, scales) = (node.input(0)?, node.input(1)?, node.input(2)?);
    let size = |name| {
        let value = node.int(name, 0)?;
        u64::try_from(value).ok().filter(|v| *v > 0).ok_or_else(|| node.invalid(format!("{name} is {value}")))
    };
    let (length, rows, block) = (size("K")?, size("N")?, size("block_size")?);
    let signs = [1.0, -1.0];
    let table = match node.int("quant_type", 1)? {
        0 => signs.iter().flat_map(|sign| FLOATS.map(|value| sign * value)).collect(),
        1 => NORMAL.to_vec(),
        other => return Err(node.invalid(format!("quant_type is {other}"))),
    };
    if node.int("transB", 1)? != 1 {
        return Err(node.unsupported("weights that are not transposed (transB = 0)"));
    }
    let wanted =
        length.checked_mul(rows).filter(|count| count.is_multiple_of(block) && count.is_multiple_of(2));
    let count =
        wanted.ok_or_else(|| node.invalid(format!("{rows} rows of {length} in blocks of {block}")))?;
    if elements(b.dims(packed)) != count / 2 || elements(b.dims(scales)) != count / block {
        return Err(node.invalid(format!("{} do not go together", b.describe(&[packed, scales]))));
    }
    let bytes = b.reshape(packed, &[count / 2, 1])?;
    let shifts = b.values(DType::U8, &[2], &Values::Int(vec![4, 0]))?;
    let low = Operand::Constant(Scalar::Int(15, DType::U8));
    let places = b.map(&[bytes, shifts], DType::U8, |p, x| {
        let shifted = p.call(Function::Shr, x);
        p.call(Function::And, &[shifted, low])
    })?;
    let places = b.cast(places, DType::I32)?;
    let table = b.values(DType::F32, &[16], &Values::Float(table))?;
    let places = b.reshape(places, &[count])?;
    let values = b.gather(table, places, 0)?;
    let values = b.reshape(values, &[count / block, block])?;
    let scales = b.as_f32(scales)?;
    let scales = b.reshape(scales, &[count / block, 1])?;
    let weights = b.binary(Function::Mul, values, scales)?;
    let weights = b.reshape(weights, &[rows, length])?;
    let element = b.element(x);
    let x = b.as_f32(x)?;
    let made = b.product(x, weights, true)?;
    Ok(vec![b.cast(made, element)?])
}
