//! Failures of Vulkan calls and of loading libraries, as statuses and words.

use std::error::Error as _;

use ash::vk;
use halite_hal::{Code, Status};

/// The system's own words for why a library did not load.
pub(crate) fn load_reason(error: &libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

/// Builds the status for a failed call. `device` is the device and its driver, or empty before one is chosen.
pub(crate) fn vk_error(call: &'static str, result: vk::Result, object: &str, device: &str) -> Status {
    let (code, sentence) = explain(result);
    let name = result_name(result);
    let object = if object.is_empty() { String::new() } else { format!(" ({object})") };
    let place = if device.is_empty() { String::new() } else { format!(" on {device}") };
    let status = Status::new(code, format!("{call} failed with {name}{object}{place}: {sentence}"));
    let status = status.with_detail("vk.call", call).with_detail("vk.result", name);
    if device.is_empty() { status } else { status.with_detail("device", device) }
}

/// The result's name without its `VK_` prefix, such as `ERROR_DEVICE_LOST`.
pub(crate) fn result_name(result: vk::Result) -> String {
    format!("{result:?}")
}

/// What ran out, for results that say so.
fn exhausted(result: vk::Result) -> Option<&'static str> {
    Some(match result {
        vk::Result::ERROR_OUT_OF_HOST_MEMORY => "host memory ran out",
        vk::Result::ERROR_OUT_OF_DEVICE_MEMORY => "device memory ran out",
        vk::Result::ERROR_OUT_OF_POOL_MEMORY | vk::Result::ERROR_FRAGMENTED_POOL => {
            "a descriptor pool ran out"
        }
        vk::Result::ERROR_FRAGMENTATION => "memory is too fragmented",
        vk::Result::ERROR_TOO_MANY_OBJECTS => "the driver holds as many objects of this kind as it can",
        vk::Result::ERROR_MEMORY_MAP_FAILED => {
            "the memory cannot be mapped; host address space may have run out"
        }
        _ => return None,
    })
}

fn explain(result: vk::Result) -> (Code, &'static str) {
    if let Some(what) = exhausted(result) {
        return (Code::ResourceExhausted, what);
    }
    match result {
        vk::Result::ERROR_DEVICE_LOST => (
            Code::DataLoss,
            "device lost; the driver reset the GPU, work in flight is gone; open the device again and look at \
             the system log for the cause",
        ),
        vk::Result::ERROR_INITIALIZATION_FAILED => {
            (Code::Unavailable, "the driver could not start; another program may hold the device")
        }
        vk::Result::ERROR_INCOMPATIBLE_DRIVER => {
            (Code::Unavailable, "no installed Vulkan driver fits; install one for this machine's GPU")
        }
        vk::Result::ERROR_FEATURE_NOT_PRESENT => {
            (Code::Unavailable, "the device lacks a feature that was asked for")
        }
        vk::Result::ERROR_EXTENSION_NOT_PRESENT => {
            (Code::Unavailable, "an extension that was asked for is not offered")
        }
        vk::Result::ERROR_LAYER_NOT_PRESENT => {
            (Code::Unavailable, "a layer that was asked for is not installed")
        }
        vk::Result::ERROR_INVALID_SHADER_NV => {
            (Code::InvalidArgument, "the driver does not accept the shader")
        }
        vk::Result::ERROR_INVALID_EXTERNAL_HANDLE | vk::Result::ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS => {
            (Code::InvalidArgument, "the handle or address cannot be used")
        }
        vk::Result::ERROR_NOT_PERMITTED_KHR => (Code::PermissionDenied, "the system does not permit it"),
        vk::Result::ERROR_FORMAT_NOT_SUPPORTED => {
            (Code::Unimplemented, "the device does not support the format")
        }
        vk::Result::TIMEOUT | vk::Result::NOT_READY => (Code::DeadlineExceeded, "it did not finish in time"),
        vk::Result::PIPELINE_COMPILE_REQUIRED => {
            (Code::FailedPrecondition, "the pipeline is not in the cache")
        }
        vk::Result::ERROR_UNKNOWN | vk::Result::ERROR_VALIDATION_FAILED_EXT => {
            (Code::Internal, "the driver failed without saying why; run with validation=all to learn more")
        }
        _ => (Code::Unknown, "the driver gave a result that this call should not give"),
    }
}
