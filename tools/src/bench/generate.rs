//! Speed of language models: tokens per second of prompts (`pp512`) and of generation (`tg128`), as llama-bench tells them, and of several
//! sequences that write together (`tg128x8`).

use std::{io::Write, ops::ControlFlow, path::Path, str::FromStr, time::Instant};

use halite::{CancelToken, Drafted, Generator, GeneratorOptions, RunOptions, Sampler, Sampling, Sequence};
use halite_formats::gguf::{self, Gguf, Value};
use serde_json::json;

use super::{Flags, Format, runner, stats::Aggregate};
use crate::{
    console::{Failure, Result},
    interrupt::{self, Watchdog},
    progress, session,
};

/// A measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    /// A prompt of so many tokens, as one.
    Prompt(usize),
    /// So many tokens, one after the other, from the first on: the most likely ones, each chosen of the logits before it.
    Generation(usize),
    /// So many tokens of each of several sequences, which take their steps together.
    Together { tokens: usize, sequences: usize },
}

impl FromStr for Test {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Test, String> {
        let count = |digits: &str| digits.parse().ok().filter(|count| *count > 0);
        let prompt = text.strip_prefix("pp").and_then(count).map(Test::Prompt);
        let generation = text.strip_prefix("tg").and_then(count).map(Test::Generation);
        let pair = text.strip_prefix("tg").and_then(|rest| rest.split_once('x'));
        let together = pair.and_then(|(tokens, all)| {
            Some(Test::Together { tokens: count(tokens)?, sequences: count(all)? })
        });
        prompt.or(generation).or(together).ok_or_else(|| {
            format!("'{text}' is neither ppN nor tgN nor tgNxSEQUENCES, such as pp512, tg128 and tg128x8")
        })
    }
}

impl Test {
    fn name(self) -> String {
        match self {
            Test::Prompt(count) => format!("pp{count}"),
            Test::Generation(count) => format!("tg{count}"),
            Test::Together { tokens, sequences } => format!("tg{tokens}x{sequences}"),
        }
    }

    /// Tokens of a sequence.
    fn tokens(self) -> usize {
        match self {
            Test::Prompt(count) | Test::Generation(count) | Test::Together { tokens: count, .. } => count,
        }
    }

    /// Whether a second model may write ahead.
    pub(super) fn can_draft(self) -> bool {
        matches!(self, Test::Generation(_))
    }

    fn sequences(self) -> usize {
        match self {
            Test::Prompt(_) | Test::Generation(_) => 1,
            Test::Together { sequences, .. } => sequences,
        }
    }
}

/// What a file is, for the table.
struct About {
    name: String,
    bytes: u64,
    weights: u64,
}

/// Repetitions of a test unless flags say otherwise, as llama-bench has it.
const REPETITIONS: u32 = 5;
/// The context is a multiple of so many tokens, the most that a call takes.
const CONTEXT: usize = 512;

