//! Operations as text that IREE's compiler takes: modules of the `linalg` dialect with one function, `main`. Its arguments and
//! its result have the bytes of the operation's tensors, in shapes that the dialect's operations want.

use std::fmt::Write as _;

use halite_ops::{Activation, DType, Operation, conv2d::Conv2d, matmul::MatMul, window::Layout};

/// An operation as a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The module.
    pub text: String,
    /// Dimensions of the arguments.
    pub inputs: Vec<Vec<u64>>,
}

/// The module of an operation.
///
/// # Errors
/// Says what has no text here.
pub fn source(operation: &Operation) -> Result<Source, String> {
    if operation.outputs().iter().any(|tensor| tensor.elements() == 0) {
        return Err("results without elements are not measured".to_owned());
    }
    if operation.apart().is_some() {
        return Err("tensors that lie in runs of others are not written as MLIR here".to_owned());
    }
    match operation {
        Operation::MatMul(op) => matmul(op),
        Operation::Conv2d(op) => conv2d(op, operation),
        other => Err(format!("{} is not written as MLIR here; matmul and conv2d are", other.name())),
    }
}

fn tensor(shape: &[u64], dtype: DType) -> String {
    let dimensions: String = shape.iter().map(|d| format!("{d}x")).collect();
    format!("tensor<{dimensions}{dtype}>")
}

/// The type of sums, its zero, and whether `linalg` extends the operands to it as kernels do.
fn sums(operands: &[DType]) -> Result<(DType, &'static str), String> {
    match operands {
        _ if operands.iter().all(|t| t.is_float()) => Ok((DType::F32, "0.0")),
        _ if operands.iter().all(|t| matches!(t, DType::I8 | DType::I32)) => Ok((DType::I32, "0")),
        _ => Err("linalg extends integers as signed ones, so operands are floats, i8 or i32".to_owned()),
    }
}

/// The lines of a function, value by value.
struct Body(String);

impl Body {
    /// A tensor of sums that begin with `zero`.
    fn zeros(zero: &str, shape: &[u64], sum: DType) -> Body {
        let filled = tensor(shape, sum);
        Body(format!(
            "  %zero = arith.constant {zero} : {sum}\n  %empty = tensor.empty() : {filled}\n  \
             %start = linalg.fill ins(%zero : {sum}) outs(%empty : {filled}) -> {filled}\n"
        ))
    }

    fn line(&mut self, line: &str) {
        let _ = writeln!(self.0, "  {line}");
    }

    /// The function with these arguments, which returns `%sum` as `result`.
    fn finish(mut self, inputs: &[(Vec<u64>, DType)], shape: &[u64], sum: DType, out: DType) -> Source {
        let (from, to) = (tensor(shape, sum), tensor(shape, out));
        let name = if sum == out {
            "%sum"
        } else {
            self.line(&format!("%result = arith.truncf %sum : {from} to {to}"));
            "%result"
        };
        let argument = |(i, (shape, dtype)): (usize, &(Vec<u64>, DType))| {
            format!("%input{i}: {}", tensor(shape, *dtype))
        };
        let arguments: Vec<String> = inputs.iter().enumerate().map(argument).collect();
        let body = self.0;
        Source {
            text: format!(
                "func.func @main({}) -> {to} {{\n{body}  return {name} : {to}\n}}\n",
                arguments.join(", ")
            ),
            inputs: inputs.iter().map(|(shape, _)| shape.clone()).collect(),
        }
    }
}

fn matmul(op: &MatMul) -> Result<Source, String> {
    if op.bias || op.residual || op.activation != Activation::None {
        return Err("what is added to a product is not written as MLIR here".to_owned());
    }
    let (sum, zero) = sums(&[op.lhs, op.rhs])?;
    // One right operand for a batch is a product with as many rows.
    let (batch, rows) = (op.batch.exact(), op.m.exact());
    let (batch, m) = if op.rhs_shared { (1, batch * rows) } else { (batch, rows) };
    let (n, k) = (op.n.exact(), op.k.exact());
    let shaped = |rows: u64, columns: u64| match batch {
        1 => vec![rows, columns],
        batch => vec![batch, rows, columns],
    };
    let right = if op.rhs_transposed { shaped(n, k) } else { shaped(k, n) };
    let (left, out) = (shaped(m, k), shaped(m, n));
    let (b, name) = if batch == 1 { ("", "matmul") } else { ("b, ", "batch_matmul") };
    let maps = if op.rhs_transposed {
        let map = |to: &str| format!("affine_map<({b}m, n, k) -> ({b}{to})>");
        format!("indexing_maps = [{}, {}, {}] ", map("m, k"), map("n, k"), map("m, n"))
    } else {
        String::new()
    };
    let (l, r, o) = (tensor(&left, op.lhs), tensor(&right, op.rhs), tensor(&out, sum));
    let mut body = Body::zeros(zero, &out, sum);
    body.line(&format!(
        "%sum = linalg.{name} {maps}ins(%input0, %input1 : {l}, {r}) outs(%start : {o}) -> {o}"
    ));
    Ok(body.finish(&[(left, op.lhs), (right, op.rhs)], &out, sum, op.out))
}

