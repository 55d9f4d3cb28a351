//! Every kernel against a plain formula: strides, offsets, overlap, bounds, bad arguments. That results equal those of
//! the original is shown by `conformance/vmvx`, whose modules call them.

use std::{sync::Arc, sync::atomic::AtomicBool};

use halite_abi::Code;
use halite_vm::{Buffer, Invocation, NativeModule, Object, Ref, Results, Value};

use super::*;

fn invoke(name: &str, values: Vec<Value>) -> Result<Vec<Value>> {
    let function = Kernels.lookup(name).unwrap();
    let mut args = Arguments::new(values.into(), [].into_iter().collect());
    let mut results = Results::default();
    Kernels.call(&mut (), function.ordinal, &mut args, &mut results)?;
    Ok(results.values().to_vec())
}

/// Arguments of a call: buffers and numbers.
#[derive(Clone)]
enum Arg {
    Memory(Arc<Buffer>),
    Wide(i64),
    Word(i32),
}

fn call(name: &str, args: &[Arg]) -> Result<Vec<Value>> {
    let value = |arg: &Arg| match arg {
        Arg::Memory(buffer) => Value::Ref(Ref::from_arc(buffer.clone() as Arc<dyn Object>)),
        Arg::Wide(value) => Value::I64(*value),
        Arg::Word(value) => Value::I32(*value),
    };
    invoke(name, args.iter().map(value).collect())
}

/// A buffer, its offset and its strides.
fn place(buffer: &Arc<Buffer>, numbers: &[i64]) -> Vec<Arg> {
    std::iter::once(Arg::Memory(buffer.clone())).chain(numbers.iter().map(|n| Arg::Wide(*n))).collect()
}

fn wide(numbers: &[i64]) -> Vec<Arg> {
    numbers.iter().map(|n| Arg::Wide(*n)).collect()
}

fn words(words: &[u32]) -> Arc<Buffer> {
    Arc::new(Buffer::from_vec(words.iter().flat_map(|w| w.to_le_bytes()).collect()))
}

fn floats(values: &[f32]) -> Arc<Buffer> {
    words(&values.iter().map(|v| v.to_bits()).collect::<Vec<_>>())
}

fn content(buffer: &Buffer) -> Vec<u32> {
    buffer.to_bytes().unwrap().as_chunks().0.iter().map(|w| u32::from_le_bytes(*w)).collect()
}

fn values(buffer: &Buffer) -> Vec<f32> {
    content(buffer).into_iter().map(f32::from_bits).collect()
}

type Unary = fn(f32) -> f32;
type Binary = fn(f32, f32) -> f32;

/// Names of IREE's module, which programs of its compiler may ask for.
#[test]
fn all_functions_are_there() {
    let names = [
        "abs.2d.f32",
        "add.2d.f32",
        "add.2d.i32",
        "and.2d.i32",
        "ceil.2d.f32",
        "copy.2d.x16",
        "copy.2d.x32",
        "copy.2d.x64",
        "copy.2d.x8",
        "ctlz.2d.i32",
        "div.2d.f32",
        "divs.2d.i32",
        "divu.2d.i32",
        "exp.2d.f32",
        "fill.2d.x32",
        "floor.2d.f32",
        "log.2d.f32",
        "mmt4d",
        "mul.2d.f32",
        "mul.2d.i32",
        "neg.2d.f32",
        "or.2d.i32",
        "pack",
        "query_tile_sizes.2d",
        "rsqrt.2d.f32",
        "shl.2d.i32",
        "shrs.2d.i32",
        "shru.2d.i32",
        "sub.2d.f32",
        "sub.2d.i32",
        "unpack",
        "xor.2d.i32",
    ];
    assert!(names.iter().all(|name| Kernels.lookup(name).is_some()));
    assert_eq!(FUNCTIONS.len(), names.len());
    assert!(Kernels.lookup("add.2d.f64").is_none());
}

