//! Fields that OpenAI's interface does not have and that clients of other servers send (llama.cpp's, vLLM's): some have another name here,
//! others ask for nothing as a rule, and count only where they do.

use serde_json::{Value, json};

use super::{error::Refusal, fields::Fields};

/// Names of fields that other servers have, and what these are called here.
pub(super) const OTHER_NAMES: &[(&str, &str)] = &[
    ("n_predict", "max_tokens"),
    ("repeat_last_n", "repeat_last"),
    ("repetition_penalty", "repeat_penalty"),
];

/// Fields that say nothing about an answer, or only where one of [`plain`] asks for something.
pub(super) const SAY_NOTHING: &[&str] = &[
    "backend_sampling",
    "cache_prompt",
    "dry_allowed_length",
    "dry_base",
    "dry_penalty_last_n",
    "dry_sequence_breakers",
    "dynatemp_exponent",
    "mirostat_eta",
    "mirostat_tau",
    "spaces_between_special_tokens",
    "xtc_threshold",
];

/// Fields that are refused where they ask for something, and what asks for nothing.
pub(super) fn plain() -> Vec<(&'static str, Value)> {
    vec![
        ("add_generation_prompt", json!(true)),
        ("continue_final_message", json!(false)),
        ("dry_multiplier", json!(0)),
        ("dynatemp_range", json!(0)),
        ("early_stopping", json!(false)),
        ("grammar", json!("")),
        ("id_slot", json!(-1)),
        ("ignore_eos", json!(false)),
        ("include_stop_str_in_output", json!(false)),
        ("length_penalty", json!(1)),
        ("lora", json!([])),
        ("min_keep", json!(0)),
        ("min_tokens", json!(0)),
        ("mirostat", json!(0)),
        ("n_indent", json!(0)),
        ("n_probs", json!(0)),
        ("parse_tool_calls", json!(true)),
        ("post_sampling_probs", json!(false)),
        ("return_progress", json!(false)),
        ("return_tokens", json!(false)),
        ("skip_special_tokens", json!(true)),
        ("stop_token_ids", json!([])),
        ("tfs_z", json!(1)),
        ("timings_per_token", json!(false)),
        ("top_n_sigma", json!(-1)),
        ("typical_p", json!(1)),
        ("typ_p", json!(1)),
        ("use_beam_search", json!(false)),
        ("xtc_probability", json!(0)),
    ]
}

impl Fields {
    /// Gives fields the names that they have here. A field of both names is told once.
    ///
    /// # Errors
    /// The two say different things.
    pub fn renamed(mut self) -> Result<Fields, Refusal> {
        for (other, own) in OTHER_NAMES {
            let Some(value) = self.take(other) else { continue };
            match self.get(own) {
                Some(known) if *known != value => {
                    return Err(Refusal::field(
                        own,
                        format!("'{own}' and '{other}' are the same, and differ"),
                    ));
                }
                _ => self.put(own, value),
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::fields::Form;

    #[test]
    fn fields_of_other_servers_count_where_they_ask_for_something() {
        let read = |value: Value| Fields::read(value.to_string().as_bytes()).and_then(Fields::renamed);
        let wanted = |value: Value| read(value).and_then(|fields| fields.wanted(Form::Chat));
        let all = wanted(json!({
            "n_predict": 7, "repeat_last_n": 32, "repetition_penalty": 1.5, "cache_prompt": true, "typical_p": 1.0, "mirostat": 0,
            "mirostat_tau": 5, "id_slot": -1, "grammar": "", "xtc_probability": 0.0, "stop_token_ids": [],
        }));
        let all = all.unwrap();
        assert_eq!((all.most, all.sampling.repeat_last, all.sampling.repeat_penalty), (Some(7), 32, 1.5));
        for (name, value) in
            [("mirostat", json!(2)), ("grammar", json!("root ::= \"a\"")), ("ignore_eos", json!(true))]
        {
            let refused = wanted(json!({name: value})).unwrap_err().json();
            assert_eq!(
                (&refused["error"]["param"], &refused["error"]["code"]),
                (&json!(name), &json!("unsupported"))
            );
        }
        assert_eq!(wanted(json!({"n_predict": 7, "max_tokens": 7})).unwrap().most, Some(7));
        let refused = wanted(json!({"n_predict": 7, "max_tokens": 8})).unwrap_err().json();
        assert_eq!(refused["error"]["param"], "max_tokens");
        for (name, value) in plain() {
            assert!(wanted(json!({name: value})).is_ok(), "{name}");
        }
    }
}
