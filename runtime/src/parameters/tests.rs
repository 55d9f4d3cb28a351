//! The index and the module over the null device.

use std::{path::Path, sync::Arc};

use bytes::Bytes;
use halite_abi::{Code, Result};
use halite_formats::params::{NewEntry, NewStorage, write_irpa};
use halite_hal::{BufferParams, BufferSpan, DriverRegistry, Fence, File, Options};
use halite_vm::{Arguments, Invocation, NativeModule, Ref, Results, Value};
use smallvec::SmallVec;

use super::{Parameter, ParameterIndex, ParameterModule, SharedParameters};
use crate::{
    LoadMode,
    hal_module::{BufferObject, DeviceObject, FenceObject},
    vmdata,
};

fn bytes(content: &[u8]) -> Value {
    Value::Ref(vmdata::buffer(Bytes::copy_from_slice(content)))
}

fn archive(splat: &[u8]) -> Vec<u8> {
    let weight: Vec<u8> = (0..32).collect();
    let entry = |name, storage| NewEntry { name, metadata: &[], storage };
    let entries = [
        entry("layer.0.weight", NewStorage::Data(&weight)),
        entry("splat", NewStorage::Splat { pattern: splat, length: 160 }),
    ];
    let mut file = Vec::new();
    write_irpa(&entries, &mut file).unwrap();
    file
}

fn index(splat: &[u8]) -> ParameterIndex {
    let mut index = ParameterIndex::new();
    assert_eq!(index.add_bytes("model", "test.irpa", archive(splat).into()).unwrap(), 2);
    index
}

/// A device, and the fence that its last call signals.
struct Bench {
    device: Arc<dyn halite_hal::Device>,
}

impl Bench {
    fn new() -> Self {
        let mut registry = DriverRegistry::empty();
        registry.register(Arc::new(halite_null::NullDriver));
        Bench { device: halite_layers::open(&registry, "null", &Options::new()).unwrap() }
    }

    fn buffer(&self, length: u64) -> BufferSpan {
        BufferSpan::whole(self.device.allocate_buffer(&BufferParams::DEVICE, length).unwrap())
    }

    /// Calls a function between a reached and a new fence, and waits for the latter.
    fn call(&self, index: &ParameterIndex, name: &str, rest: Vec<Value>) -> Result<Vec<Value>> {
        self.call_of(&ParameterModule::new(index.clone()), name, rest, Invocation::default())
    }

    fn call_of(
        &self,
        module: &ParameterModule,
        name: &str,
        rest: Vec<Value>,
        invocation: Invocation,
    ) -> Result<Vec<Value>> {
        let function = module.lookup(name).unwrap();
        let signal = Fence::new(self.device.create_semaphore(0)?, 1);
        let head = [
            Value::Ref(Ref::new(DeviceObject::new(self.device.clone()))),
            Value::I64(-1),
            Value::Ref(Ref::NULL),
            Value::Ref(Ref::new(FenceObject(signal.clone()))),
        ];
        let args = Arguments::new(head.into_iter().chain(rest).collect(), SmallVec::new());
        let mut args = args.with_invocation(invocation);
        let mut results = Results::default();
        module.call(&mut (), function.ordinal, &mut args, &mut results)?;
        signal.wait(halite_hal::Deadline::after(std::time::Duration::from_secs(10)))?;
        Ok(results.values().to_vec())
    }

    fn load(
        &self,
        index: &ParameterIndex,
        scope: &str,
        entries: &[(&str, [u64; 3])],
    ) -> Result<Vec<Vec<u8>>> {
        let head = vec![bytes(scope.as_bytes()), Value::I64(-1), Value::I32(0x30), Value::I32(0x80C03)];
        let list = self.call(index, "load", [head, tables(entries)].concat())?.remove(0);
        let Value::Ref(list) = list else { panic!("load returns a list") };
        let buffers = vmdata::list_values(&list, 100).expect("a list").unwrap();
        let content = |value: &Value| match value {
            Value::Ref(r) => r.downcast_ref::<BufferObject>().expect("a buffer").0.read_all().unwrap(),
            other => panic!("{other:?} is no buffer"),
        };
        Ok(buffers.iter().map(content).collect())
    }
}

