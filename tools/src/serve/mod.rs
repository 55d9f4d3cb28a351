//! The tool `halite serve`: a language model over HTTP, with OpenAI's interface.

mod answers;
mod body;
mod error;
mod flags;
mod http;
mod patience;
mod request;
mod slots;
mod together;
mod work;
mod write;

use std::{io::Write, sync::Arc};

use halite::{Embedder, Generator, GeneratorOptions, RunOptions, SessionBuilder};
use tokio::{net::TcpListener, sync::watch};

pub use self::flags::Flags;
use self::{http::Rules, slots::Slots, work::Work};
use crate::{
    console::{CommonFlags, Failure, Result, Tool},
    devices, progress, session,
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
    let (generator, embedder) = model(flags)?;
    progress::clear();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(2 * parallel + 2)
        .enable_all()
        .build()
        .map_err(|e| Failure::invalid(format!("cannot start threads: {e}")))?;
    let writer = generator.map(|generator| Slots::new(generator, parallel, flags.queue));
    let work = Arc::new(Work::new(flags.model_name(), writer, embedder, parallel, flags.timeout));
    let rules = Rules { token, most_body: flags.max_body, grace: flags.grace };
    let stop = stop_on_interrupt();
    let address = std::net::SocketAddr::new(flags.host, flags.port);
    let failed =
        |e: std::io::Error| Failure::invalid(format!("cannot listen on {address} (--host, --port): {e}"));
    let served: Result<()> = runtime.block_on(async {
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let own = listener.local_addr().map_err(failed)?;
        writeln!(out, "'{}' on http://{own}/v1", work.model)?;
        out.flush()?;
        http::serve(listener, work, rules, stop).await;
        Ok(())
    });
    // What a device still computes is not waited for any longer than it was.
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    served?;
    session::check_validation()
}

/// Says when Ctrl-C was pressed or the process is told to end; the second time ends it at once.
fn stop_on_interrupt() -> watch::Receiver<bool> {
    let (send, receive) = watch::channel(false);
    let installed = ctrlc::set_handler(move || {
        if *send.borrow() {
            std::process::exit(crate::interrupt::INTERRUPTED.into());
        }
        eprintln!("interrupted; requests may end (again to end at once)");
        send.send_replace(true);
    });
    if let Err(error) = installed {
        log::warn!("Ctrl-C will end the process without letting requests end: {error}");
    }
    receive
}

/// What the model can do: write, make vectors, or both.
fn model(flags: &Flags) -> Result<(Option<Generator>, Option<Embedder>)> {
    let wanted = flags.choice.apply(flags.caches.apply(GeneratorOptions::new()));
    let mut wanted = flags.decoder.apply(wanted).batch(flags.parallel()?);
    if let Some(context) = flags.context {
        wanted = wanted.context(context);
    }
    let embedder = match builder(flags)?.embedder() {
        Ok(embedder) => Some(embedder),
        Err(error) if error.kind() == halite::ErrorKind::Unsupported => None,
        Err(error) => return Err(error.into()),
    };
    if let Some(embedder) = &embedder
        && embedder.session().functions().len() == 1
    {
        return Ok((None, Some(embedder.clone())));
    }
    Ok((Some(builder(flags)?.generator(wanted)?), embedder))
}

fn builder(flags: &Flags) -> Result<SessionBuilder> {
    let builder = flags.decoder.sizes(session::language_model(&flags.model, &flags.on)?)?;
    Ok(builder.options(progress::shown(RunOptions::new())))
}
