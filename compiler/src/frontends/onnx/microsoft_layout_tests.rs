//! Orders of dimensions and buffers of keys that ONNX Runtime has for its own: beside plain operators that compute the same.

use halite_ops::Values;

use super::{
    Model,
    encode::{FLOAT, INT32, INT64, Message, graph, int, ints, model, node, port, tensor, text},
    microsoft_tests::{Given, codes, drawn, given, near, run, turned},
};
use crate::signature::Bindings;

const SIDE: usize = 5;
const HEADS: usize = 2;
const DIM: usize = 4;
/// Rows of a buffer, and how many of them count.
const ROOM: usize = 6;
const PAST: usize = 3;

/// The results of nodes over a picture.
fn pictured(nodes: &[Message], constants: &[Message], dims: &[i64], x: &[f32]) -> Vec<f64> {
    let (inputs, outputs) = ([port("x", FLOAT, dims)], [port("y", FLOAT, &[])]);
    let bytes = model(&graph(nodes, constants, &inputs, &outputs), &[]);
    let graph = Model::from_bytes(bytes).unwrap().graph(&Bindings::default()).unwrap();
    graph.evaluate(&[Values::Float(x.iter().map(|v| f64::from(*v)).collect())]).unwrap()[0].floats()
}

/// Filters `[made, taken, taps]` in blocks: `[made / block, taken / inner, taps, inner, block]`, filled up with zeros.
fn blocked(w: &[f32], [made, taken, taps]: [usize; 3], block: usize, inner: usize) -> (Vec<f32>, [usize; 2]) {
    let (rows, columns) = (made.next_multiple_of(block), taken.next_multiple_of(inner));
    let mut all = vec![0.0; rows * columns * taps];
    for (o, i, t) in (0..made).flat_map(|o| (0..taken).flat_map(move |i| (0..taps).map(move |t| (o, i, t)))) {
        let place = (((o / block) * (columns / inner) + i / inner) * taps + t) * inner + i % inner;
        all[place * block + o % block] = w[(o * taken + i) * taps + t];
    }
    (all, [rows, columns])
}

/// A convolution, a gate for each of 24 channels of its result, and a convolution to 6 channels, in blocks.
fn in_blocks(block: usize, x: &[f32], first: &[f32], second: &[f32]) -> Vec<f64> {
    let (w, [made, _]) = blocked(first, [24, 3, 9], block, 1);
    let (v, [last, taken]) = blocked(second, [6, 24, 1], block, block);
    let (b, t) = (block as i64, made as i64);
    let sizes = |name, dims: &[i64]| {
        let bytes: Vec<u8> = dims.iter().flat_map(|v| v.to_le_bytes()).collect();
        tensor(name, INT64, &[dims.len() as i64], &bytes)
    };
    let constants = [
        given("w", &[t, 3, 3, 3], &w).constant(),
        given("v", &[last as i64, taken as i64, 1, 1], &v).constant(),
        sizes("apart", &[0, t / b, 0, 0, b]),
        sizes("whole", &[0, t, 0, 0]),
    ];
    let own = "com.microsoft.nchwc";
    let relu = [ints("pads", &[1, 1, 1, 1]), text("activation", "Relu")];
    let nodes = [
        node(&format!("{own}:Conv"), &["x", "w"], &["c"], &relu),
        node(&format!("{own}:GlobalAveragePool"), &["c"], &["m"], &[]),
        node("Reshape", &["c", "apart"], &["c5"], &[]),
        node("Reshape", &["m", "apart"], &["m5"], &[]),
        node("Mul", &["c5", "m5"], &["p5"], &[]),
        node("Reshape", &["p5", "whole"], &["p"], &[]),
        node(&format!("{own}:Conv"), &["p", "v"], &["d"], &[]),
        node(&format!("{own}:ReorderOutput"), &["d"], &["y"], &[int("channels", 6)]),
    ];
    pictured(&nodes, &constants, &[1, 3, SIDE as i64, SIDE as i64], x)
}

