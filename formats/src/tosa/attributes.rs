//! From attributes by name to operators: the one place where both kinds of files become operators.

use super::{Accumulator, Conv, NanMode, Operator, Pool, ResizeMode, Rounding, Scalar};

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    /// Integers; one of them for a number, a boolean or a choice.
    Ints(Vec<i64>),
    /// A number of the type of the tensors.
    Scalar(Scalar),
}

/// The attributes of a node by the names of the specification.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attributes {
    all: Vec<(&'static str, Attribute)>,
}

type Result<T, E = String> = std::result::Result<T, E>;

impl Attributes {
    /// Adds an attribute.
    pub fn set(&mut self, name: &'static str, value: Attribute) {
        self.all.push((name, value));
    }

    /// Adds one or more integers.
    pub fn set_ints(&mut self, name: &'static str, values: Vec<i64>) {
        self.set(name, Attribute::Ints(values));
    }

    fn get(&self, name: &str) -> Result<&Attribute> {
        let found = self.all.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
        found.ok_or_else(|| format!("the attribute {name} is missing"))
    }

    fn ints(&self, name: &str) -> Result<&[i64]> {
        match self.get(name)? {
            Attribute::Ints(values) => Ok(values),
            Attribute::Scalar(_) => Err(format!("the attribute {name} is no integer")),
        }
    }

    fn array<const N: usize>(&self, name: &str) -> Result<[i64; N]> {
        let values = self.ints(name)?;
        let array = <[i64; N]>::try_from(values);
        array.map_err(|_| format!("the attribute {name} has {} numbers, not {N}", values.len()))
    }

    fn int(&self, name: &str) -> Result<i64> {
        self.array::<1>(name).map(|[value]| value)
    }

    fn bool(&self, name: &str) -> Result<bool> {
        Ok(self.int(name)? != 0)
    }

    fn scalar(&self, name: &str) -> Result<Scalar> {
        match self.get(name)? {
            Attribute::Scalar(value) => Ok(*value),
            Attribute::Ints(_) => Err(format!("the attribute {name} is no number of the tensors' type")),
        }
    }

    /// A choice among values that are numbered from 1 on.
    fn choice<T: Copy>(&self, name: &str, values: &[T]) -> Result<T> {
        let number = self.int(name)?;
        let found = usize::try_from(number).ok().and_then(|number| values.get(number.checked_sub(1)?));
        found.copied().ok_or_else(|| format!("the attribute {name} is {number}, not 1 to {}", values.len()))
    }

    fn nan_mode(&self) -> Result<NanMode> {
        self.choice("nan_mode", &[NanMode::Propagate, NanMode::Ignore])
    }

    fn accumulator(&self) -> Result<Accumulator> {
        let all = [Accumulator::I32, Accumulator::F16, Accumulator::F32, Accumulator::I48];
        self.choice("acc_type", &all)
    }

    fn axis(&self) -> Result<i64> {
        self.int("axis")
    }

    fn pool(&self) -> Result<Pool> {
        Ok(Pool { kernel: self.array("kernel")?, stride: self.array("stride")?, pad: self.array("pad")? })
    }

    /// Of a convolution over so many axes.
    fn conv<const AXES: usize, const SIDES: usize>(&self) -> Result<Conv> {
        Ok(Conv {
            pad: self.array::<SIDES>("pad")?.to_vec(),
            stride: self.array::<AXES>("stride")?.to_vec(),
            dilation: self.array::<AXES>("dilation")?.to_vec(),
            ..self.plain_conv::<SIDES>("pad", AXES)?
        })
    }

    fn plain_conv<const SIDES: usize>(&self, pad: &str, axes: usize) -> Result<Conv> {
        let stride = self.ints("stride")?;
        if stride.len() != axes {
            return Err(format!("the attribute stride has {} numbers, not {axes}", stride.len()));
        }
        Ok(Conv {
            pad: self.array::<SIDES>(pad)?.to_vec(),
            stride: stride.to_vec(),
            dilation: vec![1; axes],
            accumulator: self.accumulator()?,
            local_bound: self.bool("local_bound")?,
            input_zero: self.int("input_zp")?,
            weight_zero: self.int("weight_zp")?,
        })
    }
}

impl Operator {
    /// The operator of a name with its attributes.
    ///
    /// # Errors
    /// An attribute is missing or has a value that it cannot have; or there is no such operator, or only in `.tosa` files.
    pub fn from_attributes(name: &str, a: &Attributes) -> Result<Operator> {
        let found = windows(name, a).or_else(|| plain(name)).or_else(|| elements(name, a));
        let found = found.or_else(|| axes(name, a)).or_else(|| shapes(name, a));
        found.unwrap_or_else(|| Err(format!("there is no operator {name} in TOSA 1.0")))
    }
}

