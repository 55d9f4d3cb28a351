//! What the C interface does on a Vulkan device: sessions, results that stay there, state, progress, cancellation, calls that go on.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use std::{
    ffi::c_void,
    ptr,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

use common::*;
use halite_c::{
    builder::*, device::*, failure::*, function::*, options::*, pending::*, profile::*, session::*,
    signature::*, source::*, state::*, tensor::*, values::*,
};

/// `next = 0.5 * state + 0.5 * sample`, for any number of elements.
const SMOOTH: &[u8] = include_bytes!("../../halite/examples/smooth.onnx");

/// A session of bytes on a device, with no cache, which `change` may change.
fn session_of(
    device: *const halite_device,
    bytes: &[u8],
    change: impl FnOnce(*mut halite_session_builder),
    options: *const halite_run_options,
) -> Result<*mut halite_session, Told> {
    // SAFETY: handles are ours, arrays as long as is said; the bytes are copied.
    unsafe {
        let builder = halite_session_builder_create();
        let mut source: halite_source = std::mem::zeroed();
        source.struct_size = size_of::<halite_source>();
        (source.data, source.size) = (bytes.as_ptr(), bytes.len());
        halite_session_builder_model(builder, &source);
        halite_session_builder_open_device(builder, device);
        halite_session_builder_no_cache(builder);
        change(builder);
        let made = made(|out| halite_session_builder_build(builder, options, out));
        halite_session_builder_free(builder);
        made
    }
}

fn digits(device: *const halite_device) -> *mut halite_session {
    let bytes = std::fs::read(repo("demo/digits/digits.onnx").to_str().unwrap()).unwrap();
    session_of(device, &bytes, |_| {}, ptr::null()).unwrap()
}

fn near(actual: &[f32], expected: &[f32]) -> bool {
    actual.len() == expected.len()
        && actual.iter().zip(expected).all(|(a, e)| (a - e).abs() <= 1e-4 + 1e-4 * e.abs())
}

#[test]
fn a_digit_is_read_by_name_and_by_place() {
    let Some(device) = device() else { return };
    let session = digits(device);
    // SAFETY: handles are ours.
    unsafe {
        halite_device_free(device);
        let picture = floats(&array("sample_7.npy"), &[1, 1, 16, 16]);
        let outputs = run(session, &[named(c"picture", picture)]).unwrap();
        assert_eq!(halite_outputs_count(outputs), 1);
        assert_eq!(text(halite_outputs_name(outputs, 0)), "probabilities");
        assert!(halite_outputs_name(outputs, 1).is_null());
        let told = made(|out| halite_outputs_tensor(outputs, c"nothing".as_ptr(), out)).unwrap_err();
        assert_eq!(told.kind, HALITE_ERROR_NOT_FOUND);
        let result = result(outputs, c"probabilities");
        assert!(halite_tensor_is_on_device(result) && halite_tensor_data(result).is_null());
        let host = made(|out| halite_tensor_to_host(result, out)).unwrap();
        assert!(near(&read(result), &array("expected_7.npy")) && near(&read(host), &array("expected_7.npy")));

        let by_place = halite_input { name: ptr::null(), tensor: picture, value: ptr::null() };
        let outputs = run(session, &[by_place]).unwrap();
        let first = made(|out| halite_outputs_tensor_at(outputs, 0, out)).unwrap();
        halite_outputs_free(outputs);
        assert!(near(&read(first), &array("expected_7.npy")));

        let told = run(session, &[named(c"photo", picture)]).unwrap_err();
        assert!(told.text.contains("'photo'") && told.text.contains("'picture'"), "{}", told.text);
        let told = run(session, &[named(c"picture", picture), by_place]).unwrap_err();
        assert!(told.text.contains("before those by name"), "{}", told.text);
        halite_tensor_free(picture);
        halite_session_free(session);
    }
}

