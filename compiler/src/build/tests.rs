//! Tests of operations that are made of several of the kernel library's, against plain loops.

use halite_ops::{
    DType, Values, expression::Function, pad::Border, pool2d::Pooling, reduce::ReduceKind,
    scatters::Reduction,
};
use halite_sizes::Trace;

use super::*;
use crate::graph::elements;

/// Small whole numbers, so that sums in any order are exact.
fn some(b: &mut Builder, dims: &[u64], seed: u64) -> (TensorId, Vec<f64>) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let values: Vec<f64> = (0..elements(dims))
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 60) as f64 - 8.0
        })
        .collect();
    (b.values(DType::F32, dims, &Values::Float(values.clone())).unwrap(), values)
}

/// Every place of a tensor.
fn places(dims: &[u64]) -> Vec<Vec<u64>> {
    dims.iter().fold(vec![Vec::new()], |all, size| {
        all.iter().flat_map(|p| (0..*size).map(move |i| [&p[..], &[i]].concat())).collect()
    })
}

fn at(values: &[f64], dims: &[u64], place: &[u64]) -> f64 {
    values[place.iter().zip(dims).fold(0, |n, (i, size)| n * size + i) as usize]
}

#[test]
fn matrices_that_are_known_are_turned_at_once() {
    let mut b = Builder::new();
    for dims in [[300, 70], [1, 5], [4, 0]] {
        let (x, values) = some(&mut b, &dims, 7);
        let made = b.turned(x).unwrap();
        let back = [dims[1], dims[0]];
        assert!(b.tensor(made).constant.is_some() && b.dims(made) == back);
        let wants: Vec<f64> = places(&back).iter().map(|p| at(&values, &dims, &[p[1], p[0]])).collect();
        assert_eq!(b.floats(made).unwrap(), wants);
    }
    let x = b.input("x", DType::F32.into(), &[2, 3]).unwrap();
    let made = b.turned(x).unwrap();
    assert_eq!((b.dims(made), b.tensor(made).constant.is_none()), (&[3, 2][..], true));
    let row = b.input("row", DType::F32.into(), &[2]).unwrap();
    assert!(b.turned(row).is_err());
}

#[test]
fn batches_of_matrices_are_broadcast() {
    let mut b = Builder::new();
    let (x, xs) = some(&mut b, &[2, 1, 3, 4], 1);
    let (y, ys) = some(&mut b, &[5, 4, 2], 2);
    let made = b.matmul(x, y).unwrap();
    assert_eq!(b.dims(made), [2, 5, 3, 2]);
    let wants: Vec<f64> = places(&[2, 5, 3, 2])
        .iter()
        .map(|p| {
            let term =
                |k| at(&xs, &[2, 1, 3, 4], &[p[0], 0, p[2], k]) * at(&ys, &[5, 4, 2], &[p[1], k, p[3]]);
            (0..4).map(term).sum()
        })
        .collect();
    assert_eq!(b.floats(made).unwrap(), wants);
    let (v, vs) = some(&mut b, &[4], 3);
    let row = b.matmul(v, y).unwrap();
    assert_eq!(b.dims(row), [5, 2]);
    assert_eq!(b.floats(row).unwrap()[0], (0..4).map(|k| vs[k] * ys[k * 2]).sum::<f64>());
    let dot = b.matmul(v, v).unwrap();
    assert_eq!((b.dims(dot), b.floats(dot).unwrap()[0]), (&[][..], vs.iter().map(|v| v * v).sum::<f64>()));
    assert!(b.matmul(x, v).is_ok() && b.matmul(y, v).is_err());
}

#[test]
fn bytes_with_zero_points_are_multiplied_exactly() {
    let mut b = Builder::new();
    let x = b.values(DType::U8, &[2, 3], &Values::Int(vec![255, 0, 7, 128, 3, 200])).unwrap();
    let y = b.values(DType::I8, &[3, 2], &Values::Int(vec![-128, 127, 5, -6, 0, 90])).unwrap();
    let zero = b.values(DType::U8, &[2, 1], &Values::Int(vec![9, 130])).unwrap();
    let others = b.values(DType::I8, &[2], &Values::Int(vec![-3, 100])).unwrap();
    let made = b.product_of_bytes(x, Some(zero), y, Some(others)).unwrap();
    let (xs, ys) = ([[246, -9, -2], [-2, -127, 70]], [[-125, 27], [8, -106], [3, -10]]);
    let term = |i: usize, j: usize| (0..3).map(|k| xs[i][k] * ys[k][j]).sum::<i64>();
    assert_eq!(b.ints(made).unwrap(), [term(0, 0), term(0, 1), term(1, 0), term(1, 1)]);
}

