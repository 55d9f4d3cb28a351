//! Operators of `com.microsoft` beside what they mean, computed here.

use halite_ops::Values;

use super::{
    Model,
    encode::{
        FLOAT, INT32, INT64, Message, float, floats, graph, int, ints, model, node, port, tensor, text,
    },
};
use crate::signature::Bindings;

const UINT8: i64 = 2;
const INT8: i64 = 3;

/// Data of a node: its name, type, dimensions and elements.
pub(super) struct Given<'a> {
    name: &'a str,
    kind: i64,
    dims: Vec<i64>,
    values: Values,
}

pub(super) fn given<'a>(name: &'a str, dims: &[i64], values: &[f32]) -> Given<'a> {
    let values = Values::Float(values.iter().map(|v| f64::from(*v)).collect());
    Given { name, kind: FLOAT, dims: dims.to_vec(), values }
}

pub(super) fn codes<'a>(
    name: &'a str,
    kind: i64,
    dims: &[i64],
    values: impl IntoIterator<Item = i64>,
) -> Given<'a> {
    Given { name, kind, dims: dims.to_vec(), values: Values::Int(values.into_iter().collect()) }
}

impl Given<'_> {
    pub(super) fn constant(&self) -> Message {
        let bytes: Vec<u8> = match (&self.values, self.kind) {
            (Values::Int(all), UINT8 | INT8) => all.iter().map(|v| *v as u8).collect(),
            (Values::Int(all), INT64) => all.iter().flat_map(|v| v.to_le_bytes()).collect(),
            (Values::Int(all), _) => all.iter().flat_map(|v| (*v as i32).to_le_bytes()).collect(),
            (values, _) => floats(values.floats().into_iter().map(|v| v as f32)),
        };
        tensor(self.name, self.kind, &self.dims, &bytes)
    }
}

