//! Files of tokenizers that ask for much: steps that lengthen texts, patterns, tokens and pairs without end, numbers out of place.

use serde_json::{Map, Value, json};

use crate::noise::Noise;

/// Patterns that take much of some machinery for regular expressions.
const PATTERNS: [&str; 12] = [
    "(a*)*b",
    "(a|a)*$",
    r"(?:\w{500}){3}",
    r"(?i)[\p{L}\p{N}]+(?=\s)",
    r"\s+(?!\S)|\s+",
    r"(?:(?:(?:a{0,40}){0,40}){0,40})",
    r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}",
    "(?<name>x)|",
    "",
    "((((((((((((((((((((((a))))))))))))))))))))))",
    r"\p{L}*\p{L}*\p{L}*\p{L}*\p{L}*x",
    "(",
];
/// Most tokens.
const TOKENS: u64 = 20_000;

/// A short text of few letters, so that many are the same or begin alike.
fn short(noise: &mut Noise) -> String {
    const LETTERS: [&str; 8] = ["a", "b", "e", "l", "\u{2581}", "\u{120}", "\u{e9}", "\u{4e2d}"];
    // Of some thousand texts one is far too long, more often one is just not.
    let length = match noise.below(40_000) {
        0 => noise.size(1 << 14),
        1..20 => noise.size(300),
        _ => noise.size(6),
    };
    (0..length).map(|_| *noise.pick::<&str>(&LETTERS)).collect()
}

fn number(noise: &mut Noise) -> Value {
    match noise.below(4) {
        0 => json!(noise.next() as i64),
        1 => json!(-1),
        2 => json!(noise.size(1 << 32)),
        _ => json!(noise.size(64)),
    }
}

/// A pattern, of as many levels as are left: repetitions of repetitions, alternatives that begin alike, and what looks around.
fn grown(noise: &mut Noise, depth: usize, to: &mut String) {
    const ATOMS: [&str; 12] =
        ["a", "b", ".", r"\p{L}", r"\w", "[^a]", r"\s", "(?i:a)", r"[\p{N}a-z]", "^", "$", r"\b"];
    if depth == 0 || to.len() > 1 << 12 {
        return *to += noise.pick::<&str>(&ATOMS);
    }
    let heads = ["(", "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"];
    *to += heads[if noise.once_in(60) { noise.below(heads.len()) } else { 1 }];
    for part in 0..noise.between(1, 3) {
        if part > 0 && noise.once_in(2) {
            to.push('|');
        }
        grown(noise, depth - 1, to);
    }
    to.push(')');
    match noise.below(8) {
        0 => to.push('*'),
        1 => to.push('+'),
        2 => *to += "*?",
        3 => to.push('?'),
        4 => *to += &format!("{{{},{}}}", noise.size(30), noise.size(1 << 12)),
        5 => *to += &format!("{{{}}}", noise.size(300)),
        _ => {}
    }
}

/// A tokenizer that is right but for its patterns, of which there are several.
pub fn patterns(noise: &mut Noise) -> Vec<u8> {
    let mut steps = Vec::new();
    for _ in 0..noise.between(1, 5) {
        let mut made = String::new();
        let depth = noise.between(1, 7);
        grown(noise, depth, &mut made);
        let split = json!({"Regex": made});
        steps.push(
            json!({"type": "Split", "pattern": split, "behavior": "Isolated", "invert": noise.once_in(2)}),
        );
    }
    let vocabulary: Map<String, Value> = ["a", "b", "e", "l", "[UNK]"]
        .iter()
        .enumerate()
        .map(|(id, token)| ((*token).to_owned(), json!(id)))
        .collect();
    let model = json!({"type": "BPE", "vocab": vocabulary, "merges": [], "unk_token": "[UNK]"});
    let splitter = json!({"type": "Sequence", "pretokenizers": steps});
    json!({"model": model, "pre_tokenizer": splitter}).to_string().into_bytes()
}

fn pattern(noise: &mut Noise) -> Value {
    match noise.once_in(2) {
        true => json!({"String": short(noise) + if noise.once_in(20) { "" } else { "a" }}),
        false => json!({"Regex": noise.pick::<&str>(&PATTERNS)}),
    }
}