fn windows(name: &str, a: &Attributes) -> Option<Result<Operator>> {
    let made = || {
        Ok(Some(match name {
            "AVG_POOL2D" => Operator::AvgPool2d {
                pool: a.pool()?,
                accumulator: a.accumulator()?,
                input_zero: a.int("input_zp")?,
                output_zero: a.int("output_zp")?,
            },
            "MAX_POOL2D" => Operator::MaxPool2d { pool: a.pool()?, nan_mode: a.nan_mode()? },
            "CONV2D" => Operator::Conv2d(a.conv::<2, 4>()?),
            "CONV3D" => Operator::Conv3d(a.conv::<3, 6>()?),
            "DEPTHWISE_CONV2D" => Operator::DepthwiseConv2d(a.conv::<2, 4>()?),
            "TRANSPOSE_CONV2D" => Operator::TransposeConv2d(a.plain_conv::<4>("out_pad", 2)?),
            "FFT2D" => Operator::Fft2d { inverse: a.bool("inverse")?, local_bound: a.bool("local_bound")? },
            "RFFT2D" => Operator::Rfft2d { local_bound: a.bool("local_bound")? },
            "MATMUL" => Operator::MatMul { a_zero: a.int("A_zp")?, b_zero: a.int("B_zp")? },
            _ => return Ok(None),
        }))
    };
    made().transpose()
}

/// Operators without attributes.
fn plain(name: &str) -> Option<Result<Operator>> {
    Some(Ok(match name {
        "ERF" => Operator::Erf,
        "SIGMOID" => Operator::Sigmoid,
        "TANH" => Operator::Tanh,
        "ADD" => Operator::Add,
        "BITWISE_AND" => Operator::BitwiseAnd,
        "BITWISE_OR" => Operator::BitwiseOr,
        "BITWISE_XOR" => Operator::BitwiseXor,
        "INTDIV" => Operator::IntDiv,
        "LOGICAL_AND" => Operator::LogicalAnd,
        "LOGICAL_LEFT_SHIFT" => Operator::LogicalLeftShift,
        "LOGICAL_RIGHT_SHIFT" => Operator::LogicalRightShift,
        "LOGICAL_OR" => Operator::LogicalOr,
        "LOGICAL_XOR" => Operator::LogicalXor,
        "POW" => Operator::Pow,
        "SUB" => Operator::Sub,
        "TABLE" => Operator::Table,
        "ABS" => Operator::Abs,
        "BITWISE_NOT" => Operator::BitwiseNot,
        "CEIL" => Operator::Ceil,
        "CLZ" => Operator::Clz,
        "COS" => Operator::Cos,
        "EXP" => Operator::Exp,
        "FLOOR" => Operator::Floor,
        "LOG" => Operator::Log,
        "LOGICAL_NOT" => Operator::LogicalNot,
        "RECIPROCAL" => Operator::Reciprocal,
        "RSQRT" => Operator::Rsqrt,
        "SIN" => Operator::Sin,
        "SELECT" => Operator::Select,
        "EQUAL" => Operator::Equal,
        "GREATER" => Operator::Greater,
        "GREATER_EQUAL" => Operator::GreaterEqual,
        "GATHER" => Operator::Gather,
        "SCATTER" => Operator::Scatter,
        "CAST" => Operator::Cast,
        "IDENTITY" => Operator::Identity,
        _ => return None,
    }))
}

fn elements(name: &str, a: &Attributes) -> Option<Result<Operator>> {
    let made = || {
        Ok(Some(match name {
            "CLAMP" => Operator::Clamp {
                min: a.scalar("min_val")?,
                max: a.scalar("max_val")?,
                nan_mode: a.nan_mode()?,
            },
            "ARITHMETIC_RIGHT_SHIFT" => Operator::ArithmeticRightShift { round: a.bool("round")? },
            "MAXIMUM" => Operator::Maximum { nan_mode: a.nan_mode()? },
            "MINIMUM" => Operator::Minimum { nan_mode: a.nan_mode()? },
            "MUL" => Operator::Mul { shift: a.int("shift")? },
            "NEGATE" => {
                Operator::Negate { input_zero: a.int("input1_zp")?, output_zero: a.int("output_zp")? }
            }
            "RESCALE" => Operator::Rescale {
                scale32: a.bool("scale32")?,
                rounding: a
                    .choice("rounding_mode", &[Rounding::Single, Rounding::Inexact, Rounding::Double])?,
                per_channel: a.bool("per_channel")?,
                input_unsigned: a.bool("input_unsigned")?,
                output_unsigned: a.bool("output_unsigned")?,
                input_zero: a.int("input_zp")?,
                output_zero: a.int("output_zp")?,
            },
            _ => return Ok(None),
        }))
    };
    made().transpose()
}

