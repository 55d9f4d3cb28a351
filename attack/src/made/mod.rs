//! The kinds of hostile files, each made of a seed: the same seed makes the same file.

mod archives;
mod damaged;
mod flat;
mod gguf;
mod masks;
mod models;
mod nested;
mod operators;
mod pictures;
mod proto;
mod spirv;
mod templates;
mod tokenizers;

use std::{fs, path::Path};

pub use models::layers;

use crate::noise::Noise;

/// How the files of a kind are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// Compiled, and run where a device is given.
    Model,
    /// Loaded, and run on a device.
    Module,
    /// Read as an archive of parameters.
    Archive,
    /// Read as the array, or arrays, of an input.
    Array,
    /// Read as a picture.
    Picture,
    /// Read as a tokenizer, which then takes texts apart.
    Tokenizer,
    /// Read as a chat template, which then makes a prompt.
    Template,
}

/// A kind of file.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its name in reports.
    pub name: &'static str,
    /// The extension of files, by which they are known.
    pub extension: &'static str,
    /// Who reads it.
    pub reader: Reader,
    make: Make,
}

#[derive(Clone, Copy, Debug)]
enum Make {
    New(fn(&mut Noise) -> Vec<u8>),
    /// From a sound file with the kind's extension.
    Of(fn(&mut Noise, &[u8]) -> Vec<u8>),
}

const fn new(
    name: &'static str,
    extension: &'static str,
    reader: Reader,
    make: fn(&mut Noise) -> Vec<u8>,
) -> Kind {
    Kind { name, extension, reader, make: Make::New(make) }
}

const fn of(
    name: &'static str,
    extension: &'static str,
    reader: Reader,
    make: fn(&mut Noise, &[u8]) -> Vec<u8>,
) -> Kind {
    Kind { name, extension, reader, make: Make::Of(make) }
}

/// All kinds.
pub const KINDS: &[Kind] = &[
    new("onnx-loops", "onnx", Reader::Model, models::loops),
    new("onnx-branches", "onnx", Reader::Model, models::branches),
    new("onnx-functions", "onnx", Reader::Model, models::functions),
    new("onnx-names", "onnx", Reader::Model, models::names),
    new("onnx-sequences", "onnx", Reader::Model, models::sequences),
    new("onnx-splits", "onnx", Reader::Model, models::splits),
    new("onnx-shapes", "onnx", Reader::Model, models::shapes),
    new("onnx-steps", "onnx", Reader::Model, models::steps),
    new("onnx-views", "onnx", Reader::Model, models::views),
    new("onnx-ports", "onnx", Reader::Model, models::ports),
    new("onnx-regions", "onnx", Reader::Model, nested::regions),
    new("onnx-deep", "onnx", Reader::Model, nested::deep),
    new("onnx-masks", "onnx", Reader::Model, masks::attention),
    new("onnx-far", "onnx", Reader::Model, operators::far),
    of("onnx-bytes", "onnx", Reader::Model, damaged::bytes),
    of("pte-bytes", "pte", Reader::Model, damaged::bytes),
    of("pte-tables", "pte", Reader::Model, damaged::tables),
    of("vgf-bytes", "vgf", Reader::Model, damaged::bytes),
    of("vgf-words", "vgf", Reader::Model, damaged::words),
    of("vgf-grown", "vgf", Reader::Model, spirv::grown),
    of("vmfb-grown", "vmfb", Reader::Module, spirv::grown),
    of("vmfb-operands", "vmfb", Reader::Module, spirv::operands),
    of("tosa-bytes", "tosa", Reader::Model, damaged::bytes),
    of("tosa-tables", "tosa", Reader::Model, damaged::tables),
    of("vgf-tables", "vgf", Reader::Model, damaged::tables),
    of("vmfb-bytes", "vmfb", Reader::Module, damaged::bytes),
    of("vmfb-tables", "vmfb", Reader::Module, damaged::tables),
    of("irpa-bytes", "irpa", Reader::Archive, damaged::bytes),
    new("irpa-entries", "irpa", Reader::Archive, archives::irpa),
    of("gguf-bytes", "gguf", Reader::Archive, damaged::bytes),
    new("gguf-headers", "gguf", Reader::Archive, gguf::headers),
    of("gguf-model-bytes", "gguf", Reader::Model, damaged::bytes),
    new("gguf-decoders", "gguf", Reader::Model, gguf::decoders),
    of("gguf-far", "gguf", Reader::Model, gguf::far),
    of("safetensors-bytes", "safetensors", Reader::Archive, damaged::bytes),
    new("safetensors-headers", "safetensors", Reader::Archive, archives::safetensors),
    of("npy-bytes", "npy", Reader::Array, damaged::bytes),
    new("npy-headers", "npy", Reader::Array, archives::npy),
    new("npz-zeros", "npz", Reader::Array, archives::npz),
    new("npz-members", "npz", Reader::Array, archives::members),
    new("png-claims", "png", Reader::Picture, pictures::png),
    new("png-lines", "png", Reader::Picture, pictures::lines),
    new("jpg-claims", "jpg", Reader::Picture, pictures::jpeg),
    of("tokenizer-bytes", "json", Reader::Tokenizer, damaged::bytes),
    new("tokenizer-patterns", "json", Reader::Tokenizer, tokenizers::patterns),
    new("tokenizer-steps", "json", Reader::Tokenizer, tokenizers::json),
    of("sentencepiece-bytes", "model", Reader::Tokenizer, damaged::bytes),
    new("sentencepiece-pieces", "model", Reader::Tokenizer, tokenizers::pieces),
    of("tiktoken-bytes", "tiktoken", Reader::Tokenizer, damaged::bytes),
    new("tiktoken-lists", "tiktoken", Reader::Tokenizer, tokenizers::list),
    of("template-bytes", "jinja", Reader::Template, damaged::bytes),
    new("template-programs", "jinja", Reader::Template, templates::program),
];

