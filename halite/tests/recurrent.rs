//! Models whose layers keep a state of all tokens so far: what cannot be cut back is computed anew. The models:
//! `conformance/models/gguf_families.py`.

use std::{fs, ops::ControlFlow};

use halite::{
    ChooseOn, Device, ErrorKind, Generator, GeneratorOptions, Next, RunOptions, Sampler, Sampling, Sequence,
};

use crate::common::{builder, device, repo};

/// One for each kind of state.
const NAMES: [&str; 12] = [
    "lfm2",
    "granitehybrid",
    "falcon-h1",
    "qwen35",
    "mamba",
    "jamba",
    "plamo2",
    "kimi-linear",
    "qwen4exp",
    "glm5-next",
    "minimax-01",
    "bailingmoe3",
];

fn path(name: &str, end: &str) -> std::path::PathBuf {
    repo(&format!("compiler/tests/data/gguf/{name}.{end}"))
}

fn generator(device: &Device, name: &str, options: GeneratorOptions) -> Generator {
    builder(device).model(path(name, "gguf")).generator(options.context(64)).unwrap()
}

fn furthest(found: &[f32], wanted: &[f32]) -> f32 {
    assert_eq!(found.len(), wanted.len());
    let apart = found.iter().zip(wanted).map(|(a, b)| (a - b).abs());
    apart.fold(0.0, |most, apart| if apart.is_nan() { f32::NAN } else { apart.max(most) })
}

fn near(what: &str, found: &[f32], wanted: &[f32], most: f32) {
    let largest = furthest(found, wanted);
    assert!(largest < most, "{what}: {largest}");
}

/// Logits behind some tokens in a sequence of their own.
fn fresh(generator: &Generator, tokens: &[u32]) -> Vec<f32> {
    let mut sequence = generator.sequence().unwrap();
    sequence.prompt(tokens, &RunOptions::new()).unwrap();
    sequence.logits().to_vec()
}

#[test]
fn states_are_those_of_llama_cpp_in_pieces_and_one_by_one() {
    let Some(device) = device() else { return };
    let options = RunOptions::new();
    for name in NAMES {
        let json: serde_json::Value = serde_json::from_slice(&fs::read(path(name, "json")).unwrap()).unwrap();
        let list = |key: &str| json[key].as_array().unwrap().clone();
        let tokens = |key: &str| -> Vec<u32> {
            list(key).iter().map(|token| token.as_u64().unwrap() as u32).collect()
        };
        let logits = |key: &str| -> Vec<f32> {
            list(key).iter().map(|logit| logit.as_f64().unwrap() as f32).collect()
        };
        let generator = generator(&device, name, GeneratorOptions::new());
        let (prompt, further) = (tokens("prompt"), tokens("further"));
        let mut sequence = generator.sequence().unwrap();
        sequence.prompt(&prompt, &options).unwrap();
        near(name, sequence.logits(), &logits("logits"), 0.03);
        further.iter().for_each(|token| sequence.append(&[*token], &options).unwrap());
        near(name, sequence.logits(), &logits("last"), 0.03);
        // Calls that are filled up leave the same state as those of one token.
        for length in [2, 5, 7, 13, 30, 39] {
            let mut single = generator.sequence().unwrap();
            prompt[..length].iter().for_each(|token| single.append(&[*token], &options).unwrap());
            let mut whole = generator.sequence().unwrap();
            whole.prompt(&prompt[..length], &options).unwrap();
            near(name, whole.logits(), single.logits(), 0.02);
            for sequence in [&mut single, &mut whole] {
                sequence.append(&further[..1], &options).unwrap();
            }
            near(name, whole.logits(), single.logits(), 0.02);
        }
    }
}

/// More models, in a folder that a variable names, such as those that `conformance/models/gguf_plamo2.py` draws.
#[test]
fn answers_of_named_models_are_those_of_llama_cpp() {
    let Some(folder) = std::env::var_os("HALITE_GGUF_MODELS") else {
        eprintln!("SKIPPED: HALITE_GGUF_MODELS names no folder");
        return;
    };
    let Some(device) = device() else { return };
    let mut all: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.retain(|path| path.extension().is_some_and(|end| end == "gguf"));
    all.sort();
    let wrong: Vec<_> = all.iter().filter(|path| !is_llama_cpps(&device, path)).collect();
    assert!(!all.is_empty() && wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), all.len());
}

/// Whether logits are llama.cpp's behind a prompt, and behind tokens that come one by one, of one sequence alone and of two together.
fn is_llama_cpps(device: &Device, path: &std::path::Path) -> bool {
    let (json, options) = (fs::read(path.with_extension("json")).unwrap(), RunOptions::new());
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let tokens = |key: &str| -> Vec<u32> { serde_json::from_value(json[key].clone()).unwrap() };
    let logits = |key: &str| -> Vec<f32> { serde_json::from_value(json[key].clone()).unwrap() };
    let given = GeneratorOptions::new().context(64).batch(2);
    let generator = builder(device).model(path).generator(given).unwrap();
    let (further, wanted) = (tokens("further"), logits("last"));
    let mut sequence = generator.sequence().unwrap();
    sequence.prompt(&tokens("prompt"), &options).unwrap();
    let mut apart = vec![furthest(sequence.logits(), &logits("logits"))];
    let (mut copy, saved) = (sequence.fork().unwrap(), sequence.save().unwrap());
    further.iter().for_each(|token| sequence.append(&[*token], &options).unwrap());
    apart.push(furthest(sequence.logits(), &wanted));
    sequence.load(&saved).unwrap();
    for token in &further {
        generator.append_each(&mut [(&mut sequence, *token), (&mut copy, *token)], &options).unwrap();
    }
    apart.extend([&sequence, &copy].map(|own| furthest(own.logits(), &wanted)));
    println!("{}: {apart:?}", path.display());
    apart.iter().all(|apart| *apart < 0.08)
}

