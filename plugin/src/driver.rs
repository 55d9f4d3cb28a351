//! Drivers on their way through the interface.

use std::{ffi::c_void, fmt, ptr, sync::Arc};

use super::{
    abi::*,
    device, guard, host, info,
    manifest::is_driver_name,
    object::{self, Exported, Shared, present, table},
    panics,
    peer::{Peer, Side},
    raw, status,
};
use halite_hal::{Device, DeviceInfo, Driver, InfoGroup, Options, Result, bail};

table!(HaliteDriverVtable of HaliteDriver: name, description, options, enumerate, open);

static TABLE: HaliteDriverVtable = HaliteDriverVtable {
    struct_size: size_of::<HaliteDriverVtable>() as u32,
    reserved: 0,
    name: Some(name),
    description: Some(description),
    options: Some(options),
    enumerate: Some(enumerate),
    open: Some(open),
    find_unlisted: Some(find_unlisted),
    tables: Some(tables),
};

impl Shared for dyn Driver {
    const NOUN: &'static str = "driver";
    type Table = HaliteDriverVtable;
    fn table() -> &'static HaliteDriverVtable {
        &TABLE
    }
}

const NO_TEXT: HaliteStr = HaliteStr { data: ptr::null(), length: 0 };

type VisitPath = unsafe extern "C" fn(context: *mut c_void, path: HaliteStr);
type VisitOption = unsafe extern "C" fn(context: *mut c_void, option: *const HalitePair);

unsafe extern "C" fn name(driver: *mut HaliteDriver) -> HaliteStr {
    // SAFETY: the caller has a handle of ours; drivers live for ever, and so does their name.
    unsafe { guard::value::<dyn Driver, _>(driver, "name", NO_TEXT, |d| raw::lend(d.inner.name())) }
}

unsafe extern "C" fn description(driver: *mut HaliteDriver) -> HaliteStr {
    // SAFETY: as for the name.
    unsafe {
        guard::value::<dyn Driver, _>(driver, "description", NO_TEXT, |d| raw::lend(d.inner.description()))
    }
}

unsafe extern "C" fn options(
    driver: *mut HaliteDriver,
    context: *mut c_void,
    visit: Option<VisitOption>,
) -> *mut HaliteStatus {
    // SAFETY: the caller has a handle of ours, and its visitor takes what is lent for the visit.
    unsafe {
        guard::call::<dyn Driver>(driver, "options", |d| {
            let Some(visit) = visit else { bail!(InvalidArgument, "'options' needs a visitor") };
            for (name, meaning) in d.inner.options() {
                let pair = raw::lend_pair(name, meaning);
                visit(context, &raw const pair);
            }
            Ok(())
        })
    }
}

/// # Safety
/// `options` points to so many pairs.
unsafe fn receive_options(options: *const HalitePair, count: usize, peer: Peer) -> Result<Options> {
    // SAFETY: the caller's promise.
    Ok(unsafe { raw::pairs(options, count, "options", peer)? }.into_iter().collect())
}

unsafe extern "C" fn enumerate(
    driver: *mut HaliteDriver,
    options: *const HalitePair,
    option_count: usize,
    context: *mut c_void,
    visit: Option<info::VisitInfo>,
) -> *mut HaliteStatus {
    host::refresh_log_level();
    // SAFETY: the caller has a handle of ours, the options are there, and its visitor takes what is lent for the visit.
    unsafe {
        guard::call::<dyn Driver>(driver, "enumerate", |d| {
            let Some(visit) = visit else { bail!(InvalidArgument, "'enumerate' needs a visitor") };
            let options = receive_options(options, option_count, d.peer())?;
            for found in d.inner.enumerate(&options)? {
                info::lend(&found, |lent| visit(context, lent));
            }
            Ok(())
        })
    }
}

unsafe extern "C" fn open(
    driver: *mut HaliteDriver,
    path: HaliteStr,
    options: *const HalitePair,
    option_count: usize,
    out_device: *mut *mut HaliteDevice,
) -> *mut HaliteStatus {
    host::refresh_log_level();
    // SAFETY: the caller has a handle of ours, path and options are there, and the result may be written.
    unsafe {
        guard::make::<dyn Driver, _>(driver, "open", out_device, |d| {
            let path = raw::text(path, "a device's path", d.peer())?;
            let options = receive_options(options, option_count, d.peer())?;
            Ok(device::give(d.inner.open(path, &options)?, d.side))
        })
    }
}