#[test]
fn signatures_name_inputs_and_their_dimensions() {
    let Some(device) = device() else { return };
    let session = session_of(device, SMOOTH, |_| {}, ptr::null()).unwrap();
    // SAFETY: handles are ours, structures state their sizes.
    unsafe {
        assert_eq!(halite_session_function_count(session), 1);
        let function = made(|out| halite_session_function(session, ptr::null(), out)).unwrap();
        halite_session_free(session);
        let signature = halite_function_signature(function);
        let mut whole: halite_signature_info = std::mem::zeroed();
        whole.struct_size = size_of::<halite_signature_info>();
        outcome(halite_signature_get(signature, &mut whole)).unwrap();
        assert_eq!((whole.input_count, whole.output_count), (2, 1));
        let mut info: halite_value_info = std::mem::zeroed();
        info.struct_size = size_of::<halite_value_info>();
        outcome(halite_signature_input(signature, 1, &mut info)).unwrap();
        assert_eq!((text(info.name), text(info.text)), ("sample".to_owned(), "'sample' f32[n]".to_owned()));
        assert_eq!((info.rank, info.has_rank, info.element_type), (1, true, HALITE_ELEMENT_F32));
        let dimension = &*info.dimensions;
        assert_eq!((dimension.kind, text(dimension.name)), (HALITE_DIMENSION_NAMED, "n".to_owned()));
        outcome(halite_signature_output(signature, 0, &mut info)).unwrap();
        assert_eq!(
            outcome(halite_signature_output(signature, 1, &mut info)).unwrap_err().kind,
            HALITE_ERROR_NOT_FOUND
        );
        halite_function_free(function);
        halite_device_free(device);
    }
}

#[test]
fn results_are_fed_back_without_a_copy() {
    let Some(device) = device() else { return };
    let session = session_of(device, SMOOTH, |_| {}, ptr::null()).unwrap();
    let there = |tensor: *mut halite_tensor| {
        // SAFETY: handles are ours.
        unsafe {
            let moved = made(|out| halite_tensor_to_device(tensor, device, out)).unwrap();
            halite_tensor_free(tensor);
            moved
        }
    };
    let stats = || {
        // SAFETY: the structure states its size.
        unsafe {
            let mut stats: halite_device_stats = std::mem::zeroed();
            stats.struct_size = size_of::<halite_device_stats>();
            outcome(halite_device_get_stats(device, &mut stats)).unwrap();
            (stats.uploaded_bytes, stats.downloaded_bytes)
        }
    };
    let (sample, mut state) = (there(floats(&[8.0; 100], &[100])), there(floats(&[0.0; 100], &[100])));
    let before = stats();
    for _ in 0..10 {
        let next =
            result(run(session, &[named(c"state", state), named(c"sample", sample)]).unwrap(), c"next");
        // SAFETY: the handle is ours.
        unsafe { halite_tensor_free(state) };
        state = next;
    }
    assert_eq!(stats(), before);
    assert_eq!(read(state), [7.992_187_5; 100]);
    recordings_are_counted(device);
    // SAFETY: handles are ours.
    unsafe {
        let own = made(|out| halite_session_device(session, 0, out)).unwrap();
        assert!(halite_device_is_same(own, device));
        halite_device_free(own);
        halite_tensor_free(sample);
        halite_session_free(session);
        halite_device_trim(device);
        halite_device_free(device);
    }
}

/// The counters of recordings are those of the device, and a caller that does not know them yet gets the rest.
fn recordings_are_counted(device: *const halite_device) {
    // SAFETY: the structure states its size, the second time that of interface 0.5.
    unsafe {
        let mut stats: halite_device_stats = std::mem::zeroed();
        stats.struct_size = size_of::<halite_device_stats>();
        outcome(halite_device_get_stats(device, &mut stats)).unwrap();
        assert!(stats.recordings_executed >= 10, "{}", stats.recordings_executed);
        assert!((1..=stats.recordings_executed).contains(&stats.recordings_written));
        assert!(stats.recordings_found_ahead <= stats.recordings_written_ahead);

        let mut older: halite_device_stats = std::mem::zeroed();
        older.struct_size = std::mem::offset_of!(halite_device_stats, recordings_executed);
        older.recordings_executed = u64::MAX;
        outcome(halite_device_get_stats(device, &mut older)).unwrap();
        assert_eq!((older.reserved, older.recordings_executed), (stats.reserved, u64::MAX));
    }
}

/// What progress does to the world.
struct Watch {
    is_in: AtomicBool,
    calls: AtomicUsize,
    cancel: *const halite_cancel_token,
}

unsafe extern "C" fn watch(context: *mut c_void, progress: *const halite_progress) {
    // SAFETY: the context is a watch, the progress lives.
    let (watch, progress) = unsafe { (&*context.cast::<Watch>(), &*progress) };
    assert!(!watch.is_in.swap(true, Ordering::SeqCst), "one call at a time");
    assert!(
        progress.struct_size == size_of::<halite_progress>()
            && progress.stage <= HALITE_STAGE_BUILDING_PIPELINES
    );
    assert!(!text(progress.detail).is_empty());
    watch.calls.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the token lives; null is allowed.
    unsafe { halite_cancel_token_cancel(watch.cancel) };
    watch.is_in.store(false, Ordering::SeqCst);
}

