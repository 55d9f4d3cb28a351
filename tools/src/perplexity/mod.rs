//! The tool `halite perplexity`: how well a language model predicts a text.

use std::{
    io::Write,
    path::PathBuf,
    time::{Duration, Instant},
};

use clap::Parser;
use halite::{CacheType, Generator, GeneratorOptions, RunOptions};
use serde_json::json;

use crate::{
    console::{self, CommonFlags, Failure, Result, tool},
    devices,
    flags::seconds,
    interrupt::{self, Watchdog, cancel_on_interrupt},
    progress, session, text_file,
    text_flags::{CacheTypeFlags, LanguageModelFlags},
};

const EXAMPLES: &str = "\
Example:
  halite perplexity model.gguf page.txt --chunk=512

The text is cut into chunks of so many tokens, each with the token that texts begin with in front, if the model has one. Of
each chunk the second half counts: its tokens have at least half a chunk before them. llama-perplexity does the same.
";

/// Measures how well a language model (.gguf) predicts a text: e to the mean negative logarithm of its tokens' probabilities.
#[derive(Parser, Debug)]
#[command(version = console::VERSION, after_help = EXAMPLES, max_term_width = 110)]
pub struct Flags {
    /// Model (.gguf); of a model in several files the first
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Text; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Tokens of a chunk
    #[arg(long, default_value = "512", value_name = "TOKENS")]
    chunk: usize,
    /// Most chunks; 0 for all
    #[arg(long, default_value = "0", value_name = "N")]
    chunks: usize,
    /// Gives up after this many seconds
    #[arg(long, value_parser = seconds, value_name = "SECONDS")]
    timeout: Option<Duration>,
    /// Prints perplexity, counts and time as one JSON object on standard output, errors included
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    caches: CacheTypeFlags,
    #[command(flatten)]
    on: LanguageModelFlags,
    #[command(flatten)]
    common: CommonFlags,
}

tool!(Flags);

/// Sums over tokens that count.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    count: usize,
    sum: f64,
    squares: f64,
}

impl Sums {
    fn add(&mut self, likelihood: f64) {
        self.count += 1;
        self.sum -= likelihood;
        self.squares += likelihood * likelihood;
    }

    fn perplexity(&self) -> f64 {
        (self.sum / self.count.max(1) as f64).exp()
    }

    /// How far the perplexity may be off, as one standard deviation of the mean.
    fn deviation(&self) -> f64 {
        let count = self.count.max(2) as f64;
        let mean = self.sum / count;
        let variance = (self.squares / count - mean * mean).max(0.0);
        self.perplexity() * (variance / (count - 1.0)).sqrt()
    }
}

fn run(flags: &Flags) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if devices::answer_queries(&flags.on.devices, &mut out)? {
        return Ok(());
    }
    if flags.chunk < 2 {
        return Err(Failure::Usage(format!("--chunk={} is not 2 or more", flags.chunk)));
    }
    // All that is read counts: any file may be a pipe.
    let watchdog = Watchdog::start(flags.on.devices.time(flags.timeout));
    let options = watchdog.options(&cancel_on_interrupt());
    let text = text_file::read(&flags.file)?;
    let builder = session::language_model(&flags.model, &flags.on)?;
    let wanted = flags.caches.apply(GeneratorOptions::new()).context(flags.chunk).scoring(true);
    let builder = builder.options(progress::shown(options.clone()));
    let generator = builder.generator(wanted).inspect_err(interrupt::note)?;
    progress::go_on("measuring");
    let tokens = generator.tokenize(&text, false);
    let most = if flags.chunks == 0 { usize::MAX } else { flags.chunks };
    let chunks: Vec<&[u32]> = tokens.chunks_exact(flags.chunk).take(most).collect();
    if chunks.is_empty() {
        let (own, chunk) = (tokens.len(), flags.chunk);
        let text =
            format!("a text of {own} tokens has no chunk of {chunk}; give more text, or less for --chunk");
        return Err(Failure::invalid(text));
    }
    let began = Instant::now();
    let (sums, memory) = measure(&generator, &chunks, &tokens[..1], &options)?;
    let (seconds, scored) = (began.elapsed().as_secs_f64(), chunks.len() * flags.chunk);
    let (perplexity, deviation) = (sums.perplexity(), sums.deviation());
    match flags.json {
        true => writeln!(
            out,
            "{:#}",
            json!({"perplexity": perplexity, "deviation": deviation, "chunk": flags.chunk, "chunks": chunks.len(),
                   "cache_types": generator.cache_types().map(CacheType::name), "cache_bytes": memory,
                   "tokens": tokens.len(), "scored": sums.count, "seconds": seconds,
                   "tokens_per_second": scored as f64 / seconds})
        )?,
        false => {
            let count = chunks.len();
            writeln!(
                out,
                "perplexity {perplexity:.4} +- {deviation:.4} of {} tokens in {count} chunks",
                sums.count
            )?;
        }
    }
    session::check_validation()
}

/// What the tokens of all chunks add up to, and bytes of the caches.
fn measure(
    generator: &Generator,
    chunks: &[&[u32]],
    begin: &[u32],
    options: &RunOptions,
) -> Result<(Sums, usize)> {
    let mut sums = Sums::default();
    let mut sequence = generator.sequence()?;
    let begins = generator.begin().is_some_and(|own| begin == [own]);
    for (place, chunk) in chunks.iter().enumerate() {
        sequence.truncate(0);
        let mut own = chunk.to_vec();
        if begins {
            own[..1].copy_from_slice(begin);
        }
        let likelihoods = sequence.score(&own, options).inspect_err(interrupt::note)?;
        // The token at half a chunk is the last that only stands before others.
        likelihoods[chunk.len() / 2 + 1..].iter().for_each(|likelihood| sums.add(*likelihood));
        log::info!("{} chunks: {:.4}", place + 1, sums.perplexity());
    }
    Ok((sums, sequence.byte_len()))
}

#[cfg(test)]
mod tests {
    use super::Sums;

    #[test]
    fn tokens_of_one_in_four_have_perplexity_four() {
        let mut sums = Sums::default();
        (0..8).for_each(|_| sums.add(0.25f64.ln()));
        assert!((sums.perplexity() - 4.0).abs() < 1e-9 && sums.deviation() < 1e-6);
    }
}
