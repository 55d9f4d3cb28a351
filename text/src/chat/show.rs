//! Values as text: as Python prints them, as it writes them in lists, and as JSON.

use super::{
    budget::{Builder, Done, Fault},
    value::Value,
};

/// As it is printed.
pub(super) fn print(value: &Value, to: &mut Builder) -> Done<()> {
    match value {
        Value::Undefined => Ok(()),
        Value::Text(text) => to.push(text),
        other => written(other, to),
    }
}

/// As it stands in the text of a list.
pub(super) fn written(value: &Value, to: &mut Builder) -> Done<()> {
    to.budget().steps(1)?;
    match value {
        Value::Undefined => to.push("Undefined"),
        Value::None => to.push("None"),
        Value::Bool(true) => to.push("True"),
        Value::Bool(false) => to.push("False"),
        Value::Int(number) => to.push(&number.to_string()),
        Value::Float(number) => to.push(&float(*number)),
        Value::Text(text) => quoted(text, to),
        Value::List(list) => {
            let [open, close] = if list.tuple { ["(", ")"] } else { ["[", "]"] };
            to.push(open)?;
            for (place, item) in list.iter().enumerate() {
                to.push(if place == 0 { "" } else { ", " })?;
                written(item, to)?;
            }
            to.push(if list.tuple && list.len() == 1 { "," } else { "" })?;
            to.push(close)
        }
        Value::Map(map) => {
            to.push("{")?;
            for (place, (key, value)) in map.entries().iter().enumerate() {
                to.push(if place == 0 { "" } else { ", " })?;
                written(key, to)?;
                to.push(": ")?;
                written(value, to)?;
            }
            to.push("}")
        }
        Value::Space(_) => to.push("<Namespace>"),
        Value::Macro(_) => to.push("<Macro>"),
        Value::Function(name) => to.push(&format!("<function {name}>")),
        Value::Loop(_) => to.push("<LoopContext>"),
    }
}

fn quoted(text: &str, to: &mut Builder) -> Done<()> {
    to.budget().characters(text)?;
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    to.push_char(quote)?;
    for letter in text.chars() {
        match letter {
            '\n' => to.push("\\n")?,
            '\r' => to.push("\\r")?,
            '\t' => to.push("\\t")?,
            '\\' => to.push("\\\\")?,
            _ if letter == quote => {
                to.push("\\")?;
                to.push_char(letter)?;
            }
            _ if (letter as u32) < 0x20
                || (0x7f..0xa1).contains(&(letter as u32))
                || letter as u32 == 0xad =>
            {
                to.push(&format!("\\x{:02x}", letter as u32))?;
            }
            _ => to.push_char(letter)?,
        }
    }
    to.push_char(quote)
}

/// As Python writes it: the shortest digits that give the number again, with an exponent where it is far from one.
pub(super) fn float(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let size = number.abs();
    if number == 0.0 || (1e-4..1e16).contains(&size) {
        return format!("{number:?}");
    }
    let made = format!("{number:e}");
    match made.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
            format!("{digits}e{sign}{exponent:0>2}")
        }
        None => made,
    }
}

/// How JSON is laid out.
pub(super) struct Layout<'a> {
    /// What a level is moved in by; on one line where there is none.
    pub indent: Option<usize>,
    pub between: &'a str,
    pub behind_keys: &'a str,
    pub sort: bool,
    pub ascii: bool,
}

pub(super) fn json(value: &Value, layout: &Layout<'_>, level: usize, to: &mut Builder) -> Done<()> {
    to.budget().steps(1)?;
    match value {
        Value::None => to.push("null"),
        Value::Bool(truth) => to.push(if *truth { "true" } else { "false" }),
        Value::Int(number) => to.push(&number.to_string()),
        Value::Float(number) if number.is_nan() => to.push("NaN"),
        Value::Float(number) if number.is_infinite() => {
            to.push(if *number > 0.0 { "Infinity" } else { "-Infinity" })
        }
        Value::Float(number) => to.push(&float(*number)),
        Value::Text(text) => json_text(text, layout.ascii, to),
        Value::List(list) if list.is_empty() => to.push("[]"),
        Value::List(list) => {
            to.push("[")?;
            for (place, item) in list.iter().enumerate() {
                to.push(if place == 0 { "" } else { layout.between })?;
                new_line(layout, level + 1, to)?;
                json(item, layout, level + 1, to)?;
            }
            new_line(layout, level, to)?;
            to.push("]")
        }
        Value::Map(map) if map.entries().is_empty() => to.push("{}"),
        Value::Map(map) => {
            to.push("{")?;
            let mut entries: Vec<_> = map.entries().iter().collect();
            to.budget().steps(entries.len())?;
            if layout.sort {
                to.budget().steps(entries.len() * entries.len().ilog2() as usize)?;
                entries.sort_by(|a, b| a.0.as_text().cmp(&b.0.as_text()));
            }
            for (place, (key, value)) in entries.into_iter().enumerate() {
                to.push(if place == 0 { "" } else { layout.between })?;
                new_line(layout, level + 1, to)?;
                json_key(key, layout, to)?;
                to.push(layout.behind_keys)?;
                json(value, layout, level + 1, to)?;
            }
            new_line(layout, level, to)?;
            to.push("}")
        }
        other => Err(Fault::new(format!("a {} cannot be written as JSON", other.kind()))),
    }
}

fn json_key(key: &Value, layout: &Layout<'_>, to: &mut Builder) -> Done<()> {
    match key {
        Value::Text(text) => json_text(text, layout.ascii, to),
        other => {
            to.push("\"")?;
            json(other, layout, 0, to)?;
            to.push("\"")
        }
    }
}

fn new_line(layout: &Layout<'_>, level: usize, to: &mut Builder) -> Done<()> {
    match layout.indent {
        Some(indent) => {
            to.push("\n")?;
            to.repeat(" ", indent.saturating_mul(level))
        }
        None => Ok(()),
    }
}

fn json_text(text: &str, ascii: bool, to: &mut Builder) -> Done<()> {
    to.budget().characters(text)?;
    to.push("\"")?;
    for letter in text.chars() {
        match letter {
            '"' => to.push("\\\"")?,
            '\\' => to.push("\\\\")?,
            '\n' => to.push("\\n")?,
            '\r' => to.push("\\r")?,
            '\t' => to.push("\\t")?,
            '\u{8}' => to.push("\\b")?,
            '\u{c}' => to.push("\\f")?,
            _ if (letter as u32) < 0x20 || (ascii && !letter.is_ascii()) => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    to.push(&format!("\\u{unit:04x}"))?;
                }
            }
            _ => to.push_char(letter)?,
        }
    }
    to.push("\"")
}
