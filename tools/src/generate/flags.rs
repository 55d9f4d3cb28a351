//! The flags of `halite generate`.

use std::{path::PathBuf, time::Duration};

use clap::Parser;
use halite::Sampling;

use crate::{
    console::{self, CommonFlags, Failure, Result},
    flags::seconds,
    text_flags::{
        CacheTypeFlags, ChoiceFlags, DecoderFlags, DraftFlags, LanguageModelFlags, TemplateFlags,
        ThoughtFlags,
    },
};

const EXAMPLES: &str = "\
Examples:
  Let a model write on:
    halite generate model.gguf --prompt=\"The capital of France is\" --max-tokens=32
  Ask a model that was trained for conversations:
    halite generate model.gguf --chat --prompt=\"Why is the sky blue?\"
  A decoder as somebody exported it, with its tokenizer:
    halite generate decoder.onnx --tokenizer=tokenizer.json --prompt=\"Once upon a time\"
  The same text sooner, by a smaller model that writes ahead:
    halite generate model.gguf --draft=small.gguf --prompt=\"Once upon a time\"
  Always the most likely token, on one device, as JSON:
    halite generate model.gguf --device=vulkan://0 --temperature=0 --prompt-file=question.txt --json

Text goes to standard output as it comes, speed and memory to standard error. Ctrl-C ends it and keeps what was written.
Exit status: 0 success, 1 failure, 2 wrong usage, 130 after Ctrl-C.
";

/// Lets a language model (.gguf, .onnx, .pte) write on from a prompt, on a device.
#[derive(Parser, Debug)]
#[command(version = console::VERSION, after_help = EXAMPLES, max_term_width = 110)]
pub struct Flags {
    /// Model (.gguf, of several files the first), or a decoder (.onnx, .pte) with a tokenizer
    #[arg(value_name = "MODEL")]
    pub(super) model: PathBuf,
    /// Text to write on from
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(super) prompt: Option<String>,
    /// File with the text to write on from; - is standard input
    #[arg(long = "prompt-file", value_name = "FILE")]
    pub(super) prompt_file: Option<PathBuf>,
    /// The prompt is what a user says to the model: it is put into the model's chat template
    #[arg(long)]
    pub(super) chat: bool,
    /// What the system says to the model before the user does
    #[arg(long, value_name = "TEXT", requires = "chat", allow_hyphen_values = true)]
    pub(super) system: Option<String>,
    /// Values for the chat template, by their names: JSON, such as {"enable_thinking": false}
    #[arg(long = "chat-template-kwargs", value_name = "JSON", requires = "chat")]
    pub(super) template_values: Option<String>,
    /// Names of control tokens in the prompt, such as <|im_start|>, are these tokens, and not text
    #[arg(long)]
    pub(super) special: bool,
    /// Most tokens that are written
    #[arg(long = "max-tokens", default_value = "256", value_name = "N")]
    pub(super) max_tokens: usize,
    /// Tokens that there is room for, prompt and answer. Default: 4096, or what the model was trained for, if that is less
    #[arg(long, value_name = "TOKENS")]
    pub(super) context: Option<usize>,
    /// How freely tokens are chosen; 0 takes the most likely one
    #[arg(long, default_value = "0.8", value_name = "X", help_heading = "Choice of tokens")]
    temperature: f32,
    /// How many of the most likely tokens count; 0 for all
    #[arg(long = "top-k", default_value = "40", value_name = "N", help_heading = "Choice of tokens")]
    top_k: usize,
    /// Part of all probability that the tokens that count have; 1 for all
    #[arg(long = "top-p", default_value = "0.95", value_name = "X", help_heading = "Choice of tokens")]
    top_p: f32,
    /// How likely a token is at least, as a part of how likely the first is; 0 for all
    #[arg(long = "min-p", default_value = "0.05", value_name = "X", help_heading = "Choice of tokens")]
    min_p: f32,
    /// Makes tokens less likely that were there lately; 1 for not
    #[arg(long = "repeat-penalty", default_value = "1", value_name = "X", help_heading = "Choice of tokens")]
    repeat_penalty: f32,
    /// What logits of tokens that were there lately are made less by, for each time; 0 for nothing
    #[arg(
        long = "frequency-penalty",
        default_value = "0",
        value_name = "X",
        allow_negative_numbers = true,
        help_heading = "Choice of tokens"
    )]
    frequency_penalty: f32,
    /// The same once, however often they were there
    #[arg(
        long = "presence-penalty",
        default_value = "0",
        value_name = "X",
        allow_negative_numbers = true,
        help_heading = "Choice of tokens"
    )]
    presence_penalty: f32,
    /// How many of the last tokens were there lately
    #[arg(long = "repeat-last", default_value = "64", value_name = "N", help_heading = "Choice of tokens")]
    repeat_last: usize,
    /// Where random numbers begin; the same seed gives the same text. Default: another one at each call
    #[arg(long, value_name = "NUMBER", help_heading = "Choice of tokens")]
    seed: Option<u64>,
    /// The text is one JSON value that follows the JSON schema in this file, and then ends; - is standard input
    #[arg(long = "json-schema", value_name = "FILE", help_heading = "Choice of tokens")]
    pub(super) json_schema: Option<PathBuf>,
    #[command(flatten)]
    pub(super) choice: ChoiceFlags,
    #[command(flatten)]
    pub(super) template: TemplateFlags,
    #[command(flatten)]
    pub(super) thoughts: ThoughtFlags,
    /// Text that ends what is written, and is not written. May be repeated
    #[arg(long = "stop", value_name = "TEXT", allow_hyphen_values = true)]
    pub(super) stops: Vec<String>,
    /// Writes on behind the token that ends the text
    #[arg(long = "ignore-end", alias = "ignore-eos")]
    pub(super) ignore_end: bool,
    /// Gives up after this many seconds
    #[arg(long, value_parser = seconds, value_name = "SECONDS")]
    pub(super) timeout: Option<Duration>,
    /// Prints text, tokens and speed as one JSON object on standard output, errors included
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) decoder: DecoderFlags,
    #[command(flatten)]
    pub(super) draft: DraftFlags,
    #[command(flatten)]
    pub(super) caches: CacheTypeFlags,
    #[command(flatten)]
    pub(super) on: LanguageModelFlags,
    #[command(flatten)]
    pub(super) common: CommonFlags,
}

