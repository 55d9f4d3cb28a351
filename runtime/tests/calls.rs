//! Calls that return before their work is done, over the null device: what waits for what, deadlines, cancellation, and
//! many threads. The program's work is a barrier behind a fence that the test holds.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::{sync::Arc, time::Duration};

use halite_abi::{Import, attribute, import::hal};
use halite_formats::vmfb::{Attr, ModuleDef, WriteOptions, write_module};
use halite_hal::{Code, Device, DriverRegistry, Fence, Options, Status};
use halite_runtime::{
    CallOptions, CancelToken, Deadline, FenceObject, Function, PendingCall, Session, Value,
};
use halite_vm::{
    Ref,
    asm::{FunctionBuilder, ModuleBuilder, PLAIN, Reg, cell, reference},
    isa::Op,
};

fn import(b: &mut ModuleBuilder, import: Import) -> u32 {
    b.import(import.full_name, import.signature, false)
}

fn regs(of: &[Reg]) -> halite_vm::asm::Arg {
    of.to_vec().into()
}

/// `NAME$async(gate, wait, signal)`: signals when the gate is open and what is to be waited for is there. Its result is the
/// gate.
fn behind_a_gate(b: &mut ModuleBuilder) -> FunctionBuilder {
    let get = import(b, hal::DEVICES_GET);
    let join = import(b, hal::FENCE_JOIN);
    let barrier = import(b, hal::DEVICE_QUEUE_BARRIER);
    let mut f = FunctionBuilder::new("0rrr_r");
    let (index, any, zero) = (cell(0), cell(2), cell(4));
    let [gate, wait, signal, device, both] = [0, 1, 2, 3, 4].map(reference);
    f.op(Op::ConstI32Zero, &[index.into()]).unwrap();
    f.op(Op::ConstI64, &[u64::MAX.into(), any.into()]).unwrap();
    f.op(Op::ConstI64Zero, &[zero.into()]).unwrap();
    f.op(Op::Call, &[get.into(), regs(&[index]), regs(&[device])]).unwrap();
    let segments = vec![PLAIN, 2];
    f.op(Op::CallVariadic, &[join.into(), segments.into(), regs(&[zero, gate, wait]), regs(&[both])])
        .unwrap();
    f.op(Op::Call, &[barrier.into(), regs(&[device, any, both, signal, zero]), regs(&[])]).unwrap();
    f.op(Op::Return, &[regs(&[gate])]).unwrap();
    f
}

/// A module with `main` and `main$async`, and a `plain` function without a sibling.
fn module(attrs: &[(&str, &str)]) -> ModuleDef {
    let mut b = ModuleBuilder::new("test");
    let same = || {
        let mut f = FunctionBuilder::new("0r_r");
        f.op(Op::Return, &[regs(&[reference(0)])]).unwrap();
        f
    };
    let launch = behind_a_gate(&mut b);
    let ordinal = b.function(Some("main$async"), launch).unwrap();
    b.function(Some("main"), same()).unwrap();
    b.function(Some("plain"), same()).unwrap();
    let mut def = b.finish();
    let attr = |(key, value): &(&str, &str)| Attr { key: (*key).to_owned(), value: (*value).to_owned() };
    let all = [(attribute::CALL_MODEL, attribute::COARSE_FENCES)];
    def.functions[ordinal as usize].signature.attrs = all.iter().chain(attrs).map(attr).collect();
    def
}

const INDEPENDENT: (&str, &str) = (attribute::CALLS, attribute::INDEPENDENT);

struct Bench {
    device: Arc<dyn Device>,
    session: Session,
    main: Function,
}

impl Bench {
    fn new(attrs: &[(&str, &str)]) -> Self {
        let mut registry = DriverRegistry::empty();
        registry.register(Arc::new(halite_null::NullDriver));
        let device = halite_layers::open(&registry, "null", &Options::new()).unwrap();
        let bytes = write_module(&module(attrs), &WriteOptions::default()).unwrap();
        let session = Session::builder().devices(vec![device.clone()]).module_bytes(bytes).build().unwrap();
        let main = session.function("main").unwrap();
        Bench { device, session, main }
    }

    fn gate(&self) -> Fence {
        Fence::new(self.device.create_semaphore(0).unwrap(), 1)
    }

    fn open_gate(&self) -> Fence {
        let gate = self.gate();
        gate.signal().unwrap();
        gate
    }

    fn start(&self, gate: &Fence) -> PendingCall {
        self.main.start(&[value(gate)], &soon()).unwrap()
    }
}

