//! Prompts as programs give them: texts, messages, tokens.

use halite::Message;
use pyo3::{
    prelude::*,
    types::{PyDict, PyString},
};

use crate::{error::invalid, work::short};

/// A value as JSON.
pub fn json(value: &Bound<'_, PyAny>) -> PyResult<String> {
    value.py().import("json")?.call_method1("dumps", (value,))?.extract()
}

/// Messages: dictionaries with `role`, `content` and what else a template may know, or pairs of these two.
pub fn messages(given: &Bound<'_, PyAny>) -> PyResult<Vec<Message>> {
    let py = given.py();
    let wrong = || {
        invalid(py, "a message is a dictionary with the texts 'role' and 'content', or a pair of these texts")
    };
    let one = |message: PyResult<Bound<'_, PyAny>>| {
        let message = message?;
        let Ok(fields) = message.cast::<PyDict>() else {
            let (role, content): (String, String) = message.extract().map_err(|_| wrong())?;
            return Ok(Message::new(role, content));
        };
        let text = |name| -> PyResult<String> {
            fields.get_item(name)?.ok_or_else(wrong)?.extract().map_err(|_| wrong())
        };
        let calls = fields.get_item("tool_calls")?.is_some_and(|calls| !calls.is_none());
        let content = match fields.get_item("content")? {
            // What calls tools need not say anything.
            None if calls => String::new(),
            Some(content) if calls && content.is_none() => String::new(),
            _ => text("content")?,
        };
        let mut made = Message::new(text("role")?, content);
        for (name, value) in fields.iter() {
            let name: String = name.extract().map_err(|_| wrong())?;
            if !["role", "content"].contains(&name.as_str()) && !value.is_none() {
                made = made.with(name, json(&value)?);
            }
        }
        Ok(made)
    };
    given.try_iter().map_err(|_| wrong())?.map(one).collect()
}

/// The tokens of a prompt: a text, whose names of control tokens are plain text; messages, by the chat template; or tokens.
pub fn tokens(generator: &halite::Generator, given: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
    let py = given.py();
    if given.is_instance_of::<PyString>() {
        let text: String = given.extract()?;
        return short(py, || Ok(generator.tokenize(&text, false)));
    }
    if let Ok(tokens) = given.extract() {
        return Ok(tokens);
    }
    let messages = messages(given).map_err(|error| {
        let wanted = "a prompt is a text, a list of tokens, or a list of messages";
        invalid(py, &format!("{wanted}; {}", error.value(py)))
    })?;
    short(py, || Ok(generator.tokenize(&generator.chat(&messages)?, true)))
}
