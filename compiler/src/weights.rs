//! Weights on their way from a model's file to a module: they stay where they are.

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex},
};

use bytes::Bytes;

use crate::{
    CompileOptions, Control, Model, ModelFormat, ParameterArchive, ParameterStorage, Precision, compile,
    frontends::onnx::encode::{FLOAT, Message, external, floats, graph, model, node, port, tensor},
    signature::{Bindings, Dim},
};

/// The constants of a model, as a module of it keeps them outside.
fn archive(model: &Model) -> ParameterArchive {
    let control = Control::new();
    let function = &model.functions()[0];
    let size = |dim: &Dim| if let Dim::Known(size) | Dim::UpTo(size) = dim { *size } else { 2 };
    let shapes = model.inputs(function).unwrap().into_iter().map(|input| {
        let dims = input.dims.unwrap_or_default();
        (input.name, dims.iter().map(size).collect())
    });
    let bindings = Bindings { shapes: shapes.collect(), ..Bindings::default() };
    let program = model.program(&[bindings], Precision::Model, &control).unwrap();
    let parameters = ParameterStorage::External { scope: String::new() };
    let options = CompileOptions { parameters, ..CompileOptions::default() };
    compile(&program, &options, &control).unwrap().parameters.unwrap_or_default()
}

/// Whether bytes are a part of others, in the same memory.
fn is_inside(part: &Bytes, whole: &[Bytes]) -> bool {
    let own = part.as_ptr_range();
    whole.iter().map(|bytes| bytes.as_ptr_range()).any(|all| all.start <= own.start && own.end <= all.end)
}

/// A convolution, a product and a sum with these weights.
fn network(weights: &[Message; 3]) -> Bytes {
    let nodes = [
        node("Conv", &["x", "filters"], &["c"], &[]),
        node("Reshape", &["c", "shape"], &["r"], &[]),
        node("MatMul", &["r", "w"], &["p"], &[]),
        node("Add", &["p", "b"], &["y"], &[]),
    ];
    let shape = [1i64, 256].iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>();
    let mut initializers = weights.to_vec();
    initializers.push(tensor("shape", 7, &[2], &shape));
    let (x, y) = (port("x", FLOAT, &[1, 4, 6, 6]), port("y", FLOAT, &[1, 100]));
    model(&graph(&nodes, &initializers, &[x], &[y]), &[])
}

fn filters() -> Vec<u8> {
    floats((0..576).map(|i| i as f32 * 0.01))
}

fn matrix() -> Vec<u8> {
    floats((0..25_600).map(|i| i as f32 * 0.001))
}

#[test]
fn weights_of_an_onnx_file_are_slices_of_it() {
    // Packed `float_data` are little-endian floats too.
    let typed = Message::default().varint(1, 100).varint(2, FLOAT).bytes(8, "b");
    let typed = typed.bytes(4, floats([0.5; 100]));
    let bytes = network(&[
        tensor("filters", FLOAT, &[16, 4, 3, 3], &filters()),
        tensor("w", FLOAT, &[256, 100], &matrix()),
        typed,
    ]);
    let read =
        Model::from_bytes(bytes.clone(), ModelFormat::named("onnx").unwrap(), &Control::new()).unwrap();
    let archive = archive(&read);
    let names: Vec<&str> = archive.entries.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    for (name, entry) in &archive.entries {
        assert!(is_inside(entry, std::slice::from_ref(&bytes)), "{name} was copied");
    }
}

#[test]
fn weights_beside_an_onnx_file_are_slices_of_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let (filters, matrix) = (filters(), matrix());
    let bias = floats([0.5; 100]);
    let at = [0, filters.len(), filters.len() + matrix.len()].map(|at| at as u64);
    fs::write(folder.path().join("weights.bin"), [filters, matrix, bias].concat()).unwrap();
    let bytes = network(&[
        external("filters", FLOAT, &[16, 4, 3, 3], "weights.bin", at[0]),
        external("w", FLOAT, &[256, 100], "weights.bin", at[1]),
        external("b", FLOAT, &[100], "weights.bin", at[2]),
    ]);
    let file = folder.path().join("model.onnx");
    fs::write(&file, bytes).unwrap();
    let files = Arc::new(Mutex::new(Vec::new()));
    let to = files.clone();
    let read = move |path: &Path, _| {
        let bytes = Bytes::from(fs::read(path)?);
        to.lock().unwrap().push(bytes.clone());
        Ok(bytes)
    };
    let read = Model::open_with(&file, ModelFormat::named("onnx").unwrap(), Arc::new(read), &Control::new())
        .unwrap();
    assert_eq!(read.info().name, "model.onnx");
    let archive = archive(&read);
    assert_eq!((archive.entries.len(), files.lock().unwrap().len()), (3, 2));
    for (name, entry) in &archive.entries {
        assert!(is_inside(entry, &files.lock().unwrap()[1..]), "{name} was copied");
    }
}

#[test]
fn weights_of_an_executorch_program_are_slices_of_it() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../conformance/pte"));
    let mut inside = 0;
    for file in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if file.extension().is_none_or(|extension| extension != "pte") {
            continue;
        }
        let bytes = Bytes::from(fs::read(&file).unwrap());
        let read =
            Model::from_bytes(bytes.clone(), ModelFormat::named("pte").unwrap(), &Control::new()).unwrap();
        // What the compiler computes has no name of the model, and is called `constant.0` and so on.
        for (name, entry) in archive(&read).entries.iter().filter(|(name, _)| name.starts_with("constant ")) {
            assert!(
                is_inside(entry, std::slice::from_ref(&bytes)),
                "{name} of {} was copied",
                file.display()
            );
            inside += 1;
        }
    }
    assert!(inside >= 20, "{inside}");
}
