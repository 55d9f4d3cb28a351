//! Native code that iree-compile made (`tests/data`), through the HAL: right numbers on every device, and refusals.
#![allow(clippy::unwrap_used, reason = "a failure is a failed test, also in helpers")]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use halite_formats::vmfb::read_module;
use halite_hal::*;
use halite_local::LocalDriver;

type D = Arc<dyn Device>;

/// Rows and columns of the tensors in `add.mlir`, and the workgroups that its kernel wants.
const ELEMENTS: usize = 100 * 512;
const WORKGROUPS: [u32; 3] = [13, 1, 1];

fn devices() -> Vec<D> {
    let task = |threads: &str| {
        let options = Options::from([("threads".to_owned(), threads.to_owned())]);
        LocalDriver::TASK.open("", &options).unwrap()
    };
    vec![LocalDriver::SYNC.open("", &Options::new()).unwrap(), task("1"), task("2"), task("5")]
}

/// The ELF file in `add_x86_64.vmfb`.
fn elf() -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/add_x86_64.vmfb");
    let module = read_module(Bytes::from(std::fs::read(path).unwrap())).unwrap();
    module.rodata.iter().find(|data| data.starts_with(b"\x7fELF")).unwrap().to_vec()
}

fn desc(data: Vec<u8>) -> ExecutableDesc {
    ExecutableDesc {
        format: "embedded-elf-x86_64".to_owned(),
        data: data.into(),
        constants: Vec::new(),
        label: "add".to_owned(),
        subgroup_sizes: Vec::new(),
    }
}

fn floats(device: &D, value: impl Fn(usize) -> f32) -> Arc<dyn Buffer> {
    let params = BufferParams {
        usage: BufferUsage::DEFAULT | BufferUsage::DISPATCH_INDIRECT_PARAMETERS,
        ..BufferParams::DEVICE
    };
    let buffer = device.allocate_buffer(&params, 4 * ELEMENTS as u64).unwrap();
    let bytes: Vec<u8> = (0..ELEMENTS).flat_map(|i| value(i).to_le_bytes()).collect();
    buffer.write(0, &bytes).unwrap();
    buffer
}

