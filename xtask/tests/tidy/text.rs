//! Reads Rust sources as far as the checks need: what is code, where a bracket closes, which functions and paths there are. It is
//! no parser: it knows comments, strings, characters and brackets.

/// The text with comments, strings and characters replaced by spaces. It is as long, and has the same lines.
pub fn code_only(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let in_name = before.is_alphanumeric() || before == '_';
        let skipped = skipped(rest, in_name);
        if skipped == 0 {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            let blank = rest[..skipped].bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' });
            out.extend(blank);
            rest = &rest[skipped..];
        }
        before = first;
    }
    out
}

/// How many bytes at the beginning are a comment, a string or a character; none if they are code.
fn skipped(rest: &str, in_name: bool) -> usize {
    let until = |end: Option<usize>| end.unwrap_or(rest.len());
    match rest.as_bytes() {
        [b'/', b'/', ..] => until(rest.find('\n')),
        [b'/', b'*', ..] => block_comment(rest),
        [b'"', ..] => string(rest),
        [b'\'', ..] => character(rest),
        [b'r' | b'b' | b'c', ..] if !in_name => raw_string(rest),
        _ => 0,
    }
}

/// A comment in `/* */`; others may be in it.
fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match &rest.as_bytes()[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn string(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let mut at = 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// A character; a lifetime is none.
fn character(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    let Some((_, first)) = chars.next() else { return 0 };
    if first == '\\' {
        // What is escaped may be the mark itself.
        chars.next();
        return chars.find(|(_, c)| *c == '\'').map_or(0, |(at, _)| at + 1);
    }
    chars.next().filter(|(_, c)| *c == '\'').map_or(0, |(at, _)| at + 1)
}

fn raw_string(rest: &str) -> usize {
    let Some(inner) = ["br", "cr", "r"].iter().find_map(|prefix| rest.strip_prefix(prefix)) else { return 0 };
    let hashes = inner.len() - inner.trim_start_matches('#').len();
    let Some(body) = inner[hashes..].strip_prefix('"') else { return 0 };
    let end = format!("\"{}", "#".repeat(hashes));
    let begin = rest.len() - body.len();
    body.find(&end).map_or(rest.len(), |at| begin + at + end.len())
}

/// Where the bracket at this place is closed: behind the other one.
pub fn closing(code: &str, at: usize) -> usize {
    let mut depth = 0_usize;
    for (place, byte) in code.bytes().enumerate().skip(at) {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' | b')' | b']' => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 {
            return place + 1;
        }
    }
    code.len()
}

/// Code without the items that are for tests only.
pub fn without_tests(code: &str) -> String {
    let mut code = code.to_owned();
    while let Some(at) = code.find("#[cfg(test)]").or_else(|| code.find("#[cfg(all(test")) {
        let end = item(&code, at);
        let blank: String = code[at..end].bytes().map(|b| if b == b'\n' { '\n' } else { ' ' }).collect();
        code.replace_range(at..end, &blank);
    }
    code
}

/// The end of the item whose attributes begin here.
fn item(code: &str, at: usize) -> usize {
    let mut at = at;
    loop {
        at += code[at..].len() - code[at..].trim_start().len();
        if !code[at..].starts_with("#[") {
            break;
        }
        at = closing(code, at + 1);
    }
    match code[at..].find([';', '{']).map(|offset| at + offset) {
        Some(place) if code.as_bytes()[place] == b'{' => closing(code, place),
        Some(place) => place + 1,
        None => code.len(),
    }
}

/// Whether a character may be in a name.
pub fn of_a_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Places of a word in code.
pub fn places(code: &str, word: &str) -> impl Iterator<Item = usize> {
    code.match_indices(word).map(|(at, _)| at).filter(move |at| {
        !code[..*at].ends_with(of_a_name) && !code[*at + word.len()..].starts_with(of_a_name)
    })
}

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub struct Function<'a> {
    pub name: &'a str,
    /// The line on which it begins, from 1.
    pub line: usize,
    /// Lines from `fn` to its last bracket.
    pub lines: usize,
}

/// The functions in code.
pub fn functions(code: &str) -> Vec<Function<'_>> {
    let line = |at: usize| code[..at].matches('\n').count() + 1;
    let function = |at: usize| {
        let rest = code[at + 2..].trim_start();
        let name = &rest[..rest.find(|c| !of_a_name(c))?];
        let body = body(code, code.len() - rest.len() + name.len())?;
        let lines = code[at..closing(code, body)].matches('\n').count() + 1;
        (!name.is_empty()).then(|| Function { name, line: line(at), lines })
    };
    places(code, "fn").filter_map(function).collect()
}

/// Where a function's body begins, if it has one; from behind its name.
fn body(code: &str, from: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            b';' if depth == 0 => return None,
            b'{' if depth == 0 => return Some(at),
            _ => {}
        }
    }
    None
}

#[test]
fn what_is_no_code_is_left_out() {
    for (text, code) in [
        ("a // b\nc", "a     \nc"),
        ("a /* b /* c */ d */ e", "a                   e"),
        (r#"f("fn x() {", 'a', '\'', '"') // g"#, "f(          ,    ,     ,    )     "),
        ("<'a> &'a str 'b'", "<'a> &'a str    "),
        (r###"r#"a " b"# c"###, r###"           c"###),
        ("for_\"x\"", "for_   "),
        ("'ä' b", "     b"),
        ("\"no end", "       "),
        ("'\\u{41}' b", "         b"),
        (r#"b"x\"y" c b'"' d"#, "b       c b    d"),
    ] {
        assert_eq!(code_only(text), code, "{text}");
    }
}

#[test]
fn functions_are_measured() {
    let text =
        "fn a() {\n  b(|x| { x })\n}\ntrait T { fn c(); fn d(x: [u8; 3]) -> u8 {\n 1 } }\nlet f: fn(u8) = g;";
    let found = functions(text);
    assert_eq!(found[0], Function { name: "a", line: 1, lines: 3 });
    assert_eq!(found[1], Function { name: "d", line: 4, lines: 2 });
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn tests_are_left_out() {
    let code = "a;\n#[cfg(test)]\nmod tests;\nb;\n#[cfg(test)]\n#[path = x]\nmod t { fn f() { } }\nc;\n#[cfg(all(test, unix))]\nuse x;";
    let left: Vec<_> = without_tests(code).split_whitespace().map(str::to_owned).collect();
    assert_eq!(left, ["a;", "b;", "c;"]);
}
