//! Tests of pictures as inputs.

use std::path::PathBuf;

use clap::Parser;

use super::*;
use crate::engine::ArgumentKind;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    flags: PictureFlags,
}

fn flags(args: &[&str]) -> PictureFlags {
    Line::try_parse_from(std::iter::once(&"t").chain(args))
        .map(|line| line.flags)
        .unwrap_or_else(|e| panic!("{e}"))
}

fn port(element: ElementType, dims: &[u64]) -> Port {
    let dims = dims.iter().map(|dim| (*dim > 0).then_some(*dim)).collect();
    Port::for_test("x", ArgumentKind::Reference, element, Some(dims))
}

/// Four by two pixels: red, green, blue, white above; black below.
fn picture(folder: &Path) -> PathBuf {
    let mut rgb = image::RgbImage::new(4, 2);
    for (x, colour) in [[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255]].into_iter().enumerate() {
        rgb.put_pixel(x as u32, 0, image::Rgb(colour));
    }
    let path = folder.join("p.png");
    rgb.save(&path).unwrap();
    path
}

fn floats(tensor: &HostTensor) -> Vec<f32> {
    tensor.data.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

#[test]
fn layouts_come_out_of_shapes() {
    let folder = tempfile::tempdir().unwrap();
    let path = picture(folder.path());
    let raw = flags(&["--image-norm=raw"]);
    let of = |dims: &[u64]| {
        let tensor = read(&path, &port(ElementType::F32, dims), &raw).unwrap();
        (tensor.shape.to_vec(), floats(&tensor))
    };
    let (shape, first) = of(&[1, 3, 2, 4]);
    assert_eq!(shape, [1, 3, 2, 4]);
    assert_eq!(first[..4], [255.0, 0.0, 0.0, 255.0]);
    assert_eq!(first[8..12], [0.0, 255.0, 0.0, 255.0]);
    let (shape, last) = of(&[0, 0, 0, 3]);
    assert_eq!(shape, [1, 2, 4, 3]);
    assert_eq!(last[..6], [255.0, 0.0, 0.0, 0.0, 255.0, 0.0]);
    assert_eq!(of(&[3, 0, 0]).0, [3, 2, 4]);
    assert_eq!(of(&[0, 0, 0, 0]).0, [1, 3, 2, 4]);
    let (shape, grey) = of(&[2, 4]);
    assert_eq!((shape, grey[3], grey[4]), (vec![2, 4], 255.0, 0.0));
    assert_eq!(of(&[1, 2, 4, 1]).0, [1, 2, 4, 1]);
    let tensor = read(&path, &port(ElementType::UI8, &[1, 2, 4, 4]), &flags(&[])).unwrap();
    assert_eq!(tensor.data[..8], [255, 0, 0, 255, 0, 255, 0, 255]);
}

#[test]
fn colours_are_normalized() {
    let folder = tempfile::tempdir().unwrap();
    let path = picture(folder.path());
    let first = |args: &[&str], channels: u64| {
        let tensor = read(&path, &port(ElementType::F32, &[1, 2, 4, channels]), &flags(args)).unwrap();
        floats(&tensor)[..channels as usize].to_vec()
    };
    let near =
        |a: Vec<f32>, b: &[f32]| assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5), "{a:?} {b:?}");
    let imagenet = [(1.0 - 0.485) / 0.229, -0.456 / 0.224, -0.406 / 0.225];
    near(first(&[], 3), &imagenet);
    near(first(&["--image-order=bgr"], 3), &[imagenet[2], imagenet[1], imagenet[0]]);
    near(first(&[], 4), &[1.0, 0.0, 0.0, 1.0]);
    near(first(&["--image-norm=minus1to1"], 3), &[1.0, -1.0, -1.0]);
    near(first(&["--image-mean=0.5", "--image-std=0.25,0.5,1"], 3), &[2.0, -1.0, -0.5]);
    let bf16 = read(&path, &port(ElementType::BF16, &[2, 4, 3]), &flags(&["--image-norm=none"])).unwrap();
    assert_eq!(bf16.data[..4], [0x80, 0x3f, 0, 0]);
}

