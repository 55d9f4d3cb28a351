//! The functions that compiled modules import from the modules `hal` and `io_parameters`, one line each. The compiler emits
//! calls of them by these constants, and the runtime implements the same constants.

/// A function that modules import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Import {
    /// Name with the module's, such as `hal.fence.create`.
    pub full_name: &'static str,
    /// Name within its module, such as `fence.create`.
    pub name: &'static str,
    /// Calling convention, such as `0rI_r`: version 0, arguments, `_`, results. `i` and `I` are integers of 32 and 64 bits,
    /// `r` references, `v` stands for none, and `C…D` is a span, a tuple that repeats.
    pub signature: &'static str,
}

macro_rules! imports {
    ($(#[$doc:meta])* $module:ident version $version:literal {
        $($function:ident = $name:literal $signature:literal;)*
    }) => {
        $(#[$doc])*
        pub mod $module {
            use super::Import;

            /// Name of the module.
            pub const NAME: &str = stringify!($module);
            /// The version that modules ask for at least, and that the runtime has.
            pub const VERSION: u32 = $version;
            $(
                #[doc = concat!("`", $name, "`, `", $signature, "`.")]
                pub const $function: Import = Import {
                    full_name: concat!(stringify!($module), ".", $name),
                    name: $name,
                    signature: $signature,
                };
            )*
            /// All functions of the module.
            pub const ALL: &[Import] = &[$($function),*];
        }
    };
}

imports! {
    /// Devices and their objects.
    hal version 7 {
        ALLOCATOR_SELECT = "allocator.select" "0iiICrID_rI";
        ALLOCATOR_ALLOCATE = "allocator.allocate" "0rIiiI_r";
        ALLOCATOR_IMPORT = "allocator.import" "0riIiirII_r";
        EX_FILE_FROM_MEMORY = "ex.file.from_memory" "0rIirIIi_r";
        BUFFER_ASSERT = "buffer.assert" "0rrrIii_v";
        BUFFER_ALLOCATION_PRESERVE = "buffer.allocation.preserve" "0r_v";
        BUFFER_ALLOCATION_DISCARD = "buffer.allocation.discard" "0r_i";
        BUFFER_ALLOCATION_IS_TERMINAL = "buffer.allocation.is_terminal" "0r_i";
        BUFFER_SUBSPAN = "buffer.subspan" "0rII_r";
        BUFFER_LENGTH = "buffer.length" "0r_I";
        BUFFER_LOAD = "buffer.load" "0rIi_i";
        BUFFER_STORE = "buffer.store" "0irIi_v";
        BUFFER_VIEW_CREATE = "buffer_view.create" "0rIIiiCID_r";
        BUFFER_VIEW_ASSERT = "buffer_view.assert" "0rriiCID_v";
        BUFFER_VIEW_BUFFER = "buffer_view.buffer" "0r_r";
        BUFFER_VIEW_ELEMENT_TYPE = "buffer_view.element_type" "0r_i";
        BUFFER_VIEW_ENCODING_TYPE = "buffer_view.encoding_type" "0r_i";
        BUFFER_VIEW_RANK = "buffer_view.rank" "0r_i";
        BUFFER_VIEW_DIM = "buffer_view.dim" "0ri_I";
        BUFFER_VIEW_TRACE = "buffer_view.trace" "0rCrD_v";
        CHANNEL_CREATE = "channel.create" "0rIIrrii_r";
        CHANNEL_SPLIT = "channel.split" "0riiI_r";
        CHANNEL_RANK_AND_COUNT = "channel.rank_and_count" "0r_ii";
        COMMAND_BUFFER_CREATE = "command_buffer.create" "0riiIi_r";
        COMMAND_BUFFER_FINALIZE = "command_buffer.finalize" "0r_v";
        COMMAND_BUFFER_BEGIN_DEBUG_GROUP = "command_buffer.begin_debug_group" "0rr_v";
        COMMAND_BUFFER_END_DEBUG_GROUP = "command_buffer.end_debug_group" "0r_v";
        COMMAND_BUFFER_EXECUTION_BARRIER = "command_buffer.execution_barrier" "0riiI_v";
        COMMAND_BUFFER_ADVISE_BUFFER = "command_buffer.advise_buffer" "0rrIIIi_v";
        COMMAND_BUFFER_FILL_BUFFER = "command_buffer.fill_buffer" "0rrIIiIiI_v";
        COMMAND_BUFFER_UPDATE_BUFFER = "command_buffer.update_buffer" "0rrIrIIiI_v";
        COMMAND_BUFFER_COPY_BUFFER = "command_buffer.copy_buffer" "0riirIrIII_v";
        COMMAND_BUFFER_COLLECTIVE = "command_buffer.collective" "0rriiiirrIIIII_v";
        COMMAND_BUFFER_DISPATCH = "command_buffer.dispatch" "0rrIiiiICiDCiirIID_v";
        COMMAND_BUFFER_DISPATCH_INDIRECT = "command_buffer.dispatch.indirect" "0rrIirIICiDCiirIID_v";
        DEVICE_ALLOCATOR = "device.allocator" "0r_r";
        DEVICE_QUERY_I64 = "device.query.i64" "0rrr_iI";
        DEVICE_QUEUE_ALLOCA = "device.queue.alloca" "0rIrrIiiII_r";
        DEVICE_QUEUE_DEALLOCA = "device.queue.dealloca" "0rIrrrI_v";
        DEVICE_QUEUE_FILL = "device.queue.fill" "0rIrrrIIIiI_v";
        DEVICE_QUEUE_UPDATE = "device.queue.update" "0rIrrrIrIII_v";
        DEVICE_QUEUE_COPY = "device.queue.copy" "0rIrrrIrIII_v";
        DEVICE_QUEUE_READ = "device.queue.read" "0rIrrrIrIII_v";
        DEVICE_QUEUE_WRITE = "device.queue.write" "0rIrrrIrIII_v";
        DEVICE_QUEUE_BARRIER = "device.queue.barrier" "0rIrrI_v";
        DEVICE_QUEUE_EXECUTE = "device.queue.execute" "0rIrrrI_v";
        DEVICE_QUEUE_EXECUTE_INDIRECT = "device.queue.execute.indirect" "0rIrrrICrIID_v";
        DEVICE_QUEUE_FLUSH = "device.queue.flush" "0rI_v";
        DEVICES_COUNT = "devices.count" "0v_i";
        DEVICES_GET = "devices.get" "0i_r";
        EXECUTABLE_CREATE = "executable.create" "0rIrrr_r";
        EXECUTABLE_LOOKUP_FUNCTION = "executable.lookup.function" "0rr_I";
        FENCE_CREATE = "fence.create" "0rI_r";
        FENCE_JOIN = "fence.join" "0ICrD_r";
        FENCE_QUERY = "fence.query" "0r_i";
        FENCE_SIGNAL = "fence.signal" "0r_v";
        FENCE_FAIL = "fence.fail" "0ri_v";
        FENCE_AWAIT = "fence.await" "0iICrD_i";
    }
}

imports! {
    /// Parameters of models, in archives beside their modules. The functions `results.*` are Halite's own: only modules that it
    /// compiles for its own sessions call them.
    io_parameters version 0 {
        LOAD = "load" "0rIrrrIiirrr_r";
        GATHER = "gather" "0rIrrrrrrr_v";
        SCATTER = "scatter" "0rIrrrrrrr_v";
        RESULTS_FIND = "results.find" "0rrrrr_r";
        RESULTS_KEEP = "results.keep" "0rrrrrrCrD_v";
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_function_has_a_name_of_its_own() {
        let all = hal::ALL.iter().chain(io_parameters::ALL);
        let names: BTreeSet<&str> = all.clone().map(|import| import.full_name).collect();
        assert_eq!(names.len(), all.count());
        assert_eq!(hal::FENCE_CREATE.full_name, "hal.fence.create");
        assert!(names.contains("io_parameters.gather"));
    }
}
