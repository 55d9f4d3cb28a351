//! What can be done with lists and tables, by methods and filters.

use std::{cell::RefCell, cmp::Ordering, rc::Rc, sync::Arc};

use super::{
    budget::{Budget, Charge, Done, Fault},
    given::{Given, count_of, needed, text_of},
    operators, texts,
    tree::Operator,
    value::{Items, List, Map, Value},
};

/// An attribute of a value, perhaps one of an attribute: `a.b.0`.
pub(super) fn attribute(budget: &Arc<Budget>, value: &Value, path: &str) -> Done<Value> {
    let mut value = value.clone();
    for part in path.split('.') {
        budget.steps(1)?;
        value = match part.parse::<i64>() {
            Ok(place) if matches!(value, Value::List(_)) => {
                operators::item(budget, &value, &Value::Int(place))?
            }
            _ => match &value {
                Value::Map(map) => map.text(part).cloned().unwrap_or(Value::Undefined),
                Value::Space(space) => space.get(part)?.unwrap_or(Value::Undefined),
                _ => Value::Undefined,
            },
        };
    }
    Ok(value)
}

/// What elements are put in order or compared by.
fn keys(budget: &Arc<Budget>, items: &[Value], path: Option<&str>, cased: bool) -> Done<Rc<List>> {
    let mut keys = Items::new(budget)?;
    for item in items {
        let key = match path {
            Some(path) => attribute(budget, item, path)?,
            None => item.clone(),
        };
        keys.push(match &key {
            Value::Text(text) if !cased => texts::cased(budget, text, "lower")?,
            _ => key,
        })?;
    }
    Ok(keys.list())
}

/// The places of the elements, in order.
fn order(budget: &Arc<Budget>, keys: &[Value], reverse: bool) -> Done<Vec<usize>> {
    let failed = RefCell::new(None);
    let mut places: Vec<usize> = (0..keys.len()).collect();
    places.sort_by(|a, b| {
        if failed.borrow().is_some() {
            return Ordering::Equal;
        }
        let found = keys[*a].compare(&keys[*b], budget).unwrap_or_else(|fault| {
            *failed.borrow_mut() = Some(fault);
            Ordering::Equal
        });
        if reverse { found.reverse() } else { found }
    });
    match failed.into_inner() {
        Some(fault) => Err(fault),
        None => Ok(places),
    }
}

fn sorted(budget: &Arc<Budget>, items: &[Value], keys: &[Value], reverse: bool) -> Done<Value> {
    let _places = Charge::new(budget, 2 * size_of::<usize>() * keys.len())?;
    let mut made = Items::new(budget)?;
    for place in order(budget, keys, reverse)? {
        made.push(items[place].clone())?;
    }
    Ok(Value::List(made.list()))
}

fn truth(value: Option<Value>) -> bool {
    value.is_some_and(|value| value.truth())
}

/// Filters of lists; none where the name is not one of theirs.
pub(super) fn filter(budget: &Arc<Budget>, name: &str, value: &Value, given: Given<'_>) -> Done<Value> {
    match name {
        "sort" => {
            let [reverse, cased, path] = given.read(name, ["reverse", "case_sensitive", "attribute"])?;
            let items = value.elements(budget)?;
            let keys = keys(budget, &items, text_of(&path, name, "attribute")?, truth(cased))?;
            sorted(budget, &items, &keys, truth(reverse))
        }
        "dictsort" => {
            let [cased, by, reverse] = given.read(name, ["case_sensitive", "by", "reverse"])?;
            let path = if text_of(&by, name, "by")? == Some("value") { "1" } else { "0" };
            let pairs = pairs(budget, value, name)?;
            let keys = keys(budget, &pairs, Some(path), truth(cased))?;
            sorted(budget, &pairs, &keys, truth(reverse))
        }
        "unique" => {
            let [cased, path] = given.read(name, ["case_sensitive", "attribute"])?;
            let items = value.elements(budget)?;
            let keys = keys(budget, &items, text_of(&path, name, "attribute")?, truth(cased))?;
            let [mut seen, mut made] = [Items::new(budget)?, Items::new(budget)?];
            for (item, key) in items.iter().zip(keys.iter()) {
                if !seen.contains(key, budget)? {
                    seen.push(key.clone())?;
                    made.push(item.clone())?;
                }
            }
            Ok(Value::List(made.list()))
        }
        "min" | "max" => {
            let [cased, path] = given.read(name, ["case_sensitive", "attribute"])?;
            let items = value.elements(budget)?;
            let keys = keys(budget, &items, text_of(&path, name, "attribute")?, truth(cased))?;
            let mut best = 0;
            for place in 1..items.len() {
                let found = keys[place].compare(&keys[best], budget)?;
                if found == (if name == "min" { Ordering::Less } else { Ordering::Greater }) {
                    best = place;
                }
            }
            Ok(items.get(best).cloned().unwrap_or(Value::Undefined))
        }
        _ => more(budget, name, value, given),
    }
}

