//! What a filter, a function or a method is given.

use super::{
    budget::{Done, Fault},
    value::Value,
};

#[derive(Debug, Default)]
pub(super) struct Given<'t> {
    pub places: Vec<Value>,
    pub names: Vec<(&'t str, Value)>,
}

impl Given<'_> {
    /// What is given for each of these names, by place or by name.
    pub fn read<const N: usize>(self, what: &str, names: [&str; N]) -> Done<[Option<Value>; N]> {
        let mut found = [const { None }; N];
        if self.places.len() > N {
            let text = format!("'{what}' takes {N} arguments, and there are {}", self.places.len());
            return Err(Fault::new(text));
        }
        for (place, value) in self.places.into_iter().enumerate() {
            found[place] = Some(value);
        }
        for (name, value) in self.names {
            match names.iter().position(|known| *known == name) {
                Some(place) if found[place].is_none() => found[place] = Some(value),
                Some(_) => return Err(Fault::new(format!("'{what}' is given '{name}' twice"))),
                None => {
                    let there = if N == 0 { "none".to_owned() } else { names.join(", ") };
                    return Err(Fault::new(format!("'{what}' takes no '{name}'; there are: {there}")));
                }
            }
        }
        Ok(found)
    }
}

/// A value that has to be there.
pub(super) fn needed(value: Option<Value>, what: &str, name: &str) -> Done<Value> {
    value.ok_or_else(|| Fault::new(format!("'{what}' needs '{name}'")))
}

/// A text, if something is given and not none.
pub(super) fn text_of<'v>(value: &'v Option<Value>, what: &str, name: &str) -> Done<Option<&'v str>> {
    match value {
        None | Some(Value::None) => Ok(None),
        Some(value) => match value.as_text() {
            Some(text) => Ok(Some(text)),
            None => Err(Fault::new(format!("'{name}' of '{what}' is a {}, and no text", value.kind()))),
        },
    }
}

/// A whole number, if something is given and not none.
pub(super) fn int_of(value: &Option<Value>, what: &str, name: &str) -> Done<Option<i64>> {
    match value {
        None | Some(Value::None) => Ok(None),
        Some(value) => match value.as_int() {
            Some(number) => Ok(Some(number)),
            None => {
                Err(Fault::new(format!("'{name}' of '{what}' is a {}, and no whole number", value.kind())))
            }
        },
    }
}

/// How often or how wide, which is not less than nothing.
pub(super) fn count_of(value: &Option<Value>, what: &str, name: &str) -> Done<Option<usize>> {
    Ok(int_of(value, what, name)?.map(|number| usize::try_from(number).unwrap_or(0)))
}
