//! Files that are made here, whole and damaged.

use bytes::Bytes;

use super::schema as s;
use super::*;
use crate::flatbuffer::{Builder, Child, Field, Offset, Vector};

/// A tensor by name; with data it is a constant.
fn tensor(b: &mut Builder, name: &str, number: u32, shape: &[i32], data: Option<&[u8]>) -> Offset<Child> {
    let (name, shape) = (b.text(name), b.scalars(shape.iter().copied()));
    let data = data.map(|data| b.bytes(data, 8));
    b.table()
        .link(&s::tensor::NAME, name)
        .link(&s::tensor::SHAPE, shape)
        .scalar(&s::tensor::TYPE, number)
        .maybe(&s::tensor::DATA, data)
        .finish()
}

fn operator(
    b: &mut Builder,
    number: u32,
    inputs: &[&str],
    outputs: &[&str],
    attribute: Option<Offset<Child>>,
) -> Offset<Child> {
    let (inputs, outputs) = (texts(b, inputs), texts(b, outputs));
    b.table()
        .scalar(&s::operator::OP, number)
        .link(&s::operator::INPUTS, inputs)
        .link(&s::operator::OUTPUTS, outputs)
        .maybe(&s::operator::ATTRIBUTE, attribute)
        .finish()
}

fn texts(b: &mut Builder, all: &[&str]) -> Offset<Vector<crate::flatbuffer::Text>> {
    let all: Vec<_> = all.iter().map(|text| b.text(text)).collect();
    b.texts(&all)
}

/// A file with a padded, rescaled and clamped tensor.
fn file(minor: u32) -> Bytes {
    let mut b = Builder::new();
    let tensors = [
        tensor(&mut b, "x", 3, &[2, 3], None),
        tensor(&mut b, "fill", 3, &[1], Some(&[5, 0, 0, 0, 0, 0, 0, 0])),
        tensor(&mut b, "padded", 3, &[2, 4], None),
        tensor(&mut b, "clamped", 3, &[2, 4], None),
        tensor(&mut b, "most", 5, &[4], None),
    ];
    let tensors = b.children(&tensors);
    let name = b.text("padding");
    let sizes: Vec<u8> = [0i64, 0, 1, 0].iter().flat_map(|size| size.to_le_bytes()).collect();
    let data = b.bytes(&sizes, 8);
    let shape =
        b.table().link(&s::shape::NAME, name).scalar(&s::shape::RANK, 4).link(&s::shape::DATA, data).finish();
    let shapes = b.children(&[shape]);
    let bytes =
        |id| Field { table: "T", name: "bytes", id, default: <Vector<u8> as crate::flatbuffer::Kind>::ZERO };
    let (low, high) = (b.bytes(&[0xFE], 1), b.bytes(&[100], 1));
    let nan = Field { table: "T", name: "nan", id: 2, default: 0u32 };
    let clamp = b.table().link(&bytes(0), low).link(&bytes(1), high).scalar(&nan, 1).finish();
    let axis = Field { table: "T", name: "axis", id: 0, default: -1i32 };
    let nan = Field { table: "T", name: "nan", id: 1, default: 0u32 };
    let arg = b.table().scalar(&axis, 0).scalar(&nan, 2).finish();
    let operators = [
        operator(&mut b, 75, &[], &["padding"], None),
        operator(&mut b, 67, &[], &["fill"], None),
        operator(&mut b, 56, &["x", "padding", "fill"], &["padded"], None),
        operator(&mut b, 11, &["padded"], &["clamped"], Some(clamp)),
        operator(&mut b, 1, &["clamped"], &["most"], Some(arg)),
    ];
    let operators = b.children(&operators);
    let (inputs, outputs) = (texts(&mut b, &["x"]), texts(&mut b, &["most", "clamped"]));
    let block = b
        .table()
        .link(&s::block::OPERATORS, operators)
        .link(&s::block::TENSORS, tensors)
        .link(&s::block::SHAPES, shapes)
        .link(&s::block::INPUTS, inputs)
        .link(&s::block::OUTPUTS, outputs)
        .finish();
    let (blocks, name) = (b.children(&[block]), b.text("main"));
    let region = b.table().link(&s::region::NAME, name).link(&s::region::BLOCKS, blocks).finish();
    let regions = b.children(&[region]);
    let version = b.table().scalar(&s::version::MAJOR, 1).scalar(&s::version::MINOR, minor).finish();
    let root = b.table().link(&s::graph::VERSION, version).link(&s::graph::REGIONS, regions).finish();
    b.finish(root, s::IDENTIFIER, false).unwrap().into()
}

#[test]
fn graphs_are_read() {
    let program = Program::parse(&file(0)).unwrap();
    let [graph] = &program.graphs[..] else { panic!("{program:?}") };
    let operators: Vec<_> = graph.nodes.iter().map(|node| node.operator.clone()).collect();
    let (min, max) = (Scalar::Int(-2), Scalar::Int(100));
    assert_eq!(
        operators,
        [
            Operator::Pad { padding: vec![0, 0, 1, 0] },
            Operator::Clamp { min, max, nan_mode: NanMode::Propagate },
            Operator::ArgMax { axis: 0, nan_mode: NanMode::Ignore },
        ]
    );
    assert_eq!(
        (&graph.nodes[0].inputs[..], &graph.inputs[..], &graph.outputs[..]),
        (&[0, 1][..], &[0][..], &[4, 3][..])
    );
    assert_eq!(graph.tensors[1].integers(), Some(vec![5]), "padding behind data is none of it");
    assert!(is_tosa(&file(1)) && Program::parse(&file(1)).is_ok());
    let error = Program::parse(&file(2)).unwrap_err();
    assert!(error.is_unsupported() && error.to_string().contains("1.2; 1.0 and drafts"), "{error}");
}

#[test]
fn damage_is_no_panic() {
    let whole = file(0).to_vec();
    for at in 0..whole.len() {
        for value in [0, 1, 0x7F, 0xFF] {
            let mut damaged = whole.clone();
            damaged[at] = value;
            let _ = Program::parse(&damaged.into());
        }
    }
}
