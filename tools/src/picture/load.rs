//! Pictures as tensors: reading, fitting to the input, normalization.

use std::{
    borrow::Cow,
    fs::File,
    io::{BufRead, BufReader, Seek},
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

use half::{bf16, f16};
use image::{DynamicImage, ImageDecoder, ImageReader, Limits, imageops::FilterType};

use super::{Fit, Layout, Norm, Order, PictureFlags, SUPPORTED, Size, frame::first_is_coarser, is_channels};
use crate::{
    console::{self, Failure, Result},
    engine::{ElementKind, ElementType, HostTensor},
    inputs::has_extension,
    ports::Port,
};

/// Mean and deviation of the colours of ImageNet, of 0 to 1.
const IMAGENET: ([f64; 3], [f64; 3]) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);

/// Bytes that a picture may have when it is unpacked: 170 million pixels of three colours.
const MOST_BYTES: u64 = 512 << 20;
/// Those that a picture of any few bytes may have: 44 million pixels.
const FEW_BYTES: u64 = 128 << 20;
/// And as many more for each byte of its own. Photographs have some 10 for a byte, drawings up to a thousand.
const EACH_BYTE: u64 = 64;

/// Those that any picture may have when it is scaled, before it is cut: four million pixels, which take as long as reading ten times as many.
const SCALED_BYTES: u64 = 16 << 20;
/// And those of rows that are scaled already: of a picture that is 30,000 wide, for 224 of them.
const ROWS_BYTES: u64 = 128 << 20;

/// What the input wants.
#[derive(Clone, Debug, PartialEq)]
struct Frame {
    element: ElementType,
    /// Dimensions before the picture's own: none, or a batch of one.
    batch: usize,
    channels: u64,
    channels_first: bool,
    /// Whether there is a dimension for channels.
    has_channels: bool,
    height: Option<u64>,
    width: Option<u64>,
}

/// A picture as the tensor that an input takes. What was assumed is logged.
pub(crate) fn read(path: &Path, port: &Port, flags: &PictureFlags) -> Result<HostTensor> {
    let wrong = |why: String| Failure::invalid(format!("'{}' for input {port}: {why}", path.display()));
    let frame = frame(port, flags).map_err(wrong)?;
    let picture = open(path)?;
    let (own_height, own_width) = (picture.height(), picture.width());
    let size = target(&frame, flags, &picture).map_err(wrong)?;
    let fitted = fit(&picture, size, flags.fit).map_err(wrong)?;
    let (tensor, norm) = tensor(&fitted, &frame, flags).map_err(wrong)?;
    console::remark(format_args!(
        "input {port}: '{}' of {own_height}x{own_width} as {}x{} {}, {}{}, {norm}",
        path.display(),
        size.height,
        size.width,
        match flags.fit {
            _ if (own_height, own_width) == (size.height, size.width) => "as it is",
            Fit::Stretch => "stretched",
            _ => "cut from the middle",
        },
        if frame.channels == 1 { "grey" } else { if flags.order == Order::Bgr { "BGR" } else { "RGB" } },
        match (frame.has_channels, frame.channels_first) {
            (false, _) => "",
            (_, true) => ", channels first",
            (_, false) => ", channels last",
        },
    ));
    Ok(tensor)
}

/// Reads a file, turned as the camera says.
fn open(path: &Path) -> Result<DynamicImage> {
    if !has_extension(path, SUPPORTED) {
        let text = format!("'{}': pictures are read from .png and .jpg files", path.display());
        return Err(Failure::invalid(text));
    }
    let file = File::open(path).map_err(|e| Failure::file("cannot read", path, &e))?;
    let length = file.metadata().map_err(|e| Failure::file("cannot read", path, &e))?.len();
    decode(BufReader::new(file), length).map_err(|e: image::ImageError| {
        Failure::invalid(format!("reading the picture '{}': {e}", path.display()))
    })
}

/// Bytes that a picture in so many may have when it is unpacked.
fn most_bytes(length: u64) -> u64 {
    FEW_BYTES.saturating_add(length.saturating_mul(EACH_BYTE)).min(MOST_BYTES)
}

/// A picture in a file of so many bytes.
fn decode(mut file: impl BufRead + Seek, length: u64) -> image::ImageResult<DynamicImage> {
    let refused = |problem: &str| image::ImageError::IoError(std::io::Error::other(problem));
    if first_is_coarser(&mut file)? {
        return Err(refused("its first colour has fewer samples than another; this is not read"));
    }
    // Decoders are the code of others, who did not think of every file.
    catch_unwind(AssertUnwindSafe(|| decode_unguarded(file, length)))
        .unwrap_or_else(|_| Err(refused("the decoder failed on it")))
}