#[test]
fn elements_of_floats() {
    let a = [1.5, -2.5, 0.25, 100.0, -0.0, f32::INFINITY];
    let b = [0.5, 4.0, -3.0, 7.0, 2.0, 1.0];
    let binary: [(&str, Binary); 4] = [
        ("add.2d.f32", |a, b| a + b),
        ("sub.2d.f32", |a, b| a - b),
        ("mul.2d.f32", |a, b| a * b),
        ("div.2d.f32", |a, b| a / b),
    ];
    for (name, f) in binary {
        let (lhs, rhs, out) = (floats(&a), floats(&b), floats(&[0.0; 6]));
        let args = [place(&lhs, &[0, 3, 1]), place(&rhs, &[0, 3, 1]), place(&out, &[0, 3, 1]), wide(&[2, 3])];
        call(name, &args.concat()).unwrap();
        let expected: Vec<_> = a.iter().zip(&b).map(|(a, b)| f(*a, *b)).collect();
        assert_eq!(values(&out), expected, "{name}");
    }
    let unary: [(&str, Unary); 7] = [
        ("abs.2d.f32", f32::abs),
        ("ceil.2d.f32", f32::ceil),
        ("exp.2d.f32", f32::exp),
        ("floor.2d.f32", f32::floor),
        ("log.2d.f32", f32::ln),
        ("neg.2d.f32", |a| -a),
        ("rsqrt.2d.f32", |a| 1.0 / a.sqrt()),
    ];
    for (name, f) in unary {
        let (input, out) = (floats(&a), floats(&[0.0; 6]));
        call(name, &[place(&input, &[0, 3, 1]), place(&out, &[0, 3, 1]), wide(&[2, 3])].concat()).unwrap();
        let expected: Vec<_> = a.iter().map(|a| f(*a).to_bits()).collect();
        assert_eq!(content(&out), expected, "{name}");
    }
}

#[test]
fn elements_of_integers() {
    let a = [7, u32::MAX, 0x8000_0000, 12, 1];
    let b = [2, 3, u32::MAX, 5, 40];
    let binary: [(&str, [u32; 5]); 11] = [
        ("add.2d.i32", [9, 2, 0x7FFF_FFFF, 17, 41]),
        ("sub.2d.i32", [5, u32::MAX - 3, 0x8000_0001, 7, (-39_i32).cast_unsigned()]),
        ("mul.2d.i32", [14, (-3_i32).cast_unsigned(), 0x8000_0000, 60, 40]),
        ("divs.2d.i32", [3, 0, 0x8000_0000, 2, 0]),
        ("divu.2d.i32", [3, 0x5555_5555, 0, 2, 0]),
        ("and.2d.i32", [2, 3, 0x8000_0000, 4, 0]),
        ("or.2d.i32", [7, u32::MAX, u32::MAX, 13, 41]),
        ("xor.2d.i32", [5, !3, 0x7FFF_FFFF, 9, 41]),
        ("shl.2d.i32", [28, u32::MAX << 3, 0, 12 << 5, 1 << 8]),
        ("shrs.2d.i32", [1, u32::MAX, u32::MAX, 0, 0]),
        ("shru.2d.i32", [1, u32::MAX >> 3, 1, 0, 0]),
    ];
    for (name, expected) in binary {
        let (lhs, rhs, out) = (words(&a), words(&b), words(&[0; 5]));
        let args = [place(&lhs, &[0, 5, 1]), place(&rhs, &[0, 5, 1]), place(&out, &[0, 5, 1]), wide(&[1, 5])];
        call(name, &args.concat()).unwrap();
        assert_eq!(content(&out), expected, "{name}");
    }
    let (input, out) = (words(&a), words(&[0; 5]));
    call("ctlz.2d.i32", &[place(&input, &[0, 5, 1]), place(&out, &[0, 5, 1]), wide(&[1, 5])].concat())
        .unwrap();
    assert_eq!(content(&out), [29, 0, 0, 28, 31]);
    for name in ["divs.2d.i32", "divu.2d.i32"] {
        let zero = words(&[0]);
        let args =
            [place(&input, &[0, 1, 1]), place(&zero, &[0, 0, 0]), place(&out, &[0, 1, 1]), wide(&[1, 1])];
        let status = call(name, &args.concat()).unwrap_err();
        assert!(status.code() == Code::InvalidArgument && status.to_string().contains(name), "{status}");
    }
}

