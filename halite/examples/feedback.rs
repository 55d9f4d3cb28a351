//! Feeds results into the next call without a copy: `cargo run -p halite --example feedback`.

use halite::{Session, Tensor};

/// `next = 0.5 * state + 0.5 * sample`, for any number of elements; `smooth.py` made it.
const MODEL: &[u8] = include_bytes!("smooth.onnx");

pub(crate) fn main() -> halite::Result<()> {
    // `n` is not given, so the first call compiles for its size; calls with the same size find that.
    let session = Session::builder().device("vulkan").model(MODEL).build()?;
    let device = session.device().expect("a model runs on a device");

    // Both inputs are copied to the device once.
    let sample = Tensor::from_slice(&[8.0f32; 1000], 1000)?.to_device(device)?;
    let mut state = Tensor::from_slice(&[0.0f32; 1000], 1000)?.to_device(device)?;
    let before = device.transfers();

    for _ in 0..10 {
        let out = session.run([("state", &state), ("sample", &sample)])?;
        // The result lies on the device, where the next call reads it.
        state = out["next"].clone();
    }
    let after = device.transfers();
    assert_eq!(after, before, "no tensor crossed between host and device");

    let smoothed: Vec<f32> = state.to_vec()?;
    println!("After 10 steps: {}", smoothed[0]);
    println!("Copied in 10 calls: {} bytes.", after.uploaded_bytes - before.uploaded_bytes);
    // 8 * (1 - 0.5^10), which is exact in binary.
    assert_eq!(smoothed, [7.992_187_5; 1000]);
    Ok(())
}