fn tables(entries: &[(&str, [u64; 3])]) -> Vec<Value> {
    let (mut keys, mut data, mut spans) = (Vec::new(), Vec::new(), Vec::new());
    for (key, span) in entries {
        keys.extend((data.len() as u32).to_le_bytes());
        keys.extend((key.len() as u32).to_le_bytes());
        data.extend(key.as_bytes());
        spans.extend(span.iter().flat_map(|v| v.to_le_bytes()));
    }
    vec![bytes(&keys), bytes(&data), bytes(&spans)]
}

#[test]
fn loads_stored_and_repeated_parameters() {
    let bench = Bench::new();
    let index = index(&[1, 2, 3, 4]);
    let entries = [("layer.0.weight", [4, 0, 8]), ("splat", [2, 0, 12]), ("layer.0.weight", [0, 0, 32])];
    let loaded = bench.load(&index, "model", &entries).unwrap();
    assert_eq!(loaded[0], [4, 5, 6, 7, 8, 9, 10, 11]);
    assert_eq!(loaded[1], [3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2]);
    assert_eq!(loaded[2], (0..32).collect::<Vec<u8>>());
    assert!(bench.load(&index, "model", &[]).unwrap().is_empty());
}

#[test]
fn patterns_that_no_fill_can_write_are_written_in_pieces() {
    let bench = Bench::new();
    let pattern: Vec<u8> = (1..=16).collect();
    let loaded = bench.load(&index(&pattern), "model", &[("splat", [1, 0, 100])]).unwrap();
    let expected: Vec<u8> = pattern.iter().copied().cycle().skip(1).take(100).collect();
    assert_eq!(loaded[0], expected);

    let mut long = ParameterIndex::new();
    long.insert("", "p", Parameter::Splat { pattern: Bytes::from_static(b"abc"), length: 1 << 20 });
    let loaded = bench.load(&long, "", &[("p", [0, 0, 200_000])]).unwrap();
    assert!(loaded[0].iter().zip(b"abc".iter().cycle()).all(|(a, b)| a == b));
}

#[test]
fn missing_parameters_are_explained() {
    let bench = Bench::new();
    let index = index(&[0; 4]);
    let e = bench.load(&index, "other", &[("w", [0, 0, 1])]).unwrap_err();
    assert_eq!(e.code(), Code::NotFound);
    assert!(e.message().contains("scope 'other'") && e.message().contains("'model'"), "{e}");
    let e = bench.load(&index, "model", &[("layer.1.weight", [0, 0, 1])]).unwrap_err();
    assert_eq!(e.code(), Code::NotFound);
    assert!(e.message().contains("similar: layer.0.weight") && e.message().contains("test.irpa"), "{e}");
    for span in [[0, 0, 33], [33, 0, 0], [u64::MAX, 0, 2], [0, u64::MAX, 1]] {
        let e = bench.load(&index, "model", &[("layer.0.weight", span)]).unwrap_err();
        assert_eq!(e.code(), Code::OutOfRange, "{span:?}");
    }
}

