//! The operators of the XNNPACK delegate: their tables, and the names that the schema gives them.

use super::{XnnBinary as B, XnnConvolution, XnnNode, XnnOperator as Op, XnnPool, XnnUnary as U};
use crate::flatbuffer::{Field, Table, Vector};
use crate::pte::{PteError, Result};

/// Names of the tables by their numbers in the union; the first is none.
const NAMES: [&str; 48] = [
    "NONE",
    "XNNAdd",
    "XNNFullyConnected",
    "XNNSoftmax",
    "XNNSigmoid",
    "XNNStaticTranspose",
    "XNNClamp",
    "XNNConv2d",
    "XNNDiv",
    "XNNStaticResizeBilinear2D",
    "XNNStaticConstantPad",
    "XNNAvgPooling2d",
    "XNNMinimum",
    "XNNDepthwiseConv2d",
    "XNNMaxPooling2d",
    "XNNMultiply",
    "XNNSubtract",
    "XNNFloor",
    "XNNConvert",
    "XNNGlobalAvgPooling2d",
    "XNNStaticReshape",
    "XNNArgMaxPooling2d",
    "XNNSquareRoot",
    "XNNCeiling",
    "XNNHardswish",
    "XNNLeakyReLU",
    "XNNMaximum",
    "XNNNegate",
    "XNNSquare",
    "XNNELU",
    "XNNAbs",
    "XNNPReLU",
    "XNNConcatenate2",
    "XNNConcatenate3",
    "XNNConcatenate4",
    "XNNStaticSlice",
    "XNNScaledDotProductAttention",
    "XNNBatchMatrixMultiply",
    "XNNConcatenate5",
    "XNNConvTranspose2d",
    "XNNReciprocalSquareRoot",
    "XNNLog",
    "XNNGelu",
    "XNNTanh",
    "XNNExp",
    "XNNSin",
    "XNNCopy",
    "XNNCos",
];

/// What is none among the ids of values.
const NO_VALUE: u32 = u32::MAX;

/// The number in the union of an operator that has one of its own.
fn number(operator: &Op) -> u8 {
    match operator {
        Op::Binary(B::Add) => 1,
        Op::FullyConnected => 2,
        Op::Softmax => 3,
        Op::Unary(U::Sigmoid) => 4,
        Op::Transpose { .. } => 5,
        Op::Unary(U::Clamp) => 6,
        Op::Convolution(_) => 7,
        Op::Binary(B::Divide) => 8,
        Op::ResizeBilinear { .. } => 9,
        Op::Pad { .. } => 10,
        Op::AveragePool(_) => 11,
        Op::Binary(B::Minimum) => 12,
        Op::DepthwiseConvolution(_) => 13,
        Op::MaxPool(_) => 14,
        Op::Binary(B::Multiply) => 15,
        Op::Binary(B::Subtract) => 16,
        Op::Unary(U::Floor) => 17,
        Op::Convert => 18,
        Op::GlobalAveragePool => 19,
        Op::Reshape { .. } => 20,
        Op::ArgMaxPool(_) => 21,
        Op::Unary(U::SquareRoot) => 22,
        Op::Unary(U::Ceiling) => 23,
        Op::Unary(U::HardSwish) => 24,
        Op::Unary(U::LeakyRelu { .. }) => 25,
        Op::Binary(B::Maximum) => 26,
        Op::Unary(U::Negate) => 27,
        Op::Unary(U::Square) => 28,
        Op::Unary(U::Elu { .. }) => 29,
        Op::Unary(U::Abs) => 30,
        Op::Prelu => 31,
        Op::Concatenate { .. } => 32,
        Op::Slice { .. } => 35,
        Op::Attention => 36,
        Op::BatchMatrixMultiply => 37,
        Op::TransposedConvolution(_) => 39,
        Op::Unary(U::ReciprocalSquareRoot) => 40,
        Op::Unary(U::Log) => 41,
        Op::Unary(U::Gelu) => 42,
        Op::Unary(U::Tanh) => 43,
        Op::Unary(U::Exp) => 44,
        Op::Unary(U::Sin) => 45,
        Op::Copy => 46,
        Op::Unary(U::Cos) => 47,
        Op::Unknown(number) => *number,
    }
}

pub(super) fn name(operator: &Op) -> String {
    match (operator, NAMES.get(usize::from(number(operator)))) {
        (Op::Concatenate { .. }, _) => "XNNConcatenate".to_owned(),
        (_, Some(name)) => (*name).to_owned(),
        (_, None) => format!("XNNPACK operator {}", number(operator)),
    }
}

