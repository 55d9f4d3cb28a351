//! Text generation on a device, beside llama.cpp. The models: `conformance/models/gguf_tiny.py`.
#![cfg(feature = "text")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use std::{fs, ops::ControlFlow};

use common::{builder, device, repo};
use halite::{
    CacheType, Device, ErrorKind, Generator, GeneratorOptions, Message, RunOptions, Sampler, Sampling, Stop,
};

/// A model with what llama.cpp made of it.
struct Case {
    generator: Generator,
    prompt: Vec<u32>,
    logits: Vec<f32>,
    greedy: Vec<u32>,
}

fn case(device: &Device, name: &str) -> Case {
    let path = |end: &str| repo(&format!("compiler/tests/data/gguf/{name}.{end}"));
    let json: serde_json::Value = serde_json::from_slice(&fs::read(path("json")).unwrap()).unwrap();
    let tokens = |key: &str| {
        let all = json[key].as_array().unwrap().iter();
        all.map(|token| token.as_u64().unwrap() as u32).collect()
    };
    let logits = json["logits"].as_array().unwrap().iter().map(|logit| logit.as_f64().unwrap() as f32);
    let options = GeneratorOptions::new().context(64);
    let generator = builder(device).model(path("gguf")).generator(options).unwrap();
    Case { generator, prompt: tokens("prompt"), logits: logits.collect(), greedy: tokens("greedy") }
}

