//! Drawings as inline SVG: bars, and measurements below a device's ceilings.

use std::fmt::Write as _;

use halite_tools::units::si;

use super::parts::escaped;

const WIDTH: f64 = 860.0;

/// Labelled bars from zero: label, value, and the value as text.
pub fn bars(text: &mut String, bars: &[(String, f64, String)]) {
    const ROW: f64 = 22.0;
    const LABEL: f64 = 300.0;
    const END: f64 = 90.0;
    let most = bars.iter().map(|bar| bar.1).fold(f64::MIN_POSITIVE, f64::max);
    let height = ROW * bars.len() as f64 + 4.0;
    // Writing to a string does not fail.
    let _ = write!(
        text,
        "<figure class=\"scroll\"><svg viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" role=\"img\">"
    );
    for (index, (label, value, shown)) in bars.iter().enumerate() {
        let y = ROW * index as f64;
        let length = (WIDTH - LABEL - END) * value / most;
        let middle = y + ROW * 0.68;
        let _ = write!(
            text,
            "<text x=\"{}\" y=\"{middle:.1}\" text-anchor=\"end\">{}</text>\
             <rect x=\"{LABEL}\" y=\"{:.1}\" width=\"{:.1}\" height=\"13\" rx=\"2\" fill=\"var(--blue)\"/>\
             <text class=\"soft\" x=\"{:.1}\" y=\"{middle:.1}\">{}</text>",
            LABEL - 8.0,
            escaped(&shortened(label, 46)),
            y + 4.0,
            length.max(1.0),
            LABEL + length.max(1.0) + 6.0,
            escaped(shown),
        );
    }
    text.push_str("</svg></figure>\n");
}

/// The end of a text that is too long.
fn shortened(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        text.to_owned()
    } else {
        format!("\u{2026}{}", text.chars().skip(count - most + 1).collect::<String>())
    }
}

/// A measurement: what it is, operations for each byte, operations in a second, and the series that it is of.
pub struct Point {
    pub label: String,
    pub intensity: f64,
    pub speed: f64,
    pub series: usize,
}

/// Colours of series, in order.
const COLOURS: [&str; 4] = ["var(--blue)", "var(--violet)", "var(--teal)", "var(--known)"];

/// A roofline: speeds of arithmetic over arithmetic intensity, both logarithmic, below the bandwidth of copies and the
/// peaks of arithmetic (name and operations in a second).
pub fn roofline(
    text: &mut String,
    bandwidth: f64,
    peaks: &[(String, f64)],
    points: &[Point],
    series: &[String],
) {
    let frame = Frame::around(bandwidth, peaks, points);
    let _ = write!(
        text,
        "<figure class=\"scroll\"><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" role=\"img\">"
    );
    frame.axes(text);
    frame.ceilings(text, bandwidth, peaks);
    for point in points {
        let colour = COLOURS[point.series % COLOURS.len()];
        let _ = write!(
            text,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4.5\" fill=\"{colour}\" fill-opacity=\"0.8\"><title>{}</title></circle>",
            frame.x(point.intensity),
            frame.y(point.speed),
            escaped(&format!("{}: {}", point.label, si(point.speed, "OP/s"))),
        );
    }
    text.push_str("</svg><p class=\"legend\">");
    for (index, name) in series.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let _ = write!(text, "<span><i style=\"background:{colour}\"></i>{}</span>", escaped(name));
    }
    text.push_str("</p><figcaption>The fastest variant of each operation. The sloped line is what copies of memory reach, \
                   the level lines are peaks of arithmetic, all measured on the device.</figcaption></figure>\n");
}

const HEIGHT: f64 = 420.0;
const LEFT: f64 = 86.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 44.0;

/// The part of the plane that is shown, in powers of ten.
struct Frame {
    x: (f64, f64),
    y: (f64, f64),
}

