//! Makes the item of one combination: joins what its values and its entry set, and fills in what texts name.

use serde_json::{Map, Value};

use super::{
    ExpandError,
    list::{Entry, Fields, List},
};

/// Objects in which a text of digits is a number.
const NUMBERS: [&str; 2] = ["params", "needs"];

/// The combination for which texts are filled in.
struct Combination<'a> {
    /// The entry's name.
    entry: &'a str,
    /// Axes and the value of each.
    chosen: Vec<(usize, usize)>,
}

/// What a text names: an axis, and a word of its value.
struct Named<'a> {
    axis: &'a str,
    word: Option<&'a str>,
}

impl List {
    /// The item of a combination, where it counts.
    pub(super) fn item(
        &mut self,
        entry: &mut Entry,
        at: &[usize],
    ) -> Result<Option<Map<String, Value>>, ExpandError> {
        if !entry.counts(at) {
            return Ok(None);
        }
        let mut fields = Fields::new();
        for (axis, value) in entry.axes.iter().zip(at) {
            let value = &mut self.axes[*axis].values[*value];
            value.used = true;
            join(&entry.name, &mut fields, &value.fields)?;
        }
        join(&entry.name, &mut fields, &entry.fields)?;
        for (when, other) in &mut entry.also {
            if when.holds(&entry.axes, at) {
                replace(&mut fields, other);
            }
        }
        let chosen = entry.axes.iter().copied().zip(at.iter().copied()).collect();
        let place = Combination { entry: &entry.name, chosen };
        for (key, value) in &mut fields {
            self.fill(&place, value, NUMBERS.contains(&key.as_str()))?;
        }
        Ok(Some(fields))
    }

    /// Fills in the texts of a value.
    fn fill(&mut self, place: &Combination<'_>, value: &mut Value, numbers: bool) -> Result<(), ExpandError> {
        match value {
            // Most texts name nothing, and stay what they are.
            Value::String(text) if !text.contains('{') && !numbers => {}
            Value::String(text) => {
                let filled = self.text(place, text)?;
                *value = match filled.parse::<u32>() {
                    Ok(number) if numbers => number.into(),
                    _ => filled.into(),
                };
            }
            Value::Array(list) => {
                let mut filled = Vec::with_capacity(list.len());
                for mut value in std::mem::take(list) {
                    match &value {
                        Value::String(text) => self.texts(place, text, &mut filled)?,
                        _ => {
                            self.fill(place, &mut value, numbers)?;
                            filled.push(value);
                        }
                    }
                }
                *list = filled;
            }
            Value::Object(fields) => {
                for value in fields.values_mut() {
                    self.fill(place, value, numbers)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A text of a list: one for each value of the first axis that the entry's name does not name, and so on.
    fn texts(
        &mut self,
        place: &Combination<'_>,
        text: &str,
        into: &mut Vec<Value>,
    ) -> Result<(), ExpandError> {
        for name in named(place.entry, text)? {
            let axis = self.axis(place.entry, name)?;
            if place.chosen.iter().any(|(own, _)| *own == axis) {
                continue;
            }
            self.mark(axis);
            for value in 0..self.axes[axis].values.len() {
                self.axes[axis].values[value].used = true;
                let mut chosen = place.chosen.clone();
                chosen.push((axis, value));
                self.texts(&Combination { entry: place.entry, chosen }, text, into)?;
            }
            return Ok(());
        }
        into.push(self.text(place, text)?.into());
        Ok(())
    }

    /// A text with what it names.
    fn text(&mut self, place: &Combination<'_>, text: &str) -> Result<String, ExpandError> {
        let (mut filled, mut rest) = (String::with_capacity(text.len()), text);
        while let Some((before, name, after)) = next(place.entry, rest)? {
            filled.push_str(before);
            filled.push_str(self.value(place, &name)?);
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    /// The text of a value, or its word.
    fn value(&mut self, place: &Combination<'_>, name: &Named<'_>) -> Result<&str, ExpandError> {
        let axis = self.axis(place.entry, name.axis)?;
        let Some((_, value)) = place.chosen.iter().find(|(own, _)| *own == axis) else {
            let what = format!("only a text in a list can name '{}', which the name does not", name.axis);
            return Err(ExpandError::form(place.entry, what));
        };
        let axis = &mut self.axes[axis];
        let value = &axis.values[*value];
        let Some(word) = name.word else { return Ok(&value.text) };
        let Some(index) = axis.words.iter().position(|(own, _)| own == word) else {
            let known = axis.words.iter().map(|(word, _)| word.as_str());
            return Err(ExpandError::unknown(place.entry, format!("word of '{}'", name.axis), word, known));
        };
        axis.words[index].1 = true;
        value.words[index].as_deref().ok_or_else(|| {
            let what = format!("the value '{}' of '{}' lacks the word '{word}'", value.text, name.axis);
            ExpandError::form(place.entry, what)
        })
    }
}

/// Adds fields: objects by their keys, lists one behind the other, `order` by its sum.
fn join(place: &str, into: &mut Fields, other: &Fields) -> Result<(), ExpandError> {
    for (key, value) in other {
        let Some(own) = into.get_mut(key) else {
            into.insert(key.clone(), value.clone());
            continue;
        };
        match (own, value) {
            (Value::Object(own), Value::Object(value)) => join(place, own, value)?,
            (Value::Array(own), Value::Array(value)) => own.extend(value.iter().cloned()),
            (own, value) => match (key.as_str(), own.as_i64(), value.as_i64()) {
                ("order", Some(a), Some(b)) => *own = a.saturating_add(b).into(),
                _ => return Err(ExpandError::Twice { place: place.to_owned(), field: key.clone() }),
            },
        }
    }
    Ok(())
}

/// Sets fields, whatever is there; objects key by key.
fn replace(into: &mut Fields, other: &Fields) {
    for (key, value) in other {
        match (into.get_mut(key), value) {
            (Some(Value::Object(own)), Value::Object(value)) => replace(own, value),
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

/// The axes that a text names, in order.
pub(super) fn named<'a>(place: &str, text: &'a str) -> Result<Vec<&'a str>, ExpandError> {
    let (mut names, mut rest) = (Vec::new(), text);
    while let Some((_, name, after)) = next(place, rest)? {
        names.push(name.axis);
        rest = after;
    }
    Ok(names)
}

/// What is before the next name in braces, the name, and what follows.
fn next<'a>(place: &str, text: &'a str) -> Result<Option<(&'a str, Named<'a>, &'a str)>, ExpandError> {
    let Some((before, rest)) = text.split_once('{') else { return Ok(None) };
    let Some((name, after)) = rest.split_once('}') else {
        return Err(ExpandError::form(place, format!("'{text}' lacks a closing brace")));
    };
    let name = match name.split_once('.') {
        Some((axis, word)) => Named { axis, word: Some(word) },
        None => Named { axis: name, word: None },
    };
    Ok(Some((before, name, after)))
}
