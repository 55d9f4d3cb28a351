//! The tests of text and input against records of the original tool.

use std::io::Write as _;

use super::*;

const ORIGINAL: &str = include_str!("testdata/original.tsv");

/// Texts where we differ from the original on purpose.
const DIFFERENT: &[(&str, &str)] = &[
    ("i32=4294967296", "out of range is an error, not a silent cut"),
    ("i32=-4294967296", "out of range is an error, not a silent cut"),
    ("i32=+5", "a sign, not a file named 5"),
    ("i32=1.5", "text after a number is an error, not ignored"),
    ("i32=1e3", "text after a number is an error, not ignored"),
    ("f32=1.5f", "text after a number is an error, not ignored"),
    ("4xf32=1;2;3;4", "text after a number is an error, not ignored"),
    ("4xi32=1x", "text after a number is an error, not ignored"),
    ("2xf32=0b1 1", "text after a number is an error, not ignored"),
    ("1,2xf32=1", "text after a dimension is an error, not ignored"),
    ("2xx32=01020304 05060708", "x32 is the other spelling of *32"),
    ("*8=ff", "an opaque scalar, not a file pattern"),
    ("3xi1=1", "a truth value, not half of a byte's digits"),
    ("2xi4=0f 01", "narrow types are packed"),
    ("2xi2=01 02", "narrow types are packed"),
    ("3xi4=01", "narrow types are packed"),
    ("2x1xi4=01 02", "narrow types are packed"),
    ("2x2xi4=01 02", "narrow types are packed; this has too few elements"),
    ("2xf7=01", "no dense layout is defined for a width of 7 bits"),
    ("6xf16=65519 65520 2.98e-8 3e-8 6e-8 6.1e-5", "denormals are rounded to nearest, not down"),
    ("6xf8E5M2=61439 61440 61441 65536 1e-5 7.6e-6", "denormals are rounded to nearest, not to zero"),
    ("6xf8E4M3FNUZ=247 248 249 0.0004 0.00049 0.0015", "denormals are rounded to nearest"),
    ("f16=-nan", "the sign of a NaN is kept"),
    (
        "3xf64=2.963215e-248 -1.94530677144574e+133 -1.1573814869141677e+85",
        "doubles are read to the last bit",
    ),
    (
        "5xf64=1.12132609893e-69 4.18087918678e-76 -1.170576350588e+189 2e+133 -9.975045e-214",
        "doubles are read to the last bit",
    ),
    ("6xf8E4M3FN=0.001 0.0009765625 0.0009 0.00293 1.0625 1.1875", "denormals are rounded to nearest"),
];

