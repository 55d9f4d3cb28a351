//! Reading the XNNPACK delegate's data: its header, the values and the constants. `nodes` reads the operators.

use super::{XnnGraph, XnnNode, XnnPort, XnnQuantization, XnnScales, XnnType, XnnValue, nodes};
use crate::flatbuffer::{Child, Field, Reader, Table, Text, Vector, tables};
use crate::pte::read_program::{each, numbers, required};
use crate::pte::{Constant, PteError, Result};
use bytes::Bytes;
use std::collections::HashMap;

const MAGIC_AT: usize = 4;
const MAGIC: &[u8; 4] = b"XH00";
/// Zero, magic, length, where and how long the graph is, where and how long the constants are.
const HEADER: usize = 30;
/// Identifiers of graphs, the present one first.
const IDENTIFIERS: [&[u8; 4]; 2] = [b"XN01", b"XN00"];
/// Flags of a value that the plan hands in, and of one that it gets.
const HANDED_IN: u32 = 1;
const HANDED_OUT: u32 = 2;

tables! {
    graph "XNNGraph" {
        NODES 1 "xnodes": Vector<Child>;
        VALUES 2 "xvalues": Vector<Child>;
        BUFFERS 6 "constant_buffer": Vector<Child>;
        CONSTANTS 8 "constant_data": Vector<Child>;
    }
    buffer "Buffer" {
        STORAGE 0 "storage": Vector<u8>;
    }
    constant "ConstantDataOffset" {
        OFFSET 0 "offset": u64;
        SIZE 1 "size": u64;
        KEY 2 "named_key": Text;
    }
    node "XNode" {
        KIND 0 "xnode_union_type": u8;
        NODE 1 "xnode_union": Child;
        HANDLE 2 "debug_handle": u32;
        LIMITS 3 "output_min_max": Child;
    }
    limits "OutputMinMax" {
        LEAST 0 "output_min": f32;
        MOST 1 "output_max": f32;
    }
    value "XValue" {
        KIND 0 "xvalue_union_type": u8;
        VALUE 1 "xvalue_union": Child;
    }
    quantized "XNNQuantizedTensorValue" {
        TENSOR 0 "tensor_value": Child;
        KIND 1 "quant_params_type": u8;
        PARAMS 2 "quant_params": Child;
    }
    tensor "XNNTensorValue" {
        DATATYPE 0 "datatype": u16;
        DIMS 2 "dims": Vector<u32>;
        CONSTANT 3 "constant_buffer_idx": u32;
        ARGUMENT 4 "external_id": u32;
        FLAGS 5 "flags": u32;
        ID 6 "id_out": u32;
        LATE 7 "dq_datatype": u16;
    }
    scale "PerTensorQuant" {
        SCALE 0 "scale": f32;
        ZERO 1 "zero_point": i32;
    }
    channels "PerChannelQuant" {
        SCALES 0 "scale": Vector<f32>;
        AXIS 1 "channel_dim": i32;
        CONSTANT 2 "scale_buffer_idx": u32;
        COUNT 3 "num_scales": u32;
    }
    rows "PerTokenDynamicQuant" {
        DIMS 0 "num_nonbatch_dims": i32;
    }
    blocks "PerChannelGroupQuant" {
        SCALES 0 "scale": Vector<f32>;
        SIZE 2 "group_size": i32;
        CONSTANT 4 "scale_buffer_idx": u32;
        COUNT 5 "num_scales": u32;
    }
}