#[test]
fn what_is_taken_back_is_computed_anew() {
    let Some(device) = device() else { return };
    let options = RunOptions::new();
    let text: Vec<u32> = (0..40).map(|place| (place * 37 + 5) % 250 + 3).collect();
    for name in NAMES {
        let generator = generator(&device, name, GeneratorOptions::new());
        let mut sequence = generator.sequence().unwrap();
        sequence.prompt(&text[..30], &options).unwrap();
        assert_eq!(sequence.prompt(&text, &options).unwrap(), 30, "what goes on is kept");
        near(name, sequence.logits(), &fresh(&generator, &text), 0.02);
        // Another text with the same beginning.
        let other = [&text[..20], &[9, 8, 7]].concat();
        assert_eq!(sequence.prompt(&other, &options).unwrap(), 0, "a state cannot be cut back");
        near(name, sequence.logits(), &fresh(&generator, &other), 0.02);
        sequence.truncate(10);
        sequence.append(&text[10..25], &options).unwrap();
        near(name, sequence.logits(), &fresh(&generator, &text[..25]), 0.02);
        // Saved, copied, and told again.
        let (saved, wanted) = (sequence.save().unwrap(), sequence.logits().to_vec());
        let mut copy = sequence.fork().unwrap();
        sequence.append(&[4, 5], &options).unwrap();
        near(name, copy.logits(), &wanted, 1e-6);
        copy.append(&text[25..], &options).unwrap();
        near(name, copy.logits(), &fresh(&generator, &text), 0.02);
        sequence.load(&saved).unwrap();
        sequence.choose(&mut Sampler::new(Sampling::greedy()), &options).unwrap();
        near(name, sequence.logits(), &wanted, 0.02);
        sequence.load(&saved).unwrap();
        sequence.append(&text[25..], &options).unwrap();
        near(name, sequence.logits(), &fresh(&generator, &text), 0.02);
        // A call that fails counts for nothing.
        let mut cut = sequence.fork().unwrap();
        let deadline = RunOptions::new().timeout(std::time::Duration::ZERO);
        assert!(cut.append(&[4, 5, 6], &deadline).is_err());
        cut.append(&[7], &options).unwrap();
        near(name, cut.logits(), &fresh(&generator, &[&text[..], &[7]].concat()), 0.02);
    }
}

/// So many tokens of a sequence, after which the caller has enough.
fn told(sequence: &mut Sequence, count: usize) -> Vec<u32> {
    let mut told = Vec::new();
    let mut sampler = Sampler::new(Sampling::greedy());
    let done = sequence.generate(&mut sampler, 20, &RunOptions::new(), |piece| {
        told.push(piece.token);
        if told.len() == count { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    done.unwrap();
    told
}

#[test]
fn sequences_that_stop_leave_the_state_of_their_tokens() {
    let Some(device) = device() else { return };
    let options = RunOptions::new();
    let text: Vec<u32> = (0..24).map(|place| (place * 37 + 5) % 250 + 3).collect();
    for name in NAMES {
        for place in [ChooseOn::Host, ChooseOn::Device] {
            let generator = generator(&device, name, GeneratorOptions::new().batch(3).choose_on(place));
            let mut all: Vec<Sequence> = (0..3).map(|_| generator.sequence().unwrap()).collect();
            for (number, sequence) in all.iter_mut().enumerate() {
                sequence.ignore_end(true);
                sequence.prompt(&text[number..12 + 5 * number], &options).unwrap();
            }
            // Alone, then together, then two of them; who left goes on with a text that follows.
            told(&mut all[0], 3);
            for count in [3, 3, 2, 2] {
                let mut samplers: Vec<Sampler> = (0..3).map(|_| Sampler::new(Sampling::greedy())).collect();
                let mut members: Vec<_> = all.iter_mut().zip(&mut samplers).take(count).collect();
                let next = generator.step(&mut members, &options).unwrap();
                assert!(next.iter().all(|next| matches!(next, Next::Token(_))));
            }
            for sequence in &mut all {
                sequence.append(&[11, 12, 13], &options).unwrap();
                let tokens = sequence.tokens().to_vec();
                near(name, sequence.logits(), &fresh(&generator, &tokens), 0.02);
            }
        }
    }
}

#[test]
fn states_take_no_drafts() {
    let Some(device) = device() else { return };
    let (plain, name) = (generator(&device, "llama", GeneratorOptions::new()), NAMES[0]);
    let with = |name: &str, draft: &Generator| {
        let options = GeneratorOptions::new().context(64).draft(draft);
        builder(&device).model(path(name, "gguf")).generator(options).unwrap_err()
    };
    let error = with(name, &plain);
    assert!(error.message().contains("states that cannot be cut back"), "{error}");
    let error = with("llama", &generator(&device, name, GeneratorOptions::new()));
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("states that cannot be cut back"), "{error}");
}
