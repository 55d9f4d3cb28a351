//! Reading programs from their FlatBuffer.

use super::container::Container;
use super::program::{Allocation, Delegate, Dynamism, Instruction, Plan, Program, ScalarType, Tensor, Value};
use super::schema as s;
use super::{PteError, Result};
use crate::flatbuffer::{Child, Field, Reader, Scalar, Table, Text, Vector};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Data that a delegate may refer to.
struct Stores {
    segments: Vec<Bytes>,
    inline: Vec<Bytes>,
}

impl Program {
    /// Reads a program. Constants and the data of delegates are slices of `file`.
    ///
    /// # Errors
    /// Says which table of the file is damaged, or contradicts another, and how.
    pub fn parse(file: &Bytes) -> Result<Program> {
        let container = Container::parse(file)?;
        let reader = Reader::new(&file[..container.program], 0);
        let root = reader.root("Program", s::PROGRAM_IDENTIFIER)?;
        let version = root.scalar(&s::program::VERSION)?;
        if version != 0 {
            return Err(PteError::invalid("Program.version", format!("{version}; this reader knows 0")));
        }
        let segments = each(&root, &s::program::SEGMENTS, |t, i| {
            let range = container.segment(i, t.scalar(&s::segment::OFFSET)?, t.scalar(&s::segment::SIZE)?)?;
            Ok(file.slice(range))
        })?;
        let inline = each(&root, &s::program::DELEGATE_DATA, |t, _| bytes(&t, &s::inline_data::DATA, file))?;
        let stores = Stores { segments, inline };
        let constants = root.child(&s::program::CONSTANT_SEGMENT)?;
        let constants =
            constants.map(|t| subsegments(&t, &stores, "Program.constant_segment")).transpose()?;
        // Before ExecuTorch 0.4 constants were part of the program; where there is a segment it counts.
        let buffers = match &constants {
            Some((_, offsets)) if !offsets.is_empty() => Vec::new(),
            _ => each(&root, &s::program::CONSTANT_BUFFER, |t, _| bytes(&t, &s::buffer::STORAGE, file))?,
        };
        let mutable = root.vector(&s::program::MUTABLE_SEGMENTS)?;
        let initial = match mutable.iter().next() {
            Some(first) => Some(subsegments(&first?, &stores, "Program.mutable_data_segments[0]")?),
            None => None,
        };
        Ok(Program {
            version,
            named: named(&root, &stores)?,
            external: BTreeMap::new(),
            buffers,
            plans: each(&root, &s::program::PLANS, |t, _| plan(&t, &stores, file))?,
            constants,
            initial,
        })
    }
}

/// Reads every table of a vector; the closure gets the number of the element.
pub(super) fn each<'a, T>(
    table: &Table<'a>,
    f: &Field<Vector<Child>>,
    read: impl FnMut(Table<'a>, usize) -> Result<T>,
) -> Result<Vec<T>> {
    table.each(f, read)
}

/// A vector of numbers.
pub(super) fn numbers<T, U>(
    table: &Table<'_>,
    f: &Field<Vector<T>>,
    read: impl Fn(T) -> Option<U>,
    what: &str,
) -> Result<Vec<U>>
where
    T: Scalar + for<'a> crate::flatbuffer::Element<Value<'a> = T> + std::fmt::Display,
{
    let vector = table.vector(f)?;
    let mut all = Vec::with_capacity(vector.len());
    for (i, element) in vector.iter().enumerate() {
        let element = element?;
        all.push(read(element).ok_or_else(|| {
            PteError::invalid(format!("{}.{}[{i}]", f.table, f.name), format!("{element} is no {what}"))
        })?);
    }
    Ok(all)
}

/// A table that must be there.
pub(super) fn required<'a>(table: &Table<'a>, f: &Field<Child>) -> Result<Table<'a>> {
    let missing = || crate::flatbuffer::FlatbufferError::Missing { table: f.table, field: f.name };
    Ok(table.child(f)?.ok_or_else(missing)?)
}

/// A string; empty when absent.
pub(super) fn text(table: &Table<'_>, f: &Field<Text>) -> Result<String> {
    Ok(table.text(f)?.unwrap_or_default().to_owned())
}

/// A vector of bytes, as a slice of the file that the FlatBuffer begins.
fn bytes(table: &Table<'_>, f: &Field<Vector<u8>>, file: &Bytes) -> Result<Bytes> {
    Ok(table.range(f)?.map(|range| file.slice(range)).unwrap_or_default())
}

fn segment(stores: &[Bytes], index: u32, place: &str) -> Result<Bytes> {
    let found = stores.get(index as usize).cloned();
    found.ok_or_else(|| PteError::invalid(place, format!("asks for data {index} of {}", stores.len())))
}

