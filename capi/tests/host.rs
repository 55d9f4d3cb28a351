//! What the C interface does without a device: tensors, values, wrong arguments, logs, lists of devices.

mod common;

use std::{
    ffi::{c_char, c_void},
    ptr,
    sync::atomic::{AtomicUsize, Ordering},
};

use common::*;
use halite_c::{
    builder::*, compile::*, compiler::*, drivers::*, error::*, failure::*, logging::*, options::*,
    session::*, signature::*, source::*, state::*, tensor::*, value::*, values::*, version::*,
};

/// Counts releases.
unsafe extern "C" fn count(context: *mut c_void) {
    // SAFETY: the context is a counter.
    unsafe { &*context.cast::<AtomicUsize>() }.fetch_add(1, Ordering::SeqCst);
}

fn context(counter: &AtomicUsize) -> *mut c_void {
    ptr::from_ref(counter).cast_mut().cast()
}

#[test]
fn versions_are_told() {
    // SAFETY: texts and numbers.
    assert_eq!(text(halite_version()), env!("CARGO_PKG_VERSION"));
    assert_eq!(halite_abi_version(), (HALITE_C_ABI_MAJOR << 16) | HALITE_C_ABI_MINOR);
}

#[test]
fn tensors_are_made_read_and_reshaped() {
    let tensor = floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]);
    // SAFETY: handles are ours, arrays as long as is said.
    unsafe {
        assert_eq!((halite_tensor_rank(tensor), halite_tensor_size(tensor)), (2, 24));
        assert_eq!(std::slice::from_raw_parts(halite_tensor_shape(tensor), 2), [2, 3]);
        assert_eq!(halite_tensor_element_type(tensor), HALITE_ELEMENT_F32);
        assert!(!halite_tensor_is_on_device(tensor) && !halite_tensor_data(tensor).is_null());
        let other = made(|out| halite_tensor_reshape(tensor, [6usize].as_ptr(), 1, out)).unwrap();
        assert_eq!(halite_tensor_data(other), halite_tensor_data(tensor));
        let told = made(|out| halite_tensor_reshape(tensor, [5usize].as_ptr(), 1, out)).unwrap_err();
        assert_eq!(told.kind, HALITE_ERROR_INVALID_INPUT);
        let mut short = [0u8; 23];
        let told = outcome(halite_tensor_read(tensor, short.as_mut_ptr().cast(), short.len())).unwrap_err();
        assert!(told.text.contains("24 bytes, not 23"), "{}", told.text);
        let told = made(|out| halite_tensor_device(tensor, out)).unwrap_err();
        assert_eq!(told.kind, HALITE_ERROR_NOT_FOUND);
        halite_tensor_free(tensor);
        assert_eq!(read(other), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let zeros = made(|out| halite_tensor_zeros(HALITE_ELEMENT_F32, ptr::null(), 0, out)).unwrap();
        assert_eq!(read(zeros), [0.0]);
        let huge = [usize::MAX, usize::MAX];
        assert!(made(|out| halite_tensor_zeros(HALITE_ELEMENT_F32, huge.as_ptr(), 2, out)).is_err());
    }
}

#[test]
fn borrowed_memory_is_released_once_and_late() {
    let (counter, values) = (AtomicUsize::new(0), [1.0f32, 2.0]);
    let borrow = |release: halite_release_fn, shape: usize, size: usize| {
        // SAFETY: the memory outlives the tensors of this test.
        made(|out| unsafe {
            let (shape, data) = ([shape], values.as_ptr().cast());
            halite_tensor_borrow(
                HALITE_ELEMENT_F32,
                shape.as_ptr(),
                1,
                data,
                size,
                release,
                context(&counter),
                out,
            )
        })
    };
    let tensor = borrow(Some(count), 2, 8).unwrap();
    // SAFETY: handles are ours.
    unsafe {
        assert_eq!(halite_tensor_data(tensor), values.as_ptr().cast());
        let other = made(|out| halite_tensor_reshape(tensor, [2usize, 1].as_ptr(), 2, out)).unwrap();
        halite_tensor_free(tensor);
        assert_eq!(counter.load(Ordering::SeqCst), 0);
        halite_tensor_free(other);
    }
    assert_eq!(counter.load(Ordering::SeqCst), 1);
    assert!(borrow(Some(count), 3, 8).is_err());
    assert_eq!(counter.load(Ordering::SeqCst), 2, "a call that fails releases, too");
    assert!(borrow(None, 2, 8).unwrap_err().text.contains("halite_tensor_create"));
}

