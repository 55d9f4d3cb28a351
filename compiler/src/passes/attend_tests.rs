//! Attention as exporters write it becomes one operation that computes the same.

use halite_ops::{
    DType, Exact, Operation, Values,
    attention::{Attention, Mask},
    expression::{Function, Type},
};

use halite_sizes::Size;

use super::tests::{kernels, optimized};
use crate::{
    build::Builder,
    graph::{Graph, TensorId},
};

const F32: crate::graph::ElementType = crate::graph::ElementType::Of(DType::F32);
const HEADS: u64 = 4;
const DIM: u64 = 8;

/// Attention over `keys` of `queries`, with `kv_heads` heads of keys that are repeated, in the steps of an exporter.
struct Export {
    queries: u64,
    keys: u64,
    kv_heads: u64,
    scale: fn(&mut Builder, [TensorId; 3]) -> [TensorId; 3],
    mask: fn(&mut Builder, TensorId, [u64; 2]) -> TensorId,
}

impl Export {
    fn plain(queries: u64, keys: u64) -> Self {
        Export { queries, keys, kv_heads: HEADS, scale: |_, all| all, mask: |_, scores, _| scores }
    }

    /// `[1, len, heads * dim]` as heads, `[1, heads, len, dim]`.
    fn split(b: &mut Builder, x: TensorId, heads: u64, len: u64) -> TensorId {
        let x = b.reshape(x, &[1, len, heads, DIM]).unwrap();
        b.transpose(x, &[0, 2, 1, 3]).unwrap()
    }

    fn repeated(&self, b: &mut Builder, x: TensorId) -> TensorId {
        if self.kv_heads == HEADS {
            return x;
        }
        let group = HEADS / self.kv_heads;
        let x = b.reshape(x, &[1, self.kv_heads, 1, self.keys, DIM]).unwrap();
        let x = b.expand(x, &[1, self.kv_heads, group, self.keys, DIM]).unwrap();
        b.reshape(x, &[1, HEADS, self.keys, DIM]).unwrap()
    }

    fn graph(&self) -> Graph {
        let mut b = Builder::new();
        let q = b.input("q", F32, &[1, self.queries, HEADS * DIM]).unwrap();
        let [k, v] = ["k", "v"].map(|name| b.input(name, F32, &[1, self.keys, self.kv_heads * DIM]).unwrap());
        let q = Export::split(&mut b, q, HEADS, self.queries);
        let [k, v] = [k, v].map(|x| {
            let x = Export::split(&mut b, x, self.kv_heads, self.keys);
            self.repeated(&mut b, x)
        });
        let k = b.transpose(k, &[0, 1, 3, 2]).unwrap();
        let [q, k, v] = (self.scale)(&mut b, [q, k, v]);
        let scores = b.matmul(q, k).unwrap();
        let scores = (self.mask)(&mut b, scores, [self.queries, self.keys]);
        let weights = b.softmax(scores, 3, false).unwrap();
        let made = b.matmul(weights, v).unwrap();
        let made = b.transpose(made, &[0, 2, 1, 3]).unwrap();
        let made = b.reshape(made, &[1, self.queries, HEADS * DIM]).unwrap();
        b.output("out", made);
        b.finish().unwrap()
    }
}

fn scaled(b: &mut Builder, x: TensorId, by: f64) -> TensorId {
    let by = b.float(DType::F32, by).unwrap();
    b.binary(Function::Mul, x, by).unwrap()
}

/// The one attention of a graph, which has no other product or softmax.
fn attention(graph: &Graph) -> Attention {
    let kernels = kernels(graph);
    let rest = kernels.iter().any(|op| matches!(op, Operation::MatMul(_) | Operation::Softmax(_)));
    assert!(!rest, "{graph}");
    let mut found =
        kernels.iter().filter_map(|op| if let Operation::Attention(a) = op { Some(a.clone()) } else { None });
    let first = found.next().unwrap_or_else(|| panic!("no attention in\n{graph}"));
    assert!(found.next().is_none(), "{graph}");
    first
}