impl Frame {
    fn around(bandwidth: f64, peaks: &[(String, f64)], points: &[Point]) -> Self {
        let top = peaks.iter().map(|peak| peak.1).chain(points.iter().map(|point| point.speed));
        let top = top.fold(1.0, f64::max);
        let low = points.iter().map(|point| point.speed).fold(top, f64::min);
        let right = points.iter().map(|point| point.intensity).fold(top / bandwidth.max(1.0), f64::max);
        let left = points.iter().map(|point| point.intensity).fold(right, f64::min);
        let room =
            |low: f64, high: f64| (low.max(1e-6).log10().floor(), (high * 1.5).max(1e-5).log10().ceil());
        Frame { x: room(left, right), y: room(low, top) }
    }

    fn x(&self, value: f64) -> f64 {
        let share = (value.max(1e-9).log10() - self.x.0) / (self.x.1 - self.x.0).max(1.0);
        LEFT + (WIDTH - LEFT - RIGHT) * share.clamp(0.0, 1.0)
    }

    fn y(&self, value: f64) -> f64 {
        let share = (value.max(1e-9).log10() - self.y.0) / (self.y.1 - self.y.0).max(1.0);
        HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share.clamp(0.0, 1.0)
    }

    fn axes(&self, text: &mut String) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for power in self.x.0 as i32..=self.x.1 as i32 {
            let value = 10f64.powi(power);
            let x = self.x(value);
            let shown = if power >= 0 { format!("{value:.0}") } else { format!("{value}") };
            let _ = write!(
                text,
                "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\"/>\
                 <text class=\"soft\" x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{shown}</text>",
                bottom + 16.0
            );
        }
        for power in self.y.0 as i32..=self.y.1 as i32 {
            let value = 10f64.powi(power);
            let y = self.y(value);
            let _ = write!(
                text,
                "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>\
                 <text class=\"soft\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 6.0,
                y + 4.0,
                escaped(&si(value, "OP/s"))
            );
        }
        let _ = write!(
            text,
            "<text class=\"soft\" x=\"{right}\" y=\"{}\" text-anchor=\"end\">operations for each byte of memory</text>",
            HEIGHT - 8.0
        );
    }

    fn ceilings(&self, text: &mut String, bandwidth: f64, peaks: &[(String, f64)]) {
        let top = peaks.iter().map(|peak| peak.1).fold(0.0, f64::max);
        let (left, right) = (10f64.powf(self.x.0), 10f64.powf(self.x.1));
        // The slope begins where it enters the frame, and ends at the highest peak.
        let begin = left.max(10f64.powf(self.y.0) / bandwidth.max(1.0));
        let end = if top > 0.0 { top / bandwidth.max(1.0) } else { right }.clamp(begin, right);
        let _ = write!(
            text,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"var(--ink)\" stroke-width=\"1.5\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">copies {}</text>",
            self.x(begin),
            self.y(begin * bandwidth),
            self.x(end),
            self.y(end * bandwidth),
            self.x(begin) + 8.0,
            (self.y(begin * bandwidth) - 16.0).max(TOP + 12.0),
            escaped(&si(bandwidth, "B/s"))
        );
        let mut sorted: Vec<_> = peaks.iter().collect();
        sorted.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut last = 0.0;
        for (name, speed) in sorted {
            let y = self.y(*speed);
            let x = self.x((speed / bandwidth.max(1.0)).max(left));
            let _ = write!(
                text,
                "<line x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke=\"var(--ink)\" stroke-dasharray=\"5 3\"/>",
                WIDTH - RIGHT
            );
            // Names that would lie on each other move down.
            let label = f64::max(y - 4.0, last + 13.0);
            last = label;
            let _ = write!(
                text,
                "<text x=\"{:.1}\" y=\"{label:.1}\" text-anchor=\"end\">{} {}</text>",
                WIDTH - RIGHT,
                escaped(name),
                escaped(&si(*speed, "OP/s"))
            );
        }
    }
}
