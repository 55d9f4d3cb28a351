//! Loops of ONNX models. One whose number of runs is known and not large is put in that often; others become a node with a region.

use halite_formats::onnx::{Graph as GraphProto, Type};
use halite_ops::{DType, Values};
use halite_sizes::Size;

use super::{
    Result, constant,
    importer::{Importer, Site},
    listed::{Kind, Listed},
    rolled::Rolled,
    runs::{Repeat, Run},
    value::{Value, stack, tensors},
};
use crate::{
    CompileError,
    graph::{ElementType, TensorId},
};

/// Most runs of a loop that is put in as what it does.
pub(super) const MOST_RUNS: i64 = 10_000;
/// What numbers are that say how often a loop runs.
const WHAT: &str = "how often a loop runs";
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
    // As many runs as a size that callers decide: put in run by run, the graph would be for that size alone.
    let is_open = [start.most, start.condition].into_iter().flatten().any(|id| {
        importer.builder.size_values(id).is_some_and(|all| all.iter().any(|size| !size.is_constant()))
    });
    let tried = match is_open {
        true => Some(as_region(importer, site, &start, mark)?),
        false => None,
    };
    if let Some(Ok(Some(values))) = tried {
        return Ok(values);
    }
    if let Some(values) = rolled(importer, site, &start)? {
        return Ok(values);
    }
    match unrolled(importer, site, &start)? {
        Ok(done) => finished(importer, site, &start, done),
        Err(unknown) => {
            importer.builder.rollback(mark);
            // With values that callers can give it is put in run by run.
            let is_given = matches!(&unknown, CompileError::NeedsValues { inputs, .. } if !inputs.is_empty());
            let made = match tried {
                Some(made) => made,
                None => as_region(importer, site, &start, mark)?,
            };
            match made {
                Ok(Some(values)) => Ok(values),
                Err(error) if !is_given => Err(error),
                _ => Err(unknown),
            }
        }
    }
}

/// The loop as a node, or why it cannot be one, behind which the builder is where it was; an outer error ends the work.
fn as_region<'m>(
    importer: &mut Importer<'m>,
    site: &Site<'m>,
    start: &Start<'m>,
    mark: crate::build::Mark,
) -> Result<Result<Option<Vec<Value>>>> {
    let made = region(importer, site, start);
    if !matches!(made, Ok(Some(_))) {
        importer.builder.watch().check()?;
        importer.builder.rollback(mark);
    }
    Ok(made)
}

/// Types and ranks of what carried sequences hold, as far as they hold something; none where something carried is no tensor and no list.
fn kinds_of(importer: &Importer<'_>, carried: &[Value]) -> Option<Vec<Option<Kind>>> {
    let kind = |value: &Value| {
        Some(match value {
            Value::Tensor(_) | Value::Listed(_) => None,
            Value::Sequence(all) => {
                all.first().map(|first| (importer.builder.element(*first), importer.builder.rank(*first)))
            }
            _ => return None,
        })
    };
    carried.iter().map(kind).collect()
}

/// The loop as a node; none if it carries what is no tensor or list, or tensors whose types change.
fn region<'m>(importer: &mut Importer<'m>, site: &Site<'m>, start: &Start<'m>) -> Result<Option<Vec<Value>>> {
    let Some(mut kinds) = kinds_of(importer, &start.carried) else { return Ok(None) };
    let is_new = |value: &Value| matches!(value, Value::Sequence(all) if all.is_empty());
    if start.carried.iter().any(is_new) && !look(importer, site, start, &mut kinds)? {
        return Ok(None);
    }
    let mut lists = Vec::new();
    let mut carried = Vec::new();
    for (value, kind) in start.carried.iter().zip(kinds) {
        let list = match (value, kind) {
            (Value::Tensor(id), _) => {
                carried.push(*id);
                lists.push(None);
                continue;
            }
            (Value::Listed(list), _) => *list,
            (Value::Sequence(all), Some(kind)) => Listed::of(&mut importer.builder, all, kind)?,
            _ => return Ok(None),
        };
        carried.extend([list.elements, list.sizes]);
        lists.push(Some(list.kind(&importer.builder)));
    }
    let count = start.carried.len();
    let repeat = Repeat {
        most: start.most,
        condition: start.condition,
        carried,
        gathered: start.gathers(),
        runs: None,
    };
    let made = repeat.as_node(importer, site, &|importer, [run, go], carried| {
        let mut arguments = vec![Value::Tensor(run), Value::Tensor(go)];
        arguments.extend(values_of(carried, &lists));
        let mut results = body(importer, site, start.body, arguments)?;
        let gathered = tensors(&results.split_off(1 + count), &site.location)?;
        let carried = flat(importer, site, &results.split_off(1), &lists)?;
        Ok(Run { condition: tensors(&results, &site.location)?[0], carried, gathered })
    })?;
    let Some(mut made) = made else { return Ok(None) };
    let gathered = made.split_off(made.len() - start.gathers());
    let mut outputs = values_of(&made, &lists);
    outputs.extend(gathered.into_iter().map(Value::Tensor));
    Ok(Some(outputs))
}