/// Measures and prints.
pub(super) fn run(flags: &Flags, tests: &[Test], cancel: &CancelToken, out: &mut dyn Write) -> Result<()> {
    let watchdog = Watchdog::start(flags.timeout);
    let options = watchdog.options(cancel);
    let generator = generator(flags, tests, &options)?;
    progress::go_on("measuring");
    let about = match flags.modules.modules().next() {
        Some(path) if path.as_os_str() != "-" => about(path)?,
        _ => About { name: "standard input".to_owned(), bytes: 0, weights: 0 },
    };
    let device = generator.session().device().map(halite::Device::uri).unwrap_or_default();
    let [keys, values] = generator.cache_types();
    // As llama-bench, which has columns for what is not the default.
    let types =
        if flags.measure.caches.are_given() { format!(" {keys} | {values} |") } else { String::new() };
    let is_json = flags.measure.format() == Format::Json;
    if !is_json {
        let [head, rule] = if types.is_empty() { [""; 2] } else { [" type_k | type_v |", " --- | --- |"] };
        writeln!(out, "| model | size | params | device |{head} test | t/s |")?;
        writeln!(out, "| --- | ---: | ---: | --- |{rule} ---: | ---: |")?;
    }
    let mut rows = Vec::new();
    for test in tests {
        let (rates, drafted) = measure(flags, *test, &generator, &options)?;
        let speed = Aggregate::of(rates.iter().copied());
        if is_json {
            rows.push(json!({
                "model": about.name, "model_size": about.bytes, "model_n_params": about.weights, "device": device,
                "type_k": keys.name(), "type_v": values.name(), "test": test.name(),
                "samples_ts": rates, "avg_ts": speed.mean, "stddev_ts": speed.stddev,
                "draft_tokens": drafted.tokens, "draft_taken": drafted.taken,
            }));
            continue;
        }
        let (name, size, weights) =
            (&about.name, about.bytes as f64 / 1_048_576.0, about.weights as f64 / 1e6);
        let (test, mean, stddev) = (test.name(), speed.mean, speed.stddev);
        writeln!(
            out,
            "| {name} | {size:.2} MiB | {weights:.2} M | {device} |{types} {test} | {mean:.2} ± {stddev:.2} |"
        )?;
        out.flush()?;
        if drafted != Drafted::default() {
            log::info!("{test}: {} of {} drafted tokens taken", drafted.taken, drafted.tokens);
        }
    }
    if is_json {
        writeln!(out, "{:#}", serde_json::Value::Array(rows))?;
    }
    session::check_validation()
}

fn generator(flags: &Flags, tests: &[Test], options: &RunOptions) -> Result<Generator> {
    // Room for calls that are filled up, as a user's context has it.
    let tokens = tests.iter().map(|test| test.tokens()).max().unwrap_or(1);
    let context = tokens.next_multiple_of(CONTEXT);
    let measure = &flags.measure;
    let shown = || progress::shown(options.clone());
    let basic = measure.choice.apply(GeneratorOptions::new()).context(context);
    let on = (&flags.devices, &flags.modules.cache);
    let draft = session::draft(&measure.draft, on, basic.clone(), shown())?;
    let builder = session::builder_beside(&flags.devices, &flags.modules, draft.as_ref())?;
    let builder = measure.decoder.sizes(builder)?.options(shown());
    let together = tests.iter().map(|test| test.sequences()).max().unwrap_or(1);
    let wanted = measure.decoder.apply(measure.caches.apply(basic.batch(together)));
    let wanted = measure.draft.apply(wanted, draft.as_ref());
    Ok(builder.generator(wanted).inspect_err(interrupt::note)?)
}

/// Tokens per second of each repetition, and what was drafted in all of them.
fn measure(
    flags: &Flags,
    test: Test,
    generator: &Generator,
    options: &RunOptions,
) -> Result<(Vec<f64>, Drafted)> {
    let new = |_| {
        let mut sequence = generator.sequence()?;
        sequence.ignore_end(true);
        Ok(sequence)
    };
    let mut sequences = (0..test.sequences()).map(new).collect::<halite::Result<Vec<Sequence>>>()?;
    // Any tokens do: what is computed is the same for all.
    let known = generator.vocabulary_len() as u32;
    let tokens: Vec<u32> = (0..test.tokens() as u32).map(|place| (place * 7919 + 17) % known).collect();
    let mut call = |tokens: &[u32]| -> Result<f64> {
        sequences.iter_mut().for_each(|sequence| sequence.truncate(0));
        let began = Instant::now();
        match (test, &mut sequences[..]) {
            (Test::Prompt(_), [one, ..]) => one.append(tokens, options),
            (Test::Generation(_), [one, ..]) => write(one, tokens, options),
            (_, all) => write_together(generator, all, tokens, options),
        }
        .inspect_err(interrupt::note)
        .map_err(Failure::from)?;
        Ok((tokens.len() * test.sequences()) as f64 / began.elapsed().as_secs_f64())
    };
    let once = match test {
        Test::Prompt(_) => &tokens[..],
        // With one that the model writes.
        Test::Generation(_) | Test::Together { .. } => &tokens[..tokens.len().min(3)],
    };
    // Once for what the first calls do: pipelines, memory. Then for the clocks.
    call(once)?;
    runner::warm_up(flags, generator.session(), || call(once).map(drop))?;
    let rates = (0..flags.measure.repetitions.unwrap_or(REPETITIONS)).map(|_| call(&tokens));
    let rates = rates.collect::<Result<Vec<f64>>>()?;
    Ok((rates, sequences[0].drafted()))
}

