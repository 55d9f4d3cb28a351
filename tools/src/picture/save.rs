//! Tensors as pictures: which are, and writing them.

use std::{io::Write, path::Path};

use image::{ExtendedColorType, ImageEncoder, codecs};

use super::{EXTENSIONS, SUPPORTED, is_channels};
use crate::{
    console::{self, Failure, Result},
    engine::{ElementKind, HostTensor, element_to_f64},
    inputs::has_extension,
};

/// How far floats may leave 0 to 1 before they count as no colours: networks overshoot.
const OVERSHOOT: f64 = 0.1;
/// One of so many elements may.
const MOST_OUTSIDE: u64 = 100;
/// Of a JPEG file, from 1 to 100.
const QUALITY: u8 = 95;

/// Whether a result that goes to this file is a picture; refused if it is one of a format that is not written, so that no
/// raw numbers end up under its name.
pub(crate) fn check_output(path: &Path) -> Result<bool> {
    if !has_extension(path, EXTENSIONS) {
        return Ok(false);
    }
    if !has_extension(path, SUPPORTED) {
        let text =
            format!("'{}': pictures are written as .png and .jpg, arrays as .npy and .npz", path.display());
        return Err(Failure::Usage(text));
    }
    Ok(true)
}

/// Where the pixels of a tensor are.
struct Picture {
    height: u64,
    width: u64,
    channels: u64,
    channels_first: bool,
}

/// Writes a tensor as a picture. What was assumed is logged.
pub(crate) fn write(out: &mut impl Write, path: &Path, tensor: &HostTensor) -> Result<()> {
    let is_jpeg = !has_extension(path, &["png"]);
    let refuse = |why: String| {
        Failure::invalid(format!(
            "a result {} is not written to '{}': {why}; .npy takes every tensor",
            tensor.metadata(),
            path.display()
        ))
    };
    let picture = shape(&tensor.shape).map_err(refuse)?;
    let (pixels, assumed) = colours(tensor, &picture).map_err(refuse)?;
    let colour = match (picture.channels, is_jpeg) {
        (1, _) => ExtendedColorType::L8,
        (3, _) => ExtendedColorType::Rgb8,
        (_, false) => ExtendedColorType::Rgba8,
        (_, true) => return Err(refuse("JPEG has no fourth channel, PNG has".into())),
    };
    let side = |length: u64| u32::try_from(length).map_err(|_| refuse("a side is too long".into()));
    let (width, height) = (side(picture.width)?, side(picture.height)?);
    let written = if is_jpeg {
        codecs::jpeg::JpegEncoder::new_with_quality(&mut *out, QUALITY)
            .write_image(&pixels, width, height, colour)
    } else {
        codecs::png::PngEncoder::new(&mut *out).write_image(&pixels, width, height, colour)
    };
    written.map_err(|e| refuse(e.to_string()))?;
    console::remark(format_args!(
        "'{}': {height}x{width}, {} channels, {assumed}",
        path.display(),
        picture.channels
    ));
    Ok(())
}

/// HxW, HxWxC, CxHxW, or one of the last two behind a batch of one.
fn shape(dims: &[u64]) -> Result<Picture, String> {
    let inner = match dims {
        [1, inner @ ..] if inner.len() == 3 => inner,
        [_, rest @ ..] if rest.len() == 3 => return Err("it is a batch of several".into()),
        other => other,
    };
    let picture = match *inner {
        [height, width] => Picture { height, width, channels: 1, channels_first: true },
        // Behind a batch of one networks have channels first more often than last.
        [channels, height, width] if is_channels(channels) && (dims.len() == 4 || !is_channels(width)) => {
            Picture { height, width, channels, channels_first: true }
        }
        [height, width, channels] if is_channels(channels) => {
            Picture { height, width, channels, channels_first: false }
        }
        _ => return Err("its shape is none of HxW, HxWxC, CxHxW, 1xCxHxW with 1, 3 or 4 channels".into()),
    };
    if picture.height == 0 || picture.width == 0 {
        return Err("it is empty".into());
    }
    Ok(picture)
}

