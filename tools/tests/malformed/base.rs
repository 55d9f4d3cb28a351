//! The sound modules that are damaged: where they come from, how they are called, and where their parts are.

use std::{fs, ops::Range, path::Path};

use bytes::Bytes;
use halite_formats::vmfb::{read_module, read_vulkan_executable};

/// Modules of the shared corpus that take part: small, and different in what they use.
const CORPUS: &[&str] = &[
    "add_f32",
    "matmul_static",
    "matmul_dynamic",
    "softmax",
    "dynamic_slice_insert",
    "scalar_loop_fib",
    "large_constant",
    "multi_export",
    "no_indirect_cmdbuf",
    "buffer_ops",
    "indirect_cmdbuf",
    "async_external",
];
/// The same, of those that ask for more than every device has. Kernels that take device addresses are left out: no
/// driver checks where an address points to, so a changed constant may well crash one that runs in this process.
const DEMANDING: &[&str] = &["target_llvmpipe", "target_valhall4", "ew_f16_llvmpipe"];

/// A sound module and a call that works.
pub struct Base {
    pub name: String,
    pub file: Bytes,
    /// `--function` and `--input` flags.
    pub args: Vec<String>,
    pub parts: Parts,
    /// Whether a device may refuse it.
    pub demanding: bool,
}

/// Byte ranges of a module file.
#[derive(Default)]
pub struct Parts {
    /// Zip header and size prefix.
    pub container: Range<usize>,
    /// The FlatBuffer, bytecode included.
    pub flatbuffer: Range<usize>,
    pub bytecode: Range<usize>,
    /// Vulkan executables as a whole.
    pub executables: Vec<Range<usize>>,
    /// SPIR-V modules inside of them.
    pub shaders: Vec<Range<usize>>,
    /// Read-only data that is no executable.
    pub data: Vec<Range<usize>>,
}

impl Base {
    fn new(name: &str, file: Vec<u8>, args: Vec<String>) -> Self {
        let file = Bytes::from(file);
        let parts = Parts::of(&file);
        let demanding = DEMANDING.contains(&name);
        Base { name: name.to_owned(), file, args, parts, demanding }
    }
}

impl Parts {
    fn of(file: &Bytes) -> Self {
        let module = read_module(file.clone()).expect("a base module is sound");
        let at = |part: &Bytes| {
            let start = part.as_ptr() as usize - file.as_ptr() as usize;
            start..start + part.len()
        };
        let container = 0..container_length(file);
        let size = u32::from_le_bytes(file[container.end - 4..container.end].try_into().expect("four bytes"));
        let flatbuffer = container.end..container.end + size as usize;
        let mut parts = Parts { container, flatbuffer, bytecode: at(&module.bytecode), ..Parts::default() };
        for segment in module.rodata.iter().filter(|s| !s.is_empty()) {
            match read_vulkan_executable(segment.clone()) {
                Ok(executable) => {
                    parts.executables.push(at(segment));
                    parts.shaders.extend(executable.shader_modules.iter().map(at));
                }
                Err(_) => parts.data.push(at(segment)),
            }
        }
        parts
    }
}

fn container_length(file: &[u8]) -> usize {
    let field = |at: usize| usize::from(u16::from_le_bytes([file[at], file[at + 1]]));
    let zip = if file.starts_with(b"PK\x03\x04") { 30 + field(26) + field(28) } else { 0 };
    zip + 4
}

/// All modules that are damaged: the demo network, and those of the shared corpus when it is there.
pub fn all() -> Vec<Base> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let demo = root.join("demo/digits");
    let input = format!("--input=@{}", demo.join("sample_7.npy").display());
    let mut bases = vec![Base::new(
        "digits",
        fs::read(demo.join("digits.vmfb")).expect("the demo is in the repository"),
        vec![input],
    )];
    let corpus = root.join("../shared/corpus/vmfb");
    match fs::read_to_string(corpus.join("small/manifest.jsonl")) {
        Ok(manifest) => bases.extend(manifest.lines().filter_map(|line| from_manifest(&corpus, line))),
        Err(_) => eprintln!("SKIPPED: modules of the shared corpus: it is not beside this checkout"),
    }
    bases
}

/// A row of the manifest, if the module takes part.
fn from_manifest(corpus: &Path, line: &str) -> Option<Base> {
    let row: serde_json::Value = serde_json::from_str(line).expect("the manifest is JSON");
    let name = row["name"].as_str()?;
    if !CORPUS.contains(&name) && !DEMANDING.contains(&name) {
        return None;
    }
    let call = row["calls"].get(0)?;
    let mut args = vec![format!("--function={}", call["function"].as_str()?)];
    for input in call["inputs"].as_array()? {
        let flag = input["flag"].as_str().or(input.as_str())?;
        let rooted = match flag.split_once('@') {
            Some((head, file)) => format!("{head}@{}", corpus.join(file).display()),
            None => flag.to_owned(),
        };
        args.push(format!("--input={rooted}"));
    }
    let file = fs::read(corpus.join(row["vmfb"].as_str()?)).expect("the corpus is readable");
    Some(Base::new(name, file, args))
}
