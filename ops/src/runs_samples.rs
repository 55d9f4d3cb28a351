//! Convolutions and products whose first input and whose result are runs of larger tensors, for tests of kernels.

use crate::{
    Activation, DType, Op, Operation,
    conv2d::Conv2d,
    conv2d_samples,
    elementwise::Elementwise,
    matmul::MatMul,
    pool2d::{Pool2d, Pooling},
    runs::Runs,
    window::Layout,
};

/// Those of an operation.
pub(crate) fn of(name: &str) -> Vec<Operation> {
    match name {
        "conv2d" => {
            let last = [DType::F32, DType::F16].into_iter().flat_map(conv2d_samples::channels_last);
            last.chain(convolutions())
                .chain(in_fragments())
                .chain(channels_first())
                .map(Operation::Conv2d)
                .collect()
        }
        "elementwise" => elementwise().into_iter().map(Operation::Elementwise).collect(),
        "matmul" => products().into_iter().map(Operation::MatMul).collect(),
        "pool2d" => pooling().into_iter().map(Operation::Pool2d).collect(),
        _ => Vec::new(),
    }
}

fn runs(length: u64, pitch: u64, offset: u64) -> Option<Runs> {
    Some(Runs { length, pitch, offset })
}

/// Convolutions with channels last: channels that are whole words of 16 bytes and such that are not, one of them too; the first part, one in the
/// middle, the last; sums in parts; groups.
fn convolutions() -> Vec<Conv2d> {
    let of = |dtype| {
        let last = |input: [u64; 4], filter: [u64; 4]| Conv2d {
            layout: Layout::Nhwc,
            ..Conv2d::new(input, filter, dtype)
        };
        let same = |op: Conv2d| Conv2d { pads: [1, 1, 1, 1], bias: true, ..op };
        let relu = |op: Conv2d| Conv2d { activation: Activation::Relu, ..op };
        vec![
            relu(same(Conv2d { written: runs(48, 80, 32), ..last([3, 9, 7, 32], [3, 3, 32, 48]) })),
            same(Conv2d {
                residual: true,
                read: runs(40, 64, 8),
                written: runs(24, 72, 0),
                ..last([1, 11, 10, 40], [3, 3, 40, 24])
            }),
            relu(Conv2d { read: runs(16, 32, 16), strides: [2, 2], ..last([2, 9, 8, 16], [1, 1, 16, 8]) }),
            // Groups.
            same(Conv2d {
                groups: 3,
                residual: true,
                read: runs(96, 128, 32),
                written: runs(96, 104, 8),
                ..last([2, 10, 9, 96], [3, 3, 32, 96])
            }),
            // Sums that are cut.
            relu(Conv2d {
                pads: [1, 1, 1, 1],
                read: runs(512, 520, 8),
                written: runs(64, 96, 32),
                ..last([1, 6, 6, 512], [3, 3, 512, 64])
            }),
            // No whole words, and a single filter.
            same(Conv2d { written: runs(11, 13, 1), ..last([2, 9, 10, 5], [3, 3, 5, 11]) }),
            same(Conv2d { read: runs(5, 6, 1), written: runs(1, 3, 2), ..last([3, 5, 4, 5], [3, 3, 5, 1]) }),
            // Quads that begin anywhere.
            same(Conv2d { written: runs(16, 27, 3), ..last([2, 6, 6, 16], [3, 3, 16, 16]) }),
            // One channel each.
            same(Conv2d {
                groups: 12,
                residual: true,
                read: runs(12, 20, 4),
                written: runs(12, 24, 12),
                ..last([2, 9, 11, 12], [3, 3, 1, 12])
            }),
            same(Conv2d { groups: 8, written: runs(8, 14, 6), ..last([2, 9, 11, 8], [3, 3, 1, 8]) }),
        ]
    };
    [DType::F32, DType::F16].into_iter().flat_map(of).collect()
}

/// The same with filters in fragments, where they can be.
fn in_fragments() -> impl Iterator<Item = Conv2d> {
    let with_fragments = |op: Conv2d| Conv2d { filter_fragments: true, ..op };
    convolutions().into_iter().map(with_fragments).filter(|op| op.check().is_ok())
}

/// Convolutions with channels first: a run is an image.
fn channels_first() -> Vec<Conv2d> {
    let of = |dtype| {
        let first = |input: [u64; 4], filter: [u64; 4]| Conv2d::new(input, filter, dtype);
        let same = |op: Conv2d| Conv2d { pads: [1, 1, 1, 1], bias: true, ..op };
        let relu = |op: Conv2d| Conv2d { activation: Activation::Relu, ..op };
        vec![
            relu(Conv2d {
                bias: true,
                read: runs(24 * 64, 40 * 64, 16 * 64),
                written: runs(20 * 64, 28 * 64, 8 * 64),
                ..first([3, 24, 8, 8], [20, 24, 1, 1])
            }),
            same(Conv2d {
                residual: true,
                read: runs(40 * 49, 48 * 49, 8 * 49),
                written: runs(32 * 49, 40 * 49, 0),
                ..first([2, 40, 7, 7], [32, 40, 3, 3])
            }),
            same(Conv2d {
                strides: [2, 2],
                read: runs(24 * 64, 32 * 64, 0),
                written: runs(70 * 16, 71 * 16, 16),
                ..first([3, 24, 8, 8], [70, 24, 3, 3])
            }),
            Conv2d { written: runs(3 * 35, 5 * 35, 2 * 35), ..first([2, 5, 5, 7], [3, 5, 1, 1]) },
            // The result lies by itself.
            relu(Conv2d { read: runs(24 * 64, 40 * 64, 16 * 64), ..first([3, 24, 8, 8], [20, 24, 1, 1]) }),
            same(Conv2d { read: runs(40 * 49, 48 * 49, 8 * 49), ..first([2, 40, 7, 7], [32, 40, 3, 3]) }),
        ]
    };
    [DType::F32, DType::F16].into_iter().flat_map(of).collect()
}

