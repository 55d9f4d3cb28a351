//! The module's functions over the null device, called as the VM calls them.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use bytes::Bytes;
use halite_abi::{Code, ElementType, Encoding, Import, Result, Status};
use halite_hal::{BufferParams, BufferSpan, DriverRegistry, Options};
use halite_vm::{Arguments, Buffer, NativeModule, Param, Ref, Results, Signature, Value};
use smallvec::smallvec;

use super::{BufferObject, DeviceObject, FenceObject, HalModule, objects::CommandBufferObject};
use crate::{hints::ModuleHints, view::BufferView, vmdata};

type Traced = Arc<Mutex<Vec<(String, usize)>>>;

fn hal() -> (HalModule, Traced) {
    let mut registry = DriverRegistry::empty();
    registry.register(Arc::new(halite_null::NullDriver));
    let device = halite_layers::open(&registry, "null", &Options::new()).unwrap();
    let traced = Traced::default();
    let sink = traced.clone();
    let trace = Arc::new(move |key: &str, views: &[BufferView]| {
        sink.lock().unwrap().push((key.to_owned(), views.len()));
    });
    (HalModule::new(&[device], Vec::<ModuleHints>::new(), trace), traced)
}

/// Calls by name; spans are given as element counts.
fn call(hal: &HalModule, name: &str, values: Vec<Value>, spans: &[u16]) -> Result<Vec<Value>> {
    let function = hal.lookup(name).unwrap_or_else(|| panic!("hal.{name} exists"));
    let mut args = Arguments::new(values.into(), spans.into());
    let mut results = Results::default();
    hal.call(&mut (), function.ordinal, &mut args, &mut results)?;
    Ok(results.values().to_vec())
}

fn failure(hal: &HalModule, name: &str, values: Vec<Value>, spans: &[u16]) -> Status {
    call(hal, name, values, spans).expect_err("the call fails")
}

fn device(hal: &HalModule) -> Value {
    call(hal, "devices.get", vec![i(0)], &[]).unwrap().remove(0)
}

fn i(value: i32) -> Value {
    Value::I32(value)
}

fn l(value: i64) -> Value {
    Value::I64(value)
}

fn null() -> Value {
    Value::Ref(Ref::NULL)
}

fn bytes(content: &[u8]) -> Value {
    Value::Ref(vmdata::buffer(Bytes::copy_from_slice(content)))
}

fn as_i32(value: &Value) -> i32 {
    let Value::I32(value) = value else { panic!("{value:?} is an i32") };
    *value
}

fn as_ref(value: &Value) -> &Ref {
    let Value::Ref(reference) = value else { panic!("{value:?} is a ref") };
    reference
}

const USAGE: i32 = halite_abi::BufferUsage::DEFAULT.bits().cast_signed();

fn new_buffer(hal: &HalModule, length: i64) -> Value {
    let allocator = call(hal, "device.allocator", vec![device(hal)], &[]).unwrap().remove(0);
    call(hal, "allocator.allocate", vec![allocator, l(-1), i(0x30), i(USAGE), l(length)], &[])
        .unwrap()
        .remove(0)
}

fn new_fence(hal: &HalModule) -> Value {
    call(hal, "fence.create", vec![device(hal), l(0)], &[]).unwrap().remove(0)
}

fn view(hal: &HalModule, shape: &[u64], element_type: ElementType) -> Value {
    let buffer = new_buffer(hal, 256);
    let span = as_ref(&buffer).downcast_ref::<BufferObject>().unwrap().0.clone();
    let view = BufferView { span, shape: shape.into(), element_type, encoding: Encoding::DENSE_ROW_MAJOR };
    Value::Ref(Ref::new(view))
}

#[test]
fn every_import_of_real_modules_exists_with_its_signature() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/corpus/vmfb");
    let (hal, _) = hal();
    let mut checked = 0;
    for folder in ["small", "models"] {
        let Ok(cases) = std::fs::read_dir(format!("{corpus}/{folder}")) else { continue };
        for file in cases.flatten().flat_map(|case| std::fs::read_dir(case.path()).into_iter().flatten()) {
            let path = file.unwrap().path();
            if path.extension().is_none_or(|e| e != "vmfb") {
                continue;
            }
            let def = halite_formats::vmfb::read_module(std::fs::read(&path).unwrap().into()).unwrap();
            for import in def.imports {
                let Some(name) = import.full_name.strip_prefix("hal.") else { continue };
                let found = hal.lookup(name).unwrap_or_else(|| panic!("{}: hal.{name}", path.display()));
                assert_eq!(found.signature, import.signature.calling_convention, "hal.{name}");
                checked += 1;
            }
        }
    }
    match checked {
        0 => eprintln!("SKIPPED: no modules at {corpus}"),
        _ => assert!(checked > 1000, "only {checked} imports were found"),
    }
}

