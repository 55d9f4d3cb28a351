//! Random shapes of operations, as networks have them: what a choice of kernels has to fit that was measured on others.

use std::ops::RangeInclusive;

use halite_ops::{Operation, OperationError};

use super::Size;

/// Operations that shapes are made of, by name.
pub const NAMES: &[&str] = &["attention", "conv2d", "matmul", "norm", "pool2d", "reduce", "softmax"];

/// Arithmetic of a shape at most: what the plainest variants do in seconds.
fn most_flops(size: Size) -> f64 {
    match size {
        Size::Cpu => 1e8,
        Size::Gpu => 2e10,
    }
}

/// Random shapes; the same seed gives the same ones.
#[derive(Clone, Debug)]
pub struct Shapes {
    state: u64,
    size: Size,
}

impl Shapes {
    /// For devices of a size.
    pub fn new(seed: u64, size: Size) -> Shapes {
        Shapes { state: seed, size }
    }

    /// A shape of the operation with this name, one of [`NAMES`], with tensors of 32-bit floats.
    ///
    /// # Errors
    /// There is no such operation, or none of its shapes.
    pub fn next(&mut self, name: &str) -> Result<Operation, OperationError> {
        loop {
            let fields = match name {
                "attention" => self.attention(),
                "conv2d" => self.conv2d(),
                "matmul" => self.matmul(),
                "norm" => self.norm(),
                "pool2d" => self.pool2d(),
                "reduce" => self.lines("kind=mean"),
                _ => self.lines("log=false"),
            };
            let operation = Operation::parse(&format!("{name}:{fields}"))?;
            if operation.work().flops <= most_flops(self.size) {
                return Ok(operation);
            }
        }
    }

    /// Splitmix64 (Steele, Lea and Flood, Fast splittable pseudorandom number generators, 2014).
    fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[(self.bits() % all.len() as u64) as usize]
    }

    /// A size whose logarithm is evenly spread; every other one is a multiple of eight, as sizes of layers mostly are.
    fn size(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (least, most) = ((*range.start() as f64).ln(), (*range.end() as f64).ln());
        let part = (self.bits() >> 11) as f64 / (1u64 << 53) as f64;
        let size = (least + (most - least) * part).exp().round() as u64;
        let even = if size > 8 && self.bits().is_multiple_of(2) { size.next_multiple_of(8) } else { size };
        even.clamp(*range.start(), *range.end())
    }

    fn attention(&mut self) -> String {
        let (heads, dim, keys) =
            (self.size(1..=16), self.one_of(&[16, 32, 64, 80, 128]), self.size(4..=1024));
        let queries = if self.bits().is_multiple_of(4) { 1 } else { keys };
        let mask = self.one_of(&["none", "none", "full"]);
        format!(
            "batch=1,heads={heads},q_len={queries},kv_len={keys},head_dim={dim},dtype=f32,causal=false,mask={mask}"
        )
    }

    /// A third each of windows of one place, of several, and of groups of one channel.
    fn conv2d(&mut self) -> String {
        let (height, width) = (self.size(4..=112), self.size(4..=112));
        let (channels, filters) = (self.size(3..=512), self.size(4..=512));
        let (kernel, depthwise) = match self.bits() % 3 {
            0 => (1, false),
            1 => (self.one_of(&[2, 3, 3, 3, 5, 7]), false),
            _ => (self.one_of(&[3, 3, 5, 5, 7]), true),
        };
        let (stride, pad) = (if kernel > 1 { self.one_of(&[1, 1, 2]) } else { 1 }, kernel / 2);
        let (filters, each, groups) =
            if depthwise { (channels, 1, channels) } else { (filters, channels, 1) };
        let activation = self.one_of(&["none", "relu", "relu6", "hard_swish", "silu"]);
        format!(
            "input=1x{channels}x{height}x{width},filter={filters}x{each}x{kernel}x{kernel},strides={stride}x{stride},\
             dilations=1x1,pads={pad}x{pad}x{pad}x{pad},groups={groups},dtype=f32,bias=true,activation={activation},\
             layout=nchw"
        )
    }

    fn matmul(&mut self) -> String {
        let batch = if self.bits().is_multiple_of(3) { self.size(2..=16) } else { 1 };
        let (m, n, k) = (self.size(1..=512), self.size(4..=1024), self.size(8..=1024));
        let transposed = self.bits().is_multiple_of(2);
        format!("m={m},n={n},k={k},batch={batch},lhs=f32,rhs=f32,out=f32,rhs_transposed={transposed}")
    }

    fn norm(&mut self) -> String {
        let (rows, groups) = (self.size(1..=1024), self.one_of(&[1, 1, 8]));
        let (channels, spatial) = match groups {
            1 => (self.size(8..=2048), 1),
            _ => (8 * self.size(1..=32), self.size(4..=1024)),
        };
        let batch = if groups > 1 { 1 } else { rows };
        format!(
            "kind=group,batch={batch},channels={channels},spatial={spatial},groups={groups},scale=true,bias=true,\
             epsilon=1e-5,dtype=f32"
        )
    }

    fn pool2d(&mut self) -> String {
        let (channels, height, width) = (self.size(1..=256), self.size(7..=112), self.size(7..=112));
        let (kind, kernel, stride) =
            (self.one_of(&["max", "average"]), self.one_of(&[2, 3]), self.one_of(&[1, 2]));
        format!(
            "input=1x{channels}x{height}x{width},kernel={kernel}x{kernel},kind={kind},strides={stride}x{stride},\
             dilations=1x1,pads=0x0x0x0,ceil=false,dtype=f32,layout=nchw"
        )
    }

    fn lines(&mut self, kind: &str) -> String {
        let inner = if self.bits().is_multiple_of(4) { self.size(2..=196) } else { 1 };
        format!("{kind},outer={},length={},inner={inner},dtype=f32", self.size(1..=2048), self.size(2..=2048))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_operations_and_the_same_for_a_seed() {
        let draw = |seed: u64| -> Vec<String> {
            let mut shapes = Shapes::new(seed, Size::Cpu);
            let shapes = NAMES.iter().flat_map(|name| (0..20).map(|_| shapes.next(name)).collect::<Vec<_>>());
            shapes.map(|shape| shape.expect("it is one").to_string()).collect()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert!(Shapes::new(1, Size::Cpu).next("nothing").is_err());
    }
}
