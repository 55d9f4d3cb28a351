//! The cases: a folder with a model and data sets of numbered files.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use halite_compiler::{
    CompileError,
    frontends::onnx::{Model, read_tensor},
    signature::{Arity, BoundValue, Signature},
};
use halite_formats::onnx::{Optional, Sequence, Tensor};

/// A test of the `onnx` package.
#[derive(Clone, Debug)]
pub struct Case {
    /// Name of its folder.
    pub name: String,
    folder: PathBuf,
}

/// The values of a data set, as the model's ports: a list of values is as many as it has tensors.
pub type Values = Vec<(String, BoundValue)>;

/// Where the node tests of the installed `onnx` package are.
///
/// # Errors
/// There is no Python with that package, or the package has no tests.
pub fn find_tests(python: &str) -> Result<PathBuf> {
    let script = "import os, onnx; print(os.path.dirname(onnx.__file__))";
    let output = Command::new(python).args(["-c", script]).output();
    let output = output.with_context(|| format!("cannot run {python}; give the tests with --tests"))?;
    if !output.status.success() {
        bail!("{python} has no package onnx; give the tests with --tests");
    }
    let package = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let tests = Path::new(&package).join("backend/test/data/node");
    if !tests.is_dir() {
        bail!("{} is not there; onnx up to 1.22 has the tests, give them with --tests", tests.display());
    }
    Ok(tests)
}

impl Case {
    /// The cases in a folder, by name.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn all(tests: &Path) -> Result<Vec<Case>> {
        let mut cases = Vec::new();
        for entry in fs::read_dir(tests).with_context(|| tests.display().to_string())? {
            let folder = entry?.path();
            if folder.join("model.onnx").is_file() {
                let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
                cases.push(Case { name: name.unwrap_or_default(), folder });
            }
        }
        cases.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(cases)
    }

    /// The model.
    ///
    /// # Errors
    /// It is not read.
    pub fn model(&self) -> Result<Model, CompileError> {
        Model::open(&self.folder.join("model.onnx"))
    }

    /// Folders of data: inputs and expected outputs.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn data_sets(&self) -> Result<Vec<PathBuf>> {
        let mut sets = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if path.is_dir() {
                sets.push(path);
            }
        }
        sets.sort();
        Ok(sets)
    }

    /// Values of a data set, `kind` being `input` or `output`, of which the model says what they are.
    ///
    /// # Errors
    /// A file is damaged, or its elements have a type that is not supported.
    pub fn values(&self, set: &Path, kind: &str, ports: &[Signature]) -> Result<Values, CompileError> {
        let mut values = Vec::new();
        for (index, port) in ports.iter().enumerate() {
            let path = set.join(format!("{kind}_{index}.pb"));
            let Ok(bytes) = fs::read(&path) else { continue };
            let damaged = |error: halite_formats::onnx::OnnxError| {
                CompileError::Request(format!("{}: {error}", path.display()))
            };
            let bytes = bytes::Bytes::from(bytes);
            match (port.arity, port.is_optional) {
                (Arity::Tensor, false) => {
                    let tensor = Tensor::parse(bytes).map_err(damaged)?;
                    values.push((port.name.clone(), read_tensor(&tensor)?));
                }
                (Arity::Sequence, false) => {
                    push_list(&port.name, &Sequence::parse(bytes).map_err(damaged)?, &mut values)?;
                }
                _ => match Optional::parse(bytes).map_err(damaged)? {
                    Optional::Tensor(tensor) => values.push((port.name.clone(), read_tensor(&tensor)?)),
                    Optional::Sequence(list) => push_list(&port.name, &list, &mut values)?,
                    _ => {}
                },
            }
        }
        Ok(values)
    }
}

fn push_list(name: &str, list: &Sequence, values: &mut Values) -> Result<(), CompileError> {
    for (index, tensor) in list.tensors.iter().enumerate() {
        values.push((format!("{name}[{index}]"), read_tensor(tensor)?));
    }
    Ok(())
}
