//! What comes from driver libraries and goes to them: manifests, records of devices, and calls through both sides of the
//! interface to a driver behind it, with handles and ranges that may be wrong.
#![no_main]

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use halite_facts::DeviceFacts;
use halite_hal::{
    Buffer, BufferParams, BufferSpan, Code, Device, Driver, Fence, Options, QueueAffinity, QueueOp, Semaphore, Status,
};
use halite_plugin::manifest::Manifest;
use libfuzzer_sys::fuzz_target;

/// Most bytes of a buffer.
const MOST_BYTES: u64 = 1 << 16;

fn driver() -> &'static Arc<dyn Driver> {
    static DRIVER: OnceLock<Arc<dyn Driver>> = OnceLock::new();
    DRIVER
        .get_or_init(|| halite_plugin::loopback(Arc::new(halite_null::NullDriver)).expect("it has no needs"))
}

/// A device with options, a line each: `name=value`. The first line is the path.
fn device(text: &str) -> Option<Arc<dyn Device>> {
    let mut lines = text.lines();
    let path = lines.next().unwrap_or_default();
    let mut options = Options::new();
    for (name, value) in lines.filter_map(|line| line.split_once('=')) {
        options.insert(name.to_owned(), value.to_owned());
    }
    driver().enumerate(&options).ok()?;
    driver().open(path, &options).ok()
}

fn shared() -> &'static Arc<dyn Device> {
    static DEVICE: OnceLock<Arc<dyn Device>> = OnceLock::new();
    DEVICE.get_or_init(|| device("").expect("it has no needs"))
}

/// Calls that the bytes name, on a few buffers and semaphores.
fn calls(data: &[u8]) {
    let device = shared();
    let mut buffers: Vec<Arc<dyn Buffer>> = Vec::new();
    let mut semaphores: Vec<Arc<dyn Semaphore>> = Vec::new();
    for call in data.chunks_exact(8).take(64) {
        let number = |at: usize| u64::from(u16::from_le_bytes([call[at], call[at + 1]]));
        let pick = |at: usize, of: usize| usize::from(call[at]) % of.max(1);
        match call[0] % 6 {
            0 => buffers.extend(device.allocate_buffer(&BufferParams::DEVICE, number(2) % MOST_BYTES)),
            1 => semaphores.extend(device.create_semaphore(number(2))),
            2 => drop(semaphores.get(pick(1, semaphores.len())).map(|one| one.signal(number(2)))),
            3 => {
                let Some(buffer) = buffers.get(pick(1, buffers.len())) else { continue };
                let mut bytes = vec![call[4]; usize::from(call[5])];
                let _ = buffer.write(number(2), &bytes);
                let _ = buffer.read(number(6), &mut bytes);
            }
            _ => submit(device, call, &buffers, &semaphores),
        }
    }
    // Work that waits for what only itself would raise would keep itself for ever.
    let over = Status::new(Code::Cancelled, "the calls are over");
    semaphores.iter().for_each(|semaphore| semaphore.fail(over.clone()));
}

fn submit(
    device: &Arc<dyn Device>,
    call: &[u8],
    buffers: &[Arc<dyn Buffer>],
    semaphores: &[Arc<dyn Semaphore>],
) {
    let Some(buffer) = buffers.get(usize::from(call[1]) % buffers.len().max(1)) else { return };
    let (offset, length) = (u64::from(call[2]) << 4, u64::from(call[3]) << 4);
    // What lies outside is refused above drivers; a span of more than the buffer is what a program cannot make.
    let Ok(target) = BufferSpan::whole(buffer.clone()).subspan(offset, length) else { return };
    let fence = |at: usize| match semaphores.get(usize::from(call[at] >> 4)) {
        Some(semaphore) => Fence::new(semaphore.clone(), u64::from(call[at] & 15)),
        None => Fence::default(),
    };
    let op = match call[0] % 6 {
        4 => QueueOp::Fill { target, pattern: u64::from(call[4]), pattern_length: u32::from(call[5] % 10) },
        _ => QueueOp::Update { source: Bytes::from(vec![call[4]; length as usize]), target },
    };
    let _ = device.queue_submit(QueueAffinity::ANY, &fence(6), &fence(7), op);
    let _ = device.queue_flush(QueueAffinity::ANY);
}

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else { return };
    match first % 4 {
        0 => calls(rest),
        1 => {
            let text = String::from_utf8_lossy(rest);
            let Ok(facts) = DeviceFacts::from_json(&text) else { return };
            assert!(DeviceFacts::from_json(&facts.to_json()).is_ok(), "what is written is read");
        }
        2 => drop(std::str::from_utf8(rest).ok().and_then(device)),
        _ => {
            let text = String::from_utf8_lossy(rest);
            let Ok(manifest) = Manifest::parse(&text) else { return };
            let _ = manifest.misfit();
            let library = manifest.library_path(std::path::Path::new("/d/x.halite-driver.json"));
            assert!(library.starts_with("/d") || std::path::Path::new(&manifest.library).is_absolute());
        }
    }
});
