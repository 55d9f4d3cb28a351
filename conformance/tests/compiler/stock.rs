//! Running modules with the original's `iree-run-module`.

use std::{path::PathBuf, process::Command};

use halite_compiler::graph::Graph;
use halite_ops::Values;

/// The original's tool.
pub struct Stock(PathBuf);

impl Stock {
    /// Looks for it in `IREE_RUN_MODULE`, then on the path; says so where it is not.
    pub fn find() -> Option<Stock> {
        let named = std::env::var_os("IREE_RUN_MODULE").map(PathBuf::from);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = named.or_else(|| {
            std::env::split_paths(&path).map(|folder| folder.join("iree-run-module")).find(|p| p.is_file())
        });
        if found.is_none() {
            eprintln!("SKIPPED: there is no iree-run-module on the path or in IREE_RUN_MODULE");
        }
        found.map(Stock)
    }

    /// Calls `main`.
    pub fn run(&self, module: &[u8], graph: &Graph, inputs: &[Values]) -> Vec<Values> {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        std::fs::write(file("module.vmfb"), module).unwrap();
        let mut command = Command::new(&self.0);
        command.args(["--device=vulkan", "--function=main"]);
        command.arg(format!("--module={}", file("module.vmfb").display()));
        for (index, (port, values)) in graph.inputs.iter().zip(inputs).enumerate() {
            let tensor = graph.tensor(port.tensor);
            let path = file(&format!("input{index}.bin"));
            std::fs::write(&path, values.to_bytes(tensor.element.storage())).unwrap();
            command.arg(format!("--input={}=@{}", shape(graph, port), path.display()));
        }
        let outputs = graph.outputs.iter().enumerate();
        let outputs: Vec<_> = outputs.map(|(index, _)| file(&format!("output{index}.bin"))).collect();
        command.args(outputs.iter().map(|path| format!("--output=@{}", path.display())));
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}\n{text}");
        let read = |(path, port): (&PathBuf, &halite_compiler::graph::Port)| {
            Values::from_bytes(graph.tensor(port.tensor).element.storage(), &std::fs::read(path).unwrap())
        };
        outputs.iter().zip(&graph.outputs).map(read).collect()
    }
}

/// A type as the tool takes it: `2x3xf32`.
fn shape(graph: &Graph, port: &halite_compiler::graph::Port) -> String {
    let tensor = graph.tensor(port.tensor);
    let mut words: Vec<_> = tensor.dims().iter().map(ToString::to_string).collect();
    words.push(match tensor.element.to_string().as_str() {
        "bool" => "i1".to_owned(),
        other => other.strip_prefix('u').map_or_else(|| other.to_owned(), |bits| format!("ui{bits}")),
    });
    words.join("x")
}
