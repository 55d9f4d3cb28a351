//! Loading driver libraries: opening the file, the handshake, one load per file.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use parking_lot::Mutex;

use super::{
    abi::{HALITE_ABI_VERSION, HalitePlugin, HaliteQueryFn, HaliteStr, QUERY_SYMBOL},
    driver, host,
    peer::{Peer, Side},
    raw::{self, Grows},
    status, version,
};
use halite_hal::{Driver, Result, ResultExt, bail, status};

/// A driver library that was loaded. It stays in the process until that ends.
#[derive(Clone, Debug)]
pub struct DriverLibrary {
    /// Its driver.
    pub driver: Arc<dyn Driver>,
    /// The file, as an absolute path without links in it.
    pub path: PathBuf,
    /// Version of the plug-in, for people.
    pub version: String,
    /// What it was built from and with, for bug reports.
    pub build: String,
    /// Version of the interface that is spoken with it: (major, minor).
    pub abi_version: (u32, u32),
}

/// What was loaded already. Who loads a library holds its own entry: two threads must not ask one new library at the same time who
/// it is.
static LOADED: Mutex<Option<HashMap<PathBuf, Entry>>> = Mutex::new(None);
type Entry = Arc<Mutex<Option<DriverLibrary>>>;
/// How long a library may take to start and to answer.
const LIMIT: Duration = Duration::from_secs(20);

/// Loads a driver library; the same file once only. The library's code runs in this process with all its rights: load what
/// the user named or installed.
///
/// NOT_FOUND when there is no such file; INCOMPATIBLE for a file that is no library, no driver, damaged, or of another
/// version of the interface; UNAVAILABLE when the system cannot load it, such as for a missing library that it needs.
/// A library that does not work stays in memory, too: nothing of it can be trusted to be unloaded. One that does not answer within
/// 20 seconds is UNAVAILABLE, and the thread that waits for it stays.
pub fn load(path: &Path) -> Result<DriverLibrary> {
    let canonical = fs::canonicalize(path)
        .map_err(|e| status!(NotFound, "cannot find driver library '{}': {e}", path.display()))?;
    let entry = LOADED.lock().get_or_insert_default().entry(canonical.clone()).or_default().clone();
    if let Some(library) = entry.try_lock().and_then(|entry| entry.clone()) {
        return Ok(library);
    }
    load_in_time(canonical, entry).context(|| format!("loading driver library '{}'", path.display()))
}

/// Loads it on a thread of its own, whose end is waited for no longer than the limit.
fn load_in_time(path: PathBuf, entry: Entry) -> Result<DriverLibrary> {
    let (sender, answer) = mpsc::sync_channel(1);
    let load = move || {
        let mut entry = entry.lock();
        let library = match &*entry {
            Some(library) => Ok(library.clone()),
            None => load_new(&path),
        };
        if let Ok(library) = &library {
            *entry = Some(library.clone());
        }
        drop(entry);
        // Nobody listens where the limit has passed.
        _ = sender.send(library);
    };
    let thread = thread::Builder::new().name("halite-load".to_owned()).spawn(load);
    thread.map_err(|e| status!(ResourceExhausted, "no thread to load it on: {e}"))?;
    match answer.recv_timeout(LIMIT) {
        Ok(library) => library,
        Err(mpsc::RecvTimeoutError::Timeout) => bail!(
            Unavailable,
            "it did not answer within {LIMIT:?}: its start-up code or its query function hangs; remove the plug-in"
        ),
        Err(mpsc::RecvTimeoutError::Disconnected) => bail!(Internal, "it ended the thread that loaded it"),
    }
}

fn load_new(path: &Path) -> Result<DriverLibrary> {
    check_file(path)?;
    let query = open(path)?;
    let name: &'static str = Box::leak(format!("library '{}'", path.display()).into_boxed_str());
    let peer = Peer { side: Side::Host, name };
    let mut plugin = HalitePlugin {
        struct_size: HalitePlugin::SIZE,
        abi_version: 0,
        driver: std::ptr::null_mut(),
        version: HaliteStr { data: std::ptr::null(), length: 0 },
        build: HaliteStr { data: std::ptr::null(), length: 0 },
    };
    // SAFETY: the library exports the function under the name that stands for this type; the host table lives for ever, and
    // the result tells its size; a failure is ours.
    unsafe { status::outcome(query(host::table(), HALITE_ABI_VERSION, &raw mut plugin), peer)? };
    version::check_answer(HALITE_ABI_VERSION, plugin.abi_version)?;
    if plugin.struct_size < HalitePlugin::SIZE {
        bail!(
            Incompatible,
            "it knows {} of {} bytes of HalitePlugin",
            plugin.struct_size,
            HalitePlugin::SIZE
        );
    }
    // SAFETY: what a library answers lives for ever.
    unsafe {
        Ok(DriverLibrary {
            driver: driver::receive(plugin.driver, Side::Host, name)?,
            path: path.to_owned(),
            version: raw::text(plugin.version, "the version", peer)?.to_owned(),
            build: raw::text(plugin.build, "the build", peer)?.to_owned(),
            abi_version: (plugin.abi_version >> 16, plugin.abi_version & 0xFFFF),
        })
    }
}

/// Refuses what must not reach the system's loader.
fn check_file(path: &Path) -> Result<()> {
    let file = fs::File::open(path).map_err(|e| status!(Unavailable, "cannot open it: {e}"))?;
    let facts = file.metadata().map_err(|e| status!(Unavailable, "cannot read its size: {e}"))?;
    if !facts.is_file() {
        bail!(InvalidArgument, "it is no file; name the library itself");
    }
    #[cfg(all(unix, not(target_vendor = "apple")))]
    super::elf::check_complete(file, facts.len())?;
    Ok(())
}

/// Opens a library for ever and looks its query function up.
fn open(path: &Path) -> Result<HaliteQueryFn> {
    let failed = |e: libloading::Error| status!(Unavailable, "the system cannot load it: {}", reason(&e));
    #[cfg(unix)]
    // SAFETY: the library's start-up code runs; loading a driver means trusting it.
    let library = unsafe {
        use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
        libloading::Library::from(Library::open(Some(path), RTLD_NOW | RTLD_LOCAL).map_err(failed)?)
    };
    #[cfg(not(unix))]
    // SAFETY: as above.
    let library = unsafe { libloading::Library::new(path).map_err(failed)? };
    // Never closed: tables, thread-locals and threads of the library may be in use at any time.
    let library: &'static libloading::Library = Box::leak(Box::new(library));
    // SAFETY: a library that exports this name does so for this interface, whose first version fixed the type.
    let query = unsafe { library.get::<HaliteQueryFn>(QUERY_SYMBOL.to_bytes_with_nul()) };
    match query {
        Ok(query) => Ok(*query),
        Err(_) => bail!(
            Incompatible,
            "it is a library but no Halite driver: it exports no '{}'",
            QUERY_SYMBOL.to_string_lossy()
        ),
    }
}

/// The system's own words, where there are any.
fn reason(error: &libloading::Error) -> String {
    let mut text = error.to_string();
    let mut inner = std::error::Error::source(error);
    while let Some(source) = inner {
        text = format!("{text}: {source}");
        inner = source.source();
    }
    text
}
