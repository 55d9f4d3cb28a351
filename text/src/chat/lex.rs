//! Templates in pieces: text as it stands, and the words and signs within `{{ }}` and `{% %}`. Spaces around blocks go as Jinja2's
//! `trim_blocks` and `lstrip_blocks` want it, which is how transformers reads templates.

use super::budget::{Done, Fault};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// Text as it stands.
    Raw(String),
    /// `{{` and `}}`.
    Open,
    Close,
    /// `{%` and `%}`.
    Begin,
    End,
    Name(String),
    Text(String),
    Int(i64),
    Float(f64),
    Sign(&'static str),
}

impl Token {
    /// For errors.
    pub fn told(&self) -> String {
        match self {
            Token::Raw(_) => "text".to_owned(),
            Token::Open => "'{{'".to_owned(),
            Token::Close => "'}}'".to_owned(),
            Token::Begin => "'{%'".to_owned(),
            Token::End => "'%}'".to_owned(),
            Token::Name(name) => format!("'{name}'"),
            Token::Text(_) => "a text".to_owned(),
            Token::Int(_) | Token::Float(_) => "a number".to_owned(),
            Token::Sign(sign) => format!("'{sign}'"),
        }
    }
}

/// Longer ones first.
const SIGNS: [&str; 29] = [
    "**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<", ">", "=", "(", ")", "[", "]", "{",
    "}", ",", ":", ".", "|", "!", ";", "@", "&",
];

struct Lexer<'s> {
    rest: &'s str,
    line: u32,
    tokens: Vec<(u32, Token)>,
    /// What the end of the tag before asks of the text that follows.
    trim: Trim,
}

#[derive(Clone, Copy, PartialEq)]
enum Trim {
    Nothing,
    NewLine,
    Spaces,
}

/// The pieces of a template, each with its line.
pub(super) fn lex(source: &str) -> Done<Vec<(u32, Token)>> {
    let source = source.replace("\r\n", "\n").replace('\r', "\n");
    let source = source.strip_suffix('\n').unwrap_or(&source);
    let mut lexer = Lexer { rest: source, line: 1, tokens: Vec::new(), trim: Trim::Nothing };
    while !lexer.rest.is_empty() {
        lexer.part()?;
    }
    Ok(lexer.tokens)
}

impl<'s> Lexer<'s> {
    fn fault(&self, text: impl Into<String>) -> Fault {
        Fault::new(text).at(self.line)
    }

