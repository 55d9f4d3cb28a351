//! Sizes with examples: what is computed holds for all values that keep the guards.

use super::*;

#[test]
fn algebra_is_known_without_guards() {
    let trace = Trace::new();
    let _entered = trace.enter();
    let (n, m) = (trace.symbol("n", 5, 1, 4096), trace.symbol("m", 7, 1, 64));
    assert!((n * 768 / 768).is(n));
    assert!((n * m * 4 / (m * 4)).is(n));
    assert!(((n + m) * 8 % 4).is(0.into()));
    assert!(((n * 8 + 3) / 8).is(n));
    assert!(((n * 8).div_ceil(8)).is(n));
    assert!((n + m - n).is(m));
    assert!(n < 5000);
    assert!(n * m > 0);
    assert!(n + 1 != 1);
    assert!(n.max(1).is(n) && n.min(9999).is(n));
    assert_eq!((n * m + 2).value(), 37);
    assert_eq!(trace.guards().len(), 4, "the ends of both symbols");
}

#[test]
fn comparisons_are_guarded_once() {
    let trace = Trace::new();
    let _entered = trace.enter();
    let n = trace.symbol("n", 10, 1, 4096);
    assert!(n > 8);
    assert!(n > 4);
    assert!(n != 3);
    assert_eq!(trace.guards().len(), 3);
    let twice = [n.is_multiple_of(4), n.is_multiple_of(4)];
    assert_eq!(twice, [false; 2]);
    assert_eq!(trace.guards().len(), 4);
    let region = trace.region();
    let fits: Vec<u64> = (1..20).filter(|n| region.has(&[*n])).collect();
    assert_eq!(fits, [9, 10, 11, 13, 14, 15, 17, 18, 19]);
    assert_eq!(n.exact(), 10);
    assert!(n.is_multiple_of(5) && n == 10);
    assert!((1..20).filter(|n| trace.region().has(&[*n])).eq([10]));
}

#[test]
fn what_is_known_of_a_multiple_is_known_of_its_parts() {
    let trace = Trace::new();
    let _entered = trace.enter();
    let n = trace.symbol("n", 16, 1, 4096);
    assert!(n.is_multiple_of(8));
    assert!(n.is_multiple_of(4) && n.is_multiple_of(2));
    assert_eq!(trace.guards().len(), 3);
}

#[test]
fn what_is_left_of_a_number_is_counted_for_all_data() {
    let trace = Trace::new();
    let _entered = trace.enter();
    for (most, piece) in [(8, 512), (300, 7), (4096, 128)] {
        let left = Size::from(most) - trace.data_symbol("found", most, 0, most);
        let (pieces, is_general) = for_all_data(|| {
            let pieces = left.div_ceil(piece);
            (pieces.fits_u32() && left > 1).then_some(pieces)
        });
        assert!(
            is_general && pieces.unwrap().is_at_most(most.unsigned_abs().div_ceil(piece)),
            "{most} by {piece}"
        );
    }
    assert!(trace.promises().is_empty());
}

/// What a random program computes of two sizes: values, and answers of comparisons.
fn compute(steps: &[[u64; 3]], symbols: [Size; 2]) -> (Vec<Size>, Vec<bool>) {
    let mut values = vec![symbols[0], symbols[1], Size::from(4), Size::from(3)];
    let mut answers = Vec::new();
    for [kind, a, b] in steps {
        let (a, b) = (values[*a as usize % values.len()], values[*b as usize % values.len()]);
        match kind {
            0 | 1 => values.push(a + b),
            2 => values.push((a * b) % 1009),
            3 => values.push(a * 3),
            4 => values.push(a.max(b) - a.min(b)),
            5 => values.push(a / (b % 7 + 1)),
            6 => values.push(a.div_ceil(4)),
            7 => values.push(a.next_multiple_of(8)),
            8 => values.push((a % 1024).ceil_log2().pow2()),
            9 => answers.push(a < b),
            10 => answers.push(a == b + 1),
            _ => answers.push(a.is_multiple_of(4)),
        }
    }
    (values, answers)
}