fn near(found: &[f32], wanted: &[f32]) {
    let largest = found.iter().zip(wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(found.len() == wanted.len() && largest < 0.03, "{largest}");
}

#[test]
fn prompts_and_tokens_are_those_of_llama_cpp() {
    let Some(device) = device() else { return };
    let options = RunOptions::new();
    for name in ["llama", "gemma3", "qwen3moe"] {
        let Case { generator, prompt, logits, greedy } = case(&device, name);
        let mut sequence = generator.sequence().unwrap();
        // 40 tokens: a piece of 32, and a filled one.
        assert_eq!(sequence.prompt(&prompt, &options).unwrap(), 0);
        near(sequence.logits(), &logits);
        let mut told = Vec::new();
        let mut sampler = Sampler::new(Sampling::greedy());
        let stop = sequence.generate(&mut sampler, 16, &options, |piece| {
            told.push(piece.token);
            ControlFlow::Continue(())
        });
        let ended = greedy.iter().position(|token| generator.is_end(*token));
        assert_eq!(stop.unwrap(), if ended.is_some() { Stop::End } else { Stop::Length });
        assert_eq!(told, greedy[..ended.unwrap_or(greedy.len())], "{name}");
        // One by one.
        let mut single = generator.sequence().unwrap();
        prompt.iter().for_each(|token| single.append(&[*token], &options).unwrap());
        near(single.logits(), &logits);
        assert_eq!(generator.session().loaded_versions(), 1, "all calls share the weights of one version");
    }
}

#[test]
fn sequences_are_reused_copied_and_saved() {
    let Some(device) = device() else { return };
    let options = RunOptions::new();
    let Case { generator, prompt, logits, .. } = case(&device, "llama");
    let mut sequence = generator.sequence().unwrap();
    let mut other = prompt.clone();
    other[30] = prompt[30] + 1;
    sequence.prompt(&other, &options).unwrap();
    assert_eq!(sequence.prompt(&prompt, &options).unwrap(), 30, "what is common is kept");
    near(sequence.logits(), &logits);
    assert_eq!(sequence.prompt(&prompt, &options).unwrap(), 40, "nothing is computed");
    let saved = sequence.save().unwrap();
    let mut copy = sequence.fork().unwrap();
    sequence.append(&[5, 6, 7], &options).unwrap();
    near(copy.logits(), &logits);
    assert_eq!(copy.tokens(), prompt);
    sequence.load(&saved).unwrap();
    assert_eq!(sequence.tokens(), prompt);
    let mut sampler = Sampler::new(Sampling::greedy());
    let next = sequence.choose(&mut sampler, &options).unwrap();
    near(sequence.logits(), &logits);
    assert_eq!(next, copy.choose(&mut sampler, &options).unwrap());
    sequence.truncate(10);
    sequence.append(&prompt[10..], &options).unwrap();
    near(sequence.logits(), &logits);
    for wrong in [&b"no"[..], &saved[..20], &saved[..saved.len() - 9]] {
        assert_eq!(copy.load(wrong).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}

#[test]
fn caches_in_blocks_are_those_of_llama_cpp() {
    let Some(device) = device() else { return };
    let options = RunOptions::new();
    let path = |name: &str| repo(&format!("compiler/tests/data/gguf/{name}"));
    let json: serde_json::Value = serde_json::from_slice(&fs::read(path("qwen3.json")).unwrap()).unwrap();
    let numbers = |list: &serde_json::Value| -> Vec<f64> {
        list.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
    };
    let prompt: Vec<u32> = numbers(&json["prompt"]).into_iter().map(|token| token as u32).collect();
    let made = |keys, values| {
        let wanted = GeneratorOptions::new().context(128).cache_types(keys, values);
        builder(&device).model(path("qwen3.gguf")).generator(wanted).unwrap()
    };
    // What a logit may be off by, as the root of the mean square. llama.cpp rounds queries to blocks, too; logits are up to 12.
    let types = [(CacheType::F16, 32 * 2, 0.01), (CacheType::Q8_0, 36, 0.04), (CacheType::Q4_0, 20, 0.15)];
    let mut saved = Vec::new();
    for (kind, row, most) in types {
        let wanted = numbers(&json["caches"][kind.name()]);
        let generator = made(kind, kind);
        let off = |logits: &[f32]| {
            let squares = logits.iter().zip(&wanted).map(|(a, b)| (f64::from(*a) - b).powi(2)).sum::<f64>();
            let off = (squares / wanted.len() as f64).sqrt();
            assert!(logits.len() == wanted.len() && off < most, "{kind}: {off}");
        };
        let mut sequence = generator.sequence().unwrap();
        sequence.prompt(&prompt, &options).unwrap();
        off(sequence.logits());
        // Keys and values of two layers, a head each.
        assert_eq!(sequence.byte_len(), 2 * 2 * 128 * row, "{kind}");
        let mut single = generator.sequence().unwrap();
        prompt.iter().for_each(|token| single.append(&[*token], &options).unwrap());
        off(single.logits());
        saved.push(sequence.save().unwrap());
    }
    let both = made(CacheType::Q8_0, CacheType::Q4_0);
    let mut sequence = both.sequence().unwrap();
    sequence.prompt(&prompt, &options).unwrap();
    assert_eq!(sequence.byte_len(), 2 * 128 * (36 + 20));
    for other in &saved {
        assert_eq!(sequence.load(other).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    let wanted = GeneratorOptions::new().context(64).cache_types(CacheType::F16, CacheType::Q8_0);
    let wrong = builder(&device).model(path("llama.gguf")).generator(wanted).unwrap_err();
    assert!(wrong.kind() == ErrorKind::Unsupported && wrong.message().contains("16 elements"), "{wrong}");
}

#[test]
fn limits_are_told() {
    let Some(device) = device() else { return };
    let options = RunOptions::new();
    let Case { generator, prompt, .. } = case(&device, "gemma3");
    let mut sequence = generator.sequence().unwrap();
    let refused = |error: halite::Error, text: &str| {
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.message().contains(text), "{error}");
    };
    let mut sampler = Sampler::new(Sampling::greedy());
    refused(sequence.choose(&mut sampler, &options).unwrap_err(), "give it a prompt");
    refused(sequence.prompt(&[], &options).unwrap_err(), "at least one token");
    refused(sequence.prompt(&[9999], &options).unwrap_err(), "there is no token 9999");
    refused(sequence.prompt(&[5; 65], &options).unwrap_err(), "do not fit a context of 64");
    // The last places of a context, where no filled piece fits.
    let full: Vec<u32> = prompt.iter().chain(&prompt).copied().take(61).collect();
    sequence.prompt(&full, &options).unwrap();
    let mut sampler = Sampler::new(Sampling { seed: 3, temperature: 3.0, ..Sampling::default() });
    let mut count = 0;
    let stop = sequence.generate(&mut sampler, 100, &options, |_| {
        count += 1;
        ControlFlow::Continue(())
    });
    assert!(matches!(stop.unwrap(), Stop::Context | Stop::End) && count <= 3);
    let prompt = generator.chat(&[Message::new("user", "in the")]).unwrap();
    assert!(prompt.ends_with("<|turn|>assistant\n"), "{prompt}");
    let wrong = builder(&device).model(common::digits()).generator(GeneratorOptions::new()).unwrap_err();
    assert!(wrong.message().contains("is no GGUF file"), "{wrong}");
}

#[test]
fn vectors_of_texts_are_those_of_llama_cpp() {
    let Some(device) = device() else { return };
    let options = RunOptions::new();
    let path = |end: &str| repo(&format!("compiler/tests/data/gguf/bert.{end}"));
    let json: serde_json::Value = serde_json::from_slice(&fs::read(path("json")).unwrap()).unwrap();
    let wanted: Vec<f32> =
        json["vector"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32).collect();
    let embedder = builder(&device).model(path("gguf")).embedder().unwrap();
    let tokens = embedder.tokenize(json["text"].as_str().unwrap());
    near(&embedder.embed_raw(&tokens, &options).unwrap(), &wanted);
    let vector = embedder.embed(&tokens, &options).unwrap();
    assert!((vector.iter().map(|x| x * x).sum::<f32>() - 1.0).abs() < 1e-4);
    // Texts of many lengths share what is compiled.
    let texts = ["the", "un play able", "a b c d e f g h i j k l m n o p q r s t u v w x y z", "123"];
    for text in texts.iter().cycle().take(12) {
        embedder.embed(&embedder.tokenize(text), &options).unwrap();
    }
    assert!(embedder.session().loaded_versions() <= 6, "{}", embedder.session().loaded_versions());
    for (tokens, what) in
        [(vec![], "0 tokens"), (vec![5; 129], "takes 1 to 128"), (vec![9999], "no token 9999")]
    {
        assert!(embedder.embed(&tokens, &options).unwrap_err().message().contains(what));
    }
    let wrong = builder(&device).model(path("gguf")).generator(GeneratorOptions::new()).unwrap_err();
    assert!(wrong.message().contains("is an encoder"), "{wrong}");
}

#[test]
fn scores_are_those_of_logits() {
    let Some(device) = device() else { return };
    let options = RunOptions::new();
    let model = repo("compiler/tests/data/gguf/llama.gguf");
    let generator =
        builder(&device).model(model).generator(GeneratorOptions::new().context(100).scoring(true)).unwrap();
    let tokens: Vec<u32> = (0..100).map(|i| 3 + i * 7 % 250).collect();
    let mut sequence = generator.sequence().unwrap();
    // 64 in a call, and what has no room for one.
    let scores = sequence.score(&tokens, &options).unwrap();
    assert_eq!((scores.len(), scores[0]), (100, 0.0));
    let mut single = generator.sequence().unwrap();
    for (place, token) in tokens.iter().enumerate() {
        if [1, 30, 63, 64, 65, 99].contains(&place) {
            let logits = single.logits();
            let largest = logits.iter().copied().fold(f32::MIN, f32::max);
            let sum: f32 = logits.iter().map(|logit| (logit - largest).exp()).sum();
            let wanted = logits[*token as usize] - largest - sum.ln();
            assert!((scores[place] as f32 - wanted).abs() < 0.03, "{place}: {} {wanted}", scores[place]);
        }
        single.append(&[*token], &options).unwrap();
    }
    let other = builder(&device).model(repo("compiler/tests/data/gguf/llama.gguf"));
    let other = other.generator(GeneratorOptions::new().context(64)).unwrap();
    let refused = other.sequence().unwrap().score(&tokens[..2], &options).unwrap_err();
    assert!(refused.message().contains("GeneratorOptions::scoring"), "{refused}");
}
