//! Text of decoders that are no GGUF files. What they write is ONNX Runtime's (1.32): the most likely tokens behind a prompt.
#![cfg(feature = "text")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::{fs, ops::ControlFlow};

use crate::common::{builder, device, repo};
use halite::{
    CacheType, ChooseOn, Device, ErrorKind, Generator, GeneratorOptions, Likely, Next, RunOptions, Sampler,
    Sampling, Sequence, Stop,
};

/// Any tokenizer does: tokens are numbers here.
const TOKENIZER: &str = "compiler/tests/data/gguf/llama.gguf";
const PROMPT: [u32; 5] = [3, 7, 1, 9, 4];

fn generator(device: &Device, model: &str) -> Generator {
    let options = GeneratorOptions::new().tokenizer(repo(TOKENIZER)).context(64);
    let mut builder = builder(device).model(repo(model));
    if [GROWS.0, MERGED].contains(&model) {
        // The model does not say how long rows of its caches are.
        builder = builder.dimension("size", 16);
    }
    builder.generator(options).unwrap()
}

fn written(sequence: &mut Sequence, most: usize) -> Vec<u32> {
    let mut told = Vec::new();
    sequence.ignore_end(true);
    let stop = sequence.generate(&mut Sampler::new(Sampling::greedy()), most, &RunOptions::new(), |piece| {
        told.push(piece.token);
        ControlFlow::Continue(())
    });
    assert_eq!(stop.unwrap(), Stop::Length);
    told
}

/// The first of these, merged with one that has no past.
const MERGED: &str = "halite/tests/data/open_merged.onnx";
/// A decoder whose caches grow, and one whose caches have places.
const GROWS: (&str, [u32; 12]) =
    ("halite/tests/data/open_decoder.onnx", [6, 17, 6, 0, 20, 1, 6, 19, 3, 23, 13, 6]);
const PLACED: (&str, [u32; 12]) =
    ("conformance/tests/data/state/decoder.onnx", [36, 37, 36, 40, 49, 23, 23, 36, 40, 49, 23, 3]);

#[test]
fn decoders_write_what_onnx_runtime_writes() {
    let Some(device) = device() else { return };
    for (model, wanted) in [GROWS, PLACED] {
        let generator = generator(&device, model);
        let mut sequence = generator.sequence().unwrap();
        sequence.prompt(&PROMPT, &RunOptions::new()).unwrap();
        assert_eq!(written(&mut sequence, 12), wanted, "{model}");
    }
}

#[test]
fn merged_decoders_have_versions_for_each_branch() {
    let Some(device) = device() else { return };
    let generator = generator(&device, MERGED);
    let mut sequence = generator.sequence().unwrap();
    sequence.prompt(&PROMPT, &RunOptions::new()).unwrap();
    assert_eq!(written(&mut sequence, 12), GROWS.1);
    sequence.truncate(2);
    sequence.prompt(&PROMPT, &RunOptions::new()).unwrap();
    assert_eq!(written(&mut sequence, 12), GROWS.1);
    let versions = generator.session().loaded_versions();
    assert!(versions <= 6, "{versions} versions, of 27 calls");
}

#[test]
fn sequences_of_decoders_are_cut_copied_and_saved() {
    let Some(device) = device() else { return };
    let options = RunOptions::new();
    for (model, wanted) in [GROWS, PLACED] {
        let generator = generator(&device, model);
        let mut sequence = generator.sequence().unwrap();
        sequence.prompt(&PROMPT, &options).unwrap();
        let logits = sequence.logits().to_vec();
        written(&mut sequence, 4);
        let mut copy = sequence.fork().unwrap();
        let saved = sequence.save().unwrap();
        assert_eq!(written(&mut copy, 4), wanted[4..8], "{model}");
        // Back to the prompt: what was behind it does not count.
        sequence.truncate(PROMPT.len());
        assert_eq!(written(&mut sequence, 3), wanted[..3], "{model}");
        sequence.prompt(&PROMPT, &options).unwrap();
        assert_eq!(sequence.logits(), logits);
        sequence.load(&saved).unwrap();
        assert_eq!(sequence.tokens().len(), PROMPT.len() + 4);
        assert_eq!(written(&mut sequence, 4), wanted[4..8], "{model}");
    }
}

