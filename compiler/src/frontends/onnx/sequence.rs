//! Operators on lists and optional values, which exist only while a graph is built.

use std::rc::Rc;

use halite_formats::onnx::AttributeValue;
use halite_ops::{DType, Values};
use halite_sizes::Size;

use super::{
    Result,
    importer::{Compute, Importer, Site},
    listed::{Listed, MOST_PARTS},
    mapped::mapped,
    value::{Value, stack, tensors},
};
use crate::{
    CompileError,
    build::{Builder, Range, budget::Cost},
    graph::{ElementType, TensorId},
};

/// The importer of an operator on lists or optional values.
pub(super) fn find(domain: &str, op_type: &str) -> Option<Compute> {
    if !domain.is_empty() {
        return None;
    }
    Some(match op_type {
        "ConcatFromSequence" => concat,
        "Identity" | "Optional" => same,
        "OptionalGetElement" => get_element,
        "OptionalHasElement" => has_element,
        "SequenceAt" => at,
        "SequenceConstruct" => construct,
        "SequenceEmpty" => |_, _| Ok(vec![Value::Sequence(Vec::new().into())]),
        "SequenceErase" => erase,
        "SequenceInsert" => insert,
        "SequenceLength" => length,
        "SequenceMap" => map,
        "SplitToSequence" => split,
        _ => return None,
    })
}

fn wrong(site: &Site<'_>, reason: &str) -> CompileError {
    CompileError::invalid(&site.location, reason)
}

fn int(site: &Site<'_>, name: &str, default: i64) -> i64 {
    match site.attribute(name) {
        Some(AttributeValue::Int(value)) => *value,
        _ => default,
    }
}

/// An input that is a list of as many tensors as are known.
fn list(values: &[Option<Value>], index: usize, site: &Site<'_>) -> Result<Rc<[TensorId]>> {
    match values.get(index) {
        Some(Some(Value::Sequence(all))) => Ok(Rc::clone(all)),
        _ => Err(wrong(site, &format!("input {index} is no list"))),
    }
}

/// A new list.
fn made(importer: &Importer<'_>, all: Vec<TensorId>) -> Result<Value> {
    importer.builder.spend(Cost::List, all.len() as u64)?;
    Ok(Value::Sequence(all.into()))
}

fn tensor(values: &[Option<Value>], index: usize) -> Option<TensorId> {
    match values.get(index) {
        Some(Some(Value::Tensor(id))) => Some(*id),
        _ => None,
    }
}

fn need_tensor(values: &[Option<Value>], index: usize, site: &Site<'_>) -> Result<TensorId> {
    tensor(values, index).ok_or_else(|| wrong(site, &format!("input {index} is no tensor")))
}

/// A place in a list of `count`, which may count from the end.
fn position(importer: &Importer<'_>, id: TensorId, count: usize, site: &Site<'_>) -> Result<usize> {
    let value = importer.builder.need_ints(id, "a place in a list")?.first().copied().unwrap_or(0);
    let count = count as i64;
    let place = if value < 0 { value.saturating_add(count) } else { value };
    if (0..count).contains(&place) {
        return Ok(place as usize);
    }
    Err(wrong(site, &format!("there is no place {value} in a list of {count}")))
}

fn same<'m>(importer: &mut Importer<'m>, site: &Site<'m>) -> Result<Vec<Value>> {
    let value = importer.inputs(site)?.into_iter().next().flatten();
    Ok(vec![value.unwrap_or(Value::Nothing)])
}

fn has_element<'m>(importer: &mut Importer<'m>, site: &Site<'m>) -> Result<Vec<Value>> {
    let value = importer.inputs(site)?.into_iter().next().flatten();
    let is_there = !matches!(value, None | Some(Value::Nothing));
    let known = Values::Int(vec![is_there.into()]);
    Ok(vec![Value::Tensor(importer.builder.values(ElementType::Bool, &[], &known)?)])
}

fn get_element<'m>(importer: &mut Importer<'m>, site: &Site<'m>) -> Result<Vec<Value>> {
    match importer.inputs(site)?.into_iter().next().flatten() {
        None | Some(Value::Nothing) => Err(wrong(site, "the optional value is not there")),
        Some(value) => Ok(vec![value]),
    }
}

