//! Allocation: sizes, memory types, usages, accounts, and what does not fit.

use halite_hal::{BufferParams, BufferUsage, Code, Deadline, MemoryType, QueueAffinity};
use halite_testing::{
    Random,
    hal::support::{Dev, counting, fill, read, run, soon, span, whole},
};

use crate::suites::{
    Cases, Context, Need, Outcome, Stop,
    case::{check, refused, same, same_bytes},
};

/// Memory that any device should have.
const COMMON: [(&str, MemoryType); 4] = [
    ("optimal", MemoryType::OPTIMAL),
    ("device_local", MemoryType::DEVICE_LOCAL),
    ("host_visible", MemoryType::HOST_VISIBLE.union(MemoryType::DEVICE_VISIBLE)),
    ("host_coherent", MemoryType::HOST_LOCAL.union(MemoryType::DEVICE_VISIBLE)),
];

/// Memory that some devices have.
const SPECIAL: [(&str, MemoryType); 2] = [
    (
        "host_cached",
        MemoryType::HOST_VISIBLE.union(MemoryType::HOST_CACHED).union(MemoryType::DEVICE_VISIBLE),
    ),
    ("visible_device_local", MemoryType::HOST_VISIBLE.union(MemoryType::DEVICE_LOCAL)),
];

/// Adds the cases of this file.
pub(super) fn add(cases: &mut Cases) {
    for size in [0, 1, 3, 4, 63, 64, 65, 4095, 4097, 65_537, 1 << 20, (8 << 20) + 5] {
        cases.add(format!("memory.size:bytes={size}"), &[], move |t| sized(t, size));
    }
    for (name, memory_type) in COMMON {
        cases.add(format!("memory.type:type={name}"), &[], move |t| typed(t, memory_type, false));
    }
    for (name, memory_type) in SPECIAL {
        cases.add(format!("memory.type:type={name}"), &[], move |t| typed(t, memory_type, true));
    }
    cases.add("memory.usage_is_kept", &[], usages);
    cases.add("memory.account_returns_to_zero", &[], account);
    cases.add("memory.account_knows_its_peak", &[], peak);
    for size in [1u64 << 48, 1 << 60, i64::MAX as u64] {
        cases.add(format!("memory.exhaustion_is_a_status:bytes={size}"), &[], move |t| exhausted(t, size));
    }
    cases.add("memory.impossible_sizes_are_refused", &[Need::Validation], impossible);
    cases.add("memory.many_small_buffers", &[], many);
    cases.add("memory.churn_keeps_contents_apart", &[], churn);
}

fn sized(t: &Context, size: u64) -> Outcome {
    let device = t.device();
    let data = device.allocate_buffer(&BufferParams::DEVICE, size)?;
    same("byte length", data.byte_length(), size)?;
    same("owner", data.device_id(), device.id())?;
    let bytes = counting(size as usize);
    data.write(0, &bytes)?;
    same_bytes("contents", &read(&data)?, &bytes)?;
    run(device, fill(whole(&data), 0xA5, 1))?;
    same_bytes("contents after a fill", &read(&data)?, &vec![0xA5; size as usize])
}

fn typed(t: &Context, memory_type: MemoryType, special: bool) -> Outcome {
    let device = t.device();
    let params = BufferParams { memory_type, usage: BufferUsage::DEFAULT, affinity: QueueAffinity::ANY };
    let data = match device.allocate_buffer(&params, 1000) {
        Err(e) if special => return Err(Stop::Skip(format!("the device has no such memory: {e}"))),
        made => made?,
    };
    let wanted = memory_type - MemoryType::OPTIMAL;
    check!(
        data.memory_type().contains(wanted),
        "asked for {memory_type}, the buffer has {}",
        data.memory_type()
    );
    run(device, fill(span(&data, 4, 992), 0x0403_0201, 4))?;
    data.write(0, b"head")?;
    data.write(996, b"tail")?;
    let mut wanted = b"head".to_vec();
    wanted.extend([1, 2, 3, 4].repeat(248));
    wanted.extend(b"tail");
    same_bytes("contents", &read(&data)?, &wanted)?;
    if data.usage().contains(BufferUsage::MAPPING_PERSISTENT) {
        check!(data.host_address().is_some(), "mapped for good, but without an address");
    }
    Ok(())
}

fn usages(t: &Context) -> Outcome {
    for usage in [
        BufferUsage::TRANSFER,
        BufferUsage::DEFAULT,
        BufferUsage::DEFAULT | BufferUsage::DISPATCH_INDIRECT_PARAMETERS,
        BufferUsage::DEFAULT | BufferUsage::DISPATCH_UNIFORM_READ,
        BufferUsage::DEFAULT | BufferUsage::MAPPING_OPTIONAL | BufferUsage::MAPPING_SCOPED,
        BufferUsage::DEFAULT | BufferUsage::SHARING_REPLICATE | BufferUsage::SHARING_CONCURRENT,
    ] {
        let params = BufferParams { usage, ..BufferParams::DEVICE };
        let data = t.device().allocate_buffer(&params, 64)?;
        check!(data.usage().contains(usage), "asked for {usage}, the buffer has {}", data.usage());
        data.write(0, &[1; 64])?;
        same_bytes("contents", &read(&data)?, &[1; 64])?;
    }
    Ok(())
}

