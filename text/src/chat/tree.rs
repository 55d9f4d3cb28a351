//! A template that was read. What stands in a row in the source is a row here, so that nothing is deeper than brackets and blocks are.

use std::sync::Arc;

use super::budget::Text;

/// A name, by its number in [`Template::names`].
pub(super) type Name = u32;

/// The name `loop`.
pub(super) const LOOP: Name = 0;

#[derive(Debug)]
pub(super) enum Expression {
    Text(Arc<Text>),
    Int(i64),
    Float(f64),
    Bool(bool),
    None,
    Name(Name),
    List(Vec<Expression>),
    Tuple(Vec<Expression>),
    Map(Vec<(Expression, Expression)>),
    /// Of one rank, from left to right.
    Row(Box<Expression>, Vec<(Operator, Expression)>),
    /// `~`.
    Joined(Vec<Expression>),
    /// As Python's, `a < b < c`.
    Compared(Box<Expression>, Vec<(Comparison, Expression)>),
    And(Vec<Expression>),
    Or(Vec<Expression>),
    Not(Box<Expression>),
    Minus(Box<Expression>),
    Plus(Box<Expression>),
    Choice(Box<[Expression; 2]>, Option<Box<Expression>>),
    With(Box<Expression>, Vec<Behind>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Whole,
    Rest,
    Power,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Unequal,
    Less,
    LessEqual,
    More,
    MoreEqual,
    In,
    NotIn,
}

/// What stands behind a value.
#[derive(Debug)]
pub(super) enum Behind {
    Attribute(Box<str>),
    Item(Expression),
    Slice(Box<[Option<Expression>; 3]>),
    Call(Arguments),
    Filter(Box<str>, Arguments),
    Test { name: Box<str>, arguments: Arguments, not: bool },
}

#[derive(Debug, Default)]
pub(super) struct Arguments {
    pub places: Vec<Expression>,
    pub names: Vec<(Box<str>, Expression)>,
}

#[derive(Debug)]
pub(super) enum Target {
    Name(Name),
    Names(Vec<Target>),
    /// Of a namespace.
    Attribute(Name, Box<str>),
}

/// Statements, each with its line.
pub(super) type Body = Vec<(u32, Statement)>;

#[derive(Debug)]
pub(super) enum Statement {
    Raw(Box<str>),
    Print(Expression),
    For(Box<For>),
    If(Vec<(Expression, Body)>, Body),
    Set(Target, Expression),
    SetBlock(Target, Vec<Behind>, Body),
    With(Vec<(Target, Expression)>, Body),
    Filter(Vec<Behind>, Body),
    Macro(usize),
    Group(Body),
    Break,
    Continue,
}

#[derive(Debug)]
pub(super) struct For {
    pub target: Target,
    pub over: Expression,
    pub only: Option<Expression>,
    pub body: Body,
    pub otherwise: Body,
}

#[derive(Debug)]
pub(super) struct Macro {
    pub name: Name,
    pub parameters: Vec<(Name, Option<Expression>)>,
    pub body: Body,
}

#[derive(Debug, Default)]
pub(super) struct Template {
    pub names: Vec<Box<str>>,
    pub macros: Vec<Macro>,
    pub body: Body,
}
