//! What stands in the files beside a tokenizer's: the tokens of the beginning and the end, and the chat template.

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use halite_formats::gguf::{Gguf, is_gguf};
use serde_json::Value;

use super::json::at::At;
use crate::{ChatTemplate, TextError, Tokenizer, special::Special};

/// Bytes of a tokenizer's file; the largest that are published have some 35 MB.
const LARGEST: u64 = 256 << 20;
/// Bytes of the others.
const LARGEST_OTHER: u64 = 16 << 20;
/// Names of tokenizers' files, the best first.
const NAMES: &[&str] = &["tokenizer.json", "tokenizer.model", "spiece.model", "spm.model"];

/// A tokenizer with the chat template of its model.
#[derive(Debug)]
pub struct TextFiles {
    /// The tokenizer.
    pub tokenizer: Tokenizer,
    /// The chat template, if there is one.
    pub template: Option<ChatTemplate>,
}

impl TextFiles {
    /// Reads a tokenizer's file, or that of a folder, and what stands beside it: `tokenizer_config.json`,
    /// `special_tokens_map.json`, `generation_config.json`, `chat_template.jinja`.
    ///
    /// # Errors
    /// A file is not there, cannot be read, or is too large; it is damaged, or asks for something that is not known.
    pub fn open(path: &Path) -> Result<TextFiles, TextError> {
        let path = if path.is_dir() { found(path)? } else { path.to_owned() };
        TextFiles::read(&path, &[])
    }

    /// The same of the files in a model's folder. What is a link must not lead out of it, as nobody named that file, nor out of the folder
    /// where the model's file really is: caches of downloads keep all in one place and link to it.
    ///
    /// # Errors
    /// As [`TextFiles::open`], and when a file is elsewhere.
    pub fn of_model(model: &Path) -> Result<TextFiles, TextError> {
        let folder = match model.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let real = fs::canonicalize(model).ok().and_then(|model| Some(model.parent()?.to_owned()));
        let allowed: Vec<PathBuf> = fs::canonicalize(folder).ok().into_iter().chain(real).collect();
        TextFiles::read(&found(folder)?, &allowed)
    }

    /// Reads a tokenizer's file, all of whose files are in these folders; without one they may be anywhere.
    fn read(path: &Path, allowed: &[PathBuf]) -> Result<TextFiles, TextError> {
        let file = bytes(path, LARGEST, allowed)?;
        let named = |error: TextError| match error {
            TextError::File { place, problem } => {
                TextError::file(format!("{}: {place}", path.display()), problem)
            }
            TextError::Unsupported(problem) => {
                TextError::Unsupported(format!("{}: {problem}", path.display()))
            }
            other => other,
        };
        if is_gguf(&file) {
            let file = Gguf::read(&file)
                .map_err(|error| TextError::file(path.display().to_string(), error.to_string()))?;
            let tokenizer = Tokenizer::read(&file)?;
            let template = ChatTemplate::read(&file, &tokenizer)?;
            return Ok(TextFiles { tokenizer, template });
        }
        let tokenizer = Tokenizer::from_file_bytes(&file).map_err(named)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Beside::read(folder, allowed)?.apply(tokenizer)
    }
}

/// The tokenizer's file of a folder.
fn found(folder: &Path) -> Result<PathBuf, TextError> {
    let all = NAMES.iter().map(|name| folder.join(name));
    all.into_iter().find(|path| path.is_file()).ok_or_else(|| TextError::Unreadable {
        path: folder.display().to_string(),
        problem: format!("has no tokenizer; looked for: {}", NAMES.join(", ")),
    })
}

fn bytes(path: &Path, most: u64, allowed: &[PathBuf]) -> Result<Bytes, TextError> {
    let unreadable = |problem: String| TextError::Unreadable { path: path.display().to_string(), problem };
    let real = fs::canonicalize(path).map_err(|error| unreadable(format!("cannot be opened: {error}")))?;
    if !allowed.is_empty() && !allowed.iter().any(|folder| real.starts_with(folder)) {
        let problem = format!(
            "is really {}, outside of the model's folder; name it as the tokenizer, or put the file itself there",
            real.display()
        );
        return Err(unreadable(problem));
    }
    let file = File::open(path).map_err(|error| unreadable(format!("cannot be opened: {error}")))?;
    let mut bytes = Vec::new();
    file.take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(format!("cannot be read: {error}")))?;
    match bytes.len() as u64 > most {
        true => Err(unreadable(format!("has more than {} MiB", most >> 20))),
        false => Ok(bytes.into()),
    }
}

/// The files beside a tokenizer's, each null where there is none.
struct Beside {
    config: (String, Value),
    map: (String, Value),
    generation: (String, Value),
    template: Option<String>,
}

impl Beside {
    fn read(folder: &Path, allowed: &[PathBuf]) -> Result<Beside, TextError> {
        let json = |name: &str| {
            let path = folder.join(name);
            let place = path.display().to_string();
            if !path.is_file() {
                return Ok::<_, TextError>((place, Value::Null));
            }
            let value = serde_json::from_slice(&bytes(&path, LARGEST_OTHER, allowed)?)
                .map_err(|error| TextError::file(&place, format!("is no JSON: {error}")))?;
            Ok((place, value))
        };
        let path = folder.join("chat_template.jinja");
        let template = match path.is_file() {
            true => Some(String::from_utf8_lossy(&bytes(&path, LARGEST_OTHER, allowed)?).into_owned()),
            false => None,
        };
        Ok(Beside {
            config: json("tokenizer_config.json")?,
            map: json("special_tokens_map.json")?,
            generation: json("generation_config.json")?,
            template,
        })
    }