fn band(b: &mut Builder, [queries, keys]: [u64; 2], nothing: f64) -> TensorId {
    let of = |i: u64, j: u64| if j + queries <= keys + i { 0.0 } else { nothing };
    let values = (0..queries).flat_map(|i| (0..keys).map(move |j| of(i, j))).collect();
    b.values(DType::F32, &[queries, keys], &Values::Float(values)).unwrap()
}

#[test]
fn scaled_scores_with_a_row_of_masks() {
    let export = Export {
        mask: |b, scores, [_, keys]| {
            let scores = scaled(b, scores, 0.25);
            let mask = b.input("mask", F32, &[1, 1, 1, keys]).unwrap();
            b.binary(Function::Add, scores, mask).unwrap()
        },
        ..Export::plain(5, 7)
    };
    let graph = optimized(export.graph());
    let attention = attention(&graph);
    assert_eq!((attention.mask, attention.scale, attention.causal), (Mask::Shared, Some(Exact(0.25)), false));
    // Heads are read and written where they lie; a copy makes the mask for all queries.
    assert_eq!(kernels(&graph).len(), 2, "{graph}");
}

#[test]
fn masks_of_more_dimensions() {
    let export = Export {
        mask: |b, scores, [queries, keys]| {
            let windows = b.reshape(scores, &[1, 1, HEADS, queries, keys]).unwrap();
            let mask = b.input("mask", F32, &[1, 1, 1, queries, keys]).unwrap();
            let masked = b.binary(Function::Add, windows, mask).unwrap();
            b.reshape(masked, &[1, HEADS, queries, keys]).unwrap()
        },
        ..Export::plain(5, 7)
    };
    let graph = optimized(export.graph());
    assert_eq!(attention(&graph).mask, Mask::Shared);
    assert_eq!(kernels(&graph).len(), 1, "{graph}");
}

/// Attention in windows of images, `[images, windows, heads, len, dim]`, with inputs of these dimensions added to the scores.
fn windows(images: u64, added: &[&[u64]]) -> Graph {
    let mut b = Builder::new();
    let dims = [images, 3, HEADS, 4, DIM];
    let [q, k, v] = ["q", "k", "v"].map(|name| b.input(name, F32, &dims).unwrap());
    let k = b.transpose(k, &[0, 1, 2, 4, 3]).unwrap();
    let mut scores = b.matmul(q, k).unwrap();
    for (place, dims) in added.iter().enumerate() {
        let mask = b.input(&format!("mask{place}"), F32, dims).unwrap();
        scores = b.binary(Function::Add, scores, mask).unwrap();
    }
    let weights = b.softmax(scores, 4, false).unwrap();
    let made = b.matmul(weights, v).unwrap();
    b.output("out", made);
    optimized(b.finish().unwrap())
}

#[test]
fn windows_of_images_are_images() {
    assert_eq!(attention(&windows(2, &[])).batch, 6);
    assert_eq!(attention(&windows(1, &[&[3, 1, 4, 4]])).mask, Mask::Batch);
    // The windows of each image have the same masks.
    let masked = attention(&windows(2, &[&[3, 1, 4, 4]]));
    assert_eq!((masked.batch, masked.mask, masked.mask_batches), (6.into(), Mask::Batch, Some(3.into())));
}