#[test]
fn every_function_of_the_interface_is_there_and_no_other() {
    let (hal, _) = hal();
    // What is listed is there, what is there is listed, and nothing twice.
    let names = |imports: &mut dyn Iterator<Item = Import>| {
        let mut names: Vec<_> = imports.map(|import| import.full_name).collect();
        names.sort_unstable();
        names
    };
    let listed = names(&mut halite_abi::import::hal::ALL.iter().copied());
    assert_eq!(names(&mut hal.functions.iter().map(|f| f.import)), listed);
    for function in &hal.functions {
        Signature::parse(function.import.signature).unwrap();
        assert!(function.import.signature.starts_with('0'));
    }
}

/// Every function with every sort of value in every place: errors, never panics.
#[test]
fn wrong_arguments_are_errors() {
    let (hal, _) = hal();
    let command_buffer =
        call(&hal, "command_buffer.create", vec![device(&hal), i(0), i(3), l(-1), i(4)], &[]);
    let refs = [
        null(),
        device(&hal),
        new_buffer(&hal, 64),
        new_fence(&hal),
        bytes(&[0xFF; 12]),
        view(&hal, &[4], ElementType::F32),
        command_buffer.unwrap().remove(0),
    ];
    let ints = [0, 1, -1, 5, i64::MAX, i64::MIN, 1 << 33];
    let mut failures = 0;
    for function in &hal.functions {
        let signature = Signature::parse(function.import.signature).unwrap();
        for round in 0..49 {
            let mut values = Vec::new();
            let mut spans = Vec::new();
            let mut push = |kind: halite_vm::Kind, n: usize| {
                values.push(match kind {
                    // An endless wait is what a negative timeout asks for.
                    halite_vm::Kind::I32 if function.import == halite_abi::import::hal::FENCE_AWAIT => i(0),
                    halite_vm::Kind::I32 => i(ints[(round + n) % 7] as i32),
                    halite_vm::Kind::I64 => l(ints[(round / 7 + n) % 7]),
                    _ => refs[(round * 3 + n * (1 + round / 7)) % 7].clone(),
                });
            };
            for (n, param) in signature.args.iter().enumerate() {
                match param {
                    Param::One(kind) => push(*kind, n),
                    Param::Span(kinds) => {
                        spans.push((round % 3) as u16);
                        (0..round % 3)
                            .for_each(|_| kinds.iter().enumerate().for_each(|(m, k)| push(*k, n + m)));
                    }
                }
            }
            failures += usize::from(call(&hal, function.import.name, values, &spans).is_err());
        }
    }
    assert!(failures > 1000, "{failures}");
}

#[test]
fn devices_answer_queries() {
    let (hal, _) = hal();
    assert_eq!(as_i32(&call(&hal, "devices.count", vec![], &[]).unwrap()[0]), 1);
    assert!(as_ref(&call(&hal, "devices.get", vec![i(1)], &[]).unwrap()[0]).is_null());
    assert!(as_ref(&call(&hal, "devices.get", vec![i(-1)], &[]).unwrap()[0]).is_null());
    assert!(as_ref(&device(&hal)).same(as_ref(&device(&hal))));
    let query = |category: &[u8], key: &[u8]| {
        let args = vec![device(&hal), bytes(category), bytes(key)];
        call(&hal, "device.query.i64", args, &[]).unwrap()
    };
    assert!(matches!(query(b"hal.device.id", b"null")[..], [Value::I32(1), Value::I64(1)]));
    assert!(matches!(query(b"no.such", b"key")[..], [Value::I32(0), Value::I64(0)]));
}