#[test]
fn values_of_all_kinds_pass() {
    // SAFETY: handles are ours, arrays as long as is said.
    unsafe {
        let all =
            [halite_value_i32(-3), halite_value_i64(1 << 40), halite_value_f32(0.5), halite_value_f64(0.25)];
        let views = all.map(<*mut halite_value>::cast_const);
        let list = made(|out| halite_value_list(views.as_ptr(), views.len(), out)).unwrap();
        all.into_iter().for_each(|value| halite_value_free(value));
        assert_eq!((halite_value_get_kind(list), halite_value_count(list)), (HALITE_VALUE_LIST, 4));
        let at = |index| made(|out| halite_value_at(list, index, out));
        let (mut integer, mut float) = (0, 0.0);
        let second = at(1).unwrap();
        outcome(halite_value_as_integer(second, &mut integer)).unwrap();
        assert!(outcome(halite_value_as_float(second, &mut float)).unwrap_err().text.contains("i64"));
        let third = at(2).unwrap();
        outcome(halite_value_as_float(third, &mut float)).unwrap();
        assert_eq!((integer, float), (1 << 40, 0.5));
        assert_eq!(at(4).unwrap_err().kind, HALITE_ERROR_NOT_FOUND);
        assert!(made(|out| halite_value_as_tensor(third, out)).is_err());
        [list, second, third].into_iter().for_each(|value| halite_value_free(value));
    }
}

#[test]
fn null_is_told_or_answered_with_nothing() {
    // SAFETY: null is allowed everywhere.
    unsafe {
        let null = ptr::null_mut::<halite_session>();
        let told = made(|out| halite_session_run(null, ptr::null(), 0, ptr::null(), out)).unwrap_err();
        assert_eq!(
            (told.kind, told.text.as_str()),
            (HALITE_ERROR_INVALID_INPUT, "INVALID_ARGUMENT; 'session' is NULL")
        );
        let told = outcome(halite_session_open(c"x".as_ptr(), ptr::null(), ptr::null_mut())).unwrap_err();
        assert!(told.text.contains("'out' is NULL"));
        assert_eq!(halite_session_function_count(null), 0);
        assert!(halite_session_signature(null, 0).is_null());
        assert_eq!(halite_tensor_size(ptr::null()), 0);
        assert!(!halite_cancel_token_is_cancelled(ptr::null()));
        assert_eq!(halite_error_get_kind(ptr::null()), 0);
        assert!(halite_error_text(ptr::null()).is_null());
        halite_session_free(null);
        halite_error_free(ptr::null_mut());
        halite_session_builder_device(ptr::null_mut(), c"vulkan".as_ptr());
        halite_state_free(ptr::null_mut());
        halite_outputs_free(ptr::null_mut());
    }
}

