//! What the shim was told to do, and what it counted.

use std::{
    collections::{HashMap, HashSet},
    ffi::c_int,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use ash::vk;

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Fail(vk::Result),
    Crash,
}

#[derive(Debug)]
struct Rule {
    call: String,
    after: u32,
    times: u32,
    act: Act,
}

unsafe extern "C" {
    fn atexit(call: extern "C" fn()) -> c_int;
}

/// Has the process crash when the C library lets it end in order, as drivers do whose threads are at work then.
fn crash_at_exit() {
    extern "C" fn crash() {
        std::process::abort();
    }
    // SAFETY: the function is there as long as the library, which nobody closes while it is in use.
    unsafe { atexit(crash) };
}

/// Rules and counts of the process.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    rules: Vec<Rule>,
    calls: HashMap<String, u32>,
    live: HashMap<&'static str, i64>,
    /// Devices, as numbers, that were reported lost.
    lost: HashSet<u64>,
    /// Devices of queues.
    queues: HashMap<u64, u64>,
    /// Calls that do not return.
    hanging: HashSet<String>,
    /// Calls that are told on standard error when they are done.
    told: HashSet<String>,
    /// Whether no work seems to finish.
    pub stalled: bool,
    /// Whether devices have no timeline semaphores.
    pub no_timelines: bool,
    /// Whether devices have a second queue.
    pub twin_queues: bool,
    /// Whether devices offer `VK_EXT_device_fault`.
    pub device_fault: bool,
}

/// The rules of the process; those of the environment to begin with.
pub(crate) fn lock() -> MutexGuard<'static, Rules> {
    static RULES: OnceLock<Mutex<Rules>> = OnceLock::new();
    let from_environment = || {
        let mut rules = Rules::default();
        rules.parse(&std::env::var("HALITE_VULKAN_SHIM").unwrap_or_default());
        Mutex::new(rules)
    };
    RULES.get_or_init(from_environment).lock().unwrap_or_else(PoisonError::into_inner)
}

impl Rules {
    /// Adds a rule.
    pub fn fail(&mut self, call: String, after: u32, times: u32, result: vk::Result) {
        self.rules.push(Rule { call, after, times, act: Act::Fail(result) });
    }

    /// Has a call hang, or go on.
    pub fn hang(&mut self, call: String, on: bool) {
        if on {
            self.hanging.insert(call);
        } else {
            self.hanging.remove(&call);
        }
    }

    /// Whether a call must not return yet.
    pub fn hangs(&self, call: &str) -> bool {
        self.hanging.contains(call)
    }

    /// Whether a call is told when it is done.
    pub fn tells(&self, call: &str) -> bool {
        self.told.contains(call)
    }

    fn parse(&mut self, text: &str) {
        for rule in text.split(',').filter(|r| !r.is_empty()) {
            let Some((call, act)) = rule.split_once('=') else { continue };
            let (act, after) = act.split_once('@').unwrap_or((act, "0"));
            match act {
                "stall" => self.stalled = true,
                "hide" => self.no_timelines |= call == "timelines",
                "crash" if call == "exit" => crash_at_exit(),
                "two" => self.twin_queues |= call == "queues",
                "tell" => {
                    self.told.insert(call.to_owned());
                }
                "crash" => self.rules.push(Rule {
                    call: call.to_owned(),
                    after: after.parse().unwrap_or(0),
                    times: u32::MAX,
                    act: Act::Crash,
                }),
                result => {
                    let result = vk::Result::from_raw(result.parse().unwrap_or(-13));
                    self.fail(call.to_owned(), after.parse().unwrap_or(0), u32::MAX, result);
                }
            }
        }
    }

    /// Forgets everything but the devices of queues.
    pub fn reset(&mut self) {
        *self = Rules { queues: std::mem::take(&mut self.queues), ..Rules::default() };
    }

    /// Forgets the rules.
    pub fn clear(&mut self) {
        self.rules.clear();
        self.hanging.clear();
    }

    /// Counts a call of an object of `device` (0 for none), and decides whether it fails.
    pub fn enter(&mut self, call: &str, device: u64) -> Option<vk::Result> {
        *self.calls.entry(call.to_owned()).or_default() += 1;
        let act = self.rules.iter_mut().find(|r| r.call == call && r.times > 0).and_then(|rule| {
            if rule.after > 0 {
                rule.after -= 1;
                return None;
            }
            rule.times -= 1;
            Some(rule.act)
        });
        match act {
            // What a driver does that follows a bad pointer, as far as the process can tell.
            Some(Act::Crash) => std::process::abort(),
            Some(Act::Fail(vk::Result::ERROR_DEVICE_LOST)) => {
                self.lost.insert(device);
                // What stood still is gone now.
                self.stalled = false;
                Some(vk::Result::ERROR_DEVICE_LOST)
            }
            Some(Act::Fail(result)) => Some(result),
            None => None,
        }
    }

    /// Whether a device was reported lost: it stays so.
    pub fn is_lost(&self, device: u64) -> bool {
        self.lost.contains(&device)
    }

    /// A device is gone; another one may get its number.
    pub fn destroyed(&mut self, device: u64) {
        self.count("device", -1);
        self.lost.remove(&device);
    }

    /// Remembers which device a queue is of.
    pub fn note_queue(&mut self, queue: u64, device: u64) {
        self.queues.insert(queue, device);
    }

    /// The device of a queue.
    pub fn device_of(&self, queue: u64) -> u64 {
        self.queues.get(&queue).copied().unwrap_or(0)
    }

    /// Counts an object that was made or destroyed.
    pub fn count(&mut self, kind: &'static str, change: i64) {
        *self.live.entry(kind).or_default() += change;
    }

    /// How often a call was made.
    pub fn calls(&self, call: &str) -> u32 {
        self.calls.get(call).copied().unwrap_or(0)
    }

    /// Objects that were made and not destroyed.
    pub fn live(&self) -> i64 {
        self.live.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_count_down() {
        let mut rules = Rules::default();
        rules.parse("vkA=-2@1,vkB=-4");
        assert_eq!(rules.enter("vkA", 1), None);
        assert_eq!(rules.enter("vkA", 1), Some(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY));
        rules.fail("vkC".to_owned(), 0, 1, vk::Result::ERROR_UNKNOWN);
        assert_eq!([rules.enter("vkC", 1), rules.enter("vkC", 1)], [Some(vk::Result::ERROR_UNKNOWN), None]);
        assert!(!rules.is_lost(7) && rules.enter("vkB", 7).is_some() && rules.is_lost(7));
        assert_eq!(rules.calls("vkA"), 2);
    }
}
