//! What answers of `halite serve` have to be: schemas, calls of tools, probabilities, several answers.
#![cfg(feature = "serve")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::{
    io::{BufRead, BufReader, Read},
    path::Path,
    process::Stdio,
};

use serde_json::{Value, json};

use crate::{common, serve::Server};

/// Answers that follow a schema, in conversations and completions, at once and in a stream.
#[test]
fn answers_follow_a_schema() {
    let Some(server) = Server::start("gemma3.gguf", &["--parallel=2", "--context=512"]) else { return };
    let schema = json!({
        "type": "object", "additionalProperties": false, "required": ["a", "list"],
        "properties": {"a": {"type": "integer", "minimum": 5, "maximum": 900}, "list": {"type": "array", "items": {"enum": ["the", "then"]}, "maxItems": 2}},
    });
    let format =
        json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": true}});
    let messages = json!([{"role": "user", "content": "in the"}]);
    for seed in 0..4 {
        let request =
            json!({"messages": messages, "response_format": format, "seed": seed, "max_tokens": 400});
        let (status, made) = server.post("/v1/chat/completions", &request);
        assert_eq!((status, &made["choices"][0]["finish_reason"]), (200, &json!("stop")), "{made}");
        let text = made["choices"][0]["message"]["content"].as_str().unwrap();
        let value: Value = serde_json::from_str(text).unwrap();
        assert!((5..=900).contains(&value["a"].as_i64().unwrap()), "{value}");
        assert!(value["list"].as_array().unwrap().iter().all(|own| own == "the" || own == "then"), "{value}");
        let request = json!({"prompt": "in", "response_format": format, "seed": seed, "max_tokens": 400, "stream": true});
        let (_, events) = server.post("/v1/completions", &request);
        assert!(serde_json::from_str::<Value>(&streamed(&events, 0)).unwrap()["a"].is_i64(), "{events}");
    }
    let wrong =
        json!({"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object", "not": {}}}});
    let (status, told) =
        server.post("/v1/chat/completions", &json!({"messages": messages, "response_format": wrong}));
    assert_eq!((status, &told["error"]["param"]), (400, &json!("response_format")));
    assert!(told["error"]["message"].as_str().unwrap().contains("'not'"), "{told}");
}

/// The text of one of the answers of a stream.
fn streamed(events: &Value, index: usize) -> String {
    let events = events.as_str().unwrap().lines().filter_map(|line| line.strip_prefix("data: "));
    let events = events.filter_map(|event| serde_json::from_str::<Value>(event).ok());
    let own = events.filter(|event| event["choices"][0]["index"] == index);
    own.filter_map(|event| event["choices"][0]["text"].as_str().map(str::to_owned)).collect()
}

