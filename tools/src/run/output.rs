//! `--output`: where results go, by name or in order.

use std::{
    collections::BTreeSet,
    fs::{File, OpenOptions},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use halite::hal::ResultExt;

use crate::{
    console::{Failure, Result},
    engine::{ElementType, HostTensor, Value, npy, status},
    inputs::{Named, has_extension, name_of},
    npz, picture,
    ports::{self, Port},
    values, whole,
};

/// Endings that make a text a file's name without `@`.
const FILES: &[&str] = &["npy", "npz", "bin", "png", "jpg", "jpeg"];

/// What becomes of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Destination {
    Nowhere,
    Printed,
    Array { path: PathBuf, append: bool },
    Bytes { path: PathBuf, append: bool },
    Picture(PathBuf),
    Archive(PathBuf),
}

/// Places among the results, each with where it goes.
type Placed<'a> = Vec<(usize, &'a Destination)>;

impl Destination {
    /// Refuses a place that has room for one array for all tensors of a list.
    fn check_for_list(&self, text: &str, name: &str) -> Result<()> {
        match self {
            Destination::Nowhere | Destination::Printed | Destination::Archive(_) => Ok(()),
            _ => Err(Failure::Usage(format!(
                "--output={text}: '{name}' is a list; name its tensors ({name}[0]=…, {name}[1]=…), or give it an archive \
                 ({name}=@FILE.npz)"
            ))),
        }
    }

    /// The file that is written.
    fn path(&self) -> Option<&Path> {
        match self {
            Destination::Nowhere | Destination::Printed => None,
            Destination::Array { path, .. }
            | Destination::Bytes { path, .. }
            | Destination::Picture(path)
            | Destination::Archive(path) => Some(path),
        }
    }

    fn parse(text: &str) -> Result<Destination> {
        let path = match text.strip_prefix(['@', '+']) {
            Some(path) => path,
            // A name with a slip of the pen, not a file's.
            None if text.contains("=@") || text.contains("=+") => {
                let (name, _) = text.split_once('=').unwrap_or((text, ""));
                return Err(Failure::Usage(format!("--output={text}: there is no output '{name}'")));
            }
            None if has_extension(Path::new(text), FILES) => text,
            None if text.is_empty() => return Ok(Destination::Nowhere),
            None if text == "-" => return Ok(Destination::Printed),
            None => {
                return Err(Failure::Usage(format!(
                    "unsupported output mode specification '{text}'; after --output= or --output=NAME= stands - (print), @FILE, +FILE, \
                     or no text at all (drop)"
                )));
            }
        };
        let (path, append) = (PathBuf::from(path), text.starts_with('+'));
        let whole = |place: fn(PathBuf) -> Destination, path: PathBuf| match append {
            false => Ok(place(path)),
            true => Err(Failure::Usage(format!(
                "--output={text}: only arrays (.npy) and raw bytes can be appended"
            ))),
        };
        match () {
            () if picture::check_output(&path)? => whole(Destination::Picture, path),
            () if has_extension(&path, &["npz"]) => whole(Destination::Archive, path),
            () if has_extension(&path, &["npy"]) => Ok(Destination::Array { path, append }),
            () => Ok(Destination::Bytes { path, append }),
        }
    }
}

/// Refuses a file that cannot be made: its folder is missing, or it is one. What else is wrong is told when it is written.
fn check_place(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Err(Failure::invalid(format!(
            "'{}' is a folder; name a file for the output",
            path.display()
        )));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::metadata(folder).map_err(|e| Failure::file("cannot create", path, &e))?;
    Ok(())
}

/// Where all results go.
#[derive(Debug)]
pub(super) struct Plan {
    /// Places by name: the result, the tensor of it where it is a list, and its place.
    named: Vec<(usize, Option<usize>, Destination)>,
    /// Places in order.
    ordered: Vec<Destination>,
    /// The archive that takes what nothing else names.
    rest: Option<PathBuf>,
}

