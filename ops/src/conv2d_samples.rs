//! Convolutions of images whose channels lie last, for tests of kernels.

use crate::{Activation, DType, conv2d::Conv2d, window::Layout};

/// All of a type.
pub(crate) fn channels_last(dtype: DType) -> Vec<Conv2d> {
    let mut samples =
        [single_channels(dtype), eights(dtype), few_channels(dtype), pictures(dtype), added_behind(dtype)]
            .concat();
    if dtype == DType::F16 {
        samples.extend(in_fragments());
    }
    samples
}

/// Filters in fragments: whole tiles and edges, sums that end within a turn, groups, strides, dilation, all that is added, and more taps
/// than kernels keep bits for.
fn in_fragments() -> Vec<Conv2d> {
    let of = |input: [u64; 4], filter: [u64; 4]| Conv2d {
        layout: Layout::Nhwc,
        filter_fragments: true,
        ..Conv2d::new(input, filter, DType::F16)
    };
    let same = |op: Conv2d| Conv2d { pads: [1, 1, 1, 1], bias: true, ..op };
    vec![
        of([1, 8, 16, 64], [1, 1, 64, 128]),
        same(Conv2d { activation: Activation::Relu, ..of([2, 14, 11, 32], [3, 3, 32, 272]) }),
        same(Conv2d { strides: [2, 2], residual: true, ..of([3, 15, 13, 48], [3, 3, 48, 80]) }),
        same(Conv2d { dilations: [2, 3], pads: [2, 3, 2, 3], ..of([1, 12, 10, 16], [3, 3, 16, 48]) }),
        Conv2d { activation: Activation::Gelu, bias: true, ..of([1, 19, 20, 8], [2, 5, 8, 16]) },
        Conv2d { strides: [2, 1], ..of([2, 9, 8, 32], [1, 1, 32, 32]) },
        same(Conv2d { groups: 4, ..of([2, 10, 9, 128], [3, 3, 32, 128]) }),
        same(Conv2d {
            groups: 2,
            residual: true,
            residual_behind: true,
            activation: Activation::Silu,
            ..of([1, 7, 9, 96], [3, 3, 48, 64])
        }),
        Conv2d { pads: [3, 3, 3, 3], ..of([1, 6, 5, 16], [7, 7, 16, 32]) },
    ]
}

/// Groups of one channel that lie last, in fours.
fn single_channels(dtype: DType) -> Vec<Conv2d> {
    let of = |input: [u64; 4], kernel: [u64; 2], pads| Conv2d {
        layout: Layout::Nhwc,
        groups: input[3],
        pads,
        ..Conv2d::new(input, [kernel[0], kernel[1], 1, input[3]], dtype)
    };
    let three = of([2, 9, 11, 12], [3, 3], [1, 1, 1, 1]);
    vec![
        Conv2d { bias: true, residual: true, activation: Activation::Gelu, ..three.clone() },
        Conv2d { strides: [2, 2], bias: true, activation: Activation::Relu, ..three.clone() },
        Conv2d { residual: true, ..of([1, 10, 7, 36], [7, 7], [3, 3, 3, 3]) },
        of([1, 6, 9, 8], [5, 2], [0, 1, 3, 0]),
        of([1, 56, 64, 64], [3, 3], [1, 1, 1, 1]),
        Conv2d { dilations: [2, 1], ..three },
    ]
}

/// Channels last, in eights: runs of whole words of 16 bytes.
fn eights(dtype: DType) -> Vec<Conv2d> {
    let last = |input: [u64; 4], filter: [u64; 4]| Conv2d {
        layout: Layout::Nhwc,
        ..Conv2d::new(input, filter, dtype)
    };
    let same = |op: Conv2d| Conv2d { pads: [1, 1, 1, 1], bias: true, ..op };
    vec![
        same(Conv2d {
            activation: Activation::Relu,
            residual: true,
            ..last([2, 14, 14, 32], [3, 3, 32, 48])
        }),
        same(Conv2d { activation: Activation::Gelu, ..last([1, 7, 7, 264], [3, 3, 264, 136]) }),
        same(Conv2d { strides: [2, 2], ..last([3, 15, 13, 24], [3, 3, 24, 72]) }),
        // More of the border than a tap reaches, on each side another.
        Conv2d {
            strides: [1, 2],
            dilations: [2, 3],
            pads: [3, 0, 1, 7],
            ..last([1, 11, 12, 8], [3, 3, 8, 40])
        },
        Conv2d { strides: [2, 2], ..last([2, 9, 8, 64], [1, 1, 64, 8]) },
        Conv2d { pads: [0, 2, 1, 2], residual: true, ..last([1, 11, 10, 16], [2, 5, 16, 64]) },
        Conv2d { pads: [2, 2, 2, 2], bias: true, ..last([1, 20, 20, 40], [5, 5, 40, 24]) },
        // Groups, whose bias and residual are their own.
        same(Conv2d {
            groups: 3,
            residual: true,
            activation: Activation::Silu,
            ..last([2, 10, 9, 96], [3, 3, 32, 96])
        }),
        same(Conv2d { groups: 4, strides: [2, 2], ..last([1, 12, 12, 32], [3, 3, 8, 64]) }),
        // Sums that are cut, and no bias.
        Conv2d { pads: [1, 1, 1, 1], activation: Activation::Relu, ..last([1, 6, 6, 512], [3, 3, 512, 64]) },
        last([1, 5, 4, 8], [7, 7, 8, 8]),
        Conv2d { pads: [3, 3, 3, 3], ..last([1, 5, 4, 8], [7, 7, 8, 8]) },
    ]
}

