//! Properties that every sequence of operations keeps.

use proptest::prelude::*;

use super::*;

/// What must hold between any two operations.
fn check(a: &SubAllocator) {
    let mut ranges: Vec<(u64, u64, bool)> = a.live.iter().map(|(o, s)| (*o, *s, true)).collect();
    ranges.extend(a.by_offset.iter().map(|(o, r)| (*o, r.size, false)));
    ranges.sort_unstable();
    let mut at = 0;
    let mut previous_free = false;
    for (offset, size, live) in ranges {
        assert_eq!(offset, at, "ranges touch, and do not overlap");
        assert!(size > 0);
        assert!(live || !previous_free, "neighbouring free ranges are joined");
        previous_free = !live;
        at = offset + size;
    }
    assert_eq!(at, a.capacity());
    assert_eq!(a.by_offset.len(), a.by_size.len());
    assert_eq!(a.used(), a.live.values().sum::<u64>());
}

proptest! {
    #[test]
    fn ranges_never_overlap_and_join_again(
        capacity in 1_u64..5000,
        steps in proptest::collection::vec((any::<bool>(), 0_u64..700, 0_u32..9, any::<prop::sample::Index>()), 1..120),
    ) {
        let mut a = SubAllocator::new(capacity);
        let mut live = Vec::new();
        for (allocate, size, shift, which) in steps {
            if allocate || live.is_empty() {
                if let Some(offset) = a.allocate(size, 1 << shift) {
                    prop_assert_eq!(offset % (1 << shift), 0);
                    prop_assert!(offset + size.max(1) <= capacity);
                    live.push(offset);
                }
            } else {
                let offset = live.swap_remove(which.index(live.len()));
                prop_assert!(a.free(offset).is_some());
                prop_assert!(a.free(offset).is_none());
            }
            check(&a);
        }
        for offset in live {
            prop_assert!(a.free(offset).is_some());
        }
        prop_assert!(a.is_empty());
        prop_assert_eq!((a.largest_free(), a.free_ranges(), a.used()), (capacity, 1, 0));
    }

    #[test]
    fn a_repeated_program_gets_the_same_offsets(
        sizes in proptest::collection::vec(1_u64..500, 1..40), seed in any::<u64>(),
    ) {
        let mut a = SubAllocator::new(1 << 20);
        let mut iteration = || {
            let offsets: Vec<u64> = sizes.iter().map(|s| a.allocate(*s, 64).expect("room for all")).collect();
            let mut order = offsets.clone();
            order.sort_by_key(|o| (o ^ seed).wrapping_mul(0x9E37_79B9_7F4A_7C15));
            order.iter().for_each(|o| { a.free(*o); });
            offsets
        };
        let first = iteration();
        prop_assert_eq!(iteration(), first);
    }
}

#[test]
fn exact_fits_freed_last_are_reused_first() {
    let mut a = SubAllocator::new(1 << 16);
    let offsets: Vec<u64> = (0..8).map(|_| a.allocate(256, 256).unwrap()).collect();
    for index in [1, 5, 3] {
        a.free(offsets[index]);
    }
    assert_eq!(a.allocate(256, 256), Some(offsets[3]));
    assert_eq!(a.allocate(256, 256), Some(offsets[5]));
    assert_eq!(a.allocate(256, 256), Some(offsets[1]));
}

#[test]
fn impossible_requests_change_nothing() {
    let mut a = SubAllocator::new(1000);
    for (size, alignment) in [(1001, 1), (u64::MAX, 1), (1, 3), (1000, 1 << 63), (u64::MAX, 1 << 63)] {
        let got = a.allocate(size, alignment);
        if let Some(offset) = got {
            assert_eq!((offset, size), (0, 1000));
            a.free(0);
        }
        check(&a);
    }
    assert_eq!(a.free(5), None);
    assert_eq!(SubAllocator::new(0).allocate(1, 1), None);
}

#[test]
fn badly_aligned_ranges_do_not_hide_a_good_one() {
    let mut a = SubAllocator::new(1 << 20);
    let pairs: Vec<(u64, u64)> =
        (0..200).map(|_| (a.allocate(100, 1).unwrap(), a.allocate(1, 1).unwrap())).collect();
    for (offset, _) in &pairs {
        a.free(*offset);
    }
    assert_eq!(a.allocate(100, 4096).map(|o| o % 4096), Some(0));
    check(&a);
}
