//! Operations as meaning: what a computation reads and writes, whether its numbers go together, what it costs at least, its
//! results on the host, and how far a device may be off. Nothing here knows of devices, kernels or SPIR-V.
//!
//! Internal to Halite; programs use the crate `halite`.
//!
//! # Tensors
//! All tensors are dense and row-major. Inputs come first, in the order of [`Operation::inputs`], then outputs.
//!
//! # The reference
//! [`Operation::reference`] computes the results in `f64` on the host, as simply as possible. It is what kernels are tested
//! against, with the tolerance that [`Operation::tolerance`] derives from the types and the length of sums.
//!
//! # Identity
//! Operations are compared by `Eq` and `Hash`. Their text is for people: a change of it changes nothing else.
//!
//! # Adding an operation
//! A file with a struct that implements [`Op`], and its line in the list below. `docs/how-to/add-an-operation.md` has the rest.
#![forbid(unsafe_code)]

mod activation;
mod dtype;
mod exact;
pub mod expression;
mod operation;
#[cfg(any(test, feature = "testing"))]
mod samples;
mod tolerance;
mod values;

// What several operations share.
pub mod axis;
pub mod blocks;
pub mod convolution;
pub mod epilogue;
pub mod line_order;
pub mod lines;
pub mod moves;
pub mod numbers;
pub mod order;
pub mod scatters;
pub mod window;

// The operations, a file each.
pub mod arg_reduce;
pub mod attention;
#[cfg(any(test, feature = "testing"))]
mod attention_samples;
pub mod block_matmul;
pub mod block_rows;
pub mod cached;
pub mod compact;
pub mod concat;
pub mod conv1d;
pub mod conv2d;
pub mod conv2d_int8;
#[cfg(any(test, feature = "testing"))]
mod conv2d_samples;
pub mod conv_transpose2d;
pub mod copy;
pub mod cumulative_sum;
pub mod elementwise;
#[cfg(any(test, feature = "testing"))]
mod elementwise_samples;
pub mod embedding;
pub mod expert_matmul;
pub mod fragments;
pub mod gather;
pub mod gather_elements;
pub mod gather_nd;
pub mod kv_append;
pub mod line_codes;
pub mod matmul;
#[cfg(any(test, feature = "testing"))]
mod matmul_samples;
pub mod norm;
pub mod pad;
pub mod pool2d;
pub mod quant_matmul;
pub mod recurrent;
#[cfg(any(test, feature = "testing"))]
mod recurrent_samples;
pub mod reduce;
pub mod resize;
pub mod rotary;
pub mod rows;
pub mod runs;
#[cfg(any(test, feature = "testing"))]
mod runs_samples;
pub mod scatter_elements;
pub mod scatter_nd;
pub mod softmax;
pub mod sort;
pub mod strides;
pub mod suppress;
pub mod top_k;

pub use activation::{Activation, Slope};
pub use dtype::DType;
pub use exact::Exact;
pub use operation::{OperationError, Work};
pub use runs::Apart;
#[cfg(any(test, feature = "testing"))]
pub use samples::Samples;
pub use tolerance::Tolerance;
pub use values::{TensorDesc, Values};

