//! The tool `halite cache`: lists, clears and finds the cache of compiled models.

use std::{
    io::Write,
    path::PathBuf,
    time::{SystemTime, UNIX_EPOCH},
};

use clap::{Parser, Subcommand};
use halite::{Cache, CacheEntry};
use serde_json::json;

use crate::{
    console::{self, CommonFlags, Result, Tool},
    flags, units,
};

/// Lists, clears or finds the cache of compiled models.
#[derive(Parser, Debug)]
#[command(version = console::VERSION, max_term_width = 110, after_help = "\
Examples:
  halite cache list                  what is kept, what was used last first
  halite cache clear                 removes all entries, and nothing else
  halite cache path                  the folder
")]
pub struct Flags {
    #[command(subcommand)]
    action: Option<Action>,
    /// The cache in this folder. Default: this user's
    #[arg(long = "compile-cache", alias = "compile_cache", value_name = "FOLDER", global = true)]
    folder: Option<PathBuf>,
    /// Prints one JSON object
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    common: CommonFlags,
}

#[derive(Clone, Copy, Debug, Subcommand)]
enum Action {
    /// Prints what is kept: bytes, days since it was used, kind, and the model it came from
    List,
    /// Removes all entries; files that are not the cache's stay
    Clear,
    /// Prints the folder
    Path,
}

impl Tool for Flags {
    fn common(&self) -> &CommonFlags {
        &self.common
    }

    fn json(&self) -> bool {
        self.json
    }

    fn run(self) -> Result<()> {
        let mut out = std::io::stdout().lock();
        // Looking makes no folder, whoever named it.
        let cache = match &self.folder {
            Some(path) if path.as_os_str() != "off" => Cache::at(path),
            folder => flags::cache(folder.as_deref())?,
        };
        match self.action.unwrap_or(Action::List) {
            Action::List => list(&cache, self.json, &mut out),
            Action::Clear => clear(&cache, self.json, &mut out),
            Action::Path => path(&cache, self.json, &mut out),
        }
    }
}

/// Seconds since 1970.
fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn list(cache: &Cache, as_json: bool, out: &mut dyn Write) -> Result<()> {
    let mut entries = cache.list()?;
    entries.sort_by(|a, b| b.last_used.cmp(&a.last_used).then_with(|| a.key.cmp(&b.key)));
    let total: u64 = entries.iter().map(|entry| entry.bytes).sum();
    if as_json {
        let entry = |entry: &CacheEntry| {
            json!({
                "key": entry.key, "kind": entry.kind, "label": entry.label, "bytes": entry.bytes,
                "last_used": seconds(entry.last_used),
            })
        };
        let all: Vec<_> = entries.iter().map(entry).collect();
        writeln!(out, "{:#}", json!({"path": cache.path(), "bytes": total, "entries": all}))?;
        return Ok(());
    }
    let now = SystemTime::now();
    for entry in &entries {
        let days = now.duration_since(entry.last_used).map_or(0, |age| age.as_secs() / 86_400);
        let used = if days == 0 { "today".to_owned() } else { format!("{days} d ago") };
        writeln!(
            out,
            "{:>12} B  {used:>10}  {:<6}  {}  {}",
            entry.bytes, entry.kind, entry.key, entry.label
        )?;
    }
    let path = cache.path().map_or("off".to_owned(), |path| path.display().to_string());
    writeln!(out, "{} entries, {} in {path}", entries.len(), units::bytes(total))?;
    Ok(())
}

fn clear(cache: &Cache, as_json: bool, out: &mut dyn Write) -> Result<()> {
    let cleared = cache.clear()?;
    if as_json {
        writeln!(out, "{}", json!({"files": cleared.files, "bytes": cleared.bytes}))?;
    } else {
        writeln!(out, "{} files, {} removed", cleared.files, units::bytes(cleared.bytes))?;
    }
    Ok(())
}

fn path(cache: &Cache, as_json: bool, out: &mut dyn Write) -> Result<()> {
    if as_json {
        writeln!(out, "{}", json!({"path": cache.path()}))?;
    } else {
        writeln!(out, "{}", cache.path().map_or("off".to_owned(), |path| path.display().to_string()))?;
    }
    Ok(())
}
