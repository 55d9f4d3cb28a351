//! Pictures as inputs and outputs: flags, and what a tensor's shape says of a picture.

mod frame;
mod load;
mod save;

use std::str::FromStr;

use clap::{Args, ValueEnum};

pub use load::prepared;
pub(crate) use load::read;
pub(crate) use save::{check_output, write};

/// Endings of files that are taken for pictures. Of these, PNG and JPEG are read and written.
pub(crate) const EXTENSIONS: &[&str] =
    &["png", "jpg", "jpeg", "bmp", "gif", "webp", "tif", "tiff", "avif", "heic", "ppm", "pgm", "tga", "ico"];
/// Those that are read and written.
const SUPPORTED: &[&str] = &["png", "jpg", "jpeg"];

/// How pictures become tensors.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Pictures as inputs")]
pub struct PictureFlags {
    /// Height and width that pictures are brought to, such as 224x224. Default: those of the input; where it leaves them
    /// open, those of the picture
    #[arg(long = "image-size", value_name = "HxW")]
    size: Option<Size>,
    /// How a picture of other proportions fits: crop (fills the input, what stands over is cut evenly), stretch, or a number:
    /// the shorter side becomes so long, then the middle is cut out (256 for many networks of 224x224). Default: crop
    #[arg(
        long = "image-fit",
        value_name = "crop|stretch|N",
        default_value = "crop",
        hide_default_value = true
    )]
    fit: Fit,
    /// Order of the dimensions. Default: auto, by where the input has 1, 3 or 4 channels
    #[arg(
        long = "image-layout",
        value_enum,
        default_value = "auto",
        value_name = "auto|nchw|nhwc",
        hide_possible_values = true,
        hide_default_value = true
    )]
    layout: Layout,
    /// What colours become: imagenet (0 to 1, less the mean, by the deviation of that data set), none (0 to 1), minus1to1, or
    /// raw (0 to 255). Default: imagenet for floats of three channels, none for other floats, raw for integers
    #[arg(
        long = "image-norm",
        value_enum,
        value_name = "imagenet|none|minus1to1|raw",
        hide_possible_values = true
    )]
    norm: Option<Norm>,
    /// Mean that is taken from colours of 0 to 1: one number, or one for each channel. Goes before --image-norm
    #[arg(long = "image-mean", value_name = "R,G,B", value_delimiter = ',', allow_negative_numbers = true)]
    mean: Vec<f64>,
    /// What they are divided by then
    #[arg(long = "image-std", value_name = "R,G,B", value_delimiter = ',')]
    std: Vec<f64>,
    /// Order of the colours in the tensor
    #[arg(
        long = "image-order",
        value_enum,
        default_value = "rgb",
        value_name = "rgb|bgr",
        hide_possible_values = true
    )]
    order: Order,
}

/// Height and width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    height: u32,
    width: u32,
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (height, width) = text.split_once('x').unwrap_or((text, text));
        let number = |text: &str| text.parse::<u32>().ok().filter(|n| (1..=MOST_PIXELS).contains(n));
        match (number(height), number(width)) {
            (Some(height), Some(width)) => Ok(Size { height, width }),
            _ => Err(format!("'{text}' is no height and width such as 224x224, of 1 to {MOST_PIXELS}")),
        }
    }
}

/// Most pixels along one side.
const MOST_PIXELS: u32 = 1 << 16;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Fit {
    #[default]
    Crop,
    Stretch,
    Shorter(u32),
}

impl FromStr for Fit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("crop", _) => Ok(Fit::Crop),
            ("stretch", _) => Ok(Fit::Stretch),
            (_, Ok(side)) if (1..=MOST_PIXELS).contains(&side) => Ok(Fit::Shorter(side)),
            _ => Err(format!("'{text}' is neither crop nor stretch nor the length of the shorter side")),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Layout {
    #[default]
    Auto,
    Nchw,
    Nhwc,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Norm {
    Imagenet,
    #[value(alias = "0to1")]
    None,
    #[value(name = "minus1to1")]
    Minus1To1,
    Raw,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Order {
    #[default]
    Rgb,
    Bgr,
}

/// Whether a dimension can be the channels of a picture.
fn is_channels(dim: u64) -> bool {
    matches!(dim, 1 | 3 | 4)
}
