//! The reading of `iree.abi.declaration`, the compiler's text form of a function's source signature.

use std::fmt;

/// Longest declaration that is looked into; longer ones are still shown as they are.
const MAX_LENGTH: usize = 1 << 20;

/// The source type of an input or output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeInfo {
    /// A tensor.
    Tensor {
        /// Dimensions; `None` where they are dynamic.
        dims: Vec<Option<u64>>,
        /// Element type as written, such as `f32`.
        element: String,
    },
    /// A number: `i32`, `index`, `f64`, …
    Scalar(String),
    /// Anything else, as written, such as `!hal.buffer_view`.
    Other(String),
}

/// An input or output of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name without `%`; may be empty.
    pub name: String,
    /// Type.
    pub ty: TypeInfo,
}

/// A parsed declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// Inputs in order.
    pub inputs: Vec<Field>,
    /// Outputs in order.
    pub outputs: Vec<Field>,
}

impl fmt::Display for TypeInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TypeInfo::Tensor { dims, element } => {
                f.write_str("tensor<")?;
                for dim in dims {
                    match dim {
                        Some(dim) => write!(f, "{dim}x")?,
                        None => f.write_str("?x")?,
                    }
                }
                write!(f, "{element}>")
            }
            TypeInfo::Scalar(text) | TypeInfo::Other(text) => f.write_str(text),
        }
    }
}

impl Declaration {
    /// Reads text such as `sync func @f(%input0: tensor<4xf32>) -> (%output0: i32)`; `None` when it is not of that
    /// form.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > MAX_LENGTH {
            return None;
        }
        let (_, rest) = text.split_once('@')?;
        let (inputs, rest) = group(&rest[rest.find('(')?..])?;
        let rest = rest.trim_start().strip_prefix("->")?.trim_start();
        let (outputs, _) = group(rest)?;
        Some(Declaration { inputs: fields(inputs), outputs: fields(outputs) })
    }
}

/// The inside of the parentheses that `text` begins with, and what follows them.
fn group(text: &str) -> Option<(&str, &str)> {
    let inside = text.strip_prefix('(')?;
    let end = top_level(inside, |c| c == ')')?;
    Some((&inside[..end], &inside[end + 1..]))
}

/// Offset of the first character outside of any brackets and quotes that fits.
fn top_level(text: &str, fits: impl Fn(char) -> bool) -> Option<usize> {
    let (mut depth, mut quoted, mut previous) = (0usize, false, ' ');
    for (at, c) in text.char_indices() {
        if quoted {
            quoted = c != '"' || previous == '\\';
        } else if depth == 0 && fits(c) {
            return Some(at);
        } else {
            match c {
                '"' => quoted = true,
                '(' | '<' | '{' | '[' => depth += 1,
                // The head of an arrow closes nothing.
                '>' if previous == '-' => {}
                ')' | '>' | '}' | ']' => depth = depth.checked_sub(1)?,
                _ => {}
            }
        }
        previous = c;
    }
    None
}

fn fields(mut list: &str) -> Vec<Field> {
    let mut fields = Vec::new();
    while !list.trim().is_empty() {
        let end = top_level(list, |c| c == ',').unwrap_or(list.len());
        fields.push(field(list[..end].trim()));
        list = list.get(end + 1..).unwrap_or_default();
    }
    fields
}

fn field(text: &str) -> Field {
    let named = text.strip_prefix('%').and_then(|rest| rest.split_once(':'));
    let (name, ty) = named.unwrap_or(("", text));
    let end = top_level(ty, |c| c == '{').unwrap_or(ty.len());
    Field { name: name.trim().to_owned(), ty: type_info(ty[..end].trim()) }
}

fn type_info(text: &str) -> TypeInfo {
    if let Some(tensor) =
        text.strip_prefix("tensor<").and_then(|rest| rest.strip_suffix('>')).and_then(tensor)
    {
        return tensor;
    }
    let number = |prefix: &str| {
        text.strip_prefix(prefix).is_some_and(|w| !w.is_empty() && w.bytes().all(|b| b.is_ascii_digit()))
    };
    if text == "index" || ["i", "si", "ui", "f", "bf"].into_iter().any(number) || text.starts_with("f8E") {
        TypeInfo::Scalar(text.to_owned())
    } else {
        TypeInfo::Other(text.to_owned())
    }
}

fn tensor(inside: &str) -> Option<TypeInfo> {
    let end = top_level(inside, |c| c == ',').unwrap_or(inside.len());
    let mut rest = inside[..end].trim();
    let mut dims = Vec::new();
    while rest.starts_with(|c: char| c == '?' || c.is_ascii_digit()) {
        let (dim, after) = rest.split_once('x')?;
        dims.push(if dim == "?" { None } else { Some(dim.parse().ok()?) });
        rest = after;
    }
    (!rest.is_empty()).then(|| TypeInfo::Tensor { dims, element: rest.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(fields: &[Field]) -> Vec<String> {
        fields.iter().map(|f| f.ty.to_string()).collect()
    }

    #[test]
    fn real_declarations() {
        let d = Declaration::parse(
            "sync func @main(%input0: tensor<4xf32>, %input1: tensor<?x3xf32> {iree.abi.output = 0 : index}, \
             %input2: index) -> (%output0: !util.list<i32>, %output1: tensor<f32>, %output2: bf16)",
        )
        .unwrap();
        assert_eq!(types(&d.inputs), ["tensor<4xf32>", "tensor<?x3xf32>", "index"]);
        assert_eq!(types(&d.outputs), ["!util.list<i32>", "tensor<f32>", "bf16"]);
        assert_eq!(d.inputs[1].name, "input1");
        assert_eq!(d.inputs[1].ty, TypeInfo::Tensor { dims: vec![None, Some(3)], element: "f32".to_owned() });
        assert_eq!(d.outputs[2].ty, TypeInfo::Scalar("bf16".to_owned()));
        let d = Declaration::parse("sync func @nothing() -> ()").unwrap();
        assert!(d.inputs.is_empty() && d.outputs.is_empty());
        let d =
            Declaration::parse("async func @c(%x: tensor<2xcomplex<f32>>) -> (%y: (i32) -> i32)").unwrap();
        assert_eq!(types(&d.inputs), ["tensor<2xcomplex<f32>>"]);
        assert_eq!(types(&d.outputs), ["(i32) -> i32"]);
    }

    #[test]
    fn nonsense_is_none_not_a_panic() {
        for text in
            ["", "@", "func @f", "func @f(", "func @f()", "func @f() ->", "@f(>) -> ()", "@f(\"", "@é(é"]
        {
            assert_eq!(Declaration::parse(text), None, "{text}");
        }
        let deep = format!("func @f({}", "<".repeat(100_000));
        assert_eq!(Declaration::parse(&deep), None);
    }
}
