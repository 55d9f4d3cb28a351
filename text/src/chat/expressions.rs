//! Reads expressions, with the ranks of Jinja2.

use std::{collections::HashMap, sync::Arc};

use super::{
    budget::{Done, Fault, Text},
    lex::Token,
    tree::{Arguments, Behind, Comparison, Expression, LOOP, Macro, Name, Operator},
};

/// Brackets within brackets, and blocks within blocks.
const DEPTH: usize = 64;
/// Arguments of a call, and parameters of a macro.
pub(super) const ARGUMENTS: usize = 64;

/// Words that no value is named by, and that end a test's argument.
const WORDS: [&str; 7] = ["and", "or", "not", "if", "else", "is", "in"];

pub(super) struct Parser {
    tokens: std::vec::IntoIter<(u32, Token)>,
    line: u32,
    depth: usize,
    known: HashMap<Box<str>, Name>,
    pub names: Vec<Box<str>>,
    pub macros: Vec<Macro>,
}

impl Parser {
    pub fn new(tokens: Vec<(u32, Token)>) -> Parser {
        let mut made = Parser {
            tokens: tokens.into_iter(),
            line: 1,
            depth: 0,
            known: HashMap::new(),
            names: Vec::new(),
            macros: Vec::new(),
        };
        let number = made.name_of("loop");
        debug_assert_eq!(number, LOOP);
        made
    }

    pub fn name_of(&mut self, name: &str) -> Name {
        if let Some(known) = self.known.get(name) {
            return *known;
        }
        let number = self.names.len() as Name;
        self.names.push(name.into());
        self.known.insert(name.into(), number);
        number
    }

    /// The line of what comes next.
    pub fn line(&self) -> u32 {
        self.tokens.as_slice().first().map_or(self.line, |(line, _)| *line)
    }

    pub fn peek(&self) -> Option<&Token> {
        self.tokens.as_slice().first().map(|(_, token)| token)
    }

    fn second(&self) -> Option<&Token> {
        self.tokens.as_slice().get(1).map(|(_, token)| token)
    }

    pub fn next(&mut self) -> Option<Token> {
        self.line = self.line();
        self.tokens.next().map(|(_, token)| token)
    }

    pub fn fault(&self, wanted: &str) -> Fault {
        let found = self.peek().map_or("the end of the template".to_owned(), Token::told);
        Fault::new(format!("{wanted} is wanted, and there is {found}")).at(self.line())
    }

