//! Reads a module and writes it again: `rewrite IN OUT [--bare]`. For comparing what other tools make of both.

use bytes::Bytes;
use halite_formats::vmfb::{
    WriteOptions, read_module, read_vulkan_executable, write_module, write_vulkan_executable,
};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [input, output, rest @ ..] = &args[..] else {
        return Err("usage: rewrite IN OUT [--bare]".into());
    };
    let mut module = read_module(Bytes::from(std::fs::read(input)?))?;
    for data in module.rodata.iter_mut().filter(|d| d.starts_with(b"VKE1")) {
        *data = Bytes::from(write_vulkan_executable(&read_vulkan_executable(data.clone())?)?);
    }
    let polyglot_zip = !rest.iter().any(|a| a == "--bare");
    Ok(std::fs::write(output, write_module(&module, &WriteOptions { polyglot_zip })?)?)
}