fn axes(name: &str, a: &Attributes) -> Option<Result<Operator>> {
    let made = || {
        Ok(Some(match name {
            "ARGMAX" => Operator::ArgMax { axis: a.axis()?, nan_mode: a.nan_mode()? },
            "REDUCE_ALL" => Operator::ReduceAll { axis: a.axis()? },
            "REDUCE_ANY" => Operator::ReduceAny { axis: a.axis()? },
            "REDUCE_MAX" => Operator::ReduceMax { axis: a.axis()?, nan_mode: a.nan_mode()? },
            "REDUCE_MIN" => Operator::ReduceMin { axis: a.axis()?, nan_mode: a.nan_mode()? },
            "REDUCE_PRODUCT" => Operator::ReduceProduct { axis: a.axis()? },
            "REDUCE_SUM" => Operator::ReduceSum { axis: a.axis()? },
            "CONCAT" => Operator::Concat { axis: a.axis()? },
            "REVERSE" => Operator::Reverse { axis: a.axis()? },
            _ => return Ok(None),
        }))
    };
    made().transpose()
}

fn shapes(name: &str, a: &Attributes) -> Option<Result<Operator>> {
    let list = |name| a.ints(name).map(<[i64]>::to_vec);
    let made = || {
        Ok(Some(match name {
            "PAD" => Operator::Pad { padding: list("padding")? },
            "RESHAPE" => Operator::Reshape { shape: list("shape")? },
            "SLICE" => Operator::Slice { start: list("start")?, size: list("size")? },
            "TILE" => Operator::Tile { multiples: list("multiples")? },
            "TRANSPOSE" => Operator::Transpose { perms: list("perms")? },
            "RESIZE" => Operator::Resize {
                mode: a.choice("mode", &[ResizeMode::Nearest, ResizeMode::Bilinear])?,
                scale: a.array("scale")?,
                offset: a.array("offset")?,
                border: a.array("border")?,
            },
            _ => return Ok(None),
        }))
    };
    made().transpose()
}

#[cfg(test)]
mod tests {
    use super::super::{Kind, OPERATORS};
    use super::*;

    /// Attributes with so many numbers each.
    fn numbers(operands: &[(&'static str, Kind)], count: usize) -> Attributes {
        let mut all = Attributes::default();
        for (name, kind) in operands {
            match kind {
                Kind::Tensor | Kind::Tensors => {}
                Kind::Ints => all.set_ints(name, vec![1; count]),
                Kind::Scalar => all.set(name, Attribute::Scalar(Scalar::Int(1))),
                _ => all.set_ints(name, vec![1]),
            }
        }
        all
    }

    #[test]
    fn every_operator_of_the_table_is_made() {
        for spec in &OPERATORS {
            let counts = |name: &str| match (spec.name, name) {
                ("RESIZE", "scale") | (_, "pad" | "out_pad") => 4,
                _ => 2,
            };
            let mut all = numbers(spec.operands, 2);
            let two = spec.name != "CONV3D";
            for (name, value) in &mut all.all {
                if let Attribute::Ints(values) = value
                    && values.len() == 2
                {
                    *values = vec![1; if two { counts(name) } else { 3 * (1 + usize::from(*name == "pad")) }];
                }
            }
            let made = Operator::from_attributes(spec.name, &all).unwrap();
            assert_eq!(made.name(), spec.name);
        }
    }

    #[test]
    fn wrong_attributes_are_told() {
        let said = |name, a: &Attributes| Operator::from_attributes(name, a).unwrap_err();
        let mut a = Attributes::default();
        assert_eq!(said("REVERSE", &a), "the attribute axis is missing");
        a.set_ints("axis", vec![1, 2]);
        assert_eq!(said("REVERSE", &a), "the attribute axis has 2 numbers, not 1");
        a.set_ints("nan_mode", vec![3]);
        assert_eq!(said("MAXIMUM", &a), "the attribute nan_mode is 3, not 1 to 2");
        assert_eq!(said("SORT", &a), "there is no operator SORT in TOSA 1.0");
    }
}
