//! Tests of which sizes share plans.

use super::*;
use crate::signature::{Arity, Dim};

fn input(name: &str, dims: &[&str]) -> Signature {
    let dim = |text: &&str| text.parse().map_or_else(|_| Dim::Symbol((*text).to_owned()), Dim::Known);
    let dims = Some(dims.iter().map(dim).collect());
    Signature { name: name.to_owned(), arity: Arity::Tensor, is_optional: false, element: None, dims }
}

#[test]
fn caches_that_grow_share_plans_for_long() {
    let names: BTreeSet<String> = ["past".to_owned(), "total".to_owned()].into();
    let steps = Steps::Grow(&names);
    assert_eq!((steps.range("past", 5), steps.range("past", 1022)), ((1, 1023), (1, 1023)));
    // The call in which a cache goes to the next sizes is for both.
    assert_eq!((steps.range("past", 1023), steps.range("total", 1024)), ((1023, 65_535), (1024, 65_535)));
    assert_eq!((steps.range("batch", 5), steps.range("batch", 3)), ((4, 15), (3, 15)));
    assert_eq!((Steps::None.range("past", 3), Steps::None.range("past", 1)), ((1, 3), (1, 3)));
    steps.range("past", u64::MAX);
}

#[test]
fn a_bound_shares_the_plan_of_the_sizes_below_it() {
    let below = |size, most| Steps::None.range_below("n", size, most);
    assert_eq!(
        (below(4096, 4096), below(1500, 4096), below(1023, 4096)),
        ((1024, 4096), (1024, 4096), (256, 1023))
    );
    assert_eq!(
        (below(4, 4), below(3, 4), below(1, 1), below(4010, 4010)),
        ((1, 4), (1, 4), (1, 1), (1024, 4010))
    );
    assert_eq!((below(4096, 5000), below(u64::MAX, u64::MAX).1), ((4096, 5000), u64::MAX));
}

#[test]
fn sizes_beside_an_example_are_of_its_unit() {
    let inputs = [input("a", &["n", "3"]), input("b", &["m", "n"])];
    let mut bindings = Bindings::default();
    bindings.open.extend([("n".to_owned(), (4, 15)), ("m".to_owned(), (64, 255))]);
    let example = [vec![9, 3], vec![96, 9]];
    let found = neighbours(&bindings, &inputs, &example, &[vec![1, 3], vec![32, 1]]);
    let of = |n, m| vec![vec![n, 3], vec![m, n]];
    // 16 and 512 are beyond what is open.
    let wanted = [of(10, 128), of(11, 160), of(12, 192), of(9, 128), of(10, 96)];
    assert_eq!(found, wanted);
    assert!(neighbours(&Bindings::default(), &inputs, &example, &[vec![1, 3], vec![32, 1]]).is_empty());
    neighbours(&bindings, &inputs, &example, &[vec![u64::MAX, 3], vec![u64::MAX, 1]]);
}

#[test]
fn kernels_are_chosen_for_sizes_that_caches_will_have() {
    let inputs = [
        input("ids", &["batch", "1"]),
        input("mask", &["batch", "total"]),
        input("past", &["batch", "past"]),
    ];
    let names: BTreeSet<String> = ["past".to_owned(), "total".to_owned()].into();
    let shapes = |total, past| vec![vec![3, 1], vec![3, total], vec![3, past]];
    assert_eq!(grown(&inputs, &shapes(6, 5), &names), Some(shapes(257, 256)));
    assert_eq!(grown(&inputs, &shapes(1024, 1023), &names), Some(shapes(16_385, 16_384)));
    // What has far more rows, as the keys of an encoder may, stays.
    assert_eq!(grown(&inputs, &shapes(u64::MAX, 5), &names), Some(shapes(u64::MAX, 256)));
    for (total, past) in [(300, 299), (2, 1), (1000, 5)] {
        assert_eq!(grown(&inputs, &shapes(total, past), &names), None, "{total}");
    }
    assert_eq!(grown(&inputs, &shapes(6, 5), &BTreeSet::new()), None);
}
