//! Facts about the host's processor: name, features, formats of executables.

use std::{num::NonZeroUsize, thread};

use halite_abi::format;

/// Formats of native code, of any processor.
pub(crate) const ELF_FORMATS: &[&str] = &[
    format::ELF_X86_64,
    format::ELF_ARM_64,
    format::ELF_X86_32,
    format::ELF_ARM_32,
    format::ELF_RISCV_32,
    format::ELF_RISCV_64,
];

/// The format of native code that this build can load, if any.
pub(crate) const NATIVE_FORMAT: Option<&str> = if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
    Some(format::ELF_X86_64)
} else if cfg!(all(target_os = "linux", target_arch = "aarch64")) {
    Some(format::ELF_ARM_64)
} else {
    None
};

/// Threads that can run at the same time.
pub(crate) fn count() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Name for people, such as the model in `/proc/cpuinfo`; the architecture where the system does not say.
pub(crate) fn name() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let fields = text.lines().filter_map(|line| line.split_once(':'));
    let model = fields.map(|(key, value)| (key.trim(), value.trim())).find(|(key, value)| {
        matches!(*key, "model name" | "Model" | "Hardware" | "cpu model") && !value.is_empty()
    });
    model.map_or_else(|| format!("{} processor", std::env::consts::ARCH), |(_, value)| value.to_owned())
}

#[allow(unused_macros, reason = "there is no table for other processors")]
macro_rules! feature_table {
    ($test:ident: $($bit:literal $name:tt,)*) => {
        vec![$(($bit, $name, std::arch::$test!($name)),)*]
    };
}

/// Features: (bit in the first processor-data word, name as compilers write it, whether the processor has it). The
/// bits are those of IREE's `schemas/cpu_feature_bits.inl`: kernels test them.
fn feature_table() -> Vec<(u32, &'static str, bool)> {
    #[cfg(target_arch = "x86_64")]
    return feature_table!(is_x86_feature_detected:
        0 "sse3", 1 "ssse3", 2 "sse4.1", 3 "sse4.2", 4 "sse4a",
        10 "avx", 11 "fma", 14 "f16c", 15 "avx2",
        20 "avx512f", 21 "avx512cd", 22 "avx512vl", 23 "avx512dq", 24 "avx512bw", 25 "avx512ifma",
        26 "avx512vbmi", 27 "avx512vpopcntdq", 28 "avx512vnni", 29 "avx512vbmi2", 30 "avx512bitalg",
        31 "avx512bf16", 32 "avx512fp16",
    );
    #[cfg(target_arch = "aarch64")]
    return feature_table!(is_aarch64_feature_detected:
        0 "neon", 1 "lse", 10 "fp16", 11 "fhm", 12 "dotprod", 13 "i8mm", 14 "bf16",
        20 "sve", 21 "sve2", 23 "sve2-bitperm", 24 "f32mm", 25 "f64mm",
    );
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    return Vec::new();
}

/// Further features that code may need: without a bit, as kernels do not test them.
fn more_features() -> Vec<(u32, &'static str, bool)> {
    #[cfg(target_arch = "x86_64")]
    return feature_table!(is_x86_feature_detected:
        0 "adx", 0 "aes", 0 "avx512vp2intersect", 0 "avxvnni", 0 "bmi1", 0 "bmi2", 0 "cmpxchg16b", 0 "fxsr", 0 "gfni", 0 "lzcnt",
        0 "movbe", 0 "pclmulqdq", 0 "popcnt", 0 "rdrand", 0 "rdseed", 0 "sha", 0 "sse", 0 "sse2", 0 "tbm", 0 "vaes",
        0 "vpclmulqdq", 0 "xsave", 0 "xsavec", 0 "xsaveopt", 0 "xsaves",
    );
    #[cfg(target_arch = "aarch64")]
    return feature_table!(is_aarch64_feature_detected: 0 "aes", 0 "crc", 0 "fcma", 0 "jsconv", 0 "rcpc", 0 "rdm", 0 "sha2", 0 "sha3",);
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    return Vec::new();
}

/// Whether the processor has a feature, by LLVM's name; `None` for one that is not known here.
pub(crate) fn has_feature(name: &str) -> Option<bool> {
    // Rust and LLVM call some by different names.
    let name = match name {
        "bmi" => "bmi1",
        "cx16" => "cmpxchg16b",
        "pclmul" => "pclmulqdq",
        "rdrnd" => "rdrand",
        "fullfp16" => "fp16",
        "fp16fml" => "fhm",
        name => name,
    };
    let mut all = feature_table().into_iter().chain(more_features());
    all.find(|(_, known, _)| *known == name).map(|(.., has)| has)
}

/// Names of the features that the processor has.
pub(crate) fn features() -> Vec<&'static str> {
    feature_table().into_iter().filter(|(.., has)| *has).map(|(_, name, _)| name).collect()
}

/// The words of processor data that kernels may read.
pub(crate) fn processor_data() -> [u64; 8] {
    let bits = feature_table().into_iter().filter(|(.., has)| *has);
    let first = bits.fold(0, |word, (bit, ..)| word | 1 << bit);
    [first, 0, 0, 0, 0, 0, 0, 0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_has_a_name_and_features_have_bits() {
        assert!(!name().is_empty() && count() > 0);
        let word = processor_data()[0];
        assert_eq!(word.count_ones() as usize, features().len());
        #[cfg(target_arch = "x86_64")]
        assert_eq!(word >> 15 & 1 == 1, features().contains(&"avx2"));
        assert_eq!(has_feature("avx2"), Some(features().contains(&"avx2")));
        assert_eq!((has_feature("sse2"), has_feature("prfchw")), (Some(true), None));
    }
}