#[test]
fn sizes_fit() {
    let folder = tempfile::tempdir().unwrap();
    let path = picture(folder.path());
    let raw = |dims: &[u64], args: &[&str]| {
        let args: Vec<&str> = args.iter().copied().chain(["--image-norm=raw"]).collect();
        read(&path, &port(ElementType::F32, dims), &flags(&args)).map(|t| (t.shape.to_vec(), floats(&t)))
    };
    // The middle of the picture: green and blue.
    let (_, middle) = raw(&[1, 2, 2, 3], &[]).unwrap();
    assert_eq!(middle[..6], [0.0, 255.0, 0.0, 0.0, 0.0, 255.0]);
    let (_, stretched) = raw(&[1, 2, 2, 3], &["--image-fit=stretch"]).unwrap();
    assert!(stretched[0] > 100.0 && stretched[1] > 100.0, "{stretched:?}");
    assert_eq!(raw(&[1, 3, 0, 0], &["--image-size=8x6"]).unwrap().0, [1, 3, 8, 6]);
    assert_eq!(raw(&[1, 3, 2, 2], &["--image-fit=4"]).unwrap().0, [1, 3, 2, 2]);
    for (dims, args, text) in [
        (&[1, 3, 2, 2][..], &["--image-size=4x4"][..], "another height"),
        (&[1, 3, 8, 8], &["--image-fit=2"], "8x8 are needed"),
        (&[2, 3, 8, 8], &[], "several pictures"),
        (&[1, 5, 8, 8], &[], "1, 3 or 4 channels, it has 5"),
        (&[1], &[], "not of the shape of a picture"),
        (&[1, 3, 2, 4], &["--image-mean=1,2"], "2 numbers for 3 channels"),
        (&[1, 3, 2, 4], &["--image-std=0"], "must not be 0"),
    ] {
        let error = raw(dims, args).unwrap_err().to_string();
        assert!(error.contains(text) && error.contains("p.png"), "{error}");
    }
    let error =
        read(&path, &port(ElementType::UI8, &[2, 4, 3]), &flags(&["--image-norm=imagenet"])).unwrap_err();
    assert!(error.to_string().contains("--image-norm=raw"), "{error}");
    let error = read(&path, &port(ElementType::I1, &[2, 4, 3]), &flags(&[])).unwrap_err();
    assert!(error.to_string().contains("none of a picture"), "{error}");
}

#[test]
fn what_is_no_picture_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let port = port(ElementType::F32, &[1, 3, 4, 4]);
    let error = |name: &str| read(&folder.path().join(name), &port, &flags(&[])).unwrap_err().to_string();
    assert!(error("a.png").contains("cannot read"));
    assert!(error("a.webp").contains(".png and .jpg"));
    std::fs::write(folder.path().join("b.png"), "text").unwrap();
    assert!(error("b.png").contains("reading the picture"));
}

/// The check sum of a part of a PNG file.
fn check_sum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0xEDB8_8320 & (sum & 1).wrapping_neg()))
    })
}

#[test]
fn pictures_of_any_size_in_few_bytes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = picture(folder.path());
    let mut bytes = std::fs::read(&path).unwrap();
    // Width and height stand behind the signature, a length and a name, and a check sum behind the five bytes that follow.
    for (side, wanted) in [(9000u32, "limit"), (30_000, "limit"), (2_000_000_000, "limit"), (4, "")] {
        bytes[16..20].copy_from_slice(&side.to_be_bytes());
        bytes[20..24].copy_from_slice(&side.to_be_bytes());
        let sum = check_sum(&bytes[12..29]).to_be_bytes();
        bytes[29..33].copy_from_slice(&sum);
        std::fs::write(&path, &bytes).unwrap();
        let refused =
            read(&path, &port(ElementType::F32, &[1, 3, 2, 4]), &flags(&[])).unwrap_err().to_string();
        assert!(
            refused.contains("reading the picture") && refused.to_lowercase().contains(wanted),
            "{refused}"
        );
    }
    // One line of pixels that would be cut from a picture of billions.
    image::RgbImage::new(60_000, 1).save(&path).unwrap();
    let refused =
        read(&path, &port(ElementType::F32, &[1, 3, 224, 224]), &flags(&[])).unwrap_err().to_string();
    assert!(refused.contains("before it is cut"), "{refused}");
}

/// The library that decodes JPEGs ends in a panic on this one.
#[test]
fn a_jpeg_that_its_decoder_fails_on_is_refused() {
    let segment =
        |marker: u8, content: &[u8]| [&[0xFF, marker, 0, content.len() as u8 + 2][..], content].concat();
    let table = |class: u8| segment(0xC4, &[&[class, 1][..], &[0; 16]].concat());
    let file = [
        vec![0xFF, 0xD8],
        segment(0xDB, &[&[0][..], &[1; 64]].concat()),
        segment(0xC0, &[8, 0, 14, 10, 56, 3, 1, 0x11, 0, 2, 0x22, 0, 3, 0x11, 0]),
        table(0x00),
        table(0x10),
        segment(0xDA, &[3, 1, 0, 2, 0, 3, 0, 0, 63, 0]),
        vec![0; 2048],
        vec![0xFF, 0xD9],
    ]
    .concat();
    let unpacked = |file: &[u8]| prepared(std::io::Cursor::new(file), file.len() as u64, [8, 8], false);
    let refused = unpacked(&file).unwrap_err().to_string();
    assert!(refused.contains("fewer samples"), "{refused}");
    // Without the unusual samples it is a picture.
    let usual: Vec<u8> = file.iter().map(|byte| if *byte == 0x22 { 0x11 } else { *byte }).collect();
    assert_eq!(unpacked(&usual).unwrap(), 14 * 2616 * 3);
}