operation::operations! {
    /// Places of the largest or smallest elements along axes.
    ArgReduce(arg_reduce) "arg_reduce"
        "arg_reduce:outer=1,length=1,inner=1,smallest=true,last=true,dtype=f16,indices=i64",
    /// Scaled dot-product attention.
    Attention(attention) "attention"
        "attention:batch=1,heads=1,q_len=2,kv_len=3,head_dim=1,dtype=f32,causal=false,mask=none",
    /// Product of activations and weights in blocks.
    BlockMatMul(block_matmul) "block_matmul"
        "block_matmul:m=1,n=1,k=160,format=q4_0",
    /// Rows of a table of weights in blocks.
    BlockRows(block_rows) "block_rows"
        "block_rows:rows=1,width=32,indices=1,format=q4_0,index=i32",
    /// Places at which a condition holds.
    Compact(compact) "compact"
        "compact:length=5",
    /// Joining of tensors.
    Concat(concat) "concat"
        "concat:outer=1,sizes=5,inner=1,dtype=f32",
    /// Convolution of signals.
    Conv1d(conv1d) "conv1d"
        "conv1d:input=1x6x50,filter=9x6x3,stride=1,dilation=1,pads=0x0,groups=1,dtype=f32,bias=true,residual=true,activation=relu,layout=nchw",
    /// Convolution of images.
    Conv2d(conv2d) "conv2d"
        "conv2d:input=1x1x1x1,filter=1x1x1x1,strides=1x1,dilations=1x1,pads=0x0x0x0,groups=1,dtype=f32,bias=false,residual=false,activation=none,layout=nchw",
    /// Convolution of 8-bit images.
    Conv2dInt8(conv2d_int8) "conv2d_int8"
        "conv2d_int8:input=1x1x1x1,filter=1x1x1x1,strides=1x1,dilations=1x1,pads=0x0x0x0,groups=1,data=i8,out=i8,input_zero=0,output_zero=0,bias=false,layout=nchw",
    /// Transposed convolution of images.
    ConvTranspose2d(conv_transpose2d) "conv_transpose2d"
        "conv_transpose2d:input=2x6x7x9,filter=6x5x3x3,strides=2x2,dilations=1x1,pads=1x1x1x1,output_padding=1x1,groups=1,dtype=f32,bias=true,activation=none",
    /// Strided copy.
    StridedCopy(copy) "copy"
        "copy:source=1,shape=1,strides=1,offset=0,dtype=f32",
    /// Sums of all elements up to each one along an axis.
    CumulativeSum(cumulative_sum) "cumulative_sum"
        "cumulative_sum:outer=1,length=1,inner=1,exclusive=false,reverse=false,dtype=f32",
    /// An expression over the elements of tensors.
    Elementwise(elementwise) "elementwise"
        "elementwise:inputs=f32[1030],program=abs $0 -> %0:f32",
    /// Rows of a table of quantized weights.
    Embedding(embedding) "embedding"
        "embedding:rows=1,width=32,indices=1,group=32,bits=8,scales=f16,zero_points=true,out=f32,index=i32",
    /// Product of activations and the weights of chosen experts.
    ExpertMatMul(expert_matmul) "expert_matmul"
        "expert_matmul:tokens=1,used=2,shared=true,n=5,k=32,experts=4,first=0,format=q4_0",
    /// Picking of rows by index.
    Gather(gather) "gather"
        "gather:outer=1,axis=10,inner=1,indices=7,dtype=f32,index=i32",
    /// Picking of elements by an index each.
    GatherElements(gather_elements) "gather_elements"
        "gather_elements:data=9,indices=20,axis=0,dtype=f32,index=i32",
    /// Picking of slices by several indices each.
    GatherNd(gather_nd) "gather_nd"
        "gather_nd:batch=1,extents=10,inner=1,slices=23,dtype=f32,index=i32",
    /// New rows of a cache of keys or values.
    KvAppend(kv_append) "kv_append"
        "kv_append:batch=1,kv_heads=2,len=1,capacity=9,head_dim=32,rows=f32,cache=f32,start=5,starts=false,seq_first=false,in_place=false",
    /// Scales, zero points and codes of lines.
    LineCodes(line_codes) "line_codes"
        "line_codes:outer=1,length=1,rule=whole,least=-128,most=127,smallest=0.0,divide=false,zero_first=false,dtype=f32,codes=i8",
    /// Product of matrices.
    MatMul(matmul) "matmul"
        "matmul:m=1,n=1,k=1,batch=1,lhs=i8,rhs=i8,out=i32,rhs_transposed=false,rhs_shared=false,bias=false,residual=false,activation=none",
    /// Layer, root mean square, group, instance and batch normalization.
    Norm(norm) "norm"
        "norm:kind=group,batch=3,channels=40,spatial=1,groups=1,scale=true,bias=true,epsilon=9.999999747378752e-6,dtype=f32",
    /// Sizes as elements.
    Numbers(numbers) "numbers"
        "numbers:values=3x4",
    /// Borders around tensors.
    Pad(pad) "pad"
        "pad:input=7,before=3,after=5,border=constant,value=3.0,dtype=f32",
    /// Pooling of images.
    Pool2d(pool2d) "pool2d"
        "pool2d:input=2x5x8x6,kernel=2x2,kind=l1,strides=2x2,dilations=1x1,pads=0x0x0x0,ceil=false,dtype=f32,layout=nchw",
    /// Product of activations and quantized weights.
    QuantMatMul(quant_matmul) "quant_matmul"
        "quant_matmul:m=1,n=1,k=32,group=32,bits=4,lhs=i8,scales=f16,out=f16,zero_points=false",
    /// Steps of a recurrent network over a sequence.
    Recurrent(recurrent) "recurrent"
        "recurrent:cell=lstm,steps=2,batch=1,hidden=1,layers=1,direction=forward,activation=tanh,lengths=false,dtype=f32",
    /// Sums, products, extremes and norms along axes.
    Reduce(reduce) "reduce"
        "reduce:kind=sum,outer=1,length=1,inner=1,dtype=f32",
    /// Resizing of images.
    Resize(resize) "resize"
        "resize:images=2,input=13,output=5,step=,step_of=,interpolation=cubic,coordinates=half_pixel,nearest=round_prefer_floor,cubic=-0.75,exclude_outside=false,dtype=f32",
    /// Rotary position embedding.
    Rotary(rotary) "rotary"
        "rotary:batch=2,heads=6,len=4,head_dim=256,dtype=f32,interleaved=true,start=0,positions=i64,base=500000.0",
    /// Updates of elements by an index each.
    ScatterElements(scatter_elements) "scatter_elements"
        "scatter_elements:data=9,indices=20,axis=0,reduction=add,dtype=i8,index=i32",
    /// Updates of slices by several indices each.
    ScatterNd(scatter_nd) "scatter_nd"
        "scatter_nd:extents=0,inner=8,slices=2,reduction=add,dtype=i8,index=i32",
    /// Softmax and its logarithm.
    Softmax(softmax) "softmax"
        "softmax:outer=1,length=1,inner=1,log=false,mask_rows=0,mask_heads=1,dtype=f32",
    /// Elements along an axis in order, and where they were.
    Sort(sort) "sort"
        "sort:outer=1,length=1,inner=1,descending=true,dtype=i8,indices=i64",
    /// Boxes with the best scores of those that overlap.
    Suppress(suppress) "suppress"
        "suppress:batch=1,classes=1,boxes=6,most=3,center=false",
    /// The largest or smallest elements along an axis, and where they were.
    TopK(top_k) "top_k"
        "top_k:outer=1,length=1,inner=1,k=1,smallest=true,dtype=i8,indices=i64",
}

