//! Which inputs of a model are state and which outputs replace them: pairs that are named by patterns, and pairs that are
//! found by their names.

use std::collections::{BTreeMap, HashMap};

use crate::{
    CompileError,
    signature::{Arity, BoundValue, Dim, Signature},
};

/// Words of inputs that hold what an earlier call gave.
const OLD: &[&str] = &["past", "prev", "previous", "old", "in", "input", "init", "initial"];
/// Words of outputs that a later call takes.
const NEW: &[&str] = &["present", "next", "new", "updated", "out", "output", "n"];
/// Words that say by themselves that something is kept between calls.
const KEPT: &[&str] = &["past", "present"];
/// Words of what is kept: beside one of them, the others count.
const STATE: &[&str] = &[
    "cache", "cached", "caches", "state", "states", "hidden", "cell", "memory", "mems", "kv", "lstm", "gru",
    "rnn", "h", "c", "hx", "cx", "context",
];

/// State that a program keeps by itself: an input, the output that replaces it, and what it begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Name of the input.
    pub input: String,
    /// Name of the output.
    pub output: String,
    /// What the input begins with; zeros where there is nothing.
    pub first: Option<BoundValue>,
}

/// Inputs and the outputs that replace them, by name.
pub type Pairs = BTreeMap<String, String>;

/// Pairs of an input and an output whose names differ in no more than words such as `past` and `present`, and whose types and
/// known sizes are the same: `past_key_values.0.key` and `present.0.key`, `past_0` and `present_0`, `state` and `stateN`, `h` and
/// `hn`, `cached_len_0` and `new_cached_len_0`. A name that fits several others is in no pair.
pub fn find(inputs: &[Signature], outputs: &[Signature]) -> Pairs {
    let names: Vec<Name> = outputs.iter().map(|output| Name::of(&output.name, NEW)).collect();
    // Models may have tens of thousands of them.
    let mut by_words: HashMap<&[String], Vec<usize>> = HashMap::new();
    names.iter().enumerate().for_each(|(place, name)| by_words.entry(&name.rest).or_default().push(place));
    let fits = |input: &Signature| -> Option<usize> {
        let own = Name::of(&input.name, OLD);
        let places = by_words.get(&own.rest[..]).into_iter().flatten().copied();
        let mut found =
            places.filter(|place| own.pairs_with(&names[*place]) && is_same(input, &outputs[*place]));
        found.next().filter(|_| found.next().is_none())
    };
    let found: Vec<_> = inputs.iter().filter_map(|input| Some((input, fits(input)?))).collect();
    let mut inputs_of = vec![0; outputs.len()];
    found.iter().for_each(|(_, place)| inputs_of[*place] += 1);
    let pairs = found.iter().filter(|(_, place)| inputs_of[*place] == 1);
    pairs.map(|(input, place)| (input.name.clone(), outputs[*place].name.clone())).collect()
}

/// Pairs by a pattern of inputs and one of outputs: `past_*` and `present_*`. What a `*` of the first stands for goes into the
/// `*` of the second at the same place. Empty where no input fits.
///
/// # Errors
/// The patterns have different numbers of `*`, or an input fits and the output that it names is not there or has another type or
/// other known sizes.
pub fn matching(
    [input, output]: [&str; 2],
    inputs: &[Signature],
    outputs: &[Signature],
) -> Result<Pairs, CompileError> {
    let stars = |pattern: &str| pattern.matches('*').count();
    if stars(input) != stars(output) {
        let text = format!("the state '{input}={output}' has {} and {} '*'", stars(input), stars(output));
        return Err(CompileError::Request(format!(
            "{text}: what each stands for goes from the first to the second"
        )));
    }
    let mut pairs = Pairs::new();
    for own in inputs {
        let Some(parts) = captures(input, &own.name) else { continue };
        let mut parts = parts.into_iter();
        let mut pieces = output.split('*');
        let mut name = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            name.push_str(parts.next().unwrap_or_default());
            name.push_str(piece);
        }
        let Some(other) = outputs.iter().find(|other| other.name == name) else {
            let known: Vec<_> = outputs.iter().map(|other| other.name.as_str()).collect();
            return Err(CompileError::Request(format!(
                "the state '{input}={output}' pairs the input '{}' with the output '{name}', which is not there; there are: {}",
                own.name,
                known.join(", ")
            )));
        };
        if !is_same(own, other) {
            return Err(CompileError::Request(format!("the state {own} cannot become {other}")));
        }
        pairs.insert(own.name.clone(), name);
    }
    Ok(pairs)
}

/// What the `*` of a pattern stand for in a name: each for as little as it can.
fn captures<'a>(pattern: &str, name: &'a str) -> Option<Vec<&'a str>> {
    let mut pieces = pattern.split('*');
    let mut rest = name.strip_prefix(pieces.next()?)?;
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else { return rest.is_empty().then(Vec::new) };
    let mut parts = Vec::new();
    for piece in pieces {
        let at = rest.find(piece)?;
        parts.push(&rest[..at]);
        rest = &rest[at + piece.len()..];
    }
    parts.push(rest.strip_suffix(last)?);
    Some(parts)
}

/// Whether types and what is known of the sizes allow one to become the other.
fn is_same(input: &Signature, output: &Signature) -> bool {
    let tensors = input.arity == Arity::Tensor && output.arity == Arity::Tensor && !input.is_optional;
    let elements = match (input.element, output.element) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    };
    let sizes = match (&input.dims, &output.dims) {
        (Some(one), Some(other)) => {
            let fits = |(one, other): (&Dim, &Dim)| match (one, other) {
                (Dim::Known(one), Dim::Known(other)) => one == other,
                _ => true,
            };
            one.len() == other.len() && one.iter().zip(other).all(fits)
        }
        _ => true,
    };
    tensors && elements && sizes
}