fn decode_unguarded(file: impl BufRead + Seek, length: u64) -> image::ImageResult<DynamicImage> {
    // By its content: names are wrong at times.
    let mut reader = ImageReader::new(file).with_guessed_format()?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(most_bytes(length));
    reader.limits(limits.clone());
    let mut decoder = reader.into_decoder()?;
    // The reader's limits are for what decoding takes beside the picture: a few bytes may say that it is of any size.
    // Of one colour it costs as much to scale as of three.
    let (width, height) = decoder.dimensions();
    let as_colours = u64::from(width).saturating_mul(height.into()).saturating_mul(3);
    limits.reserve(decoder.total_bytes().max(as_colours))?;
    let orientation = decoder.orientation()?;
    let mut picture = DynamicImage::from_decoder(decoder)?;
    picture.apply_orientation(orientation);
    Ok(picture)
}

/// Reads the picture of a file of so many bytes, and brings it to this height and width, as for an input: stretched, or cut. Gives the bytes
/// that it has unpacked.
///
/// # Errors
/// It is damaged, of no format that is read, or too large.
pub fn prepared(
    file: impl BufRead + Seek,
    length: u64,
    [height, width]: [u32; 2],
    is_stretched: bool,
) -> Result<usize> {
    let failed = |e: &dyn std::fmt::Display| Failure::invalid(format!("reading a picture: {e}"));
    let picture = decode(file, length).map_err(|e| failed(&e))?;
    let way = if is_stretched { Fit::Stretch } else { Fit::Crop };
    fit(&picture, Size { height, width }, way).map_err(|e| failed(&e))?;
    Ok(picture.as_bytes().len())
}

/// What an input says of the picture that it takes.
fn frame(port: &Port, flags: &PictureFlags) -> Result<Frame, String> {
    let element = port.element.unwrap_or(ElementType::F32);
    let assumed = [Some(1), Some(3), None, None];
    let dims =
        match &port.dims {
            Some(dims) => &dims[..],
            // Without a shape flags have to say it all.
            None if flags.size.is_some() && flags.layout == Layout::Nhwc => &[Some(1), None, None, Some(3)],
            None if flags.size.is_some() => &assumed,
            None => return Err(
                "its shape is not known: give --image-size=HxW, and --image-layout=nhwc if channels are last"
                    .into(),
            ),
        };
    let fits = |dim: Option<u64>| dim.is_none_or(is_channels);
    let (batch, inner) =
        match dims {
            [Some(1) | None, inner @ ..] if inner.len() == 3 => (1, inner),
            [_, inner @ ..] if inner.len() == 3 => {
                return Err("it takes several pictures at once; give an array".into());
            }
            inner @ ([_, _] | [_, _, _]) => (0, inner),
            _ => return Err(
                "it is not of the shape of a picture: HxW, CxHxW, HxWxC, or one of these behind a batch of 1"
                    .into(),
            ),
        };
    let &[first, middle, last] = inner else {
        let (height, width) = (inner[0], inner[1]);
        return Ok(Frame {
            element,
            batch,
            channels: 1,
            channels_first: true,
            has_channels: false,
            height,
            width,
        });
    };
    let channels_first = match flags.layout {
        Layout::Nchw => true,
        Layout::Nhwc => false,
        // A size that is stated says more than one that is open.
        Layout::Auto => match (first.map(is_channels), last.map(is_channels)) {
            (Some(true), _) => true,
            (_, Some(true)) => false,
            (None, _) => true,
            (Some(false), None) => false,
            (Some(false), Some(false)) => true,
        },
    };
    let (channels, height, width) =
        if channels_first { (first, middle, last) } else { (last, first, middle) };
    if !fits(channels) {
        let text = format!("pictures have 1, 3 or 4 channels, it has {}", channels.unwrap_or_default());
        return Err(format!("{text}; --image-layout says which dimension they are"));
    }
    let channels = channels.unwrap_or(3);
    Ok(Frame { element, batch, channels, channels_first, has_channels: true, height, width })
}

