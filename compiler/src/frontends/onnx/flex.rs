//! `FlexAttention` of ONNX's preview operators: attention whose scores and weights graphs of the model change.

use halite_formats::onnx::{AttributeValue, Graph};
use halite_ops::DType;

use super::{
    Result, constant,
    importer::{Importer, Site},
    value::Value,
};
use crate::{
    CompileError,
    build::Scores,
    graph::{ElementType, TensorId},
};

pub(super) fn attention<'m>(importer: &mut Importer<'m>, site: &Site<'m>) -> Result<Vec<Value>> {
    let wrong = |reason: String| CompileError::invalid(&site.location, reason);
    let inputs: Vec<Option<TensorId>> = importer
        .inputs(site)?
        .into_iter()
        .map(|value| if let Some(Value::Tensor(id)) = value { Some(id) } else { None })
        .collect();
    let &[Some(q), Some(k), Some(v)] = &inputs[..] else {
        return Err(wrong("takes queries, keys and values".to_owned()));
    };
    let b = &importer.builder;
    let ranks = [q, k, v].map(|id| b.dims(id).len());
    if ranks != [4; 3] {
        return Err(wrong(format!("takes tensors of four dimensions, not {}", b.describe(&[q, k, v]))));
    }
    let element = b.element(q);
    let scale = match site.attribute("scale") {
        Some(AttributeValue::Float(scale)) => Some(f64::from(*scale)),
        _ => None,
    };
    let scores = Scores { scale, ..Scores::default() };
    let (score_mod, prob_mod) = (graph(site, "score_mod")?, graph(site, "prob_mod")?);
    if score_mod.is_none() && prob_mod.is_none() {
        return Ok(vec![Value::Tensor(importer.builder.attention([q, k, v], None, scores)?)]);
    }
    let computed = precision(site, element)?;
    let mut made = importer.builder.attention_scores([q, k], None, scores)?.products;
    if let Some(graph) = score_mod {
        made = changed(importer, site, graph, made, computed)?;
    }
    made = importer.builder.softmax(made, 3, false)?;
    if let Some(graph) = prob_mod {
        made = changed(importer, site, graph, made, computed)?;
    }
    let made = importer.builder.attend(made, v)?;
    Ok(vec![Value::Tensor(importer.builder.cast(made, element)?)])
}

fn graph<'m>(site: &Site<'m>, name: &str) -> Result<Option<&'m Graph>> {
    site.attribute(name).map(|_| site.graph(name)).transpose()
}

/// The type that the graphs see.
fn precision(site: &Site<'_>, own: ElementType) -> Result<ElementType> {
    let given = match site.attribute("softmax_precision") {
        Some(AttributeValue::Int(number)) => Some(constant::element_of_number(*number, &site.location)?),
        _ => None,
    };
    let usual = if own == ElementType::Of(DType::F64) { own } else { ElementType::Of(DType::F32) };
    let computed = given.unwrap_or(usual);
    match computed.is_float() {
        true => Ok(computed),
        false => Err(CompileError::invalid(
            &site.location,
            format!("softmax_precision {computed} is no float type"),
        )),
    }
}

/// What a graph of one input and one output makes of a tensor, as `f32`.
fn changed<'m>(
    importer: &mut Importer<'m>,
    site: &Site<'m>,
    graph: &'m Graph,
    tensor: TensorId,
    element: ElementType,
) -> Result<TensorId> {
    let wrong = |reason: String| CompileError::invalid(&site.location, reason);
    let [input] = &graph.inputs[..] else {
        return Err(wrong(format!("the graph takes {} inputs, not one", graph.inputs.len())));
    };
    let given = importer.builder.cast(tensor, element)?;
    let outputs = importer.inner(&site.location, |importer| {
        importer.define(&input.name, Value::Tensor(given));
        importer.run(graph)
    })?;
    importer.builder.at(site.location.clone());
    let &[Value::Tensor(made)] = &outputs[..] else {
        return Err(wrong(format!("the graph gives {} outputs, or no tensor", outputs.len())));
    };
    if importer.type_of(made) != importer.type_of(given) {
        let b = &importer.builder;
        return Err(wrong(format!("the graph makes {} of {}", b.describe(&[made]), b.describe(&[given]))));
    }
    importer.builder.as_f32(made)
}
