//! Timelines made of fences: on devices from which the shim takes timeline semaphores away, with two queues that wait for each
//! other. `loss.rs` and `shortage.rs` run on such devices too.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;
#[path = "common/shim.rs"]
mod shim;

use std::sync::Arc;

use common::*;
use halite_hal::{Buffer, Code, Device, DeviceInfo, Fence, QueueAffinity, QueueOp};
use shim::{OUT_OF_HOST_MEMORY, Shim, Timelines, on_shim};

/// Runs a test where there are no timeline semaphores.
fn on_hidden(test: impl Fn(&Shim, &DeviceInfo)) {
    on_shim(|shim, info| {
        if shim.timelines() == Timelines::Hidden {
            test(shim, info);
        }
    });
}

fn fill(data: &Arc<dyn Buffer>, value: u8) -> QueueOp {
    let target = span(data, 0, data.byte_length());
    QueueOp::Fill { target, pattern: u64::from(value), pattern_length: 1 }
}

/// Fills that take turns on two queues, each behind the one before. Stops at the first failure.
fn turns(device: &Arc<dyn Device>, data: &Arc<dyn Buffer>, count: u8) -> halite_hal::Result<Fence> {
    let mut last = Fence::default();
    for i in 0..count {
        let next = Fence::new(device.create_semaphore(0)?, 1);
        let affinity = QueueAffinity(1 << (i % 2));
        device.queue_submit(affinity, &last, &next, fill(data, i))?;
        last = next;
    }
    Ok(last)
}

#[test]
fn a_device_without_timeline_semaphores_is_used() {
    on_hidden(|shim, info| {
        let fact = |key: &str| info.properties.iter().find(|(k, _)| k == key).map(|(_, v)| v.clone());
        assert_eq!(fact("timeline").as_deref(), Some("native"), "as listed before the shim hid them");
        let device = shim.open(info, &[]).unwrap();
        let listed = device.info().properties.iter().find(|(k, _)| k == "timeline");
        assert_eq!(listed.map(|(_, v)| v.as_str()), Some("emulated"));
        let e = shim.open(info, &[("timeline", "native")]).unwrap_err();
        assert_eq!(e.code(), Code::InvalidArgument);
        assert!(e.to_string().contains("timeline=native"), "{e}");
        let data = buffer(&device, &[0; 64]);
        run(&device, fill(&data, 3));
        assert_eq!(read(&data), [3; 64]);
        assert_eq!(shim.calls("vkWaitSemaphores") + shim.calls("vkGetSemaphoreCounterValue"), 0);
    });
}

#[test]
fn queues_wait_for_each_other() {
    on_hidden(|shim, info| {
        let device = shim.open(info, &[("queues", "2")]).unwrap();
        assert_eq!(device.queue_count(), 2);
        let data = buffer(&device, &[0; 4096]);
        for round in 0..20 {
            turns(&device, &data, 40).unwrap().wait(seconds(30)).unwrap();
            assert_eq!(read(&data), [39; 4096], "round {round}");
        }
        let objects = shim.calls("vkCreateSemaphore") + shim.calls("vkCreateFence");
        assert!(objects < 200, "800 submissions made {objects} objects: they are not used again");
        drop((data, device));
        assert_eq!(shim.live(), 0);
    });
}

#[test]
fn semaphores_of_failed_submissions_are_waited_for_later() {
    on_hidden(|shim, info| {
        for after in 0..12 {
            let device = shim.open(info, &[("queues", "2")]).unwrap();
            let data = buffer(&device, &[0; 4096]);
            for call in ["vkQueueSubmit", "vkCreateFence", "vkCreateSemaphore", "vkResetFences"] {
                shim.fail(call, after, 1, OUT_OF_HOST_MEMORY);
                let outcome = turns(&device, &data, 12).and_then(|last| last.wait(seconds(30)));
                if let Err(e) = outcome {
                    assert_eq!(e.code(), Code::ResourceExhausted, "{call} after {after}: {e}");
                    assert!(e.to_string().contains(call), "{call} after {after}: {e}");
                }
                shim.clear();
                turns(&device, &data, 9).unwrap().wait(seconds(30)).unwrap();
                assert_eq!(read(&data), [8; 4096], "{call} after {after}");
            }
            device.wait_idle(seconds(30)).unwrap();
            drop((data, device));
            assert_eq!(shim.live(), 0, "after {after}");
        }
    });
}

#[test]
fn threads_on_two_queues_wait_for_each_other() {
    on_hidden(|shim, info| {
        let device = shim.open(info, &[("queues", "2")]).unwrap();
        let data: Vec<_> = (0..4).map(|_| buffer(&device, &[0; 256])).collect();
        std::thread::scope(|scope| {
            for data in &data {
                scope.spawn(|| {
                    for _ in 0..10 {
                        turns(&device, data, 30).unwrap().wait(seconds(60)).unwrap();
                    }
                });
            }
        });
        for data in &data {
            assert_eq!(read(data), [29; 256]);
        }
    });
}
