//! Semaphores and fences keep their promises.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Duration,
};

use super::*;

#[test]
fn waits_see_signals_from_other_threads() {
    let s = Arc::new(SoftSemaphore::new(1, 0));
    let t = thread::spawn({
        let s = s.clone();
        move || s.wait(3, Deadline::after(Duration::from_secs(20)))
    });
    s.signal(1).unwrap();
    s.signal(5).unwrap();
    t.join().unwrap().unwrap();
    assert_eq!(s.signal(5).unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(s.wait(6, Deadline::Now).unwrap_err().code(), Code::DeadlineExceeded);
}

#[test]
fn failure_is_final_and_reaches_waiters_and_timepoints() {
    let s = SoftSemaphore::new(1, 0);
    let calls = Arc::new(AtomicU32::new(0));
    for value in [1, 2] {
        let calls = calls.clone();
        s.on_reached(
            value,
            Box::new(move |r| _ = calls.fetch_add(1 + 10 * r.is_err() as u32, Ordering::SeqCst)),
        );
    }
    s.signal(1).unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    s.fail(Status::new(Code::DataLoss, "first"));
    s.fail(Status::new(Code::Internal, "second"));
    assert_eq!(calls.load(Ordering::SeqCst), 12);
    assert_eq!(s.query().unwrap_err().message(), "first");
    assert_eq!(s.wait(1, Deadline::Never).unwrap_err().code(), Code::DataLoss);
}

#[test]
fn joined_fences_keep_the_later_point() {
    let s: Arc<dyn Semaphore> = Arc::new(SoftSemaphore::new(1, 0));
    let t: Arc<dyn Semaphore> = Arc::new(SoftSemaphore::new(1, 7));
    let f = Fence::join([&Fence::new(s.clone(), 2), &Fence::new(s.clone(), 1), &Fence::new(t, 7)]);
    assert_eq!(f.points().len(), 2);
    assert!(!f.query().unwrap());
    f.signal().unwrap();
    assert_eq!(s.query().unwrap(), 2);
    assert!(f.query().unwrap());
}

#[test]
fn timepoints_run_in_order_of_their_values() {
    let s = SoftSemaphore::new(1, 0);
    let order = Arc::new(Mutex::new(Vec::new()));
    for value in [3, 1, 2, 9] {
        let order = order.clone();
        s.on_reached(value, Box::new(move |_| order.lock().push(value)));
    }
    assert!(s.has_timepoints());
    s.signal(5).unwrap();
    assert_eq!(*order.lock(), [1, 2, 3]);
    s.advance(4).unwrap();
    assert_eq!(s.query().unwrap(), 5);
    s.advance(9).unwrap();
    assert_eq!(*order.lock(), [1, 2, 3, 9]);
    assert!(!s.has_timepoints());
}

#[test]
fn of_racing_signals_of_one_value_one_wins() {
    for _ in 0..100 {
        let s = SoftSemaphore::new(1, 0);
        let wins = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| wins.fetch_add(s.signal(1).is_ok() as u32, Ordering::SeqCst));
            }
        });
        assert_eq!(wins.into_inner(), 1);
    }
}

fn counted(fence: &Fence) -> Arc<Mutex<Vec<Result<()>>>> {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let log = calls.clone();
    fence.on_reached(Box::new(move |result| log.lock().push(result)));
    calls
}

#[test]
fn a_fence_calls_back_once_when_all_points_are_reached() {
    assert_eq!(counted(&Fence::default()).lock().len(), 1);
    let [a, b]: [Arc<dyn Semaphore>; 2] = [0, 3].map(|v| Arc::new(SoftSemaphore::new(1, v)) as _);
    let fence =
        Fence::join([&Fence::new(a.clone(), 2), &Fence::new(b.clone(), 4), &Fence::new(b.clone(), 1)]);
    let calls = counted(&fence);
    a.signal(2).unwrap();
    assert!(calls.lock().is_empty());
    b.signal(7).unwrap();
    assert!(matches!(calls.lock()[..], [Ok(())]));
}

#[test]
fn a_fence_calls_back_once_when_the_first_point_fails() {
    let [a, b]: [Arc<dyn Semaphore>; 2] = [0, 0].map(|v| Arc::new(SoftSemaphore::new(1, v)) as _);
    let calls = counted(&Fence::join([&Fence::new(a.clone(), 1), &Fence::new(b.clone(), 1)]));
    a.fail(Status::new(Code::DataLoss, "lost"));
    b.signal(1).unwrap();
    let calls = calls.lock();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].as_ref().unwrap_err().message(), "lost");
}

#[test]
fn a_failed_point_keeps_no_other_point_from_being_signalled() {
    let [a, b]: [Arc<dyn Semaphore>; 2] = [0, 0].map(|v| Arc::new(SoftSemaphore::new(1, v)) as _);
    a.fail(Status::new(Code::DataLoss, "lost"));
    let fence = Fence::join([&Fence::new(a, 1), &Fence::new(b.clone(), 1)]);
    assert_eq!(fence.signal().unwrap_err().code(), Code::DataLoss);
    assert_eq!(b.query().unwrap(), 1);
}

#[test]
fn failing_a_fence_wakes_a_waiter_without_a_deadline() {
    let s: Arc<dyn Semaphore> = Arc::new(SoftSemaphore::new(1, 0));
    let fence = Fence::new(s, 1);
    let waiter = thread::spawn({
        let fence = fence.clone();
        move || fence.wait(Deadline::Never)
    });
    fence.fail(&Status::new(Code::Aborted, "given up"));
    assert_eq!(waiter.join().unwrap().unwrap_err().code(), Code::Aborted);
    assert!(fence.query().is_err());
}

#[test]
fn long_chains_of_waits_that_never_end_are_dropped_flat() {
    let chain = thread::Builder::new().stack_size(128 * 1024).spawn(|| {
        let first = Arc::new(SoftSemaphore::new(1, 0));
        let end = Arc::new(());
        let mut last = first.clone();
        for _ in 0..50_000 {
            let next = Arc::new(SoftSemaphore::new(1, 0));
            let (held, end) = (next.clone(), end.clone());
            last.on_reached(1, Box::new(move |_| drop((held, end))));
            last = next;
        }
        drop((first, last));
        Arc::strong_count(&end)
    });
    assert_eq!(chain.unwrap().join().unwrap(), 1);
}
