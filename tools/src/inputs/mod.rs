//! Which `--input` goes to which input of a function: by name, in order, out of archives and pictures.
//!
//! `NAME=VALUE` is a named value if the function has an input with that name, whatever else the text could mean; of several
//! names that fit, the longest. The tensors of a list are named `NAME[0]`, `NAME[1]`, …, or are none: `NAME=[]`. All other texts are values
//! in order: they go to the inputs that no text names.

pub(crate) mod made_up;

use std::{collections::BTreeMap, path::Path};

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
    let lists = vec![BTreeMap::new(); ports.len()];
    let mut slots = Slots {
        ports,
        what,
        values: vec![None; ports.len()],
        lists,
        named: false,
        reader: InputReader::new().with_standard_input(),
    };
    let named = texts.iter().map(|text| name_of(text, ports)).collect::<Vec<_>>();
    // Names first: values in order go to what they leave.
    for (text, named) in texts.iter().zip(&named).filter_map(|(text, named)| Some((text, named.as_ref()?))) {
        slots.by_name(named).map_err(|failure| failure.context(format!("parsing {} `{text}`", what.one)))?;
    }
    for text in texts.iter().zip(&named).filter(|(_, named)| named.is_none()).map(|(text, _)| text) {
        slots.in_order(text)?;
    }
    slots.reader.finish().map_err(|error| Failure::from(error).context(format!("parsing {}s", what.one)))?;
    slots.finish()
}

/// Whether a text could be a value by name, or one whose meaning depends on the function. Without ports such texts cannot be
/// read.
pub(crate) fn needs_ports(texts: &[String]) -> bool {
    texts.iter().any(|text| looks_named(text) || archive(text).is_some() || picture_file(text).is_some())
}

/// What a text names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Named<'t> {
    /// The port.
    pub port: usize,
    /// Which of its tensors, where it is a list.
    pub tensor: Option<usize>,
    /// What stands behind `NAME=`.
    pub value: &'t str,
}

/// What a text names, if it does.
pub(crate) fn name_of<'t>(text: &'t str, ports: &[Port]) -> Option<Named<'t>> {
    let fits = |(index, port): (usize, &Port)| {
        let rest = text.strip_prefix(port.name.as_str()).filter(|_| !port.name.is_empty())?;
        let (tensor, value) = match rest.strip_prefix('=') {
            Some(value) => (None, value),
            None => {
                let (number, value) = rest.strip_prefix('[').filter(|_| port.is_list)?.split_once("]=")?;
                (Some(place(number)?), value)
            }
        };
        Some((text.len() - value.len(), index, Named { port: index, tensor, value }))
    };
    let fitting = ports.iter().enumerate().filter_map(fits);
    let longest = fitting.max_by_key(|(length, index, _)| (*length, usize::MAX - index));
    longest.map(|(_, _, named)| named)
}

/// A place in a list.
fn place(digits: &str) -> Option<usize> {
    digits.parse().ok().filter(|_| digits.bytes().all(|digit| digit.is_ascii_digit()))
}

/// The port of an array's name in an archive, and which of its tensors it is.
fn array_of(name: &str, ports: &[Port]) -> Option<(usize, Option<usize>)> {
    let exact = ports.iter().position(|port| port.name == name && !port.is_list).map(|port| (port, None));
    exact.or_else(|| {
        let (list, number) = name.strip_suffix(']')?.rsplit_once('[')?;
        let port = ports.iter().position(|port| port.is_list && port.name == list)?;
        Some((port, Some(place(number)?)))
    })
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
    /// Tensors of lists by their places.
    lists: Vec<BTreeMap<usize, HostValue>>,
    /// Whether a value was given by name.
    named: bool,
    /// Reads all texts: `+FILE` reads on where another stopped.
    reader: InputReader,
}

