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
/// A line, and ends of lines.
const LINE: &str = r"[^\n]+|\n+";
/// Words as upper-case letters followed by lower-case ones.
const UPPER: &str = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]";
const LOWER: &str = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]";

/// What lies between signs that end a clause.
const CLAUSES: &str = r" ?[^(\s|.,!?\u{2026}\u{3002}\u{FF0C}\u{3001}\u{964}\u{6D4}\u{60C})]+";
/// Chinese and Japanese.
const HAN_AND_KANA: &str = r"[\u{4E00}-\u{9FA5}\u{3040}-\u{309F}\u{30A0}-\u{30FF}]+";
/// Signs with letters of ASCII behind them, letters with their marks, signs.
const MARKED: &str = r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+"##;
/// Chinese and Korean, as DeepSeek's first models have them.
const HAN_AND_HANGUL: &str = r"[\u{4E00}-\u{9FA5}\u{800}-\u{4E00}\u{AC00}-\u{D7FF}]+";
/// The letters of scripts with upper and lower case that those models know.
const CASED_LETTERS: &str = concat!(
    r"A-Za-z\u{B5}\u{C0}-\u{D6}\u{D8}-\u{F6}\u{F8}-\u{1BA}\u{1BC}-\u{1BF}\u{1C4}-\u{293}\u{295}-\u{2AF}",
    r"\u{370}-\u{373}\u{376}\u{377}\u{37B}-\u{37D}\u{37F}\u{386}\u{388}-\u{38A}\u{38C}\u{38E}-\u{3A1}",
    r"\u{3A3}-\u{3F5}\u{3F7}-\u{481}\u{48A}-\u{52F}\u{531}-\u{556}\u{10A0}-\u{10C5}\u{13A0}-\u{13F5}",
    r"\u{13F8}-\u{13FD}\u{1C90}-\u{1CBA}\u{1CBD}-\u{1CBF}\u{1D00}-\u{1D2B}\u{1D6B}-\u{1D77}\u{1D79}-",
    r"\u{1D9A}\u{1E00}-\u{1F15}\u{1F18}-\u{1F1D}\u{1F20}-\u{1F45}\u{1F48}-\u{1F4D}\u{1F50}-\u{1F57}",
    r"\u{1F59}\u{1F5B}\u{1F5D}\u{1F5F}-\u{1F7D}\u{1F80}-\u{1FB4}\u{1FB6}-\u{1FBC}\u{1FBE}\u{1FC2}-\u{1FC4}",
    r"\u{1FC6}-\u{1FCC}\u{1FD0}-\u{1FD3}\u{1FD6}-\u{1FDB}\u{1FE0}-\u{1FEC}\u{1FF2}-\u{1FF4}\u{1FF6}-",
    r"\u{1FFC}\u{2102}\u{2107}\u{210A}-\u{2113}\u{2115}\u{2119}-\u{211D}\u{2124}\u{2126}\u{2128}\u{212A}-",
    r"\u{212D}\u{212F}-\u{2134}\u{2139}\u{213C}-\u{213F}\u{2145}-\u{2149}\u{214E}\u{2183}\u{2184}\u{2C00}-",
    r"\u{2C7B}\u{2C7E}-\u{2CE4}\u{2CEB}-\u{2CEE}\u{2CF2}\u{2CF3}\u{A640}-\u{A66D}\u{A680}-\u{A69B}",
    r"\u{A722}-\u{A76F}\u{A771}-\u{A787}\u{A78B}-\u{A78E}\u{AB70}-\u{ABBF}\u{FB00}-\u{FB06}\u{FB13}-",
    r"\u{FB17}\u{FF21}-\u{FF3A}\u{FF41}-\u{FF5A}\u{10400}-\u{1044F}\u{104B0}-\u{104D3}\u{104D8}-\u{104FB}",
    r"\u{10C80}-\u{10CB2}\u{10CC0}-\u{10CF2}\u{118A0}-\u{118DF}\u{1E900}-\u{1E943}",
);
/// Scripts of East and South-East Asia without spaces.
const EAST_ASIA: &str = concat!(
    r"\u{4E00}-\u{9FFF}\u{3400}-\u{4DBF}\u{8C48}-\u{FAFF}\u{3040}-\u{309F}\u{30A0}-\u{30FF}\u{FF65}-",
    r"\u{FF9F}\u{2F00}-\u{2FDF}\u{E40}-\u{E7F}\u{E80}-\u{EFF}\u{1780}-\u{17FF}\u{1000}-\u{109F}\u{AA60}-",
    r"\u{AA7F}\u{A9E0}-\u{A9FF}\u{AC00}-\u{D7AF}\u{1100}-\u{11FF}",
);

