//! The tests of `report`.

use super::{
    super::{runner::Phases, stats::Summary},
    *,
};

fn runs(repetitions: usize) -> Vec<Run> {
    let repetition = |i: usize| Repetition {
        iterations: 5,
        real: 0.048 + i as f64 * 0.001,
        cpu: 0.0124,
        items_per_second: 20.8415,
        calls: Summary { min: 0.04, p50: 0.047, p90: 0.05, p99: 0.06 },
    };
    vec![Run {
        name: "BM_main/process_time/real_time".into(),
        first_call: 0.5,
        repetitions: (0..repetitions).map(repetition).collect(),
    }]
}

fn text(format: Format, repetitions: usize, aggregates_only: bool) -> String {
    let context = Context {
        devices: Vec::new(),
        phases: Phases { load: 0.001, init: 0.2, first_call: 0.5 },
        peak_host_bytes: Some(4096),
    };
    let mut out = Vec::new();
    write(
        format,
        &runs(repetitions),
        (&context, None),
        Settings { unit: TimeUnit::Ms, aggregates_only },
        &mut out,
    )
    .unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn console_has_the_columns_of_the_original() {
    let text = text(Format::Console, 1, false);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines[1],
        "Benchmark                               Time             CPU   Iterations UserCounters..."
    );
    assert_eq!(lines[0], "-".repeat(lines[1].len()));
    assert!(
        lines[3].starts_with("BM_main/process_time/real_time       48.0 ms         12.4 ms            5 items_per_second=20.8415/s"),
        "{}",
        lines[3]
    );
    assert!(lines[3].ends_with("min=40.0ms p50=47.0ms p90=50.0ms p99=60.0ms"), "{}", lines[3]);
}

#[test]
fn repetitions_add_aggregates() {
    let all = text(Format::Console, 3, false);
    assert_eq!(all.lines().count(), 3 + 3 + 4);
    let only = text(Format::Console, 3, true);
    assert_eq!(only.lines().count(), 3 + 4);
    for name in ["_mean ", "_median ", "_stddev ", "_cv "] {
        assert!(only.contains(name), "{name}");
    }
    assert!(only.lines().last().unwrap().contains("2.04 %"), "{only}");
}

#[test]
fn json_and_csv_hold_the_same_numbers() {
    let json: Json = serde_json::from_str(&text(Format::Json, 2, false)).unwrap();
    assert_eq!(json["benchmarks"].as_array().unwrap().len(), 6);
    assert_eq!(json["benchmarks"][0]["real_time"], 48.0);
    assert_eq!(json["benchmarks"][0]["run_type"], "iteration");
    assert_eq!(json["benchmarks"][2]["aggregate_name"], "mean");
    assert_eq!(json["benchmarks"][2]["p99"], 60.0);
    assert!((json["context"]["load_to_first_result_ms"].as_f64().unwrap() - 701.0).abs() < 1e-6);
    let csv = text(Format::Csv, 1, false);
    let rows: Vec<Vec<&str>> = csv.lines().map(|l| l.split(',').collect()).collect();
    assert_eq!(rows[0].len(), rows[1].len());
    assert_eq!((rows[1][2], rows[1][4]), ("48", "ms"));
}

#[test]
fn numbers_are_short() {
    assert_eq!(human(112_266.0), "112.266k");
    assert_eq!(human(0.5), "500m");
    assert_eq!(significant(0.009).trim(), "0.009");
    assert_eq!(significant(1234.5).trim(), "1234");
}
