//! Measurements of kernels beside a device's ceilings: reading the JSON of `bench kernels`, and showing them.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use halite_tools::units::{seconds, si};
use serde_json::Value as Json;

use super::{
    parts::escaped,
    plot::{self, Point},
};

/// The measurements of one device.
#[derive(Debug)]
pub(super) struct Bench {
    name: String,
    /// Bytes in a second that the best copy moves.
    copy: f64,
    /// Operations in a second, by the name of the probe.
    peaks: Vec<(String, f64)>,
    rows: Vec<Row>,
}

/// The fastest variant of an operation.
#[derive(Debug)]
struct Row {
    operation: String,
    family: String,
    variant: String,
    seconds: f64,
    flops: f64,
    bytes: f64,
    /// The ceilings of this operation: bytes in a second of a copy of its size, operations in a second of its type.
    copy: f64,
    peak: Option<f64>,
}

impl Bench {
    pub fn parse(text: &str) -> Result<Self> {
        let json: Json = serde_json::from_str(text)?;
        let ceilings = json.get("ceilings").context("it is no output of 'bench kernels --json'")?;
        let best = |json: &Json| {
            let speed = |key: &str| json[key].as_f64().unwrap_or(0.0);
            speed("copy_command").max(speed("copy_kernel"))
        };
        let probes = ceilings["arithmetic"].as_object().into_iter().flatten();
        let peaks = probes.filter_map(|(name, speed)| Some((name.clone(), speed.as_f64()?)));
        let operations = json["operations"].as_array().context("it has no operations")?;
        let row = |json: &Json| {
            let times = json["variants"].as_array()?.iter().filter_map(|v| Some((v, v["median"].as_f64()?)));
            let (variant, seconds) = times.min_by(|a, b| a.1.total_cmp(&b.1))?;
            Some(Row {
                operation: json["operation"].as_str()?.to_owned(),
                family: json["name"].as_str()?.to_owned(),
                variant: variant["variant"].as_str()?.to_owned(),
                seconds,
                flops: json["flops"].as_f64()?,
                bytes: json["bytes"].as_f64()?,
                copy: best(json),
                peak: json["peak"]["speed"].as_f64(),
            })
        };
        Ok(Bench {
            name: json["name"].as_str().unwrap_or("device").to_owned(),
            copy: best(ceilings),
            peaks: peaks.collect(),
            rows: operations.iter().filter_map(row).filter(|row| row.seconds > 0.0).collect(),
        })
    }

    fn show(&self, text: &mut String) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "<h3>{}</h3>", escaped(&self.name));
        let mut families: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !families.contains(&row.family.as_str()) {
                families.push(&row.family);
            }
        }
        // Families of operations that have a colour of their own; all others share the last one.
        const OWN: usize = 3;
        let series = |row: &Row| families.iter().position(|f| *f == row.family).unwrap_or(OWN).min(OWN);
        let mut names: Vec<String> = families.iter().take(OWN).map(|f| (*f).to_owned()).collect();
        if families.len() > OWN {
            names.push("other operations".to_owned());
        }
        let points: Vec<Point> = self
            .rows
            .iter()
            .filter(|row| row.flops > 0.0 && row.bytes > 0.0)
            .map(|row| Point {
                label: format!("{} ({})", row.operation, row.variant),
                intensity: row.flops / row.bytes,
                speed: row.flops / row.seconds,
                series: series(row),
            })
            .collect();
        if self.copy > 0.0 && !points.is_empty() {
            plot::roofline(text, self.copy, &self.peaks, &points, &names);
        }
        self.table(text);
    }

    fn table(&self, text: &mut String) {
        text.push_str(
            "<details><summary>numbers</summary><div class=\"scroll\"><table><thead><tr><th>operation</th><th>variant</th>\
             <th class=\"n\">time</th><th class=\"n\">arithmetic</th><th class=\"n\">of peak</th><th class=\"n\">memory</th>\
             <th class=\"n\">of copy</th></tr></thead><tbody>\n",
        );
        for row in &self.rows {
            let (flops, bytes) = (row.flops / row.seconds, row.bytes / row.seconds);
            let share = |part: f64, all: Option<f64>| {
                all.filter(|all| *all > 0.0)
                    .map_or("-".to_owned(), |all| format!("{:.0} %", 100.0 * part / all))
            };
            let _ = writeln!(
                text,
                "<tr><td><code>{}</code></td><td><code>{}</code></td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
                 <td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
                escaped(&row.operation),
                escaped(&row.variant),
                escaped(&seconds(row.seconds)),
                escaped(&si(flops, "OP/s")),
                share(flops, row.peak),
                escaped(&si(bytes, "B/s")),
                share(bytes, Some(row.copy)),
            );
        }
        text.push_str("</tbody></table></div></details>\n");
    }
}

/// The section of all measurements; nothing without any.
pub(super) fn section(text: &mut String, benches: &[Bench]) {
    if benches.is_empty() {
        return;
    }
    text.push_str("<h2 id=\"kernels\">Kernels beside the device's ceilings</h2>\n");
    benches.iter().for_each(|bench| bench.show(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_variant_is_shown_beside_the_ceilings() {
        let text = r#"{"device":"null://","name":"A <GPU>","target":"t","ceilings":{"copy_bytes":1,"copy_command":1e11,
            "copy_kernel":2e11,"arithmetic":{"fma f32":1e12,"coop f16":{"why_not":"none"}}},"operations":[
            {"operation":"matmul:m=1","name":"matmul","flops":1e9,"bytes":1e6,"copy_command":1e11,"copy_kernel":1e10,
             "peak":{"probe":"fma f32","speed":1e12},"variants":[{"variant":"slow","median":0.01},
             {"variant":"fast","median":0.002},{"variant":"broken","failed":"why"}]},
            {"operation":"copy:n=1","name":"copy","flops":0,"bytes":1e6,"copy_command":1e11,"copy_kernel":1e10,
             "peak":null,"variants":[]}]}"#;
        let bench = Bench::parse(text).expect("it is well formed");
        assert_eq!((bench.rows.len(), bench.rows[0].variant.as_str(), bench.copy), (1, "fast", 2e11));
        let mut page = String::new();
        section(&mut page, &[bench]);
        assert!(
            page.contains("A &lt;GPU&gt;") && page.contains("50 %") && page.contains("fma f32"),
            "{page}"
        );
        assert_eq!(page.matches("<circle").count(), 1);
        assert!(Bench::parse("{}").is_err() && Bench::parse("[").is_err());
    }
}
