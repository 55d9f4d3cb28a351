//! Branches of ONNX models, and which importer is asked for control flow. A branch that is known is put in as what it does;
//! others become a node with regions.

use halite_formats::onnx::Graph as GraphProto;
use halite_sizes::Size;

use super::{
    Result, flex,
    importer::{Compute, Importer, Site},
    repeat, scan,
    value::{Value, tensors},
};
use crate::{
    CompileError,
    build::Builder,
    graph::{ElementType, NodeOp, Region, TensorId},
};

/// The importer of a control flow operator.
pub(super) fn find(domain: &str, op_type: &str) -> Option<Compute> {
    match (domain, op_type) {
        ("", "If") => Some(branch),
        ("", "Loop") => Some(repeat::loops),
        ("", "Scan") => Some(scan::scan),
        ("ai.onnx.preview", "FlexAttention") => Some(flex::attention),
        _ => None,
    }
}

fn branch<'m>(importer: &mut Importer<'m>, site: &Site<'m>) -> Result<Vec<Value>> {
    let Some(Some(Value::Tensor(condition))) = importer.inputs(site)?.into_iter().next() else {
        return Err(CompileError::invalid(&site.location, "the condition is missing"));
    };
    let count = importer.builder.tensor(condition).count().value();
    if count != 1 {
        return Err(CompileError::invalid(&site.location, format!("{count} conditions; a branch has one")));
    }
    let graphs = [site.graph("then_branch")?, site.graph("else_branch")?];
    // The error is for branches that do not give tensors of one shape.
    let unknown = match importer.builder.need_ints(condition, "which branch is taken") {
        Ok(known) => {
            let taken = usize::from(known.first().is_none_or(|holds| *holds == 0));
            return importer.inner(&site.location, |importer| importer.run(graphs[taken]));
        }
        Err(unknown) => unknown,
    };
    let mark = importer.builder.mark();
    let [then, other] = graphs.map(|graph| region(importer, site, graph));
    let (mut then, mut other) = match (then, other) {
        (Ok(Some(then)), Ok(Some(other))) => (then, other),
        (then, other) => {
            importer.builder.watch().check()?;
            importer.builder.rollback(mark);
            // A branch may be wrong for sizes with which it is never taken.
            let failed = then.err().or(other.err()).filter(|_| is_of_run_time(&unknown));
            return Err(failed.unwrap_or(unknown));
        }
    };
    let types = |importer: &Importer<'_>, ids: &[TensorId]| -> Vec<_> {
        ids.iter().map(|id| importer.type_of(*id)).collect()
    };
    let given = [types(importer, &then.results), types(importer, &other.results)];
    importer.builder.at(site.location.clone());
    let Some((outputs, symbols, values)) = joined(&mut importer.builder, &given) else {
        importer.builder.rollback(mark);
        return Err(different(site, &given).filter(|_| is_of_run_time(&unknown)).unwrap_or(unknown));
    };
    for (region, values) in [&mut then, &mut other].into_iter().zip(values) {
        region.nodes.extend(importer.builder.setting(&symbols, values));
    }
    let condition = importer.builder.reshape(condition, &[])?;
    let made = importer.builder.push(NodeOp::If(Box::new([then, other])), &[condition], &outputs)?;
    Ok(made.into_iter().map(Value::Tensor).collect())
}

/// Whether an error is of values that no input gives.
fn is_of_run_time(error: &CompileError) -> bool {
    matches!(error, CompileError::NeedsValues { inputs, .. } if inputs.is_empty())
}

/// A tensor's type and sizes.
type Type = (ElementType, Vec<Size>);

/// Types, symbols, and the values of symbols in each branch.
type Joined = (Vec<Type>, Vec<Size>, [Vec<Size>; 2]);

/// What both branches give: types, symbols for the sizes in which they differ, and their values in each branch. None where the
/// tensors are not of the same types and numbers of dimensions.
fn joined(b: &mut Builder, given: &[Vec<Type>; 2]) -> Option<Joined> {
    let [then, other] = given;
    let kind = |(element, sizes): &Type| (*element, sizes.len());
    if !then.iter().map(kind).eq(other.iter().map(kind)) {
        return None;
    }
    let (mut types, mut symbols, mut values) = (Vec::new(), Vec::new(), [Vec::new(), Vec::new()]);
    for ((element, then), (_, other)) in then.iter().zip(other) {
        let mut sizes = Vec::new();
        for (a, b_size) in then.iter().zip(other) {
            if a.is(*b_size) || !a.is_data() && !b_size.is_data() && a == b_size {
                sizes.push(*a);
                continue;
            }
            let symbol = b.joined_size("a size of a result", [*a, *b_size])?;
            sizes.push(symbol);
            symbols.push(symbol);
            values[0].push(*a);
            values[1].push(*b_size);
        }
        types.push((*element, sizes));
    }
    Some((types, symbols, values))
}

/// What keeps branches from being one node.
fn different(site: &Site<'_>, [then, other]: &[Vec<Type>; 2]) -> Option<CompileError> {
    let text = |types: &[Type]| -> Vec<String> {
        types.iter().map(|(element, sizes)| format!("{element} with {} dimensions", sizes.len())).collect()
    };
    let (then, other) = (text(then).join(", "), text(other).join(", "));
    let reason = format!(
        "data decide which branch is taken, and the branches give other types: {then} or {other}; bind the value that decides \
         to a constant, or make them alike"
    );
    Some(CompileError::unsupported(&site.location, reason))
}

/// A branch as a region; none if it gives what is no tensor.
fn region<'m>(importer: &mut Importer<'m>, site: &Site<'m>, graph: &'m GraphProto) -> Result<Option<Region>> {
    importer.builder.region::<Size>(&[])?;
    let values = importer.inner(&site.location, |importer| importer.run(graph))?;
    let results = tensors(&values, &site.location).ok();
    Ok(results.map(|results| importer.builder.close(&results)))
}
