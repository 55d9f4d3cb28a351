//! Reads templates: their statements.

use super::{
    budget::{Done, Fault},
    expressions::{ARGUMENTS, Parser},
    lex::{Token, lex},
    tree::{Behind, Body, For, Macro, Statement, Target, Template},
};

/// How long a template may be; those of models have some thousand bytes.
const LONGEST: usize = 512 << 10;

/// Reads a template.
pub(super) fn parse(source: &str) -> Done<Template> {
    if source.len() > LONGEST {
        return Err(Fault::limit(format!("has {} bytes; {LONGEST} are the most", source.len())));
    }
    let mut parser = Parser::new(lex(source)?);
    let body = body(&mut parser, &[], false)?;
    Ok(Template { names: parser.names, macros: parser.macros, body })
}

/// Statements up to one of the words, which is next then, or to the end of the template where there is none.
fn body(parser: &mut Parser, ends: &[&str], looped: bool) -> Done<Body> {
    let mut made = Body::new();
    loop {
        let line = parser.line();
        match parser.next() {
            None if ends.is_empty() => return Ok(made),
            None => return Err(Fault::new(format!("a block has no end: {}", ends.join(" or "))).at(line)),
            Some(Token::Raw(text)) => made.push((line, Statement::Raw(text.into()))),
            Some(Token::Open) => {
                let value = parser.several()?;
                match parser.next() {
                    Some(Token::Close) => made.push((line, Statement::Print(value))),
                    other => return Err(behind(other.as_ref(), "'}}'", line)),
                }
            }
            Some(Token::Begin) => {
                if ends.iter().any(|end| parser.is_word(end)) {
                    return Ok(made);
                }
                made.push((line, parser.within(|parser| statement(parser, looped))?));
            }
            // The lexer makes them of tags only.
            Some(other) => return Err(behind(Some(&other), "a tag or text", line)),
        }
    }
}

fn behind(found: Option<&Token>, wanted: &str, line: u32) -> Fault {
    let found = found.map_or("the end of the template".to_owned(), Token::told);
    Fault::new(format!("{wanted} is wanted, and there is {found}")).at(line)
}

/// The end of a tag.
fn end(parser: &mut Parser) -> Done<()> {
    match parser.peek() {
        Some(Token::End) => {
            parser.next();
            Ok(())
        }
        _ => Err(parser.fault("'%}'")),
    }
}

/// The body of a block, and the tag that ends it.
fn block(parser: &mut Parser, word: &str, looped: bool) -> Done<Body> {
    end(parser)?;
    let made = body(parser, &[word], looped)?;
    parser.next();
    end(parser)?;
    Ok(made)
}

fn statement(parser: &mut Parser, looped: bool) -> Done<Statement> {
    let line = parser.line();
    let word = parser.a_name_or_if()?;
    match &*word {
        "if" => conditions(parser, looped),
        "for" => repeated(parser, looped),
        "set" => set(parser, looped),
        "macro" => a_macro(parser),
        "with" => with(parser, looped),
        "filter" => {
            let mut filters = vec![parser.filter()?];
            while parser.sign("|") {
                filters.push(parser.filter()?);
            }
            Ok(Statement::Filter(filters, block(parser, "endfilter", looped)?))
        }
        // Where an answer stands, for those who train models.
        "generation" => Ok(Statement::Group(block(parser, "endgeneration", looped)?)),
        "break" | "continue" if !looped => Err(Fault::new(format!("'{word}' stands in no loop")).at(line)),
        "break" => end(parser).map(|()| Statement::Break),
        "continue" => end(parser).map(|()| Statement::Continue),
        "include" | "import" | "from" | "extends" | "block" => {
            let text = format!("'{word}' is about several templates, and a model has this one only");
            Err(Fault::new(text).at(line))
        }
        _ => {
            let text = format!(
                "the statement '{word}' is not known here; there are: if, for, set, macro, with, filter, raw, break, \
                 continue, generation"
            );
            Err(Fault::new(text).at(line))
        }
    }
}

