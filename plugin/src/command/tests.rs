//! Recordings there and back: random ones stay the same, damaged ones are refused.

use std::{any::Any, ptr, sync::Arc};

use bytes::Bytes;
use smallvec::SmallVec;

use super::*;
use crate::{
    abi::*,
    peer::{Peer, Side},
};
use halite_hal::*;

#[derive(Debug)]
struct Memory(u64);

impl Buffer for Memory {
    fn device_id(&self) -> u64 {
        7
    }
    fn byte_length(&self) -> u64 {
        self.0
    }
    fn memory_type(&self) -> MemoryType {
        MemoryType::HOST_LOCAL
    }
    fn usage(&self) -> BufferUsage {
        BufferUsage::DEFAULT
    }
    fn access(&self) -> MemoryAccess {
        MemoryAccess::READ
    }
    fn read(&self, _offset: u64, _target: &mut [u8]) -> Result<()> {
        Ok(())
    }
    fn write(&self, _offset: u64, _source: &[u8]) -> Result<()> {
        Ok(())
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[derive(Debug)]
struct Code(Vec<FunctionInfo>);

impl Executable for Code {
    fn device_id(&self) -> u64 {
        7
    }
    fn functions(&self) -> &[FunctionInfo] {
        &self.0
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Numbers that are the same in every run (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn bytes(&mut self) -> Vec<u8> {
        (0..self.below(40)).map(|_| self.next() as u8).collect()
    }
}

struct Objects {
    buffers: Vec<Arc<dyn Buffer>>,
    executables: Vec<Arc<dyn Executable>>,
}

impl Objects {
    fn new() -> Self {
        let function = |i: u32| FunctionInfo {
            name: format!("f{i}"),
            binding_count: i,
            constant_count: 2 * i,
            workgroup_size: [i, 1, 2],
        };
        Objects {
            buffers: (0..5).map(|i| Arc::new(Memory(100 * i)) as _).collect(),
            executables: (0..3).map(|i| Arc::new(Code((0..i).map(function).collect())) as _).collect(),
        }
    }

    fn reference(&self, random: &mut Random) -> BufferRef {
        let target = match random.below(2) {
            0 => CommandTarget::Slot(random.next() as u32),
            _ => CommandTarget::Direct(self.buffers[random.below(5) as usize].clone()),
        };
        BufferRef { target, offset: random.next(), length: random.next() }
    }

    fn command(&self, random: &mut Random) -> Command {
        match random.below(7) {
            0 => Command::Fill {
                target: self.reference(random),
                pattern: random.next(),
                pattern_length: random.next() as u32,
            },
            1 => Command::Update { source: random.bytes().into(), target: self.reference(random) },
            2 => Command::Copy { source: self.reference(random), target: self.reference(random) },
            3 => Command::Barrier,
            4 => Command::BeginDebugGroup(format!("group {}", random.below(1000))),
            5 => Command::EndDebugGroup,
            _ => Command::Dispatch {
                executable: self.executables[random.below(3) as usize].clone(),
                function: random.next() as u32,
                counts: match random.below(2) {
                    0 => DispatchCounts::Direct([random.next() as u32, 0, u32::MAX]),
                    _ => DispatchCounts::Indirect(self.reference(random)),
                },
                constants: (0..random.below(12)).map(|_| random.next() as u32).collect(),
                bindings: (0..random.below(9)).map(|_| self.reference(random)).collect(),
                flags: DispatchFlags::from_bits_retain(random.next()),
            },
        }
    }

    fn list(&self, random: &mut Random) -> CommandList {
        CommandList {
            mode: CommandBufferMode::from_bits_retain(random.next() as u32),
            categories: CommandCategory::from_bits_retain(random.next() as u32),
            affinity: QueueAffinity(random.next()),
            binding_capacity: random.next() as u32,
            commands: (0..random.below(30)).map(|_| self.command(random)).collect(),
        }
    }
}

fn through(list: &CommandList, there: Side, here: Side) -> Result<CommandList> {
    // SAFETY: the list is lent for the call.
    lend_list(list, there, |lent| unsafe { receive_list(lent, Peer::of(here)) })
}

#[test]
fn random_recordings_come_home_unchanged() {
    let (objects, mut random) = (Objects::new(), Random(0x9E37_79B9_7F4A_7C15));
    for _ in 0..300 {
        let list = objects.list(&mut random);
        let back = through(&list, Side::Host, Side::Host).unwrap();
        assert_eq!(format!("{back:?}"), format!("{list:?}"));
        for (a, b) in list.commands.iter().zip(&back.commands) {
            let (Command::Copy { source: a, .. }, Command::Copy { source: b, .. }) = (a, b) else { continue };
            let (CommandTarget::Direct(a), CommandTarget::Direct(b)) = (&a.target, &b.target) else {
                continue;
            };
            assert!(Arc::ptr_eq(a, b), "a handle of ours is the object behind it");
        }
    }
    let uses: Vec<_> = objects.buffers.iter().map(Arc::strong_count).collect();
    assert_eq!(uses, [1; 5], "nothing is held when the recordings are gone");
}

/// What can be told of a command whose objects are proxies.
fn facts(command: &Command) -> String {
    let buffer = |reference: &BufferRef| match &reference.target {
        CommandTarget::Direct(b) => format!("{} {} {}", b.device_id(), b.byte_length(), b.access()),
        CommandTarget::Slot(slot) => format!("slot {slot}"),
    };
    match command {
        Command::Copy { source, target } => format!("{} to {}", buffer(source), buffer(target)),
        Command::Dispatch { executable, bindings, .. } => {
            let bindings: Vec<_> = bindings.iter().map(buffer).collect();
            format!("{:?} {bindings:?}", executable.functions())
        }
        other => other.name().to_owned(),
    }
}

#[test]
fn random_recordings_with_foreign_objects_keep_their_facts() {
    let (objects, mut random) = (Objects::new(), Random(0xD1B5_4A32_D192_ED03));
    for _ in 0..100 {
        let list = objects.list(&mut random);
        let received = through(&list, Side::Host, Side::Plugin).unwrap();
        let facts = |list: &CommandList| -> Vec<_> { list.commands.iter().map(facts).collect() };
        assert_eq!(facts(&received), facts(&list));
        // What came in goes back to its maker as it was.
        let home = through(&received, Side::Plugin, Side::Host).unwrap();
        assert_eq!(format!("{home:?}"), format!("{list:?}"));
    }
    assert!(objects.executables.iter().all(|e| Arc::strong_count(e) == 1));
}

#[test]
fn a_recording_within_a_recording_has_arrays_of_its_own() {
    let objects = Objects::new();
    let list = |length| CommandList {
        mode: CommandBufferMode::empty(),
        categories: CommandCategory::ANY,
        affinity: QueueAffinity::ANY,
        binding_capacity: 0,
        commands: vec![
            Command::Fill {
                target: BufferSpan::whole(objects.buffers[1].clone()).into(),
                pattern: 0,
                pattern_length: 1,
            };
            length
        ],
    };
    let (outer, inner) = (list(20), list(50));
    let counts = lend_list(&outer, Side::Host, |lent| {
        let within = lend_list(&inner, Side::Host, |lent| lent.command_count);
        // SAFETY: the outer list is lent still.
        let outer = unsafe { receive_list(lent, Peer::of(Side::Host)) }.unwrap();
        (within, outer.commands.len())
    });
    assert_eq!(counts, (50, 20));
}

/// A dispatch without anything, as C code would write it.
fn empty(kind: u32) -> HaliteCommand {
    let none = HaliteBufferRef { buffer: ptr::null_mut(), offset: 0, length: 0, slot: 3, reserved: 0 };
    HaliteCommand {
        struct_size: size_of::<HaliteCommand>() as u32,
        kind,
        target: none,
        source: none,
        pattern: 0,
        pattern_length: 1,
        function: 0,
        counts: [1; 3],
        indirect_counts: 0,
        flags: 0,
        executable: ptr::null_mut(),
        data: HaliteBytes { data: ptr::null(), length: 0 },
        constants: ptr::null(),
        constant_count: 0,
        bindings: ptr::null(),
        binding_count: 0,
    }
}

fn receive(commands: &[HaliteCommand]) -> Result<CommandList> {
    let list = HaliteCommandList {
        struct_size: size_of::<HaliteCommandList>() as u32,
        mode: 0,
        categories: 3,
        binding_capacity: 0,
        affinity: 1,
        commands: commands.as_ptr(),
        command_count: commands.len(),
    };
    // SAFETY: the array is there for the call.
    unsafe { receive_list(&raw const list, Peer::of(Side::Plugin)) }
}

#[test]
fn damaged_commands_are_refused() {
    let damaged = |damage: fn(&mut HaliteCommand)| {
        let mut commands = [empty(HALITE_COMMAND_BARRIER), empty(HALITE_COMMAND_UPDATE)];
        damage(&mut commands[1]);
        let status = receive(&commands).unwrap_err();
        assert!(status.to_string().contains("the program"), "{status}");
        status
    };
    assert!(receive(&[empty(HALITE_COMMAND_UPDATE)]).is_ok());
    assert!(receive(&[]).unwrap().commands.is_empty());
    let unknown = damaged(|c| c.kind = 77);
    assert_eq!(unknown.code(), halite_hal::Code::Unimplemented);
    assert!(
        unknown.to_string().contains("kind 77") && unknown.to_string().contains("command 1"),
        "{unknown}"
    );
    for status in [
        damaged(|c| c.struct_size -= 8),
        damaged(|c| c.data.length = 5),
        damaged(|c| c.kind = HALITE_COMMAND_DISPATCH),
        damaged(|c| {
            c.kind = HALITE_COMMAND_DISPATCH;
            c.binding_count = 2;
        }),
        damaged(|c| {
            c.kind = HALITE_COMMAND_DISPATCH;
            c.constant_count = usize::MAX;
        }),
    ] {
        assert_eq!(status.code(), halite_hal::Code::Internal, "{status}");
    }
}

#[test]
fn commands_of_a_later_version_are_read_at_their_own_distance() {
    /// A command with a field more.
    #[repr(C)]
    struct Later(HaliteCommand, u64);
    let later =
        |kind| Later(HaliteCommand { struct_size: size_of::<Later>() as u32, ..empty(kind) }, u64::MAX);
    let commands =
        [later(HALITE_COMMAND_BARRIER), later(HALITE_COMMAND_FILL), later(HALITE_COMMAND_END_DEBUG_GROUP)];
    let list = HaliteCommandList {
        struct_size: size_of::<HaliteCommandList>() as u32,
        mode: 0,
        categories: 3,
        binding_capacity: 0,
        affinity: 1,
        commands: commands.as_ptr().cast(),
        command_count: commands.len(),
    };
    // SAFETY: the array is there for the call, and its elements tell their size.
    let received = unsafe { receive_list(&raw const list, Peer::of(Side::Plugin)) }.unwrap();
    let names: Vec<_> = received.commands.iter().map(Command::name).collect();
    assert_eq!(names, ["barrier", "fill", "end debug group"]);
    let odd = [HaliteCommand { struct_size: size_of::<HaliteCommand>() as u32 + 4, ..empty(0) }; 2];
    assert!(receive(&odd).unwrap_err().message().contains("cannot be in memory"));
}

#[test]
fn long_bindings_constants_and_updates_come_over() {
    let objects = Objects::new();
    let bindings: SmallVec<[Binding; 4]> =
        (0..100).map(|i| BufferSpan::whole(objects.buffers[i % 5].clone()).into()).collect();
    let list = CommandList {
        mode: CommandBufferMode::empty(),
        categories: CommandCategory::ANY,
        affinity: QueueAffinity::ANY,
        binding_capacity: 0,
        commands: vec![
            Command::Dispatch {
                executable: objects.executables[2].clone(),
                function: 1,
                counts: DispatchCounts::Direct([1; 3]),
                constants: (0..300).collect(),
                bindings,
                flags: DispatchFlags::empty(),
            },
            Command::Update {
                source: Bytes::from(vec![5; 70_000]),
                target: BufferSpan::whole(objects.buffers[0].clone()).into(),
            },
        ],
    };
    let back = through(&list, Side::Host, Side::Host).unwrap();
    assert_eq!(format!("{back:?}"), format!("{list:?}"));
}
