//! `.tosa` files: an error, or graphs whose indices hold; then all the way to modules.
#![no_main]

use bytes::Bytes;
use halite_formats::tosa::Program;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let file = Bytes::copy_from_slice(data);
    let Ok(program) = Program::parse(&file) else { return };
    for graph in &program.graphs {
        let nodes = graph.nodes.iter().flat_map(|node| node.inputs.iter().chain(&node.outputs));
        assert!(nodes.chain(&graph.inputs).chain(&graph.outputs).all(|id| *id < graph.tensors.len()));
    }
    halite_fuzz::compile(file, "tosa");
});
