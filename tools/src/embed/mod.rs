//! The tool `halite embed`: embedding vectors of texts.

use std::{
    io::Write,
    path::PathBuf,
    time::{Duration, Instant},
};

use clap::Parser;
use halite::RunOptions;
use serde_json::json;

use crate::{
    console::{self, CommonFlags, Failure, Result, tool},
    devices,
    flags::seconds,
    interrupt::{self, Watchdog, cancel_on_interrupt},
    progress, session, text_file,
    text_flags::LanguageModelFlags,
};

const EXAMPLES: &str = "\
Examples:
  The vector of a text, a number after the other:
    halite embed nomic-embed-text.gguf 'search_query: What is a GPU?'
  A vector for each line of a file, as JSON, and how near they are to each other:
    halite embed bge-small.gguf --file=lines.txt --json --compare

Vectors have length 1: the sum of the products of two is the cosine of the angle between them.
";

/// Makes vectors of texts with a model for embeddings (.gguf), on a device.
#[derive(Parser, Debug)]
#[command(version = console::VERSION, after_help = EXAMPLES, max_term_width = 110)]
pub struct Flags {
    /// Model (.gguf); of a model in several files the first
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Texts
    #[arg(value_name = "TEXT")]
    texts: Vec<String>,
    /// File with a text in each line; - is standard input
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Vectors as long as they come, not of length 1
    #[arg(long)]
    raw: bool,
    /// Also prints the cosine of the angle between each two
    #[arg(long)]
    compare: bool,
    /// Gives up after this many seconds
    #[arg(long, value_parser = seconds, value_name = "SECONDS")]
    timeout: Option<Duration>,
    /// Prints vectors, counts of tokens and times as one JSON object on standard output, errors included
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    on: LanguageModelFlags,
    #[command(flatten)]
    common: CommonFlags,
}

tool!(Flags);

fn run(flags: &Flags) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if devices::answer_queries(&flags.on.devices, &mut out)? {
        return Ok(());
    }
    // All that is read counts: any file may be a pipe.
    let watchdog = Watchdog::start(flags.on.devices.time(flags.timeout));
    let options = watchdog.options(&cancel_on_interrupt());
    let texts = texts(flags)?;
    let builder = session::language_model(&flags.model, &flags.on)?;
    let embedder =
        builder.options(progress::shown(options.clone())).embedder().inspect_err(interrupt::note)?;
    progress::go_on("computing vectors");
    let began = Instant::now();
    let mut made = Vec::new();
    for text in &texts {
        let tokens = embedder.tokenize(text);
        let vector = one(flags, &embedder, &tokens, &options)?;
        made.push((tokens.len(), vector));
    }
    report(flags, &texts, &made, began.elapsed(), &mut out)?;
    session::check_validation()
}

fn one(flags: &Flags, embedder: &halite::Embedder, tokens: &[u32], options: &RunOptions) -> Result<Vec<f32>> {
    let made = if flags.raw { embedder.embed_raw(tokens, options) } else { embedder.embed(tokens, options) };
    Ok(made.inspect_err(interrupt::note)?)
}

/// The texts that are asked for.
fn texts(flags: &Flags) -> Result<Vec<String>> {
    let mut all = flags.texts.clone();
    if let Some(path) = &flags.file {
        all.extend(text_file::read(path)?.lines().map(str::to_owned));
    }
    match all.is_empty() {
        true => Err(Failure::Usage("there is no text; name some, or a file with --file=FILE".to_owned())),
        false => Ok(all),
    }
}

/// The cosine of the angle between two vectors.
fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let lengths = (dot(a, a) * dot(b, b)).sqrt();
    if lengths > 0.0 { dot(a, b) / lengths } else { 0.0 }
}

fn report(
    flags: &Flags,
    texts: &[String],
    made: &[(usize, Vec<f32>)],
    time: Duration,
    out: &mut dyn Write,
) -> Result<()> {
    let cosines = |one: &[f32]| made.iter().map(|(_, other)| cosine(one, other)).collect::<Vec<f64>>();
    if flags.json {
        let all = texts.iter().zip(made).map(|(text, (tokens, vector))| {
            let mut own = json!({"text": text, "tokens": tokens, "vector": vector});
            if flags.compare {
                own["cosines"] = cosines(vector).into();
            }
            own
        });
        let all: Vec<_> = all.collect();
        return Ok(writeln!(out, "{}", json!({"texts": all, "seconds": time.as_secs_f64()}))?);
    }
    let line = |numbers: Vec<String>| numbers.join(" ");
    for (_, vector) in made {
        writeln!(out, "{}", line(vector.iter().map(f32::to_string).collect()))?;
    }
    if flags.compare {
        for (_, vector) in made {
            writeln!(out, "{}", line(cosines(vector).iter().map(|own| format!("{own:.4}")).collect()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_same_direction_has_cosine_one() {
        assert!((super::cosine(&[1.0, 2.0], &[2.0, 4.0]) - 1.0).abs() < 1e-12);
        assert_eq!(super::cosine(&[1.0, 0.0], &[0.0, 3.0]), 0.0);
        assert_eq!(super::cosine(&[0.0], &[3.0]), 0.0);
    }
}
