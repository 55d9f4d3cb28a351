//! Which importer is asked for a node: that of a function of the model, of control flow, of lists, of narrow types, or of a plain
//! operator.

use halite_formats::onnx::DataType;

use super::{
    NodeView, Result, constant, control, conversion,
    importer::{Importer, Site},
    inputs::most_inputs,
    narrow, ops, sequence, survey,
    value::Value,
};
use crate::CompileError;

/// Imports a node.
pub(super) fn compute<'m>(importer: &mut Importer<'m>, site: &Site<'m>) -> Result<Vec<Value>> {
    if let Some(function) = importer.function(site.node) {
        let inputs = importer.inputs(site)?;
        if inputs.len() > function.inputs.len() {
            let reason = format!("the function takes {} inputs, not {}", function.inputs.len(), inputs.len());
            return Err(CompileError::invalid(&site.location, reason));
        }
        return importer.call(site, function, inputs);
    }
    let (domain, op_type) = (site.domain, site.node.op_type.as_str());
    let count = site.node.inputs.len();
    if let Some(most) = most_inputs(domain, op_type, site.version).filter(|most| count > *most) {
        let reason = format!("the node has {count} inputs; {op_type} takes at most {most}");
        return Err(CompileError::invalid(&site.location, reason));
    }
    if importer.blocks.as_ref().is_some_and(|blocks| blocks.is_view(site.node)) {
        return Ok(importer.inputs(site)?.into_iter().take(1).flatten().collect());
    }
    if let Some(import) = control::find(domain, op_type).or_else(|| sequence::find(domain, op_type)) {
        return import(importer, site);
    }
    if let Some(values) = conversion::import(importer, site)? {
        return Ok(values);
    }
    let Some(import) = ops::find(domain, op_type) else {
        let found = survey::operator(site.node, domain, site.version, site.location.clone());
        return Err(CompileError::UnsupportedOperators {
            operators: survey::all(importer.model(), found, importer.builder.watch())?,
        });
    };
    let (view, narrow) = view(importer, site)?;
    let outputs = import(&mut importer.builder, &view)?;
    Ok(outputs.into_iter().map(|id| Value::of(id, narrow)).collect())
}

/// A node as its importer sees it, and the narrow type of the elements that it moves.
fn view<'m>(importer: &mut Importer<'m>, site: &Site<'m>) -> Result<(NodeView<'m>, Option<DataType>)> {
    let (mut inputs, mut narrow, mut is_first) = (Vec::new(), None, false);
    for (index, value) in importer.inputs(site)?.into_iter().enumerate() {
        inputs.push(match value {
            Some(Value::Tensor(id)) => Some(id),
            Some(Value::Narrow(id, data_type)) => {
                narrow = Some(data_type);
                is_first = index == 0;
                Some(id)
            }
            None | Some(Value::Nothing) => None,
            Some(Value::Sequence(_) | Value::Listed(_)) => {
                return Err(CompileError::invalid(&site.location, format!("input {index} is a list")));
            }
        });
    }
    let op_type = site.node.op_type.as_str();
    match narrow {
        Some(_) if matches!(op_type, "DequantizeLinear" | "GatherBlockQuantized" | "Shape" | "Size") => {
            narrow = None;
        }
        Some(DataType::String) if narrow::is_move_of_texts(op_type) && is_first => {}
        Some(data_type) if data_type == DataType::String || !narrow::is_move(op_type) => {
            let hint = constant::instead(data_type);
            let reason = format!("{op_type} of elements of type {data_type} is not supported{hint}");
            return Err(CompileError::unsupported(&site.location, reason));
        }
        _ => {}
    }
    Ok((importer.node_view(site, inputs), narrow))
}