#[test]
fn axes_apart_are_reduced_together() {
    let mut b = Builder::new();
    let dims = [2, 3, 4, 5];
    let (x, xs) = some(&mut b, &dims, 4);
    let made = b.reduce(ReduceKind::Sum, x, &[0, 2], true).unwrap();
    assert_eq!(b.dims(made), [1, 3, 1, 5]);
    let sum = |p: &Vec<u64>| places(&[2, 4]).iter().map(|q| at(&xs, &dims, &[q[0], p[0], q[1], p[1]])).sum();
    let wants: Vec<f64> = places(&[3, 5]).iter().map(sum).collect();
    assert_eq!(b.floats(made).unwrap(), wants);
    let large = b.values(DType::U32, &[3], &Values::Int(vec![3, 4_000_000_000, 9])).unwrap();
    let most = b.reduce(ReduceKind::Max, large, &[0], false).unwrap();
    assert_eq!(b.ints(most).unwrap(), [4_000_000_000]);
}

#[test]
fn nothing_is_reduced_to_the_neutral_element() {
    let mut b = Builder::new();
    let x = b.input("x", DType::F32.into(), &[2, 0, 3]).unwrap();
    let made = b.reduce(ReduceKind::Prod, x, &[1], false).unwrap();
    assert_eq!(b.floats(made).unwrap(), [1.0; 6]);
}

#[test]
fn convolutions_of_volumes() {
    let mut b = Builder::new();
    let (input, taps) = ([1, 4, 5, 6, 4], [4, 2, 2, 3, 2]);
    let ((x, xs), (w, ws)) = (some(&mut b, &input, 5), some(&mut b, &taps, 6));
    let sliding =
        Sliding { strides: vec![2, 1, 2], dilations: vec![2, 1, 1], pads: vec![(1, 0), (0, 1), (1, 1)] };
    let made = b.conv(x, w, None, &sliding, 2).unwrap();
    assert_eq!(b.dims(made), [1, 4, 2, 5, 3]);
    let value = |p: &Vec<u64>| {
        let term = |t: &Vec<u64>| {
            let spatial: Option<Vec<u64>> = (0..3)
                .map(|d| {
                    let i = p[d + 2] * sliding.strides[d] + t[d + 1] * sliding.dilations[d];
                    i.checked_sub(sliding.pads[d].0).filter(|i| *i < input[d + 2])
                })
                .collect();
            let channel = p[1] / 2 * 2 + t[0];
            spatial.map_or(0.0, |s| {
                at(&xs, &input, &[&[p[0], channel], &s[..]].concat())
                    * at(&ws, &taps, &[&p[1..2], &t[..]].concat())
            })
        };
        places(&[2, 2, 3, 2]).iter().map(term).sum()
    };
    let wants: Vec<f64> = places(&[1, 4, 2, 5, 3]).iter().map(value).collect();
    assert_eq!(b.floats(made).unwrap(), wants);
}

/// Compares a transposed convolution of a volume in two groups, of so many taps each way, with its definition.
fn check_transposed(taps: [u64; 3], sliding: &Sliding, more: [u64; 3], out: [u64; 3]) {
    let mut b = Builder::new();
    let (input, taps) = ([2, 4, 3, 3, 2], [&[4, 1], &taps[..]].concat());
    let ((x, xs), (w, ws)) = (some(&mut b, &input, 7), some(&mut b, &taps, 8));
    let made = b.conv_transpose(x, w, None, sliding, &more, 2).unwrap();
    let out = [&[2, 2], &out[..]].concat();
    assert_eq!(b.dims(made), out);
    let mut wants = vec![0.0; elements(&out) as usize];
    for (p, t) in places(&input).iter().flat_map(|p| places(&taps[2..]).into_iter().map(move |t| (p, t))) {
        let reached: Option<Vec<u64>> = (0..3)
            .map(|d| {
                let i = p[d + 2] * sliding.strides[d] + t[d] * sliding.dilations[d];
                i.checked_sub(sliding.pads[d].0).filter(|i| *i < out[d + 2])
            })
            .collect();
        let Some(reached) = reached else { continue };
        let place = [&[p[0], p[1] / 2], &reached[..]].concat();
        let index = place.iter().zip(&out).fold(0, |n, (i, size)| n * size + i) as usize;
        wants[index] += at(&xs, &input, p) * at(&ws, &taps, &[&[p[1], 0], &t[..]].concat());
    }
    assert_eq!(b.floats(made).unwrap(), wants);
}

