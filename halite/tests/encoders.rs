//! Models with an encoder in front of what writes, on a device. The model: `conformance/models/gguf_t5.py`.

use std::{fs, ops::ControlFlow, path::Path};

use halite::{
    CacheType, ChooseOn, Device, ErrorKind, Generator, GeneratorOptions, RunOptions, Sampler, Sampling,
    Sequence, Stop,
};

use crate::common::{builder, device, repo};

fn json() -> serde_json::Value {
    serde_json::from_slice(&fs::read(repo("compiler/tests/data/gguf/t5.json")).unwrap()).unwrap()
}

fn tokens(key: &str) -> Vec<u32> {
    json()[key].as_array().unwrap().iter().map(|token| token.as_u64().unwrap() as u32).collect()
}

fn logits(key: &str) -> Vec<f32> {
    json()[key].as_array().unwrap().iter().map(|logit| logit.as_f64().unwrap() as f32).collect()
}

fn generator(device: &Device, options: GeneratorOptions) -> Generator {
    let model = repo("compiler/tests/data/gguf/t5.gguf");
    builder(device).model(model).generator(options.context(40)).unwrap()
}

/// How far the farthest are apart; a number that is none counts.
fn largest(found: &[f32], wanted: &[f32]) -> f32 {
    assert_eq!(found.len(), wanted.len());
    let apart = found.iter().zip(wanted).map(|(a, b)| (a - b).abs());
    apart.fold(0.0, |a, b| if b <= a { a } else { b })
}

fn near(found: &[f32], wanted: &[f32]) {
    let largest = largest(found, wanted);
    assert!(largest < 0.03, "{largest}");
}

fn written(sequence: &mut Sequence, most: usize) -> (Vec<u32>, Stop) {
    let mut told = Vec::new();
    let stop = sequence.generate(&mut Sampler::new(Sampling::greedy()), most, &RunOptions::new(), |piece| {
        told.push(piece.token);
        ControlFlow::Continue(())
    });
    (told, stop.unwrap())
}

#[test]
fn answers_are_those_of_llama_cpp() {
    let Some(device) = device() else { return };
    let (options, text, greedy) = (RunOptions::new(), tokens("prompt"), tokens("greedy"));
    for place in [ChooseOn::Host, ChooseOn::Device] {
        let generator = generator(&device, GeneratorOptions::new().choose_on(place));
        let mut sequence = generator.sequence().unwrap();
        assert_eq!(sequence.prompt(&text, &options).unwrap(), 0);
        assert_eq!((sequence.source(), sequence.tokens()), (&text[..], &[0][..]));
        near(sequence.logits(), &logits("logits"));
        assert_eq!(written(&mut sequence, 16), (greedy.clone(), Stop::Length));
        // The answer to another prompt, and to the first again, and once more.
        assert_eq!(sequence.prompt(&text[3..9], &options).unwrap(), 0);
        assert_ne!(written(&mut sequence, 16).0, greedy);
        assert_eq!(sequence.prompt(&text, &options).unwrap(), 0);
        assert_eq!(written(&mut sequence, 16).0, greedy);
        assert_eq!(sequence.prompt(&text, &options).unwrap(), text.len());
        assert_eq!(written(&mut sequence, 16).0, greedy);
        assert_eq!(sequence.prompt(&text, &options).unwrap(), text.len());
        sequence.append(&tokens("tokens")[1..], &options).unwrap();
        near(sequence.logits(), &logits("last"));
        // To the end of the room for answers.
        let (_, stop) = written(&mut sequence, 100);
        assert!(stop == Stop::End || sequence.tokens().len() == generator.context());
    }
}

