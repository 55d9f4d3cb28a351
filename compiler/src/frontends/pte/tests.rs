//! Operators that the exporter of the corpus does not produce, and graphs that are wrong.

use halite_formats::pte::{Call, DataType, Program, VulkanGraph, VulkanTensor, VulkanValue as V};
use halite_ops::{DType, Values};

use super::{types::element_inside, value::Passed, vulkan};
use crate::{CompileError, build::Builder, graph::ElementType};

fn tensor(datatype: DataType, dims: &[u32]) -> V {
    V::Tensor(VulkanTensor { datatype, staging: datatype, dims: dims.to_vec(), constant: None })
}

fn floats(dims: &[u32]) -> V {
    tensor(DataType::Float32, dims)
}

fn call(name: &str, args: &[usize]) -> Call {
    Call { node: 0, name: name.to_owned(), args: args.to_vec() }
}

/// What a graph of the delegate gives for values of its inputs, which are its first values.
fn run(
    values: Vec<V>,
    calls: Vec<Call>,
    outputs: &[usize],
    inputs: &[Values],
) -> Result<Vec<Values>, CompileError> {
    let program = Program::default();
    let graph = VulkanGraph {
        calls,
        values,
        inputs: (0..inputs.len()).collect(),
        outputs: outputs.to_vec(),
        constants: Vec::new(),
    };
    let mut builder = Builder::new();
    let mut passed = Vec::new();
    for (i, value) in graph.values[..inputs.len()].iter().enumerate() {
        let V::Tensor(tensor) = value else { panic!("inputs are tensors") };
        let dims: Vec<u64> = tensor.dims.iter().map(|d| u64::from(*d)).collect();
        let element: ElementType = element_inside(tensor.datatype);
        let name = format!("input{i}");
        passed.push(Passed::Tensor(match element {
            // Numbers that sizes depend on are promised.
            ElementType::Of(DType::I32) => {
                let bytes = inputs[i].to_bytes(DType::I32);
                builder.bound_input(&name, element, &dims, bytes.into())?
            }
            _ => builder.input(&name, element, &dims)?,
        }));
    }
    let (mut builder, results) =
        vulkan::import(builder, (&program, &graph), (&passed, outputs.len()), &mut [], "the test")?;
    for result in results {
        let Passed::Tensor(result) = result else { panic!("results are tensors") };
        builder.output("result", result);
    }
    builder.finish()?.evaluate(inputs)
}

/// One call on one tensor: arguments are 0 for the tensor, then those given.
fn one(name: &str, input: V, more: Vec<V>, result: V, values: &[f64]) -> Result<Vec<f64>, CompileError> {
    let args: Vec<usize> = (0..more.len() + 2).collect();
    let last = args.len() - 1;
    let all = [vec![input], more, vec![result]].concat();
    Ok(run(all, vec![call(name, &args)], &[last], &[Values::Float(values.to_vec())])?[0].floats())
}

fn said(error: Result<Vec<f64>, CompileError>) -> String {
    error.expect_err("it is refused").to_string()
}

#[test]
fn variance_by_both_rules() {
    let x = [1.0, 2.0, 4.0, 7.0, 7.0, 7.0];
    let of = |unbiased| {
        let more = vec![V::IntList(vec![-1]), V::Bool(unbiased), V::Bool(true)];
        one("aten.var.dim", floats(&[2, 3]), more, floats(&[2, 1]), &x).unwrap()
    };
    assert!((of(true)[0] - 7.0 / 3.0).abs() < 1e-6 && of(true)[1] == 0.0);
    assert!((of(false)[0] - 14.0 / 9.0).abs() < 1e-6 && of(false)[1] == 0.0);
}

#[test]
fn elements_are_repeated() {
    let of = |axis, dims: &[u32]| {
        one(
            "aten.repeat_interleave.self_int",
            floats(&[2, 2]),
            vec![V::Int(2), axis, V::Null],
            floats(dims),
            &[1.0, 2.0, 3.0, 4.0],
        )
    };
    assert_eq!(of(V::Int(0), &[4, 2]).unwrap(), [1.0, 2.0, 1.0, 2.0, 3.0, 4.0, 3.0, 4.0]);
    assert_eq!(of(V::Null, &[8]).unwrap(), [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0]);
}

