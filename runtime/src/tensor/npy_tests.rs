//! The tests of `npy`.

use super::*;

fn raw(header: &str, data: &[u8]) -> Vec<u8> {
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

#[test]
fn writes_what_the_original_writes() {
    let mut out = Vec::new();
    write(&mut out, &HostTensor::parse("2x3xf32=1").unwrap()).unwrap();
    assert_eq!(&out[..10], b"\x93NUMPY\x01\x00\x76\x00");
    assert!(out[10..].starts_with(b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  "));
    assert_eq!((out[127], out.len()), (b'\n', 128 + 24));
    for (spec, text) in [
        ("i32=7", "'<i4', 'fortran_order': False, 'shape': (), }"),
        ("2xi1=01", "'|b1', "),
        ("2xui8=1", "'shape': (2,), }"),
    ] {
        let mut out = Vec::new();
        write(&mut out, &HostTensor::parse(spec).unwrap()).unwrap();
        assert!(String::from_utf8_lossy(&out[10..128]).contains(text), "{spec}");
    }
    let error = write(&mut Vec::new(), &HostTensor::parse("2xbf16=1").unwrap()).unwrap_err();
    assert!(error.to_string().starts_with("UNIMPLEMENTED; npy files cannot hold"), "{error}");
}

#[test]
fn several_arrays_in_one_stream() {
    let tensors = ["2xi1=01 00", "3xui8=1 2 3", "2x2xf16=1 2 3 4", "f64=5", "1xcf64=0000803f00000040"]
        .map(|s| HostTensor::parse(s).unwrap());
    let mut file = Vec::new();
    tensors.iter().for_each(|t| write(&mut file, t).unwrap());
    let mut reader = file.as_slice();
    for tensor in &tensors {
        assert_eq!(read(&mut reader).unwrap().as_ref(), Some(tensor));
    }
    assert_eq!(read(&mut reader).unwrap(), None);
}

#[test]
fn fortran_order_and_big_endian_are_converted() {
    let values: Vec<u8> = [0f32, 3., 1., 4., 2., 5.].iter().flat_map(|v| v.to_be_bytes()).collect();
    let file = raw("{'descr': '>f4', 'fortran_order': True, 'shape': (2, 3), }\n", &values);
    let tensor = read(&mut file.as_slice()).unwrap().unwrap();
    assert_eq!(tensor.display(10).to_string(), "2x3xf32=[0 1 2][3 4 5]");
    let file = raw("{'shape':(1,2,2), 'fortran_order':True,\"descr\":'|u1'}", &[1, 3, 2, 4]);
    assert_eq!(
        read(&mut file.as_slice()).unwrap().unwrap().display(10).to_string(),
        "1x2x2xui8=[[1 2][3 4]]"
    );
    let file = raw("{'descr': '<i4', 'fortran_order': True, 'shape': (0, 3), }", &[]);
    assert_eq!(read(&mut file.as_slice()).unwrap().unwrap().shape.as_slice(), [0, 3]);
}

#[test]
fn damage_is_an_error() {
    let good = raw("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", &[0; 8]);
    for length in 1..good.len() {
        assert!(read(&mut &good[..length]).is_err(), "{length}");
    }
    for (header, text) in [
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", "overflows"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }", "cut short"),
        ("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", "arrays of records"),
        ("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", "not supported"),
        ("{'descr': '<f4', 'shape': (2,), }", "no 'fortran_order'"),
        ("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,), }", "neither True nor False"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", "not numbers"),
        ("{", "belongs"),
        ("", "belongs"),
    ] {
        let error = read(&mut raw(header, &[]).as_slice()).unwrap_err().to_string();
        assert!(error.contains(text), "{header}: {error}");
    }
    for i in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[i] ^= 1 << bit;
            let _ = read(&mut bad.as_slice());
        }
    }
}
