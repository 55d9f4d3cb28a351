//! Tests of what goes where.

use super::*;
use crate::engine::ElementType;

fn port(name: &str) -> Port {
    Port::for_test(name, ArgumentKind::Reference, ElementType::I32, None)
}

fn ports(names: &[&str]) -> Vec<Port> {
    names.iter().map(|name| port(name)).collect()
}

/// The first element of each value; -1 for none.
fn read_texts(texts: &[&str], names: &[&str]) -> Result<Vec<i64>> {
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    let values = read(&texts, &ports(names), What { one: "input", pictures: None })?;
    let first = |value: Option<HostValue>| match value {
        Some(HostValue::Tensor(tensor)) => tensor.element_text(0).parse().unwrap(),
        Some(HostValue::Null) => 0,
        None => -1,
        other => panic!("{other:?}"),
    };
    Ok(values.into_iter().map(first).collect())
}

fn error(texts: &[&str], names: &[&str]) -> String {
    read_texts(texts, names).unwrap_err().to_string()
}

#[test]
fn names_and_order_mix() {
    assert_eq!(read_texts(&["i32=1", "i32=2"], &["a", "b"]).unwrap(), [1, 2]);
    assert_eq!(read_texts(&["b=i32=2", "a=i32=1"], &["a", "b"]).unwrap(), [1, 2]);
    assert_eq!(read_texts(&["i32=3", "a=i32=1", "i32=2"], &["a", "b", "c"]).unwrap(), [1, 3, 2]);
    // Fewer values in order are for others to judge, as ever.
    assert_eq!(read_texts(&["i32=1"], &["a", "b"]).unwrap(), [1]);
    assert_eq!(read_texts(&["a=i32=1", "c=i32=3"], &["a", "b?", "c"]).unwrap(), [1, -1, 3]);
    assert_eq!(read_texts(&["a=(null)", "i32=1"], &["a", "b"]).unwrap(), [0, 1]);
}

#[test]
fn the_language_of_values_is_what_it_was() {
    assert_eq!(read_texts(&["2x2xi32=1 2 3 4"], &["a"]).unwrap(), [1]);
    assert_eq!(read_texts(&["x=i32=5"], &["x"]).unwrap(), [5]);
    // A name that looks like a type is a name; so is one with an equals sign.
    assert_eq!(read_texts(&["i32=i32=5"], &["i32"]).unwrap(), [5]);
    assert_eq!(read_texts(&["a=b=i32=5", "a=i32=4"], &["a", "a=b"]).unwrap(), [4, 5]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a=b.npy");
    let array = HostTensor::new(ElementType::SI32, [1].as_slice(), 7i32.to_le_bytes().to_vec()).unwrap();
    crate::engine::npy::write(&mut std::fs::File::create(&path).unwrap(), &array).unwrap();
    assert_eq!(read_texts(&[&format!("@{}", path.display())], &["a"]).unwrap(), [7]);
    assert_eq!(read_texts(&[&format!("a=@{}", path.display())], &["a"]).unwrap(), [7]);
}

#[test]
fn archives_go_by_name_then_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npz");
    let array = |value: i32| {
        HostTensor::new(ElementType::SI32, [1].as_slice(), value.to_le_bytes().to_vec()).unwrap()
    };
    let arrays = [("arr_0", 1), ("b", 2), ("arr_1", 3)].map(|(name, value)| (name.to_owned(), array(value)));
    npz::write(std::fs::File::create(&path).unwrap(), &arrays).unwrap();
    let all = format!("@{}", path.display());
    assert_eq!(read_texts(&[&all], &["a", "b", "c"]).unwrap(), [1, 2, 3]);
    assert_eq!(read_texts(&["d=i32=9", &all], &["d", "a", "b", "c"]).unwrap(), [9, 1, 2, 3]);
    assert!(error(&[&all], &["a", "b"]).contains("an array 'arr_1' too many; inputs: 'a' i32, 'b' i32"));
    assert_eq!(read_texts(&[&format!("b={all}"), "i32=8"], &["a", "b"]).unwrap(), [8, 2]);
    assert!(error(&[&format!("a={all}")], &["a"]).contains("has no array 'a'; it has: arr_0, b, arr_1"));
}

#[test]
fn mistakes_name_what_there_is() {
    let text = error(&["imgae=i32=1"], &["image", "mask"]);
    assert!(
        text.contains("'imgae' is neither") && text.contains("inputs: 'image' i32, 'mask' i32"),
        "{text}"
    );
    assert!(error(&["x=i32=1"], &[""]).contains("no names: give values in order"));
    assert!(error(&["a=i32=1", "a=i32=2"], &["a"]).contains("'a' is given twice"));
    let text = error(&["b=i32=1"], &["a", "b", "c"]);
    assert!(text.contains("no input is given for 'a' i32, 'c' i32"), "{text}");
    assert!(error(&["a=@x.png"], &["a"]).contains("a picture is no input"));
    assert!(error(&["i32=1", "i32=2"], &["a"]).contains("expected fewer input values"));
    assert!(error(&["a=q32=1"], &["a"]).contains("parsing input `a=q32=1`"));
}

#[test]
fn texts_that_need_to_know_the_function() {
    let needs = |text: &str| needs_ports(&[text.to_owned()]);
    for text in ["ids=i64=1", "x:0=i64=1", "@x.npz", "@cat.PNG", "@cat.jpeg"] {
        assert!(needs(text), "{text}");
    }
    for text in
        ["2x2xf32=1", "f32=1", "@a=b.npy", "+x.npy", "&2xf32=1", "*16=00", "xf32=2", "1", "(null)", "x32=ff"]
    {
        assert!(!needs(text), "{text}");
    }
}
