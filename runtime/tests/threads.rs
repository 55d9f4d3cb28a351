//! One function of one session, called from eight threads with different inputs: each gets its own results.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use halite_abi::ElementType;
use halite_compiler::{CompileOptions, Control, Model, ModelFormat, Precision, compile, signature::Bindings};
use halite_hal::{Device, DriverRegistry, Options};
use halite_runtime::{BufferView, CallOptions, Deadline, Function, HostTensor, Session, Value};
use halite_vulkan as _;

const THREADS: usize = 8;
const CALLS: usize = 20;

fn devices() -> Vec<Arc<dyn Device>> {
    let registry = DriverRegistry::with_static_drivers();
    let found = registry.driver("vulkan").unwrap().enumerate(&Options::new()).unwrap_or_default();
    let usable = found.iter().filter(|info| info.unusable.is_none());
    let devices: Vec<_> =
        usable.map(|info| halite_layers::open(&registry, &info.uri(), &Options::new()).unwrap()).collect();
    if devices.is_empty() {
        eprintln!("SKIPPED: no usable Vulkan device");
    }
    devices
}

fn tensor(device: &Arc<dyn Device>, shape: &[u64], values: &[f32]) -> Value {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    Value::View(
        BufferView::from_host(device, &HostTensor::new(ElementType::F32, shape, bytes).unwrap()).unwrap(),
    )
}

fn floats(value: &Value) -> Vec<f32> {
    let tensor = value.as_view().unwrap().to_host().unwrap();
    tensor.data.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

fn limits() -> CallOptions {
    CallOptions {
        deadline: Deadline::after(Duration::from_secs(120)),
        cancel: None,
        after: None,
        held: false,
    }
}

/// Inputs of a call, all different.
type Inputs<'a> = dyn Fn(usize) -> Vec<f32> + Sync + 'a;

/// Every thread calls, and starts two calls at one time; each result must be that of its inputs.
fn hammer(
    device: &Arc<dyn Device>,
    function: &Function,
    shape: &[u64],
    inputs: &Inputs<'_>,
    wanted: &Inputs<'_>,
) {
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for call in 0..CALLS {
                    let [a, b] = [0, 1].map(|which| 2 * (thread * CALLS + call) + which);
                    let args = |n: usize| {
                        let count = function.info().input_kinds().len();
                        vec![tensor(device, shape, &inputs(n)); count]
                    };
                    let started = function.start(&args(a), &limits()).unwrap();
                    let called = function.call_with(&args(b), &limits()).unwrap();
                    assert_eq!(floats(&called[0]), wanted(b));
                    assert_eq!(floats(&started.wait(&limits()).unwrap()[0]), wanted(a));
                }
            });
        }
    });
}

/// `x -> 2x` where x is positive and `x` elsewhere, compiled here.
fn compiled() -> Bytes {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compiler/tests/data/functions.onnx");
    let model = Model::open(&path, ModelFormat::named("onnx").unwrap()).unwrap();
    let program = model.program(&[Bindings::default()], Precision::Model, &Control::default()).unwrap();
    compile(&program, &CompileOptions::default(), &Control::default()).unwrap().module.to_vec().into()
}

#[test]
fn eight_threads_call_a_compiled_model() {
    let module = compiled();
    for device in devices() {
        let session =
            Session::builder().devices(vec![device.clone()]).module_bytes(module.clone()).build().unwrap();
        let function = session.default_function().unwrap();
        assert!(function.info().can_overlap());
        let inputs = |n: usize| vec![n as f32 + 1.0, -(n as f32) - 0.5];
        let wanted = |n: usize| vec![2.0 * (n as f32 + 1.0), -(n as f32) - 0.5];
        hammer(&device, &function, &[2], &inputs, &wanted);
    }
}

#[test]
fn eight_threads_call_a_module_of_iree() {
    for name in ["async_external", "async_external_two_steps"] {
        let path = format!("../../shared/corpus/vmfb/small/{name}/module.vmfb");
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
        if !path.exists() {
            eprintln!("SKIPPED: no {}", path.display());
            continue;
        }
        for device in devices() {
            let session =
                Session::builder().devices(vec![device.clone()]).module_file(&path).build().unwrap();
            let Ok(function) = session.function("main") else { continue };
            assert!(function.info().can_overlap(), "{name}");
            // The second one looks at a sum on the host before it goes on.
            let step = |x: f32| if name == "async_external" { x * x } else { -(x * x) };
            let inputs = |n: usize| (0..4).map(|i| (n + i) as f32).collect::<Vec<_>>();
            let wanted = |n: usize| inputs(n).into_iter().map(step).collect::<Vec<_>>();
            hammer(&device, &function, &[4], &inputs, &wanted);
        }
    }
}
