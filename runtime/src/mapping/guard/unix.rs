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
/// Whether that handler was for one time only, which was.
static GONE: AtomicBool = AtomicBool::new(false);
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

/// Takes the pages that lie wholly in these bytes off the process, where a mapping of ours has them.
pub(super) fn release(bytes: &[u8]) {
    let Some(page) = PAGE.get().copied().filter(|page| *page > 0) else { return };
    let (start, end) = (bytes.as_ptr().addr(), bytes.as_ptr().addr() + bytes.len());
    let is_ours = SLOTS.iter().any(|slot| {
        let own = slot.start.load(Ordering::SeqCst)..slot.end.load(Ordering::SeqCst);
        own.contains(&start) && end <= own.end
    });
    let (first, last) = (start.next_multiple_of(page), end / page * page);
    if is_ours && first < last {
        let skipped = first - start;
        // SAFETY: the range is a part of a mapping of ours, which lives as long as the bytes that are borrowed. It is of a file and was
        // never written to, or of zeros: what is touched again is the same. That it may fail does not matter.
        unsafe {
            libc::madvise(bytes[skipped..].as_ptr().cast_mut().cast(), last - first, libc::MADV_DONTNEED)
        };
    }
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
    let (cause, address) = unsafe { ((*info).si_code, (*info).si_addr().addr()) };
    // One that a process sent, by a code of 0 or less, has no address.
    let is_sent = cause <= 0;
    for slot in &SLOTS {
        let (start, end) = (slot.start.load(Ordering::SeqCst), slot.end.load(Ordering::SeqCst));
        if !is_sent && (start..end).contains(&address) && fill(slot, address, end) {
            return;
        }
    }
    pass_on(signal, info, context, is_sent);
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
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void, is_sent: bool) {
    // SAFETY: it was written before this handler was installed, and never since.
    let before = unsafe { (*BEFORE.0.get()).assume_init_ref() };
    let action = if GONE.load(Ordering::SeqCst) { libc::SIG_DFL } else { before.sa_sigaction };
    match action {
        libc::SIG_IGN if is_sent => {}
        libc::SIG_DFL | libc::SIG_IGN => end(signal, is_sent),
        handler => {
            GONE.store(before.sa_flags & libc::SA_RESETHAND != 0, Ordering::SeqCst);
            let mut mask = MaybeUninit::<libc::sigset_t>::uninit();
            // SAFETY: the sets are ours, and these functions may be called in a handler. The signals are blocked that the system would
            // have blocked for this handler; when it leaves by a jump, it restores what it was meant to restore.
            unsafe {
                let mut blocked = before.sa_mask;
                if before.sa_flags & libc::SA_NODEFER == 0 {
                    libc::sigaddset(&raw mut blocked, signal);
                }
                libc::pthread_sigmask(libc::SIG_BLOCK, &raw const blocked, mask.as_mut_ptr());
            }
            if before.sa_flags & libc::SA_SIGINFO != 0 {
                // SAFETY: the flag says that it is a handler of this type.
                let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                    unsafe { std::mem::transmute(handler) };
                handler(signal, info, context);
            } else {
                // SAFETY: without the flag it is a handler of this type.
                let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
                handler(signal);
            }
            // SAFETY: the call above has written the set.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask.as_ptr(), ptr::null_mut()) };
        }
    }
}