unsafe extern "C" fn find_unlisted(
    driver: *mut HaliteDriver,
    name: HaliteStr,
    options: *const HalitePair,
    option_count: usize,
    context: *mut c_void,
    visit: Option<VisitPath>,
) -> *mut HaliteStatus {
    // SAFETY: the caller has a handle of ours, name and options are there, and its visitor takes what is lent.
    unsafe {
        guard::call::<dyn Driver>(driver, "find_unlisted", |d| {
            let Some(visit) = visit else { bail!(InvalidArgument, "'find_unlisted' needs a visitor") };
            let name = raw::text(name, "a device's name", d.peer())?;
            let options = receive_options(options, option_count, d.peer())?;
            if let Some(path) = d.inner.find_unlisted(name, &options)? {
                visit(context, raw::lend(&path));
            }
            Ok(())
        })
    }
}

unsafe extern "C" fn tables(
    driver: *mut HaliteDriver,
    context: *mut c_void,
    visit: Option<info::VisitGroup>,
) -> *mut HaliteStatus {
    // SAFETY: the caller has a handle of ours, and its visitor takes what is lent for the visit.
    unsafe {
        guard::call::<dyn Driver>(driver, "tables", |d| {
            let Some(visit) = visit else { bail!(InvalidArgument, "'tables' needs a visitor") };
            for group in d.inner.tables() {
                info::lend_group(&group, |lent| visit(context, lent));
            }
            Ok(())
        })
    }
}

/// A driver for the far end, for ever.
pub(super) fn give(driver: Arc<dyn Driver>, side: Side) -> *mut HaliteDriver {
    Exported::give(Exported::new(side, driver))
}

/// A driver of the far end. Its texts were copied once and live for ever, as its library does.
struct DriverProxy {
    object: ptr::NonNull<HaliteDriver>,
    table: &'static HaliteDriverVtable,
    peer: Peer,
    name: &'static str,
    description: &'static str,
    options: &'static [(&'static str, &'static str)],
}

// SAFETY: the interface lets any thread call any function of a driver, at the same time as others.
unsafe impl Send for DriverProxy {}
// SAFETY: as above.
unsafe impl Sync for DriverProxy {}

impl fmt::Debug for DriverProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DriverProxy({})", self.peer)
    }
}

/// A driver that a library answered. `library` is what messages call it before it has told its name.
///
/// # Safety
/// `driver` is null, or a driver that lives for ever.
pub(super) unsafe fn receive(
    driver: *mut HaliteDriver,
    side: Side,
    library: &'static str,
) -> Result<Arc<dyn Driver>> {
    let peer = Peer { side, name: library };
    // SAFETY: the caller's promise.
    if let Some(exported) = unsafe { object::own::<dyn Driver>(side, driver) } {
        return Ok(exported.inner.clone());
    }
    // SAFETY: the caller's promise; names and descriptions live for ever.
    let (object, table, name, description) = unsafe {
        let (object, table) = object::check_table::<HaliteDriverVtable>(driver, peer)?;
        let name = raw::text(present(table.name)(driver), "the driver's name", peer)?;
        let description = raw::text(present(table.description)(driver), "the driver's description", peer)?;
        (object, table, leak(name), leak(description))
    };
    if !is_driver_name(name) {
        return Err(peer.broke(format_args!(
            "the driver's name is '{}', which no device URI can begin with",
            name.escape_debug()
        )));
    }
    let peer = Peer { side, name: leak(&format!("driver '{name}' ({library})")) };
    let options = options_of(object, table, peer)?;
    Ok(Arc::new(DriverProxy { object, table, peer, name, description, options }))
}

fn leak(text: &str) -> &'static str {
    Box::leak(Box::<str>::from(text))
}

struct GatheredOptions {
    options: Result<Vec<(&'static str, &'static str)>>,
    peer: Peer,
}

unsafe extern "C" fn gather_option(context: *mut c_void, option: *const HalitePair) {
    panics::swallow("visiting an option", || {
        // SAFETY: the context is the `GatheredOptions` of `options_of`, which nobody else uses during the call.
        let Some(gathered) = (unsafe { context.cast::<GatheredOptions>().as_mut() }) else { return };
        let Ok(options) = &mut gathered.options else { return };
        // SAFETY: the option is lent for the visit.
        match unsafe { raw::pairs(option, 1, "an option", gathered.peer) } {
            Ok(pairs) => options.extend(pairs.iter().map(|(name, meaning)| (leak(name), leak(meaning)))),
            Err(e) => gathered.options = Err(e),
        }
    });
}

