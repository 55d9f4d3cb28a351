//! Branches of ONNX models, and which importer is asked for control flow. A branch that is known is put in as what it does;
//! others become a node with regions.

use halite_formats::onnx::Graph as GraphProto;

use super::{
    Result, flex,
    importer::{Compute, Importer, Site},
    repeat,
    value::{Value, tensors},
};
use crate::{
    CompileError,
    graph::{NodeOp, Region, TensorId},
};

/// The importer of a control flow operator.
pub(super) fn find(domain: &str, op_type: &str) -> Option<Compute> {
    match (domain, op_type) {
        ("", "If") => Some(branch),
        ("", "Loop") => Some(repeat::loops),
        ("", "Scan") => Some(repeat::scan),
        ("ai.onnx.preview", "FlexAttention") => Some(flex::attention),
        _ => None,
    }
}

fn branch<'m>(importer: &mut Importer<'m>, site: &Site<'m>) -> Result<Vec<Value>> {
    let Some(Some(Value::Tensor(condition))) = importer.inputs(site)?.into_iter().next() else {
        return Err(CompileError::invalid(&site.location, "the condition is missing"));
    };
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
    let (then, other) = match (then, other) {
        (Ok(Some(then)), Ok(Some(other))) => (then, other),
        (then, other) => {
            importer.builder.watch().check()?;
            importer.builder.rollback(mark);
            // A branch may be wrong for sizes with which it is never taken.
            let of_run_time =
                matches!(&unknown, CompileError::NeedsValues { inputs, .. } if inputs.is_empty());
            let failed = then.err().or(other.err()).filter(|_| of_run_time);
            return Err(failed.unwrap_or(unknown));
        }
    };
    let types = |importer: &Importer<'_>, ids: &[TensorId]| -> Vec<_> {
        ids.iter().map(|id| importer.type_of(*id)).collect()
    };
    let outputs = types(importer, &then.results);
    if outputs != types(importer, &other.results) {
        importer.builder.rollback(mark);
        return Err(unknown);
    }
    let condition = importer.builder.reshape(condition, &[])?;
    importer.builder.at(site.location.clone());
    let made = importer.builder.push(NodeOp::If(Box::new([then, other])), &[condition], &outputs)?;
    Ok(made.into_iter().map(Value::Tensor).collect())
}

/// A branch as a region; none if it gives what is no tensor.
fn region<'m>(importer: &mut Importer<'m>, site: &Site<'m>, graph: &'m GraphProto) -> Result<Option<Region>> {
    importer.builder.region::<halite_sizes::Size>(&[])?;
    let values = importer.inner(&site.location, |importer| importer.run(graph))?;
    let results = tensors(&values, &site.location).ok();
    Ok(results.map(|results| importer.builder.close(&results)))
}
