//! The choice of the next token: which ones count, and which of them it is.

use std::{collections::HashMap, sync::Arc};

use crate::{
    constrained::{Constrained, TokenTexts},
    schema::Schema,
};

/// How the next token is chosen. The steps go in this order: penalties, the most likely `top_k`, those that make up `top_p`,
/// those at least `min_p` as likely as the first, temperature.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// Divides logits; 0 takes the most likely token.
    pub temperature: f32,
    /// How many of the most likely tokens count; 0 for all.
    pub top_k: usize,
    /// The part of all probability that the most likely tokens that count have; 1 for all.
    pub top_p: f32,
    /// How likely a token is at least, as a part of how likely the first is; 0 for all.
    pub min_p: f32,
    /// What logits of tokens that were there lately are divided by, or multiplied where they are negative; 1 for nothing.
    pub repeat_penalty: f32,
    /// What is taken from logits of tokens that were there lately, for each time that they were; 0 for nothing.
    pub frequency_penalty: f32,
    /// What is taken from them once, however often they were there; 0 for nothing.
    pub presence_penalty: f32,
    /// How many of the last tokens were there lately.
    pub repeat_last: usize,
    /// Where random numbers begin: the same seed gives the same choices.
    pub seed: u64,
}

/// Tokens of which one is drawn before a look at what a schema allows, at most: as many as devices draw of.
const FEW: usize = 64;

impl Default for Sampling {
    fn default() -> Self {
        Sampling {
            temperature: 0.8,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.05,
            repeat_penalty: 1.0,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            repeat_last: 64,
            seed: 0,
        }
    }
}

impl Sampling {
    /// Always the most likely token.
    pub fn greedy() -> Sampling {
        Sampling { temperature: 0.0, ..Sampling::default() }
    }

    /// Whether it is always the most likely token, whatever was there before.
    pub fn is_greedy(&self) -> bool {
        self.temperature <= 0.0 && !self.is_penalized()
    }

    /// Whether tokens that were there lately count less.
    pub fn is_penalized(&self) -> bool {
        self.is_divided() || self.frequency_penalty != 0.0 || self.presence_penalty != 0.0
    }

    /// Whether logits of tokens that were there lately are divided.
    fn is_divided(&self) -> bool {
        self.repeat_penalty != 1.0 && self.repeat_penalty > 0.0
    }

    /// The logit of a token that was there so many times lately.
    fn penalized(&self, logit: f32, times: u32) -> f32 {
        let divided = match self.is_divided() {
            true if logit > 0.0 => logit / self.repeat_penalty,
            true => logit * self.repeat_penalty,
            false => logit,
        };
        divided - self.frequency_penalty * times as f32 - self.presence_penalty
    }
}

/// Chooses tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampler {
    sampling: Sampling,
    random: u64,
    /// The answer so far, where it has to follow a schema.
    answer: Option<Constrained>,
    /// What is added to logits of some tokens.
    bias: Arc<HashMap<u32, f32>>,
    /// How many of the most likely tokens are kept of each choice, if somebody wants to know.
    wanted: Option<usize>,
    likely: Option<Likely>,
}

/// How likely a token was that was chosen, and the most likely ones in its place: by the model, before all that a sampler does.
#[derive(Clone, Debug, PartialEq)]
pub struct Likely {
    /// The token.
    pub token: u32,
    /// The natural logarithm of its probability.
    pub logprob: f32,
    /// The most likely tokens, the first first, with those logarithms.
    pub top: Vec<(u32, f32)>,
}

impl Likely {
    /// Of a token by the logits of all, with so many of the most likely ones. `None` where there is no such logit.
    pub fn of(token: u32, logits: &[f32], count: usize) -> Option<Likely> {
        let own = *logits.get(token as usize)?;
        let numbers = || logits.iter().copied().filter(|logit| !logit.is_nan());
        let first = numbers().reduce(f32::max)?;
        let sum: f64 = numbers().map(|logit| f64::from(logit - first).exp()).sum();
        let logprob = |logit: f32| (f64::from(logit - first) - sum.ln()) as f32;
        let mut top: Vec<(u32, f32)> =
            (0u32..).zip(logits.iter().copied()).filter(|(_, logit)| !logit.is_nan()).collect();
        if count < top.len() {
            top.select_nth_unstable_by(count, descending);
            top.truncate(count);
        }
        top.sort_unstable_by(descending);
        top.iter_mut().for_each(|(_, logit)| *logit = logprob(*logit));
        Some(Likely { token, logprob: logprob(own), top })
    }
}

