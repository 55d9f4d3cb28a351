//! Reads and writes of buffers by the host.

use std::{sync::Arc, thread};

use halite_hal::{BufferParams, BufferUsage, Code, MemoryType, QueueAffinity, Result, WHOLE_BUFFER};
use halite_testing::hal::support::{buffer, counting, read, span, whole};

use crate::suites::{
    Cases, Context, Outcome, Stop,
    case::{refused, same, same_bytes},
};

/// Adds the cases of this file.
pub(super) fn add(cases: &mut Cases) {
    for (offset, length) in
        [(0, 1), (1, 1), (3, 5), (63, 2), (64, 64), (100, 0), (1000, 0), (999, 1), (7, 993)]
    {
        cases
            .add(format!("host.part:offset={offset};length={length}"), &[], move |t| part(t, offset, length));
    }
    for size in [(1 << 20) + 1, (40 << 20) + 3] {
        cases.add(format!("host.big:bytes={size}"), &[], move |t| big(t, size));
    }
    cases.add("host.uncached_memory", &[], uncached);
    cases.add("host.access_past_the_end_is_refused", &[], past_the_end);
    cases.add("host.sub_spans", &[], sub_spans);
    cases.add("host.threads_on_disjoint_ranges", &[], threads);
}

fn part(t: &Context, offset: usize, length: usize) -> Outcome {
    let mut wanted = counting(1000);
    let data = buffer(t.device(), &wanted)?;
    let change: Vec<u8> = (0..length).map(|i| !(i as u8)).collect();
    data.write(offset as u64, &change)?;
    wanted[offset..offset + length].copy_from_slice(&change);
    same_bytes("whole buffer", &read(&data)?, &wanted)?;
    let mut back = vec![0; length];
    data.read(offset as u64, &mut back)?;
    same_bytes("part", &back, &change)
}

/// More than drivers stage at once.
fn big(t: &Context, size: usize) -> Outcome {
    let bytes = counting(size);
    let data = t.device().allocate_buffer(&BufferParams::DEVICE, size as u64)?;
    data.write(0, &bytes)?;
    same_bytes("contents", &read(&data)?, &bytes)
}

fn uncached(t: &Context) -> Outcome {
    let params = BufferParams {
        memory_type: MemoryType::HOST_VISIBLE | MemoryType::DEVICE_VISIBLE,
        usage: BufferUsage::DEFAULT | BufferUsage::MAPPING_ACCESS_SEQUENTIAL_WRITE,
        affinity: QueueAffinity::ANY,
    };
    let bytes = counting(5000);
    let data = t.device().allocate_buffer(&params, 5000)?;
    data.write(0, &bytes)?;
    for (offset, length) in [(0, 5000), (1, 127), (1, 129), (4999, 1)] {
        let mut back = vec![0; length];
        data.read(offset, &mut back)?;
        same_bytes("part", &back, &bytes[offset as usize..][..length])?;
    }
    Ok(())
}

fn past_the_end(t: &Context) -> Outcome {
    let data = buffer(t.device(), &counting(100))?;
    for (offset, length) in [(100, 1), (99, 2), (101, 0), (u64::MAX, 1), (u64::MAX - 1, 8), (0, 101)] {
        let mut bytes = vec![0; length];
        refused("a read past the end", data.read(offset, &mut bytes), &[Code::OutOfRange])?;
        refused("a write past the end", data.write(offset, &bytes), &[Code::OutOfRange])?;
    }
    same_bytes("contents", &read(&data)?, &counting(100))
}

fn sub_spans(t: &Context) -> Outcome {
    let data = buffer(t.device(), &counting(100))?;
    let part = whole(&data).subspan(10, 50)?.subspan(5, WHOLE_BUFFER)?;
    same("offset and length", (part.offset, part.length), (15, 45))?;
    same_bytes("part", &part.read_all()?, &counting(100)[15..60])?;
    part.write(44, b"!")?;
    let mut byte = [0];
    data.read(59, &mut byte)?;
    same_bytes("last byte", &byte, b"!")?;
    refused("a write past a span", part.write(45, b"!"), &[Code::OutOfRange])?;
    refused("a span past the buffer", span(&data, 90, 20).read_all(), &[Code::OutOfRange]).map(drop)
}

fn threads(t: &Context) -> Outcome {
    let data = buffer(t.device(), &[0; 8 * 1024])?;
    let workers: Vec<_> = (0..8u64)
        .map(|worker| {
            let data = Arc::clone(&data);
            thread::spawn(move || -> Result<Option<String>> {
                let range = span(&data, worker * 1024, 1024);
                for round in 0..50u8 {
                    let value = round.wrapping_mul(8).wrapping_add(worker as u8);
                    range.write(0, &[value; 1024])?;
                    let back = range.read_all()?;
                    if back.iter().any(|b| *b != value) {
                        return Ok(Some(format!("worker {worker}, round {round}: read back other bytes")));
                    }
                }
                Ok(None)
            })
        })
        .collect();
    for worker in workers {
        let problem = worker.join().map_err(|_| Stop::Fail("a thread panicked".to_owned()))??;
        same("problem", problem, None)?;
    }
    Ok(())
}
