//! Tools that a model may call: which there are, and whether it has to.

use halite::{Callable, JsonSchema};
use serde_json::{Map, Value, json};

use super::{
    error::Refusal,
    fields::{Fields, unsupported},
};

type Result<T, E = Refusal> = std::result::Result<T, E>;

/// Most tools of a request, as OpenAI has them.
const MOST_TOOLS: usize = 128;
/// Letters of a name.
const MOST_LETTERS: usize = 64;

/// The tools of a request.
#[derive(Clone, Debug)]
pub(super) struct Tools {
    /// As the request has them, for the template.
    json: String,
    /// Their names, and the schemas of their arguments.
    functions: Vec<(String, Value)>,
    /// Those that one of has to be called, if one has to.
    forced: Option<Vec<usize>>,
    /// Whether several may be called at once.
    pub several: bool,
}

/// How a model is used to write calls, by what its template told it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// `<tool_call>{"name", "arguments"}</tool_call>`: Hermes, Qwen.
    Tags,
    /// `[TOOL_CALLS][{"name", "arguments"}]`: Mistral.
    List,
    /// `{"name", "parameters"}`: Llama.
    Parameters,
    /// `{"name", "arguments"}`.
    Arguments,
}

impl Style {
    /// That of a prompt.
    pub fn of(prompt: &str) -> Style {
        match prompt {
            _ if prompt.contains("<tool_call>") => Style::Tags,
            _ if prompt.contains("[AVAILABLE_TOOLS]") => Style::List,
            _ if prompt.contains("\"parameters\": dictionary") => Style::Parameters,
            _ => Style::Arguments,
        }
    }

    /// What is in front of a call.
    pub fn ahead(self) -> &'static str {
        match self {
            Style::Tags => "<tool_call>\n",
            Style::List => "[TOOL_CALLS]",
            Style::Parameters | Style::Arguments => "",
        }
    }
}

impl Tools {
    /// The tools that a model may call; `None` where it may call none.
    pub fn read(fields: &Fields) -> Result<Option<Tools>> {
        let wrong = |text: &str| Refusal::field("tools", text);
        let all = match fields.get("tools") {
            None => &[][..],
            Some(Value::Array(all)) if all.len() <= MOST_TOOLS => all,
            Some(_) => return Err(wrong(&format!("'tools' is no list of up to {MOST_TOOLS} tools"))),
        };
        let functions = all.iter().map(function).collect::<Result<Vec<_>>>()?;
        let several = fields.get("parallel_tool_calls").is_none() || fields.flag("parallel_tool_calls")?;
        let names: Vec<&str> = functions.iter().map(|(name, _)| name.as_str()).collect();
        let choice = choice(fields.get("tool_choice"), &names)?;
        let Choice::May(forced) = choice else { return Ok(None) };
        if functions.is_empty() {
            return match forced {
                Some(_) => {
                    Err(Refusal::field("tool_choice", "'tool_choice' wants a call, and there are no 'tools'"))
                }
                None => Ok(None),
            };
        }
        let tools = Tools { json: Value::Array(all.to_vec()).to_string(), functions, forced, several };
        // Before anything is computed: one of these is used where calls are forced.
        tools.schema(Style::Arguments)?;
        Ok(Some(tools))
    }

    /// The tools for a template.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// Whether a call has to be made.
    pub fn is_forced(&self) -> bool {
        self.forced.is_some()
    }

    /// The schema of a call that has to be made, if one has to.
    pub fn schema(&self, style: Style) -> Result<Option<JsonSchema>> {
        let Some(forced) = &self.forced else { return Ok(None) };
        let key = if style == Style::Parameters { "parameters" } else { "arguments" };
        let in_list = style == Style::List;
        let one = |(place, tool): (usize, &usize)| {
            let (name, schema) = &self.functions[*tool];
            let mut schema = schema.clone();
            let way = format!("{}/anyOf/{place}/properties/{key}", if in_list { "/items" } else { "" });
            moved(&mut schema, &way);
            let mut properties = Map::new();
            properties.insert("name".to_owned(), json!({"const": name}));
            properties.insert(key.to_owned(), schema);
            json!({"type": "object", "properties": properties, "required": ["name", key], "additionalProperties": false})
        };
        let calls = json!({"anyOf": forced.iter().enumerate().map(one).collect::<Vec<_>>()});
        let schema = match in_list {
            true => json!({"type": "array", "items": calls, "minItems": 1, "maxItems": 1}),
            false => calls,
        };
        let read = JsonSchema::parse(&schema.to_string());
        Ok(Some(read.map_err(|error| {
            Refusal::field("tools", format!("the parameters of a tool: {}", error.message()))
                .code("invalid_json_schema")
        })?))
    }
}

impl Callable for Tools {
    fn has(&self, name: &str) -> bool {
        self.functions.iter().any(|(own, _)| own == name)
    }

