//! A process that reads hostile files, one after the other, and says for each how it ended and what it cost. Whatever a file does to
//! it is told by its end, or by its silence.

use std::{
    cell::Cell,
    io::{BufRead as _, Cursor, Write as _},
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use halite::{
    Cache, DeviceKind, Dimension, Generator, GeneratorOptions, RunOptions, Session, Source, Stage, ValueType,
    compile::{Compiler, Model, OpenOptions, Sizes},
    host::npy,
};
use halite_formats::params;
use halite_text::{ChatTemplate, Message, Tokenizer};
use serde::{Deserialize, Serialize};

use crate::{
    made::{Kind, Reader, Sound},
    measure::{Meter, device_time, processor_time},
};

/// How long a function may run once its program was loaded: a loop without an end is no fault of the reader.
pub const RUN: Duration = Duration::from_millis(500);
/// Tokens that a language model has room for.
const CONTEXT: usize = 64;
/// The device of modules where none is given.
const PROCESSOR: &str = "local-sync";

/// Letters of a text that a tokenizer takes apart.
const LETTERS: usize = 2000;

/// Bytes of an input that a function is called with, at most: the caller makes it, and not the file.
const MOST_INPUT: u64 = 16 << 20;

/// Bytes that drivers may take for kernels that they compile and run, beyond which they count as the file's.
const DRIVER_MEMORY: u64 = 128 << 20;

/// What the work of the device and its driver came to.
#[derive(Debug, Default)]
struct Device {
    time: Cell<Duration>,
    memory: Cell<u64>,
}

/// What is told of a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// How it ended.
    pub end: End,
    /// Milliseconds of processor time, but for that of functions that ran, of drivers that compiled kernels, and of what a device on
    /// the processor computed as the program was loaded: what ends these is the time by the clock.
    pub milliseconds: u64,
    /// Bytes of memory beyond those that the process held before, but for those of a device on the processor and some for drivers.
    pub memory: u64,
    /// The error, if there was one.
    pub text: String,
}

/// How a file was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// It was read, compiled, run.
    Taken,
    /// It was refused with an error.
    Refused,
    /// Some check in the code failed.
    Panicked,
}

/// Takes names of kinds with seeds, or paths of files, from standard input until its end.
pub fn serve(root: &Path, device: Option<&str>) -> Result<()> {
    let sound = Sound::of_repository(root);
    // What a driver does as it is loaded costs seconds on some systems, and counts for no file.
    let _loaded = device.map(halite::Device::open).transpose().context("opening the device")?;
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line.context("reading what to do")?;
        let (extension, reader, bytes) = file(&line, &sound)?;
        let answer = judge(&format!("hostile.{extension}"), reader, &bytes.into(), device);
        writeln!(out, "{}", serde_json::to_string(&answer)?).context("telling how it ended")?;
        out.flush().context("telling how it ended")?;
    }
    Ok(())
}

fn file(line: &str, sound: &Sound) -> Result<(String, Reader, Vec<u8>)> {
    if let Some((name, seed)) = line.split_once(' ')
        && let Some(kind) = Kind::named(name)
    {
        let seed = seed.parse().context("the seed is a number")?;
        let bytes = kind.make(seed, sound).with_context(|| format!("there is no sound file for {name}"))?;
        return Ok((kind.extension.to_owned(), kind.reader, bytes));
    }
    let path = Path::new(line);
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_owned();
    let reader = match extension.as_str() {
        "onnx" | "pte" | "vgf" | "tosa" => Reader::Model,
        "vmfb" => Reader::Module,
        "npy" | "npz" => Reader::Array,
        "png" | "jpg" => Reader::Picture,
        "irpa" | "gguf" | "safetensors" => Reader::Archive,
        "json" | "model" | "tiktoken" => Reader::Tokenizer,
        "jinja" => Reader::Template,
        other => bail!("files '.{other}' are not known: {line}"),
    };
    Ok((extension, reader, std::fs::read(path).with_context(|| format!("reading {line}"))?))
}

fn judge(name: &str, reader: Reader, bytes: &Bytes, device: Option<&str>) -> Answer {
    let meter = Meter::start();
    let own = Device::default();
    let ended = catch_unwind(AssertUnwindSafe(|| read(name, reader, bytes, device, &own)));
    let cost = meter.cost();
    let time = cost.time.saturating_sub(own.time.get());
    let (end, text) = match ended {
        Ok(Ok(())) => (End::Taken, String::new()),
        Ok(Err(error)) => (End::Refused, format!("{error:#}")),
        Err(_) => (End::Panicked, "see the process's own words".to_owned()),
    };
    Answer {
        end,
        milliseconds: time.as_millis() as u64,
        memory: cost.memory.saturating_sub(own.memory.get()),
        text,
    }
}

