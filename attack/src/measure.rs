//! What a piece of work costs its process: processor time, and the most memory that it held.

use std::{fs, time::Duration};

/// Ticks of the clock that Linux counts processor time in, a second. The same on all its systems that Halite runs on.
const TICKS: u64 = 100;

/// What was used since some beginning.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Processor time of all threads.
    pub time: Duration,
    /// Most bytes of memory beyond those that were held in the beginning.
    pub memory: u64,
}

/// A beginning.
#[derive(Debug)]
pub struct Meter {
    time: Duration,
    memory: u64,
}

impl Meter {
    /// Begins. Where the system does not tell (elsewhere than on Linux), costs are 0.
    pub fn start() -> Self {
        // "5" makes the system forget the most that was held; without that, the cost is too high rather than too low.
        _ = fs::write("/proc/self/clear_refs", "5");
        Meter { time: processor_time(None), memory: held("VmRSS:") }
    }

    /// What was used since.
    pub fn cost(&self) -> Cost {
        Cost {
            time: processor_time(None).saturating_sub(self.time),
            memory: held("VmHWM:").saturating_sub(self.memory),
        }
    }
}

/// Processor time of a process, or of this one.
pub fn processor_time(process: Option<u32>) -> Duration {
    let place = process.map_or_else(|| "self".to_owned(), |id| id.to_string());
    let text = fs::read_to_string(format!("/proc/{place}/stat")).unwrap_or_default();
    ticks(&text)
}

/// The processor time that a file `stat` of Linux tells.
fn ticks(text: &str) -> Duration {
    // The name of the program may hold anything, and ends with the last bracket.
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    Duration::from_millis((ticks(11) + ticks(12)) * 1000 / TICKS)
}

/// Processor time of those threads of a process, or of this one, that are a device: what a driver for processors runs kernels on.
pub fn device_time(process: Option<u32>) -> Duration {
    /// How SwiftShader and llvmpipe call them.
    const NAMES: [&str; 2] = ["(Thread<", "(llvmpipe-"];
    let place = process.map_or_else(|| "self".to_owned(), |id| id.to_string());
    let threads = fs::read_dir(format!("/proc/{place}/task")).into_iter().flatten().filter_map(Result::ok);
    let texts = threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
    texts.filter(|text| NAMES.iter().any(|name| text.contains(name))).map(|text| ticks(&text)).sum()
}

/// Whether some thread of a process runs, or would if there were a processor for it. Where the system does not tell, no.
pub fn wants_processor(process: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return false };
    threads.filter_map(Result::ok).any(|thread| {
        let text = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        text.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('R'))
    })
}

/// Bytes of memory that this process holds.
pub fn resident() -> u64 {
    held("VmRSS:")
}

fn held(field: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kibibytes.unwrap_or(0) * 1024
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn memory_that_was_held_counts() {
        let meter = Meter::start();
        let held = vec![1u8; 64 << 20];
        assert_eq!(held.iter().map(|byte| u64::from(*byte)).sum::<u64>(), 64 << 20);
        drop(held);
        let cost = meter.cost();
        assert!(cost.memory >= 60 << 20, "{cost:?}");
        assert!(processor_time(Some(std::process::id())) >= cost.time);
    }

    #[test]
    fn threads_of_a_device_are_known_by_their_names() {
        // A thread gets a tick of processor time soon, however busy the machine is; one that is no device is given a moment.
        let work = |name: &str, most: Duration| {
            let spin = move || {
                let (begin, before) = (std::time::Instant::now(), device_time(None));
                while device_time(None) == before && begin.elapsed() < most {
                    std::hint::black_box(fs::read("/proc/self/stat").ok());
                }
                device_time(None) > before
            };
            let thread = std::thread::Builder::new().name(name.to_owned());
            thread.spawn(spin).expect("a thread starts").join().expect("it does not panic")
        };
        let long = Duration::from_secs(60);
        assert!(work("Thread<07>", long) && work("llvmpipe-3", long));
        assert_eq!(device_time(Some(u32::MAX)), Duration::ZERO, "there is no such process");
        assert!(!work("another", Duration::from_millis(100)));
    }

    #[test]
    fn what_computes_is_told_from_what_waits() {
        // This thread runs while it asks.
        assert!(wants_processor(std::process::id()));
        let mut cat = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("there is cat");
        // It may wait for its pages first, and compute again: one look at which it waits is what there is to see.
        let begin = std::time::Instant::now();
        let waits = loop {
            if !wants_processor(cat.id()) {
                break true;
            }
            if begin.elapsed() > Duration::from_secs(30) {
                break false;
            }
            crate::pause(Duration::from_millis(5));
        };
        assert!(waits, "it waits for its input");
        drop(cat.stdin.take());
        cat.wait().expect("it ends with its input");
    }
}