#[test]
fn texts_are_read_and_printed_as_the_original_does() {
    let (mut same, mut failures) = (0, Vec::new());
    for line in ORIGINAL.lines() {
        let (spec, expected) = line.split_once('\t').expect("two columns");
        if DIFFERENT.iter().any(|(s, _)| *s == spec) {
            continue;
        }
        let mut reader = InputReader::new();
        let result = reader.read_all(&[spec], &[ArgumentKind::Reference]);
        let actual = match result.as_deref() {
            Ok([HostValue::Tensor(tensor)]) => tensor.display(1024).to_string(),
            Ok(other) => format!("{other:?}"),
            Err(status) => format!("!{}", status.code()),
        };
        if actual == expected {
            same += 1;
        } else {
            failures.push(format!("{spec}: {actual} instead of {expected}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(same > 300, "only {same} cases");
}

fn read(text: &str, kind: ArgumentKind) -> Result<HostValue> {
    let mut values = InputReader::new().read_all(&[text], &[kind])?;
    assert_eq!(values.len(), 1);
    Ok(values.remove(0))
}

#[test]
fn deviations_do_what_they_say() {
    let shown = |text: &str| match read(text, ArgumentKind::Reference).unwrap() {
        HostValue::Tensor(t) => t.display(99).to_string(),
        other => format!("{other:?}"),
    };
    assert_eq!(shown("i32=+5"), "i32=5");
    assert_eq!(shown("2xx32=01020304 05060708"), "2x*32=01020304 05060708");
    assert_eq!(shown("*8=ff"), "*8=FF");
    assert_eq!(shown("4xi1=true 0 01 false"), "4xi1=01 00 01 00");
    assert_eq!(shown("2xbool=1"), "2xi1=01 01");
    assert_eq!(shown("3xi4=0f 01 02"), "3xi4=0F 01 02");
    assert_eq!(shown("5xi2=03"), "5xi2=03 03 03 03 03");
    for (text, code) in [
        ("i32=1.5", "INVALID_ARGUMENT; element 0 '1.5' is not a number of type i32"),
        ("2xi4=01 1f", "INVALID_ARGUMENT; element 1 '1f'"),
        ("2xi1=yes no", "INVALID_ARGUMENT; binary hex element count mismatch"),
        ("2xf7=01", "UNIMPLEMENTED; elements of type f7 have no text form"),
        ("18446744073709551615xi8", "OUT_OF_RANGE; size of tensor"),
        ("1152921504606846976xi8=1", "RESOURCE_EXHAUSTED; no host memory"),
    ] {
        let error = read(text, ArgumentKind::Reference).unwrap_err().to_string();
        assert!(error.starts_with(code), "{text}: {error}");
    }
}

#[test]
fn scalars() {
    use ArgumentKind::{F32, F64, I32, I64, Reference};
    for (text, kind, value) in [
        (" 5 ", I32, HostValue::I32(5)),
        ("0x1F", I32, HostValue::I32(31)),
        ("4294967295", I32, HostValue::I32(-1)),
        ("-5", I64, HostValue::I64(-5)),
        ("0.1", F32, HostValue::F32(0.1)),
        ("1e40", F32, HostValue::F32(f32::INFINITY)),
        ("1e-7", F64, HostValue::F64(1e-7)),
        ("+3", F64, HostValue::F64(3.0)),
        ("(null)", I32, HostValue::Ignored(I32)),
        ("(ignored)", Reference, HostValue::Null),
    ] {
        assert_eq!(read(text, kind).unwrap(), value, "{text}");
    }
    for (text, kind, message) in [
        ("i32=7", I32, "parsing value `i32=7` as i32"),
        ("18446744073709551615", I64, "as i64"),
        ("1.5", I32, "as i32"),
        ("f32=3", F32, "as f32"),
        ("", I32, "no value specified for input"),
        ("5", Reference, "invalid tensor specification"),
    ] {
        let error = read(text, kind).unwrap_err().to_string();
        assert!(error.contains(message) && error.contains("parsing input `"), "{text}: {error}");
    }
    let error = InputReader::new().read_all(&["1", "2"], &[I32]).unwrap_err().to_string();
    assert_eq!(error, "INVALID_ARGUMENT; function expected fewer input values; parsing input `2`");
}

#[test]
fn files() {
    use ArgumentKind::{I32, Reference};
    let dir = std::env::temp_dir().join(format!("halite-tensor-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("two.npy");
    let mut file = std::fs::File::create(&path).unwrap();
    npy::write(&mut file, &HostTensor::parse("2xi1=01").unwrap()).unwrap();
    npy::write(&mut file, &HostTensor::parse("i32=7").unwrap()).unwrap();
    let raw = dir.join("raw.bin");
    std::fs::File::create(&raw).unwrap().write_all(&[1, 0, 0, 0, 2, 0, 0, 0]).unwrap();
    let (path, raw) = (path.display(), raw.display());
    let texts = |texts: &[String], kinds: &[ArgumentKind]| {
        let values = InputReader::new().read_all(texts, kinds)?;
        let shown = values.iter().map(|v| match v {
            HostValue::Tensor(t) => t.display(9).to_string(),
            HostValue::Buffer(t) => format!("&{}", t.display(9)),
            other => format!("{other:?}"),
        });
        Ok::<_, Status>(shown.collect::<Vec<_>>().join("; "))
    };
    let all = [format!("*{path}")];
    assert_eq!(texts(&all, &[Reference; 2]).unwrap(), "2xi1=01 01; si32=7");
    assert_eq!(texts(&all, &[Reference, I32]).unwrap(), "2xi1=01 01; I32(7)");
    assert!(
        texts(&all, &[Reference]).unwrap_err().to_string().contains("function expected fewer input values")
    );
    let step = [format!("@{path}"), format!("+{path}"), format!("@{path}")];
    assert_eq!(texts(&step, &[Reference; 3]).unwrap(), "2xi1=01 01; si32=7; 2xi1=01 01");
    let past = [format!("*{path}"), format!("+{path}")];
    assert!(texts(&past, &[Reference; 3]).unwrap_err().to_string().contains("has no further array"));
    let bytes = [format!("1xi32=@{raw}"), format!("&1xi32=+{raw}")];
    assert_eq!(texts(&bytes, &[Reference; 2]).unwrap(), "1xi32=1; &1xi32=2");
    let short = [format!("3xi32=@{raw}")];
    assert!(texts(&short, &[Reference]).unwrap_err().to_string().contains("holds 8 bytes of the 12"));
    let missing = ["@no/such.npy".to_owned()];
    assert!(
        texts(&missing, &[Reference]).unwrap_err().to_string().starts_with("NOT_FOUND; unable to open file")
    );
    let typeless = [format!("@{raw}")];
    let error = texts(&typeless, &[Reference]).unwrap_err().to_string();
    assert!(error.contains("write them too: 'SHAPExTYPE=@"), "{error}");
    let missing = ["@no/such".to_owned()];
    assert!(texts(&missing, &[Reference]).unwrap_err().to_string().starts_with("NOT_FOUND"));
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn files_that_are_no_raw_bytes_or_too_many_are_refused() {
    use ArgumentKind::Reference;
    let dir = std::env::temp_dir().join(format!("halite-raw-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = dir.join(name);
        std::fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    let mut array = Vec::new();
    npy::write(&mut array, &HostTensor::parse("6xf32=1").unwrap()).unwrap();
    let path = write("array.npy", &array);
    let picture = write("picture.bin", b"\x89PNG\r\n\x1a\n0000");
    let raw = write("raw.bin", &[1, 0, 0, 0, 2, 0, 0, 0]);
    let mut reader = InputReader::new();
    let mut refused = |text: String| reader.read_all(&[text], &[Reference]).unwrap_err().to_string();
    assert!(refused(format!("6xf32=@{path}")).contains("is a numpy file"));
    assert!(refused(format!("3xf32=@{picture}")).contains("is a picture"));
    assert!(refused(format!("1xi32=@{}", dir.display())).contains("is a folder"));
    // More than what is read has another shape, unless a later value reads on.
    reader.read_all(&[&format!("1xi32=@{raw}")], &[Reference]).unwrap();
    let error = reader.finish().unwrap_err().to_string();
    assert!(error.contains("holds 8 bytes, and 4 were read, the last for 1xi32"), "{error}");
    reader.read_all(&[&format!("1xi32=+{raw}")], &[Reference]).unwrap();
    reader.finish().unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
}