impl Plan {
    /// What texts say about a function with these results.
    pub fn new(texts: &[String], ports: &[Port]) -> Result<Plan> {
        let mut plan = Plan { named: Vec::new(), ordered: Vec::new(), rest: None };
        for text in texts {
            match name_of(text, ports) {
                Some(Named { port, tensor, value }) => {
                    let own = |other: &Option<usize>| tensor.is_none() || other.is_none() || tensor == *other;
                    if plan.named.iter().any(|(other, at, _)| *other == port && own(at)) {
                        let text = format!("output '{}' is given twice", ports[port].name);
                        return Err(Failure::Usage(text));
                    }
                    let place = Destination::parse(value).map_err(|failure| unknown(failure, text, ports))?;
                    if ports[port].is_list && tensor.is_none() {
                        place.check_for_list(text, &ports[port].name)?;
                    }
                    plan.named.push((port, tensor, place));
                }
                None => match Destination::parse(text).map_err(|failure| unknown(failure, text, ports))? {
                    Destination::Archive(path) if plan.rest.is_none() => plan.rest = Some(path),
                    Destination::Archive(_) => {
                        return Err(Failure::Usage("give one .npz: it takes all results".to_owned()));
                    }
                    place => plan.ordered.push(place),
                },
            }
        }
        plan.check_files()?;
        // Before anything is computed.
        plan.files().into_iter().try_for_each(check_place)?;
        Ok(plan)
    }

    /// The files that it writes.
    pub fn files(&self) -> Vec<&Path> {
        let all = self.named.iter().map(|(_, _, place)| place).chain(&self.ordered);
        all.filter_map(Destination::path).chain(self.rest.as_deref()).collect()
    }

    /// Refuses two results in one file, where one would be lost.
    fn check_files(&self) -> Result<()> {
        let all = self.named.iter().map(|(_, _, place)| place).chain(&self.ordered);
        let mut known = BTreeSet::new();
        for place in all {
            let (Destination::Array { path, append: false }
            | Destination::Bytes { path, append: false }
            | Destination::Picture(path)) = place
            else {
                continue;
            };
            if !known.insert(path) {
                let text =
                    format!("two outputs go to '{}': one would be lost; +FILE appends", path.display());
                return Err(Failure::Usage(text));
            }
        }
        Ok(())
    }

    /// Each result that a destination names, with it, and the results that none names.
    fn places(&self, results: &Results) -> Result<(Placed<'_>, Vec<usize>)> {
        let mut all = Vec::new();
        for (port, tensor, place) in &self.named {
            let own: Vec<usize> = results.of(*port).collect();
            match tensor {
                None => all.extend(own.into_iter().map(|index| (index, place))),
                Some(at) => {
                    let index = own.get(*at).ok_or_else(|| {
                        let name = &results.declared[*port].name;
                        Failure::invalid(format!(
                            "the list '{name}' has {} tensors: there is no '{name}[{at}]'",
                            own.len()
                        ))
                    })?;
                    all.push((*index, place));
                }
            }
        }
        let free: Vec<usize> =
            (0..results.values.len()).filter(|i| all.iter().all(|(named, _)| named != i)).collect();
        Ok((all, free))
    }