/// Folders with sound files, relative to the repository; what is not there is left out.
const PLACES: &[&str] = &[
    "attack/seeds",
    // What `cargo xtask attack` unpacks.
    "target/attack/seeds",
    "demo/digits",
    "compiler/tests/data",
    "conformance/pte",
    "conformance/vgf",
    "conformance/models",
    "drivers/local/tests/data",
    "formats/tests/data",
    "text/tests/data",
    "../shared/corpus/vgf",
    "../shared/corpus/vmfb/small",
];
/// Larger files take longer than they teach.
const MOST_BYTES: u64 = 1 << 18;

impl Kind {
    /// The kind of this name.
    pub fn named(name: &str) -> Option<&'static Kind> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// The file of a seed; `None` where there is no sound file to damage.
    pub fn make(&self, seed: u64, sound: &Sound) -> Option<Vec<u8>> {
        let mut noise = Noise::new(seed);
        match self.make {
            Make::New(make) => Some(make(&mut noise)),
            Make::Of(make) => {
                let files: Vec<&Vec<u8>> = sound.of(self.extension).collect();
                (!files.is_empty()).then(|| {
                    let file = *noise.pick(&files);
                    make(&mut noise, file)
                })
            }
        }
    }

    /// Whether there are files of the kind here.
    pub fn is_there(&self, sound: &Sound) -> bool {
        matches!(self.make, Make::New(_)) || sound.of(self.extension).next().is_some()
    }
}

/// Sound files, by their extensions.
#[derive(Debug, Default)]
pub struct Sound(Vec<(String, Vec<u8>)>);

impl Sound {
    /// Those of a checkout.
    pub fn of_repository(root: &Path) -> Sound {
        let mut sound = Sound::default();
        for place in PLACES {
            sound.add(&root.join(place));
        }
        sound
    }

    fn add(&mut self, folder: &Path) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        for path in paths {
            let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
            if path.is_dir() {
                self.add(&path);
            } else if path.to_string_lossy().ends_with(".cases.json") {
                // What the libraries of tokenizers make of texts.
            } else if KINDS.iter().any(|kind| kind.extension == extension)
                && fs::metadata(&path).is_ok_and(|metadata| metadata.len() <= MOST_BYTES)
                && let Ok(bytes) = fs::read(&path)
            {
                self.0.push((extension.to_owned(), bytes));
            }
        }
    }

    fn of<'a>(&'a self, extension: &'a str) -> impl Iterator<Item = &'a Vec<u8>> {
        self.0.iter().filter(move |(own, _)| own == extension).map(|(_, bytes)| bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_always_the_same_file() {
        let sound = Sound::of_repository(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")));
        for kind in KINDS {
            let Some(one) = kind.make(7, &sound) else {
                eprintln!("SKIPPED: no sound file for {}", kind.name);
                continue;
            };
            assert_eq!(kind.make(7, &sound), Some(one), "{}", kind.name);
            assert_eq!(Kind::named(kind.name).map(|found| found.name), Some(kind.name));
        }
    }
}
