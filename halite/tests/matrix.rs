//! GGUF models whose types of matrices, options and ways of use are drawn by lot, beside llama.cpp: `conformance/models/gguf_matrix.py`.

use std::{
    collections::BTreeMap,
    fs,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use halite::{CacheType, Device, Generator, GeneratorOptions, RunOptions, Sampler, Sampling, Sequence};

use crate::common::{builder, device};

/// How far logits may be from llama.cpp's: what it rounds to 16 bits differs.
const NEAR: f32 = 0.08;
/// How many times as far where weights are BF16: activations beside them are rounded to that, as llama.cpp does it.
const ROUNDED: f32 = 4.0;
/// How far logits of the same text may be from each other.
const SAME: f32 = 0.05;
/// Tokens that are written behind a prompt.
const WRITTEN: usize = 12;

/// What llama.cpp makes of the texts of a model.
struct Case {
    json: serde_json::Value,
    /// Prompts, and what follows one by one.
    texts: Vec<(Vec<u32>, Vec<u32>)>,
}

impl Case {
    fn of(path: &Path) -> Self {
        let json: serde_json::Value =
            serde_json::from_slice(&fs::read(path.with_extension("json")).unwrap()).unwrap();
        let texts = serde_json::from_value(json["texts"].clone()).unwrap();
        Self { json, texts }
    }

    /// Tokens that there is room for.
    fn context(&self) -> usize {
        self.json["context"].as_u64().unwrap_or(128) as usize
    }

    fn numbers<T: serde::de::DeserializeOwned>(&self, key: &str) -> T {
        serde_json::from_value(self.json[key].clone()).unwrap()
    }

    /// How far logits behind a prompt (0), or behind all (1), are from the nearest of llama.cpp's ways.
    fn apart(&self, text: usize, place: usize, found: &[f32]) -> f32 {
        let ways = self.json["ways"].as_array().unwrap();
        let each = ways.iter().map(|way| furthest(found, &logits(&way[text][place])));
        each.fold(f32::INFINITY, |least, apart| if apart.is_nan() { least } else { apart.min(least) })
    }
}

fn logits(json: &serde_json::Value) -> Vec<f32> {
    let all = json.as_array().unwrap().iter();
    all.map(|logit| logit.as_f64().map_or(f32::NEG_INFINITY, |logit| logit as f32)).collect()
}

fn furthest(found: &[f32], wanted: &[f32]) -> f32 {
    assert_eq!(found.len(), wanted.len());
    let apart = found.iter().zip(wanted).map(|(a, b)| if a == b { 0.0 } else { (a - b).abs() });
    apart.fold(0.0, |most, apart| if apart.is_nan() { f32::NAN } else { apart.max(most) })
}

fn prompted(generator: &Generator, tokens: &[u32]) -> Sequence {
    let mut sequence = generator.sequence().unwrap();
    sequence.prompt(tokens, &RunOptions::new()).unwrap();
    sequence
}

/// Differences that are larger than they may be, by what was done.
struct Told {
    found: Vec<(String, f32)>,
    /// Factor of how large they may be.
    factor: f32,
}

impl Told {
    fn look(&mut self, what: &str, apart: f32, most: f32) {
        if apart.is_nan() || apart >= most * self.factor {
            self.found.push((what.to_owned(), apart));
        }
    }
}

/// Each sequence alone, and all in one step.
fn texts(case: &Case, generator: &Generator, told: &mut Told) {
    let options = RunOptions::new();
    let mut all: Vec<Sequence> = case.texts.iter().map(|text| prompted(generator, &text.0)).collect();
    let copies: Vec<Sequence> = all.iter_mut().map(|sequence| sequence.fork().unwrap()).collect();
    for (number, sequence) in all.iter_mut().enumerate() {
        told.look(&format!("prompt {number}"), case.apart(number, 0, sequence.logits()), NEAR);
        case.texts[number].1.iter().for_each(|token| sequence.append(&[*token], &options).unwrap());
        told.look(&format!("one by one {number}"), case.apart(number, 1, sequence.logits()), NEAR);
    }
    together(case, generator, copies, &all, told);
}

fn together(
    case: &Case,
    generator: &Generator,
    mut copies: Vec<Sequence>,
    alone: &[Sequence],
    told: &mut Told,
) {
    for step in 0..case.texts[0].1.len() {
        let tokens = case.texts.iter().map(|text| text.1[step]);
        let mut members: Vec<_> = copies.iter_mut().zip(tokens).collect();
        generator.append_each(&mut members, &RunOptions::new()).unwrap();
    }
    for (number, (copy, own)) in copies.iter().zip(alone).enumerate() {
        told.look(&format!("together {number}"), furthest(copy.logits(), own.logits()), SAME);
    }
}

/// The first prompt in pieces, saved, and behind another text.
fn pieces(case: &Case, generator: &Generator, told: &mut Told) {
    let (options, (prompt, further)) = (RunOptions::new(), &case.texts[0]);
    let whole = prompted(generator, prompt);
    let mut parts = generator.sequence().unwrap();
    let mut at = 0;
    for length in case.numbers::<Vec<usize>>("pieces") {
        parts.append(&prompt[at..at + length], &options).unwrap();
        at += length;
    }
    told.look("pieces", furthest(parts.logits(), whole.logits()), SAME);
    let saved = parts.save().unwrap();
    parts.append(further, &options).unwrap();
    let wanted = parts.logits().to_vec();
    let mut loaded = generator.sequence().unwrap();
    loaded.load(&saved).unwrap();
    further.iter().for_each(|token| loaded.append(&[*token], &options).unwrap());
    told.look("saved", furthest(loaded.logits(), &wanted), SAME);
    // Another text with the same beginning, and back.
    let cut: usize = case.numbers("cut");
    let mut other = [&prompt[..cut], &case.texts[1].0[..]].concat();
    // Two long prompts are more than there is room for.
    other.truncate(case.context());
    parts.prompt(&other, &options).unwrap();
    told.look("same beginning", furthest(parts.logits(), prompted(generator, &other).logits()), SAME);
    parts.prompt(&[&prompt[..], &further[..]].concat(), &options).unwrap();
    told.look("back", furthest(parts.logits(), &wanted), SAME);
}

/// Tokens that are chosen one behind the other are the likeliest ones by the logits of the same tokens in one piece.
fn written(case: &Case, generator: &Generator, told: &mut Told) {
    let (options, prompt) = (RunOptions::new(), &case.texts[0].0);
    let (mut sequence, mut tokens) = (prompted(generator, prompt), prompt.clone());
    sequence.ignore_end(true);
    let each = |piece: &halite::Piece| {
        tokens.push(piece.token);
        ControlFlow::Continue(())
    };
    sequence.generate(&mut Sampler::new(Sampling::greedy()), WRITTEN, &options, each).unwrap();
    assert_eq!(tokens.len(), prompt.len() + WRITTEN);
    for end in [prompt.len(), tokens.len() - 1] {
        let whole = prompted(generator, &tokens[..end]);
        let most = whole.logits().iter().copied().fold(f32::NEG_INFINITY, f32::max);
        told.look(&format!("written {end}"), most - whole.logits()[tokens[end] as usize], SAME);
    }
}

/// How far logits are from others, beside how large those are.
fn rate(found: &[f32], wanted: &[f32]) -> f32 {
    let pairs = || found.iter().zip(wanted).filter(|(_, wanted)| wanted.is_finite());
    let (apart, whole) =
        pairs().fold((0.0, 0.0), |(apart, whole), (a, b)| (apart + (a - b) * (a - b), whole + b * b));
    (apart / whole).sqrt()
}

/// Caches of other types than f16.
fn caches(case: &Case, path: &Path, device: &Device, told: &mut Told) {
    let types = case.numbers::<[String; 2]>("caches").map(|name| match name.as_str() {
        "q8_0" => CacheType::Q8_0,
        "q4_0" => CacheType::Q4_0,
        _ => CacheType::F16,
    });
    let given = GeneratorOptions::new().context(case.context()).batch(4).cache_types(types[0], types[1]);
    let generator = match builder(device).model(path).generator(given) {
        Ok(generator) => generator,
        Err(error) => {
            println!("    caches {types:?}: {error}");
            return;
        }
    };
    let whole = prompted(&generator, &case.texts[0].0);
    let plain = logits(&case.json["ways"][0][0][0]);
    let of_llama = case.json["in_blocks"].as_array().map(|own| rate(&logits(&own[0][0]), &plain));
    println!("    caches {types:?}: {}, llama.cpp {of_llama:?}", rate(whole.logits(), &plain));
    if types != [CacheType::F16; 2] {
        // Codes of blocks differ where numbers differ by little: that is seen in rates alone.
        let mut parts = generator.sequence().unwrap();
        let prompt = &case.texts[0].0;
        prompt.iter().for_each(|token| parts.append(&[*token], &RunOptions::new()).unwrap());
        let most = 0.05 + 3.0 * of_llama.unwrap_or(0.2);
        told.look("caches, whole", rate(whole.logits(), &plain), most);
        told.look("caches, one by one", rate(parts.logits(), whole.logits()), 0.02 + of_llama.unwrap_or(0.1));
        caches_together(case, &generator, whole, told);
    }
}

/// Caches in blocks of two sequences in one step, copied and saved, beside one alone.
fn caches_together(case: &Case, generator: &Generator, mut alone: Sequence, told: &mut Told) {
    let (options, mut other) = (RunOptions::new(), prompted(generator, &case.texts[1].0));
    let (mut copy, saved) = (alone.fork().unwrap(), alone.save().unwrap());
    let mut loaded = generator.sequence().unwrap();
    loaded.load(&saved).unwrap();
    for token in &case.texts[0].1 {
        alone.append(&[*token], &options).unwrap();
        let mut members = [(&mut copy, *token), (&mut other, *token), (&mut loaded, *token)];
        generator.append_each(&mut members, &options).unwrap();
    }
    for (what, own) in [("copied", &copy), ("loaded", &loaded)] {
        told.look(&format!("caches, {what}"), rate(own.logits(), alone.logits()), 0.02);
    }
}

fn run(device: &Device, path: &Path) -> Vec<(String, f32)> {
    let case = Case::of(path);
    let given = GeneratorOptions::new().context(case.context()).batch(4);
    let generator = builder(device).model(path).generator(given).unwrap();
    let has_bf16 = case.numbers::<BTreeMap<String, String>>("types").values().any(|kind| kind == "BF16");
    let mut told = Told { found: Vec::new(), factor: if has_bf16 { ROUNDED } else { 1.0 } };
    texts(&case, &generator, &mut told);
    pieces(&case, &generator, &mut told);
    written(&case, &generator, &mut told);
    caches(&case, path, device, &mut told);
    println!("{} {}: {:?}", path.display(), case.json["name"], told.found);
    told.found
}

/// Models in a folder that a variable names.
#[test]
fn models_by_lot_are_those_of_llama_cpp_in_all_ways() {
    let Some(folder) = std::env::var_os("HALITE_GGUF_MATRIX") else {
        eprintln!("SKIPPED: HALITE_GGUF_MATRIX names no folder");
        return;
    };
    let Some(device) = device() else { return };
    let mut all: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.retain(|path| path.extension().is_some_and(|end| end == "gguf"));
    all.sort();
    let wrong: Vec<_> = all
        .iter()
        .filter(|path| {
            // One that fails hides no others.
            let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(&device, path)));
            !matches!(ran, Ok(told) if told.is_empty())
        })
        .collect();
    assert!(!all.is_empty() && wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), all.len());
}
