//! The filters behind `|`, and the functions that templates find.

use std::{rc::Rc, sync::Arc};

use super::{
    budget::{Budget, Builder, Done, Fault},
    checks::check,
    given::{Given, count_of, int_of, needed, text_of},
    lists, operators,
    show::{self, Layout},
    texts,
    value::{Items, List, Map, Space, Value},
};

const NAMES: &str = "abs, attr, batch, capitalize, center, count, default, dictsort, escape, first, float, format, indent, int, items, \
     join, last, length, list, lower, map, max, min, reject, rejectattr, replace, reverse, round, safe, select, selectattr, slice, \
     sort, string, sum, title, tojson, trim, unique, upper, wordcount";

/// Elements of the largest `range`, which is that of Jinja2's sandbox.
const RANGE: usize = 100_000;

/// What a filter makes of a value.
pub(super) fn filter(budget: &Arc<Budget>, name: &str, value: &Value, given: Given<'_>) -> Done<Value> {
    budget.steps(1)?;
    match name {
        "map" => mapped(budget, value, given),
        "select" | "reject" | "selectattr" | "rejectattr" => selected(budget, name, value, given),
        "default" | "d" => {
            let [otherwise, boolean] = given.read("default", ["default_value", "boolean"])?;
            let missing = match boolean.is_some_and(|boolean| boolean.truth()) {
                true => !value.truth(),
                false => matches!(value, Value::Undefined),
            };
            if !missing {
                return Ok(value.clone());
            }
            otherwise.map_or_else(|| Value::text(budget, ""), Ok)
        }
        "length" | "count" => {
            let [] = given.read(name, [])?;
            length(budget, value)
        }
        "abs" => {
            let [] = given.read(name, [])?;
            let is_less = value.as_float().is_some_and(|number| number < 0.0);
            if is_less || value.as_float().is_none() { operators::negative(value) } else { Ok(value.clone()) }
        }
        "attr" => {
            let [path] = given.read(name, ["name"])?;
            lists::attribute(budget, value, text_of(&path, name, "name")?.unwrap_or_default())
        }
        "int" | "float" => lists::number(value, name == "int", given),
        "round" => lists::rounded(value, given),
        "tojson" => json(budget, value, given),
        "sort" | "dictsort" | "unique" | "min" | "max" | "sum" | "join" | "first" | "last" | "list"
        | "reverse" | "items" | "batch" | "slice" => lists::filter(budget, name, value, given),
        "string" | "safe" => {
            let [] = given.read(name, [])?;
            if value.as_text().is_some() { Ok(value.clone()) } else { operators::printed(budget, [value]) }
        }
        "format" => texts::percents(budget, needs_text(value, name)?, given),
        _ => {
            // Of texts; other values are taken as they are printed.
            let printed = operators::printed(budget, [value])?;
            let text = printed.as_text().unwrap_or_default();
            of_text(budget, name, text, given)
        }
    }
}

fn needs_text<'v>(value: &'v Value, name: &str) -> Done<&'v str> {
    value
        .as_text()
        .ok_or_else(|| Fault::new(format!("'{name}' takes a text, and this is a {}", value.kind())))
}

fn of_text(budget: &Arc<Budget>, name: &str, text: &str, given: Given<'_>) -> Done<Value> {
    match name {
        "upper" | "lower" | "title" | "capitalize" => {
            let [] = given.read(name, [])?;
            texts::cased(budget, text, name)
        }
        "trim" => {
            let [letters] = given.read(name, ["chars"])?;
            texts::stripped(budget, text, text_of(&letters, name, "chars")?, [true, true])
        }
        "replace" => {
            let [old, new, count] = given.read(name, ["old", "new", "count"])?;
            let old = operators::printed(budget, [&needed(old, name, "old")?])?;
            let new = operators::printed(budget, [&needed(new, name, "new")?])?;
            let parts = [old.as_text().unwrap_or_default(), new.as_text().unwrap_or_default()];
            texts::replaced(budget, text, parts[0], parts[1], int_of(&count, name, "count")?)
        }
        "indent" => texts::indented(budget, text, given),
        "center" => {
            let [width] = given.read(name, ["width"])?;
            let width = count_of(&width, name, "width")?.unwrap_or(80);
            texts::filled(budget, text, width, " ", [true, true])
        }
        "wordcount" => {
            let [] = given.read(name, [])?;
            budget.characters(text)?;
            Ok(Value::Int(text.split_whitespace().count() as i64))
        }
        "escape" | "e" => {
            let [] = given.read(name, [])?;
            let mut made = Value::text(budget, text)?;
            for (sign, name) in
                [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\"", "&#34;"), ("'", "&#39;")]
            {
                made = texts::replaced(budget, made.as_text().unwrap_or_default(), sign, name, None)?;
            }
            Ok(made)
        }
        _ => Err(Fault::new(format!("the filter '{name}' is not known; there are: {NAMES}"))),
    }
}