/// Random programs over sizes: a run for an example gives, by its expressions, what a run with other numbers gives,
/// wherever the guards hold.
#[test]
fn expressions_are_what_other_runs_compute() {
    let mut state = 3u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let (mut held, mut broken) = (0, 0);
    for _ in 0..400 {
        let steps: Vec<[u64; 3]> = (0..12).map(|_| [random(12), random(1 << 20), random(1 << 20)]).collect();
        let run = |symbols: [Size; 2]| compute(&steps, symbols);
        let trace = Trace::new();
        let example = [1 + random(40), 1 + random(40)];
        let entered = trace.enter();
        let symbols = [trace.symbol("a", example[0], 1, 1 << 20), trace.symbol("b", example[1], 1, 1 << 20)];
        let (values, answers) = run(symbols);
        let region = trace.region();
        let polys: Vec<Poly> = values.iter().map(|size| trace.poly(*size)).collect();
        drop(entered);
        assert!(region.has(&example));
        for _ in 0..20 {
            let other = [1 + random(60), 1 + random(60)];
            if !region.has(&other) {
                broken += 1;
                continue;
            }
            held += 1;
            let (numbers, same) = run(other.map(Size::from));
            assert_eq!(answers, same, "{example:?} {other:?} {steps:?}");
            let atoms = evaluate(&trace.atoms(), &other);
            for (poly, number) in polys.iter().zip(numbers) {
                let found = poly.evaluate(|id| atoms[id.0 as usize]);
                assert_eq!(found, number.signed_value(), "{example:?} {other:?} {steps:?}");
            }
        }
    }
    assert!(held > 400 && broken > 400, "{held} {broken}");
}

#[test]
fn what_data_decide_is_compared_for_all_values() {
    let trace = Trace::new();
    let _entered = trace.enter();
    let (a, b) = (trace.data_symbol("a", 7, 0, 100), trace.data_symbol("b", 7, 0, 100));
    // Equal in the example is not equal.
    assert!(a != b && a == a && a != 1 && a > 0 && (a + 1) - 1 == a);
    assert_eq!(
        (a.is_zero(), (a + 1).is_zero(), a.is_below(101), a.is_below(b)),
        (None, Some(false), Some(true), None)
    );
    assert!(trace.guards().is_empty() && trace.count_promises() == 0, "callers do not decide this");
    assert!(a.agrees(b) && !a.agrees(101), "what cannot be equal is not promised");
    let promises = trace.promises();
    assert_eq!(promises.len(), 1);
    assert_eq!((promises[0].rule, trace.symbols_of(&promises[0].poly)), (Rule::Zero, vec![0, 1]));
    assert!(a.stays_within(b + 3) && a.stays_within(100) && !(a + 101).stays_within(100));
    assert_eq!(trace.count_promises(), 2, "one of them was known");
    trace.forget_promises(1);
    assert_eq!(trace.promises(), promises);
}

#[test]
fn what_data_decide_is_no_number() {
    let trace = Trace::new();
    let _entered = trace.enter();
    let (caller, data) = (trace.symbol("n", 8, 1, 64), trace.data_symbol("found", 5, 0, 64));
    let made = (data * caller).max(1).div_ceil(4u64);
    assert!(made.is_data() && !caller.is_data());
    assert_eq!(take_pinned(), None);
    assert_eq!(caller.exact(), 8);
    assert_eq!(take_pinned(), None, "callers go to another version");
    made.exact();
    assert_eq!(take_pinned().as_deref(), Some("found"));
    // Work that asks for the number leaves nothing behind.
    let (_, general) = for_all_data(|| data.exact() + u64::from(data.agrees(4)));
    assert!(!general && take_pinned().is_none() && trace.promises().is_empty());
    let (sum, general) = for_all_data(|| data + 1);
    assert!(general && sum.least() == 1 && sum.most() == 65);
}

#[test]
fn ones_of_data_repeat_by_a_stride_of_nothing() {
    let trace = Trace::new();
    let _entered = trace.enter();
    let found = trace.data_symbol("found", 5, 0, 64);
    let factor = (found - 1).min(1).max(0);
    let poly = trace.poly(factor);
    for value in [0, 1, 2, 64] {
        let numbers = evaluate(&trace.atoms(), &[value]);
        let factor = poly.evaluate(|id| numbers[id.0 as usize]);
        assert_eq!(factor, i64::from(value > 1), "{value}");
    }
}

