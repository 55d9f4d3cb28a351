//! Files that are made here, whole and damaged, and those of the shared corpus.

use bytes::Bytes;

use super::schema as s;
use super::*;
use crate::flatbuffer::{Builder, Child, Offset};
use crate::tosa::ElementType;

const ID: &[u8; 4] = b"\0\0\0\0";

/// A tensor as a resource.
fn resource(b: &mut Builder, category: u8, format: u32, shape: &[i64], alias: Option<u32>) -> Offset<Child> {
    let shape = b.scalars(shape.iter().copied());
    let description = b.table().link(&s::description::SHAPE, shape).finish();
    let mut t = b
        .table()
        .scalar(&s::resource::FORMAT, format)
        .scalar(&s::resource::CATEGORY, category)
        .link(&s::resource::DESCRIPTION, description);
    if category != 3 {
        t = t.scalar(&s::resource::DESCRIPTOR, 1_000_460_000);
    }
    if let Some(alias) = alias {
        t = t.scalar(&s::resource::ALIAS_GROUP, alias);
    }
    t.finish()
}

fn modules() -> Vec<u8> {
    let mut b = Builder::new();
    let words = b.scalars([0x0723_0203u32, 1]);
    let code = b.table().link(&s::code::WORDS, words).finish();
    let (name, entry) = (b.text("graph_partition_0"), b.text("main"));
    let graph = b
        .table()
        .scalar(&s::module::KIND, 1)
        .link(&s::module::NAME, name)
        .link(&s::module::ENTRY_POINT, entry)
        .scalar(&s::module::CODE_KIND, 1)
        .link(&s::module::CODE, code)
        .finish();
    let source = b.text("void main() {}");
    let code = b.table().link(&s::code::TEXT, source).finish();
    let kernel = b.table().scalar(&s::module::CODE_KIND, 2).link(&s::module::CODE, code).finish();
    let missing = b.table().scalar(&s::module::CODE_KIND, 3).finish();
    let all = b.children(&[graph, kernel, missing]);
    let root = b.table().link(&s::module_table::MODULES, all).finish();
    b.finish(root, ID, false).unwrap()
}

fn resources() -> Vec<u8> {
    let mut b = Builder::new();
    let all = [
        resource(&mut b, 3, 14, &[2, 2], None),
        resource(&mut b, 0, 100, &[], None),
        resource(&mut b, 1, 111, &[3], Some(4)),
    ];
    let all = b.children(&all);
    let root = b.table().link(&s::resource_table::ENTRIES, all).finish();
    b.finish(root, ID, false).unwrap()
}

fn slot(b: &mut Builder, binding: u32, resource: u32) -> Offset<Child> {
    b.table().scalar(&s::slot::BINDING, binding).scalar(&s::slot::RESOURCE, resource).finish()
}

/// A sequence with one segment; `v5` lists its constants as files of version 0.5 do, under another number.
fn sequence(v5: bool, kind: u8) -> Vec<u8> {
    let mut b = Builder::new();
    let (input, output) = (slot(&mut b, 2, 1), slot(&mut b, 3, 2));
    let both = b.children(&[input, output]);
    let set = b.table().link(&s::set_info::BINDINGS, both).finish();
    let sets = b.children(&[set]);
    let listed = b.scalars([0u32]);
    let named = b.table().scalar(&s::constant_binding::GRAPH_CONSTANT, 7).finish();
    let named = b.children(&[named]);
    let dispatch = b.scalars([1u32, 2, 3]);
    let mut t = b
        .table()
        .scalar(&s::segment::KIND, kind)
        .link(&s::segment::SETS, sets)
        .link(&s::segment::CONSTANTS, listed)
        .link(&s::segment::DISPATCH, dispatch);
    if v5 {
        t = t.link(&s::segment::CONSTANT_BINDINGS, named);
    }
    let segment = t.finish();
    let segments = b.children(&[segment]);
    let (inputs, outputs) = (b.children(&[input]), b.children(&[output]));
    let root = b
        .table()
        .link(&s::sequence::SEGMENTS, segments)
        .link(&s::sequence::INPUTS, inputs)
        .link(&s::sequence::OUTPUTS, outputs)
        .finish();
    b.finish(root, ID, false).unwrap()
}

fn constants() -> Vec<u8> {
    let mut all = b"CONST00\0\x01\0\0\0\0\0\0\0".to_vec();
    all.extend(0u32.to_le_bytes());
    all.extend(3i32.to_le_bytes());
    all.extend(4u64.to_le_bytes());
    all.extend(8u64.to_le_bytes());
    all.extend([0; 8]);
    all.extend([1, 2, 3, 4, 0, 0, 0, 0]);
    all
}

