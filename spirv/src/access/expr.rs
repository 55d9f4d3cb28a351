//! The integer expressions that addresses and conditions of a kernel are made of, cut out of its code.

/// An expression, by its place in the list of its plan. Operands come before it.
pub(super) type ExprId = usize;

/// Operations on two integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Add,
    Sub,
    Mul,
    UDiv,
    URem,
    SDiv,
    SRem,
    Shl,
    ShrLogical,
    ShrArithmetic,
    And,
    Or,
    UMin,
    UMax,
    SMin,
    SMax,
}

/// Comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Equal,
    NotEqual,
    Less,
    LessEqual,
}

/// How an integer changes its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resize {
    Unsigned,
    Signed,
}

/// One expression. Widths are in bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expr {
    /// A number; that of 32 bits and less is not negative.
    Constant(i64),
    /// Four bytes of the push constants, from this byte on.
    Push(u32),
    /// A component of a built-in.
    WorkgroupId(u8),
    NumWorkgroups(u8),
    LocalId(u8),
    Binary {
        op: Binary,
        left: ExprId,
        right: ExprId,
        width: u32,
    },
    Resize {
        how: Resize,
        of: ExprId,
        from: u32,
        to: u32,
    },
    /// 1 or 0.
    Compare {
        order: Order,
        signed: bool,
        left: ExprId,
        right: ExprId,
        width: u32,
    },
    /// Conditions, each 1 or 0.
    AllOf(ExprId, ExprId),
    AnyOf(ExprId, ExprId),
    Not(ExprId),
    /// One of these.
    OneOf {
        values: Vec<ExprId>,
        condition: Option<ExprId>,
    },
    /// A loop counter: it starts here, and goes up by this much while it is below the limit, if there is one.
    Counter {
        start: ExprId,
        step: ExprId,
        limit: Option<Limit>,
        width: u32,
    },
    /// Any number of so many bits.
    Unknown(u32),
    /// A number with a fraction, on its way from an integer to an integer.
    Float(Float),
    /// The whole part of such a number.
    FromFloat(ExprId),
    /// Whether the first is less than the second.
    FloatLess(ExprId, ExprId),
}

/// Numbers with a fraction, of 32 bits or more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Float {
    /// The bits of one of 64 bits.
    Constant(u64),
    FromInt {
        of: ExprId,
        signed: bool,
        width: u32,
    },
    Add(ExprId, ExprId),
    Sub(ExprId, ExprId),
    Mul(ExprId, ExprId),
    Div(ExprId, ExprId),
    Rem(ExprId, ExprId),
    Min(ExprId, ExprId),
    Max(ExprId, ExprId),
    Floor(ExprId),
    Ceil(ExprId),
    Trunc(ExprId),
    Round(ExprId),
    OneOf {
        values: [ExprId; 2],
        condition: ExprId,
    },
    Unknown,
}

/// What a loop counter is compared with at the head of its loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limit {
    pub value: ExprId,
    /// Whether the loop goes on when the counter equals it.
    pub included: bool,
    pub signed: bool,
}
