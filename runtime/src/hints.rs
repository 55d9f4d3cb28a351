//! What a module reveals about its executables beside their bytes: the subgroup sizes and the processor it was compiled for.
//!
//! The compiler writes the whole target attribute of a device into the message of a `fail` in `__init`. For code that
//! uses subgroup operations that text is the only place that says which widths the code assumes, and for machine code the only one
//! that says which features of a processor it needs.

use std::ops::Range;

use bytes::Bytes;
use halite_formats::vmfb::ModuleDef;

const KEY: &[u8] = b"subgroup_size_choices = [";
const NO_SUBGROUPS: &[u8] = b"subgroup = none";
const TARGET: &[u8] = b"#iree_gpu.target<";
/// Longer lists are not what a compiler writes.
const MAX_CHOICES: usize = 16;
const EXECUTABLE: &[u8] = b"#hal.executable.target<\"llvm-cpu\", \"";
const CPU: &[u8] = b"cpu = \"";
const FEATURES: &[u8] = b"cpu_features = \"";
const TARGET_END: &[u8] = b"}>";
/// Most targets of machine code, and features of one, that are read.
const MOST_TARGETS: usize = 64;
const MOST_FEATURES: usize = 512;

/// A processor that machine code was compiled for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processor {
    /// The format of the executables.
    pub format: String,
    /// The processor, by the compiler's name; empty where the module does not say.
    pub name: String,
    /// Features that the code may use, by the compiler's names.
    pub features: Vec<String>,
}

/// What one module reveals.
#[derive(Clone, Debug)]
pub struct ModuleHints {
    module: String,
    subgroup_sizes: Vec<u32>,
    processors: Vec<Processor>,
    /// Address ranges of the read-only segments, by segment number. Only compared, never followed.
    segments: Vec<Range<usize>>,
    /// The segments: keeps the addresses from being used by others, and is searched for format names.
    rodata: Vec<Bytes>,
}

/// Where executable data comes from.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// Name of the module.
    pub module: &'a str,
    /// Number of the read-only segment.
    pub segment: usize,
    /// Subgroup sizes that code of the module may assume; empty when it does not say.
    pub subgroup_sizes: &'a [u32],
    /// Processors that machine code of the module was compiled for.
    pub processors: &'a [Processor],
}

impl ModuleHints {
    /// Reads the hints of a module. Linear in the size of its bytecode.
    pub fn of(def: &ModuleDef) -> Self {
        ModuleHints {
            module: def.name.clone(),
            subgroup_sizes: subgroup_sizes(&def.bytecode),
            processors: processors(&def.bytecode),
            segments: def.rodata.iter().map(|segment| addresses(segment)).collect(),
            rodata: def.rodata.clone(),
        }
    }

    /// Whether the module asks for devices that take this executable format. A program asks by name, and the name is a
    /// segment of its own.
    pub fn names_format(&self, format: &str) -> bool {
        self.rodata.iter().any(|segment| segment[..] == *format.as_bytes())
    }
}

fn addresses(bytes: &[u8]) -> Range<usize> {
    let range = bytes.as_ptr_range();
    range.start.addr()..range.end.addr()
}

/// The module whose read-only data holds `data`.
pub fn find<'a>(hints: &'a [ModuleHints], data: &[u8]) -> Option<Origin<'a>> {
    let data = addresses(data);
    hints.iter().find_map(|module| {
        let fits = |s: &Range<usize>| !s.is_empty() && s.start <= data.start && data.end <= s.end;
        let segment = module.segments.iter().position(fits)?;
        let (subgroup_sizes, processors) = (&module.subgroup_sizes, &module.processors);
        Some(Origin { module: &module.module, segment, subgroup_sizes, processors })
    })
}