/// The first token, and as many that the model writes behind it as there are others.
fn write(sequence: &mut Sequence, tokens: &[u32], options: &RunOptions) -> halite::Result<()> {
    sequence.append(&tokens[..1], options)?;
    let mut sampler = Sampler::new(Sampling::greedy());
    sequence.generate(&mut sampler, tokens.len() - 1, options, |_| ControlFlow::Continue(())).map(drop)
}

/// The same of several sequences, each from another token on.
fn write_together(
    generator: &Generator,
    sequences: &mut [Sequence],
    tokens: &[u32],
    options: &RunOptions,
) -> halite::Result<()> {
    let firsts = tokens.iter().copied().cycle();
    generator.append_each(&mut sequences.iter_mut().zip(firsts).collect::<Vec<_>>(), options)?;
    let mut samplers = vec![Sampler::new(Sampling::greedy()); sequences.len()];
    for _ in 1..tokens.len() {
        let mut members: Vec<_> = sequences.iter_mut().zip(&mut samplers).collect();
        generator.step(&mut members, options)?;
    }
    // What is under way counts.
    for (sequence, sampler) in sequences.iter_mut().zip(&mut samplers) {
        sequence.choose(sampler, options)?;
    }
    Ok(())
}

fn about(path: &Path) -> Result<About> {
    let bytes = std::fs::read(path).map_err(|e| Failure::file("cannot read", path, &e))?;
    if !gguf::is_gguf(&bytes) {
        // Others do not say what they are.
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        return Ok(About { name, bytes: bytes.len() as u64, weights: 0 });
    }
    let file =
        Gguf::read(&bytes.into()).map_err(|e| Failure::invalid(format!("'{}': {e}", path.display())))?;
    let text = |key: &str| match file.value(key) {
        Some(Value::Text(text)) => text.clone(),
        _ => String::new(),
    };
    let (mut sizes, mut weights) = (std::collections::BTreeMap::new(), 0);
    for tensor in &file.tensors {
        *sizes.entry(tensor.element.name).or_insert(0) += tensor.length;
        weights += tensor.dims.iter().product::<u64>();
    }
    let kind = sizes.iter().max_by_key(|(_, bytes)| **bytes).map_or("", |(kind, _)| *kind);
    let name = format!("{} {} {kind}", text("general.architecture"), text("general.size_label"));
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(About { name, bytes: sizes.values().sum(), weights })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_named_like_those_of_llama_bench() {
        assert_eq!("pp512".parse(), Ok(Test::Prompt(512)));
        assert_eq!("tg128".parse::<Test>().map(Test::name), Ok("tg128".to_owned()));
        let together = Test::Together { tokens: 128, sequences: 8 };
        assert_eq!("tg128x8".parse(), Ok(together));
        assert_eq!(
            (together.name(), together.tokens(), together.sequences()),
            ("tg128x8".to_owned(), 128, 8)
        );
        for wrong in ["pp", "tg0", "tg128x0", "pp512x2", "tg8x", "512", "pp-1", "m.gguf"] {
            assert!(wrong.parse::<Test>().unwrap_err().contains("pp512"), "{wrong}");
        }
    }
}