fn read(name: &str, reader: Reader, bytes: &Bytes, device: Option<&str>, own: &Device) -> Result<()> {
    match (reader, device) {
        (Reader::Model, None) => compile(name, bytes),
        (Reader::Model, Some(device)) => run(name, bytes, device, own),
        (Reader::Module, device) => run(name, bytes, device.unwrap_or(PROCESSOR), own),
        (Reader::Archive, _) => {
            let archive = params::read(Path::new(name), bytes.clone())?;
            let some = archive.entries.iter().take(100);
            anyhow::ensure!(
                some.clone().all(|entry| archive.entry(&entry.name).is_some()),
                "an entry is not found"
            );
            Ok(())
        }
        (Reader::Picture, _) => {
            let is_stretched = bytes.len() % 2 == 1;
            let file = Cursor::new(bytes);
            let prepared =
                halite_tools::picture::prepared(file, bytes.len() as u64, [224, 224], is_stretched);
            prepared.map(drop).map_err(|problem| anyhow::anyhow!("{problem}"))
        }
        (Reader::Tokenizer, _) => take_apart(bytes),
        (Reader::Template, _) => converse(bytes),
        (Reader::Array, _) if name.ends_with("npz") => {
            let arrays = halite_tools::npz::read_from(Cursor::new(bytes), bytes.len() as u64, name);
            arrays.map(drop).map_err(|failure| anyhow::anyhow!("{failure}"))
        }
        (Reader::Array, _) => {
            let mut rest = &bytes[..];
            while npy::read(&mut rest).map_err(|status| anyhow::anyhow!("{status}"))?.is_some() {}
            Ok(())
        }
    }
}

/// Reads a tokenizer, and takes texts apart with it: of some letters again and again, and of all kinds.
fn take_apart(file: &Bytes) -> Result<()> {
    let read = Tokenizer::from_file_bytes(file);
    // Of lists with other numbers of tokens it has to be said how texts are split.
    let tokenizer = read.or_else(|error| Tokenizer::from_tiktoken(file, "gpt-2", &[]).map_err(|_| error))?;
    for text in [
        "a".repeat(LETTERS),
        "ab el\u{e9}".repeat(LETTERS / 7),
        "Hello,  world's 12\n\n\u{e9}<s>\u{3000}中".to_owned(),
    ] {
        for with_control in [false, true] {
            let tokens = tokenizer.encode(&text, with_control);
            let known = |token: &u32| tokenizer.vocabulary().kind(*token).is_some();
            anyhow::ensure!(tokens.iter().all(known), "a token that there is not");
            tokenizer.decode(&tokens, with_control);
        }
    }
    Ok(())
}

/// Reads a chat template, and makes prompts of conversations with it.
fn converse(file: &Bytes) -> Result<()> {
    let template = ChatTemplate::new(std::str::from_utf8(file)?, "<s>", "</s>")?;
    template.prompt(&[])?;
    let turns = ["system", "user", "assistant", "user"]
        .map(|role| Message::new(role, "Hello, \n<think>x</think> world"));
    template.prompt(&turns)?;
    Ok(())
}

/// Compiles a model for every device.
fn compile(name: &str, bytes: &Bytes) -> Result<()> {
    let source = Source::bytes(bytes.clone()).named(name);
    let model = Model::open_with(source, &OpenOptions::new())?;
    model.functions()?;
    // Language models leave these open: a call of few tokens.
    let sizes = match name.ends_with("gguf") {
        true => [("context", CONTEXT), ("rows", 1), ("tokens", 4)]
            .into_iter()
            .fold(Sizes::new(), |sizes, (name, size)| sizes.dimension(name, [size])),
        false => Sizes::new(),
    };
    Compiler::new().sizes(sizes).compile(&model)?;
    Ok(())
}

/// The processor time of a driver that compiles kernels while a session is built.
#[derive(Default)]
struct DriverTime(Mutex<DriverTimes>);

#[derive(Default)]
struct DriverTimes {
    since: Option<Duration>,
    all: Duration,
}