impl XnnGraph {
    /// Reads the data of a delegate whose id is `XnnpackBackend`. Constants in it are slices of `blob`.
    ///
    /// # Errors
    /// Says which table is damaged, or contradicts another, and how.
    pub fn parse(blob: &Bytes) -> Result<XnnGraph> {
        let (at, flat, data) = parts(blob)?;
        let reader = Reader::new(&flat, at);
        let identifier = IDENTIFIERS.into_iter().find(|id| flat.get(4..8) == Some(&id[..]));
        let root = reader.root("XNNGraph", identifier.unwrap_or(IDENTIFIERS[0]))?;
        let constants = match &data {
            Some(data) => each(&root, &graph::CONSTANTS, |t, i| constant(&t, i, data))?,
            None => each(&root, &graph::BUFFERS, |t, _| {
                let storage = t.range(&buffer::STORAGE)?;
                Ok(Constant::Inline(storage.map(|range| flat.slice(range)).unwrap_or_default()))
            })?,
        };
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        let values = each(&root, &graph::VALUES, |t, i| {
            let (value, tensor) = value(&t, i, constants.len())?;
            let argument = tensor.scalar(&tensor::ARGUMENT)? as usize;
            let flags = tensor.scalar(&tensor::FLAGS)?;
            let port = XnnPort { value: i, argument };
            if flags & HANDED_IN != 0 {
                inputs.push(port);
            }
            if flags & HANDED_OUT != 0 {
                outputs.push(port);
            }
            Ok(value)
        })?;
        inputs.sort_by_key(|port: &XnnPort| port.argument);
        outputs.sort_by_key(|port: &XnnPort| port.argument);
        let by_id = by_id(&values)?;
        let find = |id: u32| by_id.get(&id).copied();
        let nodes = each(&root, &graph::NODES, |t, _| node(&t, &find))?;
        Ok(XnnGraph { nodes, values, inputs, outputs, constants })
    }
}

fn by_id(values: &[XnnValue]) -> Result<HashMap<u32, usize>> {
    let mut by_id = HashMap::with_capacity(values.len());
    for (i, value) in values.iter().enumerate() {
        if let Some(other) = by_id.insert(value.id, i) {
            return Err(PteError::invalid(
                format!("XNNGraph.xvalues[{i}]"),
                format!("it has the id {}, as value {other} has", value.id),
            ));
        }
    }
    Ok(by_id)
}

/// Where in the data the graph begins, the graph, and the constants behind it; no constants where they are in the graph.
fn parts(blob: &Bytes) -> Result<(usize, Bytes, Option<Bytes>)> {
    let length = blob.len() as u64;
    let wrong = |problem: String| PteError::invalid("data of the XNNPACK delegate", problem);
    let Some(header) = blob.first_chunk::<HEADER>() else {
        return Err(wrong(format!("{length} bytes, which are too few for a graph")));
    };
    if !header[MAGIC_AT..].starts_with(MAGIC) {
        return Ok((0, blob.clone(), None));
    }
    let word =
        |at: usize| u64::from(u32::from_le_bytes(*header[at..].first_chunk().expect("inside of the header")));
    let (graph, graph_size, data) = (word(10), word(14), word(18));
    let data_size = u64::from_le_bytes(*header[22..].first_chunk().expect("the last eight bytes"));
    let graph_end = graph + graph_size;
    let data_end = data.checked_add(data_size).filter(|end| *end <= length);
    if graph < HEADER as u64 || data < graph_end || data_end.is_none() {
        return Err(wrong(format!(
            "a graph of {graph_size} bytes at {graph} and {data_size} bytes of constants at {data} do not go together \
             in {length} bytes"
        )));
    }
    let slice = |start: u64, size: u64| blob.slice(start as usize..(start + size) as usize);
    Ok((graph as usize, slice(graph, graph_size), Some(slice(data, data_size))))
}

fn constant(table: &Table<'_>, i: usize, data: &Bytes) -> Result<Constant> {
    let (offset, length) = (table.scalar(&constant::OFFSET)?, table.scalar(&constant::SIZE)?);
    if let Some(key) = table.text(&constant::KEY)?.filter(|key| !key.is_empty()) {
        return Ok(Constant::Named { key: key.to_owned(), length });
    }
    // The first constant stands for none.
    if i == 0 {
        return Ok(Constant::Inline(Bytes::new()));
    }
    let end = offset.checked_add(length).filter(|end| *end <= data.len() as u64);
    let end = end.ok_or_else(|| {
        PteError::invalid(
            format!("XNNGraph.constant_data[{i}]"),
            format!("{length} bytes at {offset} end past the delegate's {} bytes of constants", data.len()),
        )
    })?;
    Ok(Constant::Inline(data.slice(offset as usize..end as usize)))
}

