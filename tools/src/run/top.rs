//! `--top` and `--labels`: the highest entries of a result, by the names that a file gives them.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use clap::Args;
use serde_json::json;

use crate::{
    console::{Failure, Result},
    engine::{HostTensor, Value, element_to_f64, format_g},
    text_file,
};

/// Entries that are shown when only --labels is given.
const USUAL: usize = 5;

/// Which entries of a result are shown.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Classes")]
pub struct TopFlags {
    /// Prints the N highest entries of a result instead of all: of the last one that is a list, such as 1x1000xf32.
    /// Default with --labels: 5
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    top: Option<u32>,
    /// File with a name for each entry, one per line
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    /// Makes probabilities of the entries first, where the network leaves that out
    #[arg(long)]
    softmax: bool,
}

/// What is asked for, read.
#[derive(Debug)]
pub(super) struct Top {
    count: usize,
    labels: Option<(PathBuf, Vec<String>)>,
    softmax: bool,
}

/// The highest entries of a result.
#[derive(Debug)]
pub(super) struct Ranking {
    /// Index of the result.
    pub result: usize,
    /// Shape and type of it.
    what: String,
    /// Place, score and label, the highest first.
    entries: Vec<(usize, f64, Option<String>)>,
}

impl TopFlags {
    /// Reads the labels; `None` when no ranking is asked for.
    pub fn read(&self) -> Result<Option<Top>> {
        if self.top.is_none() && self.labels.is_none() {
            if self.softmax {
                return Err(Failure::Usage("--softmax is for --top=N or --labels=FILE".to_owned()));
            }
            return Ok(None);
        }
        let read = |path: &Path| Ok((path.to_owned(), read_labels(path)?));
        let labels: Option<Result<_>> = self.labels.as_deref().map(read);
        let count = self.top.map_or(USUAL, |top| top as usize);
        Ok(Some(Top { count, labels: labels.transpose()?, softmax: self.softmax }))
    }
}

fn read_labels(path: &Path) -> Result<Vec<String>> {
    let text = text_file::read(path)?;
    // Blank lines at the end name nothing.
    Ok(text.trim_end().lines().map(|line| line.trim().to_owned()).collect())
}

impl Top {
    /// Ranks the last result that is a list.
    pub fn rank(&self, results: &[Value]) -> Result<Ranking> {
        for (result, value) in results.iter().enumerate().rev() {
            if let Value::Tensor(tensor) = value {
                let tensor = HostTensor::try_from(tensor)?;
                if let Some(scores) = scores(&tensor) {
                    return self.rank_scores(result, tensor.metadata(), scores);
                }
            }
        }
        Err(Failure::invalid("--top: no result is a list of numbers, such as 1x1000xf32"))
    }

    fn rank_scores(&self, result: usize, what: String, mut scores: Vec<f64>) -> Result<Ranking> {
        if let Some((path, labels)) = self.labels.as_ref().filter(|(_, labels)| labels.len() != scores.len())
        {
            return Err(Failure::invalid(format!(
                "result[{result}] {what} has {} entries, and '{}' has {} labels: they would be off",
                scores.len(),
                path.display(),
                labels.len()
            )));
        }
        if self.softmax {
            let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            scores.iter_mut().for_each(|score| *score = (*score - highest).exp());
            let sum: f64 = scores.iter().sum();
            scores.iter_mut().for_each(|score| *score /= sum);
        }
        let mut order: Vec<usize> = (0..scores.len()).collect();
        // What is not a number is lowest; of equal entries the first is higher.
        let key = |place: usize| if scores[place].is_nan() { f64::NEG_INFINITY } else { scores[place] };
        order.sort_by(|a, b| key(*b).total_cmp(&key(*a)).then(a.cmp(b)));
        let label = |place: usize| self.labels.as_ref().map(|(_, labels)| labels[place].clone());
        let entries = order.into_iter().take(self.count).map(|place| (place, scores[place], label(place)));
        Ok(Ranking { result, what, entries: entries.collect() })
    }
}

