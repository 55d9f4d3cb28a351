//! How devices are weighed against each other when nobody named one.
//!
//! The kind of a device weighs more than everything else together, so a processor is never taken for a GPU. Within a
//! kind the driver's own points decide, and among equals the device path, which does not change from run to run.

use crate::{DeviceInfo, DeviceKind, Options, ScoreItem};

/// Most points that a driver's items can sum up to, for and against a device.
const ITEMS_LIMIT: i64 = 999;

/// Points of a device with their reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Score {
    /// The sum. Negative: never chosen unasked.
    pub total: i64,
    /// Where it comes from: the kind first, then the driver's items.
    pub items: Vec<ScoreItem>,
}

impl Score {
    /// The score of a device.
    pub fn of(info: &DeviceInfo) -> Self {
        let (points, reason) = match info.kind {
            DeviceKind::DiscreteGpu => (4000, "discrete GPU"),
            DeviceKind::IntegratedGpu => (3000, "integrated GPU"),
            DeviceKind::VirtualGpu => (2000, "virtual GPU"),
            DeviceKind::Other => (1000, "device of no known kind"),
            DeviceKind::Cpu => (0, "processor"),
        };
        let sum = info.score.iter().fold(0i64, |sum, item| sum.saturating_add(item.points));
        let mut items = vec![ScoreItem { points, reason: reason.to_owned() }];
        items.extend(info.score.iter().cloned());
        // A driver that says "never" means it; otherwise its points stay within the kind.
        let total = if sum < -ITEMS_LIMIT { sum } else { points + sum.clamp(0, ITEMS_LIMIT) };
        Score { total, items }
    }
}

/// One device in the order of choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranked {
    /// Index in the list that was given.
    pub index: usize,
    /// Its score.
    pub score: Score,
    /// Why it is not chosen unasked; `None` when it may be.
    pub ruled_out: Option<String>,
}

/// Orders devices, the one to choose first. Devices that are ruled out come last, in the same order among themselves.
/// `wanted` tells whether the program has code in a format; where it has code for none of the devices, formats do not
/// count.
pub fn rank(devices: &[DeviceInfo], wanted: &dyn Fn(&str) -> bool) -> Vec<Ranked> {
    let serves = |info: &DeviceInfo| info.executable_formats.iter().any(|format| wanted(format));
    let formats_count = devices.iter().any(serves);
    let mut ranked: Vec<Ranked> = devices
        .iter()
        .enumerate()
        .map(|(index, info)| {
            let score = Score::of(info);
            let ruled_out = match &info.unusable {
                Some(why) => Some(format!("cannot be used: {why}")),
                None if score.total < 0 => Some(worst(&score)),
                None if formats_count && !serves(info) => Some(format!(
                    "the module has no code for it (it takes {})",
                    if info.executable_formats.is_empty() {
                        "none".to_owned()
                    } else {
                        info.executable_formats.join(", ")
                    }
                )),
                None => None,
            };
            Ranked { index, score, ruled_out }
        })
        .collect();
    ranked.sort_by(|a, b| {
        let path = |r: &Ranked| (&devices[r.index].driver, &devices[r.index].path);
        (a.ruled_out.is_some(), b.score.total, path(a)).cmp(&(b.ruled_out.is_some(), a.score.total, path(b)))
    });
    ranked
}

/// Takes from a device that nobody named the code that nothing confines: its formats leave the list of those that the
/// device takes. Returns the options to open it with. An option that `given` has stays as it is: its value is somebody's
/// word.
pub fn confine(info: &mut DeviceInfo, given: &Options) -> Options {
    let mut options = given.clone();
    for code in info.unconfined.iter().filter(|code| !given.contains_key(&code.option)) {
        info.executable_formats.retain(|format| !code.formats.contains(format));
        options.insert(code.option.clone(), code.refuse.clone());
    }
    options
}

