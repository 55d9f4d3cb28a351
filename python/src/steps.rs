//! Steps of several sequences together: `Generator.step`, and `halite.Sampler`, which chooses the tokens of one.

use std::sync::Arc;

use halite::{Next, Sampler as Inner, Stop};
use parking_lot::{Mutex, MutexGuard};
use pyo3::{IntoPyObjectExt, prelude::*};

use crate::{
    error::{fault, invalid},
    options::Bounds,
    sequence::Sequence,
    stream::Wanted,
    tokens::{self, Tokens},
    work::long,
};

/// Chooses the tokens of a sequence, one behind the other. Numbers that are not given are the library's own.
#[pyclass(frozen, module = "halite")]
pub struct Sampler {
    inner: Arc<Mutex<Inner>>,
    ignore_end: bool,
}

#[pymethods]
impl Sampler {
    #[new]
    #[pyo3(signature = (
        *, temperature=None, top_k=None, top_p=None, min_p=None, repeat_penalty=None, repeat_last=None, seed=None, ignore_end=false
    ))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python, and defaults")]
    fn new(
        temperature: Option<f32>,
        top_k: Option<usize>,
        top_p: Option<f32>,
        min_p: Option<f32>,
        repeat_penalty: Option<f32>,
        repeat_last: Option<usize>,
        seed: Option<u64>,
        ignore_end: bool,
    ) -> Sampler {
        let wanted = Wanted {
            temperature,
            top_k,
            top_p,
            min_p,
            repeat_penalty,
            repeat_last,
            seed,
            ignore_end,
            json_schema: None,
        };
        Sampler::of(Inner::new(wanted.sampling()), ignore_end)
    }

    fn __repr__(&self) -> String {
        "Sampler()".to_owned()
    }
}

impl Sampler {
    /// One that chooses as this does.
    pub fn of(inner: Inner, ignore_end: bool) -> Sampler {
        Sampler { inner: Arc::new(Mutex::new(inner)), ignore_end }
    }
}

/// A sequence with its sampler.
type Writer<'py> = (Bound<'py, Sequence>, Bound<'py, Sampler>);

/// What takes a step, without Python.
struct Own {
    tokens: Tokens,
    sampler: Arc<Mutex<Inner>>,
    ignore_end: bool,
}

/// The next token of each sequence, or why there is none: a token's number, or a name.
pub fn step(
    py: Python<'_>,
    generator: &halite::Generator,
    writers: &[Writer<'_>],
    bounds: &Bounds,
) -> PyResult<Vec<Py<PyAny>>> {
    let own = writers.iter().map(|(sequence, sampler)| {
        let (sequence, sampler) = (sequence.get(), sampler.get());
        Own {
            tokens: sequence.tokens.clone(),
            sampler: sampler.inner.clone(),
            ignore_end: sampler.ignore_end,
        }
    });
    let own: Vec<Own> = own.collect();
    for (place, one) in own.iter().enumerate() {
        let is_same =
            |other: &Own| one.tokens.is_same(&other.tokens) || Arc::ptr_eq(&one.sampler, &other.sampler);
        if own[..place].iter().any(is_same) {
            return Err(invalid(py, "a sequence, and a sampler, takes part in a step once"));
        }
    }
    let (generator, options) = (generator.clone(), bounds.options.clone());
    let next = long(py, &bounds.token, move || {
        // One order for all threads.
        let mut order: Vec<&Own> = own.iter().collect();
        order.sort_by_key(|one| one.tokens.address());
        let mut held = Vec::new();
        for one in order {
            let Some(guard) = one.tokens.lock() else { return Ok(None) };
            held.push((one.tokens.address(), guard));
        }
        let mut samplers: Vec<MutexGuard<'_, Inner>> = own.iter().map(|one| one.sampler.lock()).collect();
        held.sort_by_key(|(address, _)| own.iter().position(|one| one.tokens.address() == *address));
        let mut members = Vec::new();
        for (((_, sequence), sampler), one) in held.iter_mut().zip(&mut samplers).zip(&own) {
            sequence.ignore_end(one.ignore_end);
            members.push((&mut **sequence, &mut **sampler));
        }
        generator.step(&mut members, &options).map(Some)
    })?;
    let next = next.ok_or_else(|| tokens::in_use(py))?;
    next.into_iter().map(|next| told(py, next)).collect()
}

fn told(py: Python<'_>, next: Next) -> PyResult<Py<PyAny>> {
    match next {
        Next::Token(token) => token.into_py_any(py),
        Next::Stop(Stop::End) => "end".into_py_any(py),
        Next::Stop(Stop::Context) => "context".into_py_any(py),
        other => Err(fault(py, &format!("this module has no name for {other:?}"))),
    }
}
