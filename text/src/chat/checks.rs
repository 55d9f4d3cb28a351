//! The tests behind `is`.

use super::{
    budget::{Budget, Done, Fault},
    given::{Given, needed},
    operators,
    texts::is_cased,
    tree::Comparison,
    value::Value,
};

pub(super) const NAMES: &str = "boolean, callable, defined, divisibleby, endingwith, eq, even, false, float, ge, gt, in, integer, \
     iterable, le, lower, lt, mapping, ne, none, number, odd, sameas, sequence, startingwith, string, true, undefined, upper";

/// Whether a value is what the test says.
pub(super) fn check(budget: &Budget, name: &str, value: &Value, given: Given<'_>) -> Done<bool> {
    if let Some(comparison) = comparison(name) {
        let [other] = given.read(name, ["other"])?;
        return operators::compare(budget, comparison, value, &needed(other, name, "other")?);
    }
    if let "divisibleby" | "sameas" | "startingwith" | "endingwith" = name {
        let [other] = given.read(name, ["other"])?;
        return with(budget, name, value, &needed(other, name, "other")?);
    }
    let [] = given.read(name, [])?;
    Ok(match name {
        "defined" => !matches!(value, Value::Undefined),
        "undefined" => matches!(value, Value::Undefined),
        "none" => matches!(value, Value::None),
        "boolean" => matches!(value, Value::Bool(_)),
        "true" => matches!(value, Value::Bool(true)),
        "false" => matches!(value, Value::Bool(false)),
        "string" => matches!(value, Value::Text(_)),
        "number" => matches!(value, Value::Int(_) | Value::Float(_) | Value::Bool(_)),
        "integer" => matches!(value, Value::Int(_)),
        "float" => matches!(value, Value::Float(_)),
        "mapping" => matches!(value, Value::Map(_)),
        "sequence" => matches!(value, Value::Text(_) | Value::List(_) | Value::Map(_) | Value::Undefined),
        "iterable" => {
            matches!(
                value,
                Value::Text(_) | Value::List(_) | Value::Map(_) | Value::Undefined | Value::Loop(_)
            )
        }
        "callable" => matches!(value, Value::Macro(_) | Value::Function(_)),
        "odd" | "even" => {
            let number = value.as_int().ok_or_else(|| no_number(name, value))?;
            (number % 2 == 0) == (name == "even")
        }
        "lower" | "upper" => match value.as_text() {
            Some(text) => {
                budget.characters(text)?;
                is_cased(text, name == "upper")
            }
            None => false,
        },
        _ => return Err(Fault::new(format!("the test '{name}' is not known; there are: {NAMES}"))),
    })
}

fn no_number(name: &str, value: &Value) -> Fault {
    Fault::new(format!("'{name}' is asked of a {}, and no whole number", value.kind()))
}

fn comparison(name: &str) -> Option<Comparison> {
    Some(match name {
        "eq" | "equalto" | "==" => Comparison::Equal,
        "ne" | "!=" => Comparison::Unequal,
        "lt" | "lessthan" | "<" => Comparison::Less,
        "le" | "<=" => Comparison::LessEqual,
        "gt" | "greaterthan" | ">" => Comparison::More,
        "ge" | ">=" => Comparison::MoreEqual,
        "in" => Comparison::In,
        _ => return None,
    })
}

fn with(budget: &Budget, name: &str, value: &Value, other: &Value) -> Done<bool> {
    match name {
        "divisibleby" => match (value.as_int(), other.as_int()) {
            (Some(number), Some(by)) if by != 0 => Ok(number.checked_rem(by) == Some(0)),
            (Some(_), _) => Err(no_number(name, other)),
            _ => Err(no_number(name, value)),
        },
        // Values that cannot change are the same where they are equal and of one kind.
        "sameas" => {
            Ok(std::mem::discriminant(value) == std::mem::discriminant(other)
                && value.equals(other, budget)?)
        }
        _ => match (value.as_text(), other.as_text()) {
            (Some(text), Some(part)) => {
                budget.bytes(part.len())?;
                Ok(if name == "startingwith" { text.starts_with(part) } else { text.ends_with(part) })
            }
            _ => Err(Fault::new(format!("'{name}' is asked of a {} and a {}", value.kind(), other.kind()))),
        },
    }
}
