//! A graph for each tensor of lists of as many as data decide: a loop that fills lists.

use halite_formats::onnx::Graph as GraphProto;
use halite_ops::DType;
use halite_sizes::Size;

use super::{
    Result,
    importer::{Importer, Site},
    listed::{Kind, Listed},
    runs::{Repeat, Run},
    value::{Value, tensors},
};
use crate::{
    CompileError,
    graph::{ElementType, TensorId},
};

/// What a body is given: at each place a tensor of a list, or a value that is the same for all.
enum Given {
    Each(Listed),
    All(Value),
}

/// The lists that a body makes of lists; none where all are lists of as many tensors as are known.
pub(super) fn mapped<'m>(
    importer: &mut Importer<'m>,
    site: &Site<'m>,
    body: &'m GraphProto,
    values: &[Option<Value>],
) -> Result<Option<Vec<Value>>> {
    let Some(first) = values.iter().find_map(|value| match value {
        Some(Value::Listed(list)) => Some(*list),
        _ => None,
    }) else {
        return Ok(None);
    };
    importer.builder.at(site.location.clone());
    let given: Vec<Given> = values.iter().map(|value| given(importer, site, value)).collect::<Result<_>>()?;
    let kinds = look(importer, site, body, &given)?;
    let mut carried = Vec::new();
    for kind in &kinds {
        let none = Listed::of(&mut importer.builder, &[], *kind)?;
        carried.extend([none.elements, none.sizes]);
    }
    let count = first.count(&importer.builder);
    let most = importer.builder.computed(DType::I64, &[], vec![count])?;
    let repeat = Repeat { most: Some(most), condition: None, carried, gathered: 0, runs: None };
    let made = repeat.as_node(importer, site, &|importer, [place, go], carried| {
        let results = run(importer, site, body, &given, place)?;
        let mut lists = Vec::new();
        for (pair, added) in carried.chunks(2).zip(results) {
            let list = Listed { elements: pair[0], sizes: pair[1], rows: None };
            let list = list.with(&mut importer.builder, added)?;
            lists.extend([list.elements, list.sizes]);
        }
        Ok(Run { condition: go, carried: lists, gathered: Vec::new() })
    })?;
    let made = made.ok_or_else(|| {
        CompileError::unsupported(
            &site.location,
            "a list of which data decide more than the length and sizes",
        )
    })?;
    let list = |pair: &[TensorId]| Value::Listed(Listed { elements: pair[0], sizes: pair[1], rows: None });
    Ok(Some(made.chunks(2).map(list).collect()))
}

/// An input of the body at each place.
fn given(importer: &mut Importer<'_>, site: &Site<'_>, value: &Option<Value>) -> Result<Given> {
    Ok(match value {
        Some(Value::Listed(list)) => Given::Each(*list),
        Some(Value::Sequence(all)) => {
            let first = all
                .first()
                .ok_or_else(|| CompileError::invalid(&site.location, "a list is shorter than the first"))?;
            let kind = (importer.builder.element(*first), importer.builder.rank(*first));
            Given::Each(Listed::of(&mut importer.builder, all, kind)?)
        }
        Some(value) => Given::All(value.clone()),
        None => Given::All(Value::Nothing),
    })
}

/// The body for the tensors at a place.
fn run<'m>(
    importer: &mut Importer<'m>,
    site: &Site<'m>,
    body: &'m GraphProto,
    given: &[Given],
    place: TensorId,
) -> Result<Vec<TensorId>> {
    let mut arguments = Vec::new();
    for one in given {
        arguments.push(match one {
            Given::Each(list) => Value::Tensor(list.at(&mut importer.builder, place)?),
            Given::All(value) => value.clone(),
        });
    }
    let results = super::repeat::body(importer, site, body, arguments)?;
    tensors(&results, &site.location)
}

/// Looks at one place to see what tensors the body gives.
fn look<'m>(
    importer: &mut Importer<'m>,
    site: &Site<'m>,
    body: &'m GraphProto,
    given: &[Given],
) -> Result<Vec<Kind>> {
    let mark = importer.builder.mark();
    let parameters: [(ElementType, Vec<Size>); 1] = [(DType::I64.into(), Vec::new())];
    let arguments = importer.builder.region(&parameters)?;
    let results = run(importer, site, body, given, arguments[0])?;
    let kinds =
        results.iter().map(|id| (importer.builder.element(*id), importer.builder.rank(*id))).collect();
    importer.builder.rollback(mark);
    Ok(kinds)
}
