//! The wait for what drivers make of device code in the background, before a recording that needs it is executed: a
//! wait that can be cancelled, and that tells how far it is.

use std::sync::{
    Arc, Weak,
    atomic::{AtomicBool, Ordering},
};

use halite_abi::{Result, ResultExt};
use halite_hal::{Deadline, Executable};
use halite_vm::Invocation;
use parking_lot::Mutex;

use super::wait::SLICE;
use crate::progress::Progress;

/// Device code (`!hal.executable`), and which of its functions are known to be ready.
#[derive(Debug)]
pub struct ExecutableObject {
    /// The code.
    pub executable: Arc<dyn Executable>,
    built: Box<[AtomicBool]>,
}

impl ExecutableObject {
    pub(super) fn new(executable: Arc<dyn Executable>) -> Self {
        let built = executable.functions().iter().map(|_| AtomicBool::new(false)).collect();
        ExecutableObject { executable, built }
    }

    /// Whether nobody has to wait for the function any more.
    pub(super) fn is_built(&self, function: u32) -> bool {
        self.built.get(function as usize).is_none_or(|built| built.load(Ordering::Relaxed))
    }

    fn note_built(&self, functions: &[u32]) {
        for built in functions.iter().filter_map(|f| self.built.get(*f as usize)) {
            built.store(true, Ordering::Relaxed);
        }
    }

    fn count_built(&self) -> Result<u64> {
        let all: Vec<u32> = (0..self.built.len() as u32).collect();
        self.executable.wait_built(&all, Deadline::Now).map(|count| count as u64)
    }
}

/// Functions that a recording dispatches and that were not ready when they were recorded.
#[derive(Debug, Default)]
pub(super) struct Unbuilt(Mutex<Vec<(Arc<ExecutableObject>, Vec<u32>)>>);

impl Unbuilt {
    /// Adds a function of an executable.
    pub(super) fn add(&self, executable: &Arc<ExecutableObject>, function: u32) {
        let mut list = self.0.lock();
        match list.iter_mut().find(|(known, _)| Arc::ptr_eq(known, executable)) {
            Some((_, functions)) if functions.contains(&function) => {}
            Some((_, functions)) => functions.push(function),
            None => list.push((executable.clone(), vec![function])),
        }
    }

    /// Waits until all are ready. CANCELLED and DEADLINE_EXCEEDED say how far the work was.
    pub(super) fn wait(&self, executables: &Executables, invocation: &Invocation) -> Result<()> {
        let mut list = self.0.lock();
        while let Some((object, functions)) = list.last() {
            executables.wait(object, functions, invocation)?;
            object.note_built(functions);
            list.pop();
        }
        Ok(())
    }
}

/// The executables of a session.
#[derive(Debug)]
pub(super) struct Executables {
    all: Mutex<Vec<Weak<ExecutableObject>>>,
    progress: Progress,
}

impl Executables {
    pub(super) fn new(progress: Progress) -> Self {
        Executables { all: Mutex::default(), progress }
    }

    /// Remembers an executable.
    pub(super) fn add(&self, executable: &Arc<ExecutableObject>) {
        let mut all = self.all.lock();
        if all.len() == all.capacity() {
            all.retain(|known| known.strong_count() > 0);
        }
        all.push(Arc::downgrade(executable));
    }

    /// Functions of all executables that are ready, and all of them.
    fn count(&self) -> Result<(u64, u64)> {
        let all: Vec<_> = self.all.lock().iter().filter_map(Weak::upgrade).collect();
        all.iter().try_fold((0, 0), |(done, total), executable| {
            Ok((done + executable.count_built()?, total + executable.built.len() as u64))
        })
    }

    fn wait(&self, object: &ExecutableObject, functions: &[u32], invocation: &Invocation) -> Result<()> {
        let patient = invocation.cancel.is_none() && !self.progress.is_watched();
        let deadline = invocation.deadline.map_or(Deadline::Never, Deadline::At);
        loop {
            let until = if patient { deadline } else { deadline.min(Deadline::after(SLICE)) };
            let ready = object.executable.wait_built(functions, until)?;
            if self.progress.is_watched() {
                let (done, total) = self.count()?;
                self.progress.report(done, total);
            }
            if ready >= functions.len() {
                return Ok(());
            }
            if let Err(stop) = invocation.check() {
                let (done, total) = self.count()?;
                return Err(stop).context(|| format!("while {done} of {total} pipelines were built"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{any::Any, sync::atomic::AtomicUsize};

    use halite_abi::Code;
    use halite_hal::FunctionInfo;

    use super::*;
    use crate::{CancelToken, progress::PIPELINES};

    /// Two functions; the second look finds one of them, the fourth both.
    #[derive(Debug)]
    struct Slow {
        functions: Vec<FunctionInfo>,
        looks: AtomicUsize,
        ends: bool,
    }

    impl Executable for Slow {
        fn device_id(&self) -> u64 {
            1
        }

        fn functions(&self) -> &[FunctionInfo] {
            &self.functions
        }

        fn wait_built(&self, functions: &[u32], deadline: Deadline) -> Result<usize> {
            let looks = match deadline {
                Deadline::Now => self.looks.load(Ordering::Relaxed),
                _ => self.looks.fetch_add(1, Ordering::Relaxed) + 1,
            };
            Ok(if self.ends { functions.len().min(looks / 2) } else { 0 })
        }

        fn as_any(&self) -> &dyn Any {
            self
        }
    }

    fn slow(ends: bool) -> Arc<ExecutableObject> {
        let function = |name: &str| FunctionInfo {
            name: name.to_owned(),
            binding_count: 0,
            constant_count: 0,
            workgroup_size: [1; 3],
        };
        let functions = vec![function("a"), function("b")];
        Arc::new(ExecutableObject::new(Arc::new(Slow { functions, looks: AtomicUsize::new(0), ends })))
    }

    #[test]
    fn a_wait_tells_how_far_it_is() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let log = told.clone();
        let sink = Arc::new(move |stage: &str, done, total| log.lock().push((stage.to_owned(), done, total)));
        let executables = Executables::new(Progress::new(Some(sink), PIPELINES));
        let (object, unbuilt) = (slow(true), Unbuilt::default());
        executables.add(&object);
        for function in [0, 1, 0] {
            unbuilt.add(&object, function);
        }
        unbuilt.wait(&executables, &Invocation::default()).unwrap();
        let stage = || "pipelines".to_owned();
        assert_eq!(*told.lock(), [(stage(), 0, 2), (stage(), 1, 2), (stage(), 2, 2)]);
        assert!(object.is_built(0) && object.is_built(1));
    }

    #[test]
    fn a_wait_ends_when_it_is_cancelled_or_late_and_can_be_repeated() {
        let executables = Executables::new(Progress::default());
        let (object, unbuilt) = (slow(false), Unbuilt::default());
        executables.add(&object);
        unbuilt.add(&object, 1);
        let cancel = CancelToken::new();
        cancel.cancel();
        let cancelled = Invocation { deadline: None, cancel: Some(cancel.flag()) };
        let late = Invocation::until(std::time::Instant::now());
        for (limits, code) in [(cancelled, Code::Cancelled), (late, Code::DeadlineExceeded)] {
            let e = unbuilt.wait(&executables, &limits).unwrap_err();
            assert!(e.code() == code && e.to_string().contains("while 0 of 2 pipelines were built"), "{e}");
        }
        assert!(!object.is_built(1));
    }
}