/// A convolution in the shapes that one operation of the dialect wants.
struct Shapes {
    name: &'static str,
    input: Vec<u64>,
    filter: Vec<u64>,
    output: Vec<u64>,
    /// Where rows are; columns come next.
    rows: usize,
    /// Where filters are in the output, and their numbers.
    filters: Vec<usize>,
}

fn shapes(op: &Conv2d, output: &[u64]) -> Result<Shapes, String> {
    let last = op.layout == Layout::Nhwc;
    let (input, filter) = (&op.input.map(halite_sizes::Size::exact), &op.filter);
    let [channels, filters] = if last { [input[3], filter[3]] } else { [input[1], filter[0]] };
    let shapes = |name, input: &[u64], filter: &[u64], output: &[u64], rows, filters: &[usize]| Shapes {
        name,
        input: input.to_vec(),
        filter: filter.to_vec(),
        output: output.to_vec(),
        rows,
        filters: filters.to_vec(),
    };
    if op.groups == 1 {
        return Ok(match last {
            false => shapes("conv_2d_nchw_fchw", input, filter, output, 2, &[1]),
            true => shapes("conv_2d_nhwc_hwcf", input, filter, output, 1, &[3]),
        });
    }
    if op.groups == channels && filters == channels {
        return Ok(match last {
            false => {
                let filter = [channels, filter[2], filter[3]];
                shapes("depthwise_conv_2d_nchw_chw", input, &filter, output, 2, &[1])
            }
            true => {
                let filter = [filter[0], filter[1], channels];
                shapes("depthwise_conv_2d_nhwc_hwc", input, &filter, output, 1, &[3])
            }
        });
    }
    if last {
        return Err("groups with channels last have no operation in linalg, except depthwise".to_owned());
    }
    let (groups, each) = (op.groups, filters / op.groups);
    let input = [input[0], groups, channels / groups, input[2], input[3]];
    let filter = [groups, each, filter[1], filter[2], filter[3]];
    let output = [output[0], groups, each, output[2], output[3]];
    Ok(shapes("conv_2d_ngchw_gfchw", &input, &filter, &output, 3, &[1, 2]))
}

fn conv2d(op: &Conv2d, operation: &Operation) -> Result<Source, String> {
    let dims: Vec<u64> = operation.outputs()[0].dims.iter().map(|size| size.exact()).collect();
    let shapes = shapes(op, &dims)?;
    if op.residual {
        return Err("a residual is not written as MLIR here".to_owned());
    }
    let sum = DType::F32;
    let mut body = Body::zeros("0.0", &shapes.output, sum);
    let mut inputs = vec![(shapes.input.clone(), op.dtype), (shapes.filter.clone(), op.dtype)];
    let start = if op.bias {
        inputs.push((shapes.filters.iter().map(|d| shapes.output[*d]).collect(), op.dtype));
        bias(&mut body, &shapes, op.dtype);
        "%biased"
    } else {
        "%start"
    };
    let (name, padded) = padded(&mut body, op, &shapes);
    let (i, f) = (tensor(&padded, op.dtype), tensor(&shapes.filter, op.dtype));
    let (o, named) = (tensor(&shapes.output, sum), shapes.name);
    let [strides, dilations] =
        [op.strides, op.dilations].map(|[y, x]| format!("dense<[{y}, {x}]> : tensor<2xi64>"));
    let attributes = format!("{{dilations = {dilations}, strides = {strides}}}");
    let result = if op.activation == Activation::None { "%sum" } else { "%plain" };
    body.line(&format!(
        "{result} = linalg.{named} {attributes} ins({name}, %input1 : {i}, {f}) outs({start} : {o}) -> {o}"
    ));
    let limits: &[(&str, &str)] = match op.activation {
        Activation::None => &[],
        Activation::Relu => &[("maximumf", "0.0")],
        Activation::Relu6 => &[("maximumf", "0.0"), ("minimumf", "6.0")],
        other => return Err(format!("the activation {other:?} is not written as MLIR here")),
    };
    for (n, (function, limit)) in limits.iter().enumerate() {
        let from = if n == 0 { "%plain".to_owned() } else { format!("%limited{}", n - 1) };
        let to = if n + 1 == limits.len() { "%sum".to_owned() } else { format!("%limited{n}") };
        body.line(&format!("%limit{n} = arith.constant dense<{limit}> : {o}"));
        body.line(&format!("{to} = arith.{function} {from}, %limit{n} : {o}"));
    }
    Ok(body.finish(&inputs, &shapes.output, sum, op.dtype))
}

