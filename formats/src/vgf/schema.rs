//! The description of the tables in VGF files.

use crate::flatbuffer::{Child, Field, Text, Vector, tables};

tables! {
    module_table "ModuleTable" {
        MODULES 0 "modules": Vector<Child>;
    }
    module "Module" {
        KIND 0 "type": u8;
        NAME 1 "name": Text;
        ENTRY_POINT 2 "entry_point": Text;
        CODE_KIND 3 "code_type": u8;
        CODE 4 "code": Child;
    }
    // The kinds of code are tables with one field each.
    code "ModuleCode" {
        WORDS 0 "words": Vector<u32>;
        TEXT 0 "code": Text;
    }
    resource_table "ModelResourceTable" {
        ENTRIES 0 "mrt_entry": Vector<Child>;
    }
    resource "ModelResourceTableEntry" {
        DESCRIPTOR 0 "vk_descriptor_type": u32 = u32::MAX;
        FORMAT 1 "vk_format": u32;
        CATEGORY 2 "category": u8;
        DESCRIPTION 3 "description": Child;
        EXTRA_KIND 4 "extra_config_type": u8;
        EXTRA 5 "extra_config": Child;
        ALIAS_GROUP 6 "alias_group_id": u32 = u32::MAX;
    }
    description "Description" {
        SHAPE 0 "shape": Vector<i64>;
        STRIDES 1 "strides": Vector<i64>;
    }
    sampler "SamplerConfig" {
        MIN_FILTER 0 "min_filter": u32;
        MAG_FILTER 1 "mag_filter": u32;
        ADDRESS_U 2 "address_mode_u": u32;
        ADDRESS_V 3 "address_mode_v": u32;
        BORDER 4 "border_color": u32;
    }
    sequence "ModelSequenceTable" {
        SEGMENTS 0 "segments": Vector<Child>;
        INPUTS 1 "inputs": Vector<Child>;
        OUTPUTS 2 "outputs": Vector<Child>;
        INPUT_NAMES 3 "input_names": Vector<Text>;
        OUTPUT_NAMES 4 "output_names": Vector<Text>;
    }
    slot "BindingSlot" {
        BINDING 0 "binding": u32;
        RESOURCE 1 "mrt_index": u32;
    }
    segment "SegmentInfo" {
        KIND 0 "type": u8;
        NAME 1 "name": Text;
        MODULE 2 "module_index": u32;
        SETS 3 "set_infos": Vector<Child>;
        INPUTS 4 "inputs": Vector<Child>;
        OUTPUTS 5 "outputs": Vector<Child>;
        CONSTANTS 6 "constants": Vector<u32>;
        DISPATCH 7 "dispatch_shape": Vector<u32>;
        PUSH_CONSTANTS 8 "push_constant_ranges": Vector<Child>;
        CONSTANT_BINDINGS 9 "constant_bindings": Vector<Child>;
    }
    set_info "DescriptorSetInfo" {
        BINDINGS 0 "bindings": Vector<Child>;
        INDEX 1 "set_index": u32 = u32::MAX;
    }
    push_constants "PushConstantRange" {
        STAGES 0 "stage_flags": u32;
        OFFSET 1 "offset": u32;
        SIZE 2 "size": u32;
    }
    constant_binding "ConstantBinding" {
        GRAPH_CONSTANT 0 "graph_constant_id": u32;
        CONSTANT 1 "constant_table_index": u32;
    }
    // The constants of version 0.3.
    constant_section "ConstantSection" {
        DATA 0 "data": Vector<Child>;
    }
    constant "ConstantData" {
        RESOURCE 0 "mrt_index": u32;
        SPARSITY 1 "sparsity_dimension": i64 = -1;
        RAW 2 "raw": Vector<u8>;
    }
}