impl Slots<'_> {
    fn put(&mut self, port: usize, tensor: Option<usize>, value: HostValue) -> Result<()> {
        let before = match tensor {
            Some(index) => self.lists[port].insert(index, value),
            None => self.values[port].replace(value),
        };
        let both = self.values[port].is_some() && !self.lists[port].is_empty();
        if before.is_some() || both {
            let at = tensor.map(|index| format!("[{index}]")).unwrap_or_default();
            let text = format!("{} '{}{at}' is given twice", self.what.one, self.ports[port].name);
            return Err(Failure::Usage(text));
        }
        Ok(())
    }

    /// The ports without a value.
    fn free(&self) -> Vec<usize> {
        let is_free = |port: &usize| self.values[*port].is_none() && self.lists[*port].is_empty();
        (0..self.ports.len()).filter(is_free).collect()
    }

    /// `NAME=VALUE`.
    fn by_name(&mut self, named: &Named<'_>) -> Result<()> {
        self.named = true;
        let Named { port, tensor, value: text } = *named;
        let Port { name, kind, is_list, .. } = &self.ports[port];
        if *is_list && tensor.is_none() {
            return match text {
                "[]" => self.put(port, None, HostValue::List(Vec::new())),
                "(null)" | "(ignored)" => self.put(port, None, HostValue::Null),
                _ => Err(self.is_a_list(port)),
            };
        }
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
            return self.put(port, tensor, value);
        }
        if let Some(path) = picture_file(text) {
            let value = self.picture(path, port)?;
            return self.put(port, tensor, value);
        }
        let text = self.ports[port].spelled(text);
        let mut values = self.reader.read_all(&[&*text], &[*kind])?;
        let value = values.pop().ok_or_else(|| Failure::invalid(format!("'{text}' has no array")))?;
        self.put(port, tensor, value)
    }

    /// What to say of a list that is given as one.
    fn is_a_list(&self, port: usize) -> Failure {
        let Port { name, .. } = &self.ports[port];
        Failure::Usage(format!(
            "'{name}' is a list: give its tensors by their names ({name}[0]=…, {name}[1]=…), or none ({name}=[])"
        ))
    }

    /// A text that names no port.
    fn in_order(&mut self, text: &str) -> Result<()> {
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
            let text = free.first().map_or(text.into(), |port| self.ports[*port].spelled(text));
            self.reader.read_all(&[&*text], &kinds)?
        };
        free.into_iter().zip(read).try_for_each(|(port, value)| match self.ports[port].is_list {
            true if value != HostValue::Null => Err(self.is_a_list(port)),
            _ => self.put(port, None, value),
        })
    }

    /// All arrays of an archive: by name where one of them has a name of a port, else in order.
    fn archive(&mut self, path: &Path) -> Result<()> {
        let arrays = npz::read(path)?;
        let too_many = |name: &str, why: &str| {
            let (file, one, all) = (path.display(), self.what.one, ports::list(self.ports));
            Failure::invalid(format!("'{file}' has an array '{name}'{why}; {one}s: {all}"))
        };
        let named: Vec<_> = arrays.iter().map(|(name, _)| array_of(name, self.ports)).collect();
        let free = self.free();
        let places: Vec<(usize, Option<usize>)> = match named.iter().any(Option::is_some) {
            // A name that is none is a slip of the pen: in order, it would be the value of another.
            true => {
                let places = arrays.iter().zip(&named).map(|((name, _), place)| {
                    place.ok_or_else(|| {
                        too_many(name, &format!(", and there is no {} of this name", self.what.one))
                    })
                });
                places.collect::<Result<_>>()?
            }
            false => {
                if let Some((name, _)) = arrays.get(free.len()) {
                    return Err(too_many(name, " too many"));
                }
                free.into_iter().map(|port| (port, None)).collect()
            }
        };
        self.named |= named.iter().any(Option::is_some);
        for ((port, tensor), (_, array)) in places.into_iter().zip(arrays) {
            if self.ports[port].is_list && tensor.is_none() {
                return Err(self.is_a_list(port));
            }
            let value = of_array(array, self.ports[port].kind)?;
            self.put(port, tensor, value)?;
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
        for (port, list) in std::mem::take(&mut self.lists).into_iter().enumerate() {
            if let Some(last) = list.keys().next_back() {
                if let Some(missing) = (0..*last).find(|index| !list.contains_key(index)) {
                    let Port { name, .. } = &self.ports[port];
                    let text =
                        format!("no {} is given for '{name}[{missing}]'; '{name}[{last}]' is", self.what.one);
                    return Err(Failure::Usage(text));
                }
                self.values[port] = Some(HostValue::List(list.into_values().collect()));
            }
        }
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
