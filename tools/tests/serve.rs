//! The tool `halite serve`, asked over a socket, on the small models of `conformance/models/gguf_tiny.py`.
#![cfg(feature = "serve")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use crate::common;
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
};

use serde_json::{Value, json};

/// A server, which ends with the test.
pub(crate) struct Server {
    child: Child,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

impl Server {
    /// Starts one on a port that is free; `None` where there is no device.
    pub(crate) fn start(name: &str, flags: &[&str]) -> Option<Server> {
        let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compiler/tests/data/gguf").join(name);
        let mut command = common::command("halite");
        command.arg("serve").arg(model).args(flags);
        Server::begin(command)
    }

    pub(crate) fn begin(mut command: Command) -> Option<Server> {
        command.args(["--port=0", "--device=vulkan"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let Some((_, rest)) = line.split_once("http://") else {
            let mut text = String::new();
            child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
            assert!(text.contains("NOT_FOUND") || text.contains("UNAVAILABLE"), "{text}");
            println!("SKIPPED: no Vulkan device: {text}");
            child.wait().unwrap();
            return None;
        };
        let address = rest.trim().trim_end_matches("/v1").to_owned();
        // Nobody reads what it logs.
        let mut log = child.stderr.take().unwrap();
        thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Some(Server { child, address })
    }

    /// What a request gets: status and body.
    fn raw(&self, request: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        let request = format!("{request}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        _ = stream.read_to_string(&mut answer);
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json");
        let (status, body) = self.raw(&head, &body.to_string());
        (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
    }
}

#[test]
fn a_model_may_come_through_a_pipe() {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compiler/tests/data/gguf/qwen3.gguf");
    let mut command = common::command("halite");
    command.args(["serve", "-"]).stdin(std::fs::File::open(model).unwrap());
    let Some(server) = Server::begin(command) else { return };
    let (status, answer) = server.post("/v1/completions", &json!({"prompt": "the", "max_tokens": 2}));
    assert_eq!((status, &answer["usage"]["completion_tokens"]), (200, &json!(2)), "{answer}");
}

#[test]
fn a_body_that_says_to_be_too_large_is_not_waited_for() {
    let Some(server) = Server::start("qwen3.gguf", &["--max-body=1000"]) else { return };
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let head = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json";
    stream.write_all(format!("{head}\r\nContent-Length: 1000000\r\n\r\n").as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    assert!(line.starts_with("HTTP/1.1 413"), "{line}");
    let (status, _) = server.raw("HEAD /health HTTP/1.1\r\nHost: localhost", "");
    assert_eq!(status, 200);
    // Who sends all of it before reading anything reads the answer, too.
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream
        .write_all(format!("{head}\r\nContent-Length: 7000\r\n\r\n{}", " ".repeat(3000)).as_bytes())
        .unwrap();
    stream.write_all(" ".repeat(4000).as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    assert!(line.starts_with("HTTP/1.1 413"), "{line}");
    // Answers and refusals have numbers, for clients' logs.
    let numbers = ["/health", "/v1/nothing", "/v1/models"].map(|path| {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let head = BufReader::new(stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty());
        head.filter_map(|line| line.strip_prefix("x-request-id: ").map(str::to_owned)).collect::<Vec<_>>()
    });
    assert!(numbers.iter().all(|own| own.len() == 1) && numbers[0] != numbers[1], "{numbers:?}");
}

#[test]
fn text_comes_whole_and_in_pieces() {
    let Some(server) = Server::start("gemma3.gguf", &["--parallel=2"]) else { return };
    let (status, body) = server.raw("GET /v1/models HTTP/1.1\r\nHost: localhost", "");
    assert!(status == 200 && body.contains("\"gemma3\""), "{status} {body}");
    let request =
        json!({"messages": [{"role": "user", "content": "in the"}], "max_tokens": 6, "temperature": 0});
    let (status, whole) = server.post("/v1/chat/completions", &request);
    assert_eq!(status, 200, "{whole}");
    let text = whole["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
    let written = whole["usage"]["completion_tokens"].as_u64().unwrap();
    assert!(!text.is_empty() && (1..=6).contains(&written), "{whole}");
    // The same as the tool writes.
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compiler/tests/data/gguf/gemma3.gguf");
    let model = model.display().to_string();
    let own = common::run(
        "halite",
        &[
            "generate",
            &model,
            "--device=vulkan",
            "--max-tokens=6",
            "--temperature=0",
            "--chat",
            "--prompt=in the",
        ],
    );
    assert_eq!(own.stdout, format!("{text}\n"));
    let mut streamed = request.clone();
    (streamed["stream"], streamed["stream_options"]) = (json!(true), json!({"include_usage": true}));
    let (status, events) = server.post("/v1/chat/completions", &streamed);
    let events = events.as_str().unwrap().to_owned();
    let events: Vec<&str> = events.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    assert!(status == 200 && events.last() == Some(&"[DONE]"), "{events:?}");
    let events: Vec<Value> =
        events[..events.len() - 1].iter().map(|e| serde_json::from_str(e).unwrap()).collect();
    let pieces = events.iter().filter_map(|event| event["choices"][0]["delta"]["content"].as_str());
    assert_eq!(pieces.collect::<String>(), text);
    let counts = &events.last().unwrap()["usage"];
    assert_eq!(counts["completion_tokens"], written);
    assert!(counts["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap() > 0, "{counts}");
}

#[test]
fn texts_end_answers_and_several_are_asked_for_at_once() {
    let Some(server) = Server::start("gemma3.gguf", &["--parallel=2"]) else { return };
    let messages = json!([{"role": "user", "content": "in the"}]);
    let request = json!({"messages": messages, "max_tokens": 6, "temperature": 0});
    let (_, whole) = server.post("/v1/chat/completions", &request);
    let text = whole["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
    let end: String = text.chars().take(2).collect();
    let (_, ended) = server.post(
        "/v1/chat/completions",
        &json!({"messages": request["messages"], "max_tokens": 6, "temperature": 0, "stop": end}),
    );
    assert_eq!(
        (&ended["choices"][0]["message"]["content"], &ended["choices"][0]["finish_reason"]),
        (&json!(""), &json!("stop"))
    );
    thread::scope(|scope| {
        for seed in 0..6 {
            let server = &server;
            scope.spawn(move || {
                let asked = json!({"prompt": "the then", "max_tokens": 4, "seed": seed, "n": 2});
                let (status, made) = server.post("/v1/completions", &asked);
                assert!(status == 200 && made["choices"].as_array().unwrap().len() == 2, "{made}");
            });
        }
    });
}

#[test]
fn requests_at_the_same_time_share_steps_and_get_what_each_gets_alone() {
    let Some(server) = Server::start("llama.gguf", &["--parallel=3"]) else { return };
    let health = || {
        let (status, body) = server.raw("GET /health HTTP/1.1\r\nHost: localhost", "");
        assert_eq!(status, 200);
        serde_json::from_str::<Value>(&body).unwrap()["shared"].clone()
    };
    let ask = |number: u32, temperature: f64| {
        let prompt: Vec<u32> = (0..5 + number).map(|place| 259 + (place * 7 + number) % 20).collect();
        let body = json!({"prompt": prompt, "max_tokens": 60, "temperature": temperature, "seed": number});
        let (status, made) = server.post("/v1/completions", &body);
        assert_eq!(status, 200, "{made}");
        (made["choices"][0]["text"].clone(), made["usage"]["completion_tokens"].clone())
    };
    let temperatures = [0.0, 0.9];
    let all = || (0..6u32).flat_map(|number| temperatures.map(|temperature| (number, temperature)));
    let wanted: Vec<_> = all().map(|(number, temperature)| ask(number, temperature)).collect();
    assert_eq!(health(), json!({"steps": 0, "tokens": 0}), "each was alone");
    // More than there are places, so that some come while others write.
    let found: Vec<_> = thread::scope(|scope| {
        let ask = &ask;
        let started: Vec<_> =
            all().map(|(number, temperature)| scope.spawn(move || ask(number, temperature))).collect();
        started.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(found, wanted);
    let shared = health();
    let (steps, tokens) = (shared["steps"].as_u64().unwrap(), shared["tokens"].as_u64().unwrap());
    assert!(steps > 0 && tokens >= 2 * steps && tokens <= 3 * steps, "{shared}");
}

#[test]
fn a_client_that_is_slow_or_gone_does_not_hold_others_up() {
    let Some(server) = Server::start("llama.gguf", &["--parallel=2"]) else { return };
    let body = json!({"prompt": [260, 261, 262], "max_tokens": 100, "stream": true, "temperature": 0.9});
    let body = body.to_string();
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let head = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json";
    let request = format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).unwrap();
    let ask = || server.post("/v1/completions", &json!({"prompt": "the", "max_tokens": 20})).0;
    // One reads nothing of its answer, then leaves in the middle of it.
    assert_eq!(ask(), 200);
    drop(stream);
    assert_eq!(ask(), 200);
    assert_eq!(ask(), 200);
}

/// A model with an encoder, with caches as they are and in blocks.
#[test]
fn prompts_of_an_encoder_get_the_answers_of_llama_cpp() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compiler/tests/data/gguf");
    for (name, flags) in [
        ("t5", &["--parallel=2"][..]),
        ("t5-caches", &["--parallel=2"][..]),
        ("t5-caches", &["--cache-type-k=q8_0", "--cache-type-v=q8_0"][..]),
        ("t5-caches", &["--cache-type-k=q4_0", "--cache-type-v=q4_0"][..]),
    ] {
        let json = std::fs::read(data.join(format!("{name}.json"))).unwrap();
        let json: Value = serde_json::from_slice(&json).unwrap();
        let (model, greedy) = (format!("{name}.gguf"), json["greedy"].as_array().unwrap());
        let Some(server) = Server::start(&model, &[flags, &["--context=48"]].concat()) else { return };
        let ask = |prompt: &Value, count: usize| {
            let body = json!({"prompt": prompt, "max_tokens": count, "temperature": 0});
            let (status, made) = server.post("/v1/completions", &body);
            assert_eq!(status, 200, "{made}");
            let choice = &made["choices"][0];
            (
                choice["text"].as_str().unwrap().to_owned(),
                choice["finish_reason"].clone(),
                made["usage"].clone(),
            )
        };
        let (text, why, usage) = ask(&json["prompt"], 16);
        let read = json["prompt"].as_array().unwrap().len();
        assert_eq!(usage["prompt_tokens"], read, "{usage}");
        if flags == ["--parallel=2"] {
            assert_eq!((&text, &why), (&text_of(greedy), &json!("length")), "{usage}");
            assert_eq!(usage["completion_tokens"], greedy.len());
            assert!(text.starts_with(&ask(&json["prompt"], 5).0));
        }
        // Two prompts in turn and at the same time get each its own answer.
        let other = json!([5, 260, 9, 270]);
        let wanted = ask(&other, 9).0;
        assert_eq!(ask(&json["prompt"], 16).0, text);
        thread::scope(|scope| {
            for (prompt, count, wanted) in [(&other, 9, &wanted), (&json["prompt"], 16, &text)].repeat(2) {
                let ask = &ask;
                scope.spawn(move || assert_eq!(ask(prompt, count).0, *wanted));
            }
        });
        let refused = |path: &str, body: &Value, what: &str| {
            let (status, told) = server.post(path, body);
            let text = told["error"]["message"].as_str().unwrap_or_default();
            assert!(status == 400 && text.contains(what), "{status} {told}");
        };
        refused("/v1/completions", &json!({"prompt": vec![5; 49]}), "49 tokens");
        refused("/v1/embeddings", &json!({"input": "x"}), "makes no vectors");
    }
}

/// The text of tokens of the models that `conformance/models/gguf_tiny.py` gives bytes and pieces.
fn text_of(tokens: &[Value]) -> String {
    let pieces = " |t|h|e|n|i|r| t|he| the|in| in|  |then|er|wor|o|w|l|ll".split('|').collect::<Vec<_>>();
    let bytes = |token: &Value| match token.as_u64().unwrap() {
        281 => b"\n\n".to_vec(),
        byte @ 3..259 => vec![(byte - 3) as u8],
        piece => pieces[piece as usize - 259].as_bytes().to_vec(),
    };
    String::from_utf8_lossy(&tokens.iter().flat_map(bytes).collect::<Vec<u8>>()).into_owned()
}

#[test]
fn wrong_requests_are_refused_as_openai_does() {
    let Some(server) = Server::start("llama.gguf", &["--max-body=2000"]) else { return };
    let refused = |path: &str, body: Value, status: u16, what: &str| {
        let (own, answer) = server.post(path, &body);
        let text = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(own == status && text.contains(what), "{path} {body}: {own} {answer}");
    };
    refused("/v1/completions", json!({}), 400, "'prompt' is missing");
    refused("/v1/completions", json!({"prompt": "x", "temperature": "hot"}), 400, "temperature");
    refused("/v1/completions", json!({"prompt": "x", "model": "gpt-4"}), 404, "there is: llama");
    refused("/v1/completions", json!({"prompt": [999_999]}), 400, "there is no token");
    refused("/v1/completions", json!({"prompt": "x".repeat(3000)}), 413, "--max-body");
    refused("/v1/completions", json!({"prompt": "x ".repeat(600)}), 400, "there is room for");
    refused("/v1/embeddings", json!({"input": "x"}), 400, "makes no vectors");
    refused("/v1/nothing", json!({}), 404, "/v1/chat/completions");
    let json = "\r\nContent-Type: application/json";
    let (status, _) = server.raw(&format!("GET /v1/completions HTTP/1.1\r\nHost: localhost{json}"), "");
    assert_eq!(status, 405);
    // The second is no text of HTTP's.
    for host in ["evil.example", "\u{e9}vil"] {
        let (status, _) = server.raw(&format!("POST /v1/completions HTTP/1.1\r\nHost: {host}{json}"), "{}");
        assert_eq!(status, 403, "{host}");
    }
    let plain = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain";
    assert_eq!(server.raw(plain, "{}").0, 415);
    let (status, _) = server.raw(&format!("POST /v1/completions HTTP/1.1\r\nHost: localhost{json}"), "{");
    assert_eq!(status, 400);
}

#[test]
fn a_model_without_a_template_has_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("template.jinja");
    std::fs::write(&file, "{{ messages[0]['content'] }}:").unwrap();
    let own = format!("--chat-template={}", file.display());
    let marked = "<|im_start|>user\nthe<|im_end|>\n<|im_start|>assistant\n";
    for (flags, prompt) in
        [(&[][..], marked), (&["--chat-template=chatml"][..], marked), (&[&*own][..], "the:")]
    {
        let Some(server) = Server::start("llama.gguf", flags) else { return };
        // As clients ask whose address has no version.
        let asked =
            json!({"messages": [{"role": "user", "content": "the"}], "n_predict": 1.0, "cache_prompt": true});
        let (status, answer) = server.post("/chat/completions", &asked);
        let (_, plain) = server.post("/completions", &json!({"prompt": prompt, "max_tokens": 1}));
        let count = |answer: &Value| answer["usage"]["prompt_tokens"].as_u64();
        assert_eq!((status, count(&answer)), (200, count(&plain)), "{flags:?}: {answer} {plain}");
        assert_eq!(answer["usage"]["completion_tokens"], 1);
    }
}

#[test]
fn others_need_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "secret\n").unwrap();
    let flag = format!("--token-file={}", file.display());
    let Some(server) = Server::start("llama.gguf", &["--host=0.0.0.0", &flag]) else { return };
    let ask = |more: &str| server.raw(&format!("GET /v1/models HTTP/1.1\r\nHost: any.example{more}"), "").0;
    assert_eq!(ask(""), 401);
    assert_eq!(ask("\r\nAuthorization: Bearer secres"), 401);
    assert_eq!(ask("\r\nAuthorization: Bearer secret"), 200);
    let told = common::run("halite", &["serve", "m.gguf", "--host=0.0.0.0"]);
    assert!(told.code == 2 && told.stderr.contains("--token-file"), "{}", told.stderr);
}

#[cfg(unix)]
#[test]
fn a_server_ends_when_it_is_told_to() {
    let Some(mut server) = Server::start("llama.gguf", &[]) else { return };
    let id = server.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let status = server.child.wait().unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(TcpStream::connect(&server.address).is_err());
}
