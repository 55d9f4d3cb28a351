//! Tensors in memory that is shared with others: a second device stands for them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use halite::{
    Bytes, Cache, Device, ElementType, ErrorKind, ExternalKind, ExternalMemory, ExternalSupport, Session,
    SharedMemory, Tensor,
};

use crate::common::{device, onnx};

const WIDTH: usize = 200;

/// `y = x @ w`, where the weight doubles.
fn session(device: &Device) -> Session {
    let width = WIDTH.to_string();
    let mut weight = vec![0.0; WIDTH * WIDTH];
    (0..WIDTH).for_each(|i| weight[i * WIDTH + i] = 2.0);
    let model = onnx::model(&[
        onnx::node("MatMul", &["x", "w"], &["y"]),
        onnx::constant("w", &[WIDTH as u64, WIDTH as u64], &weight),
        onnx::value(11, "x", &["3", &width]),
        onnx::value(12, "y", &["3", &width]),
    ]);
    Session::builder().cache(Cache::off()).device(device).model(model).build().unwrap()
}

fn support(device: &Device, kind: ExternalKind) -> Option<ExternalSupport> {
    let info = device.info();
    let found = info.external_memory().iter().find(|support| support.kind == kind).copied();
    if found.is_none() {
        println!("SKIPPED: the device shares no memory of the kind {kind}");
    }
    found
}

fn values(factor: f32) -> Vec<f32> {
    (0..3 * WIDTH).map(|i| factor * (i % 17) as f32).collect()
}

#[test]
fn a_model_reads_and_writes_memory_of_others() {
    let (Some(own), Some(other)) = (device(), device()) else { return };
    let kind = ExternalKind::OpaqueFd;
    let Some(_) = support(&own, kind).filter(|support| support.import && support.export) else { return };
    let session = session(&own);
    let size = 3 * WIDTH * 4;
    let given = SharedMemory::create(&other, kind, 8192).unwrap();
    let taken = SharedMemory::import(&own, given.export(kind).unwrap()).unwrap();
    let input = taken.tensor(ElementType::F32, [3, WIDTH], 256).unwrap();
    for factor in [1.0, -3.5] {
        taken.release().unwrap();
        given.acquire().unwrap();
        given.write(256, &Tensor::from_vec(values(factor), [3, WIDTH]).unwrap()).unwrap();
        given.release().unwrap();
        let told = session.run(input.clone()).err().unwrap();
        assert!(told.to_string().contains("acquire it first"), "{told}");
        taken.acquire().unwrap();
        let out = session.run(input.clone()).unwrap();
        taken.write(4096, &out["y"]).unwrap();
        taken.release().unwrap();
        given.acquire().unwrap();
        let result = given.tensor(ElementType::F32, [3, WIDTH], 4096).unwrap();
        assert_eq!(result.to_vec::<f32>().unwrap(), values(2.0 * factor));
        given.release().unwrap();
    }
    assert_eq!(own.transfers().uploads, 0, "nothing went through the host");
    let wrong = [(8192 - size, 1), (1 << 20, 256), (0, 1)];
    for (offset, add) in wrong {
        let offset = if add == 1 { offset + 1 } else { offset };
        let told = taken.tensor(ElementType::F32, [3, WIDTH], offset).unwrap_err();
        assert_eq!(told.kind(), ErrorKind::InvalidInput, "{told}");
    }
    assert!(taken.tensor(ElementType::F32, [usize::MAX / 8], 0).is_err());
    assert!(taken.write(2, &input).is_err() && taken.write(8192 - size + 4, &input).is_err());
    drop((given, taken, other));
    drop(session.run(input).err());
}

#[test]
fn a_model_reads_memory_of_the_process() {
    let Some(device) = device() else { return };
    let Some(there) = support(&device, ExternalKind::Host).filter(|support| support.import) else { return };
    let alignment = there.alignment as usize;
    let length = (3 * WIDTH * 4).next_multiple_of(alignment);
    let mut all = vec![0u8; length + alignment];
    let start = all.as_ptr().align_offset(alignment);
    let bytes: Vec<u8> = values(1.0).into_iter().flat_map(f32::to_ne_bytes).collect();
    all[start..start + bytes.len()].copy_from_slice(&bytes);
    let all = Bytes::from(all).slice(start..start + length);
    let memory = SharedMemory::import(&device, ExternalMemory::host(all)).unwrap();
    assert_eq!(memory.size(), length);
    let input = memory.tensor(ElementType::F32, [3, WIDTH], 0).unwrap();
    let out = session(&device).run(input.clone()).unwrap();
    assert_eq!(out["y"].to_vec::<f32>().unwrap(), values(2.0));
    assert_eq!(input.to_vec::<f32>().unwrap(), values(1.0));
    let told = memory.write(0, &input).unwrap_err();
    assert_eq!(told.kind(), ErrorKind::PermissionDenied, "{told}");
}

#[test]
fn processors_refuse_by_name() {
    let device = Device::open("local-sync").unwrap();
    assert!(device.info().external_memory().is_empty() && device.info().uuids().is_none());
    let told = SharedMemory::import(&device, ExternalMemory::host(Bytes::from_static(&[0; 64]))).unwrap_err();
    assert!(told.kind() == ErrorKind::Unsupported && told.to_string().contains("host"), "{told}");
    assert!(SharedMemory::create(&device, ExternalKind::DmaBuf, 64).is_err());
}
