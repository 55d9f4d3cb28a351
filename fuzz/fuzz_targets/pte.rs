//! ExecuTorch programs, files of data beside them, and the graphs of their delegates: an error, or data whose indices hold;
//! then their methods, all the way to modules.
#![no_main]

use bytes::Bytes;
use halite_formats::pte::{DataFile, Program, Value, VulkanGraph, XnnGraph};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let file = Bytes::copy_from_slice(data);
    // An input may be a delegate's data alone.
    let _ = VulkanGraph::parse(&file).map(|graph| check(&graph));
    let _ = XnnGraph::parse(&file).map(|graph| check_xnnpack(&graph));
    // Or a file of data by name.
    if let Ok(data) = DataFile::parse(&file) {
        assert!(data.named.values().all(|bytes| bytes.len() <= file.len()));
    }
    let Ok(mut program) = Program::parse(&file) else { return };
    // What tensors look up in other files is there, and mostly of another size.
    let names: Vec<String> = program.external_tensors().map(str::to_owned).collect();
    program.external.extend(names.into_iter().map(|name| (name, file.clone())));
    for plan in &program.plans {
        let count = plan.values.len();
        assert!(plan.inputs.iter().chain(&plan.outputs).all(|i| *i < count));
        for value in &plan.values {
            if let Value::Tensor(tensor) = value {
                if let Ok(Some(bytes)) = program.constant(tensor) {
                    assert_eq!(Some(bytes.len() as u64), tensor.bytes());
                }
                let _ = program.initial(tensor);
            }
        }
        for delegate in &plan.delegates {
            let _ = VulkanGraph::parse(&delegate.data).map(|graph| check(&graph));
            let _ = XnnGraph::parse(&delegate.data).map(|graph| check_xnnpack(&graph));
        }
    }
    halite_fuzz::compile(file, "pte");
});

fn check(graph: &VulkanGraph) {
    let count = graph.values.len();
    assert!(graph.inputs.iter().chain(&graph.outputs).all(|i| *i < count));
    assert!(graph.calls.iter().flat_map(|call| &call.args).all(|i| *i < count));
}

fn check_xnnpack(graph: &XnnGraph) {
    let (values, constants) = (graph.values.len(), graph.constants.len());
    assert!(graph.inputs.iter().chain(&graph.outputs).all(|port| port.value < values));
    assert!(graph.values.iter().all(|value| value.constant.is_none_or(|constant| constant < constants)));
    for node in &graph.nodes {
        assert!(node.inputs.iter().flatten().chain(&node.outputs).all(|value| *value < values));
    }
}
