//! Where the next token is chosen.

use std::{fmt, str::FromStr, time::Duration};

use halite_compiler::{ChoiceWay, MOST_CANDIDATES};
use halite_text::{Sampler, Sampling};

use crate::{Error, Function, Result, Session, Tensor};

/// Where a [`super::Sequence`] that writes chooses its tokens, and [`super::Generator::step`] those of several.
///
/// Where the device chooses, a token goes into the next call without coming by the host, which hands that call over before this one is
/// done: the device does not wait for the host, and half a megabyte of logits stays where it is. Devices choose the most likely token, or
/// draw of the most likely 64 at most; with other [`Sampling`] (penalties, more candidates or all) the host does. Random numbers are the
/// same, and so are the tokens, up to what devices round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChooseOn {
    /// The device, if it is a GPU.
    #[default]
    Auto,
    /// The host.
    Host,
    /// The device, where it can.
    Device,
}

impl ChooseOn {
    /// All of them.
    pub const ALL: [ChooseOn; 3] = [ChooseOn::Auto, ChooseOn::Host, ChooseOn::Device];

    /// Its name: `auto`, `host`, `device`.
    pub fn name(self) -> &'static str {
        match self {
            ChooseOn::Auto => "auto",
            ChooseOn::Host => "host",
            ChooseOn::Device => "device",
        }
    }
}

impl fmt::Display for ChooseOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ChooseOn {
    type Err = Error;

    fn from_str(text: &str) -> Result<ChooseOn> {
        ChooseOn::ALL.into_iter().find(|own| own.name() == text).ok_or_else(|| {
            let names = ChooseOn::ALL.map(ChooseOn::name).join(", ");
            Error::invalid(format!("'{text}' is no place where tokens are chosen; there are: {names}"))
        })
    }
}

/// Functions of a model that choose.
pub(super) struct Choosers {
    pub greedy: Function,
    pub sample: Function,
}

impl Choosers {
    /// Those of a session, where its model has them.
    pub fn of_session(session: &Session, place: ChooseOn) -> Option<Choosers> {
        let function = |way: ChoiceWay| session.function(way.name()).ok();
        let [greedy, sample] = [function(ChoiceWay::Greedy)?, function(ChoiceWay::Sample)?];
        (place != ChooseOn::Host).then_some(Choosers { greedy, sample })
    }

    /// The function that chooses as a sampler does; `None` where the host has to.
    pub fn of(&self, sampler: &Sampler) -> Option<Chooser<'_>> {
        self.before_schema(sampler).filter(|_| !sampler.follows_schema())
    }

    /// The same, where the host looks at each token whether a schema allows it.
    pub fn before_schema(&self, sampler: &Sampler) -> Option<Chooser<'_>> {
        let sampling = sampler.sampling();
        let way = match sampling.temperature {
            _ if !sampler.is_drawn_elsewhere() => return None,
            _ if sampling.is_greedy() => ChoiceWay::Greedy,
            _ if (1..=MOST_CANDIDATES as usize).contains(&sampling.top_k) => ChoiceWay::Sample,
            _ => return None,
        };
        let function = if way == ChoiceWay::Greedy { &self.greedy } else { &self.sample };
        Some(Chooser { function, way })
    }
}

/// A function that chooses.
pub(super) struct Chooser<'a> {
    pub function: &'a Function,
    way: ChoiceWay,
}

impl Chooser<'_> {
    /// What it takes to choose one token.
    pub fn sampling(&self, sampler: &mut Sampler) -> Result<Option<Tensor>> {
        if self.way == ChoiceWay::Greedy {
            return Ok(None);
        }
        let numbers = drawing(sampler);
        Tensor::from_slice(&numbers, [numbers.len()]).map(Some)
    }
}

/// When the device chooses where a schema is followed: not for a while behind tokens that it does not allow. Each of them costs two calls
/// that nobody needed, which as many tokens chosen by the device as are here at first make up for.
pub(super) struct Trust {
    /// Tokens that the host chooses yet.
    left: u32,
    /// How many it chooses behind the next one that is not allowed.
    next: u32,
    /// Tokens that were allowed, one behind the other.
    allowed: u32,
}

impl Trust {
    const FEWEST: u32 = 4;
    const MOST: u32 = 64;

    pub fn new() -> Trust {
        Trust { left: 0, next: Trust::FEWEST, allowed: 0 }
    }

    /// Whether the host is to choose the next token.
    pub fn host_chooses(&mut self) -> bool {
        let is_host = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_host
    }

    /// A token that the device chose was allowed, or was not.
    pub fn learn(&mut self, is_allowed: bool) {
        match is_allowed {
            true => self.allowed += 1,
            false => {
                let was_good = self.allowed >= 2 * Trust::FEWEST;
                self.next = if was_good { Trust::FEWEST } else { self.next };
                (self.left, self.next) = (self.next, (2 * self.next).min(Trust::MOST));
                self.allowed = 0;
            }
        }
    }
}

/// A device that takes longer for a token does not wait for the host; then nothing is computed that may not be needed.
pub(super) const SLOW: Duration = Duration::from_millis(50);

/// Numbers of [`halite_compiler::SAMPLING`] that take the most likely token.
pub(super) const MOST_LIKELY: [f32; 5] = [1.0, 2.0, 0.0, 1.0, 0.0];

/// The numbers of [`halite_compiler::SAMPLING`] for a sampler's next token.
pub(super) fn drawing(sampler: &mut Sampler) -> [f32; 5] {
    if sampler.is_greedy() {
        return MOST_LIKELY;
    }
    let random = sampler.fraction();
    numbers(sampler.sampling(), random)
}

/// The same with this random number.
fn numbers(sampling: &Sampling, random: f64) -> [f32; 5] {
    // Sums are rounded: all is more than what they come to. Something is left whatever is wanted.
    let part = if sampling.top_p < 1.0 { sampling.top_p.max(1e-20) } else { 2.0 };
    let least = sampling.min_p.clamp(0.0, 1.0 - f32::EPSILON);
    [sampling.top_k as f32, part, least, 1.0 / sampling.temperature, (random as f32).min(1.0 - f32::EPSILON)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_chooses_for_longer_where_tokens_are_not_allowed_again() {
        let mut trust = Trust::new();
        let mut host = |is_allowed: bool| {
            trust.learn(is_allowed);
            std::iter::from_fn(|| trust.host_chooses().then_some(())).count()
        };
        assert_eq!([host(true), host(false), host(false), host(false)], [0, 4, 8, 16]);
        (0..8).for_each(|_| assert_eq!(host(true), 0));
        assert_eq!([host(false), host(false)], [4, 8]);
    }
}