/// The reason that weighs most against a device.
fn worst(score: &Score) -> String {
    let item = score.items.iter().min_by_key(|item| item.points);
    item.map_or_else(
        || "its score is negative".to_owned(),
        |item| format!("{}; name it to use it", item.reason),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UnconfinedCode;

    fn device(kind: DeviceKind, path: &str, points: &[i64]) -> DeviceInfo {
        let items =
            points.iter().map(|points| ScoreItem { points: *points, reason: format!("fact {points}") });
        DeviceInfo {
            driver: "d".into(),
            path: path.into(),
            kind,
            score: items.collect(),
            executable_formats: vec![path.to_owned()],
            ..DeviceInfo::default()
        }
    }

    fn order(devices: &[DeviceInfo], wanted: &str) -> Vec<(String, bool)> {
        let ranked = rank(devices, &|format| format == wanted);
        ranked.iter().map(|r| (devices[r.index].path.clone(), r.ruled_out.is_none())).collect()
    }

    fn first(devices: &[DeviceInfo]) -> String {
        order(devices, "none")[0].0.clone()
    }

    #[test]
    fn kinds_weigh_more_than_all_points_together() {
        use DeviceKind::{Cpu, DiscreteGpu, IntegratedGpu, Other, VirtualGpu};
        let kinds = [Cpu, Other, VirtualGpu, IntegratedGpu, DiscreteGpu];
        for pair in kinds.windows(2) {
            let devices = [device(pair[0], "praised", &[400, 9000]), device(pair[1], "plain", &[])];
            assert_eq!(first(&devices), "plain", "{pair:?}");
        }
        let devices = [device(DiscreteGpu, "a", &[10]), device(DiscreteGpu, "b", &[10, 5])];
        assert_eq!(first(&devices), "b");
    }

    #[test]
    fn equals_are_ordered_by_path_wherever_they_are_listed() {
        let (a, b) = (device(DeviceKind::Cpu, "a", &[3]), device(DeviceKind::Cpu, "b", &[3]));
        assert_eq!(first(&[a.clone(), b.clone()]), "a");
        assert_eq!(first(&[b, a]), "a");
    }

    #[test]
    fn toys_and_broken_devices_are_ruled_out_with_the_reason() {
        let toy = device(DeviceKind::Other, "toy", &[-1_000_000]);
        let mut broken = device(DeviceKind::DiscreteGpu, "broken", &[]);
        broken.unusable = Some("no timelineSemaphore".into());
        let cpu = device(DeviceKind::Cpu, "cpu", &[]);
        let ranked = rank(&[toy, broken, cpu], &|_| false);
        assert_eq!(ranked[0].index, 2);
        assert_eq!(ranked[1].ruled_out.as_deref(), Some("cannot be used: no timelineSemaphore"));
        assert_eq!(ranked[2].ruled_out.as_deref(), Some("fact -1000000; name it to use it"));
    }

    #[test]
    fn a_device_that_the_module_has_code_for_comes_before_a_better_one() {
        let devices = [device(DeviceKind::DiscreteGpu, "gpu", &[]), device(DeviceKind::Cpu, "cpu", &[])];
        assert_eq!(order(&devices, "cpu"), [("cpu".to_owned(), true), ("gpu".to_owned(), false)]);
        assert_eq!(order(&devices, "other"), [("gpu".to_owned(), true), ("cpu".to_owned(), true)]);
    }

    #[test]
    fn a_device_that_nobody_named_takes_no_unconfined_code() {
        let mut info = device(DeviceKind::Cpu, "bytecode", &[]);
        info.executable_formats.insert(0, "elf".to_owned());
        info.unconfined = vec![UnconfinedCode {
            formats: vec!["elf".to_owned(), "elf-other".to_owned()],
            option: "native_code".to_owned(),
            allow: "on".to_owned(),
            refuse: "off".to_owned(),
            default_allows: true,
            ..UnconfinedCode::default()
        }];
        let mut chosen = info.clone();
        let options = confine(&mut chosen, &Options::from([("threads".to_owned(), "2".to_owned())]));
        assert_eq!(chosen.executable_formats, ["bytecode"]);
        assert_eq!((options["native_code"].as_str(), options["threads"].as_str()), ("off", "2"));
        // Who gives the option has said the word.
        let given = Options::from([("native_code".to_owned(), "on".to_owned())]);
        let mut asked = info.clone();
        assert_eq!(confine(&mut asked, &given), given);
        assert_eq!(asked, info);
    }

    #[test]
    fn points_against_a_device_do_not_make_it_another_kind() {
        let score = Score::of(&device(DeviceKind::DiscreteGpu, "a", &[-50]));
        assert_eq!((score.total, score.items.len()), (4000, 2));
    }
}
