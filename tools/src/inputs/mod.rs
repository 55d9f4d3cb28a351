//! Which `--input` goes to which input of a function: by name, in order, out of archives and pictures.
//!
//! `NAME=VALUE` is a named value if the function has an input with that name, whatever else the text could mean; of several
//! names that fit, the longest. All other texts are values in order: they go to the inputs that no text names.

pub(crate) mod made_up;

use std::path::Path;

use crate::{
    console::{Failure, Result},
    engine::{ArgumentKind, ElementType, HostTensor, HostValue, InputReader},
    npz,
    picture::{self, PictureFlags},
    ports::{self, Port},
};

/// What the values are, for messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct What<'a> {
    /// `input` or `expected output`.
    pub one: &'a str,
    /// How pictures become tensors; `None` where pictures make no sense.
    pub pictures: Option<&'a PictureFlags>,
}

/// Reads texts for the ports of a function. What is not given at the end is left out; with names, everything that is not
/// optional has to be given. `None` is an optional value that is not given.
pub(crate) fn read(texts: &[String], ports: &[Port], what: What<'_>) -> Result<Vec<Option<HostValue>>> {
    let mut slots = Slots { ports, what, values: vec![None; ports.len()], named: false };
    let named = texts.iter().map(|text| name_of(text, ports)).collect::<Vec<_>>();
    // Names first: values in order go to what they leave.
    for (text, (port, value)) in
        texts.iter().zip(&named).filter_map(|(text, named)| Some((text, named.as_ref()?)))
    {
        slots
            .by_name(*port, value)
            .map_err(|failure| failure.context(format!("parsing {} `{text}`", what.one)))?;
    }
    let mut reader = InputReader::new();
    for text in texts.iter().zip(&named).filter(|(_, named)| named.is_none()).map(|(text, _)| text) {
        slots.in_order(&mut reader, text)?;
    }
    slots.finish()
}

/// Whether a text could be a value by name, or one whose meaning depends on the function. Without ports such texts cannot be
/// read.
pub(crate) fn needs_ports(texts: &[String]) -> bool {
    texts.iter().any(|text| looks_named(text) || archive(text).is_some() || picture_file(text).is_some())
}

/// The port that a text names, and its value.
pub(crate) fn name_of<'t>(text: &'t str, ports: &[Port]) -> Option<(usize, &'t str)> {
    let fits = |(index, port): (usize, &Port)| {
        let value =
            text.strip_prefix(port.name.as_str()).filter(|_| !port.name.is_empty())?.strip_prefix('=')?;
        Some((port.name.len(), index, value))
    };
    let longest = ports
        .iter()
        .enumerate()
        .filter_map(fits)
        .max_by_key(|(length, index, _)| (*length, usize::MAX - index));
    longest.map(|(_, index, value)| (index, value))
}

/// Whether what stands before `=` can only be a name.
fn looks_named(text: &str) -> bool {
    let Some((name, _)) = text.split_once('=') else { return false };
    let plain = name.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '/' | ':' | '.'));
    // `xf32` is a type without dimensions.
    let is_type = |text: &str| text.parse::<ElementType>().is_ok();
    plain && !is_type(name.strip_prefix('x').unwrap_or(name)) && !is_type(name)
}

/// The file of `@FILE.npz`.
fn archive(text: &str) -> Option<&Path> {
    text.strip_prefix('@').map(Path::new).filter(|path| has_extension(path, &["npz"]))
}

/// The file of `@FILE.png` and the like.
fn picture_file(text: &str) -> Option<&Path> {
    text.strip_prefix('@').map(Path::new).filter(|path| has_extension(path, picture::EXTENSIONS))
}

/// Whether a path ends in one of these, in any case.
pub(crate) fn has_extension(path: &Path, all: &[&str]) -> bool {
    path.extension().is_some_and(|extension| all.iter().any(|one| extension.eq_ignore_ascii_case(one)))
}

/// Values as they are found.
struct Slots<'a> {
    ports: &'a [Port],
    what: What<'a>,
    values: Vec<Option<HostValue>>,
    /// Whether a value was given by name.
    named: bool,
}

