//! Faults that an audit found once, put back: each has to be noticed by the test that is said to hold it (docs/reference/trust.md).

use super::{Fault, program, unit};

pub(super) const FAULTS: &[Fault] = &[
    Fault {
        name: "hal.unconfined_unasked",
        what: "a device that nobody named says that it takes machine code",
        file: "hal/src/choice.rs",
        from: "info.executable_formats.retain(|format| !code.formats.contains(format));",
        to: "info.executable_formats.retain(|format| !format.is_empty());",
        checks: &[unit("halite-hal", "choice")],
    },
    Fault {
        name: "hal.unconfined_code_runs",
        what: "a device that nobody named is opened so that machine code runs",
        file: "hal/src/choice.rs",
        from: "options.insert(code.option.clone(), code.refuse.clone());",
        to: "options.insert(code.option.clone(), code.allow.clone());",
        checks: &[unit("halite-hal", "choice"), program("halite-runtime", "untrusted")],
    },
    Fault {
        name: "runtime.processor_unchecked",
        what: "machine code for another processor is entered",
        file: "runtime/src/hal_module/executable.rs",
        from: "if lacking.is_empty() || own.any(|other| missing(other).is_empty()) {",
        to: "if lacking.len() < usize::MAX || own.any(|other| missing(other).is_empty()) {",
        checks: &[program("halite-runtime", "untrusted")],
    },
    Fault {
        name: "vulkan.forks_give_back",
        what: "a fork waits for a lock that a thread of its parent has, to give back what is the parent's",
        file: "drivers/vulkan/src/allocator.rs",
        from: "        if self.ctx.is_forked() {",
        to: "        if self.ctx.is_forked() && allocation.size == 0 {",
        checks: &[program("halite-vulkan", "forked")],
    },
    Fault {
        name: "compiler.far_caps_bend",
        what: "attention with a cap that is far away loses the digits of its scores",
        file: "compiler/src/build/attention.rs",
        from: "self.softcap.filter(|cap| *cap < NO_CAP)",
        to: "self.softcap.filter(|cap| *cap <= f64::MAX)",
        checks: &[unit("halite-compiler", "caps_that_are_far_away")],
    },
];
