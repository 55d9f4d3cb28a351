use spirv::{Decoration, Op, StorageClass};

use super::*;
use crate::{
    Assembler, Id, analyze, push_constants_as_buffer,
    subgroup::{SubgroupUse, subgroup_use},
};

/// Types that the kernels of these tests share.
struct Types {
    float: Id,
    uint: Id,
    int2: Id,
    float2: Id,
    float4: Id,
}

/// A kernel whose body `body` writes, and its types.
fn kernel(body: impl FnOnce(&mut Assembler, &Types)) -> Vec<u32> {
    let mut a = Assembler::default();
    let void = a.ty(Op::TypeVoid, &[]);
    let of_function = a.ty(Op::TypeFunction, &[void.0]);
    let float = a.ty(Op::TypeFloat, &[32]);
    let uint = a.ty(Op::TypeInt, &[32, 0]);
    let int = a.ty(Op::TypeInt, &[32, 1]);
    let int2 = a.ty(Op::TypeVector, &[int.0, 2]);
    let float2 = a.ty(Op::TypeVector, &[float.0, 2]);
    let float4 = a.ty(Op::TypeVector, &[float.0, 4]);
    let main = a.effect(Op::Function, void, &[0, of_function.0]);
    let label = a.reserve();
    a.block(label);
    body(&mut a, &Types { float, uint, int2, float2, float4 });
    a.statement(Op::Return, &[]);
    a.statement(Op::FunctionEnd, &[]);
    a.finish(main, "main", [8, 8, 1])
}

/// A variable of an opaque type at a binding of set 0, loaded.
fn resource(a: &mut Assembler, ty: Id, binding: u32) -> Id {
    let class = StorageClass::UniformConstant;
    let pointer = a.ty(Op::TypePointer, &[class as u32, ty.0]);
    let variable = a.variable(pointer, class);
    a.decorate(variable, Decoration::DescriptorSet, &[0]);
    a.decorate(variable, Decoration::Binding, &[binding]);
    a.effect(Op::Load, ty, &[variable.0])
}

/// The two dimensions, no depth, one layer, one sample; 1 is sampled, 2 is storage; and the format.
fn image(a: &mut Assembler, t: &Types, use_of: u32, format: u32) -> Id {
    a.ty(Op::TypeImage, &[t.float.0, 1, 0, 0, 0, use_of, format])
}

/// Samples binding 0 at (0.5, 0.5), adds what binding 1, a tensor, has at [0, 1], and writes it to texel (1, 0) of binding 2.
fn samples() -> Vec<u32> {
    kernel(|a, t| {
        let plain = image(a, t, 1, 0);
        let sampled = a.ty(Op::TypeSampledImage, &[plain.0]);
        let (zero, one) = (a.constant(Op::Constant, t.uint, &[0]), a.constant(Op::Constant, t.uint, &[1]));
        let two = a.constant(Op::Constant, t.uint, &[2]);
        let tensor = a.ty(Op::TypeTensorARM, &[t.float.0, two.0]);
        let place = a.ty(Op::TypeArray, &[t.uint.0, two.0]);
        let storage = image(a, t, 2, 1);
        let half = a.constant(Op::Constant, t.float, &[0.5f32.to_bits()]);
        let lod = a.constant(Op::Constant, t.float, &[0]);
        let at = a.constant(Op::ConstantComposite, t.float2, &[half.0, half.0]);
        let element = a.constant(Op::ConstantComposite, place, &[zero.0, one.0]);
        let int = a.ty(Op::TypeInt, &[32, 1]);
        let [left, top] = [1, 0].map(|value| a.constant(Op::Constant, int, &[value]));
        let texel = a.constant(Op::ConstantComposite, t.int2, &[left.0, top.0]);
        let source = resource(a, sampled, 0);
        let colour = a.effect(Op::ImageSampleExplicitLod, t.float4, &[source.0, at.0, 2, lod.0]);
        let values = resource(a, tensor, 1);
        let value = a.effect(Op::TensorReadARM, t.float, &[values.0, element.0]);
        let sum = a.effect(Op::VectorTimesScalar, t.float4, &[colour.0, value.0]);
        let target = resource(a, storage, 2);
        a.statement(Op::ImageWrite, &[target.0, texel.0, sum.0]);
        a.effect(Op::ImageQuerySize, t.int2, &[target.0]);
    })
}

