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
fn archives_go_by_name_or_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npz");
    let array = |value: i32| {
        HostTensor::new(ElementType::SI32, [1].as_slice(), value.to_le_bytes().to_vec()).unwrap()
    };
    let write = |names: [&str; 3]| {
        let values = [1, 2, 3].map(array).into_iter();
        let arrays: Vec<_> = names.map(str::to_owned).into_iter().zip(values).collect();
        npz::write(std::fs::File::create(&path).unwrap(), &arrays).unwrap();
    };
    let all = format!("@{}", path.display());
    write(["arr_0", "arr_1", "arr_2"]);
    assert_eq!(read_texts(&[&all], &["a", "b", "c"]).unwrap(), [1, 2, 3]);
    assert_eq!(read_texts(&["d=i32=9", &all], &["d", "a", "b", "c"]).unwrap(), [9, 1, 2, 3]);
    assert!(error(&[&all], &["a", "b"]).contains("an array 'arr_2' too many; inputs: 'a' i32, 'b' i32"));
    write(["c", "a", "b"]);
    assert_eq!(read_texts(&[&all], &["a", "b", "c"]).unwrap(), [2, 3, 1]);
    // A name that no input has is a slip of the pen, not the next input's.
    write(["a", "zz", "c"]);
    let text = error(&[&all], &["a", "b", "c"]);
    assert!(
        text.contains("has an array 'zz', and there is no input of this name; inputs: 'a' i32"),
        "{text}"
    );
    write(["a", "c", "s*[0]"]);
    assert!(error(&[&all], &["a", "b", "c", "s*"]).contains("no input is given for 'b' i32"));
    write(["arr_0", "b", "arr_1"]);
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
fn tensors_of_lists_are_named() {
    let of = |texts: &[&str]| {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        read(&texts, &ports(&["s*", "x"]), What { one: "input", pictures: None })
    };
    let values = of(&["s*[1]=i32=2", "x=i32=3", "s*[0]=i32=1"]).unwrap();
    let Some(HostValue::List(list)) = &values[0] else { panic!("{values:?}") };
    let number = |value: &HostValue| match value {
        HostValue::Tensor(tensor) => tensor.element_text(0),
        other => panic!("{other:?}"),
    };
    assert_eq!(list.iter().map(number).collect::<Vec<_>>(), ["1", "2"]);
    assert_eq!(of(&["s*=[]", "x=i32=3"]).unwrap()[0], Some(HostValue::List(Vec::new())));
    let error = |texts: &[&str]| of(texts).unwrap_err().to_string();
    assert!(error(&["i32=1"]).contains("'s*' is a list: give its tensors by their names"));
    assert!(error(&["s*=i32=1", "x=i32=1"]).contains("'s*' is a list"));
    assert!(error(&["s*[1]=i32=1", "x=i32=1"]).contains("no input is given for 's*[0]'"));
    assert!(error(&["s*[0]=i32=1", "s*[0]=i32=1", "x=i32=1"]).contains("given twice"));
    assert!(error(&["s*[0]=i32=1", "s*=[]", "x=i32=1"]).contains("given twice"));
    assert!(error(&["x=i32=1"]).contains("no input is given for 's*'"));
}

#[test]
fn numbers_have_the_type_of_their_input() {
    let scalar = Port::for_test("a", ArgumentKind::Reference, ElementType::F32, Some(Vec::new()));
    let list = Port::for_test("v", ArgumentKind::Reference, ElementType::F32, Some(vec![Some(2)]));
    let of = |text: &str, port: &Port| {
        let what = What { one: "input", pictures: None };
        read(&[text.to_owned()], std::slice::from_ref(port), what).map(|values| format!("{values:?}"))
    };
    for text in ["2.5", "a=2.5", "a=f32=2.5", "f32=2.5"] {
        assert_eq!(of(text, &scalar).unwrap(), of("a=xf32=2.5", &scalar).unwrap(), "{text}");
    }
    assert!(of("-3", &scalar).is_ok() && of("2.5", &list).is_err() && of("a=two", &scalar).is_err());
}

#[test]
fn files_with_more_than_is_read_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("raw.bin");
    std::fs::write(&path, [1, 0, 0, 0, 2, 0, 0, 0]).unwrap();
    let [first, next] = ["@", "+"].map(|sign| format!("1xi32={sign}{}", path.display()));
    assert!(error(&[&first], &["a"]).contains("holds 8 bytes, and 4 were read"));
    assert!(error(&[&format!("a={first}")], &["a"]).contains("holds 8 bytes, and 4 were read"));
    assert_eq!(read_texts(&[&first, &next], &["a", "b"]).unwrap(), [1, 2]);
    assert_eq!(read_texts(&[&format!("a={first}"), &format!("b={next}")], &["a", "b"]).unwrap(), [1, 2]);
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
