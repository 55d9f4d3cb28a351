//! An activation with numbers of each layer (Huang and Schlag, Deriving Activation Functions Using Integration).

use halite_formats::gguf::Value;
use halite_ops::expression::{Expression, Function, Operand, Scalar};

use super::{
    Result,
    file::{File, invalid},
};

/// The numbers of a layer, as files have them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct XIelu {
    /// What the factor of squares above 0 is made of.
    above: f64,
    /// What the factor of the exponential below 0 is made of.
    below: f64,
    /// Factor of the number itself.
    slope: f64,
    /// What numbers below 0 are at most.
    least: f64,
}

/// `ln(1 + e^x)`.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

impl XIelu {
    /// Those of all layers. Their keys do not begin with the architecture.
    pub fn of_layers(file: &File, layers: u64) -> Result<Vec<XIelu>> {
        let list = |name: &str| -> Result<Vec<f64>> {
            let wrong =
                || invalid(format!("the metadata key '{name}' has not a number for each of {layers} layers"));
            let Some(Value::Array(array)) = file.value(name) else { return Err(wrong()) };
            let number = |value: Value| match value {
                Value::Float(value) if value.is_finite() => Some(value),
                Value::Int(value) => Some(value as f64),
                _ => None,
            };
            let all: Option<Vec<f64>> = array.scalars().map(number).collect();
            all.filter(|all| all.len() as u64 == layers).ok_or_else(wrong)
        };
        let [above, below] = [list("xielu.alpha_p")?, list("xielu.alpha_n")?];
        let [slope, least] = [list("xielu.beta")?, list("xielu.eps")?];
        let one = |layer: usize| XIelu {
            above: above[layer],
            below: below[layer],
            slope: slope[layer],
            least: least[layer],
        };
        Ok((0..layers as usize).map(one).collect())
    }

    /// The activation of a number.
    pub fn bent(&self, p: &mut Expression, x: Operand) -> Operand {
        let float = |value: f64| Operand::Constant(Scalar::Float(f64::from(value as f32)));
        let plain = p.call(Function::Mul, &[x, float(self.slope)]);
        let square = p.call(Function::Mul, &[x, x]);
        let above = p.call(Function::Mul, &[square, float(softplus(self.above))]);
        let low = p.call(Function::Min, &[x, float(self.least)]);
        let shrunk = p.call(Function::Exp, &[low]);
        let shrunk = p.call(Function::Sub, &[shrunk, float(1.0)]);
        let below = p.call(Function::Sub, &[shrunk, x]);
        let below = p.call(Function::Mul, &[below, float(self.slope + softplus(self.below))]);
        let is_above = p.call(Function::Gt, &[x, float(0.0)]);
        let bent = p.call(Function::Select, &[is_above, above, below]);
        p.call(Function::Add, &[bent, plain])
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn softplus_is_that_of_large_and_small_numbers() {
        assert!((super::softplus(0.0) - 2f64.ln()).abs() < 1e-12);
        assert!((super::softplus(800.0) - 800.0).abs() < 1e-9 && super::softplus(-800.0) < 1e-300);
    }
}