fn construct<'m>(importer: &mut Importer<'m>, site: &Site<'m>) -> Result<Vec<Value>> {
    let values: Option<Vec<Value>> = importer.inputs(site)?.into_iter().collect();
    let values = values.ok_or_else(|| wrong(site, "an input is missing"))?;
    let all = tensors(&values, &site.location)?;
    Ok(vec![made(importer, all)?])
}

/// A list of as many tensors as data decide.
fn listed(values: &[Option<Value>]) -> Option<Listed> {
    match values.first() {
        Some(Some(Value::Listed(list))) => Some(*list),
        _ => None,
    }
}

/// The tensor at a place that data decide, of a list whose length is known.
fn at_data(
    importer: &mut Importer<'_>,
    all: &[TensorId],
    place: TensorId,
    site: &Site<'_>,
) -> Result<Option<TensorId>> {
    let Some(first) = all.first() else { return Ok(None) };
    if importer.builder.ints(place).is_some() {
        return Ok(None);
    }
    importer.builder.at(site.location.clone());
    let kind = (importer.builder.element(*first), importer.builder.rank(*first));
    let list = Listed::of(&mut importer.builder, all, kind)?;
    list.at(&mut importer.builder, place).map(Some)
}

fn at<'m>(importer: &mut Importer<'m>, site: &Site<'m>) -> Result<Vec<Value>> {
    let values = importer.inputs(site)?;
    if let Some(list) = listed(&values) {
        let place = need_tensor(&values, 1, site)?;
        return Ok(vec![Value::Tensor(list.at(&mut importer.builder, place)?)]);
    }
    let all = list(&values, 0, site)?;
    let place = need_tensor(&values, 1, site)?;
    if let Some(found) = at_data(importer, &all, place, site)? {
        return Ok(vec![Value::Tensor(found)]);
    }
    let place = position(importer, place, all.len(), site)?;
    Ok(vec![Value::Tensor(all[place])])
}

/// A place that data decide.
fn data_place(importer: &Importer<'_>, place: Option<TensorId>) -> Option<TensorId> {
    place.filter(|place| importer.builder.takes_data() && importer.builder.ints(*place).is_none())
}

fn insert<'m>(importer: &mut Importer<'m>, site: &Site<'m>) -> Result<Vec<Value>> {
    let values = importer.inputs(site)?;
    let added = need_tensor(&values, 1, site)?;
    if let Some(list) = listed(&values) {
        let b = &mut importer.builder;
        return Ok(vec![Value::Listed(match tensor(&values, 2) {
            None => list.with(b, added)?,
            Some(place) => list.inserted(b, added, place)?,
        })]);
    }
    if let Some(place) = data_place(importer, tensor(&values, 2)) {
        let all = list(&values, 0, site)?;
        let kind = (importer.builder.element(added), importer.builder.rank(added));
        let list = Listed::of(&mut importer.builder, &all, kind)?;
        return Ok(vec![Value::Listed(list.inserted(&mut importer.builder, added, place)?)]);
    }
    let mut all = list(&values, 0, site)?.to_vec();
    let place = match tensor(&values, 2) {
        None => all.len(),
        Some(id) => {
            let value = importer.builder.need_ints(id, "a place in a list")?.first().copied().unwrap_or(0);
            let count = all.len() as i64;
            let place = if value < 0 { value.saturating_add(count) } else { value };
            let found = usize::try_from(place).ok().filter(|place| *place <= all.len());
            found.ok_or_else(|| wrong(site, &format!("there is no place {value} in a list of {count}")))?
        }
    };
    all.insert(place, added);
    Ok(vec![made(importer, all)?])
}

fn erase<'m>(importer: &mut Importer<'m>, site: &Site<'m>) -> Result<Vec<Value>> {
    let values = importer.inputs(site)?;
    if let Some(list) = listed(&values) {
        let b = &mut importer.builder;
        let place = match tensor(&values, 1) {
            Some(place) => place,
            None => b.values(DType::I64, &[], &Values::Int(vec![-1]))?,
        };
        return Ok(vec![Value::Listed(list.erased(b, place)?)]);
    }
    let mut all = list(&values, 0, site)?.to_vec();
    if let (Some(place), Some(first)) = (data_place(importer, tensor(&values, 1)), all.first()) {
        let kind = (importer.builder.element(*first), importer.builder.rank(*first));
        let list = Listed::of(&mut importer.builder, &all, kind)?;
        return Ok(vec![Value::Listed(list.erased(&mut importer.builder, place)?)]);
    }
    match tensor(&values, 1) {
        Some(id) => {
            all.remove(position(importer, id, all.len(), site)?);
        }
        None if all.is_empty() => return Err(wrong(site, "the list is empty")),
        None => {
            all.pop();
        }
    }
    Ok(vec![made(importer, all)?])
}

