//! Reading the Vulkan delegate's data: its header, and the FlatBuffer behind it.

use super::read_program::{each, numbers, required, text};
use super::schema as s;
use super::vulkan::{Call, Constant, DataType, Value, VulkanGraph, VulkanTensor};
use super::{PteError, Result};
use crate::flatbuffer::{Field, Reader, Table};
use bytes::Bytes;

const MAGIC_AT: usize = 4;
const MAGIC: &[u8; 4] = b"VH00";
/// Zero, magic, length, where and how long the graph is, where and how long the constants are.
const HEADER: usize = 30;
const UNSET: u8 = 127;

impl VulkanGraph {
    /// Reads the data of a delegate whose id is `VulkanBackend`. Constants in it are slices of `blob`.
    ///
    /// # Errors
    /// Says which table is damaged, or contradicts another, and how.
    pub fn parse(blob: &Bytes) -> Result<VulkanGraph> {
        let (graph_at, graph, data) = parts(blob)?;
        let reader = Reader::new(&graph, graph_at);
        let root = reader.root("VkGraph", s::GRAPH_IDENTIFIER)?;
        let constants = each(&root, &s::graph::CONSTANTS, |t, i| constant(&t, i, &data))?;
        let count = root.vector(&s::graph::VALUES)?.len();
        let values = each(&root, &s::graph::VALUES, |t, i| value(&t, i, count, constants.len()))?;
        let port = |v: u32| usize::try_from(v).ok().filter(|v| *v < count);
        let calls = each(&root, &s::graph::CHAIN, |t, _| {
            let index = |v: i32| usize::try_from(v).ok().filter(|v| *v < count);
            Ok(Call {
                node: t.scalar(&s::call::NODE)?,
                name: text(&t, &s::call::NAME)?,
                args: numbers(&t, &s::call::ARGS, index, "value of the graph")?,
            })
        })?;
        Ok(VulkanGraph {
            inputs: numbers(&root, &s::graph::INPUTS, port, "value of the graph")?,
            outputs: numbers(&root, &s::graph::OUTPUTS, port, "value of the graph")?,
            calls,
            values,
            constants,
        })
    }
}

/// Where in the data the graph begins, the graph, and the constants behind it.
fn parts(blob: &Bytes) -> Result<(usize, Bytes, Bytes)> {
    let length = blob.len();
    let wrong = |problem: String| PteError::invalid("data of the Vulkan delegate", problem);
    let Some(header) = blob.first_chunk::<HEADER>().filter(|h| h[MAGIC_AT..].starts_with(MAGIC)) else {
        let start = blob.get(..8.min(length)).unwrap_or_default().escape_ascii().to_string();
        return Err(wrong(format!("{length} bytes that begin with {start:?}, not with a header VH00")));
    };
    let word =
        |at: usize| u64::from(u32::from_le_bytes(*header[at..].first_chunk().expect("inside of the header")));
    let said = u16::from_le_bytes([header[8], header[9]]);
    let (graph, graph_size, data) = (word(10), word(14), word(18));
    let data_size = u64::from_le_bytes(*header[22..].first_chunk().expect("the last eight bytes"));
    let graph_end = graph + graph_size;
    if usize::from(said) < HEADER
        || graph < u64::from(said)
        || graph_size == 0
        || data < graph_end
        || data > length as u64
    {
        return Err(wrong(format!(
            "a header of {said} bytes, a graph of {graph_size} bytes at {graph} and constants at {data} do not go \
             together in {length} bytes"
        )));
    }
    let rest = length as u64 - data;
    // Writers before 1.0 do not tell how long the constants are.
    let data_size = if data_size == 0 { rest } else { data_size };
    if data_size > rest {
        return Err(wrong(format!("{data_size} bytes of constants at {data} end past its {length} bytes")));
    }
    let slice = |start: u64, size: u64| blob.slice(start as usize..(start + size) as usize);
    Ok((graph as usize, slice(graph, graph_size), slice(data, data_size)))
}