/// The words of a name, without those that say which of a pair it is.
#[derive(Debug, PartialEq, Eq)]
struct Name {
    rest: Vec<String>,
    /// Words that were left out.
    roles: Vec<String>,
}

impl Name {
    fn of(name: &str, roles: &[&str]) -> Name {
        let mut words = words(name);
        // `past_key_values.0.key` is called `present.0.key` afterwards.
        let whole = |words: &[String], list: [&str; 3]| words.iter().take(3).eq(list.iter());
        for first in KEPT {
            if whole(&words, [first, "key", "values"]) && words.len() > 3 {
                words.drain(1..3);
            }
        }
        // The usual names of recurrent networks.
        if let [only] = &words[..]
            && let Some(state) =
                ["h", "c"].iter().find(|state| [format!("{state}n"), format!("{state}0")].contains(only))
        {
            return Name { rest: vec![(*state).to_owned()], roles: vec!["n".to_owned()] };
        }
        let (roles, rest) = words.into_iter().partition(|word| roles.contains(&word.as_str()));
        Name { rest, roles }
    }

    fn pairs_with(&self, output: &Name) -> bool {
        let has = |words: &[String], list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
        let kept = has(&self.roles, &KEPT[..1]) && has(&output.roles, &KEPT[1..]);
        // `in_cache0` is called `out_cache0` afterwards.
        let numbered = self.rest.iter().any(|word| {
            let plain = word.trim_end_matches(|c: char| c.is_ascii_digit());
            plain.len() > 1 && STATE.contains(&plain)
        });
        let state = (has(&self.rest, STATE) || numbered) && !output.roles.is_empty();
        !self.rest.is_empty() && self.rest == output.rest && (kept || state)
    }
}

/// Words of a name in small letters: they end where no letter or digit is, and where a large letter follows a small one.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for letter in name.chars() {
        let breaks = !letter.is_alphanumeric() || (before.is_lowercase() && letter.is_uppercase());
        if breaks && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if letter.is_alphanumeric() {
            words.last_mut().expect("there is one from the start").extend(letter.to_lowercase());
        }
        before = letter;
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use halite_ops::DType;

    use super::*;

    fn list(names: &[&str]) -> Vec<Signature> {
        let of = |name: &&str| Signature {
            name: (*name).to_owned(),
            arity: Arity::Tensor,
            is_optional: false,
            element: Some(DType::F32.into()),
            dims: Some(vec![Dim::Known(1), Dim::Symbol("n".into())]),
        };
        names.iter().map(of).collect()
    }

    #[test]
    fn names_of_exporters_are_found() {
        for (input, output) in [
            ("past_key_values.0.key", "present.0.key"),
            ("past_key_values.3.decoder.value", "present.3.decoder.value"),
            ("past_key_values.11.key", "present_key_values.11.key"),
            ("past_key_self_0", "present_key_self_0"),
            ("past_0", "present_0"),
            ("past.0.key", "present.0.key"),
            ("state", "stateN"),
            ("h", "hn"),
            ("c0", "cn"),
            ("cached_len_0", "new_cached_len_0"),
            ("cache_last_channel", "cache_last_channel_next"),
            ("input_states_1", "output_states_1"),
            ("h_in", "h_out"),
            ("lstm_hidden_input", "lstm_hidden_output"),
            ("in_cache0", "out_cache0"),
        ] {
            let found = find(&list(&["x", input]), &list(&["logits", output]));
            assert_eq!(found, Pairs::from([(input.to_owned(), output.to_owned())]), "{input} {output}");
        }
    }

    #[test]
    fn other_names_are_no_state() {
        for (input, output) in [
            ("input", "output"),
            ("input_ids", "output_ids"),
            ("image_in", "image_out"),
            ("in_image0", "out_image0"),
            ("x", "y"),
            ("past_0", "present_1"),
            ("state", "state"),
            ("past", "present"),
        ] {
            assert!(find(&list(&[input]), &list(&[output])).is_empty(), "{input} {output}");
        }
        let mut others = list(&["present_0"]);
        others[0].dims = Some(vec![Dim::Known(2), Dim::Symbol("m".into())]);
        assert!(find(&list(&["past_0"]), &others).is_empty(), "sizes differ");
        assert!(find(&list(&["h_in", "h_prev"]), &list(&["h_out"])).is_empty(), "not clear which");
    }

    #[test]
    fn patterns_carry_over_what_they_stand_for() {
        let (inputs, outputs) = (list(&["ids", "a.0.k", "a.1.v"]), list(&["y", "b.0.k", "b.1.v"]));
        let pairs = matching(["a.*.*", "b.*.*"], &inputs, &outputs).unwrap();
        assert_eq!(pairs.into_iter().map(|(i, o)| i + &o).collect::<Vec<_>>(), ["a.0.kb.0.k", "a.1.vb.1.v"]);
        assert_eq!(matching(["ids", "y"], &inputs, &outputs).unwrap().len(), 1);
        assert!(matching(["z*", "b*"], &inputs, &outputs).unwrap().is_empty());
        let error = |pair| matching(pair, &inputs, &outputs).unwrap_err().to_string();
        assert!(error(["a.*", "c.*"]).contains("'c.0.k', which is not there; there are: y"));
        assert!(error(["a.*.*", "b.*"]).contains("2 and 1 '*'"));
    }

    #[test]
    fn stars_stand_for_as_little_as_they_can() {
        assert_eq!(captures("a*b*c", "a12b3bc"), Some(vec!["12", "3b"]));
        assert_eq!(captures("a*", "a"), Some(vec![""]));
        assert_eq!(captures("abc", "abcd"), None);
        assert_eq!(captures("a*a", "a"), None);
    }
}
