//! The proof that the structures of the interface are where every other compiler puts them: sizes and offsets on
//! systems with 64-bit addresses, as C sees them. A change that moves a field fails to compile here.

use std::mem::offset_of;

use super::abi::*;

macro_rules! layout {
    ($($name:ident $size:literal { $($field:ident $offset:literal),* $(,)? })*) => {
        const _: () = {$(
            assert!(size_of::<$name>() == $size, concat!("size of ", stringify!($name)));
            assert!(align_of::<$name>() == 8, concat!("alignment of ", stringify!($name)));
            $(assert!(
                offset_of!($name, $field) == $offset,
                concat!("offset of ", stringify!($name), ".", stringify!($field))
            );)*
        )*};
    };
}

layout! {
    HaliteStr 16 { data 0, length 8 }
    HaliteBytes 16 { data 0, length 8 }
    HaliteBlob 32 { data 0, length 8, context 16, release 24 }
    HalitePair 32 { name 0, value 16 }
    HaliteStatus 64 {
        struct_size 0, code 4, message 8, annotations 24, annotation_count 32, details 40,
        detail_count 48, release 56
    }
    HaliteHost 40 { struct_size 0, abi_version 4, context 8, log 16, log_level 24, next_device_id 32 }
    HalitePlugin 48 { struct_size 0, abi_version 4, driver 8, version 16, build 32 }
    HaliteDriver 8 { vtable 0 }
    HaliteDriverVtable 64 {
        struct_size 0, reserved 4, name 8, description 16, options 24, enumerate 32, open 40,
        find_unlisted 48, tables 56
    }
    HaliteScoreItem 24 { points 0, reason 8 }
    HaliteInfoGroup 32 { title 0, entries 16, entry_count 24 }
    HaliteUnconfinedCode 88 {
        formats 0, format_count 8, reason 16, option 32, allow 48, refuse 64, default_allows 80, reserved 81
    }
    HaliteDeviceInfo 200 {
        struct_size 0, kind 4, driver 8, path 24, name 40, unusable 56, target 72, capabilities 88,
        executable_formats 104, executable_format_count 112, score 120, score_count 128, properties
        136, property_count 144, groups 152, group_count 160,
        unconfined 168, unconfined_count 176, external 184, external_count 192
    }
    HaliteMemoryStats 48 {
        struct_size 0, reserved 4, bytes_reserved 8, bytes_used 16, peak_bytes_reserved 24,
        peak_bytes_used 32, allocation_count 40
    }
    HaliteCommandTime 96 {
        struct_size 0, kind 4, name 8, group 24, index 40, queue 44, workgroups 48, reserved 60, bytes 64,
        run 72, start_ns 80, end_ns 88
    }
    HaliteProfileSummary 24 { struct_size 0, reserved 4, lost 8, resolution_ns 16 }
    HaliteBufferParams 16 { memory_type 0, usage 4, affinity 8 }
    HaliteSemaphorePoint 16 { semaphore 0, value 8 }
    HaliteFence 16 { points 0, count 8 }
    HaliteDevice 8 { vtable 0 }
    HaliteExternalSupport 16 { kind 0, import 4, export 5, reserved 6, alignment 8 }
    HaliteExternalMemory 64 {
        struct_size 0, kind 4, handle 8, size 16, memory_type 24, dedicated 28, reserved 29, bytes 32
    }
    HaliteDeviceVtable 176 {
        struct_size 0, reserved 4, retain 8, release 16, id 24, info 32, queue_count 40, query_i64
        48, memory_stats 56, trim 64, allocate_buffer 72, create_semaphore 80, create_executable 88,
        create_command_buffer 96, queue_alloca 104, queue_submit 112, queue_flush 120, wait_idle 128,
        start_profiling 136, stop_profiling 144, import_buffer 152, allocate_exportable 160, export_buffer 168
    }
    HaliteBuffer 8 { vtable 0 }
    HaliteBufferInfo 40 {
        struct_size 0, memory_type 4, usage 8, access 12, device_id 16, byte_length 24, host_address
        32
    }
    HaliteBufferVtable 48 { struct_size 0, reserved 4, retain 8, release 16, info 24, read 32, write 40 }
    HaliteCallback 24 { context 0, call 8, drop 16 }
    HaliteSemaphore 8 { vtable 0 }
    HaliteSemaphoreVtable 72 {
        struct_size 0, reserved 4, retain 8, release 16, device_id 24, query 32, signal 40, fail 48,
        wait 56, on_reached 64
    }
    HaliteExecutableDesc 104 {
        struct_size 0, reserved 4, format 8, data 24, constants 56, constant_count 64, label 72,
        subgroup_sizes 88, subgroup_size_count 96
    }
    HaliteFunctionInfo 40 { struct_size 0, binding_count 4, constant_count 8, workgroup_size 12, name 24 }
    HaliteExecutable 8 { vtable 0 }
    HaliteExecutableVtable 48 {
        struct_size 0, reserved 4, retain 8, release 16, device_id 24, functions 32, wait_built 40
    }
    HaliteSpan 24 { buffer 0, offset 8, length 16 }
    HaliteBufferRef 32 { buffer 0, offset 8, length 16, slot 24, reserved 28 }
    HaliteCommand 168 {
        struct_size 0, kind 4, target 8, source 40, pattern 72, pattern_length 80, function 84,
        counts 88, indirect_counts 100, flags 104, executable 112, data 120, constants 136,
        constant_count 144, bindings 152, binding_count 160
    }
    HaliteCommandList 40 {
        struct_size 0, mode 4, categories 8, binding_capacity 12, affinity 16, commands 24,
        command_count 32
    }
    HaliteCommandBuffer 8 { vtable 0 }
    HaliteCommandBufferVtable 32 { struct_size 0, reserved 4, retain 8, release 16, device_id 24 }
    HaliteFile 8 { vtable 0 }
    HaliteFileVtable 64 {
        struct_size 0, reserved 4, retain 8, release 16, writable 24, byte_length 32, memory 40,
        read_at 48, write_at 56
    }
    HaliteQueueOp 128 {
        struct_size 0, kind 4, target 8, source 32, pattern 56, pattern_length 64, reserved 68, data
        72, file 88, file_offset 96, command_buffer 104, bindings 112, binding_count 120
    }
}