#[test]
fn strides_offsets_and_broadcasts() {
    // lhs column by column from element 1, rhs one value for each row, out every second element.
    let lhs = words(&(0..13).collect::<Vec<_>>());
    let rhs = words(&[100, 200, 300]);
    let out = words(&[9; 25]);
    let args =
        [place(&lhs, &[1, 1, 3]), place(&rhs, &[0, 1, 0]), place(&out, &[1, 8, 2]), wide(&[3, 4])].concat();
    call("add.2d.i32", &args).unwrap();
    let mut expected = vec![9; 25];
    for i in 0..3 {
        for j in 0..4 {
            expected[1 + i * 8 + j * 2] = (1 + i + j * 3 + (i + 1) * 100) as u32;
        }
    }
    assert_eq!(content(&out), expected);
    // Rows longer than what is moved at a time, in place.
    let long = words(&(0..5000).collect::<Vec<_>>());
    let args = [place(&long, &[0, 2500, 1]), place(&long, &[0, 2500, 1]), wide(&[2, 2500])].concat();
    call("ctlz.2d.i32", &args).unwrap();
    assert_eq!(content(&long), (0..5000u32).map(u32::leading_zeros).collect::<Vec<_>>());
}

#[test]
fn copies_and_fills() {
    for (name, width) in [("copy.2d.x8", 1), ("copy.2d.x16", 2), ("copy.2d.x32", 4), ("copy.2d.x64", 8)] {
        let bytes: Vec<u8> = (0..24 * width).map(|i| i as u8).collect();
        let (input, out) =
            (Arc::new(Buffer::from_vec(bytes.clone())), Arc::new(Buffer::from_vec(vec![0xEE; 24 * width])));
        // A transposition of 3x4.
        let args = [place(&input, &[2, 4, 1]), place(&out, &[1, 1, 3]), wide(&[3, 4])].concat();
        call(name, &args).unwrap();
        let out = out.to_bytes().unwrap();
        for i in 0..3 {
            for j in 0..4 {
                let (from, to) = ((2 + i * 4 + j) * width, (1 + i + j * 3) * width);
                assert_eq!(out[to..to + width], bytes[from..from + width], "{name} {i} {j}");
            }
        }
        assert!(out[..width].iter().chain(&out[13 * width..]).all(|b| *b == 0xEE), "{name}");
    }
    let out = words(&[1; 3000]);
    let args = [vec![Arg::Word(-2)], place(&out, &[1, 1400]), wide(&[2, 1300])].concat();
    call("fill.2d.x32", &args).unwrap();
    let inside = |i: usize| (1..1301).contains(&i) || (1401..2701).contains(&i);
    assert!(content(&out).iter().enumerate().all(|(i, w)| *w == if inside(i) { u32::MAX - 1 } else { 1 }));
}