/// Lets the process end as it would have: the access is tried again without a handler, a signal that was sent comes again.
fn end(signal: c_int, is_sent: bool) {
    // SAFETY: all zeros, with the default action, is a valid `sigaction`; a handler may call these functions.
    unsafe {
        let mut plain: libc::sigaction = std::mem::zeroed();
        plain.sa_sigaction = libc::SIG_DFL;
        libc::sigaction(signal, &raw const plain, ptr::null_mut());
        if is_sent {
            libc::raise(signal);
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

    /// What the program's own handler saw: how often it ran, the last address, and whether the signals were blocked that it asked for.
    static RAN: AtomicUsize = AtomicUsize::new(0);
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    static BLOCKED: AtomicBool = AtomicBool::new(false);

    extern "C" fn own_handler(signal: c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
        RAN.fetch_add(1, Ordering::SeqCst);
        // SAFETY: as in `handle`; the set is ours.
        unsafe {
            let mut mask = MaybeUninit::<libc::sigset_t>::zeroed().assume_init();
            libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &raw mut mask);
            let both = libc::sigismember(&raw const mask, signal)
                + libc::sigismember(&raw const mask, libc::SIGUSR1);
            BLOCKED.store(both == 2, Ordering::SeqCst);
            if (*info).si_code > 0 {
                let address = (*info).si_addr();
                SEEN.store(address.addr(), Ordering::SeqCst);
                let (page, how) = (
                    libc::sysconf(libc::_SC_PAGESIZE) as usize,
                    libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_FIXED,
                );
                let from = address.byte_sub(address.addr() % page);
                libc::mmap(from, page, libc::PROT_READ, how, -1, 0);
            }
        }
    }

    /// Sets what the program does with the signal before Halite comes.
    fn program_has(action: usize, flags: c_int) {
        // SAFETY: zeros are a valid `sigaction`; the handler is one of the type that the flags say.
        unsafe {
            let mut own: libc::sigaction = std::mem::zeroed();
            own.sa_sigaction = action;
            own.sa_flags = flags;
            libc::sigaddset(&raw mut own.sa_mask, libc::SIGUSR1);
            assert_eq!(libc::sigaction(libc::SIGBUS, &raw const own, ptr::null_mut()), 0);
        }
    }

    /// A file of four pages that was cut to one after it was mapped.
    fn cut_file() -> (tempfile::TempDir, File, usize) {
        let page = *PAGE.get_or_init(install);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, vec![7u8; 4 * page]).unwrap();
        (folder, File::options().read(true).write(true).open(&path).unwrap(), page)
    }

    fn our_mapping_still_reads_as_zeros() {
        let (_folder, file, page) = cut_file();
        let bytes = map(&file, 4 * page).unwrap().unwrap();
        file.set_len(page as u64).unwrap();
        assert_eq!((bytes[0], bytes[2 * page]), (7, 0));
    }

    fn send() {
        // SAFETY: a signal to this thread, for which there is a handler, or which ends the process.
        unsafe { libc::raise(libc::SIGBUS) };
    }

    /// The program's handler gets what is its own, with what it blocks, and nothing else.
    fn handled() {
        program_has(own_handler as *const () as usize, libc::SA_SIGINFO);
        our_mapping_still_reads_as_zeros();
        assert_eq!(RAN.load(Ordering::SeqCst), 0, "what is ours is nobody else's");
        // A mapping of the program's, which we know nothing of.
        let (_folder, file, page) = cut_file();
        // SAFETY: a new mapping, which is never taken away.
        let foreign = unsafe {
            libc::mmap(ptr::null_mut(), 4 * page, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0)
        };
        file.set_len(page as u64).unwrap();
        // SAFETY: within the mapping, whose missing page the program's handler makes.
        let value = unsafe { foreign.cast::<u8>().add(3 * page + 5).read_volatile() };
        assert_eq!((value, RAN.load(Ordering::SeqCst)), (0, 1));
        assert_eq!(SEEN.load(Ordering::SeqCst), foreign.addr() + 3 * page + 5);
        assert!(BLOCKED.load(Ordering::SeqCst));
        send();
        assert_eq!(RAN.load(Ordering::SeqCst), 2);
        our_mapping_still_reads_as_zeros();
        assert_eq!(RAN.load(Ordering::SeqCst), 2);
    }

    /// What a process of its own does, as its handler was there before ours.
    fn child(kind: &str) {
        match kind {
            "handled" => handled(),
            "once" => {
                program_has(own_handler as *const () as usize, libc::SA_SIGINFO | libc::SA_RESETHAND);
                our_mapping_still_reads_as_zeros();
                send();
                assert_eq!(RAN.load(Ordering::SeqCst), 1);
                our_mapping_still_reads_as_zeros();
                send();
            }
            "ignored" => {
                program_has(libc::SIG_IGN, 0);
                our_mapping_still_reads_as_zeros();
                send();
                our_mapping_still_reads_as_zeros();
            }
            _ => {
                program_has(libc::SIG_DFL, 0);
                our_mapping_still_reads_as_zeros();
                send();
            }
        }
    }

    #[test]
    fn signals_that_are_not_ours_do_what_they_did_before() {
        use std::os::unix::process::ExitStatusExt;
        const CHILD: &str = "HALITE_TEST_SIGNAL";
        if let Ok(kind) = std::env::var(CHILD) {
            return child(&kind);
        }
        let name = "mapping::guard::unix::tests::signals_that_are_not_ours_do_what_they_did_before";
        for (kind, ends_by) in [
            ("handled", None),
            ("ignored", None),
            ("once", Some(libc::SIGBUS)),
            ("default", Some(libc::SIGBUS)),
        ] {
            let mut child = std::process::Command::new(std::env::current_exe().unwrap());
            let out = child.args(["--exact", name, "--nocapture"]).env(CHILD, kind).output().unwrap();
            let text = String::from_utf8_lossy(&out.stderr);
            assert_eq!(out.status.signal(), ends_by, "{kind}: {} {text}", out.status);
            assert!(ends_by.is_some() || out.status.success(), "{kind}: {text}");
            assert!(String::from_utf8_lossy(&out.stdout).contains("running 1 test"), "{kind}");
        }
    }

    /// KiB of a mapping that are resident in this process.
    #[cfg(target_os = "linux")]
    fn resident(bytes: &[u8]) -> usize {
        let text = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let head = format!("{:08x}-", bytes.as_ptr().addr());
        let mut own = text.lines().skip_while(|line| !line.starts_with(&head));
        let resident = own.find_map(|line| line.strip_prefix("Rss:")).unwrap();
        resident.trim().strip_suffix(" kB").unwrap().parse().unwrap()
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn pages_that_are_released_come_back_as_they_were() {
        let page = *PAGE.get_or_init(install);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let content: Vec<u8> = (0..64 * page).map(|at| (at / page) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let bytes = map(&File::open(&path).unwrap(), content.len()).unwrap().unwrap();
        assert_eq!(&bytes[..], &content[..]);
        // The system may take pages back whenever it likes, but does not bring any.
        assert!(resident(&bytes) > 8 * page / 1024);
        // The pages at both ends have bytes of others.
        release(&bytes[1..63 * page + 1]);
        assert!(resident(&bytes) <= 2 * page / 1024);
        assert_eq!(&bytes[..], &content[..]);
        // What is no mapping of ours stays, and so does what lies in one page.
        release(&content);
        release(&bytes[1..page + 1]);
        release(&bytes[..0]);
        assert!(resident(&bytes) > 8 * page / 1024);
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
