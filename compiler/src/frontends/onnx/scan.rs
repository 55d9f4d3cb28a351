//! Scans of ONNX models: put in step by step where the number of steps is known and not large, else a node with a region.

use halite_formats::onnx::{AttributeValue, Graph as GraphProto};
use halite_ops::{
    DType,
    expression::{Function, Operand},
};
use halite_sizes::Size;

use super::{
    Result,
    importer::{Importer, Site},
    repeat::{MOST_RUNS, body},
    rolled::{Rolled, place},
    runs::{Repeat, Run},
    value::{Value, stack, tensors},
};
use crate::{CompileError, build::Range, graph::TensorId};

/// What a scan does: states, and tensors that are walked along an axis of each.
struct Scan<'m> {
    body: &'m GraphProto,
    states: Vec<TensorId>,
    walked: Vec<Walked>,
    /// Axis, and whether values are joined in reverse order, for each output that is joined.
    joined: Vec<(i64, bool)>,
}

#[derive(Clone, Copy)]
struct Walked {
    tensor: TensorId,
    axis: usize,
    reverse: bool,
}

fn ints<'m>(site: &Site<'m>, name: &str) -> &'m [i64] {
    match site.attribute(name) {
        Some(AttributeValue::Ints(all)) => all,
        _ => &[],
    }
}

pub(super) fn scan<'m>(importer: &mut Importer<'m>, site: &Site<'m>) -> Result<Vec<Value>> {
    let wrong = |reason: &str| CompileError::invalid(&site.location, reason);
    let body = site.graph("body")?;
    let mut inputs = importer.inputs(site)?;
    // Until version 9 there were lengths in front, and a batch in each tensor.
    let is_batched = site.version < 9;
    if is_batched && !inputs.is_empty() && inputs.remove(0).is_some() {
        return Err(CompileError::unsupported(&site.location, "a scan with lengths of sequences"));
    }
    let inputs: Option<Vec<Value>> = inputs.into_iter().collect();
    let mut inputs = tensors(&inputs.ok_or_else(|| wrong("an input is missing"))?, &site.location)?;
    let count = match site.attribute("num_scan_inputs") {
        Some(AttributeValue::Int(count)) => usize::try_from(*count).unwrap_or(usize::MAX),
        _ => usize::MAX,
    };
    let states =
        inputs.len().checked_sub(count).ok_or_else(|| wrong("there are fewer inputs than are scanned"))?;
    if count == 0 || body.inputs.len() != inputs.len() || body.outputs.len() < states {
        return Err(wrong("the body does not take or give what the scan has"));
    }
    let outputs = body.outputs.len() - states;
    let at = |name: &str, index: usize| ints(site, name).get(index).copied().unwrap_or(0);
    let (axes, directions) =
        if is_batched { ("", "directions") } else { ("scan_input_axes", "scan_input_directions") };
    let mut walked = Vec::new();
    for (index, tensor) in inputs.split_off(states).into_iter().enumerate() {
        let rank = importer.builder.rank(tensor) as i64 - i64::from(is_batched);
        let axis = at(axes, index);
        let axis = if axis < 0 { axis + rank } else { axis };
        if !(0..rank).contains(&axis) {
            return Err(wrong("there is no such axis to scan"));
        }
        walked.push(Walked { tensor, axis: axis as usize, reverse: at(directions, index) != 0 });
    }
    let joined = (0..outputs)
        .map(|index| (at("scan_output_axes", index), at("scan_output_directions", index) != 0))
        .collect();
    let scan = Scan { body, states: inputs, walked, joined };
    let results = if is_batched { batched(importer, site, &scan)? } else { scanned(importer, site, &scan)? };
    Ok(results.into_iter().map(Value::Tensor).collect())
}