fn subsegments(table: &Table<'_>, stores: &Stores, place: &str) -> Result<(Bytes, Vec<u64>)> {
    let offsets = numbers(table, &s::subsegments::OFFSETS, Some, "offset")?;
    let index = table.scalar(&s::subsegments::SEGMENT)?;
    // A program without constants names the first segment even where it has none.
    if offsets.is_empty() {
        return Ok((Bytes::new(), offsets));
    }
    Ok((segment(&stores.segments, index, place)?, offsets))
}

fn named(root: &Table<'_>, stores: &Stores) -> Result<BTreeMap<String, Bytes>> {
    let mut named = BTreeMap::new();
    let pairs = each(root, &s::program::NAMED_DATA, |t, i| {
        let place = format!("Program.named_data[{i}]");
        Ok((text(&t, &s::named::KEY)?, segment(&stores.segments, t.scalar(&s::named::SEGMENT)?, &place)?))
    })?;
    for (key, data) in pairs {
        if named.insert(key.clone(), data).is_some() {
            return Err(PteError::invalid("Program.named_data", format!("'{key}' is there twice")));
        }
    }
    Ok(named)
}

fn plan(table: &Table<'_>, stores: &Stores, file: &Bytes) -> Result<Plan> {
    let name = text(table, &s::plan::NAME)?;
    let count = table.vector(&s::plan::VALUES)?.len();
    let values = each(table, &s::plan::VALUES, |t, i| {
        value(&t, count).map_err(|e| at(e, || format!("value {i} of the plan '{name}'")))
    })?;
    let index = |v: i32| below(v, count);
    let operators = each(table, &s::plan::OPERATORS, |t, _| {
        let (name, overload) = (text(&t, &s::operator::NAME)?, text(&t, &s::operator::OVERLOAD)?);
        Ok(if overload.is_empty() { name } else { format!("{name}.{overload}") })
    })?;
    let delegates = each(table, &s::plan::DELEGATES, |t, i| delegate(&t, i, stores, file))?;
    let counts = Counts { values: count, operators: operators.len(), delegates: delegates.len() };
    let chains = each(table, &s::plan::CHAINS, |chain, c| {
        let length = chain.vector(&s::chain::INSTRUCTIONS)?.len();
        each(&chain, &s::chain::INSTRUCTIONS, |t, i| {
            let place = || format!("instruction {i} of chain {c} of the plan '{name}'");
            instruction(&t, &counts, length).map_err(|e| at(e, place))
        })
    })?;
    // The first size stands for constants.
    let size = |v: i64| u64::try_from(v).ok();
    let memory = numbers(table, &s::plan::MEMORY, size, "size")?.into_iter().skip(1).collect();
    Ok(Plan {
        memory,
        inputs: numbers(table, &s::plan::INPUTS, index, "value")?,
        outputs: numbers(table, &s::plan::OUTPUTS, index, "value")?,
        name,
        values,
        chains,
        operators,
        delegates,
    })
}

/// Puts a place in front of what is wrong.
fn at(error: PteError, place: impl Fn() -> String) -> PteError {
    match error {
        PteError::Invalid { place: inner, problem } => {
            PteError::invalid(format!("{}: {inner}", place()), problem)
        }
        other => other,
    }
}

fn below(index: i32, count: usize) -> Option<usize> {
    usize::try_from(index).ok().filter(|index| *index < count)
}

fn delegate(table: &Table<'_>, i: usize, stores: &Stores, file: &Bytes) -> Result<Delegate> {
    let reference = required(table, &s::delegate::PROCESSED)?;
    let place = format!("ExecutionPlan.delegates[{i}].processed");
    let from = match reference.scalar(&s::reference::LOCATION)? {
        0 => &stores.inline,
        1 => &stores.segments,
        other => return Err(PteError::invalid(place, format!("data location {other}; 0 and 1 are known"))),
    };
    Ok(Delegate {
        id: text(table, &s::delegate::ID)?,
        data: segment(from, reference.scalar(&s::reference::INDEX)?, &place)?,
        specs: each(table, &s::delegate::SPECS, |t, _| {
            Ok((text(&t, &s::spec::KEY)?, bytes(&t, &s::spec::VALUE, file)?))
        })?,
    })
}

/// How many things instructions can name.
struct Counts {
    values: usize,
    operators: usize,
    delegates: usize,
}

