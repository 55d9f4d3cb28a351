//! The description of the tables in `.tosa` files.

use crate::flatbuffer::{Child, Field, Text, Vector, tables};

/// Identifier of a file.
pub const IDENTIFIER: &[u8; 4] = b"TOSA";

tables! {
    graph "TosaGraph" {
        VERSION 0 "version": Child;
        REGIONS 1 "regions": Vector<Child>;
    }
    version "Version" {
        MAJOR 0 "_major": u32 = u32::MAX;
        MINOR 1 "_minor": u32 = u32::MAX;
    }
    region "TosaRegion" {
        NAME 0 "name": Text;
        BLOCKS 1 "blocks": Vector<Child>;
    }
    block "TosaBasicBlock" {
        OPERATORS 1 "operators": Vector<Child>;
        TENSORS 2 "tensors": Vector<Child>;
        INPUTS 3 "inputs": Vector<Text>;
        OUTPUTS 4 "outputs": Vector<Text>;
        SHAPES 5 "shapes": Vector<Child>;
    }
    operator "TosaOperator" {
        OP 0 "op": u32;
        ATTRIBUTE 2 "attribute": Child;
        INPUTS 3 "inputs": Vector<Text>;
        OUTPUTS 4 "outputs": Vector<Text>;
        LOCATION 5 "location": Child;
    }
    location "OpLocation" {
        TEXT 0 "text": Text;
    }
    tensor "TosaTensor" {
        NAME 0 "name": Text;
        SHAPE 1 "shape": Vector<i32>;
        TYPE 2 "type": u32;
        DATA 3 "data": Vector<u8>;
        VARIABLE 4 "variable": u8;
        IS_UNRANKED 5 "is_unranked": u8;
        OFFSET 7 "offset": u64;
        SIZE 8 "size": u64;
    }
    shape "TosaShape" {
        NAME 0 "name": Text;
        RANK 1 "rank": u32;
        DATA 2 "data": Vector<u8>;
    }
    control "CondIfAttribute" {
        // Then and else, or condition and body.
        FIRST 0 "first_graph": Text;
        SECOND 1 "second_graph": Text;
    }
    axis "DimAttribute" {
        AXIS 0 "axis": i32;
    }
}