#[test]
fn gather_and_scatter_move_ranges() {
    let bench = Bench::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.irpa");
    std::fs::write(&path, archive(&[9])).unwrap();
    let mut index = ParameterIndex::new();
    index.add_writable_file("s", &path).unwrap();

    let target = bench.buffer(64);
    let scope = || bytes(b"s");
    let buffer = || Value::Ref(Ref::new(BufferObject(target.clone())));
    let entries = [("layer.0.weight", [0, 8, 4]), ("splat", [0, 12, 3])];
    bench.call(&index, "gather", [vec![scope(), buffer()], tables(&entries)].concat()).unwrap();
    let mut content = [0; 7];
    target.read(8, &mut content).unwrap();
    assert_eq!(content, [0, 1, 2, 3, 9, 9, 9]);

    target.write(0, b"written!").unwrap();
    let entries = [("layer.0.weight", [16, 0, 8])];
    bench.call(&index, "scatter", [vec![buffer(), scope()], tables(&entries)].concat()).unwrap();
    let mut again = ParameterIndex::new();
    again.add_file("s", &path, LoadMode::Preload).unwrap();
    let loaded = bench.load(&again, "s", &[("layer.0.weight", [15, 0, 10])]).unwrap();
    assert_eq!(loaded[0], b"\x0Fwritten!\x18");

    let refused = bench.call(&again, "scatter", [vec![buffer(), scope()], tables(&entries)].concat());
    assert_eq!(refused.unwrap_err().code(), Code::PermissionDenied);
    let entries = [("splat", [0, 0, 1])];
    let refused = bench.call(&index, "scatter", [vec![buffer(), scope()], tables(&entries)].concat());
    assert_eq!(refused.unwrap_err().code(), Code::PermissionDenied);
}

#[test]
fn the_first_entry_of_a_name_counts() {
    let mut index = index(&[1]);
    let second = index.add_bytes("model", "second.irpa", archive(&[2]).into()).unwrap();
    assert_eq!((second, index.len()), (0, 2));
    assert_eq!(index.entries("model"), [("layer.0.weight", 32), ("splat", 160)]);
    assert!(index.entries("none").is_empty());
    let e = index.add_file("x", Path::new("no/such.irpa"), LoadMode::Map).unwrap_err();
    assert!(e.to_string().contains("no/such.irpa"), "{e}");
    let e = index.add_bytes("x", "y.irpa", Bytes::from_static(b"nonsense")).unwrap_err();
    assert!(e.to_string().starts_with("cannot load parameters 'y.irpa'"), "{e}");
}

#[test]
fn entries_in_memory_are_not_copied() {
    let weights = Bytes::from((0..64).collect::<Vec<u8>>());
    let mut index = ParameterIndex::new();
    let entries = [("a", weights.slice(..16)), ("b", weights.slice(16..)), ("a", Bytes::new())];
    assert_eq!(index.add_entries("model", entries), 2);
    let Parameter::Stored { file: File::Memory(bytes), offset: 0, length: 48 } =
        index.get("model", "b").unwrap()
    else {
        panic!("the bytes as they are");
    };
    assert_eq!(bytes.as_ptr(), weights[16..].as_ptr());
    let loaded = Bench::new().load(&index, "model", &[("a", [0, 0, 16]), ("b", [8, 0, 4])]).unwrap();
    assert_eq!(loaded, [weights[..16].to_vec(), weights[24..28].to_vec()]);
}

#[test]
fn large_parameters_are_read_in_slices_between_which_a_call_can_end() {
    const LENGTH: usize = 70 << 20;
    let content = Bytes::from((0..LENGTH).map(|i| (i >> 16) as u8 ^ i as u8).collect::<Vec<u8>>());
    let mut index = ParameterIndex::new();
    index.add_entries("", [("large", content.clone())]);
    let told = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let log = told.clone();
    let cancel = crate::CancelToken::new();
    let stop = cancel.clone();
    // The first time all is read; the second time somebody stops it when the first slice is on its way.
    let calls = std::sync::atomic::AtomicU32::new(0);
    let sink = move |_: &str, done: u64, total: u64| {
        log.lock().push((done >> 20, total >> 20));
        if calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 3 {
            stop.cancel();
        }
    };
    let module = ParameterModule::new(index).with_progress(Some(Arc::new(sink)));
    let bench = Bench::new();
    let target = bench.buffer(LENGTH as u64);
    let mut args = vec![Value::Ref(Ref::NULL), Value::Ref(Ref::new(BufferObject(target.clone())))];
    args.extend(tables(&[("large", [0, 0, LENGTH as u64])]));
    let invocation = || Invocation { deadline: None, cancel: Some(cancel.flag()) };
    bench.call_of(&module, "gather", args.clone(), invocation()).unwrap();
    assert_eq!(*told.lock(), [(0, 70), (32, 70), (64, 70), (70, 70)]);
    assert!(target.read_all().unwrap() == content, "the slices lie where they belong");
    let e = bench.call_of(&module, "gather", args, invocation()).unwrap_err();
    assert_eq!(e.code(), Code::Cancelled);
    assert!(e.to_string().contains("of 73400320 bytes of parameters were read"), "{e}");
}

