//! Chat templates: conversations to prompts, by the template in a GGUF file's metadata or beside a tokenizer (Jinja2, as transformers renders it).

use halite_formats::gguf::Gguf;
use minijinja::{Environment, Error, ErrorKind, context};
use serde_json::json;

use crate::{TextError, Tokenizer, read::gguf::text};

/// Most instructions that a template may execute: it comes from a file.
const FUEL: u64 = 10_000_000;

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who says it: `system`, `user`, `assistant`, or what else the model's template knows.
    pub role: String,
    /// What is said.
    pub content: String,
}

impl Message {
    /// A message.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Message {
        Message { role: role.into(), content: content.into() }
    }
}

/// A model's chat template.
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    begin: String,
    end: String,
}

const NAME: &str = "chat";
const KEY: &str = "tokenizer.chat_template";

impl ChatTemplate {
    /// The template of a file; `None` where it has none.
    ///
    /// # Errors
    /// It is no template.
    pub fn read(file: &Gguf, tokenizer: &Tokenizer) -> Result<Option<ChatTemplate>, TextError> {
        let Some(source) = text(file, KEY)? else { return Ok(None) };
        let [begin, end] = tokenizer.marks();
        ChatTemplate::new(source, begin, end).map(Some)
    }

    /// A template, with the texts of the tokens of the beginning and the end.
    ///
    /// # Errors
    /// It is no template.
    pub fn new(
        source: &str,
        begin: impl Into<String>,
        end: impl Into<String>,
    ) -> Result<ChatTemplate, TextError> {
        let mut environment = Environment::new();
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        environment.set_fuel(Some(FUEL));
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", |text: String| -> Result<String, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, text))
        });
        environment
            .add_template_owned(NAME, source.to_owned())
            .map_err(|error| TextError::metadata(KEY, format!("is no template that can be read: {error}")))?;
        Ok(ChatTemplate { environment, begin: begin.into(), end: end.into() })
    }

    /// The prompt of a conversation, up to where the model is to answer.
    ///
    /// # Errors
    /// The template does not take these messages; it says why.
    pub fn prompt(&self, messages: &[Message]) -> Result<String, TextError> {
        let messages: Vec<_> = messages
            .iter()
            .map(|message| json!({"role": message.role, "content": message.content}))
            .collect();
        let failed = |error: Error| TextError::Invalid(format!("the model's chat template: {error}"));
        let template = self.environment.get_template(NAME).map_err(failed)?;
        let values = context! {
            messages => messages,
            add_generation_prompt => true,
            bos_token => self.begin,
            eos_token => self.end,
            // Templates ask whether they are none, which is not the same as not being defined.
            tools => (),
            documents => (),
        };
        template.render(values).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "{{ bos_token }}\n{%- for message in messages %}\n    {%- if message['role'] == 'tool' %}\n\
        {{ raise_exception('no tools') }}\n    {%- endif %}\n{{ '<' + message['role'] + '>' + message['content'].strip() }}\n\
        {%- endfor %}\n{%- if add_generation_prompt %}<assistant>{% endif %}";

    #[test]
    fn a_conversation_becomes_a_prompt() {
        let template = ChatTemplate::new(SOURCE, "<s>", "</s>").unwrap();
        let made =
            template.prompt(&[Message::new("user", "  hi "), Message::new("assistant", "ho")]).unwrap();
        assert_eq!(made.replace('\n', ""), "<s><user>hi<assistant>ho<assistant>");
        let refused = template.prompt(&[Message::new("tool", "x")]).unwrap_err().to_string();
        assert!(refused.contains("no tools"), "{refused}");
    }

    #[test]
    fn what_is_not_given_is_none() {
        let source =
            "{% if tools is none and documents is none %}none{% else %}{{ tools | length }}{% endif %}";
        assert_eq!(ChatTemplate::new(source, "", "").unwrap().prompt(&[]).unwrap(), "none");
    }

    #[test]
    fn templates_that_never_end_are_stopped() {
        let source = "{% for a in range(9999) %}{% for b in range(9999) %}{{ b }}{% endfor %}{% endfor %}";
        let template = ChatTemplate::new(source, "", "").unwrap();
        assert!(template.prompt(&[]).is_err());
        assert!(ChatTemplate::new("{% if %}", "", "").is_err());
    }
}