#[test]
fn transposed_convolutions_of_volumes() {
    let sliding = |strides: [u64; 3], dilations: [u64; 3], pads: [(u64, u64); 3]| Sliding {
        strides: strides.to_vec(),
        dilations: dilations.to_vec(),
        pads: pads.to_vec(),
    };
    // Results of one and of two taps.
    let some = sliding([2, 1, 3], [1, 2, 1], [(0, 1), (1, 1), (0, 0)]);
    check_transposed([2, 3, 2], &some, [0, 0, 1], [5, 5, 6]);
    check_transposed([3, 2, 2], &sliding([2; 3], [1; 3], [(1, 1); 3]), [1, 0, 0], [6, 4, 2]);
    // Padding beyond a stride and a tap, of strides of which the results are no multiple.
    check_transposed([7, 2, 2], &sliding([3, 1, 1], [1; 3], [(5, 3), (0, 0), (0, 0)]), [0; 3], [5, 4, 3]);
    // A stride of one, and strides that reach beyond the kernel, also with a dilation.
    check_transposed([3, 2, 2], &sliding([1, 2, 2], [1; 3], [(1, 0), (0, 0), (0, 0)]), [0; 3], [4, 6, 4]);
    check_transposed([2, 1, 2], &sliding([4, 1, 1], [1; 3], [(1, 0), (0, 0), (0, 0)]), [0; 3], [9, 3, 3]);
    check_transposed([2, 1, 2], &sliding([2, 1, 1], [2, 1, 1], [(0, 0); 3]), [0; 3], [7, 3, 3]);
}

#[test]
fn transposed_convolutions_of_single_places_are_products() {
    for (sides, strides) in [(vec![1, 1], vec![1, 1]), (vec![1], vec![3]), (vec![1, 1, 1], vec![2, 1, 5])] {
        let mut b = Builder::new();
        let (input, n) = ([&[3, 4], &sides[..]].concat(), sides.len());
        let taps = [&[4, 2], &[4, 3, 2][..n]].concat();
        let ((x, xs), (w, ws)) = (some(&mut b, &input, 7), some(&mut b, &taps, 8));
        let (bias, bs) = some(&mut b, &[2], 9);
        let sliding = Sliding { strides, ..Sliding::plain(n) };
        let made = b.conv_transpose(x, w, Some(bias), &sliding, &vec![0; n], 1).unwrap();
        let out = [&[3, 2], &taps[2..]].concat();
        assert_eq!(b.dims(made), out);
        let value = |p: &Vec<u64>| {
            let term = |c: u64| {
                at(&xs, &input, &[&[p[0], c], &vec![0; n][..]].concat())
                    * at(&ws, &taps, &[&[c], &p[1..]].concat())
            };
            bs[p[1] as usize] + (0..4).map(term).sum::<f64>()
        };
        let wants: Vec<f64> = places(&out).iter().map(value).collect();
        assert_eq!(b.floats(made).unwrap(), wants);
    }
}

