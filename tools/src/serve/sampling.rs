//! How a request wants tokens to be chosen, and what ends an answer.

use halite::Sampling;
use serde_json::Value;

use super::{error::Refusal, fields::Fields};

type Result<T, E = Refusal> = std::result::Result<T, E>;

/// Most texts that end an answer.
const MOST_STOPS: usize = 16;

impl Fields {
    /// What is added to logits of tokens.
    pub fn bias(&self) -> Result<Vec<(u32, f32)>> {
        let wrong = || {
            let text = "'logit_bias' is no object of numbers from -100 to 100 by tokens";
            Refusal::field("logit_bias", text)
        };
        let Some(bias) = self.get("logit_bias") else { return Ok(Vec::new()) };
        let one = |(token, value): (&String, &Value)| {
            let value = value.as_f64().filter(|value| (-100.0..=100.0).contains(value)).ok_or_else(wrong)?;
            Ok((token.parse().map_err(|_| wrong())?, value as f32))
        };
        bias.as_object().ok_or_else(wrong)?.iter().map(one).collect()
    }

    /// The numbers by which tokens are chosen.
    pub fn sampling(&self) -> Result<Sampling> {
        let of_users = |value: Option<u64>, usual| {
            value.map_or(usual, |value| usize::try_from(value).unwrap_or(usize::MAX))
        };
        Ok(Sampling {
            temperature: self.number("temperature", 0.0, 100.0)?.unwrap_or(1.0),
            top_p: self.number("top_p", 0.0, 1.0)?.unwrap_or(1.0),
            min_p: self.number("min_p", 0.0, 1.0)?.unwrap_or(0.0),
            top_k: of_users(self.count("top_k")?, 0),
            repeat_penalty: self.number("repeat_penalty", 1e-3, 1e3)?.unwrap_or(1.0),
            frequency_penalty: self.number("frequency_penalty", -2.0, 2.0)?.unwrap_or(0.0),
            presence_penalty: self.number("presence_penalty", -2.0, 2.0)?.unwrap_or(0.0),
            repeat_last: of_users(self.count("repeat_last")?, 64),
            seed: match self.get("seed") {
                Some(seed) => match (seed.as_u64(), seed.as_i64()) {
                    (Some(seed), _) => seed,
                    (None, Some(seed)) => seed as u64,
                    _ => return Err(Refusal::field("seed", "'seed' is no whole number")),
                },
                None => super::random_seed(),
            },
        })
    }

    /// Texts that end an answer.
    pub fn stops(&self) -> Result<Vec<String>> {
        let wrong =
            || Refusal::field("stop", format!("'stop' is neither a text nor up to {MOST_STOPS} of them"));
        let all = match self.get("stop") {
            None => Vec::new(),
            Some(Value::String(text)) => vec![text.clone()],
            Some(Value::Array(all)) if all.len() <= MOST_STOPS => all
                .iter()
                .map(|text| text.as_str().map(str::to_owned).ok_or_else(wrong))
                .collect::<Result<_>>()?,
            Some(_) => return Err(wrong()),
        };
        match all.iter().any(String::is_empty) {
            true => Err(Refusal::field("stop", "a text of 'stop' is empty")),
            false => Ok(all),
        }
    }
}