#[test]
fn sessions_share_buffers_of_the_same_bytes_as_long_as_one_has_them() {
    let bench = Bench::new();
    let shared = Arc::new(SharedParameters::new());
    let weights = Bytes::from((0..=255).collect::<Vec<u8>>());
    // Other places of the same bytes, other bytes of the same length, the same bytes behind others.
    let copy = Bytes::copy_from_slice(&weights[..64]);
    let entries = [("a", weights.slice(..64)), ("b", weights.slice(64..128)), ("copy", copy)];
    let load = |shared: &Arc<SharedParameters>, wanted: &[(&str, [u64; 3])]| {
        let mut index = ParameterIndex::new();
        index.add_entries("", entries.iter().cloned());
        let module = ParameterModule::new(index).with_shared(Some(shared.clone()));
        let head = vec![Value::Ref(Ref::NULL), Value::I64(-1), Value::I32(0x30), Value::I32(0x80C03)];
        let args = [head, tables(wanted)].concat();
        let list = bench.call_of(&module, "load", args, Invocation::default()).unwrap().remove(0);
        let Value::Ref(list) = list else { panic!("load returns a list") };
        let all = vmdata::list_values(&list, 100).expect("a list").unwrap();
        let buffer = |value: &Value| match value {
            Value::Ref(r) => r.downcast_ref::<BufferObject>().expect("a buffer").0.clone(),
            other => panic!("{other:?} is no buffer"),
        };
        all.iter().map(buffer).collect::<Vec<_>>()
    };
    let whole = [0, 0, 64];
    let first = load(&shared, &[("a", whole), ("b", whole)]);
    let second = load(&shared, &[("copy", whole), ("b", whole), ("a", [0, 64, 64]), ("a", [0, 0, 32])]);
    let same = |a: &BufferSpan, b: &BufferSpan| Arc::ptr_eq(&a.buffer, &b.buffer);
    assert!(same(&first[0], &second[0]) && same(&first[1], &second[1]) && !same(&first[0], &first[1]));
    assert!(!same(&first[0], &second[2]) && !same(&first[0], &second[3]));
    assert_eq!(second[0].read_all().unwrap(), weights[..64]);
    assert_eq!(second[2].read_all().unwrap()[64..], weights[..64]);
    assert!(!same(&load(&Arc::default(), &[("a", whole)])[0], &first[0]), "others share nothing with these");
    let used = bench.device.memory_stats().used;
    drop((first, second));
    let after = load(&shared, &[("a", whole)]);
    assert!(bench.device.memory_stats().used < used, "what nobody has is gone");
    assert_eq!(after[0].read_all().unwrap(), weights[..64]);
}

/// Calls a function of results; gives what it returns.
fn results(module: &ParameterModule, name: &str, args: Vec<Value>, buffers: &[Value]) -> Result<Vec<Value>> {
    let function = module.lookup(name).unwrap();
    let counts =
        if name == "results.keep" { SmallVec::from_slice(&[buffers.len() as u16]) } else { SmallVec::new() };
    let mut args = Arguments::new(args.into_iter().chain(buffers.iter().cloned()).collect(), counts);
    let mut results = Results::default();
    module.call(&mut (), function.ordinal, &mut args, &mut results)?;
    Ok(results.values().to_vec())
}

