//! How texts are split into words before bytes are joined: the pre-tokenizers of models, by the names that GGUF files have for
//! them. The patterns are those that the models' authors published with their tokenizers.

use crate::{
    TextError,
    pattern::Pattern,
    split::{Behaviour, Split},
};

const LETTERS_OR_NUMBERS: &str = r" ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const SUFFIXES: &str = "'s|'t|'re|'ve|'m|'ll|'d";
const ANY_SUFFIXES: &str = "'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]";
const LINES: &str = r"\s*[\r\n]+|\s+(?!\S)|\s+";
/// Words as upper-case letters followed by lower-case ones.
const UPPER: &str = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]";
const LOWER: &str = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]";

/// Names with the same splitting.
struct Family {
    names: &'static [&'static str],
    patterns: fn() -> Vec<String>,
    /// Whether a word that is a token stays whole.
    whole_words: bool,
    /// Whether texts begin with the token of the beginning where the metadata do not say.
    begins: bool,
}

const fn family(names: &'static [&'static str], patterns: fn() -> Vec<String>) -> Family {
    Family { names, patterns, whole_words: false, begins: false }
}

const FAMILIES: &[Family] = &[
    Family {
        names: &["llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"],
        patterns: || modern(3),
        whole_words: true,
        begins: true,
    },
    family(&["dbrx", "smaug-bpe"], || modern(3)),
    family(&["qwen2", "deepseek-r1-qwen", "stablelm2", "hunyuan", "megrez", "kormo", "f2llmv2"], || {
        modern(1)
    }),
    // Marks belong to letters.
    family(&["qwen35"], || {
        let letters = r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+";
        vec![format!(r"{ANY_SUFFIXES}|{letters}|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{LINES}")]
    }),
    // Words with spaces between them may be one token.
    family(&["exaone-moe"], || {
        let letters = r"[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+";
        vec![format!(
            r"{ANY_SUFFIXES}|{letters}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"
        )]
    }),
    family(
        &[
            "gpt-2",
            "gpt2",
            "phi-2",
            "mpt",
            "olmo",
            "jais",
            "trillion",
            "granite-docling",
            "roberta-bpe",
            "exaone4",
            "modern-bert",
        ],
        || vec![gpt2()],
    ),
    family(&["starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b"], || {
        vec![r"\p{N}".to_owned(), gpt2()]
    }),
    family(&["falcon"], || vec![r"[\p{P}\$\+<=>\^~\|`]+".to_owned(), gpt2(), "[0-9]{3}".to_owned()]),
    family(&["default"], || {
        vec![r"[\p{P}\$\+<=>\^~\|]+".to_owned(), gpt2(), r"\p{N}+".to_owned(), "[0-9]{3}".to_owned()]
    }),
    Family { names: &["tekken"], patterns: || vec![cased("", r"\p{N}")], whole_words: true, begins: false },
    family(&["gpt-4o", "llama4", "kanana2"], || {
        let suffixes = format!("(?:{ANY_SUFFIXES})?");
        vec![cased(&suffixes, r"\p{N}{1,3}")]
    }),
];

/// The pattern of GPT-2: words and numbers with a space before them.
pub(crate) fn gpt2() -> String {
    format!("{SUFFIXES}|{LETTERS_OR_NUMBERS}")
}

/// Words with one sign before them, numbers of so many digits, signs with the ends of lines behind them.
fn modern(digits: u32) -> Vec<String> {
    let letters = r"[^\r\n\p{L}\p{N}]?\p{L}+";
    vec![format!(r"{ANY_SUFFIXES}|{letters}|\p{{N}}{{1,{digits}}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{LINES}")]
}

fn cased(suffixes: &str, number: &str) -> String {
    let before = r"[^\r\n\p{L}\p{N}]?";
    let words = format!("{before}{UPPER}*{LOWER}+{suffixes}|{before}{UPPER}+{LOWER}*{suffixes}");
    format!(r"{words}|{number}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{LINES}")
}

/// How a model's texts are split.
#[derive(Clone, Debug)]
pub(crate) struct Splitter {
    pub steps: Vec<Split>,
    pub whole_words: bool,
    pub begins: bool,
}

impl Splitter {
    /// The splitter with a name.
    pub fn named(name: &str) -> Result<Splitter, TextError> {
        let family = FAMILIES.iter().find(|family| family.names.contains(&name)).ok_or_else(|| {
            let known: Vec<_> = FAMILIES.iter().flat_map(|family| family.names).copied().collect();
            let known = known.join(", ");
            TextError::Unsupported(format!(
                "the pre-tokenizer '{name}' ('tokenizer.ggml.pre') is not known; there are: {known}"
            ))
        })?;
        let step = |text: &String| {
            let pattern = Pattern::regex(text, &format!("the pre-tokenizer '{name}'"))?;
            Ok(Split::Matches { pattern, behaviour: Behaviour::Isolated, inverted: false })
        };
        let mut steps = (family.patterns)().iter().map(step).collect::<Result<Vec<_>, TextError>>()?;
        steps.push(Split::Bytes);
        Ok(Splitter { steps, whole_words: family.whole_words, begins: family.begins })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::Word;

    fn split(name: &str, text: &str) -> Vec<String> {
        let mut words = vec![Word { text: text.into(), first: true }];
        let mut steps = Splitter::named(name).unwrap().steps;
        assert!(matches!(steps.pop(), Some(Split::Bytes)));
        for step in steps {
            let mut made = Vec::new();
            step.apply(words, &mut made);
            words = made;
        }
        words.into_iter().map(|word| word.text.into_owned()).collect()
    }

    #[test]
    fn all_patterns_compile() {
        for name in FAMILIES.iter().flat_map(|family| family.names) {
            assert!(!split(name, "Hello").is_empty(), "{name}");
        }
        assert!(Splitter::named("other").unwrap_err().to_string().contains("there are: llama3"));
    }

    #[test]
    fn spaces_go_with_the_word_behind_them() {
        assert_eq!(split("gpt-2", "Hello   world's end  "), ["Hello", "  ", " world", "'s", " end", "  "]);
        // Of the ends of lines before a word, too, the last is a word of its own.
        assert_eq!(split("gpt-2", "a\n\nb\n "), ["a", "\n", "\n", "b", "\n "]);
        assert_eq!(split("llama-bpe", "a\n\n  b 12345"), ["a", "\n\n", " ", " b", " ", "123", "45"]);
        assert_eq!(split("qwen2", "x=10;\r\n y"), ["x", "=", "1", "0", ";\r\n", " y"]);
    }

    #[test]
    fn lists_of_patterns_split_one_after_the_other() {
        assert_eq!(split("smollm", "ab 12 c"), ["ab", " ", "1", "2", " c"]);
        assert_eq!(split("gpt-4o", "HelloWorld's 1234"), ["Hello", "World's", " ", "123", "4"]);
        assert_eq!(split("qwen35", "e\u{301}t 12!\n"), ["e\u{301}t", " ", "1", "2", "!\n"]);
        assert_eq!(split("qwen2", "e\u{301}t"), ["e", "\u{301}t"]);
        assert_eq!(split("exaone-moe", "in the x1 y\n\n"), ["in the x", "1", " y", "\n\n"]);
        assert_eq!(split("tekken", "HTTPServer"), ["HTTPServer"]);
    }
}
