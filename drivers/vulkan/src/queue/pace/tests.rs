use super::*;

const MS: u64 = 1_000_000;

fn pace(kind: DeviceType) -> Pace {
    Pace::new(Some(Duration::from_millis(50)), kind)
}

/// Dispatches of one kernel each, at every other step.
fn dispatches(count: usize, groups: u32) -> Vec<Weight> {
    (0..count).map(|n| Weight::new(2 * n, n as u64, Some([groups, 1, 1]), &[7])).collect()
}

fn known(ms: u64) -> Load {
    Load { nanos: ms * MS, guesses: 0 }
}

fn learn_all(pace: &Pace, cut: Cut, each: u64) -> Cut {
    let cut = Arc::new(cut);
    for part in 0..cut.len() {
        pace.learn(&[(cut.clone(), part)], each * u64::from(cut.dispatches(part)), true);
    }
    Arc::into_inner(cut).unwrap()
}

#[test]
fn what_is_unknown_goes_in_small_parts_and_what_is_known_by_its_time() {
    let pace = pace(DeviceType::Cpu);
    let cut = pace.cut(760, dispatches(380, 4), false);
    assert_eq!(cut.len(), 380_usize.div_ceil(8));
    assert_eq!((cut.steps(0), cut.steps(1)), (0..16, 16..32));
    assert_eq!(cut.steps(cut.len() - 1).end, 760);
    assert!(!pace.is_misfit(&cut), "it waits until all of it was measured");
    // 380 dispatches of 25 ms: two fit.
    let cut = learn_all(&pace, cut, 25 * MS);
    assert!(pace.is_misfit(&cut));
    let cut = pace.cut(760, dispatches(380, 4), false);
    assert!(cut.len() >= 190 && (0..cut.len()).all(|part| cut.load(part).nanos <= 50 * MS));
    assert!(!pace.is_misfit(&cut));
}

#[test]
fn short_recordings_stay_whole() {
    for kind in [DeviceType::Discrete, DeviceType::Integrated] {
        let pace = pace(kind);
        assert_eq!(pace.cut(120, dispatches(60, 300), false).len(), 1, "{kind:?}");
    }
    // On a processor they are cut once, until they were measured.
    let pace = pace(DeviceType::Cpu);
    let cut = learn_all(&pace, pace.cut(120, dispatches(60, 4), false), MS / 100);
    assert!(pace.is_misfit(&cut));
    assert_eq!(pace.cut(120, dispatches(60, 4), false).len(), 1);
}

#[test]
fn a_dispatch_that_comes_again_is_learnt_once() {
    let pace = pace(DeviceType::Cpu);
    let same = || (0..8).map(|n| Weight::new(n, 1, Some([4, 1, 1]), &[])).collect::<Vec<_>>();
    let cut = learn_all(&pace, pace.cut(8, same(), false), 3 * MS);
    assert_eq!((cut.len(), cut.load(0)), (1, known(24)));
    assert_eq!(pace.cut(8, same(), false).load(0), known(24));
    // The second part was cut by the guess as well.
    let again = || (0..16).map(|n| Weight::new(n, 2, Some([4, 1, 1]), &[])).collect::<Vec<_>>();
    assert_eq!(learn_all(&pace, pace.cut(16, again(), false), MS).len(), 2);
    assert_eq!(pace.cut(16, again(), false).load(0), known(16));
}

#[test]
fn what_took_at_most_a_short_time_is_learnt_as_well() {
    let pace = pace(DeviceType::Cpu);
    let short = || (0..32).map(|n| Weight::new(n, 1, Some([1, 1, 1]), &[])).collect::<Vec<_>>();
    let cut = Arc::new(pace.cut(32, short(), false));
    for part in 0..cut.len() {
        pace.learn(&[(cut.clone(), part)], MS, false);
    }
    assert!(cut.len() == 4 && pace.is_misfit(&cut));
    assert_eq!(pace.cut(32, short(), false).len(), 1);
    // Of what may have been long, only more exact news count.
    let cut = Arc::new(pace.cut(8, dispatches(4, 9), false));
    pace.learn(&[(cut.clone(), 0)], 40 * MS, false);
    assert!(cut.is_guessed());
}

