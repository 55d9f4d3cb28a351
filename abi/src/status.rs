//! Status codes, and the error value that HAL, drivers, VM and runtime pass upward.

use std::{borrow::Cow, error::Error, fmt};

/// `Result` whose error is a [`Status`].
pub type Result<T, E = Status> = std::result::Result<T, E>;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal, $text:literal;)*) => {
        /// The status codes of the IREE VM ABI (numbers and names are part of compiled modules).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u32)]
        pub enum Code { $($(#[$doc])* $name = $value,)* }

        impl Code {
            /// Every code, in numeric order.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// The code with this number; numbers outside the table are [`Code::Unknown`]
            /// (only the low five bits carry the code, as in the VM's `fail` instruction).
            pub fn from_u32(value: u32) -> Option<Code> {
                match value & 0x1F {
                    0 => None,
                    $($value => Some(Code::$name),)*
                    _ => Some(Code::Unknown),
                }
            }

            /// Upper-case name as users know it, e.g. `INVALID_ARGUMENT`.
            pub fn name(self) -> &'static str {
                match self { $(Code::$name => $text,)* }
            }
        }
    };
}

codes! {
    /// The operation was cancelled by the caller.
    Cancelled = 1, "CANCELLED";
    /// A failure of unknown kind.
    Unknown = 2, "UNKNOWN";
    /// An argument can never be valid, whatever the state.
    InvalidArgument = 3, "INVALID_ARGUMENT";
    /// The deadline passed before the work finished.
    DeadlineExceeded = 4, "DEADLINE_EXCEEDED";
    /// A named thing does not exist.
    NotFound = 5, "NOT_FOUND";
    /// A thing to be created exists already.
    AlreadyExists = 6, "ALREADY_EXISTS";
    /// The caller may not do this.
    PermissionDenied = 7, "PERMISSION_DENIED";
    /// Memory or another resource ran out.
    ResourceExhausted = 8, "RESOURCE_EXHAUSTED";
    /// The operation needs another state than the present one.
    FailedPrecondition = 9, "FAILED_PRECONDITION";
    /// The operation was given up, usually because a thing it depends on failed.
    Aborted = 10, "ABORTED";
    /// An index or range lies outside the thing it addresses.
    OutOfRange = 11, "OUT_OF_RANGE";
    /// The operation exists but is not supported here.
    Unimplemented = 12, "UNIMPLEMENTED";
    /// An invariant of Halite itself is broken: a bug.
    Internal = 13, "INTERNAL";
    /// The service (driver, device, library) is not there.
    Unavailable = 14, "UNAVAILABLE";
    /// Data was lost or damaged beyond recovery; also device loss.
    DataLoss = 15, "DATA_LOSS";
    /// The caller is not authenticated.
    Unauthenticated = 16, "UNAUTHENTICATED";
    /// The operation is not finished yet.
    Deferred = 17, "DEFERRED";
    /// Versions or formats do not fit together.
    Incompatible = 18, "INCOMPATIBLE";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A failure: a code, a message, what the layers above added, and machine-readable details.
///
/// Printed as `CODE; message; annotation; annotation`, the innermost first. Cheap to move (one pointer).
pub struct Status(Box<Inner>);

#[derive(Clone)]
struct Inner {
    code: Code,
    message: Cow<'static, str>,
    annotations: Vec<String>,
    details: Vec<(Cow<'static, str>, String)>,
}

impl Status {
    /// A status with a message: what was asked, what exists, what to do next.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Status(Box::new(Inner {
            code,
            message: message.into(),
            annotations: Vec::new(),
            details: Vec::new(),
        }))
    }

    /// The code.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The innermost message, without annotations.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What outer layers added, innermost first.
    pub fn annotations(&self) -> &[String] {
        &self.0.annotations
    }

    /// Adds context from an outer layer, such as `invoking function 'main'`.
    #[must_use]
    pub fn annotate(mut self, context: impl Into<String>) -> Self {
        self.0.annotations.push(context.into());
        self
    }

    /// Adds a machine-readable detail, such as (`vk.result`, `ERROR_DEVICE_LOST`).
    #[must_use]
    pub fn with_detail(mut self, key: impl Into<Cow<'static, str>>, value: impl Into<String>) -> Self {
        self.0.details.push((key.into(), value.into()));
        self
    }

    /// The value of a detail, if it was given.
    pub fn detail(&self, key: &str) -> Option<&str> {
        self.0.details.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// All details in the order they were added.
    pub fn details(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.details.iter().map(|(k, v)| (k.as_ref(), v.as_str()))
    }
}

impl Clone for Status {
    fn clone(&self) -> Self {
        Status(self.0.clone())
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.0.code, self.0.message)?;
        self.0.annotations.iter().try_for_each(|a| write!(f, "; {a}"))
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)?;
        self.0.details.iter().try_for_each(|(k, v)| write!(f, " [{k}={v}]"))
    }
}

impl Error for Status {}

/// Builds a [`Status`] from a code and a format string: `status!(NotFound, "no device named {name}")`.
#[macro_export]
macro_rules! status {
    ($code:ident, $($arg:tt)+) => {
        $crate::Status::new($crate::Code::$code, ::std::format!($($arg)+))
    };
}

/// Returns `Err(status!(..))` from the enclosing function.
#[macro_export]
macro_rules! bail {
    ($code:ident, $($arg:tt)+) => { return ::std::result::Result::Err($crate::status!($code, $($arg)+)) };
}

/// Adds context to the error of a result.
pub trait ResultExt<T> {
    /// Annotates the error with what the caller was doing; `context` runs only on failure.
    fn context<C: Into<String>>(self, context: impl FnOnce() -> C) -> Result<T>;
}

impl<T> ResultExt<T> for Result<T> {
    fn context<C: Into<String>>(self, context: impl FnOnce() -> C) -> Result<T> {
        self.map_err(|status| status.annotate(context()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_vm_abi() {
        assert_eq!(Code::from_u32(0), None);
        assert_eq!(Code::from_u32(3), Some(Code::InvalidArgument));
        assert_eq!(Code::from_u32(18), Some(Code::Incompatible));
        assert_eq!(Code::from_u32(0x20 | 5), Some(Code::NotFound));
        assert_eq!(Code::from_u32(31), Some(Code::Unknown));
        for (i, code) in Code::ALL.iter().enumerate() {
            assert_eq!(*code as usize, i + 1);
        }
    }

    #[test]
    fn annotations_print_innermost_first() {
        let e: Result<()> = Err(status!(NotFound, "no {}", "x").with_detail("k", "v"));
        let e = e.context(|| "inner").context(|| "outer").expect_err("built as an error");
        assert_eq!(e.to_string(), "NOT_FOUND; no x; inner; outer");
        assert_eq!(e.detail("k"), Some("v"));
        assert_eq!(size_of::<Status>(), size_of::<usize>());
    }
}