    fn apply(&self, mut tokenizer: Tokenizer) -> Result<TextFiles, TextError> {
        let config = At::root(&self.config.1, &self.config.0);
        let map = At::root(&self.map.1, &self.map.0);
        self.added(&config, &mut tokenizer)?;
        let token = |name: &str, tokenizer: &Tokenizer| {
            for at in [config.get(name), map.get(name)] {
                if let Some(text) = token_text(&at)? {
                    let found = tokenizer.vocabulary.find(text.as_bytes());
                    return found
                        .map(Some)
                        .ok_or_else(|| at.wrong(format!("is {text:?}, which is no token")));
                }
            }
            Ok(None)
        };
        let (begin, end) = (token("bos_token", &tokenizer)?, token("eos_token", &tokenizer)?);
        tokenizer.begin = begin.or(tokenizer.begin);
        tokenizer.end = end.or(tokenizer.end);
        tokenizer.ends.extend(tokenizer.end);
        // Where the file says so, this counts, whatever else the tokenizer writes there.
        if let Some(wanted) = config.get("add_bos_token").some() {
            let wanted = wanted.flag_or(false)?;
            tokenizer.before = tokenizer.begin.filter(|_| wanted).into_iter().collect();
        }
        if let Some(wanted) = config.get("add_eos_token").some() {
            let wanted = wanted.flag_or(false)?;
            tokenizer.behind = tokenizer.end.filter(|_| wanted).into_iter().collect();
        }
        self.ends(&mut tokenizer)?;
        let template = self.chat(&config, &tokenizer)?;
        Ok(TextFiles { tokenizer, template })
    }

    /// Tokens that only the configuration knows, beside files of SentencePiece and tiktoken.
    fn added(&self, config: &At<'_>, tokenizer: &mut Tokenizer) -> Result<(), TextError> {
        let Some(list) = config.get("added_tokens_decoder").some() else { return Ok(()) };
        let mut added = Vec::new();
        for number in list.object()?.keys() {
            let own = list.get(number);
            let id: u32 = number.parse().map_err(|_| own.wrong("is no token's number"))?;
            let special = special(&own, id)?;
            match tokenizer.vocabulary.text(id).filter(|known| !known.is_empty()) {
                None => added.push(special),
                Some(known) if known == special.text => {}
                // Some models have other numbers than their files of SentencePiece, by a rule that only programs know.
                Some(known) => {
                    let problem =
                        format!("is {:?}; the tokenizer's file has {known:?} at this number", special.text);
                    return Err(own.unsupported(&problem));
                }
            }
        }
        match added.is_empty() {
            true => Ok(()),
            false => tokenizer.add(added, &list.place),
        }
    }

    /// The tokens of the end that generation stops at.
    fn ends(&self, tokenizer: &mut Tokenizer) -> Result<(), TextError> {
        let generation = At::root(&self.generation.1, &self.generation.0);
        let end = generation.get("eos_token_id");
        let all = match end.value {
            Value::Null => Vec::new(),
            Value::Array(_) => end.array()?,
            _ => vec![end],
        };
        for at in all {
            let id = at.id()?;
            if tokenizer.vocabulary.token(id).is_none() {
                return Err(at.wrong(format!("is {id}; there are {} tokens", tokenizer.vocabulary.len())));
            }
            tokenizer.ends.push(id);
        }
        Ok(())
    }

    fn chat(&self, config: &At<'_>, tokenizer: &Tokenizer) -> Result<Option<ChatTemplate>, TextError> {
        let at = config.get("chat_template");
        let source = match (&self.template, at.value) {
            (Some(own), _) => own.as_str(),
            (None, Value::Null) => return Ok(None),
            // Several, by name.
            (None, Value::Array(_)) => {
                let all = at.array()?;
                let is_default = |own: &&At<'_>| own.get("name").value.as_str() == Some("default");
                let own = all.iter().find(is_default).or(all.first()).ok_or_else(|| at.wrong("is empty"))?;
                own.get("template").text()?
            }
            (None, _) => at.text()?,
        };
        let [begin, end] = tokenizer.marks();
        ChatTemplate::new(source, begin, end).map(Some)
    }
}

/// The text of a token, which stands there as such or with its settings.
fn token_text<'a>(at: &At<'a>) -> Result<Option<&'a str>, TextError> {
    match at.value {
        Value::Null => Ok(None),
        Value::Object(_) => at.get("content").text().map(Some),
        _ => at.text().map(Some),
    }
}

/// A token with its settings.
fn special(at: &At<'_>, id: u32) -> Result<Special, TextError> {
    Ok(Special {
        text: at.get("content").text()?.to_owned(),
        id,
        everybody: !at.get("special").flag_or(false)?,
        strips_before: at.get("lstrip").flag_or(false)?,
        strips_behind: at.get("rstrip").flag_or(false)?,
        single_word: at.get("single_word").flag_or(false)?,
    })
}