fn account(t: &Context) -> Outcome {
    let device = t.open()?;
    same("bytes in use before the first allocation", device.memory_stats().used, 0)?;
    let sizes = [1u64, 100, 4096, 70_000, 1 << 20, 3 << 20];
    let mut live = Vec::new();
    for size in sizes {
        live.push(device.allocate_buffer(&BufferParams::DEVICE, size)?);
        let stats = device.memory_stats();
        let sum: u64 = live.iter().map(|b| b.byte_length()).sum();
        check!(stats.used >= sum, "{sum} bytes are in live buffers, the account says {}", stats.used);
        check!(stats.reserved >= stats.used, "more is used than reserved: {stats:?}");
    }
    for data in live.drain(..) {
        run(&device, fill(whole(&data), 1, 1))?;
    }
    device.wait_idle(soon())?;
    same("bytes in use after the last buffer", device.memory_stats().used, 0)?;
    device.trim();
    same("bytes reserved after trimming", device.memory_stats().reserved, 0)
}

fn peak(t: &Context) -> Outcome {
    let device = t.open()?;
    drop(device.allocate_buffer(&BufferParams::DEVICE, 2 << 20)?);
    device.wait_idle(soon())?;
    let stats = device.memory_stats();
    check!(stats.peak_used >= 2 << 20, "two MiB were in use, the peak says {}", stats.peak_used);
    check!(stats.peak_reserved >= stats.peak_used, "{stats:?}");
    check!(stats.allocation_count >= 1, "no allocation was counted");
    let _small = device.allocate_buffer(&BufferParams::DEVICE, 16)?;
    check!(device.memory_stats().peak_used >= stats.peak_used, "the peak went down");
    Ok(())
}

fn exhausted(t: &Context, size: u64) -> Outcome {
    let device = t.device();
    let refusal = device.allocate_buffer(&BufferParams::DEVICE, size);
    let status = refused(&format!("{size} bytes"), refusal, &[Code::ResourceExhausted])?;
    check!(!status.message().is_empty(), "the refusal has no message");
    usable(device)
}

fn impossible(t: &Context) -> Outcome {
    for size in [u64::MAX, 1 << 63] {
        let refusal = t.device().allocate_buffer(&BufferParams::DEVICE, size);
        refused(&format!("{size} bytes"), refusal, &[Code::InvalidArgument])?;
    }
    usable(t.device())
}

fn usable(device: &Dev) -> Outcome {
    let data = device.allocate_buffer(&BufferParams::DEVICE, 64)?;
    run(device, fill(whole(&data), 3, 1))?;
    same_bytes("a buffer after a refusal", &read(&data)?, &[3; 64])?;
    Ok(device.wait_idle(Deadline::after(std::time::Duration::from_secs(10)))?)
}

/// More than a driver may ask of a system one by one: Vulkan promises 4,096 allocations.
fn many(t: &Context) -> Outcome {
    let device = t.device();
    let buffers = (0..5000u32)
        .map(|i| {
            let data = device.allocate_buffer(&BufferParams::DEVICE, 4 + u64::from(i % 61))?;
            data.write(0, &i.to_le_bytes())?;
            Ok(data)
        })
        .collect::<halite_hal::Result<Vec<_>>>()?;
    for (i, data) in buffers.iter().enumerate() {
        let mut word = [0; 4];
        data.read(0, &mut word)?;
        same(&format!("word of buffer {i}"), u32::from_le_bytes(word), i as u32)?;
    }
    Ok(())
}

fn churn(t: &Context) -> Outcome {
    let (device, mut random) = (t.device(), Random::new(11));
    let mut live: Vec<(u8, std::sync::Arc<dyn halite_hal::Buffer>)> = Vec::new();
    for step in 0..600u32 {
        if live.len() > 24 || (!live.is_empty() && random.once_in(3)) {
            let (value, data) = live.swap_remove(random.index(live.len()));
            let bytes = read(&data)?;
            check!(
                bytes.iter().all(|b| *b == value),
                "step {step}: a buffer of {} bytes changed",
                bytes.len()
            );
        } else {
            let magnitude = random.below(18);
            let size = 1 + random.below(1 << magnitude);
            let data = device.allocate_buffer(&BufferParams::DEVICE, size)?;
            run(device, fill(whole(&data), (step % 251).into(), 1))?;
            live.push(((step % 251) as u8, data));
        }
    }
    Ok(())
}
