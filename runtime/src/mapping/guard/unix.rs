//! The table of mappings, and the handler of SIGBUS that looks into it.

use std::{
    cell::UnsafeCell,
    ffi::c_int,
    fs::File,
    io,
    mem::MaybeUninit,
    os::fd::AsRawFd,
    ptr,
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use bytes::Bytes;

/// Most files that are mapped at one time; further ones are read.
const MOST: usize = 1024;

/// A mapping that the handler knows. Free when `start` is 0.
struct Slot {
    start: AtomicUsize,
    /// Where it ends; 0 while it is made or taken away.
    end: AtomicUsize,
    /// Lowest address that was found to be gone; `usize::MAX` when none was.
    cut: AtomicUsize,
}

static SLOTS: [Slot; MOST] = [const {
    Slot { start: AtomicUsize::new(0), end: AtomicUsize::new(0), cut: AtomicUsize::new(usize::MAX) }
}; MOST];
/// Whether any file was ever cut: most programs never look further.
static ANY: AtomicBool = AtomicBool::new(false);
/// Who handled the signal before.
static BEFORE: Before = Before(UnsafeCell::new(MaybeUninit::uninit()));
/// Bytes of a page, once the handler is installed; 0 where it could not be.
static PAGE: OnceLock<usize> = OnceLock::new();

struct Before(UnsafeCell<MaybeUninit<libc::sigaction>>);

// SAFETY: it is written once, before the handler that reads it can run.
unsafe impl Sync for Before {}

/// A mapping, which is taken away when this is dropped.
struct Mapping {
    address: *mut libc::c_void,
    length: usize,
    slot: &'static Slot,
}

// SAFETY: the memory is read-only for as long as it is mapped, and unmapped by its only owner.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl AsRef<[u8]> for Mapping {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the mapping is `length` bytes, readable, and lives as long as `self`. Bytes of a file that is written to meanwhile
        // change; whoever maps a file is told so (`LoadMode::Map`), and all readers of files bear any bytes.
        unsafe { std::slice::from_raw_parts(self.address.cast(), self.length) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.slot.end.store(0, Ordering::SeqCst);
        // SAFETY: the mapping is ours, and nothing refers to it any more.
        unsafe { libc::munmap(self.address, self.length) };
        self.slot.start.store(0, Ordering::SeqCst);
    }
}

/// A slot of the table that nobody uses; it is the caller's from now on.
fn claim() -> Option<&'static Slot> {
    // No mapping starts at address 1, and its end is 0: the handler finds nothing there.
    SLOTS.iter().find(|slot| slot.start.compare_exchange(0, 1, Ordering::SeqCst, Ordering::SeqCst).is_ok())
}

/// Maps a file; `None` where the handler cannot be had, or knows too many mappings already.
pub(super) fn map(file: &File, length: usize) -> io::Result<Option<Bytes>> {
    if *PAGE.get_or_init(install) == 0 {
        return Ok(None);
    }
    let Some(slot) = claim() else { return Ok(None) };
    // SAFETY: a new mapping of an open file, at a place that the system chooses.
    let address = unsafe {
        libc::mmap(ptr::null_mut(), length, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0)
    };
    if address == libc::MAP_FAILED {
        let error = io::Error::last_os_error();
        slot.start.store(0, Ordering::SeqCst);
        return Err(error);
    }
    slot.cut.store(usize::MAX, Ordering::SeqCst);
    slot.start.store(address.addr(), Ordering::SeqCst);
    slot.end.store(address.addr() + length, Ordering::SeqCst);
    Ok(Some(Bytes::from_owner(Mapping { address, length, slot })))
}

pub(super) fn is_any_cut() -> bool {
    ANY.load(Ordering::SeqCst)
}

pub(super) fn is_cut(bytes: &Bytes) -> bool {
    if !is_any_cut() {
        return false;
    }
    let (start, end) = (bytes.as_ptr().addr(), bytes.as_ptr().addr() + bytes.len());
    SLOTS.iter().any(|slot| {
        let own = slot.start.load(Ordering::SeqCst)..slot.end.load(Ordering::SeqCst);
        own.contains(&start) && slot.cut.load(Ordering::SeqCst) < end
    })
}