/// The scan as a node, for a number of steps that is not known yet; none where its body carries what changes its type.
fn as_node<'m>(
    importer: &mut Importer<'m>,
    site: &Site<'m>,
    scan: &Scan<'m>,
) -> Result<Option<Vec<TensorId>>> {
    let lengths: Vec<Size> = scan.walked.iter().map(|w| importer.builder.sizes(w.tensor)[w.axis]).collect();
    if !lengths.iter().all(|other| other.agrees(lengths[0])) {
        return Err(CompileError::invalid(&site.location, "a scan along axes that differ"));
    }
    let most = importer.builder.computed(DType::I64, &[], vec![lengths[0]])?;
    let most = importer.builder.written(most)?;
    let last = importer.builder.computed(DType::I64, &[], vec![lengths[0] - 1])?;
    let last = importer.builder.written(last)?;
    let repeat = Repeat {
        most: Some(most),
        condition: None,
        carried: scan.states.clone(),
        gathered: scan.joined.len(),
        runs: None,
    };
    let made = repeat.as_node(importer, site, &|importer, [run, go], states| {
        let mut arguments: Vec<Value> = states.iter().copied().map(Value::Tensor).collect();
        for walked in &scan.walked {
            let b = &mut importer.builder;
            let at = match walked.reverse {
                false => run,
                true => b.map(&[last, run], DType::I64, |p, x| p.call(Function::Sub, x))?,
            };
            arguments.push(Value::Tensor(b.gather(walked.tensor, at, walked.axis)?));
        }
        let mut carried = tensors(&body(importer, site, scan.body, arguments)?, &site.location)?;
        let gathered = carried.split_off(states.len());
        Ok(Run { condition: go, carried, gathered })
    })?;
    let Some(mut outputs) = made else { return Ok(None) };
    for (output, (axis, reverse)) in outputs[scan.states.len()..].iter_mut().zip(&scan.joined) {
        *output = turned(importer, site, *output, *axis, *reverse)?;
    }
    Ok(Some(outputs))
}

/// Values of all steps along the first axis, where they are wanted: along another, and the last first.
fn turned(
    importer: &mut Importer<'_>,
    site: &Site<'_>,
    mut all: TensorId,
    axis: i64,
    reverse: bool,
) -> Result<TensorId> {
    let b = &mut importer.builder;
    b.at(site.location.clone());
    let rank = b.rank(all);
    let axis = if axis < 0 { axis + rank as i64 } else { axis };
    let axis = usize::try_from(axis).ok().filter(|axis| *axis < rank);
    let axis = axis.ok_or_else(|| b.invalid("there is no such axis to join along"))?;
    if reverse {
        let count = b.sizes(all)[0];
        let last = b.computed(DType::I64, &[], vec![count - 1])?;
        let places = b.line_of_places(DType::I64, count)?;
        let places = b.map(&[last, places], DType::I64, |p, x: &[Operand]| p.call(Function::Sub, x))?;
        all = b.gather(all, places, 0)?;
    }
    let mut order: Vec<usize> = (1..rank).collect();
    order.insert(axis, 0);
    b.transpose(all, &order)
}

fn scanned<'m>(importer: &mut Importer<'m>, site: &Site<'m>, scan: &Scan<'m>) -> Result<Vec<TensorId>> {
    if scan.walked.iter().any(|w| !importer.builder.sizes(w.tensor)[w.axis].is_constant()) {
        let mark = importer.builder.mark();
        let is_data = scan.walked.iter().any(|w| importer.builder.sizes(w.tensor)[w.axis].is_data());
        match as_node(importer, site, scan) {
            Ok(Some(outputs)) => return Ok(outputs),
            Err(error) if is_data => return Err(error),
            Ok(None) if is_data => {
                let reason = "a scan of a length that data decide, whose states change their types";
                return Err(CompileError::unsupported(&site.location, reason));
            }
            _ => importer.builder.rollback(mark),
        }
    }
    let length = length_of(importer, site, scan)?;
    if let Some(outputs) = rolled(importer, site, scan, length)? {
        return Ok(outputs);
    }
    if length > MOST_RUNS.cast_unsigned() {
        let reason = format!(
            "a scan of {length} steps; those whose states change their types have {MOST_RUNS} at most"
        );
        return Err(CompileError::unsupported(&site.location, reason));
    }
    step_by_step(importer, site, scan, length)
}

/// How many steps a scan has whose sizes are known.
fn length_of(importer: &Importer<'_>, site: &Site<'_>, scan: &Scan<'_>) -> Result<u64> {
    let lengths: Vec<u64> =
        scan.walked.iter().map(|w| importer.builder.sizes(w.tensor)[w.axis].exact()).collect();
    let length = lengths[0];
    if lengths.iter().any(|other| *other != length) || length == 0 {
        let reason =
            format!("a scan along axes of {lengths:?} places; there must be equally many, and one at least");
        return Err(CompileError::unsupported(&site.location, reason));
    }
    Ok(length)
}

