//! Formats of models: which one a file has, by the front ends that there are.

use std::{
    fmt,
    hash::{Hash, Hasher},
    path::Path,
};

use super::{FRONT_ENDS, FrontEnd, Recognition};
use crate::UnknownName;

/// A format of models that are compiled.
#[derive(Clone, Copy)]
pub struct ModelFormat(&'static dyn FrontEnd);

impl ModelFormat {
    /// All of them.
    pub fn all() -> impl Iterator<Item = ModelFormat> {
        FRONT_ENDS.iter().map(|front_end| ModelFormat(*front_end))
    }

    /// The format with an [`id`](ModelFormat::id).
    ///
    /// # Errors
    /// There is none; the text lists all.
    pub fn named(id: &str) -> Result<ModelFormat, UnknownName> {
        ModelFormat::all().find(|format| format.id() == id).ok_or_else(|| {
            let known: Vec<_> = ModelFormat::all().map(ModelFormat::id).collect();
            UnknownName::new(format!("there is no format '{id}'; there are: {}", known.join(", ")))
        })
    }

    /// The format of a file by its first bytes (16 are enough), or by the end of its name where these do not tell; `None` for
    /// modules and for what is unknown.
    pub fn detect(start: &[u8], path: &Path) -> Option<ModelFormat> {
        if ModelFormat::is_module(start) {
            return None;
        }
        let extension = path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase);
        let recognized =
            |wanted| ModelFormat::all().find(|format| format.front_end().recognizes(start) == wanted);
        let named =
            || ModelFormat::all().find(|f| f.extensions().iter().any(|e| Some(*e) == extension.as_deref()));
        recognized(Recognition::Certain).or_else(named).or_else(|| recognized(Recognition::Possible))
    }

    /// Whether a file with this beginning is a compiled module (`.vmfb`), bare or inside of a zip file.
    pub fn is_module(start: &[u8]) -> bool {
        let is_flatbuffer = start.get(4..8) == Some(b"IREE") || start.get(8..12) == Some(b"IREE");
        start.starts_with(b"PK\x03\x04") || is_flatbuffer
    }

    /// What options call it: `onnx`.
    pub fn id(self) -> &'static str {
        self.0.id()
    }

    /// Its name, for people: `ONNX`.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// The ends of its files' names, in lower case and without the dot.
    pub fn extensions(self) -> &'static [&'static str] {
        self.0.extensions()
    }

    /// What reads it.
    pub(crate) fn front_end(self) -> &'static dyn FrontEnd {
        self.0
    }
}

impl fmt::Debug for ModelFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ModelFormat").field(&self.id()).finish()
    }
}

impl PartialEq for ModelFormat {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl Eq for ModelFormat {}

impl Hash for ModelFormat {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn formats_are_told_by_content_first() {
        let of = |start: &[u8], name: &str| ModelFormat::detect(start, Path::new(name)).map(ModelFormat::id);
        assert_eq!(of(b"\x08\x08\x12\x07pytorch", "model"), Some("onnx"));
        assert_eq!(of(b"", "MODEL.ONNX"), Some("onnx"));
        assert_eq!(of(b"\x20\0\0\0ET12", "model.onnx"), Some("pte"));
        assert_eq!(of(b"", "model.pte"), Some("pte"));
        assert_eq!(of(b"\x08\x08\x12\x07pytorch", "model.pte"), Some("pte"));
        assert_eq!(of(b"PK\x03\x04", "model.onnx"), None);
        assert_eq!(of(b"\x20\0\0\0IREE", "model.onnx"), None);
        assert_eq!(of(b"hello", "model"), None);
    }

    #[test]
    fn front_ends_can_be_told_apart() {
        let (mut ids, mut extensions) = (HashSet::new(), HashSet::new());
        for format in ModelFormat::all() {
            assert!(ids.insert(format.id()) && ModelFormat::named(format.id()).unwrap() == format);
            assert!(format.extensions().iter().all(|extension| extensions.insert(*extension)), "{format:?}");
        }
        let error = ModelFormat::named("tiff").unwrap_err().to_string();
        assert!(ids.iter().all(|id| error.contains(id)), "{error}");
    }
}