/// A program with parameters `a` and `copy`, which have the same bytes at two places.
fn program(shared: Option<&Arc<SharedParameters>>) -> ParameterModule {
    let mut index = ParameterIndex::new();
    let weights = Bytes::from((0..=255).collect::<Vec<u8>>());
    let copy = Bytes::copy_from_slice(&weights);
    index.add_entries("", [("a".to_owned(), weights), ("copy".to_owned(), copy)]);
    ParameterModule::new(index).with_shared(shared.cloned())
}

fn asked(how: &str, sources: &[(&str, [u64; 3])]) -> Vec<Value> {
    [vec![Value::Ref(Ref::NULL), bytes(how.as_bytes())], tables(sources)].concat()
}

/// How many buffers are found.
fn find(module: &ParameterModule, how: &str, sources: &[(&str, [u64; 3])]) -> Option<usize> {
    let found = results(module, "results.find", asked(how, sources), &[]).unwrap().remove(0);
    let Value::Ref(list) = found else { panic!("{found:?} is no list") };
    vmdata::list_values(&list, 100).map(|all| all.unwrap().len())
}

/// What is kept is computed of these.
const SOURCES: &[(&str, [u64; 3])] = &[("a", [0, 0, 256]), ("a", [0, 0, 16])];

fn keep(module: &ParameterModule, how: &str, fence: Option<&Fence>, buffers: &[&BufferSpan]) {
    let fence = fence.map_or(Ref::NULL, |fence| Ref::new(FenceObject(fence.clone())));
    let args = [vec![Value::Ref(fence)], asked(how, SOURCES)].concat();
    let buffers: Vec<Value> =
        buffers.iter().map(|span| Value::Ref(Ref::new(BufferObject((*span).clone())))).collect();
    results(module, "results.keep", args, &buffers).unwrap();
}

#[test]
fn results_are_found_by_how_and_of_what_they_are_computed() {
    let bench = Bench::new();
    let shared = Arc::new(SharedParameters::new());
    let own = program(Some(&shared));
    assert_eq!(find(&own, "joined", SOURCES), None);
    let (one, two) = (bench.buffer(64), bench.buffer(32));
    keep(&own, "joined", None, &[&one, &two]);
    assert_eq!(find(&own, "joined", SOURCES), Some(2));
    // Another program with the same bytes elsewhere.
    let other = program(Some(&shared));
    assert_eq!(find(&other, "joined", &[("copy", [0, 0, 256]), ("a", [0, 0, 16])]), Some(2));
    for (how, sources) in [
        ("turned", SOURCES),
        ("joined", &SOURCES[..1]),
        ("joined", &[("a", [0, 0, 256]), ("a", [16, 0, 16])]),
        ("joined", &[("a", [0, 0, 16]), ("a", [0, 0, 256])]),
    ] {
        assert_eq!(find(&own, how, sources), None, "{how} {sources:?}");
    }
    drop(two);
    assert_eq!(find(&own, "joined", SOURCES), None, "what nobody has is gone");
    // What parameters do not have is an error.
    let outside = asked("joined", &[("a", [200, 0, 100])]);
    assert!(results(&own, "results.find", outside, &[]).is_err());
}

#[test]
fn results_that_are_not_there_yet_or_not_shared_are_not_found() {
    let bench = Bench::new();
    let shared = Arc::new(SharedParameters::new());
    let own = program(Some(&shared));
    let one = bench.buffer(64);
    // Who shares with nobody finds nothing, and keeps nothing.
    keep(&own, "joined", None, &[&one]);
    keep(&program(None), "alone", None, &[&one]);
    assert_eq!((find(&program(None), "joined", SOURCES), find(&own, "alone", SOURCES)), (None, None));
    let later = Fence::new(bench.device.create_semaphore(0).unwrap(), 1);
    keep(&own, "later", Some(&later), &[&one]);
    assert_eq!(find(&own, "later", SOURCES), None);
    later.signal().unwrap();
    assert_eq!(find(&own, "later", SOURCES), Some(1));
    keep(&own, "part", None, &[&BufferSpan { length: 16, ..one.clone() }]);
    assert_eq!(find(&own, "part", SOURCES), None);
}
