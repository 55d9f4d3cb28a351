//! The log of what is recorded into command buffers: barriers with their masks, and what they stand between.

use std::{
    ffi::{CStr, c_void},
    sync::{Mutex, MutexGuard, PoisonError},
};

use ash::vk;

use crate::instance::real_as;

/// Lines after which nothing more is logged.
const MOST_LINES: usize = 10_000;

/// One line for each command, in the order of the calls, whatever command buffer they are for.
pub(crate) fn log() -> MutexGuard<'static, Vec<String>> {
    static LOG: Mutex<Vec<String>> = Mutex::new(Vec::new());
    LOG.lock().unwrap_or_else(PoisonError::into_inner)
}

fn note(line: String) {
    let mut log = log();
    if log.len() < MOST_LINES {
        log.push(line);
    }
}

/// Commands that are only named.
macro_rules! named {
    ($($name:ident: $pfn:ident($($arg:ident: $ty:ty),*) is $word:literal;)*) => {
        $(
            #[allow(non_snake_case, reason = "Vulkan's own names")]
            unsafe extern "system" fn $name(commands: vk::CommandBuffer $(, $arg: $ty)*) {
                note($word.to_owned());
                // SAFETY: the type is that of the function with this name; arguments are the caller's.
                unsafe {
                    let name = CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes());
                    real_as::<vk::$pfn>(name)(commands $(, $arg)*);
                }
            }
        )*

        /// Our function in the place of the loader's.
        pub(crate) fn find(name: &CStr) -> Option<*const ()> {
            match name.to_bytes_with_nul() {
                b"vkCmdPipelineBarrier\0" => Some(pipeline_barrier as *const ()),
                $(bytes if bytes == concat!(stringify!($name), "\0").as_bytes() => Some($name as *const ()),)*
                _ => None,
            }
        }
    };
}

named! {
    vkCmdDispatch: PFN_vkCmdDispatch(x: u32, y: u32, z: u32) is "dispatch";
    vkCmdDispatchIndirect: PFN_vkCmdDispatchIndirect(buffer: vk::Buffer, offset: u64) is "dispatch";
    vkCmdFillBuffer: PFN_vkCmdFillBuffer(buffer: vk::Buffer, offset: u64, size: u64, data: u32) is "fill";
    vkCmdUpdateBuffer: PFN_vkCmdUpdateBuffer(buffer: vk::Buffer, offset: u64, size: u64, data: *const c_void)
        is "update";
    vkCmdCopyBuffer: PFN_vkCmdCopyBuffer(source: vk::Buffer, target: vk::Buffer, count: u32,
        regions: *const vk::BufferCopy) is "copy";
}

/// Logged as `barrier`, with the stages before and behind, and the accesses of its memory barriers before and behind, as
/// numbers.
#[allow(clippy::too_many_arguments, reason = "Vulkan's own")]
unsafe extern "system" fn pipeline_barrier(
    commands: vk::CommandBuffer,
    before: vk::PipelineStageFlags,
    behind: vk::PipelineStageFlags,
    flags: vk::DependencyFlags,
    memory_count: u32,
    memory: *const vk::MemoryBarrier<'_>,
    buffer_count: u32,
    buffers: *const vk::BufferMemoryBarrier<'_>,
    image_count: u32,
    images: *const vk::ImageMemoryBarrier<'_>,
) {
    let (mut wrote, mut uses) = (vk::AccessFlags::empty(), vk::AccessFlags::empty());
    for index in 0..memory_count as usize {
        // SAFETY: the caller passes so many.
        let barrier = unsafe { &*memory.add(index) };
        wrote |= barrier.src_access_mask;
        uses |= barrier.dst_access_mask;
    }
    note(format!("barrier {} {} {} {}", before.as_raw(), behind.as_raw(), wrote.as_raw(), uses.as_raw()));
    // SAFETY: the type is that of the function; arguments are the caller's.
    unsafe {
        real_as::<vk::PFN_vkCmdPipelineBarrier>(c"vkCmdPipelineBarrier")(
            commands,
            before,
            behind,
            flags,
            memory_count,
            memory,
            buffer_count,
            buffers,
            image_count,
            images,
        );
    }
}