    /// Writes each result where it goes.
    pub fn write(&self, results: &Results, max_elements: u64, out: &mut dyn Write) -> Result<()> {
        let (mut all, free) = self.places(results)?;
        let strict = self.named.is_empty() && self.rest.is_none();
        if self.ordered.len() > free.len() || (strict && self.ordered.len() != free.len()) {
            return Err(status!(
                OutOfRange,
                "{} outputs specified but the provided variant list only has {} elements; give one --output for each \
                 result, or none",
                self.ordered.len() + self.named.len(),
                results.values.len()
            )
            .annotate("outputting results")
            .into());
        }
        all.extend(free.iter().copied().zip(&self.ordered));
        all.sort_by_key(|(index, _)| *index);
        let mut archives: Vec<(&Path, Vec<usize>)> = Vec::new();
        for (index, place) in &all {
            match place {
                Destination::Archive(path) => match archives.iter_mut().find(|(other, _)| other == path) {
                    Some((_, members)) => members.push(*index),
                    None => archives.push((path, vec![*index])),
                },
                place => put(place, &results.values[*index], max_elements, out)?,
            }
        }
        if let Some(path) = &self.rest {
            let left = (0..results.values.len()).filter(|i| all.iter().all(|(taken, _)| taken != i));
            archives.push((path, left.collect()));
        }
        for (path, members) in archives {
            let array = |i: usize| Ok((name(&results.ports, i), to_tensor(&results.values[i])?));
            archive(path, &members.into_iter().map(array).collect::<Result<Vec<_>>>()?)?;
        }
        Ok(())
    }
}

/// What a call gave: the tensors of a model's lists one by one.
pub(super) struct Results {
    /// What the function declares.
    declared: Vec<Port>,
    /// How many results each of these is.
    counts: Vec<usize>,
    /// What each result is.
    pub ports: Vec<Port>,
    pub values: Vec<Value>,
}

impl Results {
    /// Of a function that declares these, of a model or of a module, whose lists stay as they are.
    pub fn new(declared: &[Port], values: Vec<Value>, is_model: bool) -> Results {
        let count = |value: &Value| match value {
            Value::List(values) if is_model => values.len(),
            _ => 1,
        };
        let counts = values.iter().map(count).collect();
        let (ports, values) = match is_model {
            true => ports::one_by_one(declared, values),
            false => (declared.to_vec(), values),
        };
        Results { declared: declared.to_vec(), counts, ports, values }
    }

    /// Names of lists without a tensor, of which nothing else would tell.
    pub fn empty_lists(&self) -> impl Iterator<Item = &str> {
        let empty = self.declared.iter().zip(&self.counts).filter(|(_, count)| **count == 0);
        empty.map(|(port, _)| port.name.as_str())
    }

    /// The results of one that is declared.
    fn of(&self, port: usize) -> std::ops::Range<usize> {
        let count = |port: usize| self.counts.get(port).copied().unwrap_or(0);
        let first = (0..port).map(count).sum();
        first..first + count(port)
    }
}

/// An output's name in an archive: its own, or the one that numpy gives.
fn name(ports: &[Port], index: usize) -> String {
    let own = ports.get(index).map(|port| port.name.clone()).filter(|name| !name.is_empty());
    own.unwrap_or_else(|| format!("arr_{index}"))
}

/// A text that is no place may have begun with a name that there is not.
fn unknown(failure: Failure, text: &str, ports: &[Port]) -> Failure {
    match (text.split_once('='), failure) {
        (Some(_), Failure::Status(status)) => {
            Failure::Status(status.annotate(format!("outputs: {}", ports::list(ports))))
        }
        (Some(_), Failure::Usage(text)) => Failure::Usage(format!("{text}; outputs: {}", ports::list(ports))),
        (_, failure) => failure,
    }
}

fn put(place: &Destination, value: &Value, max_elements: u64, out: &mut dyn Write) -> Result<()> {
    match place {
        Destination::Nowhere => Ok(()),
        Destination::Printed => values::print(out, value, max_elements),
        Destination::Array { path, append } => {
            let tensor = to_tensor(value)?;
            let array = |out: &mut dyn Write| {
                npy::write(&mut { out }, &tensor).context(|| format!("writing '{}'", path.display()))
            };
            match append {
                true => append_to(path, |file| Ok(array(file)?)),
                false => whole::write_by(path, |file| Ok(array(file)?)),
            }
        }
        Destination::Bytes { path, append } => {
            let tensor = to_tensor(value)?;
            match append {
                true => append_to(path, |file| {
                    file.write_all(&tensor.data).map_err(|e| Failure::file("cannot write", path, &e))
                }),
                false => whole::write(path, |file| file.write_all(&tensor.data)),
            }
        }
        Destination::Picture(path) => {
            // In memory first: a tensor that is no picture leaves no file behind.
            let mut bytes = Vec::new();
            picture::write(&mut bytes, path, &to_tensor(value)?)?;
            whole::write(path, |out| out.write_all(&bytes))
        }
        // These are written when all that goes into them is known.
        Destination::Archive(_) => Ok(()),
    }
}