/// Token by token, whether calls give logits of all or not.
#[test]
fn texts_are_scored() {
    let Some(device) = device() else { return };
    for (model, _) in [GROWS, PLACED] {
        let generator = generator(&device, model);
        let (mut scored, mut single) = (generator.sequence().unwrap(), generator.sequence().unwrap());
        let scores = scored.score(&PROMPT, &RunOptions::new()).unwrap();
        let mut wanted = Vec::new();
        for token in PROMPT {
            wanted
                .push(Likely::of(token, single.logits(), 0).map_or(0.0, |likely| f64::from(likely.logprob)));
            single.append(&[token], &RunOptions::new()).unwrap();
        }
        let apart = scores.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(scores.len() == PROMPT.len() && apart < 1e-4, "{model}: {scores:?} {wanted:?}");
    }
}

#[test]
fn what_makes_no_generator_is_told() {
    let Some(device) = device() else { return };
    let refused = |model: &str, options: GeneratorOptions| {
        let error = builder(&device).model(repo(model)).generator(options).unwrap_err();
        (error.kind(), error.to_string())
    };
    let with = || GeneratorOptions::new().tokenizer(repo(TOKENIZER));
    let (kind, text) = refused(GROWS.0, GeneratorOptions::new());
    assert!(kind == ErrorKind::InvalidInput && text.contains("--tokenizer"), "{text}");
    let (kind, text) = refused("demo/digits/digits.onnx", with());
    assert!(kind == ErrorKind::Unsupported && text.contains("is no decoder"), "{text}");
    let (_, text) = refused(TOKENIZER, with());
    assert!(text.contains("its own tokenizer"), "{text}");
    for options in [
        with().choose_on(ChooseOn::Device),
        with().cache_types(CacheType::Q8_0, CacheType::F16),
        with().context(0),
    ] {
        assert_eq!(refused(GROWS.0, options).0, ErrorKind::InvalidInput);
    }
    let (_, text) = refused(PLACED.0, with().context(97));
    assert!(text.contains("room for: 96"), "{text}");
    let placed = builder(&device).model(repo(PLACED.0)).generator(with()).unwrap();
    assert_eq!(placed.context(), 96, "what its caches have room for");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    fs::write(&path, "{").unwrap();
    let (kind, text) = refused(GROWS.0, GeneratorOptions::new().tokenizer(path));
    assert!(kind == ErrorKind::InvalidInput && text.contains("tokenizer.json"), "{text}");
}

#[test]
fn several_sequences_take_their_steps_one_by_one() {
    let Some(device) = device() else { return };
    for (model, wanted) in [GROWS, PLACED] {
        let options = GeneratorOptions::new().tokenizer(repo(TOKENIZER)).context(64).batch(2);
        let mut builder = builder(&device).model(repo(model));
        if model == GROWS.0 {
            builder = builder.dimension("size", 16);
        }
        let generator = builder.generator(options).unwrap();
        assert_eq!(generator.batch(), 1);
        let prompts = [&PROMPT[..], &PROMPT[..4]];
        let mut all = prompts.map(|prompt| {
            let mut sequence = generator.sequence().unwrap();
            sequence.ignore_end(true);
            sequence.prompt(prompt, &RunOptions::new()).unwrap();
            (sequence, Sampler::new(Sampling::greedy()))
        });
        let mut alone = generator.sequence().unwrap();
        alone.prompt(prompts[1], &RunOptions::new()).unwrap();
        let other = written(&mut alone, 6);
        for step in 0..6 {
            let mut members: Vec<_> = all.iter_mut().map(|(sequence, sampler)| (sequence, sampler)).collect();
            let next = generator.step(&mut members, &RunOptions::new()).unwrap();
            assert_eq!(next, [Next::Token(wanted[step]), Next::Token(other[step])], "{model}");
        }
    }
}
