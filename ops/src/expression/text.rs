//! The text form of expressions, both ways.

use std::{fmt, str::FromStr};

use super::{
    function::{Function, Type},
    program::{Expression, Node, Operand, Output, Scalar},
};
use crate::DType;

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Bool(value) => write!(f, "{value}"),
            Scalar::Float(value) => write!(f, "{:?}", *value as f32),
            Scalar::Int(_, dtype) => write!(f, "{}{dtype}", self.whole()),
        }
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operand::Input(i) => write!(f, "${i}"),
            Operand::Node(i) => write!(f, "%{i}"),
            Operand::Constant(scalar) => write!(f, "{scalar}"),
            Operand::Table(i) => write!(f, "@{i}"),
        }
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.function.name())?;
        if let Some(to) = self.to {
            write!(f, ":{to}")?;
        }
        self.operands.iter().try_for_each(|operand| write!(f, " {operand}"))
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, node) in self.nodes.iter().enumerate() {
            write!(f, "{}{node}", if i > 0 { "; " } else { "" })?;
        }
        write!(f, "{}->", if self.nodes.is_empty() { "" } else { " " })?;
        self.outputs.iter().try_for_each(|output| write!(f, " {}:{}", output.value, output.dtype))
    }
}

impl From<Expression> for String {
    fn from(expression: Expression) -> Self {
        expression.to_string()
    }
}

impl TryFrom<String> for Expression {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for Expression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (nodes, outputs) =
            text.split_once("->").ok_or("an expression ends with what is stored, such as '-> %0:f32'")?;
        let nodes =
            nodes.split(';').map(str::trim).filter(|s| !s.is_empty()).map(node).collect::<Result<_, _>>()?;
        let outputs = outputs.split_whitespace().map(output).collect::<Result<_, _>>()?;
        Ok(Expression { nodes, outputs })
    }
}

fn node(text: &str) -> Result<Node, String> {
    let mut words = text.split_whitespace();
    let head = words.next().unwrap_or_default();
    let (name, to) = match head.split_once(':') {
        Some((name, to)) => (name, Some(Type::parse(to).ok_or_else(|| format!("'{to}' is no type"))?)),
        None => (head, None),
    };
    let function = Function::ALL.iter().copied().find(|f| f.name() == name).ok_or_else(|| {
        let names: Vec<_> = Function::ALL.iter().map(|f| f.name()).collect();
        format!("there is no function '{name}'; there are: {}", names.join(", "))
    })?;
    Ok(Node { function, to, operands: words.map(operand).collect::<Result<_, _>>()? })
}

fn output(text: &str) -> Result<Output, String> {
    let (value, dtype) =
        text.rsplit_once(':').ok_or_else(|| format!("'{text}' names no type, as %0:f32 does"))?;
    match Type::parse(dtype) {
        Some(Type::Of(dtype)) => Ok(Output { value: operand(value)?, dtype }),
        Some(Type::Bool) => Err("booleans are stored as u8".to_owned()),
        Some(Type::Table) | None => Err(format!("'{dtype}' is no type")),
    }
}

fn operand(text: &str) -> Result<Operand, String> {
    let index = |digits: &str| digits.parse::<usize>().map_err(|_| format!("'{text}' has no number"));
    if let Some(digits) = text.strip_prefix('$') {
        return Ok(Operand::Input(index(digits)?));
    }
    if let Some(digits) = text.strip_prefix('%') {
        return Ok(Operand::Node(index(digits)?));
    }
    if let Some(digits) = text.strip_prefix('@') {
        return Ok(Operand::Table(index(digits)?));
    }
    scalar(text)
        .map(Operand::Constant)
        .ok_or_else(|| format!("'{text}' is no operand; write $0, %0, @0, 0.5, inf, NaN, 3i32 or true"))
}

fn scalar(text: &str) -> Option<Scalar> {
    if let Ok(value) = text.parse::<bool>() {
        return Some(Scalar::Bool(value));
    }
    for dtype in DType::ALL.into_iter().filter(|t| !t.is_float()) {
        if let Some(value) = text.strip_suffix(dtype.name()).and_then(|digits| digits.parse::<i128>().ok()) {
            let (least, most) = range(dtype);
            return (least..=most).contains(&value).then_some(Scalar::Int(value as i64, dtype));
        }
    }
    // A number without a point would read as an integer whose type was forgotten.
    let float = text.contains(['.', 'e', 'E']) || text.to_ascii_lowercase().ends_with(['f', 'n']);
    text.parse::<f32>().ok().filter(|_| float).map(|value| Scalar::Float(value.into()))
}

/// Least and largest value of an integer type.
pub fn range(dtype: DType) -> (i128, i128) {
    let bits = dtype.size() * 8;
    if dtype.is_signed() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        for text in [
            "add $0 $1; relu %0 -> %1:f16",
            "-> $0:f32",
            "cast:bool $0; select %0 -1i8 3i8; quantize:u8 $1 0.25 0u8 -> %1:i8 %2:u8",
            "max $0 -inf; min %0 1e-20; eq %1 NaN; and %2 true -> %3:u8",
            "cast:u64 $0; max %0 18446744073709551615u64; cast:i16 $0 -> %1:u64 %2:i16 $0:f64",
            "cast:i32 $0; lookup:i8 %0 @1; lookup:f16 %0 @0 -> %1:i8 %2:f32",
        ] {
            let expression: Expression = text.parse().unwrap();
            assert_eq!(expression.to_string(), text);
        }
    }

    #[test]
    fn errors_say_what_is_meant() {
        let error = |text: &str| text.parse::<Expression>().unwrap_err();
        assert!(error("frob $0 -> %0:f32").contains("there are: abs"));
        assert!(error("add $0 3 -> %0:f32").contains("'3' is no operand"));
        assert!(error("add $0 300i8 -> %0:i8").contains("no operand"));
        assert!(error("add $0 -1u64 -> %0:u64").contains("no operand"));
        assert!(error("add $0 $1").contains("->"));
        let types = |text: &str| text.parse::<Expression>().unwrap().types(&[DType::F32, DType::I32]);
        assert!(types("add $0 $1 -> %0:f32").unwrap_err().contains("cast one"));
        assert!(types("add $0 %1; neg %0 -> %1:f32").unwrap_err().contains("%1 is not computed before"));
        assert!(types("exp $2 -> %0:f32").unwrap_err().contains("2 inputs"));
        assert!(types("neg $1 -> %0:f32").unwrap_err().contains("is not stored as f32"));
    }
}
