//! Text generation on a device, beside llama.cpp. The models: `conformance/models/gguf_tiny.py`.
#![cfg(feature = "text")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod batches;
mod common;
mod condensed;
mod drafts;
mod encoders;
mod matrix;
mod recurrent;
mod schemas;

use std::{
    fs,
    ops::ControlFlow,
    sync::{Arc, Mutex, mpsc},
    thread,
};

use common::{builder, device, repo};
use halite::{
    CacheType, CancelToken, ChooseOn, Device, ErrorKind, Generator, GeneratorOptions, Message, Progress,
    RunOptions, Sampler, Sampling, Sequence, Stage, Stop,
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
        // 40 tokens: a piece of 32, and one of 8.
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

/// The same model with tokens chosen on the host and on the device.
fn both(device: &Device, name: &str) -> [Generator; 2] {
    [ChooseOn::Host, ChooseOn::Device].map(|place| {
        let options = GeneratorOptions::new().context(64).choose_on(place);
        let model = repo(&format!("compiler/tests/data/gguf/{name}.gguf"));
        builder(device).model(model).generator(options).unwrap()
    })
}

/// Tokens of `most` that a sequence writes, until one is told `last`.
fn written(
    sequence: &mut Sequence,
    sampler: &mut Sampler,
    most: usize,
    last: usize,
) -> (Vec<u32>, halite::Result<Stop>) {
    let mut told = Vec::new();
    let stop = sequence.generate(sampler, most, &RunOptions::new(), |piece| {
        told.push(piece.token);
        if told.len() == last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    (told, stop)
}

#[test]
fn devices_choose_what_the_host_chooses() {
    let Some(device) = device() else { return };
    let options = RunOptions::new();
    let wide = Sampling { top_k: 60, top_p: 1.0, min_p: 0.0, temperature: 1.7, ..Sampling::default() };
    let narrow = Sampling { top_k: 3, top_p: 0.5, min_p: 0.3, ..Sampling::default() };
    // These are the host's wherever they are asked for.
    let all = Sampling { top_k: 0, ..Sampling::default() };
    let penalized = Sampling { repeat_penalty: 1.3, ..Sampling::greedy() };
    for name in ["llama", "gemma3", "lfm2"] {
        let [host, chosen] = both(&device, name);
        let prompt: Vec<u32> = (0..40).map(|place| (place * 37 + 5) % 250 + 3).collect();
        for sampling in [
            Sampling::greedy(),
            Sampling::default(),
            wide.clone(),
            narrow.clone(),
            all.clone(),
            penalized.clone(),
        ] {
            for seed in 0..2 {
                let [mut here, mut there] = [&host, &chosen].map(|generator| generator.sequence().unwrap());
                let sampling = Sampling { seed, ..sampling.clone() };
                let [mut one, mut other] = [(); 2].map(|()| Sampler::new(sampling.clone()));
                for sequence in [&mut here, &mut there] {
                    sequence.ignore_end(seed % 2 == 1);
                    sequence.prompt(&prompt, &options).unwrap();
                }
                // To its end, then a caller who has enough, then on from there; the random numbers stay in step.
                for (most, last) in [(7, 99), (9, 3), (1, 99), (3, 3), (4, 99)] {
                    let (wanted, stop) = written(&mut here, &mut one, most, last);
                    let (found, ended) = written(&mut there, &mut other, most, last);
                    assert_eq!(found, wanted, "{name} {sampling:?}");
                    assert_eq!(ended.unwrap(), stop.unwrap());
                    assert_eq!(there.tokens(), here.tokens());
                }
                assert_eq!(
                    chosen.session().loaded_versions(),
                    1,
                    "of one module, with one copy of the weights"
                );
                there.prompt(&[1, 2, 3], &options).unwrap();
                here.prompt(&[1, 2, 3], &options).unwrap();
                near(there.logits(), here.logits());
            }
        }
    }
}

#[test]
fn contexts_that_are_full_end_texts_of_devices() {
    let Some(device) = device() else { return };
    let [_, chosen] = both(&device, "llama");
    let mut sequence = chosen.sequence().unwrap();
    sequence.ignore_end(true);
    sequence.prompt(&[3; 60], &RunOptions::new()).unwrap();
    let (told, stop) = written(&mut sequence, &mut Sampler::new(Sampling::greedy()), 50, 99);
    assert_eq!((told.len(), stop.unwrap(), sequence.tokens().len()), (4, Stop::Context, 64));
    let empty = chosen.sequence().unwrap().generate(
        &mut Sampler::new(Sampling::greedy()),
        5,
        &RunOptions::new(),
        |_| ControlFlow::Continue(()),
    );
    assert_eq!(empty.unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn texts_of_devices_are_cancelled_and_go_on() {
    let Some(device) = device() else { return };
    for name in ["llama", "lfm2"] {
        cancelled_and_on(&device, name);
    }
}

fn cancelled_and_on(device: &Device, name: &str) {
    let [host, chosen] = both(device, name);
    let [mut here, mut there] = [&host, &chosen].map(|generator| generator.sequence().unwrap());
    for sequence in [&mut here, &mut there] {
        sequence.ignore_end(true);
        sequence.prompt(&[5, 9, 2, 7], &RunOptions::new()).unwrap();
    }
    let cancel = CancelToken::new();
    let mut count = 0;
    let mut sampler = Sampler::new(Sampling::greedy());
    let failed = there.generate(&mut sampler, 40, &RunOptions::new().cancel(&cancel), |_| {
        count += 1;
        if count == 5 {
            cancel.cancel();
        }
        ControlFlow::Continue(())
    });
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::Cancelled);
    // What is there is right, and the sequence is usable.
    let length = there.tokens().len();
    assert!((8..=9).contains(&length), "{length}");
    written(&mut here, &mut Sampler::new(Sampling::greedy()), length - 4, 99).1.unwrap();
    assert_eq!(there.tokens(), here.tokens());
    let (found, _) = written(&mut there, &mut sampler, 6, 99);
    assert_eq!(found, written(&mut here, &mut Sampler::new(Sampling::greedy()), 6, 99).0);
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
    let stopped = CancelToken::new();
    stopped.cancel();
    let long = [Message::new("user", "in the ".repeat(100_000))];
    let error = generator.chat_with(&long, &RunOptions::new().cancel(&stopped)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    assert!(error.message().contains("before the work began"), "{error}");
    let wrong = builder(&device).model(common::digits()).generator(GeneratorOptions::new()).unwrap_err();
    assert!(wrong.message().contains("has no tokenizer"), "{wrong}");
}

/// The small Gemma with another chat template, in as many bytes but for whole alignments of its tensors.
fn with_template(source: &str) -> Vec<u8> {
    const KEY: &[u8] = b"tokenizer.chat_template\x08\0\0\0";
    let mut file = fs::read(repo("compiler/tests/data/gguf/gemma3.gguf")).unwrap();
    let at = file.windows(KEY.len()).position(|part| part == KEY).unwrap() + KEY.len();
    let length = u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
    let mut template = source.to_owned();
    while template.len() % 32 != length % 32 {
        template.push(' ');
    }
    let value = [&(template.len() as u64).to_le_bytes(), template.as_bytes()].concat();
    file.splice(at..at + 8 + length, value);
    file
}

#[test]
fn chat_templates_are_stopped_at_work() {
    let Some(device) = device() else { return };
    let source = "{% for a in range(9999) %}{% for b in range(9999) %}{{ b }}{% endfor %}{% endfor %}";
    let options = GeneratorOptions::new().context(64);
    let generator = builder(&device).model(with_template(source)).generator(options).unwrap();
    let messages = [Message::new("user", "in the")];
    // Nobody stops it, and it takes more than it may.
    let error = generator.chat(&messages).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
    assert!(error.message().contains("line 1: takes more than 8"), "{error}");
    // Another thread stops it when it is told that the template is at work, which waits until it has.
    let token = CancelToken::new();
    let (begun, wait) = mpsc::channel();
    let (stopped, go_on) = mpsc::channel();
    let other = {
        let token = token.clone();
        thread::spawn(move || {
            wait.recv().unwrap();
            token.cancel();
            stopped.send(()).unwrap();
        })
    };
    let begun = Mutex::new((begun, go_on));
    let told = Arc::new(Mutex::new(Vec::new()));
    let watched = {
        let told = told.clone();
        move |progress: Progress<'_>| {
            assert_eq!((progress.stage, progress.detail), (Stage::Other, "the chat template"));
            told.lock().unwrap().push((progress.done, progress.total));
            // The first time it has made one step.
            if progress.done > 1 {
                let (begun, go_on) = &*begun.lock().unwrap();
                begun.send(()).unwrap();
                go_on.recv().unwrap();
            }
        }
    };
    let bounds = RunOptions::new().cancel(&token).progress(watched);
    let error = generator.chat_with(&messages, &bounds).unwrap_err();
    other.join().unwrap();
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    assert!(error.message().contains("while the chat template was at work"), "{error}");
    // It is asked first, and not again once it was stopped; there were steps left.
    let told = told.lock().unwrap();
    assert!(told[0].0 <= 1 && told.iter().filter(|(done, _)| *done > 1).count() == 1, "{told:?}");
    assert!(told.iter().all(|(done, total)| done < total && *total == told[0].1), "{told:?}");
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
    // More than there is room for changes nothing.
    let refused = sequence.append_told(&[5], &options, |_, _| ()).unwrap_err();
    assert!(refused.message().contains("do not fit a context of 100"), "{refused}");
    assert_eq!(sequence.tokens(), tokens);
    let other = builder(&device).model(repo("compiler/tests/data/gguf/llama.gguf"));
    let other = other.generator(GeneratorOptions::new().context(64)).unwrap();
    // One by one, with the same logits.
    let mut told = 0;
    let mut single = other.sequence().unwrap();
    let each = |token: u32, logits: &[f32]| {
        assert_eq!((token, logits.is_empty()), (tokens[told], told == 0));
        told += 1;
    };
    single.append_told(&tokens[..9], &options, each).unwrap();
    assert_eq!(told, 9);
    let refused = other.sequence().unwrap().score(&tokens[..2], &options).unwrap_err();
    assert!(refused.message().contains("GeneratorOptions::scoring"), "{refused}");
}