#[test]
fn sequences_are_copied_cut_and_saved() {
    let Some(device) = device() else { return };
    let (options, text, greedy) = (RunOptions::new(), tokens("prompt"), tokens("greedy"));
    let generator = generator(&device, GeneratorOptions::new());
    let mut sequence = generator.sequence().unwrap();
    sequence.prompt(&text, &options).unwrap();
    assert_eq!(written(&mut sequence, 5).0, greedy[..5]);
    let (mut copy, saved) = (sequence.fork().unwrap(), sequence.save().unwrap());
    sequence.prompt(&text[..4], &options).unwrap();
    assert_eq!(copy.source(), text);
    assert_eq!(written(&mut copy, 11).0, greedy[5..]);
    copy.truncate(3);
    assert_eq!(written(&mut copy, 4).0, greedy[2..6]);
    let mut loaded = generator.sequence().unwrap();
    loaded.load(&saved).unwrap();
    assert_eq!(loaded.source(), text);
    assert_eq!(written(&mut loaded, 11).0, greedy[5..]);
    for end in [4, 12, 40, 100, saved.len() - 1] {
        assert!(loaded.load(&saved[..end]).is_err());
        assert!(loaded.source().is_empty() && loaded.tokens().is_empty());
    }
    let mut other = saved.clone();
    other[7] = b'1';
    assert!(loaded.load(&other).unwrap_err().to_string().contains("another model"));
}

#[test]
fn answers_are_scored_behind_a_prompt() {
    let Some(device) = device() else { return };
    let (options, text, answer) = (RunOptions::new(), tokens("prompt"), &tokens("tokens")[1..]);
    let generator = generator(&device, GeneratorOptions::new().scoring(true));
    let mut sequence = generator.sequence().unwrap();
    let error = sequence.score(answer, &options).unwrap_err().to_string();
    assert!(error.contains("there is no prompt"), "{error}");
    sequence.prompt(&text, &options).unwrap();
    let scores = sequence.score(answer, &options).unwrap();
    let first = logits("logits");
    let sum: f64 = first.iter().map(|logit| f64::from(*logit).exp()).sum();
    let wanted = f64::from(first[answer[0] as usize]) - sum.ln();
    assert!(scores.len() == answer.len() && (scores[0] - wanted).abs() < 0.03, "{scores:?} {wanted}");
    near(sequence.logits(), &logits("last"));
}

#[test]
fn what_means_nothing_is_told() {
    let Some(device) = device() else { return };
    let options = RunOptions::new();
    let generator = generator(&device, GeneratorOptions::new().batch(4));
    assert_eq!(generator.batch(), 1);
    let mut sequence = generator.sequence().unwrap();
    let error = sequence.append(&[5], &options).unwrap_err().to_string();
    assert!(error.contains("there is no prompt"), "{error}");
    let error = sequence.prompt(&[5; 41], &options).unwrap_err().to_string();
    assert!(error.contains("41 tokens"), "{error}");
    assert!(sequence.prompt(&[], &options).is_err());
    assert_eq!(sequence.prompt(&[5; 40], &options).unwrap(), 0);
    let model = || builder(&device).model(repo("compiler/tests/data/gguf/t5.gguf"));
    let drafted = GeneratorOptions::new().context(40).draft(&generator);
    let error = model().generator(drafted).unwrap_err().to_string();
    assert!(error.contains("an encoder in front"), "{error}");
    // Heads are no whole blocks.
    let packed = GeneratorOptions::new().context(40).cache_types(CacheType::Q8_0, CacheType::F16);
    let error = model().generator(packed).unwrap_err();
    assert!(error.kind() == ErrorKind::Unsupported && error.message().contains("24 elements"), "{error}");
    let error = model().embedder().unwrap_err().to_string();
    assert!(error.contains("makes no vectors"), "{error}");
}