#[test]
fn work_aside_binds_only_what_is_kept() {
    let trace = Trace::new();
    let _entered = trace.enter();
    let n = trace.symbol("n", 16, 1, 4096);
    let before = trace.guards().len();
    let ((), fours) = aside(|| assert!(n.is_multiple_of(4) && n > 8 && n != 100));
    let (is_small, small) = aside(|| n < 20);
    assert!(is_small);
    assert_eq!(trace.guards().len(), before);
    // Nothing that was learned is left: what is asked for again is noted again.
    let (_, again) = aside(|| (n < 20, n * 2 < 40));
    assert!(trace.region().has(&[33]) && fours.lost() + small.lost() + again.lost() == 0);
    small.keep();
    assert!(!trace.region().has(&[20]) && trace.region().has(&[19]));
    let now = trace.guards().len();
    assert!(n < 20);
    assert!(n < 50);
    assert_eq!(trace.guards().len(), now);
    // Work aside within work aside.
    let (inner, outer) = aside(|| {
        let (_, inner) = aside(|| n > 10);
        assert!(n > 4);
        inner
    });
    outer.keep();
    assert!(trace.region().has(&[5]) && !trace.region().has(&[4]));
    inner.keep();
    assert!(!trace.region().has(&[10]));
}

#[test]
fn results_that_have_to_hold_for_more_tell_what_fails() {
    let trace = Trace::new();
    let _entered = trace.enter();
    let (n, m) = (trace.symbol("n", 256, 2, 1023), trace.symbol("m", 7, 1, 64));
    trace.hold(&[vec![6, 7], vec![7, 7], vec![1023, 7]]);
    let lost = |work: &dyn Fn() -> bool| aside(work).1.lost();
    assert_eq!(lost(&|| n > 5), 0);
    assert_eq!(lost(&|| n < 1000), 1);
    assert_eq!(lost(&|| n.div_ceil(4) * 4 == n), lost(&|| n > 500 || n.is_multiple_of(4)));
    assert!(lost(&|| n > 6) > 3, "the first counts for more than all others");
    assert!(n < 1000);
    assert!(noted_at(&"here").is_none());
    assert!(n * m + 1 > 200);
    let (guard, region) = noted_at(&"there").unwrap();
    assert_eq!(guard, "1 n m + -200 >= 0");
    assert!(!region.has(&[6, 7]) && region.has(&[40, 7]));
    assert_eq!(region.why_not(&[6, 7]).unwrap(), "there: 1 n m + -200 >= 0");
    assert_eq!(region.why_not(&[1001, 7]).unwrap(), "here: -1 n + 999 >= 0");
}

/// The size of an image that is scaled as detectors do it, as one step after the other rounds it.
fn scaled(height: u64, width: u64) -> u64 {
    let (least, most) = (height.min(width) as f32, height.max(width) as f32);
    let scale = (1.0 / least * 64.0).min(1.0 / most * 107.0);
    (height as f32 * scale).floor() as u64
}

fn call(function: FloatFunction, operands: &[&Float]) -> Float {
    Float::call(function, operands.iter().map(|float| (*float).clone()).collect()).unwrap()
}

#[test]
fn floats_of_sizes_are_rounded_as_they_are() {
    let trace = Trace::new();
    let _entered = trace.enter();
    let (h, w) = (trace.symbol("h", 72, 16, 255), trace.symbol("w", 88, 16, 255));
    let inverse = |size: Size| call(FloatFunction::Div, &[&Float::number(1.0), &Float::of(size).unwrap()]);
    let by = |float: Float, number| call(FloatFunction::Mul, &[&float, &Float::number(number)]);
    let (least, most) = (by(inverse(h.min(w)), 64.0), by(inverse(h.max(w)), 107.0));
    let scale = call(FloatFunction::Min, &[&least, &most]);
    let size = call(FloatFunction::Mul, &[&Float::of(h).unwrap(), &scale]);
    let size = call(FloatFunction::Floor, &[&size]).truncated().unwrap();
    assert_eq!(size.value(), scaled(72, 88));
    assert!(!size.is_constant() && size.least() >= 1 && size.most() < 2048, "{size:?}");
    // What guards say of it holds for all sizes.
    assert!(size < 100);
    let region = trace.region();
    for height in 16..=255 {
        for width in (16..=255).step_by(7) {
            assert_eq!(region.has(&[height, width]), scaled(height, width) < 100, "{height} {width}");
        }
    }
}

