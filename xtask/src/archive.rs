//! Archives of the form ZIP, whose bytes depend on what is in them and on nothing else.

use std::{fs, io::Write as _, path::Path};

use anyhow::{Context, Result};
use zip::{CompressionMethod, DateTime, ZipWriter, write::SimpleFileOptions};

/// The first date that such archives can have, in seconds since 1970: the first day of 1980.
const FIRST: u64 = 315_532_800;
const DAY: u64 = 86_400;

/// A file in an archive.
pub struct Entry {
    name: String,
    bytes: Vec<u8>,
}

impl Entry {
    /// A text.
    pub fn text(name: &str, text: &str) -> Entry {
        Entry { name: name.to_owned(), bytes: text.as_bytes().to_vec() }
    }

    /// A file's content under another name.
    pub fn file(name: &str, path: &Path) -> Result<Entry> {
        let bytes = fs::read(path).with_context(|| format!("cannot read '{}'", path.display()))?;
        Ok(Entry { name: name.to_owned(), bytes })
    }
}

/// All files below a folder, by their paths in it behind a prefix.
pub fn below(folder: &Path, prefix: &str) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("reading '{}'", folder.display()))? {
        let path = entry?.path();
        let name = format!("{prefix}{}", path.file_name().unwrap_or_default().to_string_lossy());
        if path.is_dir() {
            entries.extend(below(&path, &format!("{name}/"))?);
        } else {
            entries.push(Entry::file(&name, &path)?);
        }
    }
    Ok(entries)
}

/// Writes an archive: entries sorted by name, the manifest of a jar first, all with one date.
pub fn write(to: &Path, mut entries: Vec<Entry>, date: u64) -> Result<()> {
    entries.sort_by(|a, b| {
        let key = |entry: &Entry| (!entry.name.starts_with("META-INF/"), entry.name.clone());
        key(a).cmp(&key(b))
    });
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    let file = fs::File::create(to).with_context(|| format!("cannot write '{}'", to.display()))?;
    let mut archive = ZipWriter::new(file);
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(day(date)?)
        .unix_permissions(0o644);
    for entry in &entries {
        archive.start_file(entry.name.as_str(), options)?;
        archive.write_all(&entry.bytes)?;
    }
    archive.finish()?;
    Ok(())
}

/// The day of a number of seconds since 1970, at midnight.
fn day(seconds: u64) -> Result<DateTime> {
    let mut days = seconds.max(FIRST) / DAY;
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut year, mut month) = (1970, 1);
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    for length in lengths {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let date = DateTime::from_date_and_time(u16::try_from(year)?, month, u8::try_from(days + 1)?, 0, 0, 0);
    date.with_context(|| format!("an archive cannot have the date {seconds}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (seconds, year, month, date) in [
            (0, 1980, 1, 1),
            (951_782_400, 2000, 2, 29),
            (951_868_800, 2000, 3, 1),
            (1_798_675_199, 2026, 12, 30),
            (1_798_761_599, 2026, 12, 31),
        ] {
            let day = day(seconds).unwrap();
            assert_eq!((day.year(), day.month(), day.day()), (year, month, date), "{seconds}");
        }
    }

    #[test]
    fn the_same_files_give_the_same_bytes() {
        let folder = std::env::temp_dir().join(format!("halite-archive-{}", std::process::id()));
        let made = |names: &[&str]| {
            let entries = names.iter().map(|name| Entry::text(name, name)).collect();
            write(&folder.join("a.zip"), entries, 1_790_000_000).unwrap();
            fs::read(folder.join("a.zip")).unwrap()
        };
        assert_eq!(made(&["b", "META-INF/M", "a/c"]), made(&["a/c", "b", "META-INF/M"]));
        fs::remove_dir_all(&folder).unwrap();
    }
}