/// How numbers are split into groups of three digits, counted from their end.
#[derive(Clone, Copy, Debug)]
enum Numbers {
    Thousands,
    AsciiThousands,
}

/// How the words of texts are written that are not bytes, each as a character of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Raw {
    /// As they are.
    Plain,
    /// With a mark for spaces; `whole_lines` where a word of ends of lines that is a token stays whole.
    Spaced { whole_lines: bool },
}

/// Whether texts begin with the token of the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begins {
    /// Whatever the metadata say.
    Always,
    /// Unless the metadata say otherwise.
    Usually,
    /// If the metadata say so.
    Rarely,
}

/// Names with the same splitting.
struct Family {
    names: &'static [&'static str],
    patterns: fn() -> Vec<String>,
    /// How numbers are split before that.
    numbers: Option<Numbers>,
    raw: Option<Raw>,
    /// Whether a word that is a token stays whole.
    whole_words: bool,
    begins: Begins,
}

const fn family(names: &'static [&'static str], patterns: fn() -> Vec<String>) -> Family {
    Family { names, patterns, numbers: None, raw: None, whole_words: false, begins: Begins::Rarely }
}

impl Family {
    /// The same, in which words that are tokens stay whole.
    const fn of_whole_words(self) -> Family {
        Family { whole_words: true, ..self }
    }
}