fn length(budget: &Arc<Budget>, value: &Value) -> Done<Value> {
    let length = match value {
        Value::Text(text) => {
            budget.characters(text)?;
            text.chars().count()
        }
        Value::List(list) => list.len(),
        Value::Map(map) => map.entries().len(),
        Value::Undefined => 0,
        other => return Err(Fault::new(format!("a {} has no length", other.kind()))),
    };
    Ok(Value::Int(length as i64))
}

/// What is left of the arguments when a name was taken from them.
fn taken<'t>(given: &mut Given<'t>, what: &str, name: &str) -> Done<Value> {
    if given.places.is_empty() {
        return Err(Fault::new(format!("'{what}' needs {name}")));
    }
    Ok(given.places.remove(0))
}

/// The elements of a value; none has none here, as in Jinja2.
fn elements(budget: &Arc<Budget>, value: &Value) -> Done<Rc<List>> {
    if value.truth() { value.elements(budget) } else { Ok(Items::new(budget)?.list()) }
}

/// `map('filter', …)` and `map(attribute='a')`.
fn mapped(budget: &Arc<Budget>, value: &Value, mut given: Given<'_>) -> Done<Value> {
    let items = elements(budget, value)?;
    let mut made = Items::new(budget)?;
    if given.places.is_empty() {
        let [path, otherwise] = given.read("map", ["attribute", "default"])?;
        let path = Some(needed(path, "map", "attribute")?);
        let path = text_of(&path, "map", "attribute")?.unwrap_or_default();
        for item in items.iter() {
            made.push(match (lists::attribute(budget, item, path)?, &otherwise) {
                (Value::Undefined, Some(otherwise)) => otherwise.clone(),
                (found, _) => found,
            })?;
        }
        return Ok(Value::List(made.list()));
    }
    let name = taken(&mut given, "map", "a filter's name")?;
    let name = needs_text(&name, "map")?;
    for item in items.iter() {
        let given = Given { places: given.places.clone(), names: given.names.clone() };
        budget.steps(given.places.len())?;
        made.push(filter(budget, name, item, given)?)?;
    }
    Ok(Value::List(made.list()))
}

/// `select('test', …)`, `selectattr('attribute', 'test', …)`, and what is left with `reject`.
fn selected(budget: &Arc<Budget>, what: &str, value: &Value, mut given: Given<'_>) -> Done<Value> {
    let path = match what.ends_with("attr") {
        true => Some(taken(&mut given, what, "an attribute's name")?),
        false => None,
    };
    let path = text_of(&path, what, "attribute")?;
    let test = if given.places.is_empty() { None } else { Some(taken(&mut given, what, "a test")?) };
    let test = text_of(&test, what, "test")?;
    let mut made = Items::new(budget)?;
    for item in elements(budget, value)?.iter() {
        let asked = match path {
            Some(path) => lists::attribute(budget, item, path)?,
            None => item.clone(),
        };
        let is = match test {
            Some(test) => {
                budget.steps(given.places.len())?;
                let given = Given { places: given.places.clone(), names: given.names.clone() };
                check(budget, test, &asked, given)?
            }
            None => asked.truth(),
        };
        if is != what.starts_with("reject") {
            made.push(item.clone())?;
        }
    }
    Ok(Value::List(made.list()))
}