#[test]
fn fences_wait_signal_and_fail() {
    let (hal, _) = hal();
    let (a, b) = (new_fence(&hal), new_fence(&hal));
    let query = |fence: &Value| as_i32(&call(&hal, "fence.query", vec![fence.clone()], &[]).unwrap()[0]);
    let wait = |timeout: i32, fences: &[&Value]| {
        let mut args = vec![i(timeout), l(0)];
        args.extend(fences.iter().map(|f| (*f).clone()));
        call(&hal, "fence.await", args, &[fences.len() as u16]).map(|r| as_i32(&r[0]))
    };
    assert_eq!(query(&a), Code::Deferred as i32);
    assert_eq!(wait(0, &[&a]).unwrap(), Code::DeadlineExceeded as i32);
    assert_eq!(wait(5, &[&null(), &a]).unwrap(), Code::DeadlineExceeded as i32);
    assert_eq!(wait(-1, &[&null()]).unwrap(), 0);

    let join = |fences: Vec<Value>| {
        let count = fences.len() as u16;
        let args = [vec![l(0)], fences].concat();
        call(&hal, "fence.join", args, &[count]).unwrap().remove(0)
    };
    assert!(as_ref(&join(vec![])).is_null() && as_ref(&join(vec![null(), null()])).is_null());
    assert!(as_ref(&join(vec![null(), a.clone()])).same(as_ref(&a)));
    let both = join(vec![a.clone(), null(), b.clone(), a.clone()]);
    assert_eq!(as_ref(&both).downcast_ref::<FenceObject>().unwrap().0.points().len(), 2);

    call(&hal, "fence.signal", vec![a.clone()], &[]).unwrap();
    assert_eq!((query(&a), query(&both)), (0, Code::Deferred as i32));
    call(&hal, "fence.fail", vec![b.clone(), i(Code::DeadlineExceeded as i32)], &[]).unwrap();
    assert_eq!(query(&both), Code::DeadlineExceeded as i32);
    // The failure of a fence is an error even when its code looks like a timeout.
    assert_eq!(wait(-1, &[&both]).unwrap_err().code(), Code::DeadlineExceeded);
}

#[test]
fn waits_end_when_the_call_is_cancelled_or_late() {
    let (hal, _) = hal();
    let fence = new_fence(&hal);
    let fence = &as_ref(&fence).downcast_ref::<FenceObject>().unwrap().0;
    let never = halite_hal::Deadline::Never;
    let late = halite_vm::Invocation {
        deadline: Some(Instant::now() + Duration::from_millis(20)),
        ..halite_vm::Invocation::default()
    };
    let e = super::wait_for_fence(fence, never, &late).unwrap_err();
    assert_eq!(e.code(), Code::DeadlineExceeded);

    let token = crate::CancelToken::new();
    let cancelled = halite_vm::Invocation { deadline: None, cancel: Some(token.flag()) };
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| super::wait_for_fence(fence, never, &cancelled));
        token.cancel();
        // The wait has no end of its own.
        assert_eq!(waiter.join().unwrap().unwrap_err().code(), Code::Cancelled);
    });
}

#[test]
fn buffers_hold_what_is_stored() {
    let (hal, _) = hal();
    let buffer = new_buffer(&hal, 64);
    call(&hal, "buffer.store", vec![i(0x0403_0201), buffer.clone(), l(8), i(4)], &[]).unwrap();
    let part = call(&hal, "buffer.subspan", vec![buffer.clone(), l(8), l(-1)], &[]).unwrap().remove(0);
    assert!(matches!(call(&hal, "buffer.length", vec![part.clone()], &[]).unwrap()[..], [Value::I64(56)]));
    let load = |width| call(&hal, "buffer.load", vec![part.clone(), l(0), i(width)], &[]);
    assert_eq!(as_i32(&load(4).unwrap()[0]), 0x0403_0201);
    assert_eq!(as_i32(&load(2).unwrap()[0]), 0x0201);
    assert_eq!(load(5).unwrap_err().code(), Code::InvalidArgument);
    let e = failure(&hal, "buffer.load", vec![part.clone(), l(53), i(4)], &[]);
    assert_eq!(e.code(), Code::OutOfRange);
    let same = call(&hal, "buffer.subspan", vec![buffer.clone(), l(0), l(64)], &[]).unwrap().remove(0);
    assert!(as_ref(&same).same(as_ref(&buffer)));
}

