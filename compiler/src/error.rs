//! Why a model is not compiled, and where in it.

use std::fmt;

use halite_sizes::Region;

use crate::{SourceLocation, Stage};

/// Most bytes of a reason: it may name what a model holds, such as all of a list.
const LONGEST_REASON: usize = 4096;
/// Most operators that a message lists.
const MOST_OPERATORS: usize = 32;

/// A text that names nothing there is: a format, a time between passes. It lists what there is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnknownName(String);

impl UnknownName {
    pub(crate) fn new(text: String) -> UnknownName {
        UnknownName(text)
    }
}

/// Why a model is not compiled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The model is damaged, or contradicts itself or its format's rules.
    #[error("{location}: {reason}")]
    Invalid {
        /// Where.
        location: SourceLocation,
        /// What is wrong.
        reason: String,
    },
    /// The model is right, but something in it is not supported.
    #[error("{location}: {reason}")]
    Unsupported {
        /// Where.
        location: SourceLocation,
        /// What is not supported, and what would be.
        reason: String,
    },
    /// Operators of the model have no importer. All of them are listed, those in branches, loops and functions too.
    #[error("{}", all_of(operators))]
    UnsupportedOperators {
        /// The operators, by their first node; at least one.
        operators: Vec<UnsupportedOperator>,
    },
    /// What decides the sizes of tensors depends on inputs whose values are not known.
    #[error(
        "{location}: {what} has to be known when the model is compiled; it depends on {}{}",
        depends(inputs),
        beside(unsupported)
    )]
    NeedsValues {
        /// Where.
        location: SourceLocation,
        /// What has to be known.
        what: String,
        /// The inputs of the function that it depends on; empty when it comes out of a loop or branch.
        inputs: Vec<String>,
        /// Operators of the model without an importer: known values may leave out the branches that they are in, or not.
        unsupported: Vec<UnsupportedOperator>,
    },
    /// What is made does not hold for all sizes that were asked for together.
    #[error("{location}: this holds where {guard}, which is not so for other sizes that were asked for")]
    OtherSizes {
        /// Where.
        location: SourceLocation,
        /// What has to be so.
        guard: String,
        /// The sizes for which it held until there.
        region: Box<Region>,
    },
    /// Sizes or other choices that the caller has to make are missing or wrong.
    #[error("{0}")]
    Request(String),
    /// No kernel of a target computes an operation.
    #[error("{location}: no kernel for {target} computes {operation}: {reason}")]
    NoKernel {
        /// Where.
        location: SourceLocation,
        /// The target's triple.
        target: String,
        /// The operation.
        operation: String,
        /// Why each candidate was refused.
        reason: String,
    },
    /// A file of the model could not be read.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A module could not be written.
    #[error("the module cannot be written: {0}")]
    Write(String),
    /// The caller ended the work; see [`crate::Control::cancel`].
    #[error("compiling was cancelled while {stage}")]
    Cancelled {
        /// What was being done.
        stage: Stage,
    },
    /// The deadline of [`crate::Control`] passed.
    #[error(
        "the deadline passed while {stage}; give more time, or keep the compiled module for the next run"
    )]
    DeadlineExceeded {
        /// What was being done.
        stage: Stage,
    },
}

impl CompileError {
    /// A model that is wrong at a place.
    pub fn invalid(location: &SourceLocation, reason: impl Into<String>) -> Self {
        CompileError::Invalid { location: location.clone(), reason: shortened(reason.into()) }
    }

    /// Whether the model is right, as far as it was read, and asks for what is not supported.
    pub fn is_unsupported(&self) -> bool {
        matches!(
            self,
            CompileError::Unsupported { .. }
                | CompileError::UnsupportedOperators { .. }
                | CompileError::NoKernel { .. }
        )
    }

    /// Whether the caller's control ended the work: nothing is known to be wrong with the model.
    pub fn is_stop(&self) -> bool {
        matches!(self, CompileError::Cancelled { .. } | CompileError::DeadlineExceeded { .. })
    }

    /// Something that is not supported at a place.
    pub fn unsupported(location: &SourceLocation, reason: impl Into<String>) -> Self {
        CompileError::Unsupported { location: location.clone(), reason: shortened(reason.into()) }
    }
}

/// A reason, without its end where it is far too long to be read.
fn shortened(mut reason: String) -> String {
    let length = reason.len();
    if length > LONGEST_REASON {
        reason.truncate(reason.floor_char_boundary(LONGEST_REASON));
        reason.shrink_to_fit();
        reason.push_str(&format!("… ({length} bytes)"));
    }
    reason
}

/// An operator without an importer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsupportedOperator {
    /// Its name in the model's format, such as `NonZero` or `aten::cumsum.out`.
    pub name: String,
    /// The domain and its version that the model uses, of formats that have them: `ai.onnx` is ONNX's own.
    pub domain: Option<(String, i64)>,
    /// Nodes of the model that use it. Those of a function or a loop's body count once.
    pub count: usize,
    /// The first of them.
    pub first: SourceLocation,
    /// Why it is not supported, where there is more to say than that nobody has written it.
    pub reason: Option<String>,
}