#[test]
fn bad_regions_are_refused() {
    let b = words(&[0; 16]);
    let unary = |input: &[i64], size: &[i64]| {
        call("abs.2d.f32", &[place(&b, input), place(&b, &[0, 0, 0]), wide(size)].concat())
    };
    unary(&[0, 4, 1], &[4, 4]).unwrap();
    unary(&[15, i64::from(u32::MAX), 5], &[1, 1]).unwrap();
    for empty in [[0, 1 << 31], [1 << 31, 0]] {
        unary(&[99, 4, 1], &empty).unwrap();
    }
    for (input, size) in [
        ([0, 4, 1], [4, 5]),
        ([0, 5, 1], [4, 4]),
        ([1, 4, 1], [4, 4]),
        ([-1, 4, 1], [1, 1]),
        ([i64::MAX, 4, 1], [1, 1]),
        ([0, (1 << 32) - 1, (1 << 32) - 1], [(1 << 32) - 1, (1 << 32) - 1]),
    ] {
        assert_eq!(unary(&input, &size).unwrap_err().code(), Code::OutOfRange, "{input:?} {size:?}");
    }
    for (input, size) in
        [([0, -4, 1], [1, 1]), ([0, 1, 1 << 32], [1, 1]), ([0, 1, 1], [-1, 1]), ([0, 1, 1], [1, 1 << 32])]
    {
        assert_eq!(unary(&input, &size).unwrap_err().code(), Code::InvalidArgument, "{input:?} {size:?}");
    }
    let null = vec![Value::Ref(Ref::NULL), Value::I64(0), Value::I64(0), Value::I64(0)];
    assert_eq!(invoke("abs.2d.f32", null).unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn long_work_can_be_stopped() {
    let b = words(&[0]);
    let forever = i64::from(u32::MAX);
    let args = [place(&b, &[0, 0, 0]), place(&b, &[0, 0, 0]), wide(&[forever, forever])].concat();
    let values = args.iter().map(|arg| match arg {
        Arg::Memory(buffer) => Value::Ref(Ref::from_arc(buffer.clone() as Arc<dyn Object>)),
        Arg::Wide(value) => Value::I64(*value),
        Arg::Word(value) => Value::I32(*value),
    });
    let cancel = Some(Arc::new(AtomicBool::new(true)));
    let mut args = Arguments::new(values.collect(), [].into_iter().collect())
        .with_invocation(Invocation { deadline: None, cancel });
    let ordinal = Kernels.lookup("abs.2d.f32").unwrap().ordinal;
    let status = Kernels.call(&mut (), ordinal, &mut args, &mut Results::default()).unwrap_err();
    assert_eq!(status.code(), Code::Cancelled);
}

#[test]
fn products_of_tiles() {
    // 2x3 tiles of results, 2 tiles deep; tiles 2x3 by 4x3 (transposed) to 2x4, with room between rows.
    let (m, n, k, m0, n0, k0) = (2, 3, 2, 2, 4, 3);
    let (lhs_stride, rhs_stride, out_stride) = (k * m0 * k0 + 5, k * n0 * k0 + 1, n * m0 * n0 + 2);
    let a: Vec<i8> = (0..m * lhs_stride).map(|i| (i * 37 % 256) as u8 as i8).collect();
    let b: Vec<i8> = (0..n * rhs_stride).map(|i| (i * 91 % 256) as u8 as i8).collect();
    for accumulate in [false, true] {
        let mut expected = vec![5_i32; m * out_stride];
        for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            for (i0, j0) in (0..m0).flat_map(|i0| (0..n0).map(move |j0| (i0, j0))) {
                let out = &mut expected[i * out_stride + j * m0 * n0 + i0 * n0 + j0];
                let sum: i32 = (0..k * k0)
                    .map(|d| (d / k0, d % k0))
                    .map(|(c, d)| {
                        let lhs = a[i * lhs_stride + c * m0 * k0 + i0 * k0 + d];
                        i32::from(lhs) * i32::from(b[j * rhs_stride + c * n0 * k0 + j0 * k0 + d])
                    })
                    .sum();
                *out = if accumulate { *out + sum } else { sum };
            }
        }
        let flags = if accumulate { 0x100 } else { 0 };
        let shape = |kind: i32| {
            let tiles = [m0, n0, k0].map(|n| Arg::Word(n as i32));
            [wide(&[m as i64, n as i64, k as i64]), tiles.to_vec(), vec![Arg::Word(kind | flags)]].concat()
        };
        let strides = [lhs_stride, rhs_stride, out_stride].map(|s| s as i64);
        let run = |lhs: &Arc<Buffer>, rhs: &Arc<Buffer>, out: &Arc<Buffer>, kind| {
            let panels =
                [place(lhs, &[0, strides[0]]), place(rhs, &[0, strides[1]]), place(out, &[0, strides[2]])];
            call("mmt4d", &[panels.concat(), shape(kind)].concat())
        };
        let bytes = |values: &[i8]| Arc::new(Buffer::from_vec(values.iter().map(|v| *v as u8).collect()));
        let out = words(&vec![5; m * out_stride]);
        run(&bytes(&a), &bytes(&b), &out, 2).unwrap();
        assert_eq!(content(&out).iter().map(|w| *w as i32).collect::<Vec<_>>(), expected);
        // These sums are exact in f32 too.
        let as_floats = |values: &[i8]| floats(&values.iter().map(|v| f32::from(*v)).collect::<Vec<_>>());
        let out = floats(&vec![5.0; m * out_stride]);
        run(&as_floats(&a), &as_floats(&b), &out, 1).unwrap();
        assert_eq!(values(&out), expected.iter().map(|v| *v as f32).collect::<Vec<_>>());
        assert_eq!(run(&bytes(&a), &bytes(&b), &out, 1).unwrap_err().code(), Code::OutOfRange);
        assert_eq!(run(&bytes(&a), &bytes(&b), &out, 3).unwrap_err().code(), Code::InvalidArgument);
    }
}

#[test]
fn products_without_depth_or_size() {
    let b = words(&[7; 4]);
    let run = |sizes: [i64; 3], tiles: [i32; 3], flags: i32| {
        let panels = [place(&b, &[0, 0]), place(&b, &[0, 0]), place(&b, &[0, 0])].concat();
        let tiles = tiles.map(Arg::Word).to_vec();
        call("mmt4d", &[panels, wide(&sizes), tiles, vec![Arg::Word(flags)]].concat())
    };
    run([1, 1, 0], [2, 2, 1], 0x101).unwrap();
    run([0, 1 << 20, 1 << 10], [2, 2, 1], 1).unwrap();
    run([1 << 31, 1 << 31, 1], [0, 1, 1], 1).unwrap();
    assert_eq!(content(&b), [7; 4]);
    run([1, 1, 0], [2, 2, 1], 1).unwrap();
    assert_eq!(content(&b), [0; 4]);
    assert_eq!(run([1, 1, 1], [-1, 1, 1], 1).unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(run([1, 1, 1], [0x8000, 1, 1], 1).unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(run([1, 1, 1 << 31], [100, 100, 100], 1).unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn packing_and_unpacking() {
    let (rows, columns) = (5, 7);
    let matrix: Vec<u32> = (0..rows * columns).map(|i| i as u32 + 100).collect();
    for flags in [0, 0x100, 0x200, 0x300] {
        let (outer, tile) = ([3, 2], [2, 4]);
        let stored = |pair: [i64; 2], turned: bool| if turned { [pair[1], pair[0]] } else { pair };
        let (o, t) = (stored(outer, flags & 0x200 != 0), stored(tile, flags & 0x100 != 0));
        let sizes = [o[0], o[1], t[0], t[1]];
        let stride = o[1] * 8 + 3;
        let packed = words(&vec![1; (o[0] * stride) as usize]);
        let input = words(&matrix);
        let numbers = [&[rows, columns][..], &sizes, &[0x7FFF_FFFF_0000_0063]].concat();
        let args = [place(&input, &[0, columns, 1]), place(&packed, &[0, stride, 8]), wide(&numbers)];
        call("pack", &[args.concat(), vec![Arg::Word(3 | flags)]].concat()).unwrap();
        let mut expected = vec![1; (o[0] * stride) as usize];
        for (r, c) in (0..outer[0] * tile[0]).flat_map(|r| (0..outer[1] * tile[1]).map(move |c| (r, c))) {
            let (a, b) =
                if flags & 0x200 == 0 { (r / tile[0], c / tile[1]) } else { (c / tile[1], r / tile[0]) };
            let inner = if flags & 0x100 == 0 {
                r % tile[0] * tile[1] + c % tile[1]
            } else {
                c % tile[1] * tile[0] + r % tile[0]
            };
            let value = if r < rows && c < columns { matrix[(r * columns + c) as usize] } else { 0x63 };
            expected[(a * stride + b * 8 + inner) as usize] = value;
        }
        assert_eq!(content(&packed), expected, "{flags:#x}");
        // And back, into every second column.
        let back = words(&[0; 80]);
        let args = [
            place(&packed, &[0, stride, 8]),
            place(&back, &[1, 15, 2]),
            wide(&sizes),
            wide(&[rows, columns]),
        ];
        call("unpack", &[args.concat(), vec![Arg::Word(3 | flags)]].concat()).unwrap();
        let back = content(&back);
        for (r, c) in (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c))) {
            assert_eq!(back[(1 + r * 15 + c * 2) as usize], matrix[(r * columns + c) as usize], "{flags:#x}");
        }
        assert_eq!(back.iter().filter(|w| **w != 0).count() as i64, rows * columns);
    }
}

#[test]
fn packing_of_bytes_and_of_nothing() {
    let input = Arc::new(Buffer::from_vec(vec![1, 2, 3]));
    let out = Arc::new(Buffer::from_vec(vec![0; 8]));
    let run = |sizes: [i64; 7], flags: i32| {
        let args = [place(&input, &[0, 3, 1]), place(&out, &[0, 4, 4]), wide(&sizes)].concat();
        call("pack", &[args, vec![Arg::Word(flags)]].concat())
    };
    run([1, 3, 1, 2, 2, 2, -1], 2).unwrap();
    assert_eq!(out.to_bytes().unwrap()[..], [1, 2, 255, 255, 3, 255, 255, 255]);
    run([0, 0, 1, 2, 2, 2, 6], 2).unwrap();
    assert_eq!(out.to_bytes().unwrap()[..], [6; 8]);
    run([0, 0, 1 << 31, 1 << 31, 0, 1, 6], 2).unwrap();
    assert_eq!(run([1, 3, 2, 2, 2, 2, 0], 2).unwrap_err().code(), Code::OutOfRange);
    assert_eq!(run([2, 3, 1, 2, 2, 2, 0], 2).unwrap_err().code(), Code::OutOfRange);
    assert_eq!(run([1, 3, 1, 2, 2, 2, 0], 4).unwrap_err().code(), Code::InvalidArgument);
    let args = [place(&out, &[0, 4, 4]), place(&input, &[0, 3, 1]), wide(&[1, 2, 2, 2, 1, 3])].concat();
    let status = call("unpack", &[args, vec![Arg::Word(2)]].concat()).unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
}

#[test]
fn sizes_of_tiles_agree() {
    let ask = |flags: i32| {
        call("query_tile_sizes.2d", &[Arg::Wide(64), Arg::Wide(i64::MIN), Arg::Word(flags)]).map(|sizes| {
            match sizes[..] {
                [Value::I64(rows), Value::I64(columns)] => [rows, columns],
                _ => panic!("{sizes:?}"),
            }
        })
    };
    for operation in (0x100..=0x600).step_by(0x100) {
        let [lhs, rhs, result] = [1, 2, 3].map(|role| ask(operation | role).unwrap());
        assert_eq!(result, [lhs[0], rhs[0]]);
        assert_eq!(lhs[1], rhs[1]);
    }
    for bad in [0, 0x100, 0x104, 1, 0x701] {
        assert_eq!(ask(bad).unwrap_err().code(), Code::InvalidArgument, "{bad:#x}");
    }
}

/// Numbers that a program might give, of a generator that always gives the same.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn wide(&mut self) -> i64 {
        let edges = [0, 1, 2, -1, i64::MAX, i64::MIN, 0xFFFF_FFFF, 0x1_0000_0000, 0x7FFF_FFFF];
        match self.next() % 12 {
            0 => edges[self.next() as usize % edges.len()],
            1 => (self.next() << 33 | self.next()).cast_signed(),
            2 | 3 => (self.next() % 70).cast_signed(),
            _ => (self.next() % 9).cast_signed(),
        }
    }

    fn word(&mut self) -> i32 {
        match self.next() % 4 {
            0 => self.next() as u32 as i32,
            1 => (self.next() % 4) as i32 | [0, 0x100, 0x200, 0x300][self.next() as usize % 4],
            _ => (self.next() % 9) as i32,
        }
    }
}

/// Whatever a program asks for ends in a result or an error, and in time.
#[test]
fn any_arguments_are_survived() {
    let mut numbers = Numbers(7);
    let buffers = [words(&[]), words(&[1; 16]), words(&[2; 600])];
    let (mut worked, mut refused) = (0, 0);
    for round in 0..20_000 {
        let function = &FUNCTIONS[round % FUNCTIONS.len()];
        let kinds = function.signature[1..].chars().take_while(|kind| *kind != '_');
        let values = kinds.map(|kind| match kind {
            'r' if numbers.next().is_multiple_of(64) => Value::Ref(Ref::NULL),
            'r' => {
                let buffer = buffers[numbers.next() as usize % 3].clone();
                Value::Ref(Ref::from_arc(buffer as Arc<dyn Object>))
            }
            'I' => Value::I64(numbers.wide()),
            _ => Value::I32(numbers.word()),
        });
        let limit = std::time::Instant::now() + std::time::Duration::from_millis(20);
        let mut args = Arguments::new(values.collect(), [].into_iter().collect())
            .with_invocation(Invocation::until(limit));
        let ordinal = Kernels.lookup(function.name).unwrap().ordinal;
        match Kernels.call(&mut (), ordinal, &mut args, &mut Results::default()) {
            Ok(()) => worked += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(worked > 1000 && refused > 1000, "{worked} worked, {refused} were refused");
}
