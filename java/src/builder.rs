//! Building a session out of what `org.halite.Session.Builder` was told.

use std::io::{self, Read};

use halite::{Cache, Drivers, LoadMode, Options, Precision, Session, SessionBuilder, Sizes, Source};
use jni::{
    Env, EnvUnowned,
    objects::{JByteArray, JByteBuffer, JClass, JObject, JObjectArray, JString},
    sys::{jint, jlong},
};

use crate::{
    bytes::Direct,
    calls, convert,
    failure::{Failure, Result, enter},
    held::{Held, hold},
};

/// Builds a session.
///
/// Settings are texts in threes: what is set, and two values whose meaning `set` tells. The model is one of: a setting `model`, an array
/// of bytes, a direct buffer, or an open file with the part that counts.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_halite_Native_session<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    settings: JObjectArray<'local, JString<'local>>,
    array: JByteArray<'local>,
    buffer: JByteBuffer<'local>,
    file: jint,
    offset: jlong,
    length: jlong,
    timeout: jlong,
    token: jlong,
    listener: JObject<'local>,
) -> jlong {
    enter(env, |env| {
        let builder = builder(env, &settings, &array, &buffer, (file, offset, length))?;
        let session = calls::bounded(env, timeout, token, &listener, |options| {
            builder.options(options.clone()).build()
        })?;
        Ok(hold(Held::Session(session)))
    })
}

/// What Java's half was told, as a builder that has its model.
pub fn builder(
    env: &mut Env<'_>,
    settings: &JObjectArray<'_, JString<'_>>,
    array: &JByteArray<'_>,
    buffer: &JByteBuffer<'_>,
    file: (jint, jlong, jlong),
) -> Result<SessionBuilder> {
    let mut chosen = Chosen::default();
    for setting in convert::texts(env, settings)?.chunks_exact(3) {
        chosen.set(&setting[0], &setting[1], &setting[2])?;
    }
    let source = source(env, &chosen, array, buffer, file)?;
    Ok(chosen.builder().model(source))
}

/// Where the model comes from.
fn source(
    env: &Env<'_>,
    chosen: &Chosen,
    array: &JByteArray<'_>,
    buffer: &JByteBuffer<'_>,
    (file, offset, length): (jint, jlong, jlong),
) -> Result<Source> {
    let named = |source: Source| match &chosen.name {
        Some(name) => source.named(name),
        None => source,
    };
    if let Some(path) = &chosen.path {
        Ok(Source::path(path))
    } else if !array.is_null() {
        Ok(named(Source::bytes(env.convert_byte_array(array)?)))
    } else if !buffer.is_null() {
        let (offset, length) = (jint::try_from(offset), jint::try_from(length));
        let (Ok(offset), Ok(length)) = (offset, length) else {
            return Err(Failure::invalid("a buffer has at most 2 GiB"));
        };
        Ok(named(Source::bytes(Direct::part(env, buffer, offset, length)?.bytes().to_vec())))
    } else if file >= 0 {
        Ok(named(Source::reader(part_of_file(file, offset, length)?)))
    } else {
        Err(Failure::invalid("a session needs a model"))
    }
}

/// The part of an open file, whose own place does not move. A negative length is all to the end.
#[cfg(unix)]
fn part_of_file(file: jint, offset: jlong, length: jlong) -> Result<impl Read + Send + 'static> {
    use std::{
        fs::File,
        os::{fd::BorrowedFd, unix::fs::FileExt},
    };

    /// Reads at places of its own.
    struct Part {
        file: File,
        place: u64,
        end: u64,
    }

    impl Read for Part {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let left = usize::try_from(self.end - self.place).unwrap_or(usize::MAX);
            let most = buffer.len().min(left);
            let count = self.file.read_at(&mut buffer[..most], self.place)?;
            self.place += count as u64;
            Ok(count)
        }
    }

    let failed = |error: io::Error| Failure::invalid(format!("the file cannot be read: {error}"));
    // SAFETY: the number is not negative. Java's half vouches that the file stays open during this call, in which it is only duplicated;
    // a number that no file has gives an error.
    let own = unsafe { BorrowedFd::borrow_raw(file) }.try_clone_to_owned().map_err(failed)?;
    let file = File::from(own);
    let place = u64::try_from(offset).map_err(|_| Failure::invalid("the offset is negative"))?;
    let end = match u64::try_from(length) {
        Ok(length) => place.saturating_add(length),
        Err(_) => file.metadata().map_err(failed)?.len().max(place),
    };
    Ok(Part { file, place, end })
}

/// Where files have no numbers.
#[cfg(not(unix))]
fn part_of_file(_file: jint, _offset: jlong, _length: jlong) -> Result<impl Read + Send + 'static> {
    Err::<io::Empty, _>(Failure::invalid("open files are taken on Unix and Android; give a path or bytes"))
}

/// What the builder was told.
#[derive(Default)]
struct Chosen {
    path: Option<String>,
    name: Option<String>,
    devices: Vec<String>,
    options: Options,
    cache: Option<Cache>,
    mode: LoadMode,
    precision: Precision,
    sizes: Sizes,
    states: Vec<(String, String)>,
    parameters: Vec<(String, String)>,
}

impl Chosen {
    /// Takes a setting.
    fn set(&mut self, what: &str, first: &str, second: &str) -> Result<()> {
        let number =
            || second.parse::<usize>().map_err(|_| Failure::invalid(format!("'{second}' is no size")));
        match what {
            "model" => self.path = Some(first.to_owned()),
            "name" => self.name = Some(first.to_owned()),
            "device" => self.devices.push(first.to_owned()),
            "option" => drop(self.options.insert(first.to_owned(), second.to_owned())),
            "cache" if first.is_empty() => self.cache = Some(Cache::off()),
            "cache" => self.cache = Some(Cache::at(first)),
            "preload" => self.mode = LoadMode::Preload,
            "f16" => self.precision = Precision::F16,
            "dimension" => self.sizes = std::mem::take(&mut self.sizes).dimension(first, [number()?]),
            "state" => self.states.push((first.to_owned(), second.to_owned())),
            "parameters" => self.parameters.push((first.to_owned(), second.to_owned())),
            other => return Err(Failure::invalid(format!("there is no setting '{other}'"))),
        }
        Ok(())
    }

    fn builder(&self) -> SessionBuilder {
        let drivers = Drivers::linked().options(self.options.clone());
        let mut builder = Session::builder()
            .drivers(&drivers)
            .load_mode(self.mode)
            .precision(self.precision)
            .sizes(self.sizes.clone());
        for device in &self.devices {
            builder = builder.device(device.as_str());
        }
        if let Some(cache) = &self.cache {
            builder = builder.cache(cache.clone());
        }
        for (input, output) in &self.states {
            builder = builder.state(input, output);
        }
        for (scope, path) in &self.parameters {
            builder = builder.parameters(scope, path);
        }
        builder
    }
}
