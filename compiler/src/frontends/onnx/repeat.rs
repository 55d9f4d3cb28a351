//! Loops of ONNX models. One whose number of runs is known is put in that often; others become a node with a region, if what
//! they carry keeps its shape.

use halite_formats::onnx::{AttributeValue, Graph as GraphProto, Type};
use halite_ops::{DType, Values};

use super::{
    Result, constant,
    importer::{Importer, Site},
    value::{Value, stack, tensors},
};
use crate::{
    CompileError,
    build::Range,
    graph::{ElementType, NodeOp, TensorId},
};

/// Most runs of a loop that is put in as what it does.
const MOST_RUNS: i64 = 10_000;
/// Most nodes that loops may become.
const MOST_NODES: usize = 100_000;

/// What a loop has done: values that it carries, and for each of its other outputs the values of all runs.
struct Done {
    carried: Vec<Value>,
    gathered: Vec<Vec<TensorId>>,
}

/// A loop and what it begins with.
struct Start<'m> {
    body: &'m GraphProto,
    most: Option<TensorId>,
    condition: Option<TensorId>,
    carried: Vec<Value>,
}

impl Start<'_> {
    /// Number of outputs whose values of all runs are joined.
    fn gathers(&self) -> usize {
        self.body.outputs.len() - 1 - self.carried.len()
    }
}

pub(super) fn loops<'m>(importer: &mut Importer<'m>, site: &Site<'m>) -> Result<Vec<Value>> {
    let body = site.graph("body")?;
    let mut inputs = importer.inputs(site)?;
    inputs.resize(inputs.len().max(2), None);
    let carried = inputs.split_off(2);
    let carried = carried.into_iter().map(|value| value.unwrap_or(Value::Nothing)).collect::<Vec<_>>();
    let scalar = |value: &Option<Value>| match value {
        Some(Value::Tensor(id)) => Some(*id),
        _ => None,
    };
    let start = Start { body, most: scalar(&inputs[0]), condition: scalar(&inputs[1]), carried };
    if body.inputs.len() != start.carried.len() + 2 || body.outputs.len() <= start.carried.len() {
        return Err(CompileError::invalid(
            &site.location,
            "the body does not take or give what the loop carries",
        ));
    }
    let mark = importer.builder.mark();
    match unrolled(importer, site, &start)? {
        Ok(done) => finished(importer, site, &start, done),
        Err(unknown) => {
            importer.builder.rollback(mark);
            match region(importer, site, &start)? {
                Some(values) => Ok(values),
                None => {
                    importer.builder.rollback(mark);
                    Err(unknown)
                }
            }
        }
    }
}

/// The loop run by run; the inner error says what is not known of the number of runs.
fn unrolled<'m>(
    importer: &mut Importer<'m>,
    site: &Site<'m>,
    start: &Start<'m>,
) -> Result<std::result::Result<Done, CompileError>> {
    const WHAT: &str = "how often a loop runs";
    let first = |ids: Vec<i64>| ids.first().copied().unwrap_or(0);
    let known = |importer: &Importer<'_>, id: Option<TensorId>, default: i64| match id {
        Some(id) => importer.builder.need_ints(id, WHAT).map(first),
        None => Ok(default),
    };
    let most = match known(importer, start.most, i64::MAX) {
        Ok(most) => most,
        Err(unknown) => return Ok(Err(unknown)),
    };
    let mut goes_on = match known(importer, start.condition, 1) {
        Ok(value) => value != 0,
        Err(unknown) => return Ok(Err(unknown)),
    };
    let mut done = Done { carried: start.carried.clone(), gathered: vec![Vec::new(); start.gathers()] };
    for run in 0..most {
        if !goes_on {
            break;
        }
        importer.builder.watch().check()?;
        if run >= MOST_RUNS || importer.builder.nodes() > MOST_NODES {
            let reason = format!("a loop that becomes more than {MOST_RUNS} runs or {MOST_NODES} nodes");
            return Ok(Err(CompileError::unsupported(&site.location, reason)));
        }
        let number = importer.builder.values(DType::I64, &[], &Values::Int(vec![run]))?;
        let go = importer.builder.values(ElementType::Bool, &[], &Values::Int(vec![1]))?;
        let arguments = [Value::Tensor(number), Value::Tensor(go)].into_iter().chain(done.carried);
        let mut results = body(importer, site, start.body, arguments.collect())?.into_iter();
        match results.next() {
            Some(Value::Tensor(condition)) => match importer.builder.need_ints(condition, WHAT) {
                Ok(value) => goes_on = first(value) != 0,
                // After the last run the condition is not asked.
                Err(_) if run + 1 == most => {}
                Err(unknown) => return Ok(Err(unknown)),
            },
            _ => return Err(CompileError::invalid(&site.location, "the condition is no tensor")),
        }
        done.carried = results.by_ref().take(start.carried.len()).collect();
        let values = tensors(&results.collect::<Vec<_>>(), &site.location)?;
        done.gathered.iter_mut().zip(values).for_each(|(all, value)| all.push(value));
    }
    Ok(Ok(done))
}