/// As transformers writes it: signs of HTML stay as they are.
fn json(budget: &Arc<Budget>, value: &Value, given: Given<'_>) -> Done<Value> {
    let names = ["indent", "ensure_ascii", "separators", "sort_keys"];
    let [indent, ascii, separators, sort] = given.read("tojson", names)?;
    let indent = count_of(&indent, "tojson", "indent")?;
    let pair = match &separators {
        Some(Value::List(list)) => match &***list {
            [Value::Text(between), Value::Text(behind)] => Some([between.clone(), behind.clone()]),
            _ => return Err(Fault::new("'separators' of 'tojson' are two texts")),
        },
        _ => None,
    };
    let usual = [if indent.is_some() { "," } else { ", " }, ": "];
    let [between, behind_keys] = pair.as_ref().map_or(usual, |[between, behind]| [&***between, &***behind]);
    let [sort, ascii] = [sort, ascii].map(|value| value.is_some_and(|value| value.truth()));
    let mut made = Builder::new(budget)?;
    show::json(value, &Layout { indent, between, behind_keys, sort, ascii }, 0, &mut made)?;
    Ok(Value::Text(made.text()))
}

/// The function that a name stands for where nothing is named so.
pub(super) fn function(name: &str) -> Option<Value> {
    let found = ["range", "namespace", "dict", "raise_exception"].into_iter().find(|known| *known == name);
    found.map(Value::Function)
}

pub(super) fn call(budget: &Arc<Budget>, name: &str, given: Given<'_>) -> Done<Value> {
    match name {
        "range" => range(budget, given),
        "raise_exception" => {
            let [text] = given.read(name, ["message"])?;
            let text = operators::printed(budget, &text)?;
            Err(Fault::new(text.as_text().unwrap_or_default().chars().take(4096).collect::<String>()))
        }
        _ => {
            let mut entries = Vec::new();
            let Given { places, names } = given;
            match &places[..] {
                [] => {}
                [Value::Map(map)] => {
                    budget.steps(map.entries().len())?;
                    entries.extend(map.entries().iter().cloned());
                }
                _ => return Err(Fault::new(format!("'{name}' is made of one table, or of names"))),
            }
            for (name, value) in names {
                entries.push((Value::text(budget, name)?, value));
            }
            if name == "dict" {
                let mut map = Map::new(budget)?;
                entries.into_iter().try_for_each(|(key, value)| map.insert(key, value))?;
                return Ok(Value::Map(Rc::new(map)));
            }
            let space = Space::new(budget)?;
            for (key, value) in entries {
                space.set(needs_text(&key, name)?, value)?;
            }
            Ok(Value::Space(Rc::new(space)))
        }
    }
}

fn range(budget: &Arc<Budget>, given: Given<'_>) -> Done<Value> {
    let [a, b, step] = given.read("range", ["start", "stop", "step"])?;
    let a = needed(a, "range", "a number")?;
    let (start, stop) = match b {
        Some(b) => (a, b),
        None => (Value::Int(0), a),
    };
    let number = |value: Value, name| int_of(&Some(value), "range", name).map(Option::unwrap_or_default);
    let (start, stop) = (number(start, "start")?, number(stop, "stop")?);
    let step = int_of(&step, "range", "step")?.unwrap_or(1);
    if step == 0 {
        return Err(Fault::new("'range' goes in steps of 0"));
    }
    let distance = if step > 0 { stop.checked_sub(start) } else { start.checked_sub(stop) };
    let count =
        distance.map(|distance| if distance <= 0 { 0 } else { (distance - 1) / step.saturating_abs() + 1 });
    let count = count.and_then(|count| usize::try_from(count).ok()).filter(|count| *count <= RANGE);
    let Some(count) = count else {
        return Err(Fault::limit(format!("'range' has more than {RANGE} numbers, which are the most")));
    };
    let mut items = Items::new(budget)?;
    for turn in 0..count as i64 {
        items.push(Value::Int(start + turn * step))?;
    }
    Ok(Value::List(items.list()))
}