/// What every operation can do.
pub trait Op {
    /// The reason when its numbers do not go together.
    ///
    /// # Errors
    /// Says what is wrong, for people.
    fn check(&self) -> Result<(), String>;

    /// Tensors that it reads.
    fn inputs(&self) -> Vec<TensorDesc>;

    /// Tensors that it writes.
    fn outputs(&self) -> Vec<TensorDesc>;

    /// The types of its tensors, to change them: each one that it has as a field.
    fn types(&mut self) -> Vec<&mut DType>;

    /// The combination of types, such as `f16xf16_f32`: every one that a caller may ask for has a baseline variant.
    fn signature(&self) -> String;

    /// Arithmetic operations.
    fn flops(&self) -> f64;

    /// The results. `inputs` have the lengths that [`Op::inputs`] says.
    fn reference(&self, inputs: &[Values]) -> Vec<Values>;

    /// Whether an output keeps what it had where nothing is written to it.
    fn updates(&self, _output: usize) -> bool {
        false
    }

    /// What it is without runs, where its first input or its first output is runs of a larger tensor.
    fn apart(&self) -> Option<Apart> {
        None
    }

    /// The results where outputs that are updated had these elements before; [`Op::reference`] has zeros there.
    fn reference_over(&self, inputs: &[Values], _before: &[Values]) -> Vec<Values> {
        self.reference(inputs)
    }

    /// How far a kernel's result may be off; `magnitudes` has what the finite elements of each input are at most.
    fn tolerance(&self, magnitudes: &[f64]) -> Tolerance;

    /// The same for one of several outputs.
    fn output_tolerance(&self, _output: usize, magnitudes: &[f64]) -> Tolerance {
        self.tolerance(magnitudes)
    }
}
