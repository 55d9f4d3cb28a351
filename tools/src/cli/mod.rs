//! The one program: which tool a command line means, by subcommand (`halite run`) or by the name that the program was called by
//! (`run-module`).

mod extras;
mod links;

use std::{
    ffi::{OsStr, OsString},
    path::Path,
    process::ExitCode,
};

#[cfg(feature = "serve")]
use crate::serve;
use crate::{
    bench, cache, check, compile,
    console::{self, Called, Tool},
    dump, embed, generate, kernels, list, perplexity, run, trial,
};

/// A subcommand.
pub(crate) struct Entry {
    /// `run`.
    pub name: &'static str,
    /// The name under which it is a program of its own, such as `run-module`.
    pub program: Option<&'static str>,
    /// Its flags.
    pub command: fn() -> clap::Command,
    main: fn(Called) -> ExitCode,
}

const fn entry<T: Tool>(name: &'static str, program: Option<&'static str>) -> Entry {
    Entry { name, program, command: console::command::<T>, main: console::tool_main::<T> }
}

/// All subcommands, in the order of the help.
pub(crate) const ENTRIES: &[Entry] = &[
    entry::<run::Flags>("run", Some("run-module")),
    entry::<generate::Flags>("generate", None),
    #[cfg(feature = "serve")]
    entry::<serve::Flags>("serve", None),
    entry::<embed::Flags>("embed", None),
    entry::<perplexity::Flags>("perplexity", None),
    entry::<bench::Flags>("bench", Some("benchmark-module")),
    entry::<check::Flags>("check", None),
    entry::<compile::Flags>("compile", Some("compile-module")),
    entry::<dump::Flags>("dump", Some("dump-module")),
    entry::<list::Flags>("devices", Some("list-devices")),
    entry::<kernels::Flags>("kernels", Some("kernels")),
    entry::<cache::Flags>("cache", None),
    entry::<extras::Completions>("completions", None),
    entry::<extras::Man>("man", None),
    entry::<links::Flags>("links", None),
];

/// What the program is called when it is not called by a tool's name.
pub(crate) const PROGRAM: &str = "halite";

const EXAMPLES: &str = "\
Examples:
  halite run model.onnx --input=@picture.png --labels=labels.txt
  halite generate model.gguf --prompt=Once
  halite bench model.onnx --input=1x3x224x224xf32=0
  halite compile model.onnx -o model.vmfb
  halite devices

'halite help SUBCOMMAND' or 'halite SUBCOMMAND --help' tells more. Called by the name run-module, benchmark-module,
compile-module, dump-module, list-devices or kernels (see 'halite links'), this program is that tool.
";

/// The whole program, for help, completions and manual pages.
pub(crate) fn command() -> clap::Command {
    let program = clap::Command::new(PROGRAM)
        .version(console::VERSION)
        .about("Runs machine-learning models on Vulkan devices")
        .after_help(EXAMPLES)
        .max_term_width(110)
        .subcommand_required(true)
        .arg_required_else_help(true);
    ENTRIES.iter().fold(program, |program, entry| {
        let mut subcommand = (entry.command)().name(entry.name);
        if let Some(old) = entry.program.filter(|old| *old != entry.name) {
            subcommand = subcommand.alias(old);
        }
        program.subcommand(subcommand)
    })
}

/// Entry point of the program.
pub fn main() -> ExitCode {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let program = if arguments.is_empty() { OsString::from(PROGRAM) } else { arguments.remove(0) };
    if let Some(entry) = by_program(&program).filter(|_| !trial::is_trial()) {
        let name = entry.program.unwrap_or(entry.name).to_owned();
        return (entry.main)(Called { name, arguments });
    }
    behind_subcommand(&mut arguments);
    let wanted = arguments.first().and_then(|first| first.to_str());
    let known = |entry: &&Entry| wanted.is_some() && (wanted == Some(entry.name) || wanted == entry.program);
    match ENTRIES.iter().find(known) {
        Some(entry) => {
            let name = format!("{PROGRAM} {}", entry.name);
            (entry.main)(Called { name, arguments: arguments.split_off(1) })
        }
        None => no_subcommand(arguments),
    }
}

/// Brings flags that all tools have from before the subcommand to behind it: `halite -q devices`.
fn behind_subcommand(arguments: &mut [OsString]) {
    let is_level = |arg: &OsString| {
        let text = arg.to_str().unwrap_or_default();
        let short = text.strip_prefix('-').filter(|letters| !letters.is_empty());
        short.is_some_and(|letters| letters.bytes().all(|letter| letter == b'q' || letter == b'v'))
            || ["--quiet", "--verbose"].contains(&text)
    };
    let count = arguments.iter().take_while(|arg| is_level(arg)).count();
    if let Some(until) = arguments.get(..=count).map(<[_]>::len).filter(|_| count > 0) {
        arguments[..until].rotate_left(count);
    }
}

/// The tool that has this name as a program.
pub(crate) fn by_program(program: &OsStr) -> Option<&'static Entry> {
    let name = Path::new(program).file_name()?.to_str()?;
    let plain = name.len().checked_sub(4).filter(|at| name.is_char_boundary(*at)).map(|at| name.split_at(at));
    let name = plain.filter(|(_, end)| end.eq_ignore_ascii_case(".exe")).map_or(name, |(name, _)| name);
    ENTRIES.iter().find(|entry| entry.program == Some(name))
}