fn constant(table: &Table<'_>, i: usize, data: &Bytes) -> Result<Constant> {
    let (offset, length) = (table.scalar(&s::bytes::OFFSET)?, table.scalar(&s::bytes::LENGTH)?);
    if let Some(key) = table.text(&s::bytes::KEY)?.filter(|key| offset == u64::MAX && !key.is_empty()) {
        return Ok(Constant::Named { key: key.to_owned(), length });
    }
    let end = offset.checked_add(length).filter(|end| *end <= data.len() as u64);
    let end = end.ok_or_else(|| {
        PteError::invalid(
            format!("VkGraph.constants[{i}]"),
            format!("{length} bytes at {offset} end past the delegate's {} bytes of constants", data.len()),
        )
    })?;
    Ok(Constant::Inline(data.slice(offset as usize..end as usize)))
}

fn value(table: &Table<'_>, i: usize, count: usize, constants: usize) -> Result<Value> {
    let kind = table.scalar(&s::value::KIND)?;
    if kind == 1 {
        return Ok(Value::Null);
    }
    let inner = required(table, &s::value::VALUE)?;
    let index = |v: i32| usize::try_from(v).ok().filter(|v| *v < count);
    Ok(match kind {
        2 => Value::Int(inner.scalar(&s::value::INT)?),
        3 => Value::Double(inner.scalar(&s::value::DOUBLE)?),
        4 => Value::Bool(inner.scalar(&s::value::BOOL)? != 0),
        5 => Value::Tensor(tensor(&inner, i, constants)?),
        6 => Value::IntList(numbers(&inner, &s::value::INTS, Some, "number")?),
        7 => Value::DoubleList(numbers(&inner, &s::value::DOUBLES, Some, "float")?),
        8 => Value::BoolList(numbers(&inner, &s::value::BOOLS, |v: u8| Some(v != 0), "boolean")?),
        9 => Value::List(numbers(&inner, &s::value::IDS, index, "value of the graph")?),
        10 => Value::String(text(&inner, &s::value::STRING)?),
        11 => Value::SymInt(inner.scalar(&s::value::SYM_INT)?),
        other => {
            return Err(PteError::invalid(
                format!("VkGraph.values[{i}]"),
                format!("value type {other}; 1 to 11 are known"),
            ));
        }
    })
}

fn tensor(table: &Table<'_>, i: usize, constants: usize) -> Result<VulkanTensor> {
    let datatype = datatype(table, &s::vk_tensor::DATATYPE, i)?;
    let staging = match table.scalar(&s::vk_tensor::STAGING)? {
        UNSET => datatype,
        _ => self::datatype(table, &s::vk_tensor::STAGING, i)?,
    };
    let id = table.scalar(&s::vk_tensor::CONSTANT)?;
    let constant = usize::try_from(id).ok();
    if constant.is_some_and(|c| c >= constants) {
        return Err(PteError::invalid(
            format!("VkGraph.values[{i}]"),
            format!("the tensor is constant {id} of {constants}"),
        ));
    }
    Ok(VulkanTensor { datatype, staging, dims: numbers(table, &s::vk_tensor::DIMS, Some, "size")?, constant })
}

fn datatype(table: &Table<'_>, f: &Field<u8>, i: usize) -> Result<DataType> {
    Ok(match table.scalar(f)? {
        0 => DataType::Bool,
        1 => DataType::UInt8,
        2 => DataType::Int8,
        3 => DataType::Int32,
        4 => DataType::Float16,
        5 => DataType::Float32,
        6 => DataType::Float64,
        7 => DataType::Int64,
        other => {
            return Err(PteError::invalid(
                format!("VkGraph.values[{i}].{}", f.name),
                format!("data type {other}; 0 to 7 are known"),
            ));
        }
    })
}
