//! Schemas that are put together of others: `$ref`, `allOf`, and `anyOf` beside other keywords.

use serde_json::{Map, Value, json};

use super::keywords::{self, Fault};

/// References that lead to each other, at most.
const MOST_HOPS: usize = 64;
/// Schemas within each other that are put together, at most.
const MOST_NESTED: usize = 32;

/// What a schema is one of, where it is put together of others; `None` where it is not.
pub(super) fn ways(root: &Value, schema: &Map<String, Value>) -> Result<Option<Vec<Value>>, Fault> {
    if schema.contains_key("$ref") || schema.contains_key("allOf") {
        let whole = expanded(root, schema, 0)?;
        return Ok(Some(vec![whole]));
    }
    let all = match (schema.get("anyOf"), schema.get("oneOf")) {
        (Some(_), Some(_)) => return Err(Fault::of("oneOf", "is not supported beside 'anyOf'")),
        (Some(Value::Array(all)), None) | (None, Some(Value::Array(all))) => all,
        (None, None) => return Ok(None),
        _ => return Err(Fault::wrong("'anyOf' or 'oneOf' is no list of schemas")),
    };
    let mut beside = schema.clone();
    beside.shift_remove("anyOf");
    beside.shift_remove("oneOf");
    let one = |own: &Value| match beside.is_empty() {
        true => Ok(own.clone()),
        false => both(root, &Value::Object(beside.clone()), own, 0),
    };
    all.iter().map(one).collect::<Result<Vec<_>, _>>().map(Some)
}

/// What a reference is about.
fn resolved<'r>(root: &'r Value, reference: &Value) -> Result<&'r Value, Fault> {
    let wrong = |problem: &str| Fault::of("$ref", format!("{} {problem}", keywords::short(reference)));
    let text = reference.as_str().ok_or_else(|| wrong("is no text"))?;
    let pointer = text
        .strip_prefix('#')
        .ok_or_else(|| wrong("is not supported: only references within the schema ('#/…') are"))?;
    let pointer = decoded(pointer).ok_or_else(|| wrong("is no pointer"))?;
    root.pointer(&pointer).ok_or_else(|| wrong("leads to nothing in the schema"))
}

/// A part of an address without its escapes.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || rest.next().and_then(|own| char::from(own).to_digit(16));
                let (high, low) = (digit()?, digit()?);
                (high * 16 + low) as u8
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

/// A schema without references and `allOf` of its own; those of its parts stay.
fn expanded(root: &Value, schema: &Map<String, Value>, depth: usize) -> Result<Value, Fault> {
    if depth > MOST_NESTED {
        return Err(Fault::wrong(format!(
            "more than {MOST_NESTED} schemas within each other are put together"
        )));
    }
    let mut rest = schema.clone();
    let mut made = None;
    if let Some(reference) = rest.shift_remove("$ref") {
        let mut whole = resolved(root, &reference)?;
        for hop in 0.. {
            let Value::Object(own) = whole else { break };
            let Some(next) =
                own.get("$ref").filter(|_| keywords::checked(own).is_ok_and(|own| own.len() == 1))
            else {
                break;
            };
            if hop == MOST_HOPS {
                return Err(Fault::of("$ref", format!("{} leads to itself", keywords::short(&reference))));
            }
            whole = resolved(root, next)?;
        }
        if rest.is_empty() {
            return Ok(whole.clone());
        }
        made = Some(whole.clone());
    }
    let all = match rest.shift_remove("allOf") {
        None => Vec::new(),
        Some(Value::Array(all)) => all,
        Some(_) => return Err(Fault::of("allOf", "is no list of schemas")),
    };
    let rest = Some(Value::Object(rest)).filter(|own| own.as_object().is_some_and(|own| !own.is_empty()));
    for own in all.into_iter().chain(rest) {
        made = Some(match made {
            Some(made) => both(root, &made, &own, depth + 1)?,
            None => own,
        });
    }
    Ok(made.unwrap_or(Value::Bool(true)))
}

