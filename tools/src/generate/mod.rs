//! The tool `halite generate`: generates text with a language model.

mod flags;
mod report;

use std::{
    io::{IsTerminal, Write},
    ops::ControlFlow,
    time::Instant,
};

use halite::{
    Divided, Generator, GeneratorOptions, JsonSchema, Message, Piece, RunOptions, Sampler, Sequence, Stop,
    StopTexts, TextDecoder, Thoughts,
};

pub use self::flags::Flags;
use self::report::Report;
use crate::{
    console::{Failure, Result, tool},
    devices,
    interrupt::{self, Watchdog, cancel_on_interrupt},
    progress, session, text_file, text_flags,
    visible::visible,
};

tool!(Flags);

fn run(flags: &Flags) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if devices::answer_queries(&flags.on.devices, &mut out)? {
        return Ok(());
    }
    let sampling = flags.sampling()?;
    check_stops(flags)?;
    let cancel = cancel_on_interrupt();
    // All that is read counts: any file may be a pipe.
    let watchdog = Watchdog::start(flags.on.devices.time(flags.timeout));
    let (prompt, schema) = (prompt_text(flags)?, schema(flags)?);
    let options = watchdog.options(&cancel);
    let started = Instant::now();
    let generator = generator(flags, progress::shown(options.clone()))?;
    progress::go_on("generating text");
    let Prompt { tokens, thoughts, stops } = Prompt::of(flags, &generator, &prompt)?;
    let mut report = Report::new(&generator, started.elapsed(), tokens.len());
    let mut sequence = generator.sequence()?;
    sequence.ignore_end(flags.ignore_end);
    let began = Instant::now();
    sequence.prompt(&tokens, &options).inspect_err(interrupt::note)?;
    report.prompt = began.elapsed();
    let mut writer = Writer::new(&mut out, !flags.json, thoughts);
    let sampler = |schema: &JsonSchema| generator.schema_sampler(sampling.clone(), schema);
    let mut sampler = schema.as_ref().map_or_else(|| Sampler::new(sampling.clone()), sampler);
    let how = (flags.max_tokens, &stops[..]);
    let ended = write_on(how, &mut sequence, &mut sampler, &options, &mut writer, &mut report);
    let failure = writer.failure.take();
    report.memory = sequence.byte_len();
    report.drafted = flags.draft.draft.is_some().then(|| sequence.drafted());
    match flags.json {
        true => report.print_json(&mut out)?,
        false => {
            writeln!(out)?;
            out.flush()?;
            report.print_text();
        }
    }
    outcome(flags, &report, failure, ended)
}

/// What becomes of the tool behind a text.
fn outcome(
    flags: &Flags,
    report: &Report,
    failure: Option<std::io::Error>,
    ended: halite::Result<Stop>,
) -> Result<()> {
    match (failure, ended) {
        (Some(failure), _) => Err(failure.into()),
        (None, Err(error)) if flags.json => Err(Failure::from(error).beside_results()),
        (None, Err(_)) if interrupt::interrupted() => {
            interrupt::tell("interrupted; the text so far is whole");
            Err(Failure::Reported)
        }
        (None, Err(error)) => Err(error.into()),
        (None, Ok(stop)) => {
            report.say_why(stop);
            session::check_validation()
        }
    }
}

/// Texts that end another have to be some.
fn check_stops(flags: &Flags) -> Result<()> {
    if flags.template.is_given() && !flags.chat {
        return Err(Failure::Usage(
            "--chat-template is for conversations: --chat makes the prompt one".to_owned(),
        ));
    }
    match flags.stops.iter().any(String::is_empty) {
        true => {
            Err(Failure::Usage("--stop is an empty text, which ends each answer before it begins".to_owned()))
        }
        false => Ok(()),
    }
}

/// Where text goes as it comes.
struct Writer<'a> {
    out: &'a mut dyn Write,
    shows: bool,
    /// What a stranger's model writes must not be orders to it.
    is_terminal: bool,
    failure: Option<std::io::Error>,
    /// What tells thoughts apart, in conversations.
    thoughts: Option<Thoughts>,
    decoder: TextDecoder,
}