#[test]
fn signals_are_convolved_by_operators_of_their_own() {
    let sizes = |v| V::IntList(vec![v]);
    let values = vec![
        floats(&[1, 2, 4]),
        floats(&[2, 1, 2]),
        V::Null,
        sizes(1),
        sizes(0),
        sizes(1),
        V::Int(2),
        V::Int(0),
        V::Null,
        floats(&[1, 2, 3]),
    ];
    let x = Values::Float(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    let filters = Values::Float(vec![1.0, 1.0, -1.0, 0.5]);
    // The filters are handed in; the bound cuts what is below 0.
    let args: Vec<usize> = (0..10).collect();
    let made = run(values, vec![call("et_vk.conv1d_dw.default", &args)], &[9], &[x, filters]).unwrap();
    assert_eq!(made[0].floats(), [3.0, 5.0, 7.0, 0.0, 0.0, 0.0]);
}

#[test]
fn sizes_come_from_numbers_that_are_promised() {
    // x[:, :(position + 3) // 2], with the position in a tensor.
    let values = vec![
        floats(&[2, 4]),
        tensor(DataType::Int32, &[1]),
        V::Int(0),
        V::Int(3),
        V::Int(2),
        V::Int(1),
        V::SymInt(0),
        V::SymInt(0),
        V::SymInt(0),
        floats(&[2, 4]),
    ];
    let calls = vec![
        call("et_vk.select_as_symint.default", &[1, 2, 2, 6]),
        call("add", &[6, 3, 7]),
        call("floordiv", &[7, 4, 8]),
        call("aten.slice_copy.Tensor", &[0, 5, 2, 8, 5, 9]),
    ];
    let x = Values::Float((1..9).map(f64::from).collect());
    let made = run(values, calls, &[9], &[x, Values::Int(vec![2])]).unwrap();
    assert_eq!(made[0].floats(), [1.0, 2.0, 5.0, 6.0]);
}

#[test]
fn numbers_take_the_place_of_tensors() {
    let x = [-1.0, 0.5, 2.0];
    let of = |name, more, result| one(name, floats(&[3]), more, result, &x).unwrap();
    let truth = || tensor(DataType::Bool, &[3]);
    assert_eq!(of("aten.ne.Scalar", vec![V::Double(0.5)], truth()), [1.0, 0.0, 1.0]);
    assert_eq!(of("aten.gt.Scalar", vec![V::Int(0)], truth()), [0.0, 1.0, 1.0]);
    assert_eq!(of("aten.mul.Scalar", vec![V::Int(-2)], floats(&[3])), [2.0, -1.0, -4.0]);
    assert_eq!(of("aten.add.Scalar", vec![V::Int(3), V::Double(0.5)], floats(&[3])), [0.5, 2.0, 3.5]);
    assert_eq!(of("aten.hardshrink.default", vec![V::Double(0.5)], floats(&[3])), [-1.0, 0.0, 2.0]);
}

#[test]
fn weights_are_made_codes_of_groups_and_their_products_have_gradients() {
    // Two columns of four, in groups of two; a scale of 0 stands for zeros.
    let weights = Values::Float(vec![1.0, -1.0, 4.2, 30.0, 0.5, 0.5, -9.0, 0.0]);
    let scales = Values::Float(vec![0.5, 0.0, 1.0, 1.0]);
    let codes = || tensor(DataType::UInt8, &[2, 2]);
    let values = vec![floats(&[2, 4]), floats(&[2, 2]), V::Int(2), codes()];
    let made = run(
        values,
        vec![call("et_vk.q4gsw_requant.default", &[0, 1, 2, 3])],
        &[3],
        &[weights, scales.clone()],
    );
    let bytes = vec![0x6a, 0xfc, 0x88, 0x80];
    assert_eq!(made.unwrap()[0].floats(), [106.0, 252.0, 136.0, 128.0]);

    let values = vec![floats(&[1, 2]), codes(), floats(&[2, 2]), V::Int(2), floats(&[1, 4])];
    let inputs = [Values::Float(vec![1.0, 10.0]), Values::Int(bytes), scales];
    let calls = vec![call("et_vk.linear_q4gsw_backward.default", &[0, 1, 2, 3, 4])];
    assert_eq!(run(values, calls, &[4], &inputs).unwrap()[0].floats(), [1.0, -1.0, -76.0, 7.0]);

    let values = vec![floats(&[1, 2, 2]), floats(&[1, 2, 2]), floats(&[2, 2])];
    let inputs = [Values::Float(vec![1.0, 2.0, 3.0, 4.0]), Values::Float(vec![1.0, 0.0, 1.0, 1.0])];
    let made = run(values, vec![call("et_vk.linear_dW.default", &[0, 1, 2])], &[2], &inputs).unwrap();
    assert_eq!(made[0].floats(), [4.0, 3.0, 6.0, 4.0]);
}

#[test]
fn errors_name_the_place_and_what_is_wrong() {
    let x = [1.0, 2.0];
    let more = |name, more, dims: &[u32]| said(one(name, floats(&[2]), more, floats(dims), &x));
    let text = more("aten.frobnicate.default", vec![], &[2]);
    assert!(text.contains("not supported: aten.frobnicate.default (call 0 of the test)"), "{text}");
    let text = more("aten.leaky_relu.default", vec![], &[2]);
    assert!(text.contains("argument 1 is missing; there are 1"), "{text}");
    let text = more("aten.leaky_relu.default", vec![V::String("x".into())], &[2]);
    assert!(text.contains("not a number"), "{text}");
    let text = more("aten.relu.default", vec![], &[3]);
    assert!(text.contains("the file says [3]"), "{text}");
    let text = more("aten.unsqueeze_copy.default", vec![V::Int(5)], &[2]);
    assert!(text.contains("dimension 5 of 2"), "{text}");
}

/// What PyTorch 2.15 gives for `torch.ops.aten._upsample_bilinear2d_aa(x, sizes, True)`, which takes middles of pixels.
#[test]
fn pictures_without_aliasing_take_middles_where_corners_are_aligned() {
    let picture = Values::Float((0..12).map(|i| f64::from(i * i) / 8.0).collect());
    let scaled = |rows: i64, columns: i64| {
        let result = floats(&[1, 1, rows as u32, columns as u32]);
        let more = vec![V::IntList(vec![rows, columns]), V::Bool(true), V::Null, V::Null];
        let values = [vec![floats(&[1, 1, 4, 3])], more, vec![result]].concat();
        let call = call("aten._upsample_bilinear2d_aa.default", &[0, 1, 2, 3, 4, 5]);
        let made = run(values, vec![call], &[5], std::slice::from_ref(&picture)).unwrap();
        (0..made[0].len()).map(|at| made[0].float(at)).collect::<Vec<f64>>()
    };
    let near = |made: Vec<f64>, wanted: &[f64]| {
        assert_eq!(made.len(), wanted.len());
        assert!(made.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-5), "{made:?} for {wanted:?}");
    };
    near(scaled(3, 2), &[0.747768, 1.320313, 5.077381, 6.739583, 10.830358, 13.3125]);
    let wider = [2.8125, 3.078125, 3.609375, 4.203125, 4.859375, 8.25, 8.78125, 9.84375, 10.96875, 12.15625];
    near(scaled(2, 5), &wider);
    near(scaled(1, 3), &[0.0, 0.125, 0.5]);
}

