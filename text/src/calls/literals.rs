//! Calls as programs have them, `[f(a=1, b="x")]`, and as Gemma 4 writes them, `call:f{a:1,b:<|"|>x<|"|>}`.

use serde_json::{Map, Number, Value};

use super::tool::ToolCall;

/// How deep lists and objects are at most.
const MOST_DEPTH: usize = 64;
/// What texts are between.
const QUOTES: [&str; 3] = ["<|\"|>", "\"", "'"];

/// A list of calls, with their arguments by name.
pub(super) fn calls(text: &str) -> Option<Vec<ToolCall>> {
    let mut rest = Rest(text);
    rest.take("[")?;
    let mut calls = Vec::new();
    loop {
        let name = rest.name()?;
        rest.take("(")?;
        calls.push(ToolCall { name, arguments: rest.entries("=", ")", 0)?.to_string() });
        if rest.take(",").is_none() {
            break;
        }
    }
    rest.take("]")?;
    rest.0.trim().is_empty().then_some(calls)
}

/// A call whose arguments are an object.
pub(super) fn call(text: &str) -> Option<ToolCall> {
    let mut rest = Rest(text);
    rest.take("call:")?;
    let name = rest.name()?;
    rest.take("{")?;
    let arguments = rest.entries(":", "}", 0)?.to_string();
    rest.0.trim().is_empty().then_some(ToolCall { name, arguments })
}

/// What was not read yet.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    /// Goes on behind this, if it comes next.
    fn take(&mut self, text: &str) -> Option<()> {
        self.0 = self.0.trim_start().strip_prefix(text)?;
        Some(())
    }

    /// Letters of a name.
    fn name(&mut self) -> Option<String> {
        let text = self.0.trim_start();
        let is_in = |letter: char| letter.is_alphanumeric() || "_-.".contains(letter);
        let (name, rest) = text.split_at(text.find(|letter| !is_in(letter)).unwrap_or(text.len()));
        self.0 = rest;
        (!name.is_empty()).then(|| name.to_owned())
    }

    /// Values by their names, up to where they end.
    fn entries(&mut self, between: &str, end: &str, depth: usize) -> Option<Value> {
        let mut all = Map::new();
        if self.take(end).is_some() {
            return Some(Value::Object(all));
        }
        loop {
            let name = match self.text() {
                Some(name) => name,
                None => self.name()?,
            };
            self.take(between)?;
            let value = self.value(depth)?;
            all.insert(name, value);
            if self.take(",").is_none() {
                self.take(end)?;
                return Some(Value::Object(all));
            }
        }
    }

    /// A text between quotes, if one comes next.
    fn text(&mut self) -> Option<String> {
        let text = self.0.trim_start();
        let quote = QUOTES.into_iter().find(|quote| text.starts_with(quote))?;
        let mut rest = &text[quote.len()..];
        let mut made = String::new();
        // Between long quotes letters stand for themselves.
        let has_escapes = quote.len() == 1;
        while !rest.starts_with(quote) {
            let mut letters = rest.chars();
            match letters.next()? {
                '\\' if has_escapes => match letters.next()? {
                    'n' => made.push('\n'),
                    't' => made.push('\t'),
                    'r' => made.push('\r'),
                    other => made.push(other),
                },
                letter => made.push(letter),
            }
            rest = letters.as_str();
        }
        self.0 = &rest[quote.len()..];
        Some(made)
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth >= MOST_DEPTH {
            return None;
        }
        if let Some(text) = self.text() {
            return Some(text.into());
        }
        if self.take("{").is_some() {
            return self.entries(":", "}", depth + 1);
        }
        if self.take("[").is_some() {
            return self.list(depth + 1);
        }
        match self.name()?.as_str() {
            "true" | "True" => Some(true.into()),
            "false" | "False" => Some(false.into()),
            "null" | "None" => Some(Value::Null),
            number => number.parse::<Number>().ok().map(Value::Number),
        }
    }

    fn list(&mut self, depth: usize) -> Option<Value> {
        let mut all = Vec::new();
        if self.take("]").is_some() {
            return Some(all.into());
        }
        loop {
            all.push(self.value(depth)?);
            if self.take(",").is_none() {
                self.take("]")?;
                return Some(all.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_programs_become_json() {
        let made = calls(r#"[a.b(x="1, \"2\"", y=[1, -2.5, 1e3, [], {}], z={"k": None, 'l': True}), g( )]"#)
            .unwrap();
        assert_eq!(made[0].name, "a.b");
        let wanted = r#"{"x":"1, \"2\"","y":[1,-2.5,1000.0,[],{}],"z":{"k":null,"l":true}}"#;
        let same = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(same(&made[0].arguments), same(wanted));
        assert_eq!((made[1].name.as_str(), made[1].arguments.as_str()), ("g", "{}"));
        let made = call("call:f{x:<|\"|>a \"b\" \\n<|\"|>,y:{z:[true,null]}}").unwrap();
        assert_eq!(made.arguments, r#"{"x":"a \"b\" \\n","y":{"z":[true,null]}}"#);
        for wrong in ["[]", "[f]", "[f(]", "[f(x=1)] more", "[f(x=1),]", "[f(x=y)]", "[f(x='a)]", "[f(=1)]"] {
            assert!(calls(wrong).is_none(), "{wrong}");
        }
        assert!(call("call:f{x:1} more").is_none() && call("call:{}").is_none());
    }
}