fn more(budget: &Arc<Budget>, name: &str, value: &Value, given: Given<'_>) -> Done<Value> {
    match name {
        "sum" => sum(budget, name, value, given),
        "join" => join(budget, name, value, given),
        "first" | "last" => {
            let [] = given.read(name, [])?;
            let items = value.elements(budget)?;
            let found = if name == "first" { items.first() } else { items.last() };
            Ok(found.cloned().unwrap_or(Value::Undefined))
        }
        "list" => {
            let [] = given.read(name, [])?;
            let mut made = Items::new(budget)?;
            made.extend(value.elements(budget)?.iter())?;
            Ok(Value::List(made.list()))
        }
        "reverse" => {
            let [] = given.read(name, [])?;
            if value.as_text().is_some() {
                return operators::slice(budget, value, [None, None, Some(Value::Int(-1))]);
            }
            let mut made = Items::new(budget)?;
            made.extend(value.elements(budget)?.iter().rev())?;
            Ok(Value::List(made.list()))
        }
        "items" => {
            let [] = given.read(name, [])?;
            Ok(Value::List(pairs(budget, value, name)?))
        }
        _ => grouped(budget, name, value, given),
    }
}

fn sum(budget: &Arc<Budget>, name: &str, value: &Value, given: Given<'_>) -> Done<Value> {
    let [path, start] = given.read(name, ["attribute", "start"])?;
    let path = text_of(&path, name, "attribute")?;
    let mut sum = start.unwrap_or(Value::Int(0));
    for item in value.elements(budget)?.iter() {
        let item = match path {
            Some(path) => attribute(budget, item, path)?,
            None => item.clone(),
        };
        sum = operators::operate(budget, Operator::Add, &sum, &item)?;
    }
    Ok(sum)
}

fn join(budget: &Arc<Budget>, name: &str, value: &Value, given: Given<'_>) -> Done<Value> {
    let [between, path] = given.read(name, ["d", "attribute"])?;
    let between = text_of(&between, name, "d")?.unwrap_or_default();
    let Some(path) = text_of(&path, name, "attribute")? else {
        return texts::joined_by(budget, value, between);
    };
    let mut parts = Items::new(budget)?;
    for item in value.elements(budget)?.iter() {
        parts.push(attribute(budget, item, path)?)?;
    }
    texts::joined_by(budget, &Value::List(parts.list()), between)
}

/// Filters that make lists of lists.
fn grouped(budget: &Arc<Budget>, name: &str, value: &Value, given: Given<'_>) -> Done<Value> {
    let [count, fill] =
        given.read(name, [if name == "batch" { "linecount" } else { "slices" }, "fill_with"])?;
    let count = count_of(&Some(needed(count, name, "a number")?), name, "a number")?.unwrap_or(0);
    if count == 0 {
        return Err(Fault::new(format!("'{name}' makes lists of 0 elements, or 0 of them")));
    }
    let items = value.elements(budget)?;
    let mut made = Items::new(budget)?;
    let mut from = 0;
    let slices = if name == "batch" { items.len().div_ceil(count) } else { count };
    for slice in 0..slices {
        let (length, whole) = match name {
            "batch" => (count.min(items.len() - from), count),
            _ => {
                (items.len() / count + usize::from(slice < items.len() % count), items.len().div_ceil(count))
            }
        };
        let mut part = Items::new(budget)?;
        part.extend(&items[from..from + length])?;
        if let Some(fill) = &fill {
            for _ in length..whole {
                part.push(fill.clone())?;
            }
        }
        from += length;
        made.push(Value::List(part.list()))?;
    }
    Ok(Value::List(made.list()))
}

/// The entries of a table.
fn pairs(budget: &Arc<Budget>, value: &Value, what: &str) -> Done<Rc<List>> {
    let mut made = Items::new(budget)?;
    match value {
        Value::Map(map) => {
            for (key, value) in map.entries() {
                let mut pair = Items::new(budget)?;
                pair.push(key.clone())?;
                pair.push(value.clone())?;
                made.push(Value::List(pair.tuple()))?;
            }
        }
        Value::Undefined => {}
        other => return Err(Fault::new(format!("'{what}' takes a table, and this is a {}", other.kind()))),
    }
    Ok(made.list())
}