#[test]
fn one_dispatch_and_recordings_without_any_are_one_part() {
    let pace = pace(DeviceType::Cpu);
    assert_eq!(pace.cut(1, dispatches(1, u32::MAX), false).len(), 1);
    assert_eq!(pace.cut(5, Vec::new(), false).steps(0), 0..5);
    assert_eq!(pace.cut(760, dispatches(380, 4), true).len(), 1);
    let off = Pace::new(None, DeviceType::Cpu);
    assert_eq!(off.cut(760, dispatches(380, u32::MAX), false).len(), 1);
    let all = Load { nanos: u64::MAX, guesses: u64::MAX };
    assert!(!off.is_enough(all, all) && !off.is_full(all));
    let all = [u32::MAX; 3];
    assert!(
        pace.cut(2, vec![Weight::new(0, 1, Some(all), &[]), Weight::new(1, 2, None, &[])], false).len() == 2
    );
}

#[test]
fn the_device_has_two_parts_at_a_time() {
    let pace = pace(DeviceType::Discrete);
    assert!(!pace.is_enough(known(50), known(50)) && pace.is_enough(known(60), known(50)));
}

#[test]
fn few_guesses_are_with_the_device_at_a_time() {
    let guesses = |guesses| Load { nanos: 1, guesses };
    let pace = pace(DeviceType::Cpu);
    assert!(!pace.is_enough(guesses(8), guesses(8)) && pace.is_enough(guesses(9), guesses(8)));
    assert!(!pace.is_enough(guesses(16), known(1)), "what is known does not wait for guesses");
    assert!(!pace.is_full(guesses(7)) && pace.is_full(guesses(8)));
    // A guess is one until it was measured, however often it is there.
    let cut = Arc::new(pace.cut(6, dispatches(3, 1), false));
    assert_eq!(cut.load(0), Load { nanos: 60_000, guesses: 3 });
    pace.learn(&[(cut.clone(), 0), (cut.clone(), 0)], 12 * MS, true);
    assert_eq!((cut.load(0).guesses, pace.cut(6, dispatches(3, 1), false).load(0)), (0, known(6)));
}

#[test]
fn long_dispatches_are_divided_by_their_time_or_for_fear_of_it() {
    let pace = pace(DeviceType::Cpu);
    let whole = |groups| Weight::new(0, 1, Some([groups, 1, 1]), &[]).divisible();
    assert_eq!([9, 200, 201, 1000, 1_000_000].map(|groups| pace.pieces(&whole(groups))), [1, 1, 2, 5, 512]);
    assert_eq!(pace.pieces(&whole(1000).indivisible()), 1);
    let pieces = |count: u64| (0..count).map(|n| whole(1000).piece(n as usize, 1000 / count, 1000)).collect();
    let cut = learn_all(&pace, pace.cut(5, pieces(5), false), 20 * MS);
    assert!(cut.len() == 5 && pace.is_misfit(&cut), "they took 100 ms together");
    assert!(pace.knows(&whole(1000)) && !pace.knows(&whole(999)));
    assert_eq!(pace.pieces(&whole(1000)), 2);
    let cut = learn_all(&pace, pace.cut(2, pieces(2), false), 200 * MS);
    assert!(pace.is_misfit(&cut), "they take 200 ms each now");
    assert_eq!(pace.pieces(&whole(1000)), 8);
    assert!(!pace.is_misfit(&pace.cut(8, pieces(8), false)));
    let never = Pace::new(None, DeviceType::Cpu);
    assert_eq!(never.pieces(&whole(1 << 20)), 1);
}

#[test]
fn transfers_count_by_their_bytes() {
    let pace = pace(DeviceType::Cpu);
    let moved = |bytes| (0..4).map(|n| Weight::transfer(n, bytes)).collect::<Vec<_>>();
    let cut = pace.cut(4, moved(90 << 20), false);
    assert_eq!((cut.len(), cut.dispatches(0)), (2, 0), "24 ms each");
    assert!(cut.load(0).guesses == 0 && !pace.is_misfit(&cut));
    // They are learnt as well.
    let cut = learn_all(&pace, pace.cut(4, moved(4 << 20), false), 0);
    assert_eq!(cut.len(), 1);
    pace.learn(&[(Arc::new(cut), 0)], 80 * MS, true);
    assert_eq!(pace.cut(4, moved(4 << 20), false).len(), 2);
}