/// Height and width of the tensor.
fn target(frame: &Frame, flags: &PictureFlags, picture: &DynamicImage) -> Result<Size, String> {
    let side = |stated: Option<u64>, asked: Option<u32>, own: u32, what: &str| match (stated, asked) {
        (Some(stated), Some(asked)) if stated != u64::from(asked) => {
            Err(format!("--image-size says another {what} than the input, which has {stated}"))
        }
        (Some(stated), _) => u32::try_from(stated)
            .ok()
            .filter(|side| (1..=super::MOST_PIXELS).contains(side))
            .ok_or_else(|| format!("a {what} of {stated} is no picture's")),
        (None, asked) => Ok(asked.unwrap_or(own)),
    };
    let height = side(frame.height, flags.size.map(|size| size.height), picture.height(), "height")?;
    let width = side(frame.width, flags.size.map(|size| size.width), picture.width(), "width")?;
    Ok(Size { height, width })
}

/// Brings a picture to a size.
fn fit(picture: &DynamicImage, size: Size, fit: Fit) -> Result<Cow<'_, DynamicImage>, String> {
    let Size { height, width } = size;
    let (own_height, own_width) = (picture.height(), picture.width());
    let scale = match fit {
        Fit::Crop | Fit::Stretch if (own_height, own_width) == (height, width) => {
            return Ok(Cow::Borrowed(picture));
        }
        Fit::Stretch => return Ok(Cow::Owned(scaled_to(picture, size, size)?)),
        Fit::Crop => (f64::from(height) / f64::from(own_height)).max(f64::from(width) / f64::from(own_width)),
        Fit::Shorter(side) => f64::from(side) / f64::from(own_height.min(own_width)),
    };
    // What is rounded must not fall short of what it fills.
    let scaled = |own: u32, least: u32| {
        let side = (f64::from(own) * scale).round();
        if fit == Fit::Crop { side.max(f64::from(least)) } else { side.max(1.0) }
    };
    let (new_height, new_width) = (scaled(own_height, height), scaled(own_width, width));
    if new_height < f64::from(height) || new_width < f64::from(width) {
        return Err(format!(
            "--image-fit makes it {new_height}x{new_width}, and {height}x{width} are needed; give a longer side"
        ));
    }
    // Larger ones are refused; these are the nearest numbers there are.
    let new = Size { height: new_height as u32, width: new_width as u32 };
    let resized = scaled_to(picture, new, size)?;
    let (top, left) = ((new.height - height) / 2, (new.width - width) / 2);
    Ok(Cow::Owned(resized.crop_imm(left, top, width, height)))
}

/// All of a picture in another size, of which a part of the second size is wanted. Long and thin ones become huge on the way: the rows are
/// scaled first, with four floats for each of their places.
fn scaled_to(picture: &DynamicImage, new: Size, wanted: Size) -> Result<DynamicImage, String> {
    let area = |height: u32, width: u32| u64::from(height) * u64::from(width);
    let most = SCALED_BYTES.max(area(wanted.height, wanted.width).saturating_mul(2 * 4)).min(MOST_BYTES);
    let (made, between) = (area(new.height, new.width) * 4, area(new.height, picture.width()) * 16);
    if made > most || between > ROWS_BYTES.max(4 * most).min(MOST_BYTES) {
        return Err(format!(
            "it would become {}x{} before it is cut to {}x{}, which takes {} MiB; cut it or make it smaller first",
            new.height,
            new.width,
            wanted.height,
            wanted.width,
            made.max(between) >> 20
        ));
    }
    Ok(picture.resize_exact(new.width, new.height, FilterType::Triangle))
}

/// Elements in the order of the input, and what was done to the colours.
fn tensor(
    picture: &DynamicImage,
    frame: &Frame,
    flags: &PictureFlags,
) -> Result<(HostTensor, String), String> {
    let channels = frame.channels as usize;
    let mut pixels = match channels {
        1 => picture.to_luma8().into_raw(),
        3 => picture.to_rgb8().into_raw(),
        _ => picture.to_rgba8().into_raw(),
    };
    if flags.order == Order::Bgr && channels > 1 {
        pixels.chunks_exact_mut(channels).for_each(|pixel| pixel.swap(0, 2));
    }
    let (mean, std, norm) = colours(frame, flags)?;
    let count = pixels.len() / channels;
    let mut data = Vec::with_capacity(pixels.len() * frame.element.byte_count() as usize);
    let mut put = |at: usize, channel: usize| {
        let value = (f64::from(pixels[at * channels + channel]) / 255.0 - mean[channel]) / std[channel];
        encode(frame.element, value, &mut data)
    };
    let done = if frame.channels_first {
        (0..channels).all(|channel| (0..count).all(|at| put(at, channel)))
    } else {
        (0..count).all(|at| (0..channels).all(|channel| put(at, channel)))
    };
    if !done {
        return Err(format!("elements of type {} are none of a picture", frame.element));
    }
    let (height, width) = (u64::from(picture.height()), u64::from(picture.width()));
    let mut shape = vec![1; frame.batch];
    match (frame.has_channels, frame.channels_first) {
        (false, _) => shape.extend([height, width]),
        (_, true) => shape.extend([frame.channels, height, width]),
        (_, false) => shape.extend([height, width, frame.channels]),
    }
    let tensor =
        HostTensor::new(frame.element, shape.as_slice(), data).map_err(|e| e.message().to_owned())?;
    Ok((tensor, norm))
}