#[test]
fn channels_in_blocks_are_plain_channels() {
    let (x, first, second) = (drawn(3 * SIDE * SIDE, 1), drawn(24 * 27, 2), drawn(6 * 24, 3));
    let constants =
        [given("w", &[24, 3, 3, 3], &first).constant(), given("v", &[6, 24, 1, 1], &second).constant()];
    let nodes = [
        node("Conv", &["x", "w"], &["c"], &[ints("pads", &[1, 1, 1, 1])]),
        node("Relu", &["c"], &["r"], &[]),
        node("GlobalAveragePool", &["r"], &["m"], &[]),
        node("Mul", &["r", "m"], &["p"], &[]),
        node("Conv", &["p", "v"], &["y"], &[]),
    ];
    let wanted = pictured(&nodes, &constants, &[1, 3, SIDE as i64, SIDE as i64], &x);
    near(&in_blocks(8, &x, &first, &second), &wanted);
    near(&in_blocks(16, &x, &first, &second), &wanted);
}

#[test]
fn channels_come_last_in_a_domain_of_their_own() {
    let (x, w) = (drawn(4 * SIDE * SIDE, 1), drawn(6 * 36, 2));
    let side = SIDE as i64;
    let filters = || [given("w", &[6, 4, 3, 3], &w)];
    let plain = run("Conv", &[given("x", &[1, 4, side, side], &x)], &filters(), &["x", "w"], &[]);
    let last = [given("x", &[1, side, side, 4], &turned(&x, 4))];
    let found = run("com.ms.internal.nhwc:Conv", &last, &filters(), &["x", "w"], &[]);
    near(&found, &turned(&plain, 6));
    let sides = [ints("kernel_shape", &[2, 2])];
    let plain = run("MaxPool", &[given("x", &[1, 4, side, side], &x)], &[], &["x"], &sides);
    near(&run("com.ms.internal.nhwc:MaxPool", &last, &[], &["x"], &sides), &turned(&plain, 4));
}

#[test]
fn pads_of_transposed_convolutions_may_be_an_input() {
    let (x, w) = (drawn(2 * SIDE * SIDE, 1), drawn(2 * 3 * 9, 2));
    let of = || [given("x", &[1, 2, SIDE as i64, SIDE as i64], &x)];
    let (strides, w) = (|| ints("strides", &[2, 2]), || given("w", &[2, 3, 3, 3], &w));
    let plain = run("ConvTranspose", &of(), &[w()], &["x", "w"], &[strides(), ints("pads", &[1, 0, 1, 1])]);
    let pads = codes("p", INT64, &[4], [1, 0, 1, 1]);
    let operator = "com.microsoft:ConvTransposeWithDynamicPads";
    near(&run(operator, &of(), &[w(), pads], &["x", "w", "p"], &[strides()]), &plain);
}

/// A buffer `[batch, heads, room, dim]`, and its first rows.
fn buffer(seed: u32) -> (Vec<f32>, Vec<f32>) {
    let all = drawn(2 * HEADS * ROOM * DIM, seed);
    let rows = all.chunks(ROOM * DIM).flat_map(|own| own[..PAST * DIM].to_vec()).collect();
    (all, rows)
}

fn heads() -> Message {
    int("num_heads", HEADS as i64)
}

fn four<'a>(name: &'a str, rows: usize, values: &[f32]) -> Given<'a> {
    given(name, &[2, HEADS as i64, rows as i64, DIM as i64], values)
}

/// Queries, keys and values of so many rows.
fn own(rows: usize) -> [Given<'static>; 3] {
    let width = HEADS * DIM;
    [("q", 1), ("k", 2), ("v", 3)]
        .map(|(name, seed)| given(name, &[2, rows as i64, width as i64], &drawn(2 * rows * width, seed)))
}

fn past() -> Given<'static> {
    codes("n", INT32, &[1], [PAST as i64])
}

#[test]
fn keys_in_a_buffer_are_keys_before_those_of_the_call() {
    let ((keys, some_keys), (values, some_values)) = (buffer(4), buffer(5));
    let plain = |rows, causal: i64| {
        let [q, k, v] = own(rows);
        let inputs = [q, k, v, four("pk", PAST, &some_keys), four("pv", PAST, &some_values)];
        let order = ["q", "k", "v", "", "", "", "pk", "pv"];
        run(
            "com.microsoft:MultiHeadAttention",
            &inputs,
            &[],
            &order,
            &[heads(), int("unidirectional", causal)],
        )
    };
    let shared = |rows: usize, operator: &str, order: &[&str], more: &[Message]| {
        let [q, k, v] = own(rows);
        let mut inputs = vec![q, k, v, four("pk", ROOM, &keys), four("pv", ROOM, &values), past()];
        if order.contains(&"beams") {
            inputs.push(codes("beams", INT32, &[2, 1, ROOM as i64], [0; 2 * ROOM]));
        }
        run(operator, &inputs, &[], order, more)
    };
    let order = ["q", "k", "v", "", "", "", "pk", "pv", "n"];
    for (rows, causal) in [(1, 0), (2, 0), (2, 1)] {
        let more = [heads(), int("unidirectional", causal)];
        near(&shared(rows, "com.microsoft:MultiHeadAttention", &order, &more), &plain(rows, causal));
    }
    let more = [heads(), int("past_present_share_buffer", 1)];
    let operator = "com.microsoft:DecoderMaskedMultiHeadAttention";
    for order in [
        &["q", "k", "v", "", "", "pk", "pv", "n"][..],
        &["q", "k", "v", "", "", "pk", "pv", "n", "", "beams"],
    ] {
        near(&shared(1, operator, order, &more), &plain(1, 0));
    }
}

