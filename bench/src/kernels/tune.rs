//! What follows from measurements: rows of tuning, one for each class of shapes, and the timings that they come from.

use halite_hal::DeviceInfo;
use halite_shaders::{Measurement, TuningRow, VariantTime};
use halite_tools::units;

use super::result::{Measured, Report, Row};

/// Who was measured, as files name it.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Triple.
    pub target: String,
    /// Name of the device.
    pub device: String,
    /// Name and version of its Vulkan driver.
    pub driver: String,
}

impl Subject {
    /// Out of what a driver says of a device.
    pub fn new(info: &DeviceInfo, target: String) -> Subject {
        let told = info.properties.iter().filter(|(name, _)| name == "driver" || name == "driver_version");
        let values: Vec<&str> = told.map(|(_, value)| value.as_str()).collect();
        Subject { target, device: info.name.clone(), driver: values.join(" ") }
    }
}

/// The timings of all variants that could run.
pub fn measurements(subject: &Subject, reports: &[Report]) -> Vec<Measurement> {
    let variant = |row: &Row| VariantTime {
        variant: row.variant.to_owned(),
        seconds: row.outcome.as_ref().ok().map(|measured| measured.timing.median),
        failed: row.outcome.as_ref().err().cloned(),
    };
    let one = |report: &Report| Measurement {
        operation: report.operation.to_string(),
        target: subject.target.clone(),
        device: subject.device.clone(),
        driver: subject.driver.clone(),
        variants: report.rows.iter().map(variant).collect(),
    };
    reports.iter().map(one).collect()
}

/// The rows that follow. Operations of a name and signature are classes by their arithmetic: one ends and the next begins at
/// the geometric mean of both. Neighbours with the same order are one row.
pub fn rows(subject: &Subject, reports: &[Report]) -> Vec<TuningRow> {
    let mut sorted: Vec<&Report> =
        reports.iter().filter(|report| !fastest_first(report).is_empty()).collect();
    let key = |report: &Report| (report.operation.name(), report.operation.signature());
    sorted.sort_by(|a, b| key(a).cmp(&key(b)).then(a.work.flops.total_cmp(&b.work.flops)));
    let mut rows: Vec<(f64, TuningRow)> = Vec::new();
    for report in sorted {
        let mut row = row(subject, report);
        let before = rows
            .last_mut()
            .filter(|(_, last)| (&last.operation, &last.signature) == (&row.operation, &row.signature));
        if let Some((flops, last)) = before {
            let border = (*flops * report.work.flops).sqrt();
            // Two shapes of the same arithmetic cannot be told apart: what was named first stays.
            let same = report.work.flops <= *flops * 1.001;
            *flops = report.work.flops;
            if last.order == row.order || same {
                last.source = format!("{}; {}", last.source, row.source);
                continue;
            }
            row.min_flops = border;
        }
        rows.push((report.work.flops, row));
    }
    rows.into_iter().map(|(_, row)| row).collect()
}

fn row(subject: &Subject, report: &Report) -> TuningRow {
    let order = fastest_first(report);
    let told =
        |(name, measured): &(&str, &Measured)| format!("{name} {}", units::seconds(measured.timing.median));
    let times: Vec<String> = order.iter().map(told).collect();
    TuningRow {
        target: subject.target.clone(),
        operation: report.operation.name().to_owned(),
        signature: report.operation.signature(),
        min_flops: 0.0,
        order: order.iter().map(|(name, _)| (*name).to_owned()).collect(),
        documented: false,
        source: format!("{}, {}: {}: {}", subject.device, subject.driver, report.operation, times.join(", ")),
    }
}

fn fastest_first(report: &Report) -> Vec<(&'static str, &Measured)> {
    let measured = report.rows.iter().filter_map(|row| Some((row.variant, row.outcome.as_ref().ok()?)));
    let mut measured: Vec<_> = measured.collect();
    measured.sort_by(|a, b| a.1.timing.median.total_cmp(&b.1.timing.median));
    measured
}

#[cfg(test)]
mod tests {
    use halite_ops::Operation;

    use super::{
        super::{CopySpeed, Details, Timing},
        *,
    };

    fn report(operation: &str, times: &[(&'static str, f64)]) -> Report {
        let operation = Operation::parse(operation).expect("it is one");
        let row = |(variant, median): &(&'static str, f64)| Row {
            variant,
            place: 1,
            details: Details::default(),
            outcome: if *median > 0.0 {
                let timing = Timing { median: *median, ..Timing::default() };
                Ok(Measured { timing, checked: "the reference".to_owned() })
            } else {
                Err("wrong".to_owned())
            },
        };
        Report {
            work: operation.work(),
            operation,
            rows: times.iter().map(row).collect(),
            complete: true,
            ruled_out: Vec::new(),
            sets: 1,
            copy: CopySpeed::default(),
            peak: None,
            against: None,
        }
    }

    fn subject() -> Subject {
        Subject { target: "cpu-llvmpipe-linux".into(), device: "llvmpipe".into(), driver: "Mesa 1".into() }
    }

    #[test]
    fn classes_end_between_shapes_and_equal_neighbours_are_one() {
        let reports = [
            report("matmul:m=1000,n=100,k=100", &[("b", 1.0), ("a", 2.0)]),
            report("matmul:m=10,n=10,k=10", &[("a", 1.0), ("b", 2.0), ("wrong", 0.0)]),
            report("matmul:m=20,n=10,k=10", &[("b", 3.0), ("a", 2.0)]),
        ];
        let rows = rows(&subject(), &reports);
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].min_flops, &rows[0].order), (0.0, &vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(rows[1].min_flops, (4_000.0f64 * 20_000_000.0).sqrt());
        assert_eq!(rows[1].order, ["b", "a"]);
        assert!(rows[0].source.contains("m=10,") && rows[0].source.contains("m=20,"), "{}", rows[0].source);
    }

    #[test]
    fn shapes_of_the_same_arithmetic_are_one_class() {
        let reports = [
            report("matmul:m=10,n=20,k=10", &[("a", 1.0), ("b", 2.0)]),
            report("matmul:m=20,n=10,k=10", &[("b", 1.0), ("a", 2.0)]),
            report("matmul:m=20,n=10,k=10,lhs=i8,rhs=i8,out=i32", &[("c", 1.0)]),
            report("matmul:m=20,n=10,k=10,lhs=f16,rhs=f16", &[("d", 0.0)]),
        ];
        let rows = rows(&subject(), &reports);
        let orders: Vec<_> = rows.iter().map(|row| row.order[0].as_str()).collect();
        assert_eq!(orders, ["a", "c"]);
        assert_eq!(measurements(&subject(), &reports)[3].variants[0].failed.as_deref(), Some("wrong"));
    }
}
