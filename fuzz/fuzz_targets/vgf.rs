//! VGF files: an error, or data whose indices hold; the graphs in their SPIR-V; then all the way to modules.
#![no_main]

use bytes::Bytes;
use halite_formats::vgf::{Code, Vgf};
use halite_spirv::{graph, words_from_bytes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let file = Bytes::copy_from_slice(data);
    let Ok(vgf) = Vgf::parse(&file) else { return };
    let resources = vgf.resources.len();
    for segment in &vgf.segments {
        assert!(segment.module < vgf.modules.len());
        let slots = segment.sets.iter().flat_map(|set| &set.bindings);
        assert!(slots.chain(&segment.inputs).chain(&segment.outputs).all(|slot| slot.resource < resources));
        assert!(segment.constants.iter().all(|constant| constant.constant < vgf.constants.len()));
    }
    for module in &vgf.modules {
        let Code::SpirV(bytes) = &module.code else { continue };
        let Ok(read) = words_from_bytes(bytes).and_then(|words| graph::read(&words)) else { continue };
        let count = read.values.len();
        for graph in &read.graphs {
            let operations = graph.operations.iter().flat_map(|found| found.operands.iter().chain(&found.results));
            assert!(operations.chain(&graph.inputs).chain(&graph.outputs).all(|value| *value < count));
        }
    }
    halite_fuzz::compile(file, "vgf");
});