#[test]
fn progress_is_told_and_work_is_cancelled() {
    let Some(device) = device() else { return };
    // SAFETY: handles are ours, structures state their sizes.
    unsafe {
        let token = halite_cancel_token_create();
        let mut seen = Watch { is_in: false.into(), calls: 0.into(), cancel: ptr::null() };
        let mut options: halite_run_options = std::mem::zeroed();
        options.struct_size = size_of::<halite_run_options>();
        options.cancel = token;
        options.progress = Some(watch);
        options.progress_context = ptr::from_mut(&mut seen).cast();
        let fixed = |builder| halite_session_builder_dimension(builder, c"n".as_ptr(), 16);
        let session = session_of(device, SMOOTH, fixed, &options).unwrap();
        assert!(seen.calls.load(Ordering::SeqCst) > 0);
        seen.cancel = token;
        options.progress_context = ptr::from_mut(&mut seen).cast();
        let told = session_of(device, SMOOTH, fixed, &options).unwrap_err();
        assert_eq!(told.kind, HALITE_ERROR_CANCELLED, "{}", told.text);
        assert!(halite_cancel_token_is_cancelled(token));

        let x = floats(&[1.0; 16], &[16]);
        let inputs = [named(c"state", x), named(c"sample", x)];
        let call = |options: &halite_run_options| {
            made(|out| halite_session_run(session, inputs.as_ptr(), 2, options, out))
        };
        let before = call(&options).unwrap_err();
        assert_eq!(before.kind, HALITE_ERROR_CANCELLED);
        assert!(before.text.contains("cancelled before the call began"), "{}", before.text);
        let late = halite_run_options { timeout_ns: 1, cancel: ptr::null(), ..options };
        assert_eq!(call(&late).unwrap_err().kind, HALITE_ERROR_DEADLINE_EXCEEDED);
        let soon = halite_run_options { timeout_ns: 60_000_000_000, ..late };
        assert_eq!(read(result(call(&soon).unwrap(), c"next")), [1.0; 16]);
        halite_tensor_free(x);
        halite_session_free(session);
        halite_cancel_token_free(token);
        halite_device_free(device);
    }
}

#[test]
fn state_lives_between_calls() {
    let Some(device) = device() else { return };
    let with_state = |builder| {
        // SAFETY: the builder is alive.
        unsafe { halite_session_builder_state(builder, c"state".as_ptr(), c"next".as_ptr()) }
    };
    let session = session_of(device, SMOOTH, with_state, ptr::null()).unwrap();
    let sample = floats(&[8.0; 4], &[4]);
    let step = |state: *mut halite_state| {
        let input = [named(c"sample", sample)];
        // SAFETY: handles are ours.
        unsafe {
            let outputs = made(|out| halite_state_run(state, input.as_ptr(), 1, ptr::null(), out)).unwrap();
            assert_eq!(halite_outputs_count(outputs), 0);
            halite_outputs_free(outputs);
        }
    };
    // SAFETY: handles are ours.
    let now = |state: *mut halite_state| unsafe {
        read(made(|out| halite_state_tensor(state, c"state".as_ptr(), out)).unwrap())
    };
    // SAFETY: as above.
    unsafe {
        let state = made(|out| halite_session_state(session, out)).unwrap();
        assert_eq!((halite_state_count(state), text(halite_state_name(state, 0))), (1, "state".to_owned()));
        let mut absent = ptr::dangling_mut();
        outcome(halite_state_tensor(state, c"state".as_ptr(), &mut absent)).unwrap();
        assert!(absent.is_null() && halite_state_size(state) == 0);
        step(state);
        assert_eq!(now(state), [4.0; 4]);
        let saved = taken(made(|out| halite_state_save(state, out)).unwrap());
        let fork = made(|out| halite_state_fork(state, out)).unwrap();
        step(state);
        assert_eq!((now(state), now(fork)), (vec![6.0; 4], vec![4.0; 4]));
        outcome(halite_state_load(state, saved.as_ptr().cast(), saved.len())).unwrap();
        assert_eq!(now(state), [4.0; 4]);
        assert!(outcome(halite_state_load(state, saved.as_ptr().cast(), 5)).is_err());
        outcome(halite_state_set(state, c"state".as_ptr(), sample)).unwrap();
        assert_eq!(now(state), [8.0; 4]);
        outcome(halite_state_reset(state)).unwrap();
        step(state);
        assert_eq!(now(state), [4.0; 4]);
        assert!(outcome(halite_state_set(state, c"nothing".as_ptr(), sample)).is_err());
        [state, fork].into_iter().for_each(|state| halite_state_free(state));
        halite_tensor_free(sample);
        halite_session_free(session);
        halite_device_free(device);
    }
}