/// Bytes of the pixels, channels last, and what the elements were taken for.
fn colours(tensor: &HostTensor, picture: &Picture) -> Result<(Vec<u8>, String), String> {
    use ElementKind::{BFloat, Bool, Float, Int, UInt};
    let (kind, bits) = (tensor.element_type.kind(), tensor.element_type.bit_count());
    let count = tensor.element_count();
    let element = |index: u64| element_to_f64(tensor.element_type, &tensor.data, index).unwrap_or(f64::NAN);
    let (scale, assumed) = match (kind, bits) {
        (Some(Float | BFloat), 16..) => (255.0, "floats of 0 to 1"),
        (Some(UInt | Int), 8) => (1.0, "bytes"),
        (Some(Bool), _) => (255.0, "true is white"),
        _ => {
            return Err(format!(
                "elements of type {} are no colours: f32 of 0 to 1 and u8 are",
                tensor.element_type
            ));
        }
    };
    // Bytes without a sign of their own may be read as signed.
    let value = |index: u64| match (kind, bits) {
        (Some(UInt | Int), 8) => f64::from(tensor.data[index as usize]),
        _ => element(index) * scale,
    };
    let (low, high) =
        (0..count).map(value).fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
    let allowed = -OVERSHOOT * 255.0..=(1.0 + OVERSHOOT) * 255.0;
    let outside = (0..count).filter(|index| !allowed.contains(&value(*index))).count() as u64;
    if (0..count).any(|index| value(index).is_nan()) {
        return Err("some elements are not a number".into());
    }
    if outside > count / MOST_OUTSIDE {
        let (low, high) = (low / 255.0, high / 255.0);
        return Err(format!("its elements go from {low:.4} to {high:.4}, colours from 0 to 1"));
    }
    let (channels, plane) = (picture.channels, picture.height * picture.width);
    let place = |at: u64, channel: u64| {
        if picture.channels_first { channel * plane + at } else { at * channels + channel }
    };
    let byte = |(at, channel)| value(place(at, channel)).round().clamp(0.0, 255.0) as u8;
    let pixels =
        (0..plane).flat_map(|at| (0..channels).map(move |channel| (at, channel))).map(byte).collect();
    Ok((pixels, assumed.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ElementType;

    fn floats(shape: &[u64], values: &[f32]) -> HostTensor {
        HostTensor::new(ElementType::F32, shape, values.iter().flat_map(|v| v.to_le_bytes()).collect())
            .unwrap()
    }

    fn back(name: &str, tensor: &HostTensor) -> Result<(u32, u32, Vec<u8>)> {
        let mut bytes = Vec::new();
        write(&mut bytes, Path::new(name), tensor)?;
        let picture = image::load_from_memory(&bytes).unwrap();
        Ok((picture.height(), picture.width(), picture.to_rgb8().into_raw()))
    }

    #[test]
    fn tensors_of_picture_shapes_are_pictures() {
        let red_green = [255, 0, 0, 0, 255, 0];
        let planes = floats(&[1, 3, 1, 2], &[1.0, 0.0, 0.0, 1.02, -0.03, 0.0]);
        assert_eq!(back("a.png", &planes).unwrap(), (1, 2, red_green.to_vec()));
        let pixels = HostTensor::new(ElementType::UI8, [1, 2, 3].as_slice(), red_green.to_vec()).unwrap();
        assert_eq!(back("a.PNG", &pixels).unwrap(), (1, 2, red_green.to_vec()));
        let grey = floats(&[2, 1], &[0.0, 1.0]);
        assert_eq!(back("a.png", &grey).unwrap(), (2, 1, vec![0, 0, 0, 255, 255, 255]));
        let flat = floats(&[8, 8, 3], &[0.5; 192]);
        let (height, width, pixels) = back("a.jpg", &flat).unwrap();
        assert!((height, width) == (8, 8) && pixels.iter().all(|v| v.abs_diff(128) < 3), "{pixels:?}");
    }

    #[test]
    fn other_tensors_are_refused_with_the_reason() {
        let error = |name: &str, tensor: HostTensor| back(name, &tensor).unwrap_err().to_string();
        assert!(error("a.png", floats(&[1, 10], &[5.0; 10])).contains("from 5.0000 to 5.0000"));
        assert!(error("a.png", floats(&[10], &[0.5; 10])).contains("its shape is none of"));
        assert!(error("a.png", floats(&[2, 3, 1, 1], &[0.5; 6])).contains("batch of several"));
        assert!(error("a.png", floats(&[1, 2], &[f32::NAN, 0.0])).contains("not a number"));
        assert!(error("a.jpg", floats(&[2, 1, 4], &[0.5; 8])).contains("no fourth channel"));
        assert!(error("a.png", floats(&[0, 4], &[])).contains("empty"));
        let whole = HostTensor::zeros(ElementType::I64, [2, 2].as_slice()).unwrap();
        assert!(error("a.png", whole).contains("no colours"));
        assert!(check_output(Path::new("a.webp")).is_err());
        assert!(check_output(Path::new("a.jpeg")).unwrap() && !check_output(Path::new("a.bin")).unwrap());
    }
}