fn archive(path: &Path, arrays: &[(String, HostTensor)]) -> Result<()> {
    whole::write_by(path, |file| {
        npz::write(file, arrays).map_err(|failure| failure.context(format!("writing '{}'", path.display())))
    })
}

/// Writes behind what a file has.
fn append_to(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> Result<()>) -> Result<()> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    let mut file = BufWriter::new(file.map_err(|e| Failure::file("cannot create", path, &e))?);
    fill(&mut file)?;
    // Closing a file hides its errors; this does not.
    file.into_inner()
        .map_err(std::io::IntoInnerError::into_error)
        .and_then(|file| file.sync_data().or(Ok(())))
        .map_err(|e| Failure::file("cannot write", path, &e))
}

/// A value as an array: scalars have rank 0, plain bytes are a vector of i8, null is an empty one.
fn to_tensor(value: &Value) -> Result<HostTensor> {
    let scalar =
        |element_type, bytes: &[u8]| HostTensor::new(element_type, [0u64; 0].as_slice(), bytes.to_vec());
    let bytes = |data: Vec<u8>| HostTensor::new(ElementType::I8, [data.len() as u64].as_slice(), data);
    Ok(match value {
        Value::I32(v) => scalar(ElementType::I32, &v.to_le_bytes())?,
        Value::I64(v) => scalar(ElementType::I64, &v.to_le_bytes())?,
        Value::F32(v) => scalar(ElementType::F32, &v.to_le_bytes())?,
        Value::F64(v) => scalar(ElementType::F64, &v.to_le_bytes())?,
        Value::Tensor(tensor) => HostTensor::try_from(tensor)?,
        Value::Buffer(buffer) => bytes(buffer.to_bytes()?.to_vec())?,
        Value::Bytes(data) => bytes(data.to_vec())?,
        Value::Null => bytes(Vec::new())?,
        _ => {
            let name = values::type_name(value);
            return Err(status!(
                Unimplemented,
                "a {name} cannot be written to a file; print it with --output=-"
            )
            .into());
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ArgumentKind;

    fn ports(names: &[&str]) -> Vec<Port> {
        let port = |name: &&str| Port::for_test(name, ArgumentKind::I32, ElementType::I32, None);
        names.iter().map(port).collect()
    }

    fn written(texts: &[&str], names: &[&str]) -> Result<String> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        let ports = ports(names);
        let one = |(i, name): (usize, &&str)| {
            let value = Value::I32(i as i32);
            if name.ends_with('*') { Value::List(vec![value, Value::I32(10)]) } else { value }
        };
        let results: Vec<Value> = names.iter().enumerate().map(one).collect();
        let mut out = Vec::new();
        Plan::new(&texts, &ports)?.write(&Results::new(&ports, results, true), 10, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn results_go_by_name_or_in_order() {
        assert_eq!(written(&["-", "-"], &["a", "b"]).unwrap(), "i32=0\ni32=1\n");
        assert_eq!(written(&["b=-"], &["a", "b"]).unwrap(), "i32=1\n");
        assert_eq!(written(&["b=", "-", "-"], &["a", "b", "c"]).unwrap(), "i32=0\ni32=2\n");
        let error = |texts: &[&str], names: &[&str]| written(texts, names).unwrap_err().to_string();
        assert!(error(&["-"], &["a", "b"]).contains("1 outputs specified but"));
        assert!(error(&["b=-", "-", "-"], &["a", "b"]).contains("3 outputs specified but"));
        assert!(error(&["b=-", "b="], &["a", "b"]).contains("'b' is given twice"));
        assert!(error(&["c=-"], &["a", "b"]).contains("outputs: 'a' i32, 'b' i32"));
        for text in ["o.txt", "nothing", "a=nothing"] {
            let failure = written(&[text], &["a"]).unwrap_err();
            assert!(matches!(failure, Failure::Usage(_)), "it is told before the call");
            let failure = failure.to_string();
            assert!(
                failure.contains("unsupported output mode") && failure.contains("no text at all"),
                "{failure}"
            );
        }
        assert!(error(&["@o.npy", "o.npy"], &["a", "b"]).contains("two outputs go to 'o.npy'"));
        // Told before the call: nothing is computed for a place that there is not.
        let planned = |text: &str| Plan::new(&[text.to_owned()], &ports(&["a"])).unwrap_err().to_string();
        assert!(planned("a=@no-such-folder/o.npy").contains("cannot create 'no-such-folder/o.npy'"));
        let folder = tempfile::tempdir().unwrap();
        assert!(planned(&format!("@{}", folder.path().display())).contains("is a folder"));
        // It would have been a file of that name.
        let text = error(&["c=@o.npy"], &["a"]);
        assert!(text.contains("no output 'c'; outputs: 'a' i32"), "{text}");
    }

    #[test]
    fn tensors_of_lists_go_by_name_or_in_order() {
        assert_eq!(written(&["-", "-", "-"], &["y*", "w"]).unwrap(), "i32=0\ni32=10\ni32=1\n");
        assert_eq!(written(&["y*[1]=-"], &["y*", "w"]).unwrap(), "i32=10\n");
        assert_eq!(written(&["w=-"], &["y*", "w"]).unwrap(), "i32=1\n");
        assert_eq!(written(&["y*=", "-"], &["y*", "w"]).unwrap(), "i32=1\n");
        assert_eq!(written(&["y*=-"], &["y*", "w"]).unwrap(), "i32=0\ni32=10\n");
        let error = |texts: &[&str]| written(texts, &["y*", "w"]).unwrap_err().to_string();
        assert!(error(&["y*[2]=-"]).contains("has 2 tensors"));
        assert!(error(&["y*=@y.npy"]).contains("is a list"));
        assert!(error(&["y*=-", "y*[0]=-"]).contains("given twice"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("all.npz").display().to_string();
        written(&[&format!("y*=@{path}"), &format!("w=@{path}")], &["y*", "w"]).unwrap();
        let names = npz::read(Path::new(&path)).unwrap().into_iter().map(|(name, _)| name);
        assert_eq!(names.collect::<Vec<_>>(), ["y*[0]", "y*[1]", "w"]);
    }

    #[test]
    fn endings_say_what_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        written(&[&path("o.npy"), &format!("@{}", path("o.raw"))], &["a", "b"]).unwrap();
        assert_eq!(std::fs::read(path("o.raw")).unwrap(), [1, 0, 0, 0]);
        assert!(std::fs::read(path("o.npy")).unwrap().starts_with(b"\x93NUMPY"));
        written(&[&path("all.npz"), &format!("b=@{}", path("b.bin"))], &["a", "b", ""]).unwrap();
        let names = npz::read(Path::new(&path("all.npz"))).unwrap().into_iter().map(|(name, _)| name);
        assert_eq!(names.collect::<Vec<_>>(), ["a", "arr_2"]);
        for (name, text) in [("o.png", "its shape is none of"), ("o.webp", ".png and .jpg")] {
            let error = written(&[&format!("@{}", path(name))], &["a"]).unwrap_err().to_string();
            assert!(error.contains(text) && !Path::new(&path(name)).exists(), "{error}");
        }
        assert!(
            written(&[&format!("+{}", path("o.npz"))], &["a"]).unwrap_err().to_string().contains("appended")
        );
    }
}
