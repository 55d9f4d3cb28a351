//! The layout of IREE's executable library interface, version 0.6, as 64-bit processors have it.
//!
//! Offsets were verified by calling code that iree-compile 3.13.0 made. Only what Halite hands to code is a struct;
//! what a library says is read field by field, because it is untrusted.

use std::ffi::{c_int, c_void};

/// The only version of the interface that libraries of this age answer to.
pub(crate) const VERSION: u32 = 6;

/// Name of the function that a library exports.
pub(crate) const QUERY_SYMBOL: &str = "iree_hal_executable_library_query";

/// Bytes of a page of local memory.
pub(crate) const LOCAL_MEMORY_PAGE: usize = 4096;

/// `query(max_version, environment)`: a library, or null for a version that it does not know.
pub(crate) type Query = unsafe extern "C" fn(u32, *const Environment) -> *const c_void;

/// `dispatch(environment, dispatch state, workgroup state)`: 0 when all is well.
pub(crate) type DispatchFunction =
    unsafe extern "C" fn(*const Environment, *const DispatchState, *const WorkgroupState) -> c_int;

/// `thunk(function, parameters, context, reserved)` through which code calls imports.
pub(crate) type ImportThunk =
    unsafe extern "C" fn(*const c_void, *mut c_void, *mut c_void, *mut c_void) -> c_int;

/// What a library may look at as long as it is loaded.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Environment {
    /// Specialization constants.
    pub constants: *const u32,
    /// Calls imports; never null.
    pub import_thunk: ImportThunk,
    /// Imported functions; null for optional ones that are missing.
    pub import_functions: *const *const c_void,
    /// A context for each.
    pub import_contexts: *const *mut c_void,
    /// Processor features.
    pub processor: [u64; 8],
}

/// What all workgroups of a dispatch share.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct DispatchState {
    pub workgroup_size_x: u32,
    pub workgroup_size_y: u32,
    pub workgroup_size_z: u16,
    pub constant_count: u16,
    pub workgroup_count_x: u32,
    pub workgroup_count_y: u32,
    pub workgroup_count_z: u16,
    pub max_concurrency: u8,
    pub binding_count: u8,
    pub constants: *const u32,
    pub binding_pointers: *const *mut u8,
    pub binding_lengths: *const usize,
}

/// What one workgroup has of its own.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct WorkgroupState {
    pub workgroup_id_x: u32,
    pub workgroup_id_y: u32,
    pub workgroup_id_z: u16,
    pub reserved: u16,
    pub processor_id: u32,
    pub local_memory: *mut u8,
    pub local_memory_size: u32,
}

/// Offsets of the fields of a library that are read.
pub(crate) mod library {
    pub const SIZE: usize = 128;
    pub const HEADER: usize = 0;
    pub const IMPORT_COUNT: usize = 8;
    pub const IMPORT_SYMBOLS: usize = 16;
    pub const EXPORT_COUNT: usize = 24;
    pub const EXPORT_FUNCTIONS: usize = 32;
    pub const EXPORT_ATTRIBUTES: usize = 40;
    pub const EXPORT_NAMES: usize = 64;
    pub const CONSTANT_COUNT: usize = 104;
}

/// Offsets of the fields of a library's header.
pub(crate) mod header {
    pub const SIZE: usize = 24;
    pub const VERSION: usize = 0;
    pub const FEATURES: usize = 16;
    pub const SANITIZER: usize = 20;
}

/// Offsets of the fields of an export's attributes.
pub(crate) mod attributes {
    pub const SIZE: usize = 64;
    pub const FLAGS: usize = 0;
    pub const LOCAL_MEMORY_PAGES: usize = 8;
    pub const CONSTANT_COUNT: usize = 10;
    pub const BINDING_COUNT: usize = 11;
    pub const WORKGROUP_SIZE_X: usize = 12;
    pub const WORKGROUP_SIZE_Y: usize = 16;
    pub const WORKGROUP_SIZE_Z: usize = 20;
    /// Workgroups have to run one after the other.
    pub const FLAG_SEQUENTIAL: u64 = 1;
    /// The workgroup size is the dispatcher's choice.
    pub const FLAG_WORKGROUP_SIZE_DYNAMIC: u64 = 2;
}

const _: () = {
    assert!(size_of::<Environment>() == 96);
    assert!(size_of::<DispatchState>() == 48);
    assert!(size_of::<WorkgroupState>() == 32);
    assert!(std::mem::offset_of!(DispatchState, max_concurrency) == 22);
    assert!(std::mem::offset_of!(DispatchState, constants) == 24);
    assert!(std::mem::offset_of!(WorkgroupState, local_memory) == 16);
};
