//! How much memory the C library's allocator gave out. Rust, and Vulkan drivers in C++ that run in this process, take theirs there.
//! The memory that the system counts for a process also has what the allocator keeps for later, some of it for each thread that
//! ever asked, and where the pieces that are still used lie decides how much that is: it says little of what is lost.
#![allow(unsafe_code, reason = "the C library is asked; each block says why that is sound")]

/// Bytes that were given out and not taken back; `None` where the C library does not tell.
pub fn live() -> Option<u64> {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: it takes no arguments, locks what it reads, and returns a plain structure. glibc has it since 2.33, and Rust's
        // standard library would not have been linked with an older one here: the symbol is resolved when the program is.
        let info = unsafe { libc::mallinfo2() };
        Some(info.uordblks as u64 + info.hblkhd as u64)
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    None
}

/// Gives back to the system what is kept for later, as far as that is possible.
pub fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it locks what it changes, and touches nothing that was given out.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_out_counts_until_it_is_given_back() {
        const SIZE: u64 = 300 << 20;
        let before = live().expect("glibc tells");
        let held = std::hint::black_box(vec![1u8; SIZE as usize]);
        let with = live().expect("glibc tells");
        drop(held);
        trim();
        let after = live().expect("glibc tells");
        // Other tests allocate beside this one, but not as much.
        assert!(with >= before + SIZE / 2, "{before} {with}");
        assert!(after + SIZE / 2 <= with, "{with} {after}");
    }
}