impl Sampler {
    /// A sampler at the beginning of its random numbers.
    pub fn new(sampling: Sampling) -> Sampler {
        Sampler {
            random: sampling.seed,
            sampling,
            answer: None,
            bias: Arc::default(),
            wanted: None,
            likely: None,
        }
    }

    /// One whose tokens make one JSON value that follows a schema, and then end.
    pub(crate) fn constrained(sampling: Sampling, schema: &Schema, tokens: Arc<TokenTexts>) -> Sampler {
        Sampler { answer: Some(Constrained::new(schema, tokens)), ..Sampler::new(sampling) }
    }

    /// The same sampler, which adds these numbers to the logits of tokens before all else.
    pub fn with_bias(self, bias: impl IntoIterator<Item = (u32, f32)>) -> Sampler {
        Sampler { bias: Arc::new(bias.into_iter().collect()), ..self }
    }

    /// The same sampler, which keeps of each choice how likely the token was, and so many of the most likely ones.
    pub fn with_logprobs(self, count: usize) -> Sampler {
        Sampler { wanted: Some(count), ..self }
    }

    /// How likely the last token was, for samplers that keep it.
    pub fn likely(&self) -> Option<&Likely> {
        self.likely.as_ref()
    }

    /// Whether more is to be looked at than a device does that chooses.
    fn is_special(&self) -> bool {
        self.answer.is_some() || self.wanted.is_some() || !self.bias.is_empty()
    }

    /// Whether it always takes the most likely token, whatever was there before.
    pub fn is_greedy(&self) -> bool {
        !self.is_special() && self.sampling.is_greedy()
    }

    /// Whether which tokens count depends on those before, or on more than their logits.
    pub fn looks_back(&self) -> bool {
        self.is_special() || self.sampling.is_penalized()
    }

    /// How it chooses.
    pub fn sampling(&self) -> &Sampling {
        &self.sampling
    }

    /// Whether its tokens have to follow a schema.
    pub fn follows_schema(&self) -> bool {
        self.answer.is_some()
    }

    /// Whether nothing but a schema keeps a device from choosing in its place: then the device draws, and [`Sampler::takes`] says
    /// whether that token may come.
    pub fn is_drawn_elsewhere(&self) -> bool {
        self.wanted.is_none() && self.bias.is_empty() && !self.sampling.is_penalized()
    }

    /// Where it is in its random numbers: for those who draw in its place ahead of what they need.
    pub fn drawn_so_far(&self) -> u64 {
        self.random
    }

    /// Goes back to a place in its random numbers.
    pub fn draw_again_from(&mut self, place: u64) {
        self.random = place;
    }

    /// Takes a token that was drawn in its place, if a schema allows it there. Otherwise [`Sampler::choose_allowed`] chooses.
    pub fn takes(&mut self, token: u32) -> bool {
        match &mut self.answer {
            None => true,
            Some(answer) => {
                answer.takes(token) && {
                    answer.add(token);
                    true
                }
            }
        }
    }

    /// The next token after `before`. `None` where there are no logits, or none of them is a number.
    ///
    /// Where a schema is followed, and the most likely token or one of few is wanted, it is chosen of all first. If it may not come, one
    /// is chosen of those that may. Where many count, only those that may come are looked at.
    pub fn choose(&mut self, logits: &[f32], before: &[u32]) -> Option<u32> {
        let are_few = self.sampling.temperature <= 0.0 || (1..=FEW).contains(&self.sampling.top_k);
        if !self.follows_schema() || are_few {
            let chosen = self.chosen(logits, before, false)?;
            if self.takes(chosen) {
                return self.noted(chosen, logits);
            }
        }
        self.choose_allowed(logits, before)
    }