const FAMILIES: &[Family] = &[
    Family {
        names: &[
            "llama3",
            "llama-v3",
            "llama-bpe",
            "falcon3",
            "falcon-h1",
            "pixtral",
            "midm-2.0",
            "lfm2",
            "jina-v5-nano",
        ],
        begins: Begins::Usually,
        ..family(&[], || modern(3)).of_whole_words()
    },
    family(&["dbrx", "smaug-bpe", "chatglm-bpe"], || modern(3)),
    family(&["glm4"], || modern(3)).of_whole_words(),
    family(
        &[
            "qwen2",
            "deepseek-r1-qwen",
            "stablelm2",
            "hunyuan",
            "megrez",
            "kormo",
            "f2llmv2",
            "solar-open",
            "grok-2",
        ],
        || modern(1),
    ),
    family(&["deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"], || {
        vec![r"\p{N}{1,3}".to_owned(), HAN_AND_KANA.to_owned(), format!(r"{MARKED}[\r\n]*|{LINES}")]
    }),
    Family {
        numbers: Some(Numbers::Thousands),
        ..family(&["afmoe"], || vec![format!("[{EAST_ASIA}]+"), format!(r"{MARKED}[\r\n]*|{LINES}")])
    },
    family(&["deepseek-llm"], || {
        vec![
            r"[\r\n]".to_owned(),
            format!(r"\s?[{CASED_LETTERS}]+"),
            r"\s?[!-/:-~\u{FF01}-\u{FF0F}\u{FF1A}-\u{FF5E}\u{2018}-\u{201F}\u{3000}-\u{3002}]+".to_owned(),
            r"\s+\z".to_owned(),
            HAN_AND_HANGUL.to_owned(),
            r"\p{N}+".to_owned(),
        ]
    }),
    family(&["deepseek-coder"], || {
        let parts = [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", HAN_AND_HANGUL, r"\p{N}"];
        parts.map(str::to_owned).into()
    }),
    family(&["bailingmoe", "bailingmoe2", "llada-moe"], || {
        let suffixes = "'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])";
        vec![format!(
            r"{suffixes}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
        )]
    }),
    family(&["seed-coder"], || {
        let letters = r"[^\r\n\p{L}\p{N}]?\p{L}+";
        vec![format!(r"{ANY_SUFFIXES}|{letters}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}\r\n]+|{LINES}")]
    }),
    family(&["minicpm5"], || {
        let letters = r"[^\r\n\p{L}\p{N}]?\p{L}+";
        let words = format!(r"{ANY_SUFFIXES}|{letters}|\p{{N}}+| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{LINES}");
        vec![r"\p{N}{1,3}".to_owned(), words]
    })
    .of_whole_words(),
    // Words of Chinese are apart from all others.
    family(&["kimi-k2"], || {
        let (upper, lower) = (format!(r"[{UPPER}&&[^\p{{Han}}]]"), format!(r"[{LOWER}&&[^\p{{Han}}]]"));
        let (before, suffixes) = (r"[^\r\n\p{L}\p{N}]?", format!("(?:{ANY_SUFFIXES})?"));
        let words = format!("{before}{upper}*{lower}+{suffixes}|{before}{upper}+{lower}*{suffixes}");
        vec![format!(r"\p{{Han}}+|{words}|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{LINES}")]
    }),
    family(&["poro-chat", "bloom", "gpt3-finnish"], || vec![CLAUSES.to_owned()]),
    family(&["viking"], || vec![CLAUSES.to_owned(), r"\p{N}".to_owned()]),
    // Ends of lines and numbers are split further.
    family(&["spark2_5"], || {
        let words = format!(r"{MARKED}|[\r\n]|\s+(?!\S)|\s+");
        vec![r"\p{N}{1,3}".to_owned(), HAN_AND_KANA.to_owned(), words, r"\p{N}".to_owned()]
    }),
    // Lines are split first.
    family(&["laguna"], || [vec![LINE.to_owned()], modern(1)].concat()),
    // Turkish, whose suffixes stand behind an apostrophe and stay together.
    family(&["ufakzeka"], || {
        let letters = r"[^\r\n\p{L}\p{N}]?\p{L}+";
        vec![format!(r"{letters}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{LINES}")]
    }),
    // White space in powers of two.
    family(&["jais-2"], || {
        let letters = r"[^\r\n\p{L}\p{N}]?\p{L}+";
        let spaces: String =
            [512, 256, 128, 64, 32, 16, 8, 4].map(|count| format!(r"|\s{{{count}}}(?!\S)")).concat();
        let signs = r" ?[^\s\p{L}\p{N}]+[\r\n]*";
        vec![format!(
            r"{ANY_SUFFIXES}|{letters}|\p{{N}}{{1,3}}|{signs}|\s*[\r\n]+{spaces}|\s{{1,2}}(?!\S)|\s"
        )]
    }),
    family(&["youtu"], || {
        let apart = concat!(
            r"[\u{AC00}-\u{D7A3}\u{3131}-\u{318E}]+",
            r"|[\u{FF01}\u{2026}\u{201C}\u{201D}\u{2018}\u{2019}\u{2014}\u{FF1A}\u{FF1B}\u{FF0C}\u{3001}-\u{303F}\u{FE30}-\u{FE4F}]+",
            r"|[\u{3105}-\u{312F}]+|"
        );
        let suffixes = format!("(?:{ANY_SUFFIXES})?");
        vec![format!("{apart}{HAN_AND_KANA}"), cased(&suffixes, r"\p{N}")]
    })
    .of_whole_words(),
    Family {
        begins: Begins::Usually,
        ..family(&["chameleon"], || {
            let parts = [
                "<sentinel:[0-9]+>",
                "IMGIMG[A-I]{1,4}Z",
                r"[\t\n]|    |  ",
                r"\p{N}",
                r"[\p{P}!-/:-@\[-`{-~]",
            ];
            [parts.map(str::to_owned).into(), vec![gpt2()]].concat()
        })
    },
    // Words go on over spaces; only numbers are apart.
    Family {
        numbers: Some(Numbers::AsciiThousands),
        ..family(&["superbpe"], || vec![r"\p{N}+".to_owned()])
    },
    // Lines are the words, in which a mark stands for spaces.
    Family {
        raw: Some(Raw::Spaced { whole_lines: true }),
        begins: Begins::Always,
        ..family(&["gemma4", "granite-embed-multi-311m"], || vec![LINE.to_owned()])
    },
    Family {
        raw: Some(Raw::Spaced { whole_lines: false }),
        ..family(&["sarvam-moe"], || vec![LINE.to_owned()])
    },
    Family { raw: Some(Raw::Plain), ..family(&["whitespace"], || vec![r"\S+".to_owned()]) },
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
            "jina-es",
            "jina-de",
            "jina-v2-es",
            "jina-v2-de",
            "jina-v1-en",
            "jina-v2-code",
            "gigachat",
            "a.x-4.0",
            "mellum",
        ],
        || vec![gpt2()],
    ),
    family(
        &["starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"],
        || vec![r"\p{N}".to_owned(), gpt2()],
    ),
    family(&["falcon"], || vec![r"[\p{P}\$\+<=>\^~\|`]+".to_owned(), gpt2(), "[0-9]{3}".to_owned()]),
    family(&["default"], || {
        vec![r"[\p{P}\$\+<=>\^~\|]+".to_owned(), gpt2(), r"\p{N}+".to_owned(), "[0-9]{3}".to_owned()]
    }),
    Family {
        begins: Begins::Usually,
        ..family(&["tekken"], || vec![cased("", r"\p{N}")]).of_whole_words()
    },
    family(&["gpt-4o", "llama4", "kanana2", "minimax-m2", "talkie"], gpt4o),
    family(&["granite-embed-multi-97m"], gpt4o).of_whole_words(),
    Family { numbers: Some(Numbers::Thousands), ..family(&["tiny_aya", "cohere2moe"], gpt4o) },
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

