//! Constants, conversions and quantization where a type is narrow, which importers of operators do not see.

use halite_formats::onnx::{AttributeValue, DataType};

use super::{
    Result, constant, e8m0,
    importer::{Importer, Site},
    narrow, ops,
    value::Value,
};
use crate::{CompileError, graph::TensorId};

/// The outputs of a node that has to do with narrow types; none if it has not.
pub(super) fn import<'m>(importer: &mut Importer<'m>, site: &Site<'m>) -> Result<Option<Vec<Value>>> {
    match site.domain {
        "" => {}
        "com.microsoft" if site.node.op_type == "QuantizeLinear" => return quantize(importer, site),
        _ => return Ok(None),
    }
    match site.node.op_type.as_str() {
        "Constant" => constant(importer, site),
        "Cast" => {
            let to = int(site, "to").and_then(DataType::from_number);
            cast(importer, site, to)
        }
        "CastLike" => {
            let like = importer.inputs(site)?.into_iter().nth(1).flatten();
            let to = if let Some(Value::Narrow(_, data_type)) = like { Some(data_type) } else { None };
            match (to, like) {
                (None, Some(Value::Tensor(id))) => widened(importer, site, id),
                (to, _) => cast(importer, site, to),
            }
        }
        "QuantizeLinear" => quantize(importer, site),
        _ => Ok(None),
    }
}

/// Quantization to a narrow type, which the zero point has or an attribute names.
fn quantize<'m>(importer: &mut Importer<'m>, site: &Site<'m>) -> Result<Option<Vec<Value>>> {
    let mut to = int(site, "output_dtype").and_then(DataType::from_number);
    let mut inputs = Vec::new();
    for value in importer.inputs(site)? {
        inputs.push(match value {
            Some(Value::Tensor(id)) => Some(id),
            Some(Value::Narrow(id, data_type)) => {
                to = Some(data_type);
                Some(id)
            }
            _ => None,
        });
    }
    let Some(to) = to.filter(|to| narrow::held_in(*to).is_some()) else { return Ok(None) };
    let view = importer.node_view(site, inputs);
    let (x, scale, zero) = ops::quantization(&mut importer.builder, &view)?;
    let saturates = int(site, "saturate") != Some(0);
    let made = narrow::quantize(&mut importer.builder, [x, scale], zero, to, saturates)?;
    Ok(Some(vec![Value::Narrow(made, to)]))
}

fn int(site: &Site<'_>, name: &str) -> Option<i64> {
    match site.attribute(name) {
        Some(AttributeValue::Int(value)) => Some(*value),
        _ => None,
    }
}

/// A constant of a narrow type.
fn constant<'m>(importer: &mut Importer<'m>, site: &Site<'m>) -> Result<Option<Vec<Value>>> {
    let Some(AttributeValue::Tensor(tensor)) = site.attribute("value") else { return Ok(None) };
    let Some(own) = tensor.data_type().ok().filter(|own| narrow::is_tagged(*own)) else {
        return Ok(None);
    };
    let (element, dims, bytes) = importer.constant(tensor, &site.location)?;
    let id = importer.builder.constant("", element, &dims, bytes)?;
    Ok(Some(vec![Value::Narrow(id, own)]))
}

/// A conversion to or from a narrow type.
fn cast<'m>(
    importer: &mut Importer<'m>,
    site: &Site<'m>,
    to: Option<DataType>,
) -> Result<Option<Vec<Value>>> {
    let from = importer.inputs(site)?.into_iter().next().flatten();
    let narrow = to.filter(|to| narrow::held_in(*to).is_some());
    if matches!(from, Some(Value::Narrow(_, DataType::String))) {
        return match to {
            Some(DataType::String) => Ok(Some(from.into_iter().collect())),
            _ => Err(texts(site)),
        };
    }
    let (id, is_narrow) = match from {
        Some(Value::Tensor(id)) => (id, false),
        Some(Value::Narrow(id, _)) => (id, true),
        _ => return Ok(None),
    };
    let value = match (narrow, to.and_then(constant::element_type)) {
        (Some(to), _) => {
            let saturates = int(site, "saturate") != Some(0);
            let b = &mut importer.builder;
            let made = match to {
                DataType::Float8E8M0 => e8m0::cast(b, id, rounding(site)?, saturates)?,
                to => narrow::cast(b, id, to, saturates)?,
            };
            Value::Narrow(made, to)
        }
        (None, Some(element)) if is_narrow => Value::Tensor(importer.builder.cast(id, element)?),
        _ if is_narrow => return Err(CompileError::unsupported(&site.location, "a conversion to this type")),
        _ => return Ok(None),
    };
    Ok(Some(vec![value]))
}

/// The error that texts become numbers: what is there are their places.
fn texts(site: &Site<'_>) -> CompileError {
    let hint = constant::instead(DataType::String);
    CompileError::unsupported(&site.location, format!("a conversion of texts to numbers{hint}"))
}

/// How a node rounds to powers of two.
fn rounding(site: &Site<'_>) -> Result<e8m0::Rounding> {
    let Some(AttributeValue::String(name)) = site.attribute("round_mode") else {
        return Ok(e8m0::Rounding::Up);
    };
    e8m0::Rounding::named(name).map_err(|reason| CompileError::invalid(&site.location, reason))
}

/// A conversion from a narrow type to that of a tensor.
fn widened<'m>(importer: &mut Importer<'m>, site: &Site<'m>, like: TensorId) -> Result<Option<Vec<Value>>> {
    let element = importer.builder.element(like);
    match importer.inputs(site)?.into_iter().next().flatten() {
        Some(Value::Narrow(_, DataType::String)) => Err(texts(site)),
        Some(Value::Narrow(id, _)) => Ok(Some(vec![Value::Tensor(importer.builder.cast(id, element)?)])),
        _ => Ok(None),
    }
}
