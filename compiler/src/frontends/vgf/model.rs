//! The front end for VGF files: what the model takes and gives, and the way to a graph.

use bytes::Bytes;
use halite_formats::vgf;

use super::{
    Result,
    resources::{input_name, output_name, pushed, signature},
    run,
};
use crate::{
    CompileError, Control, SourceLocation, Stage,
    build::Builder,
    frontends::{FrontEnd, Recognition, Source, SourceModel},
    graph::{Graph, TensorId},
    signature::{Bindings, Signature},
};

/// The front end for VGF files.
#[derive(Debug)]
pub struct Vgf;

/// The one function of a file.
const MAIN: &str = "main";

impl FrontEnd for Vgf {
    fn id(&self) -> &'static str {
        "vgf"
    }

    fn name(&self) -> &'static str {
        "VGF"
    }

    fn extensions(&self) -> &'static [&'static str] {
        &["vgf"]
    }

    fn recognizes(&self, start: &[u8]) -> Recognition {
        match vgf::is_vgf(start) {
            true => Recognition::Certain,
            false => Recognition::No,
        }
    }

    fn read(&self, source: Source, control: &Control) -> Result<Box<dyn SourceModel>> {
        control.check(Stage::Reading)?;
        Ok(Box::new(Model::parse(source.bytes)?))
    }
}

/// A VGF file.
#[derive(Debug)]
pub struct Model {
    file: vgf::Vgf,
    /// Bytes of the file.
    bytes: u64,
}

impl Model {
    /// Reads a file from its bytes, which may be a mapping: constants of graphs are slices of it.
    ///
    /// # Errors
    /// The bytes are no VGF file.
    pub fn parse(bytes: Bytes) -> Result<Model> {
        let file = vgf::Vgf::parse(&bytes)
            .map_err(|e| CompileError::invalid(&SourceLocation::default(), e.to_string()))?;
        Ok(Model { file, bytes: bytes.len() as u64 })
    }

    /// What the caller hands in: the inputs that the file still has, in its order. Inputs of the original model that nothing
    /// reads are gone from the file; the others keep their names. Behind them the push constants of segments that have some,
    /// as words.
    ///
    /// # Errors
    /// An input is no tensor that can be handed in.
    pub fn inputs(&self) -> Result<Vec<Signature>> {
        let slots = self.file.inputs.iter().enumerate();
        let slots = slots.map(|(i, slot)| signature(&self.file, slot, input_name(&self.file, i)));
        let segments = self.file.segments.iter().enumerate();
        slots.chain(segments.filter_map(|(i, segment)| pushed(segment, i).transpose())).collect()
    }

    /// What the caller gets, in the order of the original model.
    ///
    /// # Errors
    /// An output is no tensor.
    pub fn outputs(&self) -> Result<Vec<Signature>> {
        let slots = self.file.outputs.iter().enumerate();
        slots.map(|(i, slot)| signature(&self.file, slot, output_name(&self.file, i))).collect()
    }

    fn take_input(
        &self,
        builder: &mut Builder,
        signature: &Signature,
        dims: &[u64],
        bindings: &Bindings,
    ) -> Result<TensorId> {
        let element = signature.element.expect("the signature was made with a type");
        match bindings.values.get(&signature.name) {
            Some(value) if value.element != element => Err(CompileError::Request(format!(
                "a value of type {} is given for {signature}",
                value.element
            ))),
            Some(value) => builder.bound_input(&signature.name, element, dims, value.bytes.clone()),
            None => builder.input(&signature.name, element, dims),
        }
    }
}

fn known(function: &str) -> Result<()> {
    if function == MAIN {
        return Ok(());
    }
    let reason = format!("there is no function '{function}'; there are: {MAIN}");
    Err(CompileError::Request(reason))
}

impl SourceModel for Model {
    /// Files give themselves none.
    fn name(&self) -> &str {
        ""
    }

    fn functions(&self) -> Vec<String> {
        vec![MAIN.to_owned()]
    }

    fn inputs(&self, function: &str) -> Result<Vec<Signature>> {
        known(function)?;
        self.inputs()
    }

    fn outputs(&self, function: &str) -> Result<Vec<Signature>> {
        known(function)?;
        self.outputs()
    }

    fn graph(&self, function: &str, bindings: &Bindings, control: &Control) -> Result<Graph> {
        known(function)?;
        let (inputs, outputs) = (self.inputs()?, self.outputs()?);
        if outputs.is_empty() {
            return Err(CompileError::unsupported(
                &SourceLocation::default(),
                "the file's model gives nothing",
            ));
        }
        let mut builder = Builder::of_file(control, self.bytes);
        let shapes = bindings.resolve(&inputs)?;
        let given = inputs.iter().zip(&shapes);
        let given: Result<Vec<_>> =
            given.map(|(input, dims)| self.take_input(&mut builder, input, dims, bindings)).collect();
        let results = run::import(&mut builder, &self.file, &given?)?;
        for (signature, result) in outputs.iter().zip(results) {
            builder.output(&signature.name, result);
        }
        builder.finish()
    }
}