#[test]
fn imports_of_host_memory_upload_or_decline() {
    let (hal, _) = hal();
    let allocator = call(&hal, "device.allocator", vec![device(&hal)], &[]).unwrap().remove(0);
    let import = |only_try: i32, length: i64| {
        let args = vec![
            allocator.clone(),
            i(only_try),
            l(-1),
            i(0x30),
            i(USAGE),
            bytes(b"abcdefgh"),
            l(2),
            l(length),
        ];
        call(&hal, "allocator.import", args, &[])
    };
    assert!(as_ref(&import(1, 4).unwrap()[0]).is_null());
    let buffer = import(0, -1).unwrap().remove(0);
    let span = &as_ref(&buffer).downcast_ref::<BufferObject>().unwrap().0;
    assert_eq!(span.read_all().unwrap(), b"cdefgh");
    assert_eq!(import(0, 7).unwrap_err().code(), Code::OutOfRange);
}

#[test]
fn views_lie_within_their_buffers() {
    let (hal, _) = hal();
    let buffer = new_buffer(&hal, 64);
    let create = |encoding: i32, dims: &[i64]| {
        let mut args = vec![buffer.clone(), l(16), l(40), i(0x2100_0040), i(encoding)];
        args.extend(dims.iter().map(|d| l(*d)));
        call(&hal, "buffer_view.create", args, &[dims.len() as u16])
    };
    for dims in [&[5][..], &[0, 9], &[]] {
        create(1, dims).unwrap();
    }
    // iree-compile makes such views where it narrows f64 inside a program but not in its signature.
    let e = create(1, &[2, 3]).unwrap_err();
    assert_eq!(
        (e.code(), e.message()),
        (Code::OutOfRange, "a tensor 2x3xf64 takes 48 bytes, its buffer range has 40")
    );
    assert_eq!(create(1, &[1 << 40, 1 << 40]).unwrap_err().code(), Code::OutOfRange);
    create(0, &[2, 3]).unwrap();
}

#[test]
fn assertions_speak_as_the_original() {
    let (hal, _) = hal();
    let assert = |value: &Value, dims: &[i64]| {
        let mut args = vec![value.clone(), bytes(b"input0"), i(0x2100_0020), i(1)];
        args.extend(dims.iter().map(|d| l(*d)));
        call(&hal, "buffer_view.assert", args, &[dims.len() as u16])
    };
    let message = |value: &Value, dims: &[i64]| assert(value, dims).unwrap_err().message().to_owned();
    assert(&view(&hal, &[4, 8], ElementType::F32), &[4, 8]).unwrap();
    assert_eq!(
        message(&view(&hal, &[4, 9], ElementType::F32), &[4, 8]),
        "input0 shape dimension 1 mismatch; expected 8 but have 9; expected shape `4x8`, actual shape `4x9`"
    );
    assert_eq!(
        message(&view(&hal, &[32], ElementType::F32), &[4, 8]),
        "input0 shape rank mismatch; expected 2 but have 1; expected shape `4x8`, actual shape `32`"
    );
    assert_eq!(
        message(&view(&hal, &[4, 8], ElementType::I32), &[4, 8]),
        "input0 element type mismatch; expected f32 (21000020) but have i32 (10000020)"
    );
    assert!(message(&null(), &[4]).contains("input0 must be a tensor"));

    let buffer = new_buffer(&hal, 64);
    let assert = |length: i64, memory: i32, usage: i32| {
        let args = vec![buffer.clone(), bytes(b"input1"), null(), l(length), i(memory), i(usage)];
        call(&hal, "buffer.assert", args, &[])
    };
    assert(64, 0x10, USAGE).unwrap();
    let e = assert(65, 0x10, USAGE).unwrap_err();
    assert_eq!(e.message(), "input1 byte length mismatch; expected at least 65 but have 64");
    assert!(assert(64, 0x10, 0x200).unwrap_err().message().contains("usage mismatch"));
}

/// A command buffer with two slots.
fn new_command_buffer(hal: &HalModule) -> Value {
    let args = vec![device(hal), i(0), i(3), l(-1), i(2)];
    call(hal, "command_buffer.create", args, &[]).unwrap().remove(0)
}

