//! The functions that linear operations apply to their results before they store them. `include/activation.glsl` has the
//! same functions for kernels.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{DType, Tolerance};

/// A slope of [`Activation::LeakyRelu`]: a finite number above 0, known by its bits, so that operations can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slope(u32);

impl Slope {
    /// `None` where the number is infinite, none, or not above 0.
    pub fn new(slope: f32) -> Option<Slope> {
        (slope.is_finite() && slope > 0.0).then(|| Slope(slope.to_bits()))
    }

    /// The number.
    pub fn value(self) -> f32 {
        f32::from_bits(self.0)
    }
}

/// What is applied to a result. NaN stays NaN. As text, those without a number are their names in `snake_case`, and the leaky ReLU is
/// `leaky_relu_0.01` with its slope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Activation {
    /// Nothing.
    #[default]
    None,
    /// `max(x, 0)`.
    Relu,
    /// `min(max(x, 0), 6)`.
    Relu6,
    /// `x * sigmoid(x)`.
    Silu,
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// `x * min(max(x / 6 + 1/2, 0), 1)`, as in ONNX.
    HardSwish,
    /// The hyperbolic tangent.
    Tanh,
    /// `x / 2 * (1 + erf(x / sqrt(2)))`.
    Gelu,
    /// `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))`.
    GeluTanh,
    /// `x * sigmoid(1.702 x)`, as CLIP has it in the place of GELU.
    QuickGelu,
    /// `x * tanh(ln(1 + exp(x)))`.
    Mish,
    /// `x` above 0, and `x` times the slope below.
    LeakyRelu(Slope),
}

/// What the text of a leaky ReLU begins with.
const LEAKY: &str = "leaky_relu_";

impl fmt::Display for Activation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Activation::None => "none",
            Activation::Relu => "relu",
            Activation::Relu6 => "relu6",
            Activation::Silu => "silu",
            Activation::Sigmoid => "sigmoid",
            Activation::HardSwish => "hard_swish",
            Activation::Tanh => "tanh",
            Activation::Gelu => "gelu",
            Activation::GeluTanh => "gelu_tanh",
            Activation::QuickGelu => "quick_gelu",
            Activation::Mish => "mish",
            Activation::LeakyRelu(slope) => return write!(f, "{LEAKY}{}", slope.value()),
        })
    }
}

impl FromStr for Activation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(slope) = text.strip_prefix(LEAKY) {
            let slope = slope.parse().ok().and_then(Slope::new);
            return slope
                .map(Activation::LeakyRelu)
                .ok_or_else(|| format!("'{text}' has no finite slope above 0, as {LEAKY}0.01 has"));
        }
        Activation::ALL.into_iter().find(|known| known.to_string() == text).ok_or_else(|| {
            let known = Activation::ALL.map(|known| known.to_string()).join(", ");
            format!("unknown activation '{text}', expected one of {known}, {LEAKY}SLOPE")
        })
    }
}

impl TryFrom<String> for Activation {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Activation> for String {
    fn from(activation: Activation) -> String {
        activation.to_string()
    }
}

impl Activation {
    /// All that have no number.
    pub const ALL: [Activation; 11] = [
        Activation::None,
        Activation::Relu,
        Activation::Relu6,
        Activation::Silu,
        Activation::Sigmoid,
        Activation::HardSwish,
        Activation::Tanh,
        Activation::Gelu,
        Activation::GeluTanh,
        Activation::QuickGelu,
        Activation::Mish,
    ];

    /// Whether it does nothing.
    pub fn is_none(&self) -> bool {
        *self == Activation::None
    }

    /// The least and the most that it lets through as it is; `None` when it does more than that.
    pub fn limits(self) -> Option<[f32; 2]> {
        match self {
            Activation::None => Some([f32::NEG_INFINITY, f32::INFINITY]),
            Activation::Relu => Some([0.0, f32::INFINITY]),
            Activation::Relu6 => Some([0.0, 6.0]),
            Activation::Silu
            | Activation::Sigmoid
            | Activation::HardSwish
            | Activation::Tanh
            | Activation::Gelu
            | Activation::GeluTanh
            | Activation::QuickGelu
            | Activation::Mish
            | Activation::LeakyRelu(_) => None,
        }
    }