#[test]
fn floats_of_whole_numbers_are_those() {
    let trace = Trace::new();
    let _entered = trace.enter();
    let n = trace.symbol("n", 72, 1, 5000);
    let own = Float::of(n).unwrap();
    assert!(own.truncated().unwrap().is(n));
    // As far as 32 divides it, rounded up: a multiple of 32.
    let parts = call(FloatFunction::Div, &[&own, &Float::number(32.0)]);
    let whole = call(FloatFunction::Ceil, &[&parts]);
    let padded = call(FloatFunction::Mul, &[&whole, &Float::number(32.0)]).truncated().unwrap();
    assert!(padded.is((n + 31) / 32 * 32), "{padded:?}");
    let half = call(FloatFunction::Floor, &[&call(FloatFunction::Mul, &[&own, &Float::number(0.5)])]);
    assert!(half.truncated().unwrap().is(n / 2));
    // The same of what was rounded before; what is left may be negative for all that is known.
    let scaled = call(FloatFunction::Floor, &[&call(FloatFunction::Mul, &[&own, &Float::number(1.37)])]);
    let parts = call(FloatFunction::Ceil, &[&call(FloatFunction::Div, &[&scaled, &Float::number(8.0)])]);
    let whole = call(FloatFunction::Mul, &[&parts, &Float::number(8.0)]);
    let border = call(FloatFunction::Sub, &[&whole, &scaled]).truncated().unwrap();
    let size = scaled.truncated().unwrap();
    assert_eq!((size.value(), border.signed_value()), (98, 6));
    assert!(border.is((size + 7) / 8 * 8 - size));
    // Nothing else may be computed so: by 0, of more than is known, of what can be negative.
    let none = call(FloatFunction::Sub, &[&own, &Float::number(10.5)]);
    assert!(Float::call(FloatFunction::Div, vec![own.clone(), none.clone()]).is_none());
    assert!(none.truncated().is_none());
    assert!(Float::of(trace.symbol("m", 3, 1, u64::MAX)).is_none());
    assert!(Float::of(trace.data_symbol("d", 3, 1, 9)).is_none());
}

#[test]
fn floats_are_fractions_of_sizes() {
    let trace = Trace::new();
    let _entered = trace.enter();
    let (n, m) = (trace.symbol("n", 72, 1, 5000), trace.symbol("m", 30, 1, 5000));
    let (of_n, of_m, bounds) = (Float::of(n).unwrap(), Float::of(m).unwrap(), trace.guards());
    let quotient = call(FloatFunction::Div, &[&of_n, &of_m]);
    assert_eq!(quotient.fraction(), Some((n, m)));
    let half = call(FloatFunction::Mul, &[&quotient, &Float::number(0.5)]);
    assert_eq!(half.fraction(), Some((n, m * 2)));
    assert_eq!(Float::number(1.4).fraction(), Some((7.into(), 5.into())));
    assert_eq!(trace.guards(), bounds);
    // Which is the smaller holds for all sizes that keep the guard.
    let least = call(FloatFunction::Min, &[&quotient, &Float::number(1.5)]);
    assert_eq!(least.fraction(), Some((3.into(), 2.into())));
    let region = trace.region();
    assert!(region.has(&[45, 29]) && !region.has(&[30, 30]));
    assert_eq!(Float::call(FloatFunction::Sqrt, vec![of_n]).unwrap().fraction(), None);
}

#[test]
fn limits_that_are_none_fix_nothing() {
    let trace = Trace::new();
    let _entered = trace.enter();
    // As the length behind a convolution without borders: its difference from the largest number is no number.
    let length = trace.symbol("n", 1600, 256, 4095) / 5 - 1;
    let bounds = trace.guards();
    assert!(length <= u64::MAX && length < i64::MAX && length != u64::MAX && length >= i64::MIN);
    assert_eq!(trace.guards(), bounds);
    assert!(trace.region().has(&[1000]));
}