#[test]
fn masks_are_added_where_exporters_see_the_scores_otherwise() {
    // A bias for each head, then a mask for each window of an image, as in Swin; products, softmax and bias see images and windows as one.
    let mut b = Builder::new();
    let [q, k, v] = ["q", "k", "v"].map(|name| b.input(name, F32, &[6, HEADS, 4, DIM]).unwrap());
    let k = b.transpose(k, &[0, 1, 3, 2]).unwrap();
    let scores = b.matmul(q, k).unwrap();
    let bias = b.input("bias", F32, &[1, HEADS, 4, 4]).unwrap();
    let scores = b.binary(Function::Add, scores, bias).unwrap();
    let scores = b.reshape(scores, &[2, 3, HEADS, 4, 4]).unwrap();
    let mask = b.input("mask", F32, &[1, 3, 1, 4, 4]).unwrap();
    let scores = b.binary(Function::Add, scores, mask).unwrap();
    let scores = b.reshape(scores, &[6, HEADS, 4, 4]).unwrap();
    let weights = b.softmax(scores, 3, false).unwrap();
    let made = b.matmul(weights, v).unwrap();
    b.output("out", made);
    let windows = attention(&optimized(b.finish().unwrap()));
    assert_eq!((windows.mask, windows.mask_batches), (Mask::Full, Some(3.into())));

    // A mask for each image; products and the softmax see images and heads as one.
    let mut b = Builder::new();
    let [q, k, v] = ["q", "k", "v"].map(|name| b.input(name, F32, &[2 * HEADS, 4, DIM]).unwrap());
    let k = b.transpose(k, &[0, 2, 1]).unwrap();
    let scores = b.matmul(q, k).unwrap();
    let scores = b.reshape(scores, &[2, HEADS, 4, 4]).unwrap();
    let mask = b.input("mask", F32, &[2, 1, 1, 4]).unwrap();
    let scores = b.binary(Function::Add, scores, mask).unwrap();
    let scores = b.reshape(scores, &[2 * HEADS, 4, 4]).unwrap();
    let weights = b.softmax(scores, 2, false).unwrap();
    let made = b.matmul(weights, v).unwrap();
    b.output("out", made);
    let images = attention(&optimized(b.finish().unwrap()));
    assert_eq!((images.batch, images.mask, images.mask_batches), (2.into(), Mask::Batch, None));
}

