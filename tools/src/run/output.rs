//! `--output`: where results go, by name or in order.

use std::{
    fs::{File, OpenOptions},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use halite::hal::ResultExt;

use crate::{
    console::{Failure, Result},
    engine::{ElementType, HostTensor, Value, npy, status},
    inputs::{has_extension, name_of},
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

impl Destination {
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
                let error = status!(
                    Unimplemented,
                    "unsupported output mode specification '{text}'; it is -, @FILE, +FILE or nothing, behind NAME= or in order"
                );
                return Err(error.annotate("outputting results").into());
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

/// Where all results go.
#[derive(Debug)]
pub(super) struct Plan {
    /// Places by name: the result and its place.
    named: Vec<(usize, Destination)>,
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
                Some((index, place)) if plan.named.iter().all(|(other, _)| *other != index) => {
                    plan.named.push((index, Destination::parse(place)?));
                }
                Some((index, _)) => {
                    return Err(Failure::Usage(format!("output '{}' is given twice", ports[index].name)));
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
        Ok(plan)
    }

    /// Writes each result where it goes.
    pub fn write(
        &self,
        ports: &[Port],
        results: &[Value],
        max_elements: u64,
        out: &mut dyn Write,
    ) -> Result<()> {
        let free: Vec<usize> =
            (0..results.len()).filter(|i| self.named.iter().all(|(named, _)| named != i)).collect();
        let strict = self.named.is_empty() && self.rest.is_none();
        if self.ordered.len() > free.len() || (strict && self.ordered.len() != free.len()) {
            return Err(status!(
                OutOfRange,
                "{} outputs specified but the provided variant list only has {} elements; give one --output for each \
                 result, or none",
                self.ordered.len() + self.named.len(),
                results.len()
            )
            .annotate("outputting results")
            .into());
        }
        let ordered = free.iter().copied().zip(&self.ordered);
        let mut all: Vec<(usize, &Destination)> =
            self.named.iter().map(|(i, place)| (*i, place)).chain(ordered).collect();
        all.sort_by_key(|(index, _)| *index);
        for (index, place) in &all {
            let value = results.get(*index).ok_or_else(|| {
                Failure::invalid(format!("the function gave {} results, not {}", results.len(), index + 1))
            })?;
            put(place, &name(ports, *index), value, max_elements, out)?;
        }
        if let Some(path) = &self.rest {
            let left = (0..results.len()).filter(|i| all.iter().all(|(taken, _)| taken != i));
            let arrays =
                left.map(|i| Ok((name(ports, i), to_tensor(&results[i])?))).collect::<Result<Vec<_>>>()?;
            archive(path, &arrays)?;
        }
        Ok(())
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

fn put(place: &Destination, name: &str, value: &Value, max_elements: u64, out: &mut dyn Write) -> Result<()> {
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
        Destination::Archive(path) => archive(path, &[(name.to_owned(), to_tensor(value)?)]),
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
        let results: Vec<Value> = (0..names.len()).map(|i| Value::I32(i as i32)).collect();
        let mut out = Vec::new();
        Plan::new(&texts, &ports)?.write(&ports, &results, 10, &mut out)?;
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
        assert!(error(&["o.txt"], &["a"]).contains("unsupported output mode"));
        // It would have been a file of that name.
        let text = error(&["c=@o.npy"], &["a"]);
        assert!(text.contains("no output 'c'; outputs: 'a' i32"), "{text}");
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