#[test]
fn command_buffers_run_with_their_bindings() {
    let (hal, _) = hal();
    let command_buffer = new_command_buffer(&hal);
    let record = |name: &str, args: Vec<Value>| {
        call(&hal, name, [vec![command_buffer.clone()], args].concat(), &[]).unwrap();
    };
    record("command_buffer.begin_debug_group", vec![bytes(b"group")]);
    record("command_buffer.fill_buffer", vec![null(), l(0), l(16), i(0), l(0xAB), i(1), l(0)]);
    record("command_buffer.execution_barrier", vec![i(28), i(13), l(0)]);
    let host = Ref::new(Buffer::from_vec(b"0123456789".to_vec()));
    record(
        "command_buffer.update_buffer",
        vec![Value::Ref(host.clone()), l(4), null(), l(4), l(4), i(0), l(0)],
    );
    // Captured at record time: this change is not seen.
    host.expect::<Buffer>("vm.buffer").unwrap().write_at(0, b"xxxxxxxxxx").unwrap();
    record("command_buffer.execution_barrier", vec![i(28), i(13), l(0)]);
    record("command_buffer.copy_buffer", vec![i(0), i(1), null(), l(0), null(), l(8), l(16), l(0)]);
    record("command_buffer.end_debug_group", vec![]);

    let (fence, source, target) = (new_fence(&hal), new_buffer(&hal, 32), new_buffer(&hal, 64));
    let execute = || {
        let args = vec![
            device(&hal),
            l(-1),
            null(),
            fence.clone(),
            command_buffer.clone(),
            l(0),
            source.clone(),
            l(16),
            l(16),
            target.clone(),
            l(0),
            l(-1),
        ];
        call(&hal, "device.queue.execute.indirect", args, &[2])
    };
    assert_eq!(execute().unwrap_err().code(), Code::FailedPrecondition);
    record("command_buffer.finalize", vec![]);
    execute().unwrap();
    assert_eq!(as_i32(&call(&hal, "fence.await", vec![i(5000), l(0), fence], &[1]).unwrap()[0]), 0);
    let target = as_ref(&target).downcast_ref::<BufferObject>().unwrap().0.clone();
    let mut content = [0; 16];
    target.read(8, &mut content).unwrap();
    assert_eq!(content, *b"\xAB\xAB\xAB\xAB4567\xAB\xAB\xAB\xAB\xAB\xAB\xAB\xAB");

    let e = failure(&hal, "command_buffer.end_debug_group", vec![command_buffer.clone()], &[]);
    assert_eq!(e.code(), Code::FailedPrecondition);
    let object = as_ref(&command_buffer).downcast_ref::<CommandBufferObject>().unwrap();
    assert_eq!(object.finalize().unwrap_err().code(), Code::FailedPrecondition);
}