/// The pattern of GPT-4o.
fn gpt4o() -> Vec<String> {
    let suffixes = format!("(?:{ANY_SUFFIXES})?");
    vec![cased(&suffixes, r"\p{N}{1,3}")]
}

/// How a model's texts are split.
#[derive(Clone, Debug)]
pub(crate) struct Splitter {
    pub steps: Vec<Split>,
    pub whole_words: bool,
    pub begins: Begins,
    pub raw: Option<Raw>,
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
        let step = |text: &String| -> Result<Split, TextError> {
            let pattern = Pattern::regex(text, &format!("the pre-tokenizer '{name}'"))?;
            Ok(Split::Matches { pattern, behaviour: Behaviour::Isolated, inverted: false })
        };
        let mut steps = match family.numbers {
            None => Vec::new(),
            Some(Numbers::Thousands) => vec![Split::Thousands],
            Some(Numbers::AsciiThousands) => vec![Split::AsciiThousands],
        };
        for text in &(family.patterns)() {
            steps.push(step(text)?);
        }
        if family.raw.is_none() {
            steps.push(Split::Bytes);
        }
        let &Family { whole_words, begins, raw, .. } = family;
        Ok(Splitter { steps, whole_words, begins, raw })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::Word;

    fn split(name: &str, text: &str) -> Vec<String> {
        let mut words = vec![Word { text: text.into(), first: true }];
        let Splitter { mut steps, raw, .. } = Splitter::named(name).unwrap();
        let is_raw = raw.is_some();
        assert!(steps.pop_if(|step| matches!(step, Split::Bytes)).is_some() || is_raw);
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
        assert_eq!(split("afmoe", "a  1234567"), ["a", "  ", "1", "234", "567"]);
    }

    #[test]
    fn tokens_stay_whole_words_where_their_models_say_so() {
        let is_whole = |name: &str| {
            let family = FAMILIES.iter().find(|family| family.names.contains(&name)).expect("a family");
            family.whole_words
        };
        assert!(is_whole("glm4") && is_whole("llama-bpe") && is_whole("tekken"));
        assert!(!is_whole("chatglm-bpe") && !is_whole("dbrx") && !is_whole("qwen2"));
    }
}
