//! How the caches of sequences hold keys and values.

use std::{fmt, str::FromStr};

use halite_compiler::frontends::CacheFormats;
use halite_ops::blocks::BlockFormat;

use crate::Error;

/// How the caches of a [`super::Sequence`] hold keys or values.
///
/// The types are those that llama.cpp has under these names. Blocks are made on the device when tokens come, and attention reads
/// them as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CacheType {
    /// 16-bit floats.
    #[default]
    F16,
    /// Blocks of 32 elements: 8 bits for each, and a scale. 17/32 of the memory of [`CacheType::F16`].
    Q8_0,
    /// Blocks of 32 elements: 4 bits for each, and a scale. 9/32 of the memory of [`CacheType::F16`].
    Q4_0,
}

impl CacheType {
    /// All of them.
    pub const ALL: [CacheType; 3] = [CacheType::F16, CacheType::Q8_0, CacheType::Q4_0];

    /// Its name: `f16`, `q8_0`, `q4_0`.
    pub fn name(self) -> &'static str {
        match self {
            CacheType::F16 => "f16",
            CacheType::Q8_0 => "q8_0",
            CacheType::Q4_0 => "q4_0",
        }
    }

    fn blocks(self) -> Option<BlockFormat> {
        match self {
            CacheType::F16 => None,
            CacheType::Q8_0 => Some(BlockFormat::Q8_0),
            CacheType::Q4_0 => Some(BlockFormat::Q4_0),
        }
    }

    /// What the compiler calls a type of keys and one of values.
    pub(super) fn formats([keys, values]: [CacheType; 2]) -> CacheFormats {
        CacheFormats { keys: keys.blocks(), values: values.blocks() }
    }
}

impl fmt::Display for CacheType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for CacheType {
    type Err = Error;

    fn from_str(text: &str) -> Result<CacheType, Error> {
        CacheType::ALL.into_iter().find(|known| known.name() == text).ok_or_else(|| {
            let known = CacheType::ALL.map(CacheType::name).join(", ");
            Error::invalid(format!("there is no type '{text}' of caches; there are: {known}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::CacheType;

    #[test]
    fn types_have_the_names_that_llama_cpp_has() {
        for known in CacheType::ALL {
            assert_eq!(known.to_string().parse::<CacheType>().unwrap(), known);
        }
        let error = "q5_1".parse::<CacheType>().unwrap_err().to_string();
        assert!(error.contains("'q5_1'") && error.contains("f16, q8_0, q4_0"), "{error}");
    }
}