fn length<'m>(importer: &mut Importer<'m>, site: &Site<'m>) -> Result<Vec<Value>> {
    let values = importer.inputs(site)?;
    if let Some(list) = listed(&values) {
        let count = list.count(&importer.builder);
        return Ok(vec![Value::Tensor(importer.builder.computed(DType::I64, &[], vec![count])?)]);
    }
    let count = list(&values, 0, site)?.len() as i64;
    Ok(vec![Value::Tensor(importer.builder.values(DType::I64, &[], &Values::Int(vec![count]))?)])
}

fn axis(site: &Site<'_>, value: i64, rank: usize) -> Result<usize> {
    let axis = if value < 0 { value.saturating_add(rank as i64) } else { value };
    usize::try_from(axis)
        .ok()
        .filter(|axis| *axis < rank)
        .ok_or_else(|| wrong(site, &format!("there is no axis {value}")))
}

fn concat<'m>(importer: &mut Importer<'m>, site: &Site<'m>) -> Result<Vec<Value>> {
    let values = importer.inputs(site)?;
    if let Some(list) = listed(&values) {
        let is_new = int(site, "new_axis", 0) != 0;
        let rank = list.kind(&importer.builder).1 + usize::from(is_new);
        let axis = axis(site, int(site, "axis", 0), rank)?;
        return Ok(vec![Value::Tensor(list.joined(&mut importer.builder, axis, is_new)?)]);
    }
    let all = list(&values, 0, site)?;
    let Some(first) = all.first() else { return Err(wrong(site, "the list is empty")) };
    let is_new = int(site, "new_axis", 0) != 0;
    let rank = importer.builder.rank(*first) + usize::from(is_new);
    let axis = axis(site, int(site, "axis", 0), rank)?;
    let joined = if is_new {
        stack(&mut importer.builder, &all, axis)?
    } else {
        importer.builder.concat(&all, axis)?
    };
    Ok(vec![Value::Tensor(joined)])
}

/// Pieces of a first axis: of sizes that are computed, or of one size, where data decide its length; single places of any axis whose length is open.
fn split_by_data(
    importer: &mut Importer<'_>,
    site: &Site<'_>,
    data: TensorId,
    parts: Option<TensorId>,
) -> Result<Option<Listed>> {
    let b = &mut importer.builder;
    let sizes = b.sizes(data).to_vec();
    let axis = axis(site, int(site, "axis", 0), sizes.len())?;
    let is_first = axis == 0;
    let is_one = |b: &Builder, id: TensorId| {
        let one = b.repeated_of(id).unwrap_or(id);
        b.ints(one).is_some_and(|all| all == [1])
    };
    let each = match parts {
        None => Some(1),
        // A line of ones, as exporters write single places of an open number.
        Some(parts) if b.rank(parts) == 1 && is_one(b, parts) => {
            b.sizes(parts)[0].agrees(sizes[axis]).then_some(1)
        }
        Some(parts) if b.rank(parts) == 0 => b.ints(parts).and_then(|each| each.first().copied()),
        Some(_) => None,
    };
    if let Some(parts) = parts.filter(|parts| {
        each.is_none() && b.rank(*parts) == 1 && b.size_values(*parts).is_none() && b.takes_data()
    }) {
        return if is_first { Listed::parts(b, data, parts).map(Some) } else { Ok(None) };
    }
    let Some(each) = each.and_then(|each| u64::try_from(each).ok()).filter(|each| *each > 0) else {
        return Ok(None);
    };
    // An open number of single places is one of a list, too, which need not be fixed.
    if sizes[axis].is_constant() || !b.takes_data() || each > 1 && !(is_first && sizes[0].is_data()) {
        return Ok(None);
    }
    if each > 1 {
        return Listed::pieces(b, data, each).map(Some);
    }
    let keeps = parts.is_some() || int(site, "keepdims", 1) != 0;
    Listed::places_of(b, data, axis, keeps).map(Some)
}