#[test]
fn a_builder_tells_of_the_first_thing_that_was_wrong() {
    // SAFETY: handles are ours.
    unsafe {
        let builder = halite_session_builder_create();
        halite_session_builder_device(builder, c"vulkan".as_ptr());
        halite_session_builder_precision(builder, 77);
        halite_session_builder_model_path(builder, ptr::null());
        let told = made(|out| halite_session_builder_build(builder, ptr::null(), out)).unwrap_err();
        assert!(told.text.contains("no precision 77"), "{}", told.text);
        assert!(told.text.contains("halite_session_builder_precision"), "{}", told.text);
        // Empty again.
        let told = made(|out| halite_session_builder_build(builder, ptr::null(), out)).unwrap_err();
        assert!(told.text.contains("the builder is empty"), "{}", told.text);
        halite_session_builder_device(builder, c"vulkan".as_ptr());
        let told = made(|out| halite_session_builder_build(builder, ptr::null(), out)).unwrap_err();
        assert!(told.text.contains("needs a model"), "{}", told.text);
        halite_session_builder_model_path(builder, c"/no/such/model.onnx".as_ptr());
        let told = made(|out| halite_session_builder_build(builder, ptr::null(), out)).unwrap_err();
        assert_eq!(told.kind, HALITE_ERROR_NOT_FOUND);
        halite_session_builder_model_path(builder, c"/no/such/model.onnx".as_ptr());
        let options = halite_run_options { struct_size: 3, ..std::mem::zeroed() };
        let told = made(|out| halite_session_builder_build(builder, &options, out)).unwrap_err();
        assert!(told.text.contains("sizeof(halite_run_options)"), "{}", told.text);
        halite_session_builder_free(builder);
    }
}

/// A source of nothing.
fn source() -> halite_source {
    // SAFETY: zeros are pointers that are not set.
    halite_source { struct_size: size_of::<halite_source>(), ..unsafe { std::mem::zeroed() } }
}

unsafe extern "C" fn fails(_: *mut c_void, _: *mut u8, _: usize) -> i64 {
    -5
}

unsafe extern "C" fn lies(_: *mut c_void, _: *mut u8, capacity: usize) -> i64 {
    capacity as i64 + 1
}

#[test]
fn sources_are_released_whatever_happens() {
    let (counter, garbage) = (AtomicUsize::new(0), [7u8; 64]);
    let open = |source: &halite_source| {
        // SAFETY: the source lives until the call ends, its memory longer.
        made(|out| unsafe { halite_model_open(source, ptr::null(), out) }).unwrap_err()
    };
    let own = halite_source {
        release: Some(count),
        context: context(&counter),
        name: c"mine".as_ptr(),
        ..source()
    };
    let lent = halite_source { data: garbage.as_ptr(), size: garbage.len(), ..own };
    let told = open(&lent);
    assert_eq!((told.kind, counter.load(Ordering::SeqCst)), (HALITE_ERROR_INVALID_MODEL, 1), "{}", told.text);
    assert!(told.text.contains("mine"), "{}", told.text);
    for (read, what) in [(fails as unsafe extern "C" fn(_, _, _) -> _, "-5"), (lies, "room")] {
        let told = open(&halite_source { read: Some(read), ..own });
        assert!(told.text.contains(what), "{}", told.text);
    }
    assert_eq!(counter.load(Ordering::SeqCst), 3);
    assert!(open(&halite_source { read: Some(fails), ..lent }).text.contains("exactly one"));
    assert_eq!(counter.load(Ordering::SeqCst), 4);
    assert!(open(&source()).text.contains("exactly one"));
}