#[test]
fn beams_read_the_rows_of_others() {
    let ((keys, _), (values, _)) = (buffer(4), buffer(5));
    let chosen: [i64; 2 * ROOM] = [1, 0, 1, 0, 0, 0, 0, 0, 1, 1, 0, 0];
    let run_with = |keys: &[f32], values: &[f32], beams: [i64; 2 * ROOM]| {
        let [q, k, v] = own(1);
        let beams = codes("beams", INT32, &[1, 2, ROOM as i64], beams);
        let inputs = [q, k, v, four("pk", ROOM, keys), four("pv", ROOM, values), past(), beams];
        let order = ["q", "k", "v", "", "", "pk", "pv", "n", "", "beams"];
        let more = [heads(), int("past_present_share_buffer", 1)];
        run("com.microsoft:DecoderMaskedMultiHeadAttention", &inputs, &[], &order, &more)
    };
    let moved = |all: &[f32]| -> Vec<f32> {
        let row = |beam: usize, head: usize, place: usize| {
            let from = chosen[beam * ROOM + place] as usize;
            let start = ((from * HEADS + head) * ROOM + place) * DIM;
            all[start..start + DIM].to_vec()
        };
        let places = (0..2 * HEADS * ROOM).map(|i| (i / ROOM / HEADS, i / ROOM % HEADS, i % ROOM));
        places.flat_map(|(beam, head, place)| row(beam, head, place)).collect()
    };
    let own_rows: [i64; 2 * ROOM] = std::array::from_fn(|i| (i / ROOM) as i64);
    near(&run_with(&keys, &values, chosen), &run_with(&moved(&keys), &moved(&values), own_rows));
}

#[test]
fn packed_attention_over_a_buffer_is_that_over_its_rows() {
    let ((keys, some_keys), (values, some_values)) = (buffer(4), buffer(5));
    let width = HEADS * DIM;
    let weights = || {
        [
            given("w", &[6, 3 * width as i64], &drawn(18 * width, 7)),
            given("b", &[3 * width as i64], &drawn(3 * width, 8)),
        ]
    };
    let both = |a: &[f32], z: &[f32], rows: usize| {
        given("p", &[2, 2, HEADS as i64, rows as i64, DIM as i64], &[a, z].concat())
    };
    let call = |operator: &str, rows: i64, past: Vec<Given<'_>>, order: &[&str], more: &[Message]| {
        let mut inputs = vec![given("x", &[2, rows, 6], &drawn(12 * rows as usize, 9))];
        inputs.extend(past);
        run(operator, &inputs, &weights(), order, &[&[heads()], more].concat())
    };
    let (plain, causal, share) =
        ("com.microsoft:Attention", || int("unidirectional", 1), || int("past_present_share_buffer", 1));
    let rows = || vec![both(&some_keys, &some_values, PAST)];
    let wanted = call(plain, 2, rows(), &["x", "w", "b", "", "p"], &[causal()]);
    let all = vec![both(&keys, &values, ROOM), past()];
    near(&call(plain, 2, all, &["x", "w", "b", "", "p", "", "n"], &[causal(), share()]), &wanted);
    // Heads of four floats are one part: keys in parts are plain keys.
    let wanted = call(plain, 1, rows(), &["x", "w", "b", "", "p"], &[]);
    let (all, order) = (vec![both(&keys, &values, ROOM), past()], ["x", "w", "b", "", "p", "", "n"]);
    near(&call("com.microsoft:DecoderMaskedSelfAttention", 1, all, &order, &[share()]), &wanted);
}