/// All subgroup sizes named by target attributes in these bytes, ascending. Targets that say they have no subgroup
/// operations do not count: their code assumes nothing.
fn subgroup_sizes(bytecode: &[u8]) -> Vec<u32> {
    let mut sizes = Vec::new();
    let mut rest = bytecode;
    while let Some(at) = find_bytes(rest, KEY) {
        let (before, after) = (&rest[..at], &rest[at + KEY.len()..]);
        let target = before.windows(TARGET.len()).rposition(|w| w == TARGET).map_or(before, |i| &before[i..]);
        if find_bytes(target, NO_SUBGROUPS).is_none() {
            sizes.extend(numbers(after));
        }
        rest = after;
    }
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// The processors of the targets of machine code that these bytes name.
fn processors(bytecode: &[u8]) -> Vec<Processor> {
    let (mut all, mut rest) = (Vec::new(), bytecode);
    while let Some(at) = find_bytes(rest, EXECUTABLE).filter(|_| all.len() < MOST_TARGETS) {
        rest = &rest[at + EXECUTABLE.len()..];
        // The target's own text; without an end nothing is known of it.
        let Some(end) = find_bytes(rest, TARGET_END) else { break };
        let text = &rest[..end];
        let value = |key: &[u8]| quoted(&text[find_bytes(text, key)? + key.len()..]);
        let features = value(FEATURES).unwrap_or_default();
        let features = features.split(',').filter_map(|name| name.trim().strip_prefix('+'));
        all.push(Processor {
            format: quoted(text).unwrap_or_default(),
            name: value(CPU).unwrap_or_default(),
            features: features.take(MOST_FEATURES).map(str::to_owned).collect(),
        });
    }
    all.dedup();
    all
}

/// Text up to the closing quote.
fn quoted(text: &[u8]) -> Option<String> {
    let end = text.iter().position(|byte| *byte == b'"')?;
    String::from_utf8(text[..end].to_vec()).ok()
}

/// Positive numbers up to the closing bracket.
fn numbers(text: &[u8]) -> impl Iterator<Item = u32> + '_ {
    let list = text.split(|b| *b == b']').next().unwrap_or_default();
    list.split(|b| *b == b',')
        .take(MAX_CHOICES)
        .filter_map(|item| str::from_utf8(item).ok()?.trim().parse().ok())
        .filter(|size| *size > 0)
}

fn find_bytes(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_come_from_targets_that_have_subgroups() {
        let text = b"\x05fail#iree_gpu.target<arch = \"rdna3\", subgroup = shuffle|arithmetic, \
            mma = [<A>, <B>], subgroup_size_choices = [64, 32], x = [1]>\0\
            #iree_gpu.target<arch = \"base\", subgroup = none, subgroup_size_choices = [8]>";
        assert_eq!(subgroup_sizes(text), [32, 64]);
        assert!(subgroup_sizes(b"nothing here").is_empty());
        assert!(subgroup_sizes(b"subgroup_size_choices = [x, , 0, 99999999999").is_empty());
    }

    #[test]
    fn machine_code_is_for_processors() {
        let text = br##"\x05#hal.device.target<"local", [#hal.executable.target<"llvm-cpu", "embedded-elf-x86_64", {cpu = "znver5",
            cpu_features = "+avx,-sse4a,+avx512f", x = "y"}>, #hal.executable.target<"llvm-cpu", "embedded-elf-arm_64", {cpu = "",
            cpu_features = ""}>, #hal.executable.target<"vmvx", "vmvx-bytecode-fb", {cpu_features = "+x"}>]>"##;
        let all = processors(text);
        let of = |format: &str, name: &str, features: &[&str]| Processor {
            format: format.into(),
            name: name.into(),
            features: features.iter().map(|&feature| feature.into()).collect(),
        };
        let expected =
            [of("embedded-elf-x86_64", "znver5", &["avx", "avx512f"]), of("embedded-elf-arm_64", "", &[])];
        assert_eq!(all, expected);
        assert!(processors(&text[..100]).is_empty());
    }

    #[test]
    fn executable_data_is_found_in_its_module() {
        let rodata = vec![Bytes::new(), Bytes::from(vec![1u8; 100])];
        let bytecode =
            Bytes::from_static(b"#iree_gpu.target<subgroup = shuffle, subgroup_size_choices = [16]>");
        let def = ModuleDef { name: "m".into(), rodata: rodata.clone(), bytecode, ..ModuleDef::default() };
        let hints = [ModuleHints::of(&def)];
        let origin = find(&hints, &rodata[1].slice(10..100)).expect("data lies in segment 1");
        assert_eq!((origin.module, origin.segment, origin.subgroup_sizes), ("m", 1, &[16][..]));
        assert!(find(&hints, &[0; 4]).is_none());
    }

    #[test]
    fn formats_are_segments_of_their_own() {
        let rodata =
            vec![Bytes::from_static(b"vulkan-spirv-fb"), Bytes::from_static(b"x vmvx-bytecode-fb x")];
        let hints = ModuleHints::of(&ModuleDef { name: "m".into(), rodata, ..ModuleDef::default() });
        assert!(hints.names_format("vulkan-spirv-fb"));
        assert!(!hints.names_format("vulkan-spirv") && !hints.names_format("vmvx-bytecode-fb"));
    }
}