#[test]
fn executables_have_functions_by_name() {
    let (hal, _) = hal();
    let create = |constants: Value| {
        let data = bytes(br#"[{"name": "f"}, {"name": "g", "bindings": 1, "constants": 2}]"#);
        let format = bytes(halite_null::EXECUTABLE_FORMAT.as_bytes());
        call(&hal, "executable.create", vec![device(&hal), l(-1), format, data, constants], &[])
    };
    assert_eq!(create(bytes(b"12345")).unwrap_err().code(), Code::InvalidArgument);
    create(bytes(b"12345678")).unwrap();
    let executable = create(null()).unwrap().remove(0);
    let lookup =
        |name: &[u8]| call(&hal, "executable.lookup.function", vec![executable.clone(), bytes(name)], &[]);
    assert!(matches!(lookup(b"g").unwrap()[..], [Value::I64(1)]));
    let e = lookup(b"h").unwrap_err();
    assert_eq!(e.message(), "executable has no function 'h'; it has: f, g");

    let command_buffer =
        call(&hal, "command_buffer.create", vec![device(&hal), i(1), i(3), l(-1), i(0)], &[])
            .unwrap()
            .remove(0);
    let dispatch = |function: i64| {
        let args = vec![
            command_buffer.clone(),
            executable.clone(),
            l(function),
            i(1),
            i(1),
            i(1),
            l(0),
            i(7),
            i(8),
            i(0),
            i(0),
            new_buffer(&hal, 64),
            l(0),
            l(64),
        ];
        call(&hal, "command_buffer.dispatch", args, &[2, 1])
    };
    dispatch(1).unwrap();
    assert_eq!(dispatch(2).unwrap_err().code(), Code::OutOfRange);
    assert_eq!(dispatch(-1).unwrap_err().code(), Code::OutOfRange);
    call(&hal, "command_buffer.finalize", vec![command_buffer], &[]).unwrap();
}

#[test]
fn queues_move_bytes_in_fence_order() {
    let (hal, _) = hal();
    let queue = |wait: &Value, signal: &Value| vec![device(&hal), l(-1), wait.clone(), signal.clone()];
    let (allocated, filled, read) = (new_fence(&hal), new_fence(&hal), new_fence(&hal));
    let alloca = [queue(&null(), &allocated), vec![l(0), i(0x30), i(USAGE), l(32), l(0)]].concat();
    let buffer = call(&hal, "device.queue.alloca", alloca, &[]).unwrap().remove(0);
    let fill =
        [queue(&allocated, &filled), vec![buffer.clone(), l(0), l(-1), l(0x0201), i(2), l(0)]].concat();
    call(&hal, "device.queue.fill", fill, &[]).unwrap();
    let from = vec![device(&hal), l(-1), i(1), bytes(b"file contents"), l(5), l(-1), i(0)];
    let file = call(&hal, "ex.file.from_memory", from, &[]).unwrap().remove(0);
    let args = [queue(&filled, &read), vec![file, l(0), buffer.clone(), l(4), l(8), l(0)]].concat();
    call(&hal, "device.queue.read", args, &[]).unwrap();
    call(&hal, "device.queue.flush", vec![device(&hal), l(-1)], &[]).unwrap();
    assert_eq!(as_i32(&call(&hal, "fence.await", vec![i(5000), l(0), read], &[1]).unwrap()[0]), 0);
    let span = as_ref(&buffer).downcast_ref::<BufferObject>().unwrap().0.clone();
    assert_eq!(span.read_all().unwrap()[..14], *b"\x01\x02\x01\x02contents\x01\x02");

    let pool = [queue(&null(), &null()), vec![l(1), i(0x30), i(USAGE), l(32), l(0)]].concat();
    assert_eq!(failure(&hal, "device.queue.alloca", pool, &[]).code(), Code::InvalidArgument);
    let write = vec![device(&hal), l(-1), i(3), bytes(b"x"), l(0), l(-1), i(0)];
    assert_eq!(failure(&hal, "ex.file.from_memory", write, &[]).code(), Code::PermissionDenied);
}

#[test]
fn traces_and_collectives() {
    let (hal, traced) = hal();
    let args = vec![bytes(b"key"), view(&hal, &[2], ElementType::F32), view(&hal, &[], ElementType::F32)];
    call(&hal, "buffer_view.trace", args, &[2]).unwrap();
    assert_eq!(*traced.lock().unwrap(), [("key".to_owned(), 2)]);
    let e = failure(&hal, "channel.rank_and_count", vec![null()], &[]);
    assert_eq!(e.code(), Code::Unimplemented);
}

#[test]
fn views_move_between_host_and_device() {
    let (hal, _) = hal();
    let reference = device(&hal);
    let device = as_ref(&reference).downcast_ref::<DeviceObject>().unwrap().device.clone();
    let tensor = crate::HostTensor::new(ElementType::I16, [2u64, 1].as_slice(), vec![1, 2, 3, 4]).unwrap();
    let view = BufferView::from_host(&device, &tensor).unwrap();
    assert_eq!(view.to_host().unwrap(), tensor);
    let empty = crate::HostTensor::new(ElementType::F32, [0u64, 3].as_slice(), vec![]).unwrap();
    assert_eq!(BufferView::from_host(&device, &empty).unwrap().to_host().unwrap(), empty);
    let buffer = device.allocate_buffer(&BufferParams::DEVICE, 7).unwrap();
    let view = BufferView { span: BufferSpan::whole(buffer), shape: smallvec![2], ..view };
    let short = BufferView { element_type: ElementType::F32, ..view.clone() };
    assert_eq!(short.to_host().unwrap_err().code(), Code::OutOfRange);
    let huge = BufferView { shape: smallvec![u64::MAX, u64::MAX], ..view };
    assert_eq!(huge.to_host().unwrap_err().code(), Code::OutOfRange);
}