/// The union's table of a node, read by ids of fields.
struct Fields<'t, 'a> {
    table: &'t Table<'a>,
    name: &'static str,
    /// Index of a value by its id.
    find: &'t dyn Fn(u32) -> Option<usize>,
}

impl Fields<'_, '_> {
    fn word(&self, id: u16, name: &'static str) -> Result<u32> {
        Ok(self.table.scalar(&Field { table: self.name, name, id, default: 0 })?)
    }

    fn words<const N: usize>(&self, first: u16, names: [&'static str; N]) -> Result<[u32; N]> {
        let mut all = [0; N];
        for (i, name) in names.into_iter().enumerate() {
            all[i] = self.word(first + i as u16, name)?;
        }
        Ok(all)
    }

    fn float(&self, id: u16, name: &'static str) -> Result<f32> {
        Ok(self.table.scalar(&Field { table: self.name, name, id, default: 0.0 })?)
    }

    fn list(&self, id: u16, name: &'static str) -> Result<Vec<u32>> {
        let field: Field<Vector<u32>> =
            Field { table: self.name, name, id, default: <Vector<u32> as crate::flatbuffer::Kind>::ZERO };
        Ok(self.table.vector(&field)?.iter().collect::<Result<_, _>>()?)
    }

    fn optional(&self, id: u16, name: &'static str) -> Result<Option<usize>> {
        match self.word(id, name)? {
            NO_VALUE => Ok(None),
            value => (self.find)(value).map(Some).ok_or_else(|| {
                PteError::invalid(format!("{}.{name}", self.name), format!("there is no value {value}"))
            }),
        }
    }

    fn value(&self, id: u16, name: &'static str) -> Result<usize> {
        self.optional(id, name)?
            .ok_or_else(|| PteError::invalid(format!("{}.{name}", self.name), "no value is named"))
    }

    /// A node with `count` operands from field `first` on, and its result and flags behind them.
    fn plain(&self, operator: Op, first: u16, names: &[&'static str]) -> Result<XnnNode> {
        let inputs: Result<Vec<_>> = names.iter().zip(first..).map(|(n, id)| self.optional(id, n)).collect();
        let behind = first + names.len() as u16;
        Ok(XnnNode {
            operator,
            inputs: inputs?,
            outputs: vec![self.value(behind, "output_id")?],
            limits: None,
            flags: self.word(behind + 1, "flags")?,
            handle: 0,
        })
    }
}

/// Reads the table of a node that has a number in the union.
pub(super) fn read(kind: u8, table: &Table<'_>, find: &dyn Fn(u32) -> Option<usize>) -> Result<XnnNode> {
    let name = NAMES.get(usize::from(kind)).copied().unwrap_or("XNode");
    let f = Fields { table, name, find };
    if let Some(unary) = unary(kind) {
        return f.plain(Op::Unary(unary), 0, &["input_id"]);
    }
    if let Some(binary) = binary(kind) {
        return f.plain(Op::Binary(binary), 0, &["input1_id", "input2_id"]);
    }
    match kind {
        2 => f.plain(Op::FullyConnected, 0, &["input1_id", "filter_id", "bias_id"]),
        3 => f.plain(Op::Softmax, 0, &["input_id"]),
        7 => convolution(&f, Op::Convolution),
        13 => convolution(&f, Op::DepthwiseConvolution),
        39 => convolution(&f, Op::TransposedConvolution),
        11 => pool(&f, Op::AveragePool),
        14 => pool(&f, Op::MaxPool),
        21 => places_pool(&f),
        18 => f.plain(Op::Convert, 0, &["input_id"]),
        19 => f.plain(Op::GlobalAveragePool, 0, &["input_id"]),
        46 => f.plain(Op::Copy, 0, &["input_id"]),
        25 => f.plain(Op::Unary(U::LeakyRelu { slope: f.float(0, "negative_slope")? }), 1, &["input_id"]),
        29 => f.plain(Op::Unary(U::Elu { alpha: f.float(0, "alpha")? }), 1, &["input_id"]),
        31 => f.plain(Op::Prelu, 0, &["input1_id", "input2_id"]),
        36 => f.plain(Op::Attention, 0, &["query_id", "key_id", "value_id", "scale_id", "mask_id"]),
        37 => f.plain(Op::BatchMatrixMultiply, 0, &["input1_id", "input2_id"]),
        32..=34 | 38 => concatenate(&f, kind),
        5 | 9 | 10 | 20 | 35 => moves(&f, kind),
        other => Ok(XnnNode {
            operator: Op::Unknown(other),
            inputs: Vec::new(),
            outputs: Vec::new(),
            limits: None,
            flags: 0,
            handle: 0,
        }),
    }
}

fn unary(kind: u8) -> Option<U> {
    Some(match kind {
        4 => U::Sigmoid,
        6 => U::Clamp,
        17 => U::Floor,
        22 => U::SquareRoot,
        23 => U::Ceiling,
        24 => U::HardSwish,
        27 => U::Negate,
        28 => U::Square,
        30 => U::Abs,
        40 => U::ReciprocalSquareRoot,
        41 => U::Log,
        42 => U::Gelu,
        43 => U::Tanh,
        44 => U::Exp,
        45 => U::Sin,
        47 => U::Cos,
        _ => return None,
    })
}

fn binary(kind: u8) -> Option<B> {
    Some(match kind {
        1 => B::Add,
        8 => B::Divide,
        12 => B::Minimum,
        15 => B::Multiply,
        16 => B::Subtract,
        26 => B::Maximum,
        _ => return None,
    })
}

fn convolution(f: &Fields<'_, '_>, operator: fn(XnnConvolution) -> Op) -> Result<XnnNode> {
    let pads = f.words(0, ["padding_top", "padding_right", "padding_bottom", "padding_left"])?;
    let [group_inputs, group_outputs, groups] =
        f.words(10, ["group_input_channels", "group_output_channels", "groups"])?;
    let numbers = XnnConvolution {
        pads,
        kernel: f.words(4, ["kernel_height", "kernel_width"])?,
        strides: f.words(6, ["subsampling_height", "subsampling_width"])?,
        dilations: f.words(8, ["dilation_height", "dilation_width"])?,
        group_inputs,
        group_outputs,
        groups,
        more: f.words(13, ["adjustment_height", "adjustment_width"])?,
    };
    f.plain(operator(numbers), 15, &["input1_id", "filter_id", "bias_id"])
}

fn pool(f: &Fields<'_, '_>, operator: fn(XnnPool) -> Op) -> Result<XnnNode> {
    let numbers = XnnPool {
        pads: f.words(0, ["padding_top", "padding_right", "padding_bottom", "padding_left"])?,
        kernel: f.words(4, ["pooling_height", "pooling_width"])?,
        strides: f.words(6, ["stride_height", "stride_width"])?,
        dilations: f.words(8, ["dilation_height", "dilation_width"])?,
    };
    f.plain(operator(numbers), 10, &["input_id"])
}

fn places_pool(f: &Fields<'_, '_>) -> Result<XnnNode> {
    let kernel = f.words(4, ["pooling_height", "pooling_width"])?;
    let pads = f.words(0, ["padding_top", "padding_right", "padding_bottom", "padding_left"])?;
    let operator = Op::ArgMaxPool(XnnPool { pads, kernel, strides: kernel, dilations: [1; 2] });
    Ok(XnnNode {
        operator,
        inputs: vec![f.optional(6, "input_id")?],
        outputs: vec![f.value(7, "output_value_id")?, f.value(8, "output_index_id")?],
        limits: None,
        flags: f.word(9, "flags")?,
        handle: 0,
    })
}

fn concatenate(f: &Fields<'_, '_>, kind: u8) -> Result<XnnNode> {
    let names = [(1, "input1_id"), (2, "input2_id"), (3, "input3_id"), (4, "input4_id"), (7, "input5_id")];
    let count = if kind == 38 { 5 } else { usize::from(kind) - 30 };
    let inputs: Result<Vec<_>> = names[..count].iter().map(|(id, name)| f.optional(*id, name)).collect();
    Ok(XnnNode {
        operator: Op::Concatenate { axis: f.word(0, "axis")? },
        inputs: inputs?,
        outputs: vec![f.value(5, "output_id")?],
        limits: None,
        flags: f.word(6, "flags")?,
        handle: 0,
    })
}

fn moves(f: &Fields<'_, '_>, kind: u8) -> Result<XnnNode> {
    let input = &["input_id"];
    match kind {
        5 => f.plain(Op::Transpose { order: f.list(1, "perm")? }, 2, input),
        9 => f.plain(Op::ResizeBilinear { size: f.words(0, ["new_height", "new_width"])? }, 2, input),
        10 => {
            let (before, behind) = (f.list(0, "pre_paddings")?, f.list(1, "post_paddings")?);
            f.plain(Op::Pad { before, behind, value: f.float(2, "padding_value")? }, 3, input)
        }
        20 => f.plain(Op::Reshape { dims: f.list(1, "new_shape")? }, 2, input),
        _ => {
            let (starts, sizes) = (f.list(1, "offsets")?, f.list(2, "sizes")?);
            f.plain(Op::Slice { starts, sizes }, 3, input)
        }
    }
}
