//! What tests of the C interface share: calling it as C does, and the device that they run on.
#![allow(dead_code, reason = "each test file uses a part")]

pub mod models;

use std::{
    ffi::{CStr, CString, c_char},
    path::Path,
    ptr,
};

use halite_c::{blob::*, device::*, error::*, failure::*, session::*, tensor::*, values::*};

/// An error as a program sees it: its kind and its text.
#[derive(Debug, PartialEq)]
pub struct Told {
    pub kind: halite_error_kind,
    pub text: String,
}

/// Takes an error.
pub fn outcome(error: *mut halite_error) -> Result<(), Told> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the error is ours.
    unsafe {
        let told = Told { kind: halite_error_get_kind(error), text: text(halite_error_text(error)) };
        halite_error_free(error);
        Err(told)
    }
}

/// A call that gives a handle.
pub fn made<T>(call: impl FnOnce(*mut *mut T) -> *mut halite_error) -> Result<*mut T, Told> {
    let mut out = ptr::dangling_mut();
    let told = outcome(call(&mut out));
    assert_eq!(told.is_err(), out.is_null(), "a handle is null exactly when the call failed");
    told.map(|()| out)
}

/// A text that the library gave.
pub fn text(pointer: *const c_char) -> String {
    assert!(!pointer.is_null());
    // SAFETY: the library's texts end with a zero.
    unsafe { CStr::from_ptr(pointer) }.to_str().expect("texts are UTF-8").to_owned()
}

/// The bytes of a blob, which is freed.
pub fn taken(blob: *mut halite_blob) -> Vec<u8> {
    // SAFETY: the blob is ours.
    unsafe {
        let bytes = std::slice::from_raw_parts(halite_blob_data(blob), halite_blob_size(blob)).to_vec();
        assert_eq!(*halite_blob_data(blob).add(bytes.len()), 0);
        halite_blob_free(blob);
        bytes
    }
}

/// A file of the repository.
pub fn repo(path: &str) -> CString {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    CString::new(path.to_str().expect("the repository lies at a plain path")).expect("paths have no zero")
}

/// An array of the demo.
pub fn array(name: &str) -> Vec<f32> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../demo/digits").join(name);
    let bytes = std::fs::read(path).expect("the demo is part of the repository");
    let array = halite::host::npy::read(&mut &bytes[..]).expect("the demo's arrays are whole");
    halite::Tensor::from(array.expect("the file has an array")).to_vec().expect("they are floats")
}

/// A Vulkan device, or a line that says why the test does nothing.
pub fn device() -> Option<*mut halite_device> {
    // SAFETY: the arguments are a text and a place.
    match made(|out| unsafe { halite_device_open(ptr::null(), c"vulkan".as_ptr(), out) }) {
        Ok(device) => Some(device),
        Err(told) => {
            println!("SKIPPED: no Vulkan device: {}", told.text);
            None
        }
    }
}

/// A tensor of floats with a copy of them.
pub fn floats(values: &[f32], shape: &[usize]) -> *mut halite_tensor {
    let size = size_of_val(values);
    // SAFETY: the arrays are as long as is said.
    made(|out| unsafe {
        halite_tensor_create(
            HALITE_ELEMENT_F32,
            shape.as_ptr(),
            shape.len(),
            values.as_ptr().cast(),
            size,
            out,
        )
    })
    .expect("the shape fits")
}

/// The floats of a tensor, which is freed.
pub fn read(tensor: *mut halite_tensor) -> Vec<f32> {
    // SAFETY: the tensor is ours, the memory is as long as is said.
    unsafe {
        let size = halite_tensor_size(tensor);
        let mut values = vec![0f32; size / 4];
        outcome(halite_tensor_read(tensor, values.as_mut_ptr().cast(), size)).expect("it can be read");
        halite_tensor_free(tensor);
        values
    }
}

/// An input by name.
pub fn named(name: &CStr, tensor: *const halite_tensor) -> halite_input {
    halite_input { name: name.as_ptr(), tensor, value: ptr::null() }
}

/// Runs the default function with default options.
pub fn run(session: *const halite_session, inputs: &[halite_input]) -> Result<*mut halite_outputs, Told> {
    // SAFETY: the inputs are as many as is said.
    made(|out| unsafe { halite_session_run(session, inputs.as_ptr(), inputs.len(), ptr::null(), out) })
}

/// A result by name; the results are freed.
pub fn result(outputs: *mut halite_outputs, name: &CStr) -> *mut halite_tensor {
    // SAFETY: the results are ours.
    unsafe {
        let tensor = made(|out| halite_outputs_tensor(outputs, name.as_ptr(), out)).expect("it has a name");
        halite_outputs_free(outputs);
        tensor
    }
}