#[test]
fn several_prompts_and_answers_come_at_once_and_in_a_stream() {
    let Some(server) = Server::start("llama.gguf", &["--parallel=2"]) else { return };
    let request = json!({"prompt": ["the then", "in"], "n": 2, "seed": 3, "max_tokens": 5});
    let (status, made) = server.post("/v1/completions", &request);
    assert_eq!(status, 200, "{made}");
    let choices = made["choices"].as_array().unwrap();
    assert_eq!(choices.iter().map(|own| own["index"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1, 2, 3]);
    let alone = json!({"prompt": "in", "n": 2, "seed": 3, "max_tokens": 5});
    let (_, alone) = server.post("/v1/completions", &alone);
    assert_eq!(
        (&alone["choices"][0]["text"], &alone["choices"][1]["text"]),
        (&choices[2]["text"], &choices[3]["text"])
    );
    let mut request = request;
    (request["stream"], request["stream_options"]) = (json!(true), json!({"include_usage": true}));
    let (_, events) = server.post("/v1/completions", &request);
    for (index, choice) in choices.iter().enumerate() {
        assert_eq!(streamed(&events, index), choice["text"].as_str().unwrap());
    }
    let last =
        events.as_str().unwrap().lines().filter_map(|line| line.strip_prefix("data: ")).rev().nth(1).unwrap();
    let counts = serde_json::from_str::<Value>(last).unwrap()["usage"].clone();
    for name in ["prompt_tokens", "completion_tokens"] {
        assert_eq!(counts[name], made["usage"][name], "{counts}");
    }
    let (_, tokens) =
        server.post("/v1/completions", &json!({"prompt": [[260, 261], [262]], "max_tokens": 2}));
    assert_eq!(tokens["choices"].as_array().unwrap().len(), 2, "{tokens}");
    let (status, _) = server.post("/v1/completions", &json!({"prompt": vec!["in"; 60], "n": 3}));
    assert_eq!(status, 400);
}

#[test]
fn tokens_are_told_with_their_likelihood() {
    let Some(server) = Server::start("gemma3.gguf", &["--parallel=2"]) else { return };
    let messages = json!([{"role": "user", "content": "in the"}]);
    let request =
        json!({"messages": messages, "max_tokens": 5, "temperature": 0, "logprobs": true, "top_logprobs": 2});
    let (_, made) = server.post("/v1/chat/completions", &request);
    let told = made["choices"][0]["logprobs"]["content"].as_array().unwrap();
    assert_eq!(told.len() as u64, made["usage"]["completion_tokens"].as_u64().unwrap(), "{made}");
    let mut bytes = Vec::new();
    for own in told {
        // The most likely one is what was chosen.
        assert_eq!(
            (&own["token"], &own["logprob"]),
            (&own["top_logprobs"][0]["token"], &own["top_logprobs"][0]["logprob"])
        );
        assert!(
            own["logprob"].as_f64().unwrap() <= 0.0 && own["top_logprobs"].as_array().unwrap().len() == 2
        );
        bytes.extend(own["bytes"].as_array().unwrap().iter().map(|byte| byte.as_u64().unwrap() as u8));
    }
    let text = made["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(String::from_utf8_lossy(&bytes).starts_with(text), "{text}");
    let plain = json!({"messages": messages, "max_tokens": 5, "temperature": 0});
    assert_eq!(server.post("/v1/chat/completions", &plain).1["choices"][0]["message"]["content"], text);
    let request = json!({"prompt": "in the", "max_tokens": 4, "temperature": 0, "logprobs": 1});
    let (_, made) = server.post("/v1/completions", &request);
    let told = &made["choices"][0]["logprobs"];
    for name in ["tokens", "token_logprobs", "top_logprobs", "text_offset"] {
        assert_eq!(told[name].as_array().unwrap().len() as u64, made["usage"]["completion_tokens"], "{told}");
    }
    // A token that is made likely is what comes.
    let biased = json!({"prompt": "in the", "max_tokens": 3, "temperature": 0, "logit_bias": {"275": 100}});
    let (_, made) = server.post("/v1/completions", &biased);
    let text = made["choices"][0]["text"].as_str().unwrap();
    assert!(!text.is_empty() && text == text[..text.len() / 3].repeat(3), "{made}");
}

/// The template of this model tells of tools.
#[test]
fn tools_are_called() {
    let Some(server) = tools_server() else { return };
    let tool = |name: &str| {
        json!({"type": "function", "function": {"name": name, "parameters": {
        "type": "object", "properties": {"x": {"$ref": "#/$defs/digit"}}, "required": ["x"], "$defs": {"digit": {"enum": [1, 2]}}}}})
    };
    let messages = json!([
        {"role": "user", "content": "in the"},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{\"x\":1}"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "then"},
    ]);
    let mut request =
        json!({"messages": messages, "tools": [tool("f"), tool("g")], "max_tokens": 400, "seed": 1});
    let (status, made) = server.post("/v1/chat/completions", &request);
    assert_eq!(status, 200, "{made}");
    for (choice, name) in
        [(json!("required"), None), (json!({"type": "function", "function": {"name": "g"}}), Some("g"))]
    {
        request["tool_choice"] = choice;
        request["stream"] = json!(false);
        let (_, made) = server.post("/v1/chat/completions", &request);
        let choice = &made["choices"][0];
        assert_eq!(
            (&choice["finish_reason"], &choice["message"]["content"]),
            (&json!("tool_calls"), &Value::Null),
            "{made}"
        );
        let call = &choice["message"]["tool_calls"][0]["function"];
        assert!(name.is_none_or(|name| call["name"] == name), "{call}");
        let arguments: Value = serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap();
        assert!(arguments == json!({"x": 1}) || arguments == json!({"x": 2}), "{arguments}");
        request["stream"] = json!(true);
        let (_, events) = server.post("/v1/chat/completions", &request);
        assert!(events.as_str().unwrap().contains("\"tool_calls\":[{\"id\":\"call_"), "{events}");
    }
    // Another model's template knows no tools: the prompt tells of them, which takes more room than this one has.
    let Some(plain) = Server::start("gemma3.gguf", &[]) else { return };
    let (status, told) = plain.post("/v1/chat/completions", &request);
    assert_eq!((status, &told["error"]["code"]), (400, &json!("context_length_exceeded")), "{told}");
}

/// Events of a stream with names, as their kinds and what they hold.
fn named(events: &Value) -> Vec<Value> {
    let events = events.as_str().unwrap();
    let made: Vec<Value> = events
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|event| serde_json::from_str(event).unwrap())
        .collect();
    let names: Vec<&str> = events.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(names, made.iter().map(|event| event["type"].as_str().unwrap()).collect::<Vec<_>>());
    assert!(made.iter().enumerate().all(|(place, event)| event["sequence_number"] == place), "{events}");
    made
}

#[test]
fn responses_are_the_answers_of_conversations() {
    let Some(server) = Server::start("gemma3.gguf", &["--parallel=2", "--context=512"]) else { return };
    let chat = json!({"messages": [{"role": "user", "content": "in the"}], "seed": 3, "max_tokens": 8});
    let (_, wanted) = server.post("/v1/chat/completions", &chat);
    let wanted = &wanted["choices"][0]["message"]["content"];
    let mut request = json!({"input": "in the", "seed": 3, "max_output_tokens": 8, "metadata": {"a": "b"}});
    let (status, made) = server.post("/v1/responses", &request);
    assert_eq!(
        (status, &made["object"], &made["metadata"]["a"]),
        (200, &json!("response"), &json!("b")),
        "{made}"
    );
    assert_eq!(made["output"][0]["content"][0]["text"], *wanted, "{made}");
    let ended = made["status"] == "completed";
    assert!(ended || made["incomplete_details"]["reason"] == "max_output_tokens", "{made}");
    let usage = &made["usage"];
    let sum = usage["input_tokens"].as_u64().unwrap() + usage["output_tokens"].as_u64().unwrap();
    assert_eq!(usage["total_tokens"], sum);
    // What was said before, as the answer has it.
    let before = json!([{"role": "user", "content": "in the"}, made["output"][0], {"role": "user", "content": "then"}]);
    let (status, told) = server.post("/v1/responses", &json!({"input": before, "max_output_tokens": 2}));
    assert_eq!(status, 200, "{told}");
    request["stream"] = json!(true);
    let (_, events) = server.post("/v1/responses", &request);
    let events = named(&events);
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds[..3], ["response.created", "response.in_progress", "response.output_item.added"]);
    let deltas = events.iter().filter(|event| event["type"] == "response.output_text.delta");
    let text: String = deltas.map(|event| event["delta"].as_str().unwrap()).collect();
    assert_eq!(text, *wanted);
    let last = &events[events.len() - 1];
    assert_eq!(last["type"], if ended { "response.completed" } else { "response.incomplete" });
    assert_eq!(last["response"]["output"][0]["content"][0]["text"], *wanted);
    let (status, told) = server.post("/v1/responses", &json!({"input": "a", "store": true}));
    assert_eq!((status, &told["error"]["param"]), (400, &json!("store")), "{told}");
}

