//! Flags that tools for language models share.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use halite::{CacheType, ChooseOn, Generator, GeneratorOptions, SessionBuilder};

use crate::{
    console::{Failure, Result},
    flags::{CacheFlags, DeviceFlags},
    text_file,
};

/// Which devices a language model runs on, and where what is compiled of it is kept.
#[derive(Args, Clone, Debug)]
pub struct LanguageModelFlags {
    #[command(flatten)]
    pub(crate) cache: CacheFlags,
    #[command(flatten)]
    pub(crate) devices: DeviceFlags,
}

/// How the caches of a language model hold keys and values.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Caches of keys and values")]
pub struct CacheTypeFlags {
    /// Type of keys in caches: f16, or q8_0 and q4_0, which take about half and a quarter of its memory
    #[arg(long = "cache-type-k", alias = "cache_type_k", default_value = "f16", value_name = "TYPE")]
    keys: CacheType,
    /// Type of values in caches: f16, q8_0 or q4_0
    #[arg(long = "cache-type-v", alias = "cache_type_v", default_value = "f16", value_name = "TYPE")]
    values: CacheType,
}

impl CacheTypeFlags {
    /// These types for a generator.
    pub(crate) fn apply(&self, options: GeneratorOptions) -> GeneratorOptions {
        options.cache_types(self.keys, self.values)
    }

    /// Whether another than the default was asked for.
    pub(crate) fn are_given(&self) -> bool {
        [self.keys, self.values] != [CacheType::default(); 2]
    }
}

/// Whether what a model thinks is told apart from what it says.
#[derive(Args, Clone, Debug)]
pub struct ThoughtFlags {
    /// What becomes of what a model thinks before it answers
    #[arg(long = "reasoning-format", default_value = "auto", value_name = "FORMAT")]
    format: ThoughtFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ThoughtFormat {
    /// It is told apart, as 'reasoning_content', where the model marks it as models are used to
    Auto,
    /// It is a part of the answer, with its marks
    None,
}

impl ThoughtFlags {
    /// Whether thoughts are told apart.
    pub(crate) fn are_parted(&self) -> bool {
        self.format == ThoughtFormat::Auto
    }
}

/// A chat template that takes any messages, in the marks that most models know, of those that say not which they take.
pub(crate) const CHATML: &str = "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}\
    {% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
/// What ends an answer there.
const CHATML_END: &str = "<|im_end|>";
/// What that template is called.
const CHATML_NAME: &str = "chatml";

/// The mark that ends an answer to a prompt with such marks, where the model has no token for it.
pub(crate) fn end_of(generator: &Generator, prompt: &str) -> Option<String> {
    let length = |text: &str| generator.tokenize(text, true).len();
    let is_token = || length(CHATML_END) <= length("") + 1;
    (prompt.contains(CHATML_END) && !is_token()).then(|| CHATML_END.to_owned())
}

/// What conversations become prompts by.
#[derive(Args, Clone, Debug)]
pub struct TemplateFlags {
    /// Chat template, in the place of the model's: a file (Jinja), or chatml
    #[arg(long = "chat-template", value_name = "FILE|chatml")]
    template: Option<PathBuf>,
}

impl TemplateFlags {
    /// This template for a generator.
    pub(crate) fn apply(&self, options: GeneratorOptions) -> Result<GeneratorOptions> {
        match &self.template {
            None => Ok(options),
            Some(name) if name.as_os_str() == CHATML_NAME => Ok(options.chat_template(CHATML)),
            Some(path) => Ok(options.chat_template(text_file::read(path)?)),
        }
    }

    /// Whether one was given.
    pub(crate) fn is_given(&self) -> bool {
        self.template.is_some()
    }
}

/// What a language model in another format than GGUF does not say itself.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Models in other formats than GGUF")]
pub struct DecoderFlags {
    /// Tokenizer: a tokenizer.json, a SentencePiece or tiktoken tokenizer.model, or a GGUF file. Default: what lies beside the model
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<PathBuf>,
    /// Size of a dimension that the model leaves open and no prompt tells, such as head_size=64. May be repeated
    #[arg(long = "dim", value_name = "NAME=SIZE")]
    dims: Vec<String>,
}

impl DecoderFlags {
    /// The tokenizer for a generator.
    pub(crate) fn apply(&self, options: GeneratorOptions) -> GeneratorOptions {
        match &self.tokenizer {
            Some(file) => options.tokenizer(file),
            None => options,
        }
    }

    /// The sizes for a session.
    pub(crate) fn sizes(&self, builder: SessionBuilder) -> Result<SessionBuilder> {
        let sized = |text: &String| {
            let (name, size) = text.split_once('=')?;
            Some((name.to_owned(), size.parse().ok()?))
        };
        self.dims.iter().try_fold(builder, |builder, text| match sized(text) {
            Some((name, size)) => Ok(builder.dimension(name, size)),
            None => Err(Failure::Usage(format!("--dim={text} is not NAME=SIZE, such as head_size=64"))),
        })
    }

    /// Whether a tokenizer was given.
    pub(crate) fn has_tokenizer(&self) -> bool {
        self.tokenizer.is_some()
    }
}

/// A second model that writes ahead of the first.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Draft")]
pub struct DraftFlags {
    /// A smaller model (.gguf) with the same tokens that writes some ahead; the model looks at all of them in one call, and takes those that
    /// it would have chosen itself. The text is the same as without
    #[arg(long, value_name = "FILE")]
    pub(crate) draft: Option<PathBuf>,
    /// Most tokens that are drafted at a time, 1 to 15. Default: 7
    #[arg(long = "draft-tokens", alias = "draft-max", requires = "draft", value_name = "N")]
    tokens: Option<usize>,
}

impl DraftFlags {
    /// This draft for a generator, by the model that [`crate::session::draft`] opened.
    pub(crate) fn apply(&self, options: GeneratorOptions, writer: Option<&Generator>) -> GeneratorOptions {
        let options = writer.into_iter().fold(options, GeneratorOptions::draft);
        self.tokens.into_iter().fold(options, GeneratorOptions::draft_tokens)
    }
}

/// Where a language model's tokens are chosen.
#[derive(Args, Clone, Debug)]
pub struct ChoiceFlags {
    /// Where tokens are chosen: device, so that the next call does not wait for the host; host; or auto, which is the device if it is a
    /// GPU. Penalties, and --top-k of 0 or more than 64, are the host's in any case
    #[arg(
        long = "choose-on",
        default_value = "auto",
        value_name = "PLACE",
        help_heading = "Choice of tokens"
    )]
    choose_on: ChooseOn,
}

impl ChoiceFlags {
    /// This place for a generator.
    pub(crate) fn apply(&self, options: GeneratorOptions) -> GeneratorOptions {
        options.choose_on(self.choose_on)
    }

    /// Whether another than the default was asked for.
    pub(crate) fn is_given(&self) -> bool {
        self.choose_on != ChooseOn::Auto
    }
}