impl UnsupportedOperator {
    /// The same operator: name, domain and version.
    pub(crate) fn is_same(&self, other: &UnsupportedOperator) -> bool {
        (&self.name, &self.domain) == (&other.name, &other.domain)
    }

    /// Adds one to a list, which counts those that are there.
    pub(crate) fn add_to(self, list: &mut Vec<UnsupportedOperator>) {
        match list.iter_mut().find(|own| own.is_same(&self)) {
            Some(own) => own.count += self.count,
            None => list.push(self),
        }
    }
}

impl fmt::Display for UnsupportedOperator {
    /// `NonZero of ai.onnx 20 (2 nodes, the first is NonZero 'indices')`; without the reason.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some((domain, version)) = &self.domain {
            write!(f, " of {domain} {version}")?;
        }
        match self.count {
            1 => write!(f, " ({})", self.first),
            count => write!(f, " ({count} nodes, the first is {})", self.first),
        }
    }
}

/// Operators as a sentence, those with the same reason together.
fn all_of(operators: &[UnsupportedOperator]) -> String {
    let mut groups: Vec<(&Option<String>, Vec<String>)> = Vec::new();
    for operator in operators.iter().take(MOST_OPERATORS) {
        match groups.iter_mut().find(|(reason, _)| *reason == &operator.reason) {
            Some((_, all)) => all.push(operator.to_string()),
            None => groups.push((&operator.reason, vec![operator.to_string()])),
        }
    }
    let group = |(reason, all): &(&Option<String>, Vec<String>)| match reason {
        Some(reason) => format!("{}: {reason}", all.join(", ")),
        None => all.join(", "),
    };
    let listed: Vec<_> = groups.iter().map(group).collect();
    let more = operators.len().saturating_sub(MOST_OPERATORS);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let what = if operators.len() == 1 { "an operator" } else { &format!("{} operators", operators.len()) };
    let verb = if operators.len() == 1 { "is" } else { "are" };
    format!("{what} of this model {verb} not supported: {}{more}", listed.join("; "))
}

/// What else would be met, as the end of a sentence.
fn beside(unsupported: &[UnsupportedOperator]) -> String {
    match unsupported {
        [] => String::new(),
        all => format!(". Unless these values leave them out, {}", all_of(all)),
    }
}

fn depends(inputs: &[String]) -> String {
    match inputs {
        [] => "what is computed at run time only".to_owned(),
        all => format!("the values of {}: bind them (--value NAME=VALUES)", all.join(", ")),
    }
}

/// Fails where something needed a size as a number that only data decide, or holds only for other sizes than those asked for.
pub(crate) fn unpinned(location: &SourceLocation) -> Result<(), CompileError> {
    if let Some((guard, region)) = halite_sizes::noted_at(location) {
        return Err(CompileError::OtherSizes { location: location.clone(), guard, region: Box::new(region) });
    }
    match halite_sizes::take_pinned() {
        None => Ok(()),
        Some(symbol) => Err(CompileError::unsupported(
            location,
            format!("this needs a size when the model is compiled that only data decide: {symbol}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_not_as_long_as_what_a_model_holds() {
        let place = SourceLocation::new("a node".to_owned());
        for text in ["x".repeat(1 << 20), "é".repeat(1 << 20)] {
            let told = CompileError::invalid(&place, text.clone()).to_string();
            assert!(told.len() < 5000 && told.ends_with(&format!("… ({} bytes)", text.len())), "{told}");
            assert!(CompileError::unsupported(&place, text).to_string().len() < 5000);
        }
        let whole = "x".repeat(LONGEST_REASON);
        assert!(CompileError::invalid(&place, whole.clone()).to_string().ends_with(&whole));
    }

    #[test]
    fn operators_are_told_by_reason() {
        let of = |name: &str, count, reason: Option<&str>| UnsupportedOperator {
            name: name.to_owned(),
            domain: None,
            count,
            first: SourceLocation::new(format!("call of {name}")),
            reason: reason.map(str::to_owned),
        };
        let told = |operators| CompileError::UnsupportedOperators { operators }.to_string();
        assert_eq!(
            told(vec![of("a", 1, Some("why")), of("b", 1, None), of("c", 2, Some("why"))]),
            "3 operators of this model are not supported: a (call of a), c (2 nodes, the first is call of c): why; b (call of b)"
        );
        assert_eq!(told(vec![of("a", 1, None)]), "an operator of this model is not supported: a (call of a)");
        let many = (0..40).map(|i| of(&i.to_string(), 1, None)).collect();
        assert!(told(many).ends_with("; and 8 more"));
    }
}