/// The elements of a tensor with at most one dimension that is not 1.
fn scores(tensor: &HostTensor) -> Option<Vec<f64>> {
    let long = tensor.shape.iter().filter(|dim| **dim != 1).count();
    let element = |index| element_to_f64(tensor.element_type, &tensor.data, index);
    let elements = || (0..tensor.element_count()).map(element).collect();
    (long <= 1 && !tensor.shape.is_empty() && tensor.element_count() > 0).then(elements).flatten()
}

impl Ranking {
    /// One line for each entry: score, place, label.
    pub fn print(&self, out: &mut dyn Write) -> Result<()> {
        writeln!(out, "the {} highest of {}", self.entries.len(), self.what)?;
        let texts: Vec<String> = self.entries.iter().map(|(_, score, _)| format_g(*score, false)).collect();
        let widest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0);
        let score_width = widest(&mut texts.iter().map(String::len));
        let place_width = widest(&mut self.entries.iter().map(|(place, _, _)| place.to_string().len()));
        for ((place, _, label), text) in self.entries.iter().zip(&texts) {
            let label = label.as_ref().map(|label| format!("  {label}")).unwrap_or_default();
            writeln!(out, "  {text:>score_width$}  {place:>place_width$}{label}")?;
        }
        Ok(())
    }

    /// For machines.
    pub fn to_json(&self) -> serde_json::Value {
        let entry = |(place, score, label): &(usize, f64, Option<String>)| json!({"index": place, "score": score, "label": label});
        json!({"result": self.result, "entries": self.entries.iter().map(entry).collect::<Vec<_>>()})
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::engine::ElementType;

    fn tensor(shape: &[u64], values: &[f32]) -> HostTensor {
        HostTensor::new(ElementType::F32, shape, values.iter().flat_map(|v| v.to_le_bytes()).collect())
            .unwrap()
    }

    #[test]
    fn the_highest_come_first() {
        let top = Top { count: 3, labels: None, softmax: false };
        let values = [0.1, f32::NAN, 0.7, 0.7, 0.2];
        let ranking = top.rank_scores(1, "5xf32".into(), scores(&tensor(&[1, 5], &values)).unwrap()).unwrap();
        let mut out = Vec::new();
        ranking.print(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "the 3 highest of 5xf32\n  0.7  2\n  0.7  3\n  0.2  4\n");
        assert_eq!(ranking.to_json()["entries"][0]["index"], 2);
        let top = Top { count: 9, labels: None, softmax: true };
        let ranking = top.rank_scores(0, String::new(), vec![0.0, 1000.0, 1000.0]).unwrap();
        assert_eq!(ranking.entries[0], (1, 0.5, None));
        assert_eq!(ranking.entries.len(), 3);
    }

    #[test]
    fn lists_are_what_has_one_long_side() {
        assert!(scores(&tensor(&[1, 4, 1], &[0.0; 4])).is_some());
        for shape in [&[2u64, 2][..], &[], &[0]] {
            let count: u64 = shape.iter().product();
            assert!(scores(&tensor(shape, &vec![0.0; count as usize])).is_none(), "{shape:?}");
        }
    }

    #[test]
    fn labels_have_to_fit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("labels.txt");
        fs::write(&path, "cat\r\ndog\n\n").unwrap();
        let flags = TopFlags { labels: Some(path), ..TopFlags::default() };
        let top = flags.read().unwrap().unwrap();
        let ranking = top.rank_scores(0, String::new(), vec![0.25, 0.75]).unwrap();
        assert_eq!(ranking.entries[0], (1, 0.75, Some("dog".into())));
        let error = top.rank_scores(0, "3xf32".into(), vec![0.0; 3]).unwrap_err().to_string();
        assert!(error.contains("3 entries") && error.contains("2 labels"), "{error}");
        assert!(TopFlags { softmax: true, ..TopFlags::default() }.read().is_err());
        assert!(TopFlags::default().read().unwrap().is_none());
    }
}