impl<'a> Writer<'a> {
    fn new(out: &'a mut dyn Write, shows: bool, thoughts: Option<Thoughts>) -> Writer<'a> {
        let is_terminal = std::io::stdout().is_terminal();
        Writer { out, shows, is_terminal, failure: None, thoughts, decoder: TextDecoder::default() }
    }

    /// The text that a token completes, with marks of thoughts in conversations.
    fn text(&mut self, generator: &Generator, piece: &Piece) -> String {
        match &self.thoughts {
            Some(thoughts) => self.decoder.push(&generator.bytes_for(piece.token, thoughts)),
            None => piece.text.clone(),
        }
    }

    /// Tells text that is sure: thoughts to the report, and the rest to both.
    fn tell(&mut self, text: &str, report: &mut Report) -> ControlFlow<()> {
        let Some(thoughts) = &mut self.thoughts else {
            report.text.push_str(text);
            return self.show(text);
        };
        let part = thoughts.push(text);
        self.tell_parts(part, report)
    }

    fn tell_parts(&mut self, part: Divided, report: &mut Report) -> ControlFlow<()> {
        if !part.thoughts.is_empty() {
            report.thoughts.get_or_insert_default().push_str(&part.thoughts);
        }
        report.text.push_str(&part.answer);
        self.show(&part.answer)
    }

    /// Tells what was held back, when nothing comes any more.
    fn end(&mut self, rest: &str, report: &mut Report) {
        _ = self.tell(rest, report);
        if let Some(part) = self.thoughts.as_mut().map(Thoughts::finish) {
            _ = self.tell_parts(part, report);
        }
    }

    fn show(&mut self, text: &str) -> ControlFlow<()> {
        if !self.shows {
            return ControlFlow::Continue(());
        }
        let text = if self.is_terminal { visible(text) } else { text.into() };
        match self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.failure = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

fn write_on(
    (most, stops): (usize, &[String]),
    sequence: &mut Sequence,
    sampler: &mut Sampler,
    options: &RunOptions,
    writer: &mut Writer<'_>,
    report: &mut Report,
) -> halite::Result<Stop> {
    let (began, mut stops) = (Instant::now(), StopTexts::new(stops));
    let generator = sequence.generator().clone();
    let told = |piece: &Piece| {
        let (text, is_stopped) = stops.push(&writer.text(&generator, piece));
        report.tokens.push(piece.token);
        report.is_stopped = is_stopped;
        report.generation = began.elapsed();
        let shown = writer.tell(&text, report);
        if is_stopped { ControlFlow::Break(()) } else { shown }
    };
    let stop = sequence.generate(sampler, most, options, told).inspect_err(interrupt::note);
    // What may have been the beginning of a text that ends it.
    writer.end(&stops.finish(), report);
    report.generation = began.elapsed();
    report.stop = stop.as_ref().ok().copied();
    stop
}

fn generator(flags: &Flags, options: RunOptions) -> Result<Generator> {
    let basic = flags.choice.apply(GeneratorOptions::new());
    let basic = flags.context.into_iter().fold(basic, GeneratorOptions::context);
    let on = (&flags.on.devices, &flags.on.cache);
    let draft = session::draft(&flags.draft, on, basic.clone(), options.clone())?;
    let builder = session::language_model_beside(&flags.model, &flags.on, draft.as_ref())?;
    let builder = flags.decoder.sizes(builder)?;
    let wanted = flags.template.apply(flags.decoder.apply(flags.caches.apply(basic)))?;
    let wanted = flags.draft.apply(wanted, draft.as_ref());
    Ok(builder.options(options).generator(wanted).inspect_err(interrupt::note)?)
}

/// What the text has to follow.
fn schema(flags: &Flags) -> Result<Option<JsonSchema>> {
    let Some(path) = &flags.json_schema else { return Ok(None) };
    if path.as_os_str() == "-" && flags.prompt_file.as_ref() == Some(path) {
        return Err(Failure::Usage("standard input is either the prompt or the schema".to_owned()));
    }
    let read = JsonSchema::parse(&text_file::read(path)?);
    Ok(Some(read.map_err(|error| Failure::invalid(format!("{}: {}", path.display(), error.message())))?))
}

/// What the user wants the model to write on from.
fn prompt_text(flags: &Flags) -> Result<String> {
    match (&flags.prompt, &flags.prompt_file) {
        (Some(prompt), None) => Ok(prompt.clone()),
        (None, Some(path)) => text_file::read(path),
        (Some(_), Some(_)) => Err(Failure::Usage(
            "--prompt and --prompt-file exclude each other: there is one prompt".to_owned(),
        )),
        (None, None) => {
            let text =
                "there is no prompt; give one with --prompt=TEXT or --prompt-file=FILE (- is standard input)";
            Err(Failure::Usage(text.to_owned()))
        }
    }
}

/// What the model writes on from.
struct Prompt {
    tokens: Vec<u32>,
    /// What tells thoughts apart in what is written behind it.
    thoughts: Option<Thoughts>,
    /// Texts that end what is written.
    stops: Vec<String>,
}

impl Prompt {
    fn of(flags: &Flags, generator: &Generator, prompt: &str) -> Result<Prompt> {
        let (mut thoughts, mut stops) = (None, flags.stops.clone());
        let tokens = if flags.chat {
            let system = flags.system.iter().map(|text| Message::new("system", text.clone()));
            let messages: Vec<_> = system.chain([Message::new("user", prompt)]).collect();
            let values = flags.template_values.as_deref().unwrap_or("{}");
            let mut text = generator.chat_with_values(&messages, None, values, &RunOptions::new())?;
            if flags.json_schema.is_some() {
                text.push_str(&generator.thoughts(&text).skip());
            }
            let own = generator.thoughts(&text);
            // Whoever reads along reads all of it.
            thoughts = Some(if flags.json && flags.thoughts.are_parted() { own } else { own.whole() });
            stops.extend(text_flags::end_of(generator, &text));
            generator.tokenize(&text, true)
        } else {
            generator.tokenize(prompt, flags.special)
        };
        match tokens.is_empty() {
            true => {
                Err(Failure::invalid("the prompt is empty, and the model has no token that texts begin with"))
            }
            false => Ok(Prompt { tokens, thoughts, stops }),
        }
    }
}
