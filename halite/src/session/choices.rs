//! What a caller chooses for a session of a model: precision, tuning, sizes, how many versions stay loaded.

use halite_compiler::{TokenChoice, frontends::CacheFormats};

use super::{SessionBuilder, states::StateChoice};
use crate::{Precision, Tuning, compile::Sizes};

/// Versions of a model that stay loaded, unless the caller says otherwise.
const MOST_VERSIONS: usize = 32;

/// What a caller chooses for models.
#[derive(Clone, Debug)]
pub(crate) struct ModelOptions {
    pub precision: Precision,
    pub tuning: Tuning,
    pub sizes: Sizes,
    pub most_versions: usize,
    pub states: StateChoice,
    /// How the caches of language models hold keys and values.
    pub caches: CacheFormats,
    /// Functions that choose tokens, and whether the model has them on processors, too.
    pub choice: Option<(TokenChoice, bool)>,
    /// Whether a language model has functions that take a step of several sequences at once.
    pub batches: bool,
    /// Whether a language model has a function that looks at what another model wrote.
    pub verifies: bool,
    /// Whether versions are compiled before they are needed; unless the caller says so, those of functions with caches that grow.
    pub ahead: Option<bool>,
}

impl Default for ModelOptions {
    fn default() -> Self {
        ModelOptions {
            precision: Precision::default(),
            tuning: Tuning::default(),
            sizes: Sizes::default(),
            most_versions: MOST_VERSIONS,
            states: StateChoice { named: Vec::new(), found: true },
            caches: CacheFormats::default(),
            choice: None,
            batches: false,
            verifies: false,
            ahead: None,
        }
    }
}

impl SessionBuilder {
    /// Which floats a model computes with inside; by default its own. Inputs and outputs keep their types.
    #[must_use]
    pub fn precision(mut self, precision: Precision) -> Self {
        self.model.precision = precision;
        self
    }

    /// Adds functions to a language model that take a step of several sequences at once.
    #[cfg(feature = "text")]
    pub(crate) fn decode_batches(mut self) -> Self {
        self.model.batches = true;
        self
    }

    /// Adds a function to a language model that looks at what another model wrote.
    #[cfg(feature = "text")]
    pub(crate) fn verify_drafts(mut self) -> Self {
        self.model.verifies = true;
        self
    }

    /// Which measurements decide the choice of kernels; by default those that ship with Halite, and this user's own.
    #[must_use]
    pub fn tuning(mut self, tuning: Tuning) -> Self {
        self.model.tuning = tuning;
        self
    }

    /// How the caches of a language model hold keys and values.
    #[cfg(feature = "text")]
    pub(crate) fn hold_caches(mut self, formats: CacheFormats) -> Self {
        self.model.caches = formats;
        self
    }

    /// Adds functions to a language model that choose the next token on the device: on GPUs, and on processors where these have to.
    #[cfg(feature = "text")]
    pub(crate) fn choose_tokens(mut self, choice: TokenChoice, on_processors: bool) -> Self {
        self.model.choice = Some((choice, on_processors));
        self
    }

    /// The size of an open dimension of a model, by its name. When all of them have sizes, the model is compiled when the session
    /// is built, and takes no other sizes.
    #[must_use]
    pub fn dimension(mut self, name: impl Into<String>, size: usize) -> Self {
        self.model.sizes.merge(Sizes::new().dimension(name, [size]));
        self
    }

    /// The bounds of an open dimension of a model, by its name: the model is compiled for all sizes within them when the session is
    /// built, and takes no other sizes.
    #[must_use]
    pub fn bound(mut self, name: impl Into<String>, sizes: std::ops::RangeInclusive<usize>) -> Self {
        self.model.sizes.merge(Sizes::new().dimension(name, sizes));
        self
    }

    /// Sizes and values that a model leaves open, in all forms. If they leave nothing open, the model is compiled when the session
    /// is built.
    #[must_use]
    pub fn sizes(mut self, sizes: Sizes) -> Self {
        self.model.sizes.merge(sizes);
        self
    }

    /// The seed of random numbers that the model's operators draw; see [`Sizes::seed`].
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.model.sizes.merge(Sizes::new().seed(seed));
        self
    }

    /// Whether versions of a model are compiled on a thread before calls need them. Unless this says otherwise, they are where states are
    /// caches that grow, as those of a decoder: with its prompt the version for the steps behind it, and then the one behind the sizes that
    /// the loaded ones hold for. With `true` so where any sizes grow by the same step from call to call, with `false` nowhere; and never in
    /// sessions for strangers' programs ([`SessionBuilder::untrusted`]). The call that reaches the sizes loads the version. One
    /// thread works at a time; it uses no device, gives the same version as the call would make, and ends with the session.
    #[must_use]
    pub fn compile_ahead(mut self, is_on: bool) -> Self {
        self.model.ahead = Some(is_on);
        self
    }

    /// Most compiled versions of a model that stay loaded, which have weights on the device together; 32 unless this says otherwise.
    /// The first sizes get a version of their own; later ones share versions that hold for many sizes. Three quarters are for these.
    /// Of the others those that were used longest ago go first, and all go when the device has no memory for another.
    #[must_use]
    pub fn max_loaded_versions(mut self, count: usize) -> Self {
        self.model.most_versions = count;
        self
    }
}