/// One run of a body.
fn body<'m>(
    importer: &mut Importer<'m>,
    site: &Site<'m>,
    graph: &'m GraphProto,
    arguments: Vec<Value>,
) -> Result<Vec<Value>> {
    importer.inner(&site.location, |importer| {
        for (input, value) in graph.inputs.iter().zip(arguments) {
            importer.define(&input.name, value);
        }
        importer.run(graph)
    })
}

/// The outputs of a loop that was put in run by run.
fn finished<'m>(
    importer: &mut Importer<'m>,
    site: &Site<'m>,
    start: &Start<'m>,
    done: Done,
) -> Result<Vec<Value>> {
    let mut outputs = done.carried;
    let declared = &start.body.outputs[1 + start.carried.len()..];
    importer.builder.at(site.location.clone());
    for (all, info) in done.gathered.into_iter().zip(declared) {
        let joined = match all.is_empty() {
            true => nothing(importer, site, info.value.as_ref())?,
            false => stack(&mut importer.builder, &all, 0)?,
        };
        outputs.push(Value::Tensor(joined));
    }
    Ok(outputs)
}

/// The values of no run, as the body declares them.
fn nothing(importer: &mut Importer<'_>, site: &Site<'_>, declared: Option<&Type>) -> Result<TensorId> {
    use halite_formats::onnx::Dim;
    let Some(Type::Tensor(Some(data_type), Some(dims))) = declared else {
        return Err(CompileError::unsupported(
            &site.location,
            "a loop without runs whose body does not say its types",
        ));
    };
    let element = constant::element_type(*data_type)
        .ok_or_else(|| CompileError::unsupported(&site.location, format!("elements of type {data_type}")))?;
    let size = |dim: &Dim| if let Dim::Known(size) = dim { *size } else { 0 };
    let dims: Vec<u64> = std::iter::once(0).chain(dims.iter().map(size)).collect();
    importer.builder.constant("", element, &dims, bytes::Bytes::new())
}

/// The loop as a node; none if it carries what changes its shape, or joins the values of all runs.
fn region<'m>(importer: &mut Importer<'m>, site: &Site<'m>, start: &Start<'m>) -> Result<Option<Vec<Value>>> {
    let carried: Option<Vec<TensorId>> = start
        .carried
        .iter()
        .map(|value| if let Value::Tensor(id) = value { Some(*id) } else { None })
        .collect();
    let Some(carried) = carried.filter(|_| start.gathers() == 0) else { return Ok(None) };
    let types: Vec<_> = carried.iter().map(|id| importer.type_of(*id)).collect();
    let mut parameters = vec![(ElementType::Of(DType::I64), vec![]), (ElementType::Bool, vec![])];
    parameters.extend(types.iter().cloned());
    let arguments = importer.builder.region(&parameters)?;
    let arguments = arguments.into_iter().map(Value::Tensor).collect();
    let mut results = tensors(&body(importer, site, start.body, arguments)?, &site.location)?;
    results[0] = importer.builder.reshape(results[0], &[])?;
    let given: Vec<_> = results.iter().map(|id| importer.type_of(*id)).collect();
    if given != parameters[1..] {
        return Ok(None);
    }
    let region = importer.builder.close(&results);
    importer.builder.at(site.location.clone());
    let b = &mut importer.builder;
    let most = match start.most {
        Some(most) => b.reshape(most, &[])?,
        None => b.values(DType::I64, &[], &Values::Int(vec![i64::MAX]))?,
    };
    let condition = match start.condition {
        Some(condition) => b.reshape(condition, &[])?,
        None => b.values(ElementType::Bool, &[], &Values::Int(vec![1]))?,
    };
    let inputs: Vec<TensorId> = [most, condition].into_iter().chain(carried).collect();
    let made = b.push(NodeOp::Loop(Box::new(region)), &inputs, &types)?;
    Ok(Some(made.into_iter().map(Value::Tensor).collect()))
}

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

/// The place with a number along an axis, which is dropped.
fn place(importer: &mut Importer<'_>, tensor: TensorId, axis: usize, at: u64) -> Result<TensorId> {
    let b = &mut importer.builder;
    let mut dims = b.dims(tensor).to_vec();
    let mut ranges: Vec<Range> = dims.iter().map(|size| Range::all(*size)).collect();
    ranges[axis] = Range { start: at, step: 1, count: 1 };
    dims.remove(axis);
    let part = b.slice(tensor, &ranges)?;
    b.reshape(part, &dims)
}

fn scanned<'m>(importer: &mut Importer<'m>, site: &Site<'m>, scan: &Scan<'m>) -> Result<Vec<TensorId>> {
    let lengths: Vec<u64> = scan.walked.iter().map(|w| importer.builder.dims(w.tensor)[w.axis]).collect();
    let length = lengths[0];
    if lengths.iter().any(|other| *other != length) || length == 0 || length > MOST_RUNS as u64 {
        let reason =
            format!("a scan along axes of {lengths:?} places; there must be equally many, 1 to {MOST_RUNS}");
        return Err(CompileError::unsupported(&site.location, reason));
    }
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