    /// The next token of those that a schema allows, where one that was drawn of all is not allowed.
    pub fn choose_allowed(&mut self, logits: &[f32], before: &[u32]) -> Option<u32> {
        let chosen = self.chosen(logits, before, true)?;
        self.takes(chosen);
        self.noted(chosen, logits)
    }

    /// Keeps how likely a token was, if somebody wants to know.
    fn noted(&mut self, chosen: u32, logits: &[f32]) -> Option<u32> {
        if let Some(count) = self.wanted {
            self.likely = Likely::of(chosen, logits, count);
        }
        Some(chosen)
    }

    fn chosen(&mut self, logits: &[f32], before: &[u32], only_allowed: bool) -> Option<u32> {
        let s = &self.sampling;
        let recent = &before[before.len().saturating_sub(s.repeat_last)..];
        let times = match s.is_penalized() {
            true => times(recent),
            false => HashMap::new(),
        };
        let value = |id: u32, logit: f32| {
            let logit = if self.bias.is_empty() { logit } else { logit + self.bias.get(&id).unwrap_or(&0.0) };
            match times.get(&id) {
                Some(times) => s.penalized(logit, *times),
                None => logit,
            }
        };
        let mask = self.answer.as_ref().filter(|_| only_allowed).map(Constrained::mask);
        let all = (0u32..).zip(logits).map(|(id, logit)| (id, value(id, *logit)));
        let all = all.filter(|(id, logit)| {
            *logit > f32::NEG_INFINITY && mask.as_ref().is_none_or(|mask| mask.has(*id))
        });
        if s.temperature <= 0.0 {
            // Of equal ones the first.
            let better = |best: (u32, f32), own: (u32, f32)| if own.1 > best.1 { own } else { best };
            return all.reduce(better).map(|(id, _)| id);
        }
        let mut ranked = Ranked::new(all.collect(), s.top_k);
        let count = self.kept(&mut ranked)?;
        self.drawn(&mut ranked, count)
    }

    /// How many of the most likely make up `top_p` and are at least `min_p` as likely as the first. `None` where there are none.
    fn kept(&self, ranked: &mut Ranked) -> Option<usize> {
        let (_, first) = ranked.at(0)?;
        let weight = |logit: f32| f64::from(logit - first).exp();
        let mut count = ranked.all.len();
        if self.sampling.top_p < 1.0 {
            let sum: f64 = ranked.all.iter().map(|(_, logit)| weight(*logit)).sum();
            let (mut part, mut place) = (0.0, 0);
            while let Some((_, logit)) = ranked.at(place) {
                part += weight(logit) / sum;
                place += 1;
                if part >= f64::from(self.sampling.top_p) {
                    break;
                }
            }
            count = place.max(1);
        }
        if self.sampling.min_p > 0.0 {
            let least = f64::from(self.sampling.min_p.min(1.0));
            let mut place = 0;
            while place < count && ranked.at(place).is_some_and(|(_, logit)| weight(logit) >= least) {
                place += 1;
            }
            count = place;
        }
        Some(count)
    }

    /// One of the first so many, each as often as it is likely.
    fn drawn(&mut self, ranked: &mut Ranked, count: usize) -> Option<u32> {
        let (_, first) = ranked.at(0)?;
        let temperature = f64::from(self.sampling.temperature);
        let weight = |logit: f32| (f64::from(logit - first) / temperature).exp();
        let sum: f64 = ranked.first(count).iter().map(|(_, logit)| weight(*logit)).sum();
        let mut left = self.fraction() * sum;
        for place in 0..count {
            let (id, logit) = ranked.at(place)?;
            left -= weight(logit);
            if left < 0.0 {
                return Some(id);
            }
        }
        ranked.at(count.checked_sub(1)?).map(|(id, _)| id)
    }

