//! Values of templates from JSON.

use std::{rc::Rc, sync::Arc};

use serde_json::Value as Json;

use super::{
    budget::{Budget, Done, Fault},
    value::{Items, Map, Value},
};

/// The value of a text, which is not deeper than its reader allows.
pub(super) fn value(budget: &Arc<Budget>, text: &str) -> Done<Value> {
    budget.bytes(text.len())?;
    let json = serde_json::from_str(text).map_err(|error| Fault::new(format!("what is no JSON: {error}")))?;
    of(budget, &json)
}

fn of(budget: &Arc<Budget>, json: &Json) -> Done<Value> {
    Ok(match json {
        Json::Null => Value::None,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Value::Int(whole),
            (None, float) => Value::Float(float.unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::text(budget, text)?,
        Json::Array(all) => {
            let mut list = Items::new(budget)?;
            all.iter().try_for_each(|own| list.push(of(budget, own)?))?;
            Value::List(list.list())
        }
        Json::Object(all) => {
            let mut map = Map::new(budget)?;
            for (name, own) in all {
                map.insert(Value::text(budget, name)?, of(budget, own)?)?;
            }
            Value::Map(Rc::new(map))
        }
    })
}
