//! The spelling of command lines: `--flag=value` with underscores or dashes, `--flagfile=FILE`, and flags of IREE's tools that
//! mean nothing here.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs,
};

use crate::{foreign, text_file};

/// Flag files inside flag files, at most.
const MAX_DEPTH: usize = 8;
/// Bytes of a flag file, at most.
const MAX_FLAGFILE: u64 = 1 << 20;

/// A command line that clap can read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// The arguments.
    pub args: Vec<OsString>,
    /// What to tell the user about flags that have no effect.
    pub warnings: Vec<String>,
}

/// Expands flag files, brings flag names into the spelling that `command` declares, and takes out the flags of
/// IREE's tools that have no meaning here. The program's name is not among the arguments. The error is a message about
/// wrong usage.
pub fn prepare(
    command: &clap::Command,
    argv: impl IntoIterator<Item = OsString>,
) -> Result<Prepared, String> {
    let mut names = Names::new();
    for arg in command.get_arguments() {
        for long in arg.get_long_and_visible_aliases().unwrap_or_default() {
            let name = Name { long: long.to_owned(), takes_value: arg.get_action().takes_values() };
            names.insert(canonical(long), name);
        }
    }
    // clap adds these when it builds the command.
    for long in ["help", "version"] {
        let name = Name { long: long.to_owned(), takes_value: false };
        names.entry(long.to_owned()).or_insert(name);
    }
    let mut prepared = Prepared::default();
    let mut literal = false;
    for arg in argv {
        literal |= arg == "--";
        match arg.into_string() {
            Ok(arg) if !literal => expand(&names, arg, 0, &mut prepared)?,
            Ok(arg) => prepared.args.push(arg.into()),
            // The name of a file may be any bytes; clap refuses them where a text has to stand.
            Err(arg) if literal => prepared.args.push(arg),
            Err(arg) => prepared.args.push(spelled(&names, arg)),
        }
    }
    Ok(prepared)
}

/// A flag that is declared.
struct Name {
    /// As it is declared.
    long: String,
    /// Whether it may have a value; otherwise `=true` and `=false` only say whether it is given.
    takes_value: bool,
}

/// Flags by their names with underscores.
type Names = BTreeMap<String, Name>;

/// A flag with a value that is no text, under the name that it is declared by; what is no such flag stays.
fn spelled(names: &Names, arg: OsString) -> OsString {
    let spelled = split(&arg).and_then(|(flag, value)| {
        let declared = names.get(&canonical(flag.strip_prefix("--")?))?;
        let mut spelled = OsString::from(format!("--{}=", declared.long));
        spelled.push(value);
        Some(spelled)
    });
    spelled.unwrap_or(arg)
}

/// What stands before and behind the first `=`.
#[cfg(unix)]
fn split(arg: &OsStr) -> Option<(&str, &OsStr)> {
    use std::os::unix::ffi::OsStrExt;
    let bytes = arg.as_bytes();
    let at = bytes.iter().position(|byte| *byte == b'=')?;
    Some((std::str::from_utf8(&bytes[..at]).ok()?, OsStr::from_bytes(&bytes[at + 1..])))
}

/// Names of files are of another kind here, and cannot be cut without unsafe code: such flags have to be spelled as they are declared.
#[cfg(not(unix))]
fn split(_: &OsStr) -> Option<(&str, &OsStr)> {
    None
}

fn canonical(name: &str) -> String {
    name.replace('-', "_")
}

fn expand(names: &Names, arg: String, depth: usize, out: &mut Prepared) -> Result<(), String> {
    let Some(flag) = arg.strip_prefix("--").filter(|f| !f.is_empty()) else {
        out.args.push(arg.into());
        return Ok(());
    };
    let (name, value) = flag.split_once('=').map_or((flag, None), |(n, v)| (n, Some(v)));
    let name = canonical(name);
    if name == "flagfile" {
        let path = value.filter(|v| !v.is_empty()).ok_or("--flagfile needs a file: --flagfile=FILE")?;
        return flagfile(names, path, depth, out);
    }
    if let Some(Name { long, takes_value }) = names.get(&name) {
        match value {
            Some("false") if !takes_value => {}
            None | Some("true") if value.is_none() || !takes_value => {
                out.args.push(format!("--{long}").into());
            }
            _ => out.args.push(format!("--{long}={}", value.unwrap_or_default()).into()),
        }
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
            out.args.push(arg.into());
            Ok(())
        }
    }
}

/// One flag per line; blank lines and those that begin with `#` are skipped. The `--help` text of IREE's tools is
/// such a file, with quoted default values.
fn flagfile(names: &Names, path: &str, depth: usize, out: &mut Prepared) -> Result<(), String> {
    if depth >= MAX_DEPTH {
        return Err(format!("flag file '{path}' is nested more than {MAX_DEPTH} deep; does it name itself?"));
    }
    let fail = |e: std::io::Error| format!("cannot read flag file '{path}': {e}");
    // A device tells no length.
    let bytes = fs::File::open(path).and_then(|mut file| text_file::bytes(&mut file, MAX_FLAGFILE));
    let text = String::from_utf8(bytes.map_err(fail)?)
        .map_err(|_| format!("flag file '{path}' is no text in UTF-8"))?;
    for line in text.lines().map(str::trim) {
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
            .arg(clap::Arg::new("no-repair").long("no-repair"))
            .arg(clap::Arg::new("verbose").long("verbose").action(clap::ArgAction::Count));
        prepare(&command, args.iter().map(OsString::from))
    }

    #[test]
    fn dashes_and_underscores_are_the_same_in_names_only() {
        let p =
            prepare_for_test(&["--module-mode=a-b_c", "--no_repair", "--module=x_y", "-", "x_y"]).unwrap();
        assert_eq!(p.args, ["--module_mode=a-b_c", "--no-repair", "--module=x_y", "-", "x_y"]);
        let p = prepare_for_test(&["--verbose=true", "--verbose=false", "--verbose"]).unwrap();
        assert_eq!(p.args, ["--verbose", "--verbose"]);
        let p = prepare_for_test(&["--", "--module-mode=1"]).unwrap();
        assert_eq!(p.args, ["--", "--module-mode=1"]);
    }

    #[cfg(unix)]
    #[test]
    fn names_of_files_may_be_any_bytes() {
        use std::os::unix::ffi::OsStringExt;
        let command = clap::Command::new("t").arg(clap::Arg::new("mode").long("module_mode"));
        let bytes = |text: &[u8]| OsString::from_vec(text.to_vec());
        let args = [bytes(b"m\xff.onnx"), bytes(b"--module-mode=a=\xfe"), bytes(b"--other=\xfe")];
        let prepared = prepare(&command, args).unwrap();
        assert_eq!(
            prepared.args,
            [bytes(b"m\xff.onnx"), bytes(b"--module_mode=a=\xfe"), bytes(b"--other=\xfe")]
        );
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
        assert_eq!(p.args, ["--module=a", "--module_mode=mmap", "--module=b"]);
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
        assert_eq!((p.args.len(), p.warnings.len()), (0, 1));
        assert!(p.warnings[0].contains("--cuda_use_streams"), "{:?}", p.warnings);
        let error = prepare_for_test(&["--device_replay_output=x.ireereplay"]).unwrap_err();
        assert!(error.contains("--device_replay_output"), "{error}");
        assert_eq!(prepare_for_test(&["--no_such_flag"]).unwrap().args, ["--no_such_flag"]);
    }
}