fn file(minor: u8, sections: [Vec<u8>; 4]) -> Bytes {
    let mut file = vec![0; 128];
    file[..4].copy_from_slice(b"VGF1");
    file[9] = minor;
    for (i, section) in sections.iter().enumerate() {
        file.resize(file.len().next_multiple_of(8), 0);
        let (at, start) = (16 + 16 * i, file.len() as u64);
        file[at..at + 8].copy_from_slice(&start.to_le_bytes());
        file[at + 8..at + 16].copy_from_slice(&(section.len() as u64).to_le_bytes());
        file.extend(section);
    }
    file.into()
}

#[test]
fn all_sections_are_read() {
    let vgf = Vgf::parse(&file(5, [modules(), sequence(true, 1), resources(), constants()])).unwrap();
    assert_eq!(vgf.version, [0, 5, 0]);
    let languages: Vec<_> = vgf.modules.iter().map(|module| module.code.language()).collect();
    assert_eq!(languages, ["SPIR-V", "GLSL", "HLSL"]);
    assert!(matches!(&vgf.modules[0].code, Code::SpirV(words) if words[..] == [3, 2, 0x23, 7, 1, 0, 0, 0]));
    assert_eq!(vgf.modules[2].code, Code::Missing(Some("HLSL")));
    let elements: Vec<_> = vgf.resources.iter().map(|r| r.format.element()).collect();
    assert_eq!(elements, [Some(ElementType::I8), Some(ElementType::F32), Some(ElementType::I48)]);
    assert_eq!((vgf.resources[1].shape.len(), vgf.resources[2].alias_group), (0, Some(4)));
    let segment = &vgf.segments[0];
    assert_eq!(segment.constants, [ConstantBinding { id: 7, constant: 0 }]);
    assert_eq!((segment.sets[0].index, segment.dispatch), (0, [1, 2, 3]));
    assert_eq!(vgf.inputs, [Binding { binding: 2, resource: 1 }]);
    assert_eq!((&vgf.constants[0].data[..], vgf.constants[0].sparse_axis), (&[1, 2, 3, 4][..], Some(3)));
}

#[test]
fn older_files_are_read() {
    let vgf = Vgf::parse(&file(4, [modules(), sequence(false, 1), resources(), constants()])).unwrap();
    assert_eq!(vgf.segments[0].constants, [ConstantBinding { id: 0, constant: 0 }]);
    let mut b = Builder::new();
    let raw = b.bytes(&[9, 8], 8);
    let data = b.table().scalar(&s::constant::RESOURCE, 2).link(&s::constant::RAW, raw).finish();
    let all = b.children(&[data]);
    let root = b.table().link(&s::constant_section::DATA, all).finish();
    let old = b.finish(root, ID, false).unwrap();
    let vgf = Vgf::parse(&file(3, [modules(), sequence(false, 1), resources(), old])).unwrap();
    assert_eq!((&vgf.constants[0].data[..], vgf.constants[0].sparse_axis), (&[9, 8][..], None));
    let empty = Vgf::parse(&file(3, Default::default())).unwrap();
    assert!(empty.modules.is_empty() && empty.segments.is_empty());
}

#[test]
fn what_does_not_fit_is_told() {
    let said = |minor, sections| Vgf::parse(&file(minor, sections)).unwrap_err().to_string();
    let parts = || [modules(), sequence(true, 1), resources(), constants()];
    assert!(said(6, parts()).contains("its version is 0.6.0"));
    let kernel = said(5, [modules(), sequence(true, 0), resources(), constants()]);
    assert!(kernel.contains("it is a compute segment, but its module 0 is a graph module"), "{kernel}");
    let none = said(5, [modules(), sequence(true, 1), Vec::new(), constants()]);
    assert!(none.contains("asks for resource 0; there are 0"), "{none}");
    let whole = file(5, parts());
    let cut = Vgf::parse(&whole.slice(..whole.len() - 9)).unwrap_err().to_string();
    assert!(cut.contains("the constants has"), "{cut}");
    let other = Vgf::parse(&Bytes::from_static(b"abcd")).unwrap_err().to_string();
    assert!(other.contains("it begins with 'abcd', not with VGF1"), "{other}");
}

#[test]
fn damage_is_no_panic() {
    let whole = file(5, [modules(), sequence(true, 1), resources(), constants()]).to_vec();
    for at in 0..whole.len() {
        for value in [0, 1, 0x7F, 0xFF] {
            let mut damaged = whole.clone();
            damaged[at] = value;
            let _ = Vgf::parse(&damaged.into());
        }
        let _ = Vgf::parse(&Bytes::copy_from_slice(&whole[..at]));
    }
}