/// What is carried as values: lists are two tensors.
fn values_of(carried: &[TensorId], lists: &[Option<Kind>]) -> Vec<Value> {
    let mut carried = carried.iter().copied();
    let mut next = || carried.next().expect("there are as many as were made of the values");
    let one = |list: &Option<Kind>| match list {
        None => Value::Tensor(next()),
        Some(_) => Value::Listed(Listed { elements: next(), sizes: next(), rows: None }),
    };
    lists.iter().map(one).collect()
}

/// The tensors that values of a run are.
fn flat(
    importer: &mut Importer<'_>,
    site: &Site<'_>,
    values: &[Value],
    lists: &[Option<Kind>],
) -> Result<Vec<TensorId>> {
    let mut made = Vec::new();
    for (value, list) in values.iter().zip(lists) {
        match (value, list) {
            (Value::Listed(list), Some(_)) => made.extend([list.elements, list.sizes]),
            (Value::Sequence(all), Some(kind)) => {
                let list = Listed::of(&mut importer.builder, all, *kind)?;
                made.extend([list.elements, list.sizes]);
            }
            _ => made.extend(tensors(std::slice::from_ref(value), &site.location)?),
        }
    }
    Ok(made)
}

/// Looks at one run to see which tensors are put into lists that begin empty; false where none are.
fn look<'m>(
    importer: &mut Importer<'m>,
    site: &Site<'m>,
    start: &Start<'m>,
    kinds: &mut [Option<Kind>],
) -> Result<bool> {
    let mark = importer.builder.mark();
    let parameters: [(ElementType, Vec<Size>); 2] =
        [(DType::I64.into(), Vec::new()), (ElementType::Bool, Vec::new())];
    let arguments = importer.builder.region(&parameters)?;
    let arguments = arguments.into_iter().map(Value::Tensor).chain(start.carried.iter().cloned());
    let results = body(importer, site, start.body, arguments.collect())?;
    for ((value, begins), kind) in results[1..].iter().zip(&start.carried).zip(kinds.iter_mut()) {
        if let (Value::Sequence(all), Value::Sequence(_), None) = (value, begins, &kind)
            && let Some(first) = all.first()
        {
            *kind = Some((importer.builder.element(*first), importer.builder.rank(*first)));
        }
    }
    importer.builder.rollback(mark);
    let known =
        |(value, kind): (&Value, &Option<Kind>)| !matches!(value, Value::Sequence(_)) || kind.is_some();
    Ok(start.carried.iter().zip(kinds.iter()).all(known))
}

/// The loop run by run; the inner error says what is not known of the number of runs.
fn unrolled<'m>(
    importer: &mut Importer<'m>,
    site: &Site<'m>,
    start: &Start<'m>,
) -> Result<std::result::Result<Done, CompileError>> {
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

/// A loop of many runs as a node; none where it is not known to have many, or takes runs one by one.
fn rolled<'m>(importer: &mut Importer<'m>, site: &Site<'m>, start: &Start<'m>) -> Result<Option<Vec<Value>>> {
    let known = |id: Option<TensorId>| -> Option<i64> {
        id.map_or(Some(1), |id| importer.builder.need_ints(id, WHAT).ok()?.first().copied())
    };
    let is_tensor = |value: &Value| matches!(value, Value::Tensor(_));
    let most = start.most.and_then(|id| known(Some(id))).and_then(|most| u64::try_from(most).ok());
    let begins = known(start.condition).is_some_and(|condition| condition != 0);
    let Some(runs) = most.filter(|_| begins && start.carried.iter().all(is_tensor)) else { return Ok(None) };
    let carried = tensors(&start.carried, &site.location)?;
    let rolled = Rolled { runs, carried, walked: Vec::new(), gathered: start.gathers() };
    let made = rolled.as_node(importer, site, &|importer, number, go, carried, _| {
        let number = number.tensor(importer)?;
        let arguments = [number, go].iter().chain(carried).copied().map(Value::Tensor).collect();
        let mut results = tensors(&body(importer, site, start.body, arguments)?, &site.location)?;
        let gathered = results.split_off(1 + carried.len());
        let carried = results.split_off(1);
        Ok(Run { condition: results[0], carried, gathered })
    })?;
    Ok(made.map(|all| all.into_iter().map(Value::Tensor).collect()))
}

/// One run of a body.
pub(super) fn body<'m>(
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