#[test]
fn values_are_computed_once_and_before_they_are_read() {
    let values = || vec![floats(&[2]), floats(&[2]), floats(&[2])];
    let x = || [Values::Float(vec![1.0, 2.0])];
    let early = run(values(), vec![call("aten.relu.default", &[1, 2])], &[2], &x()).unwrap_err().to_string();
    assert!(early.contains("value 1 is read before it is computed"), "{early}");
    let twice = vec![call("aten.relu.default", &[0, 1]), call("aten.abs.default", &[0, 1])];
    let twice = run(values(), twice, &[1], &x()).unwrap_err().to_string();
    assert!(twice.contains("value 1 is changed in place"), "{twice}");
}

#[test]
fn masks_stay_finite_in_delegates_that_compute_in_halves() {
    let numbers = vec![f64::from(f32::MIN), f64::NEG_INFINITY, 1e5, 1.5];
    let half = || tensor(DataType::Float16, &[4]);
    let values = vec![half(), V::Double(f64::from(f32::MIN)), V::Null, half(), V::IntList(vec![4])];
    let filled = call("aten.full.default", &[4, 1, 2, 2, 2, 2, 3]);
    let graph = VulkanGraph {
        calls: vec![filled],
        values,
        inputs: vec![0],
        outputs: vec![0, 3],
        constants: Vec::new(),
    };
    let mut builder = Builder::new();
    let given = builder.values(DType::F32, &[4], &Values::Float(numbers)).unwrap();
    let program = Program::default();
    let handed = [Passed::Tensor(given)];
    let (mut builder, results) =
        vulkan::import(builder, (&program, &graph), (&handed, 2), &mut [], "the test").unwrap();
    for result in results {
        let Passed::Tensor(result) = result else { panic!("results are tensors") };
        builder.output("result", result);
    }
    let made = builder.finish().unwrap().evaluate(&[]).unwrap();
    // What is infinite stays so.
    assert_eq!(made[0].floats(), [-65_504.0, f64::NEG_INFINITY, 65_504.0, 1.5]);
    assert_eq!(made[1].floats(), [-65_504.0; 4]);
}
