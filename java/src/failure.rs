//! Failures as exceptions of the class `org.halite.HaliteException`.

use std::any::Any;

use halite::ErrorKind;
use jni::{
    Env, EnvUnowned,
    errors::ErrorPolicy,
    jni_sig, jni_str,
    objects::{JObject, JThrowable},
};

/// Why a native method did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The library failed.
    #[error("{0}")]
    Halite(#[from] halite::Error),
    /// The virtual machine failed, or an exception is pending.
    #[error("{0}")]
    Machine(#[from] jni::errors::Error),
    /// Java's half gave something that does not fit.
    #[error("{0}")]
    Invalid(String),
    /// A handle that was freed.
    #[error("it was closed")]
    Closed,
}

/// What native methods return.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// Something that the caller gave and that does not fit.
    pub fn invalid(text: impl Into<String>) -> Self {
        Failure::Invalid(text.into())
    }
}

/// Does the work of a native method; an exception is pending when it fails or panics, and what is returned means nothing then.
pub fn enter<'local, T: Default>(
    mut env: EnvUnowned<'local>,
    work: impl FnOnce(&mut Env<'local>) -> Result<T>,
) -> T {
    env.with_env(work).resolve::<Thrown>()
}

/// Throws.
struct Thrown;

impl<T: Default> ErrorPolicy<T, Failure> for Thrown {
    type Captures<'unowned_env_local: 'native_method, 'native_method> = ();

    fn on_error<'unowned_env_local: 'native_method, 'native_method>(
        env: &mut Env<'unowned_env_local>,
        (): &mut Self::Captures<'unowned_env_local, 'native_method>,
        failure: Failure,
    ) -> jni::errors::Result<T> {
        let message = failure.to_string();
        let (kind, code, message, context) = match &failure {
            Failure::Halite(error) => {
                (kind_name(error.kind()), error.code_name(), error.message(), error.context())
            }
            Failure::Machine(_) => ("OTHER", "INTERNAL", message.as_str(), &[][..]),
            Failure::Invalid(_) | Failure::Closed => {
                (kind_name(ErrorKind::InvalidInput), "INVALID_ARGUMENT", message.as_str(), &[][..])
            }
        };
        throw(env, message, kind, code, context)?;
        Ok(T::default())
    }

    fn on_panic<'unowned_env_local: 'native_method, 'native_method>(
        env: &mut Env<'unowned_env_local>,
        (): &mut Self::Captures<'unowned_env_local, 'native_method>,
        payload: Box<dyn Any + Send + 'static>,
    ) -> jni::errors::Result<T> {
        let what = payload.downcast_ref::<&str>().copied();
        let what = what.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic");
        throw(env, &format!("a fault of Halite, please report it: {what}"), "OTHER", "INTERNAL", &[])?;
        Ok(T::default())
    }
}

/// Throws, unless an exception is pending.
fn throw(
    env: &mut Env<'_>,
    message: &str,
    kind: &str,
    code: &str,
    context: &[String],
) -> jni::errors::Result<()> {
    if env.exception_check() {
        return Ok(());
    }
    let (message, kind, code) = (env.new_string(message)?, env.new_string(kind)?, env.new_string(code)?);
    let context = env.new_string(context.join("\n"))?;
    let (message, kind, code): (&JObject<'_>, &JObject<'_>, &JObject<'_>) = (&message, &kind, &code);
    let arguments = [message.into(), kind.into(), code.into(), (&*context).into()];
    let signature = jni_sig!("(Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;)V");
    let exception = env.new_object(jni_str!("org/halite/HaliteException"), signature, &arguments)?;
    let exception = env.cast_local::<JThrowable<'_>>(exception)?;
    match env.throw(exception) {
        // That is what this function is for.
        Ok(()) | Err(jni::errors::Error::JavaException) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The name of a kind in Java's enumeration `HaliteException.Kind`.
fn kind_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound => "NOT_FOUND",
        ErrorKind::InvalidInput => "INVALID_INPUT",
        ErrorKind::InvalidModel => "INVALID_MODEL",
        ErrorKind::Unsupported => "UNSUPPORTED",
        ErrorKind::NoDevice => "NO_DEVICE",
        ErrorKind::OutOfMemory => "OUT_OF_MEMORY",
        ErrorKind::DeadlineExceeded => "DEADLINE_EXCEEDED",
        ErrorKind::Cancelled => "CANCELLED",
        ErrorKind::DeviceLost => "DEVICE_LOST",
        ErrorKind::PermissionDenied => "PERMISSION_DENIED",
        ErrorKind::Io => "IO",
        _ => "OTHER",
    }
}
