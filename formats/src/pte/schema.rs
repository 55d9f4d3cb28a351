//! The description of the tables in ExecuTorch programs and in the graphs of their Vulkan delegate.

use crate::flatbuffer::{Child, Field, Text, Vector, tables};

/// Identifier of a program.
pub const PROGRAM_IDENTIFIER: &[u8; 4] = b"ET12";
/// Identifier of a file of data by name.
pub const DATA_IDENTIFIER: &[u8; 4] = b"FT01";
/// Identifier of the Vulkan delegate's graph.
pub const GRAPH_IDENTIFIER: &[u8; 4] = b"VK00";

tables! {
    program "Program" {
        VERSION 0 "version": u32;
        PLANS 1 "execution_plan": Vector<Child>;
        CONSTANT_BUFFER 2 "constant_buffer": Vector<Child>;
        DELEGATE_DATA 3 "backend_delegate_data": Vector<Child>;
        SEGMENTS 4 "segments": Vector<Child>;
        CONSTANT_SEGMENT 5 "constant_segment": Child;
        MUTABLE_SEGMENTS 6 "mutable_data_segments": Vector<Child>;
        NAMED_DATA 7 "named_data": Vector<Child>;
    }
    plan "ExecutionPlan" {
        NAME 0 "name": Text;
        VALUES 2 "values": Vector<Child>;
        INPUTS 3 "inputs": Vector<i32>;
        OUTPUTS 4 "outputs": Vector<i32>;
        CHAINS 5 "chains": Vector<Child>;
        OPERATORS 6 "operators": Vector<Child>;
        DELEGATES 7 "delegates": Vector<Child>;
        MEMORY 8 "non_const_buffer_sizes": Vector<i64>;
    }
    chain "Chain" {
        INSTRUCTIONS 2 "instructions": Vector<Child>;
    }
    instruction "Instruction" {
        KIND 0 "instr_args_type": u8;
        ARGS 1 "instr_args": Child;
    }
    kernel_call "KernelCall" {
        OPERATOR 0 "op_index": i32;
        ARGS 1 "args": Vector<i32>;
    }
    delegate_call "DelegateCall" {
        DELEGATE 0 "delegate_index": i32;
        ARGS 1 "args": Vector<i32>;
    }
    move_call "MoveCall" {
        FROM 0 "move_from": i32;
        TO 1 "move_to": i32;
    }
    jump "JumpFalseCall" {
        CONDITION 0 "cond_value_index": i32;
        DESTINATION 1 "destination_instruction": i32;
    }
    free "FreeCall" {
        VALUE 0 "value_index": i32;
    }
    operator "Operator" {
        NAME 0 "name": Text;
        OVERLOAD 1 "overload": Text;
    }
    // Values of programs and of graphs are unions of tables whose only field has the same id.
    value "Value" {
        KIND 0 "val_type": u8;
        VALUE 1 "val": Child;
        INT 0 "int_val": i64;
        BOOL 0 "bool_val": u8;
        DOUBLE 0 "double_val": f64;
        STRING 0 "string_val": Text;
        INTS 0 "items": Vector<i64>;
        DOUBLES 0 "items": Vector<f64>;
        BOOLS 0 "items": Vector<u8>;
        IDS 0 "items": Vector<i32>;
        SYM_INT 0 "value": i32;
    }
    tensor "Tensor" {
        SCALAR_TYPE 0 "scalar_type": u8;
        STORAGE_OFFSET 1 "storage_offset": i32;
        SIZES 2 "sizes": Vector<i32>;
        DIM_ORDER 3 "dim_order": Vector<u8>;
        DATA 5 "data_buffer_idx": u32;
        ALLOCATION 6 "allocation_info": Child;
        DYNAMISM 8 "shape_dynamism": u8;
        EXTRA 9 "extra_tensor_info": Child;
    }
    allocation "AllocationDetails" {
        MEMORY 0 "memory_id": u32;
        LOW 1 "memory_offset_low": u32;
        HIGH 2 "memory_offset_high": u32;
    }
    extra "ExtraTensorInfo" {
        NAME 1 "fully_qualified_name": Text;
        LOCATION 2 "location": u8;
    }
    delegate "BackendDelegate" {
        ID 0 "id": Text;
        PROCESSED 1 "processed": Child;
        SPECS 2 "compile_specs": Vector<Child>;
    }
    reference "BackendDelegateDataReference" {
        LOCATION 0 "location": u8;
        INDEX 1 "index": u32;
    }
    spec "CompileSpec" {
        KEY 0 "key": Text;
        VALUE 1 "value": Vector<u8>;
    }
    segment "DataSegment" {
        OFFSET 0 "offset": u64;
        SIZE 1 "size": u64;
    }
    subsegments "SubsegmentOffsets" {
        SEGMENT 0 "segment_index": u32;
        OFFSETS 1 "offsets": Vector<u64>;
    }
    named "NamedData" {
        KEY 0 "key": Text;
        SEGMENT 1 "segment_index": u32;
    }
    flat_tensor "FlatTensor" {
        SEGMENTS 1 "segments": Vector<Child>;
        NAMED_DATA 2 "named_data": Vector<Child>;
    }
    buffer "Buffer" {
        STORAGE 0 "storage": Vector<u8>;
    }
    inline_data "BackendDelegateInlineData" {
        DATA 0 "data": Vector<u8>;
    }
    graph "VkGraph" {
        CHAIN 1 "chain": Vector<Child>;
        VALUES 2 "values": Vector<Child>;
        INPUTS 3 "input_ids": Vector<u32>;
        OUTPUTS 4 "output_ids": Vector<u32>;
        CONSTANTS 5 "constants": Vector<Child>;
    }
    call "OperatorCall" {
        NODE 0 "node_id": u32;
        NAME 1 "name": Text;
        ARGS 2 "args": Vector<i32>;
    }
    vk_tensor "VkTensor" {
        DATATYPE 0 "datatype": u8;
        DIMS 1 "dims": Vector<u32>;
        CONSTANT 2 "constant_id": i32;
        STAGING 6 "staging_datatype": u8 = 127;
    }
    bytes "VkBytes" {
        OFFSET 0 "offset": u64;
        LENGTH 1 "length": u64;
        KEY 2 "named_key": Text;
    }
}