#[test]
fn products_of_many_terms_are_not_fixed() {
    let trace = Trace::new();
    let _entered = trace.enter();
    // Four sizes, each with a border on both sides: 81 terms when it is multiplied out.
    let mut next = 0u64;
    let mut symbol = || {
        next += 1;
        trace.symbol("s", next + 1, 0, 1 << 20)
    };
    let sides: Vec<Size> = (0..4).map(|_| symbol() + symbol() + symbol()).collect();
    let all: Size = sides.iter().product();
    assert_eq!(all.value(), (2 + 3 + 4) * (5 + 6 + 7) * (8 + 9 + 10) * (11 + 12 + 13));
    assert!(!all.is_constant() && (all * 4 / Size::from(4u64)).is(all));
    let sum = (0..20).fold(all, |sum, _| sum + symbol() * sides[0] * sides[1]);
    assert!(!sum.is_constant());
    assert!(trace.guards().iter().all(|guard| guard.rule != Rule::Zero));
    let region = trace.region();
    let mut values: Vec<u64> = (0..trace.symbols().len() as u64).map(|i| i + 2).collect();
    assert!(region.has(&values));
    values[0] = 100;
    assert!(region.has(&values));
}

#[test]
fn ranges_of_sizes_in_each_other_are_computed_once() {
    let trace = Trace::new();
    let _entered = trace.enter();
    let symbol = |name: &str| trace.symbol(name, 8, 1, 1000);
    let others: Vec<Size> = ["a", "b", "c"].into_iter().map(symbol).collect();
    // Both parts hold the one before: as trees, 2^100 parts, and more than a stack is deep.
    let mut size = symbol("n");
    for step in 0..20_000u64 {
        let other = others[step as usize % others.len()];
        size = match step < 100 {
            true => (size + other).max(size * 2).min(size + other + 7),
            false => (size + 1).max(other),
        };
        // What is learned makes ranges that were known ones of before.
        assert!(step % 10 != 0 || step >= 100 || size >= step / 10 + 3);
    }
    assert!(size.least() >= 1);
}

/// A size that each layer makes of the last one twice, as borders of convolutions do.
#[test]
fn what_a_deep_size_can_be_is_not_computed_again_and_again() {
    let trace = Trace::new();
    let _entered = trace.enter();
    let mut size = trace.data_symbol("found", 5, 0, 1 << 20);
    for layer in 1..200 {
        size = size.max(layer) / 2 + size.min(layer * 100);
    }
    assert!(size.least() > 0 && size.most() < 1 << 20);
    assert!(size.is_data());
}

#[test]
fn ranges_that_were_learned_aside_are_forgotten_with_it() {
    let trace = Trace::new();
    let _entered = trace.enter();
    let size = trace.symbol("n", 8, 1, 1000).max(trace.symbol("m", 3, 1, 1000));
    assert_eq!((size.least(), size.most()), (1, 1000));
    let ((), aside) = aside(|| {
        assert!(size >= 5);
        assert_eq!(size.least(), 5);
    });
    assert_eq!((size.least(), size.most()), (1, 1000));
    aside.keep();
    assert_eq!((size.least(), size.most()), (5, 1000));
}

#[test]
fn promises_of_work_aside_count_only_if_it_is_used() {
    let trace = Trace::new();
    let _entered = trace.enter();
    let n = trace.data_symbol("n", 8, 0, 1000);
    let (is_many, many) = aside(|| n > 32);
    assert!(!is_many && trace.promises().is_empty());
    assert!(!many.is_free() && many.lost() == 1);
    // Of two ways the one that promises nothing is better.
    let (_, other) = aside(|| n.is(n));
    assert!(other.is_free() && other.lost() == 0);
    assert!(!is_worth(|| n < 32));
    assert!(trace.promises().is_empty());
    many.keep();
    assert_eq!(trace.promises().len(), 1);
    // That a size can be counted is no answer that another way would not need.
    let (_, limited) = aside(|| (n * 1000).fits_u32());
    assert_eq!(limited.lost(), 0);
}