/// Parts along an axis: of given sizes, of one size with a smaller last one, or single places.
fn split<'m>(importer: &mut Importer<'m>, site: &Site<'m>) -> Result<Vec<Value>> {
    let values = importer.inputs(site)?;
    let data = need_tensor(&values, 0, site)?;
    if let Some(list) = split_by_data(importer, site, data, tensor(&values, 1))? {
        return Ok(vec![Value::Listed(list)]);
    }
    let dims = importer.builder.sizes(data).to_vec();
    let axis = axis(site, int(site, "axis", 0), dims.len())?;
    let size = dims[axis].exact();
    if size > MOST_PARTS {
        let reason = format!("a list of the parts of {size} places; {MOST_PARTS} are supported");
        return Err(CompileError::unsupported(&site.location, reason));
    }
    let (sizes, keeps) = match tensor(&values, 1) {
        None => (vec![1; size as usize], int(site, "keepdims", 1) != 0),
        Some(id) => {
            let is_scalar = importer.builder.dims(id).is_empty();
            let given = importer.builder.need_ints(id, "the sizes of the parts")?;
            let given: Option<Vec<u64>> = given.iter().map(|size| u64::try_from(*size).ok()).collect();
            let given = given.ok_or_else(|| wrong(site, "a size is negative"))?;
            match (is_scalar, given.first()) {
                (true, Some(0)) | (_, None) => return Err(wrong(site, "parts of no places")),
                (true, Some(each)) => {
                    ((0..size.div_ceil(*each)).map(|i| (*each).min(size - i * each)).collect(), true)
                }
                (false, _) => (given, true),
            }
        }
    };
    if sizes.iter().fold(0u64, |sum, size| sum.saturating_add(*size)) != size {
        let reason = format!("{} parts are not of the {size} places there are", sizes.len());
        return Err(wrong(site, &reason));
    }
    let b = &mut importer.builder;
    let (mut start, mut parts) = (0, Vec::new());
    for count in sizes {
        let mut ranges: Vec<Range<Size>> = dims.iter().map(|size| Range::all(*size)).collect();
        let first = if count == 0 { 0 } else { start };
        ranges[axis] = Range { start: first.into(), step: 1, count: count.into() };
        let mut part = b.slice(data, &ranges)?;
        if !keeps {
            let mut kept = dims.clone();
            kept.remove(axis);
            part = b.reshape_to(part, &kept)?;
        }
        parts.push(part);
        start += count;
    }
    Ok(vec![made(importer, parts)?])
}

/// A graph for each place of one or more lists; tensors are given to all.
fn map<'m>(importer: &mut Importer<'m>, site: &Site<'m>) -> Result<Vec<Value>> {
    let body = site.graph("body")?;
    let mut values = importer.inputs(site)?;
    for value in &mut values {
        if let Some(Value::Listed(list)) = value
            && let Some(all) = list.one_by_one(&mut importer.builder)?
        {
            *value = Some(made(importer, all)?);
        }
    }
    if body.inputs.len() != values.len() {
        return Err(wrong(site, "the body does not take what it is given"));
    }
    if let Some(lists) = mapped(importer, site, body, &values)? {
        return Ok(lists);
    }
    let count = list(&values, 0, site)?.len();
    let mut results: Vec<Vec<TensorId>> = vec![Vec::new(); body.outputs.len()];
    for place in 0..count {
        let outputs = importer.inner(&site.location, |importer| {
            for (input, value) in body.inputs.iter().zip(&values) {
                let value = match value {
                    Some(Value::Sequence(all)) => {
                        let element =
                            all.get(place).ok_or_else(|| wrong(site, "a list is shorter than the first"))?;
                        Value::Tensor(*element)
                    }
                    Some(value) => value.clone(),
                    None => Value::Nothing,
                };
                importer.define(&input.name, value);
            }
            importer.run(body)
        })?;
        for (all, id) in results.iter_mut().zip(tensors(&outputs, &site.location)?) {
            all.push(id);
        }
    }
    results.into_iter().map(|all| made(importer, all)).collect()
}