#[test]
fn models_are_compiled_to_modules() {
    let path = repo("demo/digits/digits.onnx");
    let stated = halite_source { path: path.as_ptr(), ..source() };
    // SAFETY: handles are ours, texts live.
    unsafe {
        let model = made(|out| halite_model_open(&stated, ptr::null(), out)).unwrap();
        assert_eq!(halite_model_function_count(model), 1);
        let mut info: halite_signature_info = std::mem::zeroed();
        info.struct_size = size_of::<halite_signature_info>();
        outcome(halite_signature_get(halite_model_signature(model, 0), &mut info)).unwrap();
        assert_eq!(text(info.text), "main('picture' f32[1,1,16,16]) -> ('probabilities' f32[1,10])");
        assert!(halite_model_signature(model, 1).is_null());

        let compiler = halite_compiler_create();
        halite_compiler_target(compiler, c"rdna3".as_ptr());
        let compiled = made(|out| halite_compiler_compile(compiler, model, ptr::null(), out)).unwrap();
        let module = taken(made(|out| halite_compiled_module(compiled, out)).unwrap());
        assert!(module.starts_with(b"PK") || &module[8..12] == b"IREE");
        let report = taken(made(|out| halite_compiled_explain_json(compiled, out)).unwrap());
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
        assert!(report.is_object());
        assert!(!taken(made(|out| halite_compiled_explain(compiled, out)).unwrap()).is_empty());
        let folder = tempfile::tempdir().unwrap();
        let to = std::ffi::CString::new(folder.path().join("d.vmfb").to_str().unwrap()).unwrap();
        outcome(halite_compiled_write(compiled, to.as_ptr())).unwrap();
        assert_eq!(std::fs::read(folder.path().join("d.vmfb")).unwrap(), module);
        let told = outcome(halite_compiled_write_parameters(compiled, to.as_ptr())).unwrap_err();
        assert!(told.text.contains("in the module"), "{}", told.text);
        halite_compiled_free(compiled);

        halite_compiler_target(compiler, c"no such gpu".as_ptr());
        let told = made(|out| halite_compiler_compile(compiler, model, ptr::null(), out)).unwrap_err();
        assert!(told.text.contains("halite_compiler_target"), "{}", told.text);
        halite_compiler_free(compiler);
        halite_model_free(model);
    }
}

static LINES: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn hear(_: *mut c_void, level: u32, target: *const c_char, message: *const c_char) {
    assert!((1..=5).contains(&level) && !text(target).is_empty());
    if text(message).contains("hear this") {
        LINES.fetch_add(1, Ordering::SeqCst);
        // SAFETY: a function and no context.
        let told = outcome(unsafe { halite_log_set(Some(hear), ptr::null_mut(), 1) })
            .expect_err("not in a listener");
        assert!(told.text.contains("cannot replace itself"));
        log::error!("hear this not");
    }
}

#[test]
fn the_log_is_heard_until_nobody_listens() {
    // SAFETY: a function and no context.
    unsafe {
        assert!(outcome(halite_log_set(Some(hear), ptr::null_mut(), 9)).is_err());
        outcome(halite_log_set(Some(hear), ptr::null_mut(), 2)).unwrap();
        log::warn!("hear this");
        log::info!("hear this not");
        outcome(halite_log_set(None, ptr::null_mut(), 0)).unwrap();
    }
    log::error!("hear this not");
    assert_eq!(LINES.load(Ordering::SeqCst), 1);
}

#[test]
fn devices_are_listed() {
    // SAFETY: handles are ours.
    unsafe {
        let drivers = made(|out| halite_drivers_create(false, out)).unwrap();
        outcome(halite_drivers_set_option(drivers, c"task_threads".as_ptr(), c"1".as_ptr())).unwrap();
        halite_drivers_free(drivers);
        let list = made(|out| halite_device_list_create(ptr::null(), out)).unwrap();
        let mut uris = Vec::new();
        for index in 0..halite_device_list_count(list) {
            let mut info: halite_device_info = std::mem::zeroed();
            info.struct_size = size_of::<halite_device_info>();
            outcome(halite_device_list_get(list, index, &mut info)).unwrap();
            uris.push(text(info.uri));
            assert!(!text(info.name).is_empty() && info.kind <= HALITE_DEVICE_CPU);
            let properties = match info.property_count {
                0 => &[][..],
                count => std::slice::from_raw_parts(info.properties, count),
            };
            properties.iter().for_each(|property| assert!(!text(property.name).is_empty()));
        }
        assert!(uris.iter().any(|uri| uri.starts_with("local")), "{uris:?}");
        let (mut driver, mut why) = (ptr::null(), ptr::null());
        let mut index = 0;
        while halite_device_list_unavailable(list, index, &mut driver, &mut why) {
            assert!(!text(driver).is_empty() && !text(why).is_empty());
            index += 1;
        }
        assert!(driver.is_null() && why.is_null());
        let mut info: halite_device_info = std::mem::zeroed();
        assert!(
            outcome(halite_device_list_get(list, 0, &mut info)).unwrap_err().text.contains("struct_size")
        );
        halite_device_list_free(list);
    }
}