impl Flags {
    /// How tokens are chosen.
    pub(super) fn sampling(&self) -> Result<Sampling> {
        let checked = |name: &str, value: f32, is_right: bool, right: &str| match is_right {
            true => Ok(value),
            false => Err(Failure::Usage(format!("--{name}={value} is not {right}"))),
        };
        let part = |name, value| checked(name, value, (0.0..=1.0).contains(&value), "a number from 0 to 1");
        let (warmth, penalty) = (self.temperature, self.repeat_penalty);
        let at_least = |least: f32, value: f32| value >= least && value.is_finite();
        let finite = |name, value: f32| checked(name, value, value.is_finite(), "a number");
        Ok(Sampling {
            temperature: checked("temperature", warmth, at_least(0.0, warmth), "a number from 0 up")?,
            top_k: self.top_k,
            top_p: part("top-p", self.top_p)?,
            min_p: part("min-p", self.min_p)?,
            repeat_penalty: checked(
                "repeat-penalty",
                penalty,
                at_least(f32::MIN_POSITIVE, penalty),
                "a number above 0",
            )?,
            frequency_penalty: finite("frequency-penalty", self.frequency_penalty)?,
            presence_penalty: finite("presence-penalty", self.presence_penalty)?,
            repeat_last: self.repeat_last,
            seed: self.seed.unwrap_or_else(random_seed),
        })
    }
}

/// Another number at each call.
fn random_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampling(arguments: &[&str]) -> Result<Sampling> {
        let all = ["generate", "m.gguf", "--prompt=x"].iter().chain(arguments);
        Flags::try_parse_from(all).expect("the flags are right").sampling()
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        assert_eq!(sampling(&["--seed=7", "--top-k=3"]).unwrap().seed, 7);
        for wrong in ["--top-p=1.5", "--temperature=-1", "--min-p=2", "--repeat-penalty=0", "--top-p=nan"] {
            let Err(Failure::Usage(text)) = sampling(&[wrong]) else { panic!("{wrong} is accepted") };
            let (flag, value) = wrong.split_once('=').unwrap();
            let value: f32 = value.parse().unwrap();
            assert!(text.starts_with(&format!("{flag}={value} is not a number ")), "{text}");
        }
    }

    #[test]
    fn drafted_tokens_are_those_of_a_draft() {
        let all = ["generate", "m.gguf", "--prompt=x", "--draft-tokens=3"];
        assert!(Flags::try_parse_from(all).is_err());
        assert!(Flags::try_parse_from(all.into_iter().chain(["--draft=d.gguf"])).is_ok());
    }

    #[test]
    fn a_system_message_is_for_conversations() {
        assert!(Flags::try_parse_from(["generate", "m.gguf", "--prompt=x", "--system=y"]).is_err());
    }
}
