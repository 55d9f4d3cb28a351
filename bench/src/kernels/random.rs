//! Random shapes of operations, as networks have them: what a choice of kernels has to fit that was measured on others.

use std::ops::RangeInclusive;

use halite_ops::{Operation, OperationError};

use super::Size;

/// Operations that shapes are made of, by name.
pub const NAMES: &[&str] = &[
    "arg_reduce",
    "attention",
    "block_matmul",
    "concat",
    "conv1d",
    "conv2d",
    "conv2d_int8",
    "conv_transpose2d",
    "copy",
    "cumulative_sum",
    "elementwise",
    "embedding",
    "gather",
    "matmul",
    "norm",
    "pad",
    "pool2d",
    "quant_matmul",
    "recurrent",
    "reduce",
    "resize",
    "rotary",
    "softmax",
    "sort",
    "top_k",
];

/// Operations that shapes of 16-bit floats are made of.
pub const HALVES: &[&str] = &["matmul", "conv2d"];

/// Bytes of a shape of 16-bit floats at most.
const MOST_HALF_BYTES: f64 = 64e6;

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
                "arg_reduce" => self.lines("smallest=false,last=false,indices=i64"),
                "attention" => self.attention(),
                "block_matmul" => self.block_matmul(),
                "concat" => self.concat(),
                "conv1d" => self.conv1d(),
                "conv2d" => self.conv2d(),
                "conv2d_int8" => self.conv2d_int8(),
                "conv_transpose2d" => self.conv_transpose2d(),
                "copy" => self.copy(),
                "cumulative_sum" => self.lines("exclusive=false,reverse=false"),
                "elementwise" => self.elementwise(),
                "embedding" => self.embedding(),
                "gather" => self.gather(),
                "matmul" => self.matmul(),
                "norm" => self.norm(),
                "pad" => self.pad(),
                "pool2d" => self.pool2d(),
                "quant_matmul" => self.quant_matmul(),
                "recurrent" => self.recurrent(),
                "reduce" => self.lines("kind=mean"),
                "resize" => self.resize(),
                "rotary" => self.rotary(),
                "sort" => self.lines("descending=true,indices=i64"),
                "top_k" => self.top_k(),
                _ => self.lines("log=false"),
            };
            let operation = Operation::parse(&format!("{name}:{fields}"))?;
            if operation.work().flops <= most_flops(self.size) {
                return Ok(operation);
            }
        }
    }

    /// A shape for matrix units with tensors of 16-bit floats, of layers of networks: a product of up to 25,088 rows, or a convolution
    /// of one or eight images, half of them with channels last.
    ///
    /// # Errors
    /// There are no such shapes of the operation.
    pub fn next_half(&mut self, name: &str) -> Result<Operation, OperationError> {
        loop {
            let fields = match name {
                "matmul" => self.half_matmul(),
                "conv2d" => self.half_conv2d(),
                other => {
                    let (name, known) = (other.to_owned(), HALVES.join(", "));
                    return Err(OperationError::UnknownName { name, known });
                }
            };
            let operation = Operation::parse(&format!("{name}:{fields}"))?;
            let (work, scale) = (operation.work(), if self.size == Size::Cpu { 1.0 } else { 10.0 });
            if work.flops <= most_flops(self.size) * scale && work.bytes <= MOST_HALF_BYTES {
                return Ok(operation);
            }
        }
    }

    fn half_matmul(&mut self) -> String {
        let most = if self.size == Size::Cpu { [512, 512] } else { [25_088, 4096] };
        let (m, n, k) = (self.size(1..=most[0]), self.size(64..=most[1]), self.size(64..=most[1]));
        // Rows of weights are whole words, but for every eighth shape.
        let [n, k] =
            if self.bits().is_multiple_of(8) { [n, k] } else { [n, k].map(|s| s.next_multiple_of(8)) };
        let transposed = self.bits().is_multiple_of(2);
        format!("m={m},n={n},k={k},lhs=f16,rhs=f16,out=f16,rhs_transposed={transposed}")
    }

    fn half_conv2d(&mut self) -> String {
        let most = if self.size == Size::Cpu { [28, 64] } else { [112, 640] };
        let (images, side) = (self.one_of(&[1, 8]), self.size(7..=most[0]));
        let [channels, filters] = [(); 2].map(|()| self.size(16..=most[1]).next_multiple_of(8));
        let (kernel, layout) = (self.one_of(&[1, 3, 3, 3, 5]), self.one_of(&["nhwc", "nchw"]));
        // Places that are left out are no matrix where channels lie first.
        let strides = if kernel == 1 && layout == "nchw" { [1; 4] } else { [1, 1, 1, 2] };
        let (pad, stride) = (kernel / 2, self.one_of(&strides));
        let [input, filter] = match layout {
            "nhwc" => [
                format!("{images}x{side}x{side}x{channels}"),
                format!("{kernel}x{kernel}x{channels}x{filters}"),
            ],
            _ => [
                format!("{images}x{channels}x{side}x{side}"),
                format!("{filters}x{channels}x{kernel}x{kernel}"),
            ],
        };
        format!(
            "input={input},filter={filter},strides={stride}x{stride},dilations=1x1,pads={pad}x{pad}x{pad}x{pad},groups=1,\
             dtype=f16,bias=true,activation=relu,layout={layout}"
        )
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

    fn block_matmul(&mut self) -> String {
        let format = self.one_of(&["q4_0", "q8_0", "q4_k", "q6_k"]);
        let (m, n, k) = (self.one_of(&[1, 1, 1, 7, 32]), self.size(64..=4096), 256 * self.size(1..=8));
        format!("m={m},n={n},k={k},format={format}")
    }

    fn concat(&mut self) -> String {
        let (outer, inner) = (self.size(1..=64), self.size(1..=512));
        let sizes = [(); 2].map(|()| self.size(1..=64));
        format!("outer={outer},sizes={}x{},inner={inner},dtype=f32", sizes[0], sizes[1])
    }

    fn conv1d(&mut self) -> String {
        let (length, channels, filters) = (self.size(16..=2048), self.size(1..=256), self.size(4..=256));
        let (kernel, stride) = (self.one_of(&[1, 3, 3, 5, 7, 11]), self.one_of(&[1, 1, 2]));
        let pad = kernel / 2;
        format!(
            "input=1x{channels}x{length},filter={filters}x{channels}x{kernel},stride={stride},dilation=1,pads={pad}x{pad},\
             groups=1,dtype=f32,bias=true,activation=relu,layout=nchw"
        )
    }

    /// As for [`Self::conv2d`], in bytes.
    fn conv2d_int8(&mut self) -> String {
        let fields = self.conv2d();
        let kept: Vec<&str> = fields
            .split(',')
            .filter(|field| !field.starts_with("dtype") && !field.starts_with("activation"))
            .collect();
        let (data, out) = (self.one_of(&["u8", "i8"]), self.one_of(&["u8", "i8", "i32"]));
        format!("{},data={data},out={out}", kept.join(","))
    }

    fn conv_transpose2d(&mut self) -> String {
        let (height, width) = (self.size(4..=64), self.size(4..=64));
        let (channels, filters) = (self.size(4..=128), self.size(1..=128));
        let (kernel, stride) = (self.one_of(&[2, 3, 4]), self.one_of(&[1, 2, 2]));
        format!(
            "input=1x{channels}x{height}x{width},filter={channels}x{filters}x{kernel}x{kernel},strides={stride}x{stride},\
             dilations=1x1,pads=0x0x0x0,output_padding=0x0,groups=1,dtype=f32,bias=true,activation=none"
        )
    }

    /// Two dimensions that change places, before and behind others.
    fn copy(&mut self) -> String {
        let [outer, rows, columns] = [8, 256, 256].map(|most| self.size(1..=most));
        let inner = self.one_of(&[1, 1, 4, 64]);
        let (plane, row) = (rows * columns * inner, columns * inner);
        format!(
            "source={},shape={outer}x{columns}x{rows}x{inner},strides={plane}x{inner}x{row}x1,offset=0,dtype=f32",
            outer * plane
        )
    }

    fn elementwise(&mut self) -> String {
        let (rows, columns) = (self.size(1..=1024), self.size(4..=1024));
        let program = self.one_of(&["add $0 $1 -> %0:f32", "mul $0 $1; tanh %0 -> %1:f32"]);
        let other =
            if self.bits().is_multiple_of(2) { format!("{rows}x{columns}") } else { format!("{columns}") };
        format!("inputs=f32[{rows}x{columns}] f32[{other}],program={program}")
    }

    fn embedding(&mut self) -> String {
        let (rows, indices) = (self.size(16..=4096), self.size(1..=256));
        let (groups, bits) = (self.size(1..=32), self.one_of(&[4, 8]));
        format!(
            "rows={rows},width={},indices={indices},group=32,bits={bits},scales=f32,zero_points=false,out=f32,index=i32",
            groups * 32
        )
    }

    fn gather(&mut self) -> String {
        let (axis, indices) = (self.size(4..=4096), self.size(1..=512));
        let (outer, inner) = (self.one_of(&[1, 1, 8]), self.size(1..=1024));
        format!("outer={outer},axis={axis},inner={inner},indices={indices},dtype=f32,index=i32")
    }

    fn pad(&mut self) -> String {
        let [channels, height, width] = [64, 112, 112].map(|most| self.size(1..=most));
        let border = self.one_of(&["constant", "edge"]);
        format!("input={channels}x{height}x{width},before=0x1x1,after=0x1x1,border={border},dtype=f32")
    }

    fn quant_matmul(&mut self) -> String {
        let (m, n, k) = (self.one_of(&[1, 1, 1, 7, 64]), self.size(64..=4096), 32 * self.size(1..=64));
        let (bits, lhs) = (self.one_of(&[4, 8]), self.one_of(&["f32", "i8"]));
        format!("m={m},n={n},k={k},group=32,bits={bits},lhs={lhs},scales=f32,out=f32,zero_points=false")
    }

    fn recurrent(&mut self) -> String {
        let (cell, batch) = (self.one_of(&["rnn", "gru", "lstm"]), self.one_of(&[1, 1, 2, 8]));
        let (steps, hidden) = (self.size(2..=32), self.size(8..=512));
        let layers = if cell == "gru" { 1 } else { self.one_of(&[1, 1, 2]) };
        let direction = if layers > 1 { "forward" } else { self.one_of(&["forward", "forward", "both"]) };
        format!(
            "cell={cell},steps={steps},batch={batch},hidden={hidden},layers={layers},direction={direction},dtype=f32"
        )
    }

    fn resize(&mut self) -> String {
        let (images, height, width) = (self.size(1..=64), self.size(4..=64), self.size(4..=64));
        let (times, kind) = (self.one_of(&[2, 3]), self.one_of(&["linear", "nearest", "cubic"]));
        format!(
            "images={images},input={height}x{width},output={}x{},step=,step_of=,interpolation={kind},\
             coordinates=half_pixel,nearest=round_prefer_floor,cubic=-0.75,exclude_outside=false,dtype=f32",
            height * times,
            width * times
        )
    }

    fn rotary(&mut self) -> String {
        let (heads, len, dim) = (self.size(1..=32), self.size(1..=512), self.one_of(&[32, 64, 128]));
        let interleaved = self.one_of(&[false, true]);
        format!(
            "batch=1,heads={heads},len={len},head_dim={dim},dtype=f32,interleaved={interleaved},start=0,base=10000.0"
        )
    }

    fn top_k(&mut self) -> String {
        let (outer, length) = (self.size(1..=256), self.size(8..=4096));
        let k = self.size(1..=length.min(64));
        format!("outer={outer},length={length},inner=1,k={k},smallest=false,dtype=f32,indices=i64")
    }

    fn lines(&mut self, kind: &str) -> String {
        let inner = if self.bits().is_multiple_of(4) { self.size(2..=196) } else { 1 };
        format!("{kind},outer={},length={},inner={inner},dtype=f32", self.size(1..=2048), self.size(2..=2048))
    }
}

#[cfg(test)]
mod tests {
    use halite_shaders::{Candidate, Tuning};
    use halite_targets::{Capabilities, Target};

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

    #[test]
    fn shapes_of_halves_have_tilings_of_matrix_units() {
        let target = Capabilities::of(Target::parse("hopper-h200-linux").expect("it is known"));
        for name in HALVES {
            let mut shapes = Shapes::new(1, Size::Gpu);
            for _ in 0..30 {
                let operation = shapes.next_half(name).expect("there are some");
                let ranked = halite_shaders::rank(&operation, &target, Tuning::shipped());
                let tiled = |c: &Candidate| c.plan().is_some() && c.estimate(&operation, &target).is_some();
                assert!(ranked.iter().filter(|c| tiled(c)).count() >= 4, "{operation}");
            }
        }
        assert!(Shapes::new(1, Size::Gpu).next_half("softmax").is_err());
        assert!(Shapes::new(1, Size::Cpu).next_half("conv2d").is_ok());
    }
}