#[test]
fn masks_repeat_as_they_are_given() {
    type Case<'a> = (&'a [&'a [u64]], Mask, Option<u64>);
    let cases: [Case<'_>; 6] = [
        (&[&[HEADS, 4, 4]], Mask::Full, Some(1)),
        (&[&[3, 1, 4, 4]], Mask::Batch, Some(3)),
        (&[&[3, 1, 1, 4]], Mask::Batch, Some(3)),
        (&[&[HEADS, 4, 4], &[3, 1, 4, 4]], Mask::Full, Some(3)),
        (&[&[2, 1, 1, 4, 4]], Mask::Batch, None),
        (&[&[4, 1]], Mask::Shared, None),
    ];
    for (added, mask, batches) in cases {
        let graph = windows(2, added);
        let made = attention(&graph);
        assert_eq!((made.mask, made.mask_batches), (mask, batches.map(Size::from)), "{added:?} {graph}");
    }
}

#[test]
fn attention_between_channels_is_two_products() {
    let mut b = Builder::new();
    let [q, k, v] = ["q", "k", "v"].map(|name| b.input(name, F32, &[1, HEADS, 6, 49]).unwrap());
    let k = b.transpose(k, &[0, 1, 3, 2]).unwrap();
    let scores = b.matmul(q, k).unwrap();
    let weights = b.softmax(scores, 3, false).unwrap();
    let made = b.matmul(weights, v).unwrap();
    b.output("out", made);
    let graph = optimized(b.finish().unwrap());
    assert!(!kernels(&graph).iter().any(|op| matches!(op, Operation::Attention(_))), "{graph}");
}

#[test]
fn queries_and_keys_that_are_scaled_before() {
    let export =
        Export { scale: |b, [q, k, v]| [scaled(b, q, 0.5), scaled(b, k, 0.5), v], ..Export::plain(3, 3) };
    let graph = optimized(export.graph());
    assert_eq!(attention(&graph).scale, Some(Exact(0.25)));
    assert_eq!(kernels(&graph).len(), 1, "{graph}");
}

#[test]
fn queries_that_are_scaled_before_their_heads_are_split() {
    for is_read_twice in [false, true] {
        let mut b = Builder::new();
        let x = b.input("x", F32, &[1, 3, HEADS * DIM]).unwrap();
        let bias = b.input("bias", F32, &[HEADS * DIM]).unwrap();
        let [k, v] = ["k", "v"].map(|name| b.input(name, F32, &[1, 5, HEADS * DIM]).unwrap());
        let q = b.binary(Function::Add, x, bias).unwrap();
        let q = scaled(&mut b, q, 0.5);
        let other = b.unary(Function::Exp, q).unwrap();
        let [q, k, v] = [(q, 3), (k, 5), (v, 5)].map(|(x, len)| Export::split(&mut b, x, HEADS, len));
        let k = b.transpose(k, &[0, 1, 3, 2]).unwrap();
        let scores = b.matmul(q, k).unwrap();
        let weights = b.softmax(scores, 3, false).unwrap();
        let made = b.matmul(weights, v).unwrap();
        b.output("out", made);
        if is_read_twice {
            b.output("other", other);
        }
        let graph = optimized(b.finish().unwrap());
        // What others read as well stays scaled.
        let scale = if is_read_twice { 1.0 } else { 0.5 };
        assert_eq!(attention(&graph).scale, Some(Exact(scale)), "{graph}");
        let adds = kernels(&graph)
            .iter()
            .any(|op| matches!(op, Operation::Elementwise(e) if e.program.to_string().contains("mul")));
        assert_eq!(adds, is_read_twice, "{graph}");
    }
}

/// As models with 16-bit weights compute it: scores get their mask, and the softmax is computed, with 32 bits.
#[test]
fn a_softmax_with_more_bits_than_the_products() {
    for masked in [false, true] {
        let mut b = Builder::new();
        let half: crate::graph::ElementType = DType::F16.into();
        let [q, k, v] = [("q", 3), ("k", 5), ("v", 5)]
            .map(|(name, len)| (b.input(name, half, &[1, len, HEADS * DIM]).unwrap(), len))
            .map(|(x, len)| Export::split(&mut b, x, HEADS, len));
        let k = b.transpose(k, &[0, 1, 3, 2]).unwrap();
        let scores = b.matmul(q, k).unwrap();
        let by = b.float(DType::F16, 0.5).unwrap();
        let scores = b.binary(Function::Mul, scores, by).unwrap();
        let mut scores = b.cast(scores, DType::F32).unwrap();
        if masked {
            let mask = b.input("mask", F32, &[1, 1, 3, 5]).unwrap();
            scores = b.binary(Function::Add, scores, mask).unwrap();
        }
        let weights = b.softmax(scores, 3, false).unwrap();
        let weights = b.cast(weights, DType::F16).unwrap();
        let made = b.matmul(weights, v).unwrap();
        b.output("out", made);
        let mut graph = b.finish().unwrap();
        // Weights are not rounded between softmax and product: results are nearer to what the model means, and so not the same.
        crate::passes::optimize(&mut graph).unwrap();
        let attention = attention(&graph);
        assert_eq!((attention.dtype, attention.scale), (DType::F16, Some(Exact(0.5))), "{graph}");
        assert_eq!(attention.mask, if masked { Mask::Shared } else { Mask::None });
    }
}

#[test]
fn conversions_that_change_nothing_are_no_kernels() {
    let mut b = Builder::new();
    let x = b.input("x", DType::F16.into(), &[8]).unwrap();
    let wide = b.cast(x, DType::F32).unwrap();
    let y = b.unary(Function::Exp, wide).unwrap();
    let y = b.cast(y, DType::F16).unwrap();
    b.output("y", y);
    let graph = optimized(b.finish().unwrap());
    let [Operation::Elementwise(only)] = &kernels(&graph)[..] else { panic!("{graph}") };
    assert_eq!(
        only.program.nodes.iter().filter(|node| node.function == Function::Cast).count(),
        0,
        "{graph}"
    );
}

#[test]
fn repeated_heads_are_read_once() {
    let export = Export { kv_heads: 2, ..Export::plain(1, 6) };
    let graph = optimized(export.graph());
    assert_eq!((attention(&graph).kv_heads, attention(&graph).heads), (Some(2), HEADS));
    // No copy repeats heads, or brings keys and values to theirs.
    assert_eq!(kernels(&graph).len(), 1, "{graph}");
}

#[test]
fn constant_masks_of_the_past_need_no_tensor() {
    for (queries, keys) in [(4, 4), (3, 9), (1, 5)] {
        for nothing in [f64::NEG_INFINITY, f64::from(f32::MIN)] {
            let mut graph = Export::plain(queries, keys).graph();
            assert!(!attention(&optimized(graph.clone())).causal);
            let export = Export {
                mask: if nothing.is_finite() {
                    |b, scores, sizes| {
                        let mask = band(b, sizes, f64::from(f32::MIN));
                        b.binary(Function::Add, mask, scores).unwrap()
                    }
                } else {
                    |b, scores, sizes| {
                        let mask = band(b, sizes, f64::NEG_INFINITY);
                        b.binary(Function::Add, scores, mask).unwrap()
                    }
                },
                ..Export::plain(queries, keys)
            };
            graph = optimized(export.graph());
            let attention = attention(&graph);
            // One query sees all keys.
            assert_eq!((attention.causal, attention.mask), (queries > 1, Mask::None), "{graph}");
        }
    }
}

#[test]
fn a_causal_mask_may_have_the_lowest_number_of_halves() {
    let lowest = Export {
        mask: |b, scores, sizes| {
            let mask = band(b, sizes, -65504.0);
            b.binary(Function::Add, scores, mask).unwrap()
        },
        ..Export::plain(4, 6)
    };
    assert!(attention(&optimized(lowest.graph())).causal);
    // Ten thousand less may leave a weight.
    let higher = Export {
        mask: |b, scores, sizes| {
            let mask = band(b, sizes, -10000.0);
            b.binary(Function::Add, scores, mask).unwrap()
        },
        ..Export::plain(4, 6)
    };
    assert!(!attention(&optimized(higher.graph())).causal);
}

#[test]
fn a_causal_mask_may_be_written_for_each_head() {
    let same = Export { mask: |b, scores, sizes| masked_heads(b, scores, sizes, 0), ..Export::plain(4, 6) };
    let same = attention(&optimized(same.graph()));
    assert_eq!((same.causal, same.mask), (true, Mask::None));
    let other = Export { mask: |b, scores, sizes| masked_heads(b, scores, sizes, 1), ..Export::plain(4, 6) };
    let other = attention(&optimized(other.graph()));
    assert_eq!((other.causal, other.mask), (false, Mask::Full));
}

/// Scores with the causal mask of each head; the last query of the last head sees `hidden` keys less.
fn masked_heads(b: &mut Builder, scores: TensorId, [queries, keys]: [u64; 2], hidden: u64) -> TensorId {
    let value = |row: u64, key: u64| {
        let more = if row + 1 == HEADS * queries { hidden } else { 0 };
        if key + queries + more <= keys + row % queries { 0.0 } else { f64::NEG_INFINITY }
    };
    let values = (0..HEADS * queries).flat_map(|row| (0..keys).map(move |key| value(row, key))).collect();
    let mask = b.values(DType::F32, &[1, HEADS, queries, keys], &Values::Float(values)).unwrap();
    b.binary(Function::Add, scores, mask).unwrap()
}

#[test]
fn a_causal_mask_may_be_computed_of_places() {
    // As exporters write it: places are compared, the truths expanded to all heads and replaced by what is added. There are too
    // many to be constants from the start.
    let export = Export {
        mask: |b, scores, [queries, keys]| {
            let places = |count: u64| Values::Int((0..count as i64).collect());
            let key = b.values(DType::I64, &[1, 1, 1, keys], &places(keys)).unwrap();
            let query = b.values(DType::I64, &[1, 1, queries, 1], &places(queries)).unwrap();
            let truth = crate::graph::ElementType::Bool;
            let seen = b.map(&[key, query], truth, |p, x| p.call(Function::Le, &[x[0], x[1]])).unwrap();
            let seen = b.expand(seen, &[1, HEADS, queries, keys]).unwrap();
            let hidden = f32::NEG_INFINITY.into();
            let mask = b.map(&[seen], F32, |p, x| p.call(Function::Select, &[x[0], 0.0.into(), hidden]));
            b.binary(Function::Add, scores, mask.unwrap()).unwrap()
        },
        ..Export::plain(257, 257)
    };
    let attention = attention(&optimized(export.graph()));
    assert_eq!((attention.causal, attention.mask), (true, Mask::None));
}

#[test]
fn scores_that_a_condition_replaces() {
    let export = Export {
        mask: |b, scores, [queries, keys]| {
            let mask = b.input("mask", F32, &[1, HEADS, queries, keys]).unwrap();
            b.map(&[scores, mask], DType::F32, |p, x| {
                // Every query keeps some keys.
                let kept = p.call(Function::Lt, &[x[1], 0.5.into()]);
                let kept = p.cast(Type::Bool, kept);
                let scaled = p.call(Function::Div, &[x[0], 4.0.into()]);
                p.call(Function::Select, &[kept, scaled, (-1e10).into()])
            })
            .unwrap()
        },
        ..Export::plain(6, 5)
    };
    let graph = optimized(export.graph());
    let attention = attention(&graph);
    assert_eq!((attention.mask, attention.scale), (Mask::Full, Some(Exact(0.25))));
}

#[test]
fn what_is_no_attention_stays() {
    // Another reader of the weights, and scores that are squared.
    let mut b = Builder::new();
    let [q, k, v] = ["q", "k", "v"].map(|name| b.input(name, F32, &[2, 4, 8]).unwrap());
    let scores = b.product(q, k, true).unwrap();
    let weights = b.softmax(scores, 2, false).unwrap();
    let made = b.matmul(weights, v).unwrap();
    b.output("out", made);
    b.output("weights", weights);
    let squares = b.binary(Function::Mul, scores, scores).unwrap();
    let weights = b.softmax(squares, 2, false).unwrap();
    let other = b.matmul(weights, v).unwrap();
    b.output("other", other);
    let graph = optimized(b.finish().unwrap());
    assert!(!kernels(&graph).iter().any(|op| matches!(op, Operation::Attention(_))), "{graph}");
}

#[test]
fn keys_that_lie_as_the_operation_wants_them() {
    let mut b = Builder::new();
    let [q, k, v] = ["q", "k", "v"].map(|name| b.input(name, F32, &[2, 4, 8]).unwrap());
    let scores = b.product(q, k, true).unwrap();
    let weights = b.softmax(scores, 2, false).unwrap();
    let made = b.matmul(weights, v).unwrap();
    b.output("out", made);
    let graph = optimized(b.finish().unwrap());
    assert_eq!(
        (attention(&graph).heads, attention(&graph).batch, kernels(&graph).len()),
        (2, 1.into(), 1),
        "{graph}"
    );
}

#[test]
fn factors_of_scores_go_into_queries() {
    // Of heads, as in Swin V2, of queries, and of all as a tensor of one element; with and without a mask. Factors of keys stay.
    type Case<'a> = (&'a [u64], Function, Option<&'a [u64]>, bool);
    let cases: [Case<'_>; 6] = [
        (&[HEADS, 1, 1], Function::Mul, None, true),
        (&[HEADS, 1, 1], Function::Mul, Some(&[HEADS, 4, 5]), true),
        (&[2, 1, 4, 1], Function::Mul, Some(&[4, 5]), true),
        (&[1, 1, 1, 1], Function::Mul, None, true),
        (&[HEADS, 1, 5], Function::Mul, None, false),
        (&[HEADS, 1, 1], Function::Max, None, false),
    ];
    for (dims, function, mask, is_attention) in cases {
        let mut b = Builder::new();
        let q = b.input("q", F32, &[2, HEADS, 4, DIM]).unwrap();
        let [k, v] = ["k", "v"].map(|name| b.input(name, F32, &[2, HEADS, 5, DIM]).unwrap());
        let k = b.transpose(k, &[0, 1, 3, 2]).unwrap();
        let scores = b.matmul(q, k).unwrap();
        let factor = b.input("factor", F32, dims).unwrap();
        let mut scores = b.binary(function, scores, factor).unwrap();
        if let Some(dims) = mask {
            let mask = b.input("mask", F32, dims).unwrap();
            scores = b.binary(Function::Add, scores, mask).unwrap();
        }
        let weights = b.softmax(scores, 3, false).unwrap();
        let made = b.matmul(weights, v).unwrap();
        b.output("out", made);
        let graph = optimized(b.finish().unwrap());
        let found = kernels(&graph).iter().any(|op| matches!(op, Operation::Attention(_)));
        assert_eq!(found, is_attention, "{dims:?} {mask:?} {graph}");
    }
}
