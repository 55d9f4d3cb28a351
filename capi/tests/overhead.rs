//! What a call costs through the C interface beside the same call in Rust, in processor time of the calling thread. Printed, and held
//! to a bound that only a copy or a lock that is waited for would break.

mod common;

use std::{ffi::CString, ptr, time::Duration};

use common::{device, made, named};
use cpu_time::ThreadTime;
use halite::{Cache, Session, Tensor};
use halite_c::{builder::*, device::*, session::*, tensor::*, values::*};

/// `next = 0.5 * state + 0.5 * sample`, for any number of elements.
const SMOOTH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../halite/examples/smooth.onnx");
const ROUNDS: usize = 200;
const CALLS: u32 = 5;

/// The least of some times: what disturbs a call only adds to it.
fn least(times: &[Duration]) -> Duration {
    times.iter().copied().min().unwrap_or_default()
}

/// Processor time of one call, over some.
fn timed(mut call: impl FnMut()) -> Duration {
    let start = ThreadTime::now();
    (0..CALLS).for_each(|_| call());
    start.elapsed() / CALLS
}

#[test]
fn a_call_costs_little_more_than_in_rust() {
    let Some(device) = device() else { return };
    // SAFETY: handles are ours, arrays as long as is said.
    unsafe {
        let builder = halite_session_builder_create();
        let path = CString::new(SMOOTH).expect("paths have no zero");
        halite_session_builder_model_path(builder, path.as_ptr());
        halite_session_builder_open_device(builder, device);
        halite_session_builder_no_cache(builder);
        let session = made(|out| halite_session_builder_build(builder, ptr::null(), out)).expect("it builds");
        halite_session_builder_free(builder);
        let own = halite::Device::open("vulkan").expect("the device opened before");
        let rust =
            Session::builder().model(SMOOTH).device(&own).cache(Cache::off()).build().expect("it builds");

        let here = common::floats(&[1.0; 16], &[16]);
        let there = made(|out| halite_tensor_to_device(here, device, out)).expect("it is copied");
        let tensor =
            Tensor::from_slice(&[1.0f32; 16], 16).and_then(|t| t.to_device(&own)).expect("it is copied");
        let inputs = [named(c"state", there), named(c"sample", there)];
        let through_c = || {
            let outputs = made(|out| halite_session_run(session, inputs.as_ptr(), 2, ptr::null(), out));
            let outputs = outputs.expect("it runs");
            let next =
                made(|out| halite_outputs_tensor(outputs, c"next".as_ptr(), out)).expect("it is there");
            halite_tensor_free(next);
            halite_outputs_free(outputs);
        };
        let in_rust = || {
            let outputs = rust.run([("state", &tensor), ("sample", &tensor)]).expect("it runs");
            drop(outputs["next"].clone());
        };
        through_c();
        in_rust();
        let (mut c, mut r) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            c.push(timed(through_c));
            r.push(timed(in_rust));
        }
        let (c, r) = (least(&c), least(&r));
        println!("a call and its result: {c:?} through C, {r:?} in Rust, {:?} more", c.saturating_sub(r));
        assert!(c < r + r / 2 + Duration::from_micros(50), "{c:?} through C, {r:?} in Rust");
        [here, there].into_iter().for_each(|tensor| halite_tensor_free(tensor));
        halite_session_free(session);
        halite_device_free(device);
    }
}