#[test]
fn responses_have_calls_of_tools() {
    let Some(server) = tools_server() else { return };
    let digit = json!({"type": "object", "properties": {"x": {"enum": [1, 2]}}, "required": ["x"]});
    let input = json!([
        {"role": "user", "content": "in the"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{\"x\":1}"},
        {"type": "function_call_output", "call_id": "c", "output": "then"},
    ]);
    let tool = json!({"type": "function", "name": "f", "parameters": digit, "strict": true});
    let mut request =
        json!({"input": input, "tools": [tool], "tool_choice": {"type": "function", "name": "f"}, "seed": 1});
    let (status, made) = server.post("/v1/responses", &request);
    assert_eq!((status, made["output"].as_array().map(Vec::len)), (200, Some(1)), "{made}");
    let call = made["output"][0].clone();
    assert_eq!((&call["type"], &call["name"]), (&json!("function_call"), &json!("f")), "{made}");
    let arguments: Value = serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap();
    assert!(arguments == json!({"x": 1}) || arguments == json!({"x": 2}), "{arguments}");
    request["stream"] = json!(true);
    let (_, events) = server.post("/v1/responses", &request);
    let events = named(&events);
    let done = events.iter().find(|event| event["type"] == "response.function_call_arguments.done").unwrap();
    assert_eq!((&done["arguments"], &done["output_index"]), (&call["arguments"], &json!(0)));
    assert_eq!(events[events.len() - 1]["response"]["status"], "completed");
}

#[test]
fn vectors_are_as_long_as_somebody_wants() {
    let Some(server) = Server::start("bert.gguf", &[]) else { return };
    let vector = |more: Value| {
        let mut request = json!({"input": "the unplayable play"});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, made) = server.post("/v1/embeddings", &request);
        let numbers: Option<Vec<f64>> = serde_json::from_value(made["data"][0]["embedding"].clone()).ok();
        (status, numbers.unwrap_or_default(), made)
    };
    let (_, whole, _) = vector(json!({}));
    let (_, first, _) = vector(json!({"dimensions": 8}));
    let length = whole[..8].iter().map(|own| own * own).sum::<f64>().sqrt();
    assert_eq!((first.len(), vector(json!({"dimensions": whole.len()})).1.len()), (8, whole.len()));
    assert!(first.iter().zip(&whole).all(|(own, all)| (own - all / length).abs() < 1e-6), "{first:?}");
    let (status, _, told) = vector(json!({"dimensions": whole.len() + 1}));
    assert_eq!((status, &told["error"]["param"]), (400, &json!("dimensions")), "{told}");
}