const PICTURE: Image = Image {
    size: [4, 3],
    components: 4,
    bits: 8,
    numbers: Numbers::Snorm,
    sampler: Some(Sampler {
        linear: [true, false],
        outside: [Outside::Mirror, Outside::Border],
        border: [0, 1],
    }),
};

fn bound() -> BTreeMap<(u32, u32), Opaque> {
    let target = Image { components: 1, numbers: Numbers::Float, bits: 16, sampler: None, ..PICTURE };
    [((0, 0), Opaque::Image(PICTURE)), ((0, 1), Opaque::Tensor(vec![2, 5])), ((0, 2), Opaque::Image(target))]
        .into()
}

#[test]
fn images_and_tensors_become_buffers() {
    let words = buffers_for(&samples(), &bound()).expect("it is supported").expect("it has images");
    let facts = analyze(&words).expect("it is valid");
    let entry = facts.entry("main").expect("it is there");
    let places: Vec<_> = entry.bindings.iter().map(|b| (b.binding, b.class.as_str())).collect();
    assert_eq!(places, [(0, "StorageBuffer"), (1, "StorageBuffer"), (2, "StorageBuffer")]);
    // Writes are calls of functions, which need no width of subgroups.
    assert_eq!(subgroup_use(&words, "main"), Ok(SubgroupUse::None));
    let module = Module::parse(&words).expect("it is whole");
    let gone =
        [Op::TypeImage, Op::TypeSampledImage, Op::TypeTensorARM, Op::ImageWrite, Op::ImageSampleExplicitLod];
    assert!(module.insts().iter().all(|inst| !gone.contains(&inst.op)));
    assert!(module.insts().iter().any(|inst| inst.op == Op::AtomicOr), "halves of words are put as such");
    assert_eq!(buffers_for(&words, &bound()).expect("it is a module"), None);
}

#[test]
fn what_is_not_supported_is_named() {
    let told = |change: fn(&mut BTreeMap<(u32, u32), Opaque>)| {
        let mut bound = bound();
        change(&mut bound);
        buffers_for(&samples(), &bound).expect_err("it is refused").to_string()
    };
    assert!(told(|bound| drop(bound.remove(&(0, 1)))).contains("binding 1 of set 0"));
    assert!(told(|bound| drop(bound.insert((0, 1), Opaque::Tensor(vec![2; 3])))).contains("rank"));
    assert!(told(|bound| drop(bound.insert((0, 2), Opaque::Tensor(vec![2, 5])))).contains("ImageWrite"));
    let without = Image { sampler: None, ..PICTURE };
    let told =
        buffers_for(&samples(), &[((0, 0), Opaque::Image(without))].into()).expect_err("it is refused");
    assert!(told.to_string().contains("no sampler"));
}

#[test]
fn push_constants_become_a_buffer() {
    let words = kernel(|a, t| {
        let block = a.own_type(Op::TypeStruct, &[t.uint.0]);
        a.decorate(block, Decoration::Block, &[]);
        a.decorate_member(block, 0, Decoration::Offset, &[0]);
        let class = StorageClass::PushConstant;
        let pointer = a.ty(Op::TypePointer, &[class as u32, block.0]);
        let variable = a.variable(pointer, class);
        let inner = a.ty(Op::TypePointer, &[class as u32, t.uint.0]);
        let zero = a.constant(Op::Constant, t.uint, &[0]);
        let place = a.effect(Op::AccessChain, inner, &[variable.0, zero.0]);
        a.effect(Op::Load, t.uint, &[place.0]);
    });
    assert_eq!(analyze(&words).expect("it is valid").entry_points[0].push_constant_bytes, 4);
    let words = push_constants_as_buffer(&words, 7).expect("it is a module").expect("it has some");
    let entry = &analyze(&words).expect("it is valid").entry_points[0];
    assert_eq!(entry.push_constant_bytes, 0);
    assert_eq!((entry.bindings[0].binding, entry.bindings[0].class.as_str()), (7, "StorageBuffer"));
}