/// Help, version, and what is no subcommand.
fn no_subcommand(arguments: Vec<OsString>) -> ExitCode {
    let name = console::called(Called { name: PROGRAM.to_owned(), arguments: arguments.clone() });
    let file = arguments.first().filter(|first| !first.to_string_lossy().starts_with('-'));
    let file = file.filter(|first| Path::new(first).is_file()).map(|file| file.to_string_lossy());
    if let Some(file) = file {
        let text = format!("'{file}' is a file, not a subcommand; 'halite run {file}' runs it");
        return console::usage_failed(name, &text, &arguments);
    }
    let is_help = arguments.first().is_some_and(|first| first == "help");
    if let Some(word) = arguments.get(usize::from(is_help)).map(|word| word.to_string_lossy())
        && !word.is_empty()
        && !word.starts_with('-')
        && !(is_help && knows(&word))
    {
        return console::usage_failed(name, &unknown(&word), &arguments);
    }
    let all = std::iter::once(OsString::from(PROGRAM)).chain(arguments.iter().cloned());
    match command().try_get_matches_from(all) {
        Err(error) => console::parse_failed(name, &error, &arguments),
        Ok(_) => console::usage_failed(name, "no subcommand was named", &arguments),
    }
}

/// Whether there is help about it.
fn knows(word: &str) -> bool {
    word == "help" || ENTRIES.iter().any(|entry| entry.name == word)
}

/// What to say about a subcommand that there is not.
fn unknown(word: &str) -> String {
    let names =
        ENTRIES.iter().flat_map(|entry| std::iter::once(entry.name).chain(entry.program)).chain(["help"]);
    let near = names.map(|name| (strsim::osa_distance(word, name), name)).min();
    let near = near.filter(|(distance, name)| *distance <= 1 + name.len() / 4);
    let hint = near.map(|(_, name)| format!(" did you mean '{name}'?")).unwrap_or_default();
    let all: Vec<_> = ENTRIES.iter().map(|entry| entry.name).collect();
    format!("there is no subcommand '{word}';{hint} there are: {}, help", all.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_is_consistent() {
        command().debug_assert();
        assert!(ENTRIES.iter().all(|entry| (entry.command)().get_about().is_some()));
    }

    #[test]
    fn flags_stand_under_their_headings() {
        for entry in ENTRIES {
            let command = (entry.command)();
            for arg in command.get_arguments() {
                let (name, heading) = (arg.get_id().as_str(), arg.get_help_heading());
                let long = arg.get_long().unwrap_or_default();
                let is_vulkan = long.starts_with("vulkan_");
                assert_eq!(is_vulkan, heading == Some("Vulkan"), "halite {} --{long}", entry.name);
                let for_all = ["json", "timeout", "print_statistics", "compile_cache"].contains(&name);
                let of_devices = ["Devices", "Drivers", "Comparison", "Pictures as inputs"];
                let wrong = heading.is_some_and(|heading| for_all && of_devices.contains(&heading));
                assert!(!wrong, "halite {} --{long} is under {heading:?}", entry.name);
            }
        }
    }

    #[test]
    fn switches_take_values_as_those_of_iree_do() {
        let command = console::command::<run::Flags>;
        let json = |args: &[&str]| {
            let all = ["run", "m.vmfb"].iter().chain(args);
            command().try_get_matches_from(all).map(|made| made.get_flag("json"))
        };
        let made = command().try_get_matches_from(["run"]).unwrap();
        let on = ["buffer_device_addresses", "dedicated_compute_queue"].map(|name| made.get_flag(name));
        assert_eq!((on, made.get_flag("debug_utils")), ([true, true], false));
        assert_eq!(json(&[]).ok(), Some(false));
        assert_eq!(json(&["--json"]).ok(), Some(true));
        assert_eq!(json(&["--json=false"]).ok(), Some(false));
        assert!(json(&["--json=perhaps"]).is_err());
    }

    #[test]
    fn how_much_is_said_goes_before_and_behind_subcommands() {
        let moved = |words: &[&str]| {
            let mut all: Vec<OsString> = words.iter().map(OsString::from).collect();
            behind_subcommand(&mut all);
            all.into_iter().map(|word| word.into_string().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(moved(&["-q", "devices", "--json"]), ["devices", "-q", "--json"]);
        assert_eq!(moved(&["-vv", "--quiet", "run", "m"]), ["run", "-vv", "--quiet", "m"]);
        assert_eq!(moved(&["run", "-v"]), ["run", "-v"]);
        assert_eq!(moved(&["-q"]), ["-q"]);
        assert_eq!(moved(&["--help"]), ["--help"]);
        for words in [&["cache", "-q", "list"][..], &["cache", "list", "-q"], &["cache", "path", "-vv"]] {
            assert!(console::command::<cache::Flags>().try_get_matches_from(words).is_ok(), "{words:?}");
        }
    }

    #[test]
    fn old_names_are_tools() {
        let tool = |path: &str| by_program(OsStr::new(path)).map(|entry| entry.name);
        assert_eq!(tool("run-module"), Some("run"));
        assert_eq!(tool("/usr/bin/benchmark-module"), Some("bench"));
        assert_eq!(tool("list-devices.EXE"), Some("devices"));
        assert_eq!(tool("bin/kernels.exe"), Some("kernels"));
        for other in ["halite", "halite.exe", "run-module.sh", "", "é.exe", "run"] {
            assert_eq!(tool(other), None, "{other}");
        }
    }
}