fn value(gate: &Fence) -> Value {
    Value::Opaque(Ref::new(FenceObject(gate.clone())))
}

/// Limits that a hanging test meets.
fn soon() -> CallOptions {
    CallOptions { deadline: Deadline::after(Duration::from_secs(60)), cancel: None, after: None, held: false }
}

fn late() -> CallOptions {
    CallOptions {
        deadline: Deadline::after(Duration::from_millis(5)),
        cancel: None,
        after: None,
        held: false,
    }
}

#[test]
fn a_call_returns_before_its_work_is_done() {
    let bench = Bench::new(&[]);
    assert!(bench.main.info().can_overlap() && !bench.main.info().is_async);
    let gate = bench.gate();
    let call = bench.start(&gate);
    assert!(!call.is_done());
    // A wait that ends leaves the call as it is.
    assert_eq!(call.wait(&late()).unwrap_err().code(), Code::DeadlineExceeded);
    let cancel = CancelToken::new();
    cancel.cancel();
    let cancelled = CallOptions { cancel: Some(cancel), ..soon() };
    assert_eq!(call.wait(&cancelled).unwrap_err().code(), Code::Cancelled);
    gate.signal().unwrap();
    for _ in 0..2 {
        assert!(matches!(call.wait(&soon()).unwrap()[..], [Value::Opaque(_)]));
    }
    assert!(call.is_done());
}

#[test]
fn calls_that_may_share_state_wait_for_each_other() {
    let bench = Bench::new(&[]);
    let gate = bench.gate();
    let (first, second) = (bench.start(&gate), bench.start(&bench.open_gate()));
    assert!(!second.is_done());
    // A function that runs to its end at once waits for both, within its limits, and keeps nobody out after that.
    let plain = bench.session.function("plain").unwrap();
    assert!(!plain.info().can_overlap());
    let e = plain.call_with(&[Value::Null], &late()).unwrap_err();
    assert_eq!(e.code(), Code::DeadlineExceeded, "{e}");
    gate.signal().unwrap();
    second.wait(&soon()).unwrap();
    assert!(first.is_done());
    assert!(plain.start(&[Value::Null], &soon()).unwrap().is_done());
}

#[test]
fn calls_that_share_nothing_overtake_each_other() {
    let bench = Bench::new(&[INDEPENDENT]);
    let gate = bench.gate();
    let first = bench.start(&gate);
    bench.main.call_with(&[value(&bench.open_gate())], &soon()).unwrap();
    assert!(!first.is_done());
    gate.signal().unwrap();
    first.wait(&soon()).unwrap();
}

#[test]
fn a_failure_reaches_those_that_wait_and_nobody_after_them() {
    let bench = Bench::new(&[]);
    let gate = bench.gate();
    let (first, second) = (bench.start(&gate), bench.start(&bench.open_gate()));
    gate.fail(&Status::new(Code::DataLoss, "the gate broke"));
    for call in [first, second] {
        let e = call.wait(&soon()).unwrap_err();
        assert!(e.code() == Code::DataLoss && e.to_string().contains("the gate broke"), "{e}");
        assert!(call.is_done());
    }
    bench.main.call_with(&[value(&bench.open_gate())], &soon()).unwrap();
}

#[test]
fn calls_are_dropped_at_any_time_and_outlive_their_session() {
    let bench = Bench::new(&[]);
    let (gate, other) = (bench.gate(), bench.gate());
    drop(bench.start(&gate));
    let call = bench.start(&other);
    let Bench { device, session, main } = bench;
    drop((session, main));
    gate.signal().unwrap();
    other.signal().unwrap();
    call.wait(&soon()).unwrap();
    drop((call, device));
}

#[test]
fn a_thread_that_waits_for_the_device_keeps_no_other_out() {
    const THREADS: usize = 8;
    let bench = Bench::new(&[INDEPENDENT]);
    let gates: Vec<_> = (0..THREADS).map(|_| bench.gate()).collect();
    std::thread::scope(|scope| {
        let calls: Vec<_> = gates
            .iter()
            .map(|gate| scope.spawn(|| bench.main.call_with(&[value(gate)], &soon()).map(|r| r.len())))
            .collect();
        // All others hold their calls open meanwhile; the last gate opens first.
        for (gate, call) in gates.iter().zip(calls).rev() {
            gate.signal().unwrap();
            assert_eq!(call.join().unwrap().unwrap(), 1);
        }
    });
}