fn instruction(table: &Table<'_>, counts: &Counts, length: usize) -> Result<Instruction> {
    let args = required(table, &s::instruction::ARGS)?;
    let one = |f: &Field<i32>, count: usize, what: &str| -> Result<usize> {
        let index = args.scalar(f)?;
        below(index, count).ok_or_else(|| {
            PteError::invalid(format!("{}.{}", f.table, f.name), format!("{what} {index} of {count}"))
        })
    };
    let value = |f| one(f, counts.values, "value");
    let list = |f| numbers(&args, f, |v: i32| below(v, counts.values), "value");
    Ok(match table.scalar(&s::instruction::KIND)? {
        1 => Instruction::Kernel {
            operator: one(&s::kernel_call::OPERATOR, counts.operators, "operator")?,
            args: list(&s::kernel_call::ARGS)?,
        },
        2 => Instruction::Delegate {
            delegate: one(&s::delegate_call::DELEGATE, counts.delegates, "delegate")?,
            args: list(&s::delegate_call::ARGS)?,
        },
        3 => Instruction::Move { from: value(&s::move_call::FROM)?, to: value(&s::move_call::TO)? },
        4 => Instruction::JumpFalse {
            condition: value(&s::jump::CONDITION)?,
            // A jump behind the last instruction ends the run.
            to: one(&s::jump::DESTINATION, length + 1, "instruction")?,
        },
        5 => Instruction::Free { value: value(&s::free::VALUE)? },
        other => {
            return Err(PteError::invalid(
                "Instruction.instr_args_type",
                format!("{other}; 1 to 5 are known"),
            ));
        }
    })
}

fn value(table: &Table<'_>, count: usize) -> Result<Value> {
    let kind = table.scalar(&s::value::KIND)?;
    if kind == 1 {
        return Ok(Value::Null);
    }
    let inner = required(table, &s::value::VALUE)?;
    let index = |v: i32| below(v, count);
    let optional = |v: i32| if v == -1 { Some(None) } else { index(v).map(Some) };
    Ok(match kind {
        2 => Value::Int(inner.scalar(&s::value::INT)?),
        3 => Value::Bool(inner.scalar(&s::value::BOOL)? != 0),
        4 => Value::Double(inner.scalar(&s::value::DOUBLE)?),
        5 => Value::Tensor(tensor(&inner)?),
        6 => Value::String(text(&inner, &s::value::STRING)?),
        7 => Value::IntList(numbers(
            &inner,
            &s::value::INTS,
            |v: i64| usize::try_from(v).ok().filter(|v| *v < count),
            "value",
        )?),
        8 => Value::DoubleList(numbers(&inner, &s::value::DOUBLES, Some, "float")?),
        9 => Value::BoolList(numbers(&inner, &s::value::BOOLS, |v: u8| Some(v != 0), "boolean")?),
        10 => Value::TensorList(numbers(&inner, &s::value::IDS, index, "value")?),
        11 => Value::OptionalTensorList(numbers(&inner, &s::value::IDS, optional, "value")?),
        other => return Err(PteError::invalid("EValue.val_type", format!("{other}; 1 to 11 are known"))),
    })
}

fn tensor(table: &Table<'_>) -> Result<Tensor> {
    let sizes = numbers(table, &s::tensor::SIZES, |v: i32| u64::try_from(v).ok(), "size")?;
    let rank = sizes.len();
    let dim_order = numbers(table, &s::tensor::DIM_ORDER, Some, "dimension")?;
    let mut sorted = dim_order.clone();
    sorted.sort_unstable();
    if !sorted.iter().map(|d| usize::from(*d)).eq(0..rank) {
        let problem = format!("{dim_order:?} is no order of {rank} dimensions");
        return Err(PteError::invalid("Tensor.dim_order", problem));
    }
    let offset = table.scalar(&s::tensor::STORAGE_OFFSET)?;
    if offset != 0 {
        return Err(PteError::invalid("Tensor.storage_offset", format!("{offset}; only 0 is allowed")));
    }
    let dynamism = match table.scalar(&s::tensor::DYNAMISM)? {
        0 => Dynamism::Static,
        1 => Dynamism::Bounded,
        2 => Dynamism::Unbounded,
        other => {
            return Err(PteError::invalid("Tensor.shape_dynamism", format!("{other}; 0 to 2 are known")));
        }
    };
    let allocation = table.child(&s::tensor::ALLOCATION)?.map(|t| allocation(&t)).transpose()?;
    let extra = table.child(&s::tensor::EXTRA)?;
    let (mut external, mut name) = (None, None);
    if let Some(extra) = extra {
        let told = text(&extra, &s::extra::NAME)?;
        external = (extra.scalar(&s::extra::LOCATION)? == 1).then(|| told.clone());
        name = Some(told).filter(|told| !told.is_empty());
    }
    Ok(Tensor {
        scalar_type: ScalarType(table.scalar(&s::tensor::SCALAR_TYPE)?),
        sizes,
        dim_order,
        dynamism,
        data: table.scalar(&s::tensor::DATA)?,
        allocation,
        external,
        name,
    })
}

fn allocation(table: &Table<'_>) -> Result<Allocation> {
    let low = table.scalar(&s::allocation::LOW)?;
    let high = table.scalar(&s::allocation::HIGH)?;
    Ok(Allocation {
        memory: table.scalar(&s::allocation::MEMORY)?,
        offset: u64::from(high) << 32 | u64::from(low),
    })
}