impl DriverTime {
    /// That the building is in a stage now, or over. The clock is asked where that changes: a stage tells of thousands of steps.
    fn stage(&self, stage: Option<Stage>, clock: impl Fn() -> Duration) {
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let compiles = stage == Some(Stage::BuildingPipelines);
        if compiles == times.since.is_some() {
            return;
        }
        let now = clock();
        match times.since.take() {
            Some(since) => times.all += now.saturating_sub(since),
            None => times.since = Some(now),
        }
    }

    /// All of it, at the end of the building.
    fn end(&self, clock: impl Fn() -> Duration) -> Duration {
        self.stage(None, clock);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).all
    }
}

/// Processor time of the process without that of threads that are a device, which count by themselves.
fn host_time() -> Duration {
    processor_time(None).saturating_sub(device_time(None))
}

/// Loads a program as a stranger's, and runs what needs no inputs that are not known, or very large ones. What devices and their drivers
/// do is told apart: kernels that are compiled, constants that are computed once as a program is loaded, functions that run, and what of
/// them is still under way when nobody waits any more. Deadlines bound these.
fn run(name: &str, bytes: &Bytes, device: &str, own: &Device) -> Result<()> {
    let source = Source::bytes(bytes.clone()).named(name);
    let (before, driver) = (device_time(None), Arc::new(DriverTime::default()));
    let told = Arc::clone(&driver);
    let builder = Session::builder().untrusted().cache(Cache::off()).device(device).model(source);
    let builder = builder.progress(move |progress| told.stage(Some(progress.stage), host_time));
    let built = match name.ends_with("gguf") {
        true => builder.generator(GeneratorOptions::new().context(CONTEXT)).map(Program::Text),
        false => builder.build().map(Program::Plain),
    };
    own.time.set(device_time(None).saturating_sub(before) + driver.end(host_time));
    let program = built?;
    let built = processor_time(None);
    let ended = program.call();
    own.memory.set(DRIVER_MEMORY + program.reserved());
    drop(program);
    own.time.set(own.time.get() + processor_time(None).saturating_sub(built));
    ended
}

/// What was made of a file.
enum Program {
    Plain(Session),
    Text(Generator),
}

impl Program {
    fn call(&self) -> Result<()> {
        match self {
            Program::Plain(session) => functions(session),
            Program::Text(generator) => {
                let mut sequence = generator.sequence()?;
                sequence.prompt(&[0, 1], &RunOptions::new().timeout(RUN))?;
                Ok(())
            }
        }
    }

    /// Memory of devices on the processor.
    fn reserved(&self) -> u64 {
        // A generator's is some KiB: of few tokens, and weights that lie in the file.
        let Program::Plain(session) = self else { return 0 };
        let of_processors = session.devices().iter().filter(|device| device.info().kind() == DeviceKind::Cpu);
        of_processors.map(|device| device.memory().reserved).sum()
    }
}

fn functions(session: &Session) -> Result<()> {
    for info in session.functions().to_vec() {
        let function = session.function(&info.name)?;
        if info.inputs.iter().any(|input| bytes_of(&input.value_type) > MOST_INPUT) {
            continue;
        }
        if let Some(inputs) = function.zeros() {
            function.run_with(inputs, &RunOptions::new().timeout(RUN))?;
        }
    }
    Ok(())
}

/// Bytes of a tensor of a type, or more.
fn bytes_of(value: &ValueType) -> u64 {
    /// No element has more.
    const LARGEST: u64 = 16;
    let ValueType::Tensor { shape: Some(shape), .. } = value else { return 0 };
    let size = |dimension: &Dimension| match dimension {
        Dimension::Fixed(size) => *size,
        _ => 1,
    };
    shape.iter().map(size).fold(LARGEST, |bytes: u64, size| bytes.saturating_mul(size as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_driver_compiles_is_told_apart_and_nothing_else() {
        let driver = DriverTime::default();
        let at = |second: u64| move || Duration::from_secs(second);
        let reports = [
            (1, Stage::Planning),
            (3, Stage::BuildingPipelines),
            (5, Stage::BuildingPipelines),
            (7, Stage::LoadingWeights),
            (20, Stage::BuildingPipelines),
        ];
        for (second, stage) in reports {
            driver.stage(Some(stage), at(second));
        }
        assert_eq!(driver.end(at(21)), Duration::from_secs(4 + 1));
        assert_eq!(driver.end(at(30)), Duration::from_secs(5), "nothing is built behind the end");
    }
}
