//! Many at once.

use std::sync::Barrier;

use super::*;

#[test]
fn threads_that_keep_the_same_entry_see_only_whole_ones() {
    let (_above, path) = place();
    let start = Barrier::new(8);
    std::thread::scope(|scope| {
        for thread in 0..8_u8 {
            let (path, start) = (&path, &start);
            scope.spawn(move || {
                start.wait();
                // Opened by all at once too: one of them creates and marks it.
                let store = Store::new(Folder::open(path).unwrap(), 1 << 20);
                for round in 0..20_u8 {
                    let length = 1000 + 100 * usize::from(round);
                    store.put(key(1), KIND, "", &[&vec![thread; length]]).unwrap();
                    let found = store.get(key(1), KIND).expect("nobody removes it");
                    assert!(found.iter().all(|byte| *byte == found[0]) && found.len().is_multiple_of(100));
                }
            });
        }
    });
    assert_eq!(names(&path).len(), 2, "{:?}", names(&path));
}

#[test]
fn threads_that_trim_at_once_stay_within_the_limit() {
    let (_above, store) = store(5000);
    std::thread::scope(|scope| {
        for thread in 0..8_u64 {
            let store = &store;
            scope.spawn(move || {
                for round in 0..20 {
                    store.put(key(100 * thread + round), KIND, "", &[&[1; 900]]).unwrap();
                }
            });
        }
    });
    store.put(key(9999), KIND, "", &[&[1; 900]]).unwrap();
    assert!(store.total().unwrap() <= 5000);
    assert!(store.get(key(9999), KIND).is_some());
}

/// One thread marks the folder and fills it while another finds it without a marker.
#[test]
fn a_new_folder_is_everybodys_at_once() {
    let above = tempfile::tempdir().unwrap();
    for round in 0..50 {
        let path = above.path().join(round.to_string());
        let start = Barrier::new(4);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (path, start) = (&path, &start);
                scope.spawn(move || {
                    start.wait();
                    let store = Store::new(Folder::open(path).unwrap(), 1 << 20);
                    store.put(key(thread), KIND, "", &[b"x"]).unwrap();
                });
            }
        });
        assert_eq!(names(&path).len(), 5);
    }
}
