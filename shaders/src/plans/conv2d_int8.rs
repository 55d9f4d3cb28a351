//! The dispatches of the kernels of `conv2d_int8`, by template.

use halite_ops::{Activation, DType, conv2d_int8::Conv2dInt8};

use crate::{
    Params, Plan, Slot, Unfit,
    plans::{
        Lower,
        convolution::{self, KernelInputs, bytes, matrix, spans, written},
        epilogue::Added,
    },
};

impl Lower for Conv2dInt8 {
    fn lower(&self, template: &str, build: &str, params: &Params) -> Result<Plan, Unfit> {
        let shape = self.shape().map_err(Unfit)?;
        let mut bindings = vec![Slot::Input(0), Slot::Input(1), Slot::Input(if self.bias { 2 } else { 1 })];
        if self.scaled() {
            bindings.push(Slot::Input(self.scales()));
        }
        bindings.push(Slot::Output(0));
        let (least, most) = self.limits();
        let more = [self.input_zero, self.output_zero, least, most].map(i32::cast_unsigned).to_vec();
        let whole = self.bias_type == DType::I32;
        let added = Added { bias: self.bias && whole, scaled_bias: self.bias && !whole, ..Added::default() };
        let activation = Activation::None;
        let kernel = KernelInputs { build, params, added, activation, bindings, more };
        match template {
            "direct" => convolution::direct(&shape, kernel),
            "gemm" => matrix::gemm(&shape, kernel),
            "dots" => bytes::dots(&shape, kernel, self.data == DType::U8),
            "spans" => spans::spans(&shape, kernel, self.data == DType::U8),
            "written" => written::written(&shape, kernel, self.data == DType::U8),
            "depthwise_written" => written::depthwise(&shape, kernel, self.data == DType::U8),
            "depthwise_rows" => written::depthwise_rows(&shape, kernel, self.data == DType::U8),
            "depthwise" => bytes::depthwise(&shape, kernel, self.data == DType::U8),
            other => Err(Unfit(format!("uses the unknown template '{other}'"))),
        }
    }
}
