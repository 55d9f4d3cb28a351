//! Prompts as programs give them: texts, messages, tokens.

use halite::Message;
use pyo3::{
    prelude::*,
    types::{PyDict, PyString},
};

use crate::{error::invalid, work::short};

/// Messages: dictionaries with `role` and `content`, or pairs of these.
pub fn messages(given: &Bound<'_, PyAny>) -> PyResult<Vec<Message>> {
    let py = given.py();
    let wrong = || {
        invalid(py, "a message is a dictionary with the texts 'role' and 'content', or a pair of these texts")
    };
    let one = |message: PyResult<Bound<'_, PyAny>>| {
        let message = message?;
        let (role, content): (String, String) = match message.cast::<PyDict>() {
            Ok(fields) => {
                let text = |name| fields.get_item(name)?.ok_or_else(wrong)?.extract().map_err(|_| wrong());
                (text("role")?, text("content")?)
            }
            Err(_) => message.extract().map_err(|_| wrong())?,
        };
        Ok(Message::new(role, content))
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
