//! Reads a picture of a digit and prints which one it is: `cargo run -p halite --example digits`.

use std::{error::Error, fs::File, path::Path};

use halite::{Session, Tensor, host::npy};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../demo/digits");

    // Reads the model, opens the best Vulkan device, compiles, and loads the weights.
    let session = Session::builder().device("vulkan").model(demo.join("digits.onnx")).build()?;

    let picture = npy::read(&mut File::open(demo.join("sample_7.npy"))?)?.ok_or("the file is empty")?;
    let out = session.run([("picture", Tensor::from(picture))])?;
    let probabilities: Vec<f32> = out["probabilities"].to_vec()?;

    let (digit, probability) = probabilities
        .iter()
        .enumerate()
        .max_by(|a, b| a.1.total_cmp(b.1))
        .ok_or("no probabilities came out")?;
    println!("This is a {digit} ({:.1} %).", probability * 100.0);

    // The file shows a seven.
    if digit == 7 { Ok(()) } else { Err("a seven was taken for another digit".into()) }
}
