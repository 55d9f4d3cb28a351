//! Owns the spelling of command lines: `--flag=value` with underscores or dashes, `--flagfile=FILE`, and flags of
//! IREE's tools that mean nothing here. Does not own: the flags themselves (clap does).

use std::{collections::BTreeMap, ffi::OsString, fs};

use crate::foreign;

/// Flag files inside flag files, at most.
const MAX_DEPTH: usize = 8;
/// Bytes of a flag file, at most.
const MAX_FLAGFILE: u64 = 1 << 20;

/// A command line that clap can read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// The program's name and its arguments.
    pub args: Vec<String>,
    /// What to tell the user about flags that have no effect.
    pub warnings: Vec<String>,
}

/// Expands flag files, brings flag names into the spelling that `command` declares, and takes out the flags of
/// IREE's tools that have no meaning here. The error is a message about wrong usage.
pub fn prepare(
    command: &clap::Command,
    argv: impl IntoIterator<Item = OsString>,
) -> Result<Prepared, String> {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for long in command.get_arguments().flat_map(|a| a.get_long_and_visible_aliases().unwrap_or_default()) {
        names.insert(canonical(long), long.to_owned());
    }
    // clap adds these when it builds the command.
    for long in ["help", "version"] {
        names.entry(long.to_owned()).or_insert_with(|| long.to_owned());
    }
    let mut prepared = Prepared::default();
    let mut argv = argv.into_iter().map(|arg| {
        arg.into_string().map_err(|arg| format!("argument '{}' is not valid UTF-8", arg.to_string_lossy()))
    });
    prepared.args.extend(argv.next().transpose()?);
    let mut literal = false;
    for arg in argv {
        let arg = arg?;
        literal |= arg == "--";
        if literal {
            prepared.args.push(arg);
        } else {
            expand(&names, arg, 0, &mut prepared)?;
        }
    }
    Ok(prepared)
}

fn canonical(name: &str) -> String {
    name.replace('-', "_")
}

fn expand(
    names: &BTreeMap<String, String>,
    arg: String,
    depth: usize,
    out: &mut Prepared,
) -> Result<(), String> {
    let Some(flag) = arg.strip_prefix("--").filter(|f| !f.is_empty()) else {
        out.args.push(arg);
        return Ok(());
    };
    let (name, value) = flag.split_once('=').map_or((flag, None), |(n, v)| (n, Some(v)));
    let name = canonical(name);
    if name == "flagfile" {
        let path = value.filter(|v| !v.is_empty()).ok_or("--flagfile needs a file: --flagfile=FILE")?;
        return flagfile(names, path, depth, out);
    }
    if let Some(long) = names.get(&name) {
        out.args.push(value.map_or_else(|| format!("--{long}"), |v| format!("--{long}={v}")));
        return Ok(());
    }
    match foreign::judge(&name, value) {
        Some(foreign::Verdict::Accept) => Ok(()),
        Some(foreign::Verdict::Warn(text)) => {
            out.warnings.push(text);
            Ok(())
        }
        Some(foreign::Verdict::Refuse(text)) => Err(text),
        // clap knows how to complain, and suggests similar names.
        None => {
            out.args.push(arg);
            Ok(())
        }
    }
}

/// One flag per line; blank lines and those that begin with `#` are skipped. The `--help` text of IREE's tools is
/// such a file, with quoted default values.
fn flagfile(
    names: &BTreeMap<String, String>,
    path: &str,
    depth: usize,
    out: &mut Prepared,
) -> Result<(), String> {
    if depth >= MAX_DEPTH {
        return Err(format!("flag file '{path}' is nested more than {MAX_DEPTH} deep; does it name itself?"));
    }
    let fail = |e: std::io::Error| format!("cannot read flag file '{path}': {e}");
    let length = fs::metadata(path).map_err(fail)?.len();
    if length > MAX_FLAGFILE {
        return Err(format!("flag file '{path}' has {length} bytes; at most {MAX_FLAGFILE} are read"));
    }
    for line in fs::read_to_string(path).map_err(fail)?.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if !line.starts_with("--") {
            return Err(format!("flag file '{path}' has a line that is no flag: '{line}'"));
        }
        let arg = match line.split_once('=') {
            Some((name, value)) => format!("{name}={}", unquote(value)),
            None => line.to_owned(),
        };
        expand(names, arg, depth + 1, out)?;
    }
    Ok(())
}

fn unquote(value: &str) -> &str {
    value.strip_prefix('"').and_then(|v| v.strip_suffix('"')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepare_for_test(args: &[&str]) -> Result<Prepared, String> {
        let command = clap::Command::new("t")
            .arg(clap::Arg::new("module").long("module"))
            .arg(clap::Arg::new("mode").long("module_mode"))
            .arg(clap::Arg::new("no-repair").long("no-repair"));
        prepare(&command, std::iter::once(&"t").chain(args).map(OsString::from))
    }

    #[test]
    fn dashes_and_underscores_are_the_same_in_names_only() {
        let p =
            prepare_for_test(&["--module-mode=a-b_c", "--no_repair", "--module=x_y", "-", "x_y"]).unwrap();
        assert_eq!(p.args, ["t", "--module_mode=a-b_c", "--no-repair", "--module=x_y", "-", "x_y"]);
        let p = prepare_for_test(&["--", "--module-mode=1"]).unwrap();
        assert_eq!(p.args, ["t", "--", "--module-mode=1"]);
    }

    #[test]
    fn flag_files_nest_and_override() {
        let dir = tempfile::tempdir().unwrap();
        let (outer, inner) = (dir.path().join("outer"), dir.path().join("inner"));
        fs::write(
            &inner,
            "# comment\n\n  --module_mode=\"mmap\"  \n--task_topology_mode=\"physical_cores\"\n",
        )
        .unwrap();
        fs::write(&outer, format!("--module=a\n--flagfile={}\n", inner.display())).unwrap();
        let p = prepare_for_test(&[&format!("--flagfile={}", outer.display()), "--module=b"]).unwrap();
        assert_eq!(p.args, ["t", "--module=a", "--module_mode=mmap", "--module=b"]);
        assert!(p.warnings.is_empty(), "{:?}", p.warnings);
        fs::write(&inner, format!("--flagfile={}", inner.display())).unwrap();
        let error = prepare_for_test(&[&format!("--flagfile={}", inner.display())]).unwrap_err();
        assert!(error.contains("nested"), "{error}");
        assert!(prepare_for_test(&["--flagfile=no/such"]).unwrap_err().contains("no/such"));
        assert!(prepare_for_test(&["--flagfile"]).is_err());
        fs::write(&inner, "module=x").unwrap();
        assert!(
            prepare_for_test(&[&format!("--flagfile={}", inner.display())]).unwrap_err().contains("no flag")
        );
    }

    #[test]
    fn foreign_flags_are_never_silent_unless_they_ask_for_nothing() {
        let p = prepare_for_test(&["--cuda_use_streams=false", "--task-worker-spin-us=0"]).unwrap();
        assert_eq!((p.args.len(), p.warnings.len()), (1, 1));
        assert!(p.warnings[0].contains("--cuda_use_streams"), "{:?}", p.warnings);
        let error = prepare_for_test(&["--device_replay_output=x.ireereplay"]).unwrap_err();
        assert!(error.contains("--device_replay_output"), "{error}");
        assert_eq!(prepare_for_test(&["--no_such_flag"]).unwrap().args, ["t", "--no_such_flag"]);
    }
}
