//! What a program does for driver libraries (log, device identities), and the library's end of it.

use std::{ffi::c_void, ptr, sync::OnceLock};

use log::{Level, LevelFilter, Log, Metadata, Record};

use super::{
    abi::{HALITE_ABI_VERSION, HaliteHost, HaliteStr},
    panics,
    peer::{Peer, Side},
    raw::{self, Grows},
};
use halite_hal::{Result, bail};

/// A table that is never written.
struct Constant(HaliteHost);

// SAFETY: the table holds numbers and functions; its context is null.
unsafe impl Sync for Constant {}
// SAFETY: as above.
unsafe impl Send for Constant {}

static HOST: Constant = Constant(HaliteHost {
    struct_size: HaliteHost::SIZE,
    abi_version: HALITE_ABI_VERSION,
    context: ptr::null_mut(),
    log: Some(log_line),
    log_level: Some(log_level),
    next_device_id: Some(next_device_id),
});

/// The table that this program gives to driver libraries.
pub(super) fn table() -> *const HaliteHost {
    &raw const HOST.0
}

unsafe extern "C" fn log_line(_context: *mut c_void, level: u32, target: HaliteStr, message: HaliteStr) {
    panics::swallow("writing a plug-in's log line", || {
        let peer = Peer::of(Side::Host);
        // SAFETY: the texts are there for the call.
        let texts =
            unsafe { (raw::text(target, "a log target", peer), raw::text(message, "a log line", peer)) };
        let (Ok(target), Ok(message)) = texts else {
            log::warn!("{peer} logged what is no text");
            return;
        };
        let level = Level::iter().nth((level as usize).saturating_sub(1)).unwrap_or(Level::Trace);
        log::log!(target: target, level, "{message}");
    });
}

unsafe extern "C" fn log_level(_context: *mut c_void) -> u32 {
    log::max_level() as u32
}

unsafe extern "C" fn next_device_id(_context: *mut c_void) -> u64 {
    halite_hal::next_device_id()
}

/// The program that loaded this library.
struct Installed {
    context: *mut c_void,
    log: unsafe extern "C" fn(*mut c_void, u32, HaliteStr, HaliteStr),
    log_level: unsafe extern "C" fn(*mut c_void) -> u32,
    next_device_id: unsafe extern "C" fn(*mut c_void) -> u64,
}

// SAFETY: the interface lets any thread call the program's functions.
unsafe impl Send for Installed {}
// SAFETY: as above.
unsafe impl Sync for Installed {}

static INSTALLED: OnceLock<Installed> = OnceLock::new();

/// The next device identity of the program; 0, which none has, before there is one.
fn device_id() -> u64 {
    // SAFETY: the host table is valid until the process ends.
    INSTALLED.get().map_or(0, |host| unsafe { (host.next_device_id)(host.context) })
}

/// Makes this library a guest of the program: its copy of `log` and its panics go there, and device identities come from
/// there. Only the first program counts. INTERNAL when the table lacks a function.
///
/// # Safety
/// `host` is null, or a table that stays valid until the process ends.
pub(super) unsafe fn install(host: *const HaliteHost) -> Result<()> {
    if ptr::eq(host, table()) {
        // A loopback: library and program are one, and share log and counter already.
        return Ok(());
    }
    // SAFETY: the caller's promise.
    let host = unsafe { raw::structure(host, Peer::of(Side::Plugin))? };
    let (Some(log), Some(log_level), Some(next_device_id)) = (host.log, host.log_level, host.next_device_id)
    else {
        bail!(
            Incompatible,
            "the program's HaliteHost lacks a function; it needs log, log_level, next_device_id"
        );
    };
    let mut first = false;
    INSTALLED.get_or_init(|| {
        first = true;
        Installed { context: host.context, log, log_level, next_device_id }
    });
    halite_hal::count_devices_with(device_id);
    // A driver that brings a logger of its own keeps it.
    if first && log::set_logger(&ToHost).is_ok() {
        std::panic::set_hook(Box::new(log_panic));
    }
    refresh_log_level();
    Ok(())
}

/// Asks the program how talkative to be. The answer is kept until the next time: a line that nobody hears must not cost a
/// call.
pub(super) fn refresh_log_level() {
    if let Some(host) = INSTALLED.get() {
        // SAFETY: the host table is valid until the process ends.
        let level = unsafe { (host.log_level)(host.context) };
        log::set_max_level(LevelFilter::iter().nth(level as usize).unwrap_or(LevelFilter::Trace));
    }
}

/// The logger of a library: hands lines to the program.
struct ToHost;

impl Log for ToHost {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &Record<'_>) {
        if let Some(host) = INSTALLED.get().filter(|_| self.enabled(record.metadata())) {
            let message = record.args().to_string();
            // SAFETY: the host table is valid until the process ends; the texts are there for the call.
            unsafe {
                let (target, message) = (raw::lend(record.target()), raw::lend(&message));
                (host.log)(host.context, record.level() as u32, target, message);
            }
        }
    }

    fn flush(&self) {}
}

/// Panics end at the library's walls as failures; where they came from is for the log.
fn log_panic(info: &std::panic::PanicHookInfo<'_>) {
    let backtrace = std::backtrace::Backtrace::capture();
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("unnamed");
    match backtrace.status() {
        std::backtrace::BacktraceStatus::Captured => log::error!("thread '{name}': {info}\n{backtrace}"),
        _ => log::error!("thread '{name}': {info}"),
    }
}
