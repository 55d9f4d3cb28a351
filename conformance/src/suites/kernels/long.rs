//! Operations with sums, lines or searches so long that loops turn more often than llvmpipe lets them: 65,535 times.

use halite_ops::Operation;

/// One for each way of kernels to go through them.
const LONG: &[&str] = &[
    "reduce:kind=sum,outer=1,length=2200000,inner=1,dtype=f32",
    "reduce:kind=max,outer=1,length=300000,inner=5,dtype=f32",
    "reduce:kind=log_sum_exp,outer=1,length=1100000,inner=1,dtype=f32",
    "arg_reduce:outer=1,length=1000000,inner=1,dtype=f32,indices=i64",
    "arg_reduce:outer=1,length=200000,inner=5,dtype=f32,indices=i32",
    "softmax:outer=1,length=1100000,inner=1,dtype=f32",
    "norm:kind=group,batch=1,channels=2,spatial=375000,groups=1,scale=true,bias=true,epsilon=1e-5,dtype=f32",
    "norm:kind=rms,batch=1,channels=750001,spatial=1,groups=1,scale=true,bias=false,epsilon=1e-5,dtype=f32",
    "line_codes:outer=1,length=1100000,rule=whole,least=-128,most=127,codes=i8",
    "line_codes:outer=1,length=1100001,rule=steps,least=-128,most=127,codes=i8",
    "cumulative_sum:outer=1,length=1000000,inner=1,dtype=i32",
    "matmul:m=3,n=8,k=140000,lhs=f32,rhs=f32,out=f32",
    "matmul:m=9,n=8,k=70001,lhs=f32,rhs=f32,out=f32",
    "matmul:m=2,n=8,k=280000,lhs=i8,rhs=i8,out=i32,rhs_transposed=true",
    "conv2d:input=1x8000x3x3,filter=8x8000x3x3",
    "conv2d_int8:input=1x8000x3x3,filter=8x8000x3x3,data=i8,out=i8",
    "pool2d:input=1x1x270x270,kernel=260x260,kind=average,strides=1x1,dilations=1x1,pads=0x0x0x0,ceil=false,dtype=f32,layout=nchw",
    "attention:batch=1,heads=2,q_len=3,kv_len=40000,head_dim=16,dtype=f32,causal=false,mask=none",
    "quant_matmul:m=3,n=8,k=96000,group=32,bits=4,lhs=f32,scales=f32,out=f32,zero_points=false",
    "block_matmul:m=3,n=8,k=128000,format=q4_0",
    "expert_matmul:tokens=900,used=1,shared=true,n=8,k=2048,experts=1,first=0,format=q8_0",
    "scatter_nd:extents=7,inner=2,slices=140000,reduction=max,dtype=f32,index=i32",
    "suppress:batch=1,classes=1,boxes=3000,most=2600,center=false",
];

/// All of them.
pub(super) fn operations() -> Vec<Operation> {
    LONG.iter().map(|text| Operation::parse(text).expect("a test reads all of them")).collect()
}

#[cfg(test)]
mod tests {
    use halite_shaders::{Tuning, rank};
    use halite_targets::{Capabilities, Target};

    use super::*;

    #[test]
    fn every_one_has_a_kernel_whose_loops_no_target_ends() {
        for target in ["cpu-llvmpipe-linux", "vp-vulkan_1_1-unknown", "cpu-swiftshader-linux"] {
            let target = Capabilities::of(Target::parse(target).unwrap());
            for operation in operations() {
                operation.check().unwrap();
                let first = &rank(&operation, &target, Tuning::shipped())[0];
                let plan = first.plan().unwrap_or_else(|| panic!("{}: {operation} has none", target.target));
                assert!(
                    plan.turns <= u64::from(target.max_loop_turns),
                    "{operation}: {}",
                    first.variant.name
                );
            }
        }
    }

    #[test]
    fn every_one_has_a_kernel_whose_loops_llvmpipe_would_end() {
        let target = Capabilities::of(Target::parse("cpu-llvmpipe-linux").unwrap());
        for operation in operations() {
            let ended = |variant: &halite_shaders::Variant| {
                variant.plan(&operation).is_ok_and(|plan| plan.turns > u64::from(target.max_loop_turns))
            };
            let cut = ["scatter_nd", "suppress", "expert_matmul"].contains(&operation.name());
            assert!(cut || halite_shaders::variants_of(operation.name()).any(ended), "{operation}");
        }
    }
}
