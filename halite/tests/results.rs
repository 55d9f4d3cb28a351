//! Results that are sent to the host before they are read, from memory that the host cannot map, as that of discrete GPUs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use crate::common::{array, builder, device, digits, onnx};
use halite::{Device, PinnedTensor, Session, Tensor};

/// A device whose memory is copied through staging, on any driver.
fn staged() -> Option<Device> {
    match Device::open("vulkan?memory=staged") {
        Ok(device) => Some(device),
        Err(error) => {
            println!("SKIPPED: no Vulkan device: {error}");
            None
        }
    }
}

fn call(session: &Session, value: f32) -> Tensor {
    let input = Tensor::from_slice(&[value; 64], 64).unwrap();
    session.run([("x", &input)]).unwrap()["y"].clone()
}

#[test]
fn results_are_the_same_whether_they_were_sent_or_not() {
    let Some(device) = staged() else { return };
    let session = builder(&device).model(onnx::adds(1.0)).build().unwrap();
    for round in 0..12u8 {
        let value = f32::from(round);
        let y = call(&session, value);
        // Read in some calls, twice in others, and in some not at all.
        for _ in 0..round % 3 {
            assert_eq!(y.to_vec::<f32>().unwrap(), [value + 1.0; 64], "round {round}");
            let mut bytes = [0; 256];
            y.read_into(&mut bytes).unwrap();
            assert!(bytes.chunks_exact(4).all(|four| four == (value + 1.0).to_le_bytes()));
        }
        // It is still on the device for the next call.
        let again = session.run([("x", &y)]).unwrap()["y"].to_vec::<f32>().unwrap();
        assert_eq!(again, [value + 2.0; 64]);
    }
}

#[test]
fn bytes_outlive_what_they_came_from() {
    let Some(device) = staged() else { return };
    let session = builder(&device).model(onnx::adds(1.0)).build().unwrap();
    let kept: Vec<_> = (0..20u8).map(|round| call(&session, f32::from(round)).to_bytes().unwrap()).collect();
    drop((session, device));
    for (round, bytes) in kept.iter().enumerate() {
        let wanted = (round as f32 + 1.0).to_le_bytes();
        assert!(bytes.chunks_exact(4).all(|four| four == wanted), "round {round}");
    }
}

#[test]
fn what_nobody_reads_is_not_counted() {
    let Some(device) = staged() else { return };
    let session = builder(&device).model(onnx::adds(1.0)).build().unwrap();
    call(&session, 1.0).to_vec::<f32>().unwrap();
    let before = device.transfers().downloads;
    let unread = call(&session, 2.0);
    assert_eq!(device.transfers().downloads, before);
    unread.to_vec::<f32>().unwrap();
    assert_eq!(device.transfers().downloads, before + 1);
}

#[test]
fn pinned_inputs_are_fetched_before_they_change() {
    for device in [staged(), device()].into_iter().flatten() {
        fetched_before_they_change(&device);
    }
}

fn fetched_before_they_change(device: &Device) {
    let session = builder(device).model(digits()).build().unwrap();
    let picture = array("sample_3.npy");
    let mut pinned = PinnedTensor::new(device, picture.element_type(), picture.shape()).unwrap();
    assert!(pinned.is_pinned());
    let wanted = session.run([("picture", &picture)]).unwrap()["probabilities"].to_vec::<f32>().unwrap();
    let (bytes, mut sent) = (picture.to_bytes().unwrap(), Vec::new());
    for round in 0..8 {
        let target = pinned.as_mut_bytes().unwrap();
        target.copy_from_slice(&bytes);
        if round % 2 == 1 {
            target.fill(0);
        }
        // What was sent before stays as it was.
        sent.push(pinned.send().unwrap());
    }
    let zeros = session.run([("picture", &sent[1])]).unwrap()["probabilities"].to_vec::<f32>().unwrap();
    for (round, input) in sent.iter().enumerate() {
        let out = session.run([("picture", input)]).unwrap()["probabilities"].to_vec::<f32>().unwrap();
        assert_eq!(out, if round % 2 == 1 { &zeros[..] } else { &wanted[..] }, "{round}");
    }
    assert_ne!(zeros, wanted);
    let error = pinned.as_mut_slice::<i64>().unwrap_err();
    assert!(error.message().contains("has no elements of type"), "{error}");
    pinned.as_mut_slice::<f32>().unwrap()[0] = 1.0;
    let empty = PinnedTensor::new(device, picture.element_type(), [0, 4]).unwrap().send().unwrap();
    assert!(empty.is_empty());
}
