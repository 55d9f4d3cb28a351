//! The tool `halite serve`: a language model over HTTP, with OpenAI's interface.

mod answers;
mod body;
mod echo;
mod error;
mod fields;
mod flags;
mod generic;
mod http;
mod job;
mod likely;
mod limits;
mod messages;
mod others;
mod patience;
mod request;
mod response_events;
mod responses;
mod sampling;
mod slots;
mod together;
mod tools;
mod work;
mod write;

use std::{
    io::{Read, Write},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use halite::{CancelToken, Embedder, Generator, GeneratorOptions, RunOptions, SessionBuilder, Source};
use tokio::{net::TcpListener, sync::watch};

pub use self::flags::Flags;
use self::{http::Rules, slots::Slots, work::Work};
use crate::{
    console::{CommonFlags, Failure, Result, Tool},
    devices,
    interrupt::{self, cancel_unless},
    progress, session, text_file,
    text_flags::CHATML,
};

impl Tool for Flags {
    fn common(&self) -> &CommonFlags {
        &self.common
    }

    fn run(self) -> Result<()> {
        run(&self)
    }
}

/// Another number at each call.
fn random_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

fn run(flags: &Flags) -> Result<()> {
    let mut out = std::io::stdout();
    if devices::answer_queries(&flags.on.devices, &mut out)? {
        return Ok(());
    }
    let (token, parallel) = (flags.token()?, flags.parallel()?);
    let address = std::net::SocketAddr::new(flags.host, flags.port);
    let failed =
        |e: std::io::Error| Failure::invalid(format!("cannot listen on {address} (--host, --port): {e}"));
    // Before the model is loaded, which takes long. Nobody is let in meanwhile: clients would wait for nothing.
    drop(std::net::TcpListener::bind(address).map_err(failed)?);
    let stop = Stop::on_interrupt();
    let (generator, embedder) = model(flags, &stop.loading)?;
    progress::clear();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(2 * parallel + 2)
        .enable_all()
        .build()
        .map_err(|e| Failure::invalid(format!("cannot start threads: {e}")))?;
    let writer = generator.map(|generator| Slots::new(generator, parallel, flags.queue));
    let parts = flags.thoughts.are_parted();
    let work = Arc::new(Work::new(flags.model_name(), writer, embedder, parallel, flags.timeout, parts));
    let rules = Rules { token, most_body: flags.max_body, grace: flags.grace };
    let served: Result<()> = runtime.block_on(async {
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let own = listener.local_addr().map_err(failed)?;
        writeln!(out, "'{}' on http://{own}/v1", work.model)?;
        out.flush()?;
        http::serve(listener, work, rules, stop.serving()).await;
        Ok(())
    });
    // What a device still computes is not waited for any longer than it was.
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    served?;
    session::check_validation()
}

/// What Ctrl-C does, and a request to end: while the model is loaded it ends that, then it lets requests end. The second
/// time ends the process at once.
struct Stop {
    loading: CancelToken,
    asked: watch::Sender<bool>,
    serves: Arc<AtomicBool>,
}

impl Stop {
    fn on_interrupt() -> Self {
        let (asked, serves) = (watch::Sender::new(false), Arc::new(AtomicBool::new(false)));
        let (told, is_served) = (asked.clone(), serves.clone());
        let loading = cancel_unless(move || {
            if !is_served.load(Ordering::SeqCst) {
                return false;
            }
            interrupt::tell("interrupted; requests may end (again to end at once)");
            told.send_replace(true);
            true
        });
        Stop { loading, asked, serves }
    }

    /// Requests are served from now on: says when they may end.
    fn serving(&self) -> watch::Receiver<bool> {
        self.serves.store(true, Ordering::SeqCst);
        self.asked.subscribe()
    }
}

/// What the model can do: write, make vectors, or both.
fn model(flags: &Flags, cancel: &CancelToken) -> Result<(Option<Generator>, Option<Embedder>)> {
    let wanted = flags.choice.apply(flags.caches.apply(GeneratorOptions::new()));
    // With `echo`, how likely prompts are.
    let wanted = flags.decoder.apply(wanted).batch(flags.parallel()?).scoring(true);
    let mut wanted = flags.template.apply(wanted)?.usual_chat_template(CHATML);
    if let Some(context) = flags.context {
        wanted = wanted.context(context);
    }
    let stream = stream(&flags.model)?;
    let embedder = match builder(flags, stream.as_ref(), cancel)?.embedder() {
        Ok(embedder) => Some(embedder),
        Err(error) if error.kind() == halite::ErrorKind::Unsupported => None,
        Err(error) => return Err(error.into()),
    };
    if let Some(embedder) = &embedder
        && embedder.session().functions().len() == 1
    {
        return Ok((None, Some(embedder.clone())));
    }
    let generator = builder(flags, stream.as_ref(), cancel)?.generator(wanted)?;
    if !generator.has_chat_template() {
        log::warn!(
            "the model has no chat template ('tokenizer.chat_template'); conversations have the marks of ChatML, which it may not know \
             (--chat-template=FILE gives it another)"
        );
    }
    Ok((Some(generator), embedder))
}

/// All of a pipe, which cannot be read twice: for vectors, and for text. Of a file, nothing.
fn stream(path: &Path) -> Result<Option<Bytes>> {
    let mut bytes = Vec::new();
    progress::go_on("reading the model");
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().lock().read_to_end(&mut bytes),
        false if is_pipe(path) => {
            text_file::open_finite(path).and_then(|mut pipe| pipe.read_to_end(&mut bytes))
        }
        false => return Ok(None),
    };
    read.map_err(|e| Failure::file("cannot read", path, &e))?;
    Ok(Some(bytes.into()))
}

/// Whether it is there and gives what it has but once. What is a folder or a device is refused as a model is.
fn is_pipe(path: &Path) -> bool {
    let kind = std::fs::metadata(path).map(|metadata| metadata.file_type());
    kind.is_ok_and(|kind| !kind.is_file() && !kind.is_dir())
}

fn builder(flags: &Flags, stream: Option<&Bytes>, cancel: &CancelToken) -> Result<SessionBuilder> {
    let mut builder = flags.decoder.sizes(session::language_model(&flags.model, &flags.on)?)?;
    if let Some(bytes) = stream {
        builder = builder.model(Source::bytes(bytes.clone()).named(flags.model.display().to_string()));
    }
    Ok(builder.options(progress::shown(RunOptions::new().cancel(cancel))))
}
