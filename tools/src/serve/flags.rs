//! The flags of `halite serve`.

use std::{
    env::VarError,
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
    time::Duration,
};

use clap::Parser;

use crate::{
    console::{self, CommonFlags, Failure, Result},
    flags::seconds,
    text_file,
    text_flags::{
        CacheTypeFlags, ChoiceFlags, DecoderFlags, LanguageModelFlags, TemplateFlags, ThoughtFlags,
    },
};

const EXAMPLES: &str = "\
Examples:
  Serve a model on this machine:
    halite serve model.gguf
    curl http://127.0.0.1:8080/v1/chat/completions -H 'Content-Type: application/json' \\
        -d '{\"messages\": [{\"role\": \"user\", \"content\": \"Why is the sky blue?\"}]}'
  To others on the network, who have to know a token:
    halite serve model.gguf --host=0.0.0.0 --token-file=token.txt

Paths: GET /health, /v1/models; POST /v1/completions, /v1/chat/completions, /v1/responses, /v1/embeddings. Ctrl-C lets requests end.
";

/// Serves a language model (.gguf, .onnx, .pte) over HTTP, in the form of OpenAI's interface.
#[derive(Parser, Debug)]
#[command(version = console::VERSION, after_help = EXAMPLES, max_term_width = 110)]
pub struct Flags {
    /// Model (.gguf, of several files the first), or a decoder (.onnx, .pte) with a tokenizer
    #[arg(value_name = "MODEL")]
    pub(super) model: PathBuf,
    /// Address that connections come to. Others than this machine's need a token
    #[arg(long, default_value = "127.0.0.1", value_parser = address, value_name = "ADDRESS")]
    pub(super) host: IpAddr,
    /// Port; 0 takes any that is free
    #[arg(long, default_value = "8080", value_name = "PORT")]
    pub(super) port: u16,
    /// File whose first line requests have to know ('Authorization: Bearer …'). HALITE_TOKEN does the same
    #[arg(long = "token-file", value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// What the model is called. Default: the file's name without its end
    #[arg(long = "name", value_name = "NAME")]
    pub(super) name: Option<String>,
    /// Requests that are answered at the same time; each has caches of its own
    #[arg(long, default_value = "4", value_name = "N")]
    parallel: usize,
    /// Requests that may wait; more are refused
    #[arg(long, default_value = "64", value_name = "N")]
    pub(super) queue: usize,
    /// Bytes of the largest request
    #[arg(long = "max-body", default_value = "4194304", value_name = "BYTES")]
    pub(super) max_body: usize,
    /// Tokens that there is room for, prompt and answer. Default: 4096, or what the model was trained for, if that is less
    #[arg(long, value_name = "TOKENS")]
    pub(super) context: Option<usize>,
    /// Gives up a request after this many seconds
    #[arg(long, value_parser = seconds, default_value = "600", value_name = "SECONDS")]
    pub(super) timeout: Duration,
    /// How long requests may take to end after Ctrl-C, in seconds
    #[arg(long, value_parser = seconds, default_value = "10", value_name = "SECONDS")]
    pub(super) grace: Duration,
    #[command(flatten)]
    pub(super) decoder: DecoderFlags,
    #[command(flatten)]
    pub(super) caches: CacheTypeFlags,
    #[command(flatten)]
    pub(super) choice: ChoiceFlags,
    #[command(flatten)]
    pub(super) template: TemplateFlags,
    #[command(flatten)]
    pub(super) thoughts: ThoughtFlags,
    #[command(flatten)]
    pub(super) on: LanguageModelFlags,
    #[command(flatten)]
    pub(super) common: CommonFlags,
}

/// An address of this machine. One name is known without asking anybody.
fn address(text: &str) -> std::result::Result<IpAddr, String> {
    match text.eq_ignore_ascii_case("localhost") {
        true => Ok(Ipv4Addr::LOCALHOST.into()),
        false => text.parse().map_err(|_| {
            format!("'{text}' is no address, such as 127.0.0.1, ::1, or 0.0.0.0 for all of this machine's")
        }),
    }
}

/// Requests at the same time that a machine could have memory for.
const MOST_PARALLEL: usize = 256;

impl Flags {
    /// How many requests are answered at the same time.
    pub(super) fn parallel(&self) -> Result<usize> {
        match (1..=MOST_PARALLEL).contains(&self.parallel) {
            true => Ok(self.parallel),
            false => Err(Failure::Usage(format!("--parallel={} is not 1 to {MOST_PARALLEL}", self.parallel))),
        }
    }

    /// What requests have to know. Only this machine's own need not.
    pub(super) fn token(&self) -> Result<Option<String>> {
        let token = match &self.token_file {
            Some(path) => Some(text_file::read(path)?.lines().next().unwrap_or("").trim().to_owned()),
            None => match std::env::var("HALITE_TOKEN") {
                Ok(token) => Some(token),
                Err(VarError::NotPresent) => None,
                Err(VarError::NotUnicode(_)) => {
                    return Err(Failure::Usage("HALITE_TOKEN is no text in UTF-8".to_owned()));
                }
            },
        };
        match token {
            Some(token) if token.is_empty() => {
                Err(Failure::Usage("the token is empty: anybody would know it".to_owned()))
            }
            None if !self.host.is_loopback() => Err(Failure::Usage(format!(
                "--host={} lets others ask; give them a token with --token-file=FILE or HALITE_TOKEN",
                self.host
            ))),
            token => Ok(token),
        }
    }

    /// What the model is called.
    pub(super) fn model_name(&self) -> String {
        let stem = || self.model.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        self.name.clone().or_else(stem).unwrap_or_else(|| "model".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_need_a_token() {
        let flags = |more: &[&str]| Flags::try_parse_from(["serve", "m.gguf"].iter().chain(more)).unwrap();
        assert!(flags(&["--host=0.0.0.0"]).token().is_err() || std::env::var("HALITE_TOKEN").is_ok());
        assert!(flags(&["--host=::1"]).token().is_ok());
        assert_eq!(flags(&["--host=localhost"]).host, IpAddr::from([127, 0, 0, 1]));
        assert!(flags(&["--parallel=0"]).parallel().is_err());
        assert_eq!(flags(&[]).model_name(), "m");
    }
}