/// Sums begin with the bias of their filter.
fn bias(body: &mut Body, shapes: &Shapes, dtype: DType) {
    let of: Vec<u64> = shapes.filters.iter().map(|d| shapes.output[*d]).collect();
    let (narrow, wide, out) =
        (tensor(&of, dtype), tensor(&of, DType::F32), tensor(&shapes.output, DType::F32));
    let name = if dtype == DType::F32 {
        "%input2"
    } else {
        body.line(&format!("%bias = arith.extf %input2 : {narrow} to {wide}"));
        "%bias"
    };
    let others = (0..shapes.output.len()).filter(|d| !shapes.filters.contains(d));
    let others: Vec<String> = others.map(|d| d.to_string()).collect();
    body.line(&format!(
        "%biased = linalg.broadcast ins({name} : {wide}) outs(%empty : {out}) dimensions = [{}]",
        others.join(", ")
    ));
}

/// The input with zeros around it, its name and its shape.
fn padded(body: &mut Body, op: &Conv2d, shapes: &Shapes) -> (&'static str, Vec<u64>) {
    let [top, left, bottom, right] = op.pads;
    if op.pads == [0; 4] {
        return ("%input0", shapes.input.clone());
    }
    let (mut low, mut high) = (vec![0; shapes.input.len()], vec![0; shapes.input.len()]);
    (low[shapes.rows], low[shapes.rows + 1]) = (top, left);
    (high[shapes.rows], high[shapes.rows + 1]) = (bottom, right);
    let sizes = shapes.input.iter().zip(&low).zip(&high);
    let padded: Vec<u64> = sizes.map(|((size, low), high)| size + low + high).collect();
    let list = |sizes: &[u64]| sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let arguments: Vec<String> = (0..padded.len()).map(|d| format!("%d{d}: index")).collect();
    let (from, to, dtype) = (tensor(&shapes.input, op.dtype), tensor(&padded, op.dtype), op.dtype);
    body.line(&format!("%border = arith.constant 0.0 : {dtype}"));
    body.line(&format!("%padded = tensor.pad %input0 low[{}] high[{}] {{", list(&low), list(&high)));
    body.line(&format!("^bb0({}):", arguments.join(", ")));
    body.line(&format!("  tensor.yield %border : {dtype}"));
    body.line(&format!("}} : {from} to {to}"));
    ("%padded", padded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Source, String> {
        source(&Operation::parse(text).expect("it is one"))
    }

    #[test]
    fn arguments_have_the_bytes_of_the_tensors() {
        for name in ["matmul", "conv2d"] {
            let mut written = 0;
            for operation in Operation::samples(name) {
                let Ok(source) = source(&operation) else { continue };
                written += 1;
                let elements = |shape: &Vec<u64>| shape.iter().product::<u64>();
                let inputs: Vec<u64> =
                    operation.inputs().iter().map(|tensor| tensor.elements().exact()).collect();
                assert_eq!(source.inputs.iter().map(elements).collect::<Vec<_>>(), inputs, "{operation}");
            }
            assert!(written > 20, "{name}: {written}");
        }
    }

    #[test]
    fn operations_become_the_ones_of_the_dialect() {
        let has = |text: &str, part: &str| {
            let source = of(text).expect("it has a text");
            assert!(source.text.contains(part), "{part} in {}", source.text);
        };
        has("matmul:m=2,n=3,k=4", "linalg.matmul ins(%input0, %input1 : tensor<2x4xf32>, tensor<4x3xf32>)");
        has("matmul:m=2,n=3,k=4,rhs_transposed=true", "affine_map<(m, n, k) -> (n, k)>");
        has("matmul:m=2,n=3,k=4,batch=5", "linalg.batch_matmul ins(%input0, %input1 : tensor<5x2x4xf32>");
        has("matmul:m=2,n=3,k=4,batch=5,rhs_shared=true", "tensor<10x4xf32>");
        has("matmul:m=2,n=3,k=4,lhs=f16,rhs=f16,out=f16", "arith.truncf %sum");
        has("matmul:m=2,n=3,k=4,lhs=i8,rhs=i8,out=i32", "arith.constant 0 : i32");
        let conv = "conv2d:input=1x4x9x9,filter=4x1x3x3,groups=4,strides=2x2,pads=1x1x1x1";
        has(conv, "linalg.depthwise_conv_2d_nchw_chw");
        has(conv, "strides = dense<[2, 2]>");
        has(conv, "tensor.pad %input0 low[0, 0, 1, 1] high[0, 0, 1, 1]");
        has("conv2d:input=1x4x9x9,filter=6x2x3x3,groups=2,bias=true", "dimensions = [0, 3, 4]");
        has("conv2d:input=1x4x9x9,filter=6x4x1x1,activation=relu6", "arith.minimumf %limited0");
        has("conv2d:input=1x9x9x4,filter=3x3x4x6,layout=nhwc", "linalg.conv_2d_nhwc_hwcf");
    }

    #[test]
    fn what_has_no_text_says_so() {
        let why = |text: &str| of(text).expect_err("it has none");
        assert!(why("softmax:outer=2,length=2,inner=1").contains("softmax"));
        assert!(why("matmul:m=0,n=2,k=2").contains("without elements"));
        assert!(why("conv2d:input=1x2x2x2,filter=2x2x1x1,activation=silu").contains("Silu"));
    }
}
