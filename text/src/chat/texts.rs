//! What can be done with a text, by methods and filters.

use std::sync::Arc;

use super::{
    budget::{Budget, Builder, Done, Fault},
    given::{Given, count_of, int_of, needed, text_of},
    show,
    value::{Items, Value},
};

/// Texts that look like this one, with as many letters: `upper` and the like.
pub(super) fn cased(budget: &Arc<Budget>, text: &str, name: &str) -> Done<Value> {
    budget.characters(text)?;
    let mut made = Builder::new(budget)?;
    let mut within = false;
    for letter in text.chars() {
        let upper = match name {
            "upper" => true,
            "lower" => false,
            "swapcase" => !letter.is_uppercase(),
            // "title" and "capitalize".
            _ => !within,
        };
        if upper {
            letter.to_uppercase().try_for_each(|letter| made.push_char(letter))?;
        } else {
            letter.to_lowercase().try_for_each(|letter| made.push_char(letter))?;
        }
        within = name == "capitalize" || letter.is_alphabetic();
    }
    Ok(Value::Text(made.text()))
}

/// Without these letters, or without spaces, at its ends.
pub(super) fn stripped(
    budget: &Arc<Budget>,
    text: &str,
    letters: Option<&str>,
    [left, right]: [bool; 2],
) -> Done<Value> {
    let goes = |letter: char| match letters {
        Some(letters) => letters.contains(letter),
        None => letter.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&letter),
    };
    budget.characters(text)?;
    if let Some(letters) = letters {
        let looked_at = text.chars().count().min(text.len());
        budget.bytes(looked_at.saturating_mul(letters.len()))?;
    }
    let text = if left { text.trim_start_matches(goes) } else { text };
    let text = if right { text.trim_end_matches(goes) } else { text };
    Value::text(budget, text)
}

/// With `new` for the first so many `old`.
pub(super) fn replaced(
    budget: &Arc<Budget>,
    text: &str,
    old: &str,
    new: &str,
    count: Option<i64>,
) -> Done<Value> {
    budget.characters(text)?;
    budget.bytes(old.len())?;
    let count = count.and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX);
    let mut made = Builder::new(budget)?;
    let mut from = 0;
    for (at, found) in text.match_indices(old).take(count) {
        budget.steps(1)?;
        made.push(&text[from..at])?;
        made.push(new)?;
        from = at + found.len();
    }
    made.push(&text[from..])?;
    Ok(Value::Text(made.text()))
}

fn split(
    budget: &Arc<Budget>,
    text: &str,
    separator: Option<&str>,
    most: Option<i64>,
    back: bool,
) -> Done<Value> {
    budget.characters(text)?;
    let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
    let mut items = Items::new(budget)?;
    match separator {
        Some("") => return Err(Fault::new("a text is split at nothing")),
        Some(separator) => {
            budget.bytes(separator.len())?;
            let pieces = most.saturating_add(1);
            if back {
                // From the end, and then the other way round.
                let mut found = Items::new(budget)?;
                text.rsplitn(pieces, separator).try_for_each(|piece| found.push_text(piece))?;
                items.extend(found.list().iter().rev())?;
            } else {
                text.splitn(pieces, separator).try_for_each(|piece| items.push_text(piece))?;
            }
        }
        None if back && most != usize::MAX => {
            return Err(Fault::new("'rsplit' with a number and without what to split at is not supported"));
        }
        None => {
            let mut rest = text.trim_start();
            for _ in 0..most {
                let Some(end) = rest.find(char::is_whitespace) else { break };
                items.push_text(&rest[..end])?;
                rest = rest[end..].trim_start();
            }
            if !rest.is_empty() {
                items.push_text(rest)?;
            }
        }
    }
    Ok(Value::List(items.list()))
}

pub(super) fn lines(budget: &Arc<Budget>, text: &str, keep: bool) -> Done<Value> {
    budget.characters(text)?;
    let mut items = Items::new(budget)?;
    for line in text.split_inclusive('\n') {
        let cut = line.strip_suffix('\n').map_or(line, |line| line.strip_suffix('\r').unwrap_or(line));
        items.push_text(if keep { line } else { cut })?;
    }
    Ok(Value::List(items.list()))
}

/// Moved in, all lines but the first.
pub(super) fn indented(budget: &Arc<Budget>, text: &str, given: Given<'_>) -> Done<Value> {
    let [width, first, blank] = given.read("indent", ["width", "first", "blank"])?;
    let spaces = match &width {
        Some(Value::Text(text)) => text.to_string(),
        other => {
            let width = count_of(other, "indent", "width")?.unwrap_or(4);
            let mut made = Builder::new(budget)?;
            made.repeat(" ", width)?;
            made.text().to_string()
        }
    };
    let [first, blank] = [first, blank].map(|value| value.is_some_and(|value| value.truth()));
    let mut made = Builder::new(budget)?;
    for (place, line) in text.split('\n').enumerate() {
        budget.steps(1)?;
        made.push(if place == 0 { "" } else { "\n" })?;
        if if place == 0 { first } else { blank || !line.is_empty() } {
            made.push(&spaces)?;
        }
        made.push(line)?;
    }
    Ok(Value::Text(made.text()))
}