#[test]
fn calls_go_on_while_the_program_does() {
    let Some(device) = device() else { return };
    let session = digits(device);
    // SAFETY: handles are ours.
    unsafe {
        let function = made(|out| halite_session_function(session, c"main".as_ptr(), out)).unwrap();
        assert!(made(|out| halite_session_function(session, c"nothing".as_ptr(), out)).is_err());
        outcome(halite_function_prewarm(function, ptr::null(), 0, ptr::null())).unwrap();
        let picture = floats(&array("sample_3.npy"), &[1, 1, 16, 16]);
        let inputs = [named(c"picture", picture)];
        let pending =
            made(|out| halite_function_start(function, inputs.as_ptr(), 1, ptr::null(), out)).unwrap();
        for _ in 0..2 {
            let outputs = made(|out| halite_pending_wait(pending, ptr::null(), out)).unwrap();
            assert!(halite_pending_is_done(pending));
            assert!(near(&read(result(outputs, c"probabilities")), &array("expected_3.npy")));
        }
        halite_pending_free(pending);

        let mut outputs = ptr::null_mut();
        let profile =
            made(|out| halite_function_profile(function, inputs.as_ptr(), 1, ptr::null(), &mut outputs, out));
        match profile {
            Ok(profile) => {
                assert!(near(&read(result(outputs, c"probabilities")), &array("expected_3.npy")));
                let json = taken(made(|out| halite_profile_json(profile, out)).unwrap());
                let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
                assert!(json["total_ns"].as_u64().unwrap() > 0);
                assert!(!json["commands"].as_array().unwrap().is_empty());
                let trace = taken(made(|out| halite_profile_trace(profile, out)).unwrap());
                assert!(serde_json::from_slice::<serde_json::Value>(&trace).is_ok());
                halite_profile_free(profile);
            }
            Err(told) => assert_eq!(told.kind, HALITE_ERROR_UNSUPPORTED, "{}", told.text),
        }
        halite_tensor_free(picture);
        halite_function_free(function);
        halite_session_free(session);
        halite_device_free(device);
    }
}

#[test]
fn many_threads_share_a_session() {
    let Some(device) = device() else { return };
    let session = digits(device).expose_provenance();
    std::thread::scope(|scope| {
        for name in ["3", "7", "3", "7"] {
            scope.spawn(move || {
                let session = ptr::with_exposed_provenance::<halite_session>(session);
                for _ in 0..5 {
                    let picture = floats(&array(&format!("sample_{name}.npy")), &[1, 1, 16, 16]);
                    let outputs = run(session, &[named(c"picture", picture)]).unwrap();
                    // SAFETY: the handle is ours.
                    unsafe { halite_tensor_free(picture) };
                    assert!(near(
                        &read(result(outputs, c"probabilities")),
                        &array(&format!("expected_{name}.npy"))
                    ));
                }
            });
        }
    });
    // SAFETY: the threads are done.
    unsafe {
        halite_session_free(ptr::with_exposed_provenance_mut(session));
        halite_device_free(device);
    }
}

#[test]
fn models_of_strangers_are_bounded() {
    let Some(device) = device() else { return };
    // SAFETY: the handle is ours.
    unsafe { halite_device_free(device) };
    // SAFETY: handles are ours, texts live.
    unsafe {
        let builder = |bytes: u64| {
            let builder = halite_session_builder_create();
            halite_session_builder_model_path(builder, repo("demo/digits/digits.onnx").as_ptr());
            halite_session_builder_device(builder, c"vulkan".as_ptr());
            halite_session_builder_untrusted(builder);
            halite_session_builder_device_memory(builder, bytes);
            let made = made(|out| halite_session_builder_build(builder, ptr::null(), out));
            halite_session_builder_free(builder);
            made
        };
        let session = builder(1 << 30).unwrap();
        let picture = floats(&array("sample_7.npy"), &[1, 1, 16, 16]);
        let outputs = run(session, &[named(c"picture", picture)]).unwrap();
        assert!(near(&read(result(outputs, c"probabilities")), &array("expected_7.npy")));
        halite_tensor_free(picture);
        halite_session_free(session);
        let told = builder(64).unwrap_err();
        assert_eq!(told.kind, HALITE_ERROR_OUT_OF_MEMORY, "{}", told.text);
    }
}