/// A scan whose steps are put in one by one.
fn step_by_step<'m>(
    importer: &mut Importer<'m>,
    site: &Site<'m>,
    scan: &Scan<'m>,
    length: u64,
) -> Result<Vec<TensorId>> {
    let mut states = scan.states.clone();
    let mut gathered = vec![Vec::new(); scan.joined.len()];
    for run in 0..length {
        importer.builder.watch().check()?;
        let mut arguments: Vec<Value> = states.iter().copied().map(Value::Tensor).collect();
        for walked in &scan.walked {
            let at = if walked.reverse { length - 1 - run } else { run };
            arguments.push(Value::Tensor(place(importer, walked.tensor, walked.axis, at)?));
        }
        let results = tensors(&body(importer, site, scan.body, arguments)?, &site.location)?;
        states = results[..states.len()].to_vec();
        for (all, value) in gathered.iter_mut().zip(&results[states.len()..]) {
            all.push(*value);
        }
    }
    importer.builder.at(site.location.clone());
    let mut outputs = states;
    for (mut all, (axis, reverse)) in gathered.into_iter().zip(&scan.joined) {
        if *reverse {
            all.reverse();
        }
        let rank = importer.builder.rank(all[0]) as i64 + 1;
        let axis = if *axis < 0 { axis + rank } else { *axis };
        outputs.push(stack(&mut importer.builder, &all, usize::try_from(axis).unwrap_or(usize::MAX))?);
    }
    Ok(outputs)
}

/// A scan of many steps as a node; none where there are few, or where that takes steps one by one.
fn rolled<'m>(
    importer: &mut Importer<'m>,
    site: &Site<'m>,
    scan: &Scan<'m>,
    runs: u64,
) -> Result<Option<Vec<TensorId>>> {
    importer.builder.at(site.location.clone());
    let mut walked = Vec::new();
    for own in &scan.walked {
        walked.push(forward(importer, own)?);
    }
    let carried = scan.states.clone();
    let rolled = Rolled { runs, carried, walked, gathered: scan.joined.len() };
    let made = rolled.as_node(importer, site, &|importer, _, go, states, parts| {
        let arguments = states.iter().chain(parts).copied().map(Value::Tensor).collect();
        let mut carried = tensors(&body(importer, site, scan.body, arguments)?, &site.location)?;
        let gathered = carried.split_off(states.len());
        Ok(Run { condition: go, carried, gathered })
    })?;
    let Some(mut outputs) = made else { return Ok(None) };
    for (output, (axis, reverse)) in outputs[scan.states.len()..].iter_mut().zip(&scan.joined) {
        *output = turned(importer, site, *output, *axis, *reverse)?;
    }
    Ok(Some(outputs))
}

/// What is walked with its axis first, and in the order of steps.
fn forward(importer: &mut Importer<'_>, walked: &Walked) -> Result<TensorId> {
    let b = &mut importer.builder;
    let mut order: Vec<usize> = (0..b.rank(walked.tensor)).collect();
    order.remove(walked.axis);
    order.insert(0, walked.axis);
    let turned = b.transpose(walked.tensor, &order)?;
    if !walked.reverse {
        return Ok(turned);
    }
    let mut ranges: Vec<Range<Size>> = b.sizes(turned).iter().map(|size| Range::all(*size)).collect();
    let count = ranges[0].count;
    ranges[0] = Range { start: count - 1, step: -1, count };
    b.slice(turned, &ranges)
}

/// A scan for each of a batch.
fn batched<'m>(importer: &mut Importer<'m>, site: &Site<'m>, scan: &Scan<'m>) -> Result<Vec<TensorId>> {
    let batch = importer.builder.dims(scan.walked[0].tensor).first().copied().unwrap_or(0);
    let all = || scan.states.iter().copied().chain(scan.walked.iter().map(|walked| walked.tensor));
    let same = all().all(|id| importer.builder.dims(id).first() == Some(&batch));
    if !same || batch == 0 || batch > MOST_RUNS as u64 {
        return Err(CompileError::invalid(&site.location, "inputs are not of one batch"));
    }
    let mut results: Vec<Vec<TensorId>> = Vec::new();
    for index in 0..batch {
        let mut states = Vec::new();
        for state in &scan.states {
            states.push(place(importer, *state, 0, index)?);
        }
        let mut walked = Vec::new();
        for own in &scan.walked {
            walked.push(Walked { tensor: place(importer, own.tensor, 0, index)?, ..*own });
        }
        let one = Scan { body: scan.body, states, walked, joined: scan.joined.clone() };
        results.push(scanned(importer, site, &one)?);
    }
    let count = results[0].len();
    (0..count)
        .map(|output| {
            let each: Vec<TensorId> = results.iter().map(|all| all[output]).collect();
            stack(&mut importer.builder, &each, 0)
        })
        .collect()
}