/// A value, and the table of its tensor.
fn value<'a>(table: &Table<'a>, i: usize, constants: usize) -> Result<(XnnValue, Table<'a>)> {
    let place = || format!("XNNGraph.xvalues[{i}]");
    let inner = required(table, &value::VALUE)?;
    let (tensor, quantization) = match table.scalar(&value::KIND)? {
        1 => (inner, XnnQuantization::None),
        2 => {
            let params = quantization(&inner, i, constants)?;
            (required(&inner, &quantized::TENSOR)?, params)
        }
        other => {
            return Err(PteError::invalid(place(), format!("value type {other}; 1 and 2 are known")));
        }
    };
    let constant = tensor.scalar(&tensor::CONSTANT)?;
    let constant = in_constants(constant, constants, &place)?;
    let value = XnnValue {
        id: tensor.scalar(&tensor::ID)?,
        datatype: datatype(tensor.scalar(&tensor::DATATYPE)?, i)?,
        dims: numbers(&tensor, &tensor::DIMS, Some, "size")?,
        constant,
        quantization,
        quantized_late: tensor.scalar(&tensor::LATE)? != 0,
    };
    Ok((value, tensor))
}

/// A constant that 0 means the lack of.
fn in_constants(index: u32, constants: usize, place: &dyn Fn() -> String) -> Result<Option<usize>> {
    match index as usize {
        0 => Ok(None),
        index if index < constants => Ok(Some(index)),
        index => Err(PteError::invalid(place(), format!("it has constant {index} of {constants}"))),
    }
}

fn quantization(table: &Table<'_>, i: usize, constants: usize) -> Result<XnnQuantization> {
    let place = || format!("XNNGraph.xvalues[{i}].quant_params");
    let params = required(table, &quantized::PARAMS)?;
    let scales = |listed: &Field<Vector<f32>>, constant: &Field<u32>, count: &Field<u32>| {
        let index = in_constants(params.scalar(constant)?, constants, &place)?;
        Ok::<_, PteError>(match index {
            Some(index) => XnnScales::Constant { index, count: u64::from(params.scalar(count)?) },
            None => XnnScales::Listed(numbers(&params, listed, Some, "scale")?),
        })
    };
    let size = |number: i32| {
        usize::try_from(number)
            .map_err(|_| PteError::invalid(place(), format!("{number} is no size or dimension")))
    };
    Ok(match table.scalar(&quantized::KIND)? {
        1 => XnnQuantization::Channels {
            scales: scales(&channels::SCALES, &channels::CONSTANT, &channels::COUNT)?,
            axis: size(params.scalar(&channels::AXIS)?)?,
        },
        2 => XnnQuantization::Tensor {
            scale: params.scalar(&scale::SCALE)?,
            zero: params.scalar(&scale::ZERO)?,
        },
        3 => XnnQuantization::Dynamic { dims: size(params.scalar(&rows::DIMS)?)? },
        4 => XnnQuantization::Blocks {
            scales: scales(&blocks::SCALES, &blocks::CONSTANT, &blocks::COUNT)?,
            size: size(params.scalar(&blocks::SIZE)?)? as u64,
        },
        other => {
            return Err(PteError::invalid(place(), format!("quantization {other}; 1 to 4 are known")));
        }
    })
}

fn datatype(number: u16, i: usize) -> Result<XnnType> {
    Ok(match number {
        1 | 13 => XnnType::F32,
        2 => XnnType::F16,
        3 | 6 | 9 | 11 => XnnType::I8,
        4 => XnnType::U8,
        5 | 7 | 12 => XnnType::I32,
        8 | 10 => XnnType::U4,
        14 => XnnType::BF16,
        other => {
            return Err(PteError::invalid(
                format!("XNNGraph.xvalues[{i}].datatype"),
                format!("data type {other}; 1 to 14 are known"),
            ));
        }
    })
}

fn node(table: &Table<'_>, find: &dyn Fn(u32) -> Option<usize>) -> Result<XnnNode> {
    let inner = required(table, &node::NODE)?;
    let mut made = nodes::read(table.scalar(&node::KIND)?, &inner, find)?;
    made.handle = table.scalar(&node::HANDLE)?;
    if let Some(limits) = table.child(&node::LIMITS)? {
        made.limits = Some([limits.scalar(&limits::LEAST)?, limits.scalar(&limits::MOST)?]);
    }
    Ok(made)
}