/// Filled up with a sign to a width: `left` and `right` of the text.
pub(super) fn filled(
    budget: &Arc<Budget>,
    text: &str,
    width: usize,
    sign: &str,
    [left, right]: [bool; 2],
) -> Done<Value> {
    budget.characters(text)?;
    let missing = width.saturating_sub(text.chars().count());
    let before = match [left, right] {
        // The odd one, as Python has it.
        [true, true] => missing / 2 + (missing & width & 1),
        [true, false] => missing,
        _ => 0,
    };
    let mut made = Builder::new(budget)?;
    made.repeat(sign, before)?;
    made.push(text)?;
    made.repeat(sign, if right { missing - before } else { 0 })?;
    Ok(Value::Text(made.text()))
}

/// `'{} {0} {name}'.format(…)`.
fn formatted(budget: &Arc<Budget>, text: &str, given: &Given<'_>) -> Done<Value> {
    budget.characters(text)?;
    let mut made = Builder::new(budget)?;
    let mut rest = text;
    let mut next = 0;
    while let Some(at) = rest.find(['{', '}']) {
        budget.steps(1)?;
        made.push(&rest[..at])?;
        let sign = &rest[at..=at];
        rest = &rest[at + 1..];
        if let Some(behind) = rest.strip_prefix(sign) {
            made.push(sign)?;
            rest = behind;
            continue;
        }
        let (field, behind) = match rest.split_once('}') {
            Some(parts) if sign == "{" => parts,
            _ => {
                return Err(Fault::new(
                    "'format' finds a single bracket; '{{' and '}}' stand for themselves",
                ));
            }
        };
        rest = behind;
        let value = match field.parse::<usize>() {
            Ok(place) => given.places.get(place),
            Err(_) if field.is_empty() => {
                next += 1;
                given.places.get(next - 1)
            }
            Err(_) => given.names.iter().find(|(name, _)| *name == field).map(|(_, value)| value),
        };
        let value = value
            .ok_or_else(|| Fault::new(format!("'format' is given nothing for '{{{}}}'", short(field))))?;
        show::print(value, &mut made)?;
    }
    made.push(rest)?;
    Ok(Value::Text(made.text()))
}

/// `'%s and %d' | format(…)`.
pub(super) fn percents(budget: &Arc<Budget>, text: &str, given: Given<'_>) -> Done<Value> {
    budget.characters(text)?;
    let mut made = Builder::new(budget)?;
    let mut values = given.places.iter();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('%') {
        budget.steps(1)?;
        made.push(before)?;
        let kind = behind.chars().next().unwrap_or_default();
        rest = behind.get(kind.len_utf8()..).unwrap_or_default();
        if kind == '%' {
            made.push("%")?;
            continue;
        }
        let missing = || Fault::new("'format' has fewer values than its text asks for");
        let value = values.next().ok_or_else(missing)?;
        match (kind, value) {
            ('s', value) => show::print(value, &mut made)?,
            ('r', value) => show::written(value, &mut made)?,
            ('d' | 'i', Value::Int(number)) => made.push(&number.to_string())?,
            ('d' | 'i', Value::Float(number)) => made.push(&format!("{:.0}", number.trunc()))?,
            ('f', Value::Int(_) | Value::Float(_)) => {
                made.push(&format!("{:.6}", value.as_float().unwrap_or_default()))?;
            }
            (kind, value) => {
                let text = format!("'format' writes no {} as %{}", value.kind(), kind.escape_default());
                return Err(Fault::new(text));
            }
        }
    }
    made.push(rest)?;
    Ok(Value::Text(made.text()))
}

fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Whether it begins or ends with a text, or with one of a tuple.
fn bounded(text: &str, parts: &Value, what: &str, budget: &Budget) -> Done<Value> {
    let one = |part: &str| if what == "startswith" { text.starts_with(part) } else { text.ends_with(part) };
    let refused = |value: &Value| Fault::new(format!("'{what}' is given a {}, and no text", value.kind()));
    match parts {
        Value::Text(part) => {
            budget.bytes(part.len().min(text.len()))?;
            Ok(Value::Bool(one(part)))
        }
        Value::List(parts) => {
            for part in parts.iter() {
                let part = part.as_text().ok_or_else(|| refused(part))?;
                budget.steps(1)?;
                budget.bytes(part.len().min(text.len()))?;
                if one(part) {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        other => Err(refused(other)),
    }
}

/// How many letters stand before the first or last place of a part; less than nothing where there is none.
fn found(text: &str, part: &str, what: &str, budget: &Budget) -> Done<Value> {
    budget.characters(text)?;
    budget.bytes(part.len())?;
    let at = if what.starts_with('r') { text.rfind(part) } else { text.find(part) };
    match at {
        Some(at) => Ok(Value::Int(text[..at].chars().count() as i64)),
        None if what.ends_with("index") => {
            Err(Fault::new("a part is looked for by 'index', and is not there"))
        }
        None => Ok(Value::Int(-1)),
    }
}

fn all_are(text: &str, is: impl Fn(char) -> bool) -> Value {
    Value::Bool(!text.is_empty() && text.chars().all(is))
}

/// Whether all letters that are either upper or lower are as asked, and there is one.
pub(super) fn is_cased(text: &str, upper: bool) -> bool {
    let mut cased = text.chars().filter(|letter| letter.is_uppercase() || letter.is_lowercase()).peekable();
    cased.peek().is_some() && cased.all(|letter| letter.is_uppercase() == upper)
}

/// A method of a text.
pub(super) fn method(budget: &Arc<Budget>, text: &str, name: &str, given: Given<'_>) -> Done<Value> {
    budget.characters(text)?;
    match name {
        "upper" | "lower" | "title" | "capitalize" | "swapcase" => {
            let [] = given.read(name, [])?;
            cased(budget, text, name)
        }
        "strip" | "lstrip" | "rstrip" => {
            let [letters] = given.read(name, ["chars"])?;
            let sides = [name != "rstrip", name != "lstrip"];
            stripped(budget, text, text_of(&letters, name, "chars")?, sides)
        }
        "split" | "rsplit" => {
            let [separator, most] = given.read(name, ["sep", "maxsplit"])?;
            let most = int_of(&most, name, "maxsplit")?;
            split(budget, text, text_of(&separator, name, "sep")?, most, name == "rsplit")
        }
        "splitlines" => {
            let [keep] = given.read(name, ["keepends"])?;
            lines(budget, text, keep.is_some_and(|keep| keep.truth()))
        }
        "replace" => {
            let [old, new, count] = given.read(name, ["old", "new", "count"])?;
            let [old, new] = [needed(old, name, "old")?, needed(new, name, "new")?].map(Some);
            let old = text_of(&old, name, "old")?.unwrap_or_default();
            let new = text_of(&new, name, "new")?.unwrap_or_default();
            replaced(budget, text, old, new, int_of(&count, name, "count")?)
        }
        "format" => formatted(budget, text, &given),
        _ => asked(budget, text, name, given),
    }
}

/// Methods that ask something of a text, or make it longer or shorter at its ends.
fn asked(budget: &Arc<Budget>, text: &str, name: &str, given: Given<'_>) -> Done<Value> {
    match name {
        "startswith" | "endswith" => {
            let [part] = given.read(name, ["part"])?;
            bounded(text, &needed(part, name, "part")?, name, budget)
        }
        "find" | "rfind" | "index" | "rindex" | "count" | "removeprefix" | "removesuffix" => {
            let [part] = given.read(name, ["part"])?;
            let part = Some(needed(part, name, "part")?);
            let part = text_of(&part, name, "part")?.unwrap_or_default();
            budget.bytes(part.len())?;
            match name {
                "count" => Ok(Value::Int(text.matches(part).count() as i64)),
                "removeprefix" => Value::text(budget, text.strip_prefix(part).unwrap_or(text)),
                "removesuffix" => Value::text(budget, text.strip_suffix(part).unwrap_or(text)),
                _ => found(text, part, name, budget),
            }
        }
        "join" => {
            let [parts] = given.read(name, ["parts"])?;
            joined_by(budget, &needed(parts, name, "parts")?, text)
        }
        "center" | "ljust" | "rjust" | "zfill" => {
            let [width, sign] = given.read(name, ["width", "fillchar"])?;
            let width = count_of(&width, name, "width")?.unwrap_or(0);
            let usual = if name == "zfill" { "0" } else { " " };
            let sign = text_of(&sign, name, "fillchar")?.unwrap_or(usual);
            filled(budget, text, width, sign, [name != "ljust", matches!(name, "center" | "ljust")])
        }
        "isdigit" | "isnumeric" | "isdecimal" => Ok(all_are(text, char::is_numeric)),
        "isalpha" => Ok(all_are(text, char::is_alphabetic)),
        "isalnum" => Ok(all_are(text, char::is_alphanumeric)),
        "isspace" => Ok(all_are(text, char::is_whitespace)),
        "isupper" => Ok(Value::Bool(is_cased(text, true))),
        "islower" => Ok(Value::Bool(is_cased(text, false))),
        _ => Err(Fault::new(format!(
            "a text has no method '{name}'; there are: capitalize, center, count, endswith, find, format, index, isalnum, isalpha, \
             isdigit, islower, isspace, isupper, join, ljust, lower, lstrip, removeprefix, removesuffix, replace, rfind, rjust, \
             rsplit, rstrip, split, splitlines, startswith, strip, swapcase, title, upper, zfill"
        ))),
    }
}

/// Elements as text, with something between them.
pub(super) fn joined_by(budget: &Arc<Budget>, parts: &Value, between: &str) -> Done<Value> {
    let mut made = Builder::new(budget)?;
    for (place, part) in parts.elements(budget)?.iter().enumerate() {
        budget.steps(1)?;
        made.push(if place == 0 { "" } else { between })?;
        show::print(part, &mut made)?;
    }
    Ok(Value::Text(made.text()))
}
