//! `org.halite.ProgressListener`, told from any thread.

use std::sync::Arc;

use halite::{CancelToken, RunOptions, Stage};
use jni::{
    Env, jni_sig, jni_str,
    objects::{JObject, JThrowable, JValue},
    refs::Global,
    vm::JavaVM,
};
use parking_lot::Mutex;

use crate::failure::{Failure, Result};

/// The name of a stage in Java's enumeration `Stage`.
fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Reading => "READING",
        Stage::Importing => "IMPORTING",
        Stage::Optimizing => "OPTIMIZING",
        Stage::Planning => "PLANNING",
        Stage::ChoosingKernels => "CHOOSING_KERNELS",
        Stage::Writing => "WRITING",
        Stage::LoadingWeights => "LOADING_WEIGHTS",
        Stage::BuildingPipelines => "BUILDING_PIPELINES",
        _ => "OTHER",
    }
}

type Raised = Arc<Mutex<Option<Global<JThrowable<'static>>>>>;

/// A listener, and what it threw.
pub struct Watcher {
    raised: Raised,
}

impl Watcher {
    /// Has the options tell a listener, unless it is null. What it throws stops the work through the token.
    pub fn watch(
        env: &mut Env<'_>,
        listener: &JObject<'_>,
        options: RunOptions,
        token: &CancelToken,
    ) -> Result<(Watcher, RunOptions)> {
        let raised = Raised::default();
        if listener.is_null() {
            return Ok((Watcher { raised }, options));
        }
        let listener = Arc::new(env.new_global_ref(listener)?);
        let (machine, token, thrown) = (env.get_java_vm()?, token.clone(), raised.clone());
        let options = options.progress(move |progress| {
            // One call at a time, as listeners expect.
            let mut thrown = thrown.lock();
            if thrown.is_some() {
                return;
            }
            let stage = stage_name(progress.stage);
            if let Some(exception) =
                tell(&machine, &listener, stage, progress.detail, progress.done, progress.total)
            {
                *thrown = Some(exception);
                token.cancel();
            }
        });
        Ok((Watcher { raised }, options))
    }

    /// The outcome of the work, or what the listener threw, pending again.
    pub fn end<T>(self, env: &mut Env<'_>, outcome: halite::Result<T>) -> Result<T> {
        let raised = self.raised.lock().take();
        match raised {
            None => Ok(outcome?),
            Some(exception) => {
                let error = match env.throw(&*exception) {
                    Ok(()) => jni::errors::Error::JavaException,
                    Err(error) => error,
                };
                Err(Failure::Machine(error))
            }
        }
    }
}

/// Calls the listener; returns what it threw.
fn tell(
    machine: &JavaVM,
    listener: &Global<JObject<'static>>,
    stage: &str,
    detail: &str,
    done: u64,
    total: u64,
) -> Option<Global<JThrowable<'static>>> {
    let told = machine.attach_current_thread(|env| -> jni::errors::Result<_> {
        let (stage, detail) = (env.new_string(stage)?, env.new_string(detail)?);
        let arguments = [
            JValue::Object(&stage),
            JValue::Object(&detail),
            JValue::Long(i64::try_from(done).unwrap_or(i64::MAX)),
            JValue::Long(i64::try_from(total).unwrap_or(i64::MAX)),
        ];
        let signature = jni_sig!("(Ljava/lang/String;Ljava/lang/String;JJ)V");
        let called = env.call_method(&**listener, jni_str!("tell"), signature, &arguments);
        let Some(exception) = env.exception_occurred() else {
            return called.map(|_| None);
        };
        env.exception_clear();
        env.new_global_ref(exception).map(Some)
    });
    // A virtual machine that takes no calls any more is going away: nobody is told then.
    told.unwrap_or_default()
}