/// Methods of tables.
pub(super) const METHODS: [&str; 5] = ["get", "items", "keys", "values", "copy"];

/// A method of a table.
pub(super) fn method(budget: &Arc<Budget>, map: &Rc<Map>, name: &str, given: Given<'_>) -> Done<Value> {
    if name == "get" {
        let [key, otherwise] = given.read(name, ["key", "default"])?;
        let found = map.get(&needed(key, name, "key")?)?.cloned();
        return Ok(found.or(otherwise).unwrap_or(Value::None));
    }
    let [] = given.read(name, [])?;
    let mut made = Items::new(budget)?;
    match name {
        "items" => return Ok(Value::List(pairs(budget, &Value::Map(map.clone()), name)?)),
        "keys" => made.extend(map.entries().iter().map(|(key, _)| key))?,
        "values" => made.extend(map.entries().iter().map(|(_, value)| value))?,
        _ => return Ok(Value::Map(map.clone())),
    }
    Ok(Value::List(made.list()))
}

/// A method of a list.
pub(super) fn list_method(
    budget: &Arc<Budget>,
    list: &Rc<List>,
    name: &str,
    given: Given<'_>,
) -> Done<Value> {
    match name {
        "count" | "index" => {
            let [wanted] = given.read(name, ["value"])?;
            let wanted = needed(wanted, name, "value")?;
            let mut places = Vec::new();
            for (place, item) in list.iter().enumerate() {
                if item.equals(&wanted, budget)? {
                    places.push(place as i64);
                }
            }
            match (name, places.first()) {
                ("count", _) => Ok(Value::Int(places.len() as i64)),
                (_, Some(place)) => Ok(Value::Int(*place)),
                _ => Err(Fault::new("a value is looked for by 'index', and is not there")),
            }
        }
        "append" | "extend" | "insert" | "pop" | "remove" | "clear" | "sort" | "reverse" => {
            let text = format!("lists do not change: make a new one with + in place of '{name}'");
            Err(Fault::new(text))
        }
        _ => Err(Fault::new(format!(
            "a {} has no method '{name}'; there are: count, index",
            Value::List(list.clone()).kind()
        ))),
    }
}

/// A number of a text or a number.
pub(super) fn number(value: &Value, whole: bool, given: Given<'_>) -> Done<Value> {
    let name = if whole { "int" } else { "float" };
    let [otherwise, base] = given.read(name, ["default", "base"])?;
    let text = value.as_text().map(|text| text.trim().replace('_', ""));
    if !whole {
        let read = text.and_then(|text| text.parse::<f64>().ok()).or(value.as_float());
        return Ok(read.map(Value::Float).or(otherwise).unwrap_or(Value::Float(0.0)));
    }
    let base = base.and_then(|base| base.as_int()).and_then(|base| u32::try_from(base).ok()).unwrap_or(10);
    if !(2..=36).contains(&base) {
        return Err(Fault::new(format!("'int' is asked for base {base}; there are 2 to 36")));
    }
    let read = match (&text, value) {
        (Some(text), _) => {
            let digits = i64::from_str_radix(text, base).ok();
            digits.or_else(|| text.parse::<f64>().ok().and_then(cut))
        }
        (None, Value::Float(number)) => cut(*number),
        (None, value) => value.as_int(),
    };
    Ok(read.map(Value::Int).or(otherwise).unwrap_or(Value::Int(0)))
}

fn cut(number: f64) -> Option<i64> {
    (number.abs() < 9e18).then_some(number as i64)
}

/// `round`: a number with so many digits behind the point.
pub(super) fn rounded(value: &Value, given: Given<'_>) -> Done<Value> {
    let [digits, way] = given.read("round", ["precision", "method"])?;
    let digits = digits.and_then(|digits| digits.as_int()).unwrap_or(0).clamp(-300, 300) as i32;
    let number = value.as_float();
    let number = number
        .ok_or_else(|| Fault::new(format!("'round' takes a number, and this is a {}", value.kind())))?;
    let scale = 10f64.powi(digits);
    Ok(Value::Float(match text_of(&way, "round", "method")? {
        Some("ceil") => (number * scale).ceil() / scale,
        Some("floor") => (number * scale).floor() / scale,
        // As Python: the decimal digits decide, and what is in the middle goes to the even one.
        _ if digits >= 0 => format!("{number:.*}", digits.min(300) as usize).parse().unwrap_or(number),
        _ => (number * scale).round_ties_even() / scale,
    }))
}