/// What follows both of two schemas.
fn both(root: &Value, one: &Value, other: &Value, depth: usize) -> Result<Value, Fault> {
    let plain = |schema: &Value| match schema {
        Value::Object(own) => {
            let own = keywords::checked(own)?;
            match own.contains_key("$ref") || own.contains_key("allOf") {
                true => expanded(root, &own, depth + 1),
                false => Ok(Value::Object(own)),
            }
        }
        own => Ok(own.clone()),
    };
    let (one, other) = (plain(one)?, plain(other)?);
    let (one, other) = match (one, other) {
        (Value::Bool(false), _) | (_, Value::Bool(false)) => return Ok(Value::Bool(false)),
        (Value::Bool(true), own) | (own, Value::Bool(true)) => return Ok(own),
        (Value::Object(one), Value::Object(other)) => (one, other),
        (own, _) => return Err(Fault::wrong(format!("{} is no schema", keywords::short(&own)))),
    };
    // A reference may lead to one that is put together of others again.
    let is_open = |own: &Map<String, Value>| own.contains_key("$ref") || own.contains_key("allOf");
    if is_open(&one) || is_open(&other) {
        if depth > MOST_NESTED {
            return Err(Fault::wrong(format!(
                "more than {MOST_NESTED} schemas within each other are put together"
            )));
        }
        return both(root, &Value::Object(one), &Value::Object(other), depth + 1);
    }
    let mut made = one;
    // Who says what is described does so for both.
    let closed = [&made, &other].map(described);
    for (name, value) in other {
        let Some(own) = made.get(&name).cloned() else {
            made.insert(name, value);
            continue;
        };
        let joined = if own == value { value } else { joined(&name, own, value)? };
        made.insert(name, joined);
    }
    close(&mut made, closed);
    Ok(Value::Object(made))
}

/// The names that an object may have alone, if it says so.
fn described(schema: &Map<String, Value>) -> Option<Vec<String>> {
    let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let names = schema.get("properties").and_then(Value::as_object);
    is_closed.then(|| names.into_iter().flatten().map(|(name, _)| name.clone()).collect())
}

/// Properties that one of two schemas does not allow are not there.
fn close(made: &mut Map<String, Value>, closed: [Option<Vec<String>>; 2]) {
    let Some(Value::Object(properties)) = made.get_mut("properties") else { return };
    for names in closed.iter().flatten() {
        for (name, value) in properties.iter_mut() {
            if !names.contains(name) {
                *value = Value::Bool(false);
            }
        }
    }
}

/// What follows a keyword with both of two values.
fn joined(name: &str, one: Value, other: Value) -> Result<Value, Fault> {
    let number = |value: &Value| value.as_f64().ok_or_else(|| Fault::of(name, "is no number"));
    Ok(match (name, one, other) {
        ("minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties", one, other) => {
            if number(&one)? > number(&other)? {
                one
            } else {
                other
            }
        }
        ("maximum" | "exclusiveMaximum" | "maxLength" | "maxItems", one, other) => {
            if number(&one)? < number(&other)? { one } else { other }
        }
        ("required", Value::Array(mut one), Value::Array(other)) => {
            one.extend(other);
            Value::Array(one)
        }
        ("properties", Value::Object(mut one), Value::Object(other)) => {
            for (name, value) in other {
                let value = match one.get(&name) {
                    Some(own) if *own != value => json!({"allOf": [own, value]}),
                    _ => value,
                };
                one.insert(name, value);
            }
            Value::Object(one)
        }
        ("additionalProperties" | "items", one, other) => match (one, other) {
            (Value::Bool(false), _) | (_, Value::Bool(false)) => Value::Bool(false),
            (Value::Bool(true), own) | (own, Value::Bool(true)) => own,
            (one, other) => json!({"allOf": [one, other]}),
        },
        ("type", one, other) => types(one, other),
        ("enum", Value::Array(one), Value::Array(other)) => {
            Value::Array(one.into_iter().filter(|own| other.contains(own)).collect())
        }
        ("const", _, _) => return Err(Fault::wrong("'const' has two values in what is put together")),
        (name, ..) => return Err(Fault::of(name, "is not supported in two schemas that are put together")),
    })
}

/// The kinds of values that are in both.
fn types(one: Value, other: Value) -> Value {
    let list = |value: Value| match value {
        Value::Array(all) => all,
        one => vec![one],
    };
    let (one, other) = (list(one), list(other));
    let has = |all: &[Value], own: &Value| {
        all.contains(own) || (own == "integer" && all.iter().any(|other| other == "number"))
    };
    let from = |all: &[Value], others: &[Value]| {
        all.iter().filter(|own| has(others, own)).cloned().collect::<Vec<_>>()
    };
    let mut both = from(&one, &other);
    for own in from(&other, &one) {
        if !both.contains(&own) {
            both.push(own);
        }
    }
    Value::Array(both)
}
