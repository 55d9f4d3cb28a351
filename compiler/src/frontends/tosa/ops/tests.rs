//! Operators against values from the specification's pseudocode, on the host.

use bytes::Bytes;
use halite_formats::tosa::{
    Accumulator, Conv, ElementType as E, Graph, NanMode, Node, Operator, Pool, Program, ResizeMode, Rounding,
    Tensor,
};
use halite_ops::{Operation, Values};

use super::super::{element_of, lower};
use crate::{CompileError, build::Builder, graph::NodeOp};

type Shaped<'a> = (E, &'a [u64], Values);

fn ints(values: &[i64]) -> Values {
    Values::Int(values.to_vec())
}

fn floats(values: &[f64]) -> Values {
    Values::Float(values.to_vec())
}

/// One node whose inputs the caller hands in, but those that `known` says are constants.
fn run(
    operator: Operator,
    inputs: &[Shaped<'_>],
    known: usize,
    outputs: &[(E, &[u64])],
) -> Result<Vec<Values>, CompileError> {
    let given = &inputs[..inputs.len() - known];
    let values: Vec<Values> = given.iter().map(|input| input.2.clone()).collect();
    built(operator, inputs, known, outputs)?.evaluate(&values)
}

fn built(
    operator: Operator,
    inputs: &[Shaped<'_>],
    known: usize,
    outputs: &[(E, &[u64])],
) -> Result<crate::graph::Graph, CompileError> {
    let mut graph = Graph::default();
    let first_known = inputs.len() - known;
    for (place, (element, shape, values)) in inputs.iter().enumerate() {
        let bytes = Bytes::from(values.to_bytes(element_of(*element).storage()));
        let constant = (place >= first_known).then_some(halite_formats::tosa::Constant::Dense(bytes));
        graph.tensors.push(Tensor {
            name: String::new(),
            element: *element,
            shape: shape.to_vec(),
            constant,
        });
    }
    for (element, shape) in outputs {
        let tensor = Tensor { name: String::new(), element: *element, shape: shape.to_vec(), constant: None };
        graph.tensors.push(tensor);
    }
    graph.inputs = (0..first_known).collect();
    graph.outputs = (inputs.len()..graph.tensors.len()).collect();
    let location = operator.name().to_owned();
    let (takes, gives) = ((0..inputs.len()).collect(), graph.outputs.clone());
    graph.nodes.push(Node { operator, inputs: takes, outputs: gives, location });
    let program = Program { graphs: vec![graph], variables: Vec::new() };
    let mut b = Builder::new();
    let mut ports = Vec::new();
    for (place, (element, shape, _)) in inputs[..first_known].iter().enumerate() {
        ports.push(b.input(&format!("x{place}"), element_of(*element), shape)?);
    }
    let results = lower(&mut b, &program, 0, &ports)?;
    for (place, result) in results.into_iter().enumerate() {
        b.output(&format!("y{place}"), result);
    }
    b.finish()
}

fn one(operator: Operator, inputs: &[Shaped<'_>], known: usize, output: (E, &[u64])) -> Values {
    run(operator, inputs, known, &[output]).unwrap().remove(0)
}

fn rescale(scale32: bool, rounding: Rounding) -> Operator {
    Operator::Rescale {
        scale32,
        rounding,
        per_channel: false,
        input_unsigned: false,
        output_unsigned: false,
        input_zero: 0,
        output_zero: 0,
    }
}

#[test]
fn rescale_rounds_half_up_and_twice() {
    let by = |operator, value, multiplier, shift| {
        let inputs = [
            (E::I32, &[1][..], ints(&[value])),
            (E::I32, &[1], ints(&[multiplier])),
            (E::I8, &[1], ints(&[shift])),
        ];
        one(operator, &inputs, 2, (E::I32, &[1])).int(0)
    };
    let single = || rescale(true, Rounding::Single);
    assert_eq!(by(single(), 3, 1 << 30, 31), 2);
    assert_eq!(by(single(), -3, 1 << 30, 31), -1);
    for (value, multiplier, shift) in [(-1_234_567, 1_518_500_250, 40), (77, 2_000_000_001, 33)] {
        let half = 1i64 << (shift - 1);
        assert_eq!(by(single(), value, multiplier, shift), (value * multiplier + half) >> shift);
        let twice = half + if value >= 0 { 1 << 30 } else { -(1 << 30) };
        let double = rescale(true, Rounding::Double);
        assert_eq!(by(double, value, multiplier, shift), (value * multiplier + twice) >> shift);
    }
}

#[test]
fn rescale_by_deep_shifts_is_exact_at_the_ends() {
    let values = [i64::from(i32::MIN), i64::from(i32::MAX), -1, 0, 1, 8191, -8192, -(3 << 20)];
    for multiplier in [1 << 30, i64::from(i32::MAX), 1_073_741_825] {
        for shifts in [[33, 62], [34, 47], [33, 40]] {
            let operator = Operator::Rescale {
                scale32: true,
                rounding: Rounding::Single,
                per_channel: true,
                input_unsigned: false,
                output_unsigned: false,
                input_zero: 0,
                output_zero: -3,
            };
            let both: Vec<i64> = values.iter().flat_map(|value| [*value; 2]).collect();
            let inputs = [
                (E::I32, &[8, 2][..], ints(&both)),
                (E::I32, &[2], ints(&[multiplier; 2])),
                (E::I8, &[2], ints(&shifts)),
            ];
            let wanted = both.iter().enumerate().map(|(i, value)| {
                let shift = shifts[i % 2];
                (((value * multiplier + (1 << (shift - 1))) >> shift) - 3).clamp(-128, 127)
            });
            let wanted: Vec<i64> = wanted.collect();
            assert_eq!(one(operator, &inputs, 2, (E::I8, &[8, 2])), ints(&wanted));
        }
    }
}

#[test]
fn rescale_reads_and_writes_unsigned_bytes_for_each_channel() {
    let operator = Operator::Rescale {
        scale32: true,
        rounding: Rounding::Single,
        per_channel: true,
        input_unsigned: true,
        output_unsigned: false,
        input_zero: -128,
        output_zero: -1,
    };
    // 255 and 0 less 128, by 1/2 and 1.
    let inputs = [
        (E::I8, &[1, 2][..], ints(&[-1, 0])),
        (E::I32, &[2], ints(&[1 << 30, 1 << 30])),
        (E::I8, &[2], ints(&[31, 30])),
    ];
    assert_eq!(one(operator, &inputs, 2, (E::I8, &[1, 2])), ints(&[63, -128]));
}

#[test]
fn rescale_of_48_bits_takes_small_multipliers() {
    let inputs = [
        (E::I48, &[2][..], ints(&[-(1 << 46), 123_456_789_012])),
        (E::I16, &[1], ints(&[32_767])),
        (E::I8, &[1], ints(&[46])),
    ];
    let wants = |value: i64| (value * 32_767 + (1 << 45)) >> 46;
    let made = one(rescale(false, Rounding::Single), &inputs, 2, (E::I32, &[2]));
    assert_eq!(made, ints(&[wants(-(1 << 46)), wants(123_456_789_012)]));
}

#[test]
fn floats_of_8_bits_are_all_there_and_come_back() {
    for (element, finite) in [(E::F8E4M3, 448.0), (E::F8E5M2, 57_344.0)] {
        let all: Vec<i64> = (0..256).collect();
        let wide = one(Operator::Cast, &[(element, &[256], ints(&all))], 0, (E::F32, &[256]));
        let most = wide.floats().into_iter().filter(|v| v.is_finite()).fold(0.0, f64::max);
        assert_eq!(most, finite, "{element}");
        let back = one(Operator::Cast, &[(E::F32, &[256], wide.clone())], 0, (element, &[256]));
        for (bits, value) in wide.floats().into_iter().enumerate() {
            assert!(value.is_nan() || back.int(bits) == bits as i64, "{element} {bits} {value}");
        }
        // Ties go to even, the smallest half to 0, and what is too large to the format's last.
        let values = floats(&[finite * 1.03, finite * 1.5, f64::INFINITY, 1.0625 + 1.0 / 8.0]);
        let made = one(Operator::Cast, &[(E::F32, &[4], values)], 0, (element, &[4]));
        let over = if element == E::F8E4M3 { [0x7E, 0x7F, 0x7F, 0x3A] } else { [0x7B, 0x7C, 0x7C, 0x3D] };
        assert_eq!(made, ints(&over), "{element}");
    }
}

#[test]
fn casts_round_once() {
    let x = (1 << 30) + (1 << 22) + 1;
    let made = one(Operator::Cast, &[(E::I32, &[2], ints(&[x, -x]))], 0, (E::BF16, &[2]));
    let wants = f64::from((1 << 30) + (1 << 23));
    assert_eq!(made, floats(&[wants, -wants]));
    let halves = floats(&[0.5, 1.5, -2.5, 300.0]);
    assert_eq!(one(Operator::Cast, &[(E::F32, &[4], halves)], 0, (E::I8, &[4])), ints(&[0, 2, -2, 127]));
    let wide = ints(&[300, -129]);
    assert_eq!(one(Operator::Cast, &[(E::I32, &[2], wide)], 0, (E::I8, &[2])), ints(&[44, 127]));
}

#[test]
fn nan_loses_where_it_is_ignored() {
    let nan = f64::NAN;
    let ignore = NanMode::Ignore;
    let pair = [(E::F32, &[3][..], floats(&[nan, 1.0, nan])), (E::F32, &[3], floats(&[2.0, nan, nan]))];
    let made = one(Operator::Maximum { nan_mode: ignore }, &pair, 0, (E::F32, &[3])).floats();
    assert!(made[..2] == [2.0, 1.0] && made[2].is_nan());
    let lines = (E::F32, &[3, 2][..], floats(&[nan, f64::NEG_INFINITY, nan, nan, 0.0, -0.0]));
    let places = |nan_mode| {
        one(Operator::ArgMax { axis: 1, nan_mode }, std::slice::from_ref(&lines), 0, (E::I32, &[3]))
    };
    assert_eq!(places(ignore), ints(&[1, 0, 0]));
    assert_eq!(places(NanMode::Propagate), ints(&[0, 0, 0]));
    let most = Operator::ReduceMax { axis: 1, nan_mode: ignore };
    let made = one(most, std::slice::from_ref(&lines), 0, (E::F32, &[3, 1])).floats();
    assert!(made[0] == f64::NEG_INFINITY && made[1].is_nan() && made[2] == 0.0);
}

fn plain(rank: usize, accumulator: Accumulator, zeros: [i64; 2]) -> Conv {
    Conv {
        pad: vec![1; 2 * rank],
        stride: vec![1; rank],
        dilation: vec![1; rank],
        accumulator,
        local_bound: false,
        input_zero: zeros[0],
        weight_zero: zeros[1],
    }
}

#[test]
fn convolutions_take_zero_points_off_and_pad_with_nothing() {
    let x = [1, -2, 3, 100];
    let w = [1, 2, 3, 4, 5, 6, 7, 8, 9];
    let bias = 1000;
    let wants = |x_zero: i64, w_zero: i64| {
        let at = |y: i64, c: i64| {
            let mut sum = bias;
            for (ky, kx) in (0..3).flat_map(|ky| (0..3).map(move |kx| (ky, kx))) {
                let (iy, ix) = (y + ky - 1, c + kx - 1);
                if (0..2).contains(&iy) && (0..2).contains(&ix) {
                    sum += (x[(iy * 2 + ix) as usize] - x_zero) * (w[(ky * 3 + kx) as usize] - w_zero);
                }
            }
            sum
        };
        ints(&[at(0, 0), at(0, 1), at(1, 0), at(1, 1)])
    };
    let inputs = |element, bias_type| {
        let image: &'static [u64] = &[1, 2, 2, 1];
        [(element, image, ints(&x)), (E::I8, &[1, 3, 3, 1][..], ints(&w)), (bias_type, &[1], ints(&[bias]))]
    };
    let out: &[u64] = &[1, 2, 2, 1];
    for zeros in [[0, 0], [5, 0], [-7, 3], [-128, 127]] {
        let operator = Operator::Conv2d(plain(2, Accumulator::I32, zeros));
        let made = one(operator, &inputs(E::I8, E::I32), 2, (E::I32, out));
        assert_eq!(made, wants(zeros[0], zeros[1]), "{zeros:?}");
    }
    let operator = Operator::Conv2d(plain(2, Accumulator::I48, [0, 0]));
    assert_eq!(one(operator, &inputs(E::I16, E::I48), 2, (E::I48, out)), wants(0, 0));
}

#[test]
fn convolutions_of_single_pixels_are_products() {
    let (x, w, bias) = ([1, -128, 127, 4, 0, -6], [3, -7, 127, -127], [1000, -5]);
    let wants = |x_zero: i64, w_zero: i64| {
        let at = |n: usize, f: usize| -> i64 {
            let term = |c: usize| (x[2 * n + c] - x_zero) * (w[2 * f + c] - w_zero);
            bias[f] + term(0) + term(1)
        };
        (0..3).flat_map(|n| [at(n, 0), at(n, 1)]).collect::<Vec<_>>()
    };
    let (out, floating): (&[u64], _) =
        (&[3, 1, 1, 2], |v: &[i64]| v.iter().map(|v| *v as f64).collect::<Vec<_>>());
    let is_product = |graph: &crate::graph::Graph| {
        graph.body.nodes.iter().any(|node| matches!(&node.op, NodeOp::Operation(Operation::MatMul(_))))
    };
    let single =
        |accumulator, zeros| Operator::Conv2d(Conv { pad: vec![0; 4], ..plain(2, accumulator, zeros) });
    for zeros in [[0, 0], [5, 0], [-7, 3], [-128, 127]] {
        let inputs =
            [(E::I8, out, ints(&x)), (E::I8, &[2, 1, 1, 2][..], ints(&w)), (E::I32, &[2], ints(&bias))];
        let graph = built(single(Accumulator::I32, zeros), &inputs, 2, &[(E::I32, out)]).unwrap();
        assert!(is_product(&graph));
        let made = graph.evaluate(&[ints(&x)]).unwrap();
        assert_eq!(made, [ints(&wants(zeros[0], zeros[1]))], "{zeros:?}");
    }
    let given = floats(&floating(&x));
    for element in [E::F32, E::F16] {
        let inputs = [
            (element, out, given.clone()),
            (element, &[2, 1, 1, 2][..], floats(&floating(&w))),
            (element, &[2], floats(&floating(&bias))),
        ];
        let graph = built(single(Accumulator::F32, [0, 0]), &inputs, 2, &[(element, out)]).unwrap();
        // The product of f16 would be rounded before its bias.
        assert_eq!(is_product(&graph), element == E::F32);
        let made = graph.evaluate(std::slice::from_ref(&given)).unwrap().remove(0);
        let near = |(a, b): (f64, i64)| (a - b as f64).abs() <= 1e-3 * b.abs() as f64;
        assert!(made.floats().into_iter().zip(wants(0, 0)).all(near), "{element:?}");
    }
}

#[test]
fn products_of_16_bits_have_48() {
    let a = [32_767, -32_768, 5, -1, 257, 12_345];
    let b = [-32_768, 32_767, -300, 1, 255, -32_000];
    let sum: i64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
    let inputs = [(E::I16, &[1, 1, 6][..], ints(&a)), (E::I16, &[1, 6, 1], ints(&b))];
    let operator = Operator::MatMul { a_zero: 0, b_zero: 0 };
    assert_eq!(one(operator, &inputs, 0, (E::I48, &[1, 1, 1])), ints(&[sum]));
}

#[test]
fn means_count_what_is_in_the_image() {
    let pool = Pool { kernel: [2, 2], stride: [1, 1], pad: [1, 0, 0, 0] };
    let operator =
        Operator::AvgPool2d { pool, accumulator: Accumulator::I32, input_zero: 1, output_zero: -2 };
    let inputs = [(E::I8, &[1, 2, 2, 1][..], ints(&[3, 4, 100, 127]))];
    // (2 + 3) / 2 and (2 + 3 + 99 + 126) / 4, half up.
    assert_eq!(one(operator, &inputs, 0, (E::I8, &[1, 2, 1, 1])), ints(&[3 - 2, 58 - 2]));
}

#[test]
fn tables_shifts_and_zeros() {
    let entries: Vec<i64> = (0..513).map(|i| i * 3 - 700).collect();
    let inputs = [(E::I16, &[3][..], ints(&[-32_768, 0, 200])), (E::I16, &[513], ints(&entries))];
    let at = |x: i64| {
        let i = ((x + 32_768) >> 7) as usize;
        (entries[i] << 7) + (entries[i + 1] - entries[i]) * (x & 127)
    };
    assert_eq!(one(Operator::Table, &inputs, 1, (E::I32, &[3])), ints(&[at(-32_768), at(0), at(200)]));
    let inputs = [(E::I8, &[4][..], ints(&[-3, 3, -128, 5])), (E::I8, &[4], ints(&[1, 1, 7, 0]))];
    let round = Operator::ArithmeticRightShift { round: true };
    assert_eq!(one(round, &inputs, 0, (E::I8, &[4])), ints(&[-1, 2, -1, 5]));
    assert_eq!(one(Operator::LogicalRightShift, &inputs, 0, (E::I8, &[4])), ints(&[126, 1, 1, 5]));
    let x = [(E::I32, &[4][..], ints(&[0, 1, -1, 65_536]))];
    assert_eq!(one(Operator::Clz, &x, 0, (E::I32, &[4])), ints(&[32, 31, 0, 15]));
}

#[test]
fn bilinear_integers_are_not_divided() {
    let operator =
        Operator::Resize { mode: ResizeMode::Bilinear, scale: [4, 2, 2, 1], offset: [-1, 0], border: [1, 0] };
    let inputs = [(E::I8, &[1, 2, 2, 1][..], ints(&[10, 20, 50, 60]))];
    let made = one(operator, &inputs, 0, (E::I32, &[1, 4, 3, 1]));
    // Rows at -1/4, 1/4, 3/4 and 5/4; columns at 0, 1/2 and 1; times 8.
    let rows = [[10, 20], [20, 30], [40, 50], [50, 60]];
    let wants: Vec<i64> = rows.iter().flat_map(|[a, b]| [a * 8, (a + b) * 4, b * 8]).collect();
    assert_eq!(made, ints(&wants));
}

#[test]
fn transforms_of_an_impulse_turn() {
    let mut x = vec![0.0; 16];
    x[1] = 1.0;
    let out: (E, &[u64]) = (E::F32, &[1, 4, 3]);
    let operator = Operator::Rfft2d { local_bound: false };
    let made = run(operator, &[(E::F32, &[1, 4, 4], floats(&x))], 0, &[out, out]).unwrap();
    assert_eq!(made[0].floats(), [1.0, 0.0, -1.0].repeat(4));
    assert_eq!(made[1].floats(), [0.0, -1.0, 0.0].repeat(4));
}

#[test]
fn what_the_specification_has_not_is_named() {
    let x = || (E::I8, &[2][..], ints(&[1, 2]));
    let text = run(Operator::Add, &[x(), x()], 0, &[(E::I8, &[2])]).unwrap_err().to_string();
    assert!(text.contains("ADD of i8, i8 to i8") && text.contains("fp16"), "{text}");
    let deep = [1u64; 7];
    let x = (E::F32, &deep[..], floats(&[1.0]));
    let text = run(Operator::Exp, &[x], 0, &[(E::F32, &deep)]).unwrap_err().to_string();
    assert!(text.contains("level 8K has 6"), "{text}");
}

/// Lines longer than one product transforms, along each axis, there and back.
#[test]
fn long_lines_are_transformed_in_two_steps() {
    let size = 4 * super::fft_long::MOST_AT_ONCE;
    let wave = |n: u64| (n * n % 17) as f64 - 8.0;
    let line = floats(&(0..size).map(wave).collect::<Vec<_>>());
    let nothing = floats(&vec![0.0; size as usize]);
    for dims in [[1, 1, size], [1, size, 1]] {
        let of = |inverse| Operator::Fft2d { inverse, local_bound: false };
        let given = [(E::F32, &dims[..], line.clone()), (E::F32, &dims[..], nothing.clone())];
        let out = [(E::F32, &dims[..]); 2];
        let made = run(of(false), &given, 0, &out).unwrap();
        for place in [0, 1, 5, 65, size / 2, size - 3] {
            let mut sums = [0.0f64; 2];
            for n in 0..size {
                let angle = std::f64::consts::TAU * (n * place % size) as f64 / size as f64;
                sums[0] += wave(n) * angle.cos();
                sums[1] -= wave(n) * angle.sin();
            }
            for (values, sum) in made.iter().zip(sums) {
                assert!((values.float(place as usize) - sum).abs() < 0.05, "{dims:?} {place}");
            }
        }
        let given = [0, 1].map(|part| (E::F32, &dims[..], made[part].clone()));
        let back = run(of(true), &given, 0, &out).unwrap();
        let off = |n: u64| (back[0].float(n as usize) / size as f64 - wave(n)).abs();
        assert!((0..size).all(|n| off(n) < 1e-3 && back[1].float(n as usize).abs() < 1.0), "{dims:?}");
    }
}

#[test]
fn convolutions_of_what_is_no_image_are_refused() {
    let conv = || Conv { stride: vec![2; 2], ..plain(2, Accumulator::F32, [0, 0]) };
    let volume = Conv { stride: vec![2; 3], ..plain(3, Accumulator::F32, [0, 0]) };
    for (operator, filter) in [
        (Operator::Conv2d(conv()), &[1, 2, 2, 2][..]),
        (Operator::DepthwiseConv2d(conv()), &[2, 2, 2, 1]),
        (Operator::TransposeConv2d(conv()), &[1, 2, 2, 2]),
        (Operator::Conv3d(volume), &[1, 2, 2, 2, 2]),
    ] {
        let count: u64 = filter.iter().product();
        let inputs = [
            (E::F32, &[2][..], floats(&[1.0, 2.0])),
            (E::F32, filter, floats(&vec![1.0; count as usize])),
            (E::F32, &[1], floats(&[0.0])),
        ];
        let error = run(operator, &inputs, 2, &[(E::F32, &[1, 4, 4, 1])]).unwrap_err().to_string();
        assert!(error.contains("CONV"), "{error}");
    }
}