fn options_of(
    driver: ptr::NonNull<HaliteDriver>,
    table: &HaliteDriverVtable,
    peer: Peer,
) -> Result<&'static [(&'static str, &'static str)]> {
    let mut gathered = GatheredOptions { options: Ok(Vec::new()), peer };
    let context = (&raw mut gathered).cast::<c_void>();
    // SAFETY: the driver lives for ever, its table was checked, and the visitor gets its own context; a failure is ours.
    unsafe {
        status::outcome(present(table.options)(driver.as_ptr(), context, Some(gather_option)), peer)?;
    }
    Ok(gathered.options?.leak())
}

struct GatheredPath {
    path: Result<Option<String>>,
    peer: Peer,
}

unsafe extern "C" fn gather_path(context: *mut c_void, path: HaliteStr) {
    panics::swallow("visiting a path", || {
        // SAFETY: the context is the `GatheredPath` of `find_unlisted`, which nobody else uses during the call.
        let Some(gathered) = (unsafe { context.cast::<GatheredPath>().as_mut() }) else { return };
        // SAFETY: the path is lent for the visit.
        let path = unsafe { raw::text(path, "a device's path", gathered.peer) };
        gathered.path = path.map(|path| Some(path.to_owned()));
    });
}

fn lend_options(options: &Options) -> Vec<HalitePair> {
    options.iter().map(|(name, value)| raw::lend_pair(name, value)).collect()
}

impl Driver for DriverProxy {
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &str {
        self.description
    }

    fn options(&self) -> &[(&'static str, &'static str)] {
        self.options
    }

    fn enumerate(&self, options: &Options) -> Result<Vec<DeviceInfo>> {
        let options = lend_options(options);
        let mut gathered = info::Gathered { driver: self.name, peer: self.peer, infos: Ok(Vec::new()) };
        let context = (&raw mut gathered).cast::<c_void>();
        // SAFETY: the driver lives for ever, its table was checked, the visitor gets its own context; a failure is ours.
        unsafe {
            let enumerate = present(self.table.enumerate);
            let outcome =
                enumerate(self.object.as_ptr(), options.as_ptr(), options.len(), context, Some(info::gather));
            status::outcome(outcome, self.peer)?;
        }
        gathered.infos
    }

    fn find_unlisted(&self, name: &str, options: &Options) -> Result<Option<String>> {
        let Some(find) = self.table.find_unlisted else { return Ok(None) };
        let options = lend_options(options);
        let mut gathered = GatheredPath { path: Ok(None), peer: self.peer };
        let context = (&raw mut gathered).cast::<c_void>();
        // SAFETY: the driver lives for ever, the arguments outlive the call, the visitor gets its own context; a failure
        // is ours.
        unsafe {
            let (name, visit) = (raw::lend(name), Some(gather_path as VisitPath));
            let outcome = find(self.object.as_ptr(), name, options.as_ptr(), options.len(), context, visit);
            status::outcome(outcome, self.peer)?;
        }
        gathered.path
    }

    /// Listings can do without: a driver that fails here has none.
    fn tables(&self) -> Vec<InfoGroup> {
        let Some(tables) = self.table.tables else { return Vec::new() };
        let mut gathered = info::GatheredGroups { peer: self.peer, groups: Ok(Vec::new()) };
        let context = (&raw mut gathered).cast::<c_void>();
        // SAFETY: the driver lives for ever, and the visitor gets its own context; a failure is ours.
        let outcome = unsafe {
            let outcome = tables(self.object.as_ptr(), context, Some(info::gather_group));
            status::outcome(outcome, self.peer)
        };
        outcome.and(gathered.groups).unwrap_or_else(|e| {
            log::warn!("{}: {e}", self.peer);
            Vec::new()
        })
    }

    fn open(&self, path: &str, options: &Options) -> Result<Arc<dyn Device>> {
        let options = lend_options(options);
        let mut device = ptr::null_mut();
        // SAFETY: the driver lives for ever, its table was checked, the arguments outlive the call; a failure and the
        // count of a result are ours.
        unsafe {
            let open = present(self.table.open);
            let path = raw::lend(path);
            let outcome = open(self.object.as_ptr(), path, options.as_ptr(), options.len(), &raw mut device);
            status::outcome(outcome, self.peer)?;
            device::receive_opened(device, self.name, self.peer)
        }
    }
}