    /// The value for `x`.
    pub fn apply(self, x: f64) -> f64 {
        let limited = |x: f64, least: f64, most: f64| match () {
            () if x < least => least,
            () if x > most => most,
            () => x,
        };
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        match self {
            Activation::None => x,
            Activation::Relu => limited(x, 0.0, f64::INFINITY),
            Activation::Relu6 => limited(x, 0.0, 6.0),
            Activation::Silu => x * sigmoid(x),
            Activation::Sigmoid => sigmoid(x),
            Activation::HardSwish => x * limited(x / 6.0 + 0.5, 0.0, 1.0),
            Activation::Tanh => x.tanh(),
            Activation::Gelu => x / 2.0 * (1.0 + libm::erf(x / 2f64.sqrt())),
            Activation::GeluTanh => {
                let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
                x / 2.0 * (1.0 + inner.tanh())
            }
            Activation::QuickGelu => x * sigmoid(1.702 * x),
            Activation::Mish => x * x.exp().ln_1p().tanh(),
            Activation::LeakyRelu(slope) if x < 0.0 => x * f64::from(slope.value()),
            Activation::LeakyRelu(_) => x,
        }
    }

    /// What becomes of the tolerance of its argument. No slope is above 1.5 (that of hard-swish at 3), but for those that are given. The exponential
    /// of a device is off by 3 + 2|x| units in the last place (Vulkan specification, precision of SPIR-V
    /// instructions); with the factors that fall with |x| this is less than 8 units of 1. The error function and the
    /// tangent are off by 4 units of 1 at most, and are 1 in `f32` where a factor |x| / 2 would make more than 16 of them.
    pub fn after(self, argument: Tolerance) -> Tolerance {
        let (slope, own) = match self {
            Activation::None | Activation::Relu | Activation::Relu6 => (1.0, 0.0),
            Activation::Silu | Activation::Sigmoid | Activation::HardSwish | Activation::Tanh => (1.5, 8.0),
            Activation::QuickGelu | Activation::Mish => (1.5, 16.0),
            Activation::Gelu | Activation::GeluTanh => (1.5, 16.0),
            Activation::LeakyRelu(slope) => (f64::from(slope.value()).max(1.0), 1.0),
        };
        let epsilon = DType::F32.epsilon();
        Tolerance {
            absolute: slope * argument.absolute + own * epsilon,
            relative: slope * argument.relative + own * epsilon,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        let at = |x: f64| Activation::ALL.map(|a| a.apply(x));
        assert_eq!(at(0.0), [0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(at(9.0)[..3], [9.0, 9.0, 6.0]);
        assert_eq!((Activation::HardSwish.apply(3.0), Activation::HardSwish.apply(-4.0)), (3.0, -0.0));
        assert!((Activation::Silu.apply(1.0) - 0.731_058_578_6).abs() < 1e-9);
        // As SciPy has them.
        assert!((Activation::Gelu.apply(-1.5) + 0.100_210_801_9).abs() < 1e-9);
        assert!((Activation::GeluTanh.apply(-1.5) + 0.100_428_423).abs() < 1e-9);
        // As PyTorch has them.
        assert!((Activation::Mish.apply(-1.5) + 0.298_099_742_2).abs() < 1e-9);
        assert!((Activation::Mish.apply(1000.0) - 1000.0).abs() < 1e-9);
        assert!((Activation::QuickGelu.apply(-1.5) + 0.108_337_801_6).abs() < 1e-9);
        assert!(at(f64::NAN).iter().all(|x| x.is_nan()));
        let leaky: Activation = "leaky_relu_0.25".parse().unwrap();
        assert_eq!([-8.0, 0.0, 8.0].map(|x| leaky.apply(x)), [-2.0, 0.0, 8.0]);
        assert!(leaky.apply(f64::NAN).is_nan());
    }

    #[test]
    fn texts() {
        let slope = Slope::new(0.01).unwrap();
        for activation in Activation::ALL.into_iter().chain([Activation::LeakyRelu(slope)]) {
            assert_eq!(activation.to_string().parse(), Ok(activation));
        }
        let error = |text: &str| text.parse::<Activation>().unwrap_err();
        assert!(error("relu7").contains("relu, relu6"), "{}", error("relu7"));
        for slope in ["", "0", "-0.1", "inf", "nan", "x"] {
            assert!(error(&format!("leaky_relu_{slope}")).contains("no finite slope"), "{slope}");
        }
    }
}