/// The first result of an operator; its inputs but for those in `constants` come with the call.
pub(super) fn run(
    operator: &str,
    inputs: &[Given<'_>],
    constants: &[Given<'_>],
    order: &[&str],
    attributes: &[Message],
) -> Vec<f64> {
    let kind = if operator.starts_with("com.microsoft:QLinear") || operator.contains("NhwcMax") {
        UINT8
    } else {
        FLOAT
    };
    let node = node(operator, order, &["y"], attributes);
    let constants: Vec<Message> = constants.iter().map(Given::constant).collect();
    let ports: Vec<Message> = inputs.iter().map(|own| port(own.name, own.kind, &own.dims)).collect();
    let bytes = model(&graph(&[node], &constants, &ports, &[port("y", kind, &[])]), &[]);
    let graph = Model::from_bytes(bytes).unwrap().graph(&Bindings::default()).unwrap();
    let values: Vec<Values> = inputs.iter().map(|own| own.values.clone()).collect();
    graph.evaluate(&values).unwrap()[0].floats()
}

/// Numbers between -1 and 1 that look drawn.
pub(super) fn drawn(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

pub(super) fn near(found: &[f64], wanted: &[f64]) {
    assert_eq!(found.len(), wanted.len());
    let most = wanted.iter().fold(1e-3f64, |most, v| most.max(v.abs()));
    for (a, b) in found.iter().zip(wanted) {
        assert!((a - b).abs() <= 2e-5 * most, "{found:?} for {wanted:?}");
    }
}

const EXPERTS: usize = 3;
const WIDTH: usize = 32;
const ROWS: usize = 4;

/// What a mixture of experts with two for each row is; weights are `[experts, rows, length]`.
struct Mixture {
    x: Vec<f32>,
    router: Vec<f32>,
    up: Vec<f32>,
    down: Vec<f32>,
    bias: Vec<f32>,
    /// Rows of the first weights of an expert.
    wide: usize,
}

impl Mixture {
    fn drawn(wide: usize, inner: usize) -> Mixture {
        Mixture {
            x: drawn(ROWS * WIDTH, 1),
            router: drawn(ROWS * EXPERTS, 2),
            up: drawn(EXPERTS * wide * WIDTH, 3),
            down: drawn(EXPERTS * WIDTH * inner, 4),
            bias: drawn(EXPERTS * wide, 5),
            wide,
        }
    }

    /// The result; `bend` makes the numbers between the layers.
    fn result(&self, normed: bool, bend: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
        let mut made = Vec::new();
        for row in 0..ROWS {
            let x = &self.x[row * WIDTH..][..WIDTH];
            let router: Vec<f64> =
                self.router[row * EXPERTS..][..EXPERTS].iter().map(|v| f64::from(*v).exp()).collect();
            let mut order: Vec<usize> = (0..EXPERTS).collect();
            order.sort_by(|a, b| router[*b].total_cmp(&router[*a]));
            let chosen = &order[..2];
            let whole: f64 =
                if normed { chosen.iter().map(|e| router[*e]).sum() } else { router.iter().sum() };
            let mut sum = vec![0.0; WIDTH];
            for expert in chosen {
                let hidden: Vec<f64> = (0..self.wide)
                    .map(|at| {
                        let weights = &self.up[(expert * self.wide + at) * WIDTH..][..WIDTH];
                        let product: f64 =
                            x.iter().zip(weights).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                        product + f64::from(self.bias[expert * self.wide + at])
                    })
                    .collect();
                let hidden = bend(&hidden);
                for (at, sum) in sum.iter_mut().enumerate() {
                    let weights = &self.down[(expert * WIDTH + at) * hidden.len()..][..hidden.len()];
                    let product: f64 = hidden.iter().zip(weights).map(|(a, b)| a * f64::from(*b)).sum();
                    *sum += router[*expert] / whole * product;
                }
            }
            made.extend(sum);
        }
        made
    }

    fn rows(&self) -> Vec<Given<'_>> {
        vec![
            given("x", &[2, 2, WIDTH as i64], &self.x),
            given("r", &[ROWS as i64, EXPERTS as i64], &self.router),
        ]
    }
}

#[test]
fn mixtures_of_experts_have_the_best_of_a_router() {
    let own = Mixture::drawn(WIDTH, WIDTH);
    let wanted = own.result(true, |h| h.iter().map(|v| v.max(0.0)).collect());
    let dims = [EXPERTS as i64, WIDTH as i64, WIDTH as i64];
    let weights = || {
        vec![
            given("up", &dims, &own.up),
            given("bias", &dims[..2], &own.bias),
            given("down", &dims, &own.down),
        ]
    };
    let order = ["x", "r", "up", "bias", "down"];
    let attributes = [int("k", 2), int("normalize_routing_weights", 1)];
    // Weights that are known stay where they are; of others all products are made.
    near(&run("com.microsoft:MoE", &own.rows(), &weights(), &order, &attributes), &wanted);
    let all: Vec<Given<'_>> = own.rows().into_iter().chain(weights()).collect();
    near(&run("com.microsoft:MoE", &all, &[], &order, &attributes), &wanted);
}

#[test]
fn gates_of_experts_lie_between_or_behind_the_others() {
    let own = Mixture::drawn(2 * WIDTH, WIDTH);
    let gated = |gate: f64, other: f64| {
        let (gate, other) = (gate.min(1.5), other.clamp(-1.5, 1.5));
        gate / (1.0 + (-1.7 * gate).exp()) * (other + 1.0)
    };
    let dims = [EXPERTS as i64, 2 * WIDTH as i64, WIDTH as i64];
    let down = [EXPERTS as i64, WIDTH as i64, WIDTH as i64];
    let weights =
        [given("up", &dims, &own.up), given("bias", &dims[..2], &own.bias), given("down", &down, &own.down)];
    for fusion in [1, 2] {
        let wanted = own.result(false, |h| {
            let pair =
                |at: usize| if fusion == 1 { (h[2 * at], h[2 * at + 1]) } else { (h[at], h[at + WIDTH]) };
            (0..WIDTH).map(|at| gated(pair(at).0, pair(at).1)).collect()
        });
        let limits =
            [float("swiglu_limit", 1.5), float("activation_alpha", 1.7), float("activation_beta", 1.0)];
        let more = [int("k", 2), int("swiglu_fusion", fusion), text("activation_type", "swiglu")];
        let attributes: Vec<Message> = limits.into_iter().chain(more).collect();
        let order = ["x", "r", "up", "bias", "down"];
        near(&run("com.microsoft:MoE", &own.rows(), &weights, &order, &attributes), &wanted);
    }
}

/// Weights in codes: packed bytes, scales, zero points, and what they stand for.
fn coded(
    bits: usize,
    rows: usize,
    block: usize,
    exact: bool,
    with_zeros: bool,
) -> (Vec<i64>, Vec<f32>, Option<Vec<i64>>, Vec<f32>) {
    let groups = WIDTH / block;
    let bytes: Vec<i64> =
        drawn(rows * WIDTH * bits / 8, rows as u32).iter().map(|v| ((v + 1.0) * 127.9) as i64).collect();
    let scales: Vec<f32> = drawn(rows * groups, 9)
        .iter()
        .map(|v| if exact { (v * 8.0).round() / 64.0 + 0.25 } else { v * 0.1 + 0.2 })
        .collect();
    let each = (groups * bits).div_ceil(8);
    let zeros = with_zeros.then(|| (0..rows * each).map(|at| (at * 53 % 256) as i64).collect::<Vec<i64>>());
    let code =
        |bytes: &[i64], at: usize| if bits == 4 { bytes[at / 2] >> (at % 2 * 4) & 15 } else { bytes[at] };
    let meant = (0..rows * WIDTH).map(|at| {
        let (row, group) = (at / WIDTH, at % WIDTH / block);
        let zero = zeros.as_ref().map_or(1 << (bits - 1), |zeros| code(&zeros[row * each..], group));
        (code(&bytes, at) - zero) as f32 * scales[row * groups + group]
    });
    let meant = meant.collect();
    (bytes, scales, zeros, meant)
}

#[test]
fn experts_in_codes_are_what_codes_stand_for() {
    for (bits, block, exact, with_zeros) in [
        (4, 32, false, false),
        (8, 32, false, false),
        (4, 16, false, false),
        (4, 16, false, true),
        (8, 16, true, true),
        (8, 16, false, false),
        (4, 0, true, false),
        (8, 0, false, false),
    ] {
        let (size, rows) = (if block == 0 { WIDTH } else { block }, EXPERTS * WIDTH);
        let (bytes, scales, zeros, meant) = coded(bits, rows, size, exact, with_zeros);
        let own = Mixture { up: meant.clone(), down: meant, ..Mixture::drawn(WIDTH, WIDTH) };
        let wanted = own.result(true, |h| h.iter().map(|v| v / (1.0 + (-v).exp())).collect());
        let (e, w) = (EXPERTS as i64, WIDTH as i64);
        let packed = [e, w, w * bits as i64 / 8];
        let of_scales = if block == 0 { vec![e, w] } else { vec![e, w, (WIDTH / size) as i64] };
        let own_zeros =
            |name| zeros.as_ref().map(|z| codes(name, UINT8, &[e, w, z.len() as i64 / (e * w)], z.clone()));
        let weights = || {
            let mut all = vec![
                codes("up", UINT8, &packed, bytes.clone()),
                given("us", &of_scales, &scales),
                given("bias", &[e, w], &own.bias),
                codes("down", UINT8, &packed, bytes.clone()),
                given("ds", &of_scales, &scales),
            ];
            all.extend([own_zeros("uz"), own_zeros("dz")].into_iter().flatten());
            all
        };
        let mut order = vec!["x", "r", "up", "us", "bias", "down", "ds"];
        if zeros.is_some() {
            order.extend(["", "", "", "", "uz", "dz"]);
        }
        let mut attributes = vec![
            int("k", 2),
            int("normalize_routing_weights", 1),
            int("expert_weight_bits", bits as i64),
            text("activation_type", "silu"),
        ];
        if block != 0 {
            attributes.push(int("block_size", block as i64));
        }
        near(&run("com.microsoft:QMoE", &own.rows(), &weights(), &order, &attributes), &wanted);
        let all: Vec<Given<'_>> = own.rows().into_iter().chain(weights()).collect();
        near(&run("com.microsoft:QMoE", &all, &[], &order, &attributes), &wanted);
    }
}

/// `[1, channels, 4, 4]` with channels last.
pub(super) fn turned<T: Copy>(values: &[T], channels: usize) -> Vec<T> {
    (0..values.len()).map(|at| values[at % channels * (values.len() / channels) + at / channels]).collect()
}

#[test]
fn groups_of_channels_are_normalized_wherever_channels_are() {
    let (x, skip, bias) = (drawn(64, 1), drawn(64, 2), drawn(4, 3));
    let (scale, shift) = (drawn(4, 4), drawn(4, 5));
    let sum: Vec<f64> =
        (0..64).map(|at| f64::from(x[at]) + f64::from(skip[at]) + f64::from(bias[at / 16])).collect();
    let mut wanted = Vec::new();
    for (group, own) in sum.chunks(32).enumerate() {
        let mean = own.iter().sum::<f64>() / 32.0;
        let variance = own.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 32.0;
        wanted.extend(own.iter().enumerate().map(|(at, v)| {
            let channel = group * 2 + at / 16;
            let y =
                (v - mean) / (variance + 1e-5).sqrt() * f64::from(scale[channel]) + f64::from(shift[channel]);
            y / (1.0 + (-y).exp())
        }));
    }
    let vectors = || [given("g", &[4], &scale), given("b", &[4], &shift), given("c", &[4], &bias)];
    let order = ["x", "g", "b", "s", "c"];
    let attributes = |last| [int("groups", 2), int("activation", 1), int("channels_last", last)];
    let inputs = [given("x", &[1, 4, 4, 4], &x), given("s", &[1, 4, 4, 4], &skip)];
    near(&run("com.microsoft:SkipGroupNorm", &inputs, &vectors(), &order, &attributes(0)), &wanted);
    let (x, skip) = (turned(&x, 4), turned(&skip, 4));
    let inputs = [given("x", &[1, 4, 4, 4], &x), given("s", &[1, 4, 4, 4], &skip)];
    let found = run("com.microsoft:SkipGroupNorm", &inputs, &vectors(), &order, &attributes(1));
    near(&found, &turned(&wanted, 4));
}

#[test]
fn convolutions_and_pools_with_channels_last_are_those_with_channels_second() {
    let (x, w) = (drawn(64, 1), drawn(6 * 4 * 9, 2));
    let pads = [ints("pads", &[1, 1, 1, 1])];
    let plain =
        run("Conv", &[given("x", &[1, 4, 4, 4], &x)], &[given("w", &[6, 4, 3, 3], &w)], &["x", "w"], &pads);
    let filters: Vec<f32> = w.chunks(36).flat_map(|own| turned(own, 4)).collect();
    let last = [given("x", &[1, 4, 4, 4], &turned(&x, 4))];
    let found =
        run("com.microsoft:NhwcConv", &last, &[given("w", &[6, 3, 3, 4], &filters)], &["x", "w"], &pads);
    near(&found, &turned(&plain, 6));

    let bytes: Vec<i64> = x.iter().map(|v| ((v + 1.0) * 127.9) as i64).collect();
    let weights = || {
        let all = w.iter().map(|v| (v * 127.0) as i64);
        let number = |name, value| given(name, &[], &[value]);
        let zero = |name, value| codes(name, UINT8, &[], [value]);
        [
            number("xs", 0.1),
            zero("xz", 120),
            codes("w", INT8, &[6, 4, 3, 3], all),
            number("ws", 0.05),
            codes("wz", INT8, &[], [0]),
            number("ys", 0.9),
            zero("yz", 7),
        ]
    };
    let order = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"];
    let first = [codes("x", UINT8, &[1, 4, 4, 4], bytes.clone())];
    let plain = run("com.microsoft:QLinearConv", &first, &weights(), &order, &pads);
    let last = [codes("x", UINT8, &[1, 4, 4, 4], turned(&bytes, 4))];
    let attributes = [ints("pads", &[1, 1, 1, 1]), int("channels_last", 1)];
    let found = run("com.microsoft:QLinearConv", &last, &weights(), &order, &attributes);
    assert_eq!(found, turned(&plain, 6));
    let pooled = run("com.microsoft:NhwcMaxPool", &last, &[], &["x"], &[ints("kernel_shape", &[4, 4])]);
    let most: Vec<f64> = bytes.chunks(16).map(|own| own.iter().copied().max().unwrap_or(0) as f64).collect();
    assert_eq!(pooled, most);
}

#[test]
fn operators_under_other_names_run() {
    let x = given("x", &[2, 4], &[1.0, 2.0, 0.5, -1.0, 0.0, 3.0, 2.0, 0.0]);
    let b = given("b", &[4], &[0.0, 0.0, 0.5, 1.0]);
    let gelu = |v: f64| {
        [(0.0, 0.0), (1.0, 0.841_344_746), (2.0, 1.954_499_736), (2.5, 2.484_475_837)]
            .into_iter()
            .find(|p| p.0 == v)
            .unwrap()
            .1
    };
    let found = run("com.microsoft:BiasSplitGelu", &[x], &[b], &["x", "b"], &[]);
    near(&found, &[gelu(1.0), 0.0, 0.0, 3.0 * gelu(1.0)]);
    let rows = [given("a", &[2, 2], &[0.0, 0.0, 3.0, 4.0]), given("b", &[1, 2], &[3.0, 0.0])];
    let distances = run("com.microsoft:CDist", &rows, &[], &["a", "b"], &[text("metric", "euclidean")]);
    near(&distances, &[3.0, 4.0]);
    let axis = [codes("axis", INT32, &[], [1])];
    let x = || [given("x", &[2, 2], &[1.0, 2.0, 3.0, 4.0])];
    near(&run("com.microsoft:ExpandDims", &x(), &axis, &["x", "axis"], &[]), &[1.0, 2.0, 3.0, 4.0]);
    near(&run("com.microsoft:Trilu", &x(), &[], &["x"], &[int("upper", 0)]), &[1.0, 0.0, 3.0, 4.0]);
    let more = [given("b", &[2], &[1.0, 1.0]), given("s", &[2], &[0.0, 10.0])];
    near(&run("com.microsoft:BiasAdd", &x(), &more, &["x", "b", "s"], &[]), &[2.0, 13.0, 4.0, 15.0]);
}

#[test]
fn weights_that_are_places_in_a_table_have_factors_for_blocks() {
    // Places 0, 15, 7, 14 of the first row, 3, 3, 1, 9 of the second; the higher half of a byte first.
    let packed = || codes("w", UINT8, &[4], [0x0f, 0x7e, 0x33, 0x19]);
    let scales = || given("s", &[4], &[2.0, 1.0, 0.5, 4.0]);
    let sizes = |kind| [int("K", 4), int("N", 2), int("block_size", 2), int("quant_type", kind)];
    let x = || [given("x", &[1, 4], &[1.0, 10.0, 100.0, 1000.0])];
    let found = run("com.microsoft:MatMulBnb4", &x(), &[packed(), scales()], &["x", "w", "s"], &sizes(1));
    let second = -0.394_917_488 * 0.5 * 11.0 + 4.0 * (-69.619_280_1 + 160.930_201_4);
    near(&found, &[-2.0 + 20.0 + 722.956_836_2, second]);
    let found = run("com.microsoft:MatMulBnb4", &x(), &[packed(), scales()], &["x", "w", "s"], &sizes(0));
    let second = 0.5 * 11.0 + 4.0 * (0.520_833_333 - 5.208_333_333);
    near(&found, &[-5.0 + 25.0 - 1000.0 / 6.0, second]);
}

#[test]
fn embeddings_of_codes_are_those_of_what_they_stand_for() {
    let table = |seed: u32, rows: i64| -> Vec<i64> {
        drawn(rows as usize * 4, seed).iter().map(|v| ((v + 1.0) * 127.9) as i64).collect()
    };
    let parts = [
        ("w", vec![5, 4], table(1, 5)),
        ("p", vec![3, 4], table(2, 3)),
        ("t", vec![2, 4], table(3, 2)),
        ("g", vec![4], table(4, 1)),
        ("b", vec![4], table(5, 1)),
    ];
    let inputs =
        || [codes("i", INT32, &[2, 3], [4, 0, 2, 1, 1, 3]), codes("u", INT32, &[2, 3], [0, 1, 0, 1, 1, 0])];
    let mut constants: Vec<Given<'_>> =
        parts.iter().map(|(name, dims, all)| codes(name, UINT8, dims, all.clone())).collect();
    constants.extend(
        ["s0", "s1", "s2", "s3", "s4"]
            .into_iter()
            .zip([0.1, 0.2, 0.05, 0.02, 0.01])
            .map(|(name, scale)| given(name, &[], &[scale])),
    );
    constants.extend(
        ["z0", "z1", "z2", "z3", "z4"]
            .into_iter()
            .zip([128, 100, 3, 90, 120])
            .map(|(name, zero)| codes(name, UINT8, &[], [zero])),
    );
    let order =
        ["i", "u", "w", "p", "t", "g", "b", "", "s0", "s1", "s2", "s3", "s4", "z0", "z1", "z2", "z3", "z4"];
    let found = run("com.microsoft:QEmbedLayerNormalization", &inputs(), &constants, &order, &[]);
    let meant = parts.iter().zip([(0.1, 128), (0.2, 100), (0.05, 3), (0.02, 90), (0.01, 120)]).map(
        |((name, dims, all), (scale, zero))| {
            let floats: Vec<f32> = all.iter().map(|code| (code - zero) as f32 * scale).collect();
            given(name, dims, &floats)
        },
    );
    let wanted =
        run("com.microsoft:EmbedLayerNormalization", &inputs(), &meant.collect::<Vec<_>>(), &order[..7], &[]);
    near(&found, &wanted);
}

/// Codes of so many bits in a byte each, as `MatMulNBits` packs rows of them.
fn packed(codes: &[i64], bits: usize) -> Vec<i64> {
    let join = |all: &[i64]| all.iter().rev().fold(0, |byte, code| byte << bits | code);
    codes.chunks(8 / bits).map(join).collect()
}

#[test]
fn products_of_codes_have_zero_points_of_bytes_or_floats() {
    let (rows, length, block) = (3, 40, 16);
    let blocks = 3;
    let x = drawn(2 * length, 7);
    let scales: Vec<f32> = drawn(rows * blocks, 8).iter().map(|v| v * 0.1 + 0.2).collect();
    for (bits, zeros) in [(2, None), (2, Some(true)), (2, Some(false)), (4, Some(false)), (8, Some(false))] {
        let most = (1 << bits) as f32;
        let own: Vec<i64> =
            drawn(rows * blocks * block, 9).iter().map(|v| ((v + 1.0) * 0.49 * most) as i64).collect();
        let middle = [f64::from(most) / 2.0; 9];
        let bytes = [1, 2, 0, 3, 1, 1, 2, 2, 0];
        let drawn: Vec<f32> = drawn(9, 10).into_iter().map(|v| v + most / 3.0).collect();
        let mut constants = vec![
            codes("w", UINT8, &[3, 3, (block * bits / 8) as i64], packed(&own, bits)),
            given("s", &[9], &scales),
        ];
        let zero: Vec<f64> = match zeros {
            None => middle.to_vec(),
            Some(true) => {
                let lines: Vec<i64> = bytes.chunks(3).flat_map(|line| packed(line, bits)).collect();
                constants.push(codes("z", UINT8, &[3], lines));
                bytes.map(|zero| zero as f64).to_vec()
            }
            Some(false) => {
                constants.push(given("z", &[9], &drawn));
                drawn.iter().map(|zero| f64::from(*zero)).collect()
            }
        };
        let sizes = [int("K", 40), int("N", 3), int("bits", bits as i64), int("block_size", 16)];
        let order = if zeros.is_some() { &["x", "w", "s", "z"][..] } else { &["x", "w", "s"] };
        let found = run("com.microsoft:MatMulNBits", &[given("x", &[2, 40], &x)], &constants, order, &sizes);
        let weight = |row: usize, k: usize| {
            let at = row * blocks + k / block;
            (own[row * blocks * block + k] as f64 - zero[at]) * f64::from(scales[at])
        };
        let wanted: Vec<f64> = (0..2 * rows)
            .map(|at| {
                let (line, row) = (at / rows, at % rows);
                (0..length).map(|k| f64::from(x[line * length + k]) * weight(row, k)).sum()
            })
            .collect();
        near(&found, &wanted);
    }
}