impl Slots<'_> {
    fn put(&mut self, port: usize, value: HostValue) -> Result<()> {
        if self.values[port].is_some() {
            let text = format!("{} '{}' is given twice", self.what.one, self.ports[port].name);
            return Err(Failure::Usage(text));
        }
        self.values[port] = Some(value);
        Ok(())
    }

    /// The ports without a value.
    fn free(&self) -> Vec<usize> {
        (0..self.ports.len()).filter(|port| self.values[*port].is_none()).collect()
    }

    /// `NAME=VALUE`.
    fn by_name(&mut self, port: usize, text: &str) -> Result<()> {
        self.named = true;
        let Port { name, kind, .. } = &self.ports[port];
        if let Some(path) = archive(text) {
            let mut arrays = npz::read(path)?;
            let same = arrays.iter().position(|(array, _)| array == name);
            let index = same.or((arrays.len() == 1).then_some(0)).ok_or_else(|| {
                let names: Vec<_> = arrays.iter().map(|(name, _)| name.as_str()).collect();
                let text =
                    format!("'{}' has no array '{name}'; it has: {}", path.display(), names.join(", "));
                Failure::invalid(text)
            })?;
            let value = of_array(arrays.swap_remove(index).1, *kind)?;
            return self.put(port, value);
        }
        if let Some(path) = picture_file(text) {
            let value = self.picture(path, port)?;
            return self.put(port, value);
        }
        let mut values = InputReader::new().read_all(&[text], &[*kind])?;
        let value = values.pop().ok_or_else(|| Failure::invalid(format!("'{text}' has no array")))?;
        self.put(port, value)
    }

    /// A text that names no port.
    fn in_order(&mut self, reader: &mut InputReader, text: &str) -> Result<()> {
        let free = self.free();
        if free.is_empty() && archive(text).is_none() && !looks_named(text) {
            let all = ports::list(self.ports);
            let (one, count) = (self.what.one, self.ports.len());
            let why = match one {
                "input" => format!("function expected fewer input values; it takes {count}: {all}"),
                _ => format!("one {one} too many; the function gives {count}: {all}"),
            };
            return Err(Failure::invalid(why).context(format!("parsing {} `{text}`", self.what.one)));
        }
        let read = if let Some(path) = archive(text) {
            return self
                .archive(path)
                .map_err(|failure| failure.context(format!("parsing {} `{text}`", self.what.one)));
        } else if let (Some(path), Some(port)) = (picture_file(text), free.first()) {
            vec![self.picture(path, *port)?]
        } else if looks_named(text) {
            return Err(self.unknown_name(text));
        } else {
            let kinds: Vec<ArgumentKind> = free.iter().map(|port| self.ports[*port].kind).collect();
            reader.read_all(&[text], &kinds)?
        };
        free.into_iter().zip(read).try_for_each(|(port, value)| self.put(port, value))
    }

    /// All arrays of an archive: by name where a port has it, the others in order.
    fn archive(&mut self, path: &Path) -> Result<()> {
        let mut others = Vec::new();
        for (name, array) in npz::read(path)? {
            let port = self.ports.iter().position(|port| port.name == name);
            match port {
                Some(port) => {
                    self.named = true;
                    let value = of_array(array, self.ports[port].kind)?;
                    self.put(port, value)?;
                }
                None => others.push((name, array)),
            }
        }
        let free = self.free();
        if let Some((name, _)) = others.get(free.len()) {
            let text = format!(
                "'{}' has an array '{name}' too many; {}s: {}",
                path.display(),
                self.what.one,
                ports::list(self.ports)
            );
            return Err(Failure::invalid(text));
        }
        for (port, (_, array)) in free.into_iter().zip(others) {
            let value = of_array(array, self.ports[port].kind)?;
            self.put(port, value)?;
        }
        Ok(())
    }

    fn picture(&self, path: &Path, port: usize) -> Result<HostValue> {
        let Some(flags) = self.what.pictures else {
            let text = format!("'{}': a picture is no {}; give an array", path.display(), self.what.one);
            return Err(Failure::Usage(text));
        };
        picture::read(path, &self.ports[port], flags).map(HostValue::Tensor)
    }

    fn unknown_name(&self, text: &str) -> Failure {
        let name = text.split_once('=').map_or(text, |(name, _)| name);
        let one = self.what.one;
        let what = if self.ports.iter().all(|port| port.name.is_empty()) {
            format!("the function's {one}s have no names: give values in order")
        } else {
            format!("{one}s: {}", ports::list(self.ports))
        };
        Failure::Usage(format!(
            "`{text}`: '{name}' is neither the name of an {one} nor a type such as 2x2xf32; {what}"
        ))
    }

    /// The values up to the last one that is given.
    fn finish(mut self) -> Result<Vec<Option<HostValue>>> {
        let given = self.values.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        let needed = if self.named { self.ports.len() } else { given };
        let missing = |port: &usize| self.values[*port].is_none() && !self.ports[*port].is_optional;
        let missing: Vec<_> = (0..needed).filter(missing).map(|port| self.ports[port].to_string()).collect();
        if !missing.is_empty() {
            let all = ports::list(self.ports);
            let (missing, one) = (missing.join(", "), self.what.one);
            return Err(Failure::Usage(format!("no {one} is given for {missing}; {one}s: {all}")));
        }
        self.values.truncate(given);
        Ok(self.values)
    }
}

/// An array as it is passed: scalars out of arrays with one element.
fn of_array(array: HostTensor, kind: ArgumentKind) -> Result<HostValue> {
    if kind == ArgumentKind::Reference {
        return Ok(HostValue::Tensor(array));
    }
    if array.element_count() != 1 {
        let text = format!("a plain number is needed, not an array {}", array.metadata());
        return Err(Failure::invalid(text));
    }
    let mut values = InputReader::new().read_all(&[array.element_text(0)], &[kind])?;
    values.pop().ok_or_else(|| Failure::invalid("an array without elements is no number"))
}

#[cfg(test)]
mod tests;