/// Products: rows in a larger tensor, and whole results of a batch.
fn products() -> Vec<MatMul> {
    let of = |dtype| {
        let product = |m: u64, n: u64, k: u64| MatMul::new(m, n, k, dtype, dtype);
        vec![
            MatMul { bias: true, written: runs(80, 128, 48), ..product(150, 80, 48) },
            MatMul {
                residual: true,
                activation: Activation::Relu,
                rhs_transposed: true,
                read: runs(64, 96, 32),
                written: runs(40, 48, 8),
                ..product(70, 40, 64)
            },
            // The result lies by itself.
            MatMul { read: runs(48, 128, 80), ..product(150, 80, 48) },
            // Sums that are cut, and few rows.
            MatMul {
                bias: true,
                read: runs(1000, 1008, 8),
                written: runs(20, 28, 4),
                ..product(9, 20, 1000)
            },
            MatMul { written: runs(300, 304, 4), ..product(1, 300, 40) },
            // Rows that begin anywhere, and of one element.
            MatMul { read: runs(17, 20, 3), written: runs(65, 99, 1), ..product(33, 65, 17) },
            MatMul { written: runs(1, 2, 1), ..product(33, 1, 16) },
            MatMul {
                batch: 3.into(),
                rhs_shared: true,
                read: runs(24 * 32, 25 * 32, 32),
                written: runs(24 * 40, 26 * 40, 80),
                ..product(24, 40, 32)
            },
        ]
    };
    [DType::F32, DType::F16].into_iter().flat_map(of).collect()
}

/// Elementwise operations: runs of whole vectors of each size, of half of the largest, and of single elements; of more tensors than some
/// devices bind.
fn elementwise() -> Vec<Elementwise> {
    [
        "elementwise:inputs=f16[6x5x16] f16[16],program=mul $0 $1; relu %0 -> %1:f16,written=16x40x8",
        "elementwise:inputs=f16[3x300],program=abs $0 -> %0:f16,written=12x20x4",
        "elementwise:inputs=f32[3x4x8],program=neg $0 -> %0:f32,written=32x48x16",
        "elementwise:inputs=f32[7x3],program=neg $0 -> %0:f32,written=3x5x1",
        "elementwise:inputs=f16[9x1],program=neg $0 -> %0:f16,written=1x3x2",
        "elementwise:inputs=i8[5x32],program=neg $0 -> %0:i8,written=32x64x16",
        "elementwise:inputs=f32[4x8],program=cast:f16 $0 -> %0:f16,written=8x24x16",
        "elementwise:inputs=f32[4x16] f32[4x16] f32[16] f32[16],program=mul $0 $2; mul $1 $3; sub %0 %1 -> %2:f32,written=16x32x16",
        "elementwise:inputs=f32[5x3] f32[5x3] f32[3] f32[3],program=mul $0 $2; mul $1 $3; sub %0 %1 -> %2:f32,written=3x8x2",
    ]
    .into_iter()
    .filter_map(|text| match Operation::parse(text) {
        Ok(Operation::Elementwise(elementwise)) => Some(elementwise),
        _ => None,
    })
    .collect()
}

/// Pooling: channels last in fours and not, channels first.
fn pooling() -> Vec<Pool2d> {
    let of = |dtype| {
        let pool = |input: [u64; 4], kind| Pool2d {
            pads: [1, 1, 1, 1],
            strides: [2, 2],
            ..Pool2d::new(input, [3, 3], kind, dtype)
        };
        let last = |op: Pool2d| Pool2d { layout: Layout::Nhwc, ..op };
        vec![
            last(Pool2d { written: runs(16, 40, 24), ..pool([3, 9, 8, 16], Pooling::Max) }),
            last(Pool2d {
                read: runs(12, 20, 4),
                written: runs(12, 24, 0),
                ..pool([2, 7, 7, 12], Pooling::Average)
            }),
            last(Pool2d {
                read: runs(8, 18, 6),
                written: runs(8, 18, 2),
                ..pool([1, 7, 6, 8], Pooling::Max)
            }),
            last(Pool2d { written: runs(5, 7, 1), ..pool([2, 5, 6, 5], Pooling::AveragePadded) }),
            Pool2d {
                read: runs(192, 256, 64),
                written: runs(48, 60, 12),
                ..pool([2, 3, 8, 8], Pooling::Max)
            },
        ]
    };
    [DType::F32, DType::F16].into_iter().flat_map(of).collect()
}
