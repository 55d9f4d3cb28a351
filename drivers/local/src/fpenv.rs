//! The floating-point environment that kernels run in: round to nearest, denormals kept, no traps.
//!
//! The thread may be one of a program that has flushed denormals or changed rounding, and a kernel may leave such a
//! state behind. Both would change numbers elsewhere.

/// The thread's environment, put back when dropped.
#[derive(Debug)]
pub(crate) struct DefaultEnvironment {
    saved: imp::State,
}

impl DefaultEnvironment {
    /// Saves the environment and sets the default one. Costs a few nanoseconds.
    pub fn enter() -> Self {
        let saved = imp::read();
        if saved != imp::DEFAULT {
            imp::write(imp::DEFAULT);
        }
        DefaultEnvironment { saved }
    }
}

impl Drop for DefaultEnvironment {
    fn drop(&mut self) {
        // Flags that computing raised are nobody's concern, but rounding and denormals are.
        if imp::read() != self.saved {
            imp::write(self.saved);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod imp {
    use std::arch::asm;

    /// MXCSR without its sticky flags, and the x87 control word.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) struct State(u32, u16);

    /// The environment that the ABI starts programs with.
    pub(super) const DEFAULT: State = State(0x1F80, 0x037F);

    const STICKY: u32 = 0x3F;

    pub(super) fn read() -> State {
        let (mut mxcsr, mut control) = (0_u32, 0_u16);
        // SAFETY: both instructions only store to the given places.
        unsafe {
            asm!("stmxcsr [{0}]", "fnstcw [{1}]", in(reg) &mut mxcsr, in(reg) &mut control,
                 options(nostack, preserves_flags));
        }
        State(mxcsr & !STICKY, control)
    }

    pub(super) fn write(state: State) {
        // SAFETY: the values were read from the same registers or are the ABI's own; no exception is unmasked that was
        // not before. Between `enter` and drop the thread runs kernels and no Rust arithmetic that could notice.
        unsafe {
            asm!("ldmxcsr [{0}]", "fldcw [{1}]", in(reg) &state.0, in(reg) &state.1,
                 options(nostack, preserves_flags));
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod imp {
    use std::arch::asm;

    /// FPCR.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) struct State(u64);

    /// The environment that the ABI starts programs with.
    pub(super) const DEFAULT: State = State(0);

    pub(super) fn read() -> State {
        let state: u64;
        // SAFETY: reads a register.
        unsafe { asm!("mrs {0}, fpcr", out(reg) state, options(nomem, nostack, preserves_flags)) };
        State(state)
    }

    pub(super) fn write(state: State) {
        // SAFETY: the value was read from the same register or is the ABI's own.
        unsafe { asm!("msr fpcr, {0}", in(reg) state.0, options(nomem, nostack, preserves_flags)) };
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod imp {
    /// Nothing: no native code runs here.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) struct State;

    pub(super) const DEFAULT: State = State;

    pub(super) fn read() -> State {
        State
    }

    pub(super) fn write(_state: State) {}
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use std::{arch::asm, hint::black_box};

    use super::*;

    fn set_mxcsr(value: u32) {
        // SAFETY: all exceptions stay masked.
        unsafe { asm!("ldmxcsr [{0}]", in(reg) &value, options(nostack, preserves_flags)) };
    }

    #[test]
    fn the_environment_is_the_default_inside_and_what_it_was_outside() {
        const FLUSH: u32 = 0x1F80 | 0x8040;
        let half_of_smallest = || black_box(f32::MIN_POSITIVE) / black_box(2.0);
        set_mxcsr(FLUSH);
        let flushed = half_of_smallest();
        let inside = {
            let _guard = DefaultEnvironment::enter();
            let kept = half_of_smallest();
            set_mxcsr(FLUSH | 0x6000);
            kept
        };
        let again = imp::read();
        set_mxcsr(0x1F80);
        assert_eq!(flushed, 0.0);
        assert!(inside > 0.0);
        assert_ne!(again, imp::DEFAULT);
        assert_eq!(imp::read(), imp::DEFAULT);
    }
}