#[test]
fn bytes_are_convolved_with_zero_points_for_filters() {
    let mut b = Builder::new();
    let xs = [1i64, 200, 30, 255, 0, 77];
    let ws = [[3i64, 250], [128, 9]];
    let x = b.values(DType::U8, &[1, 1, 6], &Values::Int(xs.to_vec())).unwrap();
    let w = b.values(DType::U8, &[2, 1, 2], &Values::Int(ws.concat())).unwrap();
    let zeros = b.values(DType::U8, &[2], &Values::Int(vec![7, 130])).unwrap();
    let wants: Vec<i64> = (0..2)
        .flat_map(|f| (0..5).map(move |i| (f, i)))
        .map(|(f, i)| (0..2).map(|t| (xs[i + t] - 12) * (ws[f][t] - [7, 130][f])).sum())
        .collect();
    let zero = b.values(DType::U8, &[1], &Values::Int(vec![12])).unwrap();
    let made = b.conv_of_bytes(x, Some(zero), w, Some(zeros), &Sliding::plain(1), 1).unwrap();
    assert_eq!(b.ints(made).unwrap(), wants);
    // The same for a zero point that is known at run time only.
    let zero = b.input("zero", DType::U8.into(), &[]).unwrap();
    let made = b.conv_of_bytes(x, Some(zero), w, Some(zeros), &Sliding::plain(1), 1).unwrap();
    b.output("made", made);
    let graph = b.finish().unwrap();
    let results = graph.evaluate(&[Values::Int(vec![12])]).unwrap();
    assert_eq!(results, [Values::Int(wants)]);
}

#[test]
fn places_of_the_largest_in_windows() {
    let mut b = Builder::new();
    let dims = [2, 2, 4, 5];
    let (x, xs) = some(&mut b, &dims, 9);
    let sliding = Sliding { strides: vec![2, 1], dilations: vec![1, 2], pads: vec![(1, 1), (0, 1)] };
    let pooled = b.pool(x, Pooling::Max, &[2, 2], &sliding, false).unwrap();
    let out = b.dims(pooled)[2..].to_vec();
    for column_major in [false, true] {
        let made = b.max_pool_indices(x, &[2, 2], &sliding, &out, column_major).unwrap();
        assert_eq!(b.dims(made), b.dims(pooled));
        for (value, index) in b.floats(pooled).unwrap().iter().zip(b.ints(made).unwrap()) {
            let (image, place) = (index as usize / 20, index as usize % 20);
            let place = if column_major { place % 4 * 5 + place / 4 } else { place };
            assert_eq!(xs[image * 20 + place], *value);
        }
    }
}

#[test]
fn pools_of_volumes_are_pools_of_their_parts() {
    let mut b = Builder::new();
    let dims = [1, 2, 3, 4, 5];
    let (x, xs) = some(&mut b, &dims, 10);
    let sliding =
        Sliding { strides: vec![1, 2, 1], dilations: vec![1; 3], pads: vec![(1, 0), (0, 0), (0, 1)] };
    let made = b.pool(x, Pooling::Max, &[2, 2, 3], &sliding, false).unwrap();
    let out = b.dims(made).to_vec();
    assert_eq!(out, [1, 2, 3, 2, 4]);
    let value = |p: &Vec<u64>| {
        let element = |t: &Vec<u64>| {
            let place: Option<Vec<u64>> = (0..3)
                .map(|d| {
                    let i = (p[d + 2] * sliding.strides[d] + t[d]).checked_sub(sliding.pads[d].0);
                    i.filter(|i| *i < dims[d + 2])
                })
                .collect();
            place.map(|place| at(&xs, &dims, &[&p[..2], &place[..]].concat()))
        };
        places(&[2, 2, 3]).iter().filter_map(element).fold(f64::NEG_INFINITY, f64::max)
    };
    let wants: Vec<f64> = places(&out).iter().map(value).collect();
    assert_eq!(b.floats(made).unwrap(), wants);
}

#[test]
fn borders_of_many_dimensions() {
    let mut b = Builder::new();
    let (x, xs) = some(&mut b, &[1, 2, 1, 1, 2, 1, 2, 1], 11);
    let mut borders = [(0, 0); 8];
    borders[6] = (1, -1);
    let made = b.pad(x, &borders, Border::Constant, 9.0).unwrap();
    let wants: Vec<f64> = xs.chunks(2).flat_map(|pair| [9.0, pair[0]]).collect();
    assert_eq!(b.floats(made).unwrap(), wants);
}

