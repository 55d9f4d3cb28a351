//! The log of the tools: one line per message on standard error.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};

use log::{LevelFilter, Log, Metadata, Record};

use crate::{progress, visible::visible};

/// Where the Vulkan driver logs what the validation layer says, whether it is linked in or a plug-in. What the layer says
/// about speed has a target below this one.
const VALIDATION_TARGET: &str = "vulkan.validation";

struct Logger {
    tool: &'static str,
    /// Level of all other messages, as a number; set once flags are known.
    level: AtomicUsize,
    /// Whether the environment says the level: then flags do not.
    fixed: bool,
    /// Whether flags ask for less than usual.
    quiet: AtomicBool,
    /// Level of the validation layer's messages, as a number; set once flags are known.
    validation: AtomicUsize,
    /// Errors and warnings of the validation layer, shown or not.
    validation_messages: AtomicU64,
    /// The first of them since they were last taken.
    validation_texts: Mutex<Vec<String>>,
}

/// Most texts that are kept until they are taken.
const TEXTS: usize = 64;

static LOGGER: std::sync::OnceLock<Logger> = std::sync::OnceLock::new();

/// Starts logging. `HALITE_LOG` is `off`, `error`, `warn` (default), `info`, `debug` or `trace`.
pub fn install(tool: &'static str) {
    let wanted = std::env::var("HALITE_LOG").unwrap_or_default();
    let asked = match wanted.trim() {
        "" => None,
        text => text.parse().map(Some).unwrap_or_else(|_| {
            eprintln!("{tool}: warning: HALITE_LOG={text} is none of off, error, warn, info, debug, trace");
            None
        }),
    };
    let level = asked.unwrap_or(LevelFilter::Warn);
    let logger = LOGGER.get_or_init(|| Logger {
        tool,
        level: AtomicUsize::new(level as usize),
        fixed: asked.is_some(),
        quiet: AtomicBool::new(level < LevelFilter::Warn),
        validation: AtomicUsize::new(LevelFilter::Warn as usize),
        validation_messages: AtomicU64::new(0),
        validation_texts: Mutex::default(),
    });
    if log::set_logger(logger).is_ok() {
        logger.tell_log();
    }
}

/// All levels, in order.
const LEVELS: [LevelFilter; 6] = [
    LevelFilter::Off,
    LevelFilter::Error,
    LevelFilter::Warn,
    LevelFilter::Info,
    LevelFilter::Debug,
    LevelFilter::Trace,
];

fn level_of(number: usize) -> LevelFilter {
    LEVELS[number.min(LEVELS.len() - 1)]
}

/// Sets the level so many steps above warnings, or below; unless `HALITE_LOG` says it.
pub(crate) fn set_verbosity(steps: i16) {
    let Some(logger) = LOGGER.get() else { return };
    logger.quiet.fetch_or(steps < 0, Ordering::Relaxed);
    if !logger.fixed {
        let number = LevelFilter::Warn as i16 + steps;
        let level = level_of(usize::try_from(number).unwrap_or(0));
        logger.level.store(level as usize, Ordering::Relaxed);
        logger.tell_log();
    }
}

/// Whether remarks and progress are left out: flags or the environment ask for less than warnings.
pub(crate) fn is_quiet() -> bool {
    LOGGER.get().is_some_and(|logger| logger.quiet.load(Ordering::Relaxed))
}

/// Sets what of the validation layer's messages is shown: 0 nothing, 1 errors, 2 warnings, 3 information, 4 all.
pub(crate) fn set_validation_verbosity(verbosity: u8) {
    let level = level_of(usize::from(verbosity).min(4));
    if let Some(logger) = LOGGER.get() {
        logger.validation.store(level as usize, Ordering::Relaxed);
        logger.tell_log();
    }
}

/// Number of errors and warnings that the Vulkan validation layer has reported in this process, over all devices; 0 where
/// [`install`] was not called.
pub fn validation_messages() -> u64 {
    LOGGER.get().map_or(0, |logger| logger.validation_messages.load(Ordering::Relaxed))
}

/// The errors and warnings that the validation layer has reported in this process since this was last called, 64 at most;
/// none where [`install`] was not called.
pub fn take_validation_texts() -> Vec<String> {
    let texts = |logger: &Logger| {
        std::mem::take(&mut *logger.validation_texts.lock().unwrap_or_else(PoisonError::into_inner))
    };
    LOGGER.get().map(texts).unwrap_or_default()
}

impl Logger {
    /// Says to those who log what is wanted. Warnings always arrive, because they are counted.
    fn tell_log(&self) {
        let of = |number: &AtomicUsize| level_of(number.load(Ordering::Relaxed));
        log::set_max_level(of(&self.level).max(of(&self.validation)).max(LevelFilter::Warn));
    }
}

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        if metadata.target().starts_with(VALIDATION_TARGET) {
            return metadata.level() as usize <= self.validation.load(Ordering::Relaxed);
        }
        metadata.level() as usize <= self.level.load(Ordering::Relaxed)
    }

    fn log(&self, record: &Record<'_>) {
        if record.target() == VALIDATION_TARGET && record.level() <= log::Level::Warn {
            self.validation_messages.fetch_add(1, Ordering::Relaxed);
            let mut texts = self.validation_texts.lock().unwrap_or_else(PoisonError::into_inner);
            if texts.len() < TEXTS {
                texts.push(record.args().to_string());
            }
        }
        if self.enabled(record.metadata()) {
            let text = record.args().to_string();
            let line =
                text.split('\n').map(str::trim).filter(|l| !l.is_empty()).collect::<Vec<_>>().join(" | ");
            let level = match record.level() {
                log::Level::Warn => "warning".to_owned(),
                other => other.to_string().to_ascii_lowercase(),
            };
            progress::clear();
            eprintln!("{}: {level}: {}", self.tool, visible(&line));
        }
    }

    fn flush(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_the_validation_layer_are_counted_whether_shown_or_not() {
        let logger = Logger {
            tool: "test",
            level: AtomicUsize::new(LevelFilter::Off as usize),
            fixed: false,
            quiet: AtomicBool::new(false),
            validation: AtomicUsize::new(LevelFilter::Off as usize),
            validation_messages: AtomicU64::new(0),
            validation_texts: Mutex::default(),
        };
        let say = |target: &str, level| {
            logger.log(&Record::builder().target(target).level(level).args(format_args!("text")).build());
        };
        say(VALIDATION_TARGET, log::Level::Error);
        say(VALIDATION_TARGET, log::Level::Warn);
        say(VALIDATION_TARGET, log::Level::Info);
        say("vulkan.validation.other", log::Level::Warn);
        say("halite_vulkan::queue", log::Level::Error);
        assert_eq!(logger.validation_messages.load(Ordering::Relaxed), 2);
        assert_eq!(*logger.validation_texts.lock().expect("no thread died"), ["text", "text"]);
    }
}