    /// By the schema of the tool.
    fn is_text(&self, name: &str, argument: &str) -> bool {
        let function = self.functions.iter().find(|(own, _)| own == name);
        let schema = function.and_then(|(_, schema)| schema.get("properties")?.get(argument));
        let Some(schema) = schema else { return false };
        match schema.get("type") {
            Some(kind) => kind == "string",
            None => schema
                .get("enum")
                .and_then(Value::as_array)
                .is_some_and(|all| all.iter().all(Value::is_string)),
        }
    }
}

/// References of a schema that became a part of another.
fn moved(schema: &mut Value, way: &str) {
    match schema {
        Value::Object(all) => {
            for (name, value) in all.iter_mut() {
                match value {
                    Value::String(text) if name == "$ref" && text.starts_with('#') => text.insert_str(1, way),
                    other => moved(other, way),
                }
            }
        }
        Value::Array(all) => all.iter_mut().for_each(|own| moved(own, way)),
        _ => {}
    }
}

/// A tool's name, and the schema of its arguments.
fn function(tool: &Value) -> Result<(String, Value)> {
    match tool.get("type").and_then(Value::as_str) {
        Some("function") => {}
        kind => {
            let text = format!("has a tool of the type {}; there is function", kind.unwrap_or("nothing"));
            return Err(unsupported("tools", &text));
        }
    }
    let name = tool.pointer("/function/name").and_then(Value::as_str).unwrap_or_default();
    let is_named = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
    if name.is_empty() || name.len() > MOST_LETTERS || !name.chars().all(is_named) {
        let text = format!("a tool has no 'name' of 1 to {MOST_LETTERS} letters, digits, '_', '-' and '.'");
        return Err(Refusal::field("tools", text));
    }
    let schema = tool.pointer("/function/parameters").filter(|schema| !schema.is_null());
    let none = || json!({"type": "object", "properties": {}, "additionalProperties": false});
    Ok((name.to_owned(), schema.cloned().unwrap_or_else(none)))
}

/// What a request says of calls.
enum Choice {
    /// There are none.
    None,
    /// The model may call any, or has to call one of these.
    May(Option<Vec<usize>>),
}

fn choice(given: Option<&Value>, names: &[&str]) -> Result<Choice> {
    let field = "tool_choice";
    match given {
        None => Ok(Choice::May(None)),
        Some(Value::String(text)) => match text.as_str() {
            "auto" => Ok(Choice::May(None)),
            "none" => Ok(Choice::None),
            "required" => Ok(Choice::May(Some((0..names.len()).collect()))),
            _ => Err(unsupported(field, "is none of auto, none, required and a function")),
        },
        Some(other) if other.get("type").and_then(Value::as_str) == Some("function") => {
            let name = other.pointer("/function/name").and_then(Value::as_str).unwrap_or_default();
            let place = names.iter().position(|own| *own == name);
            let wrong = || Refusal::field(field, "'tool_choice' names a function that 'tools' does not have");
            Ok(Choice::May(Some(vec![place.ok_or_else(wrong)?])))
        }
        Some(_) => Err(unsupported(field, "is none of auto, none, required and a function")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(value: Value) -> Result<Option<Tools>> {
        Tools::read(&Fields::read(value.to_string().as_bytes()).unwrap())
    }

    fn named(name: &str) -> Value {
        let parameters = json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/n"}}, "required": ["x"],
                                "$defs": {"n": {"type": "integer"}}});
        json!({"type": "function", "function": {"name": name, "parameters": parameters}})
    }

    #[test]
    fn tools_are_called_at_will_or_have_to_be() {
        let both = json!([named("f"), named("g")]);
        let own = tools(json!({"tools": both})).unwrap().unwrap();
        assert!(own.has("g") && !own.has("h") && own.schema(Style::Tags).unwrap().is_none());
        assert!(tools(json!({"tools": both, "tool_choice": "none"})).unwrap().is_none());
        for choice in [json!("required"), json!({"type": "function", "function": {"name": "g"}})] {
            let own = tools(json!({"tools": both, "tool_choice": choice})).unwrap().unwrap();
            for style in [Style::Tags, Style::List, Style::Parameters] {
                assert!(own.schema(style).unwrap().is_some());
            }
        }
        assert!(!tools(json!({"tools": both, "parallel_tool_calls": false})).unwrap().unwrap().several);
    }

    #[test]
    fn what_is_wrong_is_told() {
        for wrong in [
            json!({"tools": {}}),
            json!({"tools": [{"type": "web_search"}]}),
            json!({"tools": [named("")]}),
            json!({"tools": [named("f")], "tool_choice": {"type": "function", "function": {"name": "g"}}}),
            json!({"tools": [named("f")], "tool_choice": "always"}),
            json!({"tool_choice": "required"}),
            json!({"tools": [{"type": "function", "function": {"name": "f", "parameters": {"not": {}}}}], "tool_choice": "required"}),
        ] {
            assert!(tools(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