/// A server of a small model whose template is another one.
fn tools_server() -> Option<Server> {
    const KEY: &[u8] = b"tokenizer.chat_template";
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compiler/tests/data/gguf/gemma3.gguf");
    let bytes = std::fs::read(model).unwrap();
    let place = bytes.windows(KEY.len()).position(|own| own == KEY).unwrap() + KEY.len() + 4;
    let length = u64::from_le_bytes(bytes[place..place + 8].try_into().unwrap()) as usize;
    // As long as the one that was there, so that all else stays where it is.
    let source =
        "{%for t in tools%}{{t.function.name}}{%endfor%}{%for m in messages%}{{m.content}}{%endfor%}";
    assert!(source.len() <= length, "{length}");
    let mut made = bytes.clone();
    made[place + 8..place + 8 + length].copy_from_slice(format!("{source:length$}").as_bytes());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tools.gguf");
    std::fs::write(&path, made).unwrap();
    let mut command = common::command("halite");
    command.arg("serve").arg(path).arg("--context=512");
    let server = Server::begin(command);
    // The server read it.
    drop(folder);
    server
}

#[test]
fn templates_that_know_no_tools_have_them_in_a_message() {
    let Some(server) = Server::start("gemma3.gguf", &["--context=2048"]) else { return };
    let digit = json!({"type": "object", "properties": {"x": {"enum": [1, 2]}}, "required": ["x"]});
    let tool = json!({"type": "function", "function": {"name": "f", "parameters": digit}});
    let mut request = json!({"messages": [{"role": "user", "content": "the"}], "max_tokens": 1});
    let (_, plain) = server.post("/v1/chat/completions", &request);
    request["tools"] = json!([tool]);
    let (status, made) = server.post("/v1/chat/completions", &request);
    let tokens = |made: &Value| made["usage"]["prompt_tokens"].as_u64().unwrap_or(0);
    assert!(status == 200 && tokens(&made) > tokens(&plain) + 100, "{made}");
    (request["tool_choice"], request["max_tokens"]) = (json!("required"), json!(200));
    let (status, made) = server.post("/v1/chat/completions", &request);
    let call = &made["choices"][0]["message"]["tool_calls"][0];
    assert_eq!((status, &call["function"]["name"]), (200, &json!("f")), "{made}");
    let arguments: Value = serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
    assert!(arguments == json!({"x": 1}) || arguments == json!({"x": 2}), "{arguments}");
    // What was called before, and what it gave.
    let result = json!({"role": "tool", "tool_call_id": call["id"], "content": "12"});
    request["messages"] = json!([
        {"role": "user", "content": "the"}, {"role": "assistant", "content": null, "tool_calls": [call]}, result
    ]);
    let (status, made) = server.post("/v1/chat/completions", &request);
    assert_eq!((status, &made["choices"][0]["finish_reason"]), (200, &json!("tool_calls")), "{made}");
}