#[test]
fn what_a_short_model_could_ask_for_without_end_is_refused() {
    let mut b = Builder::new();
    let error = b.places(DType::I64, &[1 << 40]).unwrap_err().to_string();
    assert!(error.contains("1099511627776 places"), "{error}");
    let many = [1 << 20, 2];
    let error = (0..100).find_map(|_| b.places(DType::I64, &many).err()).unwrap().to_string();
    assert!(error.contains("160 MiB of memory") && error.contains("bytes of computed constants"), "{error}");

    let mut b = Builder::new();
    let x = b.input("x", DType::F32.into(), &[4]).unwrap();
    let error = (0..1 << 20).find_map(|_| b.unary(Function::Neg, x).err()).unwrap().to_string();
    assert!(error.contains("so far there are") && error.contains(" operations"), "{error}");
}

#[test]
fn updates_of_a_known_number_go_to_as_many_places_as_data_decide() {
    let trace = Trace::new();
    let _entered = trace.enter();
    let found = trace.data_symbol("found", 4, 0, 100);
    let mut b = Builder::new();
    let data = b.input("data", DType::F32.into(), &[1, 7, 3]).unwrap();
    let places = b.input_of("places", DType::I64.into(), &[found, Size::constant(2)]).unwrap();
    let updates = b.input("updates", DType::F32.into(), &[4, 3]).unwrap();
    let made = b.scatter_nd([data, places, updates], Reduction::None).unwrap();
    b.output("made", made);
    b.finish().unwrap();
    // Whoever has the data checks that there are four.
    assert!(!trace.promises().is_empty());
}

#[test]
fn updates_by_indices_that_count_through_a_box_are_joined() {
    let mut b = Builder::new();
    // `x[:, :, 1:, 2:6] = y`, as exporters write it.
    let dims = [1, 2, 5, 7];
    let (x, xs) = some(&mut b, &dims, 1);
    let (y, ys) = some(&mut b, &[1, 2, 4, 4], 2);
    let each = (0..2).flat_map(|c| (1..5).flat_map(move |r| (2..6).map(move |k| [0, c, r, k])));
    let indices: Vec<i64> = each.flatten().collect();
    let indices = b.values(DType::I64, &[1, 2, 4, 4, 4], &Values::Int(indices)).unwrap();
    let made = b.scatter_nd([x, indices, y], Reduction::None).unwrap();
    let mut wants = xs;
    for (n, value) in ys.iter().enumerate() {
        wants[n / 16 * 35 + (1 + n / 4 % 4) * 7 + 2 + n % 4] = *value;
    }
    assert_eq!(b.floats(made).unwrap(), wants);

    // Of an input, no kernel scatters; where sums are asked for, one does.
    let x = b.input("x", DType::F32.into(), &dims).unwrap();
    for (reduction, scatters) in [(Reduction::None, false), (Reduction::Add, true)] {
        let made = b.scatter_nd([x, indices, y], reduction).unwrap();
        b.output(&format!("{reduction:?}"), made);
        let text = format!("{:?}", b.open.last().map(|region| &region.nodes));
        assert_eq!(text.contains("ScatterNd"), scatters, "{text}");
    }
}

#[test]
fn indices_that_are_expanded_and_joined_count_through_a_box() {
    // As exporters make them: too many to be a constant.
    let mut b = Builder::new();
    let x = b.input("x", DType::F32.into(), &[2, 900, 1000]).unwrap();
    let y = b.input("y", DType::F32.into(), &[2, 899, 998]).unwrap();
    let starts: [(&[u64], i64); 3] = [(&[2, 1, 1], 0), (&[899, 1], 1), (&[998], -998)];
    let parts = starts.map(|(dims, start)| {
        let values = Values::Int((start..).take(elements(dims) as usize).collect());
        let line = b.values(DType::I64, dims, &values).unwrap();
        let whole = b.expand(line, &[2, 899, 998]).unwrap();
        b.reshape(whole, &[2, 899, 998, 1]).unwrap()
    });
    let nodes = |b: &Builder| format!("{:?}", b.open.last().map(|region| &region.nodes));
    let indices = b.concat(&parts, 3).unwrap();
    let made = b.scatter_nd([x, indices, y], Reduction::None).unwrap();
    assert_eq!(b.dims(made), [2, 900, 1000]);
    assert!(!nodes(&b).contains("ScatterNd"));
    // Columns before rows are no box.
    let indices = b.concat(&[parts[0], parts[2], parts[1]], 3).unwrap();
    b.scatter_nd([x, indices, y], Reduction::None).unwrap();
    assert!(nodes(&b).contains("ScatterNd"));
}