/// A step of a list of steps; lists in lists as deep as is left.
fn normalizer(noise: &mut Noise, depth: usize) -> Value {
    match noise.below(if depth == 0 { 6 } else { 7 }) {
        0 => json!({"type": "Prepend", "prepend": short(noise)}),
        1 => {
            let content = short(noise).repeat(noise.size(4) as usize);
            json!({"type": "Replace", "pattern": pattern(noise), "content": content})
        }
        2 => {
            json!({"type": *noise.pick(&["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "ByteLevel"])})
        }
        3 => json!({"type": "Strip", "strip_left": noise.once_in(2), "strip_right": noise.once_in(2)}),
        4 => {
            json!({"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
            "lowercase": noise.once_in(2)})
        }
        5 => json!({"type": "Precompiled", "precompiled_charsmap": "A".repeat(noise.size(1 << 12) as usize)}),
        _ => {
            let steps: Vec<Value> = (0..noise.size(40)).map(|_| normalizer(noise, depth - 1)).collect();
            json!({"type": "Sequence", "normalizers": steps})
        }
    }
}

fn splitter(noise: &mut Noise, depth: usize) -> Value {
    let behaviour =
        *noise.pick(&["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]);
    match noise.below(if depth == 0 { 6 } else { 7 }) {
        0 => {
            json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": noise.once_in(2)})
        }
        1 => {
            json!({"type": "Split", "pattern": pattern(noise), "behavior": behaviour, "invert": noise.once_in(2)})
        }
        2 => {
            json!({"type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": "always", "split": true})
        }
        3 => json!({"type": *noise.pick(&["Whitespace", "WhitespaceSplit", "BertPreTokenizer"])}),
        4 => json!({"type": "FixedLength", "length": number(noise)}),
        5 => json!({"type": "Punctuation", "behavior": behaviour}),
        _ => {
            let steps: Vec<Value> = (0..noise.size(40)).map(|_| splitter(noise, depth - 1)).collect();
            json!({"type": "Sequence", "pretokenizers": steps})
        }
    }
}

fn decoder(noise: &mut Noise, depth: usize) -> Value {
    match noise.below(if depth == 0 { 5 } else { 6 }) {
        0 => json!({"type": "Replace", "pattern": pattern(noise), "content": short(noise)}),
        1 => json!({"type": *noise.pick(&["ByteFallback", "Fuse", "ByteLevel"])}),
        2 => json!({"type": "Strip", "content": " ", "start": number(noise), "stop": number(noise)}),
        3 => json!({"type": "WordPiece", "prefix": short(noise), "cleanup": true}),
        4 => json!({"type": "BPEDecoder", "suffix": short(noise)}),
        _ => {
            let steps: Vec<Value> = (0..noise.size(40)).map(|_| decoder(noise, depth - 1)).collect();
            json!({"type": "Sequence", "decoders": steps})
        }
    }
}

/// Tokens that are numbered, most of them in order.
fn vocabulary(noise: &mut Noise) -> Map<String, Value> {
    let mut tokens = Map::new();
    for letter in ["a", "b", "e", "l", "[UNK]"] {
        tokens.insert(letter.to_owned(), json!(tokens.len()));
    }
    let is_wild = noise.once_in(8);
    for _ in 0..noise.size(TOKENS) {
        let id = if is_wild && noise.once_in(50) { number(noise) } else { json!(tokens.len()) };
        tokens.entry(short(noise)).or_insert(id);
    }
    tokens
}

fn model(noise: &mut Noise) -> Value {
    match noise.below(4) {
        0 => {
            let scored: Vec<Value> =
                (0..noise.size(TOKENS)).map(|_| json!([short(noise), -(noise.size(20) as f64)])).collect();
            json!({"type": "Unigram", "unk_id": 0, "vocab": scored, "byte_fallback": noise.once_in(2)})
        }
        1 => json!({"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": short(noise),
            "max_input_chars_per_word": if noise.once_in(5) { number(noise) } else { json!(noise.size(4096)) }, "vocab": vocabulary(noise)}),
        2 => json!({"type": "WordLevel", "unk_token": "[UNK]", "vocab": vocabulary(noise)}),
        _ => {
            let mut tokens = vocabulary(noise);
            let mut merges = Vec::new();
            let mut last = "a".to_owned();
            // Each pair is twice as long as the one before, or as long as a letter more.
            let most = if noise.once_in(2) { 16 } else { 3000 };
            for _ in 0..noise.size(most) {
                let right = if merges.len() < 14 && noise.once_in(2) { last.clone() } else { "b".to_owned() };
                let joined = format!("{last}{right}");
                merges.push(if noise.once_in(2) {
                    json!(format!("{last} {right}"))
                } else {
                    json!([last, right])
                });
                let id = json!(tokens.len());
                tokens.entry(joined.clone()).or_insert(id);
                last = if joined.len() > 20_000 || noise.once_in(40) { "e".to_owned() } else { joined };
            }
            json!({"type": "BPE", "vocab": tokens, "merges": merges, "ignore_merges": noise.once_in(2),
                "byte_fallback": noise.once_in(2), "fuse_unk": true})
        }
    }
}

/// A `tokenizer.json`, most of whose steps are known.
pub fn json(noise: &mut Noise) -> Vec<u8> {
    let most = if noise.once_in(9) { 5000 } else { 4 };
    let added: Vec<Value> = (0..noise.size(most))
        .map(|index| {
            json!({"id": 5 + index, "content": format!("<{}{index}>", short(noise)), "single_word": false, "lstrip": noise.once_in(3),
                "rstrip": noise.once_in(3), "normalized": noise.once_in(2), "special": noise.once_in(2)})
        })
        .collect();
    let mut single: Vec<Value> =
        (0..noise.size(2000)).map(|_| json!({"SpecialToken": {"id": "a", "type_id": 0}})).collect();
    single.push(json!({"Sequence": {"id": "A", "type_id": 0}}));
    let marks = json!({"a": {"id": "a", "ids": [0], "tokens": ["a"]}});
    let template =
        json!({"type": "TemplateProcessing", "single": single, "pair": [], "special_tokens": marks});
    let mut some = |make: fn(&mut Noise, usize) -> Value| match noise.once_in(3) {
        true => Value::Null,
        false => make(noise, 3),
    };
    let [normalizer, splitter, decoder] = [some(normalizer), some(splitter), some(decoder)];
    let post = if noise.once_in(2) { Value::Null } else { template };
    let file = json!({"version": "1.0", "truncation": null, "padding": null, "added_tokens": added, "normalizer": normalizer,
        "pre_tokenizer": splitter, "post_processor": post, "decoder": decoder, "model": model(noise)});
    file.to_string().into_bytes()
}

/// A list of tokens as tiktoken has them: each byte, and what is put together of earlier tokens. Ranks may be anything.
pub fn list(noise: &mut Noise) -> Vec<u8> {
    let is_wild = noise.once_in(3);
    let mut tokens: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
    for _ in 0..noise.size(TOKENS) {
        // Letters that texts have, or the newest: each twice as long as the one before.
        let from = if noise.once_in(4) { tokens.len() } else { 128 };
        let (left, right) = (noise.below(from), noise.below(from));
        let joined = [&tokens[left][..], &tokens[right]].concat();
        tokens.push(if joined.len() > 1 << 12 { vec![b'a'; noise.size(300) as usize] } else { joined });
    }
    let line = |(index, token): (usize, &Vec<u8>)| {
        let rank = if is_wild && noise.once_in(300) { noise.next() >> noise.below(64) } else { index as u64 };
        format!("{} {rank}\n", base64(token))
    };
    tokens.iter().enumerate().map(line).collect::<String>().into_bytes()
}

/// Base64 (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let bits =
            three.iter().fold(0, |bits, byte| bits << 8 | usize::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let digit = char::from(DIGITS[bits >> (18 - 6 * place) & 63]);
            text.push(if place <= three.len() { digit } else { '=' });
        }
    }
    text
}

/// A model of SentencePiece, whose pieces and settings may be anything.
pub fn pieces(noise: &mut Noise) -> Vec<u8> {
    let mut file = Vec::new();
    for index in 0..noise.size(TOKENS).max(3) {
        let text = if index == 0 { "<unk>".to_owned() } else { short(noise) };
        let mut piece = field(1, text.as_bytes());
        piece.push(2 << 3 | 5);
        piece.extend((-(noise.size(20) as f32)).to_le_bytes());
        let kinds = if noise.once_in(20) { 9 } else { 2 };
        let kind = if index == 0 { 2 } else { noise.below(kinds) as u8 };
        piece.extend([3 << 3, kind]);
        file.extend(field(1, &piece));
    }
    let kind = noise.between(1, 2) as u8;
    // The kind of the model, whether bytes stand for what is not known, and the numbers of the marks.
    let trainer = [3 << 3, kind, 0x98, 0x02, noise.below(2) as u8, 0xC8, 0x02, noise.next() as u8 & 0x7F];
    file.extend(field(2, &trainer));
    if noise.once_in(8) {
        let map: Vec<u8> = (0..noise.size(1 << 14)).map(|_| noise.next() as u8).collect();
        file.extend(field(3, &field(2, &map)));
    }
    file
}

/// A field of a message of protocol buffers that has a length.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut made = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length > 0x7F {
        made.push(length as u8 | 0x80);
        length >>= 7;
    }
    made.push(length as u8);
    made.extend(bytes);
    made
}
