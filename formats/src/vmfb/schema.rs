//! The one description of the tables in IREE files, shared by readers and writers: names, ids, types, defaults.

use crate::flatbuffer::{Child, Field, Struct, Text, Vector, tables};

/// Identifier of a bytecode module.
pub const MODULE_IDENTIFIER: &[u8; 4] = b"IREE";
/// Identifier of a Vulkan executable, and magic of its wrapper.
pub const VULKAN_IDENTIFIER: &[u8; 4] = b"VKE1";
/// Bytes of a function descriptor: i32 offset, i32 length, u32 requirements, u16 reserved, u16 blocks, u16 i32
/// registers, u16 ref registers.
pub const FUNCTION_DESCRIPTOR: usize = 20;

tables! {
    module "BytecodeModuleDef" {
        NAME 0 "name": Text;
        VERSION 1 "version": u32;
        REQUIREMENTS 2 "requirements": u32;
        ATTRS 3 "attrs": Vector<Child>;
        TYPES 4 "types": Vector<Child>;
        DEPENDENCIES 5 "dependencies": Vector<Child>;
        IMPORTS 6 "imported_functions": Vector<Child>;
        EXPORTS 7 "exported_functions": Vector<Child>;
        SIGNATURES 8 "function_signatures": Vector<Child>;
        RODATA 9 "rodata_segments": Vector<Child>;
        // 10 is rwdata_segments, which no instruction can reach.
        STATE 11 "module_state": Child;
        FUNCTIONS 12 "function_descriptors": Vector<Struct<{ FUNCTION_DESCRIPTOR }>>;
        BYTECODE_VERSION 13 "bytecode_version": u32;
        BYTECODE 14 "bytecode_data": Vector<u8>;
        DEBUG 15 "debug_database": Child;
    }
    attr "AttrDef" {
        KEY 0 "key": Text;
        VALUE 1 "value": Text;
    }
    type_def "TypeDef" {
        FULL_NAME 0 "full_name": Text;
    }
    signature "FunctionSignatureDef" {
        CALLING_CONVENTION 0 "calling_convention": Text;
        ATTRS 1 "attrs": Vector<Child>;
    }
    dependency "ModuleDependencyDef" {
        NAME 0 "name": Text;
        MINIMUM_VERSION 1 "minimum_version": u32;
        FLAGS 2 "flags": u32 = FLAG_REQUIRED;
    }
    import "ImportFunctionDef" {
        FULL_NAME 0 "full_name": Text;
        SIGNATURE 1 "signature": Child;
        FLAGS 2 "flags": u32 = FLAG_REQUIRED;
    }
    export "ExportFunctionDef" {
        LOCAL_NAME 0 "local_name": Text;
        ORDINAL 1 "internal_ordinal": i32;
    }
    rodata "RodataSegmentDef" {
        COMPRESSION_TYPE 0 "compression_type": u8;
        // 1 is the compression table, which says nothing.
        EMBEDDED 2 "embedded_data": Vector<u8>;
        EXTERNAL_OFFSET 3 "external_data_offset": u64;
        EXTERNAL_LENGTH 4 "external_data_length": u64;
    }
    state "ModuleStateDef" {
        GLOBAL_BYTES 0 "global_bytes_capacity": i32;
        GLOBAL_REFS 1 "global_ref_count": i32;
    }
    debug "DebugDatabaseDef" {
        LOCATION_TAGS 0 "location_table_type": Vector<u8>;
        LOCATIONS 1 "location_table": Vector<Child>;
        FUNCTIONS 2 "functions": Vector<Child>;
    }
    source_map "FunctionSourceMapDef" {
        LOCAL_NAME 0 "local_name": Text;
        // i32 bytecode offset, i32 location.
        LOCATIONS 1 "locations": Vector<Struct<8>>;
    }
    call_site "CallSiteLocDef" {
        CALLEE 0 "callee": i32;
        CALLER 1 "caller": i32;
    }
    file_line_col "FileLineColLocDef" {
        FILENAME 0 "filename": Text;
        LINE 1 "line": i32;
        COLUMN 2 "column": i32;
    }
    fused "FusedLocDef" {
        METADATA 0 "metadata": Text;
        LOCATIONS 1 "locations": Vector<i32>;
    }
    name_loc "NameLocDef" {
        NAME 0 "name": Text;
        CHILD 1 "child_location": i32;
    }

    executable "ExecutableDef" {
        PIPELINES 0 "pipelines": Vector<Child>;
        SET_LAYOUTS 1 "descriptor_set_layouts": Vector<Child>;
        PIPELINE_LAYOUTS 2 "pipeline_layouts": Vector<Child>;
        SHADER_MODULES 3 "shader_modules": Vector<Child>;
        SOURCE_FILES 4 "source_files": Vector<Child>;
    }
    pipeline "PipelineDef" {
        SHADER_MODULE 0 "shader_module_ordinal": u32;
        ENTRY_POINT 1 "entry_point": Text;
        LAYOUT 2 "pipeline_layout_ordinal": u32;
        SUBGROUP_SIZE 3 "subgroup_size": u32;
        DEBUG_INFO 4 "debug_info": Child;
        DISPATCH_ABI 5 "dispatch_abi": u8;
        BDA_LAYOUT 6 "bda_dispatch_layout": Child;
    }
    export_info "ExportDef" {
        NAME 0 "name": Text;
        LOCATION 1 "location": Child;
        // 2 is stage_locations, for compiler development.
    }
    file_line "FileLineLocDef" {
        FILENAME 0 "filename": Text;
        LINE 1 "line": i32;
    }
    bda "BdaDispatchLayoutDef" {
        ABI_VERSION 0 "abi_version": u32 = 1;
        ROOT_OFFSET 1 "root_push_constant_offset": u32;
        ROOT_LENGTH 2 "root_push_constant_length": u32 = 32;
        CONSTANT_OFFSET 3 "constant_push_constant_offset": u32 = 32;
        CONSTANT_COUNT 4 "constant_count": u32;
        ENTRY_TYPE 5 "binding_table_entry_type": u8;
        BINDING_COUNT 6 "binding_count": u32;
        BINDINGS 7 "bindings": Vector<Child>;
    }
    bda_binding "BdaBindingDef" {
        MINIMUM_ALIGNMENT 0 "minimum_alignment": u32 = 1;
        MINIMUM_LENGTH 1 "minimum_length": u64;
    }
    set_layout "DescriptorSetLayoutDef" {
        BINDINGS 0 "bindings": Vector<Child>;
    }
    set_binding "DescriptorSetLayoutBindingDef" {
        BINDING 0 "binding": u32;
        DESCRIPTOR_TYPE 1 "descriptor_type": u32;
        COUNT 2 "descriptor_count": u32;
        STAGE_FLAGS 3 "stage_flags": u32;
    }
    pipeline_layout "PipelineLayoutDef" {
        SET_LAYOUTS 0 "descriptor_set_layout_ordinals": Vector<u32>;
        // u32 stage flags, u32 offset, u32 size.
        PUSH_CONSTANTS 1 "push_constant_ranges": Vector<Struct<12>>;
    }
    shader_module "ShaderModuleDef" {
        SPIRV_CODE 0 "spirv_code": Vector<u32>;
    }
    source_file "SourceFileDef" {
        PATH 0 "path": Text;
        CONTENT 1 "content": Vector<u8>;
    }
}

/// Flag of imports and dependencies: must be there.
pub const FLAG_REQUIRED: u32 = 1;
/// Flag of imports and dependencies: may be absent.
pub const FLAG_OPTIONAL: u32 = 2;

/// Tags of the location union.
pub mod location_tag {
    pub const NONE: u8 = 0;
    pub const CALL_SITE: u8 = 1;
    pub const FILE_LINE_COL: u8 = 2;
    pub const FUSED: u8 = 3;
    pub const NAME: u8 = 4;
}