fn read(buffer: &Arc<dyn Buffer>) -> Vec<f32> {
    let bytes = BufferSpan::whole(buffer.clone()).read_all().unwrap();
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

fn slot(slot: u32) -> BufferRef {
    BufferRef { target: CommandTarget::Slot(slot), offset: 0, length: WHOLE_BUFFER }
}

fn direct(buffer: &Arc<dyn Buffer>) -> BufferRef {
    BufferSpan::whole(buffer.clone()).into()
}

fn add(executable: &Arc<dyn Executable>, counts: DispatchCounts, bindings: [BufferRef; 3]) -> Command {
    Command::Dispatch {
        executable: executable.clone(),
        function: 0,
        counts,
        constants: Default::default(),
        bindings: bindings.into_iter().collect(),
        flags: DispatchFlags::empty(),
    }
}

fn record(device: &D, commands: Vec<Command>) -> Result<Arc<dyn CommandBuffer>> {
    device.create_command_buffer(CommandList {
        mode: CommandBufferMode::empty(),
        categories: CommandCategory::ANY,
        affinity: QueueAffinity::ANY,
        binding_capacity: 3,
        commands,
    })
}

fn run(device: &D, commands: &Arc<dyn CommandBuffer>, table: &[&Arc<dyn Buffer>]) -> Result<()> {
    let end = Fence::new(device.create_semaphore(0)?, 1);
    let entries = table.iter().map(|b| Some(BufferSpan::whole((*b).clone())));
    let bindings = BindingTable { entries: entries.collect() };
    let op = QueueOp::Execute { command_buffer: commands.clone(), bindings };
    device.queue_submit(QueueAffinity::ANY, &Fence::default(), &end, op)?;
    end.wait(Deadline::after(Duration::from_secs(60)))
}

#[test]
fn exports_are_read() {
    let device = &devices()[0];
    let executable = device.create_executable(desc(elf())).unwrap();
    let [add] = executable.functions() else { panic!("{:?}", executable.functions()) };
    assert_eq!((add.binding_count, add.constant_count), (3, 0));
    assert!(add.name.contains("dispatch_0"), "{}", add.name);
    assert_eq!(executable.lookup(&add.name), Some(0));
}

#[test]
fn every_workgroup_runs_once_on_however_many_threads() {
    for device in devices() {
        let executable = device.create_executable(desc(elf())).unwrap();
        let counts = || DispatchCounts::Direct(WORKGROUPS);
        let commands =
            record(&device, vec![add(&executable, counts(), [slot(0), slot(1), slot(2)])]).unwrap();
        for round in 0..50 {
            let a = floats(&device, |i| i as f32);
            let b = floats(&device, |i| (round * i) as f32);
            let c = floats(&device, |_| -1.0);
            run(&device, &commands, &[&a, &b, &c]).unwrap();
            assert!(read(&c).iter().enumerate().all(|(i, v)| *v == i as f32 + (round * i) as f32));
        }
    }
}

#[test]
fn a_dispatch_sees_what_the_one_before_it_wrote() {
    for device in devices() {
        let executable = device.create_executable(desc(elf())).unwrap();
        let (one, sum, other) =
            (floats(&device, |_| 1.0), floats(&device, |_| 0.0), floats(&device, |_| 0.0));
        let mut commands = Vec::new();
        for _ in 0..100 {
            for (from, to) in [(&sum, &other), (&other, &sum)] {
                let bindings = [direct(&one), direct(from), direct(to)];
                commands.push(add(&executable, DispatchCounts::Direct(WORKGROUPS), bindings));
                commands.push(Command::Barrier);
            }
        }
        let commands = record(&device, commands).unwrap();
        for round in 1..=5 {
            run(&device, &commands, &[]).unwrap();
            assert!(read(&sum).iter().all(|v| *v == 200.0 * round as f32));
        }
    }
}

#[test]
fn counts_may_come_from_a_buffer() {
    for device in devices() {
        let executable = device.create_executable(desc(elf())).unwrap();
        let (a, c) = (floats(&device, |i| i as f32), floats(&device, |_| -1.0));
        let counts = floats(&device, |_| 0.0);
        let indirect = DispatchCounts::Indirect(BufferRef { length: 12, ..direct(&counts) });
        let commands =
            record(&device, vec![add(&executable, indirect, [direct(&a), direct(&a), direct(&c)])]);
        let commands = commands.unwrap();
        run(&device, &commands, &[]).unwrap();
        assert!(read(&c).iter().all(|v| *v == -1.0), "no workgroups ran");
        let bytes: Vec<u8> = WORKGROUPS.iter().flat_map(|n| n.to_le_bytes()).collect();
        counts.write(0, &bytes).unwrap();
        run(&device, &commands, &[]).unwrap();
        assert!(read(&c).iter().enumerate().all(|(i, v)| *v == 2.0 * i as f32));
        counts.write(0, &[0xFF; 12]).unwrap();
        assert_eq!(run(&device, &commands, &[]).unwrap_err().code(), Code::OutOfRange);
        counts.write(0, &[1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0]).unwrap();
        let status = run(&device, &commands, &[]).unwrap_err();
        assert!(status.message().contains("65536 workgroups in z"), "{status}");
    }
}

#[test]
fn bindings_outside_of_their_buffers_are_refused_when_it_runs() {
    for device in devices() {
        let executable = device.create_executable(desc(elf())).unwrap();
        let a = floats(&device, |_| 0.0);
        let beyond = BufferRef { offset: 8, length: 4 * ELEMENTS as u64, ..direct(&a) };
        let counts = || DispatchCounts::Direct(WORKGROUPS);
        let commands = record(&device, vec![add(&executable, counts(), [direct(&a), direct(&a), beyond])]);
        let status = run(&device, &commands.unwrap(), &[]).unwrap_err();
        assert_eq!(status.code(), Code::OutOfRange);
        assert!(status.to_string().contains("binding 2; dispatch of '"), "{status}");
        let few = Command::Dispatch {
            executable: executable.clone(),
            function: 0,
            counts: counts(),
            constants: Default::default(),
            bindings: Default::default(),
            flags: DispatchFlags::empty(),
        };
        assert_eq!(record(&device, vec![few]).unwrap_err().code(), Code::InvalidArgument);
    }
}

#[test]
fn executables_of_another_device_are_refused() {
    let (first, second) = (&devices()[0], &devices()[1]);
    let executable = first.create_executable(desc(elf())).unwrap();
    let a = floats(second, |_| 0.0);
    let bindings = [direct(&a), direct(&a), direct(&a)];
    let status = record(second, vec![add(&executable, DispatchCounts::Direct(WORKGROUPS), bindings)]);
    assert_eq!(status.unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn native_code_can_be_switched_off() {
    let options = Options::from([("native_code".to_owned(), "off".to_owned())]);
    for driver in [LocalDriver::SYNC, LocalDriver::TASK] {
        let device = driver.open("", &options).unwrap();
        let status = device.create_executable(desc(elf())).unwrap_err();
        assert_eq!(status.code(), Code::Incompatible);
        assert!(status.message().contains("native_code=off"), "{status}");
    }
}

#[test]
fn code_that_does_not_fit_is_refused() {
    let device = &devices()[0];
    let refuse = |data: Vec<u8>, constants: Vec<u32>| {
        device.create_executable(ExecutableDesc { constants, ..desc(data) }).unwrap_err()
    };
    let mut other = elf();
    other[18] = 183;
    assert_eq!(refuse(other, Vec::new()).code(), Code::Incompatible);
    let status = refuse(elf(), vec![7]);
    assert!(status.message().contains("takes 0 specialization constants, 1 are given"), "{status}");
    // What follows the segments is for debuggers.
    let good = elf();
    let file = halite_local::elf::ElfFile::parse(&good, halite_local::elf::Machine::X86_64).unwrap();
    let loaded = file.segments().iter().map(|s| s.file.end).max().unwrap();
    for length in (0..loaded).step_by(97) {
        assert_eq!(refuse(good[..length].to_vec(), Vec::new()).code(), Code::InvalidArgument, "{length}");
    }
    assert!(refuse(b"x".to_vec(), Vec::new()).to_string().contains("'add' of format 'embedded-elf-x86_64'"));
}

/// The library's tables lie in data, which is damaged here; the code stays as it is.
#[test]
fn damaged_tables_are_refused_or_harmless() {
    let (device, good) = (&devices()[0], elf());
    let file = halite_local::elf::ElfFile::parse(&good, halite_local::elf::Machine::X86_64).unwrap();
    let data = file.segments().iter().find(|s| s.protection.write).unwrap().file.clone();
    let mut refused = 0;
    for at in data {
        for value in [0, good[at] ^ 0x81] {
            let mut bad = good.clone();
            bad[at] = value;
            refused += u32::from(device.create_executable(desc(bad)).is_err());
        }
    }
    assert!(refused > 20, "{refused}");
}

/// Fields of the header that have to say one thing.
#[test]
fn other_versions_and_sanitizers_are_refused() {
    let (device, good) = (&devices()[0], elf());
    let file = halite_local::elf::ElfFile::parse(&good, halite_local::elf::Machine::X86_64).unwrap();
    let data = file.segments().iter().find(|s| s.protection.write).unwrap().file.clone();
    // The header: version 6, a name that relocation fills in, features 0, sanitizer 0.
    let header = data
        .clone()
        .step_by(8)
        .find(|at| good[*at..*at + 8] == [6, 0, 0, 0, 0, 0, 0, 0] && good[*at + 8..*at + 24] == [0; 16]);
    let header = header.expect("the compiler writes the header to data");
    for (offset, expected) in [(0, "version"), (16, "features"), (20, "sanitizer kind 5")] {
        let mut bad = good.clone();
        bad[header + offset] = 5;
        let status = device.create_executable(desc(bad)).unwrap_err();
        assert_eq!(status.code(), Code::Incompatible);
        assert!(status.message().contains(expected), "{status}");
    }
}