    fn skip(&mut self, bytes: usize) -> &'s str {
        let (skipped, rest) = self.rest.split_at(bytes);
        self.line += skipped.matches('\n').count() as u32;
        self.rest = rest;
        skipped
    }

    fn push(&mut self, token: Token) {
        self.tokens.push((self.line, token));
    }

    /// Text up to the next tag, and the tag.
    fn part(&mut self) -> Done<()> {
        let tag = self
            .rest
            .match_indices('{')
            .map(|(at, _)| at)
            .find(|at| matches!(self.rest.as_bytes().get(at + 1), Some(b'{' | b'%' | b'#')));
        let Some(at) = tag else {
            let text = self.skip(self.rest.len());
            self.text(text, false, false);
            return Ok(());
        };
        let kind = self.rest.as_bytes()[at + 1];
        let sign = self.rest.as_bytes().get(at + 2).copied();
        let text = &self.rest[..at];
        self.text(text, sign == Some(b'-'), kind != b'{' && sign != Some(b'+'));
        self.skip(at + 2);
        if matches!(sign, Some(b'-' | b'+')) {
            self.skip(1);
        }
        match kind {
            b'#' => self.comment(),
            b'{' => self.tag(Token::Open, Token::Close, "}}"),
            _ => match self.raw()? {
                true => Ok(()),
                false => self.tag(Token::Begin, Token::End, "%}"),
            },
        }
    }

    /// Text as it stands, without what the tags around it take away.
    fn text(&mut self, text: &'s str, strip: bool, strip_line: bool) {
        let mut kept = match self.trim {
            Trim::Nothing => text,
            Trim::NewLine => text.strip_prefix('\n').unwrap_or(text),
            Trim::Spaces => text.trim_start(),
        };
        // A line begins behind a newline, also one that went, or where the template does.
        let begins = self.tokens.is_empty() && self.trim == Trim::Nothing
            || self.trim == Trim::NewLine && text.starts_with('\n');
        if strip {
            kept = kept.trim_end();
        } else if strip_line {
            let end = kept.trim_end_matches([' ', '\t', '\u{b}', '\u{c}']);
            if end.ends_with('\n')
                || end.is_empty() && (begins || text[..text.len() - kept.len()].contains('\n'))
            {
                kept = end;
            }
        }
        self.trim = Trim::Nothing;
        if !kept.is_empty() {
            self.push(Token::Raw(kept.to_owned()));
        }
    }

    /// What stands before the end of a tag asks for.
    fn ended(&mut self, sign: Option<char>, is_block: bool) {
        self.trim = match sign {
            Some('-') => Trim::Spaces,
            Some(_) => Trim::Nothing,
            None if is_block => Trim::NewLine,
            None => Trim::Nothing,
        };
    }

    fn comment(&mut self) -> Done<()> {
        let end = self.rest.find("#}").ok_or_else(|| self.fault("a comment has no end '#}'"))?;
        let sign = self.rest[..end].chars().next_back().filter(|sign| matches!(sign, '-' | '+'));
        self.skip(end + 2);
        self.ended(sign, true);
        Ok(())
    }

    /// The end of a block: with a sign before it and without.
    fn block_end(text: &str) -> Option<(Option<char>, usize)> {
        let text = text.trim_start();
        let sign = text.chars().next().filter(|sign| matches!(sign, '-' | '+'));
        let rest = &text[usize::from(sign.is_some())..];
        rest.starts_with("%}").then_some((sign, rest.len() - 2))
    }

    /// `{% raw %}`, with the text up to its end.
    fn raw(&mut self) -> Done<bool> {
        let word = self.rest.trim_start();
        let Some((sign, left)) = word.strip_prefix("raw").and_then(Self::block_end) else { return Ok(false) };
        self.skip(self.rest.len() - left);
        self.ended(sign, true);
        for (at, _) in self.rest.match_indices("{%") {
            let behind = &self.rest[at + 2..];
            let open = behind.chars().next().filter(|sign| matches!(sign, '-' | '+'));
            let word = behind[usize::from(open.is_some())..].trim_start();
            if let Some((sign, left)) = word.strip_prefix("endraw").and_then(Self::block_end) {
                let text = &self.rest[..at];
                self.text(text, open == Some('-'), open != Some('+'));
                self.skip(self.rest.len() - left);
                self.ended(sign, true);
                return Ok(true);
            }
        }
        Err(self.fault("'raw' has no end: {% endraw %}"))
    }

    /// The words and signs of a tag, up to its end.
    fn tag(&mut self, open: Token, close: Token, end: &str) -> Done<()> {
        self.push(open);
        let mut brackets = 0usize;
        loop {
            self.skip(self.rest.len() - self.rest.trim_start().len());
            if brackets == 0 {
                let sign = self.rest.chars().next().filter(|sign| matches!(sign, '-' | '+'));
                let at = usize::from(sign.is_some());
                if self.rest[at..].starts_with(end) {
                    self.skip(at + end.len());
                    let is_block = close == Token::End;
                    self.push(close);
                    self.ended(sign, is_block);
                    return Ok(());
                }
            }
            let Some(first) = self.rest.chars().next() else {
                return Err(self.fault(format!("a tag has no end '{end}'")));
            };
            let token = match first {
                '\'' | '"' => self.string(first)?,
                '0'..='9' => self.number()?,
                _ if first == '_' || first.is_alphabetic() => self.name(),
                _ => self.sign()?,
            };
            match token {
                Token::Sign("(" | "[" | "{") => brackets += 1,
                Token::Sign(")" | "]" | "}") => brackets = brackets.saturating_sub(1),
                _ => {}
            }
            self.push(token);
        }
    }

    fn name(&mut self) -> Token {
        let end = self.rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(self.rest.len());
        Token::Name(self.skip(end).to_owned())
    }

    fn sign(&mut self) -> Done<Token> {
        match SIGNS.iter().find(|sign| self.rest.starts_with(**sign)) {
            Some(sign) => {
                self.skip(sign.len());
                Ok(Token::Sign(sign))
            }
            None => {
                let sign = self.rest.chars().next().unwrap_or_default();
                Err(self.fault(format!("'{}' means nothing here", sign.escape_default())))
            }
        }
    }

    fn number(&mut self) -> Done<Token> {
        let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
        let mut end = digits(self.rest);
        let mut whole = true;
        if self.rest[end..].starts_with('.') && self.rest[end + 1..].starts_with(|c: char| c.is_ascii_digit())
        {
            whole = false;
            end += 1 + digits(&self.rest[end + 1..]);
        }
        if self.rest[end..].starts_with(['e', 'E']) {
            let behind = &self.rest[end + 1..];
            let sign = usize::from(behind.starts_with(['+', '-']));
            let length = digits(&behind[sign..]);
            if length > 0 {
                whole = false;
                end += 1 + sign + length;
            }
        }
        let text = self.skip(end).replace('_', "");
        let wrong = |_| self.fault(format!("{text} is no number that can be used"));
        Ok(match whole {
            true => Token::Int(text.parse().map_err(|_| wrong(()))?),
            false => Token::Float(text.parse().map_err(|_| wrong(()))?),
        })
    }

    fn string(&mut self, quote: char) -> Done<Token> {
        let mut made = String::new();
        let mut letters = self.rest[1..].char_indices();
        let end = loop {
            match letters.next() {
                None => return Err(self.fault("a text in quotes has no end")),
                Some((at, letter)) if letter == quote => break 1 + at + 1,
                Some((_, '\\')) => {
                    let rest = letters.as_str();
                    let taken = escape(rest, &mut made);
                    letters = letters_behind(letters, taken);
                }
                Some((_, letter)) => made.push(letter),
            }
        };
        self.skip(end);
        Ok(Token::Text(made))
    }
}

fn letters_behind(mut letters: std::str::CharIndices<'_>, taken: usize) -> std::str::CharIndices<'_> {
    for _ in 0..taken {
        letters.next();
    }
    letters
}

/// What stands for the letters behind a `\`, as in Python; gives how many were used.
fn escape(rest: &str, made: &mut String) -> usize {
    let Some(letter) = rest.chars().next() else { return 0 };
    let simple = match letter {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'a' => '\u{7}',
        'v' => '\u{b}',
        '\\' | '\'' | '"' => letter,
        '\n' => return 1,
        'x' | 'u' | 'U' => {
            let length = if letter == 'x' { 2 } else { 4 + 4 * usize::from(letter == 'U') };
            let digits =
                rest.get(1..=length).filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()));
            if let Some(made_of) =
                digits.and_then(|text| u32::from_str_radix(text, 16).ok()).and_then(char::from_u32)
            {
                made.push(made_of);
                return 1 + length;
            }
            made.push('\\');
            letter
        }
        _ => {
            made.push('\\');
            letter
        }
    };
    made.push(simple);
    1
}