/// Mean and deviation for each channel, in the tensor's order, and their name.
fn colours(frame: &Frame, flags: &PictureFlags) -> Result<([f64; 4], [f64; 4], String), String> {
    let floats = matches!(frame.element.kind(), Some(ElementKind::Float | ElementKind::BFloat));
    let usual = match (floats, frame.channels) {
        (false, _) => Norm::Raw,
        (true, 3) => Norm::Imagenet,
        (true, _) => Norm::None,
    };
    let norm =
        flags.norm.unwrap_or(if flags.mean.is_empty() && flags.std.is_empty() { usual } else { Norm::None });
    let (mut mean, mut std) = match norm {
        Norm::Imagenet if frame.channels == 3 => (padded(&IMAGENET.0, 0.0), padded(&IMAGENET.1, 1.0)),
        Norm::Imagenet => return Err("--image-norm=imagenet is for three channels".into()),
        Norm::None => ([0.0; 4], [1.0; 4]),
        Norm::Minus1To1 => ([0.5; 4], [0.5; 4]),
        Norm::Raw => ([0.0; 4], [1.0 / 255.0; 4]),
    };
    if flags.order == Order::Bgr {
        mean.swap(0, 2);
        std.swap(0, 2);
    }
    for (given, flag, used) in
        [(&flags.mean, "--image-mean", &mut mean), (&flags.std, "--image-std", &mut std)]
    {
        match given[..] {
            [] => {}
            [one] => *used = [one; 4],
            _ if given.len() as u64 == frame.channels => used[..given.len()].copy_from_slice(given),
            _ => return Err(format!("{flag} has {} numbers for {} channels", given.len(), frame.channels)),
        }
    }
    if std.iter().any(|v| !v.is_normal()) {
        return Err("--image-std divides: it must not be 0".into());
    }
    if !floats && (mean != [0.0; 4] || std != [1.0 / 255.0; 4]) {
        return Err(format!("elements of type {} take colours as they are: --image-norm=raw", frame.element));
    }
    let given = !flags.mean.is_empty() || !flags.std.is_empty();
    let n = frame.channels as usize;
    let text = match norm {
        _ if given => format!("(0 to 1 - {:?}) / {:?}", &mean[..n], &std[..n]),
        Norm::Imagenet => "normalized as for ImageNet".into(),
        Norm::None => "colours of 0 to 1".into(),
        Norm::Minus1To1 => "colours of -1 to 1".into(),
        Norm::Raw => "colours of 0 to 255".into(),
    };
    Ok((mean, std, text))
}

fn padded(three: &[f64; 3], rest: f64) -> [f64; 4] {
    [three[0], three[1], three[2], rest]
}

/// One element; `false` for types that colours cannot have.
fn encode(element: ElementType, value: f64, data: &mut Vec<u8>) -> bool {
    use ElementKind::{BFloat, Float, Int, SInt, UInt};
    // Rounding takes away what division and multiplication by 255 leave.
    let whole = value.round();
    match (element.kind(), element.bit_count()) {
        (Some(Float), 32) => data.extend((value as f32).to_le_bytes()),
        (Some(Float), 16) => data.extend(f16::from_f64(value).to_le_bytes()),
        (Some(Float), 64) => data.extend(value.to_le_bytes()),
        (Some(BFloat), 16) => data.extend(bf16::from_f64(value).to_le_bytes()),
        (Some(UInt | Int), 8) => data.push(whole as u8),
        (Some(UInt | Int | SInt), 16) => data.extend((whole as i16).to_le_bytes()),
        (Some(UInt | Int | SInt), 32) => data.extend((whole as i32).to_le_bytes()),
        (Some(UInt | Int | SInt), 64) => data.extend((whole as i64).to_le_bytes()),
        _ => return false,
    }
    true
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