#[test]
fn the_lack_of_a_gpu_is_told_once() {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compiler/tests/data/gguf/llama.gguf");
    let mut command = common::command("halite");
    let mut child = command
        .arg("serve")
        .arg(model)
        .arg("--port=0")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    _ = child.kill();
    let mut log = String::new();
    child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    child.wait().unwrap();
    assert!(log.matches("no GPU can be used").count() <= 1, "{log}");
}

/// A copy of a small model whose prompts end with the beginning of thoughts.
fn thinking(folder: &Path) -> std::path::PathBuf {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compiler/tests/data/gguf/gemma3.gguf");
    let mut bytes = std::fs::read(data).unwrap();
    let (from, to) = (b"%}<|turn|>assistant\n{%", b"%}<|turn|>ab\n<think>{%");
    let at = bytes.windows(from.len()).position(|own| own == from).unwrap();
    bytes[at..at + to.len()].copy_from_slice(to);
    let path = folder.join("thinking.gguf");
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn thoughts_are_told_apart_from_answers() {
    let folder = tempfile::tempdir().unwrap();
    let model = thinking(folder.path());
    let mut command = common::command("halite");
    command.arg("serve").arg(&model).arg("--context=512");
    let Some(server) = Server::begin(command) else { return };
    let mut request =
        json!({"messages": [{"role": "user", "content": "in the"}], "max_tokens": 6, "temperature": 0});
    let (status, made) = server.post("/v1/chat/completions", &request);
    assert_eq!(status, 200, "{made}");
    let message = &made["choices"][0]["message"];
    let thoughts = message["reasoning_content"].as_str().unwrap().to_owned();
    assert_eq!(message["content"], "", "{made}");
    assert_eq!(
        made["usage"]["completion_tokens_details"]["reasoning_tokens"],
        made["usage"]["completion_tokens"]
    );
    // The same in a stream, as a part of the answer, and by the tool.
    let mut streamed = request.clone();
    streamed["stream"] = true.into();
    let (_, events) = server.post("/v1/chat/completions", &streamed);
    let pieces = events.as_str().unwrap().lines().filter_map(|line| line.strip_prefix("data: "));
    let pieces = pieces.filter_map(|event| serde_json::from_str::<Value>(event).ok());
    let pieces =
        pieces.filter_map(|own| own["choices"][0]["delta"]["reasoning_content"].as_str().map(str::to_owned));
    assert_eq!(pieces.collect::<String>(), thoughts);
    let (_, response) =
        server.post("/v1/responses", &json!({"input": "in the", "max_output_tokens": 6, "temperature": 0}));
    assert_eq!(
        (&response["output"][0]["type"], &response["output"][0]["content"][0]["text"]),
        (&json!("reasoning"), &json!(thoughts))
    );
    request["reasoning_format"] = "none".into();
    let (_, whole) = server.post("/v1/chat/completions", &request);
    let message = &whole["choices"][0]["message"];
    assert_eq!(message["content"].as_str().unwrap().trim(), thoughts.trim());
    assert!(message.get("reasoning_content").is_none());
    let (status, told) =
        server.post("/v1/chat/completions", &json!({"messages": [], "reasoning_format": "x"}));
    assert_eq!((status, &told["error"]["param"]), (400, &json!("reasoning_format")));
    schemas_begin_behind_thoughts(&server, request, &thoughts);
    told_by_the_tool(&model, &thoughts);
}

/// The tool tells the same thoughts apart.
fn told_by_the_tool(model: &Path, thoughts: &str) {
    let path = model.display().to_string();
    let flags =
        ["--device=vulkan", "--max-tokens=6", "--temperature=0", "--chat", "--prompt=in the", "--json"];
    let own = |more: &[&str]| {
        let made = common::run("halite", &[&["generate", &path], &flags[..], more].concat());
        let made: Value = serde_json::from_str(&made.stdout).unwrap();
        (made["reasoning_content"].clone(), made["text"].as_str().unwrap().trim().to_owned())
    };
    assert_eq!(own(&[]), (json!(thoughts), String::new()));
    assert_eq!(own(&["--reasoning-format=none"]), (Value::Null, thoughts.trim().to_owned()));
}

fn schemas_begin_behind_thoughts(server: &Server, mut request: Value, thoughts: &str) {
    // Where thoughts are not told apart, what follows a schema comes at once; where they are, behind them.
    let schema = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": [1, 2]}}});
    request["response_format"] = schema;
    let (_, made) = server.post("/v1/chat/completions", &request);
    let content = made["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(["1", "2"].contains(&content.trim()), "{made}");
    request["reasoning_format"] = "auto".into();
    let (_, made) = server.post("/v1/chat/completions", &request);
    assert_eq!(made["choices"][0]["message"]["reasoning_content"], json!(thoughts));
}

#[test]
fn prompts_are_a_part_of_answers() {
    let Some(server) = Server::start("llama.gguf", &["--parallel=2"]) else { return };
    let prompt = "the then";
    let plain = json!({"prompt": prompt, "max_tokens": 4, "temperature": 0, "logprobs": 2});
    let (_, made) = server.post("/v1/completions", &plain);
    let written = made["choices"][0].clone();
    let mut request = plain.clone();
    request["echo"] = true.into();
    let (status, echoed) = server.post("/v1/completions", &request);
    assert_eq!(status, 200, "{echoed}");
    let own = &echoed["choices"][0];
    assert_eq!(own["text"], format!("{prompt}{}", written["text"].as_str().unwrap()));
    let list = |choice: &Value, name: &str| choice["logprobs"][name].as_array().unwrap().clone();
    let count = made["usage"]["prompt_tokens"].as_u64().unwrap() as usize;
    for name in ["tokens", "token_logprobs", "top_logprobs"] {
        let (all, answer) = (list(own, name), list(&written, name));
        assert_eq!(all.len(), count + answer.len(), "{name}");
        if name == "tokens" {
            assert_eq!(all[count..], answer);
        }
    }
    let logprobs = list(own, "token_logprobs");
    assert!(logprobs[0].is_null() && list(own, "top_logprobs")[0].is_null(), "{own}");
    for (all, answer) in logprobs[count..].iter().zip(list(&written, "token_logprobs")) {
        assert!((all.as_f64().unwrap() - answer.as_f64().unwrap()).abs() < 1e-2, "{own} {written}");
    }
    // How likely a text is: each token as if it had been written, and nothing is written.
    let text = own["text"].clone();
    let asked = json!({"prompt": text, "max_tokens": 0, "echo": true, "logprobs": 0});
    let (_, scored) = server.post("/v1/completions", &asked);
    assert_eq!((&scored["choices"][0]["text"], &scored["usage"]["completion_tokens"]), (&text, &json!(0)));
    let streamed = json!({"prompt": prompt, "max_tokens": 4, "temperature": 0, "echo": true, "stream": true});
    let (_, events) = server.post("/v1/completions", &streamed);
    assert_eq!(self::streamed(&events, 0), own["text"].as_str().unwrap());
    let several = json!({"prompt": [prompt, "in"], "n": 2, "max_tokens": 1, "echo": true});
    let (_, made) = server.post("/v1/completions", &several);
    let texts = [0, 1, 2, 3].map(|place| made["choices"][place]["text"].as_str().unwrap().to_owned());
    assert!(
        texts[..2].iter().all(|text| text.starts_with(prompt))
            && texts[2..].iter().all(|text| text.starts_with("in"))
    );
}