    pub fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Some(Token::Sign(found)) if *found == sign)
    }

    pub fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(Token::Name(found)) if found == word)
    }

    /// Goes on behind the sign, if it is next.
    pub fn sign(&mut self, sign: &str) -> bool {
        let is = self.is_sign(sign);
        if is {
            self.next();
        }
        is
    }

    pub fn word(&mut self, word: &str) -> bool {
        let is = self.is_word(word);
        if is {
            self.next();
        }
        is
    }

    pub fn expect(&mut self, sign: &str) -> Done<()> {
        if self.sign(sign) { Ok(()) } else { Err(self.fault(&format!("'{sign}'"))) }
    }

    pub fn a_name(&mut self) -> Done<String> {
        match self.peek() {
            Some(Token::Name(name)) if !WORDS.contains(&&**name) => {
                let name = name.clone();
                self.next();
                Ok(name)
            }
            _ => Err(self.fault("a name")),
        }
    }

    /// The word that a statement begins with.
    pub fn a_name_or_if(&mut self) -> Done<String> {
        if self.word("if") { Ok("if".to_owned()) } else { self.a_name() }
    }

    /// Reads something within something.
    pub fn within<T>(&mut self, read: impl FnOnce(&mut Parser) -> Done<T>) -> Done<T> {
        if self.depth == DEPTH {
            let text = format!("blocks and brackets are more than {DEPTH} deep");
            return Err(Fault::limit(text).at(self.line()));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// An expression, or several with commas between, which are a tuple.
    pub fn several(&mut self) -> Done<Expression> {
        let first = self.expression()?;
        if !self.is_sign(",") {
            return Ok(first);
        }
        let mut all = vec![first];
        while self.sign(",") {
            if matches!(self.peek(), Some(Token::Close | Token::End)) || self.is_sign(")") {
                break;
            }
            all.push(self.expression()?);
        }
        Ok(Expression::Tuple(all))
    }

    pub fn expression(&mut self) -> Done<Expression> {
        self.within(|parser| {
            let value = parser.any_of()?;
            if !parser.word("if") {
                return Ok(value);
            }
            let test = parser.any_of()?;
            let otherwise = if parser.word("else") { Some(Box::new(parser.expression()?)) } else { None };
            Ok(Expression::Choice(Box::new([test, value]), otherwise))
        })
    }

    /// What is without a condition of its own: `or` and what binds more.
    pub fn any_of(&mut self) -> Done<Expression> {
        let mut all = vec![self.all_of()?];
        while self.word("or") {
            all.push(self.all_of()?);
        }
        Ok(one_or(all, Expression::Or))
    }

    fn all_of(&mut self) -> Done<Expression> {
        let mut all = vec![self.negated()?];
        while self.word("and") {
            all.push(self.negated()?);
        }
        Ok(one_or(all, Expression::And))
    }

    fn negated(&mut self) -> Done<Expression> {
        match self.word("not") {
            true => Ok(Expression::Not(Box::new(self.within(Parser::negated)?))),
            false => self.compared(),
        }
    }

    fn comparison(&mut self) -> Option<Comparison> {
        let (found, length) = match (self.peek()?, self.second()) {
            (Token::Sign("=="), _) => (Comparison::Equal, 1),
            (Token::Sign("!="), _) => (Comparison::Unequal, 1),
            (Token::Sign("<"), _) => (Comparison::Less, 1),
            (Token::Sign("<="), _) => (Comparison::LessEqual, 1),
            (Token::Sign(">"), _) => (Comparison::More, 1),
            (Token::Sign(">="), _) => (Comparison::MoreEqual, 1),
            (Token::Name(word), _) if word == "in" => (Comparison::In, 1),
            (Token::Name(a), Some(Token::Name(b))) if a == "not" && b == "in" => (Comparison::NotIn, 2),
            _ => return None,
        };
        (0..length).for_each(|_| drop(self.next()));
        Some(found)
    }

    fn compared(&mut self) -> Done<Expression> {
        let first = self.sum()?;
        let mut all = Vec::new();
        while let Some(comparison) = self.comparison() {
            all.push((comparison, self.sum()?));
        }
        Ok(if all.is_empty() { first } else { Expression::Compared(Box::new(first), all) })
    }

    fn row(
        &mut self,
        signs: &[(&str, Operator)],
        part: impl Fn(&mut Parser) -> Done<Expression>,
    ) -> Done<Expression> {
        let first = part(self)?;
        let mut all = Vec::new();
        while let Some((_, operator)) = signs.iter().find(|(sign, _)| self.is_sign(sign)) {
            self.next();
            all.push((*operator, part(self)?));
        }
        Ok(if all.is_empty() { first } else { Expression::Row(Box::new(first), all) })
    }

    fn sum(&mut self) -> Done<Expression> {
        self.row(&[("+", Operator::Add), ("-", Operator::Subtract)], |parser| {
            let mut all = vec![parser.product()?];
            while parser.sign("~") {
                all.push(parser.product()?);
            }
            Ok(one_or(all, Expression::Joined))
        })
    }

    fn product(&mut self) -> Done<Expression> {
        const SIGNS: [(&str, Operator); 4] = [
            ("*", Operator::Multiply),
            ("/", Operator::Divide),
            ("//", Operator::Whole),
            ("%", Operator::Rest),
        ];
        self.row(&SIGNS, |parser| parser.row(&[("**", Operator::Power)], |parser| parser.unary(true)))
    }

    fn unary(&mut self, filters: bool) -> Done<Expression> {
        let value = if self.sign("-") {
            Expression::Minus(Box::new(self.within(|parser| parser.unary(false))?))
        } else if self.sign("+") {
            Expression::Plus(Box::new(self.within(|parser| parser.unary(false))?))
        } else {
            self.primary()?
        };
        let mut behind = Vec::new();
        while let Some(next) = self.behind(filters)? {
            behind.push(next);
        }
        Ok(if behind.is_empty() { value } else { Expression::With(Box::new(value), behind) })
    }

    fn primary(&mut self) -> Done<Expression> {
        let line = self.line();
        match self.next() {
            Some(Token::Name(name)) => match &*name {
                "true" | "True" => Ok(Expression::Bool(true)),
                "false" | "False" => Ok(Expression::Bool(false)),
                "none" | "None" => Ok(Expression::None),
                word if WORDS.contains(&word) => Err(no_value(Some(&Token::Name(name)), line)),
                name => Ok(Expression::Name(self.name_of(name))),
            },
            Some(Token::Text(mut text)) => {
                while let Some(Token::Text(more)) = self.peek() {
                    text.push_str(more);
                    self.next();
                }
                Ok(Expression::Text(Arc::new(Text::literal(text))))
            }
            Some(Token::Int(number)) => Ok(Expression::Int(number)),
            Some(Token::Float(number)) => Ok(Expression::Float(number)),
            Some(Token::Sign("(")) => {
                if self.sign(")") {
                    return Ok(Expression::Tuple(Vec::new()));
                }
                let value = self.several()?;
                self.expect(")")?;
                Ok(value)
            }
            Some(Token::Sign("[")) => Ok(Expression::List(self.list("]", Parser::expression)?)),
            Some(Token::Sign("{")) => Ok(Expression::Map(self.list("}", |parser| {
                let key = parser.expression()?;
                parser.expect(":")?;
                Ok((key, parser.expression()?))
            })?)),
            other => Err(no_value(other.as_ref(), line)),
        }
    }

    /// Things with commas between, up to a sign.
    fn list<T>(&mut self, end: &str, read: impl Fn(&mut Parser) -> Done<T>) -> Done<Vec<T>> {
        let mut all = Vec::new();
        while !self.sign(end) {
            all.push(read(self)?);
            if !self.sign(",") {
                self.expect(end)?;
                break;
            }
        }
        Ok(all)
    }

    /// What stands behind a value, if there is something.
    fn behind(&mut self, filters: bool) -> Done<Option<Behind>> {
        if self.sign(".") {
            return Ok(Some(match self.next() {
                Some(Token::Name(name)) => Behind::Attribute(name.into()),
                Some(Token::Int(number)) => Behind::Item(Expression::Int(number)),
                _ => return Err(self.fault("an attribute's name")),
            }));
        }
        if self.sign("[") {
            return self.item().map(Some);
        }
        if self.sign("(") {
            return Ok(Some(Behind::Call(self.arguments()?)));
        }
        if filters && self.sign("|") {
            return self.filter().map(Some);
        }
        if filters && self.word("is") {
            return self.test().map(Some);
        }
        Ok(None)
    }

    /// A filter's name, and what it is given.
    pub fn filter(&mut self) -> Done<Behind> {
        let name = self.a_name()?;
        let arguments = if self.sign("(") { self.arguments()? } else { Arguments::default() };
        Ok(Behind::Filter(name.into(), arguments))
    }

    fn test(&mut self) -> Done<Behind> {
        let not = self.word("not");
        let name: Box<str> = match self.next() {
            Some(Token::Name(name)) => name.into(),
            _ => return Err(self.fault("a test's name")),
        };
        let arguments = match self.peek() {
            Some(Token::Sign("(")) => {
                self.next();
                self.arguments()?
            }
            Some(Token::Name(word)) if WORDS.contains(&&**word) => Arguments::default(),
            Some(
                Token::Name(_) | Token::Text(_) | Token::Int(_) | Token::Float(_) | Token::Sign("[" | "{"),
            ) => {
                let value = self.within(|parser| parser.unary(false))?;
                Arguments { places: vec![value], names: Vec::new() }
            }
            _ => Arguments::default(),
        };
        Ok(Behind::Test { name, arguments, not })
    }

    /// `[1]` or `[1:2:3]`, behind the bracket.
    fn item(&mut self) -> Done<Behind> {
        let mut parts = [const { None }; 3];
        let mut colons = 0;
        loop {
            if self.sign("]") {
                break;
            }
            if self.sign(":") {
                colons += 1;
                if colons == 3 {
                    return Err(self.fault("']'"));
                }
            } else if parts[colons].is_none() {
                parts[colons] = Some(self.several()?);
            } else {
                return Err(self.fault("']'"));
            }
        }
        match parts {
            [Some(item), None, None] if colons == 0 => Ok(Behind::Item(item)),
            parts if colons > 0 => Ok(Behind::Slice(Box::new(parts))),
            _ => Err(self.fault("an index")),
        }
    }

    /// What is between the brackets of a call, behind the first.
    pub fn arguments(&mut self) -> Done<Arguments> {
        let all = self.list(")", |parser| {
            let name = match (parser.peek(), parser.second()) {
                (Some(Token::Name(name)), Some(Token::Sign("="))) => Some(Box::from(&**name)),
                _ => None,
            };
            if name.is_some() {
                parser.next();
                parser.next();
            }
            Ok((name, parser.expression()?))
        })?;
        if all.len() > ARGUMENTS {
            let text = format!("a call with {} arguments; {ARGUMENTS} are the most", all.len());
            return Err(Fault::limit(text).at(self.line()));
        }
        let mut arguments = Arguments::default();
        for (name, value) in all {
            match name {
                Some(name) => arguments.names.push((name, value)),
                None if arguments.names.is_empty() => arguments.places.push(value),
                None => {
                    return Err(
                        Fault::new("an argument without a name stands behind one that has one").at(self.line)
                    );
                }
            }
        }
        Ok(arguments)
    }
}

fn no_value(found: Option<&Token>, line: u32) -> Fault {
    let found = found.map_or("the end of the template".to_owned(), Token::told);
    Fault::new(format!("a value is wanted, and there is {found}")).at(line)
}

fn one_or(mut all: Vec<Expression>, row: impl FnOnce(Vec<Expression>) -> Expression) -> Expression {
    match all.pop() {
        Some(only) if all.is_empty() => only,
        Some(last) => {
            all.push(last);
            row(all)
        }
        None => row(all),
    }
}