/// Few channels, as those of pictures, and filters in eights.
fn pictures(dtype: DType) -> Vec<Conv2d> {
    let of = |input: [u64; 4], filter: [u64; 4]| Conv2d {
        layout: Layout::Nhwc,
        ..Conv2d::new(input, filter, dtype)
    };
    let around = |by, op: Conv2d| Conv2d { pads: [by; 4], bias: true, ..op };
    vec![
        Conv2d {
            strides: [2, 2],
            activation: Activation::Silu,
            ..around(3, of([2, 30, 27, 3], [7, 7, 3, 64]))
        },
        Conv2d { activation: Activation::Relu, ..around(1, of([1, 13, 17, 3], [3, 3, 3, 24])) },
        Conv2d { strides: [4, 4], ..of([3, 24, 20, 3], [4, 4, 3, 96]) },
        Conv2d { residual: true, ..around(1, of([1, 9, 8, 1], [3, 3, 1, 8])) },
        Conv2d {
            strides: [1, 2],
            dilations: [2, 3],
            pads: [3, 0, 1, 7],
            ..of([2, 11, 12, 5], [3, 3, 5, 136])
        },
        Conv2d { activation: Activation::Gelu, ..around(0, of([1, 20, 7, 4], [1, 1, 4, 16])) },
    ]
}

/// Groups of few channels, which lie in whole words.
fn few_channels(dtype: DType) -> Vec<Conv2d> {
    let of = |input: [u64; 4], filter: [u64; 4], groups| Conv2d {
        layout: Layout::Nhwc,
        groups,
        pads: [1, 1, 1, 1],
        ..Conv2d::new(input, filter, dtype)
    };
    vec![
        Conv2d {
            bias: true,
            residual: true,
            activation: Activation::Relu,
            ..of([2, 14, 14, 32], [3, 3, 4, 32], 8)
        },
        Conv2d { bias: true, strides: [2, 2], ..of([1, 13, 35, 64], [3, 3, 8, 64], 8) },
        Conv2d { activation: Activation::Silu, ..of([2, 7, 7, 64], [3, 3, 16, 64], 4) },
        Conv2d { dilations: [2, 3], residual: true, ..of([1, 10, 10, 32], [3, 3, 2, 32], 16) },
        // The last filters are no sixteen, and groups of them share matrices.
        Conv2d { bias: true, pads: [0, 2, 1, 0], ..of([3, 9, 9, 24], [3, 3, 8, 24], 3) },
        Conv2d { bias: true, ..of([2, 8, 8, 48], [3, 3, 24, 48], 2) },
        Conv2d { strides: [1, 2], bias: true, ..of([1, 9, 11, 64], [3, 3, 8, 32], 8) },
        Conv2d { pads: [2, 2, 2, 2], ..of([1, 10, 11, 32], [5, 5, 4, 64], 8) },
        Conv2d { pads: [0; 4], bias: true, ..of([2, 5, 40, 64], [1, 1, 32, 64], 2) },
    ]
}

/// What is added behind the function: of sums that are cut too, and with the channels first.
fn added_behind(dtype: DType) -> Vec<Conv2d> {
    let of = |input: [u64; 4], filter: [u64; 4], activation| Conv2d {
        pads: [1, 1, 1, 1],
        bias: true,
        activation,
        residual: true,
        residual_behind: true,
        ..Conv2d::new(input, filter, dtype)
    };
    let last = |op: Conv2d| Conv2d { layout: Layout::Nhwc, ..op };
    vec![
        last(of([2, 14, 14, 32], [3, 3, 32, 48], Activation::Silu)),
        last(of([1, 7, 7, 520], [3, 3, 520, 48], Activation::Mish)),
        of([1, 16, 16, 14], [24, 16, 3, 3], Activation::Relu6),
    ]
}