/// Installs the handler; the size of a page, or 0.
fn install() -> usize {
    // SAFETY: a question.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    let Ok(page) = usize::try_from(page) else { return 0 };
    // SAFETY: all zeros is a valid `sigaction`; the pointers are to memory of ours. The program's handler, if it has one, is kept
    // before ours can run: until then the signal is blocked on no thread, but no mapping of ours exists that could raise it, and for
    // others the copy below is complete when `sigaction` returns the second time.
    unsafe {
        let mut before = MaybeUninit::<libc::sigaction>::zeroed();
        if libc::sigaction(libc::SIGBUS, ptr::null(), before.as_mut_ptr()) != 0 {
            return 0;
        }
        *BEFORE.0.get() = before;
        let mut own: libc::sigaction = std::mem::zeroed();
        own.sa_sigaction = handle as *const () as usize;
        own.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
        libc::sigemptyset(&raw mut own.sa_mask);
        if libc::sigaction(libc::SIGBUS, &raw const own, ptr::null_mut()) != 0 {
            return 0;
        }
    }
    page
}

/// Puts zeros where a mapped file of ours has nothing any more; anything else goes to whoever handled the signal before. Calls
/// nothing that a handler must not call.
extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the system hands a valid description to a handler with SA_SIGINFO.
    let address = unsafe { (*info).si_addr() }.addr();
    for slot in &SLOTS {
        let (start, end) = (slot.start.load(Ordering::SeqCst), slot.end.load(Ordering::SeqCst));
        if (start..end).contains(&address) && fill(slot, address, end) {
            return;
        }
    }
    pass_on(signal, info, context);
}

/// Replaces the rest of a mapping, from the page of this address on, by zeros.
fn fill(slot: &Slot, address: usize, end: usize) -> bool {
    let Some(page) = PAGE.get().copied().filter(|page| *page > 0) else { return false };
    let from = address / page * page;
    // SAFETY: the range is a part of a mapping of ours, which its owner still has: somebody is reading it.
    let made = unsafe {
        libc::mmap(
            ptr::with_exposed_provenance_mut(from),
            end - from,
            libc::PROT_READ,
            libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_FIXED,
            -1,
            0,
        )
    };
    if made == libc::MAP_FAILED {
        return false;
    }
    slot.cut.fetch_min(from, Ordering::SeqCst);
    ANY.store(true, Ordering::SeqCst);
    true
}

/// Does what would have happened without this handler.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: it was written before this handler was installed, and never since.
    let before = unsafe { (*BEFORE.0.get()).assume_init_ref() };
    match before.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => {
            // The access is tried again, and ends the process as it would have.
            // SAFETY: all zeros, with the default action, is a valid `sigaction`.
            unsafe {
                let mut plain: libc::sigaction = std::mem::zeroed();
                plain.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &raw const plain, ptr::null_mut());
            }
        }
        handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: the flag says that it is a handler of this type.
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: without the flag it is a handler of this type.
            let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_cut_reads_as_zeros_from_there_and_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let page = *PAGE.get_or_init(install);
        std::fs::write(&path, vec![7u8; 4 * page]).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let bytes = map(&file, 4 * page).unwrap().unwrap();
        let other = map(&file, 4 * page).unwrap().unwrap();
        assert_eq!(bytes[2 * page], 7);
        assert!(!is_cut(&bytes));
        file.set_len(page as u64).unwrap();
        assert_eq!((bytes[0], bytes[3 * page], bytes[4 * page - 1], bytes[page]), (7, 0, 0, 0));
        assert!(is_cut(&bytes) && is_cut(&bytes.slice(page..)));
        assert!(!is_cut(&bytes.slice(..page)), "what is still there is not lost");
        assert!(!is_cut(&other), "nobody has looked there yet");
        drop(bytes);
        assert_eq!(other[page], 0);
        assert!(is_cut(&other));
        assert!(!is_cut(&Bytes::from_static(b"own")));
    }

    #[test]
    fn slots_are_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, [1u8; 10]).unwrap();
        let file = File::open(&path).unwrap();
        for _ in 0..2 * MOST {
            assert_eq!(map(&file, 10).unwrap().unwrap()[9], 1);
        }
    }
}