fn conditions(parser: &mut Parser, looped: bool) -> Done<Statement> {
    let mut choices = Vec::new();
    let mut otherwise = Body::new();
    loop {
        let test = parser.several()?;
        end(parser)?;
        choices.push((test, body(parser, &["elif", "else", "endif"], looped)?));
        if parser.word("elif") {
            continue;
        }
        if parser.word("else") {
            end(parser)?;
            otherwise = body(parser, &["endif"], looped)?;
        }
        parser.next();
        end(parser)?;
        return Ok(Statement::If(choices, otherwise));
    }
}

fn repeated(parser: &mut Parser, looped: bool) -> Done<Statement> {
    let target = targets(parser, false)?;
    if !parser.word("in") {
        return Err(parser.fault("'in'"));
    }
    let over = parser.any_of()?;
    let only = if parser.word("if") { Some(parser.expression()?) } else { None };
    if parser.is_word("recursive") {
        return Err(Fault::new("loops that are 'recursive' are not supported; use a macro").at(parser.line()));
    }
    end(parser)?;
    let inner = body(parser, &["else", "endfor"], true)?;
    let mut otherwise = Body::new();
    if parser.word("else") {
        end(parser)?;
        otherwise = body(parser, &["endfor"], looped)?;
    }
    parser.next();
    end(parser)?;
    Ok(Statement::For(Box::new(For { target, over, only, body: inner, otherwise })))
}

fn target(parser: &mut Parser, attributes: bool) -> Done<Target> {
    if parser.sign("(") {
        let made = parser.within(|parser| targets(parser, attributes))?;
        parser.expect(")")?;
        return Ok(made);
    }
    let name = parser.a_name()?;
    let name = parser.name_of(&name);
    if attributes && parser.sign(".") {
        return Ok(Target::Attribute(name, parser.a_name()?.into()));
    }
    Ok(Target::Name(name))
}

fn targets(parser: &mut Parser, attributes: bool) -> Done<Target> {
    let first = target(parser, attributes)?;
    if !parser.is_sign(",") {
        return Ok(first);
    }
    let mut all = vec![first];
    while parser.sign(",") {
        if parser.is_word("in") || parser.is_sign("=") || parser.is_sign(")") {
            break;
        }
        all.push(target(parser, attributes)?);
    }
    Ok(Target::Names(all))
}

fn set(parser: &mut Parser, looped: bool) -> Done<Statement> {
    let target = targets(parser, true)?;
    if parser.sign("=") {
        let value = parser.several()?;
        end(parser)?;
        return Ok(Statement::Set(target, value));
    }
    let mut filters: Vec<Behind> = Vec::new();
    while parser.sign("|") {
        filters.push(parser.filter()?);
    }
    Ok(Statement::SetBlock(target, filters, block(parser, "endset", looped)?))
}

fn with(parser: &mut Parser, looped: bool) -> Done<Statement> {
    let mut all = Vec::new();
    while !matches!(parser.peek(), Some(Token::End)) {
        let target = target(parser, false)?;
        parser.expect("=")?;
        all.push((target, parser.expression()?));
        if !parser.sign(",") {
            break;
        }
    }
    Ok(Statement::With(all, block(parser, "endwith", looped)?))
}

fn a_macro(parser: &mut Parser) -> Done<Statement> {
    let line = parser.line();
    let name = parser.a_name()?;
    let name = parser.name_of(&name);
    parser.expect("(")?;
    let mut parameters = Vec::new();
    while !parser.sign(")") {
        let parameter = parser.a_name()?;
        let parameter = parser.name_of(&parameter);
        let otherwise = if parser.sign("=") { Some(parser.expression()?) } else { None };
        parameters.push((parameter, otherwise));
        if !parser.sign(",") {
            parser.expect(")")?;
            break;
        }
    }
    if parameters.len() > ARGUMENTS {
        let text = format!("a macro with {} parameters; {ARGUMENTS} are the most", parameters.len());
        return Err(Fault::limit(text).at(line));
    }
    end(parser)?;
    let body = body(parser, &["endmacro"], false)?;
    parser.next();
    // Its name may stand there again.
    if !matches!(parser.peek(), Some(Token::End)) {
        parser.a_name()?;
    }
    end(parser)?;
    parser.macros.push(Macro { name, parameters, body });
    Ok(Statement::Macro(parser.macros.len() - 1))
}