    /// The next random number, from 0 to below 1 (SplitMix64: Steele, Lea and Flood, 2014): for others who draw in its place.
    pub fn fraction(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Tokens by their logits, sorted as far as somebody looks: of a quarter of a million, few are likely.
struct Ranked {
    all: Vec<(u32, f32)>,
    /// How many of them are the most likely ones, in their order.
    sorted: usize,
}

impl Ranked {
    /// How many are sorted at first; each time that more are wanted, so many times as many.
    const FIRST: usize = 128;
    const MORE: usize = 8;

    /// The most likely `most` of these; 0 for all.
    fn new(mut all: Vec<(u32, f32)>, most: usize) -> Ranked {
        if most > 0 && most < all.len() {
            all.select_nth_unstable_by(most - 1, descending);
            all.truncate(most);
        }
        Ranked { all, sorted: 0 }
    }

    /// The one at a place of their order.
    fn at(&mut self, place: usize) -> Option<(u32, f32)> {
        while self.sorted <= place && self.sorted < self.all.len() {
            let wanted = (self.sorted * Self::MORE).max(Self::FIRST);
            let rest = &mut self.all[self.sorted..];
            let count = (wanted - self.sorted).min(rest.len());
            if count < rest.len() {
                rest.select_nth_unstable_by(count, descending);
            }
            rest[..count].sort_unstable_by(descending);
            self.sorted += count;
        }
        self.all.get(place).copied()
    }

    /// The first so many, in any order.
    fn first(&mut self, count: usize) -> &[(u32, f32)] {
        if count < self.all.len() && count > 0 {
            self.at(count - 1);
        }
        &self.all[..count]
    }
}

/// The order of tokens: by their logits, of equal ones the first.
fn descending(one: &(u32, f32), other: &(u32, f32)) -> std::cmp::Ordering {
    other.1.total_cmp(&one.1).then(one.0.cmp(&other.0))
}

/// How often each token is there.
fn times(tokens: &[u32]) -> HashMap<u32, u32> {
    let mut times = HashMap::new();
    tokens.iter().for_each(|id| *times.entry(*id).or_insert(0) += 1);
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open() -> Sampling {
        Sampling { temperature: 1.0, top_k: 0, top_p: 1.0, min_p: 0.0, ..Sampling::default() }
    }

    fn counts(sampling: Sampling, logits: &[f32]) -> Vec<usize> {
        let mut sampler = Sampler::new(sampling);
        let mut counts = vec![0; logits.len()];
        (0..4000).for_each(|_| counts[sampler.choose(logits, &[]).unwrap() as usize] += 1);
        counts
    }

    #[test]
    fn tokens_come_as_often_as_they_are_likely() {
        let logits = [0.0, 3f32.ln(), f32::NEG_INFINITY];
        let got = counts(open(), &logits);
        assert!((900..1100).contains(&got[0]) && got[2] == 0, "{got:?}");
        let cold = counts(Sampling { temperature: 0.5, ..open() }, &logits);
        assert!((300..500).contains(&cold[0]), "{cold:?}");
    }

    #[test]
    fn bounds_leave_the_most_likely() {
        let logits = [1.0, 4.0, 3.0, 2.0];
        let is_kept = |sampling| counts(sampling, &logits).iter().map(|n| *n > 0).collect::<Vec<_>>();
        assert_eq!(is_kept(Sampling { top_k: 2, ..open() }), [false, true, true, false]);
        assert_eq!(is_kept(Sampling { top_p: 0.6, ..open() }), [false, true, false, false]);
        assert_eq!(is_kept(Sampling { min_p: 0.1, ..open() }), [false, true, true, true]);
    }

    #[test]
    fn choices_are_told_with_their_likelihood() {
        let logits = [0.0, 3f32.ln(), 6f32.ln(), f32::NAN];
        let mut sampler = Sampler::new(Sampling::greedy()).with_logprobs(2);
        assert!(!sampler.is_greedy() && sampler.looks_back());
        assert_eq!((sampler.choose(&logits, &[]), sampler.likely().map(|own| own.token)), (Some(2), Some(2)));
        let own = sampler.likely().unwrap();
        assert!((own.logprob.exp() - 0.6).abs() < 1e-5 && own.top.len() == 2 && own.top[1].0 == 1, "{own:?}");
        // What is added changes the choice, and not how likely the model has it.
        let mut sampler =
            Sampler::new(Sampling::greedy()).with_bias([(0, 5.0), (2, -100.0)]).with_logprobs(0);
        assert_eq!(sampler.choose(&logits, &[]), Some(0));
        assert!((sampler.likely().unwrap().logprob.exp() - 0.1).abs() < 1e-5);
    }

    #[test]
    fn repetition_is_punished_and_the_seed_decides() {
        let mut greedy = Sampler::new(Sampling { repeat_penalty: 2.0, ..Sampling::greedy() });
        assert_eq!(greedy.choose(&[1.0, 1.5, -3.0], &[]), Some(1));
        assert_eq!(greedy.choose(&[1.0, 1.5, -3.0], &[1]), Some(0));
        assert_eq!(greedy.choose(&[f32::NAN], &[]), None);
        // Once for each time, and once however often.
        let less = |frequency_penalty, presence_penalty| {
            let own = Sampling { frequency_penalty, presence_penalty, ..Sampling::greedy() };
            Sampler::new(own).choose(&[1.0, 1.5, 1.9], &[2, 1, 2])
        };
        assert_eq!((less(0.0, 0.0), less(0.3, 0.0), less(0.0, 0.6)), (Some(2), Some(2), Some(2)));
        assert_eq!((less(0.45, 0.0), less(0.0, 1.0), less(-1.0, 0.0)), (Some(1), Some(0), Some(2)));
        let run = |seed| {
            let mut sampler = Sampler::new(Sampling { seed, ..open() });
            (0..20).map(|_| sampler.choose(&[0.0; 8], &[]).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
    }

    #[test]
    fn tokens_are_sorted_as_far_as_somebody_looks() {
        let mut random = Sampler::new(open());
        for count in [1, 127, 128, 129, 1024, 5000] {
            // Many are equal.
            let all: Vec<(u32, f32)> =
                (0..count).map(|id| (id, (random.fraction() * 300.0).floor() as f32)).collect();
            let mut wanted = all.clone();
            wanted.sort_by(descending);
            let mut ranked = Ranked::new(all.clone(), 0);
            let found: Vec<_> = (0..).map_while(|place| ranked.at(place)).collect();
            assert_eq!(found, wanted);
            let few = count as usize / 3;
            let mut ranked = Ranked::new(all, few);
            let mut first = ranked.first(few.max(1)).to_vec();
            first.sort_by(descending);
            assert_eq!(first, wanted[..few.max(1)]);
        }
    }

    #[test]
    fn schemas_leave_tokens_as_likely_as_they_are_beside_each_other() {
        let texts: [&[u8]; 5] = [b"{", b"[", b"1", b"2", b"x"];
        let tokens = Arc::new(TokenTexts::new(texts.iter().map(|text| (text.to_vec(), false))));
        let schema = Schema::parse(r#"{"enum": [1, 2]}"#).unwrap();
        let logits = [1.0, 2.0, 0.0, 3f32.ln(), 2.0];
        for top_k in [0, 5] {
            let sampling = Sampling { top_k, ..open() };
            let (mut random, mut counts) = (0, [0; 5]);
            for _ in 0..4000 {
                let own = Sampler::constrained(sampling.clone(), &schema, tokens.clone());
                let mut own = Sampler { random, ..own };
                counts[own.choose(&logits, &[]).unwrap() as usize] += 1;
                random = own.random;
            }
            assert!((900..1100).contains(&counts[2]) && counts[2] + counts[3] == 4000, "{counts:?}");
        }
        // Somebody else draws: what may not come is refused, and leaves everything as it is.
        let mut own = Sampler::constrained(open(), &schema, tokens);
        assert!(own.is_drawn_elsewhere() && own.follows_schema() && !own.takes(4) && !own.takes(0));
        assert!(matches!(own.choose_allowed(&logits, &[]), Some(2 | 3)));
        assert!(!own.takes(2) && own.choose(&logits, &[]).is_none());
    }
}