/// With keys in blocks llama.cpp has logits of its own; it leaves those of the encoder's states as they are, which Halite keeps in caches of
/// the same type. Values in blocks give it no usable numbers.
#[test]
fn caches_in_blocks_hold_answers_and_what_was_read() {
    let Some(device) = device() else { return };
    let options = RunOptions::new();
    let path = |end: &str| repo(&format!("compiler/tests/data/gguf/t5-caches.{end}"));
    let json: serde_json::Value = serde_json::from_slice(&fs::read(path("json")).unwrap()).unwrap();
    let tokens = |key: &str| -> Vec<u32> { serde_json::from_value(json[key].clone()).unwrap() };
    let (text, answer) = (tokens("prompt"), tokens("tokens"));
    // The root of the mean square of differences, of logits of up to 14; and how long a row of keys or values is.
    let types: [(CacheType, f32, usize); 3] =
        [(CacheType::F16, 0.01, 32 * 2), (CacheType::Q8_0, 0.05, 36), (CacheType::Q4_0, 0.45, 20)];
    let mut saved: Vec<Vec<u8>> = Vec::new();
    for (keys, most, row) in types {
        let wanted: Vec<f32> = serde_json::from_value(json["caches"][keys.name()].clone()).unwrap();
        for (values, more, other_row) in types {
            let given = GeneratorOptions::new().context(64).cache_types(keys, values);
            let generator = builder(&device).model(path("gguf")).generator(given).unwrap();
            let off = |sequence: &Sequence, wanted: &[f32], most: f32| {
                let squares = sequence.logits().iter().zip(wanted).map(|(a, b)| (a - b).powi(2)).sum::<f32>();
                let off = (squares / wanted.len() as f32).sqrt();
                assert!(sequence.logits().len() == wanted.len() && off < most, "{keys} {values}: {off}");
            };
            let mut sequence = generator.sequence().unwrap();
            sequence.prompt(&text, &options).unwrap();
            // One layer with two heads, of the answer and of what was read.
            assert!(sequence.byte_len() >= 2 * 64 * (row + other_row) * 2, "{keys} {values}");
            sequence.append(&answer[1..], &options).unwrap();
            off(&sequence, &wanted, most.max(more));
            let whole = sequence.logits().to_vec();
            // One by one, from a copy, from what was saved, and behind what was cut off.
            let mut single = generator.sequence().unwrap();
            single.prompt(&text, &options).unwrap();
            answer[1..4].iter().for_each(|token| single.append(&[*token], &options).unwrap());
            let (mut copy, kept) = (single.fork().unwrap(), single.save().unwrap());
            let mut loaded = generator.sequence().unwrap();
            loaded.load(&kept).unwrap();
            copy.append(&[9, 8], &options).unwrap();
            copy.truncate(4);
            for own in [&mut single, &mut copy, &mut loaded] {
                own.append(&answer[4..], &options).unwrap();
                off(own, &whole, 0.01);
            }
            for other in &saved {
                assert_eq!(loaded.load(other).unwrap_err().kind(), ErrorKind::InvalidInput);
            }
            saved.push(kept);
        }
    }
}

/// More models, in a folder that a variable names: those that `conformance/models/gguf_t5.py` draws.
#[test]
fn answers_of_named_models_are_those_of_llama_cpp() {
    let Some(folder) = std::env::var_os("HALITE_T5_MODELS") else {
        eprintln!("SKIPPED: HALITE_T5_MODELS names no folder");
        return;
    };
    let Some(device) = device() else { return };
    let mut all: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.retain(|path| path.extension().is_some_and(|end| end == "gguf"));
    all.sort();
    let wrong: Vec<String> = all.iter().filter_map(|path| difference(&device, path)).collect();
    assert!(!all.is_empty() && wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), all.len());
}

/// Where what a model writes is another text than llama.cpp's, ties aside, or its logits are far from that.
fn difference(device: &Device, path: &Path) -> Option<String> {
    let json: serde_json::Value =
        serde_json::from_slice(&fs::read(path.with_extension("json")).unwrap()).unwrap();
    let tokens = |key: &str| -> Vec<u32> { serde_json::from_value(json[key].clone()).unwrap() };
    let floats = |key: &str| -> Vec<f32> { serde_json::from_value(json[key].clone()).unwrap() };
    let options = RunOptions::new();
    let generator = builder(device).model(path).generator(GeneratorOptions::new()).unwrap();
    let mut sequence = generator.sequence().unwrap();
    sequence.ignore_end(true);
    sequence.prompt(&tokens("prompt"), &options).unwrap();
    let first = largest(sequence.logits(), &floats("logits"));
    let found = written(&mut sequence, 16).0;
    sequence.truncate(1);
    sequence.append(&tokens("tokens")[1..], &options).unwrap();
    let last = largest(sequence.logits(), &floats("last"));
    let other = found.iter().zip(tokens("greedy")).position(|(a, b)| *a != b);
    let gap = other.map(|place| floats("gaps")[place]);
    println!("{}: {first} {last} {other:?} {gap:?}", path.display());
    let is_right = first < 0.08 && last < 0.08 && found.len() == 16 && gap.is_none_or(|gap| gap < 0.1);
    (!is_right).then(|| format!("{}: {first} {last} {other:?} {gap:?}", path.display()))
}
